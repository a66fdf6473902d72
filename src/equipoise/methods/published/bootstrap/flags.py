"""Bootstrap p-values per group, as published."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from equipoise.methods.arrays import BoolArray, FloatArray, IntArray
from equipoise.methods.hypotheses import Null, normal_tails
from equipoise.methods.inference.comparison import Status
from equipoise.methods.published.bootstrap.data import Totals
from equipoise.methods.published.bootstrap.estimates import GroupEstimates
from equipoise.methods.published.bootstrap.process import Audit, target_shift
from equipoise.methods.published.bootstrap.sums import GroupTotals, group_totals, quotient
from equipoise.methods.quantiles import column_medians

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
