"""The mathematics behind `joint_test`: scores, statistic, calibration, region and intervals."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtri

from equipoise.audits._groups.bench import Bench
from equipoise.audits._groups.likelihood import ends_at, likelihood_bounds
from equipoise.audits._groups.samples import joint_scores, membership, rows_of
from equipoise.audits.methods import Euclidean, Likelihood
from equipoise.errors import OptionError
from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.published import likelihood

#: Rows × groups that a joint test writes out at most.
LIMIT = 200_000_000
#: Numbers that a finding keeps of its joint region at most.
_KEPT = 300_000
#: Newton steps of one joint empirical likelihood, for counting the cost.
_SOLVES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A joint test with its cut-off."""

    ratio: likelihood.JointRatio
    p: float
    critical: float
    calibration: str
    draws: int
    scores: likelihood.Scores


def scores_of(bench: Bench, method: Likelihood | Euclidean, used: IntArray) -> likelihood.Scores:
    """What the rows say about each of the groups tested."""
    rows, member = rows_of(bench), membership(bench)[used]
    if rows.value.size * used.size > LIMIT:
        raise OptionError("Too many rows times groups for a joint test; audit fewer groups.")
    plugged = isinstance(method, Likelihood) and method.target == "plug-in"
    return joint_scores(bench, rows, member, used, plugged)


def run_test(
    scores: likelihood.Scores,
    method: Likelihood | Euclidean,
    values: FloatArray,
    *,
    least: float,
    level: float,
    seed: np.random.SeedSequence,
) -> Outcome:
    """Test that the disparities have given values; ``least`` are the rows of the smallest group."""
    auto = method.calibration == "auto"
    if isinstance(method, Euclidean):
        every = np.arange(values.size)
        ratio = likelihood.euclidean_at(likelihood.moments_of(scores), values, every)
    else:
        ratio = likelihood.likelihood_at(scores, values, adjusted=auto)
    made = _calibrated(scores, method, values, seed) if auto and least < likelihood.SMALL else None
    # The rank, not the number of groups: men's gap to everybody settles women's.
    limit = float(chdtri(max(ratio.rank, 1), 1 - level))
    # a resample that lost or gained a dependence is compared with another limit
    usable = made is not None and made.rank == ratio.rank and ratio.rank > 0
    if made is None or not usable:
        said = _uncalibrated(auto, least)
        return Outcome(
            ratio=ratio, p=ratio.p, critical=limit, calibration=said, draws=0, scores=scores
        )
    return Outcome(
        ratio=ratio,
        p=made.p(ratio.statistic),
        critical=made.critical(level),
        calibration=f"{made.draws.size} resamples of the rows around the estimates",
        draws=int(made.draws.size),
        scores=scores,
    )


def _uncalibrated(auto: bool, least: float) -> str:
    if not auto:
        return "none: the χ² limit as it is"
    if least >= likelihood.SMALL:
        return f"none needed: every group has {likelihood.SMALL:,} rows or more"
    return "the adjusted likelihood alone: resampling would take too long"


def _calibrated(
    scores: likelihood.Scores,
    method: Likelihood | Euclidean,
    values: FloatArray,
    seed: np.random.SeedSequence,
) -> likelihood.Calibration | None:
    full = isinstance(method, Likelihood)
    if scores.disjoint and full and not scores.support:
        groups = likelihood.own_segments(scores, scores.estimate)
        small = float(groups.rows[groups.rows < likelihood.SMALL].sum())
        draws = likelihood.affordable(small, 1, solves=1)
        adjust = likelihood.adjustment(groups)
        return likelihood.disjoint_draws(groups, adjust, draws=draws, seed=seed) if draws else None
    draws = likelihood.affordable(scores.count.size, values.size, solves=_SOLVES if full else 1)
    if draws == 0 or values.size == 0:
        return None
    g, count = _null_rows(scores, values)
    if full:
        return likelihood.ratio_draws(g, count, draws=draws, seed=seed, support=scores.support)
    return likelihood.euclidean_draws(g, count, draws=draws, seed=seed)


def _null_rows(scores: likelihood.Scores, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scores with mean zero, and how often each is expected, to draw rows from."""
    g = scores.at(values)
    if scores.support:
        # the rows are all there could be; their chances are the most likely ones under the null
        return g, likelihood.null_weights(g, scores.count) * scores.count.sum()
    kept = scores.count > 0
    # away from the null more disparities are free; those that are tested stay the same
    basis = likelihood.independent_columns(g[kept], scores.count[kept])
    return scores.at(scores.estimate)[kept][:, basis], scores.count[kept]


def region_of(
    scores: likelihood.Scores, method: Likelihood | Euclidean, counted: bool
) -> Mapping[str, Any] | None:
    """What a finding keeps to tell later which values lie in the region; None if too much.

    Empirical likelihood needs the scores themselves, which are few where the metric is 0/1. Rows of
    real-valued metrics are never kept: their region is the Euclidean one, from second moments.
    """
    if isinstance(method, Likelihood) and counted and 2 * scores.zero.size <= _KEPT:
        return {
            "kind": "likelihood",
            "zero": scores.zero.tolist(),
            "slope": scores.slope.tolist(),
            "count": scores.count.tolist(),
        }
    if 3 * scores.zero.shape[1] ** 2 > _KEPT:
        return None
    found = likelihood.moments_of(scores)
    return {
        "kind": "euclidean",
        "rows": found.rows,
        "estimate": found.estimate.tolist(),
        "zero": found.zero.tolist(),
        "cross": found.cross.tolist(),
        "slope": found.slope.tolist(),
    }


Ends = tuple[FloatArray, FloatArray]


def intervals_of(
    bench: Bench, method: Likelihood | Euclidean, tested: Outcome, used: IntArray, level: float
) -> tuple[Ends, Ends]:
    """Intervals of every group: by its family, and as the shadow of the joint region."""
    none = (np.full(len(bench.collection), np.nan), np.full(len(bench.collection), np.nan))
    own = likelihood_bounds(bench, method, level, "both")
    if isinstance(method, Euclidean):
        found = likelihood.euclidean_ends(likelihood.moments_of(tested.scores), tested.critical)
        low, high = none[0].copy(), none[1].copy()
        low[used], high[used] = found
        return (own.lower, own.upper), (low, high)
    cut = float(np.sqrt(tested.critical)) if np.isfinite(tested.critical) else 1e6
    return (own.lower, own.upper), ends_at(bench, method, cut)
