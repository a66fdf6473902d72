"""A collection: the groups of a claim, found in the data, with their sums and their names."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.cells.views import View
from equipoise.claims.groups import Groups
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

    def wheres(self) -> list[dict[str, Any]]:
        """All groups as data: attribute → value, or → ends of a range."""
        found: list[dict[str, Any]] = [{} for _ in range(len(self))]
        for view, column in zip(self.views, self.choices.T, strict=True):
            for group, choice in _bound(view, column):
                found[group][view.axis.name] = view.where(choice)
        return found

    def labels(self) -> list[str]:
        """All groups in words."""
        shared = self.shared_levels()
        found: list[list[str]] = [[] for _ in range(len(self))]
        for view, column in zip(self.views, self.choices.T, strict=True):
            # A level is part of many groups, and its words are the slow part of naming them.
            texts: dict[int, str] = {}
            for group, choice in _bound(view, column):
                if choice not in texts:
                    texts[choice] = view.text(choice, not _is_shared(view, choice, shared))
                found[group].append(texts[choice])
        return [", ".join(texts) or "everyone" for texts in found]

    def shared_levels(self) -> frozenset[str]:
        """Texts that are levels of more than one attribute, and so need its name beside them."""
        seen: set[str] = set()
        shared: set[str] = set()
        for view in self.views:
            texts = {level for level in view.axis.levels if isinstance(level, str)}
            shared |= seen & texts
            seen |= texts
        return frozenset(shared)


def _is_shared(view: View, choice: int, shared: frozenset[str]) -> bool:
    level = view.where(choice) if shared else None
    return isinstance(level, str) and level in shared


def _bound(view: View, choices: IntArray) -> list[tuple[int, int]]:
    """The groups that bind the attribute of a view, with their choices."""
    groups = np.flatnonzero(~view.free()[choices])
    return list(zip(groups.tolist(), choices[groups].tolist(), strict=True))


def observed(present: FloatArray) -> IntArray:
    """Positions of the groups to which at least one row belongs."""
    return np.flatnonzero(present > 0).astype(np.int64)
