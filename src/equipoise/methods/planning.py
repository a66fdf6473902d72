"""How many rows: chances that a group is flagged, or shown to keep a limit, by simulation.

The audit that will be run is run on simulated tables. Its tails take long, so they are computed on
few tables only: quick normal scores are fitted to them, these decide in all tables, and those that
lie close to the limit are decided once more by the tails themselves. A search over disparities, or
over sizes, begins where normal theory says.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.special import gammaln, ndtr, ndtri, stdtr, xlog1py, xlogy

from equipoise.methods.hypotheses import Null, Outside
from equipoise.methods.inference.counts import CountPivot, constrained_rates
from equipoise.methods.inference.tails import Tails
from equipoise.methods.numerics import BoolArray, FloatArray, GroupSums, IntArray
from equipoise.methods.targets import Comparison, Constant, Target, plain_moments

# --- Simulated tables: counts of every cell, drawn by points that lie evenly ---

BLOCKS = 8
"""Sets of tables that are drawn independently: they say how large the Monte-Carlo error is."""
FEWEST, MOST = 512, 8192
"""Tables that are drawn, at least and at most."""
NUMBERS = 24_000
"""Scores that a set of tables may hold: tables times groups."""


def worlds_for(groups: int) -> int:
    """How many tables are simulated for so many groups.

    >>> worlds_for(2), worlds_for(10), worlds_for(500)
    (8192, 2400, 512)
    """
    return int(np.clip(NUMBERS // max(groups, 1), FEWEST, MOST)) // BLOCKS * BLOCKS


def even_points(number: int, width: int, rng: np.random.Generator) -> FloatArray:
    """Points in a cube that fill it evenly, ``(number, width)``, in blocks shifted at random.

    >>> even_points(16, 3, np.random.default_rng(1)).shape
    (16, 3)
    """
    # multiples of square roots of primes (Richtmyer), shifted at random (Cranley and Patterson)
    step = np.sqrt(_primes(width))
    inside = np.arange(1, number // BLOCKS + 1)[:, None] * step
    shifts = rng.random((BLOCKS, 1, width))
    points = (inside[None] + shifts).reshape(-1, width) % 1.0
    return np.asarray(np.clip(points, 1e-12, 1 - 1e-12))


def _primes(number: int) -> FloatArray:
    most = max(int(number * (np.log(number + 1) + np.log(np.log(number + 2) + 1) + 2)), 20)
    sieve = np.ones(most, dtype=bool)
    sieve[:2] = False
    for i in range(2, int(most**0.5) + 1):
        if sieve[i]:
            sieve[i * i :: i] = False
    return np.flatnonzero(sieve)[:number].astype(np.float64)


WIDE = 1e6
"""The variance of a count from which on its quantiles are those of a normal."""


def binomial_quantiles(u: FloatArray, rows: float, rate: float) -> FloatArray:
    """Smallest counts whose distribution function reaches ``u``.

    >>> binomial_quantiles(np.array([0.2, 0.3, 0.9]), 2.0, 0.5).tolist()
    [0.0, 1.0, 2.0]
    """
    mean, spread = rows * rate, np.sqrt(rows * rate * (1 - rate))
    if spread == 0:
        return np.full(u.shape, mean)
    if spread**2 > WIDE:
        return np.asarray(np.clip(np.round(mean + spread * ndtri(u)), 0, rows))
    low, high = max(0.0, np.floor(mean - 9 * spread - 20)), min(rows, mean + 9 * spread + 20)
    k = np.arange(low, np.ceil(high) + 1)
    k = k[k <= rows]
    logs = gammaln(rows + 1) - gammaln(k + 1) - gammaln(rows - k + 1)
    chance = np.exp(logs + xlogy(k, rate) + xlog1py(rows - k, -rate))
    place = np.searchsorted(np.cumsum(chance), u)
    return np.asarray(k[np.minimum(place, k.size - 1)])


# --- What a planned audit is simulated by ---


EVERY = slice(None)


class Tables(Protocol):
    """Simulated tables in which one group has a disparity and nobody else has."""

    def tails(self, limit: float, groups: slice = EVERY) -> Tails:
        """Both tails of groups in every table, ``(worlds, groups)``, by quick scores."""
        ...

    def sharp(self, limit: float, group: int, which: IntArray) -> Tails | None:
        """Those of one group in some tables as the audit computes them; None if not at hand."""
        ...

    def doubt(self, limit: float, group: int) -> float:
        """By how much quick scores of a group may be off: they are decided again within that."""
        ...


class Simulator(Protocol):
    """Where simulated tables come from."""

    @property
    def groups(self) -> int:
        """How many groups are tested together."""
        ...

    def tables(self, group: int, disparity: float | None, scale: float) -> Tables:
        """Tables ``scale`` times as large, in which a group has a disparity; None for nobody."""
        ...

    def error(self, group: int, disparity: float | None, scale: float) -> float:
        """About the standard error of a group's disparity there."""
        ...

    def ends(self, group: int) -> tuple[float, float]:
        """Smallest and largest disparity that the group could have."""
        ...


