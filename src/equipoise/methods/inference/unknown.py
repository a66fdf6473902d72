"""People whose group is unknown: the lowest and the highest that every group's disparity can be.

Some rows may or may not be of a group. Its rate is lowest if all of them with outcome 0 belong to
it and none with outcome 1, highest the other way round. Either is the plain rate of a set of rows
that can be told from the data, so it has the pivot that any group has; and what lowers a group
raises those it is compared with, so both sides of a disparity are at their worst at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy import sparse
from scipy.special import chdtrc, ndtr

from equipoise.methods.inference.core import Core, Pivot, core_of, one_tail
from equipoise.methods.inference.orthogonal import ScoreDraws
from equipoise.methods.inference.student import LEAST_ROWS, ClusterSums, Law, Spread
from equipoise.methods.inference.tails import Tails
from equipoise.methods.numerics import BoolArray, FloatArray, GroupSums, IntArray
from equipoise.methods.targets import (
    Comparison,
    Complement,
    Moments,
    Opposite,
    Reference,
    Status,
    Target,
    over,
)

# --- Who belongs, and who may ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Which cells are of every group, and which may be, ``(C, G)``."""

    sure: BoolArray
    """All rows of the cell are of the group."""
    maybe: BoolArray
    """They may be: something that the group is formed by is not known of them."""
    alike: tuple[tuple[BoolArray, BoolArray], ...] = ()
    """Cells of which the same things are unknown, ``(C,)``, and for each group the cells of which
    they are known, that are otherwise like it, ``(C, G)``."""

    def taken(self, chosen: BoolArray) -> BoolArray:
        """Cells of each group, if of those that may belong just the chosen cells do."""
        return np.asarray(self.sure | (self.maybe & chosen[:, None]))


def members(index: IntArray, unknown: IntArray, choices: IntArray) -> Membership:
    """Cells by level of each attribute, ``(C, A)``, against groups by level, ``(G, A)``.

    ``unknown`` is the level of each attribute that means it is not known, or -1; a choice of -1
    leaves the attribute free.

    >>> who = members(np.array([[0], [1], [2]]), np.array([2]), np.array([[0], [1]]))
    >>> who.sure.tolist(), who.maybe.tolist()
    ([[True, False], [False, True], [False, False]], [[False, False], [False, False], [True, True]])
    """
    absent = index == unknown
    fits = [
        (level[:, None] == choice) | (choice == -1)
        for level, choice in zip(index.T, choices.T, strict=True)
    ]
    told = [
        ~none[:, None] | (choice == -1) for none, choice in zip(absent.T, choices.T, strict=True)
    ]
    sure = np.logical_and.reduce(fits)
    possible = np.logical_and.reduce([a | ~b for a, b in zip(fits, told, strict=True)])
    patterns, place = np.unique(absent, axis=0, return_inverse=True)
    alike = tuple(
        (
            place.reshape(-1) == i,
            np.logical_and.reduce(
                [b if out else a for a, b, out in zip(fits, told, pattern, strict=True)]
            ),
        )
        for i, pattern in enumerate(patterns)
        if pattern.any()
    )
    return Membership(sure=sure, maybe=possible & ~sure, alike=alike)


def sums_over(cells: BoolArray) -> GroupSums:
    """Sums over sets of cells, ``(C, G)``."""
    matrix = sparse.csc_array(cells.astype(np.float64))

    def added(x: FloatArray, /) -> FloatArray:
        return np.asarray(x @ matrix)

    return added


