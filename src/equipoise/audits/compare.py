"""`compare`: whether one spread between groups is larger than another."""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from equipoise._rng import Rng, seed_of
from equipoise._validate import fraction, known_keywords, listing, modest, whole
from equipoise.audits._fields import finite, independent, provenance_of, unit_of
from equipoise.audits._groups.bench import cell_moments, cluster_sums
from equipoise.audits._progress import Progress, progress_bar
from equipoise.audits._spread.bench import quoted
from equipoise.audits._spread.model_pairs import (
    Contrasts,
    Options,
    checked,
    joint_outcomes,
    joint_rows,
    model_role,
    sizes,
    with_model,
)
from equipoise.audits._spread.partition import Partition, disjoint, find_partition, words_of
from equipoise.audits._spread.rows import as_measures
from equipoise.cells import Cells, gather
from equipoise.cells.steady import steady_cells
from equipoise.cells.tallied import Tallied, rows_behind
from equipoise.claims import Metric, overall
from equipoise.claims.claim import Gap
from equipoise.claims.groups import Groups
from equipoise.claims.metric import as_metric
from equipoise.errors import ClaimError, OptionError
from equipoise.findings.comparison import ComparedSide, ComparedSpread, Comparison
from equipoise.methods import spread
from equipoise.methods.arrays import FloatArray
from equipoise.methods.spread import Meta
from equipoise.methods.spread.metrics import needs_positive
from equipoise.methods.targets import Constant
from equipoise.trail import Trail


@known_keywords
def compare(
    trail: Trail | Tallied,
    metric: Metric | str,
    *,
    across: Any,
    models: Mapping[str, str] | None = None,
    measures: Iterable[str] | str | None = "variance",
    alpha: float = 2.0,
    level: float = 0.95,
    resamples: int = 1000,
    rng: Rng = None,
    progress: Progress = None,
) -> Comparison:
    """Whether groups are further apart by one attribute than by another, or for one model.

    The same resampled rows enter every variance, so what they share cancels. The other measures are
    compared by their own intervals, which holds whatever they share.

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
    fraction("level", level)
    modest("alpha", alpha)
    whole("resamples", resamples, least=20)
    kinds = as_measures(measures)
    measured = as_metric(metric)
    seed = seed_of(rng)
    if models is not None or not isinstance(trail, Tallied):
        # another model's column is not among the counts
        trail = rows_behind(trail)
    with progress_bar(progress, 1, "compare") as tell:
        stream, others = np.random.default_rng(seed.sequence).spawn(2)
        options = Options(level, resamples, stream)
        if models is None:
            asked = _attributes(across)
            made = _by_attribute(trail, measured, asked, options)
            claim = quoted("comparison", measured, asked)
        else:
            groups = disjoint(across)
            columns = _models(models)
            made = _by_model(rows_behind(trail), measured, groups, columns, options)
            claim = {**quoted("comparison", measured, groups), "models": columns}
        rows = _rows(made, kinds, alpha, Options(level, resamples, others))
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
        share=made.cells.zero_one,
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
    trail: Trail | Tallied, metric: Metric, asked: list[Groups], options: Options
) -> _Made:
    claims = [Gap(metric=metric, across=g, target=overall()) for g in asked]
    cells = steady_cells(gather(trail, claims)[0])
    partitions = [find_partition(groups, cells) for groups in asked]
    samples = [checked(cells, partition, options.level) for partition in partitions]
    if all(sample.frozen for sample in samples):
        raise ClaimError(f"The {metric.words} does not vary, so no spread can be compared.")
    names = [words_of(groups) for groups in asked]
    if cells.weighted or cells.clusters is not None:
        contrasts = spread.compare_moved(
            samples,
            _together(cells, partitions, samples),
            rng=options.rng,
            level=options.level,
            resamples=options.resamples,
        )
    else:
        contrasts = _resampled(cells, partitions, options)
    return _Made(
        names=names,
        by=" and ".join(names),
        cells=cells,
        partitions=partitions,
        rows=[sizes(p, cells.rows) for p in partitions],
        contrasts=contrasts,
        assumptions=(independent(unit_of(cells)),),
    )


def _resampled(cells: Cells, partitions: list[Partition], options: Options) -> Contrasts:
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
        place = np.full(len(partition) + 1, -1)
        place[sample.kept] = number + np.arange(sample.groups)
        # cells in no group have the code -1, which points at the spare last entry
        places.append(place[partition.group])
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
    trail: Trail, metric: Metric, groups: Groups, models: dict[str, str], options: Options
) -> _Made:
    role = model_role(metric)
    trails = [with_model(trail, role, column, models) for column in models.values()]
    # A metric of label and prediction alone has few joint outcomes; any other needs the rows.
    local = isinstance(metric.value, str) and set(metric.names()) <= set(metric.binary)
    local = local and trail.roles.weight is None and trail.roles.cluster is None
    made = joint_outcomes if local else joint_rows
    cells, partition, rows, contrasts = made(trails, metric, groups, role, options)
    return _Made(
        names=list(models),
        by=words_of(groups),
        cells=cells,
        partitions=[partition] * len(models),
        rows=rows,
        contrasts=contrasts,
        assumptions=(f"{unit_of(cells)} are independent draws within each group",),
    )


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


def _rows(
    made: _Made, kinds: list[Meta], alpha: float, options: Options
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
