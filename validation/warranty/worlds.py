"""The worlds of the warranty: 14 overlapping groups of race and sex, with a truth that is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

import equipoise as eq

Floats = npt.NDArray[np.float64]
RACES = np.array(["A", "B", "C", "D"])
SEXES = np.array(["F", "M"])
N = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A population of eight kinds of people, and how rows are drawn from it."""

    name: str
    """The world in a few words."""
    shares: Floats
    """Share of each kind in the population, race by sex."""
    means: Floats
    """Mean of the metric in each kind."""
    skewed: bool = False
    """Exponential values instead of 0 and 1."""
    clusters: int | None = None
    """Rows in a cluster, which share their luck; None for independent rows."""
    weighted: bool = False
    """Whether rarer kinds are sampled more often, and weighted down again."""

    def mean(self, where: Mapping[str, Any]) -> float:
        """The true mean of a group."""
        inside = self.inside(where)
        return float((self.shares * self.means * inside).sum() / (self.shares * inside).sum())

    def inside(self, where: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
        """Which kinds belong to a group."""
        race = where["race"] == RACES if "race" in where else np.ones(4, dtype=bool)
        sex = where["sex"] == SEXES if "sex" in where else np.ones(2, dtype=bool)
        return np.asarray(race[:, None] & sex[None, :])

    def disparity(self, where: Mapping[str, Any], target: str) -> float:
        """The true disparity of a group."""
        if target == "complement":
            rest = self.shares * ~self.inside(where)
            return self.mean(where) - float((rest * self.means).sum() / rest.sum())
        other = {"reference": {"race": "A"}}.get(target, {})
        return self.mean(where) - self.mean(other)

    def trail(self, rng: np.random.Generator) -> eq.Trail:
        """A sample of rows."""
        chance = np.sqrt(self.shares) if self.weighted else self.shares
        kinds = rng.choice(8, N // (self.clusters or 1), p=(chance / chance.sum()).ravel())
        kinds = np.repeat(kinds, self.clusters or 1)
        values = self._values(kinds, rng)
        columns = {"race": RACES[kinds // 2], "sex": SEXES[kinds % 2], "value": values}
        roles: dict[str, str] = {}
        if self.weighted:
            columns["weight"] = (self.shares / chance).ravel()[kinds]
            roles["weight"] = "weight"
        if self.clusters:
            columns["cluster"] = np.arange(N) // self.clusters
            roles["cluster"] = "cluster"
        return eq.read(pl.DataFrame(columns), **roles)

    def _values(self, kinds: Any, rng: np.random.Generator) -> Floats:
        means = self.means.ravel()[kinds]
        if self.skewed:
            return np.asarray(rng.exponential(means))
        if not self.clusters:
            return (rng.random(len(kinds)) < means).astype(np.float64)
        # a cluster's own rate varies around that of its kind
        first = means[:: self.clusters]
        rates = np.repeat(rng.beta(4 * first, 4 * (1 - first)), self.clusters)
        return (rng.random(len(kinds)) < rates).astype(np.float64)


EVEN = np.outer([0.4, 0.3, 0.2, 0.1], [0.5, 0.5])
SMALL = np.outer([0.6, 0.37, 0.026, 0.004], [0.5, 0.5])
ALIKE = np.full((4, 2), 0.3)
UNEVEN = np.array([[0.25, 0.30], [0.35, 0.20], [0.40, 0.30], [0.15, 0.45]])

NULL = World(name="null", shares=EVEN, means=ALIKE)
WORLDS = (
    NULL,
    World(name="uneven", shares=EVEN, means=UNEVEN),
    World(name="small groups, rare", shares=SMALL, means=ALIKE / 6),
    World(name="skewed", shares=EVEN, means=UNEVEN, skewed=True),
    World(name="clustered", shares=EVEN, means=ALIKE, clusters=5),
    World(name="weighted", shares=EVEN, means=UNEVEN, weighted=True),
)
PLANTED = World(name="planted", shares=EVEN, means=ALIKE + np.array([[0.0], [0.0], [0.12], [0.0]]))
