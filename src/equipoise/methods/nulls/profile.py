"""Binomial rates fitted under a linear constraint, and the p-values built on them.

Under Σ a·μ = value the most likely rates solve n (μ̂ − μ) = λ a μ (1 − μ), a quadratic in each μ
given the one multiplier λ; λ itself is found by Newton steps kept inside a bracket.
"""

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.nulls.binomial import deviance, mid_p
from equipoise.methods.nulls.contrasts import Contrast
from equipoise.methods.nulls.hypotheses import Null, normal_tails

MAX_STEPS = 200
"""Far more than Newton needs; halving alone would be done by then."""


def constrained_rates(contrast: Contrast, value: float | FloatArray) -> FloatArray:
    """Most likely rates under Σ a·μ = value, shape ``(parts, G)``.

    A value that no rates can reach is moved to the nearest one that they can. Two groups with 2 of
    4 and 0 of 4, whose rates must be equal, pool their rows:

    >>> from equipoise.methods.nulls import against_complement
    >>> both = np.array([4.0, 4.0]), np.array([2.0, 0.0])
    >>> c = against_complement(*both, lambda x: x)
    >>> constrained_rates(c, 0.0)[:, 0].round(9).tolist()
    [0.25, 0.25]
    """
    n = np.maximum(contrast.rows, 1.0)
    a, mean = contrast.coefficient, contrast.ones / n
    lowest, highest = np.minimum(a, 0).sum(axis=0), np.maximum(a, 0).sum(axis=0)
    aim = np.clip(value, lowest, highest)
    # at the ends of the reachable range every rate sits in a corner and no multiplier is finite
    inner = np.where((aim > lowest) & (aim < highest), aim, (lowest + highest) / 2)
    rates, _ = tilted_rates(_multiplier(a / n, a, mean, inner) * (a / n), mean)
    rates = np.where(aim <= lowest, np.where(a < 0, 1.0, np.where(a > 0, 0.0, mean)), rates)
    high_end = (aim >= highest) & (highest > lowest)
    return np.where(high_end, np.where(a > 0, 1.0, np.where(a < 0, 0.0, mean)), rates)


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
    at = np.where((low < 0) & (high > 0), 0.0, (low + high) / 2)
    scale = np.abs(a).sum(axis=0)
    for _ in range(MAX_STEPS):
        rates, root = tilted_rates(at * slope, mean)
        miss = (a * rates).sum(axis=0) - aim
        # the contrast falls as the multiplier grows
        low, high = np.where(miss > 0, at, low), np.where(miss > 0, high, at)
        # At a large multiplier neighbouring floats may miss by more; then the bracket decides.
        settled = (np.abs(miss) <= 1e-13 * scale) | (high - low <= 4e-16 * np.abs(at))
        if bool(settled.all()):
            break
        bend = rates * (1 - rates)
        bent = np.divide(a * slope * bend, root, out=np.zeros_like(root), where=root > 0)
        fall = bent.sum(axis=0)
        step = at + np.divide(miss, fall, out=np.full_like(miss, np.inf), where=fall > 0)
        inside = (step > low) & (step < high)
        at = np.where(settled, at, np.where(inside, step, (low + high) / 2))
    return at


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


def profile_root(contrast: Contrast, limit: float) -> FloatArray:
    """Signed root of the profile likelihood ratio of ε = limit; NaN where it cannot be tested.

    >>> from equipoise.methods.nulls import against_complement
    >>> both = np.array([4.0, 4.0]), np.array([2.0, 0.0])
    >>> profile_root(against_complement(*both, lambda x: x), 0.0).round(3).tolist()
    [1.858, -1.858]
    """
    n = np.maximum(contrast.rows, 1.0)
    rates = constrained_rates(contrast, limit)
    # The target's rate is profiled too. Theorem 2 of the paper on empirical likelihood plugs in its
    # estimate, which leaves out an error of the same order as the group's.
    lost = np.where(contrast.rows > 0, deviance(contrast.ones, n, rates), 0.0).sum(axis=0)
    return _directed(contrast, limit, np.sqrt(2 * lost))


