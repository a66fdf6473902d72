"""`joint_test`: whether every group's disparity could be zero at once."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Unpack

import numpy as np
from scipy.special import chdtri, ndtri

from equipoise._codec import to_plain
from equipoise._validate import (
    Rng,
    Seed,
    confidence,
    known_keywords,
    known_name,
    modest,
    seed_of,
    yes_or_no,
)
from equipoise.audits._common import (
    RoleKeywords,
    TrailLike,
    answerable,
    as_source,
    critical_scores,
    finite,
    groups_only,
    independent,
    stepped_down,
)
from equipoise.audits._groups.likelihood import (
    WRONG,
    ends_at,
    joint_scores,
    likelihood_bounds,
    membership,
    rows_of,
)
from equipoise.audits._groups.problem import (
    Problem,
    about,
    adjusted_groups,
    changed_groups,
    check_method,
    group_fields,
    notes_of,
    set_up,
    unknown_beside,
)
from equipoise.audits.certify import limits_of
from equipoise.audits.methods import Euclidean, Likelihood, Pivotal, as_method, exactness
from equipoise.cells.tally import Tallied
from equipoise.claims import Claim, Ratio, as_claim
from equipoise.errors import OptionError
from equipoise.findings.joint_test import JointlyTested, JointTest
from equipoise.findings.words import level_text
from equipoise.methods.hypotheses import Outside
from equipoise.methods.inference.core import Core
from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.published import likelihood
from equipoise.methods.stored import EuclideanRegion, LikelihoodRegion, Region, numbers_of, table_of
from equipoise.methods.targets import Constant, Status

# --- The mathematics behind `joint_test`: scores, statistic, calibration, region and intervals

#: Rows × groups that a joint test writes out at most.
LIMIT = 200_000_000
#: Numbers that a finding keeps of its joint region at most.
_KEPT = 300_000
#: Newton steps of one joint empirical likelihood, for counting the cost.
_SOLVES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class JointOutcome:
    """A joint test with its cut-off."""

    ratio: likelihood.JointRatio
    p: float
    critical: float
    calibration: str
    draws: int
    scores: likelihood.Scores


def scores_of(
    problem: Problem, method: Likelihood | Euclidean, used: IntArray
) -> likelihood.Scores:
    """What the rows say about each of the groups tested."""
    rows, member = rows_of(problem), membership(problem)[used]
    if rows.value.size * used.size > LIMIT:
        raise OptionError("Too many rows times groups for a joint test; audit fewer groups.")
    plugged = isinstance(method, Likelihood) and method.target == "plug-in"
    return joint_scores(problem, rows, member, used, plugged)


def run_joint_test(
    scores: likelihood.Scores,
    method: Likelihood | Euclidean,
    values: FloatArray,
    *,
    least: float,
    level: float,
    seed: np.random.SeedSequence,
) -> JointOutcome:
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
        return JointOutcome(
            ratio=ratio, p=ratio.p, critical=limit, calibration=said, draws=0, scores=scores
        )
    return JointOutcome(
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
) -> likelihood.ResampledNull | None:
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
) -> Region | None:
    """What a finding keeps to tell later which values lie in the region; None if too much.

    Empirical likelihood needs the scores themselves, which are few where the metric is 0/1. Rows of
    real-valued metrics are never kept: their region is the Euclidean one, from second moments.
    """
    if isinstance(method, Likelihood) and counted and 2 * scores.zero.size <= _KEPT:
        zero, slope = table_of(scores.zero), table_of(scores.slope)
        return LikelihoodRegion(zero=zero, slope=slope, count=numbers_of(scores.count))
    if 3 * scores.zero.shape[1] ** 2 > _KEPT:
        return None
    found = likelihood.moments_of(scores)
    return EuclideanRegion(
        rows=found.rows,
        estimate=numbers_of(found.estimate),
        zero=table_of(found.zero),
        cross=table_of(found.cross),
        slope=table_of(found.slope),
    )


Ends = tuple[FloatArray, FloatArray]


def intervals_of(
    problem: Problem,
    method: Likelihood | Euclidean,
    tested: JointOutcome,
    used: IntArray,
    level: float,
) -> tuple[Ends, Ends]:
    """Intervals of every group: by its family, and as the shadow of the joint region."""
    none = (np.full(len(problem.collection), np.nan), np.full(len(problem.collection), np.nan))
    own = likelihood_bounds(problem, method, level, "both")
    if isinstance(method, Euclidean):
        found = likelihood.euclidean_ends(likelihood.moments_of(tested.scores), tested.critical)
        low, high = none[0].copy(), none[1].copy()
        low[used], high[used] = found
        return (own.lower, own.upper), (low, high)
    cut = float(np.sqrt(tested.critical)) if np.isfinite(tested.critical) else 1e6
    return (own.lower, own.upper), ends_at(problem, method, cut)


# --- `joint_test`: whether every group's disparity could be zero at once ---


JointMethod = (
    Literal["pivotal", "likelihood", "likelihood-plugin", "euclidean"]
    | Pivotal
    | Likelihood
    | Euclidean
)


@known_keywords
def joint_test(
    trail: TrailLike | Tallied,
    claim: Claim,
    *,
    at: Mapping[str, float] | None = None,
    level: float = 0.95,
    method: JointMethod | None = None,
    intervals: bool = True,
    rng: Rng = None,
    **roles: Unpack[RoleKeywords],
) -> JointTest:
    """Test whether every group's disparity is zero, all groups together.

    Parameters
    ----------
    trail, claim
        The audit trail, its counts, or a path or table as in `certify`; and the question.
    at
        Disparities to test instead of zero, by the group's label; groups left out are free.
    level
        Confidence of the verdict, of the joint region and of the intervals.
    method
        The default, `Pivotal`, asks whether the largest score of all groups could be chance, for
        any metric, weights and clusters. `Likelihood` and `Euclidean` are the published joint tests
        of gaps, which also have a joint region: the degrees of freedom count only disparities that
        do not follow from others; if some group has under 1000 rows, p-value and region are
        calibrated by resampling, unless ``calibration="none"``; ``family`` is that of the
        intervals.
    intervals
        Whether to give each group its two intervals, which takes longer than the test.
    rng
        Seed of the calibration.

    Examples
    --------
    >>> import equipoise as eq
    >>> claim = eq.gap(eq.false_positive_rate, across=eq.intersections("sex", "age"))
    >>> found = eq.joint_test(eq.datasets.compas(), claim, rng=7)
    >>> str(found.verdict), found.tested
    ('exceeded', 11)
    >>> published = eq.joint_test(eq.datasets.compas(), claim, method="likelihood", rng=7)
    >>> published.degrees, published.published_verdict
    (5, 'Model unfairness certified')
    """
    confidence(level)
    yes_or_no("intervals", intervals)
    asked = as_claim(claim)
    kinds = (Pivotal, Likelihood, Euclidean)
    chosen = as_method(Pivotal() if method is None else method, kinds, "joint_test")
    problem = set_up(as_source(trail, roles), asked)
    if isinstance(chosen, Pivotal):
        return _by_scores(problem, chosen, at, level, intervals, seed_of(rng))
    if isinstance(asked, Ratio):
        raise OptionError(
            "This joint test is for gaps; a ratio of one is a gap of zero, so pass gap(…)."
        )
    groups_only(problem.collection, "joint_test")
    check_method(problem, chosen, {})
    assert isinstance(chosen, Likelihood | Euclidean)
    used, values = _asked(problem, at)
    if used.size * problem.cells.rows.size > LIMIT:
        raise OptionError(f"A joint test of {used.size:,} groups is too large.")
    seed = seed_of(rng)
    tested = run_joint_test(
        scores_of(problem, chosen, used),
        chosen,
        values,
        least=float(problem.estimates.rows[used].min(initial=np.inf)),
        level=level,
        seed=seed.sequence,
    )
    number = seed.number if tested.draws else None
    return _finding(problem, chosen, level, used, values, tested, intervals, number)


def _by_scores(
    problem: Problem,
    method: Pivotal,
    at: Mapping[str, float] | None,
    level: float,
    intervals: bool,
    seed: Seed,
) -> JointTest:
    """Whether the largest of all groups' scores could be chance."""
    core, critical, score = answerable(problem.core, level, "both", method.resamples, seed, False)
    used, values = _asked(problem, at, core)
    tested = dataclasses.replace(core, status=_only(core.status, used))
    if used.size < core.answered.size:
        critical = critical_scores(tested, level, "both", method.resamples, seed, False)
    up, down = (np.full(core.status.shape, np.nan) for _ in range(2))
    if used.size:
        up[used], down[used] = tested.pivot.tails(values, used)
    p = np.minimum(2 * np.fmin(up, down), 1.0)
    adjusted = stepped_down(tested, p, Outside(low=0.0, high=0.0), method.resamples, seed)
    p_joint = float(np.nanmin(adjusted, initial=1.0)) if used.size else 1.0
    ends = np.full((4, len(problem.collection)), np.nan)
    if intervals and used.size:
        ends[:2] = tested.bounds(critical.value, limits_of(problem))
    labels = problem.collection.labels()
    smallest = float(np.nanmin(p, initial=1.0)) if used.size else 1.0
    return JointTest(
        **about(problem, seed.number),
        guarantee=_promise(level, at is not None),
        assumptions=(*problem.assumptions, f"error rate {exactness(problem, many=True)}"),
        rows=_rows(problem, used, notes_of(core, score, problem.claim.metric, problem.noun), ends),
        level=level,
        statistic=float(-ndtri(max(smallest, 1e-300) / 2)),
        degrees=int(used.size),
        tested=int(used.size),
        p=p_joint,
        rejected=bool(p_joint <= 1 - level),
        method=to_plain(method),
        at={labels[i]: v for i, v in zip(used, values.tolist(), strict=True) if at is not None},
        critical=0.0 if np.isnan(critical.value) else critical.value,
        calibration="the joint law of all groups' scores",
        family="joint",
        region=None,
        adjusted=adjusted_groups(problem),
        changed=changed_groups(problem),
        **unknown_beside(problem),
        share=problem.share,
    )


