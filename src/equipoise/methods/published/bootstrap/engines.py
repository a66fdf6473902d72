"""The resampling engines: exact from 0/1 cells, exact from rows, normal from moments, clusters."""

import numpy as np

from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.published.bootstrap.data import CellMoments, ClusterData, RowData, Totals
from equipoise.methods.targets import InfluenceSums

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
# ---


class BinaryEngine:
    """Exact resampling of an unweighted 0/1 metric.

    Drawing n rows with replacement is one multinomial over cell × {0, 1}, so the cost does not
    depend on n.
    """

    name = "exact"
    has_spread = True

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
    has_spread = True

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
    has_spread = False

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
        self._l21 = _over(m.total2, self._l11)
        rest = m.square2 - self._l21**2
        # a cell whose metric is constant has a singular block; rounding must not revive it
        self._l22 = np.sqrt(np.where(rest > 1e-12 * m.square2, rest, 0.0))
        self._a1 = _over(m.weight, self._l11)
        self._a2 = _over(m.total - self._l21 * self._a1, self._l22)
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


def _over(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Quotient, zero where the divisor is."""
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


class ClusterEngine:
    """Resampling of whole clusters, for rows that are dependent within a cluster."""

    name = "clusters"
    has_spread = False

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
