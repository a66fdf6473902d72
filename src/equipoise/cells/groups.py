"""Groups found in the cells: views of single axes, and collections built from them."""

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from equipoise._validate import closed_range_text, listing, open_range_text, rows_text
from equipoise.cells.query import code, numbers
from equipoise.cells.tally import Axis, Cells
from equipoise.claims.groups import (
    Binned,
    Bins,
    Boxes,
    Computed,
    Condition,
    Dimension,
    Groups,
    Intersections,
    Intervals,
    Levels,
    Masks,
    Ordered,
    Thresholds,
    Tilt,
    Tilts,
    named_level,
)
from equipoise.errors import ClaimError, TrailError
from equipoise.methods.numerics import (
    AnyArray,
    BoolArray,
    FloatArray,
    GroupSums,
    IntArray,
    alike,
    sparse_sums,
    staged_sums,
)
from equipoise.methods.targets import TiltSums

# --- Levels: the values of an attribute in a fixed order, whatever engine they came from ---

#: An attribute with more levels than this is refused: it is more likely an identifier.
MAX_LEVELS = 10_000


def encode(
    column: AnyArray, called: str, advice: str, most: int = MAX_LEVELS
) -> tuple[tuple[object, ...], IntArray]:
    """The levels of a key in a fixed order (missing last) and each row's position among them.

    ``advice`` tells what to do when there are too many, which is more than ``most``.
    """
    coded = code(column)
    if len(coded.levels) > most:
        raise ClaimError(
            f"Attribute {called!r} has {len(coded.levels):,} levels, more than {most:,}. {advice}"
        )
    levels = sort_levels(set(coded.levels), called)
    return levels, coded.place({level: i for i, level in enumerate(levels)}, -1)


def sort_levels(found: set[Any], called: str) -> tuple[Any, ...]:
    """Levels in order: numbers by size, text by letters, missing last."""
    kinds = {"text" if isinstance(v, str) else "number" for v in found if v is not None}
    if len(kinds) > 1:
        some = [next(v for v in found if isinstance(v, str)), *(v for v in found if _is_number(v))]
        raise ClaimError(
            f"Attribute {called!r} mixes text and numbers ({listing(some[:3])}). "
            "Convert the column to one type."
        )
    present = sorted(value for value in found if value is not None)
    return (*present, None) if None in found else tuple(present)


def _is_number(value: object) -> bool:
    return value is not None and not isinstance(value, str)


# --- Views of one axis: what groups an attribute gives rise to, and how to sum cells into them
#
# A group of a collection is one choice per axis; summing over a product of views is the CUBE of
# SQL when the views are `EveryLevel`, and prefix differences when they are `Ranges`.

# --- How levels and ranges read in English ---


def attribute_text(dimension: Dimension, level: object, told_apart: bool) -> str:
    """One level of an attribute; text stands alone if it tells enough and no other shares it."""
    name = dimension.name
    if isinstance(dimension, Condition):
        return name if level else f"not {name}"
    if level is None:
        return f"{name} missing"
    if isinstance(dimension, Binned) and isinstance(level, tuple):
        return open_range_text(name, *level)
    if isinstance(level, bool):
        return name if level else f"not {name}"
    if isinstance(level, str) and name == _CALLED and isinstance(dimension, Levels):
        # whoever wrote a tilt named it
        return level
    if isinstance(level, str):
        return named_level(name, level) if told_apart or not level.strip() else f"{name}: {level}"
    # A level is a name, so it keeps every digit and takes no commas.
    return f"{name} {level!r}"


# --- Views of one axis: what groups an attribute gives rise to, and how to sum cells into them


@dataclass(frozen=True, slots=True)
class View:
    """One axis seen as a list of choices: here each level or range, and never everyone."""

    axis: Axis

    @property
    def size(self) -> int:
        """Cells along the axis, and one for values that are missing or in no range."""
        return len(self.axis) + 1

    @property
    def choices(self) -> int:
        """How many choices there are."""
        return len(self.axis)

    def sum(self, box: FloatArray, axis: int) -> FloatArray:
        """Sum cells along ``axis`` into choices."""
        return np.take(box, np.arange(self.choices), axis=axis)

    def free(self) -> BoolArray:
        """Which choices leave the attribute free (everyone)."""
        return np.zeros(self.choices, dtype=bool)

    def where(self, choice: int) -> object:
        """The choice as a value for ``where``: the level, or the ends of a range."""
        return level_where(self.axis, choice)

    def text(self, choice: int, told_apart: bool) -> str:
        """The choice in words."""
        return range_text(self.axis, choice, choice + 1)


