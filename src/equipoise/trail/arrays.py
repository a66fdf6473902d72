"""`from_arrays`: the way in for code that holds arrays, as model evaluations do."""

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._validate import known_keywords, listing
from equipoise.errors import TrailError
from equipoise.trail.engine import AnyArray, engine_errors, new_duckdb, objects, quoted
from equipoise.trail.roles import Roles
from equipoise.trail.trail import Trail, make_trail

_ROLES = {"y_true": "label", "y_pred": "prediction", "y_score": "score", "sample_weight": "weight"}


@known_keywords
def from_arrays(
    y_true: Any = None,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    y_score: Any = None,
    sample_weight: Any = None,
    positive: Any = None,
) -> Trail:
    """A trail from the arrays that scikit-learn and Fairlearn work with.

    Parameters
    ----------
    y_true, y_pred, y_score
        What happened, what the model decided, and its number: arrays, lists or series.
    sensitive_features
        The attributes: one array, a mapping from name to array, or a data frame.
    sample_weight
        Sampling weights.
    positive
        The value of ``y_true`` and ``y_pred`` that counts as 1, where it is not 1 or True.

    Examples
    --------
    >>> trail = from_arrays([0, 1, 1], [1, 1, 0], sensitive_features={"sex": ["f", "m", "f"]})
    >>> trail
    Trail(arrays; label='label', prediction='prediction'; attributes 'sex')
    """
    given = {"y_true": y_true, "y_pred": y_pred, "y_score": y_score, "sample_weight": sample_weight}
    columns = {_ROLES[name]: _array(name, x) for name, x in given.items() if x is not None}
    roles = Roles(**{name: name for name in columns})
    for name, values in _attributes(sensitive_features).items():
        if name in columns:
            raise TrailError(
                f"A sensitive feature is called {name!r}, which is what the {name} column is "
                "called here. Rename it."
            )
        columns[name] = _array(f"sensitive feature {name!r}", values)
    _refuse_lengths(columns)
    return make_trail(
        _frame(columns), roles=roles, attributes=None, positive=positive, source="arrays"
    )


def _attributes(features: Any) -> dict[str, Any]:
    if isinstance(features, Mapping):
        return {str(name): values for name, values in features.items()}
    if hasattr(features, "columns"):
        return {str(name): features[name] for name in features.columns}
    if _as_array("sensitive_features", features).ndim == 2:
        width = np.shape(features)[1]
        table = np.asarray(features, dtype=object)
        return {f"feature_{i + 1}": table[:, i] for i in range(width)}
    return {str(getattr(features, "name", None) or "group"): features}


def _array(name: str, values: Any) -> AnyArray:
    array = _as_array(name, values)
    if array.ndim != 1:
        raise TrailError(f"{name} must be one value per row; it has shape {array.shape}.")
    if array.dtype.kind in "biuf":
        return array
    # From the values themselves: numpy makes text of numbers that stand beside text.
    return _words(name, np.asarray(values, dtype=object))


def _as_array(name: str, values: Any) -> AnyArray:
    try:
        return np.asarray(values)
    except ValueError as error:  # lists of different lengths
        raise TrailError(
            f"{name} must be one value per row; it cannot be an array: {error}"
        ) from error


def _words(name: str, values: AnyArray) -> AnyArray:
    """Text, with one kind of missing value."""
    # NaN is the one value that differs from itself, whatever library it comes from.
    missing = np.array([value is None or value != value for value in values], dtype=bool)
    kinds = {type(value).__name__ for value in values[~missing]}
    if kinds - {"str", "str_"}:
        raise TrailError(
            f"{name} mixes values of types {listing(sorted(kinds))}. Pass numbers, booleans or "
            "text."
        )
    return objects([None if gone else str(v) for v, gone in zip(values, missing, strict=True)])


def _refuse_lengths(columns: Mapping[str, AnyArray]) -> None:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise TrailError(f"All arrays must have one value per row; their lengths are: {said}.")
    if not lengths or not next(iter(lengths.values())):
        raise TrailError("There are no rows. Pass y_true, y_pred and sensitive_features.")


def _frame(columns: dict[str, AnyArray]) -> nw.LazyFrame[Any]:
    connection = new_duckdb()
    with engine_errors("arrays"):
        # any column name must do, also one that an engine would read as a number or a keyword
        plain = {f"column_{i}": values for i, values in enumerate(columns.values())}
        connection.register("arrays", plain)
        named = ", ".join(f"column_{i} AS {quoted(name)}" for i, name in enumerate(columns))
        frame: nw.LazyFrame[Any] = nw.from_native(connection.sql(f"SELECT {named} FROM arrays"))
    return frame
