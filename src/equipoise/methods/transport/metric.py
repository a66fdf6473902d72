"""A fair distance learnt from data: differences along sensitive directions do not count.

The directions are those in which the sensitive attributes can be read off the features; they are
projected out, and what distance is left is the difference that may matter.

A learnt metric has an error of its own. With P the projection, D the features' units and δ the
difference of two people, the distance is |P D⁻¹ δ|. It is off by at most (s + u) |D⁻¹ δ|, where s
is the sine of the angle between the true and the learnt directions and u the relative error of the
units. The sine is at most the error of the slopes over their smallest singular value (Wedin 1972),
and slopes and units are smooth functions of means, which the bootstrap knows how to resample.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.transport.cost import LeftOut, Neighbours, from_matrix
from equipoise.methods.transport.sample import Sample

_RANK = 1e-9
"""Singular values smaller than this part of the largest are what rounding leaves of zero."""

_BLOCK = 128
"""Resamples on which a metric is learnt at once. Part of the definition of the results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntMetric:
    """A fair metric, as the shares of the cells give it.

    Attributes
    ----------
    units
        Standard deviation of each feature; 1 where it does not vary.
    slopes
        Least-squares slopes of the sensitive columns on the features, in these units.
    directions
        Orthonormal basis of what the slopes span.
    """

    units: FloatArray
    slopes: FloatArray
    directions: FloatArray

    @property
    def strength(self) -> float:
        """Smallest singular value of the slopes that counts as a direction; 0 if none does."""
        rank = self.directions.shape[1]
        return float(np.linalg.svd(self.slopes, compute_uv=False)[rank - 1]) if rank else 0.0


def learn_metric(
    features: npt.ArrayLike, sensitive: npt.ArrayLike, share: npt.ArrayLike
) -> LearntMetric:
    """Learn units and sensitive directions from the shares of the cells.

    Parameters
    ----------
    features
        Numbers the distance is made of, one row per cell.
    sensitive
        Sensitive attributes as numbers, one row per cell; indicator columns for categories.
    share
        Share, count or weight of each cell.

    Examples
    --------
    >>> x = [[0.0, 0.0], [0.0, 2.0], [1.0, 0.0], [1.0, 2.0]]
    >>> found = learn_metric(x, [0, 0, 1, 1], [5, 5, 5, 5])
    >>> found.units.tolist(), abs(found.directions).round(6).tolist()
    ([0.5, 1.0], [[1.0], [0.0]])
    """
    x, s = _table(features, "features"), _table(sensitive, "sensitive attributes")
    weight = np.asarray(share, dtype=np.float64)
    if s.shape[0] != x.shape[0] or weight.shape != (x.shape[0],):
        raise ValueError("features, sensitive attributes and counts must have one row per cell")
    if not np.all(weight >= 0) or not weight.sum() > 0:
        raise ValueError("counts must not be negative, and not all zero")
    units, slopes = (found[0] for found in _fitted(x, s, (weight / weight.sum())[None, :]))
    # in these units slopes are of the size of correlations, and rounding leaves no direction
    known = np.where(np.abs(slopes) > _RANK, slopes, 0.0)
    return LearntMetric(units=units, slopes=known, directions=_basis(known))


