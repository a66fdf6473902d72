"""`summarize`: how unequal the groups are, in one number that chance does not inflate.

The problem of a spread, which `compare` asks as well, is one metric over disjoint groups in the
form the mathematics takes.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Unpack

import numpy as np

from equipoise._codec import from_plain, to_plain
from equipoise._validate import (
    Rng,
    confidence,
    known_keywords,
    known_name,
    listing,
    modest,
    seed_of,
    short,
    whole,
)
from equipoise.audits._common import (
    Progress,
    RoleKeywords,
    TrailLike,
    as_source,
    drawn_units,
    finite,
    metric_and_groups,
    progress_bar,
    provenance_of,
)
from equipoise.audits._groups.problem import cell_moments, cluster_sums
from equipoise.cells import Cells, Collection, form_groups, gather
from equipoise.cells.groups import EveryLevel
from equipoise.cells.rows import pull_rows
from equipoise.cells.tally import Tallied, steady_cells
from equipoise.claims import Claim, Metric, overall
from equipoise.claims.claim import Gap
from equipoise.claims.groups import Dimension, Groups, GroupsLike, Intersections, Masks, as_groups
from equipoise.errors import ClaimError, OptionError
from equipoise.findings.summary import MeasuredSpread, SummarizedGroup, Summary, VarianceDetails
from equipoise.methods import spread
from equipoise.methods.inference.student import ClusterSums
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray, sparse_sums
from equipoise.methods.spread import Meta
from equipoise.methods.spread.sample import highest_z, mean_limits, needs_positive, one_sided_z
from equipoise.methods.targets import Constant, Moments
from equipoise.trail import Trail

# --- Groups that do not overlap: what a summary of the spread between groups is about ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Disjoint groups found in cells."""

    collection: Collection
    """The groups with their names."""
    group: IntArray
    """The group of each cell; -1 for cells in none."""
    absent: int
    """Combinations of levels to which no row belongs at all."""

    def __len__(self) -> int:
        return len(self.collection)

    def sums(self, x: FloatArray) -> FloatArray:
        """Sum cell values over every group."""
        inside = self.group >= 0
        return np.asarray(
            np.bincount(self.group[inside], weights=x[inside], minlength=len(self)),
            dtype=np.float64,
        )

    def places(self, kept: IntArray) -> IntArray:
        """Position of each cell's group among those kept, -1 for cells in none of them."""
        place = np.full(len(self) + 1, -1)
        place[kept] = np.arange(len(kept))
        # Cells in no group have the code -1, which points at the spare last entry.
        return place[self.group]


def disjoint(across: object) -> Groups:
    """A collection of disjoint groups as asked for; several attributes mean the cells of a cross.

    >>> disjoint(["race", "sex"]).dimensions()
    (Levels(column='race'), Levels(column='sex'))
    """
    given = from_plain(across) if isinstance(across, Mapping) else across
    groups = as_groups(given)
    if isinstance(given, Intersections) and len(given.attributes) > 1:
        names = [attribute.name for attribute in given.attributes]
        raise ClaimError(
            f"intersections({listing(names)}) has groups that overlap: {names[0]} alone, and "
            f"{names[0]} with {names[1]}. A spread needs groups that do not; pass "
            f"across=[{listing(names)}] for the cells of the cross, or across={names[0]!r}."
        )
    if not isinstance(groups, Intersections | Masks):
        kind = type(groups).__name__.lower()
        raise ClaimError(
            f"{kind} are groups that overlap, and a spread needs groups that do not. Pass an "
            "attribute such as across='race', several such as across=['race', 'sex'] for the cells "
            "of their cross, or binned(…) for ranges of a number."
        )
    return groups


def groups_in_words(groups: Groups) -> str:
    """What the groups are cut by.

    >>> groups_in_words(disjoint(["race", "sex"]))
    'race × sex'
    """
    if isinstance(groups, Masks):
        return "groups of your own"
    return " × ".join(dimension.name for dimension in groups.dimensions())


def find_partition(groups: Groups, cells: Cells) -> Partition:
    """The groups that have rows; for an attribute or a cross, the finest level only."""
    if isinstance(groups, Masks):
        return _masks(groups, cells)
    where = [_axis(cells, dimension) for dimension in groups.dimensions()]
    choices, inverse = np.unique(cells.index[:, where], axis=0, return_inverse=True)
    group = inverse.reshape(-1).astype(np.int64)
    views = tuple(EveryLevel(cells.axes[i]) for i in where)
    every = np.arange(len(cells))
    collection = Collection(
        groups=groups,
        views=views,
        choices=choices.astype(np.int64),
        sums=sparse_sums(group, every, len(choices), len(cells)),
    )
    possible = int(np.prod([float(view.size) for view in views]))
    return Partition(collection=collection, group=group, absent=possible - len(choices))


