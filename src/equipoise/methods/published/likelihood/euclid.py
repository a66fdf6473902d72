"""Euclidean likelihood: the disparity in units of its standard error, from moments alone."""

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from equipoise.methods.arrays import FloatArray


def student_roots(gap: FloatArray, error: FloatArray, degrees: FloatArray) -> FloatArray:
    """Signed roots of the Euclidean likelihood ratio, as normal scores.

    ``degrees`` are those of Student's distribution, infinite for none. NaN where the standard error
    is zero or there is no degree of freedom: nothing then says how values vary.

    >>> student_roots(np.array([2.0]), np.array([1.0]), np.array([np.inf])).tolist()
    [2.0]
    >>> student_roots(np.array([2.0]), np.array([1.0]), np.array([3.0])).round(2).tolist()
    [1.48]
    """
    usable = (error > 0) & (degrees >= 1)
    z = np.divide(gap, error, out=np.full_like(gap, np.nan), where=usable)
    # Theorem 3 of the paper on empirical likelihood refers the square to χ²; Student's t allows for
    # a variance estimated from few rows.
    student = usable & np.isfinite(degrees)
    # Through the smaller tail: a normal score of 1 − 10⁻¹⁷ would be infinite.
    tail = stdtr(np.where(student, degrees, 1.0), -np.abs(np.where(student, z, 0.0)))
    return np.where(student, np.copysign(-ndtri(np.maximum(tail, 1e-300)), z), z)


def student_interval(
    estimate: FloatArray, error: FloatArray, degrees: FloatArray, critical: float
) -> tuple[FloatArray, FloatArray]:
    """All values whose signed root is at most ``critical`` in size.

    >>> one = np.array([1.0])
    >>> low, high = student_interval(0 * one, one, 3 * one, 1.4802)
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([-2.0], [2.0])
    """
    usable = (error > 0) & (degrees >= 1)
    student = usable & np.isfinite(degrees)
    wide = -stdtrit(np.where(student, degrees, 1.0), ndtr(-critical))
    half = np.where(usable, np.where(student, wide, critical) * error, np.nan)
    return estimate - half, estimate + half


def normal_critical(level: float, family: str, groups: int, *, two_sided: bool = True) -> float:
    """The normal score that intervals of one group, or of many at once, are cut at.

    >>> [round(normal_critical(0.95, name, 10), 3) for name in ("pointwise", "sidak")]
    [1.96, 2.8]
    """
    number = max(groups, 1)
    miss = {
        "pointwise": 1 - level,
        "sidak": 1 - level ** (1 / number),
        "bonferroni": (1 - level) / number,
    }[family]
    return max(float(-ndtri(miss / 2 if two_sided else miss)), 0.0)
