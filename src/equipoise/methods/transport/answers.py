"""The methods behind ``infer``: which one applies, and what each says of the sampling error."""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.transport.checks import counts_within
from equipoise.methods.transport.draws import (
    default_rows,
    directional_draws,
    numerical_draws,
    resampled_draws,
)
from equipoise.methods.transport.limits import (
    BetaLimit,
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

FEWEST_ROWS = 30
"""Below this many rows only the exact methods answer."""

_MOST_PRICES = 64


class Method(StrEnum):
    """How the sampling error is found."""

    AUTO = "automatic"
    EXACT = "exact binomial"
    BETA = "beta limit"
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
    FEW_ROWS = "too few rows for a method that holds in large samples"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One problem at one sample, as the methods see it."""

    problem: Problem
    counts: IntArray
    window: Window
    prices: Prices
    gradient: FloatArray
    value: float
    resamples: int
    rng: np.random.Generator

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

    @property
    def seen(self) -> FloatArray:
        """Net gains of the cells that have rows."""
        return self.gradient[self.counts > 0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one method found: the limit if any, and the draws it took."""

    limit: Limit | None
    rows: int | None = None
    draws: int = 0
    tries: int = 0
    outcome: Outcome = Outcome.ESTIMATED


def make_case(
    problem: Problem,
    counts: npt.ArrayLike,
    resamples: int,
    rng: np.random.Generator,
    kappa: float | None,
) -> Case:
    """Check the sample and find which prices may be optimal at it."""
    whole = counts_within(counts, problem.cells)
    if resamples < FEWEST_DRAWS:
        raise ValueError(f"at least {FEWEST_DRAWS} resamples are needed; got {resamples}")
    n = int(whole.sum())
    # √log n grows, so that no optimal price is missed, and slower than √n, so that others drop out.
    near = math.sqrt(math.log(max(n, 20))) if kappa is None else kappa
    if not (math.isfinite(near) and near >= 0):
        raise ValueError(f"kappa must be finite and not negative; got {near:g}")
    prices = optimal_prices(problem, whole / n)
    window = near_optimal(problem, whole / n, n, near)
    return Case(
        problem=problem,
        counts=whole,
        window=window,
        prices=prices,
        gradient=problem.gradient(math.inf if problem.budget == 0 else prices.lowest),
        value=float(problem.values(whole / n)),
        resamples=resamples,
        rng=rng,
    )


def choose(case: Case) -> tuple[Method, str]:
    """The method that suits the case, and why."""
    if _two_valued(case):
        return Method.EXACT, "the budget never binds and a row gains one of two amounts"
    # Theorem 3.1 of Xue, Yurochkin and Sun: a single dual optimum makes the limit normal.
    if case.window.smooth:
        return Method.BETA, "the derivative is linear at every price that may be optimal"
    return Method.DIRECTIONAL, "several prices may be optimal, so the limit is not normal"


def _two_valued(case: Case) -> bool:
    return case.problem.linear and np.unique(case.gradient).size == 2


def frozen_answer(case: Case) -> Answer | None:
    """The answer when the limit is a point mass: rounding must not decide an interval."""
    scale = ROUNDING * case.problem.scale
    if not case.window.smooth or np.ptp(case.seen) > scale:
        return None
    # one price only: cells without rows must not be able to change it
    if np.ptp(case.gradient) <= scale and _one_price(case.window):
        return Answer(limit=PointLimit(value=case.value), outcome=Outcome.DEGENERATE)
    if _two_valued(case):
        return None
    excess = max(0.0, float(case.gradient.max() - case.seen[0]))
    limit = UnseenLimit(value=case.value, n=case.n, excess=excess)
    return Answer(limit=limit, outcome=Outcome.UNSEEN)


def _one_price(window: Window) -> bool:
    return window.kinks.size == 1 or bool(np.ptp(window.kinks) <= ROUNDING * window.kinks[0])


def find_answer(
    case: Case, method: Method, rows: int | None, step: float | None, tries: int | None
) -> Answer:
    """What the given method says of the sampling error."""
    if case.n < FEWEST_ROWS and method is not Method.EXACT:
        return Answer(limit=None, outcome=Outcome.FEW_ROWS)
    match method:
        case Method.EXACT:
            return Answer(limit=_binomial(case))
        case Method.BETA:
            return Answer(limit=_beta(case))
        case Method.NORMAL:
            return Answer(limit=_normal(case))
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


def _binomial(case: Case) -> BinomialLimit:
    if not _two_valued(case):
        raise ValueError(
            "the exact binomial needs a budget that never binds and two different gains; "
            f"here there are {np.unique(case.gradient).size}"
        )
    small, large = float(case.gradient.min()), float(case.gradient.max())
    hits = int(case.counts[case.gradient == large].sum())
    return BinomialLimit(hits=hits, n=case.n, small=small, large=large)


def _beta(case: Case) -> BetaLimit:
    weights = case.counts / case.n
    # ψ(f) = budget × price + f · gradient at an optimal price, and the first part does not vary.
    mean = float(weights @ case.gradient)
    return BetaLimit(
        offset=case.value - mean,
        n=case.n,
        mean=mean,
        variance=_spread(case.gradient, weights) ** 2,
        low=float(case.gradient.min()),
        high=float(case.gradient.max()),
    )


def _normal(case: Case) -> NormalLimit:
    """The normal limit at the price, of those that may be optimal, with the largest error."""
    weights = case.counts / case.n
    # the error changes gradually from price to price, so a fixed number of them will do
    some = np.linspace(0, case.window.kinks.size - 1, _MOST_PRICES).round().astype(np.int64)
    prices = {*case.window.kinks[some].tolist(), case.prices.lowest, case.prices.highest}
    error = max(_spread(case.problem.gradient(price), weights) for price in prices)
    return NormalLimit(value=case.value, error=error / math.sqrt(case.n))


def _spread(gradient: FloatArray, weights: FloatArray) -> float:
    centred = gradient - weights @ gradient
    return math.sqrt(float(weights @ centred**2))


def _directional(case: Case) -> Answer:
    draws = directional_draws(
        case.problem, case.counts, case.window, resamples=case.resamples, rng=case.rng
    )
    drawn = DrawnLimit(value=case.value, n=case.n, draws=draws)
    return Answer(
        limit=MixedLimit(below=_normal(case), above=drawn, rare=_beta(case)), draws=draws.size
    )


def _resampled(case: Case, rows: int) -> Answer:
    if not 1 <= rows <= case.n:
        raise ValueError(f"rows per resample must lie in 1 … {case.n}; got {rows}")
    draws = resampled_draws(
        case.problem, case.counts, rows=rows, resamples=case.resamples, rng=case.rng
    )
    limit = DrawnLimit(value=case.value, n=case.n, draws=draws)
    return Answer(limit=limit, rows=rows, draws=draws.size, tries=draws.size)


def _numerical(case: Case, step: float | None, tries: int | None) -> Answer:
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
        return Answer(limit=None, draws=kept, tries=found.tries, outcome=Outcome.NO_DRAWS)
    limit = DrawnLimit(value=case.value, n=case.n, draws=found.draws)
    return Answer(limit=limit, draws=kept, tries=found.tries)
