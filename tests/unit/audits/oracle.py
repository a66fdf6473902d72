"""A row-by-row bootstrap written from the definitions, and group membership read off `where`."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from equipoise.methods.numerics import BoolArray, FloatArray, IntArray

FLOOR = 0.01


def member(table: pl.DataFrame, where: Mapping[str, Any]) -> BoolArray:
    """Which rows belong to a group given as data."""
    inside = np.ones(len(table), dtype=bool)
    for name, level in where.items():
        column = table[name].to_numpy()
        if not isinstance(level, Mapping):
            inside &= column == level
            continue
        inside &= column >= level.get("from", -np.inf)
        inside &= column < level.get("below", np.inf)
        inside &= column <= level.get("to", np.inf)
    return inside


class Oracle:
    """ε, its scale and the process, for chosen rows with repetition."""

    def __init__(
        self,
        value: FloatArray,
        groups: list[BoolArray],
        target: str,
        weight: FloatArray | None = None,
        reference: BoolArray | None = None,
        known: float = 0.0,
        factor: float = 1.0,
    ) -> None:
        self.value, self.groups, self.target = value, groups, target
        self.weight = np.ones(value.size) if weight is None else weight
        self.reference, self.known, self.factor = reference, known, factor
        self.n = value.size
        everyone = np.arange(self.n)
        self.before = [self.gap(everyone, g) for g in groups]

    def compared(self, group: BoolArray) -> BoolArray | None:
        if self.target == "overall":
            return np.ones(self.n, dtype=bool)
        if self.target == "complement":
            return ~group
        return self.reference

    def mean(self, rows: IntArray) -> float:
        return float(np.average(self.value[rows], weights=self.weight[rows]))

    def theta(self, rows: IntArray, group: BoolArray) -> float:
        beside = self.compared(group)
        if beside is None:
            return self.known
        chosen = rows[beside[rows]]
        # a resample without target rows leaves the target where it was
        return self.factor * self.mean(chosen if chosen.size else np.flatnonzero(beside))

    def gap(self, rows: IntArray, group: BoolArray) -> float:
        inside = rows[group[rows]]
        return self.mean(inside) - self.theta(rows, group) if inside.size else 0.0

    def share(self, rows: IntArray, group: BoolArray) -> float:
        return float(self.weight[rows][group[rows]].sum() / self.weight[rows].sum())

    def spread(self, rows: IntArray) -> float:
        w, x = self.weight[rows], self.value[rows]
        return float(np.sqrt(rows.size * np.sum(w**2 * (x - self.mean(rows)) ** 2)) / w.sum())

    def scale(self, rows: IntArray, group: BoolArray) -> float:
        return float(max(self.share(rows, group), FLOOR) ** 1.5 * self.spread(rows))

    def published(self, rows: IntArray) -> list[float]:
        """ŝ⁻¹ p̂ p*(ε* − ε̂) of every group."""
        everyone = np.arange(self.n)
        return [
            self.share(everyone, g)
            * self.share(rows, g)
            * (self.gap(rows, g) - e)
            / self.scale(everyone, g)
            for g, e in zip(self.groups, self.before, strict=True)
        ]

    def extremes(
        self, draws: int, seed: int, cluster: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest value of the process in each resample."""
        rng = np.random.default_rng(seed)
        found = np.array([self.published(self._draw(rng, cluster)) for _ in range(draws)])
        return found.min(axis=1), found.max(axis=1)

    def _draw(self, rng: np.random.Generator, cluster: IntArray | None) -> IntArray:
        if cluster is None:
            return rng.integers(0, self.n, size=self.n)
        names = np.unique(cluster)
        picked = rng.choice(names, size=names.size)
        return np.concatenate([np.flatnonzero(cluster == name) for name in picked])
