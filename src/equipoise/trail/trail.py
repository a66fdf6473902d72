"""The trail: a table somewhere, with a meaning for its columns."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, SupportsFloat

import narwhals as nw
import numpy as np
import numpy.typing as npt
from narwhals.typing import IntoFrame

from equipoise._codec import Scalar, canonical
from equipoise._validate import (
    columns_named,
    did_you_mean,
    known_keywords,
    known_name,
    listing,
    short,
)
from equipoise.errors import OptionError, TrailError
from equipoise.trail import engine
from equipoise.trail.delimited import COUNT_NAMES, known_encoding
from equipoise.trail.engine import AnyArray, Frame, engine_errors, from_columns, objects
from equipoise.trail.fields import Reading, text_of_two
from equipoise.trail.sources import Opened, open_source

# --- What each column means: label, prediction, score, weight and so on ---

#: Roles whose column must hold numbers.
NUMERIC = ("score", "low", "high", "weight", "count", "observed")
#: Roles that may hold any two values.
TWO_VALUED = ("label", "prediction", "proxy_label")


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The columns that play a part in an audit; a role not played is None."""

    label: str | None = None
    """What really happened."""
    prediction: str | None = None
    """What the model decided."""
    score: str | None = None
    """The model's number before deciding, often a probability."""
    low: str | None = None
    """Lower end of the model's prediction interval."""
    high: str | None = None
    """Upper end of the model's prediction interval."""
    weight: str | None = None
    """Sampling weight: how many people in the population the row stands for."""
    count: str | None = None
    """Frequency: how many identical rows this row is."""
    cluster: str | None = None
    """Rows with the same value were not sampled independently."""
    pair: str | None = None
    """Two rows with the same value belong together, as twins do."""
    proxy_label: str | None = None
    """A cheap label, as of a judge or a model, of rows most of which have no true one."""
    observed: str | None = None
    """The chance with which a row's label was observed, as it was logged."""

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """The roles that are played, as (role, column)."""
        for role in dataclasses.fields(self):
            column = getattr(self, role.name)
            if column is not None:
                yield role.name, column

    def __contains__(self, role: object) -> bool:
        return any(role == name for name, _ in self)

    def column(self, role: str) -> str:
        """The column that plays ``role``; an error says how to name one."""
        known_name("Role", role, ROLE_NAMES, TrailError)
        column = getattr(self, role)
        if column is None:
            played = listing(name for name, _ in self)
            raise TrailError(
                f"This needs a {role} column; this trail has: {played}. "
                f"Pass {role}=… to equipoise.read."
            )
        return str(column)


ROLE_NAMES = tuple(field.name for field in dataclasses.fields(Roles))


def check_roles(roles: Roles, schema: Mapping[str, nw.dtypes.DType]) -> None:
    """Refuse a role whose column is absent or holds the wrong kind of value."""
    for role, column in roles:
        # pairs that nobody named as clusters are spoken of as pairs
        called = "pair" if role == "cluster" and column == roles.pair else role
        require_column(column, schema, f"{called}={column!r}")
        _check_type(role, column, schema[column])
    _check_distinct(roles)


def require_column(column: object, schema: Mapping[str, object], called: str) -> None:
    """Refuse a column that the table does not have, with the nearest name."""
    if not isinstance(column, str) or column not in schema:
        hint = did_you_mean(str(column), schema)
        raise TrailError(
            f"There is no column for {called}.{hint} The table has: {listing(schema, most=40)}."
        )


def is_text(dtype: nw.dtypes.DType) -> bool:
    """Whether a column holds text (plain, categorical or enumerated)."""
    return isinstance(dtype, nw.String | nw.Categorical | nw.Enum)


def _check_type(role: str, column: str, dtype: nw.dtypes.DType) -> None:
    if role in NUMERIC and not (dtype.is_numeric() or isinstance(dtype, nw.Boolean)):
        raise TrailError(
            f"The {role} column {column!r} must hold numbers; it holds {dtype}. "
            "Convert it, or name another column."
        )
    if role in TWO_VALUED:
        plain = dtype.is_numeric() or is_text(dtype) or isinstance(dtype, nw.Boolean | nw.Object)
        if not plain:
            raise TrailError(
                f"The {role} column {column!r} must hold 0/1, booleans, text or numbers; "
                f"it holds {dtype}. Convert it, or name another column."
            )


