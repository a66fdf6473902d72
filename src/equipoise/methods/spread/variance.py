"""The between-group variance: plain, corrected, and corrected twice inside the bootstrap."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.spread.draws import Draws
from equipoise.methods.spread.sample import GroupSample

# --- The between-group variance: plain, corrected, and corrected twice inside the bootstrap ---


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


# --- Between-group variance as meta-analysis estimates it, for groups drawn from a
# superpopulation ---

_STEPS = 200


def stable_variance(sample: GroupSample) -> FloatArray:
    """Sampling variance of each group mean, never zero unless nothing varies anywhere.

    A 0/1 metric uses the rate (S + ½)/(n + 1). A real metric whose rows are all alike in one group
    borrows the pooled variance there.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([4, 4]), np.array([0.0, 2.0]), binary=True)
    >>> stable_variance(s).round(4).tolist()
    [0.0225, 0.0625]
    """
    n = sample.size
    if sample.binary:
        rate = (sample.mean * n + 0.5) / (n + 1)
        return np.asarray(rate * (1 - rate) / n)
    pooled = (sample.spread * n).sum() / (n - 1).sum()
    rows = np.where(sample.spread > 0, sample.spread * n / (n - 1), pooled)
    return np.asarray(rows / n)


def cochran_q(mean: FloatArray, variance: FloatArray, between: float) -> float:
    """Weighted sum of squares around the weighted mean, weights 1/(variance + between).

    Examples
    --------
    >>> import numpy as np
    >>> cochran_q(np.array([0.0, 2.0]), np.array([1.0, 1.0]), 0.0)
    2.0
    """
    weight = 1 / (variance + between)
    centre = np.average(mean, weights=weight)
    return float(np.sum(weight * (mean - centre) ** 2))


def dersimonian_laird(sample: GroupSample) -> float:
    """Moment estimate of the between-group variance; not below zero.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([100, 100]), np.array([20.0, 60.0]), binary=True)
    >>> round(dersimonian_laird(s), 3)
    0.078
    """
    noise = _noise(sample)
    weight = 1 / noise
    # E Q = K − 1 + τ² (Σw − Σw²/Σw), solved for τ²
    scale = weight.sum() - (weight**2).sum() / weight.sum()
    q = cochran_q(sample.mean, noise, 0.0)
    return max(0.0, (q - (sample.groups - 1)) / float(scale))


def paule_mandel(sample: GroupSample) -> float:
    """Return the between-group variance at which Cochran's Q equals its expectation K − 1."""
    return _q_root(sample.mean, _noise(sample), sample.groups - 1.0)


def restricted_likelihood(sample: GroupSample) -> float:
    """REML estimate of the between-group variance; not below zero."""
    noise = _noise(sample)
    between = paule_mandel(sample)
    for _ in range(_STEPS):
        following = _reml_step(sample.mean, noise, between)
        if abs(following - between) <= 1e-12 * (between + float(noise.mean())):
            return following
        between = following
    return between


def q_profile_interval(sample: GroupSample, level: float) -> Interval:
    """All between-group variances at which the generalised Cochran Q is not extreme.

    The interval answers for a population from which the groups were drawn at random, not for the
    groups audited alone; with many groups it is therefore much wider.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([50] * 6), np.array([9.0, 40, 22, 31, 17, 45]), binary=True)
    >>> e = q_profile_interval(s, 0.95)
    >>> 0 < e.lower < paule_mandel(s) < e.upper
    True
    """
    noise = _noise(sample)
    tail = (1 - level) / 2
    df = sample.groups - 1
    # Q falls as the variance between grows, so the upper point of χ² gives the lower end.
    low = _q_root(sample.mean, noise, float(chdtri(df, tail)))
    high = _q_root(sample.mean, noise, float(chdtri(df, 1 - tail)))
    return interval(low, high)


def weighing_variance(sample: GroupSample) -> FloatArray:
    """Sampling variances fit to weigh with: for rates, as far from the pooled one as is warranted.

    A rate's own variance is smallest where the rate happens to be extreme, which would give chance
    extremes the largest weights and find a spread where there is none.
    """
    own = stable_variance(sample)
    between = float(np.var(sample.mean, ddof=1)) - float((sample.spread / (sample.size - 1)).mean())
    if not sample.binary:
        return own
    pooled = sample.overall
    noise = pooled * (1 - pooled) / sample.size
    trust = max(between, 0.0) / (max(between, 0.0) + noise)
    own_rate = (sample.mean * sample.size + 0.5) / (sample.size + 1)
    rate = pooled + trust * (own_rate - pooled)
    return np.asarray(rate * (1 - rate) / sample.size)


def _noise(sample: GroupSample) -> FloatArray:
    if sample.constant:
        raise ValueError("the metric has the same value in every row, so there are no weights")
    noise = weighing_variance(sample)
    if np.any(noise <= 0):
        raise ValueError("the metric does not vary within any group, so there are no weights")
    return noise


def _q_root(mean: FloatArray, noise: FloatArray, goal: float) -> float:
    """Solve Q(between) = goal; zero where Q is below the goal already without any."""

    def excess(between: float) -> float:
        return cochran_q(mean, noise, between) - goal

    if excess(0.0) <= 0:
        return 0.0
    # Q(τ²) ≤ Σ(y − ȳ)²/τ², so this end is always on the far side of the root.
    far = float(np.sum((mean - mean.mean()) ** 2)) / goal
    return _bisect(excess, 0.0, far)


def _bisect(excess: Callable[[float], float], near: float, far: float) -> float:
    for _ in range(_STEPS):
        middle = (near + far) / 2
        if middle in (near, far):
            break
        if excess(middle) > 0:
            near = middle
        else:
            far = middle
    return (near + far) / 2


def _reml_step(mean: FloatArray, noise: FloatArray, between: float) -> float:
    weight = 1 / (noise + between)
    centre = np.average(mean, weights=weight)
    square = weight**2
    # The REML equation solved for τ²; 1/Σw gives back what estimating the centre has taken.
    moment = np.sum(square * ((mean - centre) ** 2 - noise)) / square.sum()
    return max(0.0, float(moment + 1 / weight.sum()))