def metric_errors(
    features: npt.ArrayLike,
    sensitive: npt.ArrayLike,
    sample: Sample,
    *,
    resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Draws of how far a learnt distance is off, as a part of the distance with nothing left out.

    The metric is learnt again on every resample. Directions that the sample hardly shows may be
    any: the part is then 1 or more, and nothing is taken for known.

    Examples
    --------
    >>> from equipoise.methods.transport import plain_sample
    >>> x = [[0.0, 0.0], [0.0, 2.0], [1.0, 0.0], [1.0, 2.0]]
    >>> sample, rng = plain_sample([40, 30, 30, 40], 4), np.random.default_rng(1)
    >>> drawn = metric_errors(x, [0, 0, 1, 1], sample, resamples=200, rng=rng)
    >>> drawn.shape, bool(0 < drawn.mean() < 1)
    ((200,), True)
    """
    x, s = _table(features, "features"), _table(sensitive, "sensitive attributes")
    found, parts = learn_metric(x, s, sample.share), []
    for start in range(0, resamples, _BLOCK):
        size = min(_BLOCK, resamples - start)
        units, slopes = _fitted(x, s, sample.resampled(sample.n, size, rng))
        moved = np.linalg.norm(slopes - found.slopes, ord=2, axis=(1, 2))
        # without a direction the true one, if there is any, may be any
        sine = np.minimum(moved / found.strength, 1.0) if found.strength else 1.0
        parts.append(sine + np.abs(found.units / units - 1).max(axis=1))
    return np.concatenate(parts)


def _fitted(x: FloatArray, s: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Units of the features, and slopes of the sensitive columns on them, for each row of shares.

    Second moments give both, so a thousand resamples are a few products of matrices.
    """
    d = x.shape[1]
    # about some middle, since squares of large numbers leave nothing of small differences
    both = np.concatenate([x, s], axis=1)
    both = both - both.mean(axis=0)
    mean = shares @ both
    products = (both[:, :, None] * both[:, None, :]).reshape(len(both), -1)
    moments = (shares @ products).reshape(-1, both.shape[1], both.shape[1])
    moments = moments - mean[:, :, None] * mean[:, None, :]
    spread = np.sqrt(np.maximum(np.diagonal(moments, axis1=1, axis2=2), 0.0))
    # what does not vary keeps its own unit
    units = np.where(spread > 1e-7 * np.abs(both).max(axis=0), spread, 1.0)
    scaled = moments / units[:, :, None] / units[:, None, :]
    # columns that add up to one another share the slope: the shortest solution
    inverse = np.linalg.pinv(scaled[:, :d, :d], rcond=1e-9, hermitian=True)
    return units[:, :d], np.asarray(inverse @ scaled[:, :d, d:])


def fair_costs(
    features: npt.ArrayLike,
    directions: FloatArray,
    *,
    power: float = 2.0,
    classes: npt.ArrayLike | None = None,
    off: float = 0.0,
    neighbours: int | None = None,
) -> Neighbours:
    """Moves between cells, at the fair distance to the given power.

    Parameters
    ----------
    features
        One row per cell.
    directions
        Columns that span the sensitive subspace; need not be orthonormal; may be none.
    power
        The cost is distance to this power; 2 is usual.
    classes
        Moves between cells with different labels (for example outcomes) are forbidden.
    off
        This part of the distance with nothing projected out is added to every distance: positive
        for the largest costs that a learnt metric may have, negative for the smallest.
    neighbours
        List only moves to so many nearest cells, and say what the nearest one left out costs at
        least; all moves by default.

    Examples
    --------
    >>> x = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    >>> fair_costs(x, np.array([[1.0], [0.0]])).cost.round(9).tolist()
    [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    """
    whole, points = _table(features, "features"), _projected(features, directions)
    labels = _labels(features, classes)
    if neighbours is not None:
        return _nearest(whole, points, labels, _power(power), off, neighbours)
    # Section 2 of Xue, Yurochkin and Sun: squared distances, infinite between different labels.
    distance = _distances(points, points)
    if off != 0:
        distance = np.maximum(distance + off * _distances(whole, whole), 0.0)
    costs = distance ** _power(power)
    costs[labels[:, None] != labels] = np.inf
    return from_matrix(costs)


def _nearest(
    whole: FloatArray,
    points: FloatArray,
    labels: IntArray,
    power: float,
    off: float,
    neighbours: int,
) -> Neighbours:
    """Moves to the nearest cells of the same label, found by a tree of points."""
    if neighbours < 1:
        raise ValueError(f"at least one neighbour is needed; got {neighbours}")
    source, target, cost = [], [], []
    beyond = np.full(labels.size, np.inf)
    for label in range(int(labels.max()) + 1):
        cells = np.flatnonzero(labels == label)
        number = min(neighbours + 1, cells.size)
        found = cKDTree(points[cells]).query(points[cells], k=number)
        distance = _settled(np.reshape(found[0], (cells.size, number)), points)
        at = np.reshape(found[1], -1)
        a, b = np.repeat(cells, number), cells[at]
        apart = np.linalg.norm(whole[a] - whole[b], axis=1)
        paid = np.maximum(distance.reshape(-1) + off * apart, 0.0) ** power
        source.append(a[a != b])
        target.append(b[a != b])
        cost.append(paid[a != b])
        if number < cells.size:
            centre = whole[cells].mean(axis=0)
            out = np.linalg.norm(whole[cells] - centre, axis=1)
            # no cell of the class is further away than through its centre
            furthest = min(off, 0.0) * (out + out.max())
            beyond[cells] = np.maximum(distance[:, -1] + furthest, 0.0) ** power
    return Neighbours(
        cells=labels.size,
        source=np.concatenate(source),
        target=np.concatenate(target),
        cost=np.concatenate(cost),
        left_out=LeftOut(classes=labels, cost=beyond) if np.any(np.isfinite(beyond)) else None,
    )


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
    return np.asarray(left[:, sizes > _RANK * max(float(sizes.max(initial=0.0)), 1e-300)])


def _projected(features: npt.ArrayLike, directions: FloatArray) -> FloatArray:
    points = _table(features, "features")
    if np.asarray(directions).shape == (points.shape[1], 0):
        # nothing betrays the sensitive attributes, so nothing is projected out
        return points
    span = _table(directions, "directions")
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
    return _settled(np.sqrt(np.maximum(squares, 0.0)), b)


def _settled(distance: FloatArray, points: FloatArray) -> FloatArray:
    """Differences of large numbers: what is left of a zero distance must be zero."""
    scale = 1e-13 * max(1e-300, float((points**2).sum(axis=1).max()))
    return np.where(distance**2 <= scale, 0.0, distance)


def _power(power: float) -> float:
    if not 0 < power < np.inf:
        raise ValueError(f"the power must be positive and finite; got {power:g}")
    return power
