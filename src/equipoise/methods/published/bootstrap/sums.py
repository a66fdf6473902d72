"""Small sums and quotients shared by the targets and the estimates."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray, GroupSums
from equipoise.methods.published.bootstrap.data import Totals

Second = tuple[FloatArray, FloatArray, FloatArray]
"""Sums of w², w²L and w²L²."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTotals:
    """Totals of the groups in each batch, shapes ``(b, G)``, beside the cells they came from."""

    weight: FloatArray
    """Sum of weights."""
    total: FloatArray
    """Sum of w L."""
    second_groups: Second
    """Second-order sums of the groups; empty arrays when not asked for."""
    second_cells: Second
    """Second-order sums of the cells; empty arrays when not asked for."""


def group_totals(cells: Totals, sums: GroupSums, *, spread: bool = False) -> GroupTotals:
    """Sum cell totals over the groups, with the second-order sums when ``spread`` is asked for."""
    none = (np.zeros((1, 0)),) * 3
    inside = second_order(cells) if spread else none
    first = [cells.weight, cells.total]
    weight, total, *second_groups = sum_each(sums, [*first, *(inside if spread else ())])
    return GroupTotals(
        weight=weight,
        total=total,
        second_groups=(second_groups[0], second_groups[1], second_groups[2]) if spread else none,
        second_cells=inside,
    )


def sum_each(sums: GroupSums, arrays: Sequence[FloatArray]) -> list[FloatArray]:
    """Group sums of each array; one that occurs twice is summed once."""
    done: dict[int, FloatArray] = {}
    for x in arrays:
        if id(x) not in done:
            done[id(x)] = sums(x)
    return [done[id(x)] for x in arrays]


def second_order(cells: Totals) -> Second:
    """The second-order sums, or an error when this engine cannot draw them."""
    if cells.weight2 is None or cells.total2 is None or cells.square2 is None:
        raise ValueError("this engine draws no second moments; use an exact engine")
    return cells.weight2, cells.total2, cells.square2


def quotient(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Quotient, NaN where the divisor is not positive.

    >>> quotient(np.array([1.0, 1.0]), np.array([2.0, 0.0])).tolist()
    [0.5, nan]
    """
    shape = np.broadcast_shapes(top.shape, bottom.shape)
    out: FloatArray = np.full(shape, np.nan)
    np.divide(top, bottom, out=out, where=bottom > 0)
    return out


def second(w2: FloatArray, s2: FloatArray, q2: FloatArray, mean: FloatArray) -> FloatArray:
    """Sum of w²(L − mean)², never below zero.

    >>> float(second(np.array(2.0), np.array(1.0), np.array(1.0), np.array(0.5)))
    0.5
    """
    # Expanded, so that sums of cells will do; rounding may leave a hair below zero.
    return np.maximum(q2 - 2 * mean * s2 + mean * mean * w2, 0.0)
