"""The recommended intervals, all resting on one body of evidence, so that measures agree.

Whether groups differ is decided once, by `equality_test`. Where it is not shown, every lower end is
what equality would give; where it is, every lower end is above that: at least what follows from how
far apart the highest and the lowest group must be.
"""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.spread.draws import Draws
from equipoise.methods.spread.equality import Equality, equality_test
from equipoise.methods.spread.extremes import (
    difference_interval,
    max_deviation_interval,
    ratio_interval,
)
from equipoise.methods.spread.furthest import furthest_means
from equipoise.methods.spread.inversion import Inversion, invert_path
from equipoise.methods.spread.limits import mean_limits, one_sided_z
from equipoise.methods.spread.mean_deviation import mean_deviation_interval
from equipoise.methods.spread.metrics import Meta, meta_metric, no_spread
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

_FEW = 20
"""Up to this many groups the furthest means within reach bound the spread as well."""
_EXTREMES = {
    Meta.DIFFERENCE: difference_interval,
    Meta.RATIO: ratio_interval,
    Meta.MAX_DEVIATION: max_deviation_interval,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What all measures of one sample share.

    Attributes
    ----------
    equality
        The test of "all groups have the same mean".
    apart
        How far apart the highest and the lowest group are at least; 0 unless equality is rejected.
    path
        The spreads that could have produced what was seen; None where no group varies.
    furthest
        With few groups, those means within reach that differ most.
    unbounded
        Whether some group is too skewed to have limits, so that no upper end holds.
    level
        Confidence level of each interval.
    """

    equality: Equality
    apart: float
    path: Inversion | None
    furthest: FloatArray | None
    unbounded: bool
    level: float

    @property
    def tail(self) -> float:
        """The error on either side."""
        return (1 - self.level) / 2


def weigh(
    sample: GroupSample, *, level: float, resamples: int, rng: np.random.Generator
) -> Evidence:
    """Gather what all measures share.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([80, 90]), np.array([20.0, 70.0]), binary=True)
    >>> found = weigh(s, level=0.95, resamples=500, rng=np.random.default_rng(1))
    >>> found.equality.p < 0.01, 0.3 < found.apart < 0.53
    (True, True)
    """
    first, second = rng.spawn(2)
    tail = (1 - level) / 2
    equality = equality_test(sample, tail=tail, resamples=resamples, rng=first)
    unbounded = not all(np.isfinite(x).all() for x in mean_limits(sample, one_sided_z(tail)))
    apart = equality.apart
    if equality.p <= tail and not unbounded:
        apart = max(apart, difference_interval(sample, level).lower)
    factor = single_factor(sample.size, unbiased=True)

    def statistic(mean: FloatArray, spread: FloatArray) -> FloatArray:
        return corrected_variance(mean, spread, factor)

    path = None
    if not sample.frozen:
        path = invert_path(sample, statistic, tail=tail, resamples=resamples, rng=second)
    few = path is not None and sample.groups <= _FEW and not unbounded
    return Evidence(
        equality=equality,
        apart=apart,
        path=path,
        furthest=furthest_means(sample, tail) if few else None,
        unbounded=unbounded,
        level=level,
    )


def recommended_interval(
    sample: GroupSample, kind: Meta, evidence: Evidence, draws: Draws, *, alpha: float = 2.0
) -> Interval | None:
    """The recommended interval of one measure; None where no group varies and none can be had.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import bootstrap_draws, sample_from_sums
    >>> rng = np.random.default_rng(1)
    >>> s = sample_from_sums(np.array([80, 90]), np.array([20.0, 70.0]), binary=True)
    >>> found = weigh(s, level=0.95, resamples=500, rng=rng)
    >>> e = recommended_interval(s, Meta.VARIANCE, found, bootstrap_draws(s, 500, rng))
    >>> 0 < e.lower < 0.14 < e.upper
    True
    """
    least = no_spread(kind)
    if evidence.unbounded:
        ends = interval(least, np.inf, least=least)
    elif kind in _EXTREMES:
        ends = _EXTREMES[kind](sample, evidence.level)
    elif kind is Meta.MEAN_DEVIATION:
        ends = _mean_deviation(sample, evidence, draws)
    elif evidence.path is None:
        return None
    else:
        ends = _smooth(sample, kind, evidence, draws, alpha)
    if evidence.equality.p > evidence.tail:
        return interval(min(ends.raw_lower, least), ends.raw_upper, least=least)
    implied = float(meta_metric(kind, _least_apart(sample, evidence.apart), alpha=alpha))
    lower = max(ends.raw_lower, implied)
    return interval(lower, max(ends.raw_upper, lower), least=least)


def _least_apart(sample: GroupSample, apart: float) -> FloatArray:
    """Of all group means that are so far apart, those that differ least.

    All but two lie in the middle. They begin at the mean of the group means, which the lowest group
    does not exceed: relative to larger means a distance counts for less.
    """
    means = np.full(sample.groups, float(sample.mean.mean()) + apart / 2)
    means[0], means[-1] = means[0] - apart / 2, means[-1] + apart / 2
    return means


def _mean_deviation(sample: GroupSample, evidence: Evidence, draws: Draws) -> Interval:
    ends = mean_deviation_interval(sample, evidence.level)
    if evidence.path is None:
        return ends
    # a mean of absolute values never exceeds the root of the mean of squares
    spread = _smooth(sample, Meta.VARIANCE, evidence, draws, 2.0)
    most = float(np.sqrt(spread.upper * (1 - 1 / sample.groups)))
    return interval(ends.raw_lower, min(ends.raw_upper, most))


def _smooth(
    sample: GroupSample, kind: Meta, evidence: Evidence, draws: Draws, alpha: float
) -> Interval:
    """The interval of the variance or of the entropy index.

    Its lower end is that of the path, along which fresh data are drawn. Its upper end is the
    largest of three: the far end of the path, the centred deviations of the double-corrected
    resamples, and with few groups the furthest means within reach.
    """
    assert evidence.path is not None
    reached = [evidence.path.lower, evidence.path.upper]
    if evidence.furthest is not None:
        reached.append(evidence.furthest)
    low, *highs = (float(meta_metric(kind, means, alpha=alpha)) for means in reached)
    if kind is Meta.VARIANCE:
        resampled = double_corrected(draws, sample.size, unbiased=True)
        centre = sample_variance(sample)
    else:
        resampled = meta_metric(kind, draws.mean, alpha=alpha)
        centre = 2 * float(meta_metric(kind, sample.mean, alpha=alpha)) - float(resampled.mean())
    with np.errstate(invalid="ignore"):
        centred = centred_interval(centre, resampled, evidence.level)
    # With few groups the first two are the larger, with few large among small the resampled one.
    upper = max(*highs, centred.upper if np.isfinite(centred.upper) else np.inf)
    return interval(low if low > 0 else min(centred.raw_lower, 0.0), upper)
