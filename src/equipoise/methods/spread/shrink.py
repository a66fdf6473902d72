"""Shrunken group estimates: each group borrows strength from all, the small ones most.

How far the groups truly differ is itself uncertain, and with few groups its estimate is often zero.
So the shrinkage is averaged over a grid of between-group standard deviations, each weighted by how
well it explains the data; the intervals then do not collapse when the estimate is zero.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, betaln, logsumexp, ndtri

from equipoise.methods.arrays import FloatArray
from equipoise.methods.spread.meta_analysis import stable_variance
from equipoise.methods.spread.sample import GroupSample
from equipoise.methods.spread.summary import check_level

_SPREADS = 48
_CENTRES = 21


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunken:
    """Group estimates pulled towards their common mean.

    Attributes
    ----------
    value
        Shrunken estimate per usable group.
    lower
        Lower end of its interval.
    upper
        Upper end of its interval.
    weight
        How much of the estimate is the group's own mean; the rest is the common mean.
    centre
        The common mean.
    sd
        Posterior mean of the between-group standard deviation.
    level
        Level of the intervals: on average over the groups, not for every group.
    """

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    weight: FloatArray
    centre: float
    sd: float
    level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """Hyper-parameter points: between-group sd, common mean and log prior weight, all flat."""

    sd: FloatArray
    centre: FloatArray
    log_weight: FloatArray


def shrink(sample: GroupSample, *, level: float = 0.95) -> Shrunken:
    """Shrink the group means towards each other, as far as the data say.

    0/1 metrics use beta-distributed rates, real metrics normal means; both with a flat prior on the
    common mean and on the between-group standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> n, s = np.array([400, 400, 400, 4]), np.array([200.0, 180, 220, 4])
    >>> out = shrink(sample_from_sums(n, s, binary=True))
    >>> bool(out.value[3] < 0.9), bool(out.weight[3] < out.weight[0])
    (True, True)
    """
    check_level(level)
    noise = stable_variance(sample)
    if np.all(noise == 0):
        raise ValueError("the metric does not vary within any group, so nothing can be shrunk")
    grid = _grid(sample.mean, noise)
    likelihood, mean, variance, weight = (_beta if sample.binary else _normal)(sample, noise, grid)
    share = np.exp(likelihood - logsumexp(likelihood))
    value = share @ mean
    # The variance of a mixture: within the grid points, and between them.
    spread = share @ (variance + mean**2) - value**2
    lower, upper = (_beta_ends if sample.binary else _normal_ends)(value, spread, level)
    return Shrunken(
        value=value,
        lower=lower,
        upper=upper,
        weight=share @ weight,
        centre=float(share @ grid.centre),
        sd=float(share @ grid.sd),
        level=level,
    )


def _grid(mean: FloatArray, noise: FloatArray) -> _Grid:
    """For each sd, points of the common mean within four of its standard errors."""
    far = 4 * (float(np.std(mean, ddof=1)) + float(np.sqrt(noise.mean())))
    # Midpoints: equal weights make the prior flat, and none is zero, where a + b is infinite.
    sd = far * (np.arange(_SPREADS) + 0.5) / _SPREADS
    weight = 1 / (noise + sd[:, None] ** 2)
    error = 1 / np.sqrt(weight.sum(axis=1))
    middle = (weight * mean).sum(axis=1) * error**2
    centre = middle[:, None] + error[:, None] * np.linspace(-4, 4, _CENTRES)
    return _Grid(
        sd=np.repeat(sd, _CENTRES),
        centre=centre.ravel(),
        # Points lie closer together where the error is small; this keeps the prior flat.
        log_weight=np.repeat(np.log(error), _CENTRES),
    )


_Posterior = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def _normal(sample: GroupSample, noise: FloatArray, grid: _Grid) -> _Posterior:
    between, centre = grid.sd[:, None] ** 2, grid.centre[:, None]
    total = between + noise
    fit = -0.5 * ((sample.mean - centre) ** 2 / total + np.log(total)).sum(axis=1)
    weight = between / total
    return fit + grid.log_weight, centre + weight * (sample.mean - centre), weight * noise, weight


def _beta(sample: GroupSample, noise: FloatArray, grid: _Grid) -> _Posterior:
    centre = np.clip(grid.centre, 1e-9, 1 - 1e-9)[:, None]
    inside = (grid.centre > 0) & (grid.centre < 1)
    # A beta with mean m and variance s² has a + b = m(1 − m)/s² − 1, so s² stays below m(1 − m).
    strength = centre * (1 - centre) / grid.sd[:, None] ** 2 - 1
    inside &= strength[:, 0] > 0
    strength = np.maximum(strength, 1e-9)
    a, b = centre * strength, (1 - centre) * strength
    hits = sample.mean * sample.size
    fit = betaln(a + hits, b + sample.size - hits) - betaln(a, b)
    likelihood = np.where(inside, fit.sum(axis=1) + grid.log_weight, -np.inf)
    total = strength + sample.size
    mean = (a + hits) / total
    return likelihood, mean, mean * (1 - mean) / (total + 1), sample.size / total


def _beta_ends(
    value: FloatArray, spread: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Ends of the beta distribution with this mean and variance."""
    strength = np.maximum(value * (1 - value) / spread - 1, 1e-9)
    a, b = value * strength, (1 - value) * strength
    tail = (1 - level) / 2
    ends = (np.asarray(betaincinv(a, b, p), dtype=np.float64) for p in (tail, 1 - tail))
    lower, upper = ends
    return lower, upper


def _normal_ends(
    value: FloatArray, spread: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    half = -ndtri((1 - level) / 2) * np.sqrt(spread)
    return value - half, value + half
