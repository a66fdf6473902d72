"""Resampled group means: binomial draws, normal draws from moments, or drawn rows.

Every function splits the resamples into chunks of fixed length and gives each chunk a generator of
its own, so the answer depends neither on memory blocks nor on threads.

The between-group variance: plain, corrected, and corrected twice inside the bootstrap.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import chdtri

from equipoise.methods.numerics import FloatArray, IntArray, over
from equipoise.methods.spread.sample import GroupSample
from equipoise.methods.targets import Moments

# --- Resampled group means: binomial draws, normal draws from moments, or drawn rows ---

CHUNK = 512
_ROWS_AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Resampled groups; the last axis runs over the groups.

    Attributes
    ----------
    mean
        Resampled group means, shape (resamples, groups).
    spread
        Resampled variance of the rows within a group, divisor n.
    """

    mean: FloatArray
    spread: FloatArray


def bootstrap_draws(sample: GroupSample, resamples: int, rng: np.random.Generator) -> Draws:
    """Resample each group's rows within the group, from its sums alone.

    A 0/1 metric is one binomial draw per group, which is what resampling the rows would give. A
    real metric uses the normal form: a normal mean and an independent chi-square variance.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([50, 60]), np.array([40.0, 30.0]), binary=True)
    >>> bootstrap_draws(s, 300, np.random.default_rng(1)).mean.shape
    (300, 2)
    """
    if sample.binary:
        return binomial_draws(sample.size, sample.mean, resamples, rng)
    return moment_draws(sample, sample.mean, sample.spread, resamples, rng)


def null_draws(
    sample: GroupSample, centre: FloatArray, resamples: int, rng: np.random.Generator
) -> Draws:
    """Draw fresh data of the same sizes from groups whose true means are ``centre``."""
    if sample.binary:
        return binomial_draws(sample.size, centre, resamples, rng)
    # Fresh data vary as the population does, a resample as the rows do: n/(n − 1) between them.
    unbiased = sample.spread * sample.size / (sample.size - 1)
    return moment_draws(sample, centre, unbiased, resamples, rng)


def binomial_draws(
    size: IntArray, rate: FloatArray, resamples: int, rng: np.random.Generator
) -> Draws:
    """Draw group means of a 0/1 metric."""

    def chunk(count: int, stream: np.random.Generator) -> tuple[FloatArray, ...]:
        # Resamples run along the fast axis so that the sampler's set-up is paid once per group.
        shape = (size.size, count)
        return (stream.binomial(size[:, None], rate[:, None], size=shape) / size[:, None],)

    (mean,) = in_chunks(chunk, resamples, rng)
    return Draws(mean=mean, spread=mean * (1 - mean))


def moment_draws(
    sample: GroupSample,
    centre: FloatArray,
    spread: FloatArray,
    resamples: int,
    rng: np.random.Generator,
) -> Draws:
    """Draw group means and variances of a real metric in their normal form, skewness included."""
    size = sample.size
    scale = np.sqrt(spread / size)[:, None]
    # beyond one, means of so few rows have no shape that three moments describe
    skew = np.clip(sample.skewness, -1.0, 1.0)[:, None]

    def chunk(count: int, stream: np.random.Generator) -> tuple[FloatArray, ...]:
        shape = (size.size, count)
        z = stream.standard_normal(shape)
        # Cornish and Fisher: the quantiles of a mean whose skewness is small
        mean = centre[:, None] + scale * (z + skew * (z**2 - 1) / 6)
        # For normal rows n times the variance (divisor n) over σ² is χ² with n − 1 degrees of
        # freedom, and independent of the mean.
        chi = 2 * stream.standard_gamma((size[:, None] - 1) / 2, size=shape)
        return mean, (spread / size)[:, None] * chi

    mean, variance = in_chunks(chunk, resamples, rng)
    return Draws(mean=mean, spread=variance)


