"""`compare`: whether one spread between groups is larger than another."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from equipoise._rng import Rng, seed_of
from equipoise._validate import fraction, known_keywords, listing, whole
from equipoise.audits._fields import independent, provenance_of
from equipoise.audits._progress import Progress, progress_bar
from equipoise.audits._spread.bench import quoted, refuse_clusters
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
from equipoise.audits._spread.rows import exclusion_note
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
from equipoise.trail import Trail


@known_keywords
def compare(
    trail: Trail | Tallied,
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
    whole("resamples", resamples, least=20)
    measured = as_metric(metric)
    seed = seed_of(rng)
    if models is not None or not isinstance(trail, Tallied):
        # another model's column is not among the counts
        trail = rows_behind(trail)
    _refuse_weights(trail)
    with progress_bar(progress, 1, "compare") as tell:
        options = Options(level, resamples, np.random.default_rng(seed.sequence))
        if models is None:
            asked = _attributes(across)
            made = _by_attribute(trail, measured, asked, options)
            claim = quoted("comparison", measured, asked)
        else:
            groups = disjoint(across)
            columns = _models(models)
            made = _by_model(rows_behind(trail), measured, groups, columns, options)
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
    refuse_clusters(cells)
    partitions = [find_partition(groups, cells) for groups in asked]
    samples = [checked(cells, partition) for partition in partitions]
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
        rows=[sizes(p, cells.rows) for p in partitions],
        contrasts=contrasts,
        assumptions=(independent(),),
    )


def _by_model(
    trail: Trail, metric: Metric, groups: Groups, models: dict[str, str], options: Options
) -> _Made:
    role = model_role(metric)
    trails = [with_model(trail, role, column, models) for column in models.values()]
    # A metric of label and prediction alone has few joint outcomes; any other needs the rows.
    local = isinstance(metric.value, str) and set(metric.names()) <= set(metric.binary)
    made = joint_outcomes if local else joint_rows
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


def _refuse_weights(trail: Trail | Tallied) -> None:
    if trail.roles.weight is not None:
        raise OptionError(
            "compare resamples rows and does not take sampling weights. Read the trail without "
            "weight=…, or summarize each attribute or model by itself."
        )


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
    rows = made.rows[position]
    return ComparedSide(
        name=made.names[position],
        groups=sample.groups,
        variance=variance,
        sd=math.sqrt(max(variance, 0.0)),
        plain_sd=float(np.std(sample.mean, ddof=1)),
        excluded=tuple(f"{labels[i]}: {_left_out(rows[i])}" for i in sample.excluded.tolist()),
    )


def _left_out(n: int) -> str:
    # A group may be large enough for one model and too small for another.
    return exclusion_note(n) if n < 2 else "too few rows for another model"
