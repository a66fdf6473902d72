"""Losses in every cell: read off the trail, or found by asking the model."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from equipoise._codec import canonical
from equipoise._validate import listing
from equipoise.audits._individual.people import People
from equipoise.claims import Metric
from equipoise.claims.dimension import Levels
from equipoise.claims.metric import METRICS, as_metric, error_rate
from equipoise.errors import EquipoiseError, OptionError
from equipoise.methods.arrays import AnyArray, FloatArray
from equipoise.trail import Trail

Loss = str | Metric | Callable[[Any, Any], Any]
Model = Callable[[Any], Any]


def loss_metric(loss: Any, model: Any) -> Metric | None:
    """The metric that gives each row's loss, or None if the model will be asked."""
    if model is not None:
        if loss != "zero-one" and not (callable(loss) and not isinstance(loss, Metric)):
            raise OptionError(
                "With model=…, loss is 'zero-one' or a function of (labels, model's answers); "
                f"got {loss!r}."
            )
        return None
    if isinstance(loss, Metric) or (isinstance(loss, str) and loss in METRICS):
        return as_metric(loss)
    if loss == "zero-one":
        return error_rate
    raise OptionError(
        "From a trail alone, loss is 'zero-one' or a metric such as equipoise.brier; to use a "
        f"function of (labels, answers), pass model=… as well. Got {loss!r}."
    )


def asked_losses(trail: Trail, people: People, model: Any, loss: Any) -> FloatArray:
    """The loss in every cell, by asking the model about each combination of features once."""
    kinds, place = np.unique(people.index[:, :-1], axis=0, return_inverse=True)
    answers = _answers(people, kinds, model)[place.reshape(-1)]
    finite = people.labels != (0, 1)
    labels = np.array(people.labels)[people.label] if finite else people.label.astype(np.float64)
    if loss != "zero-one":
        return _losses(loss, labels, answers)
    if finite:
        return _other_labels(people, answers)
    return np.asarray(labels != _decisions(trail, people, answers), dtype=np.float64)


def _answers(people: People, kinds: AnyArray, model: Any) -> AnyArray:
    predict = getattr(model, "predict", model)
    if not callable(predict):
        raise OptionError(
            f"model must be a function of a frame, or have predict(); got {type(model).__name__}."
        )
    frame = _frame(people, kinds)
    try:
        answers = predict(frame)
    except Exception as error:
        raise EquipoiseError(
            f"The model failed on a {type(frame).__module__.split('.')[0]} frame of "
            f"{len(kinds):,} rows with columns {listing(axis.name for axis in people.features)}: "
            f"{type(error).__name__}: {error}"
        ) from error
    made = np.asarray(answers)
    if made.shape == (len(kinds), 1):
        made = made[:, 0]
    if made.shape != (len(kinds),):
        raise EquipoiseError(
            f"The model must return one answer for each of {len(kinds):,} rows; "
            f"it returned an array of shape {made.shape}."
        )
    return made


def _frame(people: People, kinds: AnyArray) -> Any:
    import narwhals as nw

    columns = {}
    for position, axis in enumerate(people.features):
        if not isinstance(axis.dimension, Levels):
            raise OptionError(
                f"A model cannot be asked about a range of {axis.name!r}: it needs values. Add a "
                "column that names the ranges to the table the model reads, or audit the trail "
                "alone, without model=…."
            )
        columns[axis.name] = [axis.levels[i] for i in kinds[:, position].tolist()]
    backend = next((name for name in ("pandas", "polars", "pyarrow") if find_spec(name)), None)
    if backend is None:
        raise EquipoiseError("Asking a model needs pandas, polars or pyarrow; install one of them.")
    return nw.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]


def _decisions(trail: Trail, people: People, answers: AnyArray) -> FloatArray:
    """Answers as 0 and 1: given so, or as the values that the label column holds."""
    values = [canonical(value) for value in answers.tolist()]
    positive = trail.positive.get("label")
    label_values = people.cells.axes[-1].levels
    if (
        positive is not None
        and answers.dtype != np.bool_
        and all(value in label_values for value in values)
    ):
        return np.array([float(value == positive) for value in values])
    wrong = [value for value in dict.fromkeys(values) if value not in (0, 1)]
    if wrong:
        known = (
            "" if positive is None else f", or a value of the label ({listing(label_values, 4)})"
        )
        raise EquipoiseError(
            f"With loss='zero-one' the model must return 0 or 1{known}; it returned "
            f"{listing(wrong, 3)}. Turn its scores into decisions, or pass a loss of your own."
        )
    return np.array([float(value) for value in values])


def _other_labels(people: People, answers: AnyArray) -> FloatArray:
    """Whether each answer is another label than the cell's; answers are values of the label."""
    values = [canonical(value) for value in answers.tolist()]
    wrong = [value for value in dict.fromkeys(values) if value not in people.labels]
    if len(wrong) == len(set(values)):
        raise EquipoiseError(
            f"With loss='zero-one' the model must return values of the label "
            f"({listing(people.labels, 4)}); it returned {listing(wrong, 3)}."
        )
    pairs = zip(people.label.tolist(), values, strict=True)
    return np.array([float(people.labels[label] != value) for label, value in pairs])


def _losses(loss: Any, labels: AnyArray, answers: AnyArray) -> FloatArray:
    try:
        made = np.asarray(loss(labels, answers), dtype=np.float64)
    except Exception as error:
        raise EquipoiseError(f"The loss failed: {type(error).__name__}: {error}") from error
    if made.shape != labels.shape:
        raise EquipoiseError(
            f"The loss must return one number for each of {labels.size:,} cells; "
            f"it returned an array of shape {made.shape}."
        )
    return made
