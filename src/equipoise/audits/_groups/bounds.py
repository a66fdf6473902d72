"""Bounds on every group of a bench that hold at once, as a finding."""

import dataclasses
from typing import Any

import numpy as np

from equipoise._codec import to_plain
from equipoise._rng import Seed
from equipoise.audits._fields import finite, possible_range, provenance_of
from equipoise.audits._groups.atoms import atoms_of
from equipoise.audits._groups.bench import (
    SELF_TARGET,
    Bench,
    audit_of,
    group_fields,
    status_note,
    without_spread,
)
from equipoise.audits._groups.likelihood import Found, likelihood_bounds
from equipoise.audits._groups.options import CertifyOptions
from equipoise.audits._progress import Progress, progress_bar
from equipoise.audits.methods import Bootstrap
from equipoise.findings.bounds import BoundedGroup, Bounds
from equipoise.findings.words import level_text
from equipoise.methods import bootstrap


def bound_bench(bench: Bench, options: CertifyOptions, seed: Seed, progress: Progress) -> Bounds:
    """Bound the groups of a bench by a method that gives numbers."""
    if isinstance(options.method, Bootstrap):
        return _by_bootstrap(bench, options, seed, progress)
    found = likelihood_bounds(bench, options.method, options.level, options.side, seed, progress)
    return _finding(bench, options, seed, found)


def _by_bootstrap(bench: Bench, options: CertifyOptions, seed: Seed, progress: Progress) -> Bounds:
    with progress_bar(progress, options.method.resamples, "certify") as tell:
        audit = audit_of(bench, options.method.engine, options.method.resamples, seed, tell)
        method = options.method.settled(audit.engine.has_spread)
        scaling = method.scaling(power=1.5)
        extremes = bootstrap.bound_extremes(audit, scaling, studentized=method.studentized)
    read = bootstrap.simultaneous_bounds(
        bench.estimates, extremes, scaling, level=options.level, side=bootstrap.Side(options.side)
    )
    # One row has no spread of its own, and equal rows show none: nothing follows from either.
    still = without_spread(bench)
    alone = (bench.estimates.status == bootstrap.Status.SINGLE) | still
    reach = bootstrap.half_width_factors(bench.estimates, scaling)
    found = Found(
        lower=np.where(alone, np.nan, read.lower),
        upper=np.where(alone, np.nan, read.upper),
        reach=np.where(alone, np.nan, reach),
        critical=read.critical,
        draws=tuple(zip(extremes.lowest.tolist(), extremes.highest.tolist(), strict=True)),
        engine=extremes.engine,
        recipe=None,
        guarantee="",
        assumption="large-sample approximation by the bootstrap",
        note="no group has two rows that differ" if still else "",
    )
    return _finding(bench, dataclasses.replace(options, method=method), seed, found)


def _finding(bench: Bench, options: CertifyOptions, seed: Seed, found: Found) -> Bounds:
    draft = Bounds(
        claim=bench.claim.quoted(),
        question=bench.claim.words,
        guarantee=found.guarantee or _guarantee(bench, options),
        assumptions=(*bench.assumptions, found.assumption),
        provenance=provenance_of(bench.cells, seed.number),
        rows=(),
        metric=bench.claim.metric.words,
        against=bench.claim.target.words,
        share=bench.cells.zero_one,
        relative=bench.relative,
        level=options.level,
        side=options.side,
        tolerance=options.tolerance,
        limits=possible_range(bench.claim),
        method=to_plain(options.method),
        engine=found.engine,
        critical=finite(found.critical),
        draws=found.draws,
        recipe=found.recipe,
        atoms=atoms_of(bench) if _is_band(found) else None,
    )
    ends = zip(found.lower.tolist(), found.upper.tolist(), found.reach.tolist(), strict=True)
    rows = tuple(
        _bounded(draft, fields, status_note(bench, i) or found.note, *map(finite, three))
        for i, (fields, three) in enumerate(zip(group_fields(bench), ends, strict=True))
    )
    return dataclasses.replace(draft, rows=rows)


def _guarantee(bench: Bench, options: CertifyOptions) -> str:
    kept = "" if options.side == "both" else f"{options.side} "
    return (
        f"With {level_text(options.level)} confidence all {kept}bounds hold at once, for "
        f"{bench.every}"
    )


def _is_band(found: Found) -> bool:
    return found.recipe is not None and found.recipe["kind"] == "band"


def _bounded(
    draft: Bounds,
    fields: dict[str, Any],
    note: str,
    lower: float | None,
    upper: float | None,
    reach: float | None,
) -> BoundedGroup:
    if note == SELF_TARGET:
        # Compared with itself a group differs by nothing, and that is certain.
        lower, upper, reach = fields["disparity"], fields["disparity"], 0.0
    return draft.judged(BoundedGroup(**fields, lower=lower, upper=upper, note=note, reach=reach))