@dataclass(frozen=True, slots=True)
class EveryLevel(View):
    """Each level, and last of all everyone."""

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

    def text(self, choice: int, told_apart: bool) -> str:
        """The level in words."""
        return attribute_text(self.axis.dimension, self.axis.levels[choice], told_apart)


@dataclass(frozen=True, slots=True)
class Ranges(View):
    """Runs of consecutive points: from ``first`` up to but not including ``last``.

    None of them is everyone: a range leaves out at least the missing values.
    """

    first: IntArray
    last: IntArray

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

    def where(self, choice: int) -> object:
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


def range_where(axis: Axis, first: int, last: int) -> dict[str, float]:
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


def level_where(axis: Axis, position: int) -> object:
    """One level as data: its value, or the ends of the range that it is."""
    level = axis.levels[position]
    if not isinstance(level, tuple):
        return level
    ends = range_where(axis, position, position + 1)
    return {name: value for name, value in ends.items() if value is not None}


def box_positions(index: AnyArray, sizes: tuple[int, ...]) -> IntArray:
    """Position of each cell in the box that ``sizes`` spans."""
    return np.asarray(np.ravel_multi_index(tuple(index.T), sizes), dtype=np.int64)


# --- A collection: the groups of a claim, found in the data, with their sums and their names ---


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

    def wheres(self) -> list[dict[str, object]]:
        """All groups as data: attribute → value, or → ends of a range."""
        found: list[dict[str, object]] = [{} for _ in range(len(self))]
        for view, column in zip(self.views, self.choices.T, strict=True):
            for group, choice in _bound(view, column):
                found[group][view.axis.name] = view.where(choice)
        return found

    def labels(self) -> list[str]:
        """All groups in words."""
        shared = shared_levels(view.axis for view in self.views)
        found: list[list[str]] = [[] for _ in range(len(self))]
        for view, column in zip(self.views, self.choices.T, strict=True):
            # A level is part of many groups, and its words are the slow part of naming them.
            texts: dict[int, str] = {}
            for group, choice in _bound(view, column):
                if choice not in texts:
                    texts[choice] = view.text(choice, not _is_shared(view, choice, shared))
                found[group].append(texts[choice])
        return [", ".join(texts) or "everyone" for texts in found]


def shared_levels(axes: Iterable[Axis]) -> frozenset[str]:
    """Texts that are levels of more than one attribute, and so need its name beside them."""
    texts = [level for axis in axes for level in set(axis.levels) if isinstance(level, str)]
    return frozenset(text for text, number in Counter(texts).items() if number > 1)


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


# --- Operators from cells to groups: linear, exact, and never a dense cells × groups matrix ---


@dataclass(frozen=True, slots=True, eq=False)
class ProductSums:
    """Sums over a product of axis views: fill a box with the cells, sum along each axis, pick."""

    order: IntArray
    """Cells sorted by their place in the box."""
    starts: IntArray
    """Where each place's run of cells begins in that order."""
    place: IntArray
    """The places that hold any cell."""
    views: tuple[View, ...]
    take: IntArray
    """Where the wanted groups stand among all combinations of choices."""
    all_taken: bool
    """Whether these are all the combinations, in their order."""

    def __call__(self, x: FloatArray, /) -> FloatArray:
        """Sum ``x`` over each group."""
        lead = x.shape[:-1]
        sizes = tuple(view.size for view in self.views)
        box = np.zeros((*lead, math.prod(sizes)))
        # Several cells may share a place, and assigning to a place twice would keep only the last.
        box[..., self.place] = np.add.reduceat(x[..., self.order], self.starts, axis=-1)
        box = box.reshape(*lead, *sizes)
        for position, view in enumerate(self.views):
            box = view.sum(box, len(lead) + position)
        flat = box.reshape(*lead, -1)
        return flat if self.all_taken else np.take(flat, self.take, axis=-1)


