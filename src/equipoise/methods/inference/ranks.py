"""Statistics of ranks: the share of a group above everybody's median, and the area under a curve.

The scoring rate of a group is the share of its scores above the median of the whole sample. The
median is estimated as well: with m the median, A = 1{S > m}, π the group's share of the rows and
f_g/f the density of its scores beside everybody's at m, a row's influence on the rate is

    1_g (A − p_g)/π_g − (f_g/f)(m) (A − ½).

A contrast p_g − c·p_t, whatever the target t, then has the variance of a known threshold and
[ρ²/4 − 2ρ(v_g − c·v_t)]/n on top, with ρ = (f_g − c·f_t)/f and v = p(1 − p). It can be more or
less: groups that are alike move together with the median, and a group whose scores crowd around it
moves with every rank. Tails are those of counts above a known threshold, stretched by the ratio of
the two standard errors.

Scores of few values have no density: the median jumps from one to the next, and rates with it.
There the tails are the largest over all scores that may be the median, each taken as known.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betainc, expit, logit, ndtr, ndtri

from equipoise.methods.hypotheses import Tails
from equipoise.methods.inference.core import Core, Pivot
from equipoise.methods.inference.counts import CountPivot
from equipoise.methods.numerics import FloatArray, GroupSums, IntArray, normal_score, over
from equipoise.methods.targets import Comparison, HighestPivot, OfComparison, Rival

# --- The median and how many rows lie around it ---

SURE = 2.5758293035489004
"""Standard errors of the median's rank within which it is looked for: 99 %."""
LUMP = 0.25
"""Rows of one score, in roots of all rows, from which the median jumps rather than moves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Middle:
    """The median of a sample, and the range around it in which densities are compared."""

    median: float
    low: float
    high: float
    settled: bool
    """Whether so many rows have exactly this score that another sample has the same median."""
    others: tuple[float, ...] = ()
    """Other scores that may be the median, where it jumps from one to the next."""


def middle_of(values: FloatArray, counts: FloatArray) -> Middle:
    """The median of values that occur so many times, and the middle share n^(−1/3) of the rows.

    >>> middle_of(np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4)).median
    2.5
    """
    order = np.argsort(values, kind="stable")
    value, upto = values[order], np.cumsum(counts[order])
    number = float(upto[-1])

    def at(rank: float) -> float:
        return float(value[np.searchsorted(upto, rank, side="right").clip(0, value.size - 1)])

    def place(share: float) -> float:
        return at(min(max(share * number, 0.0), number - 1))

    half = number / 2
    upper = at(half)
    # with an even number the median lies midway between the two in the middle
    median = (at(half - 1) + upper) / 2 if half == int(half) else at(np.floor(half))
    # wider, and a group that crowds around the median would be taken for one that does not
    width = min(0.5, number ** (-1 / 3))
    below, above = counts[values < median].sum(), counts[values > median].sum()
    reach = half - SURE * np.sqrt(number) / 2
    settled = bool(max(below, above) < reach)
    ends = at(max(reach, 0.0)), at(min(number - reach, number - 1))
    inside = (value >= ends[0]) & (value <= ends[1])
    steps = np.diff(upto, prepend=0.0)[inside]
    lumpy = not settled and bool((steps > LUMP * np.sqrt(number)).any())
    own = float(value[value <= median].max())
    likely = _likely(value[inside], steps, LUMP * np.sqrt(number)) if lumpy else []
    return Middle(
        median=median,
        low=place(0.5 - width / 2),
        high=place(0.5 + width / 2),
        settled=settled,
        others=tuple(x for x in likely if x != own),
    )


def _likely(value: FloatArray, rows: FloatArray, step: float) -> list[float]:
    """Thresholds between which fewer than ``step`` rows lie, or all of one score."""
    kept, since = [0], 0.0
    for place in range(1, value.size):
        since += float(rows[place])
        if since >= step:
            # just before a lump, and at it
            kept += [place - 1, place]
            since = 0.0
    return [float(value[place]) for place in sorted({*kept, value.size - 1})]


# --- Tails of rates above an estimated median ---


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianSums:
    """What the error of a median needs to know of the cells."""

    near: FloatArray
    """Rows of each cell whose score lies around the median, ``(C,)``."""
    all_near: float
    """Rows of the whole sample that do, those in no cell included."""
    rows: float
    """Rows of the whole sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianPivot:
    """p-values of disparities in the share above the sample's own median."""

    known: CountPivot
    """The same if the median were known."""
    slope: FloatArray
    """(f_g/f)(m) of every group, ``(G,)``."""
    target_slope: FloatArray
    """The same of its target."""
    rows: float
    """Rows of the whole sample."""

    @property
    def comparison(self) -> Comparison:
        """Groups beside their target."""
        return self.known.comparison

    @property
    def estimate(self) -> FloatArray:
        """The disparities."""
        return self.known.estimate

    @property
    def error(self) -> FloatArray:
        """About the standard error."""
        at = np.where(np.isfinite(self.estimate), self.estimate, 1.0)
        return self.known.error * self.stretch(at, np.arange(at.size))

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """Chances, if the disparity were this, of an estimate as high, and as low, as was seen."""
        by = self.stretch(disparity, chosen)
        up, down = self.known.tails(disparity, chosen)
        return _stretched(up, by), _stretched(down, by)

    def stretch(self, disparity: FloatArray, chosen: IntArray) -> FloatArray:
        """Standard error with the median's own error, beside that of a known threshold."""
        found = self.comparison.some(chosen)
        factor = found.factor(disparity)
        own, other = (np.nan_to_num(x) for x in (found.mean, found.theta))
        target = other if found.target.estimated else np.zeros_like(other)
        spread = own * (1 - own) - factor * target * (1 - target)
        rho = self.slope[chosen] - factor * self.target_slope[chosen]
        added = (rho**2 / 4 - 2 * rho * spread) / self.rows
        unit = found.target.scale * found.theta if found.relative else np.ones_like(factor)
        plain = (self.known.error[chosen] * np.abs(np.nan_to_num(unit, nan=1.0))) ** 2
        ratio = over(plain + added, plain)
        return np.asarray(np.sqrt(np.clip(np.nan_to_num(ratio, nan=1.0), 1.0, None)))