def restricted_score(contrast: Contrast, limit: float) -> FloatArray:
    """Distance of ε̂ from the limit in standard errors under ε = limit.

    >>> from equipoise.methods.nulls import against_complement
    >>> both = np.array([4.0, 4.0]), np.array([2.0, 0.0])
    >>> restricted_score(against_complement(*both, lambda x: x), 0.0).round(3).tolist()
    [1.633, -1.633]
    """
    n = np.maximum(contrast.rows, 1.0)
    rates = constrained_rates(contrast, limit)
    error = np.sqrt((contrast.coefficient**2 * rates * (1 - rates) / n).sum(axis=0))
    gap = np.abs(contrast.estimate - limit)
    far = np.where(gap > 0, np.inf, 0.0)
    return _directed(contrast, limit, np.divide(gap, error, out=far, where=error > 0))


def _directed(contrast: Contrast, limit: float, size: FloatArray) -> FloatArray:
    """The size of a statistic with the sign of ε̂ − limit; a limit out of reach is beyond doubt."""
    highest = np.maximum(contrast.coefficient, 0).sum(axis=0)
    lowest = np.minimum(contrast.coefficient, 0).sum(axis=0)
    z = np.copysign(size, contrast.estimate - limit)
    # ε cannot exceed `highest`: a limit there is respected for certain, and likewise below
    z = np.where(limit >= highest, np.minimum(z, -0.0), z)
    z = np.where(limit <= lowest, np.maximum(z, 0.0), z)
    return np.where(contrast.testable, z, np.nan)


def profile_likelihood(contrast: Contrast, null: Null) -> FloatArray:
    """p-values by profile likelihood; NaN where a group cannot be tested.

    >>> from equipoise.methods.nulls import Above, against_complement
    >>> both = np.array([40.0, 40.0]), np.array([20.0, 10.0])
    >>> contrast = against_complement(*both, lambda x: x)
    >>> profile_likelihood(contrast, Above(limit=0.0)).round(4).tolist()
    [0.01, 0.99]
    """
    return null.p_value(lambda limit: normal_tails(profile_root(contrast, limit)))


def score_test(contrast: Contrast, null: Null) -> FloatArray:
    """p-values by the score with restricted variance; NaN where a group cannot be tested.

    >>> from equipoise.methods.nulls import Above, against_complement
    >>> both = np.array([40.0, 40.0]), np.array([20.0, 10.0])
    >>> score_test(against_complement(*both, lambda x: x), Above(limit=0.0)).round(4).tolist()
    [0.0105, 0.9895]
    """
    return null.p_value(lambda limit: normal_tails(restricted_score(contrast, limit)))


def careful_likelihood(contrast: Contrast, null: Null) -> FloatArray:
    """The larger of two p-values: profile likelihood, and mid-p at the group's rate under the null.

    In a group of two or three rows normal tails are several times too small; counting outcomes is
    not. In a large group the target's own error counts, which only the likelihood knows of.

    >>> from equipoise.methods.nulls import Outside, against_complement
    >>> contrast = against_complement(np.array([2.0, 500.0]), np.array([2.0, 250.0]), lambda x: x)
    >>> any_gap = Outside(low=0.0, high=0.0)
    >>> profile_likelihood(contrast, any_gap).round(2).tolist()
    [0.1, 0.1]
    >>> careful_likelihood(contrast, any_gap)[0].round(2)
    np.float64(0.25)
    """
    counted = null.p_value(lambda limit: _own_tails(contrast, limit))
    return np.maximum(profile_likelihood(contrast, null), counted)


def _own_tails(contrast: Contrast, limit: float) -> tuple[FloatArray, FloatArray]:
    """Mid-p tails of the group's own count, at its most likely rate under ε = limit."""
    rates = constrained_rates(contrast, limit)
    # the last part is the one outside the group
    rows, ones = contrast.rows[:-1], contrast.ones[:-1]
    size = np.maximum(rows.sum(axis=0), 1.0)
    return mid_p(ones.sum(axis=0), size, (rows * rates[:-1]).sum(axis=0) / size)
