"""`joint_test`: whether every group's disparity could be zero at once."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import ndtri

from equipoise._codec import to_plain
from equipoise._rng import Rng, Seed, seed_of
from equipoise._validate import fraction, known_keywords, known_name, modest, yes_or_no
from equipoise.audits._fields import finite, independent, provenance_of
from equipoise.audits._groups.bench import (
    Bench,
    group_fields,
    groups_only,
    notes_of,
    set_up,
)
from equipoise.audits._groups.bounds import limits_of
from equipoise.audits._groups.joint import (
    LIMIT,
    Outcome,
    intervals_of,
    region_of,
    run_test,
    scores_of,
)
from equipoise.audits._groups.likelihood import WRONG
from equipoise.audits._groups.scores import (
    answerable,
    critical_scores,
    exactness,
    stepped_down,
)
from equipoise.audits.methods import Euclidean, Likelihood, Pivotal, as_method
from equipoise.cells.tallied import Tallied
from equipoise.claims import Claim, Ratio, as_claim
from equipoise.errors import OptionError
from equipoise.findings.joint_test import JointlyTested, JointTest
from equipoise.findings.words import level_text
from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.hypotheses import Outside
from equipoise.methods.inference.comparison import Status
from equipoise.methods.inference.core import Core
from equipoise.methods.targets import Constant
from equipoise.trail import Trail


@known_keywords
def joint_test(
    trail: Trail | Tallied,
    claim: Claim,
    *,
    at: Mapping[str, float] | None = None,
    level: float = 0.95,
    method: Any = None,
    intervals: bool = True,
    rng: Rng = None,
) -> JointTest:
    """Test whether every group's disparity is zero, all groups together.

    Parameters
    ----------
    trail, claim
        The audit trail and the question.
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
    >>> found.verdict, found.tested
    ('disparity shown', 11)
    >>> published = eq.joint_test(eq.datasets.compas(), claim, method="likelihood", rng=7)
    >>> published.degrees, published.published_verdict
    (5, 'Model unfairness certified')
    """
    fraction("level", level)
    yes_or_no("intervals", intervals)
    asked = as_claim(claim)
    kinds = (Pivotal, Likelihood, Euclidean)
    chosen = as_method(Pivotal() if method is None else method, kinds, "joint_test")
    bench = set_up(trail, asked)
    if isinstance(chosen, Pivotal):
        return _by_scores(bench, chosen, at, level, intervals, seed_of(rng))
    if isinstance(asked, Ratio):
        raise OptionError(
            "This joint test is for gaps; a ratio of one is a gap of zero, so pass gap(…)."
        )
    groups_only(bench.collection, "joint_test")
    used, values = _asked(bench, at)
    if used.size * bench.cells.rows.size > LIMIT:
        raise OptionError(f"A joint test of {used.size:,} groups is too large.")
    seed = seed_of(rng)
    tested = run_test(
        scores_of(bench, chosen, used),
        chosen,
        values,
        least=float(bench.estimates.rows[used].min(initial=np.inf)),
        level=level,
        seed=seed.sequence,
    )
    number = seed.number if tested.draws else None
    return _finding(bench, chosen, level, used, values, tested, intervals, number)


def _by_scores(
    bench: Bench,
    method: Pivotal,
    at: Mapping[str, float] | None,
    level: float,
    intervals: bool,
    seed: Seed,
) -> JointTest:
    """Whether the largest of all groups' scores could be chance."""
    core, _, score = answerable(bench.core, level, "both", method.draws, seed, False)
    used, values = _asked(bench, at, core)
    tested = dataclasses.replace(core, status=_only(core.status, used))
    up, down = (np.full(core.status.shape, np.nan) for _ in range(2))
    if used.size:
        up[used], down[used] = tested.pivot.tails(values, used)
    p = np.minimum(2 * np.fmin(up, down), 1.0)
    adjusted = stepped_down(tested, p, Outside(low=0.0, high=0.0), method.draws, seed)
    critical = critical_scores(tested, level, "both", method.draws, seed, False)
    p_joint = float(np.nanmin(adjusted, initial=1.0)) if used.size else 1.0
    ends: Any = [[None, None]] * len(bench.collection)
    if intervals and used.size:
        ends = np.stack(tested.bounds(critical.value, limits_of(bench)), axis=1).tolist()
    chosen, notes = set(used.tolist()), notes_of(core, score, bench.claim.metric, bench.noun)
    labels = bench.collection.labels()
    smallest = float(np.nanmin(p, initial=1.0)) if used.size else 1.0
    return JointTest(
        claim=bench.claim.quoted(),
        question=bench.claim.words,
        guarantee=_promise(level, at is not None),
        assumptions=(*bench.assumptions, f"error rate {exactness(bench, many=True)}"),
        provenance=provenance_of(bench.cells, seed.number),
        rows=tuple(
            JointlyTested(
                **fields,
                lower=None if ends[i][0] is None else finite(ends[i][0]),
                upper=None if ends[i][1] is None else finite(ends[i][1]),
                region_lower=None,
                region_upper=None,
                note="" if i in chosen else notes[i] or "not part of the test",
            )
            for i, fields in enumerate(group_fields(bench))
        ),
        metric=bench.claim.metric.words,
        against=bench.claim.target.words,
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
    )


