"""What the tilt process needs of the rows: features, metric, influence of the target, counts."""

import math
from dataclasses import dataclass

import numpy as np

from equipoise.methods.numerics import FloatArray, IntArray

# --- What the tilt process needs of the rows: features, metric, influence of the target, counts
# ---

#: Rows treated at a time where a product with all features would not fit.
_BLOCK_ROWS = 16_384


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TiltSample:
    """Rows as the tilt process sees them, equal rows merged into one with a count.

    A tilt h has coordinates β, and its value on a row is the row's features times β. Sampling
    weights are part of the features: they multiply the tilt.
    """

    features: FloatArray
    """Rows × rank; with sampling weights of mean one, each row times its weight."""
    values: FloatArray
    """The metric minus its mean over everyone."""
    influence: FloatArray
    """First-order effect of each row on the target, averaging zero; zeros for a known target."""
    counts: FloatArray
    """How many rows each row stands for."""
    paired: FloatArray
    """How much each row counts in the target, with mean one for the average over everyone: the
    target's influence is this times the metric minus the target. Zeros for a known target."""
    clusters: IntArray | None = None
    """Number of each row's cluster, if whole clusters are resampled."""
    apart: float = 0.0
    """Mean square of the influence that is not ``paired`` with the metric, over its variance."""

    @property
    def n(self) -> float:
        """Number of rows."""
        return float(self.counts.sum())

    @property
    def rank(self) -> int:
        """Columns of the features."""
        return int(self.features.shape[1])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TiltMoments:
    """Averages over the rows from which every tilt in the span can be estimated."""

    n: float
    """Number of rows."""
    mean: FloatArray
    """Mean of the features: a tilt's mean is its product with the coordinates."""
    cross: FloatArray
    """Mean of features times the metric."""
    second: FloatArray
    """Mean of the products of features: the mean square of a tilt is a quadratic form in it."""
    centred: FloatArray
    """The same of features minus what the target counts already, the form behind the scale: the
    mean square of h − P h · r, with r how much a row counts in the target."""


def moments_of(sample: TiltSample) -> TiltMoments:
    """Averages over the rows, in blocks.

    Against the average over everyone the constant tilt has no error, and no centred square:

    >>> values = np.array([1.0, -1.0, 0.0, 0.0])
    >>> rows = TiltSample(
    ...     features=np.ones((4, 1)), values=values, influence=values, counts=np.ones(4),
    ...     paired=np.ones(4),
    ... )
    >>> moments_of(rows).second.tolist(), moments_of(rows).centred.tolist()
    ([[1.0]], [[0.0]])
    """
    share = sample.counts / sample.n
    second = np.zeros((sample.rank, sample.rank))
    for rows in row_blocks(len(share)):
        part = sample.features[rows]
        second += part.T @ (part * share[rows, None])
    mean = share @ sample.features
    # (f − m r)(f − m r)ᵀ multiplied out: one pass over the rows does for both forms.
    shared = np.outer(mean, (share * sample.paired) @ sample.features)
    counted = float(share @ sample.paired**2) + sample.apart
    return TiltMoments(
        n=sample.n,
        mean=mean,
        cross=(share * sample.values) @ sample.features,
        second=second,
        centred=second - shared - shared.T + counted * np.outer(mean, mean),
    )


def row_blocks(n: int, size: int = _BLOCK_ROWS) -> list[slice]:
    """All rows, some at a time.

    >>> row_blocks(3, 2)
    [slice(0, 2, None), slice(2, 4, None)]
    """
    return [slice(start, start + size) for start in range(0, n, size)]


# --- The scale of a tilt, and the grid of quadratic forms whose least value it is ---
#
# The scale is |P h| · s(h) + floor ‖h‖², with s(h)² = P (h − P h · r)² and r how much a row
# counts in the target: r = 0 for a known target, so that s(h)² = P h², and r = 1 for the average
# over everyone, so that s(h) is the standard deviation of h. The reason: P h · ε̂(h) moves with
# the rows as the mean of
#
#     h (L − μ_h) − P h · r (L − θ) = (h − P h · r)(L − μ_h) + P h · r (θ − μ_h),
#
# with μ_h the average metric L under the tilt and θ the target. Where r = 1 the last term is a
# number and has no error, so that the error of h is that of (h − P h)(L − μ_h): constants cancel,
# and the mean square of h − P h is what remains of the size of h. (With sampling weights r is the
# weight, and `draws` takes the last term off.) Nothing but widths rests on the scale: it says how
# one critical value is shared among tilts.
#
# Since |x| y is the minimum over τ > 0 of ½(τ x² + y²/τ), the scale is the minimum over τ of a
# quadratic form in the coordinates of h, and the supremum of another form over the scale is the
# maximum over τ of an eigenvalue. In the eigenvectors of the form behind s each of these forms is
# a diagonal plus one rank, so inner products are matrix products over a grid.

#: How far the grid may leave a supremum below its value; results are raised by as much.
SLACK = 5e-4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScaleGrid:
    """The quadratic forms over a grid of τ, in the eigenvectors of the form behind s."""

    axes: FloatArray
    """The eigenvectors."""
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
    ...     n=9.0, mean=np.array([1.0]), cross=np.array([0.0]), second=np.array([[1.0]]),
    ...     centred=np.array([[1.0]]),
    ... )
    >>> len(make_grid(moments, 0.01).tau)
    108
    """
    size, axes = np.linalg.eigh(moments.centred)
    size = np.maximum(size, 0.0)
    mean = moments.mean @ axes
    tau = _grid(size, mean, floor)
    inverse = 1 / (size[:, None] / (2 * tau) + floor)
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
    """The scale of tilts with these means, centred mean squares and squared norms.

    >>> float(scale_of(0.5, 0.36, 2.0, 0.1))
    0.5
    """
    # Appendix D of Cherian and Candès has max(|P h| √(P h²), h_*). An added floor keeps the scale
    # homogeneous of degree two, so that h need not be normalised.
    return np.asarray(np.abs(mean) * np.sqrt(square) + floor * np.asarray(norm))


def _grid(size: FloatArray, mean: FloatArray, floor: float) -> FloatArray:
    """Values of τ such that the least form of the grid is at most ``SLACK`` above the scale.

    The best τ for a tilt is s(h)/|P h|, and |P h| s(h) is at most ``largest``/τ and at most τ ‖m‖²
    times the squared norm. Far out on either side the floor decides.
    """
    most, along = float(size[-1]), float(mean @ mean)
    up = _ladder(most, floor)
    down = 1 / _ladder(along, floor)
    # s(h)/|P h| is never below this, by Cauchy and Schwarz; for a known target it is one or more.
    # (Sizes that are mere rounding are raised to it, or a zero would ask for a longer ladder.)
    solved = float((mean**2 / np.maximum(size, 1e-16 * most)).sum()) if most > 0 else 0.0
    least = 1 / math.sqrt(solved) if solved > 0 else 0.0
    return np.concatenate([down[: int(np.sum(down >= least)) + 1][::-1], up])


def _ladder(size: float, floor: float) -> FloatArray:
    """τ from one upward until a first term of at most ``size``/τ no longer counts.

    At distance δ between neighbours the first term is at most cosh(δ/2) times too large. It counts
    for less as τ grows.
    """
    # Half a step from one, since the other ladder begins as far on the other side.
    tau = [math.exp(math.acosh(1 + SLACK))]
    while tau[-1] < size / (floor * SLACK):
        room = SLACK * max(1.0, tau[-1] * floor / size)
        tau.append(tau[-1] * math.exp(2 * math.acosh(1 + min(room, 1.0))))
    return np.array(tau)
