"""One binomial against a known rate: four p-values whose spread is the one under the null.

A group's count k of n rows is compared with rate = target + limit. A rate outside [0, 1] is moved
to the nearest end, which can only make a p-value larger.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import betainc, xlogy

from equipoise.methods.arrays import FloatArray
from equipoise.methods.nulls.hypotheses import Null, normal_tails

RateTails = Callable[[FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""From counts k, sizes n ≥ 1 and null rates in [0, 1] to the upper and lower tail."""


def exact(k: FloatArray, n: FloatArray, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Chances of k or more, and of k or fewer.

    >>> upper, lower = exact(np.array([2.0]), np.array([2.0]), np.array([0.5]))
    >>> float(upper[0]), float(lower[0])
    (0.25, 1.0)
    """
    return _at_least(k, n, rate), _at_most(k, n, rate)


def mid_p(k: FloatArray, n: FloatArray, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Exact tails with only half the chance of k itself, which undoes most of the discreteness.

    >>> upper, lower = mid_p(np.array([2.0]), np.array([2.0]), np.array([0.5]))
    >>> float(upper[0]), float(lower[0])
    (0.125, 0.875)
    """
    above, below = _at_least(k + 1, n, rate), _at_most(k - 1, n, rate)
    upper = (_at_least(k, n, rate) + above) / 2
    return upper, (_at_most(k, n, rate) + below) / 2


def likelihood(k: FloatArray, n: FloatArray, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Normal tails of the signed root of the likelihood ratio.

    >>> float(likelihood(np.array([5.0]), np.array([10.0]), np.array([0.5]))[0][0])
    0.5
    """
    return normal_tails(signed_root(k, n, rate))


def likelihood_bartlett(
    k: FloatArray, n: FloatArray, rate: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same after dividing the likelihood ratio by its mean under the null, to order 1/n.

    >>> float(likelihood_bartlett(np.array([9.0]), np.array([9.0]), np.array([0.5]))[0][0]) > 0.0002
    True
    """
    # The mean of a binomial likelihood ratio is 1 + (1 − pq)/(6 n pq) to order 1/n.
    variance = rate * (1 - rate)
    inner = variance > 0
    excess = np.divide(1 - variance, 6 * n * variance, out=np.zeros_like(rate), where=inner)
    return normal_tails(signed_root(k, n, rate) / np.sqrt(1 + excess))


def score(k: FloatArray, n: FloatArray, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Normal tails of the distance in standard errors under the null.

    >>> float(score(np.array([5.0]), np.array([10.0]), np.array([0.5]))[1][0])
    0.5
    """
    gap, variance = k / n - rate, rate * (1 - rate) / n
    z = np.where(gap == 0, 0.0, np.copysign(np.inf, gap))
    return normal_tails(np.divide(gap, np.sqrt(variance), out=z, where=variance > 0))


def signed_root(k: FloatArray, n: FloatArray, rate: FloatArray) -> FloatArray:
    """sign(k/n − rate) · √(2 n KL(k/n ‖ rate)).

    >>> float(signed_root(np.array([3.0]), np.array([3.0]), np.array([np.exp(-0.5)]))[0].round(9))
    1.732050808
    """
    mean = k / n
    return np.copysign(np.sqrt(2 * deviance(k, n, rate)), mean - rate)


def deviance(k: FloatArray, n: FloatArray, rate: FloatArray) -> FloatArray:
    """Log-likelihood at k/n minus that at the rate; infinite where the rate excludes k."""
    mean = k / n
    with np.errstate(divide="ignore"):
        best = xlogy(k, mean) + xlogy(n - k, 1 - mean)
        there = xlogy(k, rate) + xlogy(n - k, 1 - rate)
    return np.maximum(best - there, 0.0)


def known_target(
    k: FloatArray, n: FloatArray, target: FloatArray, null: Null, tails: RateTails
) -> FloatArray:
    """p-values of groups with k of n against a known target; NaN where n = 0.

    With ``exact`` and a range of positive width the p-value is approximate, like all ranges;
    :func:`exact_outside` gives the guaranteed one.

    >>> from equipoise.methods.nulls import Above
    >>> p = known_target(np.array([3.0]), np.array([3.0]), np.array([0.5]), Above(limit=0.0), exact)
    >>> p.tolist()
    [0.125]
    """
    some = n > 0
    size = np.where(some, n, 1.0)
    count = np.where(some, k, 0.0)

    def at(limit: float) -> tuple[FloatArray, FloatArray]:
        rate = np.broadcast_to(np.clip(target + limit, 0.0, 1.0), size.shape)
        return tails(count, size, rate)

    return np.where(some, null.p_value(at), np.nan)


def exact_outside(
    k: FloatArray, n: FloatArray, target: FloatArray, low: float, high: float
) -> FloatArray:
    """p-value of low ≤ ε ≤ high that never errs: twice the smaller one-sided exact p-value.

    >>> exact_outside(np.array([3.0]), np.array([3.0]), np.array([0.5]), 0.0, 0.0).tolist()
    [0.25]
    """
    some = n > 0
    size, count = np.where(some, n, 1.0), np.where(some, k, 0.0)
    # Each end is tested at the end of the range that is hardest to reject; two such tests at α/2
    # keep α whatever the width.
    up = _at_least(count, size, np.clip(target + high, 0.0, 1.0))
    down = _at_most(count, size, np.clip(target + low, 0.0, 1.0))
    return np.where(some, np.minimum(1.0, 2 * np.minimum(up, down)), np.nan)


def _at_least(k: FloatArray, n: FloatArray, rate: FloatArray) -> FloatArray:
    inside = (k >= 1) & (k <= n)
    # P(X ≥ k) = I_p(k, n − k + 1), which keeps its digits where the chance is small.
    value = betainc(np.where(inside, k, 1.0), np.where(inside, n - k + 1, 1.0), rate)
    return np.where(inside, value, np.where(k < 1, 1.0, 0.0))


def _at_most(k: FloatArray, n: FloatArray, rate: FloatArray) -> FloatArray:
    # through the failures, so that small chances keep their digits
    return _at_least(n - k, n, 1 - rate)
