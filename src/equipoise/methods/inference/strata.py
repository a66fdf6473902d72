"""Disparities given legitimate factors: the rates of two sides in every stratum, and their gap.

In stratum s the group has k₁ ones among n₁ rows and the others k₀ among n₀. With weights w that the
margins alone fix, the adjusted gap is Σ w (μ₁ − μ₀) over strata that have rows of both sides:
Mantel and Haenszel's weights n₁n₀/n (where the data know most), the group's own composition n₁
(what would change for these people), or everybody's, n. A ratio compares the same weighted sums.

One pivot serves few large strata and many small ones. A rate cannot be fitted in each of 500 strata
of three rows, but the variance of the whole can be known without: every pair of rows of a stratum
tells whether two rows differ, and no row is used twice (as in Sato's variance, 1989, which uses the
pairs of unlike sides). Tails are those of a gamma law with the skewness that the rates imply, and
reach half a step of the counts further.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from scipy.special import chdtrc, gammainc, gammaincc, gammaln, ndtr

from equipoise.methods.hypotheses import Tails
from equipoise.methods.inference.student import RowDraws, moved_squares
from equipoise.methods.numerics import BoolArray, FloatArray, GroupSums, IntArray, over
from equipoise.methods.targets import (
    Comparison,
    Moments,
    OfComparison,
    Overall,
    Reference,
    Status,
    Target,
)


class Weights(StrEnum):
    """What the strata are weighed by."""

    MANTEL_HAENSZEL = "mantel-haenszel"
    """n₁n₀/n: where the data know most."""
    GROUP = "group"
    """n₁: the group's own composition."""
    POPULATION = "population"
    """n: everybody's composition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strata:
    """Two sides in every stratum of every group; arrays of shape ``(S, G)``."""

    group_rows: FloatArray
    group_ones: FloatArray
    other_rows: FloatArray
    other_ones: FloatArray
    kind: Weights = Weights.MANTEL_HAENSZEL
    within: bool = False
    """Whether the others' target holds the group as well: a stratum's gap is then n₀/n of it."""

    @property
    def overlap(self) -> BoolArray:
        """Strata in which both sides have rows."""
        return np.asarray((self.group_rows > 0) & (self.other_rows > 0))

    @property
    def share(self) -> FloatArray:
        """The weight of every stratum; they add up to one in each group that has any."""
        n1, n0 = self.group_rows, self.other_rows
        raw = {
            Weights.MANTEL_HAENSZEL: np.nan_to_num(over(n1 * n0, n1 + n0)),
            Weights.GROUP: n1,
            Weights.POPULATION: n1 + n0,
        }[self.kind]
        raw = np.where(self.overlap, raw, 0.0)
        return np.nan_to_num(over(raw, np.broadcast_to(raw.sum(axis=0), raw.shape)))

    @property
    def weight(self) -> FloatArray:
        """The weight of every stratum's gap between the two sides."""
        every = self.group_rows + self.other_rows
        part = np.nan_to_num(over(self.other_rows, every)) if self.within else 1.0
        return np.asarray(self.share * part)

    def rate(self, ones: FloatArray, rows: FloatArray) -> FloatArray:
        """One side's rate, standardised; NaN where no stratum has both sides."""
        each = np.nan_to_num(over(ones, rows))
        return np.where(self.overlap.any(axis=0), (self.share * each).sum(axis=0), np.nan)

    def gap(self, factor: FloatArray) -> FloatArray:
        """Σ w (p₁ − factor p₀) as it was seen."""
        one, other = (
            np.nan_to_num(over(ones, rows))
            for ones, rows in (
                (self.group_ones, self.group_rows),
                (self.other_ones, self.other_rows),
            )
        )
        return np.asarray((self.weight * (one - factor * other)).sum(axis=0))

    @property
    def explained(self) -> FloatArray:
        """The part of the unadjusted gap that composition explains (Kitagawa 1955).

        Shares of the strata differ between the two sides; weighed by the rates half of either side,
        that is what would be left of the gap if rates within strata were alike.
        """
        share = [
            np.nan_to_num(over(rows, np.broadcast_to(rows.sum(axis=0), rows.shape)))
            for rows in (self.group_rows, self.other_rows)
        ]
        rate = [
            np.nan_to_num(over(ones, rows))
            for ones, rows in (
                (self.group_ones, self.group_rows),
                (self.other_ones, self.other_rows),
            )
        ]
        # a side without rows in a stratum has no rate there, and takes the other's
        rate[0] = np.where(self.group_rows > 0, rate[0], rate[1])
        rate[1] = np.where(self.other_rows > 0, rate[1], rate[0])
        return np.asarray(((share[0] - share[1]) * (rate[0] + rate[1]) / 2).sum(axis=0))

    @property
    def dilution(self) -> FloatArray:
        """What a gap to the others is multiplied by to be one to everybody; else one."""
        one, other = self.group_rows.sum(axis=0), self.other_rows.sum(axis=0)
        share = np.nan_to_num(over(other, one + other))
        return share if self.within else np.ones_like(share)

    @property
    def apart(self) -> FloatArray:
        """Rows of the group in strata without anybody to compare with."""
        return np.asarray(np.where(self.overlap, 0.0, self.group_rows).sum(axis=0))

    def some(self, chosen: IntArray) -> "Strata":
        """Some of the groups."""
        return Strata(
            group_rows=self.group_rows[:, chosen],
            group_ones=self.group_ones[:, chosen],
            other_rows=self.other_rows[:, chosen],
            other_ones=self.other_ones[:, chosen],
            kind=self.kind,
            within=self.within,
        )


