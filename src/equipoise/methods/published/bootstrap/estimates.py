"""Group estimates: share, mean, target, disparity or ratio, and the disparity's variance."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from equipoise.methods.numerics import (
    BLOCK_NUMBERS,
    CHUNK,
    BoolArray,
    FloatArray,
    GroupSums,
    IntArray,
    Progress,
    child,
    over,
)
from equipoise.methods.published.bootstrap.data import (
    CellMoments,
    GroupTotals,
    Totals,
    group_totals,
    observed_totals,
    second,
)
from equipoise.methods.targets import Constant, Custom, Status, Target

# --- A target estimated afresh from resampled totals, with the variance it adds to a disparity


def target_estimate(target: Target, cells: Totals, groups: GroupTotals) -> FloatArray:
    """θ in each batch, shape ``(b, 1)`` or ``(b, G)``; NaN where the target has no rows."""
    if isinstance(target, Custom):
        if cells.influence is None:
            raise ValueError("the engine was built without the custom target's influence values")
        return target.scale * (target.value + cells.influence)[:, None]
    if not target.estimated:
        return np.full((cells.weight.shape[0], 1), target.scale * target.number)
    whole = cells.weight.sum(axis=-1, keepdims=True)
    weight = target.total(cells.weight, groups.weight)
    # weights need not cancel exactly; a sliver of rounding is nobody
    weight = np.where(weight > 1e-9 * whole, weight, 0.0)
    return target.scale * over(target.total(cells.total, groups.total), weight)


def variance_terms(
    target: Target, cells: Totals, groups: GroupTotals, sums: GroupSums
) -> tuple[FloatArray, FloatArray]:
    """Variance of θ̂, and its covariance with each group's mean."""
    if isinstance(target, Custom):
        return _custom_terms(target, groups, sums)
    if not target.estimated:
        return np.zeros((1, 1)), np.zeros((1, 1))
    group, against = (
        np.array(flags, dtype=np.float64)[:, None, None] for flags in (target.group, target.against)
    )
    done = {id(x): target.parts(x, sums) for x in groups.second_cells}
    parts = [done[id(x)] for x in groups.second_cells]
    weight = target.total(cells.weight, groups.weight)
    theta = over(target.total(cells.total, groups.total), weight)
    a, b, c = ((against * x).sum(axis=0) for x in parts)
    own = over(second(a, b, c, theta), weight**2)
    # Σ w²(L − μ)(L − θ) over the rows in both, which alone move both means.
    a, b, c = ((group * against * x).sum(axis=0) for x in parts)
    mean = over(groups.total, groups.weight)
    shared = c - (mean + theta) * b + mean * theta * a
    both = over(shared, groups.weight * weight)
    return target.scale**2 * own, target.scale * np.nan_to_num(both)


def _custom_terms(
    target: Custom, groups: GroupTotals, sums: GroupSums
) -> tuple[FloatArray, FloatArray]:
    psi, n = target.influence, max(target.influence.rows, 1.0)
    mean = over(groups.total, groups.weight)
    # Cov(L, ψ | G)/n, as in line 7 of Algorithm 2 of Cherian and Candès.
    both = over(sums(psi.product) - mean * sums(psi.total), groups.weight) / n
    return np.full((1, 1), target.scale**2 * psi.variance), target.scale * both


def target_status(target: Target, rows: FloatArray, sums: GroupSums) -> FloatArray:
    """Status of each group as far as the target decides it."""
    out = np.full(sums(rows).shape, float(Status.OK))
    if not target.estimated:
        return out
    group, against = (
        np.array(flags, dtype=bool)[:, None] for flags in (target.group, target.against)
    )
    parts = target.parts(rows, sums)
    same = ((group != against) * parts).sum(axis=0) == 0
    out[same & (target.scale == 1.0)] = Status.IDENTICAL
    out[(against * parts).sum(axis=0) == 0] = Status.NO_TARGET
    return out


# --- Group estimates: share, mean, target, disparity or ratio, and the disparity's variance ---

