"""`compare`: whether one spread between groups is larger than another."""

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._rng import Rng, seed_of
from equipoise._validate import fraction, known_keywords, listing, whole
from equipoise.audits._partition import Partition, disjoint, find_partition, words_of
from equipoise.audits._progress import Progress, progress_bar
from equipoise.audits._provenance import provenance_of
from equipoise.audits.summarize import exclusion_note, quoted, refuse_clusters, sample_of
from equipoise.cells import Cells, gather
from equipoise.cells.expressions import all_of, condition_of, metric_columns, value_of
from equipoise.cells.query import Query
from equipoise.cells.rows import _cell_of, _codes
from equipoise.claims import Metric, overall
from equipoise.claims.claim import Gap
from equipoise.claims.dimension import Levels
from equipoise.claims.groups import Groups, Intersections
from equipoise.claims.metric import as_metric
from equipoise.errors import ClaimError, OptionError, TrailError
from equipoise.findings.comparison import ComparedSide, ComparedSpread, Comparison
from equipoise.methods import spread
from equipoise.methods.arrays import BoolArray, FloatArray, IntArray
from equipoise.trail import Trail
from equipoise.trail.engine import fetch
from equipoise.trail.roles import check_roles
from equipoise.trail.trail import positive_values

Contrasts = dict[tuple[int, int], spread.Contrast]


