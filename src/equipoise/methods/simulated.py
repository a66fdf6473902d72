"""Simulated tables of a planned audit: counts of every cell, and what its tails would be.

The audit's tails take long, so they are computed on few tables only: quick normal scores are fitted
to them. Groups of few rows, whose outcomes are far apart, are looked up instead.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.special import gammaln, ndtr, ndtri, stdtr, xlog1py, xlogy

from equipoise.methods.hypotheses import Tails, binomial_at_least, binomial_at_most
from equipoise.methods.inference.counts import CountPivot, constrained_rates
from equipoise.methods.numerics import BoolArray, FloatArray, GroupSums, IntArray
from equipoise.methods.targets import Comparison, Target, plain_moments

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

    def dear(self, group: int) -> int:
        """How dear the audit's own tails are: times those of a group and others apart from it."""
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
        return CountTables(of=self, rows=rows, ones=ones, scale=scale, asked=group)

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
    def known(self) -> "dict[tuple[float, ...], dict[float, list[float]]]":
        """The audit's own tails of outcomes that were met, by the limit and the parts' rows."""
        return {}

    @cached_property
    def fits(self) -> "dict[tuple[float, int, int], _Fit]":
        """How quick scores become those of the audit, by limit, size and group."""
        return {}

    def fit(self, limit: float, scale: float, group: int) -> "_Fit":
        """The same for tables of some size, anew for every half doubling of the table.

        Of many groups only the one asked about is; others are taken from the table as it is.
        """
        step = round(2 * float(np.log2(scale)))
        one = self.groups > FIT_ALL and step != 0
        if one:
            every = self._fit(limit, 0, -1).grown(scale)
            return every.with_one(group, self._fit(limit, step, group).grown(scale))
        return self._fit(limit, step, -1).grown(scale)

    def _fit(self, limit: float, step: int, group: int) -> "_Fit":
        if (limit, step, group) not in self.fits:
            chosen = slice(None) if group < 0 else slice(group, group + 1)
            self.fits[limit, step, group] = _fitted(self, limit, 2 ** (step / 2), chosen)
        return self.fits[limit, step, group]


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
    asked: int
    """The group that is asked about."""

    @cached_property
    def counts(self) -> tuple[FloatArray, FloatArray]:
        """Rows ``(parts, G)`` and ones ``(parts, B, G)`` of every part."""
        return self.of.parts(self.rows), self.of.parts(self.ones)

    def tails(self, limit: float, groups: slice = EVERY) -> Tails:
        """Both tails of groups in every table, by quick scores; of few rows by the audit's own."""
        rows, ones = (x[..., groups] for x in self.counts)
        a, aim = self.of.contrast(rows, limit)
        z = quick_scores(rows[:, None], ones, a, aim)
        up, down = self.of.fit(limit, self.scale, self.asked).tails(z, groups)
        start = groups.start or 0
        for place in np.flatnonzero(_few(rows, a)).tolist():
            look = self._looked_up
            known = self.of.groups > FIT_MOST or self._few_beside_many(rows[:, place])
            if place + start != self.asked and known:
                look = self._binomial
            up[:, place], down[:, place] = look(rows[:, place], ones[:, :, place], limit)
        return up, down

    def _few_beside_many(self, rows: FloatArray) -> bool:
        """Whether a group is so small that its target is as good as known."""
        inside, against = np.array(self.of.target.group), np.array(self.of.target.against)
        return bool(rows[inside].sum() * 10 <= rows[against].sum())

    def _binomial(self, rows: FloatArray, ones: FloatArray, limit: float) -> Tails:
        """Binomial tails against the target as it turned out: near enough where others decide."""
        inside, against = np.array(self.of.target.group), np.array(self.of.target.against)
        theta = self.of.target.scale * ones[against].sum(axis=0) / rows[against].sum()
        rate = np.clip(limit * theta if self.of.relative else theta + limit, 0.0, 1.0)
        count, size = ones[inside].sum(axis=0), np.full(rate.shape, rows[inside].sum())
        return binomial_at_least(count, size, rate), binomial_at_most(count, size, rate)

    def _looked_up(self, rows: FloatArray, ones: FloatArray, limit: float) -> Tails:
        """The audit's own tails, counts of large parts being rounded as far as it hardly matters.

        Half a step of a part moves the score by at most six hundredths.
        """
        spread = np.sqrt(rows * self.of.rate * (1 - self.of.rate))
        least = max(float(rows[rows > 0].min(initial=np.inf)), 1.0)
        step = np.minimum(0.12 * np.sqrt(rows / least), 3.0) * spread
        step = np.maximum(np.floor(step), 1.0)[:, None]
        near = np.clip(np.round(ones / step) * step, 0.0, rows[:, None])
        # one number for each outcome, by which they are told apart
        base = np.concatenate([[1.0], np.cumprod(np.ceil(rows[:-1] / step[:-1, 0]) + 2)])
        code, first, place = np.unique(
            (base[:, None] * np.ceil(near / step)).sum(axis=0),
            return_index=True,
            return_inverse=True,
        )
        known = self.of.known.setdefault((limit, *rows.tolist()), {})
        new = np.array([x not in known for x in code.tolist()], dtype=bool)
        if bool(new.any()):
            seen = near[:, first[new]]
            size = np.repeat(rows[:, None], seen.shape[1], axis=1)
            both = np.stack(sharp_tails(self.of, size, seen, limit), axis=1)
            known.update(zip(code[new].tolist(), both.tolist(), strict=True))
        found = np.array([known[x] for x in code.tolist()])[place]
        return found[:, 0], found[:, 1]

    def sharp(self, limit: float, group: int, which: IntArray) -> Tails | None:
        """Those of one group in some tables as the audit computes them."""
        rows, ones = self.counts
        seen, place = np.unique(ones[:, which, group], axis=1, return_inverse=True)
        many = np.repeat(rows[:, [group]], seen.shape[1], axis=1)
        up, down = sharp_tails(self.of, many, seen, limit)
        place = place.reshape(-1)
        return up[place], down[place]

    def dear(self, group: int) -> int:
        """Of three parts, as where a group shares rows with its reference, six times."""
        return 6 if int((self.counts[0][:, group] > 0).sum()) > 2 else 1

    def doubt(self, limit: float, group: int) -> float:
        """Three times what the fit leaves; nothing of a group that was looked up."""
        rows = self.counts[0][:, [group]]
        if bool(_few(rows, self.of.contrast(rows, limit)[0])[0]):
            return 0.0
        return float(np.clip(3 * self.of.fit(limit, self.scale, self.asked).left[group], *NEAR))


