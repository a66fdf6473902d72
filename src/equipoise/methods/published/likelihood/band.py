"""Likelihood bounds of disparities of 0/1 metrics: all values whose signed root is at most c.

A bound is the largest (or smallest) disparity over all rates and shares whose likelihood ratio does
not exceed c². At the optimum every rate solves n (μ̂ − μ) = λ a μ (1 − μ) with one multiplier λ per
group and a the derivative of the disparity in that rate, so one root in λ gives the bound: nothing
is profiled inside a search. Where the disparity is not linear (ratios; targets that contain the
group, whose shares of the population are estimated too) the derivatives are renewed a few times.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import rel_entr, xlogy

from equipoise.methods.inference.counts import tilted_rates
from equipoise.methods.numerics import BoolArray, FloatArray, GroupSums

# --- Likelihood bounds of disparities of 0/1 metrics: all values whose signed root is at most c

Against = Literal["known", "overall", "reference", "complement"]
MAX_STEPS = 120
ROUNDS = 40
"""Renewals of the derivatives; five or six are usual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Disjoint parts of the population that decide each group's disparity, shape ``(K, G)``.

    Known target: the group. Overall and complement: the group, the rest. Reference: the group
    outside it, the overlap, the reference outside the group.
    """

    rows: FloatArray
    """Rows of each part."""
    ones: FloatArray
    """Rows of each part whose metric is 1."""
    against: Against
    """What the group is compared with."""
    scale: float = 1.0
    """Factor on the target."""
    value: float = 0.0
    """The target, where it is known."""
    relative: bool = False
    """Whether the disparity is a ratio rather than a difference."""

    @property
    def mixed(self) -> bool:
        """Whether group or target is made of several parts, so that their shares count too."""
        return self.against in ("overall", "reference")

    @property
    def curved(self) -> bool:
        """Whether the disparity is not linear in the rates at known shares."""
        return self.relative or self.mixed

    def some(self, chosen: BoolArray) -> "Parts":
        """The parts of some of the groups."""
        return Parts(
            rows=self.rows[:, chosen],
            ones=self.ones[:, chosen],
            against=self.against,
            scale=self.scale,
            value=self.value,
            relative=self.relative,
        )


def band_parts(
    rows: FloatArray,
    ones: FloatArray,
    sums: GroupSums,
    against: Against,
    *,
    scale: float = 1.0,
    value: float = 0.0,
    reference: BoolArray | None = None,
    relative: bool = False,
) -> Parts:
    """The parts behind every group, from cell counts of rows and ones.

    >>> cells = np.array([4.0, 6.0]), np.array([1.0, 3.0])
    >>> band_parts(*cells, lambda x: x, "complement").rows.tolist()
    [[4.0, 6.0], [6.0, 4.0]]
    """
    n, k = sums(rows), sums(ones)
    if against == "known":
        pieces = [(n, k)]
    elif against == "reference" and reference is not None:
        inside, inside_ones = (np.where(reference, x, 0.0) for x in (rows, ones))
        b, bk = sums(inside), sums(inside_ones)
        pieces = [(n - b, k - bk), (b, bk), (inside.sum() - b, inside_ones.sum() - bk)]
    else:
        pieces = [(n, k), (rows.sum() - n, ones.sum() - k)]
    return Parts(
        rows=np.stack([a for a, _ in pieces]),
        ones=np.stack([b for _, b in pieces]),
        against=against,
        scale=scale,
        value=value,
        relative=relative,
    )


def band(
    parts: Parts, critical: float, *, calibrated: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds of every group; NaN where the group or its target has no rows.

    ``calibrated`` divides the likelihood ratio by its mean to order 1/n (Bartlett's factor for the
    group's own rate); without it bounds of small groups are a little too narrow.

    >>> tens = Parts(rows=np.array([[10.0]]), ones=np.array([[0.0]]), against="known", value=0.1)
    >>> [float(x[0].round(4)) for x in band(tens, 2.0)]
    [-0.1, 0.1393]
    """
    low, high = (np.full(parts.rows.shape[1], np.nan) for _ in range(2))
    usable = defined(parts)
    if bool(usable.any()):
        some = parts.some(usable)
        cut = critical * np.sqrt(bartlett(some) if calibrated else np.ones(some.rows.shape[1]))
        low[usable], high[usable] = (_extreme(some, cut, sign) for sign in (-1.0, 1.0))
    return low, high


