"""`summarize`: how unequal the groups are, in one number that chance does not inflate."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from equipoise._rng import Rng, seed_of
from equipoise._validate import fraction, known_keywords, modest, whole
from equipoise.audits._fields import provenance_of, unit_of
from equipoise.audits._progress import Progress, progress_bar
from equipoise.audits._spread.bench import Bench, quoted, set_up
from equipoise.audits._spread.partition import disjoint, words_of
from equipoise.audits._spread.rows import (
    as_measures,
    measured_row,
    sd_row,
    summarized_groups,
    variance_details,
)
from equipoise.cells.tallied import Tallied
from equipoise.claims import Metric
from equipoise.claims.metric import as_metric
from equipoise.findings.summary import Summary
from equipoise.methods import spread
from equipoise.trail import Trail

#: Rows × resamples up to which rows of a real-valued metric are resampled one by one.
ROW_WORK = 50_000_000


@known_keywords
def summarize(
    trail: Trail | Tallied,
    metric: Metric | str,
    *,
    across: Any,
    measures: Iterable[str] | str | None = None,
    alpha: float = 2.0,
    level: float = 0.95,
    resamples: int = 1000,
    rng: Rng = None,
    progress: Progress = None,
) -> Summary:
    """How far apart the groups are, corrected for what chance adds, with honest intervals.

    Parameters
    ----------
    trail, metric
        The audit trail, and what is measured on each row.
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
    fraction("level", level)
    modest("alpha", alpha)
    whole("resamples", resamples, least=20)
    kinds = as_measures(measures)
    groups, measured = disjoint(across), as_metric(metric)
    seed = seed_of(rng)
    bench = set_up(trail, measured, groups, level)
    with progress_bar(progress, 2 + len(kinds), "summarize") as tell:
        first, second, third = np.random.default_rng(seed.sequence).spawn(3)
        engine, draws = _draws(bench, resamples, first)
        tell(1)
        evidence = spread.weigh(bench.sample, level=level, resamples=resamples, rng=second)
        report = _report(bench, draws, evidence, third)
        tell(2)
        rows = []
        for done, kind in enumerate(kinds, start=3):
            rows.append(measured_row(bench.sample, kind, draws, report, evidence, alpha))
            tell(done)
    return Summary(
        claim=quoted("summary", measured, groups),
        question=f"how far apart the {measured.words} is across {words_of(groups)}",
        guarantee=_guarantee(level),
        assumptions=_assumptions(bench, engine),
        provenance=provenance_of(bench.cells, seed.number),
        rows=tuple(rows),
        metric=measured.words,
        by=words_of(groups),
        share=bench.cells.zero_one,
        level=level,
        alpha=float(alpha),
        resamples=resamples,
        engine=engine,
        groups=summarized_groups(bench.cells, bench.partition, bench.sample, level),
        absent=bench.partition.absent,
        sd=None if report is None else sd_row(report),
        variance=None if report is None else variance_details(report),
    )


def _draws(bench: Bench, resamples: int, rng: np.random.Generator) -> tuple[str, spread.Draws]:
    cells, sample = bench.cells, bench.sample
    plain = not cells.weighted and cells.clusters is None
    if not sample.binary and plain and cells.counted * resamples <= ROW_WORK:
        values, group = bench.rows()
        drawn = spread.row_draws(values, group.astype(np.int64), sample.groups, resamples, rng)
        return "rows", drawn
    engine = "binomial" if sample.binary else "moments"
    return engine, spread.bootstrap_draws(sample, resamples, rng)


def _report(
    bench: Bench, draws: spread.Draws, evidence: spread.Evidence, rng: np.random.Generator
) -> spread.VarianceReport | None:
    sample, published = bench.sample, bench.published
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


def _assumptions(bench: Bench, engine: str) -> tuple[str, ...]:
    clustered = bench.cells.clusters is not None
    said = [f"{unit_of(bench.cells)} are independent draws within each group"]
    if not bench.cells.zero_one:
        said.append("group means are close to normal")
    if bench.cells.weighted or clustered:
        cause = " and ".join(["weights"] * bench.cells.weighted + ["clusters"] * clustered)
        said.append(f"each group counts for as many plain rows as {cause} leave of it")
    if clustered:
        said.append("groups that share clusters are taken to vary apart from each other")
    if engine == "moments":
        said.append("resamples are drawn in their normal form, from totals")
    return tuple(said)