def _check_distinct(roles: Roles) -> None:
    taken: dict[str, str] = {}
    for role, column in roles:
        # A model may output its decision as its score, and pairs may be all the clusters there are.
        shared = ({"prediction", "score"}, {"cluster", "pair"})
        if column in taken and {role, taken[column]} not in shared:
            raise TrailError(
                f"Column {column!r} is given two roles, {taken[column]} and "
                f"{'pair' if column == roles.pair else role}. "
                "Name a different column for one of them."
            )
        taken[column] = role


# --- Attributes of which only probabilities are known ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """An attribute that is known by the probability of each of its values only."""

    columns: Mapping[str, str]
    """Value of the attribute → column with its probability."""
    truth: str | None = None
    """Column with the attribute itself, where it is known of some rows."""


def proxies_of(
    proxy: object, truth: object, roles: Roles, schema: Mapping[str, nw.dtypes.DType]
) -> dict[str, Proxy]:
    """Attributes by their probabilities, checked against the columns."""
    if proxy is None and truth is None:
        return {}
    if not isinstance(proxy, Mapping) or not all(isinstance(p, Mapping) for p in proxy.values()):
        raise TrailError(
            "proxy takes attributes with a column of probabilities for each value, such as "
            f"{{'race': {{'Black': 'p_black', 'White': 'p_white'}}}}; got {short(repr(proxy))}."
        )
    known = {} if truth is None else truth
    if not isinstance(known, Mapping) or not set(known) <= set(proxy):
        raise TrailError(
            "truth takes attributes of proxy= with the column that holds them where they are "
            f"known, such as {{'race': 'race_stated'}}; got {short(repr(truth))}."
        )
    return {
        str(name): _proxy(str(name), columns, known.get(name), roles, schema)
        for name, columns in proxy.items()
    }


def _proxy(
    name: str,
    columns: Mapping[object, object],
    truth: object,
    roles: Roles,
    schema: Mapping[str, nw.dtypes.DType],
) -> Proxy:
    if name in schema and truth != name:
        raise TrailError(
            f"{name!r} is a column of the table, and proxy= gives probabilities for it as well. "
            f"Leave out the proxy, give it another name, or pass truth={{{name!r}: {name!r}}} to "
            "check the probabilities where it is known."
        )
    if len(columns) < 2:
        raise TrailError(
            f"proxy={{{name!r}: …}} needs a column for each of at least two values, which sum to "
            "one; make one for everyone else."
        )
    for level, column in columns.items():
        require_column(column, schema, f"the probability of {name}={level!r}")
        if not schema[str(column)].is_numeric():
            raise TrailError(
                f"Column {column!r} must hold probabilities; it holds {schema[str(column)]}."
            )
        if any(column == played for _, played in roles):
            raise TrailError(f"Column {column!r} is a probability and plays another role as well.")
    if len(set(columns.values())) < len(columns):
        raise TrailError(f"Two values of {name!r} have the same column of probabilities.")
    if truth is not None:
        require_column(truth, schema, f"truth={{{name!r}: {truth!r}}}")
    made = {str(canonical(level)): str(column) for level, column in columns.items()}
    return Proxy(columns=made, truth=None if truth is None else str(truth))


# --- The trail: a table somewhere, with a meaning for its columns ---

#: Names that start so are our own.
RESERVED = "__equipoise_"

