"""Could it have been the luck of the deal? Tails of a group's count given all margins.

If outcomes had been dealt to these very rows without regard to the group, the ones in a group of n
rows, out of k ones among N rows, would be hypergeometric. That speaks of exactly these rows, not of
a population they were drawn from, and it is exact for any size.
"""

import numpy as np
from scipy.special import gammaln, ndtr

from equipoise.methods.arrays import FloatArray
from equipoise.methods.inference.tails import Tails

WRITTEN_OUT = 200_000
"""Outcomes up to which a tail is added up; beyond, a normal with continuity correction serves."""


def dealt_tails(
    ones: FloatArray, rows: FloatArray, all_ones: FloatArray, all_rows: FloatArray
) -> Tails:
    """Chances of as many ones in each group, or more; and of as many, or fewer.

    >>> five, ten = np.array([5.0]), np.array([10.0])
    >>> up, down = dealt_tails(five, five, five, ten)
    >>> float(up[0].round(5)), float(down[0].round(5))
    (0.00397, 1.0)
    """
    up, down = np.full(ones.shape, np.nan), np.full(ones.shape, np.nan)
    for i in range(ones.size):
        up[i], down[i] = _one(ones[i], rows[i], all_ones[i], all_rows[i])
    return up, down


def _one(k: float, n: float, ones: float, rows: float) -> tuple[float, float]:
    low, high = max(0.0, n + ones - rows), min(n, ones)
    if high - low > WRITTEN_OUT:
        mean, share = n * ones / rows, ones / rows
        spread = np.sqrt(n * share * (1 - share) * (rows - n) / max(rows - 1, 1.0))
        up, down = ndtr((mean - k + 0.5) / spread), ndtr((k - mean + 0.5) / spread)
        return float(up), float(down)
    x = np.arange(low, high + 1)
    chance = np.exp(_ways(ones, x) + _ways(rows - ones, n - x) - _ways(rows, n))
    return min(float(chance[x >= k].sum()), 1.0), min(float(chance[x <= k].sum()), 1.0)


def _ways(n: float, k: FloatArray | float) -> FloatArray:
    return np.asarray(gammaln(n + 1) - gammaln(np.asarray(k) + 1) - gammaln(n - np.asarray(k) + 1))
