"""Confidence intervals and tests for the audit value, with the method used and the reason."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

import numpy as np
import numpy.typing as npt

from equipoise.methods.numerics import BoolArray, FloatArray
from equipoise.methods.transport.answers import (
    FEWEST_DRAWS,
    FEWEST_ROWS,
    FEWEST_UNITS,
    Answer,
    AnswerKind,
    Method,
    choose,
    find_answer,
    frozen_answer,
    make_case,
)
from equipoise.methods.transport.cost import Classes, Moves
from equipoise.methods.transport.limits import Limit
from equipoise.methods.transport.problem import Prices, Problem, optimal_prices
from equipoise.methods.transport.sample import Sample, level_within

# --- Confidence intervals and tests for the audit value, with the method used and the reason ---

_FROZEN = {
    AnswerKind.DEGENERATE: "every cell has the same net gain, so no sampling error is left",
    AnswerKind.UNSEEN: "all rows seen have the same net gain; the bounds allow for kinds of people "
    "without rows",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """An audit value with its uncertainty; ask it for any level and any tolerance.

    Attributes
    ----------
    value
        The audit value of the sample.
    n
        Number of rows or other independent units.
    method
        The method used; never automatic.
    outcome
        What kind of answer this is.
    reason
        Why this method was used, or why there is no answer.
    prices
        Optimal dual prices at the sample.
    near
        Lowest and highest price that the sample cannot tell from optimal.
    smooth
        Whether the derivative is linear over those prices.
    ceiling
        Largest value any population could have.
    limit
        What is known of the sampling error; None when there is no answer.
    units
        Rows or clusters per resample; None for methods that do not resample.
    draws
        Draws used; 0 for closed forms.
    tries
        Draws attempted.
    """

    value: float
    n: int
    method: Method
    outcome: AnswerKind
    reason: str
    prices: Prices
    near: tuple[float, float]
    smooth: bool
    ceiling: float
    limit: Limit | None
    units: int | None = None
    draws: int = 0
    tries: int = 0

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """Two-sided equal-tailed interval; None when there is no answer."""
        alpha = level_within(level)
        low, high = self.lower(1 - alpha / 2), self.upper(1 - alpha / 2)
        return None if low is None or high is None else (low, high)

    def lower(self, level: float = 0.95) -> float | None:
        """One-sided lower confidence bound, never below zero."""
        alpha = level_within(level)
        return None if self.limit is None else self._inside(self.limit.lower(alpha))

    def upper(self, level: float = 0.95) -> float | None:
        """One-sided upper confidence bound, never above the ceiling."""
        alpha = level_within(level)
        return None if self.limit is None else self._inside(self.limit.upper(alpha))

    def p_above(self, delta: float) -> float | None:
        """p-value of δ-fairness, the null that the value is at most ``delta``: small means unfair.

        None when there is no answer, or when nothing is random: then compare value and ``delta``.
        """
        _check_delta(delta)
        return None if self.limit is None else self.limit.p_above(delta)

    def p_below(self, delta: float) -> float | None:
        """p-value of the null that the value is at least ``delta``: small means shown fair."""
        _check_delta(delta)
        return None if self.limit is None else self.limit.p_below(delta)

    def _inside(self, bound: float) -> float:
        return min(max(bound, 0.0), self.ceiling)


def infer(
    problem: Problem,
    rows: npt.ArrayLike | Sample,
    *,
    rng: np.random.Generator,
    method: Method = Method.AUTO,
    resamples: int = 2000,
    units: int | None = None,
    step: float | None = None,
    tries: int | None = None,
    kappa: float | None = None,
    outside: float | None = None,
) -> Inference:
    """Find the sampling error of the audit value.

    The automatic choice is the exact binomial where every row gains one of two amounts, the beta
    limit where the derivative is linear at every price the data cannot rule out, and the
    directional derivative otherwise.

    Parameters
    ----------
    problem
        The prepared problem.
    rows
        Rows per cell; a sample where rows have weights or come in clusters.
    rng
        Source of randomness.
    method
        How to find the sampling error.
    resamples
        Number of draws, where there are draws.
    units
        Rows or clusters per resample of the m-out-of-n bootstrap; 2√n by default.
    step
        Step of the numerical derivative; n^(−1/4) by default.
    tries
        Most normal vectors the numerical derivative may draw; 20 per draw by default.
    kappa
        How many standard errors away from optimal a price may be and still count as perhaps
        optimal; √log n by default, with n at least 20.
    outside
        The most that people who belong to no cell could gain; None if there are no such people.
        Where every row seen gains the same, only this tells how far others could be from them.

    Examples
    --------
    >>> from equipoise.methods.transport import prepare, within_classes
    >>> p = prepare(within_classes([0, 0]), [0, 1])
    >>> found = infer(p, [6, 94], rng=np.random.default_rng(1))
    >>> found.method.value, [round(x, 4) for x in found.interval(0.95)]
    ('exact binomial', [0.0223, 0.126])
    >>> round(found.p_above(0.0365), 4)
    0.1593
    """
    case = make_case(problem, rows, resamples, rng, kappa)
    chosen, reason = choose(case) if method is Method.AUTO else (method, "asked for by name")
    frozen = frozen_answer(case, outside)
    answer = frozen or find_answer(case, chosen, units, step, tries)
    kinks = case.window.kinks
    return Inference(
        value=case.value,
        n=case.n,
        method=chosen,
        outcome=answer.outcome,
        reason=_why(answer, reason),
        prices=case.prices,
        near=(float(kinks[-1]), float(kinks[0])),
        smooth=case.window.smooth,
        ceiling=problem.ceiling if frozen is None else max(problem.ceiling, outside or 0.0),
        limit=answer.limit,
        units=answer.units,
        draws=answer.draws,
        tries=answer.tries,
    )


def _why(answer: Answer, reason: str) -> str:
    if answer.outcome is AnswerKind.NO_DRAWS:
        return (
            f"{answer.draws} of {answer.tries} normal vectors kept every weight at zero or above; "
            f"{FEWEST_DRAWS} are needed"
        )
    if answer.outcome is AnswerKind.FEW_ROWS:
        return f"methods that hold in large samples need {FEWEST_ROWS} rows"
    if answer.outcome is AnswerKind.FEW_UNITS:
        return f"clusters, or weighted rows, must be worth at least {FEWEST_UNITS} of equal weight"
    return _FROZEN.get(answer.outcome, reason)


def _check_delta(delta: float) -> None:
    if not (math.isfinite(delta) and delta >= 0):
        raise ValueError(f"a tolerance is zero or positive; got {delta:g}")


# --- Bounds where the problem itself is known only between two others ---
#
# Dearer moves, or fewer of them, can only lower the value of a distribution. So where the true
# problem lies between one that is too hard for the auditor and one that is too easy, a lower
# bound for the first and an upper bound for the second hold for it.

_HALVINGS = 20

End = Callable[[float], Limit | None]
"""What is known of the value in one of the two problems, given how often it may be wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BetweenLimit:
    """Lower bounds from the hard problem, upper bounds from the easy one.

    Attributes
    ----------
    hard, easy
        The two limits, given the error rate of the problems themselves.
    learnt
        Whether the problems are random. Half of every error rate then pays for it (Bonferroni).
    """

    hard: End
    easy: End
    learnt: bool

    def lower(self, alpha: float) -> float:
        """Lower bound in the hard problem."""
        limit = self.hard(self._part(alpha))
        return -inf if limit is None else limit.lower(self._part(alpha))

    def upper(self, alpha: float) -> float:
        """Upper bound in the easy problem."""
        limit = self.easy(self._part(alpha))
        return inf if limit is None else limit.upper(self._part(alpha))

    def p_above(self, delta: float) -> float:
        """The smallest error rate at which the lower bound exceeds ``delta``."""
        return _smallest(lambda alpha: self.lower(alpha) > delta)

    def p_below(self, delta: float) -> float:
        """The smallest error rate at which the upper bound is below ``delta``."""
        return _smallest(lambda alpha: self.upper(alpha) < delta)

    def _part(self, alpha: float) -> float:
        return alpha / 2 if self.learnt else alpha


