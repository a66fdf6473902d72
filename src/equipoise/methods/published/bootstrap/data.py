"""What the bootstrap needs to know of the rows, and the engines that resample it.

Sums per cell, rows, or cluster sums go in; draws are exact from 0/1 cells and from rows, normal
from moments, or of whole clusters.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.methods.numerics import FloatArray, GroupSums, IntArray, over_or_zero
from equipoise.methods.targets import InfluenceSums

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


def second(w2: FloatArray, s2: FloatArray, q2: FloatArray, mean: FloatArray) -> FloatArray:
    """Sum of w²(L − mean)², never below zero.

    >>> float(second(np.array(2.0), np.array(1.0), np.array(1.0), np.array(0.5)))
    0.5
    """
    # Expanded, so that sums of cells will do; rounding may leave a hair below zero.
    return np.maximum(q2 - 2 * mean * s2 + mean * mean * w2, 0.0)


# --- The resampled mean of a custom target's influence values, given resampled cell totals ---


class InfluenceDraw:
    """Draws the mean of ψ from its normal law given the cells' weights and totals.

    Within a cell ψ is regressed on (w, wL); what the totals do not explain is drawn afresh. For a
    0/1 metric the regression is exact and only the residual is a normal approximation.
    """

    def __init__(self, moments: CellMoments, psi: InfluenceSums) -> None:
        """Solve the regression of ψ on the totals of each cell."""
        self._weight, self._total = moments.weight, moments.total
        self._b1, self._b2 = _solve(moments, psi)
        self._n = max(psi.rows, 1.0)
        explained = float((self._b1 * psi.total + self._b2 * psi.product).sum())
        # what is left after regression, and after the totals have explained the mean of ψ
        linear = float((self._b1 * self._weight + self._b2 * self._total).sum())
        left = psi.square - explained - (psi.sum - linear) ** 2 / self._n
        self._spread = float(np.sqrt(max(0.0, left)))

    def draw(self, rng: np.random.Generator, weight: FloatArray, total: FloatArray) -> FloatArray:
        """Change in the mean of ψ for each resample, shape ``(b,)``."""
        moved = (self._b1 * (weight - self._weight) + self._b2 * (total - self._total)).sum(axis=-1)
        noise = rng.standard_normal(weight.shape[0]) * self._spread
        return np.asarray((moved + noise) / self._n)


def _solve(m: CellMoments, psi: InfluenceSums) -> tuple[FloatArray, FloatArray]:
    """Coefficients of the least-squares fit of ψ on (w, wL), cell by cell."""
    # Normal equations of ψ = b₁ w + b₂ w L: two unknowns in each cell, so solved by hand.
    det = m.weight2 * m.square2 - m.total2**2
    # By Cauchy–Schwarz the determinant is not negative; this little of its first term is rounding.
    flat = det <= 1e-12 * m.weight2 * m.square2
    safe = np.where(flat, 1.0, det)
    b1 = (m.square2 * psi.total - m.total2 * psi.product) / safe
    b2 = (m.weight2 * psi.product - m.total2 * psi.total) / safe
    # a constant metric leaves one direction only
    alone = np.divide(psi.total, m.weight2, out=np.zeros_like(det), where=m.weight2 > 0)
    return np.where(flat, alone, b1), np.where(flat, 0.0, b2)


# --- The resampling engines: exact from 0/1 cells, exact from rows, normal from moments, clusters


class BinaryEngine:
    """Exact resampling of an unweighted 0/1 metric.

    Drawing n rows with replacement is one multinomial over cell × {0, 1}, so the cost does not
    depend on n.
    """

    name = "exact"

    def __init__(self, moments: CellMoments, influence: InfluenceSums | None = None) -> None:
        """Prepare the multinomial; ``influence`` is needed for a custom target only."""
        if not moments.binary:
            raise ValueError("the cell-exact engine needs an unweighted 0/1 metric")
        self._cells = moments.rows.size
        self._draws = _CountDraw(np.concatenate([moments.rows - moments.total, moments.total]))
        self._influence = None if influence is None else InfluenceDraw(moments, influence)

    def draw(self, rng: np.random.Generator, size: int) -> Totals:
        """Totals of ``size`` resamples."""
        counts = self._draws.draw(rng, size)
        ones = counts[:, self._cells :]
        weight = counts[:, : self._cells] + ones
        psi = None if self._influence is None else self._influence.draw(rng, weight, ones)
        return Totals(
            weight=weight, total=ones, weight2=weight, total2=ones, square2=ones, influence=psi
        )


class _CountDraw:
    """Multinomial counts over categories, skipping those never seen."""

    def __init__(self, counts: FloatArray) -> None:
        self._size = counts.size
        self._n = round(float(counts.sum()))
        # ascending order: the probability left is then never below the next one, which keeps the
        # conditional binomials inside (0, 1] however many categories there are
        order = np.argsort(counts, kind="stable")
        self._kept = order[counts[order] > 0]
        self._p = counts[self._kept] / max(self._n, 1)

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        out = np.zeros((size, self._size))
        if self._n > 0:
            out[:, self._kept] = rng.multinomial(self._n, self._p, size=size)
        return out


class RowEngine:
    """Exact resampling of rows, for real metrics and for sampling weights."""

    name = "exact"

    def __init__(self, rows: RowData, cells: int) -> None:
        """Collapse equal rows and prepare the sums per cell."""
        if rows.cell.size and bool(np.any(np.diff(rows.cell) < 0)):
            raise ValueError("rows must be sorted by cell: see canonical_rows")
        kept = _distinct(rows)
        self._cells = cells
        self._counts = kept.count if kept.count is not None else np.ones(0, dtype=np.int64)
        self._n = int(self._counts.sum())
        self._columns = _row_columns(kept)
        self._psi = None if kept.influence is None else _centred(kept.influence, self._counts)
        self._present, self._starts = np.unique(kept.cell, return_index=True)
        # a multinomial costs about eight row draws per category, whatever the counts
        crowded = self._n > 8 * self._counts.size
        self._multinomial = _CountDraw(self._counts.astype(np.float64)) if crowded else None
        self._row_of = np.zeros(0, dtype=np.int64) if crowded else _expand(self._counts)

    def draw(self, rng: np.random.Generator, size: int) -> Totals:
        """Totals of ``size`` resamples."""
        sums = np.zeros((len(self._columns), size, self._cells))
        psi = np.zeros(size)
        for b in range(size):
            times = self._times(rng)
            for k, column in enumerate(self._columns if self._n else []):
                sums[k, b, self._present] = np.add.reduceat(times * column, self._starts)
            if self._psi is not None:
                psi[b] = float((times * self._psi).sum()) / max(self._n, 1)
        return _as_totals(sums, None if self._psi is None else psi)

    def _times(self, rng: np.random.Generator) -> FloatArray:
        """How often each distinct row was drawn."""
        if self._multinomial is not None:
            return np.asarray(self._multinomial.draw(rng, 1)[0])
        drawn = rng.integers(0, self._n, size=self._n) if self._n else np.zeros(0, dtype=np.int64)
        if self._counts.size != self._n:
            drawn = self._row_of[drawn]
        times: FloatArray = np.bincount(drawn, minlength=self._counts.size).astype(np.float64)
        return times


def _centred(psi: FloatArray, counts: IntArray) -> FloatArray:
    # an estimator's ψ need not have mean zero to the last digit, but only its change counts
    return psi - float((psi * counts).sum()) / max(int(counts.sum()), 1)


def _expand(counts: IntArray) -> IntArray:
    return np.repeat(np.arange(counts.size, dtype=np.int64), counts)


def _distinct(rows: RowData) -> RowData:
    """Equal neighbouring rows merged, with their counts added."""
    columns = [x for x in (rows.cell, rows.value, rows.weight, rows.influence) if x is not None]
    count = np.ones(rows.cell.size, dtype=np.int64) if rows.count is None else rows.count
    new = np.ones(rows.cell.size, dtype=bool)
    if rows.cell.size:
        new[1:] = np.any([np.diff(x) != 0 for x in columns], axis=0)
    first = np.flatnonzero(new)
    return RowData(
        cell=rows.cell[first],
        value=rows.value[first],
        weight=None if rows.weight is None else rows.weight[first],
        count=np.add.reduceat(count, first) if first.size else count,
        influence=None if rows.influence is None else rows.influence[first],
    )


def _row_columns(rows: RowData) -> list[FloatArray]:
    """The values to be summed: 1, L, L² or, with weights, also their second-order versions."""
    value = np.asarray(rows.value, dtype=np.float64)
    if rows.weight is None:
        return [np.ones(value.size), value, value * value]
    w = np.asarray(rows.weight, dtype=np.float64)
    return [w, w * value, (w * value) ** 2, w * w, w * w * value]


def _as_totals(sums: FloatArray, psi: FloatArray | None) -> Totals:
    # Without weights w² = w: the same arrays serve twice, and are summed once.
    second = sums[3:] if sums.shape[0] == 5 else sums[:2]
    return Totals(
        weight=sums[0],
        total=sums[1],
        weight2=second[0],
        total2=second[1],
        square2=sums[2],
        influence=psi,
    )


class MomentsEngine:
    """Normal totals with exactly the covariance that resampling n rows would give.

    First-order equivalent to the exact engines, from cell sums alone, at a cost free of n.
    """

    name = "moments"

    def __init__(self, moments: CellMoments, influence: InfluenceSums | None = None) -> None:
        """Factor the covariance; ``influence`` is needed for a custom target only."""
        self._moments = moments
        self._factor = _Factor(moments)
        self._influence = None if influence is None else InfluenceDraw(moments, influence)

    def draw(self, rng: np.random.Generator, size: int) -> Totals:
        """Totals of ``size`` resamples."""
        weight, total = self._factor.draw(rng, size)
        weight += self._moments.weight
        total += self._moments.total
        psi = None if self._influence is None else self._influence.draw(rng, weight, total)
        return Totals(weight=weight, total=total, influence=psi)


class _Factor:
    """Square root of the covariance blockdiag(M_c) − v vᵀ / n of the cell totals v = (W, S).

    M_c = ((W2, S2), (S2, Q2)) belongs to independent cells; the rank-one term is what drawing
    exactly n rows takes away. With M = L Lᵀ and a = L⁻¹v, the draw L g − β v (a·g) has that
    covariance when 2β − β²|a|² = 1/n.
    """

    def __init__(self, m: CellMoments) -> None:
        self._l11 = np.sqrt(m.weight2)
        self._l21 = over_or_zero(m.total2, self._l11)
        rest = m.square2 - self._l21**2
        # a cell whose metric is constant has a singular block; rounding must not revive it
        self._l22 = np.sqrt(np.where(rest > 1e-12 * m.square2, rest, 0.0))
        self._a1 = over_or_zero(m.weight, self._l11)
        self._a2 = over_or_zero(m.total - self._l21 * self._a1, self._l22)
        self._v = (m.weight, m.total)
        length = float((self._a1**2 + self._a2**2).sum())
        n = max(float(m.rows.sum()), 1.0)
        # The smaller root of 2β − β²|a|² = 1/n. By Cauchy–Schwarz |a|² ≤ n, up to rounding.
        self._beta = (1 - np.sqrt(max(0.0, 1 - length / n))) / length if length > 0 else 0.0

    def draw(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        g = rng.standard_normal((2, size, self._l11.size))
        common = (self._a1 * g[0] + self._a2 * g[1]).sum(axis=-1, keepdims=True) * self._beta
        total = self._l21 * g[0] + self._l22 * g[1] - self._v[1] * common
        return self._l11 * g[0] - self._v[0] * common, total


class ClusterEngine:
    """Resampling of whole clusters, for rows that are dependent within a cluster."""

    name = "clusters"

    def __init__(self, clusters: ClusterData, cells: int, rows: float) -> None:
        """Prepare the table; ``rows`` is the number of rows n behind a custom target's ψ."""
        if clusters.cluster.size and bool(np.any(np.diff(clusters.cluster) < 0)):
            raise ValueError("entries must be sorted by cluster")
        self._data = clusters
        self._cells = cells
        self._rows = max(rows, 1.0)
        self._number = int(clusters.cluster[-1]) + 1 if clusters.cluster.size else 0

    def draw(self, rng: np.random.Generator, size: int) -> Totals:
        """Totals of ``size`` resamples."""
        d, m = self._data, self._number
        sums = np.zeros((2, size, self._cells))
        psi = None if d.influence is None else np.zeros(size)
        for b in range(size if m else 0):
            # As many clusters as there are; their rows vary in number, as from sample to sample.
            times = np.bincount(rng.integers(0, m, size=m), minlength=m).astype(np.float64)
            drawn = times[d.cluster]
            sums[0, b] = np.bincount(d.cell, drawn * d.weight, minlength=self._cells)
            sums[1, b] = np.bincount(d.cell, drawn * d.total, minlength=self._cells)
            if psi is not None and d.influence is not None:
                # Line 6 of Algorithm 8 of Cherian and Candès, a cluster counting as a row.
                psi[b] = float(((times - 1) * d.influence).sum()) / self._rows
        return Totals(weight=sums[0], total=sums[1], influence=psi)
