"""Measures that are no means: smooth functions of a group's totals, as pivots of the same core.

Every row has a place among a few kinds (the range of its score, its label, its class) and a vector
of numbers. A measure h depends on the totals T of that vector by kind, and not on how many rows
there are: it is homogeneous of degree zero, so that ∇h·T = 0 and the influence of row i on the
measure of its group is w_i ∇h·x_i, centred by itself. A contrast h(G) − f·h(T) of a group and its
target then has, over the disjoint parts that both are made of, the variance Σ γ'S₂γ and the third
moment Σ γγγS₃ with γ = 1_G ∇h(G) − f 1_T ∇h(T), S₂ and S₃ being sums of products of second and
third order. Both are polynomials in f, whose coefficients are all that the tails need.

The area under the curve by ranges of the score is the binned form of DeLong, DeLong and
Clarke-Pearson (1988): pairs within a range count half. Pairs of the sample that a range hides move
the area by at most half their share, and tails allow for that.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from equipoise.methods.hypotheses import Tails
from equipoise.methods.inference.core import Core, core_of
from equipoise.methods.inference.student import (
    LEAST_DEGREES,
    LEAST_ROWS,
    CellDraws,
    LeftOut,
    Spread,
    beyond,
    effective_rows,
    row_spread,
    shape_of,
    student_tails,
    usual_skewness,
)
from equipoise.methods.measures import COARSE, DOUBT, Macro, Measure, OfTable, Totals
from equipoise.methods.numerics import BoolArray, FloatArray, GroupSums, IntArray, over
from equipoise.methods.targets import Comparison, Moments, OfComparison, Status, Target, compare

# --- Groups beside their target ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(Comparison):
    """Groups beside their target by a measure that is no mean."""

    value: FloatArray
    """The measure of each group; NaN where it has none."""
    beside: FloatArray
    """The measure of its target."""
    slopes_own: FloatArray
    """∇h of each group by coarse kinds, ``(K·d, G)``, for the joint law."""
    slopes_other: FloatArray
    """The same of its target."""

    def some(self, chosen: IntArray) -> "Measured":
        """Some of the groups."""
        return replace(
            self,
            parts=self.parts.some(chosen),
            value=self.value[chosen],
            beside=self.beside[chosen],
            slopes_own=self.slopes_own[:, chosen],
            slopes_other=self.slopes_other[:, chosen],
        )

    @property
    def mean(self) -> FloatArray:
        """The measure of each group."""
        return self.value

    @property
    def theta(self) -> FloatArray:
        """The measure of each target, unscaled."""
        return self.beside

    @property
    def status(self) -> IntArray:
        """What sizes, and whether there is a value, say of each group."""
        out = Comparison.status.fget(self)  # type: ignore[attr-defined]
        empty = self.rows <= 0
        gone = np.isnan(self.value) | np.isnan(self.beside)
        known = np.isin(out, (Status.OK, Status.EMPTY, Status.ZERO_TARGET))
        out = np.where(gone & known & ~empty, int(Status.UNDEFINED), out)
        return np.asarray(np.where(empty, int(Status.EMPTY), out), dtype=np.int64)

    def moves(
        self, weight: FloatArray, total: FloatArray, factor: FloatArray, sums: GroupSums
    ) -> FloatArray:
        """First-order moves ``(b, G)`` of the contrast when totals ``(b, K·d, C)`` move so far.

        Moves that were drawn for the groups themselves, ``(b, G)``, are what they are.
        """
        if weight.ndim == 2:
            return weight
        out = np.zeros((weight.shape[0], factor.size))
        for j in range(len(self.slopes_own)):
            own, other = self.both(weight[:, j], sums)
            out += own * self.slopes_own[j] - factor * other * self.slopes_other[j]
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """Variance and third moment of contrasts as polynomials in the factor on the target."""

    square: FloatArray
    """Coefficients of 1, −2f and f², by part and side, ``(3, P, S, G)``."""
    cube: FloatArray
    """Coefficients of 1, −3f, 3f² and −f³, ``(4, G)``."""
    size: FloatArray
    """Rows that each side of each part is worth, ``(P, S, G)``."""
    shape: float
    """Skewness of the influence of single rows, over everybody."""
    found: Comparison
    """Groups beside their target."""

    def some(self, chosen: IntArray) -> "Forms":
        """Some of the groups."""
        return replace(
            self,
            square=self.square[..., chosen],
            cube=self.cube[:, chosen],
            size=self.size[..., chosen],
            found=self.found.some(chosen),
        )

    def spread(self, factor: FloatArray) -> Spread:
        """Spread of the contrast at a factor."""
        about = self.about(factor)
        enough = self.size > 1
        each = np.where(enough, about * self.size / np.where(enough, self.size - 1, 1.0), 0.0)
        variance = each.sum(axis=(0, 1))
        loss = (each**2 / np.where(enough, self.size - 1, 1.0)).sum(axis=(0, 1))
        degrees = np.divide(variance**2, loss, out=np.full_like(variance, np.inf), where=loss > 0)
        alone = ((about > 0) & ~enough).any(axis=(0, 1))
        f = factor
        c = self.cube
        third = c[0] - 3 * f * c[1] + 3 * f**2 * c[2] - f**3 * c[3]
        skew = np.divide(third, variance**1.5, out=np.zeros_like(variance), where=variance > 0)
        return Spread(
            variance=variance,
            skewness=skew,
            usual=usual_skewness(self.shape, self.found, factor, about.sum(axis=1)),
            degrees=np.where(alone, 0.0, degrees),
        )

    def about(self, factor: FloatArray) -> FloatArray:
        """Σ u² by part and side."""
        one, two, three = self.square
        return np.asarray(np.maximum(one - 2 * factor * two + factor**2 * three, 0.0))


Spreads = Forms | LeftOut


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurePivot(OfComparison):
    """p-values of disparities in a measure that is no mean."""

    comparison: Comparison
    """Groups beside their target."""
    spreads: Spreads
    """How far contrasts can stray."""
    slack: FloatArray
    """How much group, and target, may be too high and too low: ``(4, G)``."""

    @property
    def error(self) -> FloatArray:
        """Standard error of the disparity."""
        found = self.comparison
        factor = found.factor(np.where(np.isfinite(self.estimate), self.estimate, 1.0))
        unit = found.target.scale * found.theta if found.relative else 1.0
        wide = np.sqrt(self.spreads.spread(factor).variance) + self.slack.sum(axis=0)
        return np.asarray(wide / np.maximum(np.abs(np.nan_to_num(unit)), 1e-300))

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """Chances, if the disparity were this, of an estimate as high, and as low, as was seen."""
        found = self.comparison.some(chosen)
        factor = found.factor(disparity)
        spread = self.spreads.some(chosen).spread(factor)
        gap = found.mean - factor * found.theta - (0.0 if found.relative else disparity)
        high, low, target_high, target_low = self.slack[:, chosen]
        size = np.abs(factor)
        up, _ = student_tails(gap - high - size * target_low, spread)
        _, down = student_tails(gap + low + size * target_high, spread)
        return up, down


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureDraws:
    """Moves of totals by kind when rows are independent."""

    root: FloatArray
    """Square root of the second moments, ``(C, K, d, d)``."""
    forms: Forms
    """Of the coarse kinds."""

    def draw(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Normal moves of Σ w x, ``(size, K·d, C)``, twice."""
        cells, kinds, d, _ = self.root.shape
        free = rng.standard_normal((size, cells, kinds, d))
        moved = np.einsum("ckij,bckj->bkic", self.root, free).reshape(size, kinds * d, cells)
        return moved, moved

    def variance(self, found: Comparison, factor: FloatArray, sums: GroupSums) -> FloatArray:
        """Variance of each group's move."""
        return np.asarray(self.forms.about(factor).sum(axis=(0, 1)))


