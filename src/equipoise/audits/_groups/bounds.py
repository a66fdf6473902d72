"""Bounds on every group of a bench that hold at once, as a finding."""

import dataclasses
import math
from typing import Any

import numpy as np
from scipy.special import ndtri

from equipoise._codec import to_plain
from equipoise._rng import Seed
from equipoise.audits._fields import finite, possible_range, provenance_of
from equipoise.audits._groups.bench import Bench, group_fields, notes_of, published_notes
from equipoise.audits._groups.betting import bounds_by_betting, can_bet
from equipoise.audits._groups.likelihood import Found, likelihood_bounds
from equipoise.audits._groups.options import CertifyOptions
from equipoise.audits._groups.published import bootstrap_bounds
from equipoise.audits._groups.scores import answerable, exactness
from equipoise.audits._progress import Progress
from equipoise.audits.methods import Betting, Bootstrap, Pivotal
from equipoise.findings.bounds import BoundedGroup, Bounds
from equipoise.findings.words import level_text
from equipoise.methods.inference.core import Core
from equipoise.methods.inference.stored import stored


def bound_bench(bench: Bench, options: CertifyOptions, seed: Seed, progress: Progress) -> Bounds:
    """Bound the groups of a bench by a method that gives numbers."""
    if isinstance(options.method, Pivotal):
        return _finding(bench, options, seed, _by_scores(bench, options, seed, progress))
    if isinstance(options.method, Bootstrap):
        return _finding(bench, options, seed, bootstrap_bounds(bench, options, seed, progress))
    if isinstance(options.method, Betting):
        found = bounds_by_betting(bench, options.level, options.side, seed)
        return _finding(bench, options, seed, found)
    found = likelihood_bounds(bench, options.method, options.level, options.side)
    return _finding(bench, options, seed, found)


def _by_scores(bench: Bench, options: CertifyOptions, seed: Seed, progress: Progress) -> Found:
    core, critical, score = answerable(
        bench.core, options.level, options.side, options.method.draws, seed, progress
    )
    low, high = (np.full(core.status.shape, np.nan) for _ in range(2))
    if core.answered.size:
        low, high = core.bounds(critical.value, limits_of(bench))
    none = np.full(low.shape, np.nan)
    return Found(
        lower=low if options.side != "upper" else none,
        upper=high if options.side != "lower" else none,
        against=_against(core, bench, options, critical.value),
        reach=np.where(np.isnan(low), np.nan, core.pivot.error),
        critical=critical.value,
        quantiles=critical.quantiles,
        engine="normal scores of all groups; no rows resampled",
        recipe=stored(core),
        guarantee="",
        assumption=_trust(bench),
        notes=tuple(
            notes_of(core, score, bench.claim.metric, bench.noun, bets=can_bet(bench) == "")
        ),
    )


def _trust(bench: Bench) -> str:
    return f"error rate {exactness(bench, many=len(bench.collection) > 1)}"


def limits_of(bench: Bench) -> tuple[float, float]:
    """Smallest and largest disparity that is possible at all, infinite where there is no limit."""
    low, high = possible_range(bench.claim, bench.cells.zero_one)
    return (-math.inf if low is None else low), (math.inf if high is None else high)


def _against(
    core: Core, bench: Bench, options: CertifyOptions, critical: float
) -> np.ndarray | None:
    """Bounds on the other side, where a one-sided limit may be shown not to be kept.

    A group either keeps its limit or does not, so it can be judged wrongly in one way only. With m
    groups each at the error (1 − level)/m no judgement is wrong; the bounds that show a limit kept
    are at least as strict.
    """
    if options.side == "both" or options.tolerance is None or not core.answered.size:
        return None
    number = core.answered.size
    strict = float(-ndtri((1 - options.level) / number))
    # an upper bound judges a lower limit, and the other way round
    low, high = core.bounds(max(strict, critical), limits_of(bench))
    return high if options.side == "lower" else low


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
        limits=possible_range(bench.claim, bench.cells.zero_one),
        method=to_plain(options.method),
        engine=found.engine,
        critical=finite(found.critical),
        quantiles=found.quantiles,
        recipe=found.recipe,
    )
    notes = found.notes or published_notes(bench, ~np.isnan(found.reach), options.method)
    other = found.against if found.against is not None else np.full(found.lower.shape, np.nan)
    columns = (found.lower, found.upper, found.reach, other)
    ends = zip(*(x.tolist() for x in columns), strict=True)
    rows = tuple(
        _bounded(draft, fields, note, *map(finite, four))
        for fields, note, four in zip(group_fields(bench), notes, ends, strict=True)
    )
    return dataclasses.replace(draft, rows=rows)


def _guarantee(bench: Bench, options: CertifyOptions) -> str:
    kept = "" if options.side == "both" else f"{options.side} "
    return (
        f"With {level_text(options.level)} confidence all {kept}bounds hold at once, for "
        f"{bench.every}"
    )


def _bounded(
    draft: Bounds,
    fields: dict[str, Any],
    note: str,
    lower: float | None,
    upper: float | None,
    reach: float | None,
    other: float | None,
) -> BoundedGroup:
    row = BoundedGroup(**fields, lower=lower, upper=upper, note=note, reach=reach)
    return draft.judged(row, other)