def _only(status: IntArray, used: IntArray) -> IntArray:
    """Groups that are not part of a test are as if they had no answer."""
    out = np.where(status == Status.OK, int(Status.EMPTY), status)
    out[used] = Status.OK
    return out


def _asked(
    problem: Problem, at: Mapping[str, float] | None, core: Core | None = None
) -> tuple[IntArray, FloatArray]:
    """Groups that are tested, and the disparities they are tested for."""
    # one row says nothing about spread, however many groups of one row there are
    bad = (Status.EMPTY, Status.SINGLE, Status.NO_TARGET, Status.IDENTICAL)
    if core is None:
        able = np.flatnonzero(~np.isin(problem.estimates.status, bad)).astype(np.int64)
    else:
        able = core.answered
    if at is None:
        return able, np.full(able.size, float(problem.relative))
    labels = problem.collection.labels()
    place = {labels[i]: int(i) for i in able}
    if not isinstance(at, Mapping):
        raise OptionError(f"at= takes a value for each group by its name; got {at!r}.")
    if not at:
        raise OptionError("at= names no group; leave it out to test that all disparities are zero.")
    for name, value in at.items():
        known_name("group", name, place)
        modest("at", value)
    return np.array([place[name] for name in at]), np.array([float(v) for v in at.values()])


