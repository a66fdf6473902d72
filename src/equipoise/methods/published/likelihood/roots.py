"""Signed roots of the profile likelihood of a disparity of a 0/1 metric, at a given value.

The inverse of the band: there the likelihood is given and the furthest disparity wanted, here the
disparity is given and the likelihood wanted. Shares of the population are profiled like rates.
"""

import numpy as np
from scipy.special import rel_entr

from equipoise.methods.arrays import FloatArray
from equipoise.methods.published.likelihood.band import (
    ROUNDS,
    Line,
    Parts,
    State,
    bartlett,
    defined,
    line_from,
    starting,
)

MAX_STEPS = 80


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
    gap = limit - State(parts, mean, shares).disparity(parts.relative)
    sign = np.where(gap > 0, 1.0, -1.0)
    before = np.full(gap.shape, np.inf)
    for _ in range(ROUNDS if parts.curved else 1):
        line = line_from(parts, rates, shares, sign)
        at = _multiplier(line, limit, sign, np.abs(gap))
        lost, _slope = line.lost(at)
        rates, shares = line.at(at)
        if bool((np.abs(lost - before) <= 1e-9 * (1 + lost)).all()):
            break
        before = lost
    return np.copysign(np.sqrt(np.where(gap == 0, 0.0, lost)), -gap)


def _multiplier(line: Line, limit: float, sign: FloatArray, gap: FloatArray) -> FloatArray:
    """The multiplier at which the disparity reaches the limit, or a huge one if it never does."""
    parts, most = line.parts, line.end
    # To first order the disparity moves by λ times its variance.
    at = np.minimum(gap / np.maximum(line.variance, 1e-12) + 1e-9, most)
    low, high = np.zeros_like(at), np.full_like(at, np.inf)
    low_miss, high_miss = -gap, np.full_like(at, np.nan)
    for _ in range(MAX_STEPS):
        rates, shares = line.at(at)
        miss = sign * (State(parts, rates, shares).disparity(parts.relative) - limit)
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