def row_draws(
    values: FloatArray, group: IntArray, groups: int, resamples: int, rng: np.random.Generator
) -> Draws:
    """Resample the rows themselves within each group; for real metrics held in memory.

    Parameters
    ----------
    values
        The metric, one number per eligible row.
    group
        The group of each row, numbered 0 to ``groups`` − 1; every group has rows.
    groups
        Number of groups.
    resamples
        Number of resamples.
    rng
        Source of randomness.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([1.0, 2.0, 5.0, 7.0])
    >>> d = row_draws(rows, np.array([0, 0, 1, 1]), 2, 100, np.random.default_rng(1))
    >>> sorted(set(d.mean[:, 0].tolist()))
    [1.0, 1.5, 2.0]
    """
    order = np.argsort(group, kind="stable")
    stops = np.cumsum(np.bincount(group, minlength=groups))[:-1]
    parts = np.split(values[order], stops)
    if min(part.size for part in parts) == 0:
        raise ValueError("row resampling needs at least one row in every group")

    def chunk(count: int, stream: np.random.Generator) -> tuple[FloatArray, ...]:
        sums = [_resample(part, count, stream) for part in parts]
        mean, second = (np.stack(column) for column in zip(*sums, strict=True))
        return mean, np.maximum(second - mean**2, 0.0)

    mean, spread = in_chunks(chunk, resamples, rng)
    return Draws(mean=mean, spread=spread)


