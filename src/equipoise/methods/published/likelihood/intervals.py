"""Intervals and p-values for means by empirical likelihood, many groups at once."""

from collections.abc import Callable

import numpy as np

from equipoise.methods.arrays import BoolArray, FloatArray
from equipoise.methods.hypotheses import Null, normal_tails
from equipoise.methods.published.likelihood.mean import (
    MeanRatio,
    Segments,
    largest_adjusted,
    mean_ratio,
)

MAX_STEPS = 80


def mean_roots(groups: Segments, value: FloatArray, adjust: FloatArray | None = None) -> FloatArray:
    """Signed roots of the likelihood ratio: positive where a group's mean exceeds the value.

    >>> from equipoise.methods.published.likelihood import segments
    >>> mean_roots(segments([np.array([0.0, 1.0, 2.0])]), np.array([1.5])).round(3).tolist()
    [-1.123]
    """
    ratio = mean_ratio(groups, value, adjust=adjust).statistic
    return np.copysign(np.sqrt(ratio), groups.mean - value)


def mean_p_values(
    groups: Segments, target: FloatArray, null: Null, adjust: FloatArray | None = None
) -> FloatArray:
    """p-values of each group's mean less a known target; NaN where a group does not vary.

    One-sided nulls have the limit ½χ²₀ + ½χ²₁; range nulls run from two-sided to one-sided.

    >>> from equipoise.methods.published.likelihood import segments
    >>> from equipoise.methods.hypotheses import Above
    >>> groups = segments([np.array([0.0, 1.0, 2.0, 3.0, 1.0, 2.0])])
    >>> mean_p_values(groups, np.array([0.5]), Above(limit=0.0)).round(3).tolist()
    [0.003]
    """
    return null.p_value(lambda limit: normal_tails(mean_roots(groups, target + limit, adjust)))


def mean_interval(
    groups: Segments, critical: float | FloatArray, adjust: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """All values whose signed root is at most ``critical`` in size: lower and upper ends.

    NaN where a group does not vary; infinite where too few rows exclude nothing.

    >>> from equipoise.methods.published.likelihood import segments
    >>> low, high = mean_interval(segments([np.array([0.0, 1.0, 2.0])]), 1.96)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.229], [1.771])
    """
    cut = np.broadcast_to(np.asarray(critical, dtype=np.float64), groups.start.shape)
    a = np.zeros(groups.start.size) if adjust is None else adjust
    low, high = (np.full(groups.start.size, np.nan) for _ in range(2))
    varies = groups.varies
    for chosen, solve in ((varies & (a == 0), _plain_end), (varies & (a > 0), _adjusted_end)):
        if bool(chosen.any()):
            some = groups if bool(chosen.all()) else _subset(groups, chosen)
            for ends, sign in ((low, -1.0), (high, 1.0)):
                ends[chosen] = solve(some, cut[chosen], a[chosen], sign)
    return low, high


def _subset(groups: Segments, chosen: BoolArray) -> Segments:
    sizes = np.diff(groups.start, append=groups.value.size)
    keep = np.repeat(chosen, sizes)
    start = np.concatenate([[0], np.cumsum(sizes[chosen])[:-1]]).astype(np.int64)
    return Segments(
        value=groups.value[keep],
        start=start,
        count=None if groups.count is None else groups.count[keep],
        worth=None if groups.worth is None else groups.worth[chosen],
    )


def _plain_end(groups: Segments, cut: FloatArray, a: FloatArray, sign: float) -> FloatArray:
    """An end of the interval, along the curve of weights 1/(1 + τ(x − mean)): no inner solve."""
    n, mean = groups.rows, groups.mean
    y = (groups.value - groups.spread(mean)) * -sign
    deviation = np.sqrt(groups.sums(y * y) / n)
    # weights stay positive up to the smallest deviation
    low, high = np.zeros_like(n), -1 / np.minimum.reduceat(y, groups.start)
    at = np.minimum(cut / (np.sqrt(n) * deviation), high / 2)
    for _ in range(MAX_STEPS):
        inverse = 1 / (1 + groups.spread(at) * y)
        first = groups.sums(inverse)
        # −2 Σ log(n p) with p = inverse / Σ inverse: equation (3.3) of the paper on empirical
        # likelihood is never solved, since every point of the curve solves it for some value.
        ratio = np.maximum(-2 * groups.sums(np.log(inverse)) + 2 * n * np.log(first / n), 0.0)
        root = np.sqrt(ratio)
        low, high = np.where(root > cut, low, at), np.where(root > cut, at, high)
        if bool(((np.abs(root - cut) <= 1e-11) | (high - low <= 1e-15 * high)).all()):
            break
        pulled = y * inverse
        slope = 2 * groups.sums(pulled) - 2 * n * groups.sums(pulled * inverse) / first
        step = at + np.divide(
            2 * root * (cut - root), slope, out=np.full_like(at, np.nan), where=slope > 0
        )
        at = np.where((step > low) & (step < high), step, (low + high) / 2)
    # Σ (1 + τ y) p = n / Σ inverse, which gives the mean of y under the weights p.
    return np.asarray(mean - sign * (n / first - 1) / at)


def _adjusted_end(groups: Segments, cut: FloatArray, a: FloatArray, sign: float) -> FloatArray:
    """An end of the interval of the adjusted likelihood; infinite where it is never excluded."""
    n, mean = groups.rows, groups.mean
    error = np.sqrt(groups.sums((groups.value - groups.spread(mean)) ** 2)) / n
    guess: list[FloatArray | None] = [None]

    def at(distance: FloatArray) -> MeanRatio:
        found = mean_ratio(groups, mean + sign * distance, adjust=a, guess=guess[0])
        guess[0] = found.multiplier
        return found

    end = _reach(at, cut, cut * error)
    # The adjusted ratio is bounded: in a group of a few rows it never reaches the cut.
    return np.where(largest_adjusted(n, a) > cut**2, mean + sign * end, sign * np.inf)


def _reach(at: Callable[[FloatArray], MeanRatio], cut: FloatArray, start: FloatArray) -> FloatArray:
    """The distance at which the signed root reaches its cut, by Newton kept inside a bracket."""
    here, low, high = start, np.zeros_like(start), np.full_like(start, np.inf)
    for _ in range(MAX_STEPS):
        found = at(here)
        root = np.sqrt(found.statistic)
        low, high = np.where(root > cut, low, here), np.where(root > cut, here, high)
        close = (np.abs(root - cut) <= 1e-9) | (high - low <= 1e-14 * here)
        if bool((close | np.isnan(root) | (here > 1e9 * start)).all()):
            break
        # Newton on the root, as in the band, for the same reason.
        slope = np.abs(found.slope)
        step = here + np.divide(
            2 * root * (cut - root), slope, out=np.full_like(here, np.nan), where=slope > 0
        )
        middle = np.where(np.isinf(high), 2 * here, (low + high) / 2)
        here = np.where((step > low) & (step < np.minimum(high, 4 * here)), step, middle)
    return here
