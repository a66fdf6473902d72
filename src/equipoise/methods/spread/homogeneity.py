"""Tests of "all groups have the same mean"."""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.spread.draws import null_draws
from equipoise.methods.spread.inversion import null_variance
from equipoise.methods.spread.meta_analysis import cochran_q, stable_variance
from equipoise.methods.spread.sample import GroupSample


@dataclass(frozen=True, slots=True, kw_only=True)
class HomogeneityTest:
    """A test of "no difference between the groups".

    Attributes
    ----------
    statistic
        Size of the differences relative to sampling error.
    df
        Degrees of freedom of the chi-square limit, or None for a Monte-Carlo test.
    p
        p-value.
    """

    statistic: float
    df: int | None
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


def monte_carlo_test(
    sample: GroupSample, *, resamples: int, rng: np.random.Generator
) -> HomogeneityTest:
    """Compare the between-group sum of squares with data drawn under the null.

    The statistic divides by the average within-group variance (Brown and Forsythe), so no single
    group can make it infinite; the p-value is (1 + exceedances)/(1 + draws).

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([9, 50]), np.array([9.0, 10.0]), binary=True)
    >>> monte_carlo_test(s, resamples=999, rng=np.random.default_rng(1)).p < 0.01
    True
    """
    _refuse_frozen(sample)
    observed = float(_brown_forsythe(sample.mean, sample.spread, sample.size, sample.binary))
    centre = np.full(sample.groups, sample.overall)
    draws = null_draws(sample, centre, resamples, rng)
    null = _brown_forsythe(draws.mean, draws.spread, sample.size, sample.binary)
    hits = np.sum(null >= observed * (1 - 1e-12))
    return HomogeneityTest(statistic=observed, df=None, p=float((1 + hits) / (resamples + 1)))


def _brown_forsythe(
    mean: FloatArray, spread: FloatArray, size: IntArray, binary: bool
) -> FloatArray:
    centre = (mean * size).sum(axis=-1, keepdims=True) / size.sum()
    between = (size * (mean - centre) ** 2).sum(axis=-1)
    # The mean of the numerator if all groups are equal: Σ (1 − n_k/n) σ_k², for rates (K − 1) pq.
    if binary:
        within = (centre * (1 - centre))[..., 0] * (size.size - 1)
    else:
        within = ((1 - size / size.sum()) * spread * size / (size - 1)).sum(axis=-1)
    ratio = np.divide(between, within, out=np.zeros_like(between), where=within > 0)
    return np.asarray(ratio)


def _refuse_frozen(sample: GroupSample) -> None:
    degenerate = sample.constant if sample.binary else sample.frozen
    if degenerate:
        raise ValueError("the metric does not vary within any group, so no test is possible")
