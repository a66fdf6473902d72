"""Resampled deviations of the averages behind every tilt: by rows, by clusters, or normal.

The process (v·β)(m·β) − (u·β)(g·β) − t (m·β)² of `process` stays the same if v is replaced by
v − d g and u by u − d m, whatever the number d. With d the deviation of the target's weights r (see
`TiltSample.paired`), a tilt that the target cancels has (v − t m)·β = u·β = 0 in every resample.
For the average over everyone this is the constant tilt, with sampling weights as well.

Each resample also tells how much the metric varies in it. A skewed metric has its average and its
spread move together, so an estimate that is too low comes with an error that looks too small;
dividing by the resample's own spread (as Student did) gives each side the tail it needs.
"""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from equipoise.methods.numerics import CHUNK, FloatArray, IntArray, Progress

# --- What the tilt process needs of the rows: features, metric, influence of the target, counts

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


# --- Resampled deviations of the averages behind every tilt: by rows, by clusters, or normal ---

#: Rows beyond so many times the atoms are drawn atom by atom.
_MANY = 8
#: A resample that lost nearly all spread counts as if it had kept so much.
_LEAST_SPREAD = 0.3
#: Chunks whose suprema are taken together.
_JOINED = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deviations:
    """Resampled averages minus the observed ones, one line per resample."""

    mean: FloatArray
    """Of the features, minus d times their mean."""
    cross: FloatArray
    """Of features times the metric, minus d times its mean."""
    target: FloatArray
    """Of the target."""
    spread: FloatArray
    """Standard deviation of the metric in the resample over that in the rows."""


class TiltEngine(Protocol):
    """Draws deviations."""

    @property
    def name(self) -> str:
        """How the result names the engine: exact, moments or clusters."""
        ...

    def draw(self, rng: np.random.Generator, size: int) -> Deviations:
        """Deviations of ``size`` resamples."""
        ...


