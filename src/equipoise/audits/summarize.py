"""`summarize`: how unequal the groups are, in one number that chance does not inflate."""

import dataclasses
from collections.abc import Iterable
from typing import Unpack

import numpy as np

from equipoise._validate import Rng, confidence, known_keywords, modest, seed_of, whole
from equipoise.audits._common import (
    Progress,
    Roles,
    TrailLike,
    as_source,
    metric_and_groups,
    progress_bar,
    provenance_of,
    unit_of,
)
from equipoise.audits._spread import (
    SpreadProblem,
    as_measures,
    disjoint,
    measured_row,
    quoted,
    sd_row,
    set_up,
    summarized_groups,
    variance_details,
    words_of,
)
from equipoise.cells.tally import Tallied
from equipoise.claims import Claim, Metric
from equipoise.claims.groups import GroupsLike
from equipoise.findings.summary import Summary
from equipoise.methods import spread

#: Rows × resamples up to which rows of a real-valued metric are resampled one by one.
ROW_WORK = 50_000_000


@known_keywords
def summarize(
    trail: TrailLike | Tallied,
    metric: Metric | str | Claim,
    *,
    across: GroupsLike | None = None,
    measures: Iterable[str] | str | None = None,
    alpha: float = 2.0,
    level: float = 0.95,
    resamples: int = 1000,
    rng: Rng = None,
    progress: Progress = None,
    **roles: Unpack[Roles],
) -> Summary:
    """How far apart the groups are, corrected for what chance adds, with honest intervals.

    Parameters
    ----------
    trail, metric
        The audit trail, its counts, or a path or table as in `certify`; and what is measured on
        each row, or a claim that says that and the groups: ``gap("accuracy", across="race")``.
    across
        One attribute, or several for the cells of their cross: ``"race"``, ``["race", "sex"]``. Any
        other collection must consist of groups that do not overlap.
    measures
        Which of ``"difference"`` and ``"ratio"`` (highest against lowest group),
        ``"max_deviation"`` and ``"mean_deviation"`` (from the mean of the groups), ``"variance"``
        and ``"entropy"`` (generalized entropy index); all six if not given.
    alpha
        Order of the generalized entropy index; 0 and 1 are its limits.
    level
        Confidence level of each interval on its own.
    resamples
        Number of resamples.
    rng, progress
        As in `certify`.

    Examples
    --------
    >>> import equipoise as eq
    >>> found = eq.summarize(eq.datasets.compas(), eq.false_positive_rate, across="age", rng=7)
    >>> print(found.sentences()[1])
    That the groups differ is shown (p = 0.001 for no difference at all).
    """
    confidence(level)
    modest("alpha", alpha)
    whole("resamples", resamples, least=20)
    kinds = as_measures(measures)
    measured, asked = metric_and_groups(metric, across)
    groups, seed = disjoint(asked), seed_of(rng)
    problem = set_up(as_source(trail, roles), measured, groups, level)
    with progress_bar(progress, 2 + len(kinds), "summarize") as tell:
        first, second, third = np.random.default_rng(seed.sequence).spawn(3)
        engine, draws = _draws(problem, resamples, first)
        tell(1)
        evidence = spread.weigh(problem.sample, level=level, resamples=resamples, rng=second)
        report = _report(problem, draws, evidence, third)
        tell(2)
        rows = []
        for done, kind in enumerate(kinds, start=3):
            rows.append(measured_row(problem.sample, kind, draws, report, evidence, alpha))
            tell(done)
    return Summary(
        claim=quoted("summary", measured, groups),
        question=f"how far apart the {measured.words} is across {words_of(groups)}",
        guarantee=_guarantee(level),
        assumptions=_assumptions(problem, engine),
        provenance=provenance_of(problem.cells, seed.number),
        rows=tuple(rows),
        metric=measured.words,
        by=words_of(groups),
        share=problem.cells.zero_one,
        level=level,
        alpha=float(alpha),
        resamples=resamples,
        engine=engine,
        groups=summarized_groups(problem.cells, problem.partition, problem.sample, level),
        absent=problem.partition.absent,
        sd=None if report is None else sd_row(report),
        variance=None if report is None else variance_details(report),
    )


def _draws(
    problem: SpreadProblem, resamples: int, rng: np.random.Generator
) -> tuple[str, spread.Draws]:
    cells, sample = problem.cells, problem.sample
    plain = not cells.weighted and cells.clusters is None
    if not sample.binary and plain and cells.counted * resamples <= ROW_WORK:
        values, group = problem.rows()
        drawn = spread.row_draws(values, group.astype(np.int64), sample.groups, resamples, rng)
        return "rows", drawn
    engine = "binomial" if sample.binary else "moments"
    return engine, spread.bootstrap_draws(sample, resamples, rng)


def _report(
    problem: SpreadProblem, draws: spread.Draws, evidence: spread.Evidence, rng: np.random.Generator
) -> spread.VarianceReport | None:
    sample, published = problem.sample, problem.published
    if sample.frozen:
        return None
    report = spread.report_variance(
        sample, rng=rng, level=evidence.level, draws=draws, evidence=evidence
    )
    if published is sample:
        return report
    wider = spread.bootstrap_draws(published, draws.mean.shape[0], rng)
    ends = spread.published_intervals(published, wider, evidence.level)
    return dataclasses.replace(
        report,
        published=spread.sample_variance(published, unbiased=False),
        uncorrected=ends["uncorrected"],
        single_corrected=ends["single_corrected"],
        double_corrected=ends["double_corrected"],
    )


def _guarantee(level: float) -> str:
    return (
        f"pointwise: each interval on its own contains the true value with about "
        f"{100 * level:g} % confidence, or more, for the groups audited; where all groups are "
        f"equal, each contains that with about {50 + 50 * level:g} %"
    )


def _assumptions(problem: SpreadProblem, engine: str) -> tuple[str, ...]:
    clustered = problem.cells.clusters is not None
    said = [f"{unit_of(problem.cells)} are independent draws within each group"]
    if not problem.cells.zero_one:
        said.append("group means are close to normal")
    if problem.cells.weighted or clustered:
        cause = " and ".join(["weights"] * problem.cells.weighted + ["clusters"] * clustered)
        said.append(f"each group counts for as many plain rows as {cause} leave of it")
    if clustered:
        said.append("groups that share clusters are taken to vary apart from each other")
    if engine == "moments":
        said.append("resamples are drawn in their normal form, from totals")
    return tuple(said)
