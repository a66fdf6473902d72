"""Resampled group means: binomial draws, normal draws from moments, or drawn rows.

Every function splits the resamples into chunks of fixed length and gives each chunk a generator of
its own, so the answer depends neither on memory blocks nor on threads.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.spread.sample import GroupSample
from equipoise.methods.targets import Moments, over

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