@known_keywords
def compare(
    trail: Trail,
    metric: Metric | str,
    *,
    across: Any,
    models: Mapping[str, str] | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    rng: Rng = None,
    progress: Progress = None,
) -> Comparison:
    """Whether groups are further apart by one attribute than by another, or for one model.

    The same resampled rows enter every spread, so what they share cancels.

    Parameters
    ----------
    trail, metric
        The audit trail, and what is measured on each row.
    across
        Without ``models``: two or more attributes, as ``["race", "age"]``; an entry that is itself
        a list means the cells of a cross. With ``models``: the groups, as in `summarize`.
    models
        Two or more models on the same rows: a name for each, and its prediction column (or score
        column, if the metric reads a score).
    level
        Confidence level of each interval on its own.
    resamples
        Number of joint resamples.
    rng
        Seed; the same seed gives the same answer. If not given, one is drawn and recorded.
    progress
        Whether to show a bar, or a function called with (done, total).

    Examples
    --------
    >>> import equipoise as eq
    >>> found = eq.compare(
    ...     eq.datasets.compas(), eq.false_positive_rate, across=["race", "sex"], rng=7
    ... )
    >>> found.rows[0].first, found.rows[0].second, found.rows[0].lower < found.rows[0].upper
    ('race', 'sex', True)
    """
    fraction("level", level)
    whole("resamples", resamples, least=20)
    measured = as_metric(metric)
    seed = seed_of(rng)
    if not isinstance(trail, Trail):
        raise TrailError(
            f"Expected a trail, such as equipoise.read(…) gives; got {type(trail).__name__}."
        )
    _refuse_weights(trail)
    with progress_bar(progress, 1, "compare") as tell:
        options = _Options(level, resamples, np.random.default_rng(seed.sequence))
        if models is None:
            asked = _attributes(across)
            made = _by_attribute(trail, measured, asked, options)
            claim = quoted("comparison", measured, asked)
        else:
            groups = disjoint(across)
            columns = _models(models)
            made = _by_model(trail, measured, groups, columns, options)
            claim = {**quoted("comparison", measured, groups), "models": columns}
        tell(1)
    return Comparison(
        claim=claim,
        question=f"where groups are further apart in {measured.words}: {' or '.join(made.names)}",
        guarantee=f"pointwise: each interval on its own, with about {100 * level:g} % confidence",
        assumptions=made.assumptions,
        provenance=provenance_of(made.cells, seed.number),
        rows=tuple(_row(made.names, pair, found) for pair, found in made.contrasts.items()),
        metric=measured.words,
        by=made.by,
        between="attributes" if models is None else "models",
        share=made.cells.zero_one,
        level=level,
        resamples=resamples,
        sides=_sides(made),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Options:
    level: float
    resamples: int
    rng: np.random.Generator


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


def _by_attribute(trail: Trail, metric: Metric, asked: list[Groups], options: _Options) -> _Made:
    cells = gather(trail, [Gap(metric=metric, across=g, target=overall()) for g in asked])[0]
    refuse_clusters(cells)
    partitions = [find_partition(groups, cells) for groups in asked]
    samples = [_checked(cells, partition) for partition in partitions]
    if all(sample.frozen for sample in samples):
        raise ClaimError(f"The {metric.words} does not vary, so no spread can be compared.")
    n = np.rint(cells.rows).astype(np.int64)
    names = [words_of(groups) for groups in asked]
    pairs = [(i, j) for i in range(len(asked)) for j in range(i + 1, len(asked))]
    contrasts = {
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
    return _Made(
        names=names,
        by=" and ".join(names),
        cells=cells,
        partitions=partitions,
        rows=[_sizes(p, cells.rows) for p in partitions],
        contrasts=contrasts,
        assumptions=("rows are independent draws from the population audited",),
    )


def _by_model(
    trail: Trail, metric: Metric, groups: Groups, models: dict[str, str], options: _Options
) -> _Made:
    role = _role(metric)
    trails = [_with_model(trail, role, column, models) for column in models.values()]
    # A metric of label and prediction alone has few joint outcomes; any other needs the rows.
    local = isinstance(metric.value, str) and set(metric.names()) <= set(metric.binary)
    made = _joint_outcomes if local else _joint_rows
    cells, partition, rows, contrasts = made(trails, metric, groups, role, options)
    return _Made(
        names=list(models),
        by=words_of(groups),
        cells=cells,
        partitions=[partition] * len(models),
        rows=rows,
        contrasts=contrasts,
        assumptions=("rows are independent draws within each group",),
    )


_Joint = tuple[Cells, Partition, list[list[int]], Contrasts]


def _joint_outcomes(
    trails: list[Trail], metric: Metric, groups: Groups, role: str, options: _Options
) -> _Joint:
    columns = list(dict.fromkeys(trail.roles.column(role) for trail in trails))
    others = [trails[0].roles.column(name) for name in metric.names() if name != role]
    fixed = Intersections(attributes=tuple(Levels(column) for column in (*others, *columns)))
    claims = [Gap(metric=metric, across=across, target=overall()) for across in (groups, fixed)]
    cells = [gather(trail, claims)[0] for trail in trails]
    refuse_clusters(cells[0])
    partition = find_partition(groups, cells[0])
    outcomes = find_partition(fixed, cells[0])
    rows = [_sizes(partition, c.rows) for c in cells]
    for one in cells:
        _checked(one, partition)
    count = np.zeros((len(partition), len(outcomes)), dtype=np.int64)
    np.add.at(count, (partition.group, outcomes.group), np.rint(cells[0].present).astype(np.int64))
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
    return cells[0], partition, rows, contrasts


def _joint_rows(
    trails: list[Trail], metric: Metric, groups: Groups, role: str, options: _Options
) -> _Joint:
    _refuse_selection(metric, role)
    cells = [gather(t, [Gap(metric=metric, across=groups, target=overall())])[0] for t in trails]
    refuse_clusters(cells[0])
    partition = find_partition(groups, cells[0])
    group, values = _paired_values(trails, metric, cells[0], partition)
    contrasts = _usable(
        lambda: spread.compare_model_rows(
            values,
            group,
            len(partition),
            binary=all(c.zero_one for c in cells),
            rng=options.rng,
            level=options.level,
            resamples=options.resamples,
        )
    )
    size = np.bincount(group, minlength=len(partition)).tolist()
    return cells[0], partition, [size] * len(trails), contrasts


def _paired_values(
    trails: list[Trail], metric: Metric, cells: Cells, partition: Partition
) -> tuple[IntArray, FloatArray]:
    """The metric of every model on the rows where it counts for all of them."""
    further = {f"model{m}": _value(trail, metric) for m, trail in enumerate(trails[1:], 1)}
    query = Query(trails[0], tuple(axis.dimension for axis in cells.axes), (metric,))
    table = fetch(query.rows(further), trails[0].source)
    names = ["value", *further]
    columns = [np.array([_number(v) for v in table[name].tolist()]) for name in names]
    values = np.stack(columns, axis=1)
    index = np.stack([_codes(axis, table[f"key{i}"]) for i, axis in enumerate(cells.axes)], axis=1)
    group = partition.group[_cell_of(index, cells.index)]
    count = table["count"].astype(np.int64) if "count" in table else np.ones(len(group), np.int64)
    count = np.where((group >= 0) & np.isfinite(values).all(axis=1), count, 0)
    values, group = np.repeat(values, count, axis=0), np.repeat(group, count)
    # Engines return rows in any order; the answer must not depend on it.
    order = np.lexsort((*values.T[::-1], group))
    return group[order], values[order]


def _value(trail: Trail, metric: Metric) -> nw.Expr:
    present = all_of(trail.present(column) for column in metric_columns(trail, metric))
    counts = present & condition_of(trail, metric.where, metric)
    return nw.when(counts).then(value_of(trail, metric))


def _attributes(across: Any) -> list[Groups]:
    if not isinstance(across, list | tuple) or len(across) < 2:
        raise ClaimError(
            "compare takes two or more attributes, such as across=['race', 'age'], or one with "
            f"models={{name: prediction column, …}}; got across={across!r}."
        )
    asked = [disjoint(item) for item in across]
    names = [words_of(groups) for groups in asked]
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


def _role(metric: Metric) -> str:
    roles = [role for role in ("prediction", "score") if role in metric.names()]
    if len(roles) != 1:
        raise ClaimError(
            f"Models are compared by a metric that reads either the prediction or the score; "
            f"{metric.name!r} reads {listing(metric.names())}."
        )
    return roles[0]


def _with_model(trail: Trail, role: str, column: str, models: dict[str, str]) -> Trail:
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


def _refuse_weights(trail: Trail) -> None:
    if trail.roles.weight is not None:
        raise OptionError(
            "compare resamples rows and does not take sampling weights. Read the trail without "
            "weight=…, or summarize each attribute or model by itself."
        )


def _refuse_selection(metric: Metric, role: str) -> None:
    where = metric.where if isinstance(metric.where, str) else ""
    if re.search(rf"\b{role}\b", where):
        raise ClaimError(
            f"{metric.name!r} counts on rows that depend on the model, so the models share no "
            "rows to compare. Use a metric of label and prediction, or one without that condition."
        )


def _checked(cells: Cells, partition: Partition) -> spread.GroupSample:
    if np.any(partition.group < 0):
        raise ClaimError("compare needs groups that cover every row; some rows belong to none.")
    return sample_of(cells, partition)


def _usable(compared: Any) -> Contrasts:
    try:
        found: Contrasts = compared()
    except ValueError as error:
        raise ClaimError(f"{str(error).capitalize()}. Choose a coarser attribute.") from error
    if all(c.first_sample.frozen and c.second_sample.frozen for c in found.values()):
        raise ClaimError("The metric does not vary for any model, so no spread can be compared.")
    return found


def _sizes(partition: Partition, rows: FloatArray) -> list[int]:
    sizes: list[int] = np.rint(partition.sums(rows)).astype(int).tolist()
    return sizes


def _means(outcomes: Partition, cells: Cells, eligible: BoolArray) -> FloatArray:
    rows = outcomes.sums(cells.rows)
    mean = np.zeros_like(rows)
    np.divide(outcomes.sums(cells.total), rows, out=mean, where=eligible)
    return mean


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _row(names: list[str], pair: tuple[int, int], found: spread.Contrast) -> ComparedSpread:
    first, second = (names[i] for i in pair)
    larger = first if found.lower > 0 else second if found.upper < 0 else ""
    return ComparedSpread(
        first=first,
        second=second,
        first_value=found.first,
        second_value=found.second,
        difference=found.difference,
        lower=found.lower,
        upper=found.upper,
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
    sizes = made.rows[position]
    return ComparedSide(
        name=made.names[position],
        groups=sample.groups,
        variance=variance,
        sd=math.sqrt(max(variance, 0.0)),
        plain_sd=float(np.std(sample.mean, ddof=1)),
        excluded=tuple(f"{labels[i]}: {_left_out(sizes[i])}" for i in sample.excluded.tolist()),
    )


def _left_out(n: int) -> str:
    # A group may be large enough for one model and too small for another.
    return exclusion_note(n) if n < 2 else "too few rows for another model"
