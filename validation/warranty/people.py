"""Populations drawn at random: kinds of people, how common each is, and what happens to them.

Nothing here knows of any method. A population has one to three attributes with two to five levels,
anything from all kinds alike to anything at all, rates near an end or in the middle, or amounts
that are skewed. Rows are drawn plainly, with weights that undo uneven chances of being drawn, or in
clusters whose rows share their luck.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import betaincinv

import equipoise as eq

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator
METRIC = eq.metric("value", "value")
RATES = (0.01, 0.03, 0.1, 0.3, 0.5, 0.8, 0.97)
AMOUNTS = ("exponential", "lognormal", "normal", "uniform")


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """A population, and how rows are drawn from it."""

    levels: tuple[int, ...]
    """Levels of each attribute."""
    share: Floats
    """Share of each kind of people, an axis for each attribute."""
    mean: Floats
    """Mean of the metric in each kind."""
    amount: str | None
    """The shape of an amount; None for 0 and 1."""
    rows: int
    way: str
    """``plain``, ``weights`` or ``clusters``."""
    tilt: float
    """With weights: how much more often rows with a one are drawn."""
    noise: float
    """With weights: the spread of what is left of them."""
    cluster: int
    """Rows of a cluster."""
    alike: float
    """Correlation within clusters."""

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes."""
        return tuple(f"a{i}" for i in range(len(self.levels)))

    def inside(self, where: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
        """Which kinds are of a group."""
        index = np.indices(self.levels)
        found = np.ones(self.levels, dtype=bool)
        for name, level in where.items():
            found &= index[self.names.index(name)] == int(str(level)[1:])
        return found

    def truth(self, inside: npt.NDArray[np.bool_]) -> float:
        """The mean of some kinds of people."""
        return float((self.share * self.mean)[inside].sum() / self.share[inside].sum())

    def table(self, rng: Rng) -> pl.DataFrame:
        """Rows."""
        share, mean = self.share.ravel(), self.mean.ravel()
        chance, mean_drawn = np.sqrt(share) if self.way == "weights" else share, mean
        if self.way == "weights" and self.amount is None:
            # rows with a one are drawn more often, and weigh less
            mean_drawn = mean * self.tilt / (mean * self.tilt + 1 - mean)
            chance = chance * (mean * self.tilt + 1 - mean)
        chance = chance / chance.sum()
        each = self.cluster if self.way == "clusters" else 1
        number = max(self.rows // each, 2)
        kind = np.repeat(rng.choice(share.size, number, p=chance), each)
        value = self._values(rng, mean_drawn[kind], np.arange(kind.size) // each, number)
        index = np.unravel_index(kind, self.levels)
        columns: dict[str, Any] = {
            name: [f"{name}{level}"[0] + str(level) for level in place]
            for name, place in zip(self.names, index, strict=True)
        }
        columns["value"] = value
        if self.way == "weights":
            weight = np.sqrt(share)[kind] * rng.lognormal(0, self.noise, kind.size)
            ones = value > 0 if self.amount is None else np.zeros(kind.size, dtype=bool)
            columns["weight"] = weight / np.where(ones, self.tilt, 1.0)
        if self.way == "clusters":
            columns["cluster"] = np.arange(kind.size) // each
        return pl.DataFrame(columns)

    def _values(self, rng: Rng, mean: Floats, cluster: Any, number: int) -> Floats:
        if self.amount is None:
            if self.way != "clusters":
                return (rng.random(mean.size) < mean).astype(np.float64)
            strength = (1 - self.alike) / self.alike
            luck = np.asarray(rng.random(number))[cluster]
            own = betaincinv(mean * strength, (1 - mean) * strength, luck)
            return (rng.random(mean.size) < own).astype(np.float64)
        draws = {
            "exponential": lambda n: rng.exponential(size=n),
            "lognormal": lambda n: rng.lognormal(-0.32, 0.8, n),
            "normal": lambda n: 1 + 0.5 * rng.normal(size=n),
            "uniform": lambda n: 2 * rng.random(n),
        }
        made = draws[self.amount](mean.size)
        if self.way == "clusters":
            shared = np.asarray(draws[self.amount](number))[cluster]
            made = self.alike * shared + (1 - self.alike) * made
        return np.asarray(mean * made)

    def trail(self, rng: Rng) -> eq.Trail:
        """Rows, and what their columns mean."""
        roles: Any = {self.way[:-1]: self.way[:-1]} if self.way != "plain" else {}
        return eq.read(self.table(rng), **roles)

    def said(self) -> str:
        """The population in a few words."""
        what = f"{self.amount} amounts" if self.amount else "rates"
        low, high = self.mean.min(), self.mean.max()
        how = {
            "plain": "",
            "weights": f", weights (ones drawn {self.tilt:g} × as often, spread {self.noise:g})",
            "clusters": f", clusters of {self.cluster} (correlation {self.alike:g})",
        }[self.way]
        kinds = " × ".join(str(n) for n in self.levels)
        return f"{self.rows:,} rows, {kinds} kinds, {what} {low:.3g}–{high:.3g}{how}"


def people(
    rng: Rng, *, alike: bool = False, rates: bool = False, plain: bool = False, attributes: int = 3
) -> People:
    """A population at random; all kinds alike, with 0/1 outcomes, or drawn plainly if asked."""
    levels = tuple(int(n) for n in rng.integers(2, 6, int(rng.integers(1, attributes + 1))))
    while np.prod(levels) > 40:
        levels = levels[:-1]
    share = rng.dirichlet(np.full(int(np.prod(levels)), rng.choice([0.7, 2.0, 20.0]))) + 0.002
    amount = None if rates or rng.random() < 0.7 else str(rng.choice(AMOUNTS))
    way = "plain" if plain or rng.random() < 0.5 else str(rng.choice(["weights", "clusters"]))
    return People(
        levels=levels,
        share=(share / share.sum()).reshape(levels),
        mean=_means(rng, levels, alike),
        amount=amount,
        rows=int(np.exp(rng.uniform(np.log(100), np.log(2000)))),
        way=way,
        tilt=float(rng.choice([1.0, 0.5, 2.0])),
        noise=float(rng.choice([0.0, 0.3, 0.8])),
        cluster=int(rng.choice([2, 5, 10])),
        alike=float(rng.choice([0.05, 0.2, 0.5])),
    )


def _means(rng: Rng, levels: tuple[int, ...], alike: bool) -> Floats:
    centre, shape = float(rng.choice(RATES)), rng.choice(["alike", "near", "any"])
    if alike or shape == "alike":
        return np.full(levels, centre)
    if shape == "near":
        logit = np.log(centre / (1 - centre)) + 0.5 * rng.normal(size=levels)
        return np.asarray(1 / (1 + np.exp(-logit)))
    return np.asarray(rng.uniform(0.02, 0.98, levels))


def against(rng: Rng, who: People) -> tuple[str, Any, Any]:
    """A target: in words, as it is asked for, and what is true of it for a group."""
    kind = str(rng.choice(["overall", "complement", "reference", "constant"]))
    everyone = np.ones(who.levels, dtype=bool)
    if kind == "overall":
        return "everyone", eq.overall(), lambda inside: who.truth(everyone)
    if kind == "complement":
        return (
            "everyone else",
            eq.complement(),
            lambda inside: who.truth(~inside) if not inside.all() else float("nan"),
        )
    if kind == "constant":
        number = who.truth(everyone)
        return "a number", eq.constant(number), lambda inside: number
    name = who.names[int(rng.integers(len(who.names)))]
    level = f"a{int(rng.integers(who.levels[who.names.index(name)]))}"
    other = who.inside({name: level})
    return f"{name} = {level}", eq.reference(**{name: level}), lambda inside: who.truth(other)


def outside(lower: float | None, upper: float | None, truth: float) -> bool:
    """Whether a bound misses the truth."""
    hair = 1e-9 * max(abs(truth), 1.0)
    low = lower is not None and lower > truth + hair
    return low or (upper is not None and upper < truth - hair)
