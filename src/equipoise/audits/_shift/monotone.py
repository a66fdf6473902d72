"""Monotone tilts: half-lines by `certify`, and the shares of the population between their cuts."""

import dataclasses

import numpy as np

from equipoise._validate import Seed
from equipoise.audits._common import Progress
from equipoise.audits._shift.rows import ShiftRows, pull_shift_rows
from equipoise.audits.certify import certify
from equipoise.audits.kernels import MonotoneTilts
from equipoise.claims import target as targets
from equipoise.claims import thresholds
from equipoise.claims.claim import Gap
from equipoise.errors import ClaimError
from equipoise.findings.bounds import BoundedGroup, Bounds
from equipoise.findings.shift import MonotoneShift, Stretch, half_level, share_critical
from equipoise.findings.words import Side, level_text
from equipoise.methods.numerics import FloatArray
from equipoise.methods.tilts.audit import share_errors
from equipoise.trail import Trail


def shift_monotone(
    trail: Trail,
    claim: Gap,
    over: MonotoneTilts,
    *,
    level: float,
    side: Side,
    resamples: int,
    seed: Seed,
    progress: Progress,
) -> MonotoneShift:
    """Bound every half-line of the column at once, and keep what any mixture of them needs."""
    rows = pull_shift_rows(trail, claim, (over.column,), None, seed.sequence)
    if rows.covariates[0].levels is not None:
        raise ClaimError(
            f"Weights rise or fall with a number; {over.column!r} is a category. For categories "
            f'use gaussian("{over.column}"), which tells them apart.'
        )
    if np.ptp(rows.points) == 0:
        raise ClaimError(
            f"{over.column!r} is {rows.points[0, 0]:g} on every row, so no weight can rise in it."
        )
    across = thresholds(over.column, grid=_grid(rows, over))
    halves: Bounds = certify(
        trail,
        Gap(metric=claim.metric, across=across, target=claim.target),
        level=half_level(level),
        side=side,
        resamples=resamples,
        rng=seed.number,
        progress=progress,
    )
    return _finding(claim, rows, halves, over.column, level, seed)


def _grid(rows: ShiftRows, over: MonotoneTilts) -> int | None:
    """How many stretches to ask for; None for every distinct value, if there are few enough."""
    few = over.grid is None or len(np.unique(rows.points)) <= over.grid
    return None if few else over.grid


def _finding(
    claim: Gap, rows: ShiftRows, halves: Bounds, column: str, level: float, seed: Seed
) -> MonotoneShift:
    below, above = _sides(halves)
    cuts = np.array([_ends(row)["from"] for row in above])
    halves = dataclasses.replace(halves, rows=(*below, *above))
    whole = isinstance(claim.target, targets.Overall) and claim.target.scale == 1
    share = rows.counts * rows.weights / rows.counts.sum()
    unit = "rows" if rows.clusters is None else "clusters"
    return MonotoneShift(
        claim=claim.quoted(),
        question=f"{claim.words}, under monotone tilts of {column}",
        guarantee=(
            f"With {level_text(level)} confidence all bounds hold at once, for every weight that "
            f"rises, and every weight that falls, in {column}"
        ),
        assumptions=(
            *halves.assumptions,
            f"shares of the population by {column}: large-sample approximation, {unit} independent",
            f"the metric depends on {column} in the tilted population as in the audited one",
        ),
        provenance=halves.provenance,
        rows=halves.rows,
        n=rows.n,
        column=column,
        metric=halves.metric,
        against=halves.against,
        share=halves.share,
        target=rows.target if above[0].target is None else above[0].target,
        level=level,
        side=halves.side,
        limits=halves.limits,
        stretches=_stretches(rows, cuts),
        critical=share_critical(level, len(cuts)),
        # Rows without a value of the column count in the target, and everyone differs from it.
        own=whole and not rows.lost,
        halves=halves.to_dict(),
        space=np.stack([rows.points[:, 0], share]),
    )


def _sides(halves: Bounds) -> tuple[list[BoundedGroup], list[BoundedGroup]]:
    """Half-lines below and from each cut, each in the order of the cuts."""
    first = min(_ends(row)["from"] for row in halves.rows)
    below = [row for row in halves.rows if _ends(row)["from"] == first]
    above = [row for row in halves.rows if _ends(row)["from"] > first]

    def stop(row: BoundedGroup) -> float:
        ends = _ends(row)
        return float(ends["below"] if "below" in ends else ends["to"])

    return sorted(below, key=stop), sorted(above, key=lambda row: _ends(row)["from"])


def _ends(row: BoundedGroup) -> dict[str, float]:
    (ends,) = row.where.values()
    return dict(ends)


def _stretches(rows: ShiftRows, cuts: FloatArray) -> tuple[Stretch, ...]:
    x, n = rows.points[:, 0], rows.counts.sum()
    place = np.searchsorted(cuts, x, side="right")
    size = len(cuts) + 1

    def total(weights: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(place, rows.counts * weights, minlength=size) / n)

    share, square = total(rows.weights), total(rows.weights**2)
    summed = total(rows.weights * rows.values)
    errors = share_errors(place, rows.weights, rows.counts, rows.clusters, len(cuts))
    starts, stops = [float(x.min()), *map(float, cuts)], [*map(float, cuts), float(x.max())]
    return tuple(
        Stretch(
            start=starts[i],
            stop=stops[i],
            share=float(share[i]),
            square=float(square[i]),
            mean=float(summed[i] / share[i]) if share[i] > 0 else None,
            error=0.0 if i == 0 else float(errors[i - 1]),
        )
        for i in range(size)
    )
