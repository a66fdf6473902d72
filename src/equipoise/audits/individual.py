"""`individual`: how much worse a model could do on comparable people."""

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from equipoise._validate import Rng, confidence, known_keywords, seed_of
from equipoise.audits._common import (
    Model,
    Progress,
    RoleKeywords,
    TrailLike,
    as_trail,
    drawn_units,
    finite,
    independent,
    progress_bar,
    provenance_of,
)
from equipoise.audits._individual import (
    FAIR_METRIC,
    Cost,
    FairMetric,
    IndividualMethod,
    Inquiry,
    loss_words,
    make_inquiry,
    terms_of,
    tolerance_verdict,
)
from equipoise.audits._people import (
    Loss,
    People,
    about_unseen,
    asked_losses,
    find_people,
    loss_metric,
    with_unseen,
)
from equipoise.claims.groups import AttributeLike
from equipoise.findings.individual import AuditedCell, CostRobustness, Individual, MovedPeople
from equipoise.methods import transport
from equipoise.methods.transport import Method

#: The outcome when cells have no loss of their own.
ESTIMATED_LOSSES = "the losses themselves are estimated"

#: What upper ends are worth where comparable people were neither seen nor asked about.
AMONG_SEEN = "; upper ends hold among the people in the table only"


@known_keywords
def individual(
    trail: TrailLike,
    *,
    vary: str | Sequence[str],
    model: Model | None = None,
    loss: Loss = "zero-one",
    features: Sequence[AttributeLike] | None = None,
    cost: Cost = None,
    budget: float = 0.0,
    bounds: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
    tolerance: float | None = None,
    method: IndividualMethod = "auto",
    resamples: int = 2000,
    rng: Rng = None,
    progress: Progress = None,
    **roles: Unpack[RoleKeywords],
) -> Individual:
    """How much worse the model could do on comparable people.

    Comparable people share the label and every feature but the varied ones. Everybody is moved to
    the comparable kind of people on whom the model does worst; the rise of the average loss is the
    audit value, zero for a model that treats comparable people alike.

    Parameters
    ----------
    trail
        The audit trail, or a path or table as in `certify`, with a label of two or more values;
        without ``model`` also with a prediction. It may have sampling weights and clusters.
    vary
        The features in which comparable people may differ, such as ``["race", "sex"]``.
    model
        A function of a frame with the features as columns, or anything with ``predict``. It is
        asked about people who are not in the table as well. Without it, people are compared only
        with people in the table: a tolerance is not shown to be kept where comparable people are
        missing from it, and kinds of people with few rows are not taken at their word.
    loss
        ``"zero-one"``; with ``model``, a function of (labels, answers) that gives a loss for each;
        without, a metric such as `equipoise.brier`.
    features
        What people are compared by; the trail's attributes by default, or `binned` ones.
    cost
        What moving costs: None (free between comparable people, forbidden otherwise), a matrix over
        the finding's ``cells``, a function of two people (dictionaries of features) with the same
        label, or ``"fair-metric"``, a squared distance blind to the varied features and to what
        predicts them, learnt from the rows with its error allowed for; `FairMetric` has other
        ways to know it. Infinite means forbidden.
    budget
        Largest average cost; free moves need none.
    bounds
        The least and the largest loss there can be.
    level
        Confidence level of the interval, and of each one-sided bound.
    tolerance
        The audit value that is tolerated; adds a test and a verdict.
    method
        ``"auto"`` or one of ``exact``, ``beta``, ``normal``, ``directional``, ``bootstrap``,
        ``m-out-of-n``, ``numerical``; `Directional`, `MOutOfN` and `NumericalDerivative` take
        options. Weights and clusters have no exact method.
    resamples
        Number of draws, for methods that draw.
    rng, progress
        As in `certify`.

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
    ('exceeded', 'exact binomial', False)
    """
    confidence(level)
    terms = terms_of(cost, budget, bounds, tolerance, method, resamples)
    metric, seed = loss_metric(loss, model), seed_of(rng)
    with progress_bar(progress, 3, "individual") as tell:
        source = as_trail(trail, roles)
        people = find_people(source, features, vary, metric)
        if model is not None:
            people = with_unseen(people)
        tell(1)
        losses = people.losses
        if losses is None:
            losses = asked_losses(source, people, model, loss)
        inquiry = make_inquiry(people, terms, seed.sequence.spawn(1)[0])
        problem = inquiry.problem(losses)
        tell(2)
        found = inquiry.infer(problem, seed.sequence)
        if model is None:
            found = inquiry.trusted(problem, found, level)
        tell(3)
    words = loss_words(loss, metric)
    return _finding(inquiry, problem, found, level, words, seed.number, model is None)


