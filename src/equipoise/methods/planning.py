"""How many rows: chances that a group is flagged, or shown to keep a limit, by simulation.

The audit that will be run is run on simulated tables. Quick scores decide in all of them, and those
that lie close to the limit are decided once more by the audit's own tails. A search over
disparities, or over sizes, begins where normal theory says.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from equipoise.methods.hypotheses import Null, Outside, Tails
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray, normal_score
from equipoise.methods.simulated import BLOCKS, Simulator, Tables
from equipoise.methods.targets import Constant, Target

# --- Chances, and where they reach what is asked ---

MANY = 20
"""Groups of which others are left as quick scores say."""
MOST_OTHERS = 3
"""Other groups of a table that are decided again beside the one asked about."""
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
        z = normal_score(p)
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
        z = normal_score(p)
        value = self.adjust(p)
        others = np.sort(np.delete(value, group, axis=1), axis=1)
        needed = normal_score(self._p_of(self.steps(others, self.rate)))
        # those whose flag is open too, such as the other of two groups
        near = max(tables.doubt(limit, group) for limit in self.null.limits)
        matters = np.abs(z - needed[:, None]) < near
        matters[:, group] = True
        # more than a few are many that overlap, of which quick scores are right on average
        few = MOST_OTHERS if tables.dear(group) == 1 and p.shape[1] <= MANY else 0
        often = np.argsort(-matters.sum(axis=0), kind="stable")[: 1 + few]
        for other in dict.fromkeys([group, *often.tolist()]):
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
        ends = [] if self.low is None else [normal_score(tails(self.low)[0])]
        ends += [] if self.high is None else [normal_score(tails(self.high)[1])]
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
        # of many groups few tables are drawn, so that their error hides what is gained
        most = max(SHARP // ((1 + of.groups // 16) * tables.dear(group)), 8)
        which = near[:: -(-near.size // most)]
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
        # half its own error is as close as a chance needs to come
        if abs(score) <= max(CLOSE, 1.8 * found.error) or high - low <= 1e-6 * x:
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
