"""Disparities given factors, from rows: what is left of outcome and membership, side by side.

Of every row two things are predicted from its factors, without the row itself: its outcome, and
whether it belongs to the group. Errors of these predictions reach the disparity only as products
(orthogonal scores; Robinson 1988, Robins and Rotnitzky 1995, Chernozhukov and others 2018), so that
models from other folds may be rough. With factors that form strata the predictions are the means of
the strata, and Mantel and Haenszel's gap comes out, for real outcomes, weights and clusters too.

Every row has a score whose mean is zero at the true disparity. Leaving out rows, or whole clusters,
shows how far the disparity can stray.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from equipoise.methods.inference.core import ClusterPivot, Core
from equipoise.methods.inference.strata import Weights
from equipoise.methods.inference.student import LEAST_DEGREES, LEAST_ROWS, LeftOut, effective_rows
from equipoise.methods.numerics import BoolArray, FloatArray, GroupSums, IntArray, over
from equipoise.methods.targets import Comparison, Moments, Reference, Status, Target

LEAST_CHANCE = 0.01
"""Chances of belonging to a group nearer to 0 or 1 are taken to be this far away from it."""
LEAST_INFORMATION = 5.0
"""Rows' worth of people whose membership their factors leave open; below, there is no overlap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """Rows of a group and of those it is compared with, and what their factors say of each."""

    member: BoolArray
    """Whether the row is of the group."""
    outcome: FloatArray
    """The metric."""
    weight: FloatArray
    """Sampling weight."""
    chance: FloatArray
    """Chance that a row with these factors is of the group."""
    own: FloatArray
    """Mean outcome of the group's rows with these factors; all rows' for overlap weights."""
    others: FloatArray
    """Mean outcome of the others with these factors; all rows' for overlap weights."""
    leverage: FloatArray | None = None
    """Share of each row in its own prediction, where that is a mean it is part of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GapScores:
    """One group's disparity, and what every row does to it."""

    gap: float
    """The disparity."""
    level: float
    """The group's mean, weighed as the disparity weighs people."""
    influence: FloatArray
    """What leaving out each row takes from the disparity."""
    share: FloatArray
    """Share of each row in what is known."""
    information: float
    """How many rows' worth of people factors leave open: Σ e(1 − e)."""
    smallest: float
    """The smallest chance of either side, before it was held away from zero."""
    constant: bool
    """Whether all that is compared of one side is alike, so that nothing tells how it varies."""


def scores(rows: Predicted, kind: Weights) -> GapScores:
    """The disparity between a group and others who share its factors.

    With overlap weights (`MANTEL_HAENSZEL`) people count by how open their factors leave whether
    they are of the group, e(1 − e), which needs no division by chances.

    >>> rng = np.random.default_rng(1)
    >>> x = rng.random(4000)
    >>> member = rng.random(4000) < 0.2 + 0.6 * x
    >>> y = x + 0.1 * member
    >>> rows = Predicted(
    ...     member=member, outcome=y, weight=np.ones(4000), chance=0.2 + 0.6 * x,
    ...     own=x + 0.1, others=x,
    ... )
    >>> bool(y[member].mean() - y[~member].mean() > 0.25)
    True
    >>> round(scores(rows, Weights.POPULATION).gap, 6)
    0.1
    """
    a, y, w = rows.member.astype(np.float64), rows.outcome, rows.weight
    raw = np.minimum(rows.chance, 1 - rows.chance)
    if kind is Weights.MANTEL_HAENSZEL:
        open_, rest = a - rows.chance, y - rows.own
        unit, each = w * open_**2, w * open_ * rest
    else:
        e = np.clip(rows.chance, LEAST_CHANCE, 1 - LEAST_CHANCE)
        if kind is Weights.GROUP:
            unit = w * a
            each = w * (a - (1 - a) * e / (1 - e)) * (y - rows.others)
        else:
            unit = w.copy()
            each = w * (
                rows.own - rows.others
                + a / e * (y - rows.own) - (1 - a) / (1 - e) * (y - rows.others)
            )  # fmt: skip
    whole = max(float(unit.sum()), 1e-300)
    gap = float(each.sum()) / whole
    share = unit / whole
    left = np.maximum(1 - share - (0.0 if rows.leverage is None else rows.leverage), 0.0)
    # a residual from a mean that the row is part of is too small, by a root on average; by all that
    # leaving it out would do where the means of single sides are used, which may be one row, and
    # where weights differ: the heavy rows that make the mean may be heavy for what their outcome is
    alike = bool((w == w.max(initial=0.0)).all())
    kept = np.sqrt(left) if kind is Weights.MANTEL_HAENSZEL and alike else left
    influence = np.where(kept > 1e-6, (each - gap * unit) / whole / np.maximum(kept, 1e-6), 0.0)
    if kind is not Weights.MANTEL_HAENSZEL and rows.leverage is not None:
        influence += _alone(rows, kind, kept) / whole
    return GapScores(
        gap=gap,
        level=_level(rows, kind),
        influence=influence,
        share=share,
        information=float((rows.chance * (1 - rows.chance)).sum()),
        smallest=float(raw.min(initial=0.5)),
        constant=_constant(rows),
    )


