"""Small worlds shared by the bootstrap tests."""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.numerics import BoolArray, FloatArray, IntArray
from equipoise.methods.published.bootstrap import (
    BinaryEngine,
    CellMoments,
    Engine,
    RowEngine,
    canonical_rows,
    unweighted_moments,
)
from equipoise.methods.targets import (
    Complement,
    Constant,
    Custom,
    InfluenceSums,
    Overall,
    Reference,
    Target,
)
from tests.unit.methods.published.bootstrap.naive import TargetOf, cell_sums, interval_cells

CELLS = 6


@dataclass(frozen=True, kw_only=True)
class World:
    cell: IntArray
    loss: FloatArray
    binary: bool

    def moments(self) -> CellMoments:
        n, s, q = (
            cell_sums(self.cell, x, CELLS) for x in (self.loss * 0 + 1, self.loss, self.loss**2)
        )
        return unweighted_moments(n, s, None if self.binary else q)

    def engine(self, influence: FloatArray | None = None) -> Engine:
        if self.binary and influence is None:
            return BinaryEngine(self.moments())
        return RowEngine(canonical_rows(self.cell, self.loss, influence=influence), CELLS)

    def rows_of(self, groups: BoolArray) -> BoolArray:
        return groups[:, self.cell]


def make_world(binary: bool, n: int = 60, seed: int = 5) -> World:
    rng = np.random.default_rng(seed)
    cell = rng.choice(CELLS, size=n, p=[0.3, 0.25, 0.2, 0.15, 0.07, 0.03])
    rate = np.array([0.2, 0.5, 0.7, 0.4, 0.6, 0.3])[cell]
    loss = (rng.random(n) < rate).astype(float) if binary else rng.gamma(2.0, rate)
    return World(cell=cell, loss=loss, binary=binary)


COLLECTIONS: dict[str, BoolArray] = {
    "cells": np.eye(CELLS, dtype=bool),
    "overlapping": np.array(
        [[1, 1, 0, 0, 0, 0], [0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1], [1, 0, 1, 0, 1, 0]], dtype=bool
    ),
    # all runs but the one of everybody, which has no complement
    "intervals": np.array([x for x in interval_cells(CELLS) if not x.all()]),
}

REFERENCE = np.array([1, 0, 1, 0, 0, 0], dtype=bool)


def influence_of(world: World) -> FloatArray:
    """ψ of the mean of the squares, an estimator that no cell sum contains."""
    return world.loss**2 + 0.3 * np.sin(np.arange(world.loss.size)) - np.mean(world.loss**2)


def influence_sums(world: World, psi: FloatArray) -> InfluenceSums:
    return InfluenceSums(
        rows=float(psi.size),
        total=cell_sums(world.cell, psi, CELLS),
        product=cell_sums(world.cell, psi * world.loss, CELLS),
        sum=float(psi.sum()),
        square=float((psi**2).sum()),
    )


def targets(world: World) -> dict[str, tuple[Target, TargetOf, FloatArray | None]]:
    """Each target beside its definition on drawn rows."""
    loss, reference = world.loss, REFERENCE[world.cell]
    psi = influence_of(world)

    def outside(drawn: IntArray, member: BoolArray) -> float:
        rest = drawn[~member[drawn]]
        # a resample without target rows leaves the target where it was
        return float(np.mean(loss[rest] if rest.size else loss[~member]))

    return {
        "constant": (Constant(value=0.4), lambda d, g: 0.4, None),
        "overall": (Overall(), lambda d, g: float(np.mean(loss[d])), None),
        "scaled": (Overall(scale=0.8), lambda d, g: 0.8 * float(np.mean(loss[d])), None),
        "reference": (
            Reference(cells=REFERENCE),
            lambda d, g: float(np.mean(loss[d[reference[d]]])),
            None,
        ),
        "complement": (Complement(), outside, None),
        "custom": (
            Custom(value=0.5, influence=influence_sums(world, psi)),
            lambda d, g: 0.5 + float(np.mean(psi[d])),
            psi,
        ),
    }
