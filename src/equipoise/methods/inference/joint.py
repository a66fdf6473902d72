"""The joint law of all groups' scores: correlated normals, drawn from the cells.

A draw moves every cell's sums by a normal with the covariance that its rows (or clusters) give
them; the groups' contrasts move along, and divided by their standard deviations they have the
correlation of the estimates. The more groups move together, the smaller the largest of them, so a
correlation that rests on few counts is taken to be smaller than it looks. No critical value exceeds
that of independent groups.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from equipoise.methods.inference.clusters import ClusterSums
from equipoise.methods.inference.comparison import Comparison, Moments, over
from equipoise.methods.numerics import FloatArray, GroupSums, IntArray, child

CHUNK = 256
"""Draws per random stream; part of the definition of the results."""
NUMBERS = 60_000_000
"""Draws times groups that are affordable; larger collections get fewer draws."""
MOST_DRAWS, LEAST_DRAWS = 10_000, 1000


class CellDraws(Protocol):
    """Random moves of the cells' sums."""

    def draw(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Moves of Σ w and Σ w L, shapes ``(size, C)``."""
        ...

    def variance(self, found: Comparison, factor: FloatArray, sums: GroupSums) -> FloatArray:
        """Variance of each group's move."""
        ...


class RowDraws:
    """Moves of the cells when rows are independent."""

    def __init__(self, cells: Moments) -> None:
        """Take each cell's moments, with one row's worth of everybody's mixed in."""
        w2 = cells.weight2
        mixed = []
        for x in (cells.total2, cells.square2):
            everyone = float(x.sum()) / max(float(w2.sum()), 1e-300)
            own = np.nan_to_num(over(x, w2))
            mixed.append((own * cells.rows + everyone) / (cells.rows + 1))
        self.mean, square = mixed
        self._root = np.sqrt(w2)
        self._rest = self._root * np.sqrt(np.maximum(square - self.mean**2, 0.0))

    def draw(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Normal moves with the covariance of each cell's sums."""
        first, second = rng.standard_normal((2, size, self._root.size))
        weight = first * self._root
        return weight, weight * self.mean + second * self._rest

    def variance(self, found: Comparison, factor: FloatArray, sums: GroupSums) -> FloatArray:
        """Σ a²q − 2ab s + b²w over the parts, which share no row."""
        w = self._root**2
        cells = (w * self.mean**2 + self._rest**2, w * self.mean, w)
        a = found.slopes(factor)
        b = found.intercepts(factor, np.nan_to_num(over(found.parts.total, found.parts.weight)))
        q, s, n = (
            found.target.parts(x, sums) if found.tilts is None else x[:, None] for x in cells
        )
        return np.asarray((a**2 * q - 2 * a * b * s + b**2 * n).sum(axis=0))


class ClusterDraws:
    """Moves of the cells when whole clusters come and go."""

    def __init__(self, clusters: ClusterSums) -> None:
        """Arrange the sums as cells × clusters."""
        self._clusters = clusters
        shape = (clusters.cells, clusters.number)
        place = (clusters.cell, clusters.cluster)
        self._weight = sparse.csr_array((clusters.weight, place), shape=shape)
        self._total = sparse.csr_array((clusters.total, place), shape=shape)

    def draw(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Every cluster's sums times a normal of its own."""
        times = rng.standard_normal((self._weight.shape[1], size))
        return np.asarray((self._weight @ times).T), np.asarray((self._total @ times).T)

    def variance(self, found: Comparison, factor: FloatArray, sums: GroupSums) -> FloatArray:
        """Sum of the squared moves that single clusters make."""
        about = np.zeros(factor.size)
        for weight, total in self._clusters.blocks(factor.size):
            about += (found.moves(weight, total, factor, sums) ** 2).sum(axis=0)
        return about


@dataclass(frozen=True, slots=True, kw_only=True)
class JointLaw:
    """Where draws of all groups' scores come from."""

    cells: CellDraws
    """Moves of the cells."""
    found: Comparison
    """Groups beside their target."""
    factor: FloatArray
    """What the target is multiplied by at the estimated disparities, ``(G,)``."""
    sums: GroupSums
    """From cells to groups."""
    apart: FloatArray
    """Share of each score's variance that is drawn for itself, ``(G,)``."""
    used: IntArray
    """Groups that are answered."""
    draws: int
    """How many draws."""
    seed: np.random.SeedSequence
    """Seed of the draws."""

    def scores(self) -> Iterator[FloatArray]:
        """Blocks ``(b, used)`` of standard normal scores."""
        variance = self.cells.variance(self.found, self.factor, self.sums)
        error = np.sqrt(np.maximum(variance[self.used], 1e-300))
        step = max(1, min(CHUNK, (1 << 22) // max(self.factor.size, 1)))
        loose, done = self.apart[self.used], 0
        for chunk in range(-(-self.draws // CHUNK)):
            rng = np.random.default_rng(child(self.seed, chunk))
            size = min(CHUNK, self.draws - done)
            weight, total = self.cells.draw(rng, size)
            own = rng.standard_normal((size, self.used.size))
            for start in range(0, size, step):
                part = slice(start, min(start + step, size))
                moved = self.found.moves(weight[part], total[part], self.factor, self.sums)
                z = moved[:, self.used] / error
                yield np.sqrt(1 - loose) * z + np.sqrt(loose) * own[part]
            done += size


def affordable_draws(groups: int) -> int:
    """How many draws a collection gets if nothing else is said.

    >>> affordable_draws(80), affordable_draws(1_000_000)
    (10000, 1000)
    """
    return int(np.clip(NUMBERS // max(groups, 1), LEAST_DRAWS, MOST_DRAWS))


def apart_of(outcomes: FloatArray) -> FloatArray:
    """Share of a score's variance that is drawn for itself, by how many outcomes it rests on.

    A correlation r from n outcomes is known to about (1 − r²)/√n. Those near one, which lower the
    critical value most, are known better than 1/√n says; n^(−2/3) lies between.

    >>> apart_of(np.array([0.0, 8.0, 1000.0])).round(6).tolist()
    [1.0, 0.25, 0.01]
    """
    return np.asarray(np.maximum(outcomes, 1.0) ** (-2 / 3))


def independent_score(level: float, groups: int, two_sided: bool) -> float:
    """The critical score of independent groups (Šidák), or Bonferroni's for one side.

    >>> round(independent_score(0.95, 10, True), 3)
    2.8
    """
    if two_sided:
        return float(-ndtri((1 - level ** (1 / max(groups, 1))) / 2))
    return float(-ndtri((1 - level) / max(groups, 1)))


def joint_law(
    cells: CellDraws,
    found: Comparison,
    sums: GroupSums,
    outcomes: FloatArray,
    used: IntArray,
    *,
    draws: int,
    seed: np.random.SeedSequence,
) -> JointLaw:
    """The law of the scores at the estimated disparities."""
    estimate = np.where(np.isfinite(found.estimate), found.estimate, 1.0)
    return JointLaw(
        cells=cells,
        found=found,
        factor=found.factor(np.clip(estimate, -1e6, 1e6)),
        sums=sums,
        apart=apart_of(outcomes),
        used=used,
        draws=draws,
        seed=seed,
    )
