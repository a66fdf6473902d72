"""One core for all group audits: a pivot per group, one joint law, one layer of multiplicity.

From the sums of cells it makes the pivot that suits the data (counts, effective counts, own spread,
clusters), says which groups it cannot answer and why, and draws all groups' scores at once.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Protocol

import numpy as np
from scipy.special import ndtri, stdtrit

from equipoise.methods.hypotheses import Tails, apart_at_most, binomial_at_most
from equipoise.methods.inference.counts import CountPivot
from equipoise.methods.inference.multinomial import FewValuedPivot
from equipoise.methods.inference.strata import StrataDraws, StrataPivot, Weights, adjusted
from equipoise.methods.inference.student import (
    LEAST_CLUSTERS,
    LEAST_DEGREES,
    LEAST_ROWS,
    CellDraws,
    ClusterDraws,
    ClusterSums,
    Law,
    LeftOut,
    RowDraws,
    Spread,
    StudentPivot,
    effective_rows,
    joint_law,
    leave_out,
    row_spread,
    shape_of,
    student_tails,
    too_skewed,
)
from equipoise.methods.numerics import (
    BoolArray,
    FloatArray,
    GroupSums,
    IntArray,
    normal_score,
    over,
)
from equipoise.methods.targets import (
    ROUNDING,
    Before,
    Comparison,
    Constant,
    Custom,
    Highest,
    HighestPivot,
    Moments,
    OfComparison,
    OnePivot,
    Ranked,
    Reference,
    Rival,
    Status,
    Target,
    compare,
    one_tail,
)

# --- Bounds from a pivot: the disparities whose tail is no smaller than an allowed error ---

MAX_STEPS = 60
CLOSE = 2e-4
"""Standard errors to which a bound is found."""


class Pivot(OnePivot, Protocol):
    """What inference needs to know of every group."""

    @property
    def estimate(self) -> FloatArray:
        """The disparity of each group, NaN where there is none."""
        ...


def bounds(
    pivot: Pivot, chosen: IntArray, critical: float, possible: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bound of the chosen groups at a critical normal score.

    Neither bound excludes the estimate, and neither leaves the range of what is possible.
    """
    estimate, error = pivot.estimate[chosen], np.maximum(pivot.error[chosen], 1e-12)
    twice = np.concatenate([chosen, chosen])
    search = _Search(
        start=np.concatenate([estimate, estimate]),
        error=np.concatenate([error, error]),
        end=np.repeat(np.array(possible, dtype=np.float64), chosen.size),
        sign=np.repeat([-1.0, 1.0], chosen.size),
        critical=critical,
    )
    while search.todo.size and search.steps < MAX_STEPS:
        here = search.todo
        search.learn(one_tail(pivot, search.at[here], twice[here], search.sign[here] < 0))
    low, high = np.split(search.outer, 2)
    return (
        np.maximum(np.fmin(low, estimate), possible[0]),
        np.minimum(np.fmax(high, estimate), possible[1]),
    )


