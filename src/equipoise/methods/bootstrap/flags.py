"""Bootstrap p-values per group: the published form, bootstrap-t, and statistics for step-down."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from equipoise.methods.arrays import BoolArray, FloatArray, IntArray
from equipoise.methods.bootstrap.data import CellMoments, Totals
from equipoise.methods.bootstrap.estimates import GroupEstimates, mean_variance
from equipoise.methods.bootstrap.process import Audit, bound_deviations, target_shift
from equipoise.methods.bootstrap.quantiles import column_medians
from equipoise.methods.bootstrap.status import Status
from equipoise.methods.bootstrap.sums import GroupTotals, group_totals, quotient
from equipoise.methods.nulls.hypotheses import Null, normal_tails

FULL_PRECISION = 1 << 26
"""Up to this many stored numbers (512 MB) keep full precision; beyond it half the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapPValues:
    """One p-value per group."""

    p: FloatArray
    """p-values; NaN for groups that could not be tested."""
    spread: FloatArray
    """Standard error used for each group."""
    status: IntArray
    """Why a group has no p-value; CONSTANT where every resample gave the same disparity."""


def algorithm_4(audit: Audit, null: Null) -> BootstrapPValues:
    """p-values as published: normal, with the resampled median absolute deviation as scale.

    The factor is 1/Φ⁻¹(3/4), which makes the scale consistent for the standard error, and each
    p-value is written from its own null. The scale shrinks exactly when a small group's estimate is
    extreme, so these p-values are far too small below some hundred rows.
    """
    groups = audit.groups
    size = audit.resamples * groups.share.size
    kind = np.float64 if size <= FULL_PRECISION else np.float32
    stored = np.empty((audit.resamples, groups.share.size), dtype=kind)
    done = 0
    for cells in audit.blocks():
        now = group_totals(cells, audit.sums)
        block = np.abs(_disparity_change(audit, cells, now))
        stored[done : done + block.shape[0]] = block
        done += block.shape[0]
    # Line 9 of Algorithm 4 of Cherian and Candès prints 1/Φ(3/4); the median of |Z| is Φ⁻¹(3/4), as
    # their Lemma 17 has it.
    spread = column_medians(stored) / float(ndtri(0.75)) / groups.unit
    # one row says nothing about spread, whatever the target's own spread is
    several = groups.usable & (groups.status != Status.SINGLE)
    testable = several & (np.nan_to_num(spread) > 0)

    def tails(limit: float) -> tuple[FloatArray, FloatArray]:
        return normal_tails(quotient(groups.estimate - limit, spread))

    return as_p_values(groups, null.p_value(tails), spread, testable)


def _disparity_change(audit: Audit, cells: Totals, now: GroupTotals) -> FloatArray:
    """ε* − ε̂ in metric units; NaN where the resample missed the group."""
    mean = quotient(now.total, now.weight)
    return mean - audit.groups.mean - target_shift(audit, cells, now) * audit.groups.sensitivity


def as_p_values(
    groups: GroupEstimates, p: FloatArray, spread: FloatArray, testable: BoolArray
) -> BootstrapPValues:
    """p-values where a group can be tested, with the reason where it cannot."""
    status = groups.status.copy()
    status[~testable & groups.usable & (status != Status.IDENTICAL)] = Status.CONSTANT
    # a group that is its own target has disparity zero whatever the data: nothing to test
    kept = testable & (status != Status.IDENTICAL)
    return BootstrapPValues(p=np.where(kept, p, np.nan), spread=spread, status=status)


def bootstrap_t(audit: Audit, null: Null) -> BootstrapPValues:
    """p-values of the studentised disparity against its own resampled distribution.

    Every resample estimates its own standard error, so an exact engine is needed. A resample in
    which a group has no standard error counts as at least as extreme as the data.
    """
    groups, spread = audit.groups, audit.groups.standard_error
    testable = groups.usable & (np.nan_to_num(spread) > 0)
    seen = {x: quotient(groups.estimate - x, spread) for x in null.limits}
    # One, not zero: the data count among their own resamples, so that no p-value is zero.
    reached = {x: np.ones((2, spread.size)) for x in null.limits}
    for cells in audit.blocks():
        again = _studentised(audit, cells)
        blank = np.isnan(again)
        for limit, statistic in seen.items():
            reached[limit][0] += np.sum((again >= statistic) | blank, axis=0)
            reached[limit][1] += np.sum((again <= statistic) | blank, axis=0)

    def tails(limit: float) -> tuple[FloatArray, FloatArray]:
        upper, lower = reached[limit] / (audit.resamples + 1)
        return upper, lower

    return as_p_values(groups, null.p_value(tails), spread, testable)


def _studentised(audit: Audit, cells: Totals) -> FloatArray:
    """(ε* − ε̂) / se*; infinite where only the standard error vanishes, NaN where both do."""
    now = group_totals(cells, audit.sums, spread=True)
    k = audit.groups.sensitivity
    other, both = audit.target.variance_terms(cells, now, audit.sums)
    variance = mean_variance(now) + k**2 * other - 2 * k * both
    change = _disparity_change(audit, cells, now)
    error = np.sqrt(np.maximum(variance, 0.0))
    out = quotient(change, error)
    return np.where((error == 0) & (change != 0), np.copysign(np.inf, change), out)


def standardized_blocks(audit: Audit) -> Iterator[FloatArray]:
    """Blocks ``(b, G)`` of the process divided by its standard deviation, for step-down maxima.

    With the engine and the estimates built on :func:`pooled_moments` the spread is the one under
    the null of no differences, and small groups do no harm.
    """
    groups = audit.groups
    # p*(ε* − ε̂) has standard deviation p √(σ²/(n p)).
    error = np.sqrt(groups.variance * groups.share / max(groups.sample, 1.0))
    for cells in audit.blocks():
        yield quotient(bound_deviations(audit, cells), np.where(groups.usable, error, 0.0))


def pooled_moments(moments: CellMoments) -> CellMoments:
    """The cells as they would be, on average, if every cell had the overall distribution of L.

    >>> from equipoise.methods.bootstrap import unweighted_moments
    >>> cells = unweighted_moments(np.array([4.0, 6.0]), np.array([0.0, 5.0]))
    >>> pooled_moments(cells).total.tolist()
    [2.0, 3.0]
    """
    weight, weight2 = float(moments.weight.sum()), float(moments.weight2.sum())
    if weight <= 0:
        return moments
    return CellMoments(
        rows=moments.rows,
        weight=moments.weight,
        total=moments.weight * (moments.total.sum() / weight),
        weight2=moments.weight2,
        total2=moments.weight2 * (moments.total2.sum() / weight2),
        square2=moments.weight2 * (moments.square2.sum() / weight2),
        # Expected totals are no whole numbers: nothing may draw counts from them.
        binary=False,
    )
