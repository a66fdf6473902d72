"""Calibration of joint tests: how large the statistic is when its null holds.

The χ² limit is too small where a group has a few hundred rows of a skewed metric, and every group
adds to the error. Rows are resampled around the estimates, where the null is true, and the
statistic is worked out anew each time. Corrections of its mean alone mend part of the error.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, chdtri

from equipoise.methods.arrays import BoolArray, FloatArray
from equipoise.methods.published.likelihood.joint import independent_columns, joint_ratio
from equipoise.methods.published.likelihood.mean import (
    SMALL,
    Segments,
    largest_adjusted,
    mean_ratio,
)
from equipoise.methods.streams import CHUNK

MOST_DRAWS, MOST_SOLVES, LEAST_DRAWS = 999, 399, 99
VALUES = 2e7
"""Values that one calibration may resample."""
PRODUCTS = 4e9
"""Products of row by row that one calibration may form."""
_TAIL = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The statistic of resampled rows, whose null is true."""

    draws: FloatArray
    """Statistics, in order."""
    rank: int
    """Degrees of freedom of the χ² limit."""

    def p(self, statistic: float) -> float:
        """Share of draws that reach the statistic; beyond their reach, the stretched tail of χ².

        >>> flat = Calibration(draws=np.arange(1.0, 400.0), rank=3)
        >>> flat.p(380.5), round(flat.p(600.0), 4)
        (0.05, 0.0006)
        """
        # Draws end somewhere: beyond their 1 % point the tail of χ², stretched to meet it, goes on.
        top = self._top
        if statistic > top and 0 < top < np.inf:
            return float(chdtrc(self.rank, statistic * chdtri(self.rank, _TAIL) / top))
        return (1 + int((self.draws >= statistic).sum())) / (self.draws.size + 1)

    def critical(self, level: float) -> float:
        """The cut-off of the joint region.

        >>> Calibration(draws=np.arange(1.0, 400.0), rank=3).critical(0.95)
        380.0
        """
        if 1 - level < _TAIL:
            return float(self._top * chdtri(self.rank, 1 - level) / chdtri(self.rank, _TAIL))
        return self._at(level)

    @property
    def _top(self) -> float:
        return self._at(1 - _TAIL)

    def _at(self, level: float) -> float:
        # Of B + 1 exchangeable values the observed one is above this one in at most 1 − level.
        place = int(np.ceil(level * (self.draws.size + 1) - 1e-9))
        return float(self.draws[min(place, self.draws.size) - 1])


def affordable(rows: float, columns: int, *, solves: int) -> int:
    """How many draws a calibration gets; 0 if even the least would take too long.

    ``solves`` are the steps that one statistic takes; more than one, and there are fewer draws.

    >>> affordable(2000, 10, solves=1), affordable(1e7, 40, solves=1)
    (999, 0)
    """
    cap = MOST_DRAWS if solves == 1 else MOST_SOLVES
    most = min(VALUES / max(rows, 1), PRODUCTS / max(rows * columns**2 * solves, 1))
    return 0 if most < LEAST_DRAWS else min(int(most), cap)


def disjoint_draws(
    groups: Segments, adjust: FloatArray, *, draws: int, seed: np.random.SeedSequence
) -> Calibration:
    """Joint statistics of groups that share no row, each resampled within itself.

    Groups of 1000 rows and more are at their limit, and are drawn from χ².

    >>> rng, seed = np.random.default_rng(1), np.random.SeedSequence(1)
    >>> groups = Segments(value=rng.exponential(size=90), start=np.arange(0, 90, 30))
    >>> found = disjoint_draws(groups, np.full(3, 1.7), draws=399, seed=seed)
    >>> found.rank, bool(found.critical(0.95) > 7.81)
    (3, True)
    """
    varies = groups.varies
    small = varies & (groups.rows < SMALL)
    large = int((varies & ~small).sum())
    found = []
    for rng, size in _chunks(seed, draws):
        sum_ = _small_sums(groups, small, adjust, rng, size)
        found.append(sum_ + (rng.chisquare(large, size) if large else 0.0))
    return _calibration(found, int(varies.sum()))


