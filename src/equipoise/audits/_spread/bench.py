"""The workbench of spreads: one metric over disjoint groups, in the form the mathematics takes."""

import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise._codec import to_plain
from equipoise._validate import short
from equipoise.audits._groups.bench import cell_moments, cluster_sums
from equipoise.audits._spread.partition import Partition, find_partition
from equipoise.cells import Cells, gather
from equipoise.cells.rows import pull_rows
from equipoise.cells.steady import steady_cells
from equipoise.cells.tallied import Tallied
from equipoise.claims import Metric, overall
from equipoise.claims.claim import Gap
from equipoise.claims.groups import Groups, Intersections
from equipoise.errors import ClaimError
from equipoise.methods import spread
from equipoise.methods.arrays import BoolArray, FloatArray
from equipoise.methods.inference.clusters import ClusterSums
from equipoise.methods.inference.comparison import Moments
from equipoise.methods.spread.limits import highest_z
from equipoise.methods.targets import Constant
from equipoise.trail import Trail


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One metric over disjoint groups, in the form the mathematics takes."""

    cells: Cells
    partition: Partition
    sample: spread.GroupSample
    published: spread.GroupSample
    """The same with groups of one row, which published intervals take in."""
    rows: Callable[[], tuple[FloatArray, FloatArray]]
    """Fetches the rows of the usable groups: values, and positions among the usable groups."""


def set_up(trail: Trail | Tallied, metric: Metric, groups: Groups, level: float) -> Bench:
    """Scan the rows once and form the groups; refuse what cannot be summarised."""
    asked = Gap(metric=metric, across=groups, target=overall())
    cells = steady_cells(*gather(trail, [asked]))
    partition = find_partition(groups, cells)
    if not cells.zero_one and not spread.varies(_group_moments(cells, partition), False).any():
        raise ClaimError(
            f"{metric.words.capitalize()} does not vary within any group, so nothing can be said "
            "about its sampling error. Choose a metric that varies from row to row."
        )
    sample = sample_of(cells, partition, level)

    def rows() -> tuple[FloatArray, FloatArray]:
        return _usable_rows(trail, metric, cells, partition, sample)

    published = sample
    if cells.zero_one and spread.Exclusion.SINGLE in sample.reasons:
        published = sample_of(cells, partition, level, least=1)
    return Bench(cells=cells, partition=partition, sample=sample, published=published, rows=rows)


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


def quoted(kind: str, metric: Metric, across: Groups | list[Groups]) -> dict[str, Any]:
    """What was asked, in plain form, as a finding quotes it."""

    def plain(value: Any) -> Any:
        return to_plain(value, other=lambda v: f"a {type(v).__name__}")

    def attributes(groups: Groups) -> Any:
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
    position = np.full(len(partition) + 1, -1)
    position[sample.kept] = np.arange(sample.groups)
    # Cells in no group have the code -1, which points at the spare last entry.
    group = position[partition.group[rows.cell]]
    count = np.ones(len(group), dtype=np.int64) if rows.count is None else rows.count
    count = np.where(group >= 0, count, 0)
    value, group = np.repeat(rows.value, count), np.repeat(group, count)
    # Engines return rows in any order; the answer must not depend on it.
    order = np.lexsort((value, group))
    return value[order], group[order].astype(np.float64)
