"""Tests of "all groups are equal" aimed at extremes and at mean deviations.

The limits behind these intervals are approximate in groups of a few rows. So a lower end leaves its
value under equality only where simulated data from equal groups seldom look as unequal.
"""

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.spread.draws import null_draws
from equipoise.methods.spread.metrics import Meta, deviations, meta_metric
from equipoise.methods.spread.sample import GroupSample
from equipoise.methods.spread.variance import Interval, interval


def gated(ends: Interval, p: float, *, tail: float, least: float) -> Interval:
    """Put the lower end at ``least`` unless the test rejects at level ``tail``.

    Examples
    --------
    >>> from equipoise.methods.spread.variance import interval
    >>> gated(interval(0.1, 0.4), 0.3, tail=0.025, least=0.0).lower
    0.0
    """
    if p <= tail:
        return ends
    return interval(min(ends.raw_lower, least), ends.raw_upper, least=least)


def equality_test(
    sample: GroupSample, kind: Meta, *, resamples: int, rng: np.random.Generator
) -> float:
    """Monte-Carlo p-value of "all groups have the same mean".

    The statistic is the mean absolute deviation for that meta-metric, and the largest standardised
    deviation from the mean of the group means for the extremes.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([60, 50]), np.array([50.0, 10.0]), binary=True)
    >>> equality_test(s, Meta.DIFFERENCE, resamples=999, rng=np.random.default_rng(1))
    0.001
    """
    draws = null_draws(sample, np.full(sample.groups, sample.overall), resamples, rng)
    observed = float(_statistic(kind, sample, sample.mean, sample.spread))
    null = _statistic(kind, sample, draws.mean, draws.spread)
    # Counts make ties: draws equal to what was observed must count in spite of rounding.
    hits = np.sum(null >= observed * (1 - 1e-9))
    return float((1 + hits) / (resamples + 1))


def _statistic(kind: Meta, sample: GroupSample, mean: FloatArray, spread: FloatArray) -> FloatArray:
    if kind is Meta.MEAN_DEVIATION:
        return meta_metric(kind, mean)
    size = sample.size
    if sample.binary:
        pooled = (mean * size).sum(axis=-1, keepdims=True) / size.sum()
        noise = pooled * (1 - pooled) / size
    else:
        noise = spread / (size - 1)
    share = 1 / sample.groups
    # Var(Y_k − Ȳ) = σ_k²(1 − 2/K) + Σ σ²/K².
    error = noise * (1 - 2 * share) + noise.mean(axis=-1, keepdims=True) * share
    gap = deviations(mean)
    ratio = np.divide(gap**2, error, out=np.zeros_like(gap), where=error > 0)
    return np.asarray(ratio.max(axis=-1))
