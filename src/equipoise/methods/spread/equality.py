"""Do the groups differ at all? One test for all summaries, so that they agree with one another.

Two statistics look at every group beside everybody: the largest score, which sees one group that
stands out, and the sum of squared scores, which sees many that differ a little. They are combined
by the smaller of their p-values, judged by the same draws. Plain counts are dealt afresh to the
groups with all totals kept, which is exact for groups of any size; all else is drawn from the joint
law of the core's scores.

Where equality is rejected, all groups together are at least so far apart that the sum of squares
could fall back to what noise alone would make of it, noise as it is at the groups' own rates: a
small group with a high rate strays further than one with everybody's.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from equipoise.methods.numerics import FloatArray
from equipoise.methods.spread.draws import null_draws
from equipoise.methods.spread.sample import GroupSample, mean_limits
from equipoise.methods.spread.variance import sample_variance

# --- Do the groups differ at all? One test for all summaries, so that they agree with one another
# ---

_DEALT = 10**8
"""Rows up to which counts are dealt; beyond, the joint law is as good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equality:
    """A test of "all groups have the same mean".

    Attributes
    ----------
    p
        p-value.
    apart
        If it is rejected: how far apart the highest and the lowest group are at least; else 0.
    """

    p: float
    apart: float


def equality_test(
    sample: GroupSample, *, tail: float, resamples: int, rng: np.random.Generator
) -> Equality:
    """Test at level ``tail`` whether the groups differ.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([60, 50]), np.array([50.0, 10.0]), binary=True)
    >>> found = equality_test(s, tail=0.025, resamples=999, rng=np.random.default_rng(1))
    >>> found.p, bool(0.2 < found.apart < 0.63)
    (0.001, True)
    """
    if sample.constant:
        return Equality(p=1.0, apart=0.0)
    share = sample.size / sample.size.sum()
    if sample.counted and sample.size.sum() <= _DEALT:
        scores, error, drawn = _dealt(sample, resamples, rng)
    else:
        used = sample.beside.answered
        if used.size == 0:
            return Equality(p=1.0, apart=0.0)
        scores, error, drawn = _drawn(sample, resamples, rng)
        share, scores, error = share[used], scores[used], error[used]
    every = _statistics(np.concatenate([scores[None], drawn]), 1 - share)
    ranks = np.stack([_share_as_large(column) for column in every.T], axis=1)
    least = ranks.min(axis=1)
    p = float((least <= least[0] * (1 + 1e-9)).mean())
    if p > tail:
        return Equality(p=p, apart=0.0)
    noise = drawn
    if sample.counted and sample.size.sum() <= _DEALT:
        noise = _own_noise(sample, error, resamples, rng)
    precision = float(np.sum((1 - share) / np.maximum(error, 1e-300) ** 2))
    stray = float(np.quantile(_statistics(noise, 1 - share)[:, 1], 1 - tail, method="higher"))
    return Equality(p=p, apart=max(float(every[0, 1] - stray) / np.sqrt(precision), 0.0))


def _statistics(scores: FloatArray, rest: FloatArray) -> FloatArray:
    """The largest score, and the root of Pearson's sum of squares, for every draw."""
    return np.stack([np.abs(scores).max(axis=1), np.sqrt((rest * scores**2).sum(axis=1))], axis=1)


def _share_as_large(values: FloatArray) -> FloatArray:
    """The share of values that are at least as large as each; near ties count as ties."""
    order = np.sort(values * (1 + 1e-9))
    return np.asarray(1 - np.searchsorted(order, values, side="left") / values.size)


def _dealt(
    sample: GroupSample, resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scores of counts, their errors, and scores of counts dealt without regard to the group."""
    n, rows = sample.size.astype(np.float64), int(sample.size.sum())
    ones = np.rint(sample.mean * n)
    rate = float(ones.sum()) / rows
    error = np.sqrt(rate * (1 - rate) * (1 - n / rows) / n)
    dealt = rng.multivariate_hypergeometric(
        sample.size, int(ones.sum()), size=resamples, method="marginals"
    )
    return (ones / n - rate) / error, error, (dealt / n - rate) / error


def _own_noise(
    sample: GroupSample, error: FloatArray, resamples: int, rng: np.random.Generator
) -> FloatArray:
    """Scores that groups would have by chance alone, each drawn at its own rate.

    The rate is the upper limit of what it may be, on the side that makes counts stray most.
    """
    low, high = mean_limits(sample, 1.0)
    rate = np.clip(np.where(sample.overall < 0.5, high, low), 1e-12, 1 - 1e-12)
    n = sample.size
    drawn = rng.binomial(n, rate, size=(resamples, n.size)) / n
    return np.asarray((drawn - rate) / error)


def _drawn(
    sample: GroupSample, resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scores of every group beside everybody, their errors, and draws from their joint law."""
    core = sample.beside
    up, down = core.tails(0.0)
    with np.errstate(invalid="ignore"):
        scores = np.where(up < down, -ndtri(np.maximum(up, 1e-300)), ndtri(np.fmax(down, 1e-300)))
    seed = np.random.SeedSequence(int(rng.integers(2**62)))
    law = core.law(draws=resamples, seed=seed)
    return scores, core.pivot.error, np.concatenate(list(law.scores()))


# --- Ends by test inversion: the spreads that could have produced what was seen ---
#
# Fresh data are drawn from groups whose true means lie on a path that starts with all groups
# equal and moves them apart.

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
