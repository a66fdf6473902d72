"""The pivot of real-valued metrics: the distance from the estimate in its own standard errors.

Every group is measured by its own spread; Student's distribution with Welch's degrees of freedom
allows for estimating it, and Hall's transformation for skewness. A group that happens to miss rare
large values looks harmless, so its skewness is also judged by that of all rows together.

No finite sample can promise anything about an unbounded skewed metric (Bahadur and Savage 1956).
Hall's transformation says so by itself: with the skewness γ of the estimate no distance, however
large, counts for more than 1/γ − γ/6 standard errors. Groups that cannot reach a critical score are
not answered.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtri, stdtr, stdtrit

from equipoise.methods.inference.comparison import ROUNDING, Comparison, Moments, over
from equipoise.methods.inference.tails import Tails
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray

# --- The pivot of real-valued metrics: the distance from the estimate in its own standard errors
# ---

LEAST_ROWS = 20
"""Groups and targets worth fewer rows are not answered: their spread and skewness are unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What the rows, or the clusters, say of how far a contrast of means can stray, ``(G,)``."""

    variance: FloatArray
    """Variance of the contrast."""
    skewness: FloatArray
    """Skewness of the contrast, as its own rows or clusters show it."""
    usual: FloatArray
    """The same if rows were shaped like all others: what pulls up and what pulls down, (2, G)."""
    degrees: FloatArray
    """Degrees of freedom of the variance."""

    @property
    def reach(self) -> FloatArray:
        """The highest normal score that a distance can have, on the worse side."""
        with np.errstate(divide="ignore"):
            most = np.fmin(_furthest(self.skewness), _furthest(self.usual).min(axis=0))
        tail = stdtr(np.maximum(self.degrees, 1e-3), -most)
        return np.asarray(-ndtri(np.clip(tail, 1e-300, 1 - 1e-16)))


@dataclass(frozen=True, slots=True, kw_only=True)
class StudentPivot:
    """p-values of disparities of a real-valued metric."""

    comparison: Comparison
    """Groups beside their target."""
    shape: float
    """Skewness of all rows together."""

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
        return row_spread(found, factor, self.shape)

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
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(error > 0, gap / error, np.where(gap == 0, 0.0, np.copysign(np.inf, gap)))
    turned = np.stack([t, *(turned_by_skewness(t, g) for g in (spread.skewness, *spread.usual))])
    df = np.maximum(spread.degrees, 1e-3)
    return np.asarray(stdtr(df, -turned.min(axis=0))), np.asarray(stdtr(df, turned.max(axis=0)))


def turned_by_skewness(t: FloatArray, skewness: FloatArray) -> FloatArray:
    """Hall's transformation (1992), which undoes the skewness of a studentised mean to order 1/√n.

    It rises with t up to its turning point 3/γ; beyond that it would rise again, and is held.
    """
    g = np.nan_to_num(skewness)
    with np.errstate(divide="ignore"):
        end = np.where(g != 0, -3 / np.where(g != 0, g, 1.0), np.inf)
    held = np.where(g > 0, np.maximum(t, end), np.where(g < 0, np.minimum(t, end), t))
    with np.errstate(invalid="ignore", over="ignore"):
        out = held + g * held**2 / 3 + g**2 * held**3 / 27 + g / 6
    return np.where(g != 0, out, t)


def _furthest(skewness: FloatArray) -> FloatArray:
    """How far out the transformation gets: its value at the turning point."""
    g = np.abs(np.nan_to_num(skewness))
    return np.where(g > 0, 1 / np.where(g > 0, g, 1.0) - g / 6, np.inf)


def row_spread(found: Comparison, factor: FloatArray, shape: float) -> Spread:
    """Spread of a contrast of independent rows, from sums up to third order.

    ``shape`` is the skewness of all rows together.
    """
    m, a = found.parts, found.slopes(factor)
    means = np.nan_to_num(over(m.total, m.weight))
    b = found.intercepts(factor, means)
    # Σ w²(aL − b)² of each part; cancelled squares below rounding are no spread
    square = a**2 * m.square2
    about = square - 2 * a * b * m.total2 + b**2 * m.weight2
    about = np.where(about > ROUNDING * np.maximum(square, b**2 * m.weight2), about, 0.0)
    third = a**3 * m.cube3 - 3 * a**2 * b * m.square3 + 3 * a * b**2 * m.total3 - b**3 * m.weight3
    # nor are cancelled cubes, where values lie close together for their size, any skewness
    third = np.where(np.abs(third) > ROUNDING * np.abs(b) ** 3 * m.weight3, third, 0.0)
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
    # a tilt's cells of a row or two show no spread of their own
    seen = about if found.tilts is None else np.zeros_like(about)
    usual = np.stack([_usual(shape, np.where(way * a > 0, a, 0.0), a, seen, m) for way in (1, -1)])
    return Spread(variance=variance, skewness=skew, usual=usual, degrees=degrees)


def _usual(
    shape: float, pulling: FloatArray, slopes: FloatArray, about: FloatArray, m: Moments
) -> FloatArray:
    """Skewness that some parts give a contrast if their rows are shaped like all others.

    A part that missed rare values shows too little spread, so parts are taken both as they are and
    as all of one spread. Parts that pull up and parts that pull down do not make good for one
    another: either may have missed them.
    """
    cube = np.sign(pulling) * np.nan_to_num(over(about, m.rows)) ** 1.5 * m.rows
    seen = over(cube.sum(axis=0), about.sum(axis=0) ** 1.5)
    # rows count with their average weight: a part may have missed large weights as well
    average = np.nan_to_num(over(m.weight, m.rows))
    some, every = pulling * average, slopes * average
    alike = over((some**3 * m.rows).sum(axis=0), (every**2 * m.rows).sum(axis=0) ** 1.5)
    seen, alike = np.nan_to_num(seen), np.nan_to_num(alike)
    return np.asarray(shape * np.where(np.abs(seen) > np.abs(alike), seen, alike))


def shape_of(cells: Moments) -> float:
    """Skewness of the rows of all cells about their cell's mean, times their weights.

    Where cells hold five rows or fewer, which show no shape, about everybody's mean. Where spreads
    differ the widest cells would speak for all, so the typical skewness of single cells counts
    too; the larger of both is it, less what chance gives rows without any.

    >>> from equipoise.methods.inference.comparison import plain_moments
    >>> x = 5 * np.eye(2, 9) + np.array([[0.0], [1.0]])
    >>> sums = plain_moments(*((x**k).sum(axis=1) for k in (0, 1, 2, 3)))
    >>> round(shape_of(sums) ** 2 + 6 / 18, 9)
    9.0
    """
    size = np.maximum(effective_rows(cells.weight, cells.weight2), 1.0)
    # what central sums of n rows fall short of: (n − 1)/n and (n − 1)(n − 2)/n²
    second = 1 - 1 / size
    third = np.maximum(second - 1 / size, 0.0) * second
    means = np.nan_to_num(over(cells.total, cells.weight))
    apart = float((third * cells.rows).sum()) >= 0.5 * float(cells.rows.sum())
    if not apart:
        everyone = float(cells.total.sum()) / max(float(cells.weight.sum()), 1e-300)
        means = np.full_like(means, everyone)
        second = third = np.ones_like(means)
    about = cells.square2 - 2 * means * cells.total2 + means**2 * cells.weight2
    cube = cells.cube3 - 3 * means * cells.square3 + 3 * means**2 * cells.total3
    cube = cube - means**3 * cells.weight3
    # what rounding leaves of cells whose rows are all alike is neither spread nor skewness
    real = about > ROUNDING * np.maximum(cells.square2, means**2 * cells.weight2)
    about = np.where(real, about, 0.0)
    # nor may cells speak for others if rounding hides their cubes, though not their spread
    told = real & (np.abs(cube) > ROUNDING * np.abs(means) ** 3 * cells.weight3)
    cube = np.where(told, cube, 0.0)
    rows, rows3 = second * cells.rows, third * cells.rows
    all_rows = float(_skew(cube.sum(), rows3.sum(), about.sum(), rows.sum()))
    # chance alone gives n rows a squared skewness of about 6/n
    if not apart:
        return beyond(all_rows, 6 / float(size.sum()))
    # of cells of unequal spread the widest count most
    chance = 6 * float(size.sum() * np.nan_to_num(over(about**3, size**2)).sum())
    pooled = beyond(all_rows, chance / max(float(about.sum()) ** 3, 1e-300))
    each = _skew(cube, rows3, about, rows)
    square = float((size * each**2).sum() / size.sum())
    root = np.copysign(np.sqrt(square), (size * each).sum())
    typical = beyond(float(root), 6 * float((each != 0).sum() / size.sum()))
    return max(pooled, typical, key=abs)


def beyond(skewness: float, chance: float) -> float:
    """What is left of a skewness when its square is less what chance alone gives it."""
    return float(np.copysign(np.sqrt(max(skewness**2 - chance, 0.0)), skewness))


def _skew(cube: FloatArray, rows3: FloatArray, about: FloatArray, rows: FloatArray) -> FloatArray:
    """Third central moment over the standard deviation cubed; 0 where there is none."""
    variance = np.nan_to_num(over(np.maximum(about, 0.0), rows))
    return np.nan_to_num(over(np.nan_to_num(over(cube, rows3)), variance**1.5))


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


def too_skewed(reach: FloatArray, score: float) -> BoolArray:
    """Groups whose distance cannot reach a score, however large it is.

    >>> too_skewed(np.array([9.0, 2.5]), 3.0).tolist()
    [False, True]
    """
    return np.asarray(reach < score)


def rows_needed(rows: FloatArray, reach: FloatArray, score: float) -> FloatArray:
    """About how many rows a group as skewed as this would have to have to be answered."""
    factor = score / np.maximum(reach, 0.1)
    return np.asarray(np.maximum(np.ceil(rows * factor**2), LEAST_ROWS))


def _finite(x: FloatArray) -> FloatArray:
    return np.where(np.isfinite(x), x, 1.0)


# --- Exact bounds on the mean of a bounded metric, at any number of rows and for any distribution
# ---
#
# Somebody who bets against "the mean is m" gains little if it is true: by Ville's inequality the
# chance that a capital of 1 ever grows to 1/α is at most α. The bounds are the means against
# which betting did not pay (Waudby-Smith and Ramdas 2024). Each bet may depend on the rows before
# it, so rows come in random order; capital is averaged over several orders, which is as exact.

MOST = 0.75
"""Largest share of the capital that one row may cost."""
ORDERS, NUMBERS = 20, 2_000_000
"""Orders of the rows, and how many numbers they may fill together."""
STEPS = 40
"""Halvings of the range in which a bound lies."""


def betting_bounds(
    value: FloatArray, low: float, high: float, error: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Lower and upper bound on the mean of values between ``low`` and ``high``.

    Each of the two is wrong with a chance of at most ``error``.

    >>> x = np.tile([0.0, 0.2, 0.4], 100)
    >>> low, high = betting_bounds(x, 0.0, 1.0, 0.025, np.random.default_rng(1))
    >>> bool(0.16 < low < 0.2 < high < 0.24)
    True
    """
    if value.size == 0 or not high > low:
        return low, high
    x = np.clip((value - low) / (high - low), 0.0, 1.0)
    below = _lower(x, error, rng)
    above = 1 - _lower(1 - x, error, rng)
    return low + (high - low) * below, low + (high - low) * above


