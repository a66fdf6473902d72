"""Joint regions: which values of several disparities the rows are compatible with.

Every row has a score for each disparity, linear in its value: g = zero − value · slope, with mean
estimate − value. All that Euclidean likelihood needs of the scores is their second moments.
"""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.published.likelihood.joint import (
    JointRatio,
    joint_disjoint,
    joint_euclidean,
    joint_ratio,
)
from equipoise.methods.published.likelihood.mean import Segments, adjustment


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """What each row says about each of m disparities."""

    zero: FloatArray
    """Scores if every disparity is zero, shape ``(N, m)``; their mean is the estimate."""
    slope: FloatArray
    """By how much each score falls per unit of its disparity, shape ``(N, m)``; mean one."""
    count: FloatArray
    """How often each row occurred, shape ``(N,)``."""
    disjoint: bool = False
    """Whether every disparity has rows of its own: those with a slope."""
    support: bool = False
    """Whether rows with a count of zero are outcomes that could have occurred."""

    @property
    def estimate(self) -> FloatArray:
        """The disparities at which all scores have mean zero."""
        return np.asarray(self.count @ self.zero / self.count.sum())

    def at(self, values: FloatArray) -> FloatArray:
        """Scores at given disparities."""
        return self.zero - values * self.slope

    def some(self, chosen: IntArray) -> "Scores":
        """Some of the disparities; the others are free."""
        return Scores(
            zero=self.zero[:, chosen],
            slope=self.slope[:, chosen],
            count=self.count,
            disjoint=self.disjoint,
            support=self.support,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Second moments of scores, all of shape ``(m, m)``."""

    rows: float
    """Rows behind them."""
    estimate: FloatArray
    """The disparities at which all scores have mean zero, shape ``(m,)``."""
    zero: FloatArray
    """Mean of zero · zero."""
    cross: FloatArray
    """Mean of zero · slope."""
    slope: FloatArray
    """Mean of slope · slope."""


def moments_of(scores: Scores) -> Moments:
    """Second moments of scores.

    >>> one = Scores(zero=np.array([[0.0], [2.0]]), slope=np.ones((2, 1)), count=np.ones(2))
    >>> moments_of(one).zero.tolist(), moments_of(one).estimate.tolist()
    ([[2.0]], [1.0])
    """
    total = float(scores.count.sum())
    weighted = scores.zero * scores.count[:, None]
    return Moments(
        rows=total,
        estimate=scores.estimate,
        zero=weighted.T @ scores.zero / total,
        cross=weighted.T @ scores.slope / total,
        slope=(scores.slope * scores.count[:, None]).T @ scores.slope / total,
    )


def euclidean_at(moments: Moments, values: FloatArray, chosen: IntArray) -> JointRatio:
    """Joint Euclidean likelihood of values of the chosen disparities, the others being free.

    >>> one = Scores(zero=np.array([[0.0], [2.0]]), slope=np.ones((2, 1)), count=np.ones(2))
    >>> euclidean_at(moments_of(one), np.array([0.0]), np.array([0])).statistic
    2.0
    """
    grid = np.ix_(chosen, chosen)
    gap = moments.estimate[chosen] - values
    # s(ε) below (3.8) of the paper on empirical likelihood: the covariance of the scores at the
    # values tested, not at the estimate.
    cross = moments.cross[grid] * values
    square = moments.zero[grid] - cross - cross.T + np.outer(values, values) * moments.slope[grid]
    return joint_euclidean(gap, (square - np.outer(gap, gap)) / moments.rows)


def euclidean_ends(moments: Moments, critical: float) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest value of each disparity in the joint region: its shadow on each axis.

    ``critical`` is the cut-off of the statistic. Infinite where too few rows exclude nothing; NaN
    where the disparity does not vary.

    >>> one = Scores(zero=np.arange(9.0)[:, None], slope=np.ones((9, 1)), count=np.ones(9))
    >>> [float(end[0].round(2)) for end in euclidean_ends(moments_of(one), 4.0)]
    [2.28, 5.72]
    """
    n, c, e = moments.rows, critical, moments.estimate
    own, cross, slope = (np.diag(x) for x in (moments.zero, moments.cross, moments.slope))
    # (n + c)(e − v)² ≤ c (own − 2 cross v + slope v²), a quadratic in v
    a, b, d = n + c - c * slope, (n + c) * e - c * cross, (n + c) * e * e - c * own
    inside = np.maximum(b * b - a * d, 0.0)
    root = np.sqrt(inside)
    bottom = np.where(a > 0, a, 1.0)
    varies = own - e * e > 1e-12 * np.maximum(own, 1e-300)
    low = np.where(a > 0, (b - root) / bottom, -np.inf)
    high = np.where(a > 0, (b + root) / bottom, np.inf)
    return np.where(varies, low, np.nan), np.where(varies, high, np.nan)


def likelihood_at(scores: Scores, values: FloatArray, *, adjusted: bool = True) -> JointRatio:
    """Joint empirical likelihood of values of all disparities.

    >>> one = Scores(zero=np.arange(9.0)[:, None], slope=np.ones((9, 1)), count=np.ones(9))
    >>> likelihood_at(one, np.array([4.0])).statistic
    0.0
    """
    if scores.support:
        return joint_ratio(scores.at(values), scores.count, support=True)
    if not scores.disjoint:
        return joint_ratio(scores.at(values), scores.count, adjusted=adjusted)
    groups = own_segments(scores, values)
    adjust = adjustment(groups) if adjusted else None
    return joint_disjoint(groups, np.zeros(values.size), adjust)


def own_segments(scores: Scores, values: FloatArray) -> Segments:
    """The scores of each disparity's own rows, one after the other."""
    g = scores.at(values)
    own = (scores.slope != 0) & (scores.count[:, None] > 0)
    column, row = np.nonzero(own.T)
    start = np.searchsorted(column, np.arange(values.size)).astype(np.int64)
    times = scores.count[row]
    return Segments(
        value=g[row, column],
        start=start,
        count=None if bool((times == 1).all()) else times,
    )
