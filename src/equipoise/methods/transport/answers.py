"""The methods behind ``infer``: which one applies, and what each says of the sampling error."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from equipoise.methods.numerics import FloatArray
from equipoise.methods.transport.limits import (
    BetaLimit,
    BinomialLimit,
    DrawnLimit,
    Limit,
    MixedLimit,
    NormalLimit,
    PointLimit,
    StudentLimit,
    UnseenLimit,
)
from equipoise.methods.transport.problem import (
    BLOCK_NUMBERS,
    ROUNDING,
    Prices,
    Problem,
    Window,
    near_optimal,
    optimal_prices,
)
from equipoise.methods.transport.sample import Sample, plain_sample

# --- Draws of √n × (value of a sample − value of the population), by four methods ---
#
# Every function splits its draws into chunks of fixed length and gives each chunk a generator of
# its own, so that the answer depends neither on memory blocks nor on threads.

CHUNK = 128
"""Draws made from one stream. Part of the definition of the results: never tune it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericalDraws:
    """What the numerical derivative method could draw.

    Attributes
    ----------
    draws
        The draws kept, possibly none.
    tries
        Normal vectors drawn to get them.
    step
        The step of the difference quotient.
    """

    draws: FloatArray
    tries: int
    step: float


def default_rows(n: int) -> int:
    """The m of the m-out-of-n bootstrap by the rule of thumb 2√n, never more than n.

    >>> default_rows(900), default_rows(2)
    (60, 2)
    """
    # Algorithm 1 of Xue, Yurochkin and Sun; m → ∞ and m/n → 0, as their Theorem 4.1 asks.
    return min(n, math.ceil(2 * math.sqrt(n)))


def resampled_draws(
    problem: Problem, sample: Sample, *, units: int, resamples: int, rng: np.random.Generator
) -> FloatArray:
    """Bootstrap of so many units out of n: the plain bootstrap when it is n.

    Examples
    --------
    >>> from equipoise.methods.transport import plain_sample, prepare, within_classes
    >>> p, sample = prepare(within_classes([0, 0]), [0, 1]), plain_sample([30, 70], 2)
    >>> d = resampled_draws(p, sample, units=20, resamples=500, rng=np.random.default_rng(1))
    >>> d.shape, bool(abs(d.std() - 0.458) < 0.05)
    ((500,), True)
    """
    centre = float(problem.values(sample.share))
    parts = [
        problem.values(sample.resampled(units, size, stream))
        for size, stream in _chunks(resamples, rng)
    ]
    return math.sqrt(units) * _settled(np.concatenate(parts) - centre, problem.scale)


def numerical_draws(
    problem: Problem,
    sample: Sample,
    *,
    resamples: int,
    rng: np.random.Generator,
    step: float | None = None,
    tries: int | None = None,
) -> NumericalDraws:
    """Difference quotients along normal vectors that stay inside the simplex.

    A vector is kept only if no weight becomes negative. With many cells that hardly ever happens,
    so the number of tries is bounded (by default 20 for each draw wanted).

    Parameters
    ----------
    problem
        The prepared problem.
    sample
        The rows, weighted rows or clusters.
    resamples
        Draws wanted.
    rng
        Source of randomness.
    step
        Step of the quotient; the rule of thumb n^(−1/4) by default.
    tries
        Largest number of vectors drawn.

    Examples
    --------
    >>> from equipoise.methods.transport import plain_sample, prepare, within_classes
    >>> p, sample = prepare(within_classes([0, 0]), [0, 1]), plain_sample([300, 700], 2)
    >>> found = numerical_draws(p, sample, resamples=200, rng=np.random.default_rng(1))
    >>> found.draws.size, found.tries <= 4000
    (200, True)
    """
    # Algorithm 2 of Xue, Yurochkin and Sun sets no limit, and with many cells would not end.
    weights, limit = sample.share, 20 * resamples if tries is None else tries
    # It must vanish more slowly than 1/√n for the quotient to find the derivative (Theorem 4.2).
    length = sample.n**-0.25 if step is None else step
    centre, kept, tried, have = float(problem.values(weights)), [np.empty(0)], 0, 0
    for size, stream in _chunks(limit, rng):
        moved = weights + length * sample.normals(size, stream)
        inside = moved[np.all(moved >= 0, axis=1)]
        kept.append(_settled(problem.values(inside) - centre, problem.scale) / length)
        have, tried = have + len(inside), tried + size
        if have >= resamples:
            break
    return NumericalDraws(draws=np.concatenate(kept)[:resamples], tries=tried, step=length)


