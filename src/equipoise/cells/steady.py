"""Sums that do not depend on the order in which rows were added up."""

from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.cells.cells import Cells
from equipoise.methods.arrays import FloatArray

#: Binary digits that are kept: engines agree on them for any number of rows met in practice.
DIGITS = 33


def steady(x: FloatArray, size: FloatArray) -> FloatArray:
    """Sums to 33 binary digits: engines and threads add the same rows in different orders.

    Without this the last digits of a real-valued metric would differ from run to run.

    >>> one, other = (steady(np.array([x]), np.array([1.0])) for x in (0.1 + 0.2, 0.3))
    >>> bool(one == other)
    True
    """
    known = (size > 0) & np.isfinite(size)
    unit = np.exp2(np.ceil(np.log2(np.where(known, size, 1.0))) - DIGITS)
    # sums too small for so many digits are kept to those that floats have
    unit = np.maximum(unit, np.finfo(np.float64).smallest_subnormal)
    # a size that is no float, since the weights are too large for their powers, tells nothing
    return np.where(known, np.round(np.where(known, x, 0.0) / unit) * unit, x)


def steady_cells(cells: Cells) -> Cells:
    """The cells as audits take them: the same to the last digit from every engine.

    Counts are exact anyway; sums of real numbers are rounded.
    """
    if cells.zero_one and not cells.weighted:
        return cells
    table = cells.clusters
    if table is not None:
        table = replace(table, **_sums(table.weight, table.total, table.square))
    plain = _sums(cells.weight, cells.total, cells.square)
    second = _sums(cells.weight2, cells.total2, cells.square2, order="2")
    third = _sums(cells.weight3, cells.total3, cells.square3, order="3")
    cube = third["total3"] if cells.zero_one else _cube(cells)
    return replace(cells, clusters=table, **plain, **second, **third, cube3=cube)


def _sums(
    weight: FloatArray, total: FloatArray, square: FloatArray, order: str = ""
) -> dict[str, Any]:
    return {
        f"weight{order}": steady(weight, weight),
        # A sum of signed values may cancel, so it is rounded in units of what was added up.
        f"total{order}": steady(total, _between(weight, square)),
        f"square{order}": steady(square, square),
    }


def _between(weight: FloatArray, square: FloatArray) -> FloatArray:
    """The geometric mean, also where the product of two powers of weights is none of a float."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = weight * square
        usual = (product >= np.finfo(np.float64).tiny) & np.isfinite(product)
        return np.where(usual, np.sqrt(product), np.sqrt(weight) * np.sqrt(square))


def _cube(cells: Cells) -> FloatArray:
    """The sums of cubes, in units of what was added up.

    The cubes, taken without their signs, add up to at least what they would if all values were
    equally large; where a few outweigh the others, they show in the sum itself.
    """
    weight, square, cube = cells.weight3, cells.square3, cells.cube3
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.divide(square, weight, out=np.zeros_like(square), where=weight > 0)
        size = np.maximum(np.abs(cube), square * np.sqrt(mean))
    return steady(cube, size)