def _lower(x: FloatArray, error: float, rng: np.random.Generator) -> float:
    """The largest mean against which it paid to bet, for values in [0, 1]."""
    mean, aim = float(x.mean()), -np.log(error)
    if mean <= 0:
        return 0.0
    times = int(np.clip(NUMBERS // x.size, 1, ORDERS))
    rows = np.stack([rng.permutation(x) for _ in range(times)])
    bets = _bets(rows, aim)
    # capital falls with the mean that is bet against, so what paid lies below what did not
    paid, open_ = 0.0, mean
    for _ in range(STEPS):
        middle = (paid + open_) / 2
        gain = np.minimum(bets, MOST / middle) * (rows - middle)
        capital = np.log1p(gain).sum(axis=1)
        if np.logaddexp.reduce(capital) - np.log(times) >= aim:
            paid = middle
        else:
            open_ = middle
    return paid


def _bets(rows: FloatArray, aim: float) -> FloatArray:
    """How much is bet on every row, from the spread of the rows before it."""
    number = np.arange(1.0, rows.shape[1] + 1)
    mean = (0.5 + np.cumsum(rows, axis=1)) / (number + 1)
    spread = (0.25 + np.cumsum((rows - mean) ** 2, axis=1)) / (number + 1)
    before = np.concatenate([np.full((len(rows), 1), 0.25), spread[:, :-1]], axis=1)
    return np.asarray(np.sqrt(2 * aim / (rows.shape[1] * before)))


# --- Intervals for one mean at a time, from counts and totals alone ---
#
# None of these accounts for looking at many groups; they describe, they do not certify.


def clopper_pearson(
    successes: FloatArray, n: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Exact interval for a proportion: it covers with at least ``level`` whatever the truth.

    >>> low, high = clopper_pearson(np.array([0.0, 8.0]), np.array([10.0, 10.0]), 0.95)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.4439], [0.3085, 0.9748])
    """
    tail = (1 - level) / 2
    failures = n - successes
    # The beta quantile is undefined at the ends of the range, where the answer is the end itself.
    low = np.where(successes > 0, betaincinv(np.maximum(successes, 1), failures + 1, tail), 0.0)
    high = np.where(failures > 0, betaincinv(successes + 1, np.maximum(failures, 1), 1 - tail), 1.0)
    return low, high


def wilson(successes: FloatArray, n: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Score interval for a proportion: closer to nominal coverage, not guaranteed to reach it.

    >>> low, high = wilson(np.array([8.0]), np.array([10.0]), 0.95)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.4902], [0.9433])
    """
    # All rates p with (p̂ − p)² ≤ z² p(1 − p)/n, a quadratic in p: the error is the one under p.
    z2 = float(ndtri((1 + level) / 2)) ** 2
    share = successes / n
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def t_interval(
    mean: FloatArray, variance: FloatArray, n: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Student's interval for a mean; NaN where n < 2, since nothing then says how values vary.

    ``variance`` is the mean squared deviation (divided by n, not n − 1).

    >>> low, high = t_interval(np.array([2.0]), np.array([2 / 3]), np.array([3.0]), 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([-0.484], [4.484])
    """
    enough = n >= 2
    # σ²/n with σ² = n/(n − 1) times the mean square: the n cancel, and n − 1 is left.
    degrees = np.where(enough, n - 1, np.nan)
    half = stdtrit(degrees, (1 + level) / 2) * np.sqrt(np.maximum(variance, 0.0) / degrees)
    return mean - half, mean + half
