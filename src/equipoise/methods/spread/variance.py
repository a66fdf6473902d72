"""The between-group variance: plain, corrected, and corrected twice inside the bootstrap."""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.spread.draws import Draws
from equipoise.methods.spread.sample import GroupSample


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence interval for a quantity that has a smallest possible value.

    Attributes
    ----------
    lower
        Lower end, not below the smallest possible value.
    upper
        Upper end, not below the smallest possible value; may be infinite.
    raw_lower
        Lower end before it was cut off.
    raw_upper
        Upper end before it was cut off.
    """

    lower: float
    upper: float
    raw_lower: float
    raw_upper: float


def interval(lower: float, upper: float, *, least: float = 0.0) -> Interval:
    """Cut an interval off at the least possible value and keep what was there before."""
    return Interval(
        lower=max(float(lower), least),
        upper=max(float(upper), least),
        raw_lower=float(lower),
        raw_upper=float(upper),
    )


def single_factor(size: IntArray, *, unbiased: bool) -> FloatArray:
    """Turn the rows' variance (divisor n) into the sampling variance of a group mean.

    The plug-in form 1/n is a little small; 1/(n − 1) is exactly unbiased.
    """
    return np.asarray(1.0 / (size - 1 if unbiased else size))


def double_factor(size: IntArray, *, unbiased: bool, drawn: FloatArray | None = None) -> FloatArray:
    """Turn a resample's variance into the sampling variance of a resampled mean.

    A resampled mean errs twice, once in the data and once in the resample: with n rows drawn from
    n rows the total is σ²(2/n − 1/n²). ``drawn`` is given where resampled sizes differ from n.

    Examples
    --------
    >>> import numpy as np
    >>> double_factor(np.array([2]), unbiased=False).tolist()
    [0.75]
    """
    n = np.asarray(size, dtype=np.float64)
    m = n if drawn is None else drawn
    # Section 5.3 of Lum, Zhang and Bower: σ²* = 2Y(1 − Y)/n − Y(1 − Y)/n², here with m rows drawn
    # from n. A resample's own variance, divisor m, is σ²(1 − 1/n)(1 − 1/m) on average, which they
    # plug in as it is.
    total = 1 / n + (1 - 1 / n) / m
    return np.asarray(total / ((1 - 1 / n) * (1 - 1 / m)) if unbiased else total)


def corrected_variance(mean: FloatArray, spread: FloatArray, factor: FloatArray) -> FloatArray:
    """Variance of the group means less the part that sampling error explains; may be negative.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0.2, 0.6])
    >>> f = single_factor(np.array([10, 10]), unbiased=False)
    >>> round(float(corrected_variance(y, y * (1 - y), f)), 6)
    0.06
    """
    # (2) of Lum, Zhang and Bower, before the truncation at zero, which would bias it once more.
    return np.asarray(mean.var(axis=-1, ddof=1) - (spread * factor).mean(axis=-1))


def sample_variance(sample: GroupSample, *, unbiased: bool = True) -> float:
    """Return the corrected variance of a sample, before any cutting at zero."""
    factor = single_factor(sample.size, unbiased=unbiased)
    return float(corrected_variance(sample.mean, sample.spread, factor))


def double_corrected(draws: Draws, size: IntArray, *, unbiased: bool = False) -> FloatArray:
    """Return the double-corrected variance of every resample."""
    return corrected_variance(draws.mean, draws.spread, double_factor(size, unbiased=unbiased))


def percentile_interval(values: FloatArray, level: float) -> Interval:
    """Take the central ``level`` of resampled values, cut off at zero.

    Examples
    --------
    >>> import numpy as np
    >>> e = percentile_interval(np.linspace(-1.0, 3.0, 401), 0.5)
    >>> round(e.lower, 6), round(e.upper, 6), round(e.raw_lower, 6)
    (0.0, 2.0, 0.0)
    """
    tail = (1 - level) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return interval(low, high)


def centred_interval(estimate: float, values: FloatArray, level: float) -> Interval:
    """Put the resampled deviations from their own mean around a point estimate."""
    tail = (1 - level) / 2
    # Section 5.2 of Lum, Zhang and Bower leaves this to future work: the spread of double-corrected
    # values around the single-corrected estimate.
    low, high = np.quantile(values - values.mean(), [tail, 1 - tail])
    return interval(estimate + low, estimate + high)