# --- One core from two: lower bounds from the lowest case, upper bounds from the highest ---


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPivot:
    """p-values of disparities that lie somewhere between two others."""

    estimate: FloatArray
    """A disparity between the two, from which searches start."""
    error: FloatArray
    """About its standard error."""
    low: Pivot
    """The lowest that each disparity can be."""
    high: Pivot
    """The highest."""

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """The largest chances, over all there can be between, of what was seen."""
        every = np.ones(chosen.shape, dtype=bool)
        up = one_tail(self.low, disparity, chosen, every)
        return up, one_tail(self.high, disparity, chosen, ~every)

    def tail(self, disparity: FloatArray, chosen: IntArray, upper: BoolArray) -> FloatArray:
        """One of the two."""
        out = np.empty(chosen.shape)
        for pivot, here in ((self.low, upper), (self.high, ~upper)):
            if bool(here.any()):
                out[here] = one_tail(pivot, disparity[here], chosen[here], upper[here])
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class PairLaw:
    """Joint scores of two cores that are drawn from the same moves of the cells."""

    low: Law
    """Scores of the lowest disparities."""
    high: Law
    """Scores of the highest."""

    def scores(self) -> Iterator[FloatArray]:
        """Blocks of scores: of each pair the one that comes nearer to a wrong bound."""
        # a lower bound is wrong if the lowest looks too high, an upper one if the highest too low
        for low, high in zip(self.low.scores(), self.high.scores(), strict=True):
            yield np.where(low >= -high, low, high)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCore(Core):
    """Groups whose disparity is only known to lie between two others."""

    low: Core
    """The lowest that each can be."""
    high: Core
    """The highest."""

    def law(self, *, draws: int, seed: np.random.SeedSequence) -> Law:
        """The joint law of both ends of the answered groups."""
        both = (replace(core, status=self.status) for core in (self.low, self.high))
        low, high = (core.law(draws=draws, seed=seed) for core in both)
        return PairLaw(low=low, high=high)


def pair_core(middle: Core, low: Core, high: Core) -> PairCore:
    """The core of disparities between those of ``low`` and ``high``, as ``middle`` estimates."""
    ok = int(Status.OK)
    status = np.where(middle.status != ok, middle.status, low.status)
    status = np.where(status != ok, status, high.status)
    return PairCore(
        comparison=middle.comparison,
        pivot=PairPivot(
            estimate=middle.pivot.estimate,
            error=middle.pivot.error,
            low=low.pivot,
            high=high.pivot,
        ),
        status=status.astype(np.int64),
        spread=middle.spread,
        reach=np.minimum(low.reach, high.reach),
        outcomes=middle.outcomes,
        cells=middle.cells,
        sums=middle.sums,
        counted=low.counted and high.counted,
        low=low,
        high=high,
    )


# --- Rows whose group is unknown: as if they were not there, and at their worst ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsure:
    """Cells of a 0/1 metric, some of whose rows may be of several groups."""

    cells: Moments
    """Sums over cells, each of which has one outcome only."""
    ones: BoolArray
    """The cells of outcome 1, ``(C,)``."""
    who: Membership
    """Who is of each group, and who may be."""
    target: Target
    """What groups are compared with."""
    reference: Membership | None = None
    """Who is of the reference, and who may be, ``(C, 1)``; None for other targets."""
    relative: bool = False
    """Whether disparities are ratios."""
    weighted: bool = False
    """Whether rows carry weights."""
    clusters: ClusterSums | None = None
    """Sums by cluster."""

    def known(self) -> Core:
        """The core of the rows whose group is known."""
        return self._core(self.who.sure, *self._surely_outside())

    def _surely_outside(self) -> tuple[BoolArray | None, BoolArray | None]:
        """Cells of the target that are known to be."""
        if self.reference is not None:
            return self.who.sure & self.reference.sure, self.reference.sure
        if isinstance(self.target, Complement):
            outside = ~self.who.sure & ~self.who.maybe
            return np.zeros_like(outside), outside
        return None, None

    def worst(self) -> PairCore:
        """The core over all ways in which the unknown can be distributed."""
        return pair_core(self.known(), self.end(lowest=True), self.end(lowest=False))

    def end(self, *, lowest: bool) -> Core:
        """The core of the lowest, or of the highest, disparities."""
        bad = ~self.ones if lowest else self.ones
        own = self.who.taken(bad)
        if self.reference is None:
            # those whom the group does not take are with everyone else, where they do most
            return self._core(own, None, None)
        other = self.reference.taken(~bad)
        return self._core(own, own & other, other)

    def _core(self, own: BoolArray, both: BoolArray | None, other: BoolArray | None) -> Core:
        target = self.target
        if both is not None and other is not None:
            other = np.broadcast_to(other, own.shape)
            target = Opposite(scale=target.scale, other=sums_over(other), both=sums_over(both))
        return core_of(
            self.cells,
            target,
            sums_over(own),
            relative=self.relative,
            zero_one=True,
            weighted=self.weighted,
            clusters=self.clusters,
        )


