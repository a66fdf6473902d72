"""One question about comparable people, ready to be asked of any losses."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise._validate import known_name, modest, real, whole
from equipoise.audits._individual.moves import checked_input, cost_words, moves_of
from equipoise.audits._individual.nearest import nearest
from equipoise.audits._individual.people import People
from equipoise.claims import Metric
from equipoise.errors import OptionError
from equipoise.findings.verdict import Verdict
from equipoise.methods import transport
from equipoise.methods.arrays import FloatArray
from equipoise.methods.transport import Method

#: Names of the methods, as the option takes them.
METHODS = {
    "auto": Method.AUTO,
    "exact": Method.EXACT,
    "beta": Method.BETA,
    "normal": Method.NORMAL,
    "directional": Method.DIRECTIONAL,
    "bootstrap": Method.BOOTSTRAP,
    "m-out-of-n": Method.M_OUT_OF_N,
    "numerical": Method.NUMERICAL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the caller asks for, checked as far as it can be before the table is read."""

    cost: Any
    budget: float
    bounds: tuple[float, float]
    tolerance: float | None
    method: Method
    resamples: int


def terms_of(
    cost: Any, budget: Any, bounds: Any, tolerance: Any, method: Any, resamples: Any
) -> Terms:
    """Check the options that both verbs share."""
    if tolerance is not None and modest("tolerance", tolerance) < 0:
        raise OptionError(f"tolerance must be zero or more; got {tolerance!r}.")
    return Terms(
        cost=cost,
        budget=budget if budget == np.inf else real("budget", budget),
        bounds=_pair(bounds),
        tolerance=None if tolerance is None else float(tolerance),
        method=METHODS[known_name("method", method, METHODS)],
        resamples=whole("resamples", resamples, least=100),
    )


def _pair(bounds: Any) -> tuple[float, float]:
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise OptionError(f"bounds must be a pair (least loss, largest loss); got {bounds!r}.")
    return modest("bounds", bounds[0]), modest("bounds", bounds[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """Who may be moved where, and how uncertainty is to be found."""

    people: People
    moves: transport.Moves
    terms: Terms

    @property
    def features(self) -> tuple[str, ...]:
        """Names of all features."""
        return tuple(axis.name for axis in self.people.features)

    @property
    def vary(self) -> tuple[str, ...]:
        """Names of the varied ones."""
        return tuple(self.features[i] for i in self.people.varied)

    @property
    def compared(self) -> str:
        """Who is compared with whom, in words."""
        return cost_words(self.terms.cost, " and ".join(self.vary))

    def problem(self, losses: FloatArray) -> transport.Problem:
        """The auditor's problem for given losses."""
        with checked_input():
            return transport.prepare(
                self.moves, losses, budget=self.terms.budget, bounds=self.terms.bounds
            )

    def solve(self, problem: transport.Problem) -> transport.Solution:
        """The worst comparable population; of equally bad ones, one that is easy to read."""
        with checked_input():
            solution = transport.solve(problem, self.people.counts)
        free = self.terms.cost is None
        return nearest(self.people, problem.losses, solution) if free else solution

    def infer(
        self, problem: transport.Problem, sequence: np.random.SeedSequence
    ) -> transport.Inference:
        """The audit value and its sampling error; none where losses are themselves estimated."""
        with checked_input():
            found = transport.infer(
                problem,
                self.people.counts,
                rng=np.random.default_rng(sequence),
                method=self.terms.method,
                resamples=self.terms.resamples,
            )
        return found if not self.people.mixed else _without_answer(found, self.people)


def make_inquiry(people: People, terms: Terms) -> Inquiry:
    """Find the moves that the terms allow between these people."""
    return Inquiry(people=people, moves=moves_of(people, terms.cost), terms=terms)


def _without_answer(found: transport.Inference, people: People) -> transport.Inference:
    # Picking the worst of several noisy means exaggerates, and no method here allows for it.
    reason = (
        f"the loss differs from row to row in {people.mixed:,} of {len(people):,} kinds of people, "
        "so the value is too large by an unknown amount; name every feature the model uses, or "
        "pass model=…"
    )
    return dataclasses.replace(found, limit=None, reason=reason)


def verdict_of(found: transport.Inference, level: float, tolerance: float) -> Verdict:
    """Whether the value is at most the tolerance; of the two tests at most one can err."""
    low, high = found.lower(level), found.upper(level)
    if high is not None and high <= tolerance:
        return Verdict.SHOWN
    return Verdict.SHOWN_NOT if low is not None and low > tolerance else Verdict.UNDETERMINED


def loss_words(loss: Any, metric: Metric | None) -> str:
    """The average loss, as it reads in a sentence."""
    if metric is not None:
        return metric.words
    if loss == "zero-one":
        return "error rate"
    name = getattr(loss, "__name__", "")
    return f"average {name.replace('_', ' ')}" if name.isidentifier() else "average loss"