def deviations(
    engine: TiltEngine,
    *,
    resamples: int,
    seed: np.random.SeedSequence,
    progress: Progress | None = None,
) -> Iterator[Deviations]:
    """Draws in fixed chunks, one random stream each; the seed is copied, not consumed."""
    for start in range(0, resamples, CHUNK):
        key = (*seed.spawn_key, start // CHUNK)
        stream = np.random.SeedSequence(seed.entropy, spawn_key=key, pool_size=seed.pool_size)
        size = min(CHUNK, resamples - start)
        yield engine.draw(np.random.default_rng(stream), size)
        if progress is not None:
            progress(start + size)


def joined(drawn: Iterable[Deviations], number: int = _JOINED) -> Iterator[Deviations]:
    """The same deviations, several chunks at a time: fewer and larger products of matrices."""
    chunks = iter(drawn)
    while part := list(itertools.islice(chunks, number)):
        yield Deviations(
            mean=np.concatenate([each.mean for each in part]),
            cross=np.concatenate([each.cross for each in part]),
            target=np.concatenate([each.target for each in part]),
            spread=np.concatenate([each.spread for each in part]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class RowTilts:
    """Rows, or whole clusters of rows, drawn with replacement."""

    sample: TiltSample

    @property
    def name(self) -> str:
        """Clusters if there are any."""
        return "exact" if self.sample.clusters is None else "clusters"

    def draw(self, rng: np.random.Generator, size: int) -> Deviations:
        """Deviations of ``size`` resamples."""
        sample = self.sample
        # w − 1 where Algorithm 8 of Cherian and Candès has w: at w = 1 the matrix A is
        # antisymmetric, so its symmetric part is the same. For the target line 6 has w − 1 too.
        share = self._frequencies(rng, size) / sample.n
        # One product with the features for both averages and for what is taken off them.
        every = sample.counts / sample.n
        lines = np.stack([every, every * sample.values])
        both = np.concatenate([share, share * sample.values, lines]) @ sample.features
        moved = (share @ sample.paired)[:, None]
        return Deviations(
            mean=both[:size] - moved * both[-2],
            cross=both[size:-2] - moved * both[-1],
            target=share @ sample.influence,
            spread=_spread(share @ _squares(sample)),
        )

    def _frequencies(self, rng: np.random.Generator, size: int) -> FloatArray:
        """How often each row was drawn, minus how often it is there."""
        counts, clusters = self.sample.counts, self.sample.clusters
        if clusters is None:
            return _drawn(rng, counts, size) - counts
        number = int(clusters.max()) + 1
        times = _drawn(rng, np.ones(number), size) - 1.0
        return np.asarray(times[:, clusters] * counts)


def _drawn(rng: np.random.Generator, counts: FloatArray, size: int) -> FloatArray:
    """Multinomial frequencies of as many draws as there are rows."""
    n, atoms = int(counts.sum()), len(counts)
    if n > _MANY * atoms:
        return rng.multinomial(n, counts / counts.sum(), size).astype(np.float64)
    of_row = np.repeat(np.arange(atoms), counts.astype(np.int64))
    drawn = np.empty((size, atoms))
    for line in drawn:
        line[:] = np.bincount(of_row[rng.integers(0, n, n)], minlength=atoms)
    return drawn


class NormalTilts:
    """The same averages drawn from the normal with their exact covariance: no row is touched."""

    name = "moments"

    def __init__(self, sample: TiltSample) -> None:
        self._rank = sample.rank
        # A multinomial draw of n rows gives averages the covariance of one row over n, exactly.
        self._root = _root(_covariance(sample) / sample.n)

    def draw(self, rng: np.random.Generator, size: int) -> Deviations:
        """Deviations of ``size`` resamples."""
        drawn = rng.standard_normal((size, self._root.shape[1])) @ self._root.T
        rank = self._rank
        return Deviations(
            mean=drawn[:, :rank],
            cross=drawn[:, rank : 2 * rank],
            target=drawn[:, 2 * rank],
            spread=_spread(drawn[:, 2 * rank + 1]),
        )


def _covariance(sample: TiltSample) -> FloatArray:
    """Covariance between rows of (features, features × metric, influence, squares)."""
    width = 2 * sample.rank + 2
    squares = _squares(sample)
    total, square = np.zeros(width), np.zeros((width, width))
    share = sample.counts / sample.n
    off = np.stack([share, share * sample.values]) @ sample.features
    for rows in row_blocks(len(share), max(64, (1 << 22) // width)):
        part, paired = sample.features[rows], sample.paired[rows, None]
        joined = np.concatenate(
            [
                part - paired * off[0],
                part * sample.values[rows, None] - paired * off[1],
                sample.influence[rows, None],
                squares[rows, None],
            ],
            axis=1,
        )
        weighed = joined * share[rows, None]
        total += weighed.sum(axis=0)
        square += joined.T @ weighed
    return np.asarray(square - np.outer(total, total))


def _squares(sample: TiltSample) -> FloatArray:
    """Squared deviations of the metric from its mean, over their mean; of clusters, their sums'."""
    square = sample.values**2
    if sample.clusters is not None:
        size = np.bincount(sample.clusters, sample.counts)
        total = np.bincount(sample.clusters, sample.counts * sample.values)
        # A cluster is drawn whole, so each of its rows carries the same part of its square.
        square = (total**2 / np.maximum(size, 1.0))[sample.clusters]
    mean = float(sample.counts @ square) / sample.n
    return np.asarray(square / mean if mean > 0 else np.ones_like(square))


def _spread(moved: FloatArray) -> FloatArray:
    """The spread of each resample, from how its mean square moved."""
    return np.sqrt(np.maximum(1 + moved, _LEAST_SPREAD**2))


def _root(covariance: FloatArray) -> FloatArray:
    """R with R Rᵀ the covariance, the directions without variance left out."""
    size, axes = np.linalg.eigh(covariance)
    # Directions that do not vary, as that of a constant feature, are left with rounding alone.
    kept = size > 1e-15 * max(float(size[-1]), 0.0)
    return np.asarray(axes[:, kept] * np.sqrt(size[kept]))


# --- The largest and smallest value of the tilt process over the unit ball: eigenvalues of a 4 ×
# 4 ---
#
# For a tilt with coordinates β the process is (a·β)(m·β) − (u·β)(g·β), with m and g the means of
# the features and of the features times the metric, u and v their resampled deviations, t that of
# the target, and a = v − t m. It is a quadratic form of rank four at most, so its extremes over
# ‖β‖ ≤ 1 need no matrix larger than 4 × 4, whether the target is known (t = 0) or estimated.


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
