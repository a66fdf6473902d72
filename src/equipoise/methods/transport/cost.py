"""Which cells are comparable, and what a move between them costs.

Three ways to say it. Staying is always possible and free; a pair that is not mentioned, or whose
cost is infinite, is forbidden. Costs need not be symmetric.

A fair distance learnt from data: differences along sensitive directions do not count.

The directions are those in which the sensitive attributes can be read off the features; they are
projected out, and what distance is left is the difference that may matter.

A learnt metric has an error of its own. With P the projection, D the features' units and δ the
difference of two people, the distance is |P D⁻¹ δ|. It is off by at most (s + u) |D⁻¹ δ|, where s
is the sine of the angle between the true and the learnt directions and u the relative error of the
units. The sine is at most the error of the slopes over their smallest singular value (Wedin 1972),
and slopes and units are smooth functions of means, which the bootstrap knows how to resample.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from equipoise.methods.numerics import AnyArray, BoolArray, FloatArray, IntArray
from equipoise.methods.transport.sample import Sample, costs_within, first

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
class Unlisted:
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
    left_out: Unlisted | None = None

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
    >>> left = Unlisted(classes=np.zeros(3, dtype=np.int64), cost=np.array([2.0, np.inf, np.inf]))
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


_RANK = 1e-9
"""Singular values smaller than this part of the largest are what rounding leaves of zero."""

_BLOCK = 128
"""Resamples on which a metric is learnt at once. Part of the definition of the results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntMetric:
    """A fair metric, as the shares of the cells give it.

    Attributes
    ----------
    units
        Standard deviation of each feature; 1 where it does not vary.
    slopes
        Least-squares slopes of the sensitive columns on the features, in these units.
    directions
        Orthonormal basis of what the slopes span.
    """

    units: FloatArray
    slopes: FloatArray
    directions: FloatArray

    @property
    def strength(self) -> float:
        """Smallest singular value of the slopes that counts as a direction; 0 if none does."""
        rank = self.directions.shape[1]
        return float(np.linalg.svd(self.slopes, compute_uv=False)[rank - 1]) if rank else 0.0


def learn_metric(
    features: npt.ArrayLike, sensitive: npt.ArrayLike, share: npt.ArrayLike
) -> LearntMetric:
    """Learn units and sensitive directions from the shares of the cells.

    Parameters
    ----------
    features
        Numbers the distance is made of, one row per cell.
    sensitive
        Sensitive attributes as numbers, one row per cell; indicator columns for categories.
    share
        Share, count or weight of each cell.

    Examples
    --------
    >>> x = [[0.0, 0.0], [0.0, 2.0], [1.0, 0.0], [1.0, 2.0]]
    >>> found = learn_metric(x, [0, 0, 1, 1], [5, 5, 5, 5])
    >>> found.units.tolist(), abs(found.directions).round(6).tolist()
    ([0.5, 1.0], [[1.0], [0.0]])
    """
    x, s = _table(features, "features"), _table(sensitive, "sensitive attributes")
    weight = np.asarray(share, dtype=np.float64)
    if s.shape[0] != x.shape[0] or weight.shape != (x.shape[0],):
        raise ValueError("features, sensitive attributes and counts must have one row per cell")
    if not np.all(weight >= 0) or not weight.sum() > 0:
        raise ValueError("counts must not be negative, and not all zero")
    units, slopes = (found[0] for found in _fitted(x, s, (weight / weight.sum())[None, :]))
    # in these units slopes are of the size of correlations, and rounding leaves no direction
    known = np.where(np.abs(slopes) > _RANK, slopes, 0.0)
    return LearntMetric(units=units, slopes=known, directions=_basis(known))


