"""What rows of different findings have in common, under the same names everywhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Who a row is about, and how many rows of the table that is."""

    group: str
    """The group in words."""
    where: Mapping[str, Any]
    """The group as data: attribute → value, or → ends of a range; empty if it has no such form."""
    n: int
    """Rows of the group on which the metric counts; how many rows a tilt's weights are worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedGroup(Group):
    """A group and how far its metric is from what it is compared with."""

    value: float | None
    """The group's metric; None if it counts on no row."""
    target: float | None
    """What it is compared with; None if there is nothing to compare with."""
    disparity: float | None
    """Value minus target, or value divided by target for a ratio."""


class AboutEveryone:
    """A row that is about all groups at once, not about those with certain attributes."""

    __slots__ = ()

    @property
    def where(self) -> Mapping[str, Any]:
        """No attribute tells these people apart."""
        return {}
