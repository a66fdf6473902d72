"""Bounds, certificates, flags and intervals of the published bootstrap."""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from scipy.special import ndtri

from equipoise.methods.hypotheses import Null, StepDown, normal_tails
from equipoise.methods.numerics import (
    BoolArray,
    FloatArray,
    IntArray,
    Progress,
    column_medians,
    over,
    quantile,
)
from equipoise.methods.published.bootstrap.data import (
    CellMoments,
    GroupTotals,
    Totals,
    group_totals,
    observed_totals,
)
from equipoise.methods.published.bootstrap.estimates import (
    Audit,
    Engine,
    Extremes,
    GroupEstimates,
    Scaling,
    Unscaled,
    certificate_deviations,
    certificate_values,
    columns,
    overall_spread,
    resampled,
    target_estimate,
    target_shift,
)
from equipoise.methods.targets import Complement, Status, Target

# --- Simultaneous bounds, read off the stored extremes at any level for any group ---


class Side(Enum):
    """Which bounds are wanted."""

    LOWER = "lower"
    UPPER = "upper"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds that hold for every group of the collection at once."""

    lower: FloatArray
    """Lower bounds; −inf when only upper ones were asked for; NaN for groups that have none."""
    upper: FloatArray
    """Upper bounds; +inf when only lower ones were asked for; NaN for groups that have none."""
    critical: float
    """Critical value t*; NaN when no group could be audited."""
    level: float
    """Confidence level."""
    side: Side
    """Which bounds were asked for."""


def critical_value(extremes: Extremes, *, level: float, side: Side) -> float:
    """t*: the level-quantile of the process's maximum, of minus its minimum, or of both."""
    if extremes.highest.size == 0:
        return float("nan")
    if side is Side.LOWER:
        return quantile(extremes.highest, level)
    # Cherian and Candès, Appendix B.3, use the quantile of the maximum here too, since the limit is
    # symmetric. A skewed metric in a small sample is not, so the minimum has its own.
    if side is Side.UPPER:
        return quantile(-extremes.lowest, level)
    # Appendix B.3, the absolute process: the quantile of the larger of the two, not two quantiles
    # at half the error each.
    return quantile(np.maximum(extremes.highest, -extremes.lowest), level)


def simultaneous_bounds(
    groups: GroupEstimates,
    extremes: Extremes,
    scaling: Scaling | Unscaled,
    *,
    level: float,
    side: Side,
) -> Bounds:
    """ε̂ ∓ t* ŝ / p̂² for the given groups.

    ``groups`` may be others than those of the run, as long as each belongs to the collection whose
    extremes are handed in (and ``scaling`` is the one they were computed with).
    """
    # Cherian and Candès, (7) and (8): the process was multiplied by p̂ and by p*, so that small
    # groups cannot rule its maximum, and the bound divides by p̂² in turn.
    critical = critical_value(extremes, level=level, side=side)
    with np.errstate(over="ignore"):
        # a width beyond all floats is no bound at all
        width = critical * half_width_factors(groups, scaling)
    blank = np.where(np.isnan(width), np.nan, 0.0)
    lower = groups.estimate - width if side is not Side.UPPER else blank - np.inf
    upper = groups.estimate + width if side is not Side.LOWER else blank + np.inf
    return Bounds(lower=lower, upper=upper, critical=critical, level=level, side=side)


def half_width_factors(groups: GroupEstimates, scaling: Scaling | Unscaled) -> FloatArray:
    """ŝ / p̂² in units of the estimate: the half-width per unit of the critical value."""
    usable = groups.usable
    share = np.where(usable, groups.share, 1.0)
    # The process of a ratio μ/θ is that of μ − rθ, in units of the metric; hence the last divisor.
    factor = scaling.factors(groups) / share**2 / groups.unit
    return np.where(usable, factor, np.nan)


# --- Boolean certificates that a disparity lies above, below or within a tolerance ---