def metric_errors(
    features: npt.ArrayLike,
    sensitive: npt.ArrayLike,
    sample: Sample,
    *,
    resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Draws of how far a learnt distance is off, as a part of the distance with nothing left out.

    The metric is learnt again on every resample. Directions that the sample hardly shows may be
    any: the part is then 1 or more, and nothing is taken for known.

    Examples
    --------
    >>> from equipoise.methods.transport import plain_sample
    >>> x = [[0.0, 0.0], [0.0, 2.0], [1.0, 0.0], [1.0, 2.0]]
    >>> sample, rng = plain_sample([40, 30, 30, 40], 4), np.random.default_rng(1)
    >>> drawn = metric_errors(x, [0, 0, 1, 1], sample, resamples=200, rng=rng)
    >>> drawn.shape, bool(0 < drawn.mean() < 1)
    ((200,), True)
    """
    x, s = _table(features, "features"), _table(sensitive, "sensitive attributes")
    found, parts = learn_metric(x, s, sample.share), []
    for start in range(0, resamples, _BLOCK):
        size = min(_BLOCK, resamples - start)
        units, slopes = _fitted(x, s, sample.resampled(sample.n, size, rng))
        moved = np.linalg.norm(slopes - found.slopes, ord=2, axis=(1, 2))
        # without a direction the true one, if there is any, may be any
        sine = np.minimum(moved / found.strength, 1.0) if found.strength else 1.0
        parts.append(sine + np.abs(found.units / units - 1).max(axis=1))
    return np.concatenate(parts)


def _fitted(x: FloatArray, s: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Units of the features, and slopes of the sensitive columns on them, for each row of shares.

    Second moments give both, so a thousand resamples are a few products of matrices.
    """
    d = x.shape[1]
    # about some middle, since squares of large numbers leave nothing of small differences
    both = np.concatenate([x, s], axis=1)
    both = both - both.mean(axis=0)
    mean = shares @ both
    products = (both[:, :, None] * both[:, None, :]).reshape(len(both), -1)
    moments = (shares @ products).reshape(-1, both.shape[1], both.shape[1])
    moments = moments - mean[:, :, None] * mean[:, None, :]
    spread = np.sqrt(np.maximum(np.diagonal(moments, axis1=1, axis2=2), 0.0))
    # what does not vary keeps its own unit
    units = np.where(spread > 1e-7 * np.abs(both).max(axis=0), spread, 1.0)
    scaled = moments / units[:, :, None] / units[:, None, :]
    # columns that add up to one another share the slope: the shortest solution
    inverse = np.linalg.pinv(scaled[:, :d, :d], rcond=1e-9, hermitian=True)
    return units[:, :d], np.asarray(inverse @ scaled[:, :d, d:])


def fair_costs(
    features: npt.ArrayLike,
    directions: FloatArray,
    *,
    power: float = 2.0,
    classes: npt.ArrayLike | None = None,
    off: float = 0.0,
    neighbours: int | None = None,
) -> Neighbours:
    """Moves between cells, at the fair distance to the given power.

    Parameters
    ----------
    features
        One row per cell.
    directions
        Columns that span the sensitive subspace; need not be orthonormal; may be none.
    power
        The cost is distance to this power; 2 is usual.
    classes
        Moves between cells with different labels (for example outcomes) are forbidden.
    off
        This part of the distance with nothing projected out is added to every distance: positive
        for the largest costs that a learnt metric may have, negative for the smallest.
    neighbours
        List only moves to so many nearest cells, and say what the nearest one left out costs at
        least; all moves by default.

    Examples
    --------
    >>> x = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    >>> fair_costs(x, np.array([[1.0], [0.0]])).cost.round(9).tolist()
    [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    """
    whole, points = _table(features, "features"), _projected(features, directions)
    labels = _labels(features, classes)
    if neighbours is not None:
        return _nearest(whole, points, labels, _power(power), off, neighbours)
    # Section 2 of Xue, Yurochkin and Sun: squared distances, infinite between different labels.
    distance = _distances(points, points)
    if off != 0:
        distance = np.maximum(distance + off * _distances(whole, whole), 0.0)
    costs = distance ** _power(power)
    costs[labels[:, None] != labels] = np.inf
    return from_matrix(costs)


def _nearest(
    whole: FloatArray,
    points: FloatArray,
    labels: IntArray,
    power: float,
    off: float,
    neighbours: int,
) -> Neighbours:
    """Moves to the nearest cells of the same label, found by a tree of points."""
    if neighbours < 1:
        raise ValueError(f"at least one neighbour is needed; got {neighbours}")
    source, target, cost = [], [], []
    beyond = np.full(labels.size, np.inf)
    for label in range(int(labels.max()) + 1):
        cells = np.flatnonzero(labels == label)
        number = min(neighbours + 1, cells.size)
        found = cKDTree(points[cells]).query(points[cells], k=number)
        distance = _settled(np.reshape(found[0], (cells.size, number)), points)
        at = np.reshape(found[1], -1)
        a, b = np.repeat(cells, number), cells[at]
        apart = np.linalg.norm(whole[a] - whole[b], axis=1)
        paid = np.maximum(distance.reshape(-1) + off * apart, 0.0) ** power
        source.append(a[a != b])
        target.append(b[a != b])
        cost.append(paid[a != b])
        if number < cells.size:
            centre = whole[cells].mean(axis=0)
            out = np.linalg.norm(whole[cells] - centre, axis=1)
            # no cell of the class is further away than through its centre
            furthest = min(off, 0.0) * (out + out.max())
            beyond[cells] = np.maximum(distance[:, -1] + furthest, 0.0) ** power
    return Neighbours(
        cells=labels.size,
        source=np.concatenate(source),
        target=np.concatenate(target),
        cost=np.concatenate(cost),
        left_out=Unlisted(classes=labels, cost=beyond) if np.any(np.isfinite(beyond)) else None,
    )


def _table(values: npt.ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"{name} must be a table with one row per cell; got shape {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite")
    return array


def _basis(columns: FloatArray) -> FloatArray:
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, sizes > _RANK * max(float(sizes.max(initial=0.0)), 1e-300)])


def _projected(features: npt.ArrayLike, directions: FloatArray) -> FloatArray:
    points = _table(features, "features")
    if np.asarray(directions).shape == (points.shape[1], 0):
        # nothing betrays the sensitive attributes, so nothing is projected out
        return points
    span = _table(directions, "directions")
    if span.shape[0] != points.shape[1]:
        raise ValueError(
            f"directions must have one row per feature ({points.shape[1]}); got {span.shape[0]}"
        )
    basis = _basis(span)
    return np.asarray(points - (points @ basis) @ basis.T)


def _labels(features: npt.ArrayLike, classes: npt.ArrayLike | None) -> IntArray:
    cells = len(np.asarray(features))
    if classes is None:
        return np.zeros(cells, dtype=np.int64)
    array = np.asarray(classes)
    if array.shape != (cells,):
        raise ValueError(f"expected one class label per cell ({cells}); got shape {array.shape}")
    return np.unique(array, return_inverse=True)[1].astype(np.int64)


def _distances(a: FloatArray, b: FloatArray) -> FloatArray:
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    return _settled(np.sqrt(np.maximum(squares, 0.0)), b)


def _settled(distance: FloatArray, points: FloatArray) -> FloatArray:
    """Differences of large numbers: what is left of a zero distance must be zero."""
    scale = 1e-13 * max(1e-300, float((points**2).sum(axis=1).max()))
    return np.where(distance**2 <= scale, 0.0, distance)


def _power(power: float) -> float:
    if not 0 < power < np.inf:
        raise ValueError(f"the power must be positive and finite; got {power:g}")
    return power