def _smallest(shown: Callable[[float], bool]) -> float:
    """The smallest error rate at which something is shown, rounded up."""
    if not shown(1 - 1e-9):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        # low rates matter more, so the first steps are tenfold
        middle = high / 10 if low == 0 else (low + high) / 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high


def between(found: Inference, hard: End, easy: End, *, ceiling: float, learnt: bool) -> Inference:
    """The same inference where the problem is known only between two others.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.transport import infer, prepare, within_classes
    >>> from equipoise.methods.transport import NormalLimit
    >>> p = prepare(within_classes([0, 0]), [0, 1])
    >>> found = infer(p, [60, 940], rng=np.random.default_rng(1))
    >>> hard, easy = NormalLimit(value=0.05, error=0.007), NormalLimit(value=0.07, error=0.008)
    >>> wider = between(found, lambda a: hard, lambda a: easy, ceiling=1.0, learnt=False)
    >>> [round(x, 4) for x in wider.interval(0.95)]
    [0.0363, 0.0857]
    >>> wider.p_below(0.1) < 0.001
    True
    """
    if found.limit is None:
        return found
    limit = BetweenLimit(hard=hard, easy=easy, learnt=learnt)
    return replace(found, limit=limit, ceiling=max(found.ceiling, ceiling))


# --- Choosing among models under a fairness constraint ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The model chosen, if any.

    Attributes
    ----------
    chosen
        Position of the model; None if none is a candidate.
    candidates
        Which models pass the test of δ-fairness.
    closest
        Position of the model with the smallest bound, of use when there is no candidate.
    """

    chosen: int | None
    candidates: BoolArray
    closest: int


def select_model(
    errors: npt.ArrayLike, bounds: npt.ArrayLike, values: npt.ArrayLike, *, delta: float
) -> Selection:
    """Pick the model with the smallest error among those whose bound does not exceed ``delta``.

    With lower confidence bounds a candidate is a model not shown to be unfair; with upper bounds, a
    model shown to be δ-fair. Of equal errors the smaller audit value wins.

    Parameters
    ----------
    errors
        Each model's error on validation data.
    bounds
        Each model's confidence bound for the audit value.
    values
        Each model's audit value.
    delta
        The largest audit value tolerated.

    Examples
    --------
    >>> select_model([0.34, 0.33, 0.35], [0.01, 0.05, 0.0], [0.02, 0.06, 0.0], delta=0.04).chosen
    0
    """
    table = [np.asarray(x, dtype=np.float64) for x in (errors, bounds, values)]
    if any(x.ndim != 1 or x.shape != table[0].shape or x.size == 0 for x in table):
        raise ValueError("expected one error, one bound and one audit value per model")
    if not all(np.all(np.isfinite(x)) for x in table):
        raise ValueError("errors, bounds and audit values must be finite")
    if not delta >= 0:
        raise ValueError(f"a tolerance is zero or positive; got {delta:g}")
    error, bound, value = table
    # Section 5.2 of Xue, Yurochkin and Sun: with lower bounds, the models that (4.2) retains.
    candidates = bound <= delta
    # lexsort sorts by its last key first
    order = np.lexsort((value, error))
    passing = order[candidates[order]]
    return Selection(
        chosen=int(passing[0]) if passing.size else None,
        candidates=candidates,
        closest=int(np.lexsort((error, value, bound))[0]),
    )


# --- How far the value moves when the costs are not quite those of the right metric ---
#
# Let every cost be wrong by at most d. A plan that costs ε costs at most ε + d by the other
# costs, so the value by those lies between the values at budgets ε − d and ε + d by these. The
# value is concave in the budget: above ε it rises by at most the price for each unit, below it
# falls by at most (value at ε − value at 0) / ε for each.
#
# Proposition 2.2 of Xue, Yurochkin and Sun bounds the change by d L / √ε, with L the largest
# difference of losses per unit of distance. Its proof bounds the price by just that; the rates
# above are never more than L / √ε, and need no L. (As printed, the proposition compares relative
# changes of costs and values; what is proved, and used here, are differences.)


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
