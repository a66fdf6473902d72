"""Which cells are comparable, and what a move between them costs.

Three ways to say it. Staying is always possible and free; a pair that is not mentioned, or whose
cost is infinite, is forbidden. Costs need not be symmetric.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise.methods.numerics import AnyArray, BoolArray, FloatArray, IntArray
from equipoise.methods.transport.sample import costs_within, first

# --- Which cells are comparable, and what a move between them costs ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """Moves are free inside a class and forbidden between classes.

    Attributes
    ----------
    labels
        The class of each cell, numbered from 0.
    """

    labels: IntArray

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(self.labels.size)

    @property
    def isolated(self) -> BoolArray:
        """Which cells are comparable with no other cell."""
        return np.asarray(np.bincount(self.labels)[self.labels] == 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What is known of moves that are possible but not listed, because they lead too far.

    Attributes
    ----------
    classes
        Only moves within a class are possible.
    cost
        For each cell a cost that none of its moves left out undercuts; infinite if there is none.
    """

    classes: IntArray
    cost: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """The allowed moves between different cells, one entry each.

    Attributes
    ----------
    cells
        Number of cells.
    source
        The cell a move starts from.
    target
        The cell it leads to.
    cost
        What it costs per unit of mass; finite.
    left_out
        Moves that are not listed though they are possible; None if there are none.
    """

    cells: int
    source: IntArray
    target: IntArray
    cost: FloatArray
    left_out: LeftOut | None = None

    @property
    def isolated(self) -> BoolArray:
        """Which cells have no move that leaves them."""
        return np.asarray(np.bincount(self.source, minlength=self.cells) == 0)


Moves = Classes | Neighbours


def relaxed(moves: Neighbours, losses: FloatArray) -> Neighbours:
    """The moves listed, and one from each cell to the worst of its class at the least cost left.

    Every move that was left out leads to a loss that is no worse and costs no less. So the value
    with all moves lies between the value with those listed and the value with these.

    Examples
    --------
    >>> left = LeftOut(classes=np.zeros(3, dtype=np.int64), cost=np.array([2.0, np.inf, np.inf]))
    >>> zero, one = np.array([0]), np.array([1])
    >>> few = Neighbours(cells=3, source=zero, target=one, cost=np.ones(1), left_out=left)
    >>> relaxed(few, np.array([0.0, 0.5, 1.0])).target.tolist()
    [1, 2]
    """
    left = moves.left_out
    if left is None:
        return moves
    order = np.lexsort((losses, left.classes))
    worst = order[np.cumsum(np.bincount(left.classes)) - 1][left.classes]
    more = np.flatnonzero(np.isfinite(left.cost) & (losses[worst] > losses))
    return Neighbours(
        cells=moves.cells,
        source=np.concatenate((moves.source, more)),
        target=np.concatenate((moves.target, worst[more])),
        cost=np.concatenate((moves.cost, left.cost[more])),
    )


def within_classes(labels: npt.ArrayLike) -> Classes:
    """Cells are comparable, at no cost, exactly when they carry the same label.

    Two people who differ only in the varied attributes share the label made of all the others and
    of the outcome.

    Parameters
    ----------
    labels
        One label per cell, of any type that can be sorted.

    Examples
    --------
    >>> within_classes(["a", "b", "a"]).labels.tolist()
    [0, 1, 0]
    """
    array = np.asarray(labels)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"expected one label per cell; got shape {array.shape}")
    if array.dtype.kind == "f" and np.any(np.isnan(array)):
        raise ValueError(f"labels must not be NaN; cell {first(np.isnan(array))} is")
    moves = Classes(labels=np.unique(array, return_inverse=True)[1].astype(np.int64))
    _some_moves(moves)
    return moves


def from_matrix(costs: npt.ArrayLike) -> Neighbours:
    """Costs of all moves as a square matrix, row to column; infinite means forbidden.

    Parameters
    ----------
    costs
        One row and one column per cell, zero on the diagonal, not negative, not NaN.

    Examples
    --------
    >>> from_matrix([[0, 1.5], [np.inf, 0]]).cost.tolist()
    [1.5]
    """
    matrix = np.asarray(costs, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ValueError(f"costs must be a square matrix; got shape {matrix.shape}")
    costs_within(matrix, "entry (counted along the rows)")
    diagonal = np.diagonal(matrix)
    if np.any(diagonal != 0):
        raise ValueError(f"staying must cost nothing; cell {first(diagonal != 0)} pays to stay")
    allowed = np.isfinite(matrix)
    np.fill_diagonal(allowed, False)
    source, target = np.nonzero(allowed)
    moves = Neighbours(
        cells=matrix.shape[0],
        source=source.astype(np.int64),
        target=target.astype(np.int64),
        cost=matrix[allowed],
    )
    _some_moves(moves)
    return moves


def from_neighbours(
    source: npt.ArrayLike, target: npt.ArrayLike, cost: npt.ArrayLike, *, cells: int
) -> Neighbours:
    """Costs of the comparable pairs only; every pair that is not listed is forbidden.

    Parameters
    ----------
    source, target
        Cell numbers of each pair, from 0 to ``cells`` − 1; a pair may be listed once.
    cost
        The cost of each pair; an infinite one is left out.
    cells
        Number of cells.

    Examples
    --------
    >>> from_neighbours([0, 1], [1, 2], [1.0, np.inf], cells=3).isolated.tolist()
    [False, True, True]
    """
    a, b = _numbers(source, cells, "source"), _numbers(target, cells, "target")
    price = np.asarray(cost, dtype=np.float64)
    if not a.shape == b.shape == price.shape:
        raise ValueError(
            f"source, target and cost must be equally long; got {a.size}, {b.size}, {price.size}"
        )
    costs_within(price, "pair")
    paid = (a == b) & (price != 0)
    if np.any(paid):
        raise ValueError(f"staying must cost nothing; cell {a[first(paid)]} pays to stay")
    kept = (a != b) & np.isfinite(price)
    moves = Neighbours(cells=cells, source=a[kept], target=b[kept], cost=price[kept])
    _listed_once(moves)
    _some_moves(moves)
    return moves


def _numbers(values: npt.ArrayLike, cells: int, name: str) -> IntArray:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be a list of cell numbers; got {array.dtype} {array.shape}")
    wrong = (array < 0) | (array >= cells)
    if np.any(wrong):
        raise ValueError(f"{name} must lie in 0 … {cells - 1}; got {array[first(wrong)]}")
    return array.astype(np.int64)


def _listed_once(moves: Neighbours) -> None:
    keys = np.sort(moves.source * moves.cells + moves.target)
    twice = keys[1:] == keys[:-1]
    if np.any(twice):
        a, b = divmod(int(keys[1:][twice][0]), moves.cells)
        raise ValueError(f"the pair {a} → {b} is listed twice")


def _some_moves(moves: Moves) -> None:
    if np.all(moves.isolated):
        raise ValueError(
            f"no cell is comparable with another: all {moves.cells} are disconnected, so the "
            "audit value would be zero whatever the model does"
        )


# --- What a row of the plan can gain for what it spends: an upper concave hull per cell ---
#
# Mass in cell i that spends c on average gains at most the hull of {(cost, loss − own loss)} at
# c. The hull's segments, over all cells and from steep to flat, are the items of a fractional
# knapsack, so the transport problem needs no solver.

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