@dataclass(frozen=True, slots=True, eq=False)
class BinnedSums:
    """Sums over each group of another operator, once for each bin of a further axis."""

    inner: GroupSums
    code: IntArray
    """Each cell's bin; cells in no bin have a code beyond the last."""
    bins: int
    take: IntArray
    """Where the wanted groups stand among all (inner group, bin) pairs."""

    def __call__(self, x: FloatArray, /) -> FloatArray:
        """Sum ``x`` over each group."""
        inside = self.code == np.arange(self.bins)[:, None]
        by_bin = self.inner(np.where(inside, x[..., None, :], 0.0))
        sums: FloatArray = np.swapaxes(by_bin, -1, -2).reshape(*x.shape[:-1], -1)
        return sums[..., self.take]


def product_sums(index: IntArray, views: tuple[View, ...], take: IntArray) -> ProductSums:
    """The operator for the combinations ``take`` of the views' choices."""
    places = box_positions(index, tuple(view.size for view in views))
    order = np.argsort(places, kind="stable")
    place, starts = np.unique(places[order], return_index=True)
    # Taking everything in order would copy the largest array of a resampling loop for nothing.
    every = np.arange(math.prod(view.choices for view in views))
    same = np.array_equal(take, every)
    return ProductSums(order, starts.astype(np.int64), place, views, take, same)


def cheaper(product: ProductSums, index: IntArray, choices: IntArray) -> GroupSums:
    """The same sums in stages, where the groups are combinations of levels and that costs less."""
    sizes = [view.choices for view in product.views]
    # every view goes through the box once
    cost = math.prod(sizes) * len(sizes)
    if cost < _SMALL_BOX:
        return product
    staged = staged_sums(index, [size - 1 for size in sizes], choices)
    return staged if staged.additions < cost else product


# --- From tilts, as asked, to the weight of every cell and the sums over them ---

# What a group is called by in `where`, and in `ask(tilt=…)`.
_CALLED = "tilt"


def steady_weights(column: AnyArray) -> FloatArray:
    """Weights to 40 binary digits, NaN where they are missing.

    Engines disagree on the last digit of an exponential, and cells must not.

    >>> weights = steady_weights(np.array([None, 1, 0.3, 0.1 + 0.2], dtype=object))
    >>> weights.round(9).tolist(), bool(weights[2] == weights[3])
    ([nan, 1.0, 0.3, 0.3], True)
    """
    return _rounded(numbers(column))


def form_tilts(groups: Tilts, cells: Cells) -> Collection:
    """The tilts as a collection; where all of them weigh by 0 and 1, it is one of groups."""
    names = tuple(tilt.name for tilt in groups.weights)
    view = EveryLevel(Axis(dimension=Levels(_CALLED), levels=names))
    weights = np.stack([_weights(tilt, cells) for tilt in groups.weights], axis=1)
    choices = np.arange(len(names), dtype=np.int64)[:, None]
    return Collection(groups=groups, views=(view,), choices=choices, sums=_sums(weights, cells))


def _sums(weights: FloatArray, cells: Cells) -> GroupSums:
    """Operators from cells to tilts, given weights of shape (cells, tilts)."""
    flat = np.array([_is_flat(column) for column in weights.T])
    cell, tilt = np.nonzero(weights)
    number = weights.shape[1]
    members = sparse_sums(tilt, cell, number, len(weights))
    if flat.all():
        return members
    dense = np.stack([_scaled(column, cells.rows) for column in weights.T], axis=1)
    scaled = dense[cell, tilt]
    return TiltSums(
        first=sparse_sums(tilt, cell, number, len(weights), scaled),
        squares=sparse_sums(tilt, cell, number, len(weights), scaled**2),
        members=members,
        flat=flat,
        weights=dense,
    )


def _is_flat(weight: FloatArray) -> bool:
    positive = weight[weight > 0]
    return positive.size == 0 or bool((positive == positive[0]).all())


def _scaled(weight: FloatArray, rows: FloatArray) -> FloatArray:
    """A tilt on the scale on which Σ h = Σ h²: its share is then the rows that it is worth.

    An indicator is on that scale already. Any scale gives the same means; this one makes bounds
    adapt to a tilt as they do to a group of as many rows, whatever its largest weight.
    """
    if _is_flat(weight):
        return np.where(weight > 0, 1.0, 0.0)
    # dividing first keeps the squares of huge and tiny weights within range
    unit = weight / weight.max()
    return np.asarray(unit * ((rows * unit).sum() / (rows * unit * unit).sum()))


