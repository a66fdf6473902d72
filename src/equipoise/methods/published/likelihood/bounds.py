"""Bounds by empirical likelihood: of means, many groups at once, and of disparities of rates.

A bound of a disparity is the largest (or smallest) over all rates and shares whose likelihood ratio
does not exceed c². At the optimum every rate solves n (μ̂ − μ) = λ a μ (1 − μ) with one multiplier λ
per group and a the derivative of the disparity in that rate, so one root in λ gives the bound.
Where the disparity is not linear the derivatives are renewed a few times.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import chdtrc, chdtri, rel_entr, xlogy

from equipoise.methods.hypotheses import Null, normal_tails
from equipoise.methods.inference.counts import tilted_rates
from equipoise.methods.numerics import CHUNK, BoolArray, FloatArray, GroupSums
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


# --- Likelihood bounds of disparities of 0/1 metrics: all values whose signed root is at most c

Against = Literal["known", "overall", "reference", "complement"]
BAND_STEPS = 120
ROUNDS = 40
"""Renewals of the derivatives; five or six are usual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Disjoint parts of the population that decide each group's disparity, shape ``(K, G)``.

    Known target: the group. Overall and complement: the group, the rest. Reference: the group
    outside it, the overlap, the reference outside the group.
    """

    rows: FloatArray
    """Rows of each part."""
    ones: FloatArray
    """Rows of each part whose metric is 1."""
    against: Against
    """What the group is compared with."""
    scale: float = 1.0
    """Factor on the target."""
    value: float = 0.0
    """The target, where it is known."""
    relative: bool = False
    """Whether the disparity is a ratio rather than a difference."""

    @property
    def mixed(self) -> bool:
        """Whether group or target is made of several parts, so that their shares count too."""
        return self.against in ("overall", "reference")

    @property
    def curved(self) -> bool:
        """Whether the disparity is not linear in the rates at known shares."""
        return self.relative or self.mixed

    def some(self, chosen: BoolArray) -> "Parts":
        """The parts of some of the groups."""
        return Parts(
            rows=self.rows[:, chosen],
            ones=self.ones[:, chosen],
            against=self.against,
            scale=self.scale,
            value=self.value,
            relative=self.relative,
        )


def band_parts(
    rows: FloatArray,
    ones: FloatArray,
    sums: GroupSums,
    against: Against,
    *,
    scale: float = 1.0,
    value: float = 0.0,
    reference: BoolArray | None = None,
    relative: bool = False,
) -> Parts:
    """The parts behind every group, from cell counts of rows and ones.

    >>> cells = np.array([4.0, 6.0]), np.array([1.0, 3.0])
    >>> band_parts(*cells, lambda x: x, "complement").rows.tolist()
    [[4.0, 6.0], [6.0, 4.0]]
    """
    n, k = sums(rows), sums(ones)
    if against == "known":
        pieces = [(n, k)]
    elif against == "reference" and reference is not None:
        inside, inside_ones = (np.where(reference, x, 0.0) for x in (rows, ones))
        b, bk = sums(inside), sums(inside_ones)
        pieces = [(n - b, k - bk), (b, bk), (inside.sum() - b, inside_ones.sum() - bk)]
    else:
        pieces = [(n, k), (rows.sum() - n, ones.sum() - k)]
    return Parts(
        rows=np.stack([a for a, _ in pieces]),
        ones=np.stack([b for _, b in pieces]),
        against=against,
        scale=scale,
        value=value,
        relative=relative,
    )


def band(
    parts: Parts, critical: float, *, calibrated: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds of every group; NaN where the group or its target has no rows.

    ``calibrated`` divides the likelihood ratio by its mean to order 1/n (Bartlett's factor for the
    group's own rate); without it bounds of small groups are a little too narrow.

    >>> tens = Parts(rows=np.array([[10.0]]), ones=np.array([[0.0]]), against="known", value=0.1)
    >>> [float(x[0].round(4)) for x in band(tens, 2.0)]
    [-0.1, 0.1393]
    """
    low, high = (np.full(parts.rows.shape[1], np.nan) for _ in range(2))
    usable = defined(parts)
    if bool(usable.any()):
        some = parts.some(usable)
        cut = critical * np.sqrt(bartlett(some) if calibrated else np.ones(some.rows.shape[1]))
        low[usable], high[usable] = (_extreme(some, cut, sign) for sign in (-1.0, 1.0))
    return low, high


