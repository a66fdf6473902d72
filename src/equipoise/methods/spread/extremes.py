"""Intervals for the largest differences: max − min, max / min, and the furthest from the mean.

The largest of many noisy differences is far from zero even when nothing differs, and a resampled
range can never be zero, so percentile intervals for it are never right. Two facts give intervals
that are. The true extreme belongs to some fixed pair, so the largest of the pairs' ordinary upper
limits is an upper limit for it. And if every pair's lower limit holds at once, so does the largest.
"""

from collections.abc import Callable

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.spread.limits import mean_limits, one_sided_z, range_z, sidak_z
from equipoise.methods.spread.metrics import deviations
from equipoise.methods.spread.sample import GroupSample
from equipoise.methods.spread.variance import Interval, interval

_BLOCK = 256
_Pairs = Callable[[slice], FloatArray]


def difference_interval(sample: GroupSample, level: float) -> Interval:
    """Interval for the largest minus the smallest group mean.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([80] * 3), np.array([40.0, 41.0, 42.0]), binary=True)
    >>> e = difference_interval(s, 0.95)
    >>> e.lower, 0.1 < e.upper < 0.2
    (0.0, True)
    """
    tail = (1 - level) / 2
    y = sample.mean
    low, high = mean_limits(sample, range_z(tail, sample.groups))

    def lower(rows: slice) -> FloatArray:
        # Distances to single limits, squared and added, carry the skewness of each mean over.
        error = np.hypot((y - low)[rows, None], (high - y)[None, :])
        return np.asarray(y[rows, None] - y[None, :] - error)

    low1, high1 = mean_limits(sample, one_sided_z(tail))

    def upper(rows: slice) -> FloatArray:
        error = np.hypot((high1 - y)[rows, None], (y - low1)[None, :])
        return np.asarray(y[rows, None] - y[None, :] + error)

    return interval(_largest(lower, y.size), _largest(upper, y.size))


def ratio_interval(sample: GroupSample, level: float) -> Interval:
    """Interval for the largest over the smallest group mean, of a metric that is not negative.

    A ratio r is below its limit when the limit of μ_i − r μ_j has the right sign (Fieller), so a
    group whose mean could be zero makes the upper end infinite instead of breaking it.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([200, 200]), np.array([40.0, 100.0]), binary=True)
    >>> e = ratio_interval(s, 0.95)
    >>> 1.5 < e.lower < 2.5 < e.upper < 4
    True
    """
    tail = (1 - level) / 2
    y = sample.mean
    low, high = (np.maximum(x, 0.0) for x in mean_limits(sample, range_z(tail, sample.groups)))
    low1, high1 = (np.maximum(x, 0.0) for x in mean_limits(sample, one_sided_z(tail)))

    def lower(rows: slice) -> FloatArray:
        return _ratio_root(y[rows, None], low[rows, None], y[None, :], high[None, :])

    def upper(rows: slice) -> FloatArray:
        # The upper limit of μ_i/μ_j is one over the lower limit of μ_j/μ_i.
        root = _ratio_root(y[None, :], low1[None, :], y[rows, None], high1[rows, None])
        return np.divide(1.0, root, out=np.full_like(root, np.inf), where=root > 0)

    return interval(_largest(lower, y.size), _largest(upper, y.size), least=1.0)


def max_deviation_interval(sample: GroupSample, level: float) -> Interval:
    """Interval for the largest absolute distance of a group mean from the mean of group means.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([90] * 3), np.array([20.0, 41.0, 70.0]), binary=True)
    >>> e = max_deviation_interval(s, 0.95)
    >>> 0.1 < e.lower < 0.2925 < e.upper < 0.45
    True
    """
    tail = (1 - level) / 2
    gap = deviations(sample.mean)
    below, above = _deviation_errors(sample, sidak_z(tail, sample.groups))
    low = np.maximum(gap - below, -gap - above).max()
    below, above = _deviation_errors(sample, one_sided_z(tail))
    high = np.maximum(gap + above, -gap + below).max()
    return interval(float(low), float(high))


def _deviation_errors(sample: GroupSample, z: float) -> tuple[FloatArray, FloatArray]:
    """How far each deviation may lie below and above what was seen."""
    low, high = mean_limits(sample, z)
    down, up = (sample.mean - low) ** 2, (high - sample.mean) ** 2
    share = 1 / sample.groups
    # Y_k − Ȳ puts 1 − 1/K on its own mean and −1/K on each other, whose opposite limit counts.
    own = (1 - share) ** 2
    below = np.sqrt(own * down + share**2 * _others(up))
    above = np.sqrt(own * up + share**2 * _others(down))
    return below, above


def _others(x: FloatArray) -> FloatArray:
    """The sum of all but each; infinite where any of the others is."""
    infinite = np.isinf(x)
    finite = np.where(infinite, 0.0, x)
    return np.where(infinite.sum() - infinite > 0, np.inf, finite.sum() - finite)


def _ratio_root(y: FloatArray, low: FloatArray, other: FloatArray, high: FloatArray) -> FloatArray:
    """Smallest r with (y − r·other)² = (y − low)² + r²(high − other)²."""
    square = high * (2 * other - high)
    constant = low * (2 * y - low)
    cross = y * other
    # Constant over the larger sum is the smaller root, without cancellation and also if square ≤ 0.
    bottom = cross + np.sqrt(np.maximum(cross**2 - square * constant, 0.0))
    return np.divide(constant, bottom, out=np.zeros_like(bottom), where=bottom > 0)


def _largest(pairs: _Pairs, count: int) -> float:
    """Largest value over all ordered pairs, a block of rows at a time."""
    blocks = (slice(start, start + _BLOCK) for start in range(0, count, _BLOCK))
    return max(_off_diagonal_max(pairs(rows), rows.start) for rows in blocks)


def _off_diagonal_max(block: FloatArray, start: int) -> float:
    block = block.copy()
    rows = np.arange(block.shape[0])
    block[rows, start + rows] = -np.inf
    return float(block.max())
