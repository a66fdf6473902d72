"""An interval for the mean absolute deviation that holds wherever the groups lie.

The mean of |estimate| exceeds the mean of |truth| (Jensen), so the plug-in value carries the upper
end. For the lower end think of splitting each estimate's information into two independent halves:
the sign comes from one, the size from the other, and size × sign is on average at most the truth.
Averaging over all splits has the closed form below: it is zero on average where nothing differs,
and loses nothing where the groups are far apart.
"""

import math

import numpy as np
from scipy.special import ndtr

from equipoise.methods.arrays import FloatArray
from equipoise.methods.spread.limits import one_sided_z
from equipoise.methods.spread.meta_analysis import stable_variance
from equipoise.methods.spread.metrics import deviations
from equipoise.methods.spread.sample import GroupSample
from equipoise.methods.spread.variance import Interval, interval


def mean_deviation_interval(sample: GroupSample, level: float) -> Interval:
    """Interval for the mean absolute deviation of the group means.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([80] * 3), np.array([40.0, 41.0, 42.0]), binary=True)
    >>> e = mean_deviation_interval(s, 0.95)
    >>> e.lower, 0.02 < e.upper < 0.2
    (0.0, True)
    """
    noise = stable_variance(sample)
    if np.all(noise == 0):
        raise ValueError("the metric does not vary within any group, so nothing bounds its error")
    gap = deviations(sample.mean)
    z = one_sided_z((1 - level) / 2)
    error = np.sqrt(deviation_variance(noise))
    value, slope = signed_size(gap, error)
    low = value.mean() - z * _standard_error(slope, noise)
    # E|Y_k − Ȳ| ≥ |μ_k − μ̄|, by Jensen (Section 4 of Lum, Zhang and Bower): biased, but upward.
    high = np.abs(gap).mean() + z * _sign_error(gap, noise)
    return interval(float(low), float(high))


def signed_size(gap: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Average of size × sign over all splits of a normal estimate into two halves, and its slope.

    With estimate d and error s it is d(2Φ(d/s) − 1) − 2sφ(d/s); its mean is
    δ(2Φ(δ/(s√2)) − 1), never above |δ|.

    Examples
    --------
    >>> import numpy as np
    >>> signed_size(np.array([5.0]), np.array([1.0]))[0].round(3).tolist()
    [5.0]
    """
    x = gap / error
    sign = 2 * ndtr(x) - 1
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return gap * sign - 2 * error * density, sign + 4 * x * density


def deviation_variance(noise: FloatArray) -> FloatArray:
    """Sampling variance of each group's deviation from the mean of the group means."""
    count = noise.shape[-1]
    # σ_k²(1 − 1/K)² from the group itself and σ_j²/K² from each other one.
    return np.asarray(noise * (1 - 2 / count) + noise.mean() / count)


def _sign_error(gap: FloatArray, noise: FloatArray) -> float:
    sign = np.sign(gap)
    # A group exactly at the mean has no sign, but its error counts in full all the same.
    weight = np.where(sign == 0, 1.0, sign - sign.mean()) / sign.size
    return float(np.sqrt(np.sum(weight**2 * noise)))


def _standard_error(slope: FloatArray, noise: FloatArray) -> float:
    """Error of a mean over groups; squared slopes bound the variance from above (Poincaré)."""
    weight = (slope - slope.mean()) / slope.size
    return float(np.sqrt(np.sum(weight**2 * noise)))
