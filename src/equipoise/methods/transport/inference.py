"""Confidence intervals and tests for the audit value, with the method used and the reason."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise.methods.transport.answers import (
    FEWEST_DRAWS,
    FEWEST_ROWS,
    FEWEST_UNITS,
    Answer,
    Method,
    Outcome,
    choose,
    find_answer,
    frozen_answer,
    make_case,
)
from equipoise.methods.transport.checks import level_within
from equipoise.methods.transport.limits import Limit
from equipoise.methods.transport.prices import Prices
from equipoise.methods.transport.problem import Problem
from equipoise.methods.transport.sample import Sample

_FROZEN = {
    Outcome.DEGENERATE: "every cell has the same net gain, so no sampling error is left",
    Outcome.UNSEEN: "all rows seen have the same net gain; the bounds allow for cells without rows",
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
    outcome: Outcome
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
    answer = frozen_answer(case) or find_answer(case, chosen, units, step, tries)
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
        ceiling=problem.ceiling,
        limit=answer.limit,
        units=answer.units,
        draws=answer.draws,
        tries=answer.tries,
    )


def _why(answer: Answer, reason: str) -> str:
    if answer.outcome is Outcome.NO_DRAWS:
        return (
            f"{answer.draws} of {answer.tries} normal vectors kept every weight at zero or above; "
            f"{FEWEST_DRAWS} are needed"
        )
    if answer.outcome is Outcome.FEW_ROWS:
        return f"methods that hold in large samples need {FEWEST_ROWS} rows"
    if answer.outcome is Outcome.FEW_UNITS:
        return f"clusters, or weighted rows, must be worth at least {FEWEST_UNITS} of equal weight"
    return _FROZEN.get(answer.outcome, reason)


def _check_delta(delta: float) -> None:
    if not (math.isfinite(delta) and delta >= 0):
        raise ValueError(f"a tolerance is zero or positive; got {delta:g}")
