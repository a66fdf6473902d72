"""`compare`: whether one spread between groups is larger than another."""

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Unpack, cast

import narwhals as nw
import numpy as np

from equipoise._validate import Rng, confidence, known_keywords, listing, modest, seed_of, whole
from equipoise.audits._common import (
    Progress,
    RoleKeywords,
    TrailLike,
    as_source,
    drawn_units,
    finite,
    independent,
    metric_and_groups,
    progress_bar,
    provenance_of,
)
from equipoise.audits._groups.problem import cell_moments, cluster_sums
from equipoise.audits.summarize import (
    Partition,
    as_measures,
    disjoint,
    find_partition,
    groups_in_words,
    quoted_claim,
    sample_of,
)
from equipoise.cells import Cells, gather
from equipoise.cells.query import Query, by_size, counted_value, numbers
from equipoise.cells.rows import RowTable, row_table
from equipoise.cells.tally import Tallied, rows_behind, steady_cells
from equipoise.claims import Claim, Metric, overall
from equipoise.claims.claim import Gap
from equipoise.claims.groups import Groups, GroupsLike, Intersections, Levels
from equipoise.claims.measure import Measure
from equipoise.errors import ClaimError, OptionError
from equipoise.findings.summary import ComparedSide, ComparedSpread, Comparison
from equipoise.methods import spread
from equipoise.methods.measures import SIDES, Area, Macro, OfTable, Quotient
from equipoise.methods.numerics import AnyArray, BoolArray, FloatArray, IntArray
from equipoise.methods.spread import Meta
from equipoise.methods.spread.sample import highest_z, needs_positive
from equipoise.methods.targets import Constant
from equipoise.trail import Trail
from equipoise.trail.engine import fetch
from equipoise.trail.trail import check_roles, positive_values

# --- Two or more models on the same rows: their joint outcomes, or their rows, pair by pair ---

Contrasts = dict[tuple[int, int], spread.Contrast]
#: Cells, groups of every side, rows per group and side, and the contrast of each pair.
Joint = tuple[Cells, list[Partition], list[list[int]], Contrasts]


@dataclasses.dataclass(frozen=True, slots=True)
class Resampling:
    """How to resample."""

    level: float
    resamples: int
    rng: np.random.Generator


def joint_outcomes(
    trails: list[Trail], metric: Metric, groups: Groups, role: str, options: Resampling
) -> Joint:
    """Compare by the joint outcomes of all models, for metrics of label and prediction."""
    columns = list(dict.fromkeys(trail.roles.column(role) for trail in trails))
    others = [trails[0].roles.column(name) for name in metric.names() if name != role]
    fixed = Intersections(attributes=tuple(Levels(column) for column in (*others, *columns)))
    claims = [Gap(metric=metric, across=across, target=overall()) for across in (groups, fixed)]
    cells = [gather(trail, claims)[0] for trail in trails]
    partition = find_partition(groups, cells[0])
    outcomes = find_partition(fixed, cells[0])
    rows = [sizes(partition, c.rows) for c in cells]
    for one in cells:
        checked(one, partition, options.level)
    count = np.zeros((len(partition), len(outcomes)), dtype=np.int64)
    np.add.at(count, (partition.group, outcomes.group), np.rint(cells[0].present).astype(np.int64))
    # A joint outcome fixes label and predictions, so it counts for a model either always or never.
    eligible = np.stack([outcomes.sums(c.rows) > 0 for c in cells], axis=1)
    values = np.stack([_means(outcomes, c, eligible[:, m]) for m, c in enumerate(cells)], axis=1)
    contrasts = _usable(
        lambda: spread.compare_models(
            count,
            values,
            binary=cells[0].zero_one,
            rng=options.rng,
            eligible=eligible,
            level=options.level,
            resamples=options.resamples,
        )
    )
    return cells[0], [partition] * len(trails), rows, contrasts


