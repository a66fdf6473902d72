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
    unit = np.exp2(np.ceil(np.log2(np.where(size > 0, size, 1.0))) - DIGITS)
    # sums too small for so many digits are kept to those that floats have
    unit = np.maximum(unit, np.finfo(np.float64).smallest_subnormal)
    return np.asarray(np.round(x / unit) * unit)


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
    squared = _sums(cells.weight2, cells.total2, cells.square2)
    return replace(cells, clusters=table, **plain, **{f"{n}2": x for n, x in squared.items()})


def _sums(weight: FloatArray, total: FloatArray, square: FloatArray) -> dict[str, Any]:
    return {
        "weight": steady(weight, weight),
        # A sum of signed values may cancel, so it is rounded in units of what was added up.
        "total": steady(total, np.sqrt(weight * square)),
        "square": steady(square, square),
    }
