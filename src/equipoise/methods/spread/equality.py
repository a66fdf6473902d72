"""Do the groups differ at all? One test for all summaries, so that they agree with one another.

Two statistics look at every group beside everybody: the largest score, which sees one group that
stands out, and the sum of squared scores, which sees many that differ a little. They are combined
by the smaller of their p-values, judged by the same draws. Plain counts are dealt afresh to the
groups with all totals kept, which is exact for groups of any size; all else is drawn from the joint
law of the core's scores.

Where equality is rejected, all groups together are at least so far apart that the sum of squares
could fall back to what noise alone would make of it, noise as it is at the groups' own rates: a
small group with a high rate strays further than one with everybody's.

Intervals for the largest differences: max − min, max / min, and the furthest from the mean.

The largest of many noisy differences is far from zero even when nothing differs, and a resampled
range can never be zero, so percentile intervals for it are never right. Two facts give intervals
that are. The true extreme belongs to some fixed pair, so the largest of the pairs' ordinary upper
limits is an upper limit for it. And if every pair's lower limit holds at once, so does the largest.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from equipoise.methods.numerics import FloatArray
from equipoise.methods.spread.sample import (
    GroupSample,
    deviations,
    mean_limits,
    one_sided_z,
    range_z,
    sidak_z,
)
from equipoise.methods.spread.variance import (
    Interval,
    interval,
    null_draws,
    sample_variance,
    stable_variance,
)

# --- Do the groups differ at all? One test for all summaries, so that they agree with one another

_DEALT = 10**8
"""Rows up to which counts are dealt; beyond, the joint law is as good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equality:
    """A test of "all groups have the same mean".

    Attributes
    ----------
    p
        p-value.
    apart
        If it is rejected: how far apart the highest and the lowest group are at least; else 0.
    """

    p: float
    apart: float


def equality_test(
    sample: GroupSample, *, tail: float, resamples: int, rng: np.random.Generator
) -> Equality:
    """Test at level ``tail`` whether the groups differ.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([60, 50]), np.array([50.0, 10.0]), binary=True)
    >>> found = equality_test(s, tail=0.025, resamples=999, rng=np.random.default_rng(1))
    >>> found.p, bool(0.2 < found.apart < 0.63)
    (0.001, True)
    """
    if sample.constant:
        return Equality(p=1.0, apart=0.0)
    share = sample.size / sample.size.sum()
    if sample.counted and sample.size.sum() <= _DEALT:
        scores, error, drawn = _dealt(sample, resamples, rng)
    else:
        used = sample.beside.answered
        if used.size == 0:
            return Equality(p=1.0, apart=0.0)
        scores, error, drawn = _drawn(sample, resamples, rng)
        share, scores, error = share[used], scores[used], error[used]
    every = _statistics(np.concatenate([scores[None], drawn]), 1 - share)
    ranks = np.stack([_share_as_large(column) for column in every.T], axis=1)
    least = ranks.min(axis=1)
    p = float((least <= least[0] * (1 + 1e-9)).mean())
    if p > tail:
        return Equality(p=p, apart=0.0)
    noise = drawn
    if sample.counted and sample.size.sum() <= _DEALT:
        noise = _own_noise(sample, error, resamples, rng)
    precision = float(np.sum((1 - share) / np.maximum(error, 1e-300) ** 2))
    stray = float(np.quantile(_statistics(noise, 1 - share)[:, 1], 1 - tail, method="higher"))
    return Equality(p=p, apart=max(float(every[0, 1] - stray) / np.sqrt(precision), 0.0))


def _statistics(scores: FloatArray, rest: FloatArray) -> FloatArray:
    """The largest score, and the root of Pearson's sum of squares, for every draw."""
    return np.stack([np.abs(scores).max(axis=1), np.sqrt((rest * scores**2).sum(axis=1))], axis=1)


def _share_as_large(values: FloatArray) -> FloatArray:
    """The share of values that are at least as large as each; near ties count as ties."""
    order = np.sort(values * (1 + 1e-9))
    return np.asarray(1 - np.searchsorted(order, values, side="left") / values.size)