Schema = Mapping[str, nw.dtypes.DType]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trail:
    """An audit trail: where the rows are and what each column means.

    Made by [`read`][equipoise.read]. Rows stay where they are, and an audit fetches only totals (or
    the few columns a row-level method needs); text files such as CSV are read once, when they are
    opened.

    >>> import equipoise as eq
    >>> trail = eq.datasets.adult_predictions()
    >>> trail.roles.label, trail.attributes
    ('high_income', ('race', 'sex', 'age_band'))
    """

    frame: Frame
    """The table, as a lazy narwhals frame on whatever engine holds it."""
    roles: Roles
    """Which column plays which part."""
    attributes: tuple[str, ...]
    """Columns by which groups may be formed."""
    schema: Schema = field(repr=False)
    """Column types, as read once from the source."""
    positive: Mapping[str, Scalar]
    """For label and prediction: the value that counts as 1, where it is not 1 or True."""
    source: str
    """What the table was read from, in words."""
    notes: tuple[str, ...] = ()
    """What was decided in reading a file: its encoding, lines that were skipped, and which words
    were taken as missing."""
    proxies: Mapping[str, Proxy] = field(default_factory=dict, repr=False)
    """Attributes of which only probabilities are known."""

    def __repr__(self) -> str:
        roles = ", ".join(f"{role}={column!r}" for role, column in self.roles)
        return f"Trail({self.source}; {roles or 'no roles'}; attributes {listing(self.attributes)})"

    def attribute(self, name: str) -> str:
        """Return ``name`` if groups may be formed by it; otherwise say what exists."""
        if name in self.proxies:
            raise TrailError(
                f"Only probabilities of {name!r} are known. certify, flag and joint_test take it "
                f"alone, as in gap(metric, across={name!r}), from a trail rather than from counts."
            )
        if name in self.attributes:
            return name
        if name in self.schema:
            raise TrailError(
                f"Column {name!r} is not among the attributes of this trail"
                f"{self._played_by(name)}: {listing(self.attributes)}. Pass attributes=[…] to "
                "equipoise.read to add it."
            )
        require_column(name, dict.fromkeys(self.attributes), f"attribute {name!r}")
        return name

    def _played_by(self, column: str) -> str:
        """Which role keeps a column from being an attribute, in brackets."""
        roles = [role for role, played in dict(self.roles).items() if played == column]
        return f" (it is the {' and the '.join(roles)})" if roles else ""

    def resolve(self, name: str) -> str:
        """The column a formula's name means: a role's column, or a column of that name."""
        is_role = name in ROLE_NAMES and (name in self.roles or name not in self.schema)
        if is_role and name in self.schema and self.roles.column(name) != name:
            raise TrailError(
                f"{name!r} could mean the {name} role (column {self.roles.column(name)!r}) or the "
                f"column {name!r}. Rename the column, or write role({name!r}) or column({name!r})."
            )
        if is_role:
            return self.roles.column(name)
        require_column(name, self.schema, f"{name!r}")
        return name

    def is_float(self, column: str) -> bool:
        """Whether a column may hold NaN beside null."""
        return self.schema[column].is_float()

    def present(self, column: str) -> nw.Expr:
        """True where a column has a value: neither null nor NaN."""
        # NaN is tested apart from null because engines disagree on whether it is one.
        expression = ~nw.col(column).is_null()
        return expression & not_nan(nw.col(column)) if self.is_float(column) else expression

    def number(self, column: str) -> nw.Expr:
        """A column as double-precision numbers, whatever numeric type it is stored in."""
        dtype = self.schema[column]
        if isinstance(dtype, nw.Boolean):
            return truth_number(nw.col(column)).cast(nw.Float64)
        if not dtype.is_numeric():
            raise TrailError(
                f"Column {column!r} is used as a number but holds {dtype}. "
                "Convert it, or name another column."
            )
        return nw.col(column).cast(nw.Float64)

    def key(self, column: str) -> nw.Expr:
        """A column as it may be grouped by: categories as plain text, times without a zone."""
        dtype = self.schema[column]
        if dtype.is_nested() or isinstance(dtype, nw.Binary):
            raise TrailError(
                f"Column {column!r} holds {dtype}, by which rows cannot be grouped. "
                "Make a column of text or numbers from it."
            )
        if is_text(dtype) and not isinstance(dtype, nw.String):
            return nw.col(column).cast(nw.String)
        if isinstance(dtype, nw.Duration) or "INTERVAL" in str(dtype).upper():
            raise TrailError(
                f"Column {column!r} holds durations, which engines write in different ways. Make "
                "a number of them, such as whole days, and group by that."
            )
        # Ibis hands over points in time with their zone, and cannot be asked for another
        if isinstance(dtype, nw.Datetime) and not self.frame.implementation.is_ibis():
            return _in_utc(nw.col(column), dtype.time_zone)
        return nw.col(column)

    def indicator(self, role: str) -> nw.Expr:
        """A two-valued role as the numbers 0 and 1, computed by the engine."""
        return self._two_valued(role, self.roles.column(role), self.positive.get(role))

    def model_indicator(self, column: str) -> nw.Expr:
        """What another model says, read as the prediction is: as the numbers 0 and 1."""
        words = is_text(self.schema[column])
        return self._two_valued("model", column, model_positive(self.positive, words))

    def _two_valued(self, role: str, column: str, positive: Scalar) -> nw.Expr:
        if positive is not None:
            return truth_number(self.key(column) == positive).cast(nw.Float64)
        if is_text(self.schema[column]):
            said = text_of_two(self.frame, column, self.source)
            raise TrailError(f"The {role} column {column!r} {said}")
        if isinstance(self.schema[column], nw.Object):
            raise TrailError(
                f"The {role} column {column!r} holds Python objects of mixed types. Convert it to "
                "whole numbers or booleans, or pass positive=… to equipoise.read to say which "
                "value counts as 1."
            )
        return self.number(column)