def _masks(groups: Masks, cells: Cells) -> Partition:
    where = [_axis(cells, condition) for condition in groups.conditions]
    member = cells.index[:, where] == 1
    both = np.flatnonzero(member.sum(axis=1) > 1)
    if both.size:
        names = [groups.conditions[i].name for i in np.flatnonzero(member[both[0]])]
        raise ClaimError(
            f"The groups {listing(names)} overlap: {round(float(cells.present[both].sum())):,} "
            "rows belong to more than one group. A spread needs groups that do not overlap."
        )
    group = np.where(member.any(axis=1), member.argmax(axis=1), -1).astype(np.int64)
    return Partition(collection=form_groups(groups, cells), group=group, absent=0)


def _axis(cells: Cells, dimension: Dimension) -> int:
    return next(i for i, axis in enumerate(cells.axes) if dimension in (axis.dimension, axis.asked))


# --- The problem of a spread: one metric over disjoint groups, in the form the mathematics takes


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadProblem:
    """One metric over disjoint groups, in the form the mathematics takes."""

    cells: Cells
    partition: Partition
    sample: spread.GroupSample
    published: spread.GroupSample
    """The same with groups of one row, which published intervals take in."""
    rows: Callable[[], tuple[FloatArray, FloatArray]]
    """Fetches the rows of the usable groups: values, and positions among the usable groups."""


def set_up_spread(
    trail: Trail | Tallied, metric: Metric, groups: Groups, level: float
) -> SpreadProblem:
    """Scan the rows once and form the groups; refuse what cannot be summarised."""
    asked = Gap(metric=metric, across=groups, target=overall())
    cells = steady_cells(*gather(trail, [asked]))
    partition = find_partition(groups, cells)
    if not cells.zero_one and not spread.varies(_group_moments(cells, partition), False).any():
        raise ClaimError(
            f"{metric.words.capitalize()} does not vary within any group, so nothing can be said "
            "about its sampling error. Choose a metric that varies from row to row."
        )
    published = sample = sample_of(cells, partition, level)
    _check_precision(partition, sample)
    rows = partial(_usable_rows, trail, metric, cells, partition, sample)
    if cells.zero_one and spread.Exclusion.SINGLE in sample.reasons:
        published = sample_of(cells, partition, level, least=1)
    return SpreadProblem(
        cells=cells, partition=partition, sample=sample, published=published, rows=rows
    )


#: Beyond this ratio of their precisions, floats cannot hold a sum over groups and its parts.
_MOST_PRECISE = 1e15


def _check_precision(partition: Partition, sample: spread.GroupSample) -> None:
    """Refuse groups one of which is known so much better that nothing is left of the others."""
    varied = np.flatnonzero(sample.spread > 0)
    if varied.size < 2:
        return
    precision = sample.size[varied] / sample.spread[varied]
    first, last = (varied[place] for place in (precision.argmax(), precision.argmin()))
    if precision.max() > _MOST_PRECISE * precision.min():
        labels = partition.collection.labels()
        one, other = (labels[sample.kept[place]] for place in (first, last))
        raise ClaimError(
            f"Group {one!r} ({int(sample.size[first]):,} rows) is known so much better than group "
            f"{other!r} ({int(sample.size[last]):,} rows) that numbers cannot hold both. Check the "
            "counts and weights, or leave one of the groups out."
        )


def sample_of(
    cells: Cells,
    partition: Partition,
    level: float,
    only: BoolArray | None = None,
    least: int = 2,
) -> spread.GroupSample:
    """The usable groups, or those among ``only``; an error names them when they are too few."""
    n = np.rint(partition.sums(cells.rows)).astype(np.int64)
    if len(n) < 2:
        raise ClaimError(
            f"There is one group only, {partition.collection.labels()[0]!r}: nothing to compare it "
            "with. Choose an attribute with two or more levels."
        )
    try:
        return spread.sample_from_groups(
            _group_moments(cells, partition, only),
            binary=cells.zero_one,
            clusters=_group_clusters(cells, partition, only),
            score=highest_z((1 - level) / 2, len(n)),
            least=least,
        )
    except ValueError as error:
        pairs = zip(partition.collection.labels(), n.tolist(), strict=True)
        sizes = ", ".join(f"{short(label)} {rows:,}" for label, rows in itertools.islice(pairs, 8))
        raise ClaimError(
            f"{str(error).capitalize()}. Rows on which {cells.metric.name!r} counts: {sizes}. "
            "Choose a coarser attribute."
        ) from error