def joint_rows(
    trails: list[Trail], metric: Metric, groups: Groups, role: str, options: Resampling
) -> Joint:
    """Compare on the rows themselves: other metrics, weights, clusters."""
    cells = [gather(t, [Gap(metric=metric, across=groups, target=overall())])[0] for t in trails]
    partition = find_partition(groups, cells[0])
    rows, group = _paired_rows(trails, metric, cells[0], partition)
    binary = all(c.zero_one for c in cells)
    plain = rows.weight is None and rows.cluster is None and np.isfinite(rows.matrix).all()
    if plain:
        contrasts = _usable(
            lambda: spread.compare_model_rows(
                rows.matrix,
                group,
                len(partition),
                binary=binary,
                rng=options.rng,
                level=options.level,
                resamples=options.resamples,
            )
        )
    else:
        contrasts = _usable(lambda: _moved(cells, partition, rows, group, options))
    size = [
        np.bincount(group[np.isfinite(value)], minlength=len(partition)).tolist()
        for value in rows.matrix.T
    ]
    return cells[0], [partition] * len(trails), size, contrasts


def _moved(
    cells: list[Cells],
    partition: Partition,
    rows: RowTable,
    group: IntArray,
    options: Resampling,
) -> Contrasts:
    """Contrasts from how the means of all models move together."""
    kept = _for_all([sample_of(c, partition, options.level) for c in cells], len(partition))
    samples = [sample_of(c, partition, options.level, kept) for c in cells]
    place = np.full(len(partition), -1)
    place[kept] = np.arange(int(kept.sum()))
    sides = []
    for model, value in enumerate(rows.matrix.T):
        there = np.flatnonzero(np.isfinite(value) & (place[group] >= 0))
        at = place[group[there]] + model * int(kept.sum())
        sides.append(_side_rows(rows, there, at, value[there]))
    return _by_rows(samples, sides, options)


def _for_all(samples: list[spread.GroupSample], groups: int) -> BoolArray:
    """The groups that are usable for every side, on which all of them are judged."""
    kept = np.ones(groups, dtype=bool)
    for sample in samples:
        kept &= np.isin(np.arange(groups), sample.kept)
    return kept


#: Unit, place of the mean among those of all sides, weight and weighted value of each row.
_SideRows = tuple[IntArray, IntArray, FloatArray, FloatArray]


def _side_rows(rows: RowTable, there: IntArray, place: IntArray, value: FloatArray) -> _SideRows:
    weight = rows.weights[there]
    unit = there if rows.cluster is None else rows.cluster[there]
    return unit, place, weight, weight * value


def _by_rows(
    samples: list[spread.GroupSample], sides: list[_SideRows], options: Resampling
) -> Contrasts:
    """Contrasts where the rows of all sides say how their means move together."""
    unit, at, weight, total = (np.concatenate(column) for column in zip(*sides, strict=True))
    number = sum(sample.groups for sample in samples)
    together = spread.unit_covariance(unit, at, weight, total, number)
    return _moving(samples, together, options)


def _moving(
    samples: list[spread.GroupSample], together: FloatArray, options: Resampling
) -> Contrasts:
    return spread.compare_moved(
        samples, together, rng=options.rng, level=options.level, resamples=options.resamples
    )


def _paired_rows(
    trails: list[Trail], metric: Metric, cells: Cells, partition: Partition
) -> tuple[RowTable, IntArray]:
    """The metric of every model, NaN where it does not count, on rows where any of them does.

    The matrix has a column for each model; beside it stands the group of each row.
    """
    read = {f"model{m}": counted_value(one, metric) for m, one in enumerate(trails)}
    rows = _every_row(trails[0], cells, read)
    values = np.stack([numbers(rows.columns[f"model{m}"]) for m in range(len(trails))], axis=1)
    group = partition.group[rows.cell]
    known: BoolArray = np.isfinite(values)
    used = (group >= 0) & known.any(axis=1)
    if rows.weight is None and rows.cluster is None and not _selects(metric):
        # paired rows must count for every model
        used &= known.all(axis=1)
    chosen = _in_order(rows, used, [group, *values.T])
    return dataclasses.replace(rows, matrix=values).part(chosen), group[chosen]


def _every_row(trail: Trail, cells: Cells, read: Mapping[str, nw.Expr]) -> RowTable:
    """What is read of each row, beside its cell and what it counts for."""
    cluster = trail.roles.cluster
    further = {**read, **({} if cluster is None else {"cluster": trail.key(cluster)})}
    query = Query(trail, tuple(axis.dimension for axis in cells.axes), (EVERY_ROW,))
    return row_table(fetch(query.rows(further), trail.source), further, cells, by_size)


