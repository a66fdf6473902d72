"""What the bootstrap needs to know of the rows: sums per cell, rows, or cluster sums."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.methods.numerics import FloatArray, GroupSums, IntArray

# --- What the bootstrap needs to know of the rows: sums per cell, rows, or cluster sums ---


@dataclass(frozen=True, slots=True, kw_only=True)
class CellMoments:
    """Sums over the rows of each cell, all of shape ``(C,)``.

    Without sampling weights the second-order sums coincide with the first-order ones; build such
    tables with :func:`unweighted_moments`.
    """

    rows: FloatArray
    """Number of rows, frequency counts summed."""
    weight: FloatArray
    """Sum of the weights w."""
    total: FloatArray
    """Sum of w times the metric L."""
    weight2: FloatArray
    """Sum of w²."""
    total2: FloatArray
    """Sum of w² L."""
    square2: FloatArray
    """Sum of w² L²."""
    binary: bool
    """Whether L is 0/1 and no row is weighted, so that rows and total say everything."""


def unweighted_moments(
    rows: FloatArray, total: FloatArray, square: FloatArray | None = None
) -> CellMoments:
    """Cell sums of an unweighted metric; leave ``square`` out when the metric is 0/1.

    >>> unweighted_moments(np.array([4.0, 2.0]), np.array([1.0, 2.0])).binary
    True
    """
    n, s = np.asarray(rows, dtype=np.float64), np.asarray(total, dtype=np.float64)
    q = s if square is None else np.asarray(square, dtype=np.float64)
    return CellMoments(
        rows=n, weight=n, total=s, weight2=n, total2=s, square2=q, binary=square is None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowData:
    """Rows sorted by cell (and, so that row order cannot matter, by value and weight within)."""

    cell: IntArray
    """Cell of each row, not decreasing."""
    value: FloatArray
    """Metric L of each row."""
    weight: FloatArray | None = None
    """Sampling weight of each row; None means one."""
    count: IntArray | None = None
    """How many times each row occurred; None means once."""
    influence: FloatArray | None = None
    """Influence value ψ of each row on a custom target, where there is one."""


def canonical_rows(
    cell: IntArray,
    value: FloatArray,
    weight: FloatArray | None = None,
    count: IntArray | None = None,
    influence: FloatArray | None = None,
) -> RowData:
    """Sort rows into the order :class:`RowData` asks for.

    >>> canonical_rows(np.array([1, 0]), np.array([0.5, 2.0])).value.tolist()
    [2.0, 0.5]
    """
    columns = [x for x in (count, influence, weight, value, cell) if x is not None]
    order = np.lexsort(tuple(columns))
    return RowData(
        cell=np.asarray(cell)[order],
        value=np.asarray(value, dtype=np.float64)[order],
        weight=None if weight is None else np.asarray(weight, dtype=np.float64)[order],
        count=None if count is None else np.asarray(count)[order],
        influence=None if influence is None else np.asarray(influence, dtype=np.float64)[order],
    )


def counted_rows(moments: CellMoments) -> RowData:
    """The rows behind a 0/1 metric without weights: each cell's zeros, then its ones.

    >>> counted_rows(unweighted_moments(np.array([4.0, 2.0]), np.array([1.0, 2.0]))).count.tolist()
    [3, 1, 2]
    """
    if not moments.binary:
        raise ValueError("counts say everything only of an unweighted 0/1 metric")
    count = np.rint(np.stack([moments.rows - moments.total, moments.total], axis=1)).astype(int)
    cell, value = np.nonzero(count)
    return RowData(
        cell=cell.astype(np.int64), value=value.astype(np.float64), count=count[cell, value]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterData:
    """Sparse table of cluster × cell sums, one entry per pair that has rows.

    Entries are sorted by cluster, then by cell; clusters are numbered 0, 1, …
    """

    cluster: IntArray
    """Cluster of each entry, not decreasing."""
    cell: IntArray
    """Cell of each entry."""
    weight: FloatArray
    """Sum of weights in the entry (its number of rows when unweighted)."""
    total: FloatArray
    """Sum of w L in the entry."""
    influence: FloatArray | None = None
    """Sum of ψ over the rows of each *cluster*, where the target is custom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """A batch of cell totals, shapes ``(b, C)``: the data (b = 1) or a block of resamples."""

    weight: FloatArray
    """Sum of weights per cell."""
    total: FloatArray
    """Sum of w L per cell."""
    weight2: FloatArray | None = None
    """Sum of w² per cell, where the engine draws it."""
    total2: FloatArray | None = None
    """Sum of w² L per cell, where the engine draws it."""
    square2: FloatArray | None = None
    """Sum of w² L² per cell, where the engine draws it."""
    influence: FloatArray | None = None
    """Mean of ψ over the resampled rows less that over the data, shape ``(b,)``; custom targets."""

    def part(self, rows: slice) -> "Totals":
        """The same totals for some of the resamples only."""
        fields = [
            self.weight,
            self.total,
            self.weight2,
            self.total2,
            self.square2,
            self.influence,
        ]
        # without weights several fields are one array; they stay one, so that it is summed once
        cut = {id(x): x[rows] for x in fields if x is not None}
        weight2, total2, square2, influence = (
            None if x is None else cut[id(x)] for x in fields[2:]
        )
        return Totals(
            weight=cut[id(self.weight)],
            total=cut[id(self.total)],
            weight2=weight2,
            total2=total2,
            square2=square2,
            influence=influence,
        )


def observed_totals(moments: CellMoments) -> Totals:
    """The data themselves in the form of a batch of one.

    >>> observed_totals(unweighted_moments(np.array([4.0]), np.array([1.0]))).total.tolist()
    [[1.0]]
    """
    return Totals(
        weight=moments.weight[None],
        total=moments.total[None],
        weight2=moments.weight2[None],
        total2=moments.total2[None],
        square2=moments.square2[None],
        influence=np.zeros(1),
    )


# --- Small sums and quotients shared by the targets and the estimates ---

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
