"""Intervals for one mean at a time, from counts and totals alone.

None of these accounts for looking at many groups; they describe, they do not certify.
"""

import numpy as np
from scipy.special import betaincinv, ndtri, stdtrit

from equipoise.methods.arrays import FloatArray


def clopper_pearson(
    successes: FloatArray, n: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Exact interval for a proportion: it covers with at least ``level`` whatever the truth.

    >>> low, high = clopper_pearson(np.array([0.0, 8.0]), np.array([10.0, 10.0]), 0.95)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.4439], [0.3085, 0.9748])
    """
    tail = (1 - level) / 2
    failures = n - successes
    # The beta quantile is undefined at the ends of the range, where the answer is the end itself.
    low = np.where(successes > 0, betaincinv(np.maximum(successes, 1), failures + 1, tail), 0.0)
    high = np.where(failures > 0, betaincinv(successes + 1, np.maximum(failures, 1), 1 - tail), 1.0)
    return low, high


def wilson(successes: FloatArray, n: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Score interval for a proportion: closer to nominal coverage, not guaranteed to reach it.

    >>> low, high = wilson(np.array([8.0]), np.array([10.0]), 0.95)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.4902], [0.9433])
    """
    # All rates p with (p̂ − p)² ≤ z² p(1 − p)/n, a quadratic in p: the error is the one under p.
    z2 = float(ndtri((1 + level) / 2)) ** 2
    share = successes / n
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def t_interval(
    mean: FloatArray, variance: FloatArray, n: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Student's interval for a mean; NaN where n < 2, since nothing then says how values vary.

    ``variance`` is the mean squared deviation (divided by n, not n − 1).

    >>> low, high = t_interval(np.array([2.0]), np.array([2 / 3]), np.array([3.0]), 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([-0.484], [4.484])
    """
    enough = n >= 2
    # σ²/n with σ² = n/(n − 1) times the mean square: the n cancel, and n − 1 is left.
    degrees = np.where(enough, n - 1, np.nan)
    half = stdtrit(degrees, (1 + level) / 2) * np.sqrt(np.maximum(variance, 0.0) / degrees)
    return mean - half, mean + half
