"""Dimensions: how one attribute cuts the population into levels.

Every group of a collection is a union of cells, and cells are the cross-product of dimensions.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from equipoise._codec import kind
from equipoise._validate import known_keywords, real, whole, yes_or_no
from equipoise.claims.formula import parse
from equipoise.errors import ClaimError


@kind("levels")
@dataclass(frozen=True, slots=True)
class Levels:
    """Each distinct value of a column is a level; missing is a level of its own."""

    column: str

    @property
    def name(self) -> str:
        """What the dimension is called in labels."""
        return self.column

    def shorthand(self) -> str:
        """The bare column name."""
        return self.column


@kind("binned")
@dataclass(frozen=True, slots=True)
class Binned:
    """A number cut into named ranges: below the first cut, between cuts, from the last cut up."""

    column: str
    cuts: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_column(self.column)
        object.__setattr__(self, "cuts", increasing("cuts", self.cuts, least=1))

    @property
    def name(self) -> str:
        """What the dimension is called in labels."""
        return self.column


@kind("ordered")
@dataclass(frozen=True, slots=True)
class Ordered:
    """A number whose ranges are groups.

    With ``edges``, the ranges between consecutive edges are the finest ones (the last includes its
    upper edge); with ``quantiles``, edges are found so that about equally many rows lie between
    them; with neither, every distinct value is an end point.
    """

    column: str
    edges: tuple[float, ...] | None = None
    quantiles: int | None = None
    role: bool = False
    """Whether ``column`` is the name of a role rather than of a column."""

    def __post_init__(self) -> None:
        _check_column(self.column)
        if self.edges is not None and self.quantiles is not None:
            raise ClaimError("Pass either edges= or grid=, not both.")
        yes_or_no("role", self.role)
        if self.edges is not None:
            object.__setattr__(self, "edges", increasing("edges", self.edges, least=2))
        if self.quantiles is not None:
            whole("grid", self.quantiles)

    @property
    def name(self) -> str:
        """What the dimension is called in labels."""
        return self.column


@kind("condition")
@dataclass(frozen=True, slots=True)
class Condition:
    """Rows for which a formula holds, and the others."""

    name: str
    formula: str

    def __post_init__(self) -> None:
        _check_formula("A group of your own", self.name, self.formula)


@kind("tilt")
@dataclass(frozen=True, slots=True)
class Tilt:
    """A weight of at least zero for each row; each distinct weight is a level."""

    name: str
    formula: str

    def __post_init__(self) -> None:
        _check_formula("A tilt", self.name, self.formula)


@kind("values")
@dataclass(frozen=True, slots=True)
class Values:
    """Each distinct value of a column, however many there are: what a function can be asked for."""

    column: str

    @property
    def name(self) -> str:
        """What the dimension is called."""
        return self.column


Dimension = Levels | Binned | Ordered | Condition | Tilt | Values


@known_keywords
def binned(column: str, cuts: Iterable[float]) -> Binned:
    """Cut a numeric attribute into ranges, to be used like any other attribute.

    >>> binned("age", cuts=(25, 45))
    Binned(column='age', cuts=(25.0, 45.0))
    """
    # The value itself checks its cuts, since a plan file may build it as well.
    return Binned(column, cuts)  # type: ignore[arg-type]


def as_dimension(value: object) -> Dimension:
    """An attribute given by name, or already a dimension."""
    if isinstance(value, str) and value:
        return Levels(value)
    if isinstance(value, Levels | Binned | Condition):
        return value
    raise ClaimError(f"An attribute is a column name or binned(column, cuts=…); got {value!r}.")


def as_ordered(value: object) -> Ordered:
    """A numeric attribute given by name, or already an ordered dimension."""
    # anything else is taken for a column name, which the value itself checks
    return value if isinstance(value, Ordered) else Ordered(value)  # type: ignore[arg-type]


def _check_formula(what: str, name: object, formula: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ClaimError(f"{what} needs a name; got {name!r}.")
    parse(formula)


def _check_column(column: object) -> None:
    if not isinstance(column, str) or not column:
        raise ClaimError(f"A numeric attribute is given by its column name; got {column!r}.")


def increasing(what: str, values: Iterable[float], least: int) -> tuple[float, ...]:
    """At least ``least`` finite numbers, each above the one before."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ClaimError(f"{what} must be a list of increasing numbers; got {values!r}.")
    numbers = tuple(real(what, value) for value in values)
    if len(numbers) < least or any(b <= a for a, b in itertools.pairwise(numbers)):
        raise ClaimError(
            f"{what} must be at least {least} increasing numbers; got {list(numbers)}."
        )
    return numbers