#: Sums come to 33 binary digits, so differences of squares below this share are no spread.
ROUNDING = 2e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEstimates:
    """What the data say of each group, arrays of shape ``(G,)``; NaN where undefined."""

    rows: FloatArray
    """Rows in the group."""
    share: FloatArray
    """Weighted share p̂ of the group."""
    mean: FloatArray
    """Mean metric μ̂ of the group."""
    target: FloatArray
    """Target θ̂ the group is compared with."""
    estimate: FloatArray
    """Disparity μ̂ − θ̂, or ratio μ̂ / θ̂."""
    sensitivity: FloatArray
    """How far the compared value moves per unit of θ: 1 for a gap, μ̂/θ̂ for a ratio."""
    unit: FloatArray
    """What one unit of the estimate is worth in units of the metric: 1, or θ̂ for a ratio."""
    variance: FloatArray
    """σ̂²: asymptotic variance of √(n p̂) times the error of the estimate, in metric units."""
    status: IntArray
    """One :class:`Status` code per group."""
    sample: float
    """Rows n in all."""
    spread: float
    """Standard deviation of the metric over all rows."""

    @property
    def usable(self) -> BoolArray:
        """Groups for which the bootstrap process exists."""
        bad = (Status.EMPTY, Status.CONSTANT, Status.NO_TARGET)
        return ~np.isin(self.status, bad)

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of the estimate."""
        return np.sqrt(over(self.variance, self.share * self.sample)) / self.unit


def estimate_gaps(moments: CellMoments, target: Target, sums: GroupSums) -> GroupEstimates:
    """Disparities μ̂(G) − θ̂ of every group.

    >>> from equipoise.methods.published.bootstrap import unweighted_moments
    >>> from equipoise.methods.targets import Overall
    >>> cells = unweighted_moments(np.array([4.0, 6.0]), np.array([1.0, 3.0]))
    >>> estimate_gaps(cells, Overall(), lambda x: x).estimate.round(3).tolist()
    [-0.15, 0.1]
    """
    compared = _compare(moments, target, sums)
    one = np.ones_like(compared.theta)
    gap = compared.mean - compared.theta
    return _assemble(compared, estimate=gap, sensitivity=one, unit=one)


def estimate_ratios(moments: CellMoments, target: Target, sums: GroupSums) -> GroupEstimates:
    """Ratios μ̂(G) / θ̂ of every group; a target that is not positive has no ratio.

    >>> from equipoise.methods.published.bootstrap import unweighted_moments
    >>> from equipoise.methods.targets import Overall
    >>> cells = unweighted_moments(np.array([4.0, 6.0]), np.array([1.0, 3.0]))
    >>> estimate_ratios(cells, Overall(), lambda x: x).estimate.tolist()
    [0.625, 1.25]
    """
    compared = _compare(moments, target, sums)
    unit = np.where(compared.theta > 0, compared.theta, np.nan)
    ratio = compared.mean / unit
    return _assemble(compared, estimate=ratio, sensitivity=ratio, unit=unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """Groups beside their target, before it is decided how to compare the two."""

    moments: CellMoments
    rows: FloatArray
    share: FloatArray
    mean: FloatArray
    theta: FloatArray
    own: FloatArray
    other: FloatArray
    both: FloatArray
    from_target: FloatArray


def _compare(moments: CellMoments, target: Target, sums: GroupSums) -> _Compared:
    cells = observed_totals(moments)
    groups = group_totals(cells, sums, spread=True)
    other, both = variance_terms(target, cells, groups, sums)
    theta = np.broadcast_to(target_estimate(target, cells, groups), groups.weight.shape)
    return _Compared(
        moments=moments,
        rows=sums(moments.rows),
        share=groups.weight[0] / max(float(moments.weight.sum()), np.finfo(float).tiny),
        mean=over(groups.total, groups.weight)[0],
        theta=theta[0].copy(),
        own=_real_variance(groups)[0],
        other=other[0],
        both=both[0],
        from_target=target_status(target, moments.rows, sums),
    )


def _assemble(
    c: _Compared, *, estimate: FloatArray, sensitivity: FloatArray, unit: FloatArray
) -> GroupEstimates:
    n, spread = float(c.moments.rows.sum()), overall_spread(c.moments)
    # The delta method; for a ratio r = μ/θ, θ times its error is that of μ − rθ. Times n p̂ it is
    # σ̂² of line 7 of Algorithm 2 of Cherian and Candès, in which the sensitivity is one.
    variance = c.own + sensitivity**2 * c.other - 2 * sensitivity * c.both
    return GroupEstimates(
        rows=c.rows,
        share=c.share,
        mean=c.mean,
        target=c.theta,
        estimate=estimate,
        sensitivity=sensitivity,
        unit=unit,
        variance=np.maximum(variance, 0.0) * n * c.share,
        # A ratio to a target that is not positive has no unit; the product carries its NaN along.
        status=_status(c.rows, unit * c.theta, spread, c.from_target),
        sample=n,
        spread=spread,
    )


def _real_variance(groups: GroupTotals) -> FloatArray:
    """Variance of each group's mean, zero where all that is left of it is rounding."""
    w2, s2, q2 = groups.second_groups
    about = second(w2, s2, q2, over(groups.total, groups.weight))
    return over(np.where(about > ROUNDING * q2, about, 0.0), groups.weight**2)


