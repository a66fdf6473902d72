"""Confidence intervals and tests for the audit value, with the method chosen and the reason said."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.transport.checks import counts_within, level_within
from equipoise.methods.transport.draws import (
    default_rows,
    directional_draws,
    numerical_draws,
    resampled_draws,
)
from equipoise.methods.transport.limits import (
    BinomialLimit,
    DrawnLimit,
    Limit,
    MixedLimit,
    NormalLimit,
    PointLimit,
    UnseenLimit,
)
from equipoise.methods.transport.prices import (
    ROUNDING,
    Prices,
    Window,
    near_optimal,
    optimal_prices,
)
from equipoise.methods.transport.problem import Problem

FEWEST_DRAWS = 100
"""Below this many kept draws the tails of a distribution are not reported."""


class Method(StrEnum):
    """How the sampling error is found."""

    AUTO = "automatic"
    EXACT = "exact binomial"
    NORMAL = "normal limit"
    DIRECTIONAL = "directional derivative"
    BOOTSTRAP = "bootstrap"
    M_OUT_OF_N = "m-out-of-n bootstrap"
    NUMERICAL = "numerical derivative"


class Outcome(StrEnum):
    """What kind of answer there is."""

    ESTIMATED = "estimated"
    DEGENERATE = "the value does not depend on the sample"
    UNSEEN = "the rows seen do not vary, cells without rows might"
    NO_DRAWS = "too few draws could be kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """An audit value with its uncertainty; ask it for any level and any tolerance.

    Attributes
    ----------
    value
        The audit value of the sample.
    n
        Number of rows.
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
    rows
        Rows per resample; None for methods that do not resample.
    draws
        Draws used; 0 for closed forms.
    tries
        Draws attempted.
    """

    value: float
    n: int
    method: Method
    outcome: Outcome
    reason: str
    prices: Prices
    near: tuple[float, float]
    smooth: bool
    ceiling: float
    limit: Limit | None
    rows: int | None = None
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One problem at one sample, as the methods see it."""

    problem: Problem
    counts: IntArray
    window: Window
    gradient: FloatArray
    value: float
    resamples: int
    rng: np.random.Generator

    @property
    def n(self) -> int:
        return int(self.counts.sum())

    @property
    def seen(self) -> FloatArray:
        return self.gradient[self.counts > 0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    limit: Limit | None
    rows: int | None = None
    draws: int = 0
    tries: int = 0
    outcome: Outcome = Outcome.ESTIMATED


def infer(
    problem: Problem,
    counts: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    method: Method = Method.AUTO,
    resamples: int = 2000,
    rows: int | None = None,
    step: float | None = None,
    tries: int | None = None,
    kappa: float | None = None,
) -> Inference:
    """Find the sampling error of the audit value.

    The automatic choice is the exact binomial where every row gains one of two amounts, the normal
    limit where the derivative is linear at every price the data cannot rule out, and the
    directional derivative otherwise.

    Parameters
    ----------
    problem
        The prepared problem.
    counts
        Rows per cell.
    rng
        Source of randomness.
    method
        How to find the sampling error.
    resamples
        Number of draws, where there are draws.
    rows
        Rows per resample of the m-out-of-n bootstrap; 2√n by default.
    step
        Step of the numerical derivative; n^(−1/4) by default.
    tries
        Most normal vectors the numerical derivative may draw; 20 per draw by default.
    kappa
        How many standard errors away from optimal a price may be and still count as perhaps
        optimal; √log n by default.

    Examples
    --------
    >>> from equipoise.methods.transport import prepare, within_classes
    >>> p = prepare(within_classes([0, 0]), [0, 1])
    >>> found = infer(p, [6, 94], rng=np.random.default_rng(1))
    >>> found.method.value, [round(x, 4) for x in found.interval(0.95)]
    ('exact binomial', [0.0223, 0.126])
    >>> round(found.p_above(0.0365), 4)
    0.1595
    """
    case = _case(problem, counts, resamples, rng, kappa)
    chosen, reason = _choose(case) if method is Method.AUTO else (method, "asked for by name")
    frozen = _frozen(case)
    if frozen is not None:
        answer, chosen, reason = frozen, chosen, _FROZEN[frozen.outcome]
    else:
        answer = _answer(case, chosen, rows, step, tries)
    if answer.outcome is Outcome.NO_DRAWS:
        reason = (
            f"{answer.draws} of {answer.tries} normal vectors kept every weight at zero or above; "
            f"{FEWEST_DRAWS} are needed"
        )
    prices = case.window.kinks
    return Inference(
        value=case.value,
        n=case.n,
        method=chosen,
        outcome=answer.outcome,
        reason=reason,
        prices=optimal_prices(problem, case.counts / case.n),
        near=(float(prices[-1]), float(prices[0])),
        smooth=case.window.smooth,
        ceiling=problem.ceiling,
        limit=answer.limit,
        rows=answer.rows,
        draws=answer.draws,
        tries=answer.tries,
    )


_FROZEN = {
    Outcome.DEGENERATE: "every cell has the same net gain, so no sampling error is left",
    Outcome.UNSEEN: "all rows seen have the same net gain; the bounds allow for cells without rows",
}


def _case(
    problem: Problem,
    counts: npt.ArrayLike,
    resamples: int,
    rng: np.random.Generator,
    kappa: float | None,
) -> _Case:
    whole = counts_within(counts, problem.cells)
    if resamples < FEWEST_DRAWS:
        raise ValueError(f"at least {FEWEST_DRAWS} resamples are needed; got {resamples}")
    n = int(whole.sum())
    near = math.sqrt(math.log(max(n, 2))) if kappa is None else kappa
    if not (math.isfinite(near) and near >= 0):
        raise ValueError(f"kappa must be finite and not negative; got {near:g}")
    window = near_optimal(problem, whole / n, n, near)
    return _Case(
        problem=problem,
        counts=whole,
        window=window,
        gradient=problem.gradient(float(window.kinks[0])),
        value=float(problem.values(whole / n)),
        resamples=resamples,
        rng=rng,
    )


def _choose(case: _Case) -> tuple[Method, str]:
    if _two_valued(case):
        return Method.EXACT, "the budget never binds and a row gains one of two amounts"
    if case.window.smooth:
        return Method.NORMAL, "the derivative is linear at every price that may be optimal"
    return Method.DIRECTIONAL, "several prices may be optimal, so the limit is not normal"


def _two_valued(case: _Case) -> bool:
    return case.problem.linear and np.unique(case.gradient).size == 2


def _frozen(case: _Case) -> _Answer | None:
    """The answer when the limit is a point mass: rounding must not decide an interval."""
    scale = ROUNDING * max(1.0, float(np.abs(case.gradient).max()))
    if not case.window.smooth or np.ptp(case.seen) > scale:
        return None
    if np.ptp(case.gradient) <= scale:
        return _Answer(limit=PointLimit(value=case.value), outcome=Outcome.DEGENERATE)
    if _two_valued(case):
        return None
    excess = max(0.0, float(case.gradient.max() - case.seen[0]))
    limit = UnseenLimit(value=case.value, n=case.n, excess=excess)
    return _Answer(limit=limit, outcome=Outcome.UNSEEN)


def _answer(
    case: _Case, method: Method, rows: int | None, step: float | None, tries: int | None
) -> _Answer:
    match method:
        case Method.EXACT:
            return _Answer(limit=_binomial(case))
        case Method.NORMAL:
            return _Answer(limit=_normal(case))
        case Method.DIRECTIONAL:
            return _directional(case)
        case Method.BOOTSTRAP:
            return _resampled(case, case.n)
        case Method.M_OUT_OF_N:
            return _resampled(case, default_rows(case.n) if rows is None else rows)
        case Method.NUMERICAL:
            return _numerical(case, step, tries)
        case _:
            raise ValueError(f"no such method: {method}")


def _binomial(case: _Case) -> BinomialLimit:
    if not _two_valued(case):
        raise ValueError(
            "the exact binomial needs a budget that never binds and two different gains; "
            f"here there are {np.unique(case.gradient).size}"
        )
    small, large = float(case.gradient.min()), float(case.gradient.max())
    hits = int(case.counts[case.gradient == large].sum())
    return BinomialLimit(hits=hits, n=case.n, small=small, large=large)


def _normal(case: _Case) -> NormalLimit:
    """The normal limit at the price, of those that may be optimal, with the largest error."""
    weights = case.counts / case.n
    optimal = optimal_prices(case.problem, weights)
    ends = {*case.window.kinks[[0, -1]].tolist(), optimal.lowest, optimal.highest}
    error = max(_spread(case.problem.gradient(price), weights) for price in ends)
    return NormalLimit(value=case.value, error=error / math.sqrt(case.n))


def _spread(gradient: FloatArray, weights: FloatArray) -> float:
    centred = gradient - weights @ gradient
    return math.sqrt(float(weights @ centred**2))


def _directional(case: _Case) -> _Answer:
    draws = directional_draws(
        case.problem, case.counts, case.window, resamples=case.resamples, rng=case.rng
    )
    drawn = DrawnLimit(value=case.value, n=case.n, draws=draws)
    return _Answer(limit=MixedLimit(below=_normal(case), above=drawn), draws=draws.size)


def _resampled(case: _Case, rows: int) -> _Answer:
    if not 1 <= rows <= case.n:
        raise ValueError(f"rows per resample must lie in 1 … {case.n}; got {rows}")
    draws = resampled_draws(
        case.problem, case.counts, rows=rows, resamples=case.resamples, rng=case.rng
    )
    limit = DrawnLimit(value=case.value, n=case.n, draws=draws)
    return _Answer(limit=limit, rows=rows, draws=draws.size, tries=draws.size)


def _numerical(case: _Case, step: float | None, tries: int | None) -> _Answer:
    found = numerical_draws(
        case.problem,
        case.counts,
        resamples=case.resamples,
        rng=case.rng,
        step=step,
        tries=tries,
    )
    kept = found.draws.size
    if kept < FEWEST_DRAWS:
        return _Answer(limit=None, draws=kept, tries=found.tries, outcome=Outcome.NO_DRAWS)
    limit = DrawnLimit(value=case.value, n=case.n, draws=found.draws)
    return _Answer(limit=limit, draws=kept, tries=found.tries)


def _check_delta(delta: float) -> None:
    if not (math.isfinite(delta) and delta >= 0):
        raise ValueError(f"a tolerance is zero or positive; got {delta:g}")