# --- Rows without a label: both ends are plain rates, of the group at one, of others at the other


def worst_labels(
    known: Core, low: Moments, high: Moments, member: BoolArray, target: Target, *, relative: bool
) -> PairCore:
    """The core over all labels that rows without one may have.

    ``low`` and ``high`` are the cells as they are if every missing label makes rates lowest, or
    highest; ``member`` says of which cells each group is made, ``(C, G)``.
    """
    both = Moments(
        **{
            f.name: np.concatenate([getattr(low, f.name), getattr(high, f.name)])
            for f in fields(low)
        }
    )
    # without weights the sums are counts, which one array says
    both = replace(both, weight=both.rows, weight2=both.rows, weight3=both.rows)
    none = np.zeros_like(member)
    other = ~member
    if isinstance(target, Reference):
        other = other & np.asarray(target.cells)[:, None]
    ends = []
    for first in (True, False):
        own = np.concatenate([member, none] if first else [none, member])
        outside = np.concatenate([none, other] if first else [other, none])
        against = target
        if target.estimated:
            nothing = sums_over(np.zeros_like(own))
            against = Opposite(scale=target.scale, other=sums_over(outside), both=nothing)
        ends.append(
            core_of(both, against, sums_over(own), relative=relative, zero_one=True, weighted=False)
        )
    return pair_core(known, *ends)


# --- How unevenly the unknown would have to be spread ---

FARTHEST = 1e6
"""Odds ratios beyond this are the worst case itself."""
HALVINGS = 50


def spread_disparity(unsure: Unsure, times: FloatArray, *, lowest: bool) -> FloatArray:
    """Disparities if unknown people are spread like the known of their outcome, but for odds.

    Of those who may be of a group the odds that they are is what it is among the known with the
    same outcome (and the same known attributes), multiplied by ``times`` for the outcome that takes
    the disparity where it is asked to go, and divided by it for the other; for a reference the
    other way round.
    """
    bad = ~unsure.ones if lowest else unsure.ones
    own = _spread(unsure, unsure.who, np.where(bad[:, None], times, 1 / times))
    x, w = unsure.cells.total, unsure.cells.weight
    mean = over(x @ own, w @ own)
    target = unsure.target
    if unsure.reference is not None:
        other = _spread(unsure, unsure.reference, np.where(bad[:, None], 1 / times, times))
        theta = over(x @ other, w @ other)
    elif isinstance(target, Complement):
        theta = over(x.sum() - x @ own, w.sum() - w @ own)
    elif target.estimated:
        theta = np.full(mean.shape, x.sum() / max(float(w.sum()), 1e-300))
    else:
        theta = np.full(mean.shape, target.number)
    theta = target.scale * theta
    return over(mean, theta) if unsure.relative else np.asarray(mean - theta)


def _spread(unsure: Unsure, who: Membership, times: FloatArray) -> FloatArray:
    """The share of every cell that is of each group, ``(C, G)``."""
    weight = unsure.cells.weight
    share = np.zeros(np.broadcast_shapes(who.sure.shape, times.shape))
    for outcome in (unsure.ones, ~unsure.ones):
        for cells, like in who.alike:
            # half a row on either side, so that nobody is certain to be or not to be of a group
            inside = (weight * outcome) @ (like & who.sure) + 0.5
            outside = (weight * outcome) @ (like & ~who.sure) + 0.5
            odds = inside / outside * times
            share = np.where((cells & outcome)[:, None], odds / (1 + odds), share)
    return np.where(who.sure, 1.0, np.where(who.maybe, share, 0.0))


