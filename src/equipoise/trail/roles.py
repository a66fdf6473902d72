"""What each column means: label, prediction, score, weight and so on."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from equipoise._validate import did_you_mean, known_name, listing
from equipoise.errors import TrailError

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
        for field in dataclasses.fields(self):
            column = getattr(self, field.name)
            if column is not None:
                yield field.name, column

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


def require_column(column: Any, schema: Mapping[str, Any], called: str) -> None:
    """Refuse a column that the table does not have, with the nearest name."""
    if not isinstance(column, str) or column not in schema:
        hint = did_you_mean(str(column), schema)
        raise TrailError(
            f"There is no column for {called}.{hint} The table has: {listing(schema, most=40)}."
        )


def is_text(dtype: Any) -> bool:
    """Whether a column holds text (plain, categorical or enumerated)."""
    return isinstance(dtype, nw.String | nw.Categorical | nw.Enum)


def _check_type(role: str, column: str, dtype: Any) -> None:
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