class _Search:
    """The furthest value, on one side of each estimate, whose score stays below the critical one.

    In normal scores a tail is nearly a straight line, so a secant is close at once; a bracket keeps
    it honest where outcomes are few and the tail has steps. What is found is the rejected end of
    the bracket, so that a bound never promises more than the tail allows.
    """

    def __init__(
        self,
        *,
        start: FloatArray,
        error: FloatArray,
        end: FloatArray,
        sign: FloatArray,
        critical: float,
    ) -> None:
        self.sign, self.critical, self.steps = sign, critical, 0
        self._error, self._end = error, end
        self._inner, self.outer = start.copy(), end.copy()
        self._score_in, self._score_out = np.full_like(start, -0.1), np.full_like(start, np.nan)
        # how many times in a row the same end of the bracket moved, with a sign
        self._run = np.zeros(start.shape, dtype=np.int64)
        self.at = self._inside(start + sign * critical * error, np.arange(start.size))
        self.todo = np.flatnonzero(np.isfinite(start) & (sign * (end - start) > 0))

    def learn(self, tail: FloatArray) -> None:
        """Take in the tails at the present values, and choose the next ones."""
        todo, at = self.todo, self.at[self.todo]
        score = normal_score(tail)
        beyond = score > self.critical
        for place, value, where in (
            (self._inner, at, ~beyond),
            (self._score_in, score, ~beyond),
            (self.outer, at, beyond),
            (self._score_out, score, beyond),
        ):
            place[todo[where]] = value[where]
        run = self._run[todo]
        self._run[todo] = np.where(beyond, np.maximum(run, 0) + 1, np.minimum(run, 0) - 1)
        # at the very end of what is possible nothing lies further out
        ended = ~beyond & (at == self._end[todo])
        near = np.abs(score - self.critical) < CLOSE
        self.outer[todo[near]] = at[near]
        narrow = np.abs(self.outer[todo] - self._inner[todo]) <= CLOSE * self._error[todo]
        self.todo = todo[~(ended | near | narrow)]
        self.at[self.todo] = self._next(self.todo)
        self.steps += 1

    def _next(self, todo: IntArray) -> FloatArray:
        a, b = self._inner[todo], self.outer[todo]
        fa, fb = self._score_in[todo] - self.critical, self._score_out[todo] - self.critical
        run = np.abs(self._run[todo])
        rise = np.where(fb > fa, fb - fa, 1.0)
        share = np.where(fb > fa, -fa / rise, 0.5)
        # an end that stays put three times is too far away: halve
        share = np.where(run >= 3, 0.5, np.clip(share, 0.01, 0.99))
        # while nothing has been rejected, go outward, ever faster
        further = np.maximum(-1.02 * fa, 0.1) * self._error[todo] * 2.0 ** np.minimum(run - 1, 60)
        ahead = self._inside(a + self.sign[todo] * further, todo)
        with np.errstate(invalid="ignore"):
            within = a + share * (b - a)
        return np.where(np.isnan(fb), ahead, within)

    def _inside(self, value: FloatArray, todo: IntArray) -> FloatArray:
        sign, end = self.sign[todo], self._end[todo]
        return np.where(sign > 0, np.minimum(value, end), np.maximum(value, end))


# --- One core for all group audits: a pivot per group, one joint law, one layer of multiplicity