def tipping_point(
    unsure: Unsure, bound: FloatArray, known: FloatArray, limit: float, *, lowest: bool
) -> FloatArray:
    """The odds ratio at which every group's bound among the known would pass a limit.

    The bound moves with the disparity as the unknown are spread ever more unevenly. 1 means that an
    even spread is enough, infinity that no spread is.

    >>> from equipoise.methods.targets import Constant, plain_moments
    >>> rows = np.array([40.0, 60.0, 50.0, 50.0, 10.0, 10.0])
    >>> ones = np.array([False, True] * 3)
    >>> unsure = Unsure(
    ...     cells=plain_moments(rows, *[rows * ones] * 3), ones=ones,
    ...     who=members(np.arange(6)[:, None] // 2, np.array([2]), np.array([[0]])),
    ...     target=Constant(value=0.5),
    ... )
    >>> at = np.array([0.1])
    >>> tipping_point(unsure, at, at, 0.05, lowest=True).round(2).tolist()
    [23.27]
    """
    moved = np.where(np.isfinite(bound - known), bound - known, 0.0)

    def passed(times: FloatArray) -> BoolArray:
        at = spread_disparity(unsure, times, lowest=lowest) + moved
        return np.asarray(at <= limit if lowest else at >= limit)

    none, low = np.ones(known.shape), np.zeros(known.shape)
    high = np.full(known.shape, np.log(FARTHEST))
    reached, at_once = passed(np.exp(high)), passed(none)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        beyond = passed(np.exp(middle))
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    found = np.where(reached, np.exp(high), np.inf)
    return np.where(np.isnan(known), np.nan, np.where(at_once, 1.0, found))


