"""Tails of a mean of −1, 0 and 1 about a known number: paired changes, McNemar's question.

Under a mean of d one thing stays open: the share r of rows that are not zero. Tables are ordered by
the score statistic with r as d leaves it most likely (Tango 1998; at d = 0 it is McNemar's),
slightly bent so that tables of few changed rows stand where their exact tail puts them. The p-value
is the largest chance, over all r in a 99.99 % range of it (Berger and Boos 1994), of a table as
high in that order as the one seen. Tables with other numbers of changed rows count as well, which
fills the gaps between the few outcomes that any one number has: hence this is sharper than the
exact test given the changed rows, and as sharp as its mid-p form, which is not valid everywhere.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, betaincinv, gammaln, xlog1py, xlogy

from equipoise.methods.inference.tails import Tails
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray

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