def model_positive(positive: Mapping[str, Scalar], words: bool) -> Scalar:
    """The value that counts as 1 in what a model says: the prediction's, or a label's word.

    >>> model_positive({"label": "yes"}, words=True), model_positive({"label": 2}, words=False)
    ('yes', None)
    """
    return positive.get("prediction", positive.get("label") if words else None)


def expect_trail(value: object) -> Trail:
    """Return a trail; anything else is refused with the way to make one."""
    if isinstance(value, Trail):
        return value
    raise TrailError(
        f"Expected a trail, such as equipoise.read(…) gives; got {type(value).__name__}."
    )


def truth_number(truth: nw.Expr) -> nw.Expr:
    """A truth value as 0 or 1; PostgreSQL takes the small kind of whole number only."""
    return truth.cast(nw.Int32)


def not_nan(value: nw.Expr) -> nw.Expr:
    """True where a double is a number, infinities included.

    Not by the engine's own test: the statistics of a Parquet file leave out NaN, and DuckDB
    concludes from them that there is none.
    """
    return (value - value == 0) | (value.abs() == float("inf"))


def make_trail(
    frame: Frame,
    *,
    roles: Roles,
    attributes: tuple[str, ...] | None,
    positive: object,
    source: str,
    notes: tuple[str, ...] = (),
    proxy: object = None,
    truth: object = None,
) -> Trail:
    """Check roles and attributes against the real schema, then build the trail."""
    with engine_errors(source):
        schema = dict(frame.collect_schema())
    _check_names(schema)
    if frame.implementation.is_spark_like():
        _check_dots(schema)
    check_roles(roles, schema)
    for name in attributes or ():
        require_column(name, schema, f"attribute {name!r}")
    proxies = proxies_of(proxy, truth, roles, schema)
    played = {column for _, column in roles} | set(proxies)
    played |= {column for one in proxies.values() for column in one.columns.values()}
    free = tuple(name for name in schema if name not in played)
    notes = (*notes, *_perhaps_counts(roles, {name: schema[name] for name in free}))
    return Trail(
        frame=frame,
        roles=roles,
        attributes=free if attributes is None else attributes,
        schema=schema,
        positive=positive_values(positive, roles, schema),
        source=source,
        notes=notes,
        proxies=proxies,
    )


def _perhaps_counts(roles: Roles, free: Schema) -> list[str]:
    """A remark on a column that looks as if lines stood for several people."""
    counts = [n for n, kind in free.items() if n.lower() in COUNT_NAMES and kind.is_integer()]
    said = "Every line counts as one person. If it stands for several, name {!r} as the count."
    return [said.format(name) for name in counts if roles.count is roles.weight is None]


