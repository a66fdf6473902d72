"""`select_fair`: the model that errs least among those that treat comparable people alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

from equipoise._validate import Rng, confidence, known_keywords, known_name, real, seed_of
from equipoise.audits._common import (
    Model,
    Progress,
    RoleKeywords,
    TrailLike,
    as_trail,
    drawn_units,
    independent,
    progress_bar,
    provenance_of,
)
from equipoise.audits._individual import (
    Cost,
    IndividualMethod,
    Inquiry,
    loss_words,
    make_inquiry,
    terms_of,
    tolerance_verdict,
)
from equipoise.audits._people import (
    Loss,
    about_unseen,
    asked_losses,
    find_people,
    loss_metric,
    with_unseen,
)
from equipoise.claims.groups import AttributeLike
from equipoise.errors import OptionError
from equipoise.findings.individual import AuditedModel, Bound, FairChoice
from equipoise.methods import transport


@known_keywords
def select_fair(
    trail: TrailLike,
    models: Mapping[str, Model],
    *,
    vary: str | Sequence[str],
    tolerance: float,
    side: Bound = "lower",
    loss: Loss = "zero-one",
    features: Sequence[AttributeLike] | None = None,
    cost: Cost = None,
    budget: float = 0.0,
    bounds: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
    method: IndividualMethod = "auto",
    resamples: int = 2000,
    rng: Rng = None,
    progress: Progress = None,
    **roles: Unpack[RoleKeywords],
) -> FairChoice:
    """The model with the lowest error among those that meet a tolerance on the audit value.

    Parameters
    ----------
    trail
        Rows to judge the models on, with a label; rows the models were not fitted to.
    models
        A name for each model, and the model: a fitted scikit-learn estimator that takes a frame
        with the features as columns, or a function of such a frame.
    vary
        The features in which comparable people may differ, such as ``["race", "sex"]``.
    tolerance
        The audit value that is tolerated.
    side
        ``"lower"``: models that are not shown to exceed the tolerance may be chosen, each tested on
        its own. ``"upper"``: only models shown to keep to it, with confidence for all at once.
    loss, features, cost, budget, bounds, method, resamples
        As in `individual`.
    level
        Confidence level.
    rng, progress
        As in `certify`.

    Examples
    --------
    >>> import equipoise as eq
    >>> models = {
    ...     "priors": lambda frame: frame["priors"] == "More than 3",
    ...     "men": lambda frame: frame["sex"] == "Male",
    ... }
    >>> found = eq.select_fair(
    ...     eq.datasets.compas(),
    ...     models,
    ...     vary="sex",
    ...     tolerance=0.03,
    ...     features=["sex", "race", "age", "priors"],
    ...     rng=7,
    ... )
    >>> found.chosen
    'priors'
    """
    source = as_trail(trail, roles)
    confidence(level)
    terms = terms_of(cost, budget, bounds, tolerance, method, resamples)
    real("tolerance", tolerance)
    known_name("side", side, ("lower", "upper"))
    named, seed = _models(models), seed_of(rng)
    for model in named.values():
        loss_metric(loss, model)
    every = with_unseen(find_people(source, features, vary, None))
    audited: list[_Audited] = []
    streams = seed.sequence.spawn(len(named))
    inquiry = make_inquiry(every, terms, seed.sequence.spawn(1)[0])
    people = inquiry.people
    with progress_bar(progress, len(named), "select_fair") as tell:
        for (name, model), stream in zip(named.items(), streams, strict=True):
            losses = asked_losses(source, people, model, loss)
            found = inquiry.infer(inquiry.problem(losses), stream)
            error = float(people.sample.share @ losses)
            audited.append(_Audited(name=name, error=error, found=found))
            tell(len(audited))
    return _finding(inquiry, audited, side, level, loss_words(loss, None), seed.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Audited:
    """One model, before any is chosen."""

    name: str
    error: float
    found: transport.Inference


def _models(models: object) -> dict[str, object]:
    if not isinstance(models, Mapping) or not models:
        raise OptionError(
            "models takes a name and a fitted model for each, such as {'plain': estimator}; got "
            f"{'none' if isinstance(models, Mapping) else type(models).__name__}."
        )
    return {str(name): model for name, model in models.items()}


def _finding(
    inquiry: Inquiry,
    audited: list[_Audited],
    bound: Bound,
    level: float,
    loss: str,
    seed: int | None,
) -> FairChoice:
    tolerance = inquiry.terms.tolerance or 0.0
    # A promise about the model that looks best must hold for whichever that is.
    each = level if bound == "lower" else 1 - (1 - level) / len(audited)
    picked = _pick(audited, tolerance, each, bound)
    names = [model.name for model in audited]
    return FairChoice(
        claim=_claim(inquiry, names, loss, bound),
        question=f"which model has the lowest {loss} with an audit value of at most "
        f"{tolerance:g}, comparing {inquiry.compared}",
        guarantee=_guarantee(bound, level),
        assumptions=(
            independent(drawn_units(inquiry.people.cells)),
            "the models were not fitted to these rows",
            *about_unseen(inquiry.people),
        ),
        provenance=provenance_of(inquiry.people.cells, seed),
        rows=tuple(_row(model, i, picked, each, tolerance) for i, model in enumerate(audited)),
        chosen=None if picked.chosen is None else names[picked.chosen],
        closest=names[picked.closest],
        tolerance=tolerance,
        bound=bound,
        level=level,
        loss=loss,
        share=loss == "error rate",
        vary=inquiry.vary,
        features=inquiry.features,
        compared=inquiry.compared,
    )


def _pick(
    audited: list[_Audited], tolerance: float, level: float, bound: Bound
) -> transport.Selection:
    return transport.select_model(
        [model.error for model in audited],
        [_bound(model.found, level, bound) for model in audited],
        [model.found.value for model in audited],
        delta=tolerance,
    )


def _bound(found: transport.Inference, level: float, bound: Bound) -> float:
    """The bound, or where there is no answer what holds anyway: zero and the ceiling."""
    if bound == "lower":
        # no audit value is below zero
        return found.lower(level) or 0.0
    upper = found.upper(level)
    return found.ceiling if upper is None else upper


def _row(
    model: _Audited, position: int, picked: transport.Selection, level: float, tolerance: float
) -> AuditedModel:
    found = model.found
    return AuditedModel(
        model=model.name,
        error=model.error,
        value=found.value,
        lower=found.lower(level),
        upper=found.upper(level),
        verdict=tolerance_verdict(found, level, tolerance),
        candidate=bool(picked.candidates[position]),
        chosen=picked.chosen == position,
        method="none" if found.limit is None else str(found.method),
    )


def _claim(inquiry: Inquiry, models: list[str], loss: str, bound: Bound) -> dict[str, object]:
    return {
        "kind": "fair choice",
        "models": models,
        "vary": list(inquiry.vary),
        "features": list(inquiry.features),
        "loss": loss,
        "tolerance": inquiry.terms.tolerance,
        "bound": bound,
    }


def _guarantee(bound: Bound, level: float) -> str:
    if bound == "lower":
        return (
            f"each model that keeps to the tolerance stays a candidate with {100 * level:.10g} % "
            "confidence; candidates are not shown to keep to it"
        )
    return f"all candidates keep to the tolerance, with {100 * level:.10g} % confidence at once"
