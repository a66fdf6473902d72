"""The solved problem: value, plan, price, and who moves where."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.transport.prices import Prices, optimal_prices
from equipoise.methods.transport.problem import Problem, summed
from equipoise.methods.transport.sample import Sample, plain_sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A best plan, as a list of the masses that end up in each cell; stays included.

    Attributes
    ----------
    source
        The cell the mass comes from.
    target
        The cell it goes to; the same cell if it stays.
    mass
        Share of all rows.
    gain
        What this entry adds to the value: mass × difference of losses.
    """

    source: IntArray
    target: IntArray
    mass: FloatArray
    gain: FloatArray

    def moves(self) -> "Plan":
        """The entries that change cell."""
        keep = self.source != self.target
        return Plan(
            source=self.source[keep],
            target=self.target[keep],
            mass=self.mass[keep],
            gain=self.gain[keep],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The audit value of one sample and everything that explains it.

    Attributes
    ----------
    value
        How much worse the model does on the worst comparable population.
    risk
        Average loss of the sample as it is.
    spent
        Average cost of the plan.
    prices
        The optimal dual prices.
    plan
        A best plan; ties between equally good moves are settled in the order of the cells.
    gains
        What the rows of each cell add to the value.
    after
        Share of all rows in each cell after the plan.
    isolated
        Number of cells that are comparable with no other.
    """

    value: float
    risk: float
    spent: float
    prices: Prices
    plan: Plan
    gains: FloatArray
    after: FloatArray
    isolated: int


def solve(problem: Problem, rows: npt.ArrayLike | Sample) -> Solution:
    """Solve the auditor's problem for one sample of rows.

    Parameters
    ----------
    problem
        The prepared problem.
    rows
        Rows per cell; a sample where rows have weights or come in clusters.

    Examples
    --------
    >>> from equipoise.methods.transport import from_matrix, prepare
    >>> p = prepare(from_matrix([[0, 1], [1, 0]]), [0.0, 1.0], budget=0.25)
    >>> s = solve(p, [60, 40])
    >>> s.value, s.plan.moves().target.tolist(), s.plan.moves().mass.round(9).tolist()
    (0.25, [1], [0.25])
    """
    sample = rows if isinstance(rows, Sample) else plain_sample(rows, problem.cells)
    weights = sample.share
    share = _shares_taken(problem, weights)
    plan = _plan(problem, weights, share)
    h = problem.hulls
    return Solution(
        value=float(problem.values(weights)),
        risk=float(weights @ problem.losses),
        spent=float(np.sum(weights[h.row] * h.width * share)),
        prices=optimal_prices(problem, weights),
        plan=plan,
        gains=summed(plan.source, plan.gain, problem.cells),
        after=summed(plan.target, plan.mass, problem.cells),
        isolated=problem.isolated,
    )


def _shares_taken(problem: Problem, weights: FloatArray) -> FloatArray:
    """Share of each segment that the budget pays for: ones, one part, zeros."""
    room = weights[problem.hulls.row] * problem.hulls.width
    filled = np.cumsum(room)
    last = int(np.searchsorted(filled, problem.budget, side="left"))
    share = np.zeros(room.size)
    share[:last] = 1.0
    if last < room.size:
        left = problem.budget - (filled[last - 1] if last else 0.0)
        share[last] = min(1.0, left / room[last]) if room[last] > 0 else 0.0
    return share


def _plan(problem: Problem, weights: FloatArray, share: FloatArray) -> Plan:
    h, cells = problem.hulls, problem.cells
    here = np.flatnonzero(weights > 0)
    taken = (share > 0) & (weights[h.row] > 0)
    moved = weights[h.row[taken]] * share[taken]
    # mass first goes where it is free to go, then along its segments
    source = np.concatenate((here, h.row[taken], h.row[taken]))
    target = np.concatenate((h.base_target[here], h.start[taken], h.stop[taken]))
    mass = np.concatenate((weights[here], -moved, moved))
    keys, place = np.unique(source * cells + target, return_inverse=True)
    net = np.bincount(place, mass, minlength=keys.size)
    # A cell that all mass has left keeps dust, which is nobody.
    keep = net > 1e-15 * weights[keys // cells]
    source, target, net = keys[keep] // cells, keys[keep] % cells, net[keep]
    gain = net * (problem.losses[target] - problem.losses[source])
    return Plan(source=source, target=target, mass=net, gain=gain)