def _only(status: IntArray, used: IntArray) -> IntArray:
    """Groups that are not part of a test are as if they had no answer."""
    out = np.where(status == Status.OK, int(Status.EMPTY), status)
    out[used] = Status.OK
    return out


def _asked(
    bench: Bench, at: Mapping[str, float] | None, core: Core | None = None
) -> tuple[IntArray, FloatArray]:
    """Groups that are tested, and the disparities they are tested for."""
    # one row says nothing about spread, however many groups of one row there are
    bad = (Status.EMPTY, Status.SINGLE, Status.NO_TARGET, Status.IDENTICAL)
    if core is None:
        able = np.flatnonzero(~np.isin(bench.estimates.status, bad)).astype(np.int64)
    else:
        able = core.answered
    if at is None:
        return able, np.full(able.size, float(bench.relative))
    labels = bench.collection.labels()
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
    bench: Bench,
    method: Likelihood | Euclidean,
    level: float,
    used: IntArray,
    values: FloatArray,
    tested: Outcome,
    intervals: bool,
    seed: int | None,
) -> JointTest:
    labels, found = bench.collection.labels(), tested.ratio
    return JointTest(
        claim=bench.claim.quoted(),
        question=bench.claim.words,
        guarantee=_guarantee(bench, method, level, bool(values.any())),
        assumptions=(
            independent(),
            "the collection of groups was fixed before looking at the outcomes",
            "large-sample approximation of the likelihood ratio by "
            + ("resampling" if tested.draws else "χ²"),
        ),
        provenance=provenance_of(bench.cells, seed),
        rows=_rows(bench, method, level, used, tested, intervals),
        metric=bench.claim.metric.words,
        against=bench.claim.target.words,
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
        region=region_of(tested.scores, method, bench.moments.binary),
    )


def _rows(
    bench: Bench,
    method: Likelihood | Euclidean,
    level: float,
    used: IntArray,
    tested: Outcome,
    intervals: bool,
) -> tuple[JointlyTested, ...]:
    chosen = set(used.tolist())
    none = [[None] * 4 for _ in range(len(bench.collection))]
    ends: Any = none
    if intervals and used.size:
        own, shadow = intervals_of(bench, method, tested, used, level)
        ends = np.stack([*own, *shadow], axis=1).tolist()
    made, notes = [], notes_of(bench.core, 0.0, bench.claim.metric)
    for i, fields in enumerate(group_fields(bench)):
        four = [None if x is None else finite(x) for x in (ends[i] if i in chosen else none[i])]
        note = "" if i in chosen else notes[i] or "not part of the test"
        made.append(
            JointlyTested(
                **fields,
                lower=four[0],
                upper=four[1],
                region_lower=four[2],
                region_upper=four[3],
                note=note,
            )
        )
    return tuple(made)


def _promise(level: float, moved: bool) -> str:
    null = "the disparities are those tested" if moved else "there is no disparity in any group"
    return f"If {null}, the test says otherwise with chance at most {level_text(1 - level)}"


def _guarantee(bench: Bench, method: Likelihood | Euclidean, level: float, moved: bool) -> str:
    null = "the disparities are those tested" if moved else "every disparity is zero"
    said = f"If {null}, the test says otherwise with chance {level_text(1 - level)}"
    known = isinstance(bench.target, Constant)
    plugged = isinstance(method, Likelihood) and method.target == "plug-in" and not known
    return f"{said}; {WRONG}, and this does not hold" if plugged else said
