"""Groups that do not overlap: what a summary of the spread between groups is about."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise._codec import from_plain
from equipoise._validate import listing
from equipoise.cells import Cells, Collection, form_groups
from equipoise.cells.operators import sparse_sums
from equipoise.cells.views import EveryLevel
from equipoise.claims.dimension import Dimension
from equipoise.claims.groups import Groups, Intersections, Masks, as_groups
from equipoise.errors import ClaimError
from equipoise.methods.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Disjoint groups found in cells."""

    collection: Collection
    """The groups with their names."""
    group: IntArray
    """The group of each cell; -1 for cells in none."""
    absent: int
    """Combinations of levels to which no row belongs at all."""

    def __len__(self) -> int:
        return len(self.collection)

    def sums(self, x: FloatArray) -> FloatArray:
        """Sum cell values over every group."""
        inside = self.group >= 0
        return np.asarray(
            np.bincount(self.group[inside], weights=x[inside], minlength=len(self)),
            dtype=np.float64,
        )


def disjoint(across: Any) -> Groups:
    """A collection of disjoint groups as asked for; several attributes mean the cells of a cross.

    >>> disjoint(["race", "sex"]).dimensions()
    (Levels(column='race'), Levels(column='sex'))
    """
    given = from_plain(across) if isinstance(across, Mapping) else across
    groups = as_groups(given)
    if isinstance(given, Intersections) and len(given.attributes) > 1:
        names = [attribute.name for attribute in given.attributes]
        raise ClaimError(
            f"intersections({listing(names)}) has groups that overlap: {names[0]} alone, and "
            f"{names[0]} with {names[1]}. A spread needs groups that do not; pass "
            f"across=[{listing(names)}] for the cells of the cross, or across={names[0]!r}."
        )
    if not isinstance(groups, Intersections | Masks):
        kind = type(groups).__name__.lower()
        raise ClaimError(
            f"{kind} are groups that overlap, and a spread needs groups that do not. Pass an "
            "attribute such as across='race', several such as across=['race', 'sex'] for the cells "
            "of their cross, or binned(…) for ranges of a number."
        )
    return groups


def words_of(groups: Groups) -> str:
    """What the groups are cut by.

    >>> words_of(disjoint(["race", "sex"]))
    'race × sex'
    """
    if isinstance(groups, Masks):
        return "groups of your own"
    return " × ".join(dimension.name for dimension in groups.dimensions())


def find_partition(groups: Groups, cells: Cells) -> Partition:
    """The groups that have rows; for an attribute or a cross, the finest level only."""
    if isinstance(groups, Masks):
        return _masks(groups, cells)
    where = [_axis(cells, dimension) for dimension in groups.dimensions()]
    choices, inverse = np.unique(cells.index[:, where], axis=0, return_inverse=True)
    group = inverse.reshape(-1).astype(np.int64)
    views = tuple(EveryLevel(cells.axes[i]) for i in where)
    every = np.arange(len(cells))
    collection = Collection(
        groups=groups,
        views=views,
        choices=choices.astype(np.int64),
        sums=sparse_sums(group, every, len(choices), len(cells)),
    )
    possible = int(np.prod([float(view.size) for view in views]))
    return Partition(collection=collection, group=group, absent=possible - len(choices))


def _masks(groups: Masks, cells: Cells) -> Partition:
    where = [_axis(cells, condition) for condition in groups.conditions]
    member = cells.index[:, where] == 1
    both = np.flatnonzero(member.sum(axis=1) > 1)
    if both.size:
        names = [groups.conditions[i].name for i in np.flatnonzero(member[both[0]])]
        raise ClaimError(
            f"The groups {listing(names)} overlap: {round(float(cells.present[both].sum())):,} "
            "rows belong to more than one group. A spread needs groups that do not overlap."
        )
    group = np.where(member.any(axis=1), member.argmax(axis=1), -1).astype(np.int64)
    return Partition(collection=form_groups(groups, cells), group=group, absent=0)


def _axis(cells: Cells, dimension: Dimension) -> int:
    return next(i for i, axis in enumerate(cells.axes) if dimension in (axis.dimension, axis.asked))
