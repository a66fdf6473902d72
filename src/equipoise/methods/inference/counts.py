"""Tails of a mean of −1, 0 and 1 about a known number: paired changes, McNemar's question.

Under a mean of d one thing stays open: the share r of rows that are not zero. Tables are ordered by
the score statistic with r as d leaves it most likely (Tango 1998; at d = 0 it is McNemar's),
slightly bent so that tables of few changed rows stand where their exact tail puts them. The p-value
is the largest chance, over all r in a 99.99 % range of it (Berger and Boos 1994), of a table as
high in that order as the one seen. Tables with other numbers of changed rows count as well, which
fills the gaps between the few outcomes that any one number has: hence this is sharper than the
exact test given the changed rows, and as sharp as its mid-p form, which is not valid everywhere.

The pivot of 0/1 metrics: counts of disjoint parts, exact where they are small.

A disparity of δ fixes a contrast of the parts' rates. Their most likely values under it give the
distribution of the contrast, and its two tails beyond what was seen are the p-values of δ. What δ
leaves open is estimated, so the tails are the largest over the estimate and some standard errors
either side: enumerated over all tables of up to 40 rows a part, that keeps the error rate.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betainc, betaincinv, gammaln, ndtri, rel_entr, stdtr, xlog1py, xlogy

from equipoise.methods.hypotheses import Tails, linear_tail, linear_tails
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray, over
from equipoise.methods.targets import Comparison, OfComparison

OPEN = 1e-4
"""Chance that the share of rows that are not zero lies outside the range that is searched."""
SHARES = 13
"""Shares that are tried, evenly spaced by their standard error."""
REACH = 6.5
"""Standard deviations of the number of changed rows that are added up."""
_BLOCK = 1 << 20


def far_tail(n: FloatArray, plus: FloatArray, minus: FloatArray, mean: FloatArray) -> FloatArray:
    """The p-value of ``mean`` against a higher one, for counts of 1 and of −1 among ``n`` rows.

    Of 100 rows nine changed, all of them upward. Were ups and downs alike, so much would happen in
    fewer than one of a thousand samples; the exact test given nine changed rows says 0.002.

    >>> one = np.ones(1)
    >>> far_tail(100 * one, 9 * one, 0 * one, 0 * one).round(5).tolist()
    [0.0008]
    """
    changed = plus + minus
    seen = score(n, changed, plus, mean)
    share = _shares(n, changed, mean)
    # of each share, the numbers of changed rows that can happen, and the one that did
    centre, spread = n * share, REACH * np.sqrt(n * share * (1 - share)) + 3
    first = np.minimum(np.maximum(np.floor(centre - spread), 0.0), changed)
    last = np.maximum(np.minimum(np.ceil(centre + spread), n), changed)
    out = np.empty(n.shape)
    size = np.cumsum((last - first + 1).sum(axis=0))
    blocks = _BLOCK * np.arange(1, size[-1:].sum() // _BLOCK + 1)
    for here in np.split(np.arange(n.size), np.searchsorted(size, blocks)):
        if here.size:
            ends = (first[:, here].astype(np.int64), last[:, here].astype(np.int64))
            out[here] = _largest(n[here], mean[here], seen[here], share[:, here], *ends)
    return out


def score(n: FloatArray, changed: FloatArray, plus: FloatArray, mean: FloatArray) -> FloatArray:
    """The distance of plus − minus from what the mean says, in its standard errors.

    >>> one = np.ones(1)
    >>> bool(np.isclose(score(50 * one, 16 * one, 12 * one, 0 * one), 2 + 2 / (12 * 17)))
    True
    """
    variance = np.maximum(n * (_fitted_share(n, changed, plus, mean) - mean**2), 1e-12)
    gap = 2 * plus - changed - n * mean
    z = np.where(np.abs(gap) > 1e-9 * n, gap, 0.0) / np.sqrt(variance)
    # The tail of few changed rows is shorter than a normal's: the term of fourth order of Cornish
    # and Fisher, with one row more so that it stays small where there are none.
    return np.asarray(z + (z**3 - 3 * z) / (12 * (variance + 1)))


def _fitted_share(
    n: FloatArray, changed: FloatArray, plus: FloatArray, mean: FloatArray
) -> FloatArray:
    """The most likely share of rows that are not zero, if ups less downs have this mean."""
    size = np.abs(mean)
    against = np.where(mean >= 0, changed - plus, plus)
    # With q the share of the rarer sign: 2n q² + b q − c = 0, a root that does not cancel.
    b = 2 * (n - changed) * size - changed * (1 - size) + 2 * against * size
    c = against * size * (1 - size)
    root = np.sqrt(b * b + 8 * n * c)
    falling = np.divide(2 * c, b + root, out=np.zeros_like(root), where=b + root > 0)
    return np.asarray(2 * np.where(b > 0, falling, (root - b) / (4 * n)) + size)


def _shares(n: FloatArray, changed: FloatArray, mean: FloatArray) -> FloatArray:
    """Shares of rows that are not zero which the data and the mean leave open, ``(SHARES, G)``."""
    rest = n - changed
    low = np.where(changed > 0, betaincinv(np.maximum(changed, 1), rest + 1, OPEN / 2), 0.0)
    high = np.where(rest > 0, betaincinv(changed + 1, np.maximum(rest, 1), 1 - OPEN / 2), 1.0)
    # no smaller than the mean itself, which alone is left if the data allow nothing so large
    start, stop = (np.arcsin(np.sqrt(np.clip(x, np.abs(mean), 1.0))) for x in (low, high))
    inside = np.sin(np.linspace(start, stop, SHARES)) ** 2
    return np.asarray(np.clip(inside, np.abs(mean), 1.0))


def _largest(
    n: FloatArray,
    mean: FloatArray,
    seen: FloatArray,
    share: FloatArray,
    first: IntArray,
    last: IntArray,
) -> FloatArray:
    """The largest chance over the shares of a score as high as the one seen."""
    start, stop = first.min(axis=0), last.max(axis=0)
    group, changed = _runs(start, stop)
    least = _least(n[group], changed, mean[group], seen[group])
    # where the numbers of changed rows of each group begin in that list
    begin = np.cumsum(stop - start + 1) - (stop - start + 1)
    case, number = _runs(first.ravel(), last.ravel())
    of = case % n.size
    k, m, r = least[begin[of] + number - start[of]], number * 1.0, share.ravel()[case]
    size = n[of]
    ways = gammaln(size + 1) - gammaln(m + 1) - gammaln(size - m + 1)
    chance = np.exp(ways + xlogy(m, r) + xlog1py(size - m, -r))
    tilt = np.divide(mean[of], r, out=np.zeros_like(r), where=r > 0)
    inner = (k > 0) & (k <= m)
    tail = betainc(np.where(inner, k, 1.0), np.where(inner, m - k + 1, 1.0), (1 + tilt) / 2)
    chance *= np.where(inner, tail, k <= 0)
    every = np.bincount(case, chance, share.size).reshape(share.shape)
    return np.asarray(np.minimum(every.max(axis=0), 1.0))


def _runs(first: IntArray, last: IntArray) -> tuple[IntArray, IntArray]:
    """The whole numbers from each first to its last, after the place of the pair they are from."""
    length = last - first + 1
    place = np.repeat(np.arange(length.size), length)
    return place, np.arange(length.sum()) - np.repeat(np.cumsum(length) - length - first, length)


def _least(n: FloatArray, changed: IntArray, mean: FloatArray, seen: FloatArray) -> FloatArray:
    """The fewest ups among changed rows that score as high; more than all of them if none does."""
    m = np.asarray(changed, dtype=np.float64)
    low, high = np.zeros_like(m), m + 1
    while bool((low < high).any()):
        middle = np.floor((low + high) / 2)
        # sums of the same counts in another order differ by rounding
        enough = (middle > m) | (score(n, m, np.minimum(middle, m), mean) >= seen - 1e-9)
        low, high = (
            np.where(enough, low, np.minimum(middle + 1, high)),
            np.where(enough, middle, high),
        )
    return high


# --- Few differences that are no counts: all signs they could have had ---


def flip_tails(value: FloatArray) -> tuple[float, float]:
    """Shares of the signs that differences could have, with a sum as high, and as low.

    If partners are treated alike, each difference is as likely to have either sign. Four pairs that
    all rose have one chance in sixteen:

    >>> flip_tails(np.array([0.5, 1.0, 2.5, 0.1]))
    (0.0625, 1.0)
    """
    # the sums of both halves, one sorted, so that pairs of them are counted and not written out
    first, second = (_signed_sums(np.abs(half)) for half in np.array_split(value, 2))
    ordered, seen = np.sort(second), float(value.sum())
    hair = 1e-11 * float(np.abs(value).sum())
    below = np.searchsorted(ordered, seen - hair - first, side="left")
    upto = np.searchsorted(ordered, seen + hair - first, side="right")
    every = first.size * second.size
    return 1 - float(below.sum()) / every, float(upto.sum()) / every


def _signed_sums(size: FloatArray) -> FloatArray:
    sums = np.zeros(1)
    for x in size:
        sums = np.concatenate([sums - x, sums + x])
    return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipPivot:
    """p-values of differences between partners; of few pairs, whether they are treated alike.

    Where pairs are few, the tails are those of no difference at all, and no other has any.
    """

    estimate: FloatArray
    """The mean differences."""
    error: FloatArray
    """About their standard errors."""
    many: Callable[[FloatArray, IntArray], Tails]
    """The tails of groups with more pairs."""
    few: BoolArray
    """Groups with few pairs."""
    values: dict[int, FloatArray]
    """The differences of each of them."""

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """Chances, if the disparity were this, of an estimate as high, and as low, as was seen."""
        up, down = (x.copy() for x in self.many(disparity, chosen))
        for i in np.flatnonzero(self.few[chosen]).tolist():
            if disparity[i] == 0:
                up[i], down[i] = flip_tails(self.values[int(chosen[i])])
            else:
                # nothing is excluded: signs are about exchangeable partners only
                up[i], down[i] = 1.0, 1.0
        return up, down


# --- Binomial rates fitted under one linear constraint ---
#
# Under Σ a·μ = value the most likely rates solve n (μ̂ − μ) = λ a μ (1 − μ), a quadratic in each
# μ given the one multiplier λ; λ itself is found by Newton steps kept inside a bracket.

MAX_STEPS = 200
"""Far more than Newton needs; halving alone would be done by then."""


def constrained_rates(
    rows: FloatArray, rates: FloatArray, coefficient: FloatArray, value: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Most likely rates under Σ a·μ = value, shape ``(parts, G)``, and the multiplier ``(G,)``.

    A value that no rates can reach is moved to the nearest one that they can. Two groups with 2 of
    4 and 0 of 4, whose rates must be equal, pool their rows:

    >>> four, halves = np.full((2, 1), 4.0), np.array([[0.5], [0.0]])
    >>> fitted, _ = constrained_rates(four, halves, np.array([[1.0], [-1.0]]), np.zeros(1))
    >>> fitted[:, 0].round(9).tolist()
    [0.25, 0.25]
    """
    n, a = np.maximum(rows, 1e-9), coefficient
    lowest, highest = np.minimum(a, 0).sum(axis=0), np.maximum(a, 0).sum(axis=0)
    aim = np.clip(value, lowest, highest)
    # at the ends of the reachable range every rate sits in a corner and no multiplier is finite
    inner = np.where((aim > lowest) & (aim < highest), aim, (lowest + highest) / 2)
    multiplier = _multiplier(a / n, a, rates, inner)
    fitted, _ = tilted_rates(multiplier * (a / n), rates)
    fitted = np.where(aim <= lowest, np.where(a < 0, 1.0, np.where(a > 0, 0.0, rates)), fitted)
    high_end = (aim >= highest) & (highest > lowest)
    fitted = np.where(high_end, np.where(a > 0, 1.0, np.where(a < 0, 0.0, rates)), fitted)
    return fitted, multiplier


