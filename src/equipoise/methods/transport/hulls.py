"""What a row of the plan can gain for what it spends: an upper concave hull per cell.

Mass in cell i that spends c on average gains at most the hull of {(cost, loss − own loss)} at c.
The hull's segments, over all cells and from steep to flat, are the items of a fractional knapsack,
so the transport problem needs no solver.
"""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import AnyArray, BoolArray, FloatArray, IntArray
from equipoise.methods.transport.moves import Classes, Moves, Neighbours

# Two slopes closer than this are one straight line; keeps rounding from making false corners.
_STRAIGHT = 1e-13


@dataclass(frozen=True, slots=True, kw_only=True)
class Hulls:
    """The hulls of all cells; segments are sorted from steep to flat.

    Attributes
    ----------
    base_gain
        What each cell gains at no cost.
    base_target
        Where its mass goes then; the cell itself if nothing is gained.
    row
        The cell each segment belongs to.
    start, stop
        The cells at the two ends of a segment: mass moves on from one to the other.
    spent
        Cost per unit of mass at the segment's start.
    width
        Cost per unit of mass along the segment.
    slope
        Gain per unit of cost along the segment; strictly positive.
    """

    base_gain: FloatArray
    base_target: IntArray
    row: IntArray
    start: IntArray
    stop: IntArray
    spent: FloatArray
    width: FloatArray
    slope: FloatArray

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(self.base_gain.size)

    def chosen(self, keep: BoolArray) -> "Hulls":
        """The same hulls with some segments only."""
        return Hulls(
            base_gain=self.base_gain,
            base_target=self.base_target,
            row=self.row[keep],
            start=self.start[keep],
            stop=self.stop[keep],
            spent=self.spent[keep],
            width=self.width[keep],
            slope=self.slope[keep],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Points:
    """Candidate corners, sorted by cell and then by cost."""

    row: IntArray
    target: IntArray
    cost: FloatArray
    gain: FloatArray

    def chosen(self, keep: AnyArray) -> "_Points":
        return _Points(
            row=self.row[keep],
            target=self.target[keep],
            cost=self.cost[keep],
            gain=self.gain[keep],
        )


def build_hulls(moves: Moves, losses: FloatArray) -> Hulls:
    """The hulls of every cell under the given moves and losses.

    Examples
    --------
    >>> from equipoise.methods.transport import from_matrix
    >>> costs = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    >>> h = build_hulls(from_matrix(costs), np.array([0.0, 0.8, 1.0]))
    >>> h.row.tolist(), h.stop.tolist(), h.slope.round(3).tolist()
    ([0, 0, 1], [1, 2, 2], [0.8, 0.2, 0.2])
    """
    if isinstance(moves, Classes):
        return _class_hulls(moves, losses)
    return _segments(_corners(_rising(_points(moves, losses))), moves.cells)


def _class_hulls(moves: Classes, losses: FloatArray) -> Hulls:
    # The worst cell of each class: the last one when sorted by class and loss.
    order = np.lexsort((-np.arange(losses.size), losses, moves.labels))
    ends = np.cumsum(np.bincount(moves.labels)) - 1
    worst = order[ends][moves.labels]
    gain = losses[worst] - losses
    none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
    return Hulls(
        base_gain=gain,
        base_target=np.where(gain > 0, worst, np.arange(losses.size)),
        row=none,
        start=none,
        stop=none,
        spent=nothing,
        width=nothing,
        slope=nothing,
    )


def _points(moves: Neighbours, losses: FloatArray) -> _Points:
    stay = np.arange(moves.cells)
    # Staying is listed first, so that among equals it is preferred.
    row, target = (np.concatenate((stay, x)) for x in (moves.source, moves.target))
    cost = np.concatenate((np.zeros(moves.cells), moves.cost))
    gain = losses[target] - losses[row]
    order = np.lexsort((-gain, cost, row))
    return _Points(row=row, target=target, cost=cost, gain=gain).chosen(order)


def _rising(points: _Points) -> _Points:
    """Only the points that gain more than every cheaper one of their cell."""
    # Whole-number ranks make one running maximum serve all cells at once, without rounding.
    rank = np.unique(points.gain, return_inverse=True)[1].astype(np.int64)
    key = points.row * (int(rank.max()) + 1) + rank
    before = np.concatenate(([-1], np.maximum.accumulate(key)[:-1]))
    # a cell's first point always counts, the key of the next cell being larger than all before
    return points.chosen(key > before)


def _corners(points: _Points) -> _Points:
    """Drop points on or below the chord of their neighbours until none is left.

    A point below a chord of the set is no corner of its hull, so all such points may go at once.
    """
    while True:
        inner = (points.row[:-2] == points.row[1:-1]) & (points.row[1:-1] == points.row[2:])
        rise, run = np.diff(points.gain), np.diff(points.cost)
        flat = inner & (rise[:-1] * run[1:] <= rise[1:] * run[:-1] * (1 + _STRAIGHT))
        if not np.any(flat):
            return points
        points = points.chosen(np.concatenate(([True], ~flat, [True])))


def _segments(points: _Points, cells: int) -> Hulls:
    opens = np.concatenate(([True], points.row[1:] != points.row[:-1]))
    begin = np.flatnonzero(~opens[1:])
    width = points.cost[begin + 1] - points.cost[begin]
    slope = (points.gain[begin + 1] - points.gain[begin]) / width
    # (3.1) of Xue, Yurochkin and Sun is a fractional knapsack: whatever the weights of the cells,
    # the steepest segments go first.
    order = np.argsort(-slope, kind="stable")
    begin = begin[order]
    return Hulls(
        base_gain=points.gain[opens],
        base_target=points.target[opens],
        row=points.row[begin],
        start=points.target[begin],
        stop=points.target[begin + 1],
        spent=points.cost[begin],
        width=width[order],
        slope=slope[order],
    )
