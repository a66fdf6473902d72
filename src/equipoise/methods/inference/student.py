"""The pivot of real-valued metrics: the distance from the estimate in its own standard errors.

Every group is measured by its own spread; Student's distribution with Welch's degrees of freedom
allows for estimating it, and Hall's transformation for skewness. A group that happens to miss rare
large values looks harmless, so its skewness is also judged by that of all rows together.

No finite sample can promise anything about an unbounded skewed metric (Bahadur and Savage 1956).
Hall's transformation says so by itself: with the skewness γ of the estimate no distance, however
large, counts for more than 1/γ − γ/6 standard errors. Groups that cannot reach a critical score are
not answered.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import comb
from typing import Protocol

import numpy as np
from scipy import sparse
from scipy.special import ndtri, stdtr

from equipoise.methods.hypotheses import Tails
from equipoise.methods.numerics import (
    BoolArray,
    FloatArray,
    GroupSums,
    IntArray,
    child,
    normal_score,
    over,
)
from equipoise.methods.targets import ROUNDING, Comparison, Moments, OfComparison

# --- The pivot: the distance from the estimate in its own standard errors ---

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
        return normal_score(tail)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudentPivot(OfComparison):
    """p-values of disparities of a real-valued metric."""

    comparison: Comparison
    """Groups beside their target."""
    shape: float
    """Skewness of all rows together."""

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
    usual = usual_skewness(shape, found, factor, seen)
    return Spread(variance=variance, skewness=skew, usual=usual, degrees=degrees)


def usual_skewness(
    shape: float, found: Comparison, factor: FloatArray, about: FloatArray
) -> FloatArray:
    """Skewness of a contrast if rows were shaped like all others: pulling up, and down, (2, G).

    ``about`` are the sums of squared influence over the parts.
    """
    a = found.slopes(factor)
    ways = (np.where(way * a > 0, a, 0.0) for way in (1, -1))
    return np.stack([_usual(shape, pulling, a, about, found.parts) for pulling in ways])


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

    >>> from equipoise.methods.targets import plain_moments
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


# --- Exact bounds on the mean of a bounded metric, whatever the rows and the distribution ---
#
# Somebody who bets against "the mean is m" gains little if it is true: by Ville's inequality the
# chance that a capital of 1 ever grows to 1/α is at most α. The bounds are the means against
# which betting did not pay (Waudby-Smith and Ramdas 2024). Each bet may depend on the rows before
# it, so rows come in random order; capital is averaged over several orders, which is as exact.

MOST = 0.75
"""Largest share of the capital that one row may cost."""
ORDERS, ORDERED = 20, 2_000_000
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
    times = int(np.clip(ORDERED // x.size, 1, ORDERS))
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


# --- Clusters: how far a contrast strays when whole clusters are left out, one at a time ---

LEAST_DEGREES = 3.0
"""Contrasts worth fewer degrees of freedom are not answered."""
LEAST_CLUSTERS = 20.0
"""Nor are those of a real-valued metric as lopsided as one mean of fewer clusters: a few clusters,
like a few rows, do not show how skewed they are."""
_NUMBERS = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSums:
    """Sums by cluster and cell, sorted by cluster; clusters are numbered from 0."""

    cluster: IntArray
    """Cluster of each entry."""
    cell: IntArray
    """Cell of each entry."""
    weight: FloatArray
    """Σ w of the entry."""
    total: FloatArray
    """Σ w L of the entry."""
    cells: int
    """Number of cells."""

    @property
    def number(self) -> int:
        """Number of clusters."""
        return int(self.cluster[-1]) + 1 if self.cluster.size else 0

    def moved(self, place: IntArray, cells: int) -> "ClusterSums":
        """The same with every cell at another place; those at −1 are left out.

        >>> two = np.array([0, 1])
        >>> sums = ClusterSums(cluster=two, cell=two, weight=two + 1.0, total=two * 1.0, cells=2)
        >>> sums.moved(np.array([-1, 0]), 1).weight.tolist()
        [2.0]
        """
        there = place[self.cell] >= 0
        _, cluster = np.unique(self.cluster[there], return_inverse=True)
        return ClusterSums(
            cluster=cluster.astype(np.int64),
            cell=place[self.cell[there]],
            weight=self.weight[there],
            total=self.total[there],
            cells=cells,
        )

    def cell_sums(self) -> tuple[FloatArray, FloatArray]:
        """Weight and total of every cell, over all clusters."""
        weight, total = (
            np.bincount(self.cell, weights=x, minlength=self.cells).astype(np.float64)
            for x in (self.weight, self.total)
        )
        return weight, total

    def blocks(self, groups: int) -> list[tuple[FloatArray, FloatArray]]:
        """Dense sums ``(b, C)`` of weight and total, some clusters at a time."""
        step = max(1, _NUMBERS // max(self.cells, groups, 1))
        out = []
        for start in range(0, self.number, step):
            stop = min(start + step, self.number)
            first, last = np.searchsorted(self.cluster, [start, stop])
            place = (self.cluster[first:last] - start, self.cell[first:last])
            both = []
            for x in (self.weight, self.total):
                dense = np.zeros((stop - start, self.cells))
                np.add.at(dense, place, x[first:last])
                both.append(dense)
            out.append((both[0], both[1]))
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Power sums of what leaving out a cluster does to a group's mean u and its target's t.

    The contrast u − f t has the powers Σ (u − f t)ᵏ for every factor f.
    """

    powers: tuple[FloatArray, ...]
    """For k = 2, 3, 4: Σ u^(k−i) tⁱ for i = 0 … k, shapes ``(k + 1, G)``."""
    sizes: FloatArray
    """Σ g, Σ h, Σ g², Σ gh, Σ h² of squared shares g of group and h of target, ``(5, G)``."""
    clusters: int
    """Number of clusters."""
    blank: FloatArray
    """Whether some cluster holds all of a group or its target, ``(G,)``."""
    shape: float = 0.0
    """Skewness of what single clusters do, over all groups."""

    def some(self, chosen: IntArray) -> "LeftOut":
        """Some of the groups."""
        return LeftOut(
            powers=tuple(x[:, chosen] for x in self.powers),
            sizes=self.sizes[:, chosen],
            clusters=self.clusters,
            blank=self.blank[chosen],
            shape=self.shape,
        )

    def worth(self, factor: FloatArray) -> FloatArray:
        """How many clusters a single mean would need to be no more lopsided than the contrast.

        Skewness of clusters that are all alike pulls a group one way and its target the other: of
        as many clusters each it cancels, and against a known number all of the group's is left.
        """
        g, h = self.sizes[0], factor**2 * self.sizes[1]
        return np.nan_to_num(over((g + h) ** 3, (g**2 - h**2) ** 2), nan=np.inf, posinf=np.inf)

    def shaped(self, factor: FloatArray) -> "LeftOut":
        """The same with the skewness that clusters show over all groups.

        A group that happens to miss the rare large clusters looks harmless; others know better.
        """
        found = self.spread(factor)
        number = np.nan_to_num(over(np.ones_like(factor), self.sizes[0]))
        ok = (found.variance > 0) & (self.blank == 0)
        number = np.where(ok, number, 0.0)
        each = np.where(ok, found.skewness, 0.0) * np.sqrt(number)
        every = max(float(number.sum()), 1.0)
        # what one cluster does, from what it does to a mean of so many
        second = float((np.where(ok, found.variance, 0.0) * number**2).sum()) / every
        third = float((each * (np.where(ok, found.variance, 0.0) * number) ** 1.5 * number).sum())
        pooled = third / every / second**1.5 if second > 1e-200 else 0.0
        typical = np.copysign(((number * each**2).sum() / every) ** 0.5, (number * each).sum())
        # chance alone gives n clusters a squared skewness of about 6/n
        shapes = (beyond(pooled, 6 / every), beyond(float(typical), 6 * float(ok.sum()) / every))
        return replace(self, shape=max(shapes, key=abs))

    def spread(self, factor: FloatArray) -> Spread:
        """Spread of the contrast at a factor on the target."""
        square, third, fourth = (
            sum(comb(k, i) * (-factor) ** i * x[i] for i in range(k + 1))
            for k, x in zip((2, 3, 4), self.powers, strict=True)
        )
        square, fourth = np.maximum(square, 0.0), np.maximum(fourth, 0.0)
        m, f2 = self.clusters, factor**2
        g, h, gg, gh, hh = self.sizes
        size, size2 = g + f2 * h, gg + 2 * f2 * gh + f2**2 * hh
        # by size as if whole clusters moved together; by outcome, three for normal influence
        by_size = np.nan_to_num(over(size**2, size2))
        by_outcome = 3 * np.nan_to_num(over(square**2, fourth))
        degrees = np.where(square > 0, np.minimum(by_size, np.minimum(by_outcome, m)), by_size)
        # leaving out moves against the influence, hence the sign
        skew = -np.nan_to_num(over(third, square**1.5))
        return Spread(
            variance=square * max(m - 1, 0) / max(m, 1),
            skewness=skew,
            usual=self.shape * np.stack([np.sqrt(g), -np.sqrt(h) * (factor != 0)]),
            degrees=np.where(self.blank > 0, 0.0, np.maximum(degrees - 1, 0.0)),
        )


