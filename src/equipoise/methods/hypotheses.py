"""Nulls about a disparity, how tails become p-values, and how many p-values are adjusted.

Tails of a weighted sum of independent binomials, exact in its small parts.

T = Σ aⱼ Kⱼ/nⱼ + noise, with Kⱼ binomial. Parts with few expected outcomes are written out one
outcome at a time; parts with many are summed by a normal with the right skewness, or, where no part
is small, the whole sum by a saddlepoint. Rows may be a fraction (effective rows of weighted data):
a binomial of 7.4 rows is the distribution on 0 to 8 whose tails are the incomplete beta function.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, gammaln, log_ndtr, ndtr, ndtri, xlog1py, xlogy

from equipoise.methods.numerics import BoolArray, FloatArray, IntArray

# --- Nulls about a disparity, and how one-sided tail probabilities become a p-value ---

TailsAt = Callable[[float], tuple[FloatArray, FloatArray]]
"""From a limit to the chances, if ε were there, of an estimate as high, and as low, as this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Above:
    """Null ε ≤ limit: a small p-value shows a disparity above the limit."""

    limit: float
    """The limit."""

    @property
    def limits(self) -> tuple[float, ...]:
        """Limits at which the tails are needed."""
        return (self.limit,)

    def p_value(self, tails: TailsAt) -> FloatArray:
        """Chance of an estimate at least as high."""
        return tails(self.limit)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Below:
    """Null ε ≥ limit: a small p-value shows a disparity below the limit."""

    limit: float
    """The limit."""

    @property
    def limits(self) -> tuple[float, ...]:
        """Limits at which the tails are needed."""
        return (self.limit,)

    def p_value(self, tails: TailsAt) -> FloatArray:
        """Chance of an estimate at least as low."""
        return tails(self.limit)[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """Null low ≤ ε ≤ high: a small p-value shows a disparity outside the range.

    With t the distance outside the range and w its width, both in standard errors,
    p = Φ̄(t) + Φ̄(t + w): two-sided for a range of one point, one-sided for a very wide one, and of
    the right size in between. The smaller of two one-sided p-values would have twice its size.
    """

    low: float
    """Lower end of the range."""
    high: float
    """Upper end of the range."""

    @property
    def limits(self) -> tuple[float, ...]:
        """Limits at which the tails are needed."""
        return (self.low, self.high)

    def p_value(self, tails: TailsAt) -> FloatArray:
        """Sum of the tails beyond the estimate, on the side where the estimate lies."""
        # Cherian and Candès take the smaller of two one-sided p-values (p₃ in Appendix C), the
        # paper on empirical likelihood that of the nearer end (Theorem 9, (4.5)): at width zero,
        # size 2α.
        (up_low, down_low), (up_high, down_high) = tails(self.low), tails(self.high)
        both = np.minimum(up_high + up_low, down_low + down_high)
        return np.minimum(both, 1.0)


Null = Above | Below | Outside
"""Any of the three."""


def normal_tails(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both normal tails of a signed statistic.

    >>> normal_tails(np.array([0.0]))
    (array([0.5]), array([0.5]))
    """
    return np.asarray(ndtr(-z)), np.asarray(ndtr(z))


# --- Adjusted p-values for many groups: BH, BY, e-BH, Holm, and step-down maxima of drawn scores
#
# NaN marks a group that could not be tested: it is left out of the family and stays NaN.


def benjamini_hochberg(p: FloatArray) -> FloatArray:
    """Adjusted p-values that control the false discovery rate under positive dependence.

    >>> benjamini_hochberg(np.array([0.01, 0.04, np.nan, 0.03])).tolist()
    [0.03, 0.04, nan, 0.04]
    """
    # Under positive dependence on the true nulls: Benjamini and Yekutieli 2001, Theorem 1.2.
    return _step_up(p, 1.0)


def benjamini_yekutieli(p: FloatArray) -> FloatArray:
    """Adjusted p-values that control the false discovery rate under any dependence.

    >>> benjamini_yekutieli(np.array([0.01, 0.5])).tolist()
    [0.03, 0.75]
    """
    tested = int(np.sum(~np.isnan(p)))
    # The price of any dependence is 1 + 1/2 + … + 1/m (Benjamini and Yekutieli 2001).
    return _step_up(p, float(np.sum(1 / np.arange(1, tested + 1))))


def holm(p: FloatArray) -> FloatArray:
    """Adjusted p-values that control the familywise error under any dependence.

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order, out = _ordered(p), np.full(p.shape, np.nan)
    left = np.arange(order.size, 0, -1)
    # Step-down, hence the running maximum: once one null is kept, so are all with larger p-values.
    out[order] = np.minimum(np.maximum.accumulate(p[order] * left), 1.0)
    return out


def e_benjamini_hochberg(p: FloatArray) -> FloatArray:
    """Adjusted p-values of e-BH: false discovery rate under any dependence, by e-values.

    Each p-value becomes the e-value (1 − p + p ln p)/(p ln² p), a mixture of all power calibrators
    (Vovk and Wang 2021), and e-values e₍ₖ₎ ≥ m/(kα) are discoveries (Wang and Ramdas 2022).

    >>> e_benjamini_hochberg(np.array([1e-6, 0.5])).round(4).tolist()
    [0.0004, 1.0]
    """
    return _step_up(np.where(np.isnan(p), np.nan, inverse_e_values(p)), 1.0)


def inverse_e_values(p: FloatArray) -> FloatArray:
    """One over the e-value of each p-value, which e-BH treats as BH treats p-values.

    >>> inverse_e_values(np.array([1e-6])).round(6).tolist()
    [0.000191]
    """
    # between 0 and 1 exclusively the formula is smooth; at the ends it has limits
    x = np.clip(p, 1e-300, 1 - 1e-9)
    log = np.log(x)
    e = (1 - x + x * log) / (x * log * log)
    return np.asarray(1 / np.maximum(e, 1e-300))


def _step_up(p: FloatArray, factor: float) -> FloatArray:
    order, out = _ordered(p), np.full(p.shape, np.nan)
    m = order.size
    scaled = p[order] * (factor * m / np.arange(1, m + 1))
    # Step-up, hence from the largest down: all are rejected up to the last that passes, also those
    # that did not pass themselves.
    out[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return out


def _ordered(p: FloatArray) -> IntArray:
    """Indices of the tested p-values, smallest first."""
    order = np.argsort(p, kind="stable")
    return np.asarray(order[: int(np.sum(~np.isnan(p)))], dtype=np.int64)


class StepDown:
    """Step-down maxima (Westfall–Young, Romano–Wolf) over a stream of resampled statistics.

    Large statistics speak against their null. Blocks of centred resampled statistics, shape
    ``(b, G)``, are added one by one; only counts are kept. A NaN in a block means that the resample
    says nothing of that group. One pass serves every level: a group is rejected at level α when its
    statistic and all larger ones reach the (1 − α)-quantile of the maximum over the groups that are
    not larger.

    >>> step = StepDown(np.array([3.0, 1.0]))
    >>> step.add(np.array([[0.0, 2.0], [0.5, 0.5], [1.0, -1.0]]))
    >>> step.p_values().tolist()
    [0.25, 0.5]
    """

    def __init__(self, statistic: FloatArray) -> None:
        """Start with the observed statistics, NaN for groups that cannot be tested."""
        self._order = _ordered(-np.asarray(statistic, dtype=np.float64))
        self._sorted = statistic[self._order]
        self._size = statistic.size
        self._above = np.zeros(self._order.size)
        self._reached = np.zeros(self._order.size)
        self._draws = 0

    def add(self, block: FloatArray) -> None:
        """Count the resamples whose maximum over the groups not larger is above the statistic."""
        if self._order.size == 0:
            return
        # from the smallest statistic up, a running maximum is one over all groups not larger
        tail = np.take(block, self._order[::-1], axis=1)
        np.copyto(tail, -np.inf, where=np.isnan(tail))
        np.maximum.accumulate(tail, axis=1, out=tail)
        tail = tail[:, ::-1]
        self._above += np.sum(tail > self._sorted, axis=0)
        self._reached += np.sum(tail >= self._sorted, axis=0)
        self._draws += block.shape[0]

    def shares_above(self) -> FloatArray:
        """Smallest α at which each group is rejected: share of resamples strictly above."""
        # Without the 1 of `p_values`: certificates compare with t*, a quantile of resamples alone.
        return self._place(self._above / max(self._draws, 1))

    def p_values(self) -> FloatArray:
        """Adjusted p-values (1 + resamples that reach the statistic) / (1 + resamples)."""
        return self._place((1 + self._reached) / (1 + self._draws))

    def _place(self, shares: FloatArray) -> FloatArray:
        out = np.full(self._size, np.nan)
        # a group is never rejected before one with a larger statistic
        out[self._order] = np.maximum.accumulate(shares) if shares.size else shares
        return out


# --- Tails of a weighted sum of independent binomials, exact in its small parts ---

LARGE = 100.0
"""A part whose count has this variance is close enough to a normal with skewness."""
REACH = 6.0
"""Standard deviations to which outcomes of a small part are written out."""
MOST = 1 << 16
"""Outcomes of one part that are written out at most."""
MOST_PAIRS = 1 << 11
"""Outcomes of two parts that are written out together at most, if a normal part is left."""
_BLOCK = 1 << 16
"""Outcomes that are worked out together: as many as a processor keeps at hand."""

Tails = tuple[FloatArray, FloatArray]


def linear_tails(
    rows: FloatArray, rates: FloatArray, a: FloatArray, seen: FloatArray, noise: FloatArray
) -> Tails:
    """P(T ≥ seen) and P(T ≤ seen); arrays ``(parts, G)``, ``seen`` and variance ``noise`` ``(G,)``.

    >>> n, p, one = np.array([[5.0]]), np.array([[0.5]]), np.ones((1, 1))
    >>> up, down = linear_tails(n, p, one, np.array([0.8]), np.zeros(1))
    >>> float(up[0]), float(down[0])
    (0.1875, 0.96875)
    """
    up = linear_tail(rows, rates, a, seen, noise)
    return up, linear_tail(rows, rates, -a, -seen, noise)


def linear_tail(
    rows: FloatArray, rates: FloatArray, a: FloatArray, seen: FloatArray, noise: FloatArray
) -> FloatArray:
    """P(T ≥ seen) alone; the other tail is that of −T.

    Small groups are often alike, as are the cases tried for one; each is worked out once.
    """
    stacked = np.vstack([rows, rates, a, seen, noise])
    _, first, again = np.unique(stacked, axis=1, return_index=True, return_inverse=True)
    # columns as they came, since zeros of either sign count as one
    found = _distinct_tail(*(x[..., first] for x in (rows, rates, a, seen, noise)))
    return found[again.ravel()]


def _distinct_tail(
    rows: FloatArray, rates: FloatArray, a: FloatArray, seen: FloatArray, noise: FloatArray
) -> FloatArray:
    n = np.maximum(rows, 1e-9)
    count = n * rates * (1 - rates)
    share = (a / n) ** 2 * count
    total = share.sum(axis=0) + noise
    # a part that hardly moves the sum is as good as normal, however few its outcomes
    small = (count < LARGE) & (share > 1e-5 * total)
    out = np.empty(seen.shape)
    number = small.sum(axis=0)
    for chosen, run in ((number == 0, _large), (number > 0, _with_small)):
        if bool(chosen.any()):
            n_, r_, a_, s_, e_ = (x[..., chosen] for x in (n, rates, a, seen, noise))
            out[chosen] = run(n_, r_, a_, s_, e_, small[:, chosen])
    return np.clip(out, 0.0, 1.0)


def binomial_at_most(k: FloatArray, n: FloatArray, rate: FloatArray) -> FloatArray:
    """P(K ≤ k) for any real k and n; between whole numbers the incomplete beta function."""
    whole = n == np.floor(n)
    k = np.where(whole, np.floor(k), k)
    most = float(n.max(initial=0.0))
    if k.ndim == 2 and k.shape[1] > 2 * most + 2 and n.shape[1] == 1 and bool(whole.all()):
        # many sums of a few rows: every count is worked out once
        table = binomial_at_most(np.arange(most + 1)[None, :], n, rate)
        found = np.take_along_axis(table, np.clip(k, 0.0, most).astype(np.int64), axis=1)
        return np.where(k < 0, 0.0, found)
    inside = (k > -1) & (k < n)
    value = betainc(np.where(inside, n - k, 1.0), np.where(inside, k + 1, 1.0), 1 - rate)
    return np.where(inside, value, (k >= n).astype(np.float64))


def apart_at_most(
    k1: FloatArray, n1: FloatArray, k0: FloatArray, n0: FloatArray, gap: FloatArray
) -> FloatArray:
    """A p-value of rates that are ``gap`` apart, first less second, against a smaller difference.

    The largest, over all such rates, of twice the smaller of two binomial tails: first counts as
    low as seen, second ones as high. It holds whatever the two have in common (Bonferroni).

    >>> one = np.ones(1)
    >>> float(apart_at_most(10 * one, 20 * one, 10 * one, 20 * one, 0 * one)[0])
    1.0
    >>> bool(apart_at_most(0 * one, 20 * one, 20 * one, 20 * one, 0 * one)[0] < 1e-5)
    True
    """
    low, high = np.maximum(-gap, 0.0), np.minimum(1 - gap, 1.0)

    def first(rate: FloatArray) -> FloatArray:
        return binomial_at_most(k1, n1, np.clip(rate + gap, 0.0, 1.0))

    def second(rate: FloatArray) -> FloatArray:
        return binomial_at_most(n0 - k0, n0, np.clip(1 - rate, 0.0, 1.0))

    # the first falls with the second rate and the second rises: their smaller is largest where
    # they meet
    for _ in range(MEETING):
        middle = (low + high) / 2
        still = first(middle) > second(middle)
        low, high = np.where(still, middle, low), np.where(still, high, middle)
    return np.asarray(np.minimum(2 * np.minimum(first(low), second(high)), 1.0))


MEETING = 30
"""Halvings until two tails meet."""


def binomial_at_least(k: FloatArray, n: FloatArray, rate: FloatArray) -> FloatArray:
    """P(K ≥ k) likewise."""
    return binomial_at_most(n - k, n, 1 - rate)


# --- no small part -------------------------------------------------------------------------------


def _large(
    n: FloatArray,
    rates: FloatArray,
    a: FloatArray,
    seen: FloatArray,
    noise: FloatArray,
    _: BoolArray,
) -> FloatArray:
    c = a / n
    half = _half_step(c, n * rates * (1 - rates), noise)
    return _saddlepoint(n, rates, c, seen - half, noise)


def _half_step(c: FloatArray, count: FloatArray, noise: FloatArray) -> FloatArray:
    """Half the step of the lattice on which the sum lies, so that the outcome itself is counted."""
    step = np.where(count > 0, np.abs(c), np.nan)
    if step.shape[0] == 0:
        return np.zeros(noise.shape)
    with np.errstate(invalid="ignore"):
        coarse, fine = np.fmax.reduce(step, axis=0), np.fmin.reduce(step, axis=0)
        # the part with the fine lattice fills the gaps of the coarse one if it spreads far enough
        spread = np.fmax.reduce(np.where(step <= fine, step * np.sqrt(count), 0.0), axis=0)
    filled = np.where(spread >= coarse / 2, fine, coarse)
    return np.where(noise > 0, 0.0, np.nan_to_num(filled) / 2)


def _saddlepoint(
    n: FloatArray, rates: FloatArray, c: FloatArray, y: FloatArray, noise: FloatArray
) -> FloatArray:
    """P(Σ c K + noise ≥ y) by Lugannani and Rice."""
    v = n * rates * (1 - rates)
    mean, var = (n * c * rates).sum(axis=0), (c**2 * v).sum(axis=0) + noise
    safe = np.where(var > 0, var, 1.0)
    x = (y - mean) / np.sqrt(safe)
    s = (y - mean) / safe
    limit = 30 / np.maximum(np.abs(c).max(axis=0), 1e-300)
    s = _saddle(n, rates, c, y, noise, np.clip(s, -limit, limit), limit, 1e-6 * np.sqrt(safe))
    p = _tilted(rates, s * c)
    bend = (n * c**2 * p * (1 - p)).sum(axis=0) + noise
    k = (n * _log_mgf(rates, s * c)).sum(axis=0) + noise * s * s / 2
    w = np.copysign(np.sqrt(2 * np.maximum(s * y - k, 0.0)), s)
    u = s * np.sqrt(bend)
    skew = (c**3 * v * (1 - 2 * rates)).sum(axis=0) / safe**1.5
    near = (np.abs(w) < 0.02) | (np.abs(u) < 1e-8)
    w_, u_ = np.where(near, 1.0, w), np.where(near, 1.0, u)
    # Φ̄(w) (1 + (1/u − 1/w) φ/Φ̄), so that small chances keep their digits
    log_tail = log_ndtr(-w_)
    density = np.exp(-w_ * w_ / 2 - log_tail) / np.sqrt(2 * np.pi)
    out = np.exp(log_tail) * np.maximum(1 + (1 / u_ - 1 / w_) * density, 0.0)
    out = np.where(near, ndtr(-_score(x, skew)), out)
    # a sum that does not move at all
    return np.where(var > 0, out, (mean >= y - 1e-12 * np.abs(y)).astype(np.float64))


def _saddle(
    n: FloatArray,
    rates: FloatArray,
    c: FloatArray,
    y: FloatArray,
    noise: FloatArray,
    s: FloatArray,
    limit: FloatArray,
    close: FloatArray,
) -> FloatArray:
    """The tilt under which the sum is y on average, by Newton steps of bounded length."""
    out, todo = s.copy(), np.arange(s.size)
    for _ in range(40):
        p = _tilted(rates, s * c)
        gap = (n * c * p).sum(axis=0) + noise * s - y
        bend = (n * c**2 * p * (1 - p)).sum(axis=0) + noise
        step = np.where(bend > 0, gap / np.where(bend > 0, bend, 1.0), 0.0)
        s = np.clip(s - np.clip(step, -limit / 15, limit / 15), -limit, limit)
        out[todo] = s
        # beyond the range of the sum there is no saddlepoint, and s stays at its limit
        left = (np.abs(gap) > close) & (np.abs(s) < limit)
        if not bool(left.all()):
            todo, s, limit, close = todo[left], s[left], limit[left], close[left]
            n, rates, c, y, noise = n[:, left], rates[:, left], c[:, left], y[left], noise[left]
            if todo.size == 0:
                break
    return out


def _tilted(rates: FloatArray, s: FloatArray) -> FloatArray:
    grown = rates * np.exp(s)
    return grown / (1 - rates + grown)


def _log_mgf(rates: FloatArray, s: FloatArray) -> FloatArray:
    return np.log1p(rates * np.expm1(s))


_FAR = 10.0
"""Standard deviations beyond which a score goes no further."""


def _normal_tail(z: FloatArray, possible: BoolArray) -> FloatArray:
    """The upper tail of a normal; most outcomes lie far out or are padding: nothing to work out."""
    near = (np.abs(z) < _FAR) & possible
    above = np.where(z < 0, 1.0, ndtr(-_FAR))
    above[near] = ndtr(-z[near])
    return above


def _score(x: FloatArray, skew: FloatArray) -> FloatArray:
    """The normal score of a standardised value whose distribution has some skewness."""
    g = np.clip(skew, -0.4, 0.4)
    # Cornish and Fisher, inverted: x − g (x² − 1)/6 + g² (4x³ − 7x)/36, held to where it rises
    end = 2 / np.maximum(np.abs(g), 2 / _FAR)
    x = np.minimum(np.maximum(x, -end), end)
    return np.asarray(((g * g / 9 * x - g / 6) * x + (1 - 7 * g * g / 36)) * x + g / 6)


# --- some small parts ----------------------------------------------------------------------------


def _with_small(
    n: FloatArray,
    rates: FloatArray,
    a: FloatArray,
    seen: FloatArray,
    noise: FloatArray,
    small: BoolArray,
) -> FloatArray:
    """Order the parts of every group, so that groups with the same task can go together."""
    count = n * rates * (1 - rates)
    c = a / n
    total = (c**2 * count).sum(axis=0) + noise
    rest = (c**2 * count * ~small).sum(axis=0) + noise
    alone = rest <= 1e-12 * total
    number = small.sum(axis=0)
    # smallest first, parts that are not small last
    order = np.argsort(np.where(small, count, np.inf), axis=0, kind="stable")
    n, rates, c = (np.take_along_axis(x, order, axis=0) for x in (n, rates, c))
    # parts to write out: all small ones, or all but the last, whose tail is known, if nothing else
    # moves; never more than two
    written = np.minimum(number - alone, 2)
    needed = _needed(n, rates, c, seen)
    both = np.prod([_support(n[j], rates[j], needed[j])[1] for j in range(min(2, len(n)))], axis=0)
    written = np.where((written == 2) & ~alone & (both > MOST_PAIRS), 1, written)
    out = np.empty(seen.shape)
    for w in range(3):
        for close in (False, True):
            chosen = np.flatnonzero((written == w) & ((alone & (number == w + 1)) == close))
            if chosen.size:
                n_, r_, c_, s_, e_ = (x[..., chosen] for x in (n, rates, c, seen, noise))
                out[chosen] = _written_out(n_, r_, c_, s_, e_, w, close)
    return out


def _support(n: FloatArray, rates: FloatArray, needed: FloatArray) -> tuple[IntArray, IntArray]:
    """First outcome and number of outcomes of a part that are written out.

    ``needed`` is the count at which the sum would be what was seen if all other parts were at their
    means: far out in the tail these outcomes decide, however rare they are.
    """
    spread = REACH * np.sqrt(n * rates * (1 - rates)) + 10
    low, high = np.minimum(n * rates, needed), np.maximum(n * rates, needed)
    first = np.clip(np.floor(low - spread), 0.0, np.floor(n))
    last = np.clip(np.ceil(high + spread), first, np.ceil(n))
    return first.astype(np.int64), np.minimum(last - first + 1, MOST).astype(np.int64)


def _needed(n: FloatArray, rates: FloatArray, c: FloatArray, seen: FloatArray) -> FloatArray:
    """The count of each part that would explain what was seen alone, shape ``(parts, G)``."""
    mean = n * c * rates
    rest = seen - mean.sum(axis=0) + mean
    far = np.divide(rest, c, out=n * rates, where=c != 0)
    return np.asarray(np.clip(far, 0.0, n))


def _outcomes(
    n: FloatArray, rates: FloatArray, needed: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Shares k/n of the outcomes and their chances, padded to ``(G, L)``."""
    first, length = _support(n, rates, needed)
    k = first[:, None] + np.arange(int(length.max()), dtype=np.float64)
    used = np.arange(k.shape[1]) < length[:, None]
    size, rate = n[:, None], rates[:, None]
    chance = _chances(k, size, rate)
    broken = np.flatnonzero(n > np.floor(n))
    if broken.size:
        # above the last whole number there is one outcome more, and it takes what is left
        n_, beyond = size[broken], k[broken] > size[broken]
        left = betainc(np.floor(n_) + 1, n_ - np.floor(n_), rate[broken])
        chance[broken] = np.where(beyond, left, chance[broken])
    return np.minimum(k / size, 1.0) * used, np.where(used, chance, 0.0)


def _chances(k: FloatArray, n: FloatArray, rate: FloatArray) -> FloatArray:
    """P(K = k) for k up to n; as the difference of two tails it holds for fractions of rows too.

    I(n − k, k + 1) − I(n − k + 1, k) = Γ(n + 1)/(Γ(k + 1) Γ(n − k + 1)) rateᵏ (1 − rate)ⁿ⁻ᵏ.
    """
    k = np.minimum(k, np.floor(n))
    if n.max() < MOST:
        table = gammaln(np.arange(1.0, float(n.max()) + 2))
        # what is left of a fraction of rows is a fraction again
        whole = bool((n == np.floor(n)).all())
        others = table[(n - k).astype(np.int64)] if whole else gammaln(n - k + 1)
        ways = gammaln(n + 1) - table[k.astype(np.int64)] - others
    else:
        ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.asarray(np.exp(ways + xlogy(k, rate) + xlog1py(n - k, -rate)))


def _written_out(
    n: FloatArray,
    rates: FloatArray,
    c: FloatArray,
    seen: FloatArray,
    noise: FloatArray,
    written: int,
    close: bool,
) -> FloatArray:
    """Sum over the outcomes of ``written`` parts; the others end in a binomial or a normal tail."""
    out = np.zeros(seen.shape)
    needed = _needed(n, rates, c, seen)
    # groups with similar numbers of outcomes go together, so that little is padded
    size = np.ones(seen.shape, dtype=np.int64)
    for part in range(written):
        size = size * _support(n[part], rates[part], needed[part])[1]
    ordered = np.argsort(size, kind="stable")
    start = 0
    while start < ordered.size:
        bound = max(2 * int(size[ordered[start]]), 32)
        stop = int(np.searchsorted(size[ordered], bound, side="right"))
        stop = min(stop, start + max(1, _BLOCK // bound))
        here = ordered[start:stop]
        n_, r_, c_, s_, e_, k_ = (x[..., here] for x in (n, rates, c, seen, noise, needed))
        out[here] = _block(n_, r_, c_, s_, e_, k_, written, close)
        start = stop
    return out


def _block(
    n: FloatArray,
    rates: FloatArray,
    c: FloatArray,
    seen: FloatArray,
    noise: FloatArray,
    needed: FloatArray,
    written: int,
    close: bool,
) -> FloatArray:
    groups = seen.size
    value, chance = np.zeros((groups, 1)), np.ones((groups, 1))
    for part in range(written):
        share, p = _outcomes(n[part], rates[part], needed[part])
        a = (c[part] * n[part])[:, None]
        value = (value[:, :, None] + (a * share)[:, None, :]).reshape(groups, -1)
        chance = (chance[:, :, None] * p[:, None, :]).reshape(groups, -1)
    left = seen[:, None] - value
    # sums of the same counts in another order differ by rounding
    hair = 1e-11 * (np.abs(c * n).sum(axis=0) + np.abs(seen))[:, None]
    if close:
        # parts that do not move at all still have a place
        left = left - (n * c * rates)[written + 1 :].sum(axis=0)[:, None]
        above = _binomial_close(n[written], rates[written], c[written], left, hair)
    else:
        rest = (n[written:], rates[written:], c[written:])
        above = _normal_close(*rest, left, hair, noise, chance > 0)
    return np.asarray((chance * above).sum(axis=1))


def _binomial_close(
    n: FloatArray, rates: FloatArray, c: FloatArray, left: FloatArray, hair: FloatArray
) -> FloatArray:
    """P(c K ≥ left) of the last part, whose tails are the incomplete beta."""
    above, width = np.empty(left.shape), np.maximum(np.abs(c), 1e-300)[:, None]
    # c K ≥ left is K ≥ left/c, or K ≤ left/c where c is negative
    for chosen, sign, tail in ((c > 0, 1, binomial_at_least), (c <= 0, -1, binomial_at_most)):
        k = sign * (left[chosen] - hair[chosen]) / width[chosen]
        above[chosen] = tail(k, n[chosen, None], rates[chosen, None])
    return above


def _normal_close(
    n: FloatArray,
    rates: FloatArray,
    c: FloatArray,
    left: FloatArray,
    hair: FloatArray,
    noise: FloatArray,
    possible: BoolArray,
) -> FloatArray:
    """The same of all that is left, by a normal with its skewness; where that is possible."""
    count = n * rates * (1 - rates)
    mean = (n * c * rates).sum(axis=0)[:, None]
    var = ((c**2 * count).sum(axis=0) + noise)[:, None]
    sd = np.sqrt(np.where(var > 0, var, 1.0))
    skew = (c**3 * count * (1 - 2 * rates)).sum(axis=0)[:, None] / sd**3
    half = _half_step(c, count, noise)[:, None]
    if not bool(skew.any()) and not bool(half.any()):
        # what varies like a normal alone, as the noise of shares does
        above = _normal_tail((left - mean) / sd, possible)
    else:
        above = ndtr(-_score((left - (half + mean)) / sd, skew))
    still = (var <= 0)[:, 0]
    if bool(still.any()):
        above[still] = mean[still] >= (left - hair)[still]
    return above


# --- Could it have been the luck of the deal? Tails of a group's count given all margins ---
#
# If outcomes had been dealt to these very rows without regard to the group, the ones in a group
# of n rows, out of k ones among N rows, would be hypergeometric. That speaks of exactly these
# rows, not of a population they were drawn from, and it is exact for any size.

WRITTEN_OUT = 200_000
"""Outcomes up to which a tail is added up; beyond, a normal with continuity correction serves."""


def dealt_tails(
    ones: FloatArray, rows: FloatArray, all_ones: FloatArray, all_rows: FloatArray
) -> Tails:
    """Chances of as many ones in each group, or more; and of as many, or fewer.

    >>> five, ten = np.array([5.0]), np.array([10.0])
    >>> up, down = dealt_tails(five, five, five, ten)
    >>> float(up[0].round(5)), float(down[0].round(5))
    (0.00397, 1.0)
    """
    up, down = np.full(ones.shape, np.nan), np.full(ones.shape, np.nan)
    for i in range(ones.size):
        up[i], down[i] = _one(ones[i], rows[i], all_ones[i], all_rows[i])
    return up, down


def _one(k: float, n: float, ones: float, rows: float) -> tuple[float, float]:
    low, high = max(0.0, n + ones - rows), min(n, ones)
    if high - low > WRITTEN_OUT:
        mean, share = n * ones / rows, ones / rows
        spread = np.sqrt(n * share * (1 - share) * (rows - n) / max(rows - 1, 1.0))
        up, down = ndtr((mean - k + 0.5) / spread), ndtr((k - mean + 0.5) / spread)
        return float(up), float(down)
    x = np.arange(low, high + 1)
    chance = np.exp(_ways(ones, x) + _ways(rows - ones, n - x) - _ways(rows, n))
    return min(float(chance[x >= k].sum()), 1.0), min(float(chance[x <= k].sum()), 1.0)


def _ways(n: float, k: FloatArray | float) -> FloatArray:
    return np.asarray(gammaln(n + 1) - gammaln(np.asarray(k) + 1) - gammaln(n - np.asarray(k) + 1))


# --- What a group of a given size could show at most against a known target ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachable:
    """Limits set by a group's size, arrays of shape ``(G,)``; NaN for an empty group."""

    smallest_p: FloatArray
    """Smallest p-value that any outcome could give."""
    disparity_above: FloatArray
    """Smallest disparity above the null that would be shown; NaN if none would."""
    disparity_below: FloatArray
    """Disparity closest to the null from below that would be shown; NaN if none would."""


def smallest_reachable(n: FloatArray, target: FloatArray, null: Null, *, alpha: float) -> Reachable:
    """The smallest p-value, and the smallest disparities with p ≤ alpha, in groups of n rows.

    >>> sizes, half = np.array([3.0, 10.0]), np.array([0.5, 0.5])
    >>> r = smallest_reachable(sizes, half, Above(limit=0.0), alpha=0.05)
    >>> r.smallest_p.round(4).tolist(), r.disparity_above.round(3).tolist()
    ([0.125, 0.001], [nan, 0.4])
    """
    some = n > 0
    size = np.where(some, n, 1.0)

    def p(k: FloatArray) -> FloatArray:
        def tails(limit: float) -> Tails:
            rate = np.clip(target + limit, 0.0, 1.0)
            count = np.where(some, k, 0.0)
            return binomial_at_least(count, size, rate), binomial_at_most(count, size, rate)

        return np.where(some, null.p_value(tails), np.nan)

    full, none = p(n), p(np.zeros_like(n))
    # Given n, all ones is the strongest evidence upward and all zeros downward.
    up = full if not isinstance(null, Below) else np.full(n.shape, np.nan)
    down = none if not isinstance(null, Above) else np.full(n.shape, np.nan)
    top, bottom = target + max(null.limits), target + min(null.limits)
    first = _first(lambda k: p(k) <= alpha, n, top, alpha, up <= alpha)
    last = _first(lambda k: p(n - k) <= alpha, n, 1 - bottom, alpha, down <= alpha)
    return Reachable(
        smallest_p=np.fmin(up, down),
        disparity_above=first / size - target,
        disparity_below=(n - last) / size - target,
    )


def _first(
    shown: Callable[[FloatArray], BoolArray],
    n: FloatArray,
    rate: FloatArray,
    alpha: float,
    possible: BoolArray,
) -> FloatArray:
    """Smallest count from n · rate on at which something is shown, by halving; NaN if none."""
    rate = np.clip(rate, 0.0, 1.0)
    # below the rate p-values fall as the count grows toward it, and nothing is shown
    low, high = np.ceil(n * rate), n.copy()
    # The normal quantile misses that of a count by a few at any n, so the first cuts are there.
    guess = np.ceil(n * rate + ndtri(1 - alpha) * np.sqrt(n * rate * (1 - rate)))
    cuts = iter((guess + 4, guess - 4))
    for _ in range(64):
        if not bool((low < high).any()):
            break
        middle = np.clip(next(cuts, np.floor((low + high) / 2)), low, high)
        here = shown(middle)
        high, low = np.where(here, middle, high), np.where(here, low, np.minimum(middle + 1, high))
    return np.where(possible, high, np.nan)
