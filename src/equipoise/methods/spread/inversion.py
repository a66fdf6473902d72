"""Ends by test inversion: the spreads that could have produced what was seen.

Fresh data are drawn from groups whose true means lie on a path that starts with all groups equal
and moves them apart.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.spread.draws import null_draws
from equipoise.methods.spread.sample import GroupSample
from equipoise.methods.spread.variance import sample_variance

Statistic = Callable[[FloatArray, FloatArray], FloatArray]
_HALVINGS = 4
_DOUBLINGS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """Group means from equality outwards.

    Attributes
    ----------
    centre
        The common mean at the start.
    direction
        How the groups move apart; its variance (divisor K − 1) is one, or it is zero
        when the observed means are all equal.
    binary
        Whether the means stay between 0 and 1.
    """

    centre: float
    direction: FloatArray
    binary: bool

    def at(self, distance: float) -> FloatArray:
        """Return the group means ``distance`` along the path."""
        means = self.centre + distance * self.direction
        return np.clip(means, 0.0, 1.0) if self.binary else means


@dataclass(frozen=True, slots=True, kw_only=True)
class Inversion:
    """The part of the path that a pair of one-sided tests does not reject.

    Attributes
    ----------
    lower
        Group means at the near end; all equal where equality could have produced what was seen.
    upper
        Group means at the far end.
    """

    lower: FloatArray
    upper: FloatArray


def spreading_path(sample: GroupSample) -> Path:
    """Build the path through the shrunken group means.

    Shrinking matters: the raw means of the smallest groups are mostly noise and would make the
    path put all the spread where it is seen worst.
    """
    noise = null_variance(sample)
    between = sample_variance(sample)
    # Any guess will do where nothing is seen: only the direction of the path depends on it.
    between = between if between > 0 else float(noise.mean()) / 2
    weight = between / (between + noise) if between > 0 else np.ones_like(noise)
    pull = (sample.mean - sample.overall) * weight
    size = float(np.std(pull, ddof=1))
    return Path(
        centre=sample.overall,
        direction=pull / size if size > 0 else np.zeros_like(pull),
        binary=sample.binary,
    )


def null_variance(sample: GroupSample) -> FloatArray:
    """Sampling variance of each group mean if all groups were equal."""
    if sample.binary:
        return np.asarray(sample.overall * (1 - sample.overall) / sample.size)
    return np.asarray(sample.spread / (sample.size - 1))


def invert_path(
    sample: GroupSample,
    statistic: Statistic,
    *,
    tail: float,
    resamples: int,
    rng: np.random.Generator,
) -> Inversion:
    """Find the part of the path that one-sided tests at level ``tail`` do not reject.

    Parameters
    ----------
    sample
        The usable groups.
    statistic
        A function of means and spreads that grows with the spread between groups.
    tail
        Level of each test, α/2 for a 1 − α interval.
    resamples
        Draws at each point of the path.
    rng
        Source of randomness.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import Meta, meta_metric, sample_from_sums
    >>> s = sample_from_sums(np.array([90, 90]), np.array([20.0, 70.0]), binary=True)
    >>> stat = lambda mean, spread: meta_metric(Meta.VARIANCE, mean)
    >>> ends = invert_path(s, stat, tail=0.025, resamples=500, rng=np.random.default_rng(1))
    >>> 0 < float(np.var(ends.lower, ddof=1)) < 0.154
    True
    """
    path = spreading_path(sample)
    observed = float(statistic(sample.mean, sample.spread))
    seed = int(rng.integers(2**62))

    def drawn(distance: float) -> FloatArray:
        # The same random numbers at every point keep the search from jittering.
        stream = np.random.default_rng(seed)
        draws = null_draws(sample, path.at(distance), resamples, stream)
        return statistic(draws.mean, draws.spread)

    null = drawn(0.0)
    reach = float(np.std(sample.mean, ddof=1))
    above = _quantile(null, 1 - tail) < observed
    near = _crossing(drawn, null, observed, 1 - tail, reach) if above else 0.0
    return Inversion(
        lower=path.at(near), upper=path.at(_crossing(drawn, null, observed, tail, reach))
    )


def _quantile(values: FloatArray, order: float) -> float:
    """The drawn value beyond which the next draw falls with the chance asked for.

    One of the values themselves: there may be infinite ones, which do not interpolate.
    """
    place = min(max(round(order * (values.size + 1)) - 1, 0), values.size - 1)
    return float(np.partition(values, place)[place])


def _crossing(
    drawn: Callable[[float], FloatArray],
    null: FloatArray,
    observed: float,
    order: float,
    reach: float,
) -> float:
    """Distance at which the quantile of the given order reaches what was observed."""

    def excess(values: FloatArray) -> float:
        return _quantile(values, order) - observed

    near, far = 0.0, reach
    below, above = min(excess(null), 0.0), excess(drawn(far))
    for _ in range(_DOUBLINGS):
        if above >= 0 or reach == 0:
            break
        near, below, far = far, above, 2 * far
        above = excess(drawn(far))
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        value = excess(drawn(middle))
        near, below, far, above = (
            (middle, value, far, above) if value < 0 else (near, below, middle, value)
        )
    return near + (far - near) * (-below / (above - below) if above > below else 1.0)