def _small_sums(
    groups: Segments,
    small: BoolArray,
    adjust: FloatArray,
    rng: np.random.Generator,
    size: int,
) -> FloatArray:
    """Sums over the small groups, one for each of ``size`` resamples."""
    total = np.zeros(size)
    ends = np.append(groups.start[1:], groups.value.size)
    mean, chosen = groups.mean, np.flatnonzero(small)
    if chosen.size == 0:
        return total
    values, starts, at = [], [], 0
    for j in chosen:
        own = groups.value[groups.start[j] : ends[j]]
        times = None if groups.count is None else groups.count[groups.start[j] : ends[j]]
        pool = own if times is None else np.repeat(own, times.astype(np.int64))
        values.append(pool[rng.integers(0, pool.size, size=(size, pool.size))])
        starts.append(at)
        at += pool.size
    drawn = Segments(
        value=np.concatenate(values, axis=1).ravel(),
        start=(np.arange(size)[:, None] * at + np.array(starts)).ravel(),
    )
    ratio = mean_ratio(drawn, np.tile(mean[chosen], size), adjust=np.tile(adjust[chosen], size))
    # rows that came out all alike have left the hull as far as can be
    each = np.where(drawn.varies, ratio.statistic, _constant(drawn, np.tile(adjust[chosen], size)))
    return np.asarray(each.reshape(size, -1).sum(axis=1))


def _constant(groups: Segments, a: FloatArray) -> FloatArray:
    """The adjusted statistic of rows all alike: the same at every value but their own."""
    most = largest_adjusted(groups.rows, np.maximum(a, 1e-300))
    return np.where(a > 0, most, np.inf)


def ratio_draws(
    g: FloatArray,
    count: FloatArray,
    *,
    draws: int,
    seed: np.random.SeedSequence,
    support: bool = False,
) -> Calibration:
    """Joint likelihood of resampled rows; ``g`` are scores whose mean, under ``count``, is zero.

    With ``support``, counts are expected ones, and outcomes that did not occur count as possible.

    >>> g = np.random.default_rng(1).exponential(size=(60, 2)) - 1
    >>> g = g - g.mean(axis=0)
    >>> found = ratio_draws(g, np.ones(60), draws=99, seed=np.random.SeedSequence(1))
    >>> found.rank, found.draws.size
    (2, 99)
    """
    chosen = independent_columns(g, count)
    x = g[:, chosen]

    def one(times: FloatArray) -> float:
        return joint_ratio(x, times, support=support).statistic

    return _resample(lambda w: np.array([one(row) for row in w]), count, chosen.size, draws, seed)


def euclidean_draws(
    g: FloatArray, count: FloatArray, *, draws: int, seed: np.random.SeedSequence
) -> Calibration:
    """Joint Euclidean likelihood of resampled rows; ``g`` are scores whose mean is zero.

    >>> g = np.random.default_rng(1).exponential(size=(60, 2)) - 1
    >>> g = g - g.mean(axis=0)
    >>> found = euclidean_draws(g, np.ones(60), draws=399, seed=np.random.SeedSequence(1))
    >>> bool(found.critical(0.95) > 5.99)
    True
    """
    chosen = independent_columns(g, count)
    total, r = float(count.sum()), chosen.size
    x = g[:, chosen] / np.sqrt((count[:, None] * g[:, chosen] ** 2).sum(axis=0) / total)
    row, column = np.triu_indices(r)
    products = x[:, row] * x[:, column]

    def all_(times: FloatArray) -> FloatArray:
        mean, square = times @ x / total, times @ products / total
        spread = np.zeros((len(times), r, r))
        spread[:, row, column] = spread[:, column, row] = square
        spread -= mean[:, :, None] * mean[:, None, :]
        # a sliver of the whole spread keeps resamples without variation solvable
        spread += 1e-9 * np.eye(r)
        solved = np.linalg.solve(spread, mean[:, :, None])[:, :, 0]
        return np.asarray(total * (mean * solved).sum(axis=1))

    return _resample(all_, count, r, draws, seed)


def _resample(
    statistics: Callable[[FloatArray], FloatArray],
    count: FloatArray,
    rank: int,
    draws: int,
    seed: np.random.SeedSequence,
) -> Calibration:
    total = round(float(count.sum()))
    alike = bool((count == 1).all())
    found = []
    for rng, size in _chunks(seed, draws):
        if alike:
            picked = rng.integers(0, total, size=(size, total)) + np.arange(size)[:, None] * total
            times = np.bincount(picked.ravel(), minlength=size * total).reshape(size, total)
        else:
            times = rng.multinomial(total, count / count.sum(), size=size)
        found.append(statistics(times.astype(np.float64)))
    return _calibration(found, rank)


def _calibration(found: list[FloatArray], rank: int) -> Calibration:
    drawn = np.concatenate(found) if found else np.zeros(0)
    return Calibration(draws=np.sort(np.nan_to_num(drawn, nan=np.inf, posinf=np.inf)), rank=rank)


def _chunks(seed: np.random.SeedSequence, draws: int) -> Iterator[tuple[np.random.Generator, int]]:
    for chunk in range(-(-draws // CHUNK)):
        key = (*seed.spawn_key, chunk)
        stream = np.random.SeedSequence(seed.entropy, spawn_key=key)
        yield np.random.default_rng(stream), min(CHUNK, draws - chunk * CHUNK)
