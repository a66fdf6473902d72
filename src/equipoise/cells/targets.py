"""Point values from cells: each group's metric, and the target it is compared with."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from equipoise._validate import listing
from equipoise.cells.cells import Axis, Cells
from equipoise.cells.collection import Collection
from equipoise.cells.levels import canonical
from equipoise.claims.target import Complement, Constant, Custom, Overall, Reference, Target
from equipoise.errors import ClaimError
from equipoise.methods.arrays import BoolArray, FloatArray


def group_means(cells: Cells, collection: Collection) -> FloatArray:
    """Each group's metric; NaN where it counts on no row."""
    return _share(collection.sums(cells.total), collection.sums(cells.weight))


def target_values(target: Target, cells: Cells, collection: Collection) -> FloatArray:
    """What each group is compared with; NaN where the target counts on no row."""
    size = len(collection)
    match target:
        case Constant(value=value):
            plain = np.full(size, value)
        case Custom(estimate=estimate):
            plain = np.full(size, estimate)
        case Overall():
            plain = np.full(size, cells.total.sum() / cells.weight.sum())
        case Reference(where=where):
            inside = reference_cells(where, cells)
            plain = np.full(size, _share(cells.total[inside].sum(), cells.weight[inside].sum()))
        case Complement():
            plain = _share(
                cells.total.sum() - collection.sums(cells.total),
                cells.weight.sum() - collection.sums(cells.weight),
            )
        case _:
            raise ClaimError(f"{type(target).__name__} is not a target that cells can give.")
    return target.scale * plain


def reference_cells(where: Mapping[str, Any], cells: Cells) -> BoolArray:
    """Which cells make up a reference group; an error names the values that exist."""
    inside = np.ones(len(cells), dtype=bool)
    for name, value in where.items():
        position = cells.axis(name)
        if position < 0:
            raise ClaimError(
                f"The cells were not cut by {name!r}, but by "
                f"{listing(axis.name for axis in cells.axes)}."
            )
        inside &= cells.index[:, position] == _level(cells.axes[position], value)
    if not cells.rows[inside].sum():
        named = ", ".join(f"{name}={value!r}" for name, value in where.items())
        raise ClaimError(
            f"The reference group {named} has no row on which {cells.metric.name!r} counts. "
            "Choose another reference."
        )
    return inside


def _level(axis: Axis, value: Any) -> int:
    wanted = canonical(value) if not isinstance(value, Mapping) else value
    for position, level in enumerate(axis.levels):
        ends = {"from": level[0], "below": level[1]} if isinstance(level, tuple) else level
        if isinstance(ends, dict):
            ends = {key: end for key, end in ends.items() if end is not None}
        if ends == wanted and isinstance(ends, bool) == isinstance(wanted, bool):
            return position
    raise ClaimError(f"{axis.name} has no level {value!r}. There is: {listing(axis.levels)}.")


def _share(total: Any, weight: Any) -> FloatArray:
    top, bottom = np.asarray(total, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    share: FloatArray = np.full(bottom.shape, np.nan)
    np.divide(top, bottom, out=share, where=bottom > 0)
    return share
