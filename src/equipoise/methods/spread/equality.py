"""Do the groups differ at all? One test for all summaries, so that they agree with one another.

Two statistics look at every group beside everybody: the largest score, which sees one group that
stands out, and the sum of squared scores, which sees many that differ a little. They are combined
by the smaller of their p-values, judged by the same draws. Plain counts are dealt afresh to the
groups with all totals kept, which is exact for groups of any size; all else is drawn from the joint
law of the core's scores.

Where equality is rejected, some group is at least so far from everybody that the statistic could
fall back to its critical value; the highest and the lowest group are no closer than that.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from equipoise.methods.arrays import FloatArray
from equipoise.methods.spread.sample import GroupSample

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
    >>> found.p, 0.2 < found.apart < 0.63
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
    # the largest value of each statistic that would not have been enough
    enough = float(np.quantile(least, tail, method="lower"))
    fits = [float(v[r > enough].max(initial=0.0)) for v, r in zip(every.T, ranks.T, strict=True)]
    # some group's own distance exceeds this, or all together exceed that
    one = float(((np.abs(scores) - fits[0]) * error).max())
    precision = float(np.sum((1 - share) / np.maximum(error, 1e-300) ** 2))
    all_together = (every[0, 1] - fits[1]) / np.sqrt(precision)
    return Equality(p=p, apart=max(one, float(all_together), 0.0))


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
