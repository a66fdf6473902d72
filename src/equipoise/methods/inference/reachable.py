"""What a group of a given size could show at most against a known target."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from equipoise.methods.arrays import BoolArray, FloatArray
from equipoise.methods.hypotheses import Above, Below, Null
from equipoise.methods.inference.tails import Tails, binomial_at_least, binomial_at_most


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
