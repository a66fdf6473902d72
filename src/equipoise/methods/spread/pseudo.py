"""Measures that are no means as means: pseudo-values of rows.

A measure h of a group is a smooth function of totals that does not depend on how many rows there
are, so that row i moves it by w_i ∇h·x_i and these moves add up to nothing. The numbers
h + W ∇h·x_i, W being the group's weight, then have the weighted mean h and vary as h does. What is
known for means serves for them: how groups spread, and whether one spread is larger than another.
"""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.inference.measures import Measure, Totals
from equipoise.methods.inference.student import ClusterSums
from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.targets import Moments


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """What a measure needs of each row."""

    measure: Measure
    """The function of totals."""
    kind: IntArray
    """Kind of each row."""
    side: IntArray
    """Of each kind: which are judged by their own number of rows."""
    order: IntArray
    """Of each kind: where it stands on the line."""
    numbers: FloatArray
    """Numbers of each row that are added up, ``(N, d)``."""

    def some(self, rows: IntArray) -> "Kinds":
        """Some of the rows, with the kinds and places of the line that they are of."""
        used, kind = np.unique(self.kind[rows], return_inverse=True)
        if len(self.order) <= 4 or not self.order.any():
            # few kinds, or no line: a measure may need all of them by their numbers
            used, kind = np.arange(len(self.order)), self.kind[rows]
        _, order = np.unique(self.order[used], return_inverse=True)
        return Kinds(
            measure=self.measure, kind=kind.reshape(-1), side=self.side[used],
            order=order.reshape(-1), numbers=self.numbers[rows],
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Pseudo:
    """Rows whose mean in every group is the measure of the group."""

    value: FloatArray
    """The pseudo-value of each row; NaN in groups that have no measure."""
    few: IntArray
    """Groups with too few rows of some kind, or whose measure is not defined."""


def pseudo_values(kinds: Kinds, weight: FloatArray, group: IntArray, groups: int) -> Pseudo:
    """Pseudo-values of all rows, group by group; rows of group −1 have none.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.inference.measures import OfTable
    >>> table = np.array([0, 1, 2, 3, 3] * 20)
    >>> f1 = Kinds(measure=OfTable(name="f1"), kind=table, side=np.array([0, 1, 1, 1]),
    ...            order=np.zeros(4, dtype=int), numbers=np.ones((100, 1)))
    >>> made = pseudo_values(f1, np.ones(100), np.zeros(100, dtype=int), 1)
    >>> round(float(made.value.mean()), 6)
    0.666667
    """
    out, few = np.full(group.size, np.nan), []
    by_group = np.argsort(group, kind="stable")
    stops = np.searchsorted(group[by_group], np.arange(groups + 1))
    for g in range(groups):
        rows = by_group[stops[g] : stops[g + 1]]
        own, w = kinds.some(rows), weight[rows]
        totals = _totals(own, w)
        found, slope = own.measure.value(totals.first, totals)
        worth = np.bincount(own.side, totals.weight[:, 0]) ** 2 / np.maximum(
            np.bincount(own.side, totals.weight2[:, 0]), 1e-300
        )
        present = np.isin(np.unique(kinds.side), np.unique(own.side[totals.weight[:, 0] > 0]))
        if not np.isfinite(found[0]) or not present.all() or worth.min() < own.measure.least:
            few.append(g)
            continue
        out[rows] = found[0] + w.sum() * (slope[own.kind, :, 0] * own.numbers).sum(axis=1)
    return Pseudo(value=out, few=np.array(few, dtype=np.int64))


def _totals(kinds: Kinds, weight: FloatArray) -> Totals:
    number, d = len(kinds.side), kinds.numbers.shape[1]
    first = np.zeros((number, d, 1))
    np.add.at(first[:, :, 0], kinds.kind, weight[:, None] * kinds.numbers)
    one, two = (_added(kinds.kind, weight**k, number)[:, None] for k in (1, 2))
    none = np.zeros((number, d, d, 1))
    return Totals(
        first=first, second=none, third=none[:, None], weight=one, weight2=two,
        side=kinds.side, order=kinds.order,
    )  # fmt: skip


def row_moments(
    value: FloatArray, weight: FloatArray | None, group: IntArray, groups: int
) -> Moments:
    """Sums of numbers by group; without weights counts are counts.

    >>> import numpy as np
    >>> row_moments(np.array([1.0, 2.0, 3.0]), None, np.array([0, 0, 1]), 2).total.tolist()
    [3.0, 3.0]
    """
    w = np.ones(value.size) if weight is None else weight

    def added(k: int, power: int) -> FloatArray:
        return _added(group, w**k * value**power, groups)

    rows = np.bincount(group, minlength=groups).astype(np.float64)
    if weight is None:
        one, two, three = (added(0, power) for power in (1, 2, 3))
        return Moments(
            rows=rows, weight=rows, total=one, weight2=rows, total2=one, square2=two,
            weight3=rows, total3=one, square3=two, cube3=three,
        )  # fmt: skip
    return Moments(
        rows=rows, weight=added(1, 0), total=added(1, 1),
        weight2=added(2, 0), total2=added(2, 1), square2=added(2, 2),
        weight3=added(3, 0), total3=added(3, 1), square3=added(3, 2), cube3=added(3, 3),
    )  # fmt: skip


def row_clusters(
    value: FloatArray, weight: FloatArray, group: IntArray, cluster: IntArray, groups: int
) -> ClusterSums:
    """The same by cluster.

    >>> import numpy as np
    >>> one, two = np.ones(3), np.array([0, 0, 1])
    >>> row_clusters(one, one, np.array([0, 1, 1]), two, 2).total.tolist()
    [1.0, 1.0, 1.0]
    """
    pairs, place = np.unique(np.stack([cluster, group], axis=1), axis=0, return_inverse=True)
    at = place.reshape(-1)
    _, number = np.unique(pairs[:, 0], return_inverse=True)
    return ClusterSums(
        cluster=number.reshape(-1).astype(np.int64), cell=pairs[:, 1].astype(np.int64),
        weight=_added(at, weight, len(pairs)),
        total=_added(at, weight * value, len(pairs)), cells=groups,
    )  # fmt: skip


def _added(place: IntArray, x: FloatArray, places: int) -> FloatArray:
    return np.bincount(place, x, places).astype(np.float64)
