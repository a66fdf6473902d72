"""People whose group is unknown: the lowest and the highest that every group's disparity can be.

Some rows may or may not be of a group. Its rate is lowest if all of them with outcome 0 belong to
it and none with outcome 1, highest the other way round. Either is the plain rate of a set of rows
that can be told from the data, so it has the pivot that any group has; and what lowers a group
raises those it is compared with, so both sides of a disparity are at their worst at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from equipoise.methods.inference.core import Core, Pivot, core_of
from equipoise.methods.inference.student import ClusterSums, Law
from equipoise.methods.inference.tails import Tails
from equipoise.methods.numerics import BoolArray, FloatArray, GroupSums, IntArray
from equipoise.methods.targets import (
    Complement,
    Moments,
    Opposite,
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
        return self.low.tails(disparity, chosen)[0], self.high.tails(disparity, chosen)[1]


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
