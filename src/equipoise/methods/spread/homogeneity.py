"""The chi-square test of "all groups have the same mean"."""

from dataclasses import dataclass

from scipy.special import chdtrc

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
