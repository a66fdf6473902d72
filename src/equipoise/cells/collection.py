"""A collection: the groups of a claim, found in the data, with their sums and their names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise._codec import canonical
from equipoise._validate import did_you_mean, listing
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
        return self._wheres(self.choices[group : group + 1])[0]

    def label(self, group: int) -> str:
        """A group in words."""
        return self._labels(self.choices[group : group + 1])[0]

    def wheres(self) -> list[dict[str, Any]]:
        """All groups as data."""
        return self._wheres(self.choices)

    def labels(self) -> list[str]:
        """All groups in words."""
        return self._labels(self.choices)

    def _wheres(self, choices: IntArray) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [{} for _ in range(len(choices))]
        for view, column in zip(self.views, choices.T, strict=True):
            for group, choice in _bound(view, column):
                found[group][view.axis.name] = view.where(choice)
        return found

    def _labels(self, choices: IntArray) -> list[str]:
        shared = self.shared_levels()
        found: list[list[str]] = [[] for _ in range(len(choices))]
        for view, column in zip(self.views, choices.T, strict=True):
            texts: dict[int, str] = {}
            for group, choice in _bound(view, column):
                if choice not in texts:
                    texts[choice] = view.text(choice, not _is_shared(view, choice, shared))
                found[group].append(texts[choice])
        return [", ".join(texts) or "everyone" for texts in found]

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
        self._check_levels(wanted)
        asked = ", ".join(f"{name}={value!r}" for name, value in where.items()) or "everyone"
        raise ClaimError(
            f"There is no group {asked} in this collection of {len(self):,} groups; for example "
            f"there is {self.label(0)!r}."
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

    def _check_levels(self, wanted: Mapping[str, Any]) -> None:
        for view in self.views:
            levels = [view.where(choice) for choice in np.flatnonzero(~view.free()).tolist()]
            value = wanted.get(view.axis.name, _NOTHING)
            if value is not _NOTHING and value not in levels:
                hint = did_you_mean(value, map(str, levels)) if isinstance(value, str) else ""
                raise ClaimError(
                    f"{view.axis.name} has no level {value!r}.{hint} There is: {listing(levels)}."
                )

    def shared_levels(self) -> frozenset[str]:
        """Texts that are levels of more than one attribute, and so need its name beside them."""
        seen: set[str] = set()
        shared: set[str] = set()
        for view in self.views:
            texts = {level for level in view.axis.levels if isinstance(level, str)}
            shared |= seen & texts
            seen |= texts
        return frozenset(shared)


_NOTHING = object()


def _is_shared(view: View, choice: int, shared: frozenset[str]) -> bool:
    level = view.where(choice) if shared else None
    return isinstance(level, str) and level in shared


def _bound(view: View, choices: IntArray) -> list[tuple[int, int]]:
    """The groups that bind the attribute of a view, with their choices."""
    groups = np.flatnonzero(~view.free()[choices])
    return list(zip(groups.tolist(), choices[groups].tolist(), strict=True))


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _canonical(item) for name, item in value.items()}
    return canonical(value)


def observed(present: FloatArray) -> IntArray:
    """Positions of the groups to which at least one row belongs."""
    return np.flatnonzero(present > 0).astype(np.int64)
