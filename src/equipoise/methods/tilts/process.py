"""The largest and smallest value of the tilt process over the unit ball: eigenvalues of a 4 × 4.

For a tilt with coordinates β the process is (a·β)(m·β) − (u·β)(g·β), with m and g the means of the
features and of the features times the metric, u and v their resampled deviations, t that of the
target, and a = v − t m. It is a quadratic form of rank four at most, so its extremes over ‖β‖ ≤ 1
need no matrix larger than 4 × 4, whether the target is known (t = 0) or estimated.
"""

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.tilts.draws import Deviations
from equipoise.methods.tilts.sample import TiltMoments


def unscaled_extremes(moments: TiltMoments, drawn: Deviations) -> FloatArray:
    """Lowest and highest value of the process in each resample: shape (resamples, 2).

    >>> moments = TiltMoments(
    ...     n=9.0, mean=np.array([1.0]), cross=np.array([0.0]), second=np.array([[1.0]]),
    ...     centred=np.array([[1.0]]),
    ... )
    >>> drawn = Deviations(
    ...     mean=np.zeros((1, 1)), cross=np.array([[0.2]]), target=np.array([0.05]),
    ...     spread=np.ones(1),
    ... )
    >>> unscaled_extremes(moments, drawn).round(6).tolist()
    [[0.0, 0.15]]
    """
    # Line 7 of Algorithm 8 of Cherian and Candès subtracts t I. By their Lemma 23 it is t P[h]²,
    # hence t 11ᵀ, which only adds to a and leaves the rank at four.
    first = drawn.cross - drawn.target[:, None] * moments.mean
    return extremes(moments.mean, moments.cross, first, drawn.mean)


def extremes(m: FloatArray, g: FloatArray, a: FloatArray, u: FloatArray) -> FloatArray:
    """Extremes of (a·β)(m·β) − (u·β)(g·β) over the unit ball, for each line of a and u."""
    basis = _basis(m, g)
    a_in, a_out = _split(a, basis)
    u_in, u_out = _split(u, basis)
    third = _unit(a_out)
    lines = len(a)
    vectors = np.zeros((4, lines, 4))
    vectors[0, :, :2], vectors[1, :, :2] = basis.T @ m, basis.T @ g
    vectors[2, :, :2], vectors[3, :, :2] = a_in, u_in
    vectors[2, :, 2] = np.linalg.norm(a_out, axis=1)
    along = np.einsum("ij,ij->i", u_out, third)
    vectors[3, :, 2] = along
    vectors[3, :, 3] = np.linalg.norm(u_out - along[:, None] * third, axis=1)
    # (A + Aᵀ)/2 of line 8 of Algorithm 8; the coordinates of F take the place of K^{1/2}.
    matrix = _symmetric(vectors[2], vectors[0]) - _symmetric(vectors[3], vectors[1])
    values = np.linalg.eigvalsh(matrix)
    # The ball holds the zero function, so neither end passes zero.
    return np.stack([np.minimum(values[:, 0], 0.0), np.maximum(values[:, -1], 0.0)], axis=1)


def _basis(m: FloatArray, g: FloatArray) -> FloatArray:
    """Two orthonormal columns whose span holds m and g; zero columns if there is no room."""
    basis = np.zeros((len(m), 2))
    made = np.linalg.qr(np.stack([m, g], axis=1))[0]
    basis[:, : made.shape[1]] = made
    return basis


def _split(x: FloatArray, basis: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coordinates inside the span of the basis, and what is outside."""
    inside = x @ basis
    outside = x - inside @ basis.T
    # Once more, since the first subtraction cancels digits.
    again = outside @ basis
    return inside + again, outside - again @ basis.T


def _unit(x: FloatArray) -> FloatArray:
    size = np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(np.divide(x, size, out=np.zeros_like(x), where=size > 0))


def _symmetric(x: FloatArray, y: FloatArray) -> FloatArray:
    outer = x[:, :, None] * y[:, None, :]
    return np.asarray((outer + outer.transpose(0, 2, 1)) / 2)