# --- Only probabilities are known: the sharp range of a rate, cell by cell ---
#
# In a cell with mean probability a and outcome rate y, P(group and outcome 1) lies between
# a − min(a, 1 − y) and min(a, y) (Fréchet), and any value between is possible. The smaller of two
# estimates is too small on average, so the plug-in range is too narrow where they are close. For a
# fixed choice of branches, one for each cell, the sum is never below the sum of the minima, and an
# average of rows; so branches may be chosen on one half of the rows and the sum taken over the
# other. The average over all ways to halve the rows has a closed form, which is used here: never
# too small on average, and too large by less than a quarter of a cell's standard error.


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySums:
    """Sums over cells of similar probability, ``(Z, G)``: each group is cut by its own."""

    rows: FloatArray
    """Number of rows."""
    chance: FloatArray
    """Σ p."""
    chance2: FloatArray
    """Σ p²."""
    total: FloatArray
    """Σ y."""
    both: FloatArray
    """Σ p y."""

    @property
    def number(self) -> float:
        """Rows in all, the same for every group."""
        return float(self.rows.sum(axis=0).max(initial=0.0))

    @property
    def share(self) -> FloatArray:
        """Share of each group."""
        return np.asarray(self.chance.sum(axis=0) / max(self.number, 1.0))

    @property
    def mean(self) -> float:
        """Everybody's rate."""
        return float(self.total.sum(axis=0).max(initial=0.0)) / max(self.number, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Affine:
    """A quantity of every group and the influence of its rows, c + b p + d y in each cell."""

    value: FloatArray
    """The estimate, ``(G,)``."""
    plain: FloatArray
    """c, ``(Z, G)``."""
    chance: FloatArray
    """b."""
    outcome: FloatArray
    """d."""

    def __add__(self, other: "Affine") -> "Affine":
        """Of a sum."""
        return Affine(
            value=self.value + other.value,
            plain=self.plain + other.plain,
            chance=self.chance + other.chance,
            outcome=self.outcome + other.outcome,
        )

    def times(self, factor: FloatArray | float) -> "Affine":
        """Of a multiple."""
        arrays = (self.value, self.plain, self.chance, self.outcome)
        value, plain, chance, outcome = (np.asarray(x * factor) for x in arrays)
        return Affine(value=value, plain=plain, chance=chance, outcome=outcome)

    def over(self, other: "Affine") -> "Affine":
        """Of a quotient, to first order."""
        below = np.where(other.value > 0, other.value, np.nan)
        quotient = self.value / below
        moved = (self + other.times(-quotient)).times(1 / below)
        return replace(moved, value=quotient)

    def covariance(self, other: "Affine", cells: ProxySums) -> FloatArray:
        """Covariance of two estimates from the same rows."""
        a, b = self, other
        # 0/1 outcomes are their own squares
        each = (
            a.plain * b.plain * cells.rows
            + (a.plain * b.chance + a.chance * b.plain) * cells.chance
            + (a.plain * b.outcome + a.outcome * b.plain + a.outcome * b.outcome) * cells.total
            + a.chance * b.chance * cells.chance2
            + (a.chance * b.outcome + a.outcome * b.chance) * cells.both
        )
        return np.asarray(each.sum(axis=0) / max(cells.number, 1.0) ** 2)


def smaller_of(cells: ProxySums, *, complement: bool) -> tuple[FloatArray, FloatArray]:
    """In each cell the smaller of chance and rate, and how it moves with the rate.

    With ``complement`` the rate is that of outcome 0. Estimated so that the average is never below
    the smaller one of the two in truth.

    >>> one = [np.array([[x]]) for x in (100.0, 50.0, 25.0, 50.0, 25.0)]
    >>> cells = ProxySums(**dict(zip(("rows", "chance", "chance2", "total", "both"), one)))
    >>> smaller_of(cells, complement=False)[0].round(3).tolist()
    [[0.52]]
    """
    n = np.maximum(cells.rows, 1.0)
    chance, rate = cells.chance / n, cells.total / n
    cross = cells.both / n
    if complement:
        rate, cross = 1 - rate, chance - cross
    # of y − p: what a row does to the distance between the two, half a row of either kind added
    square = rate + cells.chance2 / n - 2 * cross
    spread = np.maximum(square - (rate - chance) ** 2, 0.0)
    error = np.sqrt((spread * n + 0.25) / (n + 1) / n)
    far = (chance - rate) / error
    smooth = chance - (chance - rate) * ndtr(far) + error * _density(far)
    return smooth, ndtr(far) + 2 * far * _density(far)


def _density(x: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))


def joint_share(cells: ProxySums, *, lowest: bool) -> Affine:
    """The lowest, or the highest, share of people who are of each group and have outcome 1."""
    n, whole = np.maximum(cells.rows, 1.0), max(cells.number, 1.0)
    chance, rate = cells.chance / n, cells.total / n
    value, slope = smaller_of(cells, complement=lowest)
    if lowest:
        # a − min(a, 1 − y): what moves 1 − y up moves y down
        value, by_chance, by_rate = chance - value, slope, slope
    else:
        by_chance, by_rate = 1 - slope, slope
    total = (cells.rows * value).sum(axis=0) / whole
    return Affine(
        value=total,
        plain=value - by_chance * chance - by_rate * rate - total,
        chance=by_chance,
        outcome=by_rate,
    )


def share_of(cells: ProxySums) -> Affine:
    """The share of each group."""
    zero = np.zeros_like(cells.rows)
    return Affine(value=cells.share, plain=zero - cells.share, chance=zero + 1, outcome=zero)


