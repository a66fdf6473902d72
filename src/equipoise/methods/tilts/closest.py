"""The closest non-negative tilt in the span: to a group, to a weighting, to another population."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import nnls

from equipoise.methods.arrays import FloatArray, IntArray

#: Rounds in which rows with a negative tilt are added to the constraints.
_ROUNDS = 60
#: Rows added in a round.
_ADDED = 60
#: How negative a tilt may be, as a share of its largest value.
TOLERATED = 1e-6
#: Penalties on the squared norm that are tried, as shares of the mean diagonal of the kernel.
PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Closest:
    """A tilt of the span that is non-negative on the rows and at the points between them."""

    coordinates: FloatArray
    """Its coordinates."""
    values: FloatArray
    """Its value on each row."""
    penalty: float
    """The penalty on its squared norm."""
    lowest: float
    """Its lowest value as a share of the largest: zero, up to rounding."""


def closest_tilts(
    features: FloatArray,
    second: FloatArray,
    wanted: FloatArray,
    penalties: Sequence[float] = PENALTIES,
    between: FloatArray | None = None,
) -> list[Closest]:
    """For each penalty the non-negative tilt closest to a density ratio, in mean square.

    ``second`` is the mean of the products of features, and ``wanted`` the mean of the features in
    the distribution to be approached: for a group, the mean over its rows. Minimises
    P h² − 2 Q h + penalty ‖h‖² over functions that are at least zero on every row of ``features``
    and, if given, of ``between``, the features of points where no row lies; the minimum is a
    projection on a cone, found by non-negative least squares.

    >>> x = np.linspace(-1, 1, 40)[:, None]
    >>> from equipoise.methods.tilts.kernels import Gaussian
    >>> from equipoise.methods.tilts.factor import factor_kernel
    >>> features = factor_kernel(Gaussian((0.5,)), x).features
    >>> inside = np.abs(x[:, 0]) < 0.5
    >>> second = features.T @ features / 40
    >>> found = closest_tilts(features, second, features[inside].mean(axis=0), [1e-5])[0]
    >>> bool(found.lowest > -1e-6), round(float(found.values[~inside].mean()), 1)
    (True, 0.2)
    """
    size = float(np.trace(second))
    bounded = features if between is None else np.concatenate([features, between])
    return [
        _closest(bounded, len(features), second, wanted, penalty * size) for penalty in penalties
    ]


def _closest(
    bounded: FloatArray, rows: int, second: FloatArray, wanted: FloatArray, penalty: float
) -> Closest:
    # Without constraints the minimum solves this system; the penalty also makes it invertible.
    matrix = second + penalty * np.eye(len(second))
    lower, _ = cho_factor(matrix, lower=True)
    lower = np.tril(lower)
    free = cho_solve((lower, True), wanted)
    bound: IntArray = np.zeros(0, dtype=np.int64)
    found = free
    for _ in range(_ROUNDS):
        values = bounded @ found
        worst = _negative(values)
        if len(np.setdiff1d(worst, bound)) == 0:
            break
        bound = np.union1d(bound, worst)
        found = _projected(lower, free, bounded[bound])
    values = bounded @ found
    top = float(values[:rows].max())
    return Closest(
        coordinates=found,
        values=values[:rows],
        penalty=penalty,
        lowest=float(min(values.min() / top, 0.0)) if top > 0 else -np.inf,
    )


def _negative(values: FloatArray) -> IntArray:
    """The rows where a tilt is most negative."""
    # A tenth of what is tolerated, so that what the last round leaves still passes.
    limit = -TOLERATED / 10 * max(float(values.max()), 0.0)
    order = np.argsort(values, kind="stable")[:_ADDED]
    return np.asarray(order[values[order] < limit])


def _projected(lower: FloatArray, free: FloatArray, rows: FloatArray) -> FloatArray:
    """The point nearest to ``free`` in the norm of the matrix at which no row is negative."""
    normals = solve_triangular(lower, rows.T, lower=True)
    start = lower.T @ free
    # Moreau: the projection on a cone is the point plus a non-negative mixture of the normals.
    length = np.maximum(np.linalg.norm(normals, axis=0), 1e-300)
    mixture: FloatArray = nnls(normals / length, -start, maxiter=50 * len(length) + 200)[0]
    moved = start + (normals / length) @ mixture
    return np.asarray(solve_triangular(lower.T, moved, lower=False))


def points_between(
    points: FloatArray, fixed: Sequence[int] = (), number: int = 1000, offset: float = 0.5
) -> FloatArray:
    """Points between the rows, where a tilt that is non-negative on the rows may not be.

    For each column that is not ``fixed``, rows are joined in the order of that column, those that
    agree on the fixed columns; ``number`` points in all lie on these lines at equal distances. With
    one column this is an even grid of its range; with more, points fall inside the cloud of rows.

    >>> points_between(np.array([[0.0], [10.0]]), number=4).ravel().tolist()
    [1.25, 3.75, 6.25, 8.75]
    """
    distinct = np.unique(points, axis=0)
    spread = np.ptp(distinct, axis=0)
    free = [j for j in range(points.shape[1]) if j not in fixed and spread[j] > 0]
    each = -(-number // max(len(free), 1))
    found = [_along(distinct, spread, j, fixed, free, each, offset) for j in free]
    return np.concatenate(found) if found else points[:0]


def _along(
    distinct: FloatArray,
    spread: FloatArray,
    column: int,
    fixed: Sequence[int],
    free: Sequence[int],
    number: int,
    offset: float,
) -> FloatArray:
    order = np.lexsort([distinct[:, column], *(distinct[:, j] for j in fixed)])
    start, stop = distinct[order[:-1]], distinct[order[1:]]
    length = np.abs((stop - start)[:, free] / spread[free]).sum(axis=1)
    # A line from one category to another leads through nobody.
    length[np.any(start[:, fixed] != stop[:, fixed], axis=1)] = 0.0
    along = np.concatenate([[0.0], np.cumsum(length)])
    if along[-1] <= 0:
        return distinct[:0]
    place = (np.arange(number) + offset) / number * along[-1]
    segment = np.clip(np.searchsorted(along, place, side="right") - 1, 0, len(length) - 1)
    part = (place - along[segment]) / np.where(length[segment] > 0, length[segment], 1.0)
    return np.asarray(start[segment] + np.clip(part, 0.0, 1.0)[:, None] * (stop - start)[segment])