def positive_values(positive: object, roles: Roles, schema: Schema) -> dict[str, Scalar]:
    """Which value counts as 1 in each two-valued role.

    One value given for both roles speaks only for the columns that could hold it: "yes" says
    nothing about a column of 0 and 1.
    """
    named = [role for role in TWO_VALUED if role in roles]
    if positive is None:
        return {}
    if isinstance(positive, Mapping):
        unknown = [role for role in positive if role not in named]
        if unknown:
            raise TrailError(
                f"positive= names {listing(unknown)}; this trail's two-valued roles are "
                f"{listing(named)}."
            )
        return {role: _fitting(role, canonical(v), roles, schema) for role, v in positive.items()}
    value = canonical(positive)
    fitting = {role: value for role in named if _fits(value, schema[roles.column(role)])}
    if not fitting:
        held = ", ".join(f"{role} holds {schema[roles.column(role)]}" for role in named)
        raise TrailError(
            f"positive={value!r} fits neither label nor prediction: "
            f"{held or 'neither role is played'}."
        )
    return fitting


def _fitting(role: str, value: Scalar, roles: Roles, schema: Schema) -> Scalar:
    column = roles.column(role)
    if not _fits(value, schema[column]):
        raise TrailError(
            f"positive={value!r} cannot occur in the {role} column {column!r}, "
            f"which holds {schema[column]}."
        )
    return value


def _fits(value: Scalar, dtype: nw.dtypes.DType) -> bool:
    if isinstance(dtype, nw.Object):
        return True
    # First, since True is a number to Python and would fit a column of 0 and 1.
    if isinstance(value, bool):
        return isinstance(dtype, nw.Boolean)
    if isinstance(value, str):
        return is_text(dtype)
    return dtype.is_numeric()


def _check_names(schema: Schema) -> None:
    for name in schema:
        if not isinstance(name, str) or not name:
            raise TrailError(f"Columns must have names that are text; one is called {name!r}.")
        if name.lower().startswith(RESERVED):
            raise TrailError(
                f"Column {name!r} starts with {RESERVED!r}, which is reserved. Rename the column."
            )
        # to some engines these mean other columns, or all of them
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise TrailError(
                f"A column is called {name!r}, which engines take for a pattern of names: another "
                "column could be audited in its place. Rename the column."
            )


def _check_dots(schema: Schema) -> None:
    """Refuse a name with a dot that Spark would read as a field of another column."""
    for name in schema:
        if "." in name and name.split(".")[0] in schema:
            raise TrailError(
                f"Spark reads the column {name!r} as a field of the column "
                f"{name.split('.')[0]!r}. Rename one of them."
            )


def _in_utc(moment: nw.Expr, zone: str | None) -> nw.Expr:
    """A point in time on one clock, whatever zone the engine shows it in."""
    if zone is None:
        return moment
    same = zone in ("UTC", "Etc/UTC")
    return (moment if same else moment.dt.convert_time_zone("UTC")).dt.replace_time_zone(None)


# --- `read` and `from_arrays`: the ways in ---

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
    pair: str | None = None,
    proxy_label: str | None = None,
    observed: str | None = None,
    attributes: Sequence[str] | None = None,
    positive: object | Mapping[str, object] = None,
    encoding: str | None = None,
    missing: Sequence[str] | None = None,
    proxy: object | Mapping[str, Mapping[str, str]] = None,
    truth: object | Mapping[str, str] = None,
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
    pair
        Column whose equal values join two rows: twins, matched applications, the same prompt with
        another name. A gap against ``reference(…)`` then compares every row with its partner; to
        all other questions pairs are clusters, unless ``cluster`` names larger ones around them.
    proxy_label
        A cheap label, from a judge or a model, where the label itself is missing in most rows:
        rates of groups then use both, which are worth at least as many rows as the labels alone.
    observed
        The chance, as it was logged, with which a row's label was observed, where outcomes are seen
        of some only (those who got a loan): error rates weigh rows by one over it.
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
    proxy
        Attributes that are not known but for probabilities, with a column for each value:
        ``{"race": {"Black": "p_black", "Other": "p_other"}}``. They sum to one in every row.
    truth
        For such an attribute the column that holds it where it is known after all, by which the
        probabilities are checked: ``{"race": "race_stated"}``.

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
        # rows of one pair are not independent, whatever is asked
        cluster=pair if cluster is None else cluster,
        pair=pair,
        proxy_label=proxy_label,
        observed=observed,
    )
    chosen = None if attributes is None else columns_named("attributes", attributes)
    reading = Reading(
        encoding=None if encoding is None else known_encoding(encoding),
        missing=None if missing is None else _missing_words(missing),
        answers=tuple(str(column) for column in (label, prediction, proxy_label) if column),
    )
    opened = _opened(source, table, reading)
    if opened.cluster is not None and roles.cluster is None and count is None:
        roles = dataclasses.replace(roles, cluster=opened.cluster)
    return make_trail(
        opened.frame,
        roles=roles,
        attributes=chosen,
        positive=positive,
        source=opened.words,
        notes=opened.notes,
        proxy=proxy,
        truth=truth,
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
        from_columns(columns, "arrays"),
        roles=roles,
        attributes=None,
        positive=positive,
        source="arrays",
    )