@dataclass(frozen=True, kw_only=True)
class CountSimulator:
    """Tables of plain 0/1 counts, with sizes as they are and rates as they are assumed to be."""

    rows: FloatArray
    """Rows of each cell, ``(C,)``."""
    rate: float
    """The rate of all who have no disparity."""
    member: BoolArray
    """Which cells each tested group is made of, ``(C, G)``."""
    target: Target
    """What groups are compared with."""
    relative: bool
    """Whether disparities are ratios."""
    seed: np.random.SeedSequence
    """Seed of the tables."""

    @property
    def groups(self) -> int:
        """How many groups are tested together."""
        return int(self.member.shape[1])

    @cached_property
    def points(self) -> FloatArray:
        """What counts are drawn by: the same for every question, so that answers are smooth."""
        rng = np.random.default_rng(self.seed)
        return even_points(worlds_for(self.groups), self.rows.size, rng)

    @property
    def sums(self) -> GroupSums:
        """From cells to groups."""
        inside = self.member.astype(np.float64)
        return lambda x: x @ inside

    def sizes(self, scale: float) -> FloatArray:
        """Rows of each cell in a table ``scale`` times as large."""
        return np.where(self.rows > 0, np.maximum(np.round(self.rows * scale), 1.0), 0.0)

    def tables(self, group: int, disparity: float | None, scale: float) -> "CountTables":
        """Tables in which a group has a disparity; None for nobody."""
        rows = self.sizes(scale)
        rates = np.full(rows.shape, self.rate)
        if disparity is not None:
            rates[self.member[:, group]] = self.moved(group, disparity)
        ones = np.empty(self.points.shape)
        for cell in range(rows.size):
            ones[:, cell] = binomial_quantiles(self.points[:, cell], rows[cell], rates[cell])
        return CountTables(of=self, rows=rows, ones=ones, scale=scale)

    def moved(self, group: int, disparity: float) -> float:
        """The rate that gives a group this disparity, all others having theirs."""
        scale, share = self.target.scale, self._share(group)
        others = scale * (1 - share) * self._theta
        if self.relative:
            below = 1 - disparity * scale * share
            return float(np.clip(disparity * others / below, 0, 1)) if below > 0 else 1.0
        return float(np.clip((disparity + others) / (1 - scale * share), 0, 1))

    def ends(self, group: int) -> tuple[float, float]:
        """The disparities that rates of zero and one would be."""
        scale, share = self.target.scale, self._share(group)
        found = []
        for rate in (0.0, 1.0):
            theta = scale * (share * rate + (1 - share) * self._theta)
            found.append(rate / theta if self.relative and theta > 0 else rate - theta)
        return found[0], found[1]

    @property
    def _theta(self) -> float:
        return self.rate if self.target.estimated else self.target.number

    def _share(self, group: int) -> float:
        """The group's share of what it is compared with."""
        if not self.target.estimated:
            return 0.0
        inside = self.parts(self.rows)[:, group]
        both = np.array([a and b for a, b in zip(self.target.group, self.target.against,
                                                 strict=True)])  # fmt: skip
        against = np.array(self.target.against)
        return float(inside[both].sum() / max(inside[against].sum(), 1e-300))

    def parts(self, x: FloatArray) -> FloatArray:
        """Sums of cells over the parts of every group, ``(parts, …, G)``."""
        return self.target.parts(x, self.sums)

    def comparison(self, rows: FloatArray, ones: FloatArray) -> Comparison:
        """Groups beside their target, from sums over the parts."""
        return Comparison(
            target=self.target,
            relative=self.relative,
            parts=plain_moments(rows, ones, ones, ones),
        )

    def contrast(self, rows: FloatArray, limit: float) -> tuple[FloatArray, FloatArray]:
        """Coefficients of the parts' rates and what they add up to at a disparity."""
        found = self.comparison(rows, rows * self.rate)
        at = np.full(rows.shape[1], limit)
        a = found.slopes(found.factor(at)) * rows
        return np.where(np.abs(a) > 1e-12, a, 0.0), found.aim(at)

    def error(self, group: int, disparity: float | None, scale: float) -> float:
        """About the standard error of a group's disparity."""
        even = 1.0 if self.relative else 0.0
        rows = self.parts(self.sizes(scale))[:, [group]]
        at = even if disparity is None else disparity
        a, _ = self.contrast(rows, at)
        rates = np.full(rows.shape, self.rate)
        if disparity is not None:
            own = self.moved(group, disparity)
            rates[np.array(self.target.group)] = own
        rates = np.clip(rates, 1e-3 / np.maximum(rows, 1), 1 - 1e-3 / np.maximum(rows, 1))
        variance = float((a**2 * rates * (1 - rates) / np.maximum(rows, 1.0)).sum())
        unit = max(self.target.scale * self._theta, 1e-12) if self.relative else 1.0
        return float(np.sqrt(max(variance, 1e-30)) / unit)

    @cached_property
    def fits(self) -> "dict[tuple[float, int], _Fit]":
        """How quick scores become those of the audit, by the limit and the size."""
        return {}

    def fit(self, limit: float, scale: float) -> "_Fit":
        """The same, worked out once for each limit and every half doubling of the table."""
        step = round(2 * float(np.log2(scale)))
        if (limit, step) not in self.fits:
            self.fits[limit, step] = _fitted(self, limit, 2 ** (step / 2))
        return self.fits[limit, step]


