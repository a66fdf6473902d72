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
    """A tilt of the span that is non-negative on the rows."""

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
) -> list[Closest]:
    """For each penalty the non-negative tilt closest to a density ratio, in mean square.

    ``second`` is the mean of the products of features, and ``wanted`` the mean of the features in
    the distribution to be approached: for a group, the mean over its rows. Minimises
    P h² − 2 Q h + penalty ‖h‖² over functions that are at least zero on every row of ``features``;
    the minimum is a projection on a cone, found by non-negative least squares.

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
    return [_closest(features, second, wanted, penalty * size) for penalty in penalties]


def _closest(
    features: FloatArray, second: FloatArray, wanted: FloatArray, penalty: float
) -> Closest:
    # Without constraints the minimum solves this system; the penalty also makes it invertible.
    matrix = second + penalty * np.eye(len(second))
    lower, _ = cho_factor(matrix, lower=True)
    lower = np.tril(lower)
    free = cho_solve((lower, True), wanted)
    bound: IntArray = np.zeros(0, dtype=np.int64)
    found = free
    for _ in range(_ROUNDS):
        values = features @ found
        worst = _negative(values)
        if len(np.setdiff1d(worst, bound)) == 0:
            break
        bound = np.union1d(bound, worst)
        found = _projected(lower, free, features[bound])
    values = features @ found
    top = float(values.max())
    return Closest(
        coordinates=found,
        values=values,
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