def _attributes(features: Column | Mapping[str, Column]) -> dict[str, Column]:
    if isinstance(features, Mapping):
        return {str(name): values for name, values in features.items()}
    if hasattr(features, "columns"):
        frame: Any = features
        return {str(name): frame[name] for name in frame.columns}
    if _as_array("sensitive_features", features).ndim == 2:
        table = _as_objects(features)
        return {f"feature_{i + 1}": table[:, i] for i in range(table.shape[1])}
    return {str(getattr(features, "name", None) or "group"): features}


def _array(name: str, values: Column) -> AnyArray:
    array = _as_array(name, values)
    if array.ndim != 1:
        raise TrailError(f"{name} must be one value per row; it has shape {array.shape}.")
    if array.dtype.kind in "biuf" and not np.ma.is_masked(values):
        return array
    # From the values themselves: numpy makes text of numbers that stand beside text.
    try:
        plain = _as_objects(values)
    except Exception:  # a library's own array that cannot be had as objects
        plain = array
    return _words(name, plain if plain.ndim == 1 else array)


def _as_array(name: str, values: Column) -> AnyArray:
    try:
        return np.asarray(values)
    # lists of different lengths, types that have no array, whole numbers beyond all types
    except Exception as error:
        raise TrailError(
            f"{name} must be one value per row; it cannot be an array: {short(str(error), 200)}"
        ) from error


def _as_objects(values: Column) -> AnyArray:
    # what the caller declared invalid is missing
    gone = isinstance(values, np.ma.MaskedArray)
    return engine.unmasked(np.ma.asarray(values)) if gone else np.asarray(values, dtype=object)


def _words(name: str, values: AnyArray) -> AnyArray:
    """Text, or numbers of which some are missing, with one kind of missing value."""
    listed = [*values]
    missing = [_is_gone(value) for value in listed]
    held = [value for value, gone in zip(listed, missing, strict=True) if not gone]
    kinds = {type(value) for value in held}
    if held and all(issubclass(kind, _NUMBERS) for kind in kinds):
        return _with_gaps(name, listed, missing)
    if not all(issubclass(kind, str) for kind in kinds):
        named = listing(sorted(kind.__name__ for kind in kinds))
        raise TrailError(f"{name} mixes values of types {named}. Pass numbers, booleans or text.")
    return objects([None if gone else str(v) for v, gone in zip(listed, missing, strict=True)])


_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


def _with_gaps(name: str, values: Sequence[SupportsFloat], missing: Sequence[bool]) -> AnyArray:
    try:
        return np.array(
            [np.nan if gone else float(v) for v, gone in zip(values, missing, strict=True)]
        )
    except (OverflowError, ValueError) as error:
        raise TrailError(f"{name} holds a number that is too large.") from error


def _is_gone(value: object) -> bool:
    """Whether a value is missing: None, or one that differs from itself, as NaN does."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return bool(value != value)
    except Exception:  # such as a list of numbers, which is no value of ours anyway
        return False


def _refuse_lengths(columns: Mapping[str, AnyArray]) -> None:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise TrailError(f"All arrays must have one value per row; their lengths are: {said}.")
    if not lengths or not next(iter(lengths.values())):
        raise TrailError("There are no rows. Pass y_true, y_pred and sensitive_features.")
