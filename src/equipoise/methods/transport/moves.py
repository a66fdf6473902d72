"""Which cells are comparable, and what a move between them costs.

Three ways to say it. Staying is always possible and free; a pair that is not mentioned, or whose
cost is infinite, is forbidden. Costs need not be symmetric.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise.methods.arrays import BoolArray, FloatArray, IntArray
from equipoise.methods.transport.checks import costs_within, first


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
