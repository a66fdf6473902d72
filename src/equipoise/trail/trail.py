"""The trail: a table somewhere, with a meaning for its columns."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import narwhals as nw

from equipoise._codec import Scalar, canonical
from equipoise._validate import did_you_mean, known_name, listing
from equipoise.errors import TrailError
from equipoise.trail.engine import Frame as Frame
from equipoise.trail.engine import engine_errors

# --- What each column means: label, prediction, score, weight and so on ---

#: Roles whose column must hold numbers.
NUMERIC = ("score", "low", "high", "weight", "count")
#: Roles that may hold any two values.
TWO_VALUED = ("label", "prediction")


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
        require_column(column, schema, f"{role}={column!r}")
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
        # A model may output its decision as its score, so that pair alone may share a column.
        if column in taken and {role, taken[column]} != {"prediction", "score"}:
            raise TrailError(
                f"Column {column!r} is given two roles, {taken[column]} and {role}. "
                "Name a different column for one of them."
            )
        taken[column] = role


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

    def __repr__(self) -> str:
        roles = ", ".join(f"{role}={column!r}" for role, column in self.roles)
        return f"Trail({self.source}; {roles or 'no roles'}; attributes {listing(self.attributes)})"

    def attribute(self, name: str) -> str:
        """Return ``name`` if groups may be formed by it; otherwise say what exists."""
        if name in self.attributes:
            return name
        if name in self.schema:
            raise TrailError(
                f"Column {name!r} is not among the attributes of this trail: "
                f"{listing(self.attributes)}. Pass attributes=[…] to equipoise.read to add it."
            )
        require_column(name, dict.fromkeys(self.attributes), f"attribute {name!r}")
        return name

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
        # Ibis hands over points in time with their zone, and cannot be asked for another
        if isinstance(dtype, nw.Datetime) and not self.frame.implementation.is_ibis():
            return _in_utc(nw.col(column), dtype.time_zone)
        return nw.col(column)

    def indicator(self, role: str) -> nw.Expr:
        """A two-valued role as the numbers 0 and 1, computed by the engine."""
        column = self.roles.column(role)
        if role in self.positive:
            return truth_number(self.key(column) == self.positive[role]).cast(nw.Float64)
        if is_text(self.schema[column]):
            raise TrailError(
                f"The {role} column {column!r} holds text. Pass positive=… to equipoise.read to "
                "say which of its two values counts as 1."
            )
        if isinstance(self.schema[column], nw.Object):
            raise TrailError(
                f"The {role} column {column!r} holds Python objects of mixed types. Convert it to "
                "whole numbers or booleans, or pass positive=… to equipoise.read to say which "
                "value counts as 1."
            )
        return self.number(column)


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
) -> Trail:
    """Check roles and attributes against the real schema, then build the trail."""
    with engine_errors(source):
        schema = dict(frame.collect_schema())
    _check_names(schema)
    check_roles(roles, schema)
    for name in attributes or ():
        require_column(name, schema, f"attribute {name!r}")
    played = {column for _, column in roles}
    free = tuple(name for name in schema if name not in played)
    return Trail(
        frame=frame,
        roles=roles,
        attributes=free if attributes is None else attributes,
        schema=schema,
        positive=positive_values(positive, roles, schema),
        source=source,
        notes=notes,
    )


def positive_values(positive: object, roles: Roles, schema: Schema) -> dict[str, Scalar]:
    """Which value counts as 1 in each two-valued role.

    One value given for both roles speaks only for the columns that could hold it: "yes" says
    nothing about a column of 0 and 1.
    """
    named = [role for role in ("label", "prediction") if role in roles]
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


def _in_utc(moment: nw.Expr, zone: str | None) -> nw.Expr:
    """A point in time on one clock, whatever zone the engine shows it in."""
    if zone is None:
        return moment
    same = zone in ("UTC", "Etc/UTC")
    return (moment if same else moment.dt.convert_time_zone("UTC")).dt.replace_time_zone(None)