def _finding(
    problem: Problem,
    method: Likelihood | Euclidean,
    level: float,
    used: IntArray,
    values: FloatArray,
    tested: JointOutcome,
    intervals: bool,
    seed: int | None,
) -> JointTest:
    labels, found = problem.collection.labels(), tested.ratio
    ends = np.full((4, len(labels)), np.nan)
    if intervals and used.size:
        own, shadow = intervals_of(problem, method, tested, used, level)
        ends[:, used] = np.stack([*own, *shadow])[:, used]
    return JointTest(
        **about(problem, seed),
        guarantee=_guarantee(problem, method, level, bool(values.any())),
        assumptions=(
            independent(),
            "the collection of groups was fixed before looking at the outcomes",
            "large-sample approximation of the likelihood ratio by "
            + ("resampling" if tested.draws else "χ²"),
        ),
        rows=_rows(problem, used, notes_of(problem.core, 0.0, problem.claim.metric), ends),
        level=level,
        statistic=float(min(found.statistic, 1e300)),
        degrees=found.rank,
        tested=int(used.size),
        p=tested.p,
        rejected=bool(tested.p <= 1 - level),
        method=to_plain(method),
        at={labels[i]: v for i, v in zip(used, values.tolist(), strict=True) if values.any()},
        critical=float(min(tested.critical, 1e300)),
        calibration=tested.calibration,
        family=method.family,
        region=region_of(tested.scores, method, problem.moments.binary),
        share=problem.share,
    )


def _rows(
    problem: Problem, used: IntArray, notes: list[str], ends: FloatArray
) -> tuple[JointlyTested, ...]:
    """The groups with both intervals of each; NaN where there is none."""
    chosen = set(used.tolist())
    return tuple(
        JointlyTested(
            **fields,
            lower=finite(ends[0, i]),
            upper=finite(ends[1, i]),
            region_lower=finite(ends[2, i]),
            region_upper=finite(ends[3, i]),
            note="" if i in chosen else notes[i] or "not part of the test",
        )
        for i, fields in enumerate(group_fields(problem))
    )


def _promise(level: float, moved: bool) -> str:
    null = "the disparities are those tested" if moved else "there is no disparity in any group"
    return f"If {null}, the test says otherwise with chance at most {level_text(1 - level)}"


def _guarantee(problem: Problem, method: Likelihood | Euclidean, level: float, moved: bool) -> str:
    null = "the disparities are those tested" if moved else "every disparity is zero"
    said = f"If {null}, the test says otherwise with chance {level_text(1 - level)}"
    known = isinstance(problem.target, Constant)
    plugged = isinstance(method, Likelihood) and method.target == "plug-in" and not known
    return f"{said}; {WRONG}, and this does not hold" if plugged else said
