"""The rows of a summary: mathematics put into the form of a finding."""

import math
from collections.abc import Iterable

import numpy as np

from equipoise._validate import known_name, listing
from equipoise.audits._fields import finite
from equipoise.audits._spread.partition import Partition
from equipoise.cells import Cells
from equipoise.errors import OptionError
from equipoise.findings.summary import MeasuredSpread, SummarizedGroup, VarianceDetails
from equipoise.methods import spread
from equipoise.methods.spread import Meta
from equipoise.methods.spread.limits import mean_limits, one_sided_z
from equipoise.methods.spread.metrics import needs_positive

MEASURES = {kind.name.lower(): kind for kind in Meta}


def as_measures(measures: Iterable[str] | str | None) -> list[Meta]:
    """The measures asked for, in a fixed order; the readable names are understood too."""
    if measures is None:
        return list(Meta)
    given = [measures] if isinstance(measures, str) else measures
    if not isinstance(given, Iterable):
        raise OptionError(f"measures must be names such as 'variance'; got {measures!r}.")
    readable = [kind.value for kind in Meta]
    wanted = [
        Meta(name)
        if name in readable
        else MEASURES[known_name("measure", name, dict.fromkeys([*MEASURES, *readable]))]
        for name in given
    ]
    if not wanted:
        raise OptionError(f"measures names nothing. There is: {listing(MEASURES)}.")
    return [kind for kind in Meta if kind in wanted]


def measured_row(
    sample: spread.GroupSample,
    kind: Meta,
    draws: spread.Draws,
    report: spread.VarianceReport | None,
    evidence: spread.Evidence,
    alpha: float,
) -> MeasuredSpread:
    """One measure with its bias, interval and p-value."""
    if needs_positive(kind) and np.any(sample.mean < 0):
        return _missing(kind, "needs group means that are not negative")
    if kind is Meta.VARIANCE and report is not None:
        return _variance_row(report)
    found = spread.summarize_spread(sample, kind, alpha=alpha, draws=draws, evidence=evidence)
    tail = evidence.tail
    # Without interpolation, so that infinite resamples stay what they are.
    plain = np.quantile(
        spread.meta_metric(kind, draws.mean, alpha=alpha),
        [tail, 1 - tail],
        method="inverted_cdf",
    )
    ends = found.interval
    open_end = ends is not None and not math.isfinite(ends.upper)
    notes = [] if found.outcome is spread.Outcome.ESTIMATED else [str(found.outcome)]
    return MeasuredSpread(
        measure=kind.value,
        value=finite(found.plugin),
        bias=found.bias,
        corrected=found.corrected,
        corrected_raw=found.corrected_raw,
        lower=None if ends is None else finite(ends.lower),
        upper=None if ends is None else finite(ends.upper),
        p=found.p_zero,
        plain_lower=finite(plain[0]),
        plain_upper=finite(plain[1]),
        note="; ".join([*notes, *(["no upper limit"] if open_end else [])]),
    )


def _missing(kind: Meta, note: str) -> MeasuredSpread:
    return MeasuredSpread(
        measure=kind.value,
        value=None,
        bias=None,
        corrected=None,
        corrected_raw=None,
        lower=None,
        upper=None,
        p=None,
        note=note,
    )


def _variance_row(report: spread.VarianceReport) -> MeasuredSpread:
    return MeasuredSpread(
        measure=Meta.VARIANCE.value,
        value=report.plugin,
        bias=report.bias,
        corrected=report.corrected,
        corrected_raw=report.corrected_raw,
        lower=report.interval.lower,
        upper=finite(report.interval.upper),
        p=report.p_zero,
        note="" if math.isfinite(report.interval.upper) else "no upper limit",
        plain_lower=report.uncorrected.lower,
        plain_upper=report.uncorrected.upper,
    )


def sd_row(report: spread.VarianceReport) -> MeasuredSpread:
    """The variance as a standard deviation, in the metric's own unit."""
    value = math.sqrt(report.plugin)
    raw = math.copysign(math.sqrt(abs(report.corrected_raw)), report.corrected_raw)
    return MeasuredSpread(
        measure="standard deviation",
        value=value,
        bias=value - raw,
        corrected=report.sd,
        corrected_raw=raw,
        lower=report.sd_interval.lower,
        upper=finite(report.sd_interval.upper),
        p=report.p_zero,
        plain_lower=math.sqrt(report.uncorrected.lower),
        plain_upper=math.sqrt(report.uncorrected.upper),
    )


def variance_details(report: spread.VarianceReport) -> VarianceDetails:
    """Every estimate and interval of the variance."""

    def ends(found: spread.Interval) -> tuple[float, float]:
        return found.lower, found.upper

    double = report.double_corrected
    return VarianceDetails(
        plugin=report.plugin,
        published=report.published,
        corrected=report.corrected,
        corrected_raw=report.corrected_raw,
        recommended=(report.interval.lower, finite(report.interval.upper)),
        p=report.p_zero,
        double_corrected=ends(double),
        double_corrected_raw=(double.raw_lower, double.raw_upper),
        single_corrected=ends(report.single_corrected),
        uncorrected=ends(report.uncorrected),
        centred=ends(report.centred),
        q_profile=ends(report.q_profile),
        dersimonian_laird=report.dersimonian_laird,
        paule_mandel=report.paule_mandel,
        restricted_likelihood=report.restricted_likelihood,
        chi_square=report.chi_square.statistic,
        chi_square_df=report.chi_square.df,
        chi_square_p=report.chi_square.p,
    )


def summarized_groups(
    cells: Cells, partition: Partition, sample: spread.GroupSample, level: float
) -> tuple[SummarizedGroup, ...]:
    """Every group with its own and its shrunken estimate, those left out included."""
    n = np.rint(partition.sums(cells.rows)).astype(np.int64).tolist()
    labels, wheres = partition.collection.labels(), partition.collection.wheres()
    low, high = mean_limits(sample, one_sided_z((1 - level) / 2))
    pulled = spread.shrink(sample, level=level)
    made: dict[int, SummarizedGroup] = {}
    for position, i in enumerate(sample.kept.tolist()):
        made[i] = SummarizedGroup(
            group=labels[i],
            where=wheres[i],
            n=n[i],
            size=int(sample.size[position]),
            value=float(sample.mean[position]),
            lower=finite(low[position]),
            upper=finite(high[position]),
            shrunken=float(pulled.value[position]),
            shrunken_lower=float(pulled.lower[position]),
            shrunken_upper=float(pulled.upper[position]),
            own=float(pulled.weight[position]),
        )
    means = _group_values(cells, partition)
    for i, reason in zip(sample.excluded.tolist(), sample.reasons, strict=True):
        made[i] = SummarizedGroup(
            group=labels[i],
            where=wheres[i],
            n=n[i],
            size=min(n[i], 1),
            value=means[i],
            note=str(reason),
        )
    return tuple(made[i] for i in range(len(labels)))


def _group_values(cells: Cells, partition: Partition) -> list[float | None]:
    pairs = zip(partition.sums(cells.total), partition.sums(cells.weight), strict=True)
    return [float(total / weight) if weight > 0 else None for total, weight in pairs]