FEW = 50.0
"""Rows up to which outcomes are too few, and too far apart, for quick scores."""


def _few(rows: FloatArray, a: FloatArray) -> BoolArray:
    """Whether any part that counts has few rows."""
    return np.asarray(np.where(a != 0, rows, np.inf).min(axis=0) <= FEW)


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

NEAR = (0.05, 0.3)
"""Least and most by which quick scores are taken to be uncertain."""

FIT_AT = np.array([0.4, 0.9, 1.4, 1.9, 2.4, 2.9, 3.4, 4.0])
"""Scores at which both are compared."""
FIT_MOVES = (-1.0, 0.0, 1.0)
"""Standard errors by which the common rate is moved."""
FIT_ALL, FIT_MOST = 4, 20
"""Groups up to which all are fitted anew at every size, and with moved rates."""


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

    def tails(self, z: FloatArray, groups: slice) -> Tails:
        """The chances of as high, and of as low, a score."""
        return self._one(z, self.up[:, groups]), self._one(-z, self.down[:, groups])

    @staticmethod
    def _one(z: FloatArray, c: FloatArray) -> FloatArray:
        x = np.clip(z, FIT_AT[0], FIT_AT[-1])
        return np.asarray(ndtr(-(z + c[0] + x * (c[1] + x * c[2]))))

    def grown(self, scale: float) -> "_Fit":
        """For tables of another size: what counts have more falls with the root of the rows."""
        root = np.sqrt(scale / self.scale)
        return replace(self, up=self.up / root, down=self.down / root, scale=scale)

    def with_one(self, group: int, own: "_Fit") -> "_Fit":
        """The same with what was worked out for one group alone."""
        made = {}
        for name in ("up", "down", "left"):
            made[name] = getattr(self, name).copy()
            made[name][..., group] = getattr(own, name)[..., 0]
        return replace(self, **made)


