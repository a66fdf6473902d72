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
from scipy.special import expit, logit, ndtr, ndtri

from equipoise.methods.inference.core import Core, Pivot
from equipoise.methods.inference.counts import CountPivot
from equipoise.methods.inference.tails import Tails
from equipoise.methods.numerics import FloatArray, GroupSums, IntArray
from equipoise.methods.targets import Comparison, HighestPivot, Rival, over

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
