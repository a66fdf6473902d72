"""Binomial rates fitted under one linear constraint.

Under Σ a·μ = value the most likely rates solve n (μ̂ − μ) = λ a μ (1 − μ), a quadratic in each μ
given the one multiplier λ; λ itself is found by Newton steps kept inside a bracket.
"""

import numpy as np

from equipoise.methods.arrays import FloatArray

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