def overall_spread(m: CellMoments) -> float:
    """Standard deviation of L, in the sense in which the resampled overall mean varies."""
    weight = float(m.weight.sum())
    if weight <= 0:
        return 0.0
    w2, s2, q2 = (np.asarray(x.sum()) for x in (m.weight2, m.total2, m.square2))
    mean = np.asarray(m.total.sum() / weight)
    about = float(second(w2, s2, q2, mean))
    real = about > ROUNDING * float(q2)
    # √n times the standard error of the weighted mean, which for equal weights is sd(L) itself.
    return float(np.sqrt(about * float(m.rows.sum()))) / weight if real else 0.0


def _status(
    rows: FloatArray, theta: FloatArray, spread: float, from_target: FloatArray
) -> IntArray:
    status = from_target.astype(np.int64)
    if spread == 0:
        status[:] = Status.CONSTANT
    # Later lines overrule earlier ones: an empty group is empty whatever its target is.
    status[(np.rint(rows) == 1) & (status == Status.OK)] = Status.SINGLE
    status[np.isnan(theta)] = Status.NO_TARGET
    status[rows == 0] = Status.EMPTY
    return status


# --- The scale ŝ(G) that keeps small groups from ruling the maximum ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """ŝ = max(p̂, floor)^power · (w σ̂_G + (1 − w) sd(L)) with w = p̂ / (p̂ + shrink)."""

    floor: float = 0.01
    """Share p_* below which groups get no narrower bounds."""
    shrink: float = np.inf
    """w₀: infinite uses the overall spread for every group, 0 each group's own."""
    power: float = 1.5
    """3/2 gives bounds that shrink like 1/√|G|; for Boolean certificates 1/2 does the same."""

    def factors(self, groups: GroupEstimates) -> FloatArray:
        """ŝ of each group; NaN where no scale can be formed."""
        scale = self.scale(groups.share, groups.variance, groups.spread)
        return np.where(scale > 0, scale, np.nan)

    def scale(
        self, share: FloatArray, variance: FloatArray | float, spread: FloatArray | float
    ) -> FloatArray:
        """ŝ from a group's share and variance, and the overall spread."""
        # (9) of Cherian and Candès. Below the floor p_* the scale stops shrinking, or groups of a
        # few rows would decide the critical value of all.
        size = _power(np.maximum(share, self.floor), self.power)
        # Their recommendation after (9): estimating each group's variance can harm small samples.
        if np.isinf(self.shrink):
            return size * spread
        if self.shrink == 0:
            return size * np.sqrt(variance)
        # w σ + (1 − w) s = s + w (σ − s), in place: this is where most of the time goes
        mixed = np.sqrt(variance)
        mixed -= spread
        mixed *= share / (share + self.shrink)
        mixed += spread
        mixed *= size
        return np.asarray(mixed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscaled:
    """ŝ = 1: the published first form, tight for the largest groups only."""

    def factors(self, groups: GroupEstimates) -> FloatArray:
        """One for every group."""
        return np.ones_like(groups.share)

    def scale(
        self, share: FloatArray, variance: FloatArray | float, spread: FloatArray | float
    ) -> FloatArray:
        """One for every group."""
        return np.ones_like(share)


def _power(x: FloatArray, power: float) -> FloatArray:
    # the two powers in use need no logarithm
    if power == 1.5:
        return x * np.sqrt(x)
    return np.sqrt(x) if power == 0.5 else np.asarray(x**power)


# --- Resamples in fixed chunks, one random stream each, so that blocks cannot change the answer


class Engine(Protocol):
    """Draws resampled cell totals."""

    @property
    def name(self) -> str:
        """How the result names the engine: exact, moments or clusters."""
        ...

    def draw(self, rng: np.random.Generator, size: int) -> Totals:
        """Totals of ``size`` resamples."""
        ...


def resampled(
    engine: Engine,
    *,
    resamples: int,
    seed: np.random.SeedSequence,
    groups: int,
    block: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Totals]:
    """Yield the resampled totals block by block; the numbers do not depend on ``block``.

    Each call with the same seed yields the same resamples: the seed is copied, not consumed.
    """
    # A block is a part of a chunk, and only chunks own a stream: memory never changes a number.
    rows = max(1, min(CHUNK, BLOCK_NUMBERS // max(groups, 1))) if block is None else block
    chunks = -(-resamples // CHUNK)
    done = 0
    for chunk in range(chunks):
        size = min(CHUNK, resamples - done)
        totals = engine.draw(np.random.default_rng(child(seed, chunk)), size)
        for start in range(0, size, rows):
            yield totals.part(slice(start, start + rows))
        done += size
        if progress is not None:
            progress(done)


# --- The bootstrap process over the groups, written without dividing by a resampled share ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Everything a bootstrap over groups works on."""

    engine: Engine
    """Draws the resampled cell totals."""
    groups: GroupEstimates
    """Estimates on the data."""
    target: Target
    """Re-estimated in every resample."""
    sums: GroupSums
    """From cells to groups."""
    resamples: int
    """Number B of resamples."""
    seed: np.random.SeedSequence
    """Root of the random streams."""
    block: int | None = None
    """Resamples handled at a time; None fits memory. Does not change any number."""
    progress: Progress | None = None
    """Told how many resamples are done."""

    def blocks(self) -> Iterator[Totals]:
        """The resampled cell totals, block by block."""
        return resampled(
            self.engine,
            resamples=self.resamples,
            seed=self.seed,
            groups=self.groups.share.size,
            block=self.block,
            progress=self.progress,
        )


def target_shift(audit: Audit, cells: Totals, groups: GroupTotals) -> FloatArray:
    """θ* − θ̂ in each resample; a resample without target rows leaves the target where it was."""
    now = target_estimate(audit.target, cells, groups)
    # a target common to all groups stays one column wide, which halves the work
    before = audit.groups.target[: 1 if now.shape[1] == 1 else None]
    return np.nan_to_num(now - np.nan_to_num(before), copy=False)


def bound_deviations(audit: Audit, cells: Totals) -> FloatArray:
    """p*(ε* − ε̂) of every group in every resample of the block, shape ``(b, G)``."""
    return deviations_of(audit, cells, group_totals(cells, audit.sums))


def deviations_of(audit: Audit, cells: Totals, now: GroupTotals) -> FloatArray:
    """The same, given the totals of the groups."""
    centre = np.nan_to_num(audit.groups.mean)
    if isinstance(audit.target, Constant):
        return _relative(cells, now, np.broadcast_to(centre, now.weight.shape).copy())
    shift = target_shift(audit, cells, now)
    expected = shift * np.nan_to_num(audit.groups.sensitivity)
    expected += centre
    return _relative(cells, now, expected)


def certificate_deviations(audit: Audit, cells: Totals, limit: float) -> FloatArray:
    """p*(ε* − limit) − p̂(ε̂ − limit) of every group in every resample of the block."""
    now = group_totals(cells, audit.sums)
    # Line 4 of Algorithm 3 of Cherian and Candès. It is p*(ε* − ε̂) + (p* − p̂)(ε̂ − limit): the
    # second part, the share's own error, grows with the distance from the limit and costs power.
    expected = target_shift(audit, cells, now) + (np.nan_to_num(audit.groups.target) + limit)
    deviations = _relative(cells, now, expected)
    deviations -= certificate_values(audit.groups, limit)
    return deviations


def certificate_values(groups: GroupEstimates, limit: float) -> FloatArray:
    """p̂(ε̂ − limit) of every group, zero where undefined."""
    return np.nan_to_num(groups.share * (groups.estimate - limit))


def _relative(cells: Totals, now: GroupTotals, expected: FloatArray) -> FloatArray:
    """(S*_G − expected · W*_G) / W*."""
    size = cells.weight.sum(axis=-1, keepdims=True)
    expected *= now.weight
    out = now.total - expected
    out /= np.where(size > 0, size, 1.0)
    return out


def columns(values: FloatArray, chosen: np.ndarray) -> FloatArray:
    """Some columns, without copying when all are asked for in order."""
    return values if chosen.size == values.shape[1] else np.take(values, chosen, axis=1)


# --- Extremes of the bootstrap process over the groups: all that simultaneous bounds need ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Extremes:
    """Largest and smallest value of the scaled process in each resample.

    They are the whole distribution of the critical value: any level and any side can be read off.
    """

    highest: FloatArray
    """Maximum over the groups, shape ``(B,)``."""
    lowest: FloatArray
    """Minimum over the groups, shape ``(B,)``."""
    engine: str
    """Engine that drew the resamples."""


def bound_extremes(audit: Audit, scaling: Scaling | Unscaled) -> Extremes:
    """Run Algorithms 1, 2 and 6: the extremes of ŝ⁻¹ p̂ p*(ε* − ε̂) in each resample."""
    scale = scaling.factors(audit.groups)
    live = np.flatnonzero(audit.groups.usable & ~np.isnan(scale))
    # Line 10 of Algorithm 2 of Cherian and Candès: p* is in the deviations, p̂ and 1/ŝ are here.
    factor = audit.groups.share[live] / scale[live]
    tops, bottoms = [np.zeros(0)], [np.zeros(0)]
    for cells in audit.blocks() if live.size else ():
        process = columns(bound_deviations(audit, cells), live) * factor
        tops.append(process.max(axis=1))
        bottoms.append(process.min(axis=1))
    return Extremes(
        highest=np.concatenate(tops), lowest=np.concatenate(bottoms), engine=audit.engine.name
    )
