"""All sub-intervals with data end points, without listing them.

The unscaled certificate process is linear in the group, so its maximum over all runs of
neighbouring cells is max_j (P_j − min_{i ≤ j} P_i) of its prefix sums P.
"""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.published.bootstrap.data import CellMoments, Totals, observed_totals
from equipoise.methods.published.bootstrap.estimates import overall_spread
from equipoise.methods.published.bootstrap.streams import Engine, resampled
from equipoise.methods.published.bootstrap.sums import GroupTotals, group_totals
from equipoise.methods.published.bootstrap.targets import target_estimate
from equipoise.methods.quantiles import quantile
from equipoise.methods.streams import Progress
from equipoise.methods.targets import Complement, Target


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
