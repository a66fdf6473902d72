"""Resampled group means: binomial draws, normal draws from moments, or drawn rows.

Every function splits the resamples into chunks of fixed length and gives each chunk a generator of
its own, so the answer depends neither on memory blocks nor on threads.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.spread.sample import GroupSample

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