def _finding(
    inquiry: Inquiry,
    problem: transport.Problem,
    found: transport.Inference,
    level: float,
    loss: str,
    seed: int | None,
    observed_only: bool,
) -> Individual:
    people, tolerance = inquiry.people, inquiry.terms.tolerance
    solution = inquiry.solve(problem)
    ends = found.interval(level) or (None, None)
    gaps = people.gaps(inquiry.terms.cost is None) if observed_only else 0
    return Individual(
        claim=_claim(inquiry, loss),
        question=f"how much higher the {loss} could be, comparing {inquiry.compared}",
        guarantee=_guarantee(found, level, inquiry.costs.metric, gaps),
        assumptions=_assumptions(observed_only, people),
        provenance=provenance_of(people.cells, seed),
        rows=_rows(people, problem, solution, inquiry.terms.cost),
        value=solution.value,
        lower=ends[0],
        upper=ends[1],
        lower_bound=found.lower(level),
        upper_bound=found.upper(level),
        ceiling=found.ceiling,
        risk=solution.risk,
        loss=loss,
        share=loss == "error rate",
        vary=inquiry.vary,
        features=inquiry.features,
        compared=inquiry.compared,
        budget=problem.budget,
        spent=solution.spent,
        level=level,
        tolerance=tolerance,
        p_above=None if tolerance is None else found.p_above(tolerance),
        p_below=None if tolerance is None or gaps else found.p_below(tolerance),
        verdict=None if tolerance is None else tolerance_verdict(found, level, tolerance, gaps),
        method="none" if found.limit is None else str(found.method),
        reason=found.reason,
        outcome=ESTIMATED_LOSSES if people.mixed else str(found.outcome),
        price=finite(solution.prices.lowest),
        unique=solution.prices.unique,
        resamples=found.draws,
        observed_only=observed_only,
        mixed=people.mixed,
        isolated=problem.isolated,
        gaps=gaps,
        metric=inquiry.costs.metric,
        left_out=inquiry.lost(problem),
        robustness=_robustness(inquiry, problem),
        weighted=people.cells.weighted,
        clusters=None if people.cells.clusters is None else people.sample.n,
        cells=_cells(people, problem, solution),
    )


def _rows(
    people: People, problem: transport.Problem, solution: transport.Solution, cost: object
) -> tuple[MovedPeople, ...]:
    plan = solution.plan.moves()
    # Free moves change only what is varied, so the rest need not be said again.
    said = people.varied if cost is None else None
    order = np.lexsort((plan.target, plan.source, -plan.gain))
    entries = zip(
        plan.source[order].tolist(),
        plan.target[order].tolist(),
        (plan.mass[order] * int(people.counts.sum())).tolist(),
        plan.gain[order].tolist(),
        strict=True,
    )
    return tuple(
        MovedPeople(
            group=people.words(a),
            to=people.words(b, said),
            where=people.where(a),
            where_to=people.where(b),
            label=people.label_of(a),
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
            label=people.label_of(cell),
            n=int(people.counts[cell]),
            after=round(float(solution.after[cell]) * int(people.counts.sum()), 9),
            loss=float(problem.losses[cell]),
        )
        for cell in range(len(people))
    )


def _claim(inquiry: Inquiry, loss: str) -> dict[str, object]:
    cost = inquiry.terms.cost
    if isinstance(cost, FairMetric):
        cost = FAIR_METRIC
    plain = cost is None or isinstance(cost, str)
    return {
        "kind": "individual",
        "vary": list(inquiry.vary),
        "features": list(inquiry.features),
        "loss": loss,
        "cost": cost if plain else "a function" if callable(cost) else "a matrix",
        "budget": finite(inquiry.terms.budget),
    }


def _robustness(inquiry: Inquiry, problem: transport.Problem) -> CostRobustness | None:
    found = transport.robustness(problem, inquiry.moves, inquiry.people.sample.share)
    if found is None:
        return None
    return CostRobustness(
        rise=found.rise,
        fall=found.fall,
        steepness=finite(found.steepness),
        published=finite(found.published),
    )


def _guarantee(found: transport.Inference, level: float, metric: str, gaps: int) -> str:
    if found.limit is None:
        return f"none: {found.reason}"
    kind = "exact" if found.method is Method.EXACT and not metric else "for large samples"
    return (
        f"{kind}: interval and one-sided bounds, each on its own, with {100 * level:.10g} % "
        f"confidence{_about(metric)}{AMONG_SEEN if gaps else ''}"
    )


def _about(metric: str) -> str:
    return f"; of the fair metric, {metric}" if metric else ""


def _assumptions(observed_only: bool, people: People) -> tuple[str, ...]:
    limited = "combinations of the features not varied that are not in the table do not occur"
    if observed_only:
        limited = "people are compared with people in the table only"
    return (
        independent(drawn_units(people.cells)),
        "the model's loss depends on the features and the label alone",
        *about_unseen(people),
        *(() if people.complete else (limited,)),
    )