def leave_out(clusters: ClusterSums, found: Comparison, sums: GroupSums) -> LeftOut:
    """Leave out every cluster once."""
    groups = found.parts.rows.shape[1]
    powers = [np.zeros((k + 1, groups)) for k in (2, 3, 4)]
    sizes, blank = np.zeros((5, groups)), np.zeros(groups)
    weights, totals = (found.both(x[None], sums) for x in clusters.cell_sums())
    wholes = tuple(zip(weights, totals, strict=True))
    means = (found.mean, found.theta)
    for weight, total in clusters.blocks(groups):
        moves, shares = [], []
        gone = zip(found.both(weight, sums), found.both(total, sums), strict=True)
        for (gone_w, gone_s), (whole_w, whole_s), mean in zip(gone, wholes, means, strict=True):
            left = np.where(whole_w - gone_w > 1e-9 * whole_w, whole_w - gone_w, 0.0)
            moved = over(whole_s - gone_s, left) - mean
            touched = gone_w > 0
            blank += (touched & (left == 0)).any(axis=0)
            moves.append(np.where(touched, np.nan_to_num(moved), 0.0))
            shares.append(np.nan_to_num(over(gone_w, whole_w)) ** 2)
        u, t = moves
        for k, out in zip((2, 3, 4), powers, strict=True):
            for i in range(k + 1):
                out[i] += (u ** (k - i) * t**i).sum(axis=0)
        g, h = shares
        sizes += np.stack([x.sum(axis=0) for x in (g, h, g * g, g * h, h * h)])
    return LeftOut(powers=tuple(powers), sizes=sizes, clusters=clusters.number, blank=blank)