@dataclass(frozen=True, kw_only=True)
class CountTables:
    """Simulated tables of counts."""

    of: CountSimulator
    """What they are drawn by."""
    rows: FloatArray
    """Rows of each cell."""
    ones: FloatArray
    """Ones of each cell in every table, ``(B, C)``."""
    scale: float
    """How much larger they are than the table that was planned from."""

    @cached_property
    def counts(self) -> tuple[FloatArray, FloatArray]:
        """Rows ``(parts, G)`` and ones ``(parts, B, G)`` of every part."""
        return self.of.parts(self.rows), self.of.parts(self.ones)

    def tails(self, limit: float, groups: slice = EVERY) -> Tails:
        """Both tails of groups in every table, by quick scores."""
        rows, ones = (x[..., groups] for x in self.counts)
        z = quick_scores(rows[:, None], ones, *self.of.contrast(rows, limit))
        return self.of.fit(limit, self.scale).tails(z, self.scale, groups)

    def sharp(self, limit: float, group: int, which: IntArray) -> Tails | None:
        """Those of one group in some tables as the audit computes them."""
        rows, ones = self.counts
        seen, place = np.unique(ones[:, which, group], axis=1, return_inverse=True)
        many = np.repeat(rows[:, [group]], seen.shape[1], axis=1)
        up, down = sharp_tails(self.of, many, seen, limit)
        place = place.reshape(-1)
        return up[place], down[place]

    def doubt(self, limit: float, group: int) -> float:
        """Three times what the fit leaves."""
        return float(np.clip(3 * self.of.fit(limit, self.scale).left[group], *NEAR))


def sharp_tails(of: CountSimulator, rows: FloatArray, ones: FloatArray, limit: float) -> Tails:
    """Tails as the audit computes them, of any number of tables, ``(parts, N)``."""
    found = of.comparison(rows, ones)
    every = np.arange(rows.shape[1])
    pivot = CountPivot(comparison=found, rows=rows, degrees=np.full(every.shape, np.inf))
    return pivot.tails(np.full(every.shape, limit), every)


def quick_scores(rows: FloatArray, ones: FloatArray, a: FloatArray, aim: FloatArray) -> FloatArray:
    """Scores of a contrast by the variance it would have under the limit, in one step.

    >>> one = np.ones((1, 1))
    >>> quick_scores(100 * one, 60 * one, one, np.array([0.5])).round(2).tolist()
    [2.0]
    """
    n = np.maximum(rows, 1e-9)
    if ones.ndim == 3:
        a = a[:, None]
    # half a row of either kind keeps rates away from the ends
    rate = (ones + 0.5) / (n + 1)
    bend = rate * (1 - rate) / n
    off = (a * rate).sum(axis=0) - aim
    size = (a**2 * bend).sum(axis=0)
    fitted = np.clip(rate - a * bend * (off / np.maximum(size, 1e-300)), 0.25 / (n + 1), None)
    fitted = np.minimum(fitted, 1 - 0.25 / (n + 1))
    variance = (a**2 * fitted * (1 - fitted) / n).sum(axis=0)
    seen = (a * (ones / n)).sum(axis=0) - aim
    return np.asarray(seen / np.sqrt(np.maximum(variance, 1e-300)))


# --- Quick scores made those of the audit ---

