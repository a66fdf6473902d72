"""Two or more models on the same rows: their joint outcomes, or their rows, pair by pair."""

import dataclasses
import math
import re
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._validate import listing
from equipoise.audits._spread.bench import sample_of
from equipoise.audits._spread.partition import Partition, find_partition
from equipoise.cells import Cells, gather
from equipoise.cells.expressions import all_of, condition_of, metric_columns, value_of
from equipoise.cells.merge import cluster_codes
from equipoise.cells.query import Query
from equipoise.cells.rows import cell_numbers, level_codes
from equipoise.claims import Metric, overall
from equipoise.claims.claim import Gap
from equipoise.claims.dimension import Levels
from equipoise.claims.groups import Groups, Intersections
from equipoise.errors import ClaimError
from equipoise.methods import spread
from equipoise.methods.arrays import BoolArray, FloatArray, IntArray
from equipoise.trail import Trail
from equipoise.trail.engine import fetch
from equipoise.trail.roles import check_roles
from equipoise.trail.trail import positive_values

Contrasts = dict[tuple[int, int], spread.Contrast]
#: Cells, groups, rows per group and model, and the contrast of each pair.
Joint = tuple[Cells, Partition, list[list[int]], Contrasts]


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """How to resample."""

    level: float
    resamples: int
    rng: np.random.Generator


def joint_outcomes(
    trails: list[Trail], metric: Metric, groups: Groups, role: str, options: Options
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
    return cells[0], partition, rows, contrasts


def joint_rows(
    trails: list[Trail], metric: Metric, groups: Groups, role: str, options: Options
) -> Joint:
    """Compare on the rows themselves: other metrics, weights, clusters."""
    cells = [gather(t, [Gap(metric=metric, across=groups, target=overall())])[0] for t in trails]
    partition = find_partition(groups, cells[0])
    rows = _paired_rows(trails, metric, cells[0], partition)
    binary = all(c.zero_one for c in cells)
    plain = rows.weight is None and rows.cluster is None and np.isfinite(rows.value).all()
    if plain:
        contrasts = _usable(
            lambda: spread.compare_model_rows(
                rows.value,
                rows.group,
                len(partition),
                binary=binary,
                rng=options.rng,
                level=options.level,
                resamples=options.resamples,
            )
        )
    else:
        contrasts = _usable(lambda: _moved(cells, partition, rows, options))
    size = [
        np.bincount(rows.group[np.isfinite(value)], minlength=len(partition)).tolist()
        for value in rows.value.T
    ]
    return cells[0], partition, size, contrasts


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _PairedRows:
    """Rows in a fixed order, with the metric of every model."""

    group: IntArray
    value: FloatArray
    """One column per model; NaN where the row does not count for it."""
    weight: FloatArray | None
    cluster: IntArray | None


def _moved(
    cells: list[Cells], partition: Partition, rows: _PairedRows, options: Options
) -> Contrasts:
    """Contrasts from how the means of all models move together."""
    samples = [sample_of(c, partition, options.level) for c in cells]
    kept = np.ones(len(partition), dtype=bool)
    for sample in samples:
        kept &= np.isin(np.arange(len(partition)), sample.kept)
    # all models are judged on the groups that are usable for every one of them
    samples = [sample_of(c, partition, options.level, kept) for c in cells]
    place = np.full(len(partition), -1)
    place[kept] = np.arange(int(kept.sum()))
    unit, at, weight, total = [], [], [], []
    for model, value in enumerate(rows.value.T):
        there = np.flatnonzero(np.isfinite(value) & (place[rows.group] >= 0))
        w = np.ones(there.size) if rows.weight is None else rows.weight[there]
        unit.append(there if rows.cluster is None else rows.cluster[there])
        at.append(place[rows.group[there]] + model * int(kept.sum()))
        weight.append(w)
        total.append(w * value[there])
    together = spread.unit_covariance(
        np.concatenate(unit),
        np.concatenate(at),
        np.concatenate(weight),
        np.concatenate(total),
        len(cells) * int(kept.sum()),
    )
    return spread.compare_moved(
        samples, together, rng=options.rng, level=options.level, resamples=options.resamples
    )


def _paired_rows(
    trails: list[Trail], metric: Metric, cells: Cells, partition: Partition
) -> _PairedRows:
    """The metric of every model on the rows where it counts for any of them."""
    trail = trails[0]
    further = {f"model{m}": _value(one, metric) for m, one in enumerate(trails)}
    if trail.roles.cluster is not None:
        further["cluster"] = trail.key(trail.roles.cluster)
    query = Query(trail, tuple(axis.dimension for axis in cells.axes), (_EVERY_ROW,))
    table = fetch(query.rows(further), trail.source)
    models = [f"model{m}" for m in range(len(trails))]
    values = np.stack(
        [np.array([_number(v) for v in table[name].tolist()]) for name in models], axis=1
    )
    index = np.stack(
        [level_codes(axis, table[f"key{i}"]) for i, axis in enumerate(cells.axes)], axis=1
    )
    group = partition.group[cell_numbers(index, cells.index)]
    count = table["count"].astype(np.int64) if "count" in table else np.ones(len(group), np.int64)
    used = (group >= 0) & np.isfinite(values).any(axis=1)
    cluster = cluster_codes(table["cluster"]) if "cluster" in table else None
    if cluster is not None:
        used &= cluster >= 0
    if "weight" not in table and cluster is None and not _selects(metric):
        # paired rows must count for every model
        used &= np.isfinite(values).all(axis=1)
    count = np.where(used, count, 0)
    columns = [group, *values.T]
    columns += [table["weight"].astype(np.float64)] if "weight" in table else []
    columns += [cluster] if cluster is not None else []
    columns = [np.repeat(column, count) for column in columns]
    # Engines return rows in any order; the answer must not depend on it.
    order = np.lexsort(columns[::-1])
    columns = [column[order] for column in columns]
    last = 1 + len(trails)
    return _PairedRows(
        group=columns[0],
        value=np.stack(columns[1:last], axis=1),
        weight=columns[last] if "weight" in table else None,
        cluster=columns[-1].astype(np.int64) if cluster is not None else None,
    )


_EVERY_ROW = Metric(name="every row", value="1")


def _selects(metric: Metric) -> bool:
    """Whether the rows on which a metric counts depend on the model."""
    where = metric.where if isinstance(metric.where, str) else ""
    return bool(re.search(r"\b(prediction|score)\b", where))


def _value(trail: Trail, metric: Metric) -> nw.Expr:
    present = all_of(trail.present(column) for column in metric_columns(trail, metric))
    counts = present & condition_of(trail, metric.where, metric)
    return nw.when(counts).then(value_of(trail, metric))


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


def _usable(compared: Any) -> Contrasts:
    try:
        found: Contrasts = compared()
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


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
