"""People whose group is unknown: the lowest and the highest that every group's disparity can be.

Some rows may or may not be of a group. Its rate is lowest if all of them with outcome 0 belong to
it and none with outcome 1, highest the other way round. Either is the plain rate of a set of rows
that can be told from the data, so it has the pivot that any group has; and what lowers a group
raises those it is compared with, so both sides of a disparity are at their worst at once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.special import chdtrc, ndtr

from equipoise.methods.hypotheses import Tails
from equipoise.methods.inference.core import Core, Pivot, core_of
from equipoise.methods.inference.counts import CountPivot
from equipoise.methods.inference.orthogonal import ScoreDraws
from equipoise.methods.inference.student import LEAST_ROWS, ClusterSums, Law, Spread
from equipoise.methods.numerics import BoolArray, FloatArray, GroupSums, IntArray, over
from equipoise.methods.targets import (
    Complement,
    Moments,
    Opposite,
    Overall,
    Stated,
    Status,
    Target,
    one_tail,
    plain_moments,
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


def level_members(index: IntArray, unknown: IntArray, choices: IntArray) -> Membership:
    """Cells by level of each attribute, ``(C, A)``, against groups by level, ``(G, A)``.

    ``unknown`` is the level of each attribute that means it is not known, or -1; a choice of -1
    leaves the attribute free.

    >>> who = level_members(np.array([[0], [1], [2]]), np.array([2]), np.array([[0], [1]]))
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

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """The lowest and the highest estimates; NaN for a group without an answer."""
        able = self.status == Status.OK
        low, high = (np.where(able, one.pivot.estimate, np.nan) for one in (self.low, self.high))
        return low, high


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
    ...     who=level_members(np.arange(6)[:, None] // 2, np.array([2]), np.array([[0]])),
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
# In a cell with mean probability a of being of a group, the share of people who are of the group
# and have an outcome of share y lies between a − min(a, 1 − y) and min(a, y) (Fréchet), and any
# value between is possible. A rate has three outcomes: one, zero, and not counted at all, such as
# the wrong label. It is highest with the most ones and the fewest zeros, which can be had together:
# a one more in the group is a zero less that the group needs. Whoever is not of the group is of the
# rest, which is then at its lowest. Of people without any probability nothing is known, and they
# are wherever they do most.
#
# The smaller of two estimates is too small on average, so the plug-in range is too narrow where
# they are close. For a fixed choice of branches, one for each cell, the sum is never below the sum
# of the minima, and an average of rows; so branches may be chosen on one half of the rows and the
# sum taken over the other. The average over all ways to halve the rows has a closed form, which is
# used here: never too small on average, and too large by less than a quarter of a cell's standard
# error.
#
# Each end is a rate of so many people, and its variance says how many rows it is worth, at most as
# many as there are people in it. Its tails are the larger of those of as many counts, which few
# outcomes need, and of a normal, which ends need that are estimated within the range.


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySums:
    """Sums over cells of similar probability, ``(Z, G)``: each group is cut by its own."""

    rows: FloatArray
    """Number of rows, counted by the metric or not."""
    chance: FloatArray
    """Σ p."""
    chance2: FloatArray
    """Σ p²."""
    ones: FloatArray
    """Rows of outcome 1."""
    zeros: FloatArray
    """Rows of outcome 0; others do not count."""
    chance_ones: FloatArray
    """Σ p of rows of outcome 1."""
    chance_zeros: FloatArray
    """Σ p of rows of outcome 0."""
    free: BoolArray
    """Cells of people without probabilities, ``(Z,)``, who may be of any group."""

    @property
    def number(self) -> float:
        """Rows in all, the same for every group."""
        return float(self.rows.sum(axis=0).max(initial=0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Affine:
    """A quantity of every group, and what rows do to it.

    That is in each cell a constant, and more for the probability, for outcome 1 and for outcome 0.
    """

    value: FloatArray
    """The estimate, ``(G,)``."""
    by: FloatArray
    """The constant and the three slopes, ``(4, Z, G)``."""

    def __add__(self, other: "Affine") -> "Affine":
        """Of a sum."""
        return Affine(value=self.value + other.value, by=self.by + other.by)

    def times(self, factor: FloatArray | float) -> "Affine":
        """Of a multiple."""
        return Affine(value=np.asarray(self.value * factor), by=np.asarray(self.by * factor))

    def over(self, other: "Affine") -> "Affine":
        """Of a quotient, to first order."""
        below = np.where(other.value > 0, other.value, np.nan)
        quotient = self.value / below
        return replace((self + other.times(-quotient)).times(1 / below), value=quotient)

    def covariance(self, other: "Affine", cells: ProxySums) -> FloatArray:
        """Covariance of two estimates from the same rows."""
        one, zero = cells.ones, cells.zeros
        # sums of products of (1, p, one, zero): outcomes are their own squares, no row has both
        products = (
            (cells.rows, cells.chance, one, zero),
            (cells.chance, cells.chance2, cells.chance_ones, cells.chance_zeros),
            (one, cells.chance_ones, one, 0.0),
            (zero, cells.chance_zeros, 0.0, zero),
        )
        each = sum(self.by[i] * other.by[j] * products[i][j] for i in range(4) for j in range(4))
        return np.asarray(np.sum(each, axis=0) / max(cells.number, 1.0) ** 2)

    def variance(self, cells: ProxySums) -> FloatArray:
        """Variance of the estimate."""
        return self.covariance(self, cells)


def smaller_of(
    cells: ProxySums, rate: FloatArray, cross: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """In each cell the smaller of mean probability and rate, and how it moves with the rate.

    ``rate`` is the share of some outcome, ``cross`` the mean of the probability times that outcome.
    Estimated so that the average is never below the smaller one of the two in truth.
    """
    n = np.maximum(cells.rows, 1.0)
    chance = cells.chance / n
    # of y − p: what a row does to the distance between the two, half a row of either kind added
    square = rate + cells.chance2 / n - 2 * cross
    spread = np.maximum(square - (rate - chance) ** 2, 0.0)
    error = np.sqrt((spread * n + 0.25) / (n + 1) / n)
    far = (chance - rate) / error
    smooth = chance - (chance - rate) * ndtr(far) + error * _density(far)
    return smooth, ndtr(far) + 2 * far * _density(far)


def _density(x: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))


def joint_share(cells: ProxySums, outcome: int, *, lowest: bool) -> Affine:
    """The lowest, or the highest, share of people who are of each group and have an outcome.

    >>> one = [np.array([[x]]) for x in (100.0, 50.0, 25.0, 50.0, 50.0, 25.0, 25.0)]
    >>> names = ("rows", "chance", "chance2", "ones", "zeros", "chance_ones", "chance_zeros")
    >>> cells = ProxySums(**dict(zip(names, one)), free=np.array([False]))
    >>> joint_share(cells, 1, lowest=False).value.round(3).tolist()
    [0.52]
    """
    n, whole = np.maximum(cells.rows, 1.0), max(cells.number, 1.0)
    chance = cells.chance / n
    rate = (cells.ones if outcome else cells.zeros) / n
    cross = (cells.chance_ones if outcome else cells.chance_zeros) / n
    if lowest:
        # a − min(a, 1 − y): what moves 1 − y up moves y down
        value, slope = smaller_of(cells, 1 - rate, chance - cross)
        value, by_chance, by_rate = chance - value, slope, slope
    else:
        value, slope = smaller_of(cells, rate, cross)
        by_chance, by_rate = 1 - slope, slope
    free = cells.free[:, None]
    by_chance = np.where(free, 0.0, by_chance)
    by_rate = np.where(free, 0.0 if lowest else 1.0, by_rate)
    value = np.where(free, by_rate * rate, value)
    total = (cells.rows * value).sum(axis=0) / whole
    constant, none = value - by_chance * chance - by_rate * rate - total, np.zeros_like(value)
    slopes = (by_rate, none) if outcome else (none, by_rate)
    return Affine(value=total, by=np.stack([constant, by_chance, *slopes]))


def share_of_all(cells: ProxySums, outcome: int) -> Affine:
    """Everybody's share of an outcome."""
    rows = cells.ones if outcome else cells.zeros
    mean = rows.sum(axis=0) / max(cells.number, 1.0)
    zero = np.zeros_like(cells.rows)
    slopes = (zero + 1, zero) if outcome else (zero, zero + 1)
    return Affine(value=mean, by=np.stack([zero - mean, zero, *slopes]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """People who are together: the shares of both outcomes that they have."""

    ones: Affine
    zeros: Affine

    @property
    def counted(self) -> Affine:
        return self.ones + self.zeros

    @property
    def rate(self) -> Affine:
        return self.ones.over(self.counted)

    def without(self, other: "_Part") -> "_Part":
        """Those who are not of the other."""
        return _Part(
            ones=self.ones + other.ones.times(-1.0), zeros=self.zeros + other.zeros.times(-1.0)
        )

    def one(self, place: int) -> "_Part":
        """Of one of the groups, for all of them."""

        def same(x: Affine) -> Affine:
            value = np.full_like(x.value, x.value[place])
            return Affine(value=value, by=np.repeat(x.by[..., [place]], value.size, axis=-1))

        return _Part(ones=same(self.ones), zeros=same(self.zeros))

    def worth(self, cells: ProxySums) -> FloatArray:
        """Rows that tell as much; never more than there are people."""
        rate, people = self.rate, self.counted.value * cells.number
        rows = over(rate.value * (1 - rate.value), rate.variance(cells))
        # whoever are all alike show nothing of how far that could be otherwise
        return np.nan_to_num(
            np.where(np.isfinite(rows) & (rows > 0), np.fmin(rows, people), people)
        )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class EitherPivot:
    """p-values that hold whichever of two pivots is right: normal scores, or counts.

    Normal scores know how the ends of a range vary but not what few outcomes do; counts know that,
    but not that an estimated end may lie within the range where the true one is at its limit.
    """

    normal: ContrastPivot
    counts: CountPivot

    @property
    def estimate(self) -> FloatArray:
        """The disparities."""
        return self.normal.estimate

    @property
    def error(self) -> FloatArray:
        """The larger of both standard errors."""
        return np.asarray(np.fmax(self.normal.error, self.counts.error))

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """The larger chances."""
        every = np.ones(chosen.shape, dtype=bool)
        return self.tail(disparity, chosen, every), self.tail(disparity, chosen, ~every)

    def tail(self, disparity: FloatArray, chosen: IntArray, upper: BoolArray) -> FloatArray:
        """One of the two."""
        up, down = self.normal.tails(disparity, chosen)
        counts = self.counts.tail(disparity, chosen, upper)
        return np.asarray(np.maximum(np.where(upper, up, down), counts))


def proxy_core(cells: ProxySums, target: Target, reference: int | None, relative: bool) -> PairCore:
    """The core of groups that are known by probabilities only.

    ``reference`` is the group that others are compared with, where the target is one.
    """
    low, high = (
        _proxy_end(cells, target, reference, relative, lowest=lowest) for lowest in (True, False)
    )
    found = _weighted(cells, target, reference, relative)
    degrees = np.full(found.rows.shape, np.inf)
    middle = _plain_core(
        found, CountPivot(comparison=found, rows=found.parts.rows, degrees=degrees)
    )
    return pair_core(middle, low, high)


def _beside(
    own: FloatArray, rest: FloatArray, other: FloatArray | None, reference: int | None, fixed: bool
) -> FloatArray:
    """Sums of every group stacked with those that it is compared with, as targets take them."""
    if fixed:
        return own[None]
    if reference is None or other is None:
        return np.stack([own, rest])
    stacked = np.stack([own, np.zeros_like(own), other])
    # the reference is its own target
    stacked[:, reference] = (0.0, own[reference], 0.0)
    return stacked


def _weighted(cells: ProxySums, target: Target, reference: int | None, relative: bool) -> Stated:
    """Groups beside their target, every row counted by its probability."""
    own = (cells.chance_ones + cells.chance_zeros).sum(axis=0)
    ones = cells.chance_ones.sum(axis=0)
    known = ~cells.free[:, None]
    every = ((cells.ones + cells.zeros) * known).sum(axis=0)
    every_one = (cells.ones * known).sum(axis=0)
    fixed = not target.estimated
    other = (None, None)
    if reference is not None:
        other = (np.full_like(own, own[reference]), np.full_like(own, ones[reference]))
    rows = _beside(own, every - own, other[0], reference, fixed)
    total = _beside(ones, every_one - ones, other[1], reference, fixed)
    return Stated(target=target, relative=relative, parts=plain_moments(rows, total, total, total))


def _proxy_end(
    cells: ProxySums, target: Target, reference: int | None, relative: bool, *, lowest: bool
) -> Core:
    """The core of the lowest, or of the highest, disparities."""
    own = _end(cells, lowest=lowest)
    every = _Part(ones=share_of_all(cells, 1), zeros=share_of_all(cells, 0))
    rest, other = every.without(own), None
    if reference is not None:
        other = _end(cells, lowest=not lowest).one(reference)
    fixed = not target.estimated

    def stacked(what: Callable[[_Part], FloatArray]) -> FloatArray:
        there = None if other is None else what(other)
        return _beside(what(own), what(rest), there, reference, fixed)

    rows = np.maximum(stacked(lambda part: part.counted.value), 0.0) * cells.number
    total = np.clip(stacked(lambda part: part.ones.value) * cells.number, 0.0, rows)
    found = Stated(target=target, relative=relative, parts=plain_moments(rows, total, total, total))
    worth = np.maximum(stacked(lambda part: part.worth(cells)), 1e-9)
    counts = CountPivot(comparison=found, rows=worth, degrees=np.full(found.rows.shape, np.inf))
    against = every if isinstance(target, Overall) else rest if other is None else other
    normal = _contrast(own, None if fixed else against, cells, target, relative, other is None)
    if not fixed:
        # group and target are told by the same people: as many rows as their contrast is worth
        shrink = over(counts.error**2, normal.error**2)
        shrink = np.clip(np.nan_to_num(shrink, nan=1.0, posinf=1.0), 0.0, 1.0)
        counts = replace(counts, rows=worth * np.where(shrink > 0, shrink, 1.0))
    return _plain_core(found, EitherPivot(normal=normal, counts=counts))


def _contrast(
    own: _Part,
    against: _Part | None,
    cells: ProxySums,
    target: Target,
    relative: bool,
    together: bool,
) -> ContrastPivot:
    """Normal scores of a group's rate beside a number, or that of others."""
    rate, scale = own.rate, target.scale
    mine, none = rate.variance(cells), np.zeros_like(rate.value)
    if against is None:
        theta, three = none + target.number, np.stack([mine, none, none])
    else:
        other = against.rate
        theta, theirs = other.value, other.variance(cells)
        # how two groups' cells overlap is not counted: errors are added up as they are
        cross = rate.covariance(other, cells) if together else -np.sqrt(mine * theirs)
        three = np.stack([mine, cross, theirs])
    by = np.array([1.0, scale, scale**2])[:, None]
    return ContrastPivot(
        mean=rate.value, theta=scale * theta, variances=three * by, relative=relative
    )


def _end(cells: ProxySums, *, lowest: bool) -> _Part:
    """The groups with as few ones and as many zeros as there can be, or the other way round."""
    return _Part(
        ones=joint_share(cells, 1, lowest=lowest), zeros=joint_share(cells, 0, lowest=not lowest)
    )


def _plain_core(found: Stated, pivot: Pivot) -> Core:
    """A core of groups that are joined as if they were independent."""
    groups = found.rows.shape
    status = found.status
    # people of the group, or of whoever it is compared with
    scarce = (found.parts.rows > 1e-6) & (found.parts.rows < LEAST_ROWS)
    few = (status == Status.OK) & scarce.any(axis=0)
    return Core(
        comparison=found,
        pivot=pivot,
        status=np.where(few, int(Status.FEW_ROWS), status).astype(np.int64),
        spread=Spread(
            variance=np.nan_to_num(pivot.error) ** 2,
            skewness=np.zeros(groups),
            usual=np.zeros((2, *groups)),
            degrees=np.full(groups, np.inf),
        ),
        reach=np.full(groups, np.inf),
        outcomes=np.zeros(groups),
        cells=ScoreDraws(np.eye(groups[0])),
        sums=_as_they_are,
        counted=False,
    )


def _as_they_are(x: FloatArray, /) -> FloatArray:
    return x


def regressed(cells: ProxySums) -> FloatArray:
    """The gap between each group and everybody else by regression of the outcome on chances.

    Cov(y, p)/Var(p); beside the gap weighted by chances it brackets the true one where outcome and
    membership, given the chance, and outcome and chance, given membership, go the same way (Chen
    and others 2019). For outcomes that everybody has.
    """
    known = ~cells.free[:, None]
    n = np.maximum((cells.rows * known).sum(axis=0), 1.0)
    share, mean = cells.chance.sum(axis=0) / n, (cells.ones * known).sum(axis=0) / n
    spread = cells.chance2.sum(axis=0) / n - share**2
    both = cells.chance_ones.sum(axis=0) / n
    return over(both - share * mean, np.where(spread > 1e-12, spread, 0.0))


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