def _constant(rows: Predicted) -> bool:
    """Whether either side shows no spread among the rows that are compared.

    None of fifteen is no proof that the rate is zero; the other side's spread says nothing of it.
    """
    compared = (rows.weight > 0) & (rows.chance > 0) & (rows.chance < 1)
    sides = (rows.outcome[compared & side] for side in (rows.member, ~rows.member))
    return any(bool(side.size) and bool((side == side[0]).all()) for side in sides)


def _alone(rows: Predicted, kind: Weights, kept: FloatArray) -> FloatArray:
    """What rows do that are alone on their side of a stratum, and so are their own mean.

    Nothing is left of their outcomes, though they vary as others' do: by as much as is left of
    those on the same side, up and down in turn.
    """
    e = np.clip(rows.chance, LEAST_CHANCE, 1 - LEAST_CHANCE)
    out = np.zeros(rows.outcome.size)
    sides = [(~rows.member, rows.others, e / (1 - e) if kind is Weights.GROUP else 1 / (1 - e))]
    if kind is Weights.POPULATION:
        sides.append((rows.member, rows.own, 1 / e))
    for side, mean, times in sides:
        used = side & (rows.weight > 0)
        alone, known = np.flatnonzero(used & (kept <= 1e-6)), used & (kept > 1e-6)
        rest = (rows.outcome - mean)[known] ** 2 / np.maximum(1 - _share(rows)[known], 1e-6)
        if alone.size:
            spread = float(np.average(rest)) if known.any() else float(np.var(rows.outcome))
            sign = np.where(np.arange(alone.size) % 2, -1.0, 1.0)
            out[alone] = sign * rows.weight[alone] * times[alone] * np.sqrt(spread)
    return out


def _share(rows: Predicted) -> FloatArray:
    """Share of each row in its own prediction."""
    return np.zeros(rows.outcome.size) if rows.leverage is None else rows.leverage


def _level(rows: Predicted, kind: Weights) -> float:
    e = np.clip(rows.chance, LEAST_CHANCE, 1 - LEAST_CHANCE)
    times = {
        Weights.MANTEL_HAENSZEL: 1 - rows.chance,
        Weights.GROUP: np.ones_like(e),
        Weights.POPULATION: 1 / e,
    }[kind]
    weight = rows.weight * rows.member * times
    return float((weight * rows.outcome).sum() / max(float(weight.sum()), 1e-300))


def strata_means(
    member: BoolArray, outcome: FloatArray, weight: FloatArray, place: IntArray, kind: Weights
) -> Predicted:
    """Predictions by the means of strata, in which every row takes part itself."""
    number = int(place.max(initial=-1)) + 1

    def added(x: FloatArray) -> FloatArray:
        return np.bincount(place, x, number).astype(np.float64)

    every = added(weight)
    chance = np.nan_to_num(over(added(weight * member), every))[place]
    both = np.nan_to_num(over(added(weight * outcome), every))[place]
    if kind is Weights.MANTEL_HAENSZEL:
        return Predicted(
            member=member, outcome=outcome, weight=weight, chance=chance, own=both, others=both,
            leverage=np.nan_to_num(over(weight, every[place])),
        )  # fmt: skip
    sides, leverage = [], np.zeros(outcome.size)
    for side in (member, ~member):
        here = added(weight * side)
        mean = over(added(weight * side * outcome), here)[place]
        # a side without rows in a stratum is left out below, with the stratum
        sides.append(np.where(np.isnan(mean), both, mean))
        if kind is Weights.POPULATION or side is not member:
            # the group's weights compare its rows with the others' means, of which they are no part
            leverage = np.where(side, np.nan_to_num(over(weight, here[place])), leverage)
    shared = (chance > 0) & (chance < 1)
    return Predicted(
        member=member, outcome=outcome, weight=np.where(shared, weight, 0.0), chance=chance,
        own=sides[0], others=sides[1], leverage=leverage,
    )  # fmt: skip


