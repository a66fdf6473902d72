"""The scale of a tilt, and the grid of quadratic forms whose least value it is.

The scale is |P h| √(P h²) + floor ‖h‖². Since |x| y is the minimum over τ > 0 of ½(τ x² + y²/τ), it
is the minimum over τ of a quadratic form in the coordinates of h, and the supremum of another form
over the scale is the maximum over τ of an eigenvalue. In the eigenvectors of the second moments
each of these forms is a diagonal plus one rank, so inner products are matrix products over a grid.
"""

import math
from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.tilts.sample import TiltMoments

#: How far the grid may leave a supremum below its value; results are raised by as much.
SLACK = 5e-4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScaleGrid:
    """The quadratic forms over a grid of τ, in the eigenvectors of the second moments."""

    axes: FloatArray
    """Eigenvectors of the second moments."""
    mean: FloatArray
    """Mean of the features along them."""
    cross: FloatArray
    """Mean of features times metric along them."""
    tau: FloatArray
    """The grid."""
    inverse: FloatArray
    """One over the diagonal part: rank × grid."""
    shrink: FloatArray
    """What the one rank leaves of inner products with the mean."""

    def with_mean(self, x: FloatArray) -> FloatArray:
        """Plain inner products with the mean in the diagonal part: lines × grid."""
        return x @ (self.inverse * self.mean[:, None])

    def inner(self, xy: FloatArray, x_mean: FloatArray, y_mean: FloatArray) -> FloatArray:
        """Inner products in the whole form, from those in its diagonal part."""
        # Sherman and Morrison, the form being a diagonal plus (τ/2) m mᵀ.
        return np.asarray(xy - self.tau / 2 * self.shrink * x_mean * y_mean)


def make_grid(moments: TiltMoments, floor: float) -> ScaleGrid:
    """The grid for these averages.

    >>> moments = TiltMoments(
    ...     n=9.0, mean=np.array([1.0]), cross=np.array([0.0]), second=np.array([[1.0]])
    ... )
    >>> len(make_grid(moments, 0.01).tau)
    107
    """
    size, axes = np.linalg.eigh(moments.second)
    size = np.maximum(size, 0.0)
    tau = _grid(float(size[-1]), floor)
    inverse = 1 / (size[:, None] / (2 * tau) + floor)
    mean = moments.mean @ axes
    return ScaleGrid(
        axes=axes,
        mean=mean,
        cross=moments.cross @ axes,
        tau=tau,
        inverse=inverse,
        shrink=1 / (1 + tau / 2 * ((mean * mean) @ inverse)),
    )


def scale_of(
    mean: FloatArray | float, square: FloatArray | float, norm: FloatArray | float, floor: float
) -> FloatArray:
    """The scale of tilts with these means, mean squares and squared norms.

    >>> float(scale_of(0.5, 0.36, 2.0, 0.1))
    0.5
    """
    # Appendix D of Cherian and Candès has max(|P h| √(P h²), h_*). An added floor keeps the scale
    # homogeneous of degree two, so that h need not be normalised.
    return np.asarray(np.abs(mean) * np.sqrt(square) + floor * np.asarray(norm))


def _grid(largest: float, floor: float) -> FloatArray:
    """τ from 1, its least optimum, to where the floor decides; never further apart than allowed.

    At distance δ between neighbours the first term is at most cosh(δ/2) times too large. It counts
    for less as τ grows, since it is at most ``largest``/τ against the floor.
    """
    # The optimum √(P h²)/|P h| is at least 1, by Jensen; the first point lies half a step above.
    tau = [math.exp(math.acosh(1 + SLACK))]
    while tau[-1] < largest / (floor * SLACK):
        room = SLACK * max(1.0, tau[-1] * floor / largest)
        tau.append(tau[-1] * math.exp(2 * math.acosh(1 + min(room, 1.0))))
    return np.array(tau)