def _in_order(rows: RowTable, used: BoolArray, columns: Sequence[AnyArray]) -> IntArray:
    """Rows that are used, one by one, sorted: engines return them in any order."""
    at = rows.one_by_one(
        np.flatnonzero(used if rows.cluster is None else used & (rows.cluster >= 0))
    )
    keys = [column[at] for column in (*columns, rows.weight, rows.cluster) if column is not None]
    chosen: IntArray = at[np.lexsort(keys[::-1])]
    return chosen


# --- Measures that are no means: their pseudo-values are compared in their place ---


def measured_sides(
    trails: list[Trail], metric: Metric, asked: list[Groups], options: Resampling, *, alike: bool
) -> Joint:
    """Contrasts of a measure between attributes, or between models whose groups are ``alike``."""
    measure = cast(Measure, metric.measure)
    if measure.name in ("quantile", "standardised", "expected_calibration_error"):
        # the last is larger in small groups by noise alone, which would pass for a spread
        raise OptionError(
            f"compare knows no {metric.words}; certify, flag, describe and joint_test do."
        )
    plain = dataclasses.replace(metric, measure=None, low=None, high=None)
    distinct = list(dict.fromkeys(asked))
    cells = gather(
        trails[0], [Gap(metric=plain, across=groups, target=overall()) for groups in distinct]
    )[0]
    partitions = [find_partition(groups, cells) for groups in asked]
    rows, parts = _measured_rows(trails, metric, cells)
    sides = []
    for partition, read in zip(partitions, parts, strict=True):
        there = np.flatnonzero(np.isfinite(read).all(axis=1) & (partition.group[rows.cell] >= 0))
        kinds = _kinds_of(measure, read[there])
        group = partition.group[rows.cell[there]].astype(np.int64)
        made = spread.pseudo_values(kinds, rows.weights[there], group, len(partition))
        sides.append(_Side(there, group, made.value, made.few, len(partition)))
    kept = [np.ones(side.groups, dtype=bool) for side in sides]
    samples = [side.sample(rows, k, options.level) for side, k in zip(sides, kept, strict=True)]
    if alike:
        both = _for_all(samples, sides[0].groups)
        samples = [side.sample(rows, both, options.level) for side in sides]
    read_of, number = [], 0
    for side, sample in zip(sides, samples, strict=True):
        place = np.full(side.groups, -1)
        place[sample.kept] = number + np.arange(sample.groups)
        number += sample.groups
        here = place[side.group] >= 0
        at = place[side.group[here]]
        read_of.append(_side_rows(rows, side.rows[here], at, side.value[here]))
    contrasts = _usable(lambda: _by_rows(samples, read_of, options))
    size = [np.bincount(side.group, minlength=side.groups).tolist() for side in sides]
    return cells, partitions, size, contrasts


@dataclasses.dataclass(frozen=True, slots=True)
class _Side:
    """The rows that count for one attribute or model, with their pseudo-values."""

    rows: IntArray
    group: IntArray
    value: FloatArray
    few: IntArray
    groups: int

    def sample(self, rows: RowTable, only: BoolArray, level: float) -> spread.GroupSample:
        """The groups that are usable, among ``only``."""
        here = only[self.group] & np.isfinite(self.value)
        value, group, chosen = self.value[here], self.group[here], self.rows[here]
        weight = None if rows.weight is None else rows.weights[chosen]
        clusters = None
        if rows.cluster is not None:
            clusters = spread.row_clusters(
                value, rows.weights[chosen], group, rows.cluster[chosen], self.groups
            )
        try:
            made = spread.sample_from_groups(
                spread.row_moments(value, weight, group, self.groups),
                binary=False,
                clusters=clusters,
                score=highest_z((1 - level) / 2, self.groups),
            )
        except ValueError as error:
            raise ClaimError(
                f"{str(error).capitalize()}, or too few of some kind for the measure. Choose a "
                "coarser attribute."
            ) from error
        reasons = tuple(
            spread.Exclusion.FEW_OF_A_KIND if place in self.few else reason
            for place, reason in zip(made.excluded.tolist(), made.reasons, strict=True)
        )
        return dataclasses.replace(made, reasons=reasons)


