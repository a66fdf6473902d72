"""`joint_test`: whether every group's disparity could be zero at once."""

from typing import Any

import numpy as np
from scipy.special import chdtri

from equipoise._codec import to_plain
from equipoise._validate import fraction, known_keywords
from equipoise.audits._bench import Bench, group_fields, groups_only, set_up, status_note
from equipoise.audits._likelihood import WRONG
from equipoise.audits._provenance import provenance_of
from equipoise.audits._samples import influence, membership, null_scores, rows_of
from equipoise.audits.methods import Euclidean, Likelihood, as_method
from equipoise.cells.tallied import Tallied
from equipoise.claims import Claim, Ratio, as_claim
from equipoise.errors import OptionError
from equipoise.findings.joint_test import JointlyTested, JointTest
from equipoise.findings.words import level_text
from equipoise.methods import bootstrap, likelihood
from equipoise.methods.arrays import BoolArray, FloatArray, IntArray
from equipoise.trail import Trail

#: Rows × groups that a joint test writes out at most.
_LIMIT = 200_000_000


@known_keywords
def joint_test(
    trail: Trail | Tallied, claim: Claim, *, level: float = 0.95, method: Any = "likelihood"
) -> JointTest:
    """Test whether every group's disparity is zero, all groups together.

    Parameters
    ----------
    trail, claim
        The audit trail and the question; a gap, not a ratio.
    level
        Confidence of the verdict and of the joint region.
    method
        `Likelihood` or `Euclidean`, as a value or by name. Groups that overlap are allowed: the
        degrees of freedom count only disparities that do not follow from others.

    Examples
    --------
    >>> import equipoise as eq
    >>> claim = eq.gap(eq.false_positive_rate, across=eq.intersections("sex", "age"))
    >>> found = eq.joint_test(eq.datasets.compas(), claim)
    >>> found.verdict, found.tested, found.degrees
    ('disparity shown', 11, 5)
    """
    fraction("level", level)
    asked = as_claim(claim)
    chosen = as_method(method, (Likelihood, Euclidean), "joint_test")
    if isinstance(asked, Ratio):
        raise OptionError("A joint test is for gaps; a ratio of one is a gap of zero.")
    bench = set_up(trail, asked)
    groups_only(bench.collection, "joint_test")
    used = _tested(bench)
    if used.size * bench.cells.rows.size > _LIMIT:
        raise OptionError(f"A joint test of {used.size:,} groups is too large.")
    found, covariance = _run(bench, chosen, used)
    return _finding(bench, chosen, level, used, found, covariance)


def _tested(bench: Bench) -> IntArray:
    bad = (bootstrap.Status.EMPTY, bootstrap.Status.NO_TARGET, bootstrap.Status.IDENTICAL)
    return np.flatnonzero(~np.isin(bench.estimates.status, bad)).astype(np.int64)


def _run(
    bench: Bench, method: Likelihood | Euclidean, used: IntArray
) -> tuple[likelihood.JointRatio, FloatArray]:
    rows, member = rows_of(bench), membership(bench)[used]
    count = np.ones(rows.value.size) if rows.count is None else rows.count.astype(np.float64)
    if rows.value.size * used.size > _LIMIT:
        raise OptionError("Too many rows times groups for a joint test; audit fewer groups.")
    plugged = isinstance(method, Likelihood) and method.target == "plug-in"
    total = max(float(count.sum()), 1.0)
    around = _columns(
        rows, [influence(bench, rows, c, int(i)) for c, i in zip(member, used, strict=True)]
    )
    covariance = (around * count[:, None]).T @ around / total**2
    if (
        isinstance(method, Likelihood)
        and _known(bench)
        and not bool((member.sum(axis=0) > 1).any())
    ):
        return _disjoint(bench, rows, member, used, method.calibration == "auto"), covariance
    scores = [
        null_scores(bench, rows, c, int(i), plugged) for c, i in zip(member, used, strict=True)
    ]
    g = _columns(rows, scores)
    if isinstance(method, Euclidean):
        gap = bench.estimates.estimate[used]
        spread = ((g * count[:, None]).T @ g / total - np.outer(gap, gap)) / total
        return likelihood.joint_euclidean(gap, spread), covariance
    kept, adjusted = count > 0, method.calibration == "auto"
    return likelihood.joint_ratio(g[kept], count[kept], adjusted=adjusted), covariance


def _columns(rows: bootstrap.RowData, columns: list[FloatArray]) -> FloatArray:
    return np.stack(columns, axis=1) if columns else np.zeros((rows.value.size, 0))


def _known(bench: Bench) -> bool:
    return isinstance(bench.target, bootstrap.Constant)


def _disjoint(
    bench: Bench,
    rows: bootstrap.RowData,
    member: BoolArray,
    used: IntArray,
    adjusted: bool,
) -> likelihood.JointRatio:
    """Groups that share no row, against a known target: each is a problem of its own."""
    group = np.where(member.any(axis=0), member.argmax(axis=0), -1)[rows.cell]
    keep = (group >= 0) & ((rows.count if rows.count is not None else 1) > 0)
    order = np.flatnonzero(keep)[np.argsort(group[keep], kind="stable")]
    start = np.searchsorted(group[order], np.arange(used.size)).astype(np.int64)
    groups = likelihood.Segments(
        value=rows.value[order],
        start=start,
        count=None if rows.count is None else rows.count[order].astype(np.float64),
    )
    adjust = likelihood.adjustment(groups) if adjusted else None
    return likelihood.joint_disjoint(groups, bench.estimates.target[used], adjust)


def _finding(
    bench: Bench,
    method: Likelihood | Euclidean,
    level: float,
    used: IntArray,
    found: likelihood.JointRatio,
    covariance: FloatArray,
) -> JointTest:
    plugged = isinstance(method, Likelihood) and method.target == "plug-in" and not _known(bench)
    tested = set(used.tolist())
    said = (
        f"If every disparity is zero, the test says otherwise with chance {level_text(1 - level)}"
    )
    return JointTest(
        claim=bench.claim.quoted(),
        question=bench.claim.words,
        guarantee=f"{said}; {WRONG}, and this does not hold" if plugged else said,
        assumptions=(
            "rows are independent draws from the population audited",
            "the collection of groups was fixed before looking at the outcomes",
            "large-sample approximation of the likelihood ratio by χ²",
        ),
        provenance=provenance_of(bench.cells, None),
        rows=tuple(
            JointlyTested(**fields, note="" if i in tested else status_note(bench, i) or "no data")
            for i, fields in enumerate(group_fields(bench))
        ),
        metric=bench.claim.metric.words,
        against=bench.claim.target.words,
        level=level,
        statistic=float(min(found.statistic, 1e300)),
        degrees=found.rank,
        tested=int(used.size),
        p=found.p,
        rejected=bool(found.p < 1 - level),
        method=to_plain(method),
        covariance=tuple(map(tuple, covariance.tolist())),
        critical=float(chdtri(max(found.rank, 1), 1 - level)),
    )