def bartlett(parts: Parts) -> FloatArray:
    """Mean of the likelihood ratio of each group's rate, to order 1/n.

    >>> tens = Parts(rows=np.array([[10.0]]), ones=np.array([[5.0]]), against="known")
    >>> bartlett(tens).tolist()
    [1.05]
    """
    group, _ = _members(parts)
    n = (parts.rows * group).sum(axis=0)
    # half a row of either kind keeps the rate away from the ends, where the factor has no limit
    rate = ((parts.ones * group).sum(axis=0) + 0.5) / (n + 1)
    # That of one binomial, 1 + (1 − pq)/(6 n pq): the target's rows are as a rule many more.
    variance = rate * (1 - rate)
    return np.asarray(1 + (1 - variance) / (6 * np.maximum(n, 1.0) * variance))


def defined(parts: Parts) -> BoolArray:
    """Groups that have rows, and a target with rows."""
    group, target = _members(parts)
    here = (parts.rows * group).sum(axis=0) > 0
    if parts.against == "known":
        return np.asarray(here)
    return np.asarray(here & ((parts.rows * target).sum(axis=0) > 0))


def _members(parts: Parts) -> tuple[FloatArray, FloatArray]:
    """Which parts make up the group, and which its target, as columns of zeros and ones."""
    which = {
        "known": ([1], [0]),
        "overall": ([1, 0], [1, 1]),
        "complement": ([1, 0], [0, 1]),
        "reference": ([1, 1, 0], [0, 1, 1]),
    }[parts.against]
    group, target = (np.array(x, dtype=np.float64)[:, None] for x in which)
    return group, target