def _measured_rows(
    trails: list[Trail], metric: Metric, cells: Cells
) -> tuple[RowTable, list[FloatArray]]:
    """Rows one by one, and what the measure reads of each for every side."""
    measure = cast(Measure, metric.measure)
    plain = dataclasses.replace(metric, measure=None, low=None, high=None)
    asked = [dataclasses.replace(plain, value=text) for text in _reads(measure)]
    asked_of = {
        f"side{side}_{i}": trail.key(trail.roles.column(str(part.value)))
        if measure.classes
        else counted_value(trail, part)
        for side, trail in enumerate(trails)
        for i, part in enumerate(asked)
    }
    rows = _every_row(trails[0], cells, asked_of)
    read = {name: rows.columns[name] for name in asked_of}
    values = _class_codes(read) if measure.classes else {n: numbers(x) for n, x in read.items()}
    parts = [
        np.stack([values[f"side{side}_{i}"] for i in range(len(asked))], axis=1)
        for side in range(len(trails))
    ]
    used = np.asarray(np.isfinite(np.concatenate(parts, axis=1)).any(axis=1))
    chosen = _in_order(rows, used, [rows.cell, *(x for part in parts for x in part.T)])
    return rows.part(chosen), [part[chosen] for part in parts]


def _reads(measure: Measure) -> tuple[str, ...]:
    """Formulas of what a measure reads of a row."""
    if measure.classes:
        return "label", "prediction"
    if measure.name in ("auc", "gini"):
        return "label + 0 * score", "score + 0 * label"
    if measure.name == "actual_expected":
        return measure.formulas()[:2]
    return "label + 0 * prediction", "prediction + 0 * label"


def _class_codes(columns: Mapping[str, AnyArray]) -> dict[str, FloatArray]:
    """Classes of labels and predictions by number, NaN where there is none."""
    known = sorted({str(x) for column in columns.values() for x in column if _is_class(x)})
    place = {name: float(i) for i, name in enumerate(known)}
    return {
        name: np.array([place[str(x)] if _is_class(x) else np.nan for x in column.tolist()])
        for name, column in columns.items()
    }


def _is_class(x: object) -> bool:
    return x is not None and x == x


def _kinds_of(measure: Measure, read: FloatArray) -> spread.Kinds:
    """Kind and numbers of each row, for a measure."""
    one, two = read.T
    count = np.ones((len(read), 1))
    if measure.name in ("auc", "gini"):
        places, place = np.unique(two, return_inverse=True)
        number = len(places)
        return spread.Kinds(
            measure=Area(gini=measure.name == "gini"),
            kind=place.reshape(-1) + number * (one > 0),
            side=np.repeat([0, 1], number),
            order=np.tile(np.arange(number), 2),
            numbers=count,
        )
    if measure.classes:
        classes = int(read.max(initial=0)) + 1
        label, said = np.divmod(np.arange(classes**2), classes)
        return spread.Kinds(
            measure=Macro(name=measure.name, classes=classes),
            kind=(classes * one + two).astype(np.int64),
            side=said if measure.name == "macro_precision" else label,
            order=np.zeros(classes**2, dtype=np.int64),
            numbers=count,
        )
    if measure.name == "actual_expected":
        none = np.zeros(1, dtype=np.int64)
        return spread.Kinds(
            measure=Quotient(), kind=np.zeros(len(read), dtype=np.int64), side=none, order=none,
            numbers=read,
        )  # fmt: skip
    return spread.Kinds(
        measure=OfTable(name=measure.name),
        kind=(2 * one + two).astype(np.int64),
        side=np.array(SIDES[measure.name]),
        order=np.zeros(4, dtype=np.int64),
        numbers=count,
    )


EVERY_ROW = Metric(name="every row", value="1")


def _selects(metric: Metric) -> bool:
    """Whether the rows on which a metric counts depend on the model."""
    where = metric.where if isinstance(metric.where, str) else ""
    return bool(re.search(r"\b(prediction|score)\b", where))


def model_role(metric: Metric) -> str:
    """The role that a model's column plays in a metric."""
    roles = [role for role in ("prediction", "score") if role in metric.names()]
    if len(roles) != 1:
        raise ClaimError(
            f"Models are compared by a metric that reads either the prediction or the score; "
            f"{metric.name!r} reads {listing(metric.names())}."
        )
    return roles[0]


