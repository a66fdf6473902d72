"""The recommended interval for smooth meta-metrics: between-group variance and entropy index."""

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.spread.draws import Draws
from equipoise.methods.spread.furthest import furthest_means
from equipoise.methods.spread.homogeneity import monte_carlo_test
from equipoise.methods.spread.inversion import Statistic, invert_path
from equipoise.methods.spread.metrics import Meta, meta_metric
from equipoise.methods.spread.sample import GroupSample
from equipoise.methods.spread.variance import (
    Interval,
    centred_interval,
    corrected_variance,
    double_corrected,
    interval,
    sample_variance,
    single_factor,
)

#: Up to this many groups the furthest means within reach bound the spread as well.
_FEW = 20


def variance_interval(
    sample: GroupSample, draws: Draws, *, level: float, rng: np.random.Generator
) -> tuple[Interval, float]:
    """Return the recommended interval for the between-group variance and its p-value at zero.

    Two intervals are combined. One inverts a Monte-Carlo test: draws from groups on a path of
    growing spread, beginning with none. The other puts the centred deviations of the
    double-corrected resamples around the unbiased corrected estimate. The upper end is the larger
    of the two. The lower end is the inverted one; where that is zero because tiny groups drown the
    variance in noise, a second test that weighs groups by their size may still admit the centred
    one. So at a true spread of zero the lower end is positive with a chance of about α/2.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import bootstrap_draws, sample_from_sums
    >>> rng = np.random.default_rng(1)
    >>> s = sample_from_sums(np.array([80, 90]), np.array([20.0, 70.0]), binary=True)
    >>> e, p = variance_interval(s, bootstrap_draws(s, 500, rng), level=0.95, rng=rng)
    >>> 0 < e.lower < 0.14 < e.upper, p < 0.01
    (True, True)
    """
    factor = single_factor(sample.size, unbiased=True)

    def statistic(mean: FloatArray, spread: FloatArray) -> FloatArray:
        return corrected_variance(mean, spread, factor)

    resampled = double_corrected(draws, sample.size, unbiased=True)
    centred = centred_interval(sample_variance(sample), resampled, level)
    return _combine(sample, Meta.VARIANCE, statistic, centred, level, 2.0, resampled.size, rng)


def entropy_interval(
    sample: GroupSample,
    estimate: float,
    draws: Draws,
    *,
    level: float,
    alpha: float,
    rng: np.random.Generator,
) -> tuple[Interval, float]:
    """Return the same for the generalized entropy index, around its corrected ``estimate``."""

    def statistic(mean: FloatArray, spread: FloatArray) -> FloatArray:
        return meta_metric(Meta.ENTROPY, mean, alpha=alpha)

    resampled = meta_metric(Meta.ENTROPY, draws.mean, alpha=alpha)
    centred = centred_interval(estimate, resampled, level)
    return _combine(sample, Meta.ENTROPY, statistic, centred, level, alpha, resampled.size, rng)


def _combine(
    sample: GroupSample,
    kind: Meta,
    statistic: Statistic,
    centred: Interval,
    level: float,
    alpha: float,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[Interval, float]:
    first, second = rng.spawn(2)
    tail = (1 - level) / 2
    ends = invert_path(sample, statistic, tail=tail, resamples=resamples, rng=first)
    reached = [ends.lower, ends.upper]
    if sample.groups <= _FEW:
        reached.append(furthest_means(sample, tail))
    low, *highs = (float(meta_metric(kind, means, alpha=alpha)) for means in reached)
    # With few groups the first two are the larger, with few large among small the resampled one.
    upper = max(*highs, centred.upper)
    if ends.rejected:
        return interval(low, upper), ends.p_zero
    weighed = monte_carlo_test(sample, resamples=resamples, rng=second)
    if weighed.p <= tail and centred.lower > 0:
        return interval(centred.lower, upper), weighed.p
    return interval(min(centred.raw_lower, 0.0), upper), ends.p_zero
