"""Worlds, verdicts and output shared by the scripts that reproduce paper 002."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from equipoise.methods.numerics import FloatArray
from equipoise.methods.transport import Problem, from_matrix, prepare, within_classes

SEED = 20210413


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A problem and a population with a known audit value."""

    problem: Problem
    weights: FloatArray

    @property
    def truth(self) -> float:
        """The population's audit value."""
        return float(self.problem.values(self.weights))


def unique(cells: int) -> World:
    """Squared distances, graded losses, a budget inside one segment: the dual is unique."""
    rng = np.random.default_rng(7)
    points, losses = rng.normal(size=(cells, 2)), rng.random(cells)
    costs = ((points[:, None] - points) ** 2).sum(-1)
    weights = np.linspace(1, 2, cells)
    problem = prepare(from_matrix(costs), losses, budget=0.15)
    return World(problem=problem, weights=weights / weights.sum())


def one_sided() -> World:
    """The budget is exactly what the best moves cost: the limit is min(0, normal)."""
    inf = np.inf
    costs = [[0.0, inf, 1.0], [inf, 0.0, 1.0], [inf, inf, 0.0]]
    problem = prepare(from_matrix(costs), [0.0, 0.8, 1.0], budget=0.3)
    return World(problem=problem, weights=np.array([0.3, 0.4, 0.3]))


def scarce() -> World:
    """One segment takes the whole budget, so the value is the same for every likely sample."""
    inf = np.inf
    costs = [[0.0, inf, 1.0], [inf, 0.0, 1.0], [inf, inf, 0.0]]
    problem = prepare(from_matrix(costs), [0.0, 0.8, 1.0], budget=0.1)
    return World(problem=problem, weights=np.array([0.3, 0.4, 0.3]))


def two_sided(shift: float = 0.0, n: int = 1) -> World:
    """The limit is minus the absolute value of a normal, or nearly: ``shift`` standard errors off.

    Cell 0 pays 1 to gain 1; cells 1 and 2 gain 0.4 at no cost, cell 1 may pay 1 for 0.2 more.
    """
    costs = np.full((5, 5), np.inf)
    np.fill_diagonal(costs, 0.0)
    costs[[0, 1, 1, 2], [4, 3, 4, 3]] = 1.0, 0.0, 1.0, 0.0
    problem = prepare(from_matrix(costs), [0.0, 0.4, 0.4, 0.8, 1.0], budget=0.3)
    first = 0.3 + shift * math.sqrt(0.21 / n)
    return World(problem=problem, weights=np.array([first, 0.4, 0.6 - first, 0.0, 0.0]))


def free_moves(binary: bool) -> World:
    """Ten classes of comparable cells, at no cost inside a class."""
    rng = np.random.default_rng(3)
    labels, losses = rng.integers(0, 10, 40), rng.random(40)
    losses = (losses < 0.05).astype(float) if binary else losses
    return World(
        problem=prepare(within_classes(labels), losses), weights=rng.dirichlet(np.full(40, 3.0))
    )


def rare() -> World:
    """One row in a hundred gains anything, some 0.4 and some 1."""
    problem = prepare(within_classes([0, 0, 1, 1, 2, 2]), [0.0, 0.4, 0.0, 1.0, 0.0, 0.0])
    return World(problem=problem, weights=np.array([0.005, 0.3, 0.005, 0.3, 0.2, 0.19]))


def fair() -> World:
    """Comparable people are treated alike: the value is zero in every sample."""
    problem = prepare(within_classes([0, 0, 1, 1]), [0.2, 0.2, 0.7, 0.7])
    return World(problem=problem, weights=np.array([0.1, 0.4, 0.3, 0.2]))


def miss_limit(count: int, nominal: float = 0.05) -> float:
    """The largest share of misses taken for nominal: a point more, and three standard errors."""
    return nominal + 0.01 + 3 * math.sqrt(nominal * (1 - nominal) / max(count, 1))
