"""One meta-metric with its bias, its corrected value, and an interval that may reach zero."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.spread.draws import Draws, bootstrap_draws
from equipoise.methods.spread.metrics import Meta, meta_metric, needs_positive, no_spread
from equipoise.methods.spread.recommended import Evidence, recommended_interval, weigh
from equipoise.methods.spread.sample import GroupSample
from equipoise.methods.spread.variance import Interval, sample_variance


class Outcome(StrEnum):
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
    outcome: Outcome


def summarize_spread(
    sample: GroupSample,
    kind: Meta,
    *,
    rng: np.random.Generator | None = None,
    level: float = 0.95,
    alpha: float = 2.0,
    resamples: int = 1000,
    draws: Draws | None = None,
    evidence: Evidence | None = None,
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


def _outcome(sample: GroupSample, plugin: float, raw: float | None) -> Outcome:
    if sample.constant:
        return Outcome.CONSTANT
    if sample.frozen:
        return Outcome.FROZEN
    if not np.isfinite(plugin):
        return Outcome.INFINITE
    return Outcome.NO_BIAS if raw is None else Outcome.ESTIMATED