def _resample(
    part: FloatArray, count: int, stream: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    # Resamples are filled one after another from one stream, so the block length is only memory.
    block = max(1, _ROWS_AT_ONCE // part.size)
    means, seconds = [], []
    for start in range(0, count, block):
        shape = (min(block, count - start), part.size)
        drawn = part[stream.integers(0, part.size, size=shape)]
        means.append(drawn.mean(axis=1))
        seconds.append((drawn**2).mean(axis=1))
    return np.concatenate(means), np.concatenate(seconds)


def in_chunks(
    chunk: Callable[[int, np.random.Generator], tuple[FloatArray, ...]],
    resamples: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, ...]:
    """Run ``chunk`` for every fixed-length chunk of resamples and join along the resamples.

    ``chunk(count, stream)`` returns arrays whose last axis runs over its resamples; the joined
    arrays have the resamples first and the groups last.
    """
    starts = range(0, resamples, CHUNK)
    counts = [min(CHUNK, resamples - start) for start in starts]
    streams = rng.spawn(len(counts))
    parts = [chunk(count, stream) for count, stream in zip(counts, streams, strict=True)]
    joined = (np.concatenate(column, axis=-1) for column in zip(*parts, strict=True))
    return tuple(np.moveaxis(array, -1, 0) for array in joined)


# --- How group means of several attributes or models move together, from what single units do ---
#
# A unit is a cluster, or a row where rows are independent. What it does to a mean is its own
# distance from that mean, by its share of the weight; the sum of the products over all units is
# the covariance of the means.


def unit_covariance(
    unit: IntArray, place: IntArray, weight: FloatArray, total: FloatArray, places: int
) -> FloatArray:
    """Covariance of the means at all places, from what independent units add to them.

    A unit that is a large part of its group counts for a little more, as if it had been left out.

    Parameters
    ----------
    unit
        Independent unit of each entry, numbered from 0.
    place
        Mean to which the entry belongs, numbered from 0: a group of one of the sides.
    weight
        Weight of the entry.
    total
        Weighted sum of the metric in the entry.
    places
        Number of means.

    Examples
    --------
    >>> import numpy as np
    >>> rows, value = np.arange(4), np.array([0.0, 1.0, 1.0, 1.0])
    >>> unit_covariance(rows, rows // 2, np.ones(4), value, 2).round(6).tolist()
    [[0.25, 0.0], [0.0, 0.0]]
    """
    w, s = (_added(place, x, places) for x in (weight, total))
    mean = np.nan_to_num(over(s, w))
    shape = (int(unit.max()) + 1 if unit.size else 0, places)
    part = 1 / np.maximum(w[place], 1e-300)
    shares, moves = (
        sparse.csr_array((x, (unit, place)), shape=shape)
        for x in (weight * part, (total - weight * mean[place]) * part)
    )
    # entries of one unit at one place become one; without it the mean is 1/(1 − share) further
    shares.sum_duplicates()
    moves.sum_duplicates()
    moves.data = moves.data / np.maximum(1 - shares.data, 1e-9)
    units = np.bincount(moves.indices, minlength=places)
    # the jackknife: (n − 1)/n times the sum of squares over n units
    factor = np.sqrt(np.maximum(1 - 1 / np.maximum(units, 1), 0.0))
    return np.asarray((moves.T @ moves).toarray() * np.outer(factor, factor))


def cell_covariance(cells: Moments, places: tuple[IntArray, ...], number: int) -> FloatArray:
    """Covariance of the means at all places, from cells of independent rows.

    ``places`` says for every side where each cell belongs, −1 for nowhere.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.targets import plain_moments
    >>> n, s = np.array([4.0, 4.0]), np.array([2.0, 1.0])
    >>> sides = (np.array([0, 1]), np.array([2, 2]))
    >>> cell_covariance(plain_moments(n, s, s, s), sides, 3).round(4).tolist()
    [[0.0625, 0.0, 0.0312], [0.0, 0.0469, 0.0234], [0.0312, 0.0234, 0.0293]]
    """
    centre = np.nan_to_num(over(cells.total2, cells.weight2))
    rest = np.sqrt(np.maximum(cells.square2 - centre * cells.total2, 0.0))
    entries = []
    for place in places:
        there = np.flatnonzero(place >= 0)
        at = place[there]
        weight, total = (_added(at, x[there], number) for x in (cells.weight, cells.total))
        mean, part = np.nan_to_num(over(total, weight)), 1 / np.maximum(weight[at], 1e-300)
        # the rows of a cell move a mean by how far the cell lies from it, and by how they differ
        between = np.sqrt(cells.weight2[there]) * (centre[there] - mean[at])
        entries += [(2 * there, at, between * part), (2 * there + 1, at, rest[there] * part)]
    unit, at, move = (np.concatenate(x) for x in zip(*entries, strict=True))
    moves = sparse.csr_array((move, (unit, at)), shape=(2 * centre.size, number))
    return np.asarray((moves.T @ moves).toarray())


def _added(place: IntArray, x: FloatArray, places: int) -> FloatArray:
    return np.asarray(np.bincount(place, weights=x, minlength=places), dtype=np.float64)


# --- The between-group variance: plain, corrected, and corrected twice inside the bootstrap ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence interval for a quantity that has a smallest possible value.

    Attributes
    ----------
    lower
        Lower end, not below the smallest possible value.
    upper
        Upper end, not below the smallest possible value; may be infinite.
    raw_lower
        Lower end before it was cut off.
    raw_upper
        Upper end before it was cut off.
    """

    lower: float
    upper: float
    raw_lower: float
    raw_upper: float


def interval(lower: float, upper: float, *, least: float = 0.0) -> Interval:
    """Cut an interval off at the least possible value and keep what was there before."""
    return Interval(
        lower=max(float(lower), least),
        upper=max(float(upper), least),
        raw_lower=float(lower),
        raw_upper=float(upper),
    )


def single_factor(size: IntArray, *, unbiased: bool) -> FloatArray:
    """Turn the rows' variance (divisor n) into the sampling variance of a group mean.

    The plug-in form 1/n is a little small; 1/(n − 1) is exactly unbiased.
    """
    return np.asarray(1.0 / (size - 1 if unbiased else size))


def double_factor(size: IntArray, *, unbiased: bool, drawn: FloatArray | None = None) -> FloatArray:
    """Turn a resample's variance into the sampling variance of a resampled mean.

    A resampled mean errs twice, once in the data and once in the resample: with n rows drawn from
    n rows the total is σ²(2/n − 1/n²). ``drawn`` is given where resampled sizes differ from n.

    Examples
    --------
    >>> import numpy as np
    >>> double_factor(np.array([2]), unbiased=False).tolist()
    [0.75]
    """
    n = np.asarray(size, dtype=np.float64)
    m = n if drawn is None else drawn
    # Section 5.3 of Lum, Zhang and Bower: σ²* = 2Y(1 − Y)/n − Y(1 − Y)/n², here with m rows drawn
    # from n. A resample's own variance, divisor m, is σ²(1 − 1/n)(1 − 1/m) on average, which they
    # plug in as it is.
    total = 1 / n + (1 - 1 / n) / m
    return np.asarray(total / ((1 - 1 / n) * (1 - 1 / m)) if unbiased else total)


def corrected_variance(mean: FloatArray, spread: FloatArray, factor: FloatArray) -> FloatArray:
    """Variance of the group means less the part that sampling error explains; may be negative.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0.2, 0.6])
    >>> f = single_factor(np.array([10, 10]), unbiased=False)
    >>> round(float(corrected_variance(y, y * (1 - y), f)), 6)
    0.06
    """
    # (2) of Lum, Zhang and Bower, before the truncation at zero, which would bias it once more.
    return np.asarray(mean.var(axis=-1, ddof=1) - (spread * factor).mean(axis=-1))


def sample_variance(sample: GroupSample, *, unbiased: bool = True) -> float:
    """Return the corrected variance of a sample, before any cutting at zero."""
    factor = single_factor(sample.size, unbiased=unbiased)
    return float(corrected_variance(sample.mean, sample.spread, factor))


def double_corrected(draws: Draws, size: IntArray, *, unbiased: bool = False) -> FloatArray:
    """Return the double-corrected variance of every resample."""
    return corrected_variance(draws.mean, draws.spread, double_factor(size, unbiased=unbiased))


def percentile_interval(values: FloatArray, level: float) -> Interval:
    """Take the central ``level`` of resampled values, cut off at zero.

    Examples
    --------
    >>> import numpy as np
    >>> e = percentile_interval(np.linspace(-1.0, 3.0, 401), 0.5)
    >>> round(e.lower, 6), round(e.upper, 6), round(e.raw_lower, 6)
    (0.0, 2.0, 0.0)
    """
    tail = (1 - level) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return interval(low, high)


def centred_interval(estimate: float, values: FloatArray, level: float) -> Interval:
    """Put the resampled deviations from their own mean around a point estimate."""
    tail = (1 - level) / 2
    # Section 5.2 of Lum, Zhang and Bower leaves this to future work: the spread of double-corrected
    # values around the single-corrected estimate.
    low, high = np.quantile(values - values.mean(), [tail, 1 - tail])
    return interval(estimate + low, estimate + high)


# --- Between-group variance as meta-analysis estimates it, for groups drawn from a
# superpopulation ---

_STEPS = 200


def stable_variance(sample: GroupSample) -> FloatArray:
    """Sampling variance of each group mean, never zero unless nothing varies anywhere.

    A 0/1 metric uses the rate (S + ½)/(n + 1). A real metric whose rows are all alike in one group
    borrows the pooled variance there.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([4, 4]), np.array([0.0, 2.0]), binary=True)
    >>> stable_variance(s).round(4).tolist()
    [0.0225, 0.0625]
    """
    n = sample.size
    if sample.binary:
        rate = (sample.mean * n + 0.5) / (n + 1)
        return np.asarray(rate * (1 - rate) / n)
    pooled = (sample.spread * n).sum() / (n - 1).sum()
    rows = np.where(sample.spread > 0, sample.spread * n / (n - 1), pooled)
    return np.asarray(rows / n)


def cochran_q(mean: FloatArray, variance: FloatArray, between: float) -> float:
    """Weighted sum of squares around the weighted mean, weights 1/(variance + between).

    Examples
    --------
    >>> import numpy as np
    >>> cochran_q(np.array([0.0, 2.0]), np.array([1.0, 1.0]), 0.0)
    2.0
    """
    weight = 1 / (variance + between)
    centre = np.average(mean, weights=weight)
    return float(np.sum(weight * (mean - centre) ** 2))


def dersimonian_laird(sample: GroupSample) -> float:
    """Moment estimate of the between-group variance; not below zero.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([100, 100]), np.array([20.0, 60.0]), binary=True)
    >>> round(dersimonian_laird(s), 3)
    0.078
    """
    noise = _noise(sample)
    weight = 1 / noise
    # E Q = K − 1 + τ² (Σw − Σw²/Σw), solved for τ²
    scale = weight.sum() - (weight**2).sum() / weight.sum()
    q = cochran_q(sample.mean, noise, 0.0)
    return max(0.0, (q - (sample.groups - 1)) / float(scale))


def paule_mandel(sample: GroupSample) -> float:
    """Return the between-group variance at which Cochran's Q equals its expectation K − 1."""
    return _q_root(sample.mean, _noise(sample), sample.groups - 1.0)


