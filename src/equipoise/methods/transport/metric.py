"""A fair distance learnt from data: differences along sensitive directions do not count.

The directions are those in which the sensitive attributes can be read off the features; they are
projected out, and what distance is left is the difference that may matter.
"""

import numpy as np
import numpy.typing as npt

from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.transport.moves import Neighbours, from_matrix


def sensitive_directions(
    features: npt.ArrayLike, sensitive: npt.ArrayLike, counts: npt.ArrayLike
) -> FloatArray:
    """Orthonormal basis of the directions that predict the sensitive attributes.

    Each sensitive column is regressed on the features by least squares, weighted by the counts; the
    coefficient vectors span the sensitive subspace.

    Parameters
    ----------
    features
        Numbers the distance is made of, one row per cell; put them on comparable scales first.
    sensitive
        Sensitive attributes as numbers, one row per cell; indicator columns for categories.
    counts
        Rows per cell.

    Examples
    --------
    >>> x = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> abs(sensitive_directions(x, [0, 0, 1, 1], [5, 5, 5, 5])).round(6).tolist()
    [[1.0], [0.0]]
    """
    x, s = _table(features, "features"), _table(sensitive, "sensitive attributes")
    weight = np.asarray(counts, dtype=np.float64)
    if s.shape[0] != x.shape[0] or weight.shape != (x.shape[0],):
        raise ValueError("features, sensitive attributes and counts must have one row per cell")
    if not np.all(weight >= 0) or not weight.sum() > 0:
        raise ValueError("counts must not be negative, and not all zero")
    root = np.sqrt(weight / weight.sum())[:, None]
    centred = [(t - np.average(t, axis=0, weights=weight)) * root for t in (x, s)]
    slopes = np.linalg.lstsq(centred[0], centred[1], rcond=1e-10)[0]
    return _basis(slopes)


def fair_costs(
    features: npt.ArrayLike,
    directions: FloatArray,
    *,
    power: float = 2.0,
    classes: npt.ArrayLike | None = None,
) -> Neighbours:
    """Moves between all cells, at the fair distance to the given power.

    Parameters
    ----------
    features
        One row per cell.
    directions
        Columns that span the sensitive subspace; need not be orthonormal.
    power
        The cost is distance to this power; 2 is usual.
    classes
        Moves between cells with different labels (for example outcomes) are forbidden.

    Examples
    --------
    >>> x = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    >>> fair_costs(x, np.array([[1.0], [0.0]])).cost.round(9).tolist()
    [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    """
    points, labels = _projected(features, directions), _labels(features, classes)
    # Section 2 of Xue, Yurochkin and Sun: squared distances, infinite between different labels.
    costs = _distances(points, points) ** _power(power)
    costs[labels[:, None] != labels] = np.inf
    return from_matrix(costs)


def _table(values: npt.ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"{name} must be a table with one row per cell; got shape {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite")
    return array


def _basis(columns: FloatArray) -> FloatArray:
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, sizes > 1e-10 * max(float(sizes.max(initial=0.0)), 1e-300)])


def _projected(features: npt.ArrayLike, directions: FloatArray) -> FloatArray:
    points, span = _table(features, "features"), _table(directions, "directions")
    if span.shape[0] != points.shape[1]:
        raise ValueError(
            f"directions must have one row per feature ({points.shape[1]}); got {span.shape[0]}"
        )
    basis = _basis(span)
    return np.asarray(points - (points @ basis) @ basis.T)


def _labels(features: npt.ArrayLike, classes: npt.ArrayLike | None) -> IntArray:
    cells = len(np.asarray(features))
    if classes is None:
        return np.zeros(cells, dtype=np.int64)
    array = np.asarray(classes)
    if array.shape != (cells,):
        raise ValueError(f"expected one class label per cell ({cells}); got shape {array.shape}")
    return np.unique(array, return_inverse=True)[1].astype(np.int64)


def _distances(a: FloatArray, b: FloatArray) -> FloatArray:
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    # Differences of large numbers: what is left of a zero distance must be zero.
    scale = 1e-13 * max(1e-300, float((b**2).sum(axis=1).max()))
    return np.sqrt(np.where(squares <= scale, 0.0, squares))


def _power(power: float) -> float:
    if not 0 < power < np.inf:
        raise ValueError(f"the power must be positive and finite; got {power:g}")
    return power