class BandState:
    """Group mean, target and their derivatives at given rates and shares."""

    def __init__(self, parts: Parts, rates: FloatArray, shares: FloatArray) -> None:
        group, target = _members(parts)
        g, t = shares * group, shares * target
        g, t = g / g.sum(axis=0), t / np.maximum(t.sum(axis=0), 1e-300)
        self.mean: FloatArray = (g * rates).sum(axis=0)
        known = parts.against == "known"
        theta = parts.value + 0 * self.mean if known else (t * rates).sum(axis=0)
        self.theta: FloatArray = parts.scale * theta
        # a ratio r is where mean − r · target vanishes
        ratio = np.minimum(self.ratio, 1e9) if parts.relative else np.ones_like(self.mean)
        factor = parts.scale * ratio
        self.by_rate = g - (0.0 if known else factor * t)
        # A mean Σ s μ / Σ s has the derivative (μ − mean)/Σ s in the share s.
        inner = g * (rates - self.mean) / np.maximum(shares, 1e-300)
        outer = t * (rates - self.theta / (parts.scale or 1.0)) / np.maximum(shares, 1e-300)
        self.by_share = inner - (0.0 if known else factor * outer)

    @property
    def ratio(self) -> FloatArray:
        """Mean over target, infinite where the target is zero."""
        far = np.full_like(self.mean, np.inf)
        return np.divide(self.mean, self.theta, out=far, where=self.theta > 0)

    def disparity(self, relative: bool) -> FloatArray:
        """Ratio or difference."""
        return self.ratio if relative else np.asarray(self.mean - self.theta)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Rates and shares along one multiplier per group, the derivatives being held fixed."""

    parts: Parts
    """The parts of the groups."""
    by_rate: FloatArray
    """Derivatives of the disparity in the rates, against the direction that is sought."""
    by_share: FloatArray
    """The same in the shares."""
    shares: FloatArray
    """The shares at which they were taken."""

    @property
    def mean(self) -> FloatArray:
        """The observed rates."""
        return self.parts.ones / np.maximum(self.parts.rows, 1.0)

    @property
    def variance(self) -> FloatArray:
        """Roughly that of the disparity; pulled-in rates keep it above zero."""
        n = np.maximum(self.parts.rows, 1.0)
        pulled = (self.parts.ones + 0.5) / (n + 1)
        return np.asarray((self.by_rate**2 * pulled * (1 - pulled) / n).sum(axis=0))

    @property
    def end(self) -> FloatArray:
        """A multiplier at which every rate is at the end of its range."""
        steepest = np.maximum(np.abs(self.by_rate).max(axis=0), 1e-12)
        return np.asarray(1e9 * (1 + self.parts.rows.sum(axis=0)) / steepest)

    def some(self, chosen: BoolArray) -> "Line":
        """The lines of some of the groups."""
        return Line(
            parts=self.parts.some(chosen),
            by_rate=self.by_rate[:, chosen],
            by_share=self.by_share[:, chosen],
            shares=self.shares[:, chosen],
        )

    def at(self, multiplier: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Rates and shares at a multiplier."""
        n = np.maximum(self.parts.rows, 1.0)
        rates, _ = tilted_rates(multiplier * self.by_rate / n, self.mean)
        return rates, self._shares(multiplier) if self.parts.mixed else self.shares

    def lost(self, multiplier: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Likelihood ratio statistic at a multiplier, and its derivative in the multiplier."""
        a, d, parts, mean = self.by_rate, self.by_share, self.parts, self.mean
        n = np.maximum(parts.rows, 1.0)
        rates, root = tilted_rates(multiplier * a / n, mean)
        k, rest = parts.ones, parts.rows - parts.ones
        with np.errstate(divide="ignore"):
            lost = xlogy(k, mean) - xlogy(k, rates) + xlogy(rest, 1 - mean) - xlogy(rest, 1 - rates)
        # On the line d lost/dμ = −λ a and dμ/dλ = −a μ(1 − μ)/(n D); their product is the slope.
        bend = np.divide(
            a * a * rates * (1 - rates), n * root, out=np.zeros_like(a), where=root > 0
        )
        value, fall = lost.sum(axis=0), bend.sum(axis=0)
        if parts.mixed:
            # the shares are a multinomial of their own, with its own likelihood ratio
            shares, total = self._shares(multiplier), parts.rows.sum(axis=0)
            apart = xlogy(parts.rows, parts.rows / total) - xlogy(parts.rows, shares)
            value = value + apart.sum(0)
            spread = (shares * (d - (d * shares).sum(axis=0)) ** 2).sum(axis=0)
            fall = fall + spread / total
        return 2 * np.maximum(value, 0.0), 2 * multiplier * fall

    def _shares(self, multiplier: FloatArray) -> FloatArray:
        total = self.parts.rows.sum(axis=0)
        # The most likely shares under a linear constraint are proportional to n/(1 + λ d/N), as
        # weights in empirical likelihood are. They add up to one, so only differences of d count.
        centred = self.by_share - (self.by_share * self.shares).sum(axis=0)
        # held away from zero: a renewal that overshoots is put right by the next
        weight = np.maximum(1 + multiplier * centred / total, 0.05)
        shares = self.parts.rows / total / weight
        return np.asarray(shares / shares.sum(axis=0))


def line_from(
    parts: Parts, rates: FloatArray, shares: FloatArray, sign: float | FloatArray
) -> Line:
    """The line along which the disparity changes fastest, in the direction of ``sign``."""
    state, some = BandState(parts, rates, shares), parts.rows > 0
    a = np.where(some, np.nan_to_num(state.by_rate, posinf=1e12), 0.0) * -sign
    d = np.where(some, np.nan_to_num(state.by_share, posinf=1e12), 0.0) * -sign
    # coefficients that cancel leave dust, which a huge multiplier would blow up
    return Line(parts=parts, by_rate=np.where(np.abs(a) > 1e-12, a, 0.0), by_share=d, shares=shares)


def starting(parts: Parts) -> tuple[FloatArray, FloatArray]:
    """Rates and shares to start from."""
    n = np.maximum(parts.rows, 1.0)
    # a target of zero has no ratio; starting from slightly pulled-in rates gives it one
    rates = (parts.ones + 0.5) / (n + 1) if parts.relative else parts.ones / n
    return rates, parts.rows / parts.rows.sum(axis=0)


def _extreme(parts: Parts, critical: FloatArray, sign: float) -> FloatArray:
    """The furthest disparity in one direction whose signed root does not exceed the cut."""
    found = np.full(parts.rows.shape[1], np.nan)
    todo = np.arange(found.size)
    rates, shares = starting(parts)
    guess: FloatArray | None = None
    for _ in range(ROUNDS if parts.curved else 1):
        line = line_from(parts, rates, shares, sign)
        guess = _multiplier(line, critical, guess)
        rates, shares = line.at(guess)
        new = BandState(parts, rates, shares).disparity(parts.relative)
        with np.errstate(invalid="ignore"):
            moving = ~(np.abs(new - found[todo]) <= 1e-9 * (1 + np.abs(new)))
        moving &= ~(np.isinf(new) & (new == found[todo]))
        found[todo] = new
        if not bool(moving.any()):
            break
        if not bool(moving.all()):
            # groups that have settled are done with
            todo, parts = todo[moving], parts.some(moving)
            rates, shares = rates[:, moving], shares[:, moving]
            guess, critical = guess[moving], critical[moving]
    return found


def _multiplier(line: Line, critical: FloatArray, guess: FloatArray | None) -> FloatArray:
    """The multiplier at which √(likelihood ratio) reaches the critical value.

    Where it never does, the rates are at the end of their range, at a huge multiplier.
    """
    at = critical / np.maximum(np.sqrt(line.variance), 1e-12) if guess is None else guess
    low, high, most = np.zeros_like(at), np.full_like(at, np.inf), line.end
    out, todo = at.copy(), np.arange(at.size)
    # a likelihood ratio of n rows carries rounding errors of n times the machine's
    close = 1e-10 + 1e-15 * line.parts.rows.sum(axis=0)
    for _ in range(MAX_STEPS):
        lost, slope = line.lost(at)
        root = np.sqrt(lost)
        over = root > critical
        low, high = np.where(over, low, at), np.where(over, at, high)
        open_ = (np.abs(root - critical) > close) & (low < most) & (high - low > 1e-14 * at)
        out[todo] = at
        if not bool(open_.any()):
            break
        # Newton on the root of the statistic, almost linear in λ where the statistic is a parabola.
        gap = 2 * root * (critical - root)
        newton = at + np.divide(gap, slope, out=np.full_like(at, np.nan), where=slope > 0)
        middle = np.where(np.isinf(high), np.minimum(4 * at, most), (low + high) / 2)
        inside = (newton > low) & (newton < np.minimum(high, 8 * at + 1))
        at = np.where(open_, np.where(inside, newton, middle), at)
        if int(open_.sum()) < 0.7 * at.size:
            # most groups need few steps: the rest go on alone
            todo, at, low, high, most = (x[open_] for x in (todo, at, low, high, most))
            critical, close, line = critical[open_], close[open_], line.some(open_)
    return out


# --- Signed roots of the profile likelihood of a disparity of a 0/1 metric, at a given value ---
#
# The inverse of the band: there the likelihood is given and the furthest disparity wanted, here
# the disparity is given and the likelihood wanted. Shares of the population are profiled like
# rates.

MAX_ROOT_STEPS = 80


def part_roots(parts: Parts, limit: float, *, calibrated: bool = True) -> FloatArray:
    """Signed roots of ε = limit: positive where the disparity is estimated above it.

    NaN where the group or its target has no rows. ``calibrated`` divides by the root of Bartlett's
    factor, as the band does, so that a bound at critical value c has a root of ±c.

    >>> tens = Parts(rows=np.array([[10.0]]), ones=np.array([[4.0]]), against="known", value=0.1)
    >>> part_roots(tens, 0.0).round(3).tolist()
    [2.432]
    """
    out = np.full(parts.rows.shape[1], np.nan)
    usable = defined(parts)
    if bool(usable.any()):
        some = parts.some(usable)
        factor = bartlett(some) if calibrated else np.ones(some.rows.shape[1])
        out[usable] = _roots(some, limit) / np.sqrt(factor)
    return out


def known_roots(
    k: FloatArray, n: FloatArray, rate: FloatArray, *, calibrated: bool = True
) -> FloatArray:
    """sign(k/n − rate) · √(2 n KL(k/n ‖ rate)), the target being a known rate for each group.

    >>> one = np.array([3.0]), np.array([3.0]), np.array([np.exp(-0.5)])
    >>> float(known_roots(*one, calibrated=False)[0].round(9))
    1.732050808
    """
    size = np.maximum(n, 1.0)
    mean = k / size
    lost = rel_entr(k, n * rate) + rel_entr(n - k, n * (1 - rate))
    root = np.copysign(np.sqrt(2 * np.maximum(lost, 0.0)), mean - rate)
    # The mean of a binomial likelihood ratio is 1 + (1 − pq)/(6 n pq) to order 1/n.
    spread = rate * (1 - rate)
    inner = (spread > 0) & calibrated
    excess = np.divide(1 - spread, 6 * size * spread, out=np.zeros_like(mean), where=inner)
    return np.asarray(root / np.sqrt(1 + excess))


def _roots(parts: Parts, limit: float) -> FloatArray:
    mean = parts.ones / np.maximum(parts.rows, 1.0)
    rates, shares = starting(parts)
    gap = limit - BandState(parts, mean, shares).disparity(parts.relative)
    sign = np.where(gap > 0, 1.0, -1.0)
    before = np.full(gap.shape, np.inf)
    for _ in range(ROUNDS if parts.curved else 1):
        line = line_from(parts, rates, shares, sign)
        at = _multiplier_at_limit(line, limit, sign, np.abs(gap))
        lost, _slope = line.lost(at)
        rates, shares = line.at(at)
        if bool((np.abs(lost - before) <= 1e-9 * (1 + lost)).all()):
            break
        before = lost
    return np.copysign(np.sqrt(np.where(gap == 0, 0.0, lost)), -gap)


def _multiplier_at_limit(line: Line, limit: float, sign: FloatArray, gap: FloatArray) -> FloatArray:
    """The multiplier at which the disparity reaches the limit, or a huge one if it never does."""
    parts, most = line.parts, line.end
    # To first order the disparity moves by λ times its variance.
    at = np.minimum(gap / np.maximum(line.variance, 1e-12) + 1e-9, most)
    low, high = np.zeros_like(at), np.full_like(at, np.inf)
    low_miss, high_miss = -gap, np.full_like(at, np.nan)
    for _ in range(MAX_ROOT_STEPS):
        rates, shares = line.at(at)
        miss = sign * (BandState(parts, rates, shares).disparity(parts.relative) - limit)
        over = miss > 0
        low, low_miss = np.where(over, low, at), np.where(over, low_miss, miss)
        high, high_miss = np.where(over, at, high), np.where(over, miss, high_miss)
        done = (np.abs(miss) <= 1e-12) | (low >= most) | (high - low <= 1e-13 * at)
        if bool(done.all()):
            break
        open_ = np.isinf(high)
        top, top_miss = np.where(open_, at, high), np.where(open_, 1.0, high_miss)
        width = top - low
        chord = low - low_miss * width / np.maximum(top_miss - low_miss, 1e-300)
        # a chord that hugs one end leaves the other where it is: keep off the ends
        inner = np.clip(chord, low + 0.02 * width, top - 0.02 * width)
        step = np.where(open_, np.minimum(4 * at, most), inner)
        at = np.where(done, at, step)
    return np.asarray(at)