class Aim(Enum):
    """What is to be certified of each disparity ε."""

    ABOVE = "above"
    """ε > limit."""
    BELOW = "below"
    """ε < limit."""
    WITHIN = "within"
    """|ε| < limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """One-sided certificates for one limit; :func:`combine` joins two of them."""

    limit: float
    """The limit ε₀."""
    upward: bool
    """True for ε > limit, False for ε < limit."""
    statistic: FloatArray
    """ŝ⁻¹ p̂ (ε̂ − limit), its sign turned for ε < limit; NaN for groups left out."""
    extremes: FloatArray
    """Largest value of the scaled process in each resample, over all groups."""
    exceedances: FloatArray
    """Share of resamples above the statistic: over all groups, or stepped down."""
    stepped: bool
    """Whether the exceedances were stepped down."""

    def certified(self, level: float) -> BoolArray:
        """Groups certified with familywise confidence ``level``."""
        # a share of 50 in 500 must count as 0.1 whatever 1 − level rounds to
        return np.nan_to_num(self.exceedances, nan=1.0) <= 1 - level + 1e-9

    def critical(self, level: float) -> float:
        """Single-step critical value t*; NaN when no group could be audited."""
        return quantile(self.extremes, level) if self.extremes.size else float("nan")


def certify(
    audit: Audit,
    scaling: Scaling | Unscaled,
    *,
    aim: Aim,
    limit: float,
    step_down: bool = True,
) -> tuple[Certificates, ...]:
    """Run Algorithms 3 and 7; ``Aim.WITHIN`` gives two results, both of which must certify.

    Stepping down drops certified groups and takes the quantile over the rest, again and again: the
    same familywise error, never fewer certificates. It is done in one pass for every level.
    """
    runs = [
        _OneSided(audit.groups, scaling, bound, upward, step_down)
        for bound, upward in _sides(aim, limit)
    ]
    for cells in audit.blocks() if runs[0].live.size else ():
        for run in runs:
            run.add(certificate_deviations(audit, cells, run.limit))
    return tuple(run.result() for run in runs)


def combine(results: tuple[Certificates, ...], level: float) -> BoolArray:
    """Groups certified by every one of the results, each at ``level``.

    Certifying |ε| < limit rejects a union of two hypotheses, so no level is split.
    """
    return np.asarray(np.all([r.certified(level) for r in results], axis=0), dtype=np.bool_)


def _sides(aim: Aim, limit: float) -> list[tuple[float, bool]]:
    if aim is Aim.WITHIN:
        # An intersection–union test: each side is tested at the full level, since both must reject.
        return [(-limit, True), (limit, False)]
    return [(limit, aim is Aim.ABOVE)]


class _OneSided:
    """Collects the exceedances of one one-sided certificate."""

    def __init__(
        self,
        groups: GroupEstimates,
        scaling: Scaling | Unscaled,
        limit: float,
        upward: bool,
        step_down: bool,
    ) -> None:
        scale = scaling.factors(groups)
        # one row cannot support a certificate; leaving it out depends on group sizes only
        able = groups.usable & (groups.status != Status.SINGLE) & ~np.isnan(scale)
        self.live = np.flatnonzero(able)
        self.limit, self._upward = limit, upward
        sign = 1.0 if upward else -1.0
        # (10) of Cherian and Candès, over Algorithm 7's scale: certified where it reaches t*.
        self._factor = sign / scale[self.live]
        self._statistic = certificate_values(groups, limit)[self.live] * self._factor
        self._step = StepDown(self._statistic) if step_down else None
        self._maxima: list[FloatArray] = []
        self._groups = groups.share.size

    def add(self, deviations: FloatArray) -> None:
        process = columns(deviations, self.live)
        process *= self._factor
        self._maxima.append(process.max(axis=1))
        if self._step is not None:
            self._step.add(process)

    def result(self) -> Certificates:
        maxima = np.concatenate([np.zeros(0), *self._maxima])
        if self._step is not None:
            shares = self._step.shares_above()
        else:
            shares = _shares_above(maxima, self._statistic)
        return Certificates(
            limit=self.limit,
            upward=self._upward,
            statistic=self._spread(self._statistic),
            extremes=maxima,
            exceedances=self._spread(shares),
            stepped=self._step is not None,
        )

    def _spread(self, values: FloatArray) -> FloatArray:
        out = np.full(self._groups, np.nan)
        out[self.live] = values
        return out


def _shares_above(maxima: FloatArray, statistic: FloatArray) -> FloatArray:
    ordered = np.sort(maxima)
    # A statistic equal to t* certifies, so only maxima strictly above it speak against.
    above = maxima.size - np.searchsorted(ordered, statistic, side="right")
    return np.asarray(above / max(maxima.size, 1), dtype=np.float64)


# --- Bootstrap p-values per group, as published ---

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
        return normal_tails(over(groups.estimate - limit, spread))

    return as_p_values(groups, null.p_value(tails), spread, testable)


def _disparity_change(audit: Audit, cells: Totals, now: GroupTotals) -> FloatArray:
    """ε* − ε̂ in metric units; NaN where the resample missed the group."""
    mean = over(now.total, now.weight)
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


# --- All sub-intervals with data end points, without listing them ---
#
# The unscaled certificate process is linear in the group, so its maximum over all runs of
# neighbouring cells is max_j (P_j − min_{i ≤ j} P_i) of its prefix sums P.


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalCertificates:
    """Single-step certificates for every run of neighbouring cells [i, j)."""

    prefix: FloatArray
    """Prefix sums D_0 = 0, …, D_C of p̂(ε̂ − limit); an interval [i, j) has D_j − D_i."""
    extremes: FloatArray
    """Largest deviation over all intervals in each resample, the empty interval included."""
    limit: float
    """The limit ε₀."""
    upward: bool
    """True for ε > limit, False for ε < limit (the prefix sums have turned sign)."""
    rows: FloatArray
    """Prefix sums of the numbers of rows: one row alone is never certified."""
    spread: float
    """Standard deviation of the metric; a metric that never varies certifies nothing."""

    def critical(self, level: float) -> float:
        """Critical value t*."""
        return quantile(self.extremes, level)

    def certified(self, start: int, stop: int, level: float) -> bool:
        """Whether the interval of cells [start, stop) is certified."""
        enough = self.rows[stop] - self.rows[start] >= 2
        reached = self.prefix[stop] - self.prefix[start] >= self._bar(level)
        return bool(stop > start and enough and reached)

    def _bar(self, level: float) -> float:
        return self.critical(level) if self.spread > 0 else np.inf


def certify_intervals(
    engine: Engine,
    moments: CellMoments,
    target: Target,
    *,
    limit: float,
    upward: bool,
    resamples: int,
    seed: np.random.SeedSequence,
    progress: Progress | None = None,
) -> IntervalCertificates:
    """Algorithm 3 over all runs of cells, the cells being in the attribute's order.

    The target must be common to all intervals, so a complement is refused.

    >>> from equipoise.methods.published.bootstrap import BinaryEngine, unweighted_moments
    >>> from equipoise.methods.targets import Constant
    >>> cells = unweighted_moments(np.array([400.0, 600.0]), np.array([100.0, 300.0]))
    >>> certify_intervals(
    ...     BinaryEngine(cells),
    ...     cells,
    ...     Constant(value=0.3),
    ...     limit=0.0,
    ...     upward=True,
    ...     resamples=200,
    ...     seed=np.random.SeedSequence(1),
    ... ).certified(1, 2, 0.9)
    True
    """
    if isinstance(target, Complement):
        raise ValueError("the complement differs from interval to interval; list the intervals")
    # One target for all runs makes the process a sum over cells; a target that moves with the run
    # would not be linear.
    sign = 1.0 if upward else -1.0
    now = observed_totals(moments)
    theta = target_estimate(target, now, _no_groups(now))
    observed = _linear(now, theta, limit) * sign
    maxima = []
    for cells in resampled(
        engine, resamples=resamples, seed=seed, groups=moments.rows.size, progress=progress
    ):
        again = target_estimate(target, cells, _no_groups(cells))
        # A resample without target rows leaves the target where it was, as for listed groups.
        again = np.where(np.isnan(again), theta, again)
        maxima.append(_largest_run(_linear(cells, again, limit) * sign - observed))
    return IntervalCertificates(
        prefix=np.concatenate([[0.0], np.cumsum(observed[0])]),
        extremes=np.concatenate(maxima),
        limit=limit,
        upward=upward,
        rows=np.concatenate([[0.0], np.cumsum(moments.rows)]),
        spread=overall_spread(moments),
    )


def _no_groups(cells: Totals) -> GroupTotals:
    return group_totals(cells, lambda x: x[..., :0])


def _linear(cells: Totals, theta: FloatArray, limit: float) -> FloatArray:
    """Contribution of each cell to p(ε − limit)."""
    # Cherian and Candès, Section 3.1.2: p̂(ε̂ − ε₀) is the mean of (L − θ̂ − ε₀) 1_G over rows.
    size = cells.weight.sum(axis=-1, keepdims=True)
    return (cells.total - (theta + limit) * cells.weight) / np.where(size > 0, size, 1.0)


def _largest_run(values: FloatArray) -> FloatArray:
    """Largest sum over a run of neighbours in each row, zero for the empty run."""
    prefix = np.zeros((values.shape[0], values.shape[1] + 1))
    np.cumsum(values, axis=1, out=prefix[:, 1:])
    return np.asarray((prefix - np.minimum.accumulate(prefix, axis=1)).max(axis=1))
