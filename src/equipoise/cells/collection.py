"""A collection: the groups of a claim, found in the data, with their sums and their names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise._validate import listing
from equipoise.cells.levels import canonical
from equipoise.cells.views import View
from equipoise.claims.groups import Groups
from equipoise.errors import ClaimError
from equipoise.methods.arrays import FloatArray, GroupSums, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Collection:
    """Groups in a fixed order: an operator that sums cells into them, and words for each."""

    groups: Groups
    """The collection as it was asked for."""
    views: tuple[View, ...]
    """One view per attribute."""
    choices: IntArray
    """Each group's choice along each view: shape (groups, views)."""
    sums: GroupSums
    """Sums cell values over every group."""

    def __len__(self) -> int:
        return len(self.choices)

    def where(self, group: int) -> dict[str, Any]:
        """A group as data: attribute → value, or → ends of a range."""
        return {view.axis.name: view.where(int(choice)) for view, choice in self._bound(group)}

    def label(self, group: int) -> str:
        """A group in words."""
        shared = self._shared_levels()
        texts = [
            view.text(int(choice), view.where(int(choice)) not in shared)
            if isinstance(view.where(int(choice)), str)
            else view.text(int(choice), True)
            for view, choice in self._bound(group)
        ]
        return ", ".join(texts) or "everyone"

    def labels(self) -> tuple[str, ...]:
        """All groups in words."""
        return tuple(self.label(group) for group in range(len(self)))

    def depth(self) -> IntArray:
        """How many attributes define each group."""
        free = np.stack([v.free()[self.choices[:, i]] for i, v in enumerate(self.views)], axis=1)
        return np.asarray((~free).sum(axis=1), dtype=np.int64)

    def find(self, where: Mapping[str, Any]) -> int:
        """The position of a group given as data; an error names what exists."""
        wanted = {name: _canonical(value) for name, value in where.items()}
        self._check_attributes(wanted)
        for group in self._candidates(wanted):
            if self.where(int(group)) == wanted:
                return int(group)
        raise ClaimError(
            f"There is no group {listing(f'{k}={v!r}' for k, v in where.items())} in this "
            f"collection of {len(self):,} groups; for example there is {self.label(0)!r}."
        )

    def _candidates(self, wanted: Mapping[str, Any]) -> IntArray:
        keep = np.ones(len(self), dtype=bool)
        for i, view in enumerate(self.views):
            fits = np.array(
                [
                    (free and view.axis.name not in wanted)
                    or (not free and wanted.get(view.axis.name, _NOTHING) == view.where(choice))
                    for choice, free in enumerate(view.free().tolist())
                ]
            )
            keep &= fits[self.choices[:, i]]
        return np.flatnonzero(keep)

    def _check_attributes(self, wanted: Mapping[str, Any]) -> None:
        names = [view.axis.name for view in self.views]
        unknown = [name for name in wanted if name not in names]
        if unknown:
            raise ClaimError(
                f"Attribute {listing(unknown)} is not part of this collection, "
                f"which is cut by {listing(names)}."
            )

    def _bound(self, group: int) -> list[tuple[View, int]]:
        return [
            (view, choice)
            for view, choice in zip(self.views, self.choices[group].tolist(), strict=True)
            if not view.free()[choice]
        ]

    def _shared_levels(self) -> frozenset[str]:
        seen: set[str] = set()
        shared: set[str] = set()
        for view in self.views:
            texts = {level for level in view.axis.levels if isinstance(level, str)}
            shared |= seen & texts
            seen |= texts
        return frozenset(shared)


_NOTHING = object()


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _canonical(item) for name, item in value.items()}
    return canonical(value)


def observed(present: FloatArray) -> IntArray:
    """Positions of the groups to which at least one row belongs."""
    return np.flatnonzero(present > 0).astype(np.int64)