def _group_moments(cells: Cells, partition: Partition, only: BoolArray | None = None) -> Moments:
    """The sums of each group; groups not among ``only`` are empty."""
    sums = cell_moments(cells)
    some = np.ones(len(partition)) if only is None else only.astype(np.float64)
    made = {f.name: some * partition.sums(getattr(sums, f.name)) for f in dataclasses.fields(sums)}
    if cells.zero_one:
        # Sums of weights may exceed their total by rounding alone.
        made["total"] = np.minimum(made["total"], made["weight"])
    if not cells.weighted:
        # one array, which says that counts are counts
        made["weight"] = made["rows"]
    return Moments(**made)


def _group_clusters(
    cells: Cells, partition: Partition, only: BoolArray | None = None
) -> ClusterSums | None:
    sums = cluster_sums(cells, Constant(value=0.0))
    if sums is None:
        return None
    place = partition.group
    if only is not None:
        place = np.where((place >= 0) & only[place], place, -1)
    return sums.moved(place, len(partition))


def quoted_claim(kind: str, metric: Metric, across: Groups | list[Groups]) -> dict[str, object]:
    """What was asked, in plain form, as a finding quotes it."""

    def plain(value: object) -> object:
        return to_plain(value, other=lambda v: f"a {type(v).__name__}")

    def attributes(groups: Groups) -> object:
        return plain(groups.attributes if isinstance(groups, Intersections) else groups)

    asked = [attributes(g) for g in across] if isinstance(across, list) else attributes(across)
    return {"kind": kind, "metric": plain(metric), "across": asked}


def _usable_rows(
    trail: Trail | Tallied,
    metric: Metric,
    cells: Cells,
    partition: Partition,
    sample: spread.GroupSample,
) -> tuple[FloatArray, FloatArray]:
    rows = pull_rows(trail, metric, cells)
    group = partition.places(sample.kept)[rows.cell]
    at = rows.one_by_one(np.flatnonzero(group >= 0))
    # Engines return rows in any order; the answer must not depend on it.
    at = at[np.lexsort((rows.value[at], group[at]))]
    return rows.value[at], group[at].astype(np.float64)


# --- The rows of a summary: mathematics put into the form of a finding ---

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
    evidence: spread.SpreadEvidence,
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
    notes = [] if found.outcome is spread.SpreadOutcome.ESTIMATED else [str(found.outcome)]
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
    unknown = ("value", "bias", "corrected", "corrected_raw", "lower", "upper", "p")
    return MeasuredSpread(measure=kind.value, note=note, **dict.fromkeys(unknown))


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
    means, worth = _group_values(cells, partition), _worth(cells, partition)
    for i, reason in zip(sample.excluded.tolist(), sample.reasons, strict=True):
        made[i] = SummarizedGroup(
            group=labels[i],
            where=wheres[i],
            n=n[i],
            size=worth[i],
            value=means[i],
            note=str(reason),
        )
    return tuple(made[i] for i in range(len(labels)))


def _worth(cells: Cells, partition: Partition) -> list[int]:
    """How many rows of equal weight each group's rows are worth, rounded down (Kish)."""
    weight, second = partition.sums(cells.weight), partition.sums(cells.weight2)
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.nan_to_num(weight**2 / second)
    # a ratio that should be whole may come out a hair below
    return [math.floor(rows + 1e-9 * rows) for rows in worth.tolist()]


def _group_values(cells: Cells, partition: Partition) -> list[float | None]:
    pairs = zip(partition.sums(cells.total), partition.sums(cells.weight), strict=True)
    return [float(total / weight) if weight > 0 else None for total, weight in pairs]


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
    **roles: Unpack[RoleKeywords],
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
    problem = set_up_spread(as_source(trail, roles), measured, groups, level)
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
        claim=quoted_claim("summary", measured, groups),
        question=f"how far apart the {measured.words} is across {groups_in_words(groups)}",
        guarantee=_guarantee(level),
        assumptions=_assumptions(problem, engine),
        provenance=provenance_of(problem.cells, seed.number),
        rows=tuple(rows),
        metric=measured.words,
        by=groups_in_words(groups),
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
    problem: SpreadProblem,
    draws: spread.Draws,
    evidence: spread.SpreadEvidence,
    rng: np.random.Generator,
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
    said = [f"{drawn_units(problem.cells)} are independent draws within each group"]
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
