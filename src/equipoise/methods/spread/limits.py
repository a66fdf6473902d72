"""Limits for single group means, and the critical values that make many of them hold at once."""

import math
from functools import lru_cache

import numpy as np
from scipy.special import betaincinv, log_ndtr, ndtr, ndtri

from equipoise.methods.arrays import FloatArray
from equipoise.methods.spread.sample import GroupSample

_HALVINGS = 42
_NODES = 400


@lru_cache(maxsize=64)
def mean_limits(sample: GroupSample, z: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper limit of every group mean at the two-sided critical value ``z``.

    They come from the core's pivots: exact tails of counts (Clopper and Pearson's limits),
    otherwise Student's with a correction for skewness.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([10, 10]), np.array([10.0, 5.0]), binary=True)
    >>> low, high = mean_limits(s, 1.96)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.691, 0.187], [1.0, 0.813])
    """
    if sample.counted:
        n, tail = sample.size.astype(np.float64), float(ndtr(-z))
        ones = np.rint(sample.mean * n)
        some, rest = np.maximum(ones, 0.5), np.maximum(n - ones, 0.5)
        low = np.where(ones > 0, betaincinv(some, n - ones + 1, tail), 0.0)
        high = np.where(ones < n, betaincinv(ones + 1, rest, 1 - tail), 1.0)
        return low, high
    possible = (0.0, 1.0) if sample.binary else (-np.inf, np.inf)
    return sample.alone.bounds(z, possible)


def one_sided_z(tail: float) -> float:
    """Critical value of a single one-sided limit.

    Examples
    --------
    >>> round(one_sided_z(0.025), 4)
    1.96
    """
    return float(-ndtri(tail))


def sidak_z(tail: float, count: int) -> float:
    """Two-sided critical value for ``count`` groups at once with total error ``tail``.

    Šidák's inequality holds for normal errors with any correlation.

    Examples
    --------
    >>> round(sidak_z(0.05, 1), 4)
    1.96
    """
    # 1 − (1 − tail)^(1/count), which would cancel for many groups.
    each = -math.expm1(math.log1p(-tail) / count)
    return float(-ndtri(each / 2))


def highest_z(tail: float, groups: int) -> float:
    """The highest critical value that any summary of so many groups asks for.

    >>> round(highest_z(0.025, 2), 2)
    2.5
    """
    return max(range_z(tail, groups), sidak_z(tail, groups))


@lru_cache(maxsize=256)
def range_z(tail: float, groups: int) -> float:
    """Critical value for the differences of all pairs of groups at once.

    The upper ``tail`` point of the studentised range divided by √2. It is exact for equally precise
    groups and conservative otherwise (the Tukey–Kramer inequality).

    Examples
    --------
    >>> round(range_z(0.05, 3) * 2**0.5, 3)
    3.314
    """
    low, high = 0.0, 20.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _range_tail(middle, groups) > tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2 / math.sqrt(2)


def _range_tail(width: float, groups: int) -> float:
    """P(range of ``groups`` standard normals > width), integrating over the largest of them."""
    # The density at ±9 is about 10⁻¹⁸, and for so smooth an integrand equal steps are enough.
    nodes = np.linspace(-9.0, 9.0, _NODES)
    step = nodes[1] - nodes[0]
    log_density = -(nodes**2) / 2 - 0.5 * math.log(2 * math.pi)
    # P(all others lie within `width` below the largest), on the log scale for many groups.
    gap = -np.expm1(log_ndtr(nodes - width) - log_ndtr(nodes))
    log_inside = (groups - 1) * (log_ndtr(nodes) + np.log(np.maximum(gap, 1e-300)))
    return float(1 - groups * np.sum(np.exp(log_density + log_inside)) * step)
