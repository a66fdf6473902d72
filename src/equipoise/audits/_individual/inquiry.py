"""One question about comparable people, ready to be asked of any losses."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise._validate import modest, real, whole
from equipoise.audits._individual.moves import Costs, checked_input, cost_words, costs_of
from equipoise.audits._individual.nearest import nearest
from equipoise.audits._individual.people import People
from equipoise.audits.comparable import Chosen, as_inferred
from equipoise.claims import Metric
from equipoise.errors import OptionError
from equipoise.findings.verdict import Verdict
from equipoise.methods import transport
from equipoise.methods.arrays import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the caller asks for, checked as far as it can be before the table is read."""

    cost: Any
    budget: float
    bounds: tuple[float, float]
    tolerance: float | None
    method: Chosen
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
        method=as_inferred(method),
        resamples=whole("resamples", resamples, least=100),
    )


def _pair(bounds: Any) -> tuple[float, float]:
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise OptionError(f"bounds must be a pair (least loss, largest loss); got {bounds!r}.")
    return modest("bounds", bounds[0]), modest("bounds", bounds[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """Who may be moved where, and how uncertainty is to be found."""

    costs: Costs
    moves: transport.Moves
    terms: Terms

    @property
    def people(self) -> People:
        """Those who are audited."""
        return self.costs.people

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

    def problem(
        self, losses: FloatArray, moves: transport.Moves | None = None
    ) -> transport.Problem:
        """The auditor's problem for given losses, and for other moves than usual if given."""
        with checked_input():
            return transport.prepare(
                self.moves if moves is None else moves,
                losses,
                budget=self.terms.budget,
                bounds=self.terms.bounds,
            )

    def easier(self, problem: transport.Problem, off: float = 0.0) -> transport.Problem:
        """A problem no harder than the true one: cheap moves, and those left out cheaper still."""
        moves = self.costs.at(-off) if off else self.moves
        if isinstance(moves, transport.Neighbours):
            moves = transport.relaxed(moves, problem.losses)
        return self.problem(problem.losses, moves)

    def lost(self, problem: transport.Problem) -> float:
        """The most by which moves left out could raise the value."""
        if isinstance(self.moves, transport.Classes) or self.moves.left_out is None:
            return 0.0
        share = self.people.sample.share
        return float(self.easier(problem).values(share) - problem.values(share))

    def solve(self, problem: transport.Problem) -> transport.Solution:
        """The worst comparable population; of equally bad ones, one that is easy to read."""
        with checked_input():
            solution = transport.solve(problem, self.people.sample)
        free = self.terms.cost is None
        return nearest(self.people, problem.losses, solution) if free else solution

    def infer(
        self, problem: transport.Problem, sequence: np.random.SeedSequence
    ) -> transport.Inference:
        """The audit value and its sampling error; none where losses are themselves estimated."""
        found = self._known(problem, sequence)
        if self.people.mixed:
            return _without_answer(found, self.people)
        learnt = self.costs.errors is not None
        if not learnt and self.lost(problem) == 0:
            return found
        found = transport.between(
            found,
            lambda alpha: self._end(problem, sequence, self.costs.off(alpha), hard=True),
            lambda alpha: self._end(problem, sequence, self.costs.off(alpha), hard=False),
            ceiling=float(self.easier(problem).gradient(0.0).max()),
            learnt=learnt,
        )
        if not learnt or found.limit is None:
            return found
        # the value may vary with the metric where it does not with the shares
        reason = f"{found.reason}; the error of the learnt metric is allowed for"
        return dataclasses.replace(found, outcome=transport.Outcome.ESTIMATED, reason=reason)

    def _known(
        self, problem: transport.Problem, sequence: np.random.SeedSequence
    ) -> transport.Inference:
        """The answer if this were the true problem."""
        chosen = self.terms.method
        with checked_input():
            return transport.infer(
                problem,
                self.people.sample,
                rng=np.random.default_rng(sequence),
                method=chosen.method,
                resamples=self.terms.resamples,
                units=chosen.units,
                step=chosen.step,
                tries=chosen.tries,
                kappa=chosen.kappa,
            )

    def _end(
        self,
        problem: transport.Problem,
        sequence: np.random.SeedSequence,
        off: float,
        *,
        hard: bool,
    ) -> transport.Limit | None:
        """What is known of the value where moves cost the most, or the least, that they may."""
        if hard:
            moves = self.costs.at(off) if off else self.moves
            return self._known(self.problem(problem.losses, moves), sequence).limit
        return self._known(self.easier(problem, off), sequence).limit


def make_inquiry(people: People, terms: Terms, sequence: np.random.SeedSequence) -> Inquiry:
    """Find the moves that the terms allow between these people."""
    costs = costs_of(people, terms.cost, np.random.default_rng(sequence))
    with checked_input():
        return Inquiry(costs=costs, moves=costs.at(0.0), terms=terms)


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
