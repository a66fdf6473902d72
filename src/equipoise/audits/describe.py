"""`describe`: what is in the data, group by group, before any claim about all of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Unpack, overload

import numpy as np
from scipy.special import ndtri

from equipoise._validate import confidence, known_keywords, known_name, whole
from equipoise.audits._common import (
    RoleKeywords,
    TrailLike,
    as_source,
    drawn_units,
    finite,
    groups_only,
    independent,
    provenance_of,
)
from equipoise.audits._groups.problem import (
    Problem,
    adjusted_groups,
    cell_moments,
    changed_groups,
    make_core,
    notes_of,
    set_up,
)
from equipoise.cells import Cells, Collection, form_groups, gather
from equipoise.cells.gather import by_pairs, group_means, overall_mean, target_values
from equipoise.cells.tally import Tallied, steady_cells
from equipoise.claims import Claim, Gap, Metric, Ratio, as_claim, constant, gap
from equipoise.claims.claim import Highest
from equipoise.claims.groups import GroupsLike
from equipoise.claims.metric import scoring_rate
from equipoise.errors import OptionError
from equipoise.findings import DescribedGroup, Description
from equipoise.findings.describe import DescribedMetrics
from equipoise.methods.inference.core import Core
from equipoise.methods.inference.counts import clopper_pearson, wilson
from equipoise.methods.numerics import FloatArray
from equipoise.methods.targets import Constant, compare
from equipoise.trail import Trail

Interval = Literal["exact", "wilson"]


@overload
def describe(
    trail: TrailLike | Tallied,
    claim: Claim,
    *,
    level: float = ...,
    interval: Interval = ...,
    small: int = ...,
    **roles: Unpack[RoleKeywords],
) -> Description: ...
@overload
def describe(
    trail: TrailLike | Tallied,
    claim: None = None,
    *,
    metrics: Sequence[Metric | str],
    across: GroupsLike,
    level: float = ...,
    interval: Interval = ...,
    small: int = ...,
    **roles: Unpack[RoleKeywords],
) -> DescribedMetrics: ...
@known_keywords
def describe(
    trail: TrailLike | Tallied,
    claim: Claim | None = None,
    *,
    metrics: Sequence[Metric | str] | None = None,
    across: GroupsLike | None = None,
    level: float = 0.95,
    interval: Interval = "exact",
    small: int = 30,
    **roles: Unpack[RoleKeywords],
) -> Description | DescribedMetrics:
    """Sizes, estimates and pointwise intervals of every group of a claim, or of many metrics.

    Parameters
    ----------
    trail
        The audit trail, from `equipoise.read`, its counts, or a path or table as in `certify`.
    claim
        The question, from `equipoise.gap` or `equipoise.ratio`.
    metrics, across
        In place of a claim: several metrics and the groups to see them by, in one table with
        ``difference()`` and ``ratio()``. The rows are looked at once.
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
    >>> asked = ["accuracy", "selection_rate"]
    >>> table = eq.describe(eq.datasets.compas(), metrics=asked, across="sex")
    >>> {metric: round(by, 3) for metric, by in table.difference().items()}
    {'accuracy': 0.002, 'selection_rate': 0.05}
    """
    confidence(level)
    known_name("interval", interval, ("exact", "wilson"))
    whole("small", small, least=0)
    options = _Options(level=level, interval=interval, small=small)
    source = as_source(trail, roles)
    if claim is not None and metrics is None and across is None:
        return _asked(as_claim(claim), source, options)
    if claim is not None or not metrics or across is None or isinstance(metrics, str):
        raise OptionError(
            "describe takes a claim, such as gap(metric, across=…), or a list of metrics= and the "
            "groups across= which to see them."
        )
    claims = [gap(metric, across=across) for metric in metrics]
    # what needs more than totals of groups is looked at by itself, all others at once
    odd = {i for i, one in enumerate(claims) if one.metric == scoring_rate or one.metric.measure}
    plain = [one for i, one in enumerate(claims) if i not in odd]
    found = iter(gather(source, plain) if plain else ())
    parts = (
        _asked(one, source, options)
        if i in odd
        else _described(one, steady_cells(next(found)), options)
        for i, one in enumerate(claims)
    )
    return DescribedMetrics(parts=tuple(parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """How intervals are made, and which groups count as small."""

    level: float
    interval: Interval
    small: int


def _asked(asked: Claim, source: Trail | Tallied, options: _Options) -> Description:
    """One claim, with what its metric and its target need besides counts."""
    if asked.unknown != "group" or asked.unlabelled != "out":
        raise OptionError(
            "describe knows neither unknown= nor unlabelled=; certify, flag and joint_test do."
        )
    problem = median = None
    if asked.metric == scoring_rate:
        # against zero every bound of a gap is one of the rate itself
        alone = Gap(metric=asked.metric, across=asked.across, target=constant(0.0))
        median = set_up(source, alone)
    paired = by_pairs(source.roles, asked) and asked.metric.measure is None
    odd = asked.metric.measure or asked.metric.change
    if odd or paired or asked.given or isinstance(asked.target, Highest):
        problem = set_up(source, asked)
    known = problem or median
    cells = steady_cells(*gather(source, [asked])) if known is None else known.cells
    if cells.sides is not None:
        # what is described is the group; its partners are the target
        cells = cells.sides[1]
    return _described(asked, cells, options, problem, median)


def _described(
    asked: Claim,
    cells: Cells,
    options: _Options,
    problem: Problem | None = None,
    median: Problem | None = None,
) -> Description:
    collection = form_groups(asked.across, cells)
    groups_only(collection, "describe")
    two = None
    if problem is not None and asked.metric.overlapping:
        two = _change_overall(problem)
        found = _by_core(cells, problem.core, options.level, "counts of rows before and after")
    elif problem is not None and problem.measured is not None:
        two, found = _measured(problem, options.level)
    elif median is None:
        found = _intervals(cells, collection, options.level, options.interval)
    else:
        found = _by_core(cells, median.core, options.level, "counts, and the error of the median")
    return Description(
        claim=asked.quoted(),
        question=asked.words,
        guarantee="pointwise: each interval on its own, not all groups at once",
        assumptions=(independent(drawn_units(cells)),),
        provenance=provenance_of(cells),
        rows=_rows(asked, cells, collection, found, options.small, problem),
        metric=asked.metric.words,
        overall=overall_mean(cells) if two is None else two,
        share=cells.zero_one if problem is None else problem.share,
        level=options.level,
        method=found.method,
        small=options.small,
        adjusted=() if problem is None else adjusted_groups(problem),
        changed=() if problem is None else changed_groups(problem),
    )


def _measured(problem: Problem, level: float) -> tuple[float, "_Intervals"]:
    """The measure over everyone, and intervals of those of groups."""
    from equipoise.audits._groups.measured import overall_value

    asked = problem.measured
    assert asked is not None
    # against zero every bound of a gap is one of the measure itself
    alone = asked.make(Constant(value=0.0), problem.collection, False)
    named = "influence values, corrected for skewness"
    if asked.measure.name == "quantile":
        named = "binomial tests of the share of rows up to a number"
    return overall_value(problem, asked), _by_core(problem.cells, alone, level, named)


def _change_overall(problem: Problem) -> float:
    """The change over everyone of a rate whose rows depend on the model."""
    cells = cell_moments(problem.cells)
    return float(compare(cells, problem.target, lambda x: x.sum(axis=-1)[..., None]).estimate[0])


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
        if problem.cells.sides is not None:
            targets = group_means(problem.cells.sides[0], collection)
        if problem.measured is not None:
            values = beside.mean
        if claim.metric.overlapping:
            sizes, values, targets = beside.rows, beside.estimate, np.zeros_like(targets)
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
    if math.isnan(value) and not silent:
        notes.append("all weights are 0")
    elif silent:
        notes.append(f"no interval: {silent}")
    if math.isnan(target):
        notes.append("nobody to compare with")
    return "; ".join(notes)
