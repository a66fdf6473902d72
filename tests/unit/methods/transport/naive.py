"""The auditor's problem as the paper writes it, for a linear programming solver and by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from equipoise.methods.numerics import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    value: float
    price: float


def by_solver(costs: FloatArray, losses: FloatArray, weights: FloatArray, budget: float) -> Solved:
    """max Σ Π (l_j − l_i), rows of Π sum to f, ⟨C, Π⟩ ≤ ε, infinite costs forbidden."""
    source, target = np.nonzero(np.isfinite(costs))
    gain = losses[target] - losses[source]
    rows = (np.arange(losses.size)[:, None] == source).astype(float)
    bound = budget if np.isfinite(budget) else 1e9
    found = linprog(
        -gain,
        A_eq=rows,
        b_eq=weights,
        A_ub=costs[source, target][None, :],
        b_ub=[bound],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0, found.message
    assert found.fun is not None
    return Solved(value=-found.fun, price=-float(found.ineqlin.marginals[0]))


def dual(
    costs: FloatArray, losses: FloatArray, weights: FloatArray, budget: float, price: float
) -> float:
    """The dual objective, straight from its definition."""
    total = budget * price
    for i, f in enumerate(weights):
        allowed = np.flatnonzero(np.isfinite(costs[i]))
        total += f * max(losses[j] - losses[i] - price * costs[i, j] for j in allowed)
    return float(total)


def bends(costs: FloatArray, losses: FloatArray) -> list[float]:
    """Every price at which the dual can bend: two moves of a cell break even."""
    found = {0.0}
    for row in costs:
        allowed = np.flatnonzero(np.isfinite(row))
        for j in allowed:
            for k in allowed:
                if row[j] > row[k]:
                    found.add(max(0.0, float((losses[j] - losses[k]) / (row[j] - row[k]))))
    return sorted(found)


def derivative(
    costs: FloatArray,
    losses: FloatArray,
    weights: FloatArray,
    budget: float,
    direction: FloatArray,
    slack: float,
) -> float:
    """Smallest directional derivative over the optimal prices, by trying every bend."""
    prices = bends(costs, losses)
    values = [dual(costs, losses, weights, budget, p) for p in prices]
    best = min(values)
    return min(
        dual(costs, losses, direction, 0.0, p)
        for p, v in zip(prices, values, strict=True)
        if v <= best + slack
    )
