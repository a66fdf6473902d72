"""Estimated targets as contrasts: ε = Σ a·μ over disjoint parts of the population.

Each part is a binomial of its own. The parts' shares of the population are taken as observed.

- complement: group (1) and rest (−c);
- overall: group (1 − c p) and rest (−c (1 − p));
- reference R: the group outside R, the overlap, and R outside the group.
"""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import BoolArray, FloatArray, GroupSums, IntArray
from equipoise.methods.bootstrap.status import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A linear contrast of binomial rates for every group; arrays of shape ``(parts, G)``."""

    rows: FloatArray
    """Rows of each part."""
    ones: FloatArray
    """Rows of each part whose metric is 1."""
    coefficient: FloatArray
    """Coefficient a of each part's rate; 0 for a part without rows."""
    status: IntArray
    """Status of each group, shape ``(G,)``; anything but OK and SINGLE cannot be tested."""

    @property
    def testable(self) -> BoolArray:
        """Groups that can be tested."""
        return np.isin(self.status, (Status.OK, Status.SINGLE))

    @property
    def estimate(self) -> FloatArray:
        """The disparity ε̂ of each group; NaN where it cannot be tested."""
        mean = self.ones / np.maximum(self.rows, 1.0)
        return np.where(self.testable, (self.coefficient * mean).sum(axis=0), np.nan)


def against_complement(
    rows: FloatArray, ones: FloatArray, sums: GroupSums, *, scale: float = 1.0
) -> Contrast:
    """μ(G) − scale·μ(outside G), from cell counts of rows and ones.

    >>> both = np.array([4.0, 6.0]), np.array([1.0, 3.0])
    >>> against_complement(*both, lambda x: x).estimate.tolist()
    [-0.25, 0.25]
    """
    n, k = sums(rows), sums(ones)
    rest, rest_ones = rows.sum() - n, ones.sum() - k
    no_target = rest == 0
    return _contrast([n, rest], [k, rest_ones], [np.ones_like(n), -scale + 0 * n], n, no_target)


def against_overall(
    rows: FloatArray, ones: FloatArray, sums: GroupSums, *, scale: float = 1.0
) -> Contrast:
    """μ(G) − scale·mean of everybody, from cell counts of rows and ones.

    >>> both = np.array([4.0, 6.0]), np.array([1.0, 3.0])
    >>> against_overall(*both, lambda x: x).estimate.round(3).tolist()
    [-0.15, 0.1]
    """
    n, k = sums(rows), sums(ones)
    whole = max(float(rows.sum()), 1.0)
    # θ = pμ(G) + (1 − p)μ(rest), so the group's own rows count on both sides of the difference.
    p = n / whole
    factors = [1 - scale * p, -scale * (1 - p)]
    return _contrast([n, whole - n], [k, ones.sum() - k], factors, n, n < 0)


def against_reference(
    rows: FloatArray,
    ones: FloatArray,
    sums: GroupSums,
    reference: BoolArray,
    *,
    scale: float = 1.0,
) -> Contrast:
    """μ(G) − scale·μ(R), where R may share rows with the group.

    >>> both = np.array([4.0, 6.0]), np.array([1.0, 3.0])
    >>> against_reference(*both, lambda x: x, np.array([True, False])).estimate.tolist()
    [nan, 0.25]
    """
    inside = (np.where(reference, x, 0.0) for x in (rows, ones))
    ref_rows, ref_ones = inside
    n, k = sums(rows), sums(ones)
    both, both_ones = sums(ref_rows), sums(ref_ones)
    whole = float(ref_rows.sum())
    here, there = np.maximum(n, 1.0), max(whole, 1.0)
    # The overlap has a share in both means: n(G ∩ R)/n(G) of one, n(G ∩ R)/n(R) of the other.
    factors = [
        (n - both) / here,
        both / here - scale * both / there,
        -scale * (whole - both) / there,
    ]
    sizes = [n - both, both, whole - both]
    counts = [k - both_ones, both_ones, ref_ones.sum() - both_ones]
    return _contrast(sizes, counts, factors, n, np.full(n.shape, whole == 0))


def _contrast(
    rows: list[FloatArray],
    ones: list[FloatArray],
    factors: list[FloatArray],
    size: FloatArray,
    no_target: BoolArray,
) -> Contrast:
    n, k, a = np.stack(rows), np.stack(ones), np.stack(factors)
    a = np.where(n > 0, a, 0.0)
    # coefficients of everybody against everybody cancel up to rounding
    a = np.where(np.abs(a) > 1e-12, a, 0.0)
    status = np.full(size.shape, int(Status.OK), dtype=np.int64)
    status[size == 1] = Status.SINGLE
    status[(a == 0).all(axis=0)] = Status.IDENTICAL
    status[no_target] = Status.NO_TARGET
    status[size == 0] = Status.EMPTY
    return Contrast(rows=n, ones=k, coefficient=a, status=status)