FIT_AT = np.array([0.4, 0.9, 1.4, 1.9, 2.4, 2.9, 3.4, 4.0])
"""Scores at which both are compared."""
FIT_MOVES = (-1.0, 0.0, 1.0)
"""Standard errors by which the common rate is moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """A parabola for each group and side: what the audit's score has more than the quick one."""

    up: FloatArray
    """Coefficients ``(3, G)`` of the score against small disparities."""
    down: FloatArray
    """The same on the other side."""
    scale: float
    """How large the table is for which they hold."""
    left: FloatArray
    """By how much fitted scores are off, on average over outcomes, ``(G,)``."""

    def tails(self, z: FloatArray, scale: float, groups: slice) -> Tails:
        """The chances of as high, and of as low, a score."""
        up, down = self.up[:, groups], self.down[:, groups]
        times = scale / self.scale
        return self._one(z, up, times), self._one(-z, down, times)

    @staticmethod
    def _one(z: FloatArray, c: FloatArray, times: float) -> FloatArray:
        x = np.clip(z, FIT_AT[0], FIT_AT[-1])
        # what counts have more than normals falls with the root of the rows
        more = (c[0] + x * (c[1] + x * c[2])) / np.sqrt(times)
        return np.asarray(ndtr(-(z + more)))


def _fitted(of: CountSimulator, limit: float, scale: float) -> _Fit:
    rows = of.parts(of.sizes(scale))
    a, aim = of.contrast(rows, limit)
    found = [_parabola(of, rows, a, aim, limit, sign) for sign in (1.0, -1.0)]
    left = np.maximum(found[0][1], found[1][1])
    return _Fit(up=found[0][0], down=found[1][0], scale=scale, left=left)


def _parabola(
    of: CountSimulator, rows: FloatArray, a: FloatArray, aim: FloatArray, limit: float, sign: float
) -> tuple[FloatArray, FloatArray]:
    """Coefficients by least squares over likely outcomes at several scores, and what is left."""
    parts, groups = rows.shape
    n = np.maximum(rows, 1e-9)
    ones = []
    for move in FIT_MOVES:
        base = of.rate + move * np.sqrt(of.rate * (1 - of.rate) / np.maximum(n.sum(axis=0), 1))
        begin = np.clip(np.broadcast_to(base, rows.shape), 0.25 / (n + 1), 1 - 0.25 / (n + 1))
        fitted, _ = constrained_rates(n, begin, a, aim)
        slope = a * fitted * (1 - fitted) / n
        size = np.sqrt(np.maximum((a * slope).sum(axis=0), 1e-300))
        path = fitted[:, None] + sign * FIT_AT[None, :, None] * (slope / size)[:, None]
        ones.append(np.clip(np.round(path * n[:, None]), 0, rows[:, None]))
    seen = np.concatenate(ones, axis=1)
    z = sign * quick_scores(rows[:, None], seen, a, aim)
    many = np.broadcast_to(rows[:, None], seen.shape).reshape(parts, -1)
    side = 0 if sign > 0 else 1
    tail = sharp_tails(of, many, seen.reshape(parts, -1), limit)[side].reshape(z.shape)
    more = -ndtri(np.clip(tail, 1e-12, 1 - 1e-9)) - z
    out, left = np.zeros((3, groups)), np.full(groups, NEAR[1])
    for g in range(groups):
        # outcomes that cannot go so far say the same again
        here = (z[:, g] > 0.1) & (z[:, g] < 5)
        if np.unique(z[here, g]).size >= 4:
            out[:, g] = np.polynomial.polynomial.polyfit(z[here, g], more[here, g], 2)
            fitted = np.polynomial.polynomial.polyval(z[here, g], out[:, g])
            left[g] = np.sqrt(np.mean((more[here, g] - fitted) ** 2))
        elif bool(here.any()):
            out[0, g] = more[here, g].mean()
    return out, left


# --- Where counts do not say everything: scores with the errors that the audit itself states ---


@dataclass(frozen=True, kw_only=True)
class ScoreSimulator:
    """Normal scores of all groups, moved by a disparity over its standard error."""

    errors: FloatArray
    """Standard error of each group's disparity, ``(G,)``."""
    degrees: FloatArray
    """Degrees of freedom of it; infinite if it is known."""
    scores: FloatArray
    """Draws of all groups' scores where nobody differs, ``(B, G)``."""
    even: float
    """The disparity of those who have none."""
    along: FloatArray
    """How far all disparities move if that of one group, by rows, moves by one, ``(G, G)``."""
    possible: tuple[float, float]
    """Smallest and largest disparity there can be."""
    seed: np.random.SeedSequence
    """Seed of how errors are misjudged."""

    @property
    def groups(self) -> int:
        """How many groups are tested together."""
        return int(self.errors.size)

    @cached_property
    def judged(self) -> FloatArray:
        """Errors as a table would show them, over what they are."""
        sure = np.isinf(self.degrees) | (self.degrees > 1e6)
        rng = np.random.default_rng(self.seed)
        drawn = rng.chisquare(np.where(sure, 1.0, self.degrees), self.scores.shape)
        return np.where(sure, 1.0, np.sqrt(drawn / np.where(sure, 1.0, self.degrees)))

    def tables(self, group: int, disparity: float | None, scale: float) -> "ScoreTables":
        """Tables in which a group has a disparity; None for nobody."""
        at = np.full(self.groups, self.even)
        if disparity is not None:
            at = at + (disparity - self.even) * self.along[group]
        return ScoreTables(of=self, at=at, scale=scale)

    def error(self, group: int, disparity: float | None, scale: float) -> float:
        """The standard error of a group's disparity."""
        return float(self.errors[group] / np.sqrt(scale))

    def ends(self, group: int) -> tuple[float, float]:
        """What is possible at all."""
        return self.possible


