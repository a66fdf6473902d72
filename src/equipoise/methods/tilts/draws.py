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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from equipoise.methods.numerics import CHUNK, FloatArray, Progress
from equipoise.methods.tilts.sample import TiltMoments, TiltSample, row_blocks

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