def _fitted(of: CountSimulator, limit: float, scale: float, groups: slice) -> _Fit:
    rows = of.parts(of.sizes(scale))[:, groups]
    a, aim = of.contrast(rows, limit)
    # groups of few rows are looked up
    able = np.flatnonzero(~_few(rows, a))
    up, down, left = np.zeros((3, aim.size)), np.zeros((3, aim.size)), np.zeros(aim.size)
    if able.size:
        found = [
            _parabola(of, rows[:, able], a[:, able], aim[able], limit, sign) for sign in (1.0, -1.0)
        ]
        up[:, able], down[:, able] = found[0][0], found[1][0]
        left[able] = np.maximum(found[0][1], found[1][1])
    return _Fit(up=up, down=down, scale=scale, left=left)


def _parabola(
    of: CountSimulator, rows: FloatArray, a: FloatArray, aim: FloatArray, limit: float, sign: float
) -> tuple[FloatArray, FloatArray]:
    """Coefficients by least squares over likely outcomes at several scores, and what is left."""
    parts, groups = rows.shape
    n = np.maximum(rows, 1e-9)
    ones = []
    for move in FIT_MOVES if groups <= FIT_MOST else (0.0,):
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
        if np.unique(z[here, g].round(1)).size >= 6:
            out[:, g] = np.polynomial.polynomial.polyfit(z[here, g], more[here, g], 2)
            fitted = np.polynomial.polynomial.polyval(z[here, g], out[:, g])
            left[g] = np.sqrt(np.mean((more[here, g] - fitted) ** 2))
        elif bool(here.any()):
            out[0, g] = more[here, g].mean()
    return out, left


# --- Where counts do not say everything: scores with the errors that the audit itself states ---


MOST_TOGETHER = 400
"""Groups up to which errors are misjudged together, by their correlations."""


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
        """Errors as a table would show them, over what they are.

        Groups that are compared with one another are misjudged together: two variances that are
        estimated from the same rows are correlated by the square of what their means are.
        """
        sure = np.isinf(self.degrees) | (self.degrees > 1e6)
        if bool(sure.all()):
            return np.ones_like(self.scores)
        rng = np.random.default_rng(self.seed)
        degrees = np.where(sure, 1.0, self.degrees)
        if 1 < self.groups <= MOST_TOGETHER:
            values, vectors = np.linalg.eigh(np.corrcoef(self.scores.T) ** 2)
            root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
            normal = rng.standard_normal(self.scores.shape) @ root
        else:
            normal = rng.standard_normal(self.scores.shape)
        # Wilson and Hilferty: the cube root of chi-square is nearly normal
        ninth = 2 / (9 * degrees)
        root_of = np.maximum(1 - ninth + np.sqrt(ninth) * normal, 1e-3)
        return np.where(sure, 1.0, root_of**1.5)

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
        degrees = (of.degrees * self.scale)[groups]
        if bool((degrees > 1e6).all()):
            return np.asarray(ndtr(-t)), np.asarray(ndtr(t))
        degrees = np.minimum(degrees, 1e9)
        return np.asarray(stdtr(degrees, -t)), np.asarray(stdtr(degrees, t))

    def sharp(self, limit: float, group: int, which: IntArray) -> Tails | None:
        """Nothing sharper is at hand."""
        return None

    def dear(self, group: int) -> int:
        """None has any."""
        return 1

    def doubt(self, limit: float, group: int) -> float:
        """The scores are all there is."""
        return 0.0