SURE_DEGREES = 30.0
"""Degrees of freedom from which a group's own clustering is believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPivot(OfComparison):
    """p-values of disparities of a real-valued metric whose rows come in clusters."""

    comparison: Comparison
    """Groups beside their target."""
    left_out: LeftOut
    """What leaving out clusters does."""

    @property
    def error(self) -> FloatArray:
        """Standard error of the disparity."""
        found = self.comparison
        factor = found.factor(np.where(np.isfinite(self.estimate), self.estimate, 1.0))
        unit = found.target.scale * found.theta if found.relative else 1.0
        variance = self.left_out.spread(factor).variance
        return np.asarray(np.sqrt(variance) / np.maximum(np.abs(unit), 1e-300))

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """Chances, if the disparity were this, of an estimate as high, and as low, as was seen."""
        found = self.comparison.some(chosen)
        factor = found.factor(disparity)
        gap = found.mean - factor * found.theta - (0.0 if found.relative else disparity)
        return student_tails(gap, self.left_out.some(chosen).spread(factor))


LEAST_ONCE = 10.0
"""Rows that a change of a rate must be worth to be judged by their spread."""
LEAST_REACH = 3.5
"""The score that their skewness must let them reach."""
BY_ONCE = 0.75
"""Share of the error of bounds by rows that count once; both rates by themselves have the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapPivot:
    """p-values of changes of a rate whose rows depend on the model.

    Rows that count both before and after hardly move the change, so it rests on those that count
    once. Where those are worth few rows, or are skewed, what is sure is used: a rise of d takes,
    among all rows that count, a share of at least d that count after only and are ones or before
    only and are zeros; so few of them have a chance of at most that of a binomial. A fall likewise.
    Both rates are binomial as well, whatever rows they share, and the two ways share the error.
    """

    comparison: Comparison
    """Rows that count after beside those that counted before."""
    many: Pivot
    """The pivot of groups with enough rows that count once."""
    few: BoolArray
    """The other groups."""

    @property
    def estimate(self) -> FloatArray:
        """The changes."""
        return self.many.estimate

    @property
    def error(self) -> FloatArray:
        """About the standard error: where a search starts."""
        rows = self.comparison.parts.rows
        about = np.sqrt(once(self.comparison) + 1) / np.maximum(rows.sum(axis=0), 1.0)
        return np.where(self.few, about, self.many.error)

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """Chances, if the change were this, of one as high, and as low, as was seen."""
        up, down = (x.copy() for x in self.many.tails(disparity, chosen))
        few = self.few[chosen]
        if bool(few.any()):
            up[few], down[few] = self._sure(disparity[few], chosen[few])
        return up, down

    def _sure(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """The same for any number of rows: by rows that count once, and by both rates."""
        rows, ones = (
            x[:, chosen] for x in (self.comparison.parts.rows, self.comparison.parts.total)
        )
        rising = ones[0] + rows[2] - ones[2]
        moved = np.where(disparity > 0, rising, rows[0] + rows[2] - rising)
        size = np.clip(np.abs(disparity), 0.0, 1.0)
        once = binomial_at_most(moved, rows.sum(axis=0), size) / BY_ONCE
        after, before = (slice(0, 2), slice(1, 3))
        n1, n0 = rows[after].sum(axis=0), rows[before].sum(axis=0)
        k1, k0 = ones[after].sum(axis=0), ones[before].sum(axis=0)
        # a rise of ones is a fall of zeros
        high = apart_at_most(n1 - k1, n1, n0 - k0, n0, -disparity) / (1 - BY_ONCE)
        low = apart_at_most(k1, n1, k0, n0, disparity) / (1 - BY_ONCE)
        up = np.minimum(np.where(disparity < 0, once, 1.0), high)
        down = np.minimum(np.where(disparity > 0, once, 1.0), low)
        return np.minimum(up, 1.0), np.minimum(down, 1.0)


def _worth_once(found: Comparison) -> FloatArray:
    """How many equally telling rows a change of 0/1 rows rests on: (Σ u²)²/Σ u⁴ of influences u."""
    m, factor = found.parts, np.full(found.parts.rows.shape[1], found.target.scale)
    slopes = found.slopes(factor)
    apart = found.intercepts(factor, np.nan_to_num(over(m.total, m.weight)))
    # half a row more of either kind: an outcome that nobody has must not look impossible
    zeros, ones = (m.rows - m.total + 0.5, -apart), (m.total + 0.5, slopes - apart)
    second, fourth = (
        sum((number * u**power).sum(axis=0) for number, u in (zeros, ones)) for power in (2, 4)
    )
    return np.nan_to_num(over(np.asarray(second) ** 2, np.asarray(fourth)))


def once(found: Comparison) -> FloatArray:
    """Rows of each group that count before or after, but not at both times."""
    return np.asarray(found.parts.rows[0] + found.parts.rows[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """The groups of one question, ready to be asked anything."""

    comparison: Comparison
    """Groups beside their target."""
    pivot: Pivot
    """Tails of any disparity."""
    status: IntArray
    """Why a group is not answered, a :class:`Status` for each."""
    spread: Spread
    """How far each contrast can stray, as rows or clusters show it."""
    reach: FloatArray
    """The highest score that skewness lets each group have; infinite for counts."""
    outcomes: FloatArray
    """How many outcomes each contrast rests on: what its correlations are known by."""
    cells: CellDraws
    """Random moves of the cells."""
    sums: GroupSums
    """From cells to groups."""
    counted: bool
    """Whether the tails are those of counts, plain or effective."""

    @property
    def answered(self) -> IntArray:
        """Groups that have an answer."""
        return np.flatnonzero(self.status == Status.OK)

    def guarded(self, score: float) -> "Core":
        """The same without the groups that are too skewed to reach a critical score."""
        skewed = too_skewed(self.reach, score) & (self.status == Status.OK)
        if not bool(skewed.any()):
            return self
        return replace(self, status=np.where(skewed, int(Status.SKEWED), self.status))

    def law(self, *, draws: int, seed: np.random.SeedSequence) -> Law:
        """The joint law of the answered groups' scores."""
        return joint_law(
            self.cells,
            self.comparison,
            self.sums,
            self.outcomes,
            self.answered,
            draws=draws,
            seed=seed,
        )

    def bounds(
        self, critical: float, possible: tuple[float, float]
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds of every group at a critical score; NaN where there is no answer."""
        low, high = (np.full(self.status.shape, np.nan) for _ in range(2))
        chosen = self.answered
        if chosen.size:
            low[chosen], high[chosen] = bounds(self.pivot, chosen, critical, possible)
        return low, high

    def tails(self, limit: float) -> Tails:
        """Both tails of every group at one disparity; NaN where there is no answer."""
        up, down = (np.full(self.status.shape, np.nan) for _ in range(2))
        chosen = self.answered
        if chosen.size:
            up[chosen], down[chosen] = self.pivot.tails(np.full(chosen.size, limit), chosen)
        return up, down


def core_of(
    cells: Moments,
    target: Target,
    sums: GroupSums,
    *,
    relative: bool,
    zero_one: bool,
    weighted: bool,
    clusters: ClusterSums | None = None,
    values: tuple[float, ...] = (),
    least_rows: float = LEAST_ROWS,
    strata: tuple[IntArray, Weights] | None = None,
) -> Core:
    """The core of a question, from cell sums.

    ``values`` are all that the metric can be, where they are two or three equally spaced numbers;
    real-valued groups, or targets, of fewer than ``least_rows`` rows are not answered. ``strata``
    says in which stratum of legitimate factors each cell lies, and how strata are weighed.

    >>> from equipoise.methods.targets import plain_moments
    >>> from equipoise.methods.targets import Constant
    >>> counts = [np.array([10.0, 400.0]), *[np.array([2.0, 100.0])] * 3]
    >>> core = core_of(
    ...     plain_moments(*counts),
    ...     Constant(value=0.2),
    ...     lambda x: x,
    ...     relative=False,
    ...     zero_one=True,
    ...     weighted=False,
    ... )
    >>> core.tails(0.0)[0].round(4).tolist()
    [0.6242, 0.0086]
    """
    found = compare(cells, target, sums, relative=relative)
    factor = found.factor(np.where(np.isfinite(found.estimate), found.estimate, 1.0))
    left_out = None if clusters is None else leave_out(clusters, found, sums).shaped(factor)
    shape = shape_of(cells)
    spread = row_spread(found, factor, shape) if left_out is None else left_out.spread(factor)
    few = bool(values) and not zero_one and not weighted and clusters is None
    few = few and found.tilts is None and not isinstance(target, Custom)
    counted = (zero_one or few) and found.tilts is None and not isinstance(target, Before)
    status = found.status
    ok = status == Status.OK
    if few:
        pivot: Pivot = FewValuedPivot(comparison=found, values=values)
    elif counted:
        pivot = _counts(cells, found, factor, spread, weighted, left_out)
    elif left_out is None:
        pivot = StudentPivot(comparison=found, shape=shape)
    else:
        pivot = ClusterPivot(comparison=found, left_out=left_out)
    if left_out is not None:
        unclear = spread.degrees < LEAST_DEGREES
        if not counted:
            unclear |= left_out.worth(factor) < LEAST_CLUSTERS
        status = np.where(ok & unclear, Status.FEW_CLUSTERS, status)
    if isinstance(target, Before):
        plain = zero_one and not weighted and left_out is None
        pivot, status = _of_change(pivot, found, status, spread, plain=plain)
        zero_one = False
    elif not counted:
        status = _unsure(found, status, 0.0 if left_out is not None else least_rows)
    draws: CellDraws = RowDraws(cells) if clusters is None else ClusterDraws(clusters)
    outcomes = _outcomes(found, spread, zero_one=zero_one, clustered=left_out is not None)
    if strata is not None:
        place, kind = strata
        found = adjusted(cells, target, sums, place, relative=relative, kind=kind)
        pivot, draws = StrataPivot(comparison=found), StrataDraws(cells)
        status = found.status
    return Core(
        comparison=found,
        pivot=pivot,
        status=status.astype(np.int64),
        spread=spread,
        reach=np.full(factor.shape, np.inf) if counted else _reach(pivot, spread),
        outcomes=outcomes,
        cells=draws,
        sums=sums,
        counted=counted,
    )


def _of_change(
    pivot: Pivot, found: Comparison, status: IntArray, spread: Spread, *, plain: bool
) -> tuple[Pivot, IntArray]:
    """The pivot of a change, and who has an answer: rows that count at both times say little."""
    status = _too_few_once(found, status)
    if plain:
        few_once = (_worth_once(found) < LEAST_ONCE) | (spread.reach < LEAST_REACH)
        counted_on = (status == Status.IDENTICAL) | (status == Status.FEW_ROWS)
        status = np.where(counted_on, int(Status.OK), status)
        return OverlapPivot(comparison=found, many=pivot, few=few_once), status
    # by their spread alone, rows that are all alike at one time would be certain
    alike = _alike(found, found.in_group) | _alike(found, found.in_target)
    return pivot, np.where((status == Status.OK) & alike, int(Status.CONSTANT), status)


def highest_core(
    cells: Moments,
    target: Highest,
    sums: GroupSums,
    rivals: dict[int, BoolArray],
    member: BoolArray,
    *,
    relative: bool,
    zero_one: bool,
    weighted: bool,
    clusters: ClusterSums | None = None,
    values: tuple[float, ...] = (),
) -> Core:
    """The core of groups against the highest of their rivals, as `against_highest` has them."""

    def beside(other: Target) -> Core:
        return core_of(
            cells, other, sums, relative=relative, zero_one=zero_one, weighted=weighted,
            clusters=clusters, values=values,
        )  # fmt: skip

    return against_highest(beside, target, rivals, member, relative=relative)


def against_highest(
    beside: Callable[[Target], Core],
    target: Highest,
    rivals: dict[int, BoolArray],
    member: BoolArray,
    *,
    relative: bool,
) -> Core:
    """The core of groups against the highest of their rivals.

    ``beside`` makes the core against any other target, ``rivals`` says of each group that may be
    the highest which groups are compared with it, and ``member`` of which cells each group is made,
    ``(C, G)``.
    """
    plain = beside(Constant(value=1.0))
    mean = plain.comparison.mean
    top = np.full(mean.shape, np.nan)
    found: list[Rival] = []
    for place, against in rivals.items():
        core = beside(Reference(cells=member[:, place], scale=target.scale))
        able = against & (core.status == Status.OK)
        top = np.where(able, np.fmax(top, mean[place]), top)
        found.append(Rival(pivot=core.pivot, against=able))
    # the highest group is as far from itself as any can be
    top = np.where(np.isnan(top), np.nan, np.fmax(top, mean))
    ranked = Ranked(
        target=target, relative=relative, parts=plain.comparison.parts, top=top, own=mean
    )
    status = np.where(ranked.status == Status.OK, plain.status, ranked.status)
    if relative:
        status = np.where(status == Status.ZERO_TARGET, ranked.status, status)
    return replace(
        plain,
        comparison=ranked,
        pivot=HighestPivot(comparison=ranked, rivals=tuple(found)),
        status=status.astype(np.int64),
        # what groups have in common with their rivals is not followed up: as if independent
        outcomes=np.zeros_like(mean),
    )


def _counts(
    cells: Moments,
    found: Comparison,
    factor: FloatArray,
    spread: Spread,
    weighted: bool,
    left_out: LeftOut | None,
) -> CountPivot:
    """Counts as they are, or as many as weights and clusters leave of them."""
    m = found.parts
    plain = np.full(factor.shape, np.inf)
    if not weighted and left_out is None:
        return CountPivot(comparison=found, rows=m.rows, degrees=plain)
    rows = _worth_of_counts(m, cells) if weighted else m.rows
    if left_out is None:
        return CountPivot(comparison=found, rows=rows, degrees=plain)
    pivot = CountPivot(comparison=found, rows=rows, degrees=spread.degrees)
    unit = found.target.scale * found.theta if found.relative else np.ones_like(factor)
    model = (pivot.error * np.abs(unit)) ** 2
    shrink = np.nan_to_num(over(model, spread.variance), nan=1.0)
    # few events hide how clusters differ: such a group is not taken to be less clustered than most
    unsure = spread.degrees < SURE_DEGREES
    shrink = np.where(unsure, np.minimum(shrink, _typical(shrink, found, spread)), shrink)
    # a group whose rows are all alike shows nothing of how clusters differ: then they are the rows
    mean = found.mean
    alike = (mean <= 0) | (mean >= 1)
    # as many as clusters of equal size would be: one over the sum of squared shares
    worth = over(np.ones_like(shrink), left_out.sizes[0] * np.maximum(found.rows, 1.0))
    few = np.fmin(shrink, worth)
    shrink = np.where(alike, few, shrink)
    return CountPivot(comparison=found, rows=rows * shrink, degrees=spread.degrees)


def _worth_of_counts(m: Moments, cells: Moments) -> FloatArray:
    """How many plain rows the weighted rows of each part are worth.

    As many as a plain sample of the same variance would have (Korn and Graubard), but no more than
    its ones and its zeros are worth each on their own. A part with few ones does not show what ones
    weigh; it is taken to be worth no more, for its rows, than all rows together, or than rows are
    worth in single cells.
    """
    kish = effective_rows(m.weight, m.weight2)
    whole = Moments(**{f.name: np.array([getattr(cells, f.name).sum()]) for f in fields(cells)})
    usual = over(_plain_rows(whole), effective_rows(whole.weight, whole.weight2))
    own = np.fmin(_plain_rows(m), kish)
    # nor more, for its rows, than rows are worth in cells like its own: heavy rows may be missing
    cost = np.fmax(over(cells.rows, effective_rows(cells.weight, cells.weight2)), 1.0)
    cost = np.fmax(over(cells.rows, _plain_rows(cells)), cost)
    typical = np.nansum(cells.rows * cost) / max(float(cells.rows.sum()), 1e-300)
    return np.asarray(np.fmin(np.fmin(own, kish * np.minimum(usual, 1.0)), m.rows / typical))


def _plain_rows(m: Moments) -> FloatArray:
    rate = np.nan_to_num(over(m.total, m.weight))
    about = np.maximum(m.square2 - 2 * rate * m.total2 + rate**2 * m.weight2, 0.0)
    by_spread = over(rate * (1 - rate) * m.weight**2, about)
    ones = over(over(m.total**2, m.total2), rate)
    zeros = over(over((m.weight - m.total) ** 2, m.weight2 - m.total2), 1 - rate)
    return np.asarray(np.fmin(by_spread, np.fmin(ones, zeros)))


def _typical(shrink: FloatArray, found: Comparison, spread: Spread) -> float:
    """The usual share of rows that clusters leave, by how much is known of each group's."""
    weight = np.where(np.isfinite(shrink) & (spread.variance > 0), spread.degrees, 0.0)
    if not weight.sum() > 0:
        return 1.0
    return float(np.exp((weight * np.log(np.maximum(shrink, 1e-9))).sum() / weight.sum()))


def _reach(pivot: Pivot, spread: Spread) -> FloatArray:
    """The highest score that skewness lets each group have; binomials have no such limit."""
    few = pivot.few if isinstance(pivot, OverlapPivot) else False
    return np.where(few, np.inf, spread.reach)


def _unsure(found: Comparison, status: IntArray, least_rows: float) -> IntArray:
    """Groups about whose spread too little is known."""
    size = _worth(found, found.in_group)
    other = np.full(size.shape, np.inf)
    if found.target.estimated:
        other = _worth(found, found.in_target)
    out = status.copy()
    ok = status == Status.OK
    out[ok & _alike(found, found.in_group)] = Status.CONSTANT
    out[ok & (np.minimum(size, other) < least_rows)] = Status.FEW_ROWS
    out[ok & (found.rows <= 1)] = Status.SINGLE
    return out


def _alike(found: Comparison, g: FloatArray) -> BoolArray:
    """Whether the rows of the parts that ``g`` names are all alike, up to rounding."""
    m = found.parts
    rates = np.nan_to_num(over((g * m.total).sum(0), (g * m.weight).sum(0)))
    square = (g**2 * m.square2).sum(0)
    about = square - 2 * rates * (g**2 * m.total2).sum(0) + rates**2 * (g**2 * m.weight2).sum(0)
    return np.asarray(about <= ROUNDING * np.maximum(square, 0.0))


def _too_few_once(found: Comparison, status: IntArray) -> IntArray:
    """Groups in which few rows count before or after only, on which a change rests."""
    few = (status == Status.OK) & (once(found) < LEAST_ROWS)
    return np.where(few, int(Status.FEW_ROWS), status)


def _worth(found: Comparison, member: FloatArray) -> FloatArray:
    m = found.parts
    return effective_rows((member * m.weight).sum(0), (member**2 * m.weight2).sum(0))


def _outcomes(found: Comparison, spread: Spread, *, zero_one: bool, clustered: bool) -> FloatArray:
    """What a group's correlation with others is known by: rows, the rarer outcome, clusters."""
    rows = _worth(found, found.in_group)
    if zero_one:
        mean = np.nan_to_num(found.mean)
        rows = rows * np.minimum(mean, 1 - mean)
    if clustered:
        rows = np.minimum(rows, spread.degrees + 1)
    return np.asarray(np.maximum(rows, 0.0))


def plain_worth(core: Core, spread: FloatArray) -> FloatArray:
    """How many independent rows of equal weight the mean of each group is worth, against a number.

    As many as give the mean the variance that it has with weights and clusters, if rows vary by
    ``spread``; where few clusters leave that variance uncertain, as many as give the normal limits
    the width of Student's.

    >>> from equipoise.methods.targets import plain_moments
    >>> from equipoise.methods.targets import Constant
    >>> counts = [np.array([10.0, 400.0]), *[np.array([2.0, 100.0])] * 3]
    >>> options = {"relative": False, "zero_one": True, "weighted": False}
    >>> core = core_of(plain_moments(*counts), Constant(value=0.0), lambda x: x, **options)
    >>> plain_worth(core, np.array([0.16, 0.1875])).tolist()
    [10.0, 400.0]
    """
    found, pivot = core.comparison, core.pivot
    degrees = np.full(spread.shape, np.inf)
    if isinstance(pivot, CountPivot):
        rows, degrees = pivot.rows[0], pivot.degrees
    else:
        if isinstance(pivot, ClusterPivot):
            degrees = pivot.left_out.spread(np.ones_like(spread)).degrees
        rows = np.nan_to_num(over(spread, pivot.error**2))
    sure = np.isinf(degrees)
    wide = np.where(sure, _NORMAL, stdtrit(np.where(sure, 1.0, np.maximum(degrees, 1.0)), 0.975))
    return np.asarray(np.minimum(rows, found.rows) * (_NORMAL / wide) ** 2)


_NORMAL = float(ndtri(0.975))
