"""`individual`: how much worse a model could do on comparable people."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise._rng import Rng, Seed, seed_of
from equipoise._validate import fraction, known_keywords, known_name, real, whole
from equipoise.audits._ask_model import Loss, asked_losses, loss_metric
from equipoise.audits._moves import checked_input, cost_words, moves_of
from equipoise.audits._people import People, check_trail, find_people, with_unseen
from equipoise.audits._progress import Progress, progress_bar
from equipoise.audits._provenance import provenance_of
from equipoise.claims import Metric
from equipoise.findings.individual import AuditedCell, Individual, MovedPeople
from equipoise.findings.verdict import Verdict
from equipoise.methods import transport
from equipoise.methods.transport import Method
from equipoise.trail import Trail

#: The outcome when cells have no loss of their own.
ESTIMATED_LOSSES = "the losses themselves are estimated"

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


@known_keywords
def individual(
    trail: Trail,
    *,
    vary: Any,
    model: Any = None,
    loss: Loss = "zero-one",
    features: Any = None,
    cost: Any = None,
    budget: float = 0.0,
    bounds: tuple[float, float] = (0.0, 1.0),
    tolerance: float | None = None,
    level: float = 0.95,
    method: str = "auto",
    resamples: int = 2000,
    rng: Rng = None,
    progress: Progress = None,
) -> Individual:
    """How much worse the model could do on comparable people.

    Comparable people share the label and every feature but the varied ones. Everybody is moved to
    the comparable kind of people on whom the model does worst; the rise of the average loss is the
    audit value, zero for a model that treats comparable people alike.

    Parameters
    ----------
    trail
        The audit trail, with a label; without ``model`` also with a prediction.
    vary
        The features in which comparable people may differ, such as ``["race", "sex"]``.
    model
        A function of a frame with the features as columns, or anything with ``predict``. It is
        asked about people who are not in the table as well. Without it, people are compared only
        with people in the table, and the finding says so.
    loss
        ``"zero-one"``; with ``model``, a function of (labels, answers) that gives a loss for each;
        without, a metric such as `equipoise.brier`.
    features
        What people are compared by; the trail's attributes by default, or `binned` ones.
    cost
        What moving costs: None (free between comparable people, forbidden otherwise), a matrix over
        the finding's ``cells``, a function of two people (dictionaries of features) with the same
        label, or ``"fair-metric"``, a squared distance blind to the varied features and to what
        predicts them. Infinite means forbidden.
    budget
        Largest average cost; free moves need none.
    bounds
        The least and the largest loss there can be.
    tolerance
        The audit value that is tolerated; adds a test and a verdict.
    level
        Confidence level of the interval, and of each one-sided bound.
    method
        ``"auto"`` or one of ``exact``, ``beta``, ``normal``, ``directional``, ``bootstrap``,
        ``m-out-of-n``, ``numerical``.
    resamples
        Number of draws, for methods that draw.
    rng
        Seed; the same seed gives the same answer. If not given, one is drawn and recorded.
    progress
        Whether to show a bar, or a function called with (done, total).

    Examples
    --------
    >>> import equipoise as eq
    >>> found = eq.individual(
    ...     eq.datasets.compas(),
    ...     vary=["race", "sex"],
    ...     model=lambda frame: (frame["priors"] == "More than 3") & (frame["sex"] == "Male"),
    ...     features=["race", "sex", "age", "priors", "charge"],
    ...     tolerance=0.1,
    ...     rng=7,
    ... )
    >>> str(found.verdict), found.method, found.observed_only
    ('shown not', 'exact binomial', False)
    """
    options = _Options(
        level=fraction("level", level),
        tolerance=None if tolerance is None else real("tolerance", tolerance),
        method=METHODS[known_name("method", method, METHODS)],
        resamples=whole("resamples", resamples, least=100),
        seed=seed_of(rng),
    )
    metric = loss_metric(loss, model)
    with progress_bar(progress, 3, "individual") as tell:
        people = find_people(check_trail(trail), features, vary, metric)
        if model is not None:
            people = with_unseen(people)
        tell(1)
        losses = people.losses
        if losses is None:
            losses = asked_losses(trail, people, model, loss)
        moves = moves_of(people, cost)
        with checked_input():
            problem = transport.prepare(moves, losses, budget=budget, bounds=bounds)
            solution = transport.solve(problem, people.counts)
        tell(2)
        found = infer_value(problem, people, options)
        tell(3)
    words = _loss_words(loss, metric)
    return _finding(people, problem, solution, found, options, cost, words, model is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    level: float
    tolerance: float | None
    method: Method
    resamples: int
    seed: Seed


def infer_value(
    problem: transport.Problem, people: People, options: _Options
) -> transport.Inference:
    """The sampling error of the audit value, by the method asked for."""
    with checked_input():
        found = transport.infer(
            problem,
            people.counts,
            rng=np.random.default_rng(options.seed.sequence),
            method=options.method,
            resamples=options.resamples,
        )
        if options.tolerance is not None:
            found.p_above(options.tolerance)
    if not people.mixed:
        return found
    # Picking the worst of several noisy means exaggerates, and no method here allows for it.
    reason = (
        f"the loss differs from row to row in {people.mixed:,} of {len(people):,} kinds of people, "
        "so the value is too large by an unknown amount; name every feature the model uses, or "
        "pass model=…"
    )
    return dataclasses.replace(found, limit=None, reason=reason)


def _finding(
    people: People,
    problem: transport.Problem,
    solution: transport.Solution,
    found: transport.Inference,
    options: _Options,
    cost: Any,
    loss: str,
    observed_only: bool,
) -> Individual:
    level, tolerance = options.level, options.tolerance
    ends = found.interval(level) or (None, None)
    names = tuple(axis.name for axis in people.features)
    vary = tuple(names[i] for i in people.varied)
    compared = cost_words(cost, " and ".join(vary))
    return Individual(
        claim=_claim(people, vary, loss, cost, problem.budget),
        question=f"how much higher the {loss} could be, comparing {compared}",
        guarantee=_guarantee(found, level),
        assumptions=_assumptions(people, observed_only),
        provenance=provenance_of(people.cells, options.seed.number),
        rows=_rows(people, problem, solution, cost),
        value=solution.value,
        lower=ends[0],
        upper=ends[1],
        lower_bound=found.lower(level),
        upper_bound=found.upper(level),
        ceiling=found.ceiling,
        risk=solution.risk,
        loss=loss,
        share=loss == "error rate",
        vary=vary,
        features=names,
        compared=compared,
        budget=problem.budget,
        spent=solution.spent,
        level=level,
        tolerance=tolerance,
        p_above=None if tolerance is None else found.p_above(tolerance),
        p_below=None if tolerance is None else found.p_below(tolerance),
        verdict=_verdict(found, level, tolerance),
        method="none" if found.limit is None else str(found.method),
        reason=found.reason,
        outcome=ESTIMATED_LOSSES if people.mixed else str(found.outcome),
        price=_finite(solution.prices.lowest),
        unique=solution.prices.unique,
        resamples=found.draws,
        observed_only=observed_only,
        mixed=people.mixed,
        isolated=problem.isolated,
        cells=_cells(people, problem, solution),
    )


def _verdict(found: transport.Inference, level: float, tolerance: float | None) -> Verdict | None:
    """Each side by a test of its own; at most one of them can err."""
    if tolerance is None:
        return None
    low, high = found.lower(level), found.upper(level)
    if high is not None and high <= tolerance:
        return Verdict.SHOWN
    return Verdict.SHOWN_NOT if low is not None and low > tolerance else Verdict.UNDETERMINED


def _rows(
    people: People, problem: transport.Problem, solution: transport.Solution, cost: Any
) -> tuple[MovedPeople, ...]:
    plan = solution.plan.moves()
    # Free moves change only what is varied, so the rest need not be said again.
    said = people.varied if cost is None else None
    order = np.lexsort((plan.target, plan.source, -plan.gain))
    entries = zip(
        plan.source[order].tolist(),
        plan.target[order].tolist(),
        (plan.mass[order] * solution.n).tolist(),
        plan.gain[order].tolist(),
        strict=True,
    )
    return tuple(
        MovedPeople(
            group=people.words(a),
            to=people.words(b, said),
            where=people.where(a),
            where_to=people.where(b),
            label=int(people.label[a]),
            n=int(people.counts[a]),
            people=round(mass, 9),
            loss=float(problem.losses[a]),
            loss_to=float(problem.losses[b]),
            gain=gain,
        )
        for a, b, mass, gain in entries
    )


def _cells(
    people: People, problem: transport.Problem, solution: transport.Solution
) -> tuple[AuditedCell, ...]:
    return tuple(
        AuditedCell(
            group=people.words(cell),
            where=people.where(cell),
            label=int(people.label[cell]),
            n=int(people.counts[cell]),
            after=round(float(solution.after[cell]) * solution.n, 9),
            loss=float(problem.losses[cell]),
        )
        for cell in range(len(people))
    )


def _claim(
    people: People, vary: tuple[str, ...], loss: str, cost: Any, budget: float
) -> dict[str, Any]:
    plain = cost is None or isinstance(cost, str)
    named = cost if plain else "a function" if callable(cost) else "a matrix"
    return {
        "kind": "individual",
        "vary": list(vary),
        "features": [axis.name for axis in people.features],
        "loss": loss,
        "cost": named,
        "budget": _finite(budget),
    }


def _guarantee(found: transport.Inference, level: float) -> str:
    if found.limit is None:
        return f"none: {found.reason}"
    kind = "exact" if found.method is Method.EXACT else "for large samples"
    return (
        f"{kind}: interval and one-sided bounds, each on its own, with {100 * level:.10g} % "
        "confidence"
    )


def _assumptions(people: People, observed_only: bool) -> tuple[str, ...]:
    basic = ("rows are independent draws from the population audited",)
    known = "the model's loss depends on the features and the label alone"
    limited = ("people who are not in the table are not compared",) if observed_only else ()
    return (*basic, known, *limited)


def _loss_words(loss: Any, metric: Metric | None) -> str:
    if metric is not None:
        return metric.words
    if loss == "zero-one":
        return "error rate"
    name = getattr(loss, "__name__", "")
    return f"average {name.replace('_', ' ')}" if name.isidentifier() else "average loss"


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