def tilted_rates(s: FloatArray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rate with μ̂ − μ = s μ (1 − μ), and the root D in its formula: dμ/ds = −μ(1 − μ)/D.

    >>> tilted_rates(np.array([0.0, 1.0]), np.array([0.25, 0.25]))[0].round(4).tolist()
    [0.25, 0.134]
    """
    one = 1 + s
    # (1 + s)² − 4 s μ̂, written so that nothing cancels where s ≥ 0.
    root = np.sqrt(np.maximum((1 - s) ** 2 + 4 * s * (1 - mean), 0.0))
    # two forms of the same root, each used where it does not cancel
    positive = one >= 0
    bottom = np.where(positive, one + root, 1.0)
    stable = np.divide(2 * mean, bottom, out=np.zeros_like(root), where=bottom > 0)
    other = np.divide(one - root, 2 * s, out=np.zeros_like(root), where=~positive)
    return np.clip(np.where(positive, stable, other), 0.0, 1.0), root


def _multiplier(slope: FloatArray, a: FloatArray, mean: FloatArray, aim: FloatArray) -> FloatArray:
    low, high = _bracket(slope, a, mean, aim)
    out = np.where((low < 0) & (high > 0), 0.0, (low + high) / 2)
    scale = np.abs(a).sum(axis=0)
    at, todo = out, np.arange(aim.size)
    for _ in range(MAX_STEPS):
        rates, root = tilted_rates(at * slope, mean)
        miss = (a * rates).sum(axis=0) - aim
        # the contrast falls as the multiplier grows
        low, high = np.where(miss > 0, at, low), np.where(miss > 0, high, at)
        # At a large multiplier neighbouring floats may miss by more; then the bracket decides.
        open_ = (np.abs(miss) > 1e-12 * scale) & (high - low > 4e-16 * np.abs(at))
        bend = rates * (1 - rates)
        bent = np.divide(a * slope * bend, root, out=np.zeros_like(root), where=root > 0)
        fall = bent.sum(axis=0)
        step = at + np.divide(miss, fall, out=np.full_like(miss, np.inf), where=fall > 0)
        inside = (step > low) & (step < high)
        at = np.where(open_, np.where(inside, step, (low + high) / 2), at)
        out[todo] = at
        if not bool(open_.all()):
            # most settle within a few steps: go on with the rest alone
            todo, at, scale, aim = todo[open_], at[open_], scale[open_], aim[open_]
            low, high = low[open_], high[open_]
            slope, a, mean = slope[:, open_], a[:, open_], mean[:, open_]
            if todo.size == 0:
                break
    return out


def _bracket(
    slope: FloatArray, a: FloatArray, mean: FloatArray, aim: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Multipliers on either side of the wanted one."""
    # twice a Newton step from the maximum: multipliers grow with the rows
    fall = (a * slope * mean * (1 - mean)).sum(axis=0)
    miss = np.abs((a * mean).sum(axis=0) - aim)
    step = np.divide(miss, fall, out=np.zeros_like(miss), where=fall > 1e-300)
    wide = np.clip(2 * step, 1.0, 1e18)
    low, high = -wide, wide
    for _ in range(64):
        above = (a * tilted_rates(high * slope, mean)[0]).sum(axis=0) > aim
        below = (a * tilted_rates(low * slope, mean)[0]).sum(axis=0) < aim
        if not bool((above | below).any()):
            break
        low, high = np.where(below, low * 4, low), np.where(above, high * 4, high)
    return low, high


# --- The pivot of 0/1 metrics: counts of disjoint parts, exact where they are small ---

PLENTY = 250.0
"""A part whose count has this variance is as good as normal."""
SHAKY = 0.03
"""Where shares add more than this to the variance, their likely values are sought."""
SHARE_STEPS = (13, 7, 5)
"""Values that are tried, in ever narrower ranges."""
OPEN_STEPS = ((0.5, PLENTY), (1.0, 25.0), (2.0, 5.0))
"""Standard errors by which the rates that a disparity leaves open are moved either way, and up to
which variance of a count: where outcomes are rare, the estimate of what is open says little."""
SHARE_MOVES = (
    (0.0, np.inf),
    *((by, 500.0) for by in (-1.0, 1.0)),
    *((by, 100.0) for by in (-2.0, -1.5, 1.5, 2.0)),
)
"""Standard errors by which likely shares are moved, and up to how many rows that tell them."""
FAR = 8.0
"""Log-likelihood by which shares may be less likely than the likeliest ones of a disparity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPivot(OfComparison):
    """p-values of disparities of a 0/1 metric."""

    comparison: Comparison
    """Groups beside their target."""
    rows: FloatArray
    """Rows, or effective rows of weighted and clustered data, of each part."""
    degrees: FloatArray
    """Degrees of freedom behind the effective rows; infinite for plain counts."""

    @property
    def rates(self) -> FloatArray:
        """The parts' rates; zero for a part without rows."""
        return np.nan_to_num(over(self.comparison.parts.total, self.comparison.parts.weight))

    @property
    def error(self) -> FloatArray:
        """About the standard error of the disparity, never zero: where a search starts."""
        found = self.comparison
        factor = found.factor(np.where(np.isfinite(self.estimate), self.estimate, 1.0))
        a = found.slopes(factor) * found.parts.weight
        # half a row of either kind keeps rates away from the ends
        pulled = (self.rates * self.rows + 0.5) / (self.rows + 1)
        own = (a**2 * pulled * (1 - pulled) / np.maximum(self.rows, 0.5)).sum(axis=0)
        variance = own + self._noise(found, factor, self.rates)
        unit = found.target.scale * found.theta if found.relative else 1.0
        return np.asarray(np.sqrt(np.maximum(variance, 1e-30)) / np.maximum(np.abs(unit), 1e-12))

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """Chances, if the disparity were this, of an estimate as high, and as low, as was seen."""
        cases = self._cases(disparity, chosen)
        up, down = linear_tails(cases.rows, cases.rates, cases.a, cases.seen, cases.noise)
        return self._largest(up, cases, chosen), self._largest(down, cases, chosen)

    def tail(self, disparity: FloatArray, chosen: IntArray, upper: BoolArray) -> FloatArray:
        """One of the two, the upper one where that is asked for: half the work."""
        cases = self._cases(disparity, chosen)
        sign = np.where(upper, 1.0, -1.0)[cases.group]
        found = linear_tail(cases.rows, cases.rates, sign * cases.a, sign * cases.seen, cases.noise)
        return self._largest(found, cases, chosen)

    def _largest(self, tail: FloatArray, cases: "_Cases", chosen: IntArray) -> FloatArray:
        """The largest tail over what a disparity leaves open."""
        out = np.zeros(chosen.shape)
        np.maximum.at(out, cases.group, tail)
        return self._student(out, chosen)

    def _cases(self, disparity: FloatArray, chosen: IntArray) -> "_Cases":
        """With the shares as observed, as if they were fixed; and with likely ones that vary."""
        found, n = self.comparison.some(chosen), self.rows[:, chosen]
        factor, aim = found.factor(disparity), found.aim(disparity)
        rates = np.nan_to_num(over(found.parts.total, found.parts.weight))
        shares = _likely_shares(found, n, rates, factor, aim)
        shaky = shares.group
        # at the observed shares a disparity may take rates that the data rule out, or any at all
        observed = np.delete(np.arange(disparity.size), shaky[shares.far(shares.observed)])
        places, times = [observed], [np.ones_like(rates[:, observed])]
        for by, most in SHARE_MOVES:
            here = np.flatnonzero(shares.rows <= most)
            if here.size == 0:
                continue
            at, odds = shaky[here], (shares.centre + by * shares.error)[here]
            if by:
                lost = _loss(found.some(at), n[:, at], rates[:, at], factor[at], aim[at], odds)
                near = ~shares.far(lost, here)
                at, odds = at[near], odds[near]
            places.append(at)
            times.append(np.where(_common(found.some(at)), np.exp(odds), 1.0))
        place = np.concatenate(places)
        drawn = np.arange(place.size) >= observed.size
        cases = self._at_shares(
            found.some(place),
            np.concatenate(times, axis=1),
            drawn,
            n[:, place],
            rates[:, place],
            factor[place],
            aim[place],
        )
        return replace(cases, group=place[cases.group])

    def _at_shares(
        self,
        found: Comparison,
        times: FloatArray,
        drawn: BoolArray,
        n: FloatArray,
        rates: FloatArray,
        factor: FloatArray,
        aim: FloatArray,
    ) -> "_Cases":
        """The cases when the parts' shares are multiplied, over the rates left open."""
        likely = found.reweighed(times)
        held = _contrast(likely, n, factor)
        fitted, _ = constrained_rates(n, rates, held, aim)
        # the statistic keeps the observed shares; how unlikely they are is part of it
        effect = likely.slopes(factor) * fitted - likely.intercepts(factor, fitted)
        a = np.where(held != 0, likely.slopes(factor) * found.parts.weight, 0.0)
        seen = (a * rates).sum(axis=0) + (effect * found.parts.weight).sum(axis=0)
        count = np.where(a != 0, n * fitted * (1 - fitted), np.inf).min(axis=0)
        others = _few_others(found, likely, n, effect, likely.slopes(factor), drawn)
        # counts have the means that the likely shares give them, and so has what rates leave alone
        place, mu = _with_open_rates(n, fitted, np.where(others.few, held, a), count)
        noise = self._noise(likely.some(place), factor[place], mu)
        noise[others.few[place]] = 0.0
        # with and without: the noise of shares would halve the chance of the outcome itself
        plain = np.flatnonzero((noise == 0) | ((count < PLENTY) & ~drawn)[place])
        noisy = np.flatnonzero(noise > 0)
        case = np.concatenate([plain, noisy])
        extra = np.concatenate([np.zeros(plain.size), noise[noisy]])
        at = place[case]
        cases = _Cases(
            group=at, rows=n[:, at], rates=mu[:, case], a=a[:, at], seen=seen[at], noise=extra
        )
        return others.counted(cases, rates, fitted) if bool(others.few.any()) else cases

    @staticmethod
    def _noise(found: Comparison, factor: FloatArray, rates: FloatArray) -> FloatArray:
        """Variance from parts' shares of the population, and from a custom target."""
        effect = found.slopes(factor) * rates - found.intercepts(factor, rates)
        mixed = (found.parts.weight2 * effect**2).sum(axis=0)
        # shares cannot matter where group and target are one part each
        size = np.sum(found.slopes(factor) ** 2 * found.parts.weight2, axis=0)
        mixed = np.where(mixed > 1e-13 * size, mixed, 0.0)
        return np.asarray(np.maximum(mixed + found.custom_variance(factor), 0.0))

    def _student(self, p: FloatArray, chosen: IntArray) -> FloatArray:
        """The same tail of Student's distribution, where the effective rows are estimated."""
        degrees = self.degrees[chosen]
        known = np.isinf(degrees)
        if bool(known.all()):
            return p
        z = ndtri(np.clip(p, 1e-300, 1 - 1e-16))
        return np.where(known, p, stdtr(np.where(known, 1.0, degrees), z))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cases:
    """Sums of binomials whose tails are looked at, several for each group."""

    group: IntArray
    """Which of the groups each case belongs to."""
    rows: FloatArray
    rates: FloatArray
    a: FloatArray
    seen: FloatArray
    noise: FloatArray


MOST_OTHERS, RARE_OTHERS = 100.0, 0.2
"""Up to how many rows outside a group, and which share of all, their number is counted out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _FewOthers:
    """Groups of nearly everybody, beside everyone: how many others are drawn is itself a count.

    The contrast is a sum over the rows of the others, each a one or a zero, and the rate of the
    group. Of a few rows the normal law of their number says little; ones and zeros among them are
    two counts of rare events among all rows, whose outcomes can be listed.
    """

    few: BoolArray
    """Which groups are such."""
    part: IntArray
    """The part that holds the others."""
    everyone: FloatArray
    """Rows in all."""
    share: FloatArray
    """Share of the others that is likely under the disparity."""
    slope: FloatArray
    """What a one adds to the contrast beyond a zero, for each row of the others."""
    step: FloatArray
    """What a row more of the others adds, at their fitted rate."""

    def counted(self, cases: _Cases, seen: FloatArray, fitted: FloatArray) -> _Cases:
        """The cases with ones and zeros of the others as two parts; nobody is in the last else."""
        rows, rates, a = (
            np.vstack([x, np.zeros((1, x.shape[1]))]) for x in (cases.rows, cases.rates, cases.a)
        )
        here = np.flatnonzero(self.few[cases.group])
        g = cases.group[here]
        part, every, share = self.part[g], self.everyone[g], self.share[g]
        rate, ones = fitted[part, g], seen[part, g]
        one, zero = (self.slope[g] * x + self.step[g] for x in (1 - rate, -rate))
        number, mu = cases.rows[part, here], cases.rates[part, here]
        value = cases.seen.copy()
        value[here] = (cases.a[:, here] * seen[:, g]).sum(axis=0) - cases.a[part, here] * ones
        value[here] += number * (one * ones + zero * (1 - ones))
        for place, chance, coefficient in ((part, mu, one), (-1, 1 - mu, zero)):
            rows[place, here] = every
            rates[place, here] = share * chance
            a[place, here] = coefficient * every
        return replace(cases, rows=rows, rates=rates, a=a, seen=value)


def _few_others(
    found: Comparison,
    likely: Comparison,
    n: FloatArray,
    effect: FloatArray,
    slopes: FloatArray,
    drawn: BoolArray,
) -> _FewOthers:
    both, there, places = _common(likely), n > 0, np.arange(n.shape[1])
    other = ~both & there
    part = other.argmax(axis=0)
    weight, every = likely.parts.weight, n.sum(axis=0)
    share = over(weight[part, places], weight.sum(axis=0))
    few = drawn & likely.target.mixed & (other.sum(axis=0) == 1) & (both & there).any(axis=0)
    few &= (every * share < MOST_OTHERS) & (share < RARE_OTHERS)
    # effective rows stand for several units of weight
    unit = over(found.parts.weight[part, places], n[part, places])
    common = np.where(both, effect, 0.0).sum(axis=0)
    return _FewOthers(
        few=few,
        part=part,
        everyone=every,
        share=share,
        slope=unit * slopes[part, places],
        step=unit * (effect[part, places] - common),
    )


def _contrast(found: Comparison, n: FloatArray, factor: FloatArray) -> FloatArray:
    """Coefficients of the parts' rates; what cancels leaves dust."""
    a = found.slopes(factor) * found.parts.weight
    return np.where((np.abs(a) > 1e-12) & (n > 0), a, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shares:
    """The shares of common parts that make a disparity most likely, where they matter."""

    group: IntArray
    """The groups whose share adds something to the variance."""
    centre: FloatArray
    """The log of what the odds of the common part are multiplied by."""
    error: FloatArray
    """Standard error of these odds."""
    least: FloatArray
    """Log-likelihood that is lost there; infinite if no share near the data allows it."""
    observed: FloatArray
    """The same at the observed shares."""
    rows: FloatArray
    """Rows that tell the shares; if few are outside the common part, hardly more than those."""

    def far(self, lost: FloatArray, chosen: IntArray | slice = slice(None)) -> BoolArray:
        """Whether a loss is far beyond the least, or says that a disparity is impossible."""
        return np.asarray(np.isinf(lost) | (lost > self.least[chosen] + FAR))


def _likely_shares(
    found: Comparison, n: FloatArray, rates: FloatArray, factor: FloatArray, aim: FloatArray
) -> _Shares:
    """The shares that make a disparity most likely.

    Where group or target consist of several parts, their shares are estimated too, and under a
    disparity the most likely shares are not those observed. What counts is the share of the part
    that belongs to both; it is sought on either side of the one observed.
    """
    todo = _shaky(found, n, rates, factor, aim) if found.target.mixed else np.zeros(0, np.int64)
    some, size, mean = found.some(todo), n[:, todo], rates[:, todo]
    both = _common(some)
    inside = np.maximum((both * size).sum(axis=0), 0.25)
    outside = np.maximum((~both * size).sum(axis=0), 0.25)
    error = np.sqrt(1 / inside + 1 / outside)
    centre, width = np.zeros(todo.size), 4.5
    observed = least = np.full(todo.size, np.inf)
    for steps in SHARE_STEPS if todo.size else ():
        grid = np.linspace(-width, width, steps)
        # all values of all groups at once
        tried = np.tile(np.arange(todo.size), steps)
        odds = (centre + grid[:, None] * error).ravel()
        lost = _loss(
            some.some(tried),
            size[:, tried],
            mean[:, tried],
            factor[todo][tried],
            aim[todo][tried],
            odds,
        ).reshape(steps, todo.size)
        if steps == SHARE_STEPS[0]:
            # the middle of the first range
            observed = lost[steps // 2]
        least = np.minimum(least, lost.min(axis=0))
        centre, width = centre + grid[np.argmin(lost, axis=0)] * error, 2 * width / (steps - 1)
    # as many rows, half of them in the common part, would tell its share as well
    rows = np.where(outside < inside, 4 / error**2, size.sum(axis=0))
    return _Shares(
        group=todo, centre=centre, error=error, least=least, observed=observed, rows=rows
    )


def _shaky(
    found: Comparison, n: FloatArray, rates: FloatArray, factor: FloatArray, aim: FloatArray
) -> IntArray:
    """Groups in which the shares add something to the variance."""
    a = _contrast(found, n, factor)
    mu, _ = constrained_rates(n, rates, a, aim)
    effect = found.slopes(factor) * mu - found.intercepts(factor, mu)
    shaky = (found.parts.weight2 * effect**2).sum(axis=0)
    steady = (a**2 * mu * (1 - mu) / np.maximum(n, 1e-9)).sum(axis=0)
    # at the observed shares the disparity may be impossible, or take rates that exclude the data
    excluded = (((mu <= 0) & (rates > 0)) | ((mu >= 1) & (rates < 1))) & (n > 0)
    missed = np.abs((a * mu).sum(axis=0) - aim) > 1e-9 * (np.abs(a).sum(axis=0) + np.abs(aim))
    return np.flatnonzero((shaky > SHAKY * steady) | missed | excluded.any(axis=0))


def _common(found: Comparison) -> BoolArray:
    """The part that belongs to the group and to its target."""
    return np.asarray(found.in_group * found.in_target > 0)


def _loss(
    found: Comparison,
    n: FloatArray,
    rates: FloatArray,
    factor: FloatArray,
    aim: FloatArray,
    log_odds: FloatArray,
) -> FloatArray:
    """Log-likelihood lost when the common part's odds move and the rates obey the disparity."""
    times = np.where(_common(found), np.exp(log_odds), np.ones_like(rates))
    here = found.reweighed(times)
    a = _contrast(here, n, factor)
    mu, _ = constrained_rates(n, rates, a, aim)
    ones = n * rates
    with np.errstate(divide="ignore"):
        lost = rel_entr(ones, n * mu) + rel_entr(n - ones, n * (1 - mu))
    share = n * times / np.maximum((n * times).sum(axis=0), 1e-300)
    lost = (lost + rel_entr(n, share * n.sum(axis=0))).sum(axis=0)
    reached = np.abs((a * mu).sum(axis=0) - aim) <= 1e-9 * (np.abs(a).sum(axis=0) + np.abs(aim))
    return np.where(reached, lost, np.inf)


def _with_open_rates(
    n: FloatArray, fitted: FloatArray, a: FloatArray, count: FloatArray
) -> tuple[IntArray, FloatArray]:
    """The fitted rates of every group, and those some standard errors to either side of them.

    In parts with many outcomes the rates that a disparity leaves open hardly matter.
    """
    few = np.flatnonzero(count < PLENTY)
    step = _open_rates(n[:, few], fitted[:, few], a[:, few])
    some = np.abs(step).max(axis=0) > 0
    moving, step = few[some], step[:, some]
    places, rates = [np.arange(count.size)], [fitted]
    for by, most in OPEN_STEPS:
        which = np.flatnonzero(count[moving] < most)
        at = moving[which]
        for sign in (-by, by):
            places.append(at)
            rates.append(_moved(fitted[:, at], sign * step[:, which]))
    return np.concatenate(places), np.concatenate(rates, axis=1)


def _open_rates(n: FloatArray, rates: FloatArray, a: FloatArray) -> FloatArray:
    """One standard error along the rates that the contrast leaves open, ``(parts, G)``."""
    used = a != 0
    spread = np.maximum(rates * (1 - rates), 0.25 / np.maximum(n, 1.0)) / np.maximum(n, 1e-9)
    spread = np.where(used, spread, 0.0)
    # all rates up alike, less what that would do to the contrast
    pull = (a**2 * spread).sum(axis=0)
    along = used - spread * a * over((a * used).sum(axis=0), pull)
    along = np.nan_to_num(np.where(used, along, 0.0))
    along = np.where(np.abs(along) > 1e-9, along, 0.0)
    information = np.where(used, along**2 / np.where(used, spread, 1.0), 0.0).sum(axis=0)
    step = 1 / np.sqrt(np.where(information > 0, information, np.inf))
    return np.asarray(along * step)


def _moved(rates: FloatArray, move: FloatArray) -> FloatArray:
    """Rates moved, no further than to the end of the first one's range."""
    room = np.where(move > 0, 1 - rates, rates)
    fits = np.divide(room, np.abs(move), out=np.full_like(move, np.inf), where=move != 0)
    return np.asarray(np.clip(rates + move * np.minimum(fits.min(axis=0), 1.0), 0.0, 1.0))


# --- Intervals of one rate by itself ---


def clopper_pearson(
    successes: FloatArray, n: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Exact interval for a proportion: it covers with at least ``level`` whatever the truth.

    >>> low, high = clopper_pearson(np.array([0.0, 8.0]), np.array([10.0, 10.0]), 0.95)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.4439], [0.3085, 0.9748])
    """
    tail = (1 - level) / 2
    failures = n - successes
    # The beta quantile is undefined at the ends of the range, where the answer is the end itself.
    low = np.where(successes > 0, betaincinv(np.maximum(successes, 1), failures + 1, tail), 0.0)
    high = np.where(failures > 0, betaincinv(successes + 1, np.maximum(failures, 1), 1 - tail), 1.0)
    return low, high


def wilson(successes: FloatArray, n: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Score interval for a proportion: closer to nominal coverage, not guaranteed to reach it.

    >>> low, high = wilson(np.array([8.0]), np.array([10.0]), 0.95)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.4902], [0.9433])
    """
    # All rates p with (p̂ − p)² ≤ z² p(1 − p)/n, a quadratic in p: the error is the one under p.
    z2 = float(ndtri((1 + level) / 2)) ** 2
    share = successes / n
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
