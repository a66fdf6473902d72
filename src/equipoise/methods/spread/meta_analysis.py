"""Between-group variance as meta-analysis estimates it, for groups drawn from a superpopulation."""

from collections.abc import Callable

import numpy as np
from scipy.special import chdtri

from equipoise.methods.arrays import FloatArray
from equipoise.methods.spread.sample import GroupSample
from equipoise.methods.spread.variance import Interval, interval

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