def _weights(tilt: Tilt | Computed, cells: Cells) -> FloatArray:
    """The weight of each cell, zero where the metric counts on no row."""
    found = _computed(tilt, cells) if isinstance(tilt, Computed) else _axis_weights(tilt, cells)
    counted = cells.rows > 0
    for wrong, what in (
        (np.isnan(found), "missing or not a number"),
        (found < 0, "negative"),
        (np.isinf(found), "infinite"),
    ):
        rows = round(float(cells.rows[wrong & counted].sum()))
        if rows:
            raise TrailError(
                f"The weights of tilt {tilt.name!r} must be numbers of at least 0; on "
                f"{rows_text(rows)} on which the metric counts they are {what}. Correct the "
                "column, or write a formula or function that gives every row a weight."
            )
    return np.where(counted, found, 0.0)


def _axis_weights(tilt: Tilt, cells: Cells) -> FloatArray:
    position = cells.cut_by(tilt)
    known = [np.nan if v is None else v for v in cells.axes[position].levels]
    return np.asarray(np.array(known, dtype=np.float64)[cells.index[:, position]])


def _computed(tilt: Computed, cells: Cells) -> FloatArray:
    columns = {name: _column(name, cells) for name in tilt.columns}
    found = _called(tilt, columns, len(cells))
    some = slice(0, None, 2)
    again = _called(tilt, {n: c[some] for n, c in columns.items()}, len(cells.rows[some]))
    # A weight that depends on who else is there would be worked out on cells, not on rows.
    if not np.allclose(found[some], again, rtol=1e-9, atol=0.0, equal_nan=True):
        raise ClaimError(
            f"The function of tilt {tilt.name!r} must weigh each entry by its own values alone; "
            "asked for half of the entries it gave other weights. Compute the column beforehand."
        )
    return _rounded(found)


def _called(tilt: Computed, columns: dict[str, AnyArray], size: int) -> FloatArray:
    given = {name: column.copy() for name, column in columns.items()}
    try:
        found = np.asarray(tilt.function(given), dtype=np.float64)
    except KeyError as error:
        raise ClaimError(
            f"The function of tilt {tilt.name!r} asks for {error}; it was given "
            f"{listing(columns)}. Name every column that it reads in columns=…."
        ) from error
    except Exception as error:
        raise ClaimError(f"The function of tilt {tilt.name!r} failed: {error}.") from error
    if found.shape != (size,):
        raise ClaimError(
            f"The function of tilt {tilt.name!r} must return one weight for each of {size:,} "
            f"entries; it returned an array of shape {found.shape}."
        )
    return found


def _column(name: str, cells: Cells) -> AnyArray:
    """A column's value in every cell: numbers with NaN, or text with None."""
    position = cells.axis(name)
    levels: tuple[Any, ...] = cells.axes[position].levels
    text = any(isinstance(level, str) for level in levels)
    values = levels if text else [np.nan if v is None else float(v) for v in levels]
    array = np.array(values, dtype=object if text else np.float64)
    return np.asarray(array[cells.index[:, position]])


def _rounded(values: FloatArray) -> FloatArray:
    part, power = np.frexp(values)
    # adding zero turns minus zero into zero
    return np.asarray(np.ldexp(np.rint(np.ldexp(part, 40)), power - 40) + 0.0)


# --- `form_groups`: from a group collection, as asked, to the groups found in the cells ---

# Boxes larger than this, or this many times emptier than full, are summed sparsely.
_BOX_LIMIT = 4_000_000
_BOX_FILL = 64
# Summing a box as small as this, or going through it, takes no time to speak of.
_SMALL_BOX = 20_000


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
def _(groups: Thresholds, cells: Cells) -> Collection:
    position = cells.cut_by(groups.attribute)
    return _product(groups, cells, (half_lines(cells.axes[position]),), [position])