def rate_of_all(cells: ProxySums) -> Affine:
    """Everybody's rate."""
    zero = np.zeros_like(cells.rows)
    mean = np.full(cells.rows.shape[1], cells.mean)
    return Affine(value=mean, plain=zero - mean, chance=zero, outcome=zero + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastPivot:
    """p-values of disparities between two means that are about normal."""

    mean: FloatArray
    """Each group's mean, ``(G,)``."""
    theta: FloatArray
    """What it is compared with."""
    variances: FloatArray
    """Variance of the mean, covariance of both, variance of the target, ``(3, G)``."""
    relative: bool
    """Whether disparities are ratios."""

    @property
    def estimate(self) -> FloatArray:
        """The disparities."""
        if not self.relative:
            return np.asarray(self.mean - self.theta)
        return over(self.mean, np.where(self.theta > 0, self.theta, np.nan))

    @property
    def error(self) -> FloatArray:
        """Standard error of the disparity."""
        factor = self._factor(np.nan_to_num(self.estimate), slice(None))
        unit = np.abs(self.theta) if self.relative else np.ones_like(self.theta)
        return np.asarray(self._spread(factor, slice(None)) / np.maximum(unit, 1e-300))

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """Chances, if the disparity were this, of an estimate as high, and as low, as was seen."""
        factor = self._factor(disparity, chosen)
        gap = self.mean[chosen] - factor * self.theta[chosen]
        gap = gap - (0.0 if self.relative else disparity)
        score = gap / np.maximum(self._spread(factor, chosen), 1e-12)
        return np.asarray(ndtr(-score)), np.asarray(ndtr(score))

    def _factor(self, disparity: FloatArray, chosen: IntArray | slice) -> FloatArray:
        return disparity if self.relative else np.ones_like(self.mean[chosen])

    def _spread(self, factor: FloatArray, chosen: IntArray | slice) -> FloatArray:
        own, both, other = self.variances[:, chosen]
        return np.asarray(np.sqrt(np.maximum(own - 2 * factor * both + factor**2 * other, 0.0)))


class Stated(Comparison):
    """Groups whose moves are drawn for themselves."""

    __slots__ = ()

    def moves(
        self, weight: FloatArray, total: FloatArray, factor: FloatArray, sums: GroupSums
    ) -> FloatArray:
        """Moves are drawn for the groups, not for cells."""
        return total


def proxy_core(cells: ProxySums, target: Target, reference: int | None, relative: bool) -> PairCore:
    """The core of groups that are known by probabilities only.

    ``reference`` is the group that others are compared with, where the target is one.
    """
    found = _weighted(cells, target, reference, relative)
    low, high = (
        _proxy_end(cells, found, target, reference, lowest=lowest) for lowest in (True, False)
    )
    middle = _plain_core(
        found, ContrastPivot(
            mean=found.mean, theta=target.scale * found.theta, relative=relative,
            variances=np.zeros((3, found.mean.size)),
        ), low.pivot.error,
    )  # fmt: skip
    return pair_core(middle, low, high)


def _weighted(cells: ProxySums, target: Target, reference: int | None, relative: bool) -> Stated:
    """Groups beside their target, every row counted by its probability."""
    own, ones = cells.chance.sum(axis=0), cells.both.sum(axis=0)
    none = np.zeros_like(own)
    if reference is not None:
        rows = np.stack([own, none, np.full_like(own, own[reference])])
        total = np.stack([ones, none, np.full_like(own, ones[reference])])
        # the reference is its own target
        rows[:, reference] = (0.0, own[reference], 0.0)
        total[:, reference] = (0.0, ones[reference], 0.0)
    elif target.estimated:
        rows = np.stack([own, cells.number - own])
        total = np.stack([ones, cells.number * cells.mean - ones])
    else:
        rows, total = own[None], ones[None]
    moments = Moments(
        rows=rows, weight=rows, total=total, weight2=rows, total2=total, square2=total,
        weight3=rows, total3=total, square3=total, cube3=total,
    )  # fmt: skip
    return Stated(target=target, relative=relative, parts=moments)


def _proxy_end(
    cells: ProxySums, found: Stated, target: Target, reference: int | None, *, lowest: bool
) -> Core:
    """The core of the lowest, or of the highest, disparities."""
    both, share, everyone = joint_share(cells, lowest=lowest), share_of(cells), rate_of_all(cells)
    own = both.over(share)
    variance = own.covariance(own, cells)
    if reference is not None:
        other = joint_share(cells, lowest=not lowest).over(share)
        spread = other.covariance(other, cells)[reference]
        theta = np.full(variance.shape, other.value[reference])
        # how two groups' cells overlap is not counted: errors are added up as they are
        cross = -np.sqrt(np.maximum(variance * spread, 0.0))
        three = np.stack([variance, cross, np.full_like(variance, spread)])
    elif not target.estimated:
        theta = np.full(variance.shape, target.number)
        three = np.stack([variance, np.zeros_like(variance), np.zeros_like(variance)])
    else:
        against = everyone
        if isinstance(target, Complement):
            rest = replace(share.times(-1.0), value=1 - share.value)
            against = (everyone + both.times(-1.0)).over(rest)
        theta = against.value
        three = np.stack(
            [variance, own.covariance(against, cells), against.covariance(against, cells)]
        )
    scale = np.array([1.0, target.scale, target.scale**2])[:, None]
    pivot = ContrastPivot(
        mean=own.value, theta=target.scale * theta, variances=three * scale, relative=found.relative
    )
    return _plain_core(found, pivot, pivot.error)


def _plain_core(found: Stated, pivot: ContrastPivot, error: FloatArray) -> Core:
    """A core of normal scores that are joined as if groups were independent."""
    groups = error.shape
    status = found.status
    few = (status == Status.OK) & (found.rows < LEAST_ROWS)
    return Core(
        comparison=found,
        pivot=pivot,
        status=np.where(few, int(Status.FEW_ROWS), status).astype(np.int64),
        spread=Spread(
            variance=np.nan_to_num(error) ** 2,
            skewness=np.zeros(groups),
            usual=np.zeros((2, *groups)),
            degrees=np.full(groups, np.inf),
        ),
        reach=np.full(groups, np.inf),
        outcomes=np.zeros(groups),
        cells=ScoreDraws(np.eye(error.size)),
        sums=_as_they_are,
        counted=False,
    )


def _as_they_are(x: FloatArray, /) -> FloatArray:
    return x


def regressed(cells: ProxySums) -> FloatArray:
    """The gap between each group and everybody else by regression of the outcome on chances.

    Cov(y, p)/Var(p); beside the gap weighted by chances it brackets the true one where outcome and
    membership, given the chance, and outcome and chance, given membership, go the same way (Chen
    and others 2019).
    """
    n = max(cells.number, 1.0)
    share, mean = cells.share, cells.mean
    spread = cells.chance2.sum(axis=0) / n - share**2
    return over(cells.both.sum(axis=0) / n - share * mean, np.where(spread > 1e-12, spread, 0.0))


def calibration(chance: FloatArray, chance2: FloatArray, hits: FloatArray) -> FloatArray:
    """p-value, for each group, of "chances are right", from people whose group is known.

    Sums of their chances and squared chances by cell, ``(Z, G)``, and how many are of the group.
    Chi-square over cells that expect enough on either side, and one for the rest together.

    >>> sums = [np.array([[20.0], [60.0]]), np.array([[4.0], [36.0]])]
    >>> calibration(*sums, np.array([[22.0], [58.0]])).round(3).tolist()
    [0.812]
    """
    spread = np.maximum(chance - chance2, 0.0)
    enough = spread >= 1.0
    each = np.where(enough, (hits - chance) ** 2 / np.where(enough, spread, 1.0), 0.0)
    rest = np.where(enough, 0.0, spread).sum(axis=0)
    missed = np.where(enough, 0.0, hits - chance).sum(axis=0)
    told = rest > 0
    extra = np.where(told, missed**2 / np.where(told, rest, 1.0), 0.0)
    degrees = enough.sum(axis=0) + told
    p = chdtrc(np.maximum(degrees, 1), each.sum(axis=0) + extra)
    return np.where(degrees > 0, p, np.nan)
