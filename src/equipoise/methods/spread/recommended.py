"""The recommended intervals, all resting on one body of evidence, so that measures agree.

Whether groups differ is decided once, by `equality_test`. Where it is not shown, every lower end is
what equality would give; where it is, every lower end is above that: at least what follows from how
far apart the highest and the lowest group must be.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.special import betaincinv, betaln, logsumexp, ndtri

from equipoise.methods.numerics import FloatArray
from equipoise.methods.spread.equality import (
    Equality,
    Inversion,
    difference_interval,
    equality_test,
    furthest_means,
    invert_path,
    max_deviation_interval,
    mean_deviation_interval,
    ratio_interval,
    single_moves,
)
from equipoise.methods.spread.sample import (
    GroupSample,
    Meta,
    mean_limits,
    meta_metric,
    needs_positive,
    no_spread,
    one_sided_z,
)
from equipoise.methods.spread.variance import (
    Draws,
    Interval,
    bootstrap_draws,
    centred_interval,
    corrected_variance,
    double_corrected,
    interval,
    sample_variance,
    single_factor,
    stable_variance,
)

# --- The recommended intervals, all resting on one body of evidence, so that measures agree ---

_BARELY = 1e-3
"""Of the observed range: how far apart groups are that are shown to differ and by no more."""
_FEW = 20
"""Up to this many groups the furthest means within reach bound the spread as well."""
_EXTREMES = {
    Meta.DIFFERENCE: difference_interval,
    Meta.RATIO: ratio_interval,
    Meta.MAX_DEVIATION: max_deviation_interval,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadEvidence:
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
) -> SpreadEvidence:
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
    apart = 0.0
    if equality.p <= tail:
        # that they differ is shown; by how much at least, the pairs' limits or all together say
        apart = max(equality.apart, _BARELY * float(np.ptp(sample.mean)))
        if not unbounded:
            apart = max(apart, difference_interval(sample, level).lower)
    factor = single_factor(sample.size, unbiased=True)

    def statistic(mean: FloatArray, spread: FloatArray) -> FloatArray:
        return corrected_variance(mean, spread, factor)

    path = None
    if not sample.frozen:
        path = invert_path(sample, statistic, tail=tail, resamples=resamples, rng=second)
    few = path is not None and sample.groups <= _FEW and not unbounded
    return SpreadEvidence(
        equality=equality,
        apart=apart,
        path=path,
        furthest=furthest_means(sample, tail) if few else None,
        unbounded=unbounded,
        level=level,
    )


def recommended_interval(
    sample: GroupSample, kind: Meta, evidence: SpreadEvidence, draws: Draws, *, alpha: float = 2.0
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
    elif sample.groups == 2 and kind is Meta.VARIANCE:
        both = difference_interval(sample, evidence.level)
        ends = interval(both.lower**2 / 2, both.upper**2 / 2)
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


def _mean_deviation(sample: GroupSample, evidence: SpreadEvidence, draws: Draws) -> Interval:
    ends = mean_deviation_interval(sample, evidence.level)
    if evidence.path is None or sample.groups == 2:
        return ends
    # a mean of absolute values never exceeds the root of the mean of squares
    spread = _smooth(sample, Meta.VARIANCE, evidence, draws, 2.0)
    most = float(np.sqrt(spread.upper * (1 - 1 / sample.groups)))
    return interval(ends.raw_lower, min(ends.raw_upper, most))


def _smooth(
    sample: GroupSample, kind: Meta, evidence: SpreadEvidence, draws: Draws, alpha: float
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
    # one group alone may be as far out as its limits, whatever its own rows look like
    moves = single_moves(sample, one_sided_z(evidence.tail))
    highs.append(float(np.max(meta_metric(kind, moves, alpha=alpha))))
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


# --- One meta-metric with its bias, its corrected value, and an interval that may reach zero ---


class SpreadOutcome(StrEnum):
    """What could be said."""

    ESTIMATED = "estimated"
    CONSTANT = "the metric has the same value in every row"
    FROZEN = "the metric does not vary within any group, so its sampling error is unknown"
    INFINITE = "a group mean is zero, which makes this summary infinite"
    NO_BIAS = "some resamples make this summary infinite, so its bias cannot be estimated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A meta-metric of the group means.

    Attributes
    ----------
    kind
        Which meta-metric.
    plugin
        Its value at the observed group means; infinite where a zero mean makes it so.
    bias
        Estimated upward bias of ``plugin``; None where it cannot be estimated.
    corrected
        ``plugin`` less its bias, cut off at its value under equality and at the ends of its
        interval; None likewise.
    corrected_raw
        The corrected value before it was cut off; None likewise.
    interval
        Confidence interval for the true value; None where the outcome says why.
    p_zero
        p-value of the test of "all groups equal" on which every measure's lower end rests; None
        where there is no interval.
    level
        Confidence level of the interval.
    resamples
        Resamples used; 0 where nothing was resampled.
    outcome
        What could be said.
    """

    kind: Meta
    plugin: float
    bias: float | None
    corrected: float | None
    corrected_raw: float | None
    interval: Interval | None
    p_zero: float | None
    level: float
    resamples: int
    outcome: SpreadOutcome