@_form.register
def _(groups: Intervals | Boxes, cells: Cells) -> Collection:
    attributes = groups.attributes if isinstance(groups, Boxes) else (groups.attribute,)
    where = [cells.cut_by(attribute) for attribute in attributes]
    axes = [cells.axes[i] for i in where]
    _check_number(groups, math.prod(len(axis) * (len(axis) + 1) // 2 for axis in axes))
    return _product(groups, cells, tuple(map(all_ranges, axes)), where)


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
    view = View(cells.axes[position])
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
    # A range is the sum of many levels, so only levels can be summed in stages.
    product = product_sums(index, views, take)
    sums = cheaper(product, index, choices) if isinstance(groups, Intersections) else product
    return Collection(groups=groups, views=views, choices=choices, sums=sums)


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
    _refuse_too_many(groups, index, free, depth)
    found: list[IntArray] = []
    number = 0
    for size in range(1, depth + 1):
        for chosen in itertools.combinations(range(len(views)), size):
            first = np.unique(alike(index, free.tolist(), chosen), return_index=True)[1]
            choices = np.tile(free, (first.size, 1))
            choices[:, chosen] = index[first][:, chosen]
            found.append(choices)
            number += first.size
            _check_number(groups, number, "at least ")
    choices = _in_order(np.concatenate(found), free)
    sums = staged_sums(index, free.tolist(), choices)
    return Collection(groups=groups, views=views, choices=choices, sums=sums)


def _refuse_too_many(groups: Intersections, index: IntArray, free: IntArray, depth: int) -> None:
    """Refuse more groups than are allowed before any of them is formed.

    Combinations of many attributes have most groups, so these are counted first: a collection that
    is too large shows that within a few of them.
    """
    sizes = range(1, depth + 1)
    every = [c for size in sizes for c in itertools.combinations(range(free.size), size)]
    most = [min(math.prod(int(free[i]) for i in c), len(index)) for c in every]
    if sum(most) <= groups.max_groups:
        return
    number = 0
    for chosen in reversed(every):
        number += np.unique(alike(index, free.tolist(), chosen)).size
        _check_number(groups, number, "at least ")


def _in_order(choices: IntArray, free: IntArray) -> IntArray:
    """Fewer attributes first, then by level, as in a product."""
    bound = (choices != free).sum(axis=1)
    return choices[np.lexsort((*choices.T[::-1], bound))]


def _check_number(groups: Groups, number: int, about: str = "") -> None:
    if number > groups.max_groups:
        raise ClaimError(
            f"This collection has {about}{number:,} groups, more than the limit of "
            f"{groups.max_groups:,}. "
            "Use fewer attributes, a smaller depth= or a coarser grid=, or pass max_groups=… to "
            "allow as many."
        )


# --- Groups that a tree finds: the features it is grown on, and its leaves as rules ---


@dataclass(frozen=True, slots=True)
class Feature:
    """A column of the matrix: a number, whether text has a level, whether a number is missing."""

    column: str
    level: str | bool | None = None
    missing: bool = False
    """Whether it says that the column's number is missing."""

    def rule(self, low: float | None, high: float | None) -> tuple[str, str]:
        """In words and as a formula: the feature lies above ``low`` and not above ``high``."""
        name = f"column({self.column!r})"
        if self.missing:
            # a number that is missing equals nothing, itself included
            here = low is not None
            said = f"{self.column} is {'missing' if here else 'given'}"
            return said, f"not ({name} == {name})" if here else f"{name} == {name}"
        if self.level is not None:
            sign = "is" if low is not None else "is not"
            equal = "==" if low is not None else "!="
            return f"{self.column} {sign} {self.level}", f"{name} {equal} {self.level!r}"
        words, formula = [], []
        if low is not None:
            words.append(f"over {low:g}")
            formula.append(f"{name} > {low!r}")
        if high is not None:
            words.append(f"at most {high:g}")
            formula.append(f"{name} <= {high!r}")
        return f"{self.column} {' and '.join(words)}", " and ".join(formula)


def leaf_rules(
    tree: Any, features: Sequence[Feature], cut: Callable[[float], float] = float
) -> dict[int, tuple[str, str]]:
    """Each leaf of a fitted tree by its number, in order: its rule in words and as a formula."""
    found: dict[int, tuple[str, str]] = {}

    def walk(node: int, ranges: Mapping[int, tuple[float | None, float | None]]) -> None:
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left == right:
            rules = [features[f].rule(low, high) for f, (low, high) in ranges.items()]
            words, formula = (" and ".join(rule[i] for rule in rules) for i in range(2))
            found[node] = words or "everyone", formula or "1 == 1"
            return
        feature, edge = int(tree.feature[node]), cut(float(tree.threshold[node]))
        low, high = ranges.get(feature, (None, None))
        walk(left, {**ranges, feature: (low, edge)})
        walk(right, {**ranges, feature: (edge, high)})

    walk(0, {})
    return dict(sorted(found.items()))
