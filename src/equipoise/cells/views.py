"""Views of one axis: what groups an attribute gives rise to, and how to sum cells into them.

A group of a collection is one choice per axis; summing over a product of views is the CUBE of SQL
when the views are `EveryLevel`, and prefix differences when they are `Ranges`.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from equipoise.cells.cells import Axis
from equipoise.cells.words import closed_range_text, level_text, open_range_text
from equipoise.claims.dimension import Ordered
from equipoise.methods.arrays import AnyArray, BoolArray, FloatArray, IntArray


class View(Protocol):
    """One axis seen as a list of choices."""

    @property
    def axis(self) -> Axis:
        """The axis it looks at."""
        ...

    @property
    def size(self) -> int:
        """Cells along the axis, the place of missing values included."""
        ...

    @property
    def choices(self) -> int:
        """How many choices there are."""
        ...

    def sum(self, box: FloatArray, axis: int) -> FloatArray:
        """Sum cells along ``axis`` into choices."""
        ...

    def free(self) -> BoolArray:
        """Which choices leave the attribute free (everyone)."""
        ...

    def where(self, choice: int) -> Any:
        """The choice as a value for ``where``."""
        ...

    def text(self, choice: int, told_apart: bool) -> str:
        """The choice in words."""
        ...


@dataclass(frozen=True, slots=True)
class EveryLevel:
    """Each level, and last of all everyone."""

    axis: Axis

    @property
    def size(self) -> int:
        """One cell per level."""
        return len(self.axis)

    @property
    def choices(self) -> int:
        """Levels and everyone."""
        return len(self.axis) + 1

    def sum(self, box: FloatArray, axis: int) -> FloatArray:
        """Append the sum over the axis."""
        return np.concatenate([box, box.sum(axis=axis, keepdims=True)], axis=axis)

    def free(self) -> BoolArray:
        """The last choice is free."""
        # Last, so that a level's position is the same among the choices and on the axis.
        last: BoolArray = np.arange(self.choices) == len(self.axis)
        return last

    def where(self, choice: int) -> Any:
        """The level; a range as its ends."""
        return level_where(self.axis, choice)

    def text(self, choice: int, told_apart: bool) -> str:
        """The level in words."""
        return level_text(self.axis.dimension, self.axis.levels[choice], told_apart)


@dataclass(frozen=True, slots=True)
class EachBin:
    """Each range between consecutive edges, and never everyone."""

    axis: Axis

    @property
    def size(self) -> int:
        """One cell per bin, and one for values in none."""
        return len(self.axis) + 1

    @property
    def choices(self) -> int:
        """The bins."""
        return len(self.axis)

    def sum(self, box: FloatArray, axis: int) -> FloatArray:
        """Drop the cell of values in no bin."""
        return np.take(box, np.arange(self.choices), axis=axis)

    def free(self) -> BoolArray:
        """No choice is free."""
        return np.zeros(self.choices, dtype=bool)

    def where(self, choice: int) -> Any:
        """The ends of the bin."""
        return level_where(self.axis, choice)

    def text(self, choice: int, told_apart: bool) -> str:
        """The bin in words."""
        return range_text(self.axis, choice, choice + 1)


@dataclass(frozen=True, slots=True)
class Ranges:
    """Runs of consecutive points: from ``first`` up to but not including ``last``."""

    axis: Axis
    first: IntArray
    last: IntArray

    @property
    def size(self) -> int:
        """One cell per point, and one for missing values."""
        return len(self.axis) + 1

    @property
    def choices(self) -> int:
        """The runs."""
        return len(self.first)

    def sum(self, box: FloatArray, axis: int) -> FloatArray:
        """Differences of prefix sums."""
        # All n(n+1)/2 ranges from n additions; adding each range up would take n³.
        points = np.take(box, np.arange(len(self.axis)), axis=axis)
        prefix = np.concatenate(
            [np.zeros_like(np.take(box, [0], axis=axis)), np.cumsum(points, axis=axis)], axis=axis
        )
        upper: FloatArray = np.take(prefix, self.last, axis=axis)
        lower: FloatArray = np.take(prefix, self.first, axis=axis)
        return upper - lower

    def free(self) -> BoolArray:
        """No choice is free: a range leaves out at least the missing values."""
        return np.zeros(self.choices, dtype=bool)

    def where(self, choice: int) -> Any:
        """The ends of the range."""
        return range_where(self.axis, int(self.first[choice]), int(self.last[choice]))

    def text(self, choice: int, told_apart: bool) -> str:
        """The range in words."""
        return range_text(self.axis, int(self.first[choice]), int(self.last[choice]))


def all_ranges(axis: Axis) -> Ranges:
    """Every run of consecutive points, the longest included."""
    first, last = np.triu_indices(len(axis) + 1, k=1)
    return Ranges(axis, first.astype(np.int64), last.astype(np.int64))


def half_lines(axis: Axis) -> Ranges:
    """Every run that starts at the first point or ends at the last, but not both."""
    cut = np.arange(1, len(axis), dtype=np.int64)
    first = np.concatenate([np.zeros_like(cut), cut])
    last = np.concatenate([cut, np.full_like(cut, len(axis))])
    return Ranges(axis, first, last)


def range_where(axis: Axis, first: int, last: int) -> dict[str, Any]:
    """The ends of a run of points, as data; ``below`` is an upper end that is not included."""
    low, high, closed = _ends(axis, first, last)
    return {"from": low, "to" if closed else "below": high}


def range_text(axis: Axis, first: int, last: int) -> str:
    """A run of points in words."""
    low, high, closed = _ends(axis, first, last)
    if closed:
        return closed_range_text(axis.name, low, high)
    return open_range_text(axis.name, low, high)


def _ends(axis: Axis, first: int, last: int) -> tuple[float, float, bool]:
    start, end = axis.levels[first], axis.levels[last - 1]
    if isinstance(start, tuple):
        # The last bin includes its upper edge, so that the largest value belongs somewhere.
        return start[0], end[1], last == len(axis) and isinstance(axis.dimension, Ordered)
    return start, end, True


def level_where(axis: Axis, position: int) -> Any:
    """One level as data: its value, or the ends of the range that it is."""
    level = axis.levels[position]
    if not isinstance(level, tuple):
        return level
    ends = range_where(axis, position, position + 1)
    return {name: value for name, value in ends.items() if value is not None}


def box_positions(index: AnyArray, sizes: tuple[int, ...]) -> IntArray:
    """Position of each cell in the box that ``sizes`` spans."""
    return np.asarray(np.ravel_multi_index(tuple(index.T), sizes), dtype=np.int64)