def directional_draws(
    problem: Problem,
    sample: Sample,
    window: Window,
    *,
    resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """The limit itself: smallest derivative over the window of prices, along normal vectors.

    Between two kinks the derivative is linear in the price, so the smallest is at a kink, and from
    one kink to the next it changes by their distance times the spending in between.
    """
    h, begin, count = problem.hulls, window.first, window.kinks.size - 1
    top, before = problem.gradient(float(window.kinks[0])), problem.spending(begin)
    row, width = h.row[begin : begin + count], h.width[begin : begin + count]
    falls = window.kinks[:-1] - window.kinks[1:]
    block = max(1, BLOCK_NUMBERS // max(1, count))
    parts = []
    for size, stream in _chunks(resamples, rng):
        normals = sample.normals(size, stream)
        for start in range(0, size, block):
            z = normals[start : start + block]
            # Theorem 3.4 of Xue, Yurochkin and Sun: the infimum of (λ + l) · z over the dual
            # optima, where λ + l is the gradient at a price.
            steps = np.cumsum(z[:, row] * width, axis=1) + (z @ before)[:, None]
            change = np.cumsum(steps * falls, axis=1)
            parts.append(z @ top + np.minimum(change.min(axis=1, initial=0.0), 0.0))
    return np.concatenate(parts)


def _settled(differences: FloatArray, scale: float) -> FloatArray:
    """Differences with rounding noise set to zero, so that noise never decides an interval."""
    return np.where(np.abs(differences) <= 1e-14 * scale, 0.0, differences)


def _chunks(number: int, rng: np.random.Generator) -> Iterator[tuple[int, np.random.Generator]]:
    streams = rng.spawn(-(-number // CHUNK))
    for i, stream in enumerate(streams):
        yield min(CHUNK, number - i * CHUNK), stream


# --- The methods behind ``infer``: which one applies, and what each says of the sampling error

FEWEST_DRAWS = 100
"""Below this many kept draws the tails of a distribution are not reported."""

FEWEST_ROWS = 30
"""Below this many rows only the exact methods answer."""

FEWEST_UNITS = 10
"""Below this many clusters, or rows of equal weight that weighted rows are worth, none does."""

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


class AnswerKind(StrEnum):
    """What kind of answer there is."""

    ESTIMATED = "estimated"
    DEGENERATE = "the value does not depend on the sample"
    UNSEEN = "the rows seen do not vary, cells without rows might"
    NO_DRAWS = "too few draws could be kept"
    FEW_ROWS = "too few rows for a method that holds in large samples"
    FEW_UNITS = "too few clusters, or too much weight on too few rows"
    FEW_REPEATS = "too few repeated rows to know the losses"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledProblem:
    """One problem at one sample, as the methods see it."""

    problem: Problem
    sample: Sample
    window: Window
    prices: Prices
    gradient: FloatArray
    value: float
    resamples: int
    rng: np.random.Generator

    @property
    def n(self) -> int:
        """Number of independent units."""
        return self.sample.n

    @property
    def seen(self) -> FloatArray:
        """Net gains of the cells that have rows."""
        return self.gradient[self.sample.share > 0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one method found: the limit if any, and the draws it took."""

    limit: Limit | None
    units: int | None = None
    draws: int = 0
    tries: int = 0
    outcome: AnswerKind = AnswerKind.ESTIMATED


def make_case(
    problem: Problem,
    rows: npt.ArrayLike | Sample,
    resamples: int,
    rng: np.random.Generator,
    kappa: float | None,
) -> SampledProblem:
    """Check the sample and find which prices may be optimal at it."""
    sample = rows if isinstance(rows, Sample) else plain_sample(rows, problem.cells)
    if sample.cells != problem.cells:
        raise ValueError(f"expected a sample of {problem.cells} cells; got {sample.cells}")
    if resamples < FEWEST_DRAWS:
        raise ValueError(f"at least {FEWEST_DRAWS} resamples are needed; got {resamples}")
    # √log n grows, so that no optimal price is missed, and slower than √n, so that others drop out.
    near = math.sqrt(math.log(max(sample.n, 20))) if kappa is None else kappa
    if not (math.isfinite(near) and near >= 0):
        raise ValueError(f"kappa must be finite and not negative; got {near:g}")
    prices = optimal_prices(problem, sample.share)
    window = near_optimal(problem, sample, near)
    return SampledProblem(
        problem=problem,
        sample=sample,
        window=window,
        prices=prices,
        gradient=problem.gradient(math.inf if problem.budget == 0 else prices.lowest),
        value=float(problem.values(sample.share)),
        resamples=resamples,
        rng=rng,
    )


def choose(case: SampledProblem) -> tuple[Method, str]:
    """The method that suits the case, and why."""
    if case.sample.plain and _two_valued(case):
        return Method.EXACT, "the budget never binds and a row gains one of two amounts"
    # Theorem 3.1 of Xue, Yurochkin and Sun: a single dual optimum makes the limit normal.
    if case.window.smooth:
        return Method.BETA, "the derivative is linear at every price that may be optimal"
    return Method.DIRECTIONAL, "several prices may be optimal, so the limit is not normal"


def _two_valued(case: SampledProblem) -> bool:
    return case.problem.linear and np.unique(case.gradient).size == 2


def frozen_answer(case: SampledProblem, outside: float | None) -> Answer | None:
    """The answer when the limit is a point mass: rounding must not decide an interval.

    ``outside`` is what people could gain who belong to no cell; None where there are none.
    """
    scale = ROUNDING * case.problem.scale
    if not case.window.smooth or np.ptp(case.seen) > scale:
        return None
    # one price only: cells without rows must not be able to change it
    if outside is None and np.ptp(case.gradient) <= scale and _one_price(case.window):
        return Answer(limit=PointLimit(value=case.value), outcome=AnswerKind.DEGENERATE)
    if case.sample.plain and _two_valued(case):
        return None
    worst = max(float(case.gradient.max()), 0.0 if outside is None else outside)
    excess = max(0.0, worst - float(case.seen[0]))
    limit = UnseenLimit(value=case.value, n=case.sample.worth(case.gradient), excess=excess)
    return Answer(limit=limit, outcome=AnswerKind.UNSEEN)


def _one_price(window: Window) -> bool:
    return window.kinks.size == 1 or bool(np.ptp(window.kinks) <= ROUNDING * window.kinks[0])


def find_answer(
    case: SampledProblem, method: Method, units: int | None, step: float | None, tries: int | None
) -> Answer:
    """What the given method says of the sampling error."""
    if case.sample.rows < FEWEST_ROWS and method is not Method.EXACT:
        return Answer(limit=None, outcome=AnswerKind.FEW_ROWS)
    if case.sample.degrees + 1 < FEWEST_UNITS:
        return Answer(limit=None, outcome=AnswerKind.FEW_UNITS)
    answer = _by_method(case, method, units, step, tries)
    if case.sample.plain or answer.limit is None:
        return answer
    return replace(answer, limit=StudentLimit(limit=answer.limit, degrees=case.sample.degrees))


def _by_method(
    case: SampledProblem, method: Method, units: int | None, step: float | None, tries: int | None
) -> Answer:
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
            return _resampled(case, default_rows(case.n) if units is None else units)
        case Method.NUMERICAL:
            return _numerical(case, step, tries)
        case _:
            raise ValueError(f"no such method: {method}")


def _binomial(case: SampledProblem) -> BinomialLimit:
    if not case.sample.plain:
        raise ValueError(
            "the exact binomial needs rows of equal weight that are not clustered; use method "
            "'auto'"
        )
    if not _two_valued(case):
        raise ValueError(
            "the exact binomial needs a budget that never binds and two different gains; "
            f"here there are {np.unique(case.gradient).size}"
        )
    small, large = float(case.gradient.min()), float(case.gradient.max())
    hits = round(case.n * float(case.sample.share[case.gradient == large].sum()))
    return BinomialLimit(hits=hits, n=case.n, small=small, large=large)


def _beta(case: SampledProblem) -> BetaLimit:
    weights = case.sample.share
    # ψ(f) = budget × price + f · gradient at an optimal price, and the first part does not vary.
    mean = float(weights @ case.gradient)
    return BetaLimit(
        offset=case.value - mean,
        # Korn and Graubard: as many plain rows as have the same standard error.
        n=case.sample.worth(case.gradient),
        mean=mean,
        variance=float(weights @ (case.gradient - mean) ** 2),
        low=float(case.gradient.min()),
        high=float(case.gradient.max()),
    )


def _normal(case: SampledProblem) -> NormalLimit:
    """The normal limit at the price, of those that may be optimal, with the largest error."""
    # the error changes gradually from price to price, so a fixed number of them will do
    some = np.linspace(0, case.window.kinks.size - 1, _MOST_PRICES).round().astype(np.int64)
    prices = {*case.window.kinks[some].tolist(), case.prices.lowest, case.prices.highest}
    error = max(case.sample.error(case.problem.gradient(price)) for price in prices)
    return NormalLimit(value=case.value, error=error)


def _directional(case: SampledProblem) -> Answer:
    draws = directional_draws(
        case.problem, case.sample, case.window, resamples=case.resamples, rng=case.rng
    )
    drawn = DrawnLimit(value=case.value, n=case.n, draws=draws)
    return Answer(
        limit=MixedLimit(below=_normal(case), above=drawn, rare=_beta(case)), draws=draws.size
    )


def _resampled(case: SampledProblem, units: int) -> Answer:
    if not 1 <= units <= case.n:
        raise ValueError(f"rows or clusters per resample must lie in 1 … {case.n}; got {units}")
    draws = resampled_draws(
        case.problem, case.sample, units=units, resamples=case.resamples, rng=case.rng
    )
    limit = DrawnLimit(value=case.value, n=case.n, draws=draws)
    return Answer(limit=limit, units=units, draws=draws.size, tries=draws.size)


def _numerical(case: SampledProblem, step: float | None, tries: int | None) -> Answer:
    found = numerical_draws(
        case.problem,
        case.sample,
        resamples=case.resamples,
        rng=case.rng,
        step=step,
        tries=tries,
    )
    kept = found.draws.size
    if kept < FEWEST_DRAWS:
        return Answer(limit=None, draws=kept, tries=found.tries, outcome=AnswerKind.NO_DRAWS)
    limit = DrawnLimit(value=case.value, n=case.n, draws=found.draws)
    return Answer(limit=limit, draws=kept, tries=found.tries)