def with_model(trail: Trail, role: str, column: str, models: dict[str, str]) -> Trail:
    """The trail as it would be read with this model's column."""
    roles = dataclasses.replace(trail.roles, **{role: column})
    check_roles(roles, trail.schema)
    extra = [name for _, name in trail.roles] + list(models.values())
    return dataclasses.replace(
        trail,
        roles=roles,
        attributes=tuple(dict.fromkeys([*trail.attributes, *extra])),
        positive=positive_values(dict(trail.positive), roles, trail.schema),
    )


def checked(cells: Cells, partition: Partition, level: float) -> spread.GroupSample:
    """The usable groups of a partition, which must cover every row."""
    if np.any(partition.group < 0):
        raise ClaimError("compare needs groups that cover every row; some rows belong to none.")
    return sample_of(cells, partition, level)


def _usable(compared: Callable[[], Contrasts]) -> Contrasts:
    try:
        found = compared()
    except ValueError as error:
        raise ClaimError(f"{str(error).capitalize()}. Choose a coarser attribute.") from error
    if all(c.first_sample.frozen and c.second_sample.frozen for c in found.values()):
        raise ClaimError("The metric does not vary for any model, so no spread can be compared.")
    return found


def sizes(partition: Partition, rows: FloatArray) -> list[int]:
    """Rows per group."""
    rounded: list[int] = np.rint(partition.sums(rows)).astype(int).tolist()
    return rounded


def _means(outcomes: Partition, cells: Cells, eligible: BoolArray) -> FloatArray:
    rows = outcomes.sums(cells.rows)
    mean = np.zeros_like(rows)
    np.divide(outcomes.sums(cells.total), rows, out=mean, where=eligible)
    return mean


# --- `compare`: whether one spread between groups is larger than another ---