def summarize_spread(
    sample: GroupSample,
    kind: Meta,
    *,
    rng: np.random.Generator | None = None,
    level: float = 0.95,
    alpha: float = 2.0,
    resamples: int = 1000,
    draws: Draws | None = None,
    evidence: SpreadEvidence | None = None,
) -> Spread:
    """Summarise the spread of the group means by one meta-metric.

    Parameters
    ----------
    sample
        The usable groups.
    kind
        Which meta-metric.
    rng
        Source of randomness, where ``draws`` or ``evidence`` are not given.
    level
        Confidence level, where ``evidence`` is not given.
    alpha
        Order of the generalized entropy index.
    resamples
        Number of resamples.
    draws
        Resampled groups to use instead of drawing them here, as from ``row_draws``.
    evidence
        What `weigh` found, if several measures are asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import Meta, sample_from_sums
    >>> s = sample_from_sums(np.array([50] * 4), np.array([20.0, 25, 30, 22]), binary=True)
    >>> r = summarize_spread(s, Meta.DIFFERENCE, rng=np.random.default_rng(7))
    >>> r.plugin > r.corrected, r.interval.lower
    (True, 0.0)
    """
    check_level(level)
    if needs_positive(kind) and np.any(sample.mean < 0):
        raise ValueError(f"the {kind} needs group means that are not negative")
    first, second = (np.random.default_rng() if rng is None else rng).spawn(2)
    drawn = bootstrap_draws(sample, resamples, first) if draws is None else draws
    if evidence is None:
        evidence = weigh(sample, level=level, resamples=drawn.mean.shape[0], rng=second)
    plugin = float(meta_metric(kind, sample.mean, alpha=alpha))
    raw = corrected_value(sample, kind, drawn, alpha=alpha)
    ends = recommended_interval(sample, kind, evidence, drawn, alpha=alpha)
    return Spread(
        kind=kind,
        plugin=plugin,
        bias=None if raw is None else plugin - raw,
        corrected=within(raw, ends, no_spread(kind)),
        corrected_raw=raw,
        interval=ends,
        p_zero=None if ends is None else evidence.equality.p,
        level=evidence.level,
        resamples=drawn.mean.shape[0],
        outcome=_outcome(sample, plugin, raw),
    )


def within(raw: float | None, ends: Interval | None, least: float) -> float | None:
    """A corrected value, no smaller than can be and not outside its own interval.

    Where small groups are so noisy that their noise exceeds the whole spread, it would be; that
    large groups differ is shown all the same.

    >>> from equipoise.methods.spread.variance import interval
    >>> within(-0.2, interval(0.1, 0.4), 0.0)
    0.1
    """
    if raw is None:
        return None
    value = max(raw, least)
    return value if ends is None else min(max(value, ends.lower), ends.upper)