@dataclass(frozen=True, kw_only=True)
class ScoreTables:
    """Simulated scores."""

    of: ScoreSimulator
    """What they are drawn by."""
    at: FloatArray
    """The disparity of each group."""
    scale: float
    """How much larger the table is."""

    def tails(self, limit: float, groups: slice = EVERY) -> Tails:
        """Both tails of groups in every table."""
        of = self.of
        shift = (self.at - limit) / (of.errors / np.sqrt(self.scale))
        t = ((of.scores + shift) / of.judged)[:, groups]
        degrees = np.minimum(of.degrees * self.scale, 1e9)[groups]
        return np.asarray(stdtr(degrees, -t)), np.asarray(stdtr(degrees, t))

    def sharp(self, limit: float, group: int, which: IntArray) -> Tails | None:
        """Nothing sharper is at hand."""
        return None

    def doubt(self, limit: float, group: int) -> float:
        """The scores are all there is."""
        return 0.0


# --- Chances, and where they reach what is asked ---

NEAR = (0.05, 0.3)
"""Least and most by which quick scores are taken to be uncertain."""
SHARP = 72
"""Tables that are, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """A probability with its Monte-Carlo standard error."""

    value: float
    """The probability."""
    error: float
    """Its Monte-Carlo standard error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """Whether something is shown of a group, table by table, as far as quick scores tell."""

    yes: BoolArray
    """Whether it is."""
    unsure: BoolArray
    """Where a little more or less of the scores would change that."""
    p: FloatArray
    """p-values of all groups where others have a say in it, ``(B, G)``; else of none."""


class Question(Protocol):
    """What is to be shown of a group."""

    def decide(self, tables: Tables, group: int) -> Decided:
        """What quick scores say in each table."""
        ...

    def again(
        self, tables: Tables, group: int, before: Decided, which: IntArray
    ) -> BoolArray | None:
        """What the audit's own tails say in some tables; None if they are not at hand."""
        ...

    def needed(self, groups: int) -> float:
        """The score needed if nobody else is flagged."""
        ...


