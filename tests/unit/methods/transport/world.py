"""Random problems for hypothesis, and worlds with a known audit value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.transport import Problem, from_matrix, prepare

KINDS = ("metric", "random", "forbidden", "whole", "zero or infinite")


@dataclass(frozen=True, slots=True, kw_only=True)
class Random:
    costs: FloatArray
    losses: FloatArray
    counts: IntArray
    budget: float

    @property
    def weights(self) -> FloatArray:
        return np.asarray(self.counts / self.counts.sum())

    @property
    def problem(self) -> Problem:
        return prepare(from_matrix(self.costs), self.losses, budget=self.budget)


def costs_of(kind: str, cells: int, rng: np.random.Generator) -> FloatArray:
    points = rng.normal(size=(cells, 2))
    costs = {
        "metric": ((points[:, None] - points) ** 2).sum(-1),
        "random": rng.random((cells, cells)) * 2,
        "forbidden": np.where(rng.random((cells, cells)) < 0.6, np.inf, rng.random((cells, cells))),
        "whole": rng.integers(0, 4, (cells, cells)).astype(float),
        "zero or infinite": np.where(rng.integers(0, 3, cells)[:, None] == 1, 0.0, np.inf),
    }[kind]
    costs = np.array(np.broadcast_to(costs, (cells, cells)))
    np.fill_diagonal(costs, 0.0)
    # one pair is always comparable
    costs[0, 1] = min(costs[0, 1], 1.0)
    return costs


@st.composite
def randoms(draw: st.DrawFn, largest: int = 60) -> Random:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cells = draw(st.integers(2, largest))
    binary = draw(st.booleans())
    losses = rng.integers(0, 2, cells).astype(float) if binary else rng.random(cells)
    counts = rng.integers(0, 30, cells)
    counts[0] += 1
    budget = draw(st.sampled_from([0.0, 0.01, 0.1, 0.25, 0.5, 1.0, 5.0, np.inf]))
    costs = costs_of(draw(st.sampled_from(KINDS)), cells, rng)
    return Random(costs=costs, losses=losses, counts=counts, budget=budget)


def apart(cells: int = 8) -> tuple[Problem, FloatArray]:
    """A unique dual: graded gains, and a budget well inside one segment."""
    rng = np.random.default_rng(7)
    costs = costs_of("metric", cells, rng)
    problem = prepare(from_matrix(costs), rng.random(cells), budget=0.15)
    return problem, np.full(cells, 1 / cells)


def tied() -> tuple[Problem, FloatArray]:
    """A dual that is not unique: the budget is exactly what the first of two segments costs."""
    inf = np.inf
    costs = np.array([[0, inf, 1], [inf, 0, 1], [inf, inf, 0]])
    problem = prepare(from_matrix(costs), [0.0, 0.8, 1.0], budget=0.3)
    return problem, np.array([0.3, 0.4, 0.3])


def kinked(shift: float = 0.0, n: int = 1) -> tuple[Problem, FloatArray]:
    """A dual that is not unique and bends both ways: the limit is −|normal| up to scale.

    Cell 0 pays 1 to gain 1. Cells 1 and 2 gain 0.4 at no cost, and cell 1 may pay 1 for 0.2 more.
    The tie is missed by ``shift`` standard errors of a sample of n rows.
    """
    costs = np.full((5, 5), np.inf)
    np.fill_diagonal(costs, 0.0)
    costs[[0, 1, 1, 2], [4, 3, 4, 3]] = 1.0, 0.0, 1.0, 0.0
    problem = prepare(from_matrix(costs), [0.0, 0.4, 0.4, 0.8, 1.0], budget=0.3)
    first = 0.3 + shift * float(np.sqrt(0.21 / n))
    return problem, np.array([first, 0.4, 0.6 - first, 0.0, 0.0])