def restricted_likelihood(sample: GroupSample) -> float:
    """REML estimate of the between-group variance; not below zero."""
    noise = _noise(sample)
    between = paule_mandel(sample)
    for _ in range(_STEPS):
        following = _reml_step(sample.mean, noise, between)
        if abs(following - between) <= 1e-12 * (between + float(noise.mean())):
            return following
        between = following
    return between


def q_profile_interval(sample: GroupSample, level: float) -> Interval:
    """All between-group variances at which the generalised Cochran Q is not extreme.

    The interval answers for a population from which the groups were drawn at random, not for the
    groups audited alone; with many groups it is therefore much wider.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([50] * 6), np.array([9.0, 40, 22, 31, 17, 45]), binary=True)
    >>> e = q_profile_interval(s, 0.95)
    >>> 0 < e.lower < paule_mandel(s) < e.upper
    True
    """
    noise = _noise(sample)
    tail = (1 - level) / 2
    df = sample.groups - 1
    # Q falls as the variance between grows, so the upper point of χ² gives the lower end.
    low = _q_root(sample.mean, noise, float(chdtri(df, tail)))
    high = _q_root(sample.mean, noise, float(chdtri(df, 1 - tail)))
    return interval(low, high)


def weighing_variance(sample: GroupSample) -> FloatArray:
    """Sampling variances fit to weigh with: for rates, as far from the pooled one as is warranted.

    A rate's own variance is smallest where the rate happens to be extreme, which would give chance
    extremes the largest weights and find a spread where there is none.
    """
    own = stable_variance(sample)
    between = float(np.var(sample.mean, ddof=1)) - float((sample.spread / (sample.size - 1)).mean())
    if not sample.binary:
        return own
    pooled = sample.overall
    noise = pooled * (1 - pooled) / sample.size
    trust = max(between, 0.0) / (max(between, 0.0) + noise)
    own_rate = (sample.mean * sample.size + 0.5) / (sample.size + 1)
    rate = pooled + trust * (own_rate - pooled)
    return np.asarray(rate * (1 - rate) / sample.size)


