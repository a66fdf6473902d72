"""`describe`: what is in the data, group by group, before any claim about all of them."""

import math
from dataclasses import dataclass
from typing import Literal, Unpack

import numpy as np
from scipy.special import ndtri

from equipoise._validate import confidence, known_keywords, known_name, whole
from equipoise.audits._common import (
    Roles,
    TrailLike,
    as_source,
    finite,
    independent,
    provenance_of,
    unit_of,
)
from equipoise.audits._groups.problem import (
    Problem,
    adjusted_groups,
    groups_only,
    make_core,
    notes_of,
    set_up,
)
from equipoise.cells import Cells, Collection, form_groups, gather
from equipoise.cells.gather import group_means, overall_mean, target_values
from equipoise.cells.tally import Tallied, steady_cells
from equipoise.claims import Claim, Gap, Ratio, as_claim, constant
from equipoise.claims.metric import scoring_rate
from equipoise.claims.target import Highest
from equipoise.findings import DescribedGroup, Description
from equipoise.methods.inference.core import Core
from equipoise.methods.inference.student import clopper_pearson, wilson
from equipoise.methods.numerics import FloatArray
from equipoise.methods.targets import Constant

Interval = Literal["exact", "wilson"]


@known_keywords
def describe(
    trail: TrailLike | Tallied,
    claim: Claim,
    *,
    level: float = 0.95,
    interval: Interval = "exact",
    small: int = 30,
    **roles: Unpack[Roles],
) -> Description:
    """Sizes, estimates and pointwise intervals of every group of a claim.

    Parameters
    ----------
    trail
        The audit trail, from `equipoise.read`, its counts, or a path or table as in `certify`.
    claim
        The question, from `equipoise.gap` or `equipoise.ratio`.
    level
        Confidence level of each interval on its own.
    interval
        For plain 0/1 metrics: ``"exact"`` (Clopper–Pearson) or ``"wilson"``. Others have the bounds
        of `certify` for one group; those it does not answer have no interval.
    small
        Groups with fewer rows are noted as small.

    Examples
    --------
    >>> import equipoise as eq
    >>> claim = eq.gap(eq.false_positive_rate, across=eq.intersections("sex"))
    >>> print(eq.describe(eq.datasets.compas(), claim).sentences()[0])
    The false positive rate is 30.3 % over 3,363 rows of the bundled COMPAS counts.
    """
    confidence(level)
    known_name("interval", interval, ("exact", "wilson"))
    whole("small", small, least=0)
    asked, source = as_claim(claim), as_source(trail, roles)
    problem = median = None
    if asked.metric == scoring_rate:
        # against zero every bound of a gap is one of the rate itself
        alone = Gap(metric=asked.metric, across=asked.across, target=constant(0.0))
        median = set_up(source, alone)
    if asked.given or isinstance(asked.target, Highest):
        problem = set_up(source, asked)
    known = problem or median
    cells = steady_cells(*gather(source, [asked])) if known is None else known.cells
    collection = form_groups(asked.across, cells)
    groups_only(collection, "describe")
    if median is None:
        found = _intervals(cells, collection, level, interval)
    else:
        found = _by_core(cells, median.core, level, "counts, and the error of the median")
    return Description(
        claim=asked.quoted(),
        question=asked.words,
        guarantee="pointwise: each interval on its own, not all groups at once",
        assumptions=(independent(unit_of(cells)),),
        provenance=provenance_of(cells),
        rows=_rows(asked, cells, collection, found, small, problem),
        metric=asked.metric.words,
        overall=overall_mean(cells),
        share=cells.zero_one,
        level=level,
        method=found.method,
        small=small,
        adjusted=() if problem is None else adjusted_groups(problem),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Intervals:
    """Intervals of every group's mean on its own, and why some have none."""

    method: str
    lower: FloatArray
    upper: FloatArray
    notes: tuple[str, ...]


def _intervals(
    cells: Cells, collection: Collection, level: float, interval: Interval
) -> _Intervals:
    """Intervals of counts as they are, of all else the core's bounds against zero."""
    rows = collection.sums(cells.rows)
    if cells.zero_one and not cells.weighted and cells.clusters is None:
        ends = wilson if interval == "wilson" else clopper_pearson
        low, high = ends(collection.sums(cells.total), np.maximum(rows, 1), level)
        return _Intervals(
            method="Wilson" if interval == "wilson" else "Clopper–Pearson",
            lower=np.where(rows > 0, low, np.nan),
            upper=np.where(rows > 0, high, np.nan),
            notes=("",) * rows.size,
        )
    core = make_core(cells, Constant(value=0.0), collection, relative=False)
    return _by_core(cells, core, level, _name(cells))


def _by_core(cells: Cells, core: Core, level: float, method: str) -> _Intervals:
    score = float(ndtri((1 + level) / 2))
    core = core.guarded(score)
    floor = -math.inf if cells.metric.low is None else cells.metric.low
    ceiling = math.inf if cells.metric.high is None else cells.metric.high
    low, high = core.bounds(score, (0.0, 1.0) if cells.zero_one else (floor, ceiling))
    notes = tuple(notes_of(core, score, cells.metric))
    return _Intervals(method=method, lower=low, upper=high, notes=notes)


def _name(cells: Cells) -> str:
    if cells.clusters is not None:
        return "clusters left out one at a time"
    if cells.zero_one:
        return "counts that weighted rows are worth"
    return "Student's t, corrected for skewness"


def _rows(
    claim: Claim,
    cells: Cells,
    collection: Collection,
    found: _Intervals,
    small: int,
    problem: Problem | None,
) -> tuple[DescribedGroup, ...]:
    sizes, values = collection.sums(cells.rows), group_means(cells, collection)
    if problem is None:
        targets = target_values(claim.target, cells, collection)
        with np.errstate(divide="ignore", invalid="ignore"):
            disparities = values / targets if isinstance(claim, Ratio) else values - targets
    else:
        beside = problem.core.comparison
        targets, disparities = beside.target.scale * beside.theta, beside.estimate
    names = zip(collection.labels(), collection.wheres(), strict=True)
    return tuple(
        DescribedGroup(
            group=label,
            where=where,
            n=round(float(sizes[i])),
            value=finite(values[i]),
            lower=finite(found.lower[i]),
            upper=finite(found.upper[i]),
            # the mean of others like them is no number to set beside the plain mean
            target=None if claim.given else finite(targets[i]),
            disparity=finite(disparities[i]),
            note=_note(round(float(sizes[i])), small, values[i], targets[i], found.notes[i]),
        )
        for i, (label, where) in enumerate(names)
    )


def _note(n: int, small: int, value: float, target: float, silent: str) -> str:
    if n == 0:
        return "no row on which the metric counts"
    notes = [f"small: n = {n}"] if n < small else []
    if math.isnan(value):
        notes.append("all weights are 0")
    elif silent:
        notes.append(f"no interval: {silent}")
    if math.isnan(target):
        notes.append("nobody to compare with")
    return "; ".join(notes)
