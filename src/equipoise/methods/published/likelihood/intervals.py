"""Intervals and p-values for means by empirical likelihood, many groups at once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, chdtri

from equipoise.methods.hypotheses import Null, normal_tails
from equipoise.methods.numerics import CHUNK, BoolArray, FloatArray
from equipoise.methods.published.likelihood.mean import (
    SMALL,
    MeanRatio,
    Segments,
    independent_columns,
    joint_ratio,
    largest_adjusted,
    mean_ratio,
)

# --- Intervals and p-values for means by empirical likelihood, many groups at once ---

MAX_STEPS = 80


def mean_roots(groups: Segments, value: FloatArray, adjust: FloatArray | None = None) -> FloatArray:
    """Signed roots of the likelihood ratio: positive where a group's mean exceeds the value.

    >>> from equipoise.methods.published.likelihood import segments
    >>> mean_roots(segments([np.array([0.0, 1.0, 2.0])]), np.array([1.5])).round(3).tolist()
    [-1.123]
    """
    ratio = mean_ratio(groups, value, adjust=adjust).statistic
    return np.copysign(np.sqrt(ratio), groups.mean - value)


def mean_p_values(
    groups: Segments, target: FloatArray, null: Null, adjust: FloatArray | None = None
) -> FloatArray:
    """p-values of each group's mean less a known target; NaN where a group does not vary.

    One-sided nulls have the limit ½χ²₀ + ½χ²₁; range nulls run from two-sided to one-sided.

    >>> from equipoise.methods.published.likelihood import segments
    >>> from equipoise.methods.hypotheses import Above
    >>> groups = segments([np.array([0.0, 1.0, 2.0, 3.0, 1.0, 2.0])])
    >>> mean_p_values(groups, np.array([0.5]), Above(limit=0.0)).round(3).tolist()
    [0.003]
    """
    return null.p_value(lambda limit: normal_tails(mean_roots(groups, target + limit, adjust)))


def mean_interval(
    groups: Segments, critical: float | FloatArray, adjust: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """All values whose signed root is at most ``critical`` in size: lower and upper ends.

    NaN where a group does not vary; infinite where too few rows exclude nothing.

    >>> from equipoise.methods.published.likelihood import segments
    >>> low, high = mean_interval(segments([np.array([0.0, 1.0, 2.0])]), 1.96)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.229], [1.771])
    """
    cut = np.broadcast_to(np.asarray(critical, dtype=np.float64), groups.start.shape)
    a = np.zeros(groups.start.size) if adjust is None else adjust
    low, high = (np.full(groups.start.size, np.nan) for _ in range(2))
    varies = groups.varies
    for chosen, solve in ((varies & (a == 0), _plain_end), (varies & (a > 0), _adjusted_end)):
        if bool(chosen.any()):
            some = groups if bool(chosen.all()) else _subset(groups, chosen)
            for ends, sign in ((low, -1.0), (high, 1.0)):
                ends[chosen] = solve(some, cut[chosen], a[chosen], sign)
    return low, high


def _subset(groups: Segments, chosen: BoolArray) -> Segments:
    sizes = np.diff(groups.start, append=groups.value.size)
    keep = np.repeat(chosen, sizes)
    start = np.concatenate([[0], np.cumsum(sizes[chosen])[:-1]]).astype(np.int64)
    return Segments(
        value=groups.value[keep],
        start=start,
        count=None if groups.count is None else groups.count[keep],
        worth=None if groups.worth is None else groups.worth[chosen],
    )


def _plain_end(groups: Segments, cut: FloatArray, a: FloatArray, sign: float) -> FloatArray:
    """An end of the interval, along the curve of weights 1/(1 + τ(x − mean)): no inner solve."""
    n, mean = groups.rows, groups.mean
    y = (groups.value - groups.spread(mean)) * -sign
    deviation = np.sqrt(groups.sums(y * y) / n)
    # weights stay positive up to the smallest deviation
    low, high = np.zeros_like(n), -1 / np.minimum.reduceat(y, groups.start)
    at = np.minimum(cut / (np.sqrt(n) * deviation), high / 2)
    for _ in range(MAX_STEPS):
        inverse = 1 / (1 + groups.spread(at) * y)
        first = groups.sums(inverse)
        # −2 Σ log(n p) with p = inverse / Σ inverse: equation (3.3) of the paper on empirical
        # likelihood is never solved, since every point of the curve solves it for some value.
        ratio = np.maximum(-2 * groups.sums(np.log(inverse)) + 2 * n * np.log(first / n), 0.0)
        root = np.sqrt(ratio)
        low, high = np.where(root > cut, low, at), np.where(root > cut, at, high)
        if bool(((np.abs(root - cut) <= 1e-11) | (high - low <= 1e-15 * high)).all()):
            break
        pulled = y * inverse
        slope = 2 * groups.sums(pulled) - 2 * n * groups.sums(pulled * inverse) / first
        step = at + np.divide(
            2 * root * (cut - root), slope, out=np.full_like(at, np.nan), where=slope > 0
        )
        at = np.where((step > low) & (step < high), step, (low + high) / 2)
    # Σ (1 + τ y) p = n / Σ inverse, which gives the mean of y under the weights p.
    return np.asarray(mean - sign * (n / first - 1) / at)


def _adjusted_end(groups: Segments, cut: FloatArray, a: FloatArray, sign: float) -> FloatArray:
    """An end of the interval of the adjusted likelihood; infinite where it is never excluded."""
    n, mean = groups.rows, groups.mean
    error = np.sqrt(groups.sums((groups.value - groups.spread(mean)) ** 2)) / n
    guess: list[FloatArray | None] = [None]

    def at(distance: FloatArray) -> MeanRatio:
        found = mean_ratio(groups, mean + sign * distance, adjust=a, guess=guess[0])
        guess[0] = found.multiplier
        return found

    end = _reach(at, cut, cut * error)
    # The adjusted ratio is bounded: in a group of a few rows it never reaches the cut.
    return np.where(largest_adjusted(n, a) > cut**2, mean + sign * end, sign * np.inf)


def _reach(at: Callable[[FloatArray], MeanRatio], cut: FloatArray, start: FloatArray) -> FloatArray:
    """The distance at which the signed root reaches its cut, by Newton kept inside a bracket."""
    here, low, high = start, np.zeros_like(start), np.full_like(start, np.inf)
    for _ in range(MAX_STEPS):
        found = at(here)
        root = np.sqrt(found.statistic)
        low, high = np.where(root > cut, low, here), np.where(root > cut, here, high)
        close = (np.abs(root - cut) <= 1e-9) | (high - low <= 1e-14 * here)
        if bool((close | np.isnan(root) | (here > 1e9 * start)).all()):
            break
        # Newton on the root, as in the band, for the same reason.
        slope = np.abs(found.slope)
        step = here + np.divide(
            2 * root * (cut - root), slope, out=np.full_like(here, np.nan), where=slope > 0
        )
        middle = np.where(np.isinf(high), 2 * here, (low + high) / 2)
        here = np.where((step > low) & (step < np.minimum(high, 4 * here)), step, middle)
    return here


# --- Calibration of joint tests: how large the statistic is when its null holds ---
#
# The χ² limit is too small where a group has a few hundred rows of a skewed metric, and every
# group adds to the error. Rows are resampled around the estimates, where the null is true, and
# the statistic is worked out anew each time. Corrections of its mean alone mend part of the
# error.

MOST_DRAWS, MOST_SOLVES, LEAST_DRAWS = 999, 399, 99
VALUES = 2e7
"""Values that one calibration may resample."""
PRODUCTS = 4e9
"""Products of row by row that one calibration may form."""
_TAIL = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class ResampledNull:
    """The statistic of resampled rows, whose null is true."""

    draws: FloatArray
    """Statistics, in order."""
    rank: int
    """Degrees of freedom of the χ² limit."""

    def p(self, statistic: float) -> float:
        """Share of draws that reach the statistic; beyond their reach, the stretched tail of χ².

        >>> flat = ResampledNull(draws=np.arange(1.0, 400.0), rank=3)
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

        >>> ResampledNull(draws=np.arange(1.0, 400.0), rank=3).critical(0.95)
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
) -> ResampledNull:
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
) -> ResampledNull:
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
) -> ResampledNull:
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
) -> ResampledNull:
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


def _calibration(found: list[FloatArray], rank: int) -> ResampledNull:
    drawn = np.concatenate(found) if found else np.zeros(0)
    return ResampledNull(draws=np.sort(np.nan_to_num(drawn, nan=np.inf, posinf=np.inf)), rank=rank)


def _chunks(seed: np.random.SeedSequence, draws: int) -> Iterator[tuple[np.random.Generator, int]]:
    for chunk in range(-(-draws // CHUNK)):
        key = (*seed.spawn_key, chunk)
        stream = np.random.SeedSequence(seed.entropy, spawn_key=key)
        yield np.random.default_rng(stream), min(CHUNK, draws - chunk * CHUNK)
