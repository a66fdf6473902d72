"""Kernels on arrays: how alike two people are, as a positive definite function."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from equipoise.methods.arrays import FloatArray

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