def bartlett(parts: Parts) -> FloatArray:
    """Mean of the likelihood ratio of each group's rate, to order 1/n.

    >>> tens = Parts(rows=np.array([[10.0]]), ones=np.array([[5.0]]), against="known")
    >>> bartlett(tens).tolist()
    [1.05]
    """
    group, _ = _members(parts)
    n = (parts.rows * group).sum(axis=0)
    # half a row of either kind keeps the rate away from the ends, where the factor has no limit
    rate = ((parts.ones * group).sum(axis=0) + 0.5) / (n + 1)
    # That of one binomial, 1 + (1 − pq)/(6 n pq): the target's rows are as a rule many more.
    variance = rate * (1 - rate)
    return np.asarray(1 + (1 - variance) / (6 * np.maximum(n, 1.0) * variance))


def defined(parts: Parts) -> BoolArray:
    """Groups that have rows, and a target with rows."""
    group, target = _members(parts)
    here = (parts.rows * group).sum(axis=0) > 0
    if parts.against == "known":
        return np.asarray(here)
    return np.asarray(here & ((parts.rows * target).sum(axis=0) > 0))


def _members(parts: Parts) -> tuple[FloatArray, FloatArray]:
    """Which parts make up the group, and which its target, as columns of zeros and ones."""
    which = {
        "known": ([1], [0]),
        "overall": ([1, 0], [1, 1]),
        "complement": ([1, 0], [0, 1]),
        "reference": ([1, 1, 0], [0, 1, 1]),
    }[parts.against]
    group, target = (np.array(x, dtype=np.float64)[:, None] for x in which)
    return group, target


