"""The cells behind bounds: from them any group of the collection can be put together again."""

from dataclasses import dataclass
from typing import Any, Literal

Form = Literal["levels", "bins", "ranges", "half-lines"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomAxis:
    """One attribute by which groups of the collection are cut."""

    name: str
    """The attribute."""
    form: Form
    """``levels``: a group takes one level or leaves the attribute free; ``bins``: it takes one;
    ``ranges``: it takes a run of points; ``half-lines``: a run from the first or to the last."""
    values: tuple[Any, ...]
    """Levels as data; for runs, the lower and upper end of each point."""
    texts: tuple[str, ...]
    """Levels in words; for runs, the lower end of each point."""
    ends: tuple[str, ...] = ()
    """For runs, the upper end of each point in words."""
    closed: tuple[bool, ...] = ()
    """For runs, whether one that ends at this point includes its upper end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Atoms:
    """Counts of the cells of which every group of a collection is a union."""

    axes: tuple[AtomAxis, ...]
    """The attributes."""
    depth: int
    """How many attributes a group may bind at most."""
    codes: tuple[tuple[int, ...], ...]
    """For each attribute, each atom's place along it; past the last place it is in no group."""
    rows: tuple[int, ...]
    """Rows of each atom on which the metric counts."""
    ones: tuple[int, ...]
    """Rows of each atom whose metric is 1."""
    inside: tuple[bool, ...] = ()
    """Whether each atom belongs to the reference group, where that is the target."""
