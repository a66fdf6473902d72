"""Everything about the between-group variance in one result."""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from equipoise.methods.spread.equality import null_variance
from equipoise.methods.spread.recommended import (
    SpreadEvidence,
    check_level,
    recommended_interval,
    weigh,
    within,
)
from equipoise.methods.spread.sample import GroupSample, Meta, meta_metric
from equipoise.methods.spread.variance import (
    Draws,
    Interval,
    bootstrap_draws,
    centred_interval,
    cochran_q,
    corrected_variance,
    dersimonian_laird,
    double_corrected,
    interval,
    paule_mandel,
    percentile_interval,
    q_profile_interval,
    restricted_likelihood,
    sample_variance,
    single_factor,
    stable_variance,
)

# --- The chi-square test of "all groups have the same mean" ---


@dataclass(frozen=True, slots=True, kw_only=True)
class HomogeneityTest:
    """A test of "no difference between the groups".

    Attributes
    ----------
    statistic
        Size of the differences relative to sampling error.
    df
        Degrees of freedom of the chi-square limit.
    p
        p-value.
    """

    statistic: float
    df: int
    p: float


def chi_square_test(sample: GroupSample) -> HomogeneityTest:
    """Cochran's Q against its chi-square limit.

    For a 0/1 metric the sampling variance is the one under the null, which makes Q the Pearson
    statistic and keeps groups of all zeros or ones from weighing infinitely much.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([100, 100]), np.array([40.0, 60.0]), binary=True)
    >>> t = chi_square_test(s)
    >>> round(t.statistic, 6), t.df, round(t.p, 6)
    (8.0, 1, 0.004678)
    """
    _refuse_frozen(sample)
    noise = null_variance(sample) if sample.binary else stable_variance(sample)
    q = float(cochran_q(sample.mean, noise, 0.0))
    df = sample.groups - 1
    return HomogeneityTest(statistic=q, df=df, p=float(chdtrc(df, q)))


def _refuse_frozen(sample: GroupSample) -> None:
    degenerate = sample.constant if sample.binary else sample.frozen
    if degenerate:
        raise ValueError("the metric does not vary within any group, so no test is possible")


# --- Everything about the between-group variance in one result ---


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceReport:
    """The between-group variance, estimated and bounded in every way offered.

    Attributes
    ----------
    plugin
        Variance of the observed group means.
    published
        Corrected variance with plug-in sampling variances, not cut off.
    corrected_raw
        Corrected variance with unbiased sampling variances, not cut off.
    corrected
        The same, cut off at zero and at the ends of its interval.
    bias
        Estimated upward bias of ``plugin``.
    interval
        The recommended interval.
    p_zero
        p-value of "no spread" on which its lower end rests.
    double_corrected
        Percentile interval of the double-corrected bootstrap, as published.
    single_corrected
        Percentile interval of the corrected variance, as published; too high.
    uncorrected
        Percentile interval of the plain variance; far too high.
    centred
        Corrected estimate plus centred double-corrected deviations, both ends.
    q_profile
        Interval for a population of groups, by the generalised Cochran Q.
    dersimonian_laird
        Moment estimate of meta-analysis.
    paule_mandel
        Estimate at which Cochran's Q equals its expectation.
    restricted_likelihood
        REML estimate.
    chi_square
        Test of homogeneity by its chi-square limit.
    level
        Confidence level of all intervals.
    resamples
        Number of resamples.
    """

    plugin: float
    published: float
    corrected_raw: float
    corrected: float
    bias: float
    interval: Interval
    p_zero: float
    double_corrected: Interval
    single_corrected: Interval
    uncorrected: Interval
    centred: Interval
    q_profile: Interval
    dersimonian_laird: float
    paule_mandel: float
    restricted_likelihood: float
    chi_square: HomogeneityTest
    level: float
    resamples: int

    @property
    def sd(self) -> float:
        """The corrected spread as a standard deviation, in the metric's own unit."""
        return float(np.sqrt(self.corrected))

    @property
    def sd_interval(self) -> Interval:
        """The recommended interval as standard deviations, in the metric's own unit."""
        return on_sd_scale(self.interval)