class BandState:
    """Group mean, target and their derivatives at given rates and shares."""

    def __init__(self, parts: Parts, rates: FloatArray, shares: FloatArray) -> None:
        group, target = _members(parts)
        g, t = shares * group, shares * target
        g, t = g / g.sum(axis=0), t / np.maximum(t.sum(axis=0), 1e-300)
        self.mean: FloatArray = (g * rates).sum(axis=0)
        known = parts.against == "known"
        theta = parts.value + 0 * self.mean if known else (t * rates).sum(axis=0)
        self.theta: FloatArray = parts.scale * theta
        # a ratio r is where mean − r · target vanishes
        ratio = np.minimum(self.ratio, 1e9) if parts.relative else np.ones_like(self.mean)
        factor = parts.scale * ratio
        self.by_rate = g - (0.0 if known else factor * t)
        # A mean Σ s μ / Σ s has the derivative (μ − mean)/Σ s in the share s.
        inner = g * (rates - self.mean) / np.maximum(shares, 1e-300)
        outer = t * (rates - self.theta / (parts.scale or 1.0)) / np.maximum(shares, 1e-300)
        self.by_share = inner - (0.0 if known else factor * outer)

    @property
    def ratio(self) -> FloatArray:
        """Mean over target, infinite where the target is zero."""
        far = np.full_like(self.mean, np.inf)
        return np.divide(self.mean, self.theta, out=far, where=self.theta > 0)

    def disparity(self, relative: bool) -> FloatArray:
        """Ratio or difference."""
        return self.ratio if relative else np.asarray(self.mean - self.theta)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Rates and shares along one multiplier per group, the derivatives being held fixed."""

    parts: Parts
    """The parts of the groups."""
    by_rate: FloatArray
    """Derivatives of the disparity in the rates, against the direction that is sought."""
    by_share: FloatArray
    """The same in the shares."""
    shares: FloatArray
    """The shares at which they were taken."""

    @property
    def mean(self) -> FloatArray:
        """The observed rates."""
        return self.parts.ones / np.maximum(self.parts.rows, 1.0)

    @property
    def variance(self) -> FloatArray:
        """Roughly that of the disparity; pulled-in rates keep it above zero."""
        n = np.maximum(self.parts.rows, 1.0)
        pulled = (self.parts.ones + 0.5) / (n + 1)
        return np.asarray((self.by_rate**2 * pulled * (1 - pulled) / n).sum(axis=0))

    @property
    def end(self) -> FloatArray:
        """A multiplier at which every rate is at the end of its range."""
        steepest = np.maximum(np.abs(self.by_rate).max(axis=0), 1e-12)
        return np.asarray(1e9 * (1 + self.parts.rows.sum(axis=0)) / steepest)

    def some(self, chosen: BoolArray) -> "Line":
        """The lines of some of the groups."""
        return Line(
            parts=self.parts.some(chosen),
            by_rate=self.by_rate[:, chosen],
            by_share=self.by_share[:, chosen],
            shares=self.shares[:, chosen],
        )

    def at(self, multiplier: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Rates and shares at a multiplier."""
        n = np.maximum(self.parts.rows, 1.0)
        rates, _ = tilted_rates(multiplier * self.by_rate / n, self.mean)
        return rates, self._shares(multiplier) if self.parts.mixed else self.shares

    def lost(self, multiplier: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Likelihood ratio statistic at a multiplier, and its derivative in the multiplier."""
        a, d, parts, mean = self.by_rate, self.by_share, self.parts, self.mean
        n = np.maximum(parts.rows, 1.0)
        rates, root = tilted_rates(multiplier * a / n, mean)
        k, rest = parts.ones, parts.rows - parts.ones
        with np.errstate(divide="ignore"):
            lost = xlogy(k, mean) - xlogy(k, rates) + xlogy(rest, 1 - mean) - xlogy(rest, 1 - rates)
        # On the line d lost/dμ = −λ a and dμ/dλ = −a μ(1 − μ)/(n D); their product is the slope.
        bend = np.divide(
            a * a * rates * (1 - rates), n * root, out=np.zeros_like(a), where=root > 0
        )
        value, fall = lost.sum(axis=0), bend.sum(axis=0)
        if parts.mixed:
            # the shares are a multinomial of their own, with its own likelihood ratio
            shares, total = self._shares(multiplier), parts.rows.sum(axis=0)
            apart = xlogy(parts.rows, parts.rows / total) - xlogy(parts.rows, shares)
            value = value + apart.sum(0)
            spread = (shares * (d - (d * shares).sum(axis=0)) ** 2).sum(axis=0)
            fall = fall + spread / total
        return 2 * np.maximum(value, 0.0), 2 * multiplier * fall

    def _shares(self, multiplier: FloatArray) -> FloatArray:
        total = self.parts.rows.sum(axis=0)
        # The most likely shares under a linear constraint are proportional to n/(1 + λ d/N), as
        # weights in empirical likelihood are. They add up to one, so only differences of d count.
        centred = self.by_share - (self.by_share * self.shares).sum(axis=0)
        # held away from zero: a renewal that overshoots is put right by the next
        weight = np.maximum(1 + multiplier * centred / total, 0.05)
        shares = self.parts.rows / total / weight
        return np.asarray(shares / shares.sum(axis=0))


def line_from(
    parts: Parts, rates: FloatArray, shares: FloatArray, sign: float | FloatArray
) -> Line:
    """The line along which the disparity changes fastest, in the direction of ``sign``."""
    state, some = BandState(parts, rates, shares), parts.rows > 0
    a = np.where(some, np.nan_to_num(state.by_rate, posinf=1e12), 0.0) * -sign
    d = np.where(some, np.nan_to_num(state.by_share, posinf=1e12), 0.0) * -sign
    # coefficients that cancel leave dust, which a huge multiplier would blow up
    return Line(parts=parts, by_rate=np.where(np.abs(a) > 1e-12, a, 0.0), by_share=d, shares=shares)


def starting(parts: Parts) -> tuple[FloatArray, FloatArray]:
    """Rates and shares to start from."""
    n = np.maximum(parts.rows, 1.0)
    # a target of zero has no ratio; starting from slightly pulled-in rates gives it one
    rates = (parts.ones + 0.5) / (n + 1) if parts.relative else parts.ones / n
    return rates, parts.rows / parts.rows.sum(axis=0)


def _extreme(parts: Parts, critical: FloatArray, sign: float) -> FloatArray:
    """The furthest disparity in one direction whose signed root does not exceed the cut."""
    found = np.full(parts.rows.shape[1], np.nan)
    todo = np.arange(found.size)
    rates, shares = starting(parts)
    guess: FloatArray | None = None
    for _ in range(ROUNDS if parts.curved else 1):
        line = line_from(parts, rates, shares, sign)
        guess = _multiplier(line, critical, guess)
        rates, shares = line.at(guess)
        new = BandState(parts, rates, shares).disparity(parts.relative)
        with np.errstate(invalid="ignore"):
            moving = ~(np.abs(new - found[todo]) <= 1e-9 * (1 + np.abs(new)))
        moving &= ~(np.isinf(new) & (new == found[todo]))
        found[todo] = new
        if not bool(moving.any()):
            break
        if not bool(moving.all()):
            # groups that have settled are done with
            todo, parts = todo[moving], parts.some(moving)
            rates, shares = rates[:, moving], shares[:, moving]
            guess, critical = guess[moving], critical[moving]
    return found


def _multiplier(line: Line, critical: FloatArray, guess: FloatArray | None) -> FloatArray:
    """The multiplier at which √(likelihood ratio) reaches the critical value.

    Where it never does, the rates are at the end of their range, at a huge multiplier.
    """
    at = critical / np.maximum(np.sqrt(line.variance), 1e-12) if guess is None else guess
    low, high, most = np.zeros_like(at), np.full_like(at, np.inf), line.end
    out, todo = at.copy(), np.arange(at.size)
    # a likelihood ratio of n rows carries rounding errors of n times the machine's
    close = 1e-10 + 1e-15 * line.parts.rows.sum(axis=0)
    for _ in range(BAND_STEPS):
        lost, slope = line.lost(at)
        root = np.sqrt(lost)
        over = root > critical
        low, high = np.where(over, low, at), np.where(over, at, high)
        open_ = (np.abs(root - critical) > close) & (low < most) & (high - low > 1e-14 * at)
        out[todo] = at
        if not bool(open_.any()):
            break
        # Newton on the root of the statistic, almost linear in λ where the statistic is a parabola.
        gap = 2 * root * (critical - root)
        newton = at + np.divide(gap, slope, out=np.full_like(at, np.nan), where=slope > 0)
        middle = np.where(np.isinf(high), np.minimum(4 * at, most), (low + high) / 2)
        inside = (newton > low) & (newton < np.minimum(high, 8 * at + 1))
        at = np.where(open_, np.where(inside, newton, middle), at)
        if int(open_.sum()) < 0.7 * at.size:
            # most groups need few steps: the rest go on alone
            todo, at, low, high, most = (x[open_] for x in (todo, at, low, high, most))
            critical, close, line = critical[open_], close[open_], line.some(open_)
    return out


# --- Signed roots of the profile likelihood of a disparity of a 0/1 metric, at a given value ---
#
# The inverse of the band: there the likelihood is given and the furthest disparity wanted, here
# the disparity is given and the likelihood wanted. Shares of the population are profiled like
# rates.

MAX_ROOT_STEPS = 80


def part_roots(parts: Parts, limit: float, *, calibrated: bool = True) -> FloatArray:
    """Signed roots of ε = limit: positive where the disparity is estimated above it.

    NaN where the group or its target has no rows. ``calibrated`` divides by the root of Bartlett's
    factor, as the band does, so that a bound at critical value c has a root of ±c.

    >>> tens = Parts(rows=np.array([[10.0]]), ones=np.array([[4.0]]), against="known", value=0.1)
    >>> part_roots(tens, 0.0).round(3).tolist()
    [2.432]
    """
    out = np.full(parts.rows.shape[1], np.nan)
    usable = defined(parts)
    if bool(usable.any()):
        some = parts.some(usable)
        factor = bartlett(some) if calibrated else np.ones(some.rows.shape[1])
        out[usable] = _roots(some, limit) / np.sqrt(factor)
    return out


def known_roots(
    k: FloatArray, n: FloatArray, rate: FloatArray, *, calibrated: bool = True
) -> FloatArray:
    """sign(k/n − rate) · √(2 n KL(k/n ‖ rate)), the target being a known rate for each group.

    >>> one = np.array([3.0]), np.array([3.0]), np.array([np.exp(-0.5)])
    >>> float(known_roots(*one, calibrated=False)[0].round(9))
    1.732050808
    """
    size = np.maximum(n, 1.0)
    mean = k / size
    lost = rel_entr(k, n * rate) + rel_entr(n - k, n * (1 - rate))
    root = np.copysign(np.sqrt(2 * np.maximum(lost, 0.0)), mean - rate)
    # The mean of a binomial likelihood ratio is 1 + (1 − pq)/(6 n pq) to order 1/n.
    spread = rate * (1 - rate)
    inner = (spread > 0) & calibrated
    excess = np.divide(1 - spread, 6 * size * spread, out=np.zeros_like(mean), where=inner)
    return np.asarray(root / np.sqrt(1 + excess))


def _roots(parts: Parts, limit: float) -> FloatArray:
    mean = parts.ones / np.maximum(parts.rows, 1.0)
    rates, shares = starting(parts)
    gap = limit - BandState(parts, mean, shares).disparity(parts.relative)
    sign = np.where(gap > 0, 1.0, -1.0)
    before = np.full(gap.shape, np.inf)
    for _ in range(ROUNDS if parts.curved else 1):
        line = line_from(parts, rates, shares, sign)
        at = _multiplier_at_limit(line, limit, sign, np.abs(gap))
        lost, _slope = line.lost(at)
        rates, shares = line.at(at)
        if bool((np.abs(lost - before) <= 1e-9 * (1 + lost)).all()):
            break
        before = lost
    return np.copysign(np.sqrt(np.where(gap == 0, 0.0, lost)), -gap)


def _multiplier_at_limit(line: Line, limit: float, sign: FloatArray, gap: FloatArray) -> FloatArray:
    """The multiplier at which the disparity reaches the limit, or a huge one if it never does."""
    parts, most = line.parts, line.end
    # To first order the disparity moves by λ times its variance.
    at = np.minimum(gap / np.maximum(line.variance, 1e-12) + 1e-9, most)
    low, high = np.zeros_like(at), np.full_like(at, np.inf)
    low_miss, high_miss = -gap, np.full_like(at, np.nan)
    for _ in range(MAX_ROOT_STEPS):
        rates, shares = line.at(at)
        miss = sign * (BandState(parts, rates, shares).disparity(parts.relative) - limit)
        over = miss > 0
        low, low_miss = np.where(over, low, at), np.where(over, low_miss, miss)
        high, high_miss = np.where(over, at, high), np.where(over, miss, high_miss)
        done = (np.abs(miss) <= 1e-12) | (low >= most) | (high - low <= 1e-13 * at)
        if bool(done.all()):
            break
        open_ = np.isinf(high)
        top, top_miss = np.where(open_, at, high), np.where(open_, 1.0, high_miss)
        width = top - low
        chord = low - low_miss * width / np.maximum(top_miss - low_miss, 1e-300)
        # a chord that hugs one end leaves the other where it is: keep off the ends
        inner = np.clip(chord, low + 0.02 * width, top - 0.02 * width)
        step = np.where(open_, np.minimum(4 * at, most), inner)
        at = np.where(done, at, step)
    return np.asarray(at)