def check_level(level: float) -> None:
    """Refuse confidence levels outside (0, 1)."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1; got {level}")


def corrected_value(
    sample: GroupSample, kind: Meta, draws: Draws, *, alpha: float = 2.0
) -> float | None:
    """Remove the part of a meta-metric that sampling error explains.

    Resampling adds the sampling error a second time. On the scale on which a meta-metric grows in
    proportion to the error variance, the value without any error is the observed value less the
    growth from the first error to the second. That scale is the value itself for variance and
    entropy, its square for differences, and the squared logarithm for the ratio. For the variance
    the growth is known in closed form. None where some resamples are infinite.
    """
    if kind is Meta.VARIANCE:
        return sample_variance(sample)
    once = _to_scale(kind, meta_metric(kind, sample.mean, alpha=alpha))
    twice = _to_scale(kind, meta_metric(kind, draws.mean, alpha=alpha))
    if not (np.isfinite(once) and np.all(np.isfinite(twice))):
        return None
    return _from_scale(kind, float(2 * once - twice.mean()))


def _to_scale(kind: Meta, value: FloatArray) -> FloatArray:
    if kind is Meta.RATIO:
        return np.asarray(np.log(value) ** 2)
    return value if kind in (Meta.VARIANCE, Meta.ENTROPY) else np.asarray(value**2)


def _from_scale(kind: Meta, value: float) -> float:
    if kind in (Meta.VARIANCE, Meta.ENTROPY):
        return value
    root = float(np.copysign(np.sqrt(abs(value)), value))
    return float(np.exp(root)) if kind is Meta.RATIO else root


def _outcome(sample: GroupSample, plugin: float, raw: float | None) -> SpreadOutcome:
    if sample.constant:
        return SpreadOutcome.CONSTANT
    if sample.frozen:
        return SpreadOutcome.FROZEN
    if not np.isfinite(plugin):
        return SpreadOutcome.INFINITE
    return SpreadOutcome.NO_BIAS if raw is None else SpreadOutcome.ESTIMATED


# --- Shrunken group estimates: each group borrows strength from all, the small ones most ---
#
# How far the groups truly differ is itself uncertain, and with few groups its estimate is often
# zero. So the shrinkage is averaged over a grid of between-group standard deviations, each
# weighted by how well it explains the data; the intervals then do not collapse when the estimate
# is zero.

_SPREADS = 48
_CENTRES = 21


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunken:
    """Group estimates pulled towards their common mean.

    Attributes
    ----------
    value
        Shrunken estimate per usable group.
    lower
        Lower end of its interval.
    upper
        Upper end of its interval.
    weight
        How much of the estimate is the group's own mean; the rest is the common mean.
    centre
        The common mean.
    sd
        Posterior mean of the between-group standard deviation.
    level
        Level of the intervals: on average over the groups, not for every group.
    """

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    weight: FloatArray
    centre: float
    sd: float
    level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """Hyper-parameter points: between-group sd, common mean and log prior weight, all flat."""

    sd: FloatArray
    centre: FloatArray
    log_weight: FloatArray


def shrink(sample: GroupSample, *, level: float = 0.95) -> Shrunken:
    """Shrink the group means towards each other, as far as the data say.

    0/1 metrics use beta-distributed rates, real metrics normal means; both with a flat prior on the
    common mean and on the between-group standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> n, s = np.array([400, 400, 400, 4]), np.array([200.0, 180, 220, 4])
    >>> out = shrink(sample_from_sums(n, s, binary=True))
    >>> bool(out.value[3] < 0.9), bool(out.weight[3] < out.weight[0])
    (True, True)
    """
    check_level(level)
    noise = stable_variance(sample)
    if np.all(noise == 0):
        raise ValueError("the metric does not vary within any group, so nothing can be shrunk")
    grid = _grid(sample.mean, noise)
    likelihood, mean, variance, weight = (_beta if sample.binary else _normal)(sample, noise, grid)
    share = np.exp(likelihood - logsumexp(likelihood))
    value = share @ mean
    # The variance of a mixture: within the grid points, and between them.
    spread = share @ (variance + mean**2) - value**2
    lower, upper = (_beta_ends if sample.binary else _normal_ends)(value, spread, level)
    return Shrunken(
        value=value,
        lower=lower,
        upper=upper,
        weight=share @ weight,
        centre=float(share @ grid.centre),
        sd=float(share @ grid.sd),
        level=level,
    )


def _grid(mean: FloatArray, noise: FloatArray) -> _Grid:
    """For each sd, points of the common mean within four of its standard errors."""
    far = 4 * (float(np.std(mean, ddof=1)) + float(np.sqrt(noise.mean())))
    # Midpoints: equal weights make the prior flat, and none is zero, where a + b is infinite.
    sd = far * (np.arange(_SPREADS) + 0.5) / _SPREADS
    weight = 1 / (noise + sd[:, None] ** 2)
    error = 1 / np.sqrt(weight.sum(axis=1))
    middle = (weight * mean).sum(axis=1) * error**2
    centre = middle[:, None] + error[:, None] * np.linspace(-4, 4, _CENTRES)
    return _Grid(
        sd=np.repeat(sd, _CENTRES),
        centre=centre.ravel(),
        # Points lie closer together where the error is small; this keeps the prior flat.
        log_weight=np.repeat(np.log(error), _CENTRES),
    )


_Posterior = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def _normal(sample: GroupSample, noise: FloatArray, grid: _Grid) -> _Posterior:
    between, centre = grid.sd[:, None] ** 2, grid.centre[:, None]
    total = between + noise
    fit = -0.5 * ((sample.mean - centre) ** 2 / total + np.log(total)).sum(axis=1)
    weight = between / total
    return fit + grid.log_weight, centre + weight * (sample.mean - centre), weight * noise, weight


def _beta(sample: GroupSample, noise: FloatArray, grid: _Grid) -> _Posterior:
    centre = np.clip(grid.centre, 1e-9, 1 - 1e-9)[:, None]
    inside = (grid.centre > 0) & (grid.centre < 1)
    # A beta with mean m and variance s² has a + b = m(1 − m)/s² − 1, so s² stays below m(1 − m).
    strength = centre * (1 - centre) / grid.sd[:, None] ** 2 - 1
    inside &= strength[:, 0] > 0
    strength = np.maximum(strength, 1e-9)
    a, b = centre * strength, (1 - centre) * strength
    hits = sample.mean * sample.size
    fit = betaln(a + hits, b + sample.size - hits) - betaln(a, b)
    likelihood = np.where(inside, fit.sum(axis=1) + grid.log_weight, -np.inf)
    total = strength + sample.size
    mean = (a + hits) / total
    return likelihood, mean, mean * (1 - mean) / (total + 1), sample.size / total


def _beta_ends(
    value: FloatArray, spread: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Ends of the beta distribution with this mean and variance."""
    strength = np.maximum(value * (1 - value) / spread - 1, 1e-9)
    a, b = value * strength, (1 - value) * strength
    tail = (1 - level) / 2
    ends = (np.asarray(betaincinv(a, b, p), dtype=np.float64) for p in (tail, 1 - tail))
    lower, upper = ends
    return lower, upper


def _normal_ends(
    value: FloatArray, spread: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    half = -ndtri((1 - level) / 2) * np.sqrt(spread)
    return value - half, value + half