def _score(p: FloatArray) -> FloatArray:
    return np.asarray(-ndtri(np.clip(p, 1e-300, 1 - 1e-16)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToFlag:
    """That a group is flagged among all that are tested."""

    null: Null
    """What a flag speaks against."""
    rate: float
    """The rate of false flags."""
    adjust: Callable[[FloatArray], FloatArray]
    """What is made of all p-values of a table before thresholds, such as e-values."""
    steps: Callable[[FloatArray, float], FloatArray]
    """From the others' values, sorted, and the rate to the value that the group needs."""

    def decide(self, tables: Tables, group: int) -> Decided:
        """Whether the group is flagged beside all others."""
        p = self.null.p_value(tables.tails)
        z = _score(p)
        near = max(tables.doubt(limit, group) for limit in self.null.limits)
        # all scores a little higher, or all a little lower
        more, less = (np.asarray(ndtr(-(z + by))) for by in (near, -near))
        most, least = self._flagged(more, group), self._flagged(less, group)
        return Decided(yes=self._flagged(p, group), unsure=most & ~least, p=p)

    def _flagged(self, p: FloatArray, group: int) -> BoolArray:
        value = self.adjust(p)
        others = np.sort(np.delete(value, group, axis=1), axis=1)
        return np.asarray(value[:, group] <= self.steps(others, self.rate) * (1 + 1e-9))

    def again(
        self, tables: Tables, group: int, before: Decided, which: IntArray
    ) -> BoolArray | None:
        """The same with the audit's own tails, of the group and of others that may matter."""
        p = before.p[which]
        z = _score(p)
        value = self.adjust(p)
        others = np.sort(np.delete(value, group, axis=1), axis=1)
        needed = _score(self._p_of(self.steps(others, self.rate)))
        # those whose flag is open too, such as the other of two groups
        near = max(tables.doubt(limit, group) for limit in self.null.limits)
        matters = np.abs(z - needed[:, None]) < near
        matters[:, group] = True
        for other in np.flatnonzero(matters.any(axis=0)).tolist():
            here = np.flatnonzero(matters[:, other])
            found: dict[float, Tails] = {}
            for limit in self.null.limits:
                tails = tables.sharp(limit, other, which[here])
                if tails is None:
                    return None
                found[limit] = tails
            p[here, other] = self.null.p_value(found.__getitem__)
        return self._flagged(p, group)

    def _p_of(self, value: FloatArray) -> FloatArray:
        """The p-values that are adjusted to these, by halving."""
        low, high = np.full(value.shape, -600.0), np.zeros(value.shape)
        for _ in range(50):
            middle = (low + high) / 2
            less = self.adjust(np.exp(middle)) <= value
            low, high = np.where(less, middle, low), np.where(less, high, middle)
        return np.asarray(np.exp(low))

    def needed(self, groups: int) -> float:
        """The score of one flag among so many groups, one side of it."""
        p = float(self._p_of(self.steps(np.ones((1, groups - 1)), self.rate))[0])
        return -float(ndtri(p / (2 if isinstance(self.null, Outside) else 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToShow:
    """That a group is shown to keep a limit: all bounds at a critical score lie within it."""

    low: float | None
    """The lower limit; None if there is none."""
    high: float | None
    """The upper limit."""
    critical: float
    """The score at which bounds of all groups hold at once."""

    def decide(self, tables: Tables, group: int) -> Decided:
        """Whether the score on the nearer side reaches the critical one."""
        own = slice(group, group + 1)
        found = self._nearer(lambda limit: tables.tails(limit, own))
        away = found[:, 0] - self.critical
        near = max(tables.doubt(limit, group) for limit in self._limits)
        return Decided(yes=away >= 0, unsure=np.abs(away) < near, p=np.empty((away.size, 0)))

    def again(
        self, tables: Tables, group: int, before: Decided, which: IntArray
    ) -> BoolArray | None:
        """The same by the audit's own tails."""
        known: dict[float, Tails] = {}
        for limit in self._limits:
            tails = tables.sharp(limit, group, which)
            if tails is None:
                return None
            known[limit] = tails
        return np.asarray(self._nearer(known.__getitem__) >= self.critical - 1e-9)

    @property
    def _limits(self) -> list[float]:
        return [limit for limit in (self.low, self.high) if limit is not None]

    def _nearer(self, tails: Callable[[float], Tails]) -> FloatArray:
        ends = [] if self.low is None else [_score(tails(self.low)[0])]
        ends += [] if self.high is None else [_score(tails(self.high)[1])]
        return np.asarray(np.minimum(*ends) if len(ends) == 2 else ends[0])

    def needed(self, groups: int) -> float:
        """The critical score."""
        return self.critical


def chance(
    of: Simulator,
    ask: Question,
    group: int,
    disparity: float | None,
    scale: float = 1.0,
    *,
    sharp: bool = True,
) -> Chance:
    """The chance that something is shown of a group that has a disparity; None for none.

    Without ``sharp`` no table is decided again by the audit's own tails.
    """
    tables = of.tables(group, disparity, scale)
    quick = ask.decide(tables, group)
    yes = quick.yes.astype(np.float64)
    spread = float(yes.reshape(BLOCKS, -1).mean(axis=1).var(ddof=1) / BLOCKS)
    near = np.flatnonzero(quick.unsure)
    more = 0.0
    if near.size and sharp:
        which = near[:: -(-near.size // SHARP)]
        again = ask.again(tables, group, quick, which)
        if again is not None:
            change = again - yes[which]
            weight = near.size / yes.size
            more = weight * float(change.mean())
            if which.size < near.size:
                spread += weight**2 * float(change.var()) / which.size
    # blocks that agree by luck do not make an error of nothing
    floor = 0.25 / yes.size**2
    value = float(np.clip(yes.mean() + more, 0.0, 1.0))
    return Chance(value=value, error=float(np.sqrt(spread + floor)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Where a chance reaches what was asked."""

    at: float
    """The disparity, or how many times the table must be as large; NaN if nothing suffices."""
    chance: Chance
    """The chance there."""
    slope: float
    """How much the score of the chance rises by a unit of ``at``."""

    @property
    def error(self) -> float:
        """Monte-Carlo standard error of ``at``."""
        height = np.exp(-0.5 * float(ndtri(np.clip(self.chance.value, 0.001, 0.999))) ** 2)
        steep = max(abs(self.slope) * height / np.sqrt(2 * np.pi), 1e-12)
        return float(self.chance.error / steep)


NEVER = Reached(at=np.nan, chance=Chance(value=0.0, error=0.0), slope=1.0)
CLOSE = 0.01
"""How close the score of the chance comes to the one asked for: a quarter of a point."""
MOST_STEPS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Where normal theory would have a search end."""

    at: float
    """The distance from the limit, or the root of how many times the table must be as large."""
    slope: float
    """How fast the score of the chance rises there."""
    end: float
    """The largest that is possible."""


def gap_by_normal(of: Simulator, ask: ToFlag, group: int, power: float, up: bool) -> Begin | None:
    """How far beyond the limit a disparity is flagged with the chance asked for; None for never."""
    sign, limit = _side(ask, up)
    room = sign * (of.ends(group)[1 if up else 0] - limit)
    if not room > 0:
        return None
    # the test knows the spread at the limit, and outcomes have that of the disparity
    test, at = ask.needed(of.groups) * of.error(group, limit, 1.0), room / 2
    for _ in range(4):
        own = of.error(group, limit + sign * at, 1.0)
        at = min(test + float(ndtri(power)) * own, room * 0.999)
    return Begin(at=at, slope=1 / of.error(group, limit + sign * at, 1.0), end=room)


def _side(ask: ToFlag, up: bool) -> tuple[float, float]:
    return (1.0, max(ask.null.limits)) if up else (-1.0, min(ask.null.limits))


def smallest_flagged(of: Simulator, ask: ToFlag, group: int, power: float, up: bool) -> Reached:
    """The disparity nearest to the limit that is flagged with the chance asked for."""
    begin = gap_by_normal(of, ask, group, power, up)
    if begin is None:
        return NEVER
    sign, limit = _side(ask, up)
    return _search(
        lambda x, sharp: chance(of, ask, group, limit + sign * x, sharp=sharp),
        begin,
        power,
        lambda x: limit + sign * x,
    )


def root_by_normal(
    of: Simulator, ask: Question, group: int, disparity: float | None, power: float, margin: float
) -> Begin | None:
    """The root of how many times the table must be as large; None if beyond all tables."""
    error = of.error(group, disparity, 1.0)
    root = max((ask.needed(of.groups) + both_ways(ask, power)) * error / max(margin, 1e-300), 1e-3)
    if root > LARGEST_ROOT:
        return None
    return Begin(at=root, slope=margin / error, end=LARGEST_ROOT)


def both_ways(ask: Question, power: float) -> float:
    """The score of the chance asked for; of being within two limits, missing either is half."""
    both = isinstance(ask, ToShow) and ask.low is not None and ask.high is not None
    return float(ndtri((1 + power) / 2 if both else power))


def times_larger(
    of: Simulator, ask: Question, group: int, disparity: float | None, power: float, margin: float
) -> Reached:
    """How many times the table must be as large for the chance asked for.

    ``margin`` is the distance from the disparity to the limit.
    """
    begin = root_by_normal(of, ask, group, disparity, power, margin)
    if begin is None:
        return NEVER
    return _search(
        lambda x, sharp: chance(of, ask, group, disparity, x * x, sharp=sharp),
        begin,
        power,
        lambda x: x * x,
    )


LARGEST_ROOT = 1e4
"""Tables of a hundred million times the rows are not planned."""


ENOUGH = 0.02


def _off(found: Chance, aim: float) -> float:
    """How far the score of a chance is from the one asked for."""
    return float(ndtri(np.clip(found.value, 1e-6, 1 - 1e-6))) - aim


def _search(
    at: Callable[[float, bool], Chance],
    begin: Begin,
    power: float,
    value: Callable[[float], float],
) -> Reached:
    """Newton steps with the slope of normal theory, then secants, kept in a bracket."""
    aim, end, slope = float(ndtri(power)), begin.end, begin.slope
    x = min(begin.at, end)
    # first quick scores mend what normal theory missed
    quick = _off(at(x, False), aim)
    x = float(np.clip(x - np.clip(quick, -2, 2) / slope, x / 3, end))
    low, high = 0.0, end
    tried: list[tuple[float, float, Chance]] = []
    for _ in range(MOST_STEPS):
        found = at(x, True)
        score = _off(found, aim)
        tried.append((x, score, found))
        if abs(score) <= CLOSE or high - low <= 1e-6 * x:
            break
        low, high = (x, high) if score < 0 else (low, x)
        if score < 0 and x >= end * 0.9999:
            return NEVER
        if len(tried) > 1 and x != tried[-2][0]:
            # steps of counts make a secant over a short way meaningless
            secant = (score - tried[-2][1]) / (x - tried[-2][0])
            slope = float(np.clip(secant, begin.slope / 2, begin.slope * 2))
        # far off a normal slope means little
        ahead = x - float(np.clip(score, -2, 2)) / slope
        if not low < ahead < high:
            ahead = (low + high) / 2 if high < end or score > 0 else min(end, x * 2)
        x = ahead
    # of those that have the chance asked for, within half a point, the nearest to it
    enough = [one for one in tried if one[1] >= -ENOUGH] or tried
    x, _, found = min(enough, key=lambda one: abs(one[1]))
    # per unit of what is told: at scale x² a unit is 2x wide
    stretch = abs(value(x * 1.001) - value(x)) / (0.001 * x) if x > 0 else 1.0
    return Reached(at=value(x), chance=found, slope=slope / max(stretch, 1e-300))


# --- How many the others' p-values let a group have ---


def step_up(others: FloatArray, rate: float) -> FloatArray:
    """The p-value that Benjamini and Hochberg let one more group have, by table.

    >>> step_up(np.array([[0.01, 0.9], [0.5, 0.9]]), 0.1).round(4).tolist()
    [0.0667, 0.0333]
    """
    m = others.shape[1] + 1
    allowed = rate * np.arange(2, m + 1) / m
    place = np.where(others <= allowed * (1 + 1e-9), np.arange(2, m + 1), 1)
    return np.asarray(rate * place.max(axis=1, initial=1) / m)


def step_down(others: FloatArray, rate: float) -> FloatArray:
    """The p-value that Holm lets one more group have, by table.

    >>> step_down(np.array([[0.01, 0.9], [0.5, 0.9]]), 0.1).round(4).tolist()
    [0.05, 0.0333]
    """
    m = others.shape[1] + 1
    passed = others <= rate * (1 + 1e-9) / np.arange(m, 1, -1)
    before = np.logical_and.accumulate(passed, axis=1).sum(axis=1)
    return np.asarray(rate / (m - before))


# --- A budget of rows, spread so that the widest bound is as narrow as can be ---

MOST_ROUNDS = 5000


def best_split(effect: FloatArray, budget: float) -> FloatArray:
    """Rows of each cell that make the largest variance Σ effect/rows over groups smallest.

    ``effect`` is the squared coefficient of each cell's mean in each group's disparity, times the
    variance of a row there, ``(G, C)``.

    >>> best_split(np.array([[0.09, 0.0], [0.0, 0.21]]), 100.0).round(1).tolist()
    [30.0, 70.0]
    """
    weight = np.full(effect.shape[0], 1 / effect.shape[0])
    share = np.zeros(effect.shape[1])
    for _ in range(MOST_ROUNDS):
        root = np.sqrt(weight @ effect)
        share = root / root.sum()
        variance = np.divide(effect, share, out=np.zeros_like(effect), where=share > 0).sum(axis=1)
        mean = float(weight @ variance)
        if variance.max() <= mean * (1 + 1e-7):
            break
        weight = weight * variance / mean
    return np.asarray(budget * share)


def whole_rows(rows: FloatArray, budget: int) -> IntArray:
    """Whole numbers nearest to these that add up to the budget, those cut most rounded up first.

    >>> whole_rows(np.array([1.5, 2.7, 5.8]), 10).tolist()
    [1, 3, 6]
    """
    down = np.floor(rows)
    left = int(budget - down.sum())
    order = np.argsort(-(rows - down), kind="stable")
    down[order[:left]] += 1
    return down.astype(np.int64)


def coefficients(rows: FloatArray, member: BoolArray, target: Target) -> FloatArray:
    """What each cell's mean counts for in each group's disparity, ``(G, C)``.

    Shares of cells in groups, and in what they are compared with, are as they are.
    """
    inside = member.T * rows
    own = inside / np.maximum(inside.sum(axis=1, keepdims=True), 1e-300)
    if isinstance(target, Constant) or not target.estimated:
        return np.asarray(own)
    whole = np.broadcast_to(rows, own.shape)
    if len(target.group) == 2 and not (target.group[0] and target.against[0]):
        whole = np.where(member.T, 0.0, rows)
    elif len(target.group) == 3:
        whole = np.broadcast_to(rows * target.members(rows.size), own.shape)
    other = whole / np.maximum(whole.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(own - target.scale * other)


def moved_along(member: BoolArray, a: FloatArray) -> FloatArray:
    """How far each group's disparity moves, ``(G, G)``, if that of one, by rows, moves by one.

    >>> two = np.eye(2, dtype=bool)
    >>> moved_along(two, np.array([[1.0, -1.0], [-1.0, 1.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    inside = member.T.astype(np.float64) @ a.T
    own = np.diag(inside)[:, None]
    return np.asarray(np.divide(inside, own, out=np.zeros_like(inside), where=own != 0))
