"""`form_groups`: from a group collection, as asked, to the groups found in the cells."""

import dataclasses
import itertools
import math
from functools import singledispatch

import numpy as np

from equipoise.cells.cells import Axis, Cells
from equipoise.cells.collection import Collection, observed
from equipoise.cells.operators import BinnedSums, product_sums, sparse_sums
from equipoise.cells.tilts import form_tilts
from equipoise.cells.views import EachBin, EveryLevel, View, all_ranges, half_lines
from equipoise.claims.groups import (
    Bins,
    Boxes,
    Groups,
    Intersections,
    Intervals,
    Masks,
    Thresholds,
)
from equipoise.claims.tilts import Tilts
from equipoise.errors import ClaimError
from equipoise.methods.arrays import IntArray

# Boxes larger than this, or this many times emptier than full, are summed sparsely.
_BOX_LIMIT = 4_000_000
_BOX_FILL = 64


def form_groups(groups: Groups, cells: Cells) -> Collection:
    """Every group of the collection that has at least one row, in a fixed order."""
    collection = _form(groups, cells)
    if len(collection) == 0:
        raise ClaimError("The collection has no group: its attributes leave nothing to compare.")
    return collection


@singledispatch
def _form(groups: Groups, cells: Cells) -> Collection:
    raise ClaimError(f"{type(groups).__name__} cannot be formed from cells.")


@_form.register
def _(groups: Intersections, cells: Cells) -> Collection:
    where = [cells.cut_by(dimension) for dimension in groups.attributes]
    views = tuple(EveryLevel(cells.axes[i]) for i in where)
    depth = min(groups.depth or len(views), len(views))
    box = math.prod(view.size + 1 for view in views)
    if box > max(_BOX_LIMIT, _BOX_FILL * len(cells)):
        return _sparse_intersections(groups, cells, views, where, depth)
    return _product(groups, cells, views, where, depth)


@_form.register
def _(groups: Intervals, cells: Cells) -> Collection:
    position = cells.cut_by(groups.attribute)
    _check_ranges(groups, cells.axes[position])
    return _product(groups, cells, (all_ranges(cells.axes[position]),), [position])


@_form.register
def _(groups: Thresholds, cells: Cells) -> Collection:
    position = cells.cut_by(groups.attribute)
    return _product(groups, cells, (half_lines(cells.axes[position]),), [position])


@_form.register
def _(groups: Boxes, cells: Cells) -> Collection:
    where = [cells.cut_by(attribute) for attribute in groups.attributes]
    _check_ranges(groups, *(cells.axes[i] for i in where))
    return _product(groups, cells, tuple(all_ranges(cells.axes[i]) for i in where), where)


@_form.register
def _(groups: Masks, cells: Cells) -> Collection:
    where = [cells.cut_by(condition) for condition in groups.conditions]
    views = tuple(EveryLevel(cells.axes[i]) for i in where)
    cell, group = np.nonzero(cells.index[:, where] == 1)
    # A group that was named is reported even if nobody belongs to it.
    sums = sparse_sums(group, cell, len(where), len(cells))
    # Each mask is a group of its own: one choice bound, every other one free.
    choices = np.full((len(where), len(where)), 2, dtype=np.int64)
    np.fill_diagonal(choices, 1)
    return Collection(groups=groups, views=views, choices=choices, sums=sums)


@_form.register
def _(groups: Tilts, cells: Cells) -> Collection:
    return form_tilts(groups, cells)


@_form.register
def _(groups: Bins, cells: Cells) -> Collection:
    inner = form_groups(groups.groups, cells)
    position = cells.cut_by(groups.by)
    view = EachBin(cells.axes[position])
    number = len(inner) * view.choices
    _check_number(groups, number)
    # Group by group, and bin by bin inside each.
    choices = np.concatenate(
        [
            np.repeat(inner.choices, view.choices, axis=0),
            np.tile(np.arange(view.choices), len(inner))[:, None],
        ],
        axis=1,
    )
    every = BinnedSums(inner.sums, cells.index[:, position], view.choices, np.arange(number))
    take = observed(every(cells.present))
    sums = dataclasses.replace(every, take=take)
    return Collection(groups=groups, views=(*inner.views, view), choices=choices[take], sums=sums)


def _product(
    groups: Groups,
    cells: Cells,
    views: tuple[View, ...],
    where: list[int],
    depth: int | None = None,
) -> Collection:
    shape = tuple(view.choices for view in views)
    bound = _bound_attributes(views, shape)
    every = np.flatnonzero((bound > 0) & (bound <= (depth or len(views))))
    index = cells.index[:, where]
    present = product_sums(index, views, every)(cells.present)
    take = every[observed(present)]
    _check_number(groups, len(take))
    # Fewer attributes first, so that broad groups lead and their refinements follow.
    take = take[np.argsort(bound[take], kind="stable")]
    choices = np.stack(np.unravel_index(take, shape), axis=1).astype(np.int64)
    return Collection(
        groups=groups, views=views, choices=choices, sums=product_sums(index, views, take)
    )


def _bound_attributes(views: tuple[View, ...], shape: tuple[int, ...]) -> IntArray:
    """How many attributes each combination of choices binds."""
    bound = np.zeros(shape, dtype=np.int64)
    for axis, view in enumerate(views):
        along = [1] * len(views)
        along[axis] = view.choices
        bound = bound + (~view.free()).astype(np.int64).reshape(along)
    return bound.reshape(-1)


def _sparse_intersections(
    groups: Intersections, cells: Cells, views: tuple[View, ...], where: list[int], depth: int
) -> Collection:
    index = cells.index[:, where]
    free = np.array([view.choices - 1 for view in views], dtype=np.int64)
    found: list[IntArray] = []
    pairs: list[IntArray] = []
    number = 0
    for size in range(1, depth + 1):
        for chosen in itertools.combinations(range(len(views)), size):
            choices = np.tile(free, (len(cells), 1))
            choices[:, chosen] = index[:, chosen]
            unique, inverse = np.unique(choices, axis=0, return_inverse=True)
            pairs.append(inverse.reshape(-1) + number)
            found.append(unique)
            number += len(unique)
            _check_number(groups, number, "at least ")
    cell = np.tile(np.arange(len(cells)), len(pairs))
    choices, place = _in_order(np.concatenate(found), free)
    sums = sparse_sums(place[np.concatenate(pairs)], cell, number, len(cells))
    return Collection(groups=groups, views=views, choices=choices, sums=sums)


def _in_order(choices: IntArray, free: IntArray) -> tuple[IntArray, IntArray]:
    """Fewer attributes first, then by level, as in a product; and where each group went."""
    bound = (choices != free).sum(axis=1)
    order = np.lexsort((*choices.T[::-1], bound))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return choices[order], place


def _check_ranges(groups: Groups, *axes: Axis) -> None:
    _check_number(groups, math.prod(len(axis) * (len(axis) + 1) // 2 for axis in axes))


def _check_number(groups: Groups, number: int, about: str = "") -> None:
    if number > groups.max_groups:
        raise ClaimError(
            f"This collection has {about}{number:,} groups, more than the limit of "
            f"{groups.max_groups:,}. "
            "Use fewer attributes, a smaller depth= or a coarser grid=, or pass max_groups=… to "
            "allow as many."
        )
