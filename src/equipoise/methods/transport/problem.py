"""The audit value of many distributions at once: one weighted cumulative sum each."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise.methods.numerics import BoolArray, FloatArray, IntArray
from equipoise.methods.transport.cost import Hulls, Moves, build_hulls
from equipoise.methods.transport.sample import Sample, budget_within, losses_within, plain_sample

# --- The audit value of many distributions at once: one weighted cumulative sum each ---

BLOCK_NUMBERS = 1 << 20
"""How many numbers one array of a block may hold (8 MB of floats)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An auditor's problem, ready to be evaluated at any distribution over its cells.

    Attributes
    ----------
    losses
        The model's loss in each cell.
    budget
        Largest average cost that moving everybody may have.
    hulls
        What each cell can gain for what it spends.
    isolated
        Number of cells that are comparable with no other.
    """

    losses: FloatArray
    budget: float
    hulls: Hulls
    isolated: int

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(self.losses.size)

    @property
    def linear(self) -> bool:
        """Whether the value is linear in the distribution, because the budget never matters."""
        dearest = np.max(self.hulls.spent + self.hulls.width, initial=0.0)
        return self.budget == 0 or self.budget >= float(dearest)

    @property
    def scale(self) -> float:
        """The size of losses, to tell rounding from difference."""
        return float(np.abs(self.losses).max())

    @property
    def ceiling(self) -> float:
        """No distribution can have a larger value: the largest gain of any cell."""
        return float(self.gradient(np.inf if self.budget == 0 else 0.0).max())

    def gradient(self, price: float) -> FloatArray:
        """Best gain of each cell, net of its cost at the given price.

        The value is the smallest of budget × price + distribution · gradient(price) over all
        prices, which makes it concave in the distribution.
        """
        h = self.hulls
        # an infinite price buys nothing, and 0 × ∞ must not appear
        net = np.maximum(h.slope - price, 0.0) * h.width
        return h.base_gain + summed(h.row, net, h.cells)

    def spending(self, segments: int) -> FloatArray:
        """Cost per unit of mass of each cell once the first ``segments`` segments are taken."""
        h = self.hulls
        return summed(h.row[:segments], h.width[:segments], h.cells)

    def values(self, weights: npt.ArrayLike) -> FloatArray:
        """The audit value of each distribution; the last axis runs over the cells.

        Examples
        --------
        >>> from equipoise.methods.transport import from_matrix, prepare
        >>> p = prepare(from_matrix([[0, 1], [1, 0]]), [0.0, 1.0], budget=0.25)
        >>> p.values([[1.0, 0.0], [0.5, 0.5], [0.1, 0.9]]).tolist()
        [0.25, 0.25, 0.1]
        """
        array = np.asarray(weights, dtype=np.float64)
        if array.ndim == 0 or array.shape[-1] != self.cells:
            raise ValueError(f"expected {self.cells} weights per row; got shape {array.shape}")
        rows = array.reshape(-1, self.cells)
        if self.linear:
            # At budget zero only free moves are made; at one that never binds, budget has no price.
            found = rows @ self.gradient(np.inf if self.budget == 0 else 0.0)
        else:
            found = self._knapsacks(rows)
        return found.reshape(array.shape[:-1])

    def _knapsacks(self, rows: FloatArray) -> FloatArray:
        # segments of cells that are empty in every row hold nothing
        used = np.any(rows > 0, axis=0)
        h = self.hulls.chosen(used[self.hulls.row])
        drops = h.slope - np.append(h.slope[1:], 0.0)
        out = rows @ h.base_gain
        size = max(1, BLOCK_NUMBERS // max(1, h.row.size))
        for begin in range(0, len(rows), size):
            block = np.ascontiguousarray(rows[begin : begin + size].T)
            filled = block[h.row]
            filled *= h.width[:, None]
            np.cumsum(filled, axis=0, out=filled)
            # Abel's summation of slope × what each segment takes; every term is positive
            np.minimum(filled, self.budget, out=filled)
            out[begin : begin + size] += drops @ filled
        return out


def summed(cell: IntArray, amount: FloatArray, cells: int) -> FloatArray:
    """Total amount per cell."""
    return np.bincount(cell, amount, minlength=cells).astype(np.float64)


def prepare(
    moves: Moves,
    losses: npt.ArrayLike,
    *,
    budget: float = 0.0,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Problem:
    """Check the input and build the hulls, once for all distributions.

    Parameters
    ----------
    moves
        Which cells are comparable and what moving costs.
    losses
        The model's loss in each cell.
    budget
        Largest average cost, zero or more; may be infinite. Free moves need none.
    bounds
        The least and the largest loss there can be.

    Examples
    --------
    >>> from equipoise.methods.transport import within_classes
    >>> problem = prepare(within_classes([0, 0, 1, 1]), [0, 1, 1, 1])
    >>> problem.linear, problem.values([0.25, 0.25, 0.25, 0.25]).tolist()
    (True, 0.25)
    """
    checked = losses_within(losses, moves.cells, bounds)
    return Problem(
        losses=checked,
        budget=budget_within(budget),
        hulls=build_hulls(moves, checked),
        isolated=int(np.count_nonzero(moves.isolated)),
    )


# --- The price of budget: which prices solve the dual problem, and which nearly do ---
#
# At a distribution f the dual is to minimise budget × ν + f · gradient(ν) over ν ≥ 0. Its
# solutions form an interval; the value is differentiable in f exactly when the gradient is
# constant along it.

ROUNDING = 1e-12
"""Relative difference below which two sums of the same numbers count as equal."""

_MOST_PLACES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The interval of optimal dual prices.

    Attributes
    ----------
    lowest
        What the last unit of a larger budget would gain; zero when budget is left over.
    highest
        What the last unit of this budget gained; infinite when the budget is zero.
    unique
        Whether the two agree.
    """

    lowest: float
    highest: float
    unique: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The prices that are optimal, or so nearly optimal that the sample cannot tell.

    Attributes
    ----------
    kinks
        The prices at which the dual bends, from high to low.
    first
        Position, among the problem's segments, of the first kink.
    spreads
        Standard deviation, over rows, of what a row spends between each kink and the next.
    smooth
        Whether the derivative is linear over the whole window, so that the normal limit applies.
    """

    kinks: FloatArray
    first: int
    spreads: FloatArray
    smooth: bool


def optimal_prices(problem: Problem, weights: FloatArray) -> Prices:
    """The interval of optimal prices at one distribution.

    Examples
    --------
    >>> from equipoise.methods.transport import from_matrix, prepare
    >>> moves = from_matrix([[0, 1, np.inf], [1, 0, np.inf], [2, np.inf, 0]])
    >>> p = prepare(moves, [0.4, 1.0, 0.0], budget=0.5)
    >>> prices = optimal_prices(p, np.array([0.5, 0.2, 0.3]))
    >>> prices.lowest, prices.highest, prices.unique
    (0.2, 0.6, False)
    """
    used = weights[problem.hulls.row] > 0
    slope, filled = problem.hulls.slope[used], _filled(problem, weights)[used]
    slack = _slack(problem, filled)
    highest = _price_at(slope, filled >= problem.budget - slack)
    lowest = _price_at(slope, filled > problem.budget + slack)
    if problem.budget == 0:
        highest = math.inf
    return Prices(
        lowest=lowest,
        highest=highest,
        unique=math.isfinite(highest) and highest - lowest <= ROUNDING * highest,
    )


def near_optimal(problem: Problem, sample: Sample, kappa: float) -> Window:
    """The prices within ``kappa`` standard errors of being optimal.

    A price is optimal when the budget lies between what dearer segments cost together and what
    they cost with the segments at the price; both are estimated with an error of order 1/√n.
    """
    if problem.linear:
        return _whole(problem)
    h, weights, n = problem.hulls, sample.share, _worth(problem, sample)
    filled = _filled(problem, weights)
    # (spent + width)² − spent² = width (2 spent + width): running second moments of the spending.
    second = np.cumsum(weights[h.row] * h.width * (2 * h.spent + h.width))
    spreads = np.sqrt(np.maximum(second - filled**2, 0.0))
    # The root of what rounding leaves of a difference, some 10⁻¹⁴ of its terms.
    spreads[spreads <= 1e-7 * np.sqrt(second)] = 0.0
    # the second part stands for spending that a small sample has not shown yet
    unseen = np.maximum.accumulate(h.spent + h.width) * kappa**2 / n
    slack = _slack(problem, filled) + kappa * spreads / math.sqrt(n) + unseen
    enough = np.flatnonzero(filled + slack >= problem.budget)
    short = np.flatnonzero(filled - slack <= problem.budget)
    first = int(enough[0]) if enough.size else filled.size
    last = max(int(short[-1]) + 1 if short.size else 0, first)
    kinks = np.append(h.slope, 0.0)[first : last + 1]
    between = spreads[first:last]
    bends = (kinks[:-1] - kinks[1:]) * between > ROUNDING * problem.scale
    return Window(kinks=kinks, first=first, spreads=between, smooth=not np.any(bends))


def _worth(problem: Problem, sample: Sample) -> float:
    """How many plain rows know as much of what is spent, where the sample knows least of it."""
    if sample.plain:
        return float(sample.n)
    some = np.linspace(1, problem.hulls.row.size, _MOST_PLACES).round().astype(np.int64)
    return min(sample.worth(problem.spending(place)) for place in set(some.tolist()))


def _whole(problem: Problem) -> Window:
    """The one price that matters when the budget never does."""
    price = math.inf if problem.budget == 0 else 0.0
    first = 0 if problem.budget == 0 else problem.hulls.slope.size
    return Window(kinks=np.array([price]), first=first, spreads=np.empty(0), smooth=True)


def _filled(problem: Problem, weights: FloatArray) -> FloatArray:
    """Cost of taking every segment up to and including each one."""
    return np.cumsum(weights[problem.hulls.row] * problem.hulls.width)


def _slack(problem: Problem, filled: FloatArray) -> float:
    total = float(filled[-1]) if filled.size else 0.0
    return ROUNDING * min(total, problem.budget)


def _price_at(slope: FloatArray, reached: BoolArray) -> float:
    at = np.flatnonzero(reached)
    return float(slope[at[0]]) if at.size else 0.0


# --- The solved problem: value, plan, price, and who moves where ---


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportPlan:
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

    def moves(self) -> "TransportPlan":
        """The entries that change cell."""
        keep = self.source != self.target
        return TransportPlan(
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
    plan: TransportPlan
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


def _plan(problem: Problem, weights: FloatArray, share: FloatArray) -> TransportPlan:
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
    return TransportPlan(source=source, target=target, mass=net, gain=gain)