def _stretched(tail: FloatArray, by: FloatArray) -> FloatArray:
    return np.asarray(ndtr(ndtri(np.clip(tail, 1e-300, 1 - 1e-16)) / by))


def above_median(core: Core, median: MedianSums) -> Core:
    """The core of shares above a known threshold, as one of shares above the sample's median.

    Groups are joined as if independent: what they share by the median is not followed up.
    """
    pivot = core.pivot
    if isinstance(pivot, CountPivot):
        made: Pivot = _with_median(pivot, median, core.sums)
    elif isinstance(pivot, HighestPivot):
        rivals = tuple(
            Rival(pivot=_with_median(r.pivot, median, core.sums), against=r.against)
            for r in pivot.rivals
            if isinstance(r.pivot, CountPivot)
        )
        made = replace(pivot, rivals=rivals)
    else:
        raise TypeError("Only counts lie above a median.")
    return replace(core, pivot=made, outcomes=np.zeros_like(core.outcomes))


def _with_median(pivot: CountPivot, median: MedianSums, sums: GroupSums) -> MedianPivot:
    found = pivot.comparison
    usual = max(median.all_near, 1.0) / median.rows
    near = found.both(median.near[None], sums)
    slopes = [
        np.nan_to_num(over(part[0], weight)) / usual
        for part, weight in zip(near, (found.group_weight, found.target_weight), strict=True)
    ]
    return MedianPivot(known=pivot, slope=slopes[0], target_slope=slopes[1], rows=median.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyMedianPivot:
    """p-values that hold whichever of several scores is the median."""

    pivots: tuple[Pivot, ...]
    """The same question with each of them taken as known, the sample's own first."""

    @property
    def estimate(self) -> FloatArray:
        """The disparities, with the sample's own median."""
        return self.pivots[0].estimate

    @property
    def error(self) -> FloatArray:
        """About the standard error, where a search starts."""
        return self.pivots[0].error

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """The largest tails over the medians; one that cannot answer excludes nothing."""
        found = [pivot.tails(disparity, chosen) for pivot in self.pivots]
        up, down = (
            np.max([np.nan_to_num(tails[side], nan=1.0) for tails in found], axis=0)
            for side in (0, 1)
        )
        return up, down


def any_median(core: Core, others: Sequence[Core]) -> Core:
    """The core of shares above a known threshold, as one that holds for all thresholds."""
    pivots = (core.pivot, *(other.pivot for other in others))
    made = AnyMedianPivot(pivots=pivots)
    return replace(core, pivot=made, outcomes=np.zeros_like(core.outcomes))


# --- The area under the ROC curve ---


def area_under_curve(
    scores: FloatArray, labels: FloatArray, counts: FloatArray, level: float
) -> tuple[float, float, float]:
    """The AUC and its interval: DeLong's variance on the logit scale; NaN where it has none.

    >>> area_under_curve(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 1.0]), np.ones(3), 0.95)[0]
    1.0
    """
    value, place = np.unique(scores, return_inverse=True)
    ones, zeros = (
        np.bincount(place, weights=counts * (labels == side), minlength=value.size)
        for side in (1.0, 0.0)
    )
    m, n = float(ones.sum()), float(zeros.sum())
    if m == 0 or n == 0:
        return float("nan"), float("nan"), float("nan")
    # share of the other side below each score, ties counted half
    below = (np.cumsum(zeros) - zeros / 2) / n
    over_it = 1 - (np.cumsum(ones) - ones / 2) / m
    area = float((ones * below).sum() / m)
    if m < 2 or n < 2 or not 0 < area < 1:
        return area, float("nan"), float("nan")
    variance = sum(
        float((side * (part - area) ** 2).sum()) / (size - 1) / size
        for side, part, size in ((ones, below, m), (zeros, over_it, n))
    )
    score = float(ndtri((1 + level) / 2))
    reach = score * np.sqrt(variance) / (area * (1 - area))
    return area, float(expit(logit(area) - reach)), float(expit(logit(area) + reach))


# --- Quantiles: by the test of the share of rows up to a number ---
#
# With Q the q-quantile of a group, the smallest x with P(L ≤ x) ≥ q, "Q ≤ x" says P(L ≤ x) ≥ q and
# "Q ≥ x" says P(L < x) ≤ q; ties are no trouble. Either has an exact binomial p-value. A disparity
# of two quantiles leaves one open: for every number m that the target's may be there are two
# such p-values, and the distance of their normal scores from where neither objects, the least over
# all m, is judged as one score: the profile of a likelihood, asymptotically (Wilks). Discreteness
# and the choice of m both make it larger than it should be, so that it errs on the safe side.

OPEN_QUANTILE = 1e-5
"""Chance that the target's quantile lies outside the range that is searched, added to tails."""
PLACES = 160
"""Numbers that are tried for the target's quantile; between them the worse of two counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted:
    """Rows of groups by value, in rising order."""

    low: FloatArray
    """Smallest value of each place, ``(K,)``."""
    high: FloatArray
    """Largest value of each place; the same where places hold one value each."""
    upto: FloatArray
    """Weight of each group up to each place, ``(K + 1, G)``, from zero on."""
    upto2: FloatArray | None
    """The same of squared weights; None where rows count alike."""

    @property
    def weight(self) -> FloatArray:
        """Weight of each group."""
        return np.asarray(self.upto[-1])

    def some(self, chosen: IntArray) -> "Sorted":
        """Some of the groups."""
        two = None if self.upto2 is None else self.upto2[:, chosen]
        return replace(self, upto=self.upto[:, chosen], upto2=two)

    def places_upto(self, x: FloatArray) -> IntArray:
        """Places that may hold rows of at most x: all that begin there."""
        return np.searchsorted(self.low, x, side="right")

    def places_below(self, x: FloatArray) -> IntArray:
        """Places all of whose rows are less than x."""
        return np.searchsorted(self.high, x, side="left")

    def rows(self, q: float, place: IntArray, group: IntArray) -> tuple[FloatArray, FloatArray]:
        """How many of how many rows lie before a place, as many as weighted rows are worth."""
        count, every = self.upto[place, group], self.weight[group]
        if self.upto2 is None:
            return count, every
        two, all_two = self.upto2[place, group], self.upto2[-1][group]
        kish = np.nan_to_num(over(every**2, all_two))
        # what the share up to the quantile varies by, if heavy rows crowd on one side of it
        about = (1 - 2 * q) * two + q**2 * all_two
        size = np.fmin(kish, np.nan_to_num(over(q * (1 - q) * every**2, about), nan=np.inf))
        return np.nan_to_num(over(count, every)) * size, size

    def quantile(self, q: float | FloatArray) -> FloatArray:
        """The quantile of each group, midway between two values where it falls between them."""
        ends = []
        for slack in (-1e-12, 1e-12):
            aim = np.asarray(q * self.weight) + slack * np.maximum(self.weight, 1e-300)
            place = np.sum(self.upto[1:] < aim, axis=0).clip(0, self.low.size - 1)
            ends.append((self.low[place] + self.high[place]) / 2)
        return np.where(self.weight > 0, (ends[0] + ends[1]) / 2, np.nan)


def upto_tail(count: FloatArray, size: FloatArray, q: float) -> FloatArray:
    """P(Bin(n, q) ≤ c): the p-value of "the quantile is at most x", c rows being at most x.

    >>> upto_tail(np.array([0.0, 5.0]), np.array([5.0, 5.0]), 0.5).tolist()
    [0.03125, 1.0]
    """
    inside = (count < size) & (count >= 0)
    tail = betainc(np.where(inside, size - count, 1.0), np.where(inside, count + 1, 1.0), 1 - q)
    return np.where(inside, tail, 1.0)


def below_tail(count: FloatArray, size: FloatArray, q: float) -> FloatArray:
    """P(Bin(n, q) ≥ b): the p-value of "the quantile is at least x", b rows being less than x.

    >>> below_tail(np.array([5.0, 0.0]), np.array([5.0, 5.0]), 0.5).tolist()
    [0.03125, 1.0]
    """
    inside = count > 0
    rest = np.maximum(size - count, 0.0) + 1
    return np.where(inside, betainc(np.where(inside, count, 1.0), rest, q), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantilePivot(OfComparison):
    """p-values of disparities of quantiles."""

    comparison: Comparison
    """Groups beside their target."""
    q: float
    """Which quantile."""
    own: Sorted
    """The groups' rows."""
    other: Sorted | None
    """Their targets' rows; None where the target is a number."""
    shared: Sorted | None
    """Rows that are both of the group and of its target; None where there are none."""
    errors: FloatArray
    """Standard errors of both quantiles, ``(2, G)``."""
    tried: IntArray
    """Places of the line at which the target's quantile is tried, ``(PLACES, G)``."""

    @property
    def error(self) -> FloatArray:
        """About the standard error of the disparity, where a search starts."""
        found = self.comparison
        factor = found.factor(np.where(np.isfinite(self.estimate), self.estimate, 1.0))
        unit = found.target.scale * found.theta if found.relative else np.ones_like(factor)
        wide = np.hypot(self.errors[0], factor * self.errors[1])
        return np.asarray(wide / np.maximum(np.abs(np.nan_to_num(unit, nan=1.0)), 1e-300))

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """Chances, if the disparity were this, of an estimate as high, and as low, as was seen."""
        found = self.comparison.some(chosen)
        factor = found.factor(disparity)
        plus = np.zeros_like(disparity) if found.relative else disparity
        if self.other is None:
            at = factor * found.target.number + plus
            return self._above(at, chosen), self._below(at, chosen)
        return self._joined(factor, plus, chosen)

    def _above(self, x: FloatArray, group: IntArray) -> FloatArray:
        """The p-value of "the group's quantile is at most x"."""
        return upto_tail(*self.own.rows(self.q, self.own.places_upto(x), group), self.q)

    def _below(self, x: FloatArray, group: IntArray) -> FloatArray:
        """The p-value of "the group's quantile is at least x"."""
        return below_tail(*self.own.rows(self.q, self.own.places_below(x), group), self.q)

    def _joined(self, factor: FloatArray, plus: FloatArray, chosen: IntArray) -> Tails:
        assert self.other is not None
        line, q = self.other, self.q
        tried = self.tried[:, chosen]
        group = np.broadcast_to(chosen, tried.shape)
        low, high = line.low[tried], line.high[tried]
        # from one number tried to the next both p-values at their larger ends: so many rows of the
        # target are at least below its quantile, and so many at most up to it
        fewest = np.concatenate([tried[:1], tried[:-1] + 1])
        most = np.concatenate([tried[1:], tried[-1:] + 1])
        at_least = below_tail(*line.rows(q, fewest, group), q)
        at_most = upto_tail(*line.rows(q, most, group), q)
        falling = factor < 0
        up = self._above(factor * np.where(falling, low, high) + plus, group)
        down = self._below(factor * np.where(falling, high, low) + plus, group)
        with_up = np.where(falling, at_most, at_least)
        with_down = np.where(falling, at_least, at_most)
        kappa = self._common((low + high) / 2, factor, plus, group)
        far = _distance(normal_score(up), normal_score(with_up), kappa)
        near = _distance(normal_score(down), normal_score(with_down), kappa)
        return _one_sided(far, near), _one_sided(near, far)

    def _common(
        self, middle: FloatArray, factor: FloatArray, plus: FloatArray, group: IntArray
    ) -> FloatArray:
        """Correlation of both shares by the rows that group and target have in common."""
        if self.shared is None or self.other is None:
            return np.zeros_like(middle)
        line, q = self.shared, self.q
        here, there = (line.places_upto(x) for x in (factor * middle + plus, middle))
        own, other = (np.nan_to_num(line.upto[place, group]) for place in (here, there))
        both, number = np.minimum(own, other), np.maximum(line.weight[group], 1e-300)
        size = np.sqrt(self.own.weight[group] * self.other.weight[group])
        kappa = np.nan_to_num((both - own * other / number) / (q * (1 - q) * size))
        return np.clip(kappa, 0.0, 0.98)


def _distance(one: FloatArray, two: FloatArray, kappa: FloatArray) -> FloatArray:
    """The least distance, over the numbers tried, of two scores from where neither objects."""
    a, b = np.maximum(one, 0.0), np.maximum(two, 0.0)
    # rows in common pull the two scores apart, so that both at once say more
    both = (a**2 + 2 * kappa * a * b + b**2) / np.where((a > 0) & (b > 0), 1 - kappa**2, 1.0)
    return np.asarray(np.sqrt(both.min(axis=0)))


def _one_sided(far: FloatArray, near: FloatArray) -> FloatArray:
    return np.minimum(np.where(far > 0, ndtr(-far), ndtr(near)) + OPEN_QUANTILE, 1.0)


def quantile_pivot(
    found: Comparison,
    q: float,
    own: Sorted,
    other: Sorted | None,
    shared: Sorted | None,
) -> QuantilePivot:
    """The pivot of quantiles: with their standard errors, and where the target's may be."""
    groups = found.rows.size
    errors, tried = np.zeros((2, groups)), np.zeros((PLACES, groups), dtype=np.int64)
    for i, line in enumerate((own, other)):
        if line is not None:
            errors[i] = _quantile_error(line, q)
    if other is not None:
        tried = _tried(other, q)
    return QuantilePivot(
        comparison=found, q=q, own=own, other=other, shared=shared, errors=errors, tried=tried
    )


def _quantile_error(line: Sorted, q: float) -> FloatArray:
    """About the standard error of a quantile: how far the quantiles two errors of its rank away."""
    every = np.arange(line.weight.size)
    _, size = line.rows(q, np.zeros_like(every), every)
    step = np.minimum(2 * np.sqrt(q * (1 - q) / np.maximum(size, 1.0)), min(q, 1 - q))
    wide = np.nan_to_num(line.quantile(q + step) - line.quantile(q - step))
    usual = float((line.high[-1] - line.low[0]) / 1e3) if line.low.size else 0.0
    # where all rows around it are tied, what counts is who has more of them
    least = max(usual, 1e-9) / np.sqrt(np.maximum(size, 1.0))
    return np.asarray(
        np.maximum(wide * np.sqrt(q * (1 - q) / np.maximum(size, 1.0)) / (2 * step), least)
    )


def _tried(line: Sorted, q: float) -> IntArray:
    """Places between which each group's quantile is tried, the same number for all."""
    places, groups = line.low.size, line.weight.size
    every = np.arange(groups)
    grid = np.repeat(np.arange(places)[:, None], groups, axis=1)
    group = np.broadcast_to(every, grid.shape)
    # a place is open unless the quantile is surely above all of it, or below
    above = upto_tail(*line.rows(q, grid + 1, group), q) > OPEN_QUANTILE / 2
    below = below_tail(*line.rows(q, grid, group), q) > OPEN_QUANTILE / 2
    first = np.argmax(above, axis=0)
    last = places - 1 - np.argmax(below[::-1], axis=0)
    last = np.maximum(first, last)
    share = np.linspace(0.0, 1.0, PLACES)[:, None]
    return np.asarray(np.round(first + share * (last - first)), dtype=np.int64)