@known_keywords
def compare(
    trail: TrailLike | Tallied,
    metric: Metric | str | Claim,
    *,
    across: GroupsLike | Sequence[GroupsLike] | None = None,
    models: Mapping[str, str] | None = None,
    measures: Iterable[str] | str | None = "variance",
    alpha: float = 2.0,
    level: float = 0.95,
    resamples: int = 1000,
    rng: Rng = None,
    progress: Progress = None,
    **roles: Unpack[RoleKeywords],
) -> Comparison:
    """Whether groups are further apart by one attribute than by another, or for one model.

    The same resampled rows enter every variance, so what they share cancels. The other measures are
    compared by their own intervals, which holds whatever they share.

    Parameters
    ----------
    trail, metric
        The audit trail, its counts, or a path or table as in `certify`; and what is measured on
        each row, or of a group as a whole, as `equipoise.auc` is. With ``models`` a claim will do,
        which says that and the groups.
    across
        Without ``models``: two or more attributes, as ``["race", "age"]``; an entry that is itself
        a list means the cells of a cross. With ``models``: the groups, as in `summarize`.
    models
        Two or more models on the same rows: a name for each, and its prediction column (or score
        column, if the metric reads a score).
    measures, alpha
        What to compare, as in `summarize`: ``"variance"`` unless others are named; None means all.
    level
        Confidence level of each interval on its own.
    resamples
        Number of joint resamples.
    rng, progress
        As in `certify`.

    Examples
    --------
    >>> import equipoise as eq
    >>> found = eq.compare(
    ...     eq.datasets.compas(), eq.false_positive_rate, across=["race", "sex"], rng=7
    ... )
    >>> found.rows[0].first, found.rows[0].second, found.rows[0].lower < found.rows[0].upper
    ('race', 'sex', True)
    """
    confidence(level)
    modest("alpha", alpha)
    whole("resamples", resamples, least=20)
    kinds = as_measures(measures)
    measured, between = metric_and_groups(metric, across, measures=True)
    if isinstance(metric, Claim) and models is None:
        raise OptionError(
            "Without models=, say which attributes to compare: across=['race', 'sex']."
        )
    seed, source = seed_of(rng), as_source(trail, roles)
    if models is not None:
        # another model's column is not among the counts
        source = rows_behind(source)
    with progress_bar(progress, 1, "compare") as tell:
        stream, others = np.random.default_rng(seed.sequence).spawn(2)
        options = Resampling(level, resamples, stream)
        if models is None:
            asked = _attributes(between)
            made = _by_attribute(source, measured, asked, options)
            claim = quoted_claim("comparison", measured, asked)
        else:
            groups = disjoint(between)
            columns = _models(models)
            made = _by_model(rows_behind(source), measured, groups, columns, options)
            claim = {**quoted_claim("comparison", measured, groups), "models": columns}
        rows = _rows(made, kinds, alpha, Resampling(level, resamples, others))
        tell(1)
    return Comparison(
        claim=claim,
        question=f"where groups are further apart in {measured.words}: {' or '.join(made.names)}",
        guarantee=f"pointwise: each interval on its own, with about {100 * level:g} % confidence",
        assumptions=made.assumptions,
        provenance=provenance_of(made.cells, seed.number),
        rows=rows,
        metric=measured.words,
        by=made.by,
        between="attributes" if models is None else "models",
        share=made.cells.zero_one and measured.measure is None,
        level=level,
        resamples=resamples,
        sides=_sides(made),
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """What was compared, before it is put in words."""

    names: list[str]
    by: str
    cells: Cells
    partitions: list[Partition]
    rows: list[list[int]]
    """Rows per group that count, for every attribute or model."""
    contrasts: Contrasts
    assumptions: tuple[str, ...]


def _by_attribute(
    trail: Trail | Tallied, metric: Metric, asked: list[Groups], options: Resampling
) -> _Made:
    if metric.measure is not None:
        trails = [rows_behind(trail)] * len(asked)
        found, groups, rows, contrasts = measured_sides(trails, metric, asked, options, alike=False)
        names = [groups_in_words(groups) for groups in asked]
        return _Made(
            names=names, by=" and ".join(names), cells=found, partitions=groups, rows=rows,
            contrasts=contrasts, assumptions=(independent(drawn_units(found)),),
        )  # fmt: skip
    claims = [Gap(metric=metric, across=g, target=overall()) for g in asked]
    cells = steady_cells(gather(trail, claims)[0])
    partitions = [find_partition(groups, cells) for groups in asked]
    samples = [checked(cells, partition, options.level) for partition in partitions]
    if all(sample.frozen for sample in samples):
        raise ClaimError(f"The {metric.words} does not vary, so no spread can be compared.")
    names = [groups_in_words(groups) for groups in asked]
    if cells.weighted or cells.clusters is not None:
        contrasts = _moving(samples, _together(cells, partitions, samples), options)
    else:
        contrasts = _resampled(cells, partitions, options)
    return _Made(
        names=names,
        by=" and ".join(names),
        cells=cells,
        partitions=partitions,
        rows=[sizes(p, cells.rows) for p in partitions],
        contrasts=contrasts,
        assumptions=(independent(drawn_units(cells)),),
    )


def _resampled(cells: Cells, partitions: list[Partition], options: Resampling) -> Contrasts:
    """Contrasts from rows resampled as counts of cells."""
    n = np.rint(cells.rows).astype(np.int64)
    pairs = [(i, j) for i in range(len(partitions)) for j in range(i + 1, len(partitions))]
    return {
        (i, j): spread.compare_attributes(
            n,
            cells.total,
            cells.square,
            partitions[i].group,
            partitions[j].group,
            binary=cells.zero_one,
            rng=stream,
            level=options.level,
            resamples=options.resamples,
        )
        for (i, j), stream in zip(pairs, options.rng.spawn(len(pairs)), strict=True)
    }


def _together(
    cells: Cells, partitions: list[Partition], samples: list[spread.GroupSample]
) -> FloatArray:
    """How the group means of all attributes move together."""
    places, number = [], 0
    for partition, sample in zip(partitions, samples, strict=True):
        place = partition.places(sample.kept)
        places.append(np.where(place >= 0, place + number, -1))
        number += sample.groups
    clusters = cluster_sums(cells, Constant(value=0.0))
    if clusters is None:
        return spread.cell_covariance(cell_moments(cells), tuple(places), number)
    at = np.concatenate([place[clusters.cell] for place in places])
    there = at >= 0
    unit = np.tile(clusters.cluster, len(places))[there]
    weight, total = (np.tile(x, len(places))[there] for x in (clusters.weight, clusters.total))
    return spread.unit_covariance(unit, at[there], weight, total, number)


def _by_model(
    trail: Trail, metric: Metric, groups: Groups, models: dict[str, str], options: Resampling
) -> _Made:
    role = model_role(metric)
    trails = [with_model(trail, role, column, models) for column in models.values()]
    # A metric of label and prediction alone has few joint outcomes; any other needs the rows.
    local = isinstance(metric.value, str) and set(metric.names()) <= set(metric.binary)
    local = local and trail.roles.weight is None and trail.roles.cluster is None
    if metric.measure is not None:
        asked = [groups] * len(trails)
        cells, partitions, rows, contrasts = measured_sides(
            trails, metric, asked, options, alike=True
        )
    else:
        made = joint_outcomes if local else joint_rows
        cells, partitions, rows, contrasts = made(trails, metric, groups, role, options)
    return _Made(
        names=list(models),
        by=groups_in_words(groups),
        cells=cells,
        partitions=partitions,
        rows=rows,
        contrasts=contrasts,
        assumptions=(f"{drawn_units(cells)} are independent draws within each group",),
    )


def _attributes(across: object) -> list[Groups]:
    if not isinstance(across, list | tuple) or len(across) < 2:
        raise ClaimError(
            "compare takes two or more attributes, such as across=['race', 'age'], or one with "
            f"models={{name: prediction column, …}}; got across={across!r}."
        )
    asked = [disjoint(item) for item in across]
    names = [groups_in_words(groups) for groups in asked]
    if len(set(names)) < len(names):
        raise ClaimError(f"across names the same attribute twice: {listing(names)}.")
    return asked


def _models(models: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(models, Mapping) or len(models) < 2:
        raise OptionError(
            "models takes a name and a prediction column for two or more models, such as "
            f"{{'old': 'old_prediction', 'new': 'new_prediction'}}; got {models!r}."
        )
    return {str(name): column for name, column in models.items()}


def _rows(
    made: _Made, kinds: list[Meta], alpha: float, options: Resampling
) -> tuple[ComparedSpread, ...]:
    """Every measure of every pair."""
    rows = []
    streams = options.rng.spawn(len(made.contrasts) * len(Meta))
    for position, (pair, variances) in enumerate(made.contrasts.items()):
        for kind in kinds:
            stream = streams[position * len(Meta) + list(Meta).index(kind)]
            samples = (variances.first_sample, variances.second_sample)
            if needs_positive(kind) and any(np.any(s.mean < 0) for s in samples):
                raise ClaimError(
                    f"The {kind} needs group means that are not negative. Choose other measures: "
                    "difference, max_deviation, mean_deviation or variance."
                )
            found = variances
            if kind is not Meta.VARIANCE:
                found = spread.contrast_measure(
                    *samples,
                    kind,
                    rng=stream,
                    level=options.level,
                    alpha=alpha,
                    resamples=options.resamples,
                )
            rows.append(_row(made.names, pair, kind, found))
    return tuple(rows)


def _row(
    names: list[str], pair: tuple[int, int], kind: Meta, found: spread.Contrast
) -> ComparedSpread:
    first, second = (names[i] for i in pair)
    larger = first if found.lower > 0 else second if found.upper < 0 else ""
    return ComparedSpread(
        first=first,
        second=second,
        measure=kind.value,
        first_value=found.first,
        second_value=found.second,
        difference=found.difference,
        lower=finite(found.lower),
        upper=finite(found.upper),
        larger=larger,
    )


def _sides(made: _Made) -> tuple[ComparedSide, ...]:
    samples: dict[int, spread.GroupSample] = {}
    for (i, j), found in made.contrasts.items():
        samples |= {i: found.first_sample, j: found.second_sample}
    return tuple(_side(made, i, samples[i]) for i in range(len(made.names)))


def _side(made: _Made, position: int, sample: spread.GroupSample) -> ComparedSide:
    labels = made.partitions[position].collection.labels()
    variance = spread.sample_variance(sample)
    rows = made.rows[position]
    return ComparedSide(
        name=made.names[position],
        groups=sample.groups,
        variance=variance,
        sd=math.sqrt(max(variance, 0.0)),
        plain_sd=float(np.std(sample.mean, ddof=1)),
        excluded=tuple(
            f"{labels[i]}: {_left_out(rows[i], reason)}"
            for i, reason in zip(sample.excluded.tolist(), sample.reasons, strict=True)
        ),
    )


def _left_out(n: int, reason: spread.Exclusion) -> str:
    # Groups that some model cannot use are emptied for all.
    if reason is spread.Exclusion.EMPTY and n > 0:
        return str(spread.Exclusion.SINGLE) if n == 1 else "too few rows for another model"
    return str(reason)
