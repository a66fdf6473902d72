"""Pivoted Cholesky: a kernel matrix as F Fᵀ, column by column, without the matrix itself."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.tilts.kernels import Kernel

#: Trace that may be left over, as a share of the whole.
TOLERANCE = 1e-10
#: Most columns of F, unless more are asked for.
MAX_RANK = 500
#: Most numbers in F.
MAX_NUMBERS = 30_000_000
#: How negative a residual may become by rounding, as a share of the largest diagonal value.
_ROUNDING = 1e-7
#: Points on which a kernel is checked whole before it is used.
_CHECKED = 200


class NotPositiveError(ValueError):
    """A function of two points that is no kernel: not symmetric, or not positive semi-definite."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Factor:
    """K ≈ F Fᵀ, exact on the pivots: F holds each point in coordinates of the pivots' span."""

    features: FloatArray
    """F: points × rank."""
    pivots: IntArray
    """Positions of the pivots among the points."""
    corner: FloatArray
    """F of the pivots themselves, lower triangular."""
    left: FloatArray
    """What the diagonal of K has more than that of F Fᵀ, never negative."""
    trace: float
    """Trace of K."""

    @property
    def rank(self) -> int:
        """Columns of F."""
        return int(self.features.shape[1])

    @property
    def residual(self) -> float:
        """Trace of K − F Fᵀ as a share of the trace of K."""
        return float(self.left.sum() / self.trace) if self.trace > 0 else 0.0


def factor_kernel(
    kernel: Kernel,
    points: FloatArray,
    *,
    tolerance: float = TOLERANCE,
    max_rank: int = MAX_RANK,
    check: bool = True,
) -> Factor:
    """Factor the kernel matrix of ``points``; stop on the trace that is left, or at ``max_rank``.

    Columns of the matrix are computed when they are needed: time is points × rank², memory
    points × rank. Raises `NotPositiveError` if the function is found to be no kernel.

    >>> from equipoise.methods.tilts.kernels import Gaussian
    >>> x = np.linspace(0, 1, 50)[:, None]
    >>> found = factor_kernel(Gaussian((0.5,)), x, tolerance=1e-6)
    >>> found.rank, found.residual < 1e-6
    (7, True)
    """
    n = len(points)
    whole = _checked_diagonal(kernel, points)
    if check:
        check_positive(kernel, points)
    most = max(1, min(n, max_rank, MAX_NUMBERS // max(n, 1)))
    left, trace = whole.copy(), float(whole.sum())
    columns = np.zeros((min(most, 32), n))
    pivots: list[int] = []
    # The pivot with the largest rest each time: greedy, and near the best that so many columns do.
    while len(pivots) < most and left.sum() > tolerance * trace:
        pivot, rank = int(np.argmax(left)), len(pivots)
        # So small a rest is rounding, and its column would be divided by its root.
        if left[pivot] <= 1e-14 * whole.max():
            break
        if rank == len(columns):
            columns = np.concatenate([columns, np.zeros((min(rank, most - rank), n))])
        columns[rank] = _column(kernel, points, columns[:rank], pivot, left[pivot])
        left = _reduced(left, columns[rank], whole.max())
        # Zero but for rounding, which must not make it a pivot once more.
        left[pivot] = 0.0
        pivots.append(pivot)
    chosen = np.array(pivots, dtype=np.int64)
    # Kept by points: every later use multiplies from the left.
    features = np.ascontiguousarray(columns[: len(pivots)].T)
    return Factor(features=features, pivots=chosen, corner=features[chosen], left=left, trace=trace)


def features_of(
    kernel: Kernel, pivots: FloatArray, corner: FloatArray, x: FloatArray
) -> FloatArray:
    """Coordinates of new points in the pivots' span.

    >>> from equipoise.methods.tilts.kernels import Gaussian
    >>> x, kernel = np.linspace(0, 1, 20)[:, None], Gaussian((0.5,))
    >>> found = factor_kernel(kernel, x)
    >>> again = features_of(kernel, x[found.pivots], found.corner, x)
    >>> bool(np.abs(again - found.features).max() < 1e-3)
    True
    """
    values = kernel.block(x, pivots)
    # Forward substitution gives the line of F that the point would have had among the rows.
    return np.asarray(solve_triangular(corner, values.T, lower=True).T)


def check_positive(kernel: Kernel, points: FloatArray) -> None:
    """Raise `NotPositiveError` unless the kernel is symmetric and positive on some points."""
    chosen = np.unique(np.linspace(0, len(points) - 1, min(_CHECKED, len(points))).astype(np.int64))
    matrix = kernel.block(points[chosen], points[chosen])
    size = float(np.abs(matrix).max())
    if not np.isfinite(size):
        raise NotPositiveError("it gives values that are not finite numbers")
    if np.abs(matrix - matrix.T).max() > _ROUNDING * size:
        raise NotPositiveError("it is not symmetric: k(x, y) differs from k(y, x)")
    # Rounding errors of n × n values add up to n times that of one in an eigenvalue.
    lowest = float(np.linalg.eigvalsh((matrix + matrix.T) / 2)[0])
    if lowest < -_ROUNDING * size * len(chosen):
        raise NotPositiveError(
            f"it is not positive semi-definite: its matrix on {len(chosen)} of the rows has the "
            f"eigenvalue {lowest:.3g}"
        )


def _checked_diagonal(kernel: Kernel, points: FloatArray) -> FloatArray:
    whole = np.asarray(kernel.diagonal(points), dtype=np.float64)
    if not np.all(np.isfinite(whole)):
        raise NotPositiveError("it gives values that are not finite numbers")
    if whole.min() < 0:
        raise NotPositiveError(f"it is not positive: k(x, x) = {whole.min():.3g} for some row")
    return whole


def _column(
    kernel: Kernel, points: FloatArray, so_far: FloatArray, pivot: int, left: float
) -> FloatArray:
    values = kernel.block(points, points[pivot : pivot + 1])[:, 0]
    return np.asarray((values - so_far[:, pivot] @ so_far) / np.sqrt(left))


def _reduced(left: FloatArray, column: FloatArray, size: float) -> FloatArray:
    """The diagonal that remains; of a kernel it cannot become negative."""
    reduced = left - column * column
    if reduced.min() < -_ROUNDING * size:
        raise NotPositiveError(
            "it is not positive semi-definite: factoring leaves "
            f"{reduced.min():.3g} on the diagonal"
        )
    return np.maximum(reduced, 0.0)
