"""Limits for single group means, and the critical values that make many of them hold at once."""

import math
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, rel_entr, stdtrit

from equipoise.methods.arrays import FloatArray
from equipoise.methods.spread.meta_analysis import stable_variance
from equipoise.methods.spread.sample import GroupSample

_HALVINGS = 42
_NODES = 400


def mean_limits(sample: GroupSample, z: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper limit of every group mean at the two-sided critical value ``z``.

    0/1 metrics use the likelihood ratio, which stays inside 0 and 1 and does not collapse for
    groups of all zeros or ones; real metrics use Student's t at the same tail probability.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([10, 10]), np.array([10.0, 5.0]), binary=True)
    >>> low, high = mean_limits(s, 1.96)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.825, 0.218], [1.0, 0.782])
    """
    if sample.binary:
        y, n = sample.mean, sample.size.astype(np.float64)
        return 1 - _rate_upper(1 - y, n, z), _rate_upper(y, n, z)
    # the t quantile with the tail of z, so that one critical value serves groups of any size
    t = -stdtrit(sample.size - 1.0, ndtr(-z))
    half = t * np.sqrt(stable_variance(sample))
    return sample.mean - half, sample.mean + half


def _rate_upper(y: FloatArray, n: FloatArray, z: float) -> FloatArray:
    low, high = y.copy(), np.ones_like(y)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        inside = 2 * n * (rel_entr(y, middle) + rel_entr(1 - y, 1 - middle)) <= z * z
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.asarray((low + high) / 2)


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