MOST_JOINED = 400
"""Groups whose covariances are worked out; more are drawn by the moves of cells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDraws:
    """Moves of the groups themselves, by their covariances."""

    root: FloatArray
    """A square root of the covariances of all groups, ``(G, G)``."""

    def draw(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Normal moves ``(size, G)``, twice."""
        moved = rng.standard_normal((size, len(self.root))) @ self.root.T
        return moved, moved

    def variance(self, found: Comparison, factor: FloatArray, sums: GroupSums) -> FloatArray:
        """Variance of each group's move."""
        return np.asarray((self.root**2).sum(axis=1))


def row_moves(
    coarse: Totals, forms: Forms, found: Measured, factor: FloatArray, sums: GroupSums
) -> "MeasureDraws | GroupDraws":
    """Moves when rows are independent."""
    draws = MeasureDraws(root=_roots(coarse), forms=forms)
    groups = factor.size
    if groups > MOST_JOINED:
        return draws
    cells, kinds, d, _ = draws.root.shape
    own, other = found.both(np.eye(cells), sums)
    slopes = [x.reshape(kinds, d, groups) for x in (found.slopes_own, found.slopes_other)]
    covariance = np.zeros((groups, groups))
    for c in range(cells):
        moved = own[c] * slopes[0] - factor * other[c] * slopes[1]
        each = np.einsum("kij,kig->kjg", draws.root[c], moved).reshape(kinds * d, groups)
        covariance += each.T @ each
    value, vector = np.linalg.eigh(covariance)
    return GroupDraws(root=vector * np.sqrt(np.maximum(value, 0.0)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KindClusters:
    """Totals by cluster, cell and kind, one entry each."""

    cluster: IntArray
    """Cluster of each entry, numbered from 0."""
    cell: IntArray
    """Cell of each entry."""
    kind: IntArray
    """Kind of each entry."""
    first: FloatArray
    """Σ w x of the entry, ``(d, E)``."""
    weight: FloatArray
    """Σ w of the entry."""

    @property
    def number(self) -> int:
        """Number of clusters."""
        return int(self.cluster.max()) + 1 if self.cluster.size else 0


class KindClusterDraws:
    """Moves of totals by kind when whole clusters come and go."""

    def __init__(self, clusters: KindClusters, place: IntArray, shape: tuple[int, ...]) -> None:
        """Arrange the sums of coarse kinds as (kind, cell) × clusters."""
        kinds, d, cells = self._shape = shape
        where = [((place[clusters.kind] * d + i) * cells + clusters.cell) for i in range(d)]
        at = (np.concatenate(where), np.tile(clusters.cluster, d))
        values = clusters.first.reshape(-1)
        size = (kinds * d * cells, clusters.number)
        self._sums = sparse.csr_array((values, at), shape=size)

    def draw(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Every cluster's totals times a normal of its own."""
        kinds, d, cells = self._shape
        times = rng.standard_normal((self._sums.shape[1], size))
        moved = np.asarray((self._sums @ times).T).reshape(size, kinds * d, cells)
        return moved, moved

    def variance(self, found: Comparison, factor: FloatArray, sums: GroupSums) -> FloatArray:
        """Sum of the squared moves that single clusters make."""
        kinds, d, cells = self._shape
        about = np.zeros(factor.size)
        for start in range(0, self._sums.shape[1], 256):
            block = np.asarray(self._sums[:, start : start + 256].todense()).T
            moved = block.reshape(-1, kinds * d, cells)
            about += (found.moves(moved, moved, factor, sums) ** 2).sum(axis=0)
        return about


def measure_core(
    cells: Moments,
    totals: Totals,
    measure: Measure,
    target: Target,
    sums: GroupSums,
    *,
    relative: bool,
    clusters: KindClusters | None = None,
) -> Core:
    """The core of a measure that is no mean, from totals by kind.

    >>> from equipoise.methods.measures import Area, counted_totals
    >>> from equipoise.methods.targets import Constant, plain_moments
    >>> counts = np.array([[30.0], [10.0], [10.0], [30.0]])
    >>> place = np.array([0, 1, 0, 1])
    >>> totals = counted_totals((counts,) * 3, np.array([0, 0, 1, 1]), place)
    >>> cells = plain_moments(*[np.array([80.0])], *[np.array([40.0])] * 3)
    >>> core = measure_core(
    ...     cells, totals, Area(), Constant(value=0.5), lambda x: x, relative=False
    ... )
    >>> core.comparison.estimate.tolist(), bool(core.tails(0.0)[0][0] < 1e-4)
    ([0.25], True)
    """
    plain = compare(cells, target, sums, relative=relative)
    coarse, place = totals.merged(COARSE)
    own, other, forms = _contrast(coarse, measure, plain, sums, 0.0)
    value, beside, second, t = _values(totals, measure, plain, sums)
    kinds = coarse.first.shape[0] * coarse.first.shape[1]
    found = Measured(
        target=target,
        relative=relative,
        parts=plain.parts,
        value=value,
        beside=beside,
        slopes_own=own.reshape(kinds, -1),
        slopes_other=other.reshape(kinds, -1),
    )
    mine, theirs, fine = _contrast(totals, measure, found, sums, _shape(totals, measure))
    matters = _matters(mine, totals.side), _matters(theirs, totals.side)
    factor = found.factor(np.where(np.isfinite(found.estimate), found.estimate, 1.0))
    spreads: Spreads = fine
    a, b = _members(found)
    worth = tuple(np.tensordot(x, fine.size, 1) for x in (a, b))
    if clusters is not None:
        left_out, many = left_out_kinds(clusters, totals, measure, found, sums)
        spreads = left_out.shaped(factor)
        if totals.side.any():
            # of a side people who come together are worth no more than one
            worth = tuple(np.minimum(x, y) for x, y in zip(worth, many, strict=True))
    pivot = MeasurePivot(comparison=found, spreads=spreads, slack=_slack(measure, t, second, found))
    spread = spreads.spread(factor)
    status = _unsure(
        found, fine, worth, matters, spread, measure.least, clustered=clusters is not None
    )
    rows = np.minimum(found.rows, fine.size.sum(axis=(0, 1)))
    if clusters is None:
        at = found.factor(np.clip(np.nan_to_num(found.estimate, nan=1.0), -1e6, 1e6))
        draws: CellDraws = row_moves(coarse, forms, found, at, sums)
    else:
        draws = KindClusterDraws(clusters, place, coarse.first.shape)
        rows = np.minimum(rows, spread.degrees + 1)
    return Core(
        comparison=found,
        pivot=pivot,
        status=status,
        spread=spread,
        reach=spread.reach,
        outcomes=rows,
        cells=draws,
        sums=sums,
        counted=False,
    )


def _sums_of(x: FloatArray, found: Comparison, sums: GroupSums) -> FloatArray:
    """Sums over the parts of every group, ``(P, …, G)``."""
    flat = found.target.parts(x.reshape(-1, x.shape[-1]), sums)
    return flat.reshape(flat.shape[0], *x.shape[:-1], flat.shape[-1])


def _members(found: Comparison) -> tuple[FloatArray, FloatArray]:
    return found.in_group[:, 0], found.in_target[:, 0]


def _values(
    totals: Totals, measure: Measure, found: Comparison, sums: GroupSums
) -> tuple[FloatArray, FloatArray, tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """The measure of groups and targets, with their sums of second and of first order."""
    a, b = _members(found)
    first = _sums_of(totals.first, found, sums)
    second = _sums_of(totals.second, found, sums)
    t = (np.tensordot(a, first, 1), np.tensordot(b, first, 1))
    squares = (np.tensordot(a, second, 1), np.tensordot(b, second, 1))
    value, _ = measure.value(t[0], totals)
    if found.target.estimated:
        beside, _ = measure.value(t[1], totals)
    else:
        beside = np.full(value.shape, found.target.number)
    return value, beside, squares, t


def _contrast(
    totals: Totals, measure: Measure, found: Comparison, sums: GroupSums, shape: float
) -> tuple[FloatArray, FloatArray, Forms]:
    """Gradients of groups and targets, and the polynomials of their contrasts."""
    a, b = _members(found)
    first = _sums_of(totals.first, found, sums)
    own = measure.value(np.tensordot(a, first, 1), totals)[1]
    other = np.zeros_like(own)
    if found.target.estimated:
        other = measure.value(np.tensordot(b, first, 1), totals)[1]
    second, third = (_sums_of(x, found, sums) for x in (totals.second, totals.third))
    sides = int(totals.side.max()) + 1
    parts, groups = second.shape[0], own.shape[-1]
    square = np.zeros((3, parts, sides, groups))
    size = np.zeros((parts, sides, groups))
    weight, weight2 = (_sums_of(x, found, sums) for x in (totals.weight, totals.weight2))
    pairs = ((own, own, a * a), (own, other, a * b), (other, other, b * b))
    for s in range(sides):
        here = totals.side == s
        size[:, s] = effective_rows(weight[:, here].sum(axis=1), weight2[:, here].sum(axis=1))
        for i, (x, y, times) in enumerate(pairs):
            form = np.einsum("kig,pkijg,kjg->pg", x[here], second[:, here], y[here], optimize=True)
            square[i, :, s] = times[:, None] * form
    cube = np.zeros((4, groups))
    for i, trio in enumerate(((own,) * 3, (own, own, other), (own, other, other), (other,) * 3)):
        times = a ** (3 - i) * b**i if 0 < i < 3 else (a if i == 0 else b)
        pulled = np.tensordot(times, third, 1)
        cube[i] = np.einsum("kig,kjg,klg,kijlg->g", *trio, pulled, optimize=True)
    if isinstance(measure, OfTable | Macro):
        for which, power, slope, member in ((0, 0, own, a), (2, 3, other, b)):
            for s in range(sides):
                here = slope[totals.side == s, 0]
                # what a few rows do not show may well be there: as if DOUBT more rows had shown it
                rows = DOUBT / max(len(here), 1)
                worth = member[:, None] * size[:, s]
                share = np.nan_to_num(over(worth, worth.sum(axis=0)))
                square[which, :, s] += rows * share * (here**2).sum(axis=0)
                cube[power] += rows * (here**3).sum(axis=0)
    return own, other, Forms(square=square, cube=cube, size=size, shape=shape, found=found)


def _shape(totals: Totals, measure: Measure) -> float:
    """Skewness of the influence that single rows have on the measure of everybody."""
    t, second, third = (
        x.sum(axis=-1, keepdims=True) for x in (totals.first, totals.second, totals.third)
    )
    slope = measure.value(t, totals)[1]
    square = float(np.einsum("kig,kijg,kjg->", slope, second, slope))
    cube = float(np.einsum("kig,kjg,klg,kijlg->", slope, slope, slope, third))
    sizes = (x.sum(keepdims=True) for x in (totals.weight, totals.weight2))
    number = float(effective_rows(*sizes).sum())
    if not square > 0 or not number > 0:
        return 0.0
    return beyond(cube / square**1.5 * np.sqrt(number), 6 / number)


def _slack(
    measure: Measure,
    t: tuple[FloatArray, FloatArray],
    second: tuple[FloatArray, FloatArray],
    found: Comparison,
) -> FloatArray:
    own = measure.slack(t[0], second[0])
    other = measure.slack(t[1], second[1])
    if not found.target.estimated:
        other = (np.zeros_like(own[0]), np.zeros_like(own[0]))
    return np.stack([*own, *other])


def _matters(slope: FloatArray, side: IntArray) -> BoolArray:
    """On which sides a measure depends at all, ``(S, G)``."""
    moved = (slope != 0).any(axis=1)
    return np.stack([moved[side == s].any(axis=0) for s in range(int(side.max()) + 1)])


def _unsure(
    found: Measured,
    forms: Forms,
    worth: tuple[FloatArray, ...],
    matters: tuple[BoolArray, BoolArray],
    spread: Spread,
    least: float,
    *,
    clustered: bool,
) -> IntArray:
    """Groups about whose spread too little is known."""
    status = found.status.copy()
    ok = status == Status.OK
    a, b = _members(found)
    own, other = worth
    # a side on which nothing depends may be empty; one whose rows are all alike may not be small
    few = np.where(matters[0], own, np.inf).min(axis=0) < least
    if clustered:
        few |= (matters[0] & ~(np.tensordot(a, forms.square[0], 1) > 0)).any(axis=0)
    if found.target.estimated:
        few |= np.where(matters[1], other, np.inf).min(axis=0) < least
        few |= (b[:, None, None] * forms.size).sum(axis=(0, 1)) < LEAST_ROWS
    few |= own.sum(axis=0) < LEAST_ROWS
    # what rounding leaves of rows that are all alike is no spread
    rounding = 1e-18 * np.nan_to_num(found.value) ** 2
    still = np.tensordot(a, forms.square[0], 1).sum(axis=0)
    status[ok & ~(np.minimum(spread.variance, still) > rounding)] = Status.CONSTANT
    status[ok & few] = Status.FEW_ROWS
    if clustered:
        status[ok & ~few & (spread.degrees < LEAST_DEGREES)] = Status.FEW_CLUSTERS
    return np.asarray(status, dtype=np.int64)


def _roots(totals: Totals) -> FloatArray:
    """Square roots of the second moments of every cell and kind, ``(C, K, d, d)``."""
    moments = np.moveaxis(totals.second, -1, 0)
    value, vector = np.linalg.eigh(moments)
    return np.asarray(vector * np.sqrt(np.maximum(value, 0.0))[..., None, :])


def left_out_kinds(
    clusters: KindClusters,
    totals: Totals,
    measure: Measure,
    found: Comparison,
    sums: GroupSums,
) -> tuple[LeftOut, tuple[FloatArray, ...]]:
    """What leaving out whole clusters does to groups and targets, to first order.

    Beside it how many clusters each side of a group, and of its target, is worth, ``(S, G)``.
    """
    cells = totals.first.shape[-1]
    own_cells, other_cells = found.both(np.eye(cells), sums)
    a, b = _members(found)
    first = _sums_of(totals.first, found, sums)
    groups, number = own_cells.shape[1], clusters.number
    powers = [np.zeros((k + 1, groups)) for k in (2, 3, 4)]
    sizes, blank = np.zeros((5, groups)), np.zeros(groups)
    sides = int(totals.side.max()) + 1
    worth = np.zeros((2, sides, groups))
    estimated = found.target.estimated
    slopes = (
        measure.value(np.tensordot(a, first, 1), totals)[1],
        measure.value(np.tensordot(b, first, 1), totals)[1] if estimated else None,
    )
    for g in range(groups):
        moves, shares = [], []
        for which, (member, slope) in enumerate(zip((own_cells, other_cells), slopes, strict=True)):
            here = member[clusters.cell, g]
            weight = np.bincount(clusters.cluster, clusters.weight * here, number)
            share = np.nan_to_num(weight / max(float(weight.sum()), 1e-300))
            blank[g] += bool((share > 1 - 1e-9).any()) and slope is not None
            if slope is None:
                moves.append(np.zeros(number))
                shares.append(np.zeros(number))
                continue
            each = (slope[clusters.kind, :, g].T * clusters.first).sum(axis=0) * here
            moved = np.bincount(clusters.cluster, each, number)
            moves.append(-moved / np.maximum(1 - share, 1e-9))
            shares.append(share**2)
            for s in range(sides):
                kinds = totals.side == s
                inside = clusters.weight * here * kinds[clusters.kind]
                by_side = np.bincount(clusters.cluster, inside, number)
                every, square = float(by_side.sum()), float((by_side**2).sum())
                worth[which, s, g] = size = every**2 / square if square > 0 else 0.0
                if isinstance(measure, OfTable | Macro) and size > 0:
                    # as if DOUBT more clusters of the usual size had shown what none did
                    for k, out in zip((2, 3, 4), powers, strict=True):
                        moving = (-slope[kinds, 0, g] * every / size) ** k
                        out[k if which else 0, g] += DOUBT * float(moving.mean())
        u, t = moves
        for k, out in zip((2, 3, 4), powers, strict=True):
            for i in range(k + 1):
                out[i, g] += (u ** (k - i) * t**i).sum()
        own, other = shares
        each_size = (own, other, own * own, own * other, other * other)
        sizes[:, g] = [z.sum() for z in each_size]
    return LeftOut(powers=tuple(powers), sizes=sizes, clusters=number, blank=blank), tuple(worth)


# --- Means in units of everybody's standard deviation ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled(Comparison):
    """Groups beside their target by means over the standard deviation of all rows."""

    raw: Comparison
    """The means themselves."""
    sd: float
    """The standard deviation."""

    def some(self, chosen: IntArray) -> "Scaled":
        """Some of the groups."""
        raw = self.raw.some(chosen)
        return replace(self, parts=raw.parts, raw=raw)

    @property
    def mean(self) -> FloatArray:
        """The mean of each group, in standard deviations."""
        return self.raw.mean / self.sd

    @property
    def theta(self) -> FloatArray:
        """That of its target; a number is one of standard deviations already."""
        return self.raw.theta / self.sd if self.target.estimated else self.raw.theta

    def moves(
        self, weight: FloatArray, total: FloatArray, factor: FloatArray, sums: GroupSums
    ) -> FloatArray:
        """Moves of the means: those of the standard deviation are the same for all."""
        return self.raw.moves(weight, total, factor, sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledPivot(OfComparison):
    """p-values of standardised mean differences: of d − δσ, both estimated from the same rows."""

    comparison: Scaled
    """Groups beside their target."""
    shape: float
    """Skewness of all rows together."""
    common: FloatArray
    """Σ w² {1, L, L²} ((L − μ)² − σ²)/(2σW) over the parts, ``(2, P, G)``: of w and of w L."""
    variance: float
    """Variance of the standard deviation."""

    @property
    def error(self) -> FloatArray:
        """Standard error of the disparity."""
        at = np.where(np.isfinite(self.estimate), self.estimate, 0.0)
        found = self.comparison
        spread, _ = self._spread(at, np.arange(at.size))
        unit = np.abs(found.target.scale * found.theta) if found.relative else np.ones_like(at)
        return np.asarray(np.sqrt(spread.variance) / found.sd / np.maximum(unit, 1e-300))

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """Chances, if the disparity were this, of an estimate as high, and as low, as was seen."""
        spread, times = self._spread(disparity, chosen)
        raw, sd = self.comparison.raw.some(chosen), self.comparison.sd
        factor = raw.factor(disparity)
        theta = factor * raw.theta if raw.target.estimated else 0.0
        return student_tails(raw.mean - theta - times * sd, spread)

    def _spread(self, disparity: FloatArray, chosen: IntArray) -> tuple[Spread, FloatArray]:
        """Spread of mean − f·target − k·σ, and k."""
        raw = self.comparison.raw.some(chosen)
        factor = raw.factor(disparity)
        times = np.zeros_like(disparity) if raw.relative else disparity.copy()
        if not raw.target.estimated:
            times = times + factor * raw.target.number
        spread = row_spread(raw, factor, self.shape)
        rates = np.nan_to_num(over(raw.parts.total, raw.parts.weight))
        slope, level = raw.slopes(factor), raw.intercepts(factor, rates)
        one, two = self.common[:, :, chosen]
        shared = (slope * two - level * one).sum(axis=0)
        variance = spread.variance - 2 * times * shared + times**2 * self.variance
        least = 1e-3 * spread.variance
        ratio = np.sqrt(np.nan_to_num(over(spread.variance, np.maximum(variance, least)), nan=1.0))
        return replace(
            spread, variance=np.maximum(variance, least), skewness=spread.skewness * ratio**3
        ), times


def scaled_core(
    cells: Moments, powers: FloatArray, target: Target, sums: GroupSums, *, relative: bool
) -> Core | None:
    """The core of standardised means; None where numbers lie too far from zero for their spread.

    ``powers`` are Σ w² Lᵏ of the cells for k = 0 … 4, ``(5, C)``.
    """
    core = core_of(cells, target, sums, relative=relative, zero_one=False, weighted=True)
    raw = core.comparison
    every = float(cells.weight.sum())
    sizes = (x.sum(keepdims=True) for x in (cells.weight, cells.weight2))
    size = float(effective_rows(*sizes)[0])
    mu = float(cells.total.sum()) / max(every, 1e-300)
    n2, s1, s2, s3, s4 = powers.sum(axis=-1)
    # by squared weights throughout; without weights they are the plain moments
    var = max(float(cells.square2.sum()) - 2 * mu * float(cells.total2.sum()) + mu**2 * n2, 0.0)
    var = var / max(n2, 1e-300)
    plain = _central(cells, mu, every)
    var = plain if plain is not None else var
    fourth = s4 - 4 * mu * s3 + 6 * mu**2 * s2 - 4 * mu**3 * s1 + mu**4 * n2
    if not var > 1e-7 * mu**2 or not fourth > 1e-7 * mu**4 * n2:
        return None
    sd = float(np.sqrt(var * size / max(size - 1, 1.0)))
    centred = [powers[k + 2] - 2 * mu * powers[k + 1] + (mu**2 - var) * powers[k] for k in (0, 1)]
    common = np.stack([target.parts(x, sums) for x in centred]) / (2 * sd * every)
    square = fourth - 2 * var * (s2 - 2 * mu * s1 + mu**2 * n2) + var**2 * n2
    scaled = Scaled(target=target, relative=relative, parts=raw.parts, raw=raw, sd=sd)
    pivot = ScaledPivot(
        comparison=scaled,
        shape=shape_of(cells),
        common=common,
        variance=max(float(square), 0.0) / (4 * sd**2 * every**2),
    )
    return replace(core, comparison=scaled, pivot=pivot)


def _central(cells: Moments, mu: float, every: float) -> float | None:
    """The variance by plain weights where there are none."""
    if cells.weight is not cells.rows:
        return None
    return max(float(cells.square2.sum()) / max(every, 1e-300) - mu**2, 0.0)


# --- Where groups are joined as if independent ---


class NoDraws:
    """Moves of nothing: every score is drawn for itself."""

    def __init__(self, groups: int, cells: int) -> None:
        """Remember how many groups there are, and how many numbers are asked for."""
        self._groups, self._cells = groups, cells

    def draw(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Nothing, so many times."""
        none = np.zeros((size, self._cells))
        return none, none

    def variance(self, found: Comparison, factor: FloatArray, sums: GroupSums) -> FloatArray:
        """None, which says that scores are drawn for themselves."""
        return np.zeros(self._groups)


def not_judged(groups: int) -> Spread:
    """The spread of groups that are not judged by any."""
    zero = np.zeros(groups)
    return Spread(
        variance=zero, skewness=zero, usual=np.zeros((2, groups)), degrees=np.full(groups, np.inf)
    )
