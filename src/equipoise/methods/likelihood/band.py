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
from scipy.special import xlogy

from equipoise.methods.arrays import BoolArray, FloatArray, GroupSums

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


def parts_of(
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
    >>> parts_of(*cells, lambda x: x, "complement").rows.tolist()
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


class State:
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


def _extreme(parts: Parts, critical: FloatArray, sign: float) -> FloatArray:
    found = np.full(parts.rows.shape[1], np.nan)
    todo = np.arange(found.size)
    rates, shares, guess = starting(parts)
    for _ in range(ROUNDS if curved(parts) else 1):
        mean = parts.ones / np.maximum(parts.rows, 1.0)
        a, d = derivatives(parts, rates, shares, sign)
        guess = _multiplier(a, d, parts, mean, shares, critical, guess)
        rates, shares = moved(guess, a, d, parts, mean, shares)
        new = State(parts, rates, shares).disparity(parts.relative)
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


def starting(parts: Parts) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Rates and shares to start from."""
    n = np.maximum(parts.rows, 1.0)
    # a target of zero has no ratio; starting from slightly pulled-in rates gives it one
    rates = (parts.ones + 0.5) / (n + 1) if parts.relative else parts.ones / n
    return rates, parts.rows / parts.rows.sum(axis=0), None


def derivatives(
    parts: Parts, rates: FloatArray, shares: FloatArray, sign: float | FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Derivatives of the disparity in rates and shares, against the direction of ``sign``."""
    state, some = State(parts, rates, shares), parts.rows > 0
    a = np.where(some, np.nan_to_num(state.by_rate, posinf=1e12), 0.0) * -sign
    d = np.where(some, np.nan_to_num(state.by_share, posinf=1e12), 0.0) * -sign
    return np.where(np.abs(a) > 1e-12, a, 0.0), d


def curved(parts: Parts) -> bool:
    """Whether the disparity is not linear in the rates at known shares."""
    return parts.relative or parts.against in ("overall", "reference")


def moved(
    multiplier: FloatArray,
    a: FloatArray,
    d: FloatArray,
    parts: Parts,
    mean: FloatArray,
    now: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Rates and shares at a multiplier."""
    rates, _ = tilted(multiplier * a / np.maximum(parts.rows, 1.0), mean)
    if not curved(parts) or parts.against in ("known", "complement"):
        return rates, now
    return rates, _tilted_shares(multiplier, d, parts, now)


def _tilted_shares(
    multiplier: FloatArray, d: FloatArray, parts: Parts, now: FloatArray
) -> FloatArray:
    total = parts.rows.sum(axis=0)
    centred = d - (d * now).sum(axis=0)
    # held away from zero: a renewal that overshoots is put right by the next
    weight = np.maximum(1 + multiplier * centred / total, 0.05)
    shares = parts.rows / total / weight
    return np.asarray(shares / shares.sum(axis=0))


def lost_at(
    multiplier: FloatArray,
    a: FloatArray,
    d: FloatArray,
    parts: Parts,
    mean: FloatArray,
    now: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Likelihood ratio statistic at a multiplier, and its derivative in the multiplier."""
    n = np.maximum(parts.rows, 1.0)
    rates, root = tilted(multiplier * a / n, mean)
    k, rest = parts.ones, parts.rows - parts.ones
    with np.errstate(divide="ignore"):
        lost = xlogy(k, mean) - xlogy(k, rates) + xlogy(rest, 1 - mean) - xlogy(rest, 1 - rates)
    bend = np.divide(a * a * rates * (1 - rates), n * root, out=np.zeros_like(a), where=root > 0)
    value, fall = lost.sum(axis=0), bend.sum(axis=0)
    if parts.against in ("overall", "reference"):
        shares = _tilted_shares(multiplier, d, parts, now)
        total = parts.rows.sum(axis=0)
        value = value + (xlogy(parts.rows, parts.rows / total) - xlogy(parts.rows, shares)).sum(0)
        spread = (shares * (d - (d * shares).sum(axis=0)) ** 2).sum(axis=0)
        fall = fall + spread / total
    return 2 * np.maximum(value, 0.0), 2 * multiplier * fall


def _multiplier(
    a: FloatArray,
    d: FloatArray,
    parts: Parts,
    mean: FloatArray,
    now: FloatArray,
    critical: FloatArray,
    guess: FloatArray | None,
) -> FloatArray:
    """The multiplier at which √(likelihood ratio) reaches the critical value.

    Where it never does, the rates are at the end of their range, at a huge multiplier.
    """
    n = np.maximum(parts.rows, 1.0)
    pulled = (parts.ones + 0.5) / (n + 1)
    error = np.sqrt((a * a * pulled * (1 - pulled) / n).sum(axis=0))
    at = critical / np.maximum(error, 1e-12) if guess is None else guess
    low, high = np.zeros_like(at), np.full_like(at, np.inf)
    most = 1e9 * (1 + parts.rows.sum(axis=0)) / np.maximum(np.abs(a).max(axis=0), 1e-12)
    out, todo = at.copy(), np.arange(at.size)
    # a likelihood ratio of n rows carries rounding errors of n times the machine's
    close = 1e-10 + 1e-15 * parts.rows.sum(axis=0)
    for _ in range(MAX_STEPS):
        lost, slope = lost_at(at, a, d, parts, mean, now)
        root = np.sqrt(lost)
        over = root > critical
        low, high = np.where(over, low, at), np.where(over, at, high)
        open_ = (np.abs(root - critical) > close) & (low < most) & (high - low > 1e-14 * at)
        out[todo] = at
        if not bool(open_.any()):
            break
        gap = 2 * root * (critical - root)
        newton = at + np.divide(gap, slope, out=np.full_like(at, np.nan), where=slope > 0)
        middle = np.where(np.isinf(high), np.minimum(4 * at, most), (low + high) / 2)
        inside = (newton > low) & (newton < np.minimum(high, 8 * at + 1))
        at = np.where(open_, np.where(inside, newton, middle), at)
        if int(open_.sum()) < 0.7 * at.size:
            # most groups need few steps: the rest go on alone
            todo, at, low, high, most = (x[open_] for x in (todo, at, low, high, most))
            critical, close = critical[open_], close[open_]
            parts, a, d = parts.some(open_), a[:, open_], d[:, open_]
            mean, now = mean[:, open_], now[:, open_]
    return out


def tilted(s: FloatArray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rate with μ̂ − μ = s μ (1 − μ), and the root D in its formula: dμ/ds = −μ(1 − μ)/D.

    >>> tilted(np.array([0.0, 1.0]), np.array([0.25, 0.25]))[0].round(4).tolist()
    [0.25, 0.134]
    """
    one = 1 + s
    root = np.sqrt(np.maximum((1 - s) ** 2 + 4 * s * (1 - mean), 0.0))
    positive = one >= 0
    # two forms of the same root, each used where it does not cancel
    bottom = np.where(positive, one + root, 1.0)
    stable = np.divide(2 * mean, bottom, out=np.zeros_like(root), where=bottom > 0)
    other = np.divide(one - root, 2 * s, out=np.zeros_like(root), where=~positive)
    return np.clip(np.where(positive, stable, other), 0.0, 1.0), root
