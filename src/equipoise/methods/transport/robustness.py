"""How far the value moves when the costs are not quite those of the right metric.

Let every cost be wrong by at most d. A plan that costs ε costs at most ε + d by the other costs, so
the value by those lies between the values at budgets ε − d and ε + d by these. The value is concave
in the budget: above ε it rises by at most the price for each unit, below it falls by at most
(value at ε − value at 0) / ε for each.

Proposition 2.2 of Xue, Yurochkin and Sun bounds the change by d L / √ε, with L the largest
difference of losses per unit of distance. Its proof bounds the price by just that; the rates above
are never more than L / √ε, and need no L. (As printed, the proposition compares relative changes of
costs and values; what is proved, and used here, are differences.)
"""

import math
from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.transport.moves import Classes, Moves
from equipoise.methods.transport.prices import optimal_prices
from equipoise.methods.transport.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Robustness:
    """What a unit of error in every cost can do to the value.

    Attributes
    ----------
    rise
        The value rises by at most this, for each unit by which costs are too high.
    fall
        It falls by at most this, for each unit by which they are too low, up to the whole budget.
    steepness
        Largest difference of losses per unit of distance (the root of the cost) between comparable
        cells, L; infinite where people at no distance are treated differently.
    published
        L / √budget, the rate of Proposition 2.2; infinite like L.
    """

    rise: float
    fall: float
    steepness: float
    published: float


def robustness(problem: Problem, moves: Moves, share: FloatArray) -> Robustness | None:
    """The rates at one distribution; None where no budget is set, or no limit to it.

    Examples
    --------
    >>> from equipoise.methods.transport import from_matrix, prepare
    >>> moves = from_matrix([[0, 1], [1, 0]])
    >>> found = robustness(prepare(moves, [0.0, 1.0], budget=0.25), moves, np.array([0.6, 0.4]))
    >>> found.rise, found.fall, found.published
    (1.0, 1.0, 2.0)
    """
    budget = problem.budget
    if budget == 0 or not math.isfinite(budget):
        return None
    free = float(share @ problem.gradient(math.inf))
    steep = _steepness(moves, problem.losses)
    return Robustness(
        rise=optimal_prices(problem, share).lowest,
        fall=(float(problem.values(share)) - free) / budget,
        steepness=steep,
        published=steep / math.sqrt(budget),
    )


def _steepness(moves: Moves, losses: FloatArray) -> float:
    if isinstance(moves, Classes):
        order = np.lexsort((losses, moves.labels))
        same = np.diff(moves.labels[order]) == 0
        return math.inf if np.any(same & (np.diff(losses[order]) > 0)) else 0.0
    apart = np.abs(losses[moves.target] - losses[moves.source])
    differ = apart > 0
    if not np.any(differ):
        return 0.0
    with np.errstate(divide="ignore"):
        return float(np.max(apart[differ] / np.sqrt(moves.cost[differ])))
