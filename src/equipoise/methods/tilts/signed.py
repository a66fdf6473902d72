"""Tilts of either sign in units of their own scale: the largest root of a quartic for each τ.

The process has rank four at most. Its eigenvalues against one quadratic form of the grid are those
of a constant matrix times the inner products of its four vectors.
"""

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.tilts.draws import Deviations
from equipoise.methods.tilts.sample import TiltMoments
from equipoise.methods.tilts.scale import SLACK, ScaleGrid

_Coefficients = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def signed_extremes(grid: ScaleGrid, moments: TiltMoments, drawn: Deviations) -> FloatArray:
    """Lowest and highest value of process over scale in each resample, over tilts of any sign.

    >>> from equipoise.methods.tilts.scale import make_grid
    >>> moments = TiltMoments(
    ...     n=9.0, mean=np.array([1.0]), cross=np.array([0.0]), second=np.array([[1.0]]),
    ...     centred=np.array([[1.0]]),
    ... )
    >>> drawn = Deviations(
    ...     mean=np.zeros((1, 1)), cross=np.array([[0.2]]), target=np.zeros(1), spread=np.ones(1)
    ... )
    >>> abs(signed_extremes(make_grid(moments, 0.25), moments, drawn)).round(3).tolist()
    [[0.0, 0.16]]
    """
    first = (drawn.cross - drawn.target[:, None] * moments.mean) @ grid.axes
    gram = _gram(grid, first, drawn.mean @ grid.axes)
    e1, e2, e3, e4 = _characteristic(gram)
    high = _largest_root((e1, e2, e3, e4), _bound(gram, 1.0)).max(axis=1)
    low = _largest_root((-e1, e2, -e3, e4), _bound(gram, -1.0)).max(axis=1)
    return np.stack([0.0 - low, high], axis=1) * (1 + SLACK)


def _gram(grid: ScaleGrid, a: FloatArray, u: FloatArray) -> dict[str, FloatArray]:
    """Inner products of m, a, u, g in the inverse of each form: resamples × grid."""
    g, by_cross = grid.cross, grid.inverse * grid.cross[:, None]
    am, um, gm = grid.with_mean(a), grid.with_mean(u), grid.with_mean(g)
    return {
        "mm": grid.with_mean(grid.mean) * grid.shrink,
        "mg": gm * grid.shrink,
        "ma": am * grid.shrink,
        "mu": um * grid.shrink,
        "gg": grid.inner(g @ by_cross, gm, gm),
        "ag": grid.inner(a @ by_cross, am, gm),
        "ug": grid.inner(u @ by_cross, um, gm),
        "aa": grid.inner((a * a) @ grid.inverse, am, am),
        "uu": grid.inner((u * u) @ grid.inverse, um, um),
        "au": grid.inner((a * u) @ grid.inverse, am, um),
    }


def _characteristic(gram: dict[str, FloatArray]) -> _Coefficients:
    """e₁ … e₄ of x⁴ − e₁ x³ + e₂ x² − e₃ x + e₄, whose roots are the four eigenvalues.

    The constant matrix pairs m with a by ½ and u with g by −½, so by Cauchy–Binet each eₖ is a
    sum of a few k × k minors of the inner products.
    """
    names = ("m", "a", "u", "g")
    matrix = np.empty((4, 4, *gram["aa"].shape))
    for i, x in enumerate(names):
        for j, y in enumerate(names):
            matrix[i, j] = gram[x + y] if x + y in gram else gram[y + x]
    pairs = _minor(matrix, (0, 1), (0, 1)) + _minor(matrix, (2, 3), (2, 3))
    crossed = _minor(matrix, (0, 2), (1, 3)) + _minor(matrix, (0, 3), (1, 2))
    threes = _minor(matrix, (1, 2, 3), (0, 2, 3)) - _minor(matrix, (0, 1, 3), (0, 1, 2))
    return (
        matrix[0, 1] - matrix[2, 3],
        -(pairs + 2 * crossed) / 4,
        -threes / 4,
        _minor(matrix, (0, 1, 2, 3), (0, 1, 2, 3)) / 16,
    )


def _minor(x: FloatArray, rows: tuple[int, ...], columns: tuple[int, ...]) -> FloatArray:
    """Determinant of some rows and columns, by expansion along the first row."""
    if len(rows) == 1:
        return np.asarray(x[rows[0], columns[0]])
    total: FloatArray = np.zeros(x.shape[2:])
    for i, column in enumerate(columns):
        rest = columns[:i] + columns[i + 1 :]
        total = total + (-1) ** i * x[rows[0], column] * _minor(x, rows[1:], rest)
    return total


def _bound(gram: dict[str, FloatArray], sign: float) -> FloatArray:
    """A number no eigenvalue of the process (or, with sign −1, of its negative) exceeds."""
    # Weyl: the largest eigenvalue of a sum is at most the sum of those of its two parts, and a part
    # xyᵀ + yxᵀ has x·y + |x||y|.
    first = np.sqrt(np.maximum(gram["mm"] * gram["aa"], 0)) + sign * gram["ma"]
    second = np.sqrt(np.maximum(gram["uu"] * gram["gg"], 0)) - sign * gram["ug"]
    return np.asarray((np.maximum(first, 0) + np.maximum(second, 0)) / 2)


def _largest_root(coefficients: _Coefficients, start: FloatArray) -> FloatArray:
    """The largest root by Newton's method from above: roots are real, so it never overshoots."""
    e1, e2, e3, e4 = coefficients
    x = start.copy()
    for _ in range(60):
        value = (((x - e1) * x + e2) * x - e3) * x + e4
        slope = ((4 * x - 3 * e1) * x + 2 * e2) * x - e3
        # At a double root the slope vanishes with the value, and rounding may turn its sign.
        step = np.divide(value, slope, out=np.zeros_like(x), where=slope > 0)
        moved = np.clip(x - np.maximum(step, 0.0), 0.0, None)
        done = bool(np.all(x - moved <= 1e-9 * x))
        x = moved
        if done:
            break
    return x
