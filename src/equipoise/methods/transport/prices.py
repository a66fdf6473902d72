"""The price of budget: which prices solve the dual problem, and which nearly do.

At a distribution f the dual is to minimise budget × ν + f · gradient(ν) over ν ≥ 0. Its solutions
form an interval; the value is differentiable in f exactly when the gradient is constant along it.
"""

import math
from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import BoolArray, FloatArray
from equipoise.methods.transport.problem import Problem
from equipoise.methods.transport.sample import Sample

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