def on_sd_scale(ends: Interval) -> Interval:
    """Turn an interval for a variance into one for the standard deviation.

    Ends below zero keep their sign: the raw end of −0.04 reads −0.2.

    Examples
    --------
    >>> from equipoise.methods.spread.variance import interval
    >>> on_sd_scale(interval(-0.04, 0.09))
    Interval(lower=0.0, upper=0.3, raw_lower=-0.2, raw_upper=0.3)
    """
    low, high = (float(np.copysign(np.sqrt(abs(x)), x)) for x in (ends.raw_lower, ends.raw_upper))
    return interval(low, high)


def report_variance(
    sample: GroupSample,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = 1000,
    draws: Draws | None = None,
    evidence: SpreadEvidence | None = None,
) -> VarianceReport:
    """Estimate the variance between the true group means in every way offered.

    Parameters
    ----------
    sample
        The usable groups.
    rng
        Source of randomness.
    level
        Confidence level.
    resamples
        Number of resamples.
    draws
        Resampled groups to use instead of drawing them here, as from ``row_draws``.
    evidence
        What `weigh` found, if other measures are asked for too.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([50] * 4), np.array([20.0, 25, 30, 22]), binary=True)
    >>> r = report_variance(s, rng=np.random.default_rng(7))
    >>> r.plugin > r.corrected, r.interval.lower, r.interval.upper > 0
    (True, 0.0, True)
    """
    check_level(level)
    if sample.frozen:
        raise ValueError(
            "the metric does not vary within any group, so its sampling error is unknown"
        )
    first, second = rng.spawn(2)
    drawn = bootstrap_draws(sample, resamples, first) if draws is None else draws
    plugin = float(meta_metric(Meta.VARIANCE, sample.mean))
    raw = sample_variance(sample)
    if evidence is None:
        evidence = weigh(sample, level=level, resamples=drawn.mean.shape[0], rng=second)
    ends = recommended_interval(sample, Meta.VARIANCE, evidence, drawn)
    assert ends is not None
    twice = double_corrected(drawn, sample.size, unbiased=True)
    return VarianceReport(
        plugin=plugin,
        published=sample_variance(sample, unbiased=False),
        corrected_raw=raw,
        corrected=within(raw, ends, 0.0) or 0.0,
        bias=plugin - raw,
        interval=ends,
        p_zero=evidence.equality.p,
        centred=centred_interval(raw, twice, level),
        **published_intervals(sample, drawn, level),
        q_profile=q_profile_interval(sample, level),
        dersimonian_laird=dersimonian_laird(sample),
        paule_mandel=paule_mandel(sample),
        restricted_likelihood=restricted_likelihood(sample),
        chi_square=chi_square_test(sample),
        level=level,
        resamples=drawn.mean.shape[0],
    )


def published_intervals(sample: GroupSample, draws: Draws, level: float) -> dict[str, Interval]:
    """Percentile intervals of the plain, corrected and double-corrected variance, as published.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import bootstrap_draws, sample_from_sums
    >>> s = sample_from_sums(np.array([20] * 4), np.array([8.0, 9, 10, 9]), binary=True)
    >>> d = bootstrap_draws(s, 500, np.random.default_rng(7))
    >>> e = published_intervals(s, d, 0.95)
    >>> e["uncorrected"].lower > e["double_corrected"].lower
    True
    """
    factor = single_factor(sample.size, unbiased=False)
    values = {
        "uncorrected": meta_metric(Meta.VARIANCE, draws.mean),
        "single_corrected": corrected_variance(draws.mean, draws.spread, factor),
        "double_corrected": double_corrected(draws, sample.size, unbiased=False),
    }
    return {name: percentile_interval(value, level) for name, value in values.items()}
