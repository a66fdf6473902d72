"""`form_groups`: from a group collection, as asked, to the groups found in the cells."""

import itertools
import math
from functools import singledispatch

import numpy as np

from equipoise.cells.cells import Axis, Cells
from equipoise.cells.collection import Collection, observed
from equipoise.cells.operators import product_sums, sparse_sums
from equipoise.cells.views import EachBin, EveryLevel, View, all_ranges, half_lines
from equipoise.claims.dimension import Dimension, Ordered
from equipoise.claims.groups import (
    Bins,
    Boxes,
    Groups,
    Intersections,
    Intervals,
    Masks,
    Thresholds,
)
from equipoise.errors import ClaimError
from equipoise.methods.arrays import BoolArray, IntArray

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
    where = [_axis(cells, dimension) for dimension in groups.attributes]
    views = tuple(EveryLevel(cells.axes[i]) for i in where)
    depth = groups.depth or len(views)
    box = math.prod(view.size + 1 for view in views)
    if box > max(_BOX_LIMIT, _BOX_FILL * len(cells)):
        return _sparse_intersections(groups, cells, views, where, depth)
    return _product(groups, cells, views, where, depth)


@_form.register
def _(groups: Intervals, cells: Cells) -> Collection:
    position = _axis(cells, groups.attribute)
    _check_ranges(groups, cells.axes[position])
    return _product(groups, cells, (all_ranges(cells.axes[position]),), [position])


@_form.register
def _(groups: Thresholds, cells: Cells) -> Collection:
    position = _axis(cells, groups.attribute)
    return _product(groups, cells, (half_lines(cells.axes[position]),), [position])


@_form.register
def _(groups: Boxes, cells: Cells) -> Collection:
    where = [_axis(cells, attribute) for attribute in groups.attributes]
    _check_ranges(groups, *(cells.axes[i] for i in where))
    return _product(groups, cells, tuple(all_ranges(cells.axes[i]) for i in where), where)


@_form.register
def _(groups: Masks, cells: Cells) -> Collection:
    where = [_axis(cells, condition) for condition in groups.conditions]
    views = tuple(EveryLevel(cells.axes[i]) for i in where)
    cell, group = np.nonzero(cells.index[:, where] == 1)
    # Each mask is a group of its own: one choice bound, every other one free.
    choices = np.full((len(where), len(where)), 2, dtype=np.int64)
    np.fill_diagonal(choices, 1)
    return _sparse(groups, cells, views, choices, group, cell)


@_form.register
def _(groups: Bins, cells: Cells) -> Collection:
    inner = form_groups(groups.groups, cells)
    position = _axis(cells, groups.by)
    view = EachBin(cells.axes[position])
    number = len(inner) * view.choices
    _check_number(groups, number)
    members = inner.sums(np.eye(len(cells))) > 0
    cell, group = np.nonzero(members)
    code = cells.index[cell, position]
    inside = code < view.choices
    choices = np.concatenate(
        [
            np.repeat(inner.choices, view.choices, axis=0),
            np.tile(np.arange(view.choices), len(inner))[:, None],
        ],
        axis=1,
    )
    pairs = (group * view.choices + code)[inside], cell[inside]
    return _sparse(groups, cells, (*inner.views, view), choices, *pairs)


def _product(
    groups: Groups,
    cells: Cells,
    views: tuple[View, ...],
    where: list[int],
    depth: int | None = None,
) -> Collection:
    _check_number(groups, _candidates(views, depth))
    shape = tuple(view.choices for view in views)
    bound = _bound_attributes(views, shape)
    every = np.flatnonzero((bound > 0) & (bound <= (depth or len(views))))
    index = cells.index[:, where]
    present = product_sums(index, views, every)(cells.present)
    take = every[observed(present)]
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


def _candidates(views: tuple[View, ...], depth: int | None) -> int:
    """Combinations of choices that bind between one and ``depth`` attributes."""
    counts = [1]
    for view in views:
        free = int(view.free().sum())
        bound = view.choices - free
        longer = [0, *(c * bound for c in counts)]
        counts = [a * free + b for a, b in zip([*counts, 0], longer, strict=True)]
    return sum(counts[1 : (depth or len(views)) + 1])


def _sparse_intersections(
    groups: Intersections, cells: Cells, views: tuple[View, ...], where: list[int], depth: int
) -> Collection:
    index = cells.index[:, where]
    free = np.array([view.choices - 1 for view in views], dtype=np.int64)
    found: list[IntArray] = []
    pairs: list[IntArray] = []
    for size in range(1, depth + 1):
        for chosen in itertools.combinations(range(len(views)), size):
            choices = np.tile(free, (len(cells), 1))
            choices[:, chosen] = index[:, chosen]
            unique, inverse = np.unique(choices, axis=0, return_inverse=True)
            pairs.append(inverse.reshape(-1) + sum(map(len, found)))
            found.append(unique)
            _check_number(groups, sum(map(len, found)))
    cell = np.tile(np.arange(len(cells)), len(pairs))
    return _sparse(groups, cells, views, np.concatenate(found), np.concatenate(pairs), cell)


def _sparse(
    groups: Groups,
    cells: Cells,
    views: tuple[View, ...],
    choices: IntArray,
    group: IntArray,
    cell: IntArray,
) -> Collection:
    present = np.bincount(group, weights=cells.present[cell], minlength=len(choices))
    kept = observed(np.asarray(present, dtype=np.float64))
    number = np.full(len(choices), -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    keep: BoolArray = number[group] >= 0
    sums = sparse_sums(number[group][keep], cell[keep], len(kept), len(cells))
    return Collection(groups=groups, views=views, choices=choices[kept], sums=sums)


def _axis(cells: Cells, dimension: Dimension) -> int:
    for position, axis in enumerate(cells.axes):
        if axis.dimension == dimension:
            return position
        if _same_quantiles(axis.dimension, dimension):
            return position
    raise ClaimError(f"The cells were not cut by {dimension.name!r}; gather them for this claim.")


def _same_quantiles(found: Dimension, asked: Dimension) -> bool:
    """Whether ``found`` holds the edges on which the quantiles asked for fell."""
    if not (isinstance(asked, Ordered) and isinstance(found, Ordered)):
        return False
    return asked.quantiles is not None and found.column == asked.column


def _check_ranges(groups: Groups, *axes: Axis) -> None:
    _check_number(groups, math.prod(len(axis) * (len(axis) + 1) // 2 for axis in axes))


def _check_number(groups: Groups, number: int) -> None:
    if number > groups.max_groups:
        raise ClaimError(
            f"This collection has {number:,} groups, more than the limit of {groups.max_groups:,}. "
            "Use fewer attributes, a smaller depth= or a coarser grid=, or pass max_groups=… to "
            "allow as many."
        )
