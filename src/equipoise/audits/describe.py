"""`describe`: what is in the data, group by group, before any claim about all of them."""

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np

from equipoise._validate import fraction, known_keywords, known_name, whole
from equipoise.audits._fields import finite, independent, provenance_of, unit_of
from equipoise.audits._groups.bench import groups_only
from equipoise.cells import Cells, Collection, form_groups, gather
from equipoise.cells.steady import steady_cells
from equipoise.cells.tallied import Tallied
from equipoise.cells.targets import group_means, overall_mean, target_values
from equipoise.claims import Claim, Ratio, as_claim
from equipoise.findings import DescribedGroup, Description
from equipoise.methods.arrays import FloatArray
from equipoise.methods.pointwise import clopper_pearson, t_interval, wilson
from equipoise.trail import Trail

Interval = Literal["exact", "wilson"]
#: Numbers held at a time when clusters are summed.
_BLOCK = 1 << 20
_ROUNDING = 16 * float(np.finfo(np.float64).eps)


@known_keywords
def describe(
    trail: Trail | Tallied,
    claim: Claim,
    *,
    level: float = 0.95,
    interval: Interval = "exact",
    small: int = 30,
) -> Description:
    """Sizes, estimates and pointwise intervals of every group of a claim.

    Parameters
    ----------
    trail
        The audit trail, from `equipoise.read`.
    claim
        The question, from `equipoise.gap` or `equipoise.ratio`.
    level
        Confidence level of each interval on its own.
    interval
        For 0/1 metrics: ``"exact"`` (Clopper–Pearson) or ``"wilson"``. Real-valued and weighted
        metrics use Student's t.
    small
        Groups with fewer rows are noted as small.

    Examples
    --------
    >>> import equipoise as eq
    >>> claim = eq.gap(eq.false_positive_rate, across=eq.intersections("sex"))
    >>> print(eq.describe(eq.datasets.compas(), claim).sentences()[0])
    The false positive rate is 30.3 % over 3,363 rows of the bundled COMPAS counts.
    """
    fraction("level", level)
    known_name("interval", interval, ("exact", "wilson"))
    whole("small", small, least=0)
    asked = as_claim(claim)
    cells = steady_cells(*gather(trail, [asked]))
    collection = form_groups(asked.across, cells)
    groups_only(collection, "describe")
    method, lower, upper = _intervals(cells, collection, level, interval)
    return Description(
        claim=asked.quoted(),
        question=asked.words,
        guarantee="pointwise: each interval on its own, not all groups at once",
        assumptions=(independent(unit_of(cells)),),
        provenance=provenance_of(cells),
        rows=_rows(asked, cells, collection, lower, upper, small),
        metric=asked.metric.words,
        overall=overall_mean(cells),
        share=cells.zero_one,
        level=level,
        method=method,
        small=small,
    )


def _intervals(
    cells: Cells, collection: Collection, level: float, interval: Interval
) -> tuple[str, FloatArray, FloatArray]:
    rows = collection.sums(cells.rows)
    if cells.zero_one and not cells.weighted and cells.clusters is None:
        exact = interval == "exact"
        method = clopper_pearson if exact else wilson
        safe = np.maximum(rows, 1)
        low, high = method(collection.sums(cells.total), safe, level)
        return "Clopper–Pearson" if exact else "Wilson", _known(low, rows), _known(high, rows)
    name, student = ("Student's t", _student)
    if cells.clusters is not None:
        name, student = ("Student's t over clusters", _student_of_clusters)
    low, high = student(cells, collection, level)
    floor = -math.inf if cells.metric.low is None else cells.metric.low
    ceiling = math.inf if cells.metric.high is None else cells.metric.high
    return name, np.maximum(low, floor), np.minimum(high, ceiling)


def _student(cells: Cells, collection: Collection, level: float) -> tuple[FloatArray, FloatArray]:
    weight, weight2 = collection.sums(cells.weight), collection.sums(cells.weight2)
    mean = group_means(cells, collection)
    # Variance of a weighted mean by linearisation; without weights it is the usual one.
    spread = (
        collection.sums(cells.square2)
        - 2 * mean * collection.sums(cells.total2)
        + mean**2 * weight2
    )
    safe = np.where(weight2 > 0, weight2, np.nan)
    # Squares of nearly equal large numbers cancel; no variance below that rounding is believed.
    variance = np.maximum(spread / safe, _ROUNDING * mean**2)
    # Two rows of equal weight are two, however their weights are rounded.
    size = np.round(weight**2 / safe, 9)
    return t_interval(mean, variance, size, level)


def _student_of_clusters(
    cells: Cells, collection: Collection, level: float
) -> tuple[FloatArray, FloatArray]:
    """Intervals from how clusters differ, since rows of one cluster are not independent."""
    mean = group_means(cells, collection)
    squares, number = np.zeros_like(mean), np.zeros_like(mean)
    for weight, total in _cluster_blocks(cells):
        here = collection.sums(weight)
        residual = collection.sums(total) - np.nan_to_num(mean) * here
        squares += (residual**2).sum(axis=0)
        number += (here > 0).sum(axis=0)
    weight = collection.sums(cells.weight)
    safe = np.where(weight > 0, weight, np.nan)
    # t_interval divides by clusters − 1: together m/(m − 1) times the linearised variance
    return t_interval(mean, number * squares / safe**2, number, level)


def _cluster_blocks(cells: Cells) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Totals by cluster and cell, some clusters at a time."""
    table = cells.clusters
    if table is None:
        return
    size = max(1, _BLOCK // len(cells))
    for start in range(0, int(table.cluster[-1]) + 1, size):
        first, last = np.searchsorted(table.cluster, [start, start + size])
        place = table.cluster[first:last] - start, table.cell[first:last]
        weight, total = np.zeros((size, len(cells))), np.zeros((size, len(cells)))
        weight[place], total[place] = table.weight[first:last], table.total[first:last]
        yield weight, total


def _known(bound: FloatArray, rows: FloatArray) -> FloatArray:
    return np.where(rows > 0, bound, np.nan)


def _rows(
    claim: Claim,
    cells: Cells,
    collection: Collection,
    lower: FloatArray,
    upper: FloatArray,
    small: int,
) -> tuple[DescribedGroup, ...]:
    sizes = collection.sums(cells.rows)
    values, targets = group_means(cells, collection), target_values(claim.target, cells, collection)
    with np.errstate(divide="ignore", invalid="ignore"):
        disparities = values / targets if isinstance(claim, Ratio) else values - targets
    names = zip(collection.labels(), collection.wheres(), strict=True)
    return tuple(
        DescribedGroup(
            group=label,
            where=where,
            n=round(float(sizes[i])),
            value=finite(values[i]),
            lower=finite(lower[i]),
            upper=finite(upper[i]),
            target=finite(targets[i]),
            disparity=finite(disparities[i]),
            note=_note(round(float(sizes[i])), small, values[i], targets[i]),
        )
        for i, (label, where) in enumerate(names)
    )


def _note(n: int, small: int, value: float, target: float) -> str:
    if n == 0:
        return "no row on which the metric counts"
    notes = [f"small: n = {n}"] if n < small else []
    if math.isnan(value):
        notes.append("all weights are 0")
    if math.isnan(target):
        notes.append("nobody to compare with")
    return "; ".join(notes)
