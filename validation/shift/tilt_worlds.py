"""Worlds in which the metric under every tilt is known: a population, samples, and questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import numpy as np
import polars as pl

import equipoise as eq
from equipoise.findings.shift_questions import closest, group_question
from equipoise.methods import tilts
from equipoise.methods.numerics import FloatArray

SEED = 20260518
PEOPLE = 4000
"""People in a population; a sample is drawn from them with replacement."""
SECTIONS, MIXTURES = 6, 3
"""Tilts toward one person, and toward a few of them, that every sample is asked about."""
METRIC = eq.metric("harm", "y")
Outcome = Literal["rate", "rare", "amount", "squared", "heavy"]


def _normal(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    return rng.standard_normal((n, p))


@dataclass(frozen=True)
class World:
    """A population with a kernel, a metric, a target and a number of rows."""

    name: str
    n: int
    over: Callable[[tuple[str, ...]], Any]
    columns: int = 1
    outcome: Outcome = "rate"
    target: Any = None
    weights: Literal["", "plain", "skewed"] = ""
    clusters: bool = False
    draw: Callable[[np.random.Generator, int, int], FloatArray] = _normal
    slope: float = 0.5
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The covariates."""
        return tuple(f"x{i}" for i in range(self.columns))

    @property
    def claim(self) -> eq.Gap:
        """What is asked."""
        return eq.gap(METRIC, target=self.target)

    def people(self) -> FloatArray:
        """The covariates of the population."""
        return _people(self.draw, self.columns)

    def centres(self) -> FloatArray:
        """People toward whom every sample is tilted."""
        rng = np.random.default_rng([SEED, 2])
        return np.asarray(self.people()[rng.integers(0, PEOPLE, SECTIONS)])

    def fixed_weights(self) -> list[FloatArray]:
        """Tilts toward one of them, and toward several."""
        rng = np.random.default_rng([SEED, 3])
        return [*np.eye(SECTIONS), *(rng.random((MIXTURES, SECTIONS)) ** 4)]

    def means(self, people: FloatArray) -> FloatArray:
        """What the metric is on average for people with these covariates."""
        leaning = np.tanh(people[:, 0])
        base = 0.04 if self.outcome == "rare" else 0.3
        return np.asarray(base * (1 + self.slope * leaning))

    def chances(self, people: FloatArray) -> FloatArray:
        """How likely a person is to be drawn; sampling weights undo it."""
        tilt = {"": 0.0, "plain": 0.5, "skewed": 1.5}[self.weights]
        chance = np.exp(tilt * people[:, 0])
        return np.asarray(chance / chance.sum())

    def sample(self, rng: np.random.Generator) -> tuple[eq.Trail, FloatArray, FloatArray]:
        """Rows as a trail, with their covariates and the metric minus its true mean."""
        people = self.people()
        chance = self.chances(people)
        place = rng.choice(PEOPLE, self.n, p=chance)
        if self.clusters:
            place = np.repeat(place[: self.n // 4], 4)
        mean = self.means(people)[place]
        y = _outcomes(rng, self.outcome, mean)
        if self.clusters:
            y = np.repeat(y[::4], 4)
        frame = pl.DataFrame({name: people[place, i] for i, name in enumerate(self.names)})
        frame = frame.with_columns(
            y=pl.Series(y),
            w=pl.Series(1 / chance[place] / PEOPLE),
            house=pl.Series(np.arange(len(y)) // 4),
            part=pl.Series(np.where(people[place, 0] > 0, "high", "low")),
        )
        roles = {"weight": "w"} if self.weights else {}
        roles |= {"cluster": "house"} if self.clusters else {}
        return eq.read(frame, **roles), people[place], y - mean

    def truth(self, h: FloatArray) -> float:
        """The disparity under a tilt with these values on the population."""
        people = self.people()
        mean = self.means(people)
        if isinstance(self.target, float):
            against = self.target
        elif self.target is None:
            against = float(mean.mean())
        else:
            against = self.target.scale * float(
                mean[people[:, 0] > 0].mean() if hasattr(self.target, "where") else mean.mean()
            )
        return float(np.average(mean, weights=h)) - against


@cache
def _people(draw: Callable[[np.random.Generator, int, int], FloatArray], p: int) -> FloatArray:
    return draw(np.random.default_rng([SEED, 1]), PEOPLE, p)


def _outcomes(rng: np.random.Generator, kind: Outcome, mean: FloatArray) -> FloatArray:
    if kind in ("rate", "rare"):
        return (rng.random(len(mean)) < mean).astype(np.float64)
    if kind == "amount":
        return rng.exponential(mean)
    if kind == "squared":
        return np.asarray(mean * rng.standard_normal(len(mean)) ** 2)
    # Finite variance, infinite third moment.
    return np.asarray(mean * rng.pareto(2.5, len(mean)) * 1.5)


def questions(
    world: World, found: Any, rows: FloatArray, error: FloatArray, rng: np.random.Generator
) -> Iterator[tuple[str, Any, float]]:
    """Tilts asked about, with their answers and the truth.

    Some are the same in every sample. Two lean on the sample's own errors, which nobody could know
    but the bounds hold for as well, since they hold for all tilts at once.
    """
    people, kernel, centres = world.people(), found.space.kernel, world.centres()
    near = kernel.block(people, centres)
    for weights in world.fixed_weights():
        kind = "section" if np.count_nonzero(weights) == 1 else "mixture"
        chosen = weights > 0
        answer = _asked(world, found, weights[chosen], centres[chosen])
        yield kind, answer, world.truth(near @ weights)
    some = rng.choice(len(rows), min(len(rows), 300), replace=False)
    for sign in (1.0, -1.0):
        lean = np.maximum(sign * error[some], 0.0)
        if lean.any():
            chosen, weights = rows[some][lean > 0], lean[lean > 0]
            h = tilts.section_sums(kernel, people, chosen, weights)
            yield "adversary", _asked(world, found, weights, chosen), world.truth(h)


def _asked(world: World, found: Any, weights: Any, points: FloatArray) -> Any:
    at = {name: points[:, i].tolist() for i, name in enumerate(world.names)}
    return found.ask_tilt(np.asarray(weights, dtype=np.float64), at=at)


def group_questions(world: World, found: Any) -> Iterator[tuple[str, Any, float]]:
    """Ranges of the first covariate by their closest tilts, whose truth is that of the tilt."""
    people = world.people()
    features = tilts.features_of(found.space.kernel, found.basis.pivots, found.basis.corner, people)
    for low, high in ((-9.0, 0.0), (0.0, 1.0), (1.0, 9.0)):
        inside = (found.space.points[:, 0] >= low) & (found.space.points[:, 0] <= high)
        if not inside.any():
            continue
        tilt = closest(found, group_question(found, None, {"x0": (low, high)}, ""), None)
        answer = found.tilted(tilt.coordinates, "group")
        yield "group", answer, world.truth(features @ tilt.coordinates)
