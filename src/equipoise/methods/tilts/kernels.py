"""Kernels on arrays: how alike two people are, as a positive definite function."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import solve_triangular

from equipoise.methods.numerics import FloatArray, IntArray

# --- Kernels on arrays: how alike two people are, as a positive definite function ---

#: Numbers in the largest intermediate array of a kernel block.
_BLOCK = 1 << 22


class Kernel(Protocol):
    """A positive definite function of two points."""

    def block(self, x: FloatArray, y: FloatArray, /) -> FloatArray:
        """Values for every row of ``x`` against every row of ``y``."""
        ...

    def diagonal(self, x: FloatArray, /) -> FloatArray:
        """Values of each row of ``x`` against itself."""
        ...


@dataclass(frozen=True, slots=True)
class Gaussian:
    """exp(−½ Σ ((x − y) / bandwidth)²).

    >>> Gaussian((2.0,)).block(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(4).tolist()
    [[1.0, 0.6065]]
    """

    bandwidths: tuple[float, ...]

    def block(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Values for every row of ``x`` against every row of ``y``."""
        # Sums of squares of differences, not expanded: points far from zero keep their digits.
        total = np.zeros((len(x), len(y)))
        for column, width in enumerate(self.bandwidths):
            total += ((x[:, None, column] - y[None, :, column]) / width) ** 2
        return np.exp(-0.5 * total)

    def diagonal(self, x: FloatArray) -> FloatArray:
        """Ones."""
        return np.ones(len(x))


@dataclass(frozen=True, slots=True)
class Laplace:
    """exp(−Σ |x − y| / bandwidth).

    >>> Laplace((2.0,)).block(np.array([[0.0]]), np.array([[2.0]])).round(4).tolist()
    [[0.3679]]
    """

    bandwidths: tuple[float, ...]

    def block(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Values for every row of ``x`` against every row of ``y``."""
        total = np.zeros((len(x), len(y)))
        for column, width in enumerate(self.bandwidths):
            # A product of kernels of one column each, hence positive definite.
            total += np.abs(x[:, None, column] - y[None, :, column]) / width
        return np.exp(-total)

    def diagonal(self, x: FloatArray) -> FloatArray:
        """Ones."""
        return np.ones(len(x))


@dataclass(frozen=True, slots=True)
class Same:
    """1 where all columns agree, 0 elsewhere: the kernel of categories.

    >>> Same().block(np.array([[0.0], [1.0]]), np.array([[1.0]])).tolist()
    [[0.0], [1.0]]
    """

    def block(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Values for every row of ``x`` against every row of ``y``."""
        alike = np.ones((len(x), len(y)), dtype=bool)
        for column in range(x.shape[1]):
            alike &= x[:, None, column] == y[None, :, column]
        return alike.astype(np.float64)

    def diagonal(self, x: FloatArray) -> FloatArray:
        """Ones."""
        return np.ones(len(x))


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel given as a function of two matrices, which returns the matrix of its values."""

    function: Callable[[FloatArray, FloatArray], FloatArray]

    def block(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Values for every row of ``x`` against every row of ``y``."""
        return np.asarray(self.function(x, y), dtype=np.float64).reshape(len(x), len(y))

    def diagonal(self, x: FloatArray) -> FloatArray:
        """Each point against itself, a few at a time, since the function gives blocks only."""
        size = 64
        parts = [x[start : start + size] for start in range(0, len(x), size)]
        return np.concatenate([np.diagonal(self.block(part, part)) for part in parts])


@dataclass(frozen=True, slots=True)
class Product:
    """The product of kernels, each on columns of its own.

    >>> both = Product(((Gaussian((1.0,)), (0,)), (Same(), (1,))))
    >>> x = np.array([[0.0, 1.0], [0.0, 2.0]])
    >>> both.block(x, x).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    parts: tuple[tuple[Kernel, tuple[int, ...]], ...]

    def block(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Values for every row of ``x`` against every row of ``y``."""
        out = np.ones((len(x), len(y)))
        for kernel, columns in self.parts:
            out *= kernel.block(x[:, list(columns)], y[:, list(columns)])
        return out

    def diagonal(self, x: FloatArray) -> FloatArray:
        """Values of each row of ``x`` against itself."""
        out = np.ones(len(x))
        for kernel, columns in self.parts:
            out *= kernel.diagonal(x[:, list(columns)])
        return out


def section_sums(
    kernel: Kernel, x: FloatArray, points: FloatArray, weights: FloatArray
) -> FloatArray:
    """Σ_j weights_j k(x_i, points_j) for each row of ``x``, without the whole matrix.

    >>> here = np.array([[0.0], [1.0]])
    >>> section_sums(Same(), here, here, np.array([2.0, 5.0])).tolist()
    [2.0, 5.0]
    """
    size = max(1, _BLOCK // max(len(points), 1))
    parts = [
        kernel.block(x[start : start + size], points) @ weights for start in range(0, len(x), size)
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


# --- Pivoted Cholesky: a kernel matrix as F Fᵀ, column by column, without the matrix itself ---

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


# --- By how much the part of a given tilt that lies outside the span can be wrong ---
#
# A tilt h of the kernel's space is f + e, f in the span of the kept sections and e orthogonal to
# it, so that ‖e‖² = ‖h‖² − ‖f‖². With L the metric, ν its average under the tilt, ψ the target's
# influence and D = P* − P, the error of P h · ε̂(h) is the deviation D[h (L − ν) − P h · ψ]. The
# critical value bounds f's part of it for every ν in the range of the process (`rescaled`), with
# the weights r of the target taken off as in `draws`. What is left is
#
#     D[e (L − ν)]  −  D[P e · ψ + P((L − ν) e) · r]  +  (ν₀ − ν) D[f − P f · r],
#
# with P e and P((L − ν) e) known on the rows, and ν₀ the nearest ν in the range. The first term
# is at most ‖e‖ times the norm of a mean of residual features, whose squares are the diagonal of
# K − F Fᵀ; the second is one number; the third is zero unless e moves ν out of the range. Each is
# bounded except with a chance of one in a million, and each shrinks like one over the root of the
# rows, so that more rows never lose an answer.

#: Minus the logarithm of one in two million: two bounds that may fail make one in a million.
_RARE = math.log(2e6)
#: The normal quantile that goes with one in a million, both sides.
_NORMAL = 4.9
#: Rows between which the residual kernel is measured.
_MEASURED = 400


def norm_bound(
    size: FloatArray, counts: FloatArray, clusters: IntArray | None, overlap: float = 1.0
) -> float:
    """What the norm of a resampled mean of vectors of these sizes exceeds once in a million.

    The squared norm of a normal vector with covariance Γ exceeds tr Γ + 2 √(x tr Γ²) + 2 x ‖Γ‖ with
    a chance of exp(−x) (Laurent and Massart 2000, Lemma 1). ``overlap`` is √tr Γ² / tr Γ: one if
    all vectors may point the same way, less if they are known not to.

    >>> round(norm_bound(np.ones(100), np.ones(100), None), 2)
    0.61
    >>> round(norm_bound(np.ones(100), np.ones(100), None, overlap=0.0), 2)
    0.1
    """
    n = counts.sum()
    if clusters is None:
        trace = float(counts @ size**2)
    else:
        # Rows of a cluster move together and may point the same way: sizes add up first.
        trace = float((np.bincount(clusters, counts * size) ** 2).sum())
        overlap = 1.0
    tail = 1 + 2 * overlap * math.sqrt(_RARE) + 2 * overlap * _RARE
    return math.sqrt(tail * trace) / float(n)


def mean_bound(values: FloatArray, counts: FloatArray, clusters: IntArray | None) -> float:
    """What the resampled deviation of a mean exceeds, on either side, once in a million.

    >>> round(mean_bound(np.array([-1.0, 1.0]), np.array([50.0, 50.0]), None), 2)
    0.49
    """
    n = counts.sum()
    apart = values - counts @ values / n
    if clusters is None:
        return _NORMAL * math.sqrt(float(counts @ apart**2)) / float(n)
    return _NORMAL * math.sqrt(float((np.bincount(clusters, counts * apart) ** 2).sum())) / float(n)


def overlap_of(
    kernel: Kernel, points: FloatArray, features: FloatArray, size: FloatArray, counts: FloatArray
) -> float:
    """√tr Γ² / tr Γ of the residual features of rows with these sizes.

    tr Γ² is a mean over pairs of rows of squared residual kernel values. Pairs of a row with itself
    are added up; others are measured between at most four hundred rows at equal distances in order.

    >>> from equipoise.methods.tilts.kernels import Same
    >>> x = np.arange(100.0)[:, None]
    >>> round(overlap_of(Same(), x, np.zeros((100, 1)), np.ones(100), np.ones(100)), 2)
    0.1
    """
    left = np.maximum(kernel.diagonal(points) - np.einsum("ij,ij->i", features, features), 0.0)
    share = counts / counts.sum()
    trace = float(share @ size**2)
    if trace <= 0:
        return 1.0
    own = float(share**2 @ size**4)
    chosen = np.unique(np.linspace(0, len(points) - 1, _MEASURED).astype(np.int64))
    some = features[chosen]
    rest = kernel.block(points[chosen], points[chosen]) - some @ some.T
    # The size of a row holds more than its residual norm: its weight and how far its metric is.
    more = np.divide(
        size[chosen] ** 2, left[chosen], out=np.zeros(len(chosen)), where=left[chosen] > 0
    )
    mass = share[chosen] / share[chosen].sum()
    pairs = mass[:, None] * mass * (rest * rest) * more[:, None] * more
    np.fill_diagonal(pairs, 0.0)
    return min(math.sqrt(own + float(pairs.sum())) / trace, 1.0)
