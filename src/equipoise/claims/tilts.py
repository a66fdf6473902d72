"""Tilts: collections of weights under which the population is looked at anew."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from equipoise._codec import kind
from equipoise._validate import columns_named, known_keywords
from equipoise.claims.dimension import Dimension, Tilt, Values
from equipoise.claims.groups import MAX_GROUPS, Groups, check_names
from equipoise.errors import ClaimError

Weigh = Callable[[Mapping[str, Any]], Any]
"""Takes an array for each column and returns the weight of each entry."""


@kind("computed_tilt")
@dataclass(frozen=True, slots=True)
class Computed:
    """A weight that a Python function works out, row by row, from some columns."""

    name: str
    function: Weigh
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ClaimError(
                f"The tilt {self.name!r} needs the function itself, which a plan cannot hold; got "
                f"{self.function!r}. Write the weight as a formula or as a column."
            )
        if not self.columns:
            raise ClaimError(
                f"The tilt {self.name!r} is a function; say which columns it reads: columns=…."
            )


@kind("tilts")
@dataclass(frozen=True, slots=True, kw_only=True)
class Tilts(Groups):
    """Weights of at least zero, each seen as a population of its own; they may overlap."""

    weighs: ClassVar[bool] = True

    weights: tuple[Tilt | Computed, ...]

    def __post_init__(self) -> None:
        Groups.__post_init__(self)
        if not self.weights:
            raise ClaimError('tilts needs at least one weight, such as tilts(older="age / 100").')
        for given in self.weights:
            if not isinstance(given, Tilt | Computed):
                raise ClaimError(f"tilts takes names with formulas or functions; got {given!r}.")
        check_names("tilts", "weights", self.weights, self.max_groups)

    def dimensions(self) -> tuple[Dimension, ...]:
        """The weights that are formulas, and the columns that functions read."""
        needed: list[Dimension] = []
        for tilt in self.weights:
            if isinstance(tilt, Tilt):
                needed.append(tilt)
            else:
                # The function is asked once for each combination of values, so these are the cells.
                needed += [Values(column) for column in tilt.columns]
        return tuple(dict.fromkeys(needed))


@known_keywords
def tilts(
    *weights: str | Mapping[str, str | Weigh],
    columns: Sequence[str] | None = None,
    max_groups: int = MAX_GROUPS,
    **named: str | Weigh,
) -> Tilts:
    """Weights under which to look at the population: columns, formulas or functions.

    Under a tilt h the metric is E[h L] / E[h]: its mean if rows were met in proportion to h. Only
    the proportions of a tilt matter, not its scale. A weight of 0 and 1 is a group.

    Parameters
    ----------
    weights
        Names of columns that hold weights, or a mapping from names to formulas or functions.
    columns
        The columns that functions read. A function takes a mapping from these names to arrays and
        returns one weight for each entry; it may not look at other entries, since it is asked once
        for each combination of values that occurs. A plan cannot hold a function.
    max_groups
        Refuse more tilts than this.
    named
        Formulas or functions by name.

    Examples
    --------
    >>> import equipoise as eq
    >>> [tilt.name for tilt in eq.tilts("urban_weight", older="age / 100").weights]
    ['urban_weight', 'older']
    """
    given: list[tuple[str, Any]] = []
    for weight in weights:
        if isinstance(weight, Mapping):
            given += weight.items()
        elif isinstance(weight, str) and weight:
            # Marked as a column, since a bare name could be that of a role.
            given.append((weight, f"column({weight!r})"))
        else:
            raise ClaimError(
                f"tilts takes names of columns, or names with formulas; got {weight!r}."
            )
    given += named.items()
    read = () if columns is None else columns_named("columns", columns)
    if read and not any(callable(weight) for _, weight in given):
        raise ClaimError("columns= is for functions, and none of these tilts is one.")
    made = tuple(Computed(n, w, read) if callable(w) else Tilt(n, w) for n, w in given)
    return Tilts(weights=made, max_groups=max_groups)