def _noise(sample: GroupSample) -> FloatArray:
    if sample.constant:
        raise ValueError("the metric has the same value in every row, so there are no weights")
    noise = weighing_variance(sample)
    if np.any(noise <= 0):
        raise ValueError("the metric does not vary within any group, so there are no weights")
    return noise


def _q_root(mean: FloatArray, noise: FloatArray, goal: float) -> float:
    """Solve Q(between) = goal; zero where Q is below the goal already without any."""

    def excess(between: float) -> float:
        return cochran_q(mean, noise, between) - goal

    if excess(0.0) <= 0:
        return 0.0
    # Q(τ²) ≤ Σ(y − ȳ)²/τ², so this end is always on the far side of the root.
    far = float(np.sum((mean - mean.mean()) ** 2)) / goal
    return _bisect(excess, 0.0, far)


def _bisect(excess: Callable[[float], float], near: float, far: float) -> float:
    for _ in range(_STEPS):
        middle = (near + far) / 2
        if middle in (near, far):
            break
        if excess(middle) > 0:
            near = middle
        else:
            far = middle
    return (near + far) / 2


def _reml_step(mean: FloatArray, noise: FloatArray, between: float) -> float:
    weight = 1 / (noise + between)
    centre = np.average(mean, weights=weight)
    square = weight**2
    # The REML equation solved for τ²; 1/Σw gives back what estimating the centre has taken.
    moment = np.sum(square * ((mean - centre) ** 2 - noise)) / square.sum()
    return max(0.0, float(moment + 1 / weight.sum()))