# --- The joint law of all groups' scores: correlated normals, drawn from the cells ---

CHUNK = 256
"""Draws per random stream; part of the definition of the results."""
DRAWN = 60_000_000
"""Draws times groups that are affordable; larger collections get fewer draws."""
MOST_DRAWS, LEAST_DRAWS = 10_000, 1000
SPREAD = 3
"""So many cells for each group, and scores are drawn from their covariance, not cell by cell."""
FEW_MOVES = 8_000
"""Cells times groups up to which draws are one product; more would wake a second thread."""


class CellDraws(Protocol):
    """Random moves of the cells' sums."""

    def draw(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Moves of Σ w and Σ w L, shapes ``(size, C)``."""
        ...

    def variance(self, found: Comparison, factor: FloatArray, sums: GroupSums) -> FloatArray:
        """Variance of each group's move; 0 where there is none beyond what rounding leaves."""
        ...


class RowDraws:
    """Moves of the cells when rows are independent."""

    def __init__(self, cells: Moments) -> None:
        """Take each cell's moments, with one row's worth of everybody's mixed in."""
        w2 = cells.weight2
        mixed = []
        for x in (cells.total2, cells.square2):
            everyone = float(x.sum()) / max(float(w2.sum()), 1e-300)
            own = np.nan_to_num(over(x, w2))
            mixed.append((own * cells.rows + everyone) / (cells.rows + 1))
        self.mean, square = mixed
        self._root = np.sqrt(w2)
        self._rest = self._root * np.sqrt(np.maximum(square - self.mean**2, 0.0))
        self._room = np.empty((2, 0, self._root.size))

    def draw(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Normal moves with the covariance of each cell's sums, in arrays that the next draw uses.

        With many cells it would take longer to get memory for these arrays than to fill them.
        """
        if self._room.shape[1] != size:
            self._room = np.empty((2, size, self._root.size))
        rng.standard_normal(out=self._room)
        for weight, total in zip(*self._room, strict=True):
            weight *= self._root
            total *= self._rest
            total += weight * self.mean
        return self._room[0], self._room[1]

    def units(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Blocks of the 2C independent moves, one standard deviation each, that make up a draw."""
        cells = self._root.size
        for start in range(0, 2 * cells, CHUNK):
            which = np.arange(start, min(start + CHUNK, 2 * cells))
            row, cell = np.arange(which.size), which % cells
            weight, total = np.zeros((2, which.size, cells))
            first = which < cells
            weight[row, cell] = np.where(first, self._root[cell], 0.0)
            total[row, cell] = np.where(first, self._root[cell] * self.mean[cell], self._rest[cell])
            yield weight, total

    def variance(self, found: Comparison, factor: FloatArray, sums: GroupSums) -> FloatArray:
        """Σ a²q − 2ab s + b²w over the parts, which share no row."""
        w = self._root**2
        cells = (w * self.mean**2 + self._rest**2, w * self.mean, w)
        a = found.slopes(factor)
        b = found.intercepts(factor, np.nan_to_num(over(found.parts.total, found.parts.weight)))
        q, s, n = (
            found.target.parts(x, sums) if found.tilts is None else x[:, None] for x in cells
        )
        return moved_squares(a**2 * q, a * b * s, b**2 * n)


def moved_squares(square: FloatArray, product: FloatArray, rest: FloatArray) -> FloatArray:
    """Σ square − 2 product + rest of every group; what cancels up to rounding is 0."""
    about = (square - 2 * product + rest).sum(axis=0)
    return np.where(about > ROUNDING * (square + rest).sum(axis=0), about, 0.0)


class ClusterDraws:
    """Moves of the cells when whole clusters come and go."""

    def __init__(self, clusters: ClusterSums) -> None:
        """Arrange the sums as cells × clusters."""
        self._clusters = clusters
        shape = (clusters.cells, clusters.number)
        place = (clusters.cell, clusters.cluster)
        self._weight = sparse.csr_array((clusters.weight, place), shape=shape)
        self._total = sparse.csr_array((clusters.total, place), shape=shape)

    def draw(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Every cluster's sums times a normal of its own."""
        times = rng.standard_normal((self._weight.shape[1], size))
        return np.asarray((self._weight @ times).T), np.asarray((self._total @ times).T)

    def variance(self, found: Comparison, factor: FloatArray, sums: GroupSums) -> FloatArray:
        """Sum of the squared moves that single clusters make."""
        about, size = np.zeros((2, factor.size))
        for weight, total in self._clusters.blocks(factor.size):
            about += (found.moves(weight, total, factor, sums) ** 2).sum(axis=0)
            size += (found.moves(np.zeros_like(weight), total, factor, sums) ** 2).sum(axis=0)
        return np.where(about > ROUNDING * size, about, 0.0)


class Law(Protocol):
    """Where draws of all groups' scores come from."""

    def scores(self) -> Iterator[FloatArray]:
        """Blocks of scores, one column for each answered group."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JointLaw:
    """Where draws of all groups' scores come from.

    Every score is standard normal. A group whose rows show no spread shows nothing of what it has
    in common with others either, so its score is drawn for itself.
    """

    cells: CellDraws
    """Moves of the cells."""
    found: Comparison
    """Groups beside their target."""
    factor: FloatArray
    """What the target is multiplied by at the estimated disparities, ``(G,)``."""
    sums: GroupSums
    """From cells to groups."""
    apart: FloatArray
    """Share of each score's variance that is drawn for itself, ``(G,)``."""
    used: IntArray
    """Groups that are answered."""
    draws: int
    """How many draws."""
    seed: np.random.SeedSequence
    """Seed of the draws."""

    def scores(self) -> Iterator[FloatArray]:
        """Blocks ``(b, used)`` of standard normal scores."""
        if isinstance(self.cells, RowDraws):
            cells, groups = self.cells.mean.size, self.factor.size
            if cells >= SPREAD * groups and 2 * cells <= self.draws:
                yield from self._few_groups(self.cells)
                return
        (error, loose), moves = self._errors(), self._moves()
        step = max(1, min(CHUNK, (1 << 22) // max(self.factor.size, 1)))
        done = 0
        for chunk in range(-(-self.draws // CHUNK)):
            rng = np.random.default_rng(child(self.seed, chunk))
            size = min(CHUNK, self.draws - done)
            weight, total = self.cells.draw(rng, size)
            own = rng.standard_normal((size, self.used.size))
            for start in range(0, size, step):
                part = slice(start, min(start + step, size))
                z = moves(weight[part], total[part]) / error
                yield np.sqrt(1 - loose) * z + np.sqrt(loose) * own[part]
            done += size

    def _moves(self) -> Callable[[FloatArray, FloatArray], FloatArray]:
        """Moves of the answered groups, from moves of the cells."""

        def moved(weight: FloatArray, total: FloatArray) -> FloatArray:
            return self.found.moves(weight, total, self.factor, self.sums)[:, self.used]

        size = self.cells.mean.size if isinstance(self.cells, RowDraws) else FEW_MOVES + 1
        if size * self.used.size > FEW_MOVES:
            return moved
        one = np.eye(size)  # what every cell does to every group, once for all draws
        by_weight, by_total = moved(one, 0 * one), moved(0 * one, one)
        return lambda weight, total: np.asarray(weight @ by_weight + total @ by_total)

    def _errors(self) -> tuple[FloatArray, FloatArray]:
        """Standard deviations of the moves, and shares of the scores that are not drawn by them."""
        variance = self.cells.variance(self.found, self.factor, self.sums)[self.used]
        moves = variance > 0
        return np.sqrt(np.where(moves, variance, 1.0)), np.where(moves, self.apart[self.used], 1.0)

    def _few_groups(self, cells: RowDraws) -> Iterator[FloatArray]:
        """The same law where a few groups are spread over many cells: by their covariance."""
        covariance = np.zeros((self.used.size, self.used.size))
        for weight, total in cells.units():
            moved = self.found.moves(weight, total, self.factor, self.sums)[:, self.used]
            covariance += moved.T @ moved
        _, loose = self._errors()
        error = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
        values, vectors = np.linalg.eigh(covariance / np.outer(error, error))
        root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
        done = 0
        for chunk in range(-(-self.draws // CHUNK)):
            rng = np.random.default_rng(child(self.seed, chunk))
            size = min(CHUNK, self.draws - done)
            z, own = rng.standard_normal((2, size, self.used.size))
            yield np.sqrt(1 - loose) * (z @ root) + np.sqrt(loose) * own
            done += size


def affordable_draws(groups: int) -> int:
    """How many draws a collection gets if nothing else is said.

    >>> affordable_draws(80), affordable_draws(1_000_000)
    (10000, 1000)
    """
    return int(np.clip(DRAWN // max(groups, 1), LEAST_DRAWS, MOST_DRAWS))


def apart_of(outcomes: FloatArray) -> FloatArray:
    """Share of a score's variance that is drawn for itself, by how many outcomes it rests on.

    A correlation r from n outcomes is known to about (1 − r²)/√n. Those near one, which lower the
    critical value most, are known better than 1/√n says; n^(−2/3) lies between.

    >>> apart_of(np.array([0.0, 8.0, 1000.0])).round(6).tolist()
    [1.0, 0.25, 0.01]
    """
    return np.asarray(np.maximum(outcomes, 1.0) ** (-2 / 3))


@functools.lru_cache(maxsize=10_000)
def independent_score(level: float, groups: int, two_sided: bool) -> float:
    """The critical score of independent groups (Šidák), or Bonferroni's for one side.

    >>> round(independent_score(0.95, 10, True), 3)
    2.8
    """
    if two_sided:
        return float(-ndtri((1 - level ** (1 / max(groups, 1))) / 2))
    return float(-ndtri((1 - level) / max(groups, 1)))


def joint_law(
    cells: CellDraws,
    found: Comparison,
    sums: GroupSums,
    outcomes: FloatArray,
    used: IntArray,
    *,
    draws: int,
    seed: np.random.SeedSequence,
) -> JointLaw:
    """The law of the scores at the estimated disparities."""
    estimate = np.where(np.isfinite(found.estimate), found.estimate, 1.0)
    return JointLaw(
        cells=cells,
        found=found,
        factor=found.factor(np.clip(estimate, -1e6, 1e6)),
        sums=sums,
        apart=apart_of(outcomes),
        used=used,
        draws=draws,
        seed=seed,
    )
