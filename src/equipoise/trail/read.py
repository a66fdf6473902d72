"""`read` and `from_arrays`: the ways in."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
from narwhals.typing import IntoFrame

from equipoise._validate import columns_named, known_keywords, listing
from equipoise.errors import OptionError, TrailError
from equipoise.trail.encodings import known_encoding
from equipoise.trail.engine import AnyArray, Frame, engine_errors, new_duckdb, objects, quoted
from equipoise.trail.fields import Reading
from equipoise.trail.sources import Opened, open_source
from equipoise.trail.trail import Roles, Trail, make_trail

#: One value per row; lists may hold None where a value is missing.
Column = npt.ArrayLike | Sequence[object]

# --- `read`: the way in ---


@known_keywords
def read(
    source: str | Path | Trail | IntoFrame,
    *,
    table: str | None = None,
    label: str | None = None,
    prediction: str | None = None,
    score: str | None = None,
    low: str | None = None,
    high: str | None = None,
    weight: str | None = None,
    count: str | None = None,
    cluster: str | None = None,
    attributes: Sequence[str] | None = None,
    positive: object | Mapping[str, object] = None,
    encoding: str | None = None,
    missing: Sequence[str] | None = None,
) -> Trail:
    """Open a table of decisions as an audit trail.

    Parameters
    ----------
    source
        Path of a file (CSV, TSV, Parquet, JSON lines, Feather or Arrow, an Excel workbook, SQLite;
        also packed with gzip or zip), a folder or a glob; or a pandas, Polars or PyArrow table,
        a DuckDB relation, a PySpark DataFrame, or an Ibis table; or the place of a database:
        ``postgres://user@host/database``, ``duckdb:///file.duckdb``, ``sc://host`` (Spark Connect),
        ``spark://host:port`` or ``spark://local[2]``, in which ``${NAME}`` stands for an
        environment variable. Or a `Trail`, to give it other roles.
    table
        Name of the table, where ``source`` is a database, a workbook (the sheet) or a zip file (the
        file in it) with more than one.
    label, prediction
        Columns with what happened and what the model decided: 0/1, booleans, or any two values
        together with ``positive=``.
    score, low, high
        The model's number before deciding; the ends of its prediction interval.
    weight, count, cluster
        Sampling weight; number of identical rows a row stands for; column whose equal values mark
        rows that were not sampled independently.
    attributes
        Columns by which groups may be formed; all columns without a role if not given.
    positive
        The value of label and prediction that counts as 1, where it is not 1 or True; a mapping
        from role to value if the two differ.
    encoding
        What a CSV file is written in, such as ``"cp1252"``; found out if not given.
    missing
        Words that mean a missing value in every column of a text file, such as ``["-9", "?"]``.
        If not given, a blank is missing, and ``NA``, ``N/A``, ``NULL``, ``None``, ``.``, ``-`` or
        ``?`` where all else in the column is numbers, dates or truth values; the label and the
        prediction have no such answers as ``NA`` either. `Trail.notes` lists what was taken so.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame(
    ...     {"hired": ["yes", "no", "no"], "advised": [1, 0, 1], "sex": ["f", "m", "f"]}
    ... )
    >>> read(table, label="hired", prediction="advised", positive="yes")
    Trail(a polars table; label='hired', prediction='advised'; attributes 'sex')
    """
    roles = Roles(
        label=label,
        prediction=prediction,
        score=score,
        low=low,
        high=high,
        weight=weight,
        count=count,
        cluster=cluster,
    )
    chosen = None if attributes is None else columns_named("attributes", attributes)
    reading = Reading(
        encoding=None if encoding is None else known_encoding(encoding),
        missing=None if missing is None else _missing_words(missing),
        answers=tuple(str(column) for column in (label, prediction) if column is not None),
    )
    opened = _opened(source, table, reading)
    return make_trail(
        opened.frame,
        roles=roles,
        attributes=chosen,
        positive=positive,
        source=opened.words,
        notes=opened.notes,
    )


def _opened(source: object, table: str | None, reading: Reading) -> Opened:
    if not isinstance(source, Trail):
        return open_source(source, table, reading)
    if reading.encoding is not None or reading.missing is not None:
        raise OptionError("encoding= and missing= are for reading a file; this is a trail already.")
    return Opened(frame=source.frame, words=source.source, notes=source.notes)


def _missing_words(words: Sequence[str]) -> tuple[str, ...]:
    if isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise OptionError(f"missing must be a list of words, such as ['NA']; got {words!r}.")
    return tuple(words)


# --- `from_arrays`: the way in for code that holds arrays, as model evaluations do ---

_ROLES = {"y_true": "label", "y_pred": "prediction", "y_score": "score", "sample_weight": "weight"}


@known_keywords
def from_arrays(
    y_true: Column | None = None,
    y_pred: Column | None = None,
    *,
    sensitive_features: Column | Mapping[str, Column],
    y_score: Column | None = None,
    sample_weight: Column | None = None,
    positive: object = None,
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


def _attributes(features: Column | Mapping[str, Column]) -> dict[str, Column]:
    if isinstance(features, Mapping):
        return {str(name): values for name, values in features.items()}
    if hasattr(features, "columns"):
        frame: Any = features
        return {str(name): frame[name] for name in frame.columns}
    if _as_array("sensitive_features", features).ndim == 2:
        table = np.asarray(features, dtype=object)
        return {f"feature_{i + 1}": table[:, i] for i in range(table.shape[1])}
    return {str(getattr(features, "name", None) or "group"): features}


def _array(name: str, values: Column) -> AnyArray:
    array = _as_array(name, values)
    if array.ndim != 1:
        raise TrailError(f"{name} must be one value per row; it has shape {array.shape}.")
    if array.dtype.kind in "biuf":
        return array
    # From the values themselves: numpy makes text of numbers that stand beside text.
    return _words(name, np.asarray(values, dtype=object))


def _as_array(name: str, values: Column) -> AnyArray:
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


def _frame(columns: dict[str, AnyArray]) -> Frame:
    connection = new_duckdb()
    with engine_errors("arrays"):
        # any column name must do, also one that an engine would read as a number or a keyword
        plain = {f"column_{i}": values for i, values in enumerate(columns.values())}
        connection.register("arrays", plain)
        named = ", ".join(f"column_{i} AS {quoted(name)}" for i, name in enumerate(columns))
        return nw.from_native(connection.sql(f"SELECT {named} FROM arrays"))