# --- Groups beside their target, stratum by stratum ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjusted(Comparison):
    """Groups beside their target given strata: means are standardised, all else is as ever."""

    strata: Strata
    """Both sides in every stratum."""
    place: IntArray
    """The stratum of every cell."""
    member: FloatArray
    """Which cells each group is made of, ``(C, G)``."""

    def some(self, chosen: IntArray) -> "Adjusted":
        """Some of the groups."""
        return replace(
            self,
            parts=self.parts.some(chosen),
            strata=self.strata.some(chosen),
            member=self.member[:, chosen],
        )

    @property
    def mean(self) -> FloatArray:
        """The group's rate, standardised."""
        return self.strata.rate(self.strata.group_ones, self.strata.group_rows)

    @property
    def theta(self) -> FloatArray:
        """The target's rate, standardised."""
        s = self.strata
        if s.within:
            return s.rate(s.group_ones + s.other_ones, s.group_rows + s.other_rows)
        return s.rate(s.other_ones, s.other_rows)

    @property
    def status(self) -> IntArray:
        """What the sizes alone say of each group."""
        out = np.full(self.parts.rows.shape[1], int(Status.OK), dtype=np.int64)
        if self.relative:
            out[~(self.target.scale * self.theta > 0)] = Status.ZERO_TARGET
        out[~self.strata.overlap.any(axis=0)] = Status.NO_OVERLAP
        out[self.strata.other_rows.sum(axis=0) == 0] = Status.NO_TARGET
        alone = self.strata.group_rows.sum(axis=0) == 0
        # all of it may lie within its own target
        out[alone] = np.where(self.rows[alone] > 0, Status.IDENTICAL, Status.EMPTY)
        return out

    def moves(
        self, weight: FloatArray, total: FloatArray, factor: FloatArray, sums: GroupSums
    ) -> FloatArray:
        """First-order moves ``(b, G)`` of the contrast when cell sums move by so much."""
        per_total, per_row = self.effects(factor)
        return np.asarray(total @ per_total - weight @ per_row)

    def effects(self, factor: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What a one, and what a row, of every cell does to every group's contrast, ``(C, G)``."""
        s, member = self.strata, self.member
        against = 1 - member
        if isinstance(self.target, Reference):
            against = against * np.asarray(self.target.cells, dtype=np.float64)[:, None]
        w = s.weight[self.place]
        out = []
        for ones in (False, True):
            sides = []
            for belongs, rows, hits in (
                (member, s.group_rows, s.group_ones),
                (against, s.other_rows, s.other_ones),
            ):
                share = np.nan_to_num(over(w, rows[self.place])) * belongs
                rate = np.nan_to_num(over(hits, rows))[self.place]
                sides.append(share * rate if ones else share)
            out.append(sides[0] - factor * sides[1])
        return out[0], out[1]


class StrataDraws(RowDraws):
    """Moves of the cells, and what they do to adjusted disparities."""

    def variance(self, found: Comparison, factor: FloatArray, sums: GroupSums) -> FloatArray:
        """Sum of squared effects, over all rows."""
        assert isinstance(found, Adjusted)
        a, b = found.effects(factor)
        w, mean, rest = self._root**2, self.mean, self._rest
        q, t, n = w * mean**2 + rest**2, w * mean, w
        return moved_squares(a**2 * q[:, None], a * b * t[:, None], b**2 * n[:, None])


def adjusted(
    cells: Moments,
    target: Target,
    sums: GroupSums,
    place: IntArray,
    *,
    relative: bool,
    kind: Weights = Weights.MANTEL_HAENSZEL,
) -> Adjusted:
    """Every group beside its target, given the stratum that each cell lies in."""
    number = int(place.max(initial=-1)) + 1
    inside = place[None] == np.arange(number)[:, None]

    def sides(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        parts = target.parts(np.where(inside, x, 0.0), sums)
        if isinstance(target, Reference):
            # what group and reference share is on neither side
            return parts[0], parts[2]
        return parts[0], parts[1]

    (n1, n0), (k1, k0) = sides(cells.rows), sides(cells.total)
    strata = Strata(
        group_rows=n1,
        group_ones=k1,
        other_rows=n0,
        other_ones=k0,
        kind=kind,
        within=isinstance(target, Overall),
    )
    step = max(1, (1 << 22) // max(place.size, 1))
    member = [
        sums(np.eye(place.size)[start : start + step]) for start in range(0, place.size, step)
    ]
    return Adjusted(
        target=target,
        relative=relative,
        parts=cells.parts(target, sums),
        strata=strata,
        place=place,
        member=np.concatenate(member),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StrataPivot(OfComparison):
    """p-values of an adjusted disparity."""

    comparison: Adjusted

    @property
    def error(self) -> FloatArray:
        """Standard error at the estimate."""
        found = self.comparison
        at = np.where(np.isfinite(self.estimate), self.estimate, 1.0 if found.relative else 0.0)
        unit = found.target.scale * found.theta if found.relative else np.ones_like(at)
        variance = contrast_variance(found.strata, found.factor(at), found.aim(at))
        return np.asarray(np.sqrt(variance) / np.maximum(np.abs(np.nan_to_num(unit)), 1e-12))

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """Chances, if the disparity were this, of an estimate as high, and as low, as was seen."""
        found = self.comparison.some(chosen)
        factor, aim = found.factor(disparity), found.aim(disparity)
        seen = found.strata.gap(factor) - aim
        error = np.sqrt(contrast_variance(found.strata, factor, aim))
        skewness, step = _shape(found.strata, factor, aim, error)
        # an outcome stands for what lies up to half a step to either side of it
        up = skew_tail((seen - step / 2) / error, skewness)
        down = skew_tail(-(seen + step / 2) / error, -skewness)
        return up, down


def contrast_variance(strata: Strata, factor: FloatArray, aim: FloatArray) -> FloatArray:
    """Variance of Σ w (μ₁ − factor μ₀) if it were ``aim``, never zero."""
    w = strata.weight
    n1, n0 = np.maximum(strata.group_rows, 1.0), np.maximum(strata.other_rows, 1.0)
    p1, p0 = strata.group_ones / n1, strata.other_ones / n0
    q1, q0 = _moved(strata, factor, aim)
    times = np.maximum(np.abs(factor), 1e-12)
    # what the group's rate would be by the others', and the other way round
    other, back = _implied(w, factor * q0, aim), _implied(w * times, q1 / times, -aim)
    shares = _pairs(strata.group_rows, strata.other_rows)
    mixed1 = _bernoulli(shares, q1, _excess(p1, n1), other, factor**2 * _excess(p0, n0))
    mixed0 = _bernoulli(shares[::-1], q0, _excess(p0, n0), back, _excess(p1, n1) / times**2)
    about = (w**2 * (mixed1 / n1 + factor**2 * mixed0 / n0)).sum(axis=0)
    rows = np.maximum(strata.group_rows.sum(axis=0), 1.0)
    return np.asarray(np.maximum(about, 0.25 / rows**2))


# Rates as a hypothesis has them. What was seen is moved until the contrast is what it should be;
# where everybody was a one already nobody's rate can rise, so that of others must by more. Rates
# as they were seen would leave no variance where nothing was seen to vary, and moving all alike
# would let strata of nothing but zeros and strata of nothing but ones cancel.


def _moved(strata: Strata, factor: FloatArray, aim: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rates of both sides that give the contrast; the side moves more that is known less well."""
    w = strata.weight
    n1, n0 = np.maximum(strata.group_rows, 1.0), np.maximum(strata.other_rows, 1.0)
    p1, p0 = strata.group_ones / n1, strata.other_ones / n0
    open1, open0 = (w**2 / n1).sum(axis=0), np.abs(factor) * (w**2 / n0).sum(axis=0)
    both = np.maximum(open1 + open0, 1e-300)
    each1, each0 = open1 / both, open0 / both

    def contrast(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        q1, q0 = np.clip(p1 + t * each1, 0.0, 1.0), np.clip(p0 - t * each0, 0.0, 1.0)
        slope1, slope0 = (np.where((q > 0) & (q < 1), w, 0.0).sum(axis=0) for q in (q1, q0))
        gap = (w * (q1 - factor * q0)).sum(axis=0) - aim
        return gap, each1 * slope1 + factor * each0 * slope0

    reach = 2 / np.maximum(np.minimum(each1, each0), 1e-6)
    t = _root(contrast, reach)
    return np.clip(p1 + t * each1, 0.0, 1.0), np.clip(p0 - t * each0, 0.0, 1.0)


def _implied(w: FloatArray, rate: FloatArray, aim: FloatArray) -> FloatArray:
    """Rates that exceed these by ``aim`` altogether: Σ w (implied − rate) = aim."""

    def contrast(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        implied = np.clip(rate + t, 0.0, 1.0)
        slope = np.where((implied > 0) & (implied < 1), w, 0.0).sum(axis=0)
        return (w * (implied - rate)).sum(axis=0) - aim, slope

    return np.clip(rate + _root(contrast, np.full(aim.shape, 2.0)), 0.0, 1.0)


def _root(
    contrast: Callable[[FloatArray], tuple[FloatArray, FloatArray]], reach: FloatArray
) -> FloatArray:
    """Where a rising function, given with its slope, is zero; the nearer end if it is nowhere."""
    low, high, t = -reach, reach.copy(), np.zeros_like(reach)
    for _ in range(60):
        gap, slope = contrast(t)
        far = np.abs(gap) > 1e-12
        if not bool(far.any()):
            break
        low, high = np.where(gap < 0, t, low), np.where(gap > 0, t, high)
        step = t - np.divide(gap, slope, out=np.zeros_like(gap), where=slope > 0)
        inside = (step > low) & (step < high) & (slope > 0)
        t = np.where(far, np.where(inside, step, (low + high) / 2), t)
    return t


def _shape(
    found: Strata, factor: FloatArray, aim: FloatArray, error: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Skewness of the contrast if rates are as the hypothesis has them, and its typical step."""
    n1, n0 = np.maximum(found.group_rows, 1.0), np.maximum(found.other_rows, 1.0)
    # all rows of a stratum together say what the group's rate is, and so do all strata
    share = found.group_rows / np.maximum(found.group_rows + found.other_rows, 1.0)
    w, times = found.weight, np.maximum(np.abs(factor), 1e-12)
    q1, q0 = _moved(found, factor, aim)
    rate1 = share * q1 + (1 - share) * _implied(w, factor * q0, aim)
    rate0 = _implied(w * times, rate1 / times, -aim)
    third, wide, size = (np.zeros(error.shape) for _ in range(3))
    for rate, n, sign in ((rate1, n1, np.ones_like(factor)), (rate0, n0, -factor)):
        each, spread = sign * w / n, n * rate * (1 - rate)
        third = third + (each**3 * spread * (1 - 2 * rate)).sum(axis=0)
        wide = wide + (each**2 * spread).sum(axis=0)
        size = size + (np.abs(each) * spread).sum(axis=0)
    step = np.divide(wide, size, out=np.zeros_like(wide), where=size > 0)
    return third / error**3, step


def skew_tail(z: FloatArray, skewness: FloatArray) -> FloatArray:
    """Chance beyond z standard deviations, for a gamma law of this skewness (Pearson's type III).

    >>> skew_tail(np.array([1.96, 1.96]), np.array([0.0, 1.0])).round(3).tolist()
    [0.025, 0.045]
    """
    g = np.clip(np.abs(skewness), 1e-3, 3.0)
    shape = 4 / g**2
    at = np.maximum(shape + np.where(skewness < 0, -z, z) * np.sqrt(shape), 0.0)
    beyond = np.where(skewness < 0, gammainc(shape, at), gammaincc(shape, at))
    return np.where(np.abs(skewness) <= 1e-3, ndtr(-z), beyond)


def _pairs(n1: FloatArray, n0: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Shares of the pairs of rows that are both of the group, mixed, and both of the others."""
    own, mixed, other = n1 * (n1 - 1), 2 * n1 * n0, n0 * (n0 - 1)
    every = np.maximum(own + mixed + other, 1e-300)
    return own / every, mixed / every, other / every


def _excess(p: FloatArray, n: FloatArray) -> FloatArray:
    """What the square of a rate exceeds that of its mean by, on average: p(1 − p)/(n − 1)."""
    return np.divide(p * (1 - p), n - 1, out=np.zeros_like(p), where=n > 1)


def _bernoulli(
    shares: tuple[FloatArray, FloatArray, FloatArray],
    p: FloatArray,
    excess: FloatArray,
    implied: FloatArray,
    implied_excess: FloatArray,
) -> FloatArray:
    """μ(1 − μ) of one side without bias, from all pairs of rows, whichever side they are of.

    Each pair tells whether two rows differ; none uses a row twice, so that a stratum of three rows
    counts for what it is. Rows of the other side are taken to what they imply for this one.
    """
    own = p * (1 - p) + excess
    mixed = (p * (1 - implied) + implied * (1 - p)) / 2
    other = implied * (1 - implied) + implied_excess
    return shares[0] * own + shares[1] * mixed + shares[2] * other


# --- Tests about all strata ---


def conditional_tails(strata: Strata) -> Tails:
    """Exact tails of the group's ones given all margins of every stratum: no disparity in any.

    The sum of independent hypergeometric counts, one for each stratum (Cochran, Mantel, Haenszel).

    >>> one = Strata(
    ...     group_rows=np.array([[4.0]]), group_ones=np.array([[4.0]]),
    ...     other_rows=np.array([[4.0]]), other_ones=np.array([[0.0]]),
    ... )
    >>> [round(float(p[0]), 4) for p in conditional_tails(one)]
    [0.0143, 1.0]
    """
    up, down = (np.ones(strata.group_rows.shape[1]) for _ in range(2))
    for g in range(up.size):
        use = np.flatnonzero(strata.overlap[:, g])
        low, law = 0, np.ones(1)
        for s in use.tolist():
            start, part = _hypergeometric(
                int(strata.group_rows[s, g]),
                int(strata.other_rows[s, g]),
                int(strata.group_ones[s, g] + strata.other_ones[s, g]),
            )
            low, law = low + start, np.convolve(law, part)
        place = int(strata.group_ones[use, g].sum()) - low
        # sums of many products: what is within rounding of an outcome counts as that outcome
        up[g], down[g] = min(law[place:].sum(), 1.0), min(law[: place + 1].sum(), 1.0)
    return up, down


def _hypergeometric(n1: int, n0: int, ones: int) -> tuple[int, FloatArray]:
    """Smallest count of ones among n₁ rows, and the chances of it and of all larger ones."""
    low, high = max(0, ones - n0), min(n1, ones)
    k = np.arange(low, high + 1, dtype=np.float64)

    def choose(n: float, x: FloatArray | float) -> FloatArray:
        return np.asarray(gammaln(n + 1) - gammaln(np.add(x, 1)) - gammaln(n - np.asarray(x) + 1))

    log = choose(n1, k) + choose(n0, ones - k) - choose(n1 + n0, float(ones))
    chance = np.exp(log)
    return low, chance / chance.sum()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sameness:
    """Whether a group's odds ratio is the same in all strata, and which of them depart from it."""

    p: FloatArray
    """p-value of each group, ``(G,)``; NaN where too few can tell."""
    apart: FloatArray
    """Chance of a table as far from what all have, for every stratum by itself, ``(S, G)``."""


# With the margins of every stratum and the ones of the group in all of them given, the tables that
# are possible have one law if the odds ratio is the same everywhere, whatever it is (Zelen 1971).
# So how far the strata lie from what all have is compared with tables drawn from that law: exact
# however few rows a stratum has, where the chi-squared law of Breslow and Day is wrong for many
# small strata. Where there are too many tables to draw from, sums of squares have the first two
# moments that the strata's own laws give them.

DRAWS, ENOUGH = 20_000, 100
"""Tables drawn at most, and tables as far apart after which no more are needed."""
MOST_COUNTS = 5_000
"""Counts that strata can take, all together, up to which tables are drawn."""
SEED = 1971


def homogeneity(strata: Strata) -> Sameness:
    """Test that the odds ratio is the same in all strata."""
    out = np.full(strata.group_rows.shape[1], np.nan)
    apart = np.ones(strata.group_rows.shape)
    for g in range(out.size):
        n1, n0 = strata.group_rows[:, g], strata.other_rows[:, g]
        k1, k0 = strata.group_ones[:, g], strata.other_ones[:, g]
        # strata in which all rows are alike, or all of one side, say nothing
        use = (n1 > 0) & (n0 > 0) & (k1 + k0 > 0) & (k1 + k0 < n1 + n0)
        n1, n0, k1, k0 = (x[use] for x in (n1, n0, k1, k0))
        # one table is possible if all strata have as many ones as they can, or as few
        if k1.size < 2 or not (k1 * (n0 - k0)).any() or not (k0 * (n1 - k1)).any():
            continue
        law = _CommonOdds.fitted(n1, n0, k1, k1 + k0)
        out[g] = law.p_value(k1)
        apart[use, g] = law.beyond(k1)
    return Sameness(p=out, apart=apart)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CommonOdds:
    """The group's ones in every stratum, if the odds ratio is the same in all; ``(S, K)``."""

    counts: FloatArray
    """Counts a stratum can have; of very many every so-manieth."""
    chance: FloatArray
    mean: FloatArray
    variance: FloatArray

    @staticmethod
    def fitted(n1: FloatArray, n0: FloatArray, k1: FloatArray, ones: FloatArray) -> "_CommonOdds":
        """With the odds ratio under which as many ones are expected as were seen."""
        top, bottom = k1 * (n0 - ones + k1), (ones - k1) * (n1 - k1)
        log = float(np.log((top / (n1 + n0)).sum() / (bottom / (n1 + n0)).sum()))
        low, high = -np.inf, np.inf
        for _ in range(100):
            law = _CommonOdds.at(log, n1, n0, ones)
            off = float(k1.sum() - law.mean.sum())
            if abs(off) <= 1e-9 * max(float(law.variance.sum()), 1.0):
                break
            low, high = (log, high) if off > 0 else (low, log)
            step = log + float(np.clip(off / law.variance.sum(), -2.0, 2.0))
            log = step if low < step < high else (low + high) / 2
        return law

    @staticmethod
    def at(log: float, n1: FloatArray, n0: FloatArray, ones: FloatArray) -> "_CommonOdds":
        """With this logarithm of the odds ratio."""
        lowest, highest = np.maximum(0.0, ones - n0), np.minimum(n1, ones)
        middle = _expected_ones(n1, n0, ones, float(np.exp(log)))
        near = np.maximum(np.minimum(middle - lowest, highest - middle), 0.25)
        # a variance is at most the smallest of the four expected counts
        reach = 10 * (1 + np.sqrt(near))
        start = np.maximum(lowest, np.floor(middle - reach))
        end = np.minimum(highest, np.ceil(middle + reach))
        step = np.ceil((end - start + 1) / 1000)
        k = start[:, None] + step[:, None] * np.arange(int(((end - start) / step).max()) + 1)
        inside = k <= end[:, None]
        k = np.where(inside, k, start[:, None])
        a, b, m = n1[:, None], n0[:, None], ones[:, None]
        weight = k * log - (
            gammaln(k + 1) + gammaln(a - k + 1) + gammaln(m - k + 1) + gammaln(b - m + k + 1)
        )
        weight = np.where(inside, weight, -np.inf)
        chance = np.exp(weight - weight.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
        mean = (chance * k).sum(axis=1)
        variance = (chance * (k - mean[:, None]) ** 2).sum(axis=1)
        return _CommonOdds(counts=k, chance=chance, mean=mean, variance=variance)

    @property
    def distance(self) -> FloatArray:
        """How far every count is from what is expected, squared, in variances."""
        off = (self.counts - self.mean[:, None]) ** 2
        return np.asarray(off / np.maximum(self.variance, 1e-300)[:, None])

    def beyond(self, k1: FloatArray) -> FloatArray:
        """Twice the chance of a count as far to one side, for every stratum by itself."""
        k = self.counts
        up, down = (
            np.where(far, self.chance, 0.0).sum(axis=1)
            for far in (k >= k1[:, None], k <= k1[:, None])
        )
        return np.asarray(np.minimum(2 * np.minimum(up, down), 1.0))

    def p_value(self, k1: FloatArray) -> float:
        """Chance of strata as far from what all have."""
        seen = float(((k1 - self.mean) ** 2 / np.maximum(self.variance, 1e-300)).sum())
        whole = bool((np.diff(self.counts, axis=1).max(axis=1) <= 1).all())
        if whole and np.count_nonzero(self.chance) <= MOST_COUNTS:
            return self._drawn(int(k1.sum()), seen)
        return self._by_moments(seen)

    def _by_moments(self, seen: float) -> float:
        off = self.counts - self.mean[:, None]
        third, fourth = ((self.chance * off**power).sum(axis=1) for power in (3, 4))
        v = self.variance
        # given the sum of all ones a mean and a part of the variance are gone
        spread = (fourth / v**2 - 1).sum() - (third / v).sum() ** 2 / v.sum() - 2
        mean = max(v.size - 1.0, 1.0)
        scale = max(float(spread), 1e-9) / (2 * mean)
        return float(chdtrc(mean / scale, max(seen, 0.0) / scale))

    def _drawn(self, ones: int, seen: float) -> float:
        first = self.counts[:, 0].astype(np.int64)
        chance, distance = self.chance, self.distance
        # the law of what is left for the strata that come later
        left = [np.ones(1)]
        for row in chance[:0:-1]:
            left.append(np.convolve(np.trim_zeros(row, "b"), left[-1]))
        left.reverse()
        rng, drawn, far, size = np.random.default_rng(SEED), 0, 0, 250
        while drawn < DRAWS:
            rest = np.full(size, ones - int(first.sum()))
            total = np.zeros(size)
            for s, later in enumerate(left):
                width = np.count_nonzero(np.trim_zeros(chance[s], "b")) or 1
                after = rest[:, None] - np.arange(width)
                fits = (after >= 0) & (after < later.size)
                weight = chance[s, :width] * np.where(fits, later[np.where(fits, after, 0)], 0.0)
                edges = weight.cumsum(axis=1)
                pick = (edges <= rng.random(size)[:, None] * edges[:, -1:]).sum(axis=1)
                rest = rest - np.minimum(pick, width - 1)
                total += distance[s, np.minimum(pick, width - 1)]
            hits = (total >= seen * (1 - 1e-9) - 1e-9).cumsum()
            if far + hits[-1] >= ENOUGH:
                # no more than these draws are needed (Besag and Clifford 1991)
                return float(ENOUGH / (drawn + 1 + int(np.argmax(far + hits >= ENOUGH))))
            far, drawn = far + int(hits[-1]), drawn + size
            size = min(2 * size, DRAWS - drawn)
        return (far + 1) / (drawn + 1)


def _expected_ones(n1: FloatArray, n0: FloatArray, ones: FloatArray, odds: float) -> FloatArray:
    """Ones among n₁ rows that give an odds ratio, all margins kept: the root of a quadratic."""
    if abs(odds - 1) < 1e-12:
        return np.asarray(n1 * ones / (n1 + n0))
    a = 1 - odds
    b = n0 - ones + odds * (n1 + ones)
    c = -odds * n1 * ones
    root = np.sqrt(b**2 - 4 * a * c)
    # of the two roots the one within the margins, written without cancellation
    return np.asarray(2 * -c / (b + root))
