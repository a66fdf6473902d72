"""The pivot of real-valued metrics: the distance from the estimate in its own standard errors.

Every group is measured by its own spread; Student's distribution with Welch's degrees of freedom
allows for estimating it, and Hall's transformation for skewness. No finite sample can promise
anything about an unbounded skewed metric (Bahadur and Savage 1956), so there is a guard: with the
skewness γ of the estimate, a tail at score z is off by about exp(γ z³/6), and groups for which that
passes a stated factor are not answered.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from equipoise.methods.arrays import BoolArray, FloatArray, IntArray
from equipoise.methods.inference.comparison import ROUNDING, Comparison, over
from equipoise.methods.inference.tails import Tails

SKEW_LIMIT = 0.8
"""Largest γ z³/6 that is answered, after the correction."""
LEAST_SCORE = 2.5
"""The guard looks at least this far out: a sample shows too little of a heavy tail."""
LEAST_ROWS = 20
"""Groups and targets worth fewer rows are not answered: their spread and skewness are unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What the rows, or the clusters, say of how far a contrast of means can stray, ``(G,)``."""

    variance: FloatArray
    """Variance of the contrast."""
    skewness: FloatArray
    """Skewness of the contrast."""
    degrees: FloatArray
    """Degrees of freedom of the variance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudentPivot:
    """p-values of disparities of a real-valued metric."""

    comparison: Comparison
    """Groups beside their target."""

    @property
    def estimate(self) -> FloatArray:
        """The disparities."""
        return self.comparison.estimate

    @property
    def error(self) -> FloatArray:
        """Standard error of the disparity."""
        found = self.comparison
        spread = self.spread(found, found.factor(_finite(self.estimate)))
        unit = found.target.scale * found.theta if found.relative else 1.0
        return np.asarray(np.sqrt(spread.variance) / np.maximum(np.abs(unit), 1e-300))

    def spread(self, found: Comparison, factor: FloatArray) -> Spread:
        """How far the contrast can stray."""
        return row_spread(found, factor)

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """Chances, if the disparity were this, of an estimate as high, and as low, as was seen."""
        found = self.comparison.some(chosen)
        factor = found.factor(disparity)
        spread = self.spread(found, factor)
        known = 0.0 if found.target.estimated else factor * found.target.number
        theta = factor * found.theta if found.target.estimated else known
        gap = found.mean - theta - (0.0 if found.relative else disparity)
        return student_tails(gap, spread)


def student_tails(gap: FloatArray, spread: Spread) -> Tails:
    """Both tails of a distance; a correction for skewness only ever makes a tail larger."""
    error = np.sqrt(spread.variance)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        t = np.where(error > 0, gap / error, np.where(gap == 0, 0.0, np.copysign(np.inf, gap)))
        g = np.nan_to_num(spread.skewness)
        # Hall 1992: rises with t, and undoes the skewness of a studentised mean to order 1/√n
        turned = t + g * t * t / 3 + g * g * t**3 / 27 + g / 6
    turned = np.where(np.isfinite(t), turned, t)
    df = np.maximum(spread.degrees, 1e-3)
    up = np.maximum(stdtr(df, -t), stdtr(df, -turned))
    down = np.maximum(stdtr(df, t), stdtr(df, turned))
    return np.asarray(up), np.asarray(down)


def row_spread(found: Comparison, factor: FloatArray) -> Spread:
    """Spread of a contrast of independent rows, from sums up to third order."""
    m, a = found.parts, found.slopes(factor)
    means = np.nan_to_num(over(m.total, m.weight))
    b = found.intercepts(factor, means)
    # Σ w²(aL − b)² of each part; cancelled squares below rounding are no spread
    square = a**2 * m.square2
    about = square - 2 * a * b * m.total2 + b**2 * m.weight2
    about = np.where(about > ROUNDING * np.maximum(square, b**2 * m.weight2), about, 0.0)
    third = a**3 * m.cube3 - 3 * a**2 * b * m.square3 + 3 * a * b**2 * m.total3 - b**3 * m.weight3
    if found.tilts is None:
        variance, degrees = _by_parts(found, a, about)
    else:
        # a tilt's parts are cells of a row or two: all its rows together tell how they vary
        worth = np.maximum(found.rows, 1.0)
        degrees = worth - 1
        variance = about.sum(axis=0) * worth / np.maximum(degrees, 1.0)
    variance = np.maximum(variance + found.custom_variance(factor), 0.0)
    skew = np.divide(
        third.sum(axis=0), variance**1.5, out=np.zeros_like(variance), where=variance > 0
    )
    return Spread(variance=variance, skewness=skew, degrees=degrees)


def _by_parts(found: Comparison, a: FloatArray, about: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variance of a contrast of disjoint parts, and Welch's degrees of freedom."""
    m = found.parts
    size = effective_rows(m.weight, m.weight2)
    enough = size > 1
    each = np.where(enough, about * size / np.where(enough, size - 1, 1.0), 0.0)
    variance = each.sum(axis=0)
    loss = (each**2 / np.where(enough, size - 1, 1.0)).sum(axis=0)
    degrees = np.divide(variance**2, loss, out=np.full_like(variance, np.inf), where=loss > 0)
    # one row shows no spread: nothing can be said about a contrast that rests on it
    alone = ((a != 0) & (m.rows > 0) & ~enough).any(axis=0)
    return variance, np.where(alone, 0.0, degrees)


def effective_rows(weight: FloatArray, weight2: FloatArray) -> FloatArray:
    """Kish's number of rows of equal weight that would be worth as much.

    >>> effective_rows(np.array([4.0]), np.array([4.0])).tolist()
    [4.0]
    """
    kish: FloatArray = np.divide(weight**2, weight2, out=np.zeros_like(weight), where=weight2 > 0)
    # two rows of equal weight are two, however their weights are rounded
    return np.asarray(np.round(kish, 9), dtype=np.float64)


def too_skewed(skewness: FloatArray, score: float) -> BoolArray:
    """Groups whose tail at a score is not to be trusted.

    >>> too_skewed(np.array([0.05, 0.3]), 3.0).tolist()
    [False, True]
    """
    return np.asarray(np.abs(skewness) * max(score, LEAST_SCORE) ** 3 / 6 > SKEW_LIMIT)


def rows_needed(rows: FloatArray, skewness: FloatArray, score: float) -> FloatArray:
    """Rows from which a group as skewed as this would be answered."""
    factor = np.abs(skewness) * max(score, LEAST_SCORE) ** 3 / 6 / SKEW_LIMIT
    return np.asarray(np.maximum(np.ceil(rows * factor**2), LEAST_ROWS))


def _finite(x: FloatArray) -> FloatArray:
    return np.where(np.isfinite(x), x, 1.0)