def _dealt(
    sample: GroupSample, resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scores of counts, their errors, and scores of counts dealt without regard to the group."""
    n, rows = sample.size.astype(np.float64), int(sample.size.sum())
    ones = np.rint(sample.mean * n)
    rate = float(ones.sum()) / rows
    error = np.sqrt(rate * (1 - rate) * (1 - n / rows) / n)
    dealt = rng.multivariate_hypergeometric(
        sample.size, int(ones.sum()), size=resamples, method="marginals"
    )
    return (ones / n - rate) / error, error, (dealt / n - rate) / error


def _own_noise(
    sample: GroupSample, error: FloatArray, resamples: int, rng: np.random.Generator
) -> FloatArray:
    """Scores that groups would have by chance alone, each drawn at its own rate.

    The rate is the upper limit of what it may be, on the side that makes counts stray most.
    """
    low, high = mean_limits(sample, 1.0)
    rate = np.clip(np.where(sample.overall < 0.5, high, low), 1e-12, 1 - 1e-12)
    n = sample.size
    drawn = rng.binomial(n, rate, size=(resamples, n.size)) / n
    return np.asarray((drawn - rate) / error)


def _drawn(
    sample: GroupSample, resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scores of every group beside everybody, their errors, and draws from their joint law."""
    core = sample.beside
    up, down = core.tails(0.0)
    with np.errstate(invalid="ignore"):
        scores = np.where(up < down, -ndtri(np.maximum(up, 1e-300)), ndtri(np.fmax(down, 1e-300)))
    seed = np.random.SeedSequence(int(rng.integers(2**62)))
    law = core.law(draws=resamples, seed=seed)
    return scores, core.pivot.error, np.concatenate(list(law.scores()))


# --- Ends by test inversion: the spreads that could have produced what was seen ---
#
# Fresh data are drawn from groups whose true means lie on a path that starts with all groups
# equal and moves them apart.

Statistic = Callable[[FloatArray, FloatArray], FloatArray]
_HALVINGS = 4
_DOUBLINGS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadPath:
    """Group means from equality outwards.

    Attributes
    ----------
    centre
        The common mean at the start.
    direction
        How the groups move apart; its variance (divisor K − 1) is one, or it is zero
        when the observed means are all equal.
    binary
        Whether the means stay between 0 and 1.
    """

    centre: float
    direction: FloatArray
    binary: bool

    def at(self, distance: float) -> FloatArray:
        """Return the group means ``distance`` along the path."""
        means = self.centre + distance * self.direction
        return np.clip(means, 0.0, 1.0) if self.binary else means


@dataclass(frozen=True, slots=True, kw_only=True)
class Inversion:
    """The part of the path that a pair of one-sided tests does not reject.

    Attributes
    ----------
    lower
        Group means at the near end; all equal where equality could have produced what was seen.
    upper
        Group means at the far end.
    """

    lower: FloatArray
    upper: FloatArray


def spreading_path(sample: GroupSample) -> SpreadPath:
    """Build the path through the shrunken group means.

    Shrinking matters: the raw means of the smallest groups are mostly noise and would make the
    path put all the spread where it is seen worst.
    """
    noise = null_variance(sample)
    between = sample_variance(sample)
    # Any guess will do where nothing is seen: only the direction of the path depends on it.
    between = between if between > 0 else float(noise.mean()) / 2
    weight = between / (between + noise) if between > 0 else np.ones_like(noise)
    pull = (sample.mean - sample.overall) * weight
    size = float(np.std(pull, ddof=1))
    return SpreadPath(
        centre=sample.overall,
        direction=pull / size if size > 0 else np.zeros_like(pull),
        binary=sample.binary,
    )


def null_variance(sample: GroupSample) -> FloatArray:
    """Sampling variance of each group mean if all groups were equal."""
    if sample.binary:
        return np.asarray(sample.overall * (1 - sample.overall) / sample.size)
    return np.asarray(sample.spread / (sample.size - 1))


def invert_path(
    sample: GroupSample,
    statistic: Statistic,
    *,
    tail: float,
    resamples: int,
    rng: np.random.Generator,
) -> Inversion:
    """Find the part of the path that one-sided tests at level ``tail`` do not reject.

    Parameters
    ----------
    sample
        The usable groups.
    statistic
        A function of means and spreads that grows with the spread between groups.
    tail
        Level of each test, α/2 for a 1 − α interval.
    resamples
        Draws at each point of the path.
    rng
        Source of randomness.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import Meta, meta_metric, sample_from_sums
    >>> s = sample_from_sums(np.array([90, 90]), np.array([20.0, 70.0]), binary=True)
    >>> stat = lambda mean, spread: meta_metric(Meta.VARIANCE, mean)
    >>> ends = invert_path(s, stat, tail=0.025, resamples=500, rng=np.random.default_rng(1))
    >>> 0 < float(np.var(ends.lower, ddof=1)) < 0.154
    True
    """
    path = spreading_path(sample)
    observed = float(statistic(sample.mean, sample.spread))
    seed = int(rng.integers(2**62))

    def drawn(distance: float) -> FloatArray:
        # The same random numbers at every point keep the search from jittering.
        stream = np.random.default_rng(seed)
        draws = null_draws(sample, path.at(distance), resamples, stream)
        return statistic(draws.mean, draws.spread)

    null = drawn(0.0)
    reach = float(np.std(sample.mean, ddof=1))
    above = _quantile(null, 1 - tail) < observed
    near = _crossing(drawn, null, observed, 1 - tail, reach) if above else 0.0
    return Inversion(
        lower=path.at(near), upper=path.at(_crossing(drawn, null, observed, tail, reach))
    )


def _quantile(values: FloatArray, order: float) -> float:
    """The drawn value beyond which the next draw falls with the chance asked for.

    One of the values themselves: there may be infinite ones, which do not interpolate.
    """
    place = min(max(round(order * (values.size + 1)) - 1, 0), values.size - 1)
    return float(np.partition(values, place)[place])


def _crossing(
    drawn: Callable[[float], FloatArray],
    null: FloatArray,
    observed: float,
    order: float,
    reach: float,
) -> float:
    """Distance at which the quantile of the given order reaches what was observed."""

    def excess(values: FloatArray) -> float:
        return _quantile(values, order) - observed

    near, far = 0.0, reach
    below, above = min(excess(null), 0.0), excess(drawn(far))
    for _ in range(_DOUBLINGS):
        if above >= 0 or reach == 0:
            break
        near, below, far = far, above, 2 * far
        above = excess(drawn(far))
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        value = excess(drawn(middle))
        near, below, far, above = (
            (middle, value, far, above) if value < 0 else (near, below, middle, value)
        )
    return near + (far - near) * (-below / (above - below) if above > below else 1.0)


# --- Intervals for the largest differences: max − min, max / min, and the furthest from the mean

_BLOCK = 256
_Pairs = Callable[[slice], FloatArray]


def difference_interval(sample: GroupSample, level: float) -> Interval:
    """Interval for the largest minus the smallest group mean.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([80] * 3), np.array([40.0, 41.0, 42.0]), binary=True)
    >>> e = difference_interval(s, 0.95)
    >>> e.lower, 0.1 < e.upper < 0.2
    (0.0, True)
    """
    tail = (1 - level) / 2
    y = sample.mean
    low, high = mean_limits(sample, range_z(tail, sample.groups))

    def lower(rows: slice) -> FloatArray:
        # Distances to single limits, squared and added, carry the skewness of each mean over.
        error = np.hypot((y - low)[rows, None], (high - y)[None, :])
        return np.asarray(y[rows, None] - y[None, :] - error)

    low1, high1 = mean_limits(sample, one_sided_z(tail))

    def upper(rows: slice) -> FloatArray:
        error = np.hypot((high1 - y)[rows, None], (y - low1)[None, :])
        return np.asarray(y[rows, None] - y[None, :] + error)

    least = _largest(lower, y.size)
    if sample.groups == 2 and not bool(sample.beside.status.any()):
        # one pair alone has a sharper answer
        least = pair_distance(sample, tail)
    return interval(least, _largest(upper, y.size))


@lru_cache(maxsize=64)
def pair_distance(sample: GroupSample, tail: float) -> float:
    """How far apart two groups are at least, from the core's tails of the one beside both.

    From below a distance of δ is ruled out if what was seen, or as much in the other direction,
    would come of it with a chance of at most ``tail``. Some way from zero the other direction no
    longer counts (0.7 standard errors: one in 2,000); nearer, both are given the same share.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([12, 3000]), np.array([3.0, 60.0]), binary=True)
    >>> round(pair_distance(s, 0.025), 2)
    0.03
    """
    core = sample.beside
    # against both together a group is only so far away as the other one's share lets it be
    weight = sample.sums.weight
    rest = float(weight[1] / weight.sum())
    error = float(core.pivot.error[0]) / rest
    possible = (-rest, rest) if sample.binary else (-np.inf, np.inf)

    def least(z: float) -> float:
        low, high = (float(x[0]) / rest for x in core.bounds(z, possible))
        return max(low, -high, 0.0)

    near = least(one_sided_z(tail))
    return least(one_sided_z(tail / 2)) if 0 < near < 0.7 * error else near


def ratio_interval(sample: GroupSample, level: float) -> Interval:
    """Interval for the largest over the smallest group mean, of a metric that is not negative.

    A ratio r is below its limit when the limit of μ_i − r μ_j has the right sign (Fieller), so a
    group whose mean could be zero makes the upper end infinite instead of breaking it.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([200, 200]), np.array([40.0, 100.0]), binary=True)
    >>> e = ratio_interval(s, 0.95)
    >>> 1.5 < e.lower < 2.5 < e.upper < 4
    True
    """
    tail = (1 - level) / 2
    y = sample.mean
    low, high = (np.maximum(x, 0.0) for x in mean_limits(sample, range_z(tail, sample.groups)))
    low1, high1 = (np.maximum(x, 0.0) for x in mean_limits(sample, one_sided_z(tail)))

    def lower(rows: slice) -> FloatArray:
        return _ratio_root(y[rows, None], low[rows, None], y[None, :], high[None, :])

    def upper(rows: slice) -> FloatArray:
        # The upper limit of μ_i/μ_j is one over the lower limit of μ_j/μ_i.
        root = _ratio_root(y[None, :], low1[None, :], y[rows, None], high1[rows, None])
        return np.divide(1.0, root, out=np.full_like(root, np.inf), where=root > 0)

    return interval(_largest(lower, y.size), _largest(upper, y.size), least=1.0)


def max_deviation_interval(sample: GroupSample, level: float) -> Interval:
    """Interval for the largest absolute distance of a group mean from the mean of group means.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([90] * 3), np.array([20.0, 41.0, 70.0]), binary=True)
    >>> e = max_deviation_interval(s, 0.95)
    >>> 0.1 < e.lower < 0.2925 < e.upper < 0.45
    True
    """
    if sample.groups == 2:
        # both lie half their distance from the middle
        both = difference_interval(sample, level)
        return interval(both.raw_lower / 2, both.raw_upper / 2)
    tail = (1 - level) / 2
    gap = deviations(sample.mean)
    below, above = _deviation_errors(sample, sidak_z(tail, sample.groups))
    low = np.maximum(gap - below, -gap - above).max()
    below, above = _deviation_errors(sample, one_sided_z(tail))
    high = np.maximum(gap + above, -gap + below).max()
    return interval(float(low), float(high))


def _deviation_errors(sample: GroupSample, z: float) -> tuple[FloatArray, FloatArray]:
    """How far each deviation may lie below and above what was seen."""
    low, high = mean_limits(sample, z)
    down, up = (sample.mean - low) ** 2, (high - sample.mean) ** 2
    share = 1 / sample.groups
    # Y_k − Ȳ puts 1 − 1/K on its own mean and −1/K on each other, whose opposite limit counts.
    own = (1 - share) ** 2
    below = np.sqrt(own * down + share**2 * _others(up))
    above = np.sqrt(own * up + share**2 * _others(down))
    return below, above


def _others(x: FloatArray) -> FloatArray:
    """The sum of all but each; infinite where any of the others is."""
    infinite = np.isinf(x)
    finite = np.where(infinite, 0.0, x)
    return np.where(infinite.sum() - infinite > 0, np.inf, finite.sum() - finite)


def _ratio_root(y: FloatArray, low: FloatArray, other: FloatArray, high: FloatArray) -> FloatArray:
    """Smallest r with (y − r·other)² = (y − low)² + r²(high − other)²."""
    square = high * (2 * other - high)
    constant = low * (2 * y - low)
    cross = y * other
    # Constant over the larger sum is the smaller root, without cancellation and also if square ≤ 0.
    # An endless `high` makes it 0 · ∞ where nothing is known below: then the root is zero.
    with np.errstate(invalid="ignore"):
        bottom = cross + np.sqrt(np.maximum(cross**2 - square * constant, 0.0))
    return np.divide(constant, bottom, out=np.zeros_like(bottom), where=bottom > 0)


def _largest(pairs: _Pairs, count: int) -> float:
    """Largest value over all ordered pairs, a block of rows at a time."""
    blocks = (slice(start, start + _BLOCK) for start in range(0, count, _BLOCK))
    return max(_off_diagonal_max(pairs(rows), rows.start) for rows in blocks)


def _off_diagonal_max(block: FloatArray, start: int) -> float:
    block = block.copy()
    rows = np.arange(block.shape[0])
    block[rows, start + rows] = -np.inf
    return float(block.max())


# --- How far apart a few groups could be: the largest spread within reach of the observed means
#
# Of all group means that the data do not speak against (a joint likelihood region, cut at the
# one-sided critical value of a single number), take those that differ most. This is the upper end
# of the profile-likelihood interval. It finds by itself that a small group may be far out, which
# no path through the observed means would. With many groups it is too wide.

_ROUNDS = 4
_BISECTIONS = 80


def furthest_means(sample: GroupSample, tail: float) -> FloatArray:
    """Group means with the largest variance within the region of one-sided level ``tail``.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([20, 900]), np.array([9.0, 450.0]), binary=True)
    >>> furthest_means(s, 0.025).round(2).tolist()
    [0.23, 0.5]
    """
    z = one_sided_z(tail)
    low, high = mean_limits(sample, z)
    y = sample.mean
    down, up = (y - low) / z, (high - y) / z
    error = (down + up) / 2
    step = np.zeros_like(y)
    for _ in range(_ROUNDS):
        step = _furthest_step(y, error, z)
        # Rates near 0 and 1 reach further one way than the other.
        error = np.where(step < 0, down, up)
    return np.clip(y + step, low, high)


def _furthest_step(y: FloatArray, error: FloatArray, z: float) -> FloatArray:
    """Maximise the variance of y + d over the ellipsoid Σ(d/error)² ≤ z²."""
    count = y.size
    centring = np.eye(count) - 1 / count
    value, vector = np.linalg.eigh(error[:, None] * centring * error)
    pull = vector.T @ (error * (centring @ y))
    top = value[-1]

    def move(multiplier: float) -> FloatArray:
        gap = np.maximum(multiplier - value, 1e-300)
        return np.asarray(np.divide(pull, gap, out=np.zeros_like(pull), where=pull != 0))

    # At the far end every gap is at least |pull|/z, so the step is no longer than z.
    near, far = top * (1 + 1e-9), top + float(np.linalg.norm(pull)) / z
    for _ in range(_BISECTIONS):
        middle = (near + far) / 2
        near, far = (middle, far) if np.linalg.norm(move(middle)) > z else (near, middle)
    found = move(far)
    # Where the observed means say nothing about the loudest direction, it is taken as it is.
    spare = max(z**2 - float(found @ found), 0.0)
    found[-1] += np.copysign(np.sqrt(spare + found[-1] ** 2) - abs(found[-1]), found[-1])
    return np.asarray(error * (vector @ found))


# --- An interval for the mean absolute deviation that holds wherever the groups lie ---
#
# The mean of |estimate| exceeds the mean of |truth| (Jensen), so the plug-in value carries the
# upper end. For the lower end think of splitting each estimate's information into two independent
# halves: the sign comes from one, the size from the other, and size × sign is on average at most
# the truth. Averaging over all splits has the closed form below: it is zero on average where
# nothing differs, and loses nothing where the groups are far apart.


def mean_deviation_interval(sample: GroupSample, level: float) -> Interval:
    """Interval for the mean absolute deviation of the group means.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([80] * 3), np.array([40.0, 41.0, 42.0]), binary=True)
    >>> e = mean_deviation_interval(s, 0.95)
    >>> e.lower, 0.02 < e.upper < 0.2
    (0.0, True)
    """
    if sample.groups == 2:
        return max_deviation_interval(sample, level)
    noise = stable_variance(sample)
    if np.all(noise == 0):
        raise ValueError("the metric does not vary within any group, so nothing bounds its error")
    gap = deviations(sample.mean)
    z = one_sided_z((1 - level) / 2)
    low, high = mean_limits(sample, z)
    # how far each mean may lie on the inner side of what was seen, and on the outer
    inner = np.where(gap > 0, sample.mean - low, high - sample.mean) / z
    outer = np.where(gap > 0, high - sample.mean, sample.mean - low) / z
    inner, outer = (np.where(np.isfinite(x), x**2, noise) for x in (inner, outer))
    inner, outer = np.maximum(inner, noise), np.maximum(outer, noise)
    error = np.sqrt(deviation_variance(inner))
    value, slope = signed_size(gap, error)
    least = value.mean() - z * _standard_error(slope, inner)
    # E|Y_k − Ȳ| ≥ |μ_k − μ̄|, by Jensen (Section 4 of Lum, Zhang and Bower): biased, but upward.
    most = np.abs(gap).mean() + z * _sign_error(gap, outer)
    # a small group may lie on the other side, and further out than the slope there says
    moved = np.abs(deviations(single_moves(sample, z))).mean(axis=-1).max()
    return interval(float(least), float(max(most, moved)))


def single_moves(sample: GroupSample, z: float) -> FloatArray:
    """The observed means with one of them moved to its limit, up or down, ``(2 K, K)``."""
    low, high = mean_limits(sample, z)
    number = sample.groups
    out = np.tile(sample.mean, (2 * number, 1))
    each = np.arange(number)
    out[each, each] = np.where(np.isfinite(high), high, sample.mean)
    out[number + each, each] = np.where(np.isfinite(low), low, sample.mean)
    return out


def signed_size(gap: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Average of size × sign over all splits of a normal estimate into two halves, and its slope.

    With estimate d and error s it is d(2Φ(d/s) − 1) − 2sφ(d/s); its mean is
    δ(2Φ(δ/(s√2)) − 1), never above |δ|.

    Examples
    --------
    >>> import numpy as np
    >>> signed_size(np.array([5.0]), np.array([1.0]))[0].round(3).tolist()
    [5.0]
    """
    x = gap / error
    sign = 2 * ndtr(x) - 1
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return gap * sign - 2 * error * density, sign + 4 * x * density


def deviation_variance(noise: FloatArray) -> FloatArray:
    """Sampling variance of each group's deviation from the mean of the group means."""
    count = noise.shape[-1]
    # σ_k²(1 − 1/K)² from the group itself and σ_j²/K² from each other one.
    return np.asarray(noise * (1 - 2 / count) + noise.mean() / count)


def _sign_error(gap: FloatArray, noise: FloatArray) -> float:
    sign = np.sign(gap)
    # A group exactly at the mean has no sign, but its error counts in full all the same.
    weight = np.where(sign == 0, 1.0, sign - sign.mean()) / sign.size
    return float(np.sqrt(np.sum(weight**2 * noise)))


def _standard_error(slope: FloatArray, noise: FloatArray) -> float:
    """Error of a mean over groups; squared slopes bound the variance from above (Poincaré)."""
    weight = (slope - slope.mean()) / slope.size
    return float(np.sqrt(np.sum(weight**2 * noise)))