# --- All groups beside their targets, given the factors ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual(Comparison):
    """Groups beside others who share their factors; means are those of the people compared."""

    gap: FloatArray
    """Each group's disparity; NaN where there is none."""
    level: FloatArray
    """Each group's mean."""
    state: IntArray
    """Why a group has no answer."""
    information: FloatArray
    """How many rows' worth of people factors leave open."""
    smallest: FloatArray
    """The smallest chance of either side."""

    def some(self, chosen: IntArray) -> "Residual":
        """Some of the groups."""
        names = ("gap", "level", "state", "information", "smallest")
        arrays = {name: getattr(self, name)[chosen] for name in names}
        return replace(self, parts=self.parts.some(chosen), **arrays)

    @property
    def mean(self) -> FloatArray:
        """The group's mean, weighed as the disparity weighs people."""
        return self.level

    @property
    def theta(self) -> FloatArray:
        """What others with the same factors have."""
        return np.asarray(self.level - self.gap)

    @property
    def status(self) -> IntArray:
        """Why a group has no answer."""
        return self.state

    def moves(
        self, weight: FloatArray, total: FloatArray, factor: FloatArray, sums: GroupSums
    ) -> FloatArray:
        """Moves are drawn for the groups themselves."""
        return total


class ScoreDraws:
    """Joint moves of all groups' disparities, with the covariance of their scores."""

    def __init__(self, covariance: FloatArray) -> None:
        """Take the covariance of the disparities, ``(G, G)``."""
        values, vectors = np.linalg.eigh(covariance)
        self._root = vectors * np.sqrt(np.maximum(values, 0.0))
        self._variance = np.diag(covariance)

    def draw(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Moves ``(size, G)``, twice: nothing is known of weights apart from totals."""
        moved = rng.standard_normal((size, self._root.shape[1])) @ self._root.T
        return moved, moved

    def variance(self, found: Comparison, factor: FloatArray, sums: GroupSums) -> FloatArray:
        """Variance of each group's move."""
        return np.asarray(self._variance)


def unit_moves(influence: FloatArray, unit: IntArray | None, units: int) -> FloatArray:
    """Sums of what rows do, ``(n, G)``, over the clusters they belong to."""
    if unit is None:
        return influence
    columns = [np.bincount(unit, column, units) for column in influence.T]
    return np.stack(columns, axis=1).astype(np.float64)


def left_out_sums(moves: FloatArray, shares: FloatArray) -> LeftOut:
    """Power sums of what leaving out units, rows or clusters, does to each group's disparity."""
    # a unit that holds much of what is known moves more when it is gone
    gone = -moves
    none = np.zeros(moves.shape[1])
    powers = tuple(
        np.stack([(gone**k).sum(axis=0), *[none] * k]).astype(np.float64) for k in (2, 3, 4)
    )
    squared = shares**2
    sizes = np.stack([squared.sum(axis=0), none, (squared**2).sum(axis=0), none, none])
    blank = np.asarray((shares > 1 - 1e-9).any(axis=0), dtype=np.float64)
    number = int((shares.sum(axis=1) > 0).sum())
    return LeftOut(powers=powers, sizes=sizes, clusters=number, blank=blank)


def state_of(
    parts: Moments, information: FloatArray, *, group: FloatArray, others: FloatArray
) -> IntArray:
    """Why a group has no answer, from the rows of either side."""
    out = np.full(information.shape, int(Status.OK), dtype=np.int64)
    worth = [effective_rows(parts.weight[i], parts.weight2[i]) for i in (0, -1)]
    out[information < LEAST_INFORMATION] = Status.NO_OVERLAP
    out[np.minimum(*worth) < LEAST_ROWS] = Status.FEW_ROWS
    out[others == 0] = Status.NO_TARGET
    # all of it may lie within its own target
    whole = parts.rows[:-1].sum(axis=0)
    out[group == 0] = np.where(whole[group == 0] > 0, Status.IDENTICAL, Status.EMPTY)
    return out


class Sides(Protocol):
    """What the factors of some rows say of two sides."""

    def __call__(self, member: BoolArray, used: BoolArray, /) -> Predicted:
        """Predictions for the rows that are used, of which some are members."""
        ...


def factor_core(
    cell: IntArray,
    cluster: IntArray | None,
    moments: Moments,
    target: Target,
    sums: GroupSums,
    predict: Sides,
    kind: Weights,
) -> Core:
    """The core of groups given factors, from the cell, and the cluster, of every row."""
    parts = moments.parts(target, sums)
    member = np.asarray(sums(np.eye(moments.rows.size)) > 0)
    found = [
        None if not own.any() or not others.any() else (own | others, predict(own, own | others))
        for own, others in _sides(cell, member, target)
    ]
    each = [None if one is None else scores(one[1], kind) for one in found]
    units = cell.size if cluster is None else int(cluster.max(initial=-1)) + 1
    influence, share = np.zeros((2, units, member.shape[1]))
    for g, (one, told) in enumerate(zip(found, each, strict=True)):
        if one is not None and told is not None:
            whole = np.zeros((cell.size, 2))
            whole[one[0]] = np.column_stack([told.influence, told.share])
            influence[:, g], share[:, g] = unit_moves(whole, cluster, units).T
    if cluster is not None:
        influence = influence / np.maximum(1 - share, 0.05)
    return _assembled(each, parts, target, sums, influence, share, clustered=cluster is not None)


def _sides(
    cell: IntArray, member: BoolArray, target: Target
) -> Iterator[tuple[BoolArray, BoolArray]]:
    """Rows of each group, and of those it is compared with."""
    for g in range(member.shape[1]):
        own = member[cell, g]
        if isinstance(target, Reference):
            # what group and reference share is on neither side
            inside = np.asarray(target.cells)[cell]
            yield own & ~inside, inside & ~own
        else:
            yield own, ~own


def _assembled(
    each: Sequence[GapScores | None],
    parts: Moments,
    target: Target,
    sums: GroupSums,
    influence: FloatArray,
    share: FloatArray,
    *,
    clustered: bool,
) -> Core:
    def column(name: str, none: float) -> FloatArray:
        return np.array([none if one is None else getattr(one, name) for one in each])

    information, ones = column("information", 0.0), np.ones(len(each))
    state = state_of(parts, information, group=parts.rows[0], others=parts.rows[-1])
    left = left_out_sums(influence, share).shaped(ones)
    spread = left.spread(ones)
    if clustered:
        few = (state == Status.OK) & (spread.degrees < LEAST_DEGREES)
        state = np.where(few, int(Status.FEW_CLUSTERS), state)
    still = ~(spread.variance > 0) | column("constant", 0.0).astype(bool)
    state = np.where((state == Status.OK) & still, int(Status.CONSTANT), state)
    comparison = Residual(
        target=target,
        relative=False,
        parts=parts,
        gap=column("gap", np.nan),
        level=column("level", np.nan),
        state=state.astype(np.int64),
        information=information,
        smallest=column("smallest", np.nan),
    )
    return Core(
        comparison=comparison,
        pivot=ClusterPivot(comparison=comparison, left_out=left),
        status=comparison.state,
        spread=spread,
        reach=spread.reach,
        outcomes=np.maximum(np.minimum(information, spread.degrees + 1), 0.0),
        cells=ScoreDraws(influence.T @ influence),
        sums=sums,
        counted=False,
    )


def e_value(one: float, other: float) -> float:
    """How strongly a hidden factor would have to go with group and outcome to explain a ratio away.

    A ratio of two rates R needs a factor that multiplies both the chance of being of the group and
    the rate by at least R + √(R(R − 1)) (VanderWeele and Ding 2017). NaN where a rate is zero.

    >>> round(e_value(0.2, 0.1), 3), e_value(0.1, 0.1)
    (3.414, 1.0)
    """
    low, high = sorted((one, other))
    if not low > 0:
        return float("nan")
    ratio = high / low
    return float(ratio + np.sqrt(ratio * (ratio - 1)))
