"""From a bootstrapped tilt process to a finding: bounds, the tilts shown, and what to keep."""

import dataclasses
from typing import Any

import numpy as np

from equipoise._rng import Seed
from equipoise.audits._fields import independent, possible_range, provenance_of
from equipoise.audits._shift.options import ShiftOptions
from equipoise.audits._shift.rows import ShiftRows, describe_point
from equipoise.audits._shift.span import Span
from equipoise.claims.claim import Gap
from equipoise.findings import Provenance
from equipoise.findings.shift import Shift
from equipoise.findings.shift_kernels import NON_NEGATIVE
from equipoise.findings.shift_rows import Tilted
from equipoise.findings.shift_space import ShiftBasis, ShiftSpace
from equipoise.findings.words import level_text
from equipoise.methods import tilts

#: Tilts shown without being asked about.
SHOWN = 24


def finding_of(
    claim: Gap,
    rows: ShiftRows,
    span: Span,
    options: ShiftOptions,
    seed: Seed,
    sample: tilts.TiltSample,
    found: tilts.TiltAudit,
) -> Shift:
    reason = _reason(rows)
    critical = tilts.critical_value(found.draws, options.level, options.side)
    draft = Shift(
        claim=claim.quoted(),
        question=f"{claim.words}, under tilts of {', '.join(c.name for c in rows.covariates)}",
        guarantee=_guarantee(options, reason),
        assumptions=_assumptions(found.engine, span, rows.n),
        provenance=_provenance(rows, seed),
        rows=(),
        n=rows.n,
        metric=claim.metric.words,
        against=claim.target.words,
        share=rows.cells.zero_one,
        target=rows.target,
        mean=rows.mean,
        spread=_spread(claim, rows),
        level=options.level,
        side=options.side,
        limits=possible_range(claim),
        method=options.method,
        floor=found.floor,
        engine=found.engine,
        resamples=options.resamples,
        critical=None if reason else critical,
        rank=span.factor.rank,
        residual=span.factor.residual,
        kernel=span.parts,
        covariates=rows.covariates,
        reach=(found.reach[0] + rows.mean, found.reach[1] + rows.mean),
        sampled=rows.sampled,
        reason=reason,
        draws=tuple((float(low), float(high)) for low, high in found.draws),
        basis=_basis(rows, span, found.moments),
        space=_space(rows, span, sample),
    )
    return dataclasses.replace(draft, rows=_shown(draft, rows, span))


def _spread(claim: Gap, rows: ShiftRows) -> float:
    """By how much the metric can differ between people: its range, or four standard deviations."""
    if claim.metric.low is not None and claim.metric.high is not None:
        return claim.metric.high - claim.metric.low
    return 4 * float(np.sqrt(rows.counts @ (rows.values - rows.mean) ** 2 / rows.n))


def _reason(rows: ShiftRows) -> str:
    if rows.n == 1:
        return "not enough data: n = 1"
    if np.ptp(rows.values) == 0:
        return "the metric is the same on every row, and resampling cannot show its error"
    if rows.clusters is not None and rows.clusters.max() == 0:
        return "not enough data: one cluster"
    return ""


def _basis(rows: ShiftRows, span: Span, moments: tilts.TiltMoments) -> ShiftBasis:
    once = moments.second
    if np.any(rows.weights != 1):
        share = rows.counts * rows.weights / rows.n
        once = span.factor.features.T @ (span.factor.features * share[:, None])
    return ShiftBasis(
        pivots=rows.points[span.factor.pivots],
        corner=span.factor.corner,
        mean=moments.mean,
        cross=moments.cross,
        second=moments.second,
        centred=moments.centred,
        once=once,
    )


def _space(rows: ShiftRows, span: Span, sample: tilts.TiltSample) -> ShiftSpace:
    return ShiftSpace(
        kernel=span.kernel,
        points=rows.points,
        features=span.factor.features,
        left=span.factor.left,
        weights=rows.weights,
        counts=rows.counts,
        values=sample.values,
        influence=sample.influence,
        paired=sample.paired,
        apart=sample.apart,
        clusters=sample.clusters,
    )


def _shown(draft: Shift, rows: ShiftRows, span: Span) -> tuple[Tilted, ...]:
    """The first kernel sections as tilts: toward people like one of the rows."""
    if len(span.constant) == len(rows.covariates):
        row = draft.tilted(span.factor.corner[0], "everyone")
        note = "every covariate is constant, so there is no other tilt"
        return (dataclasses.replace(row, note=row.note or note),)
    corner = span.factor.corner[:SHOWN]
    if not all(part.form in NON_NEGATIVE for part in span.parts):
        corner = corner[(span.factor.features @ corner.T).min(axis=0) >= 0]
    points = rows.points[span.factor.pivots[:SHOWN]]
    order = np.lexsort(points.T[::-1])
    made = []
    for i in order[order < len(corner)]:
        where = describe_point(rows.covariates, points[i])
        made.append(draft.tilted(corner[i], _words(where), where))
    return tuple(made)


def _words(where: dict[str, Any]) -> str:
    return ", ".join(
        value
        if isinstance(value, str)
        else f"{name} missing"
        if value is None
        else f"{name} {value:.4g}"
        if isinstance(value, float)
        else f"{name} {value}"
        for name, value in where.items()
    )


def _provenance(rows: ShiftRows, seed: Seed) -> Provenance:
    plain = provenance_of(rows.cells, seed.number)
    return dataclasses.replace(
        plain,
        counted=plain.counted - sum(rows.lost.values()),
        excluded={**plain.excluded, **rows.lost},
        cells=len(rows.values),
        fingerprint=rows.fingerprint(),
    )


def _guarantee(options: ShiftOptions, reason: str) -> str:
    if reason:
        return f"None: {reason}"
    kept = "" if options.side == "both" else f"{options.side} "
    tilted = "tilts" if options.method == "signed" else "non-negative tilts"
    return (
        f"With {level_text(options.level)} confidence all {kept}bounds hold at once, for all "
        f"{tilted} in the space of the kernel"
    )


#: Rows from which simulated bounds were wrong about as often as stated, for tilts of any width.
_ENOUGH = 400


def _assumptions(engine: str, span: Span, n: int) -> tuple[str, ...]:
    few = "" if n >= _ENOUGH else f"; {n:,} rows are few for it, and up to twice the error was seen"
    constant = (f"constant covariates: {', '.join(span.constant)}",) if span.constant else ()
    return (
        independent("clusters" if engine == "clusters" else "rows"),
        f"large-sample approximation by the bootstrap{few}",
        "the metric depends on the covariates in the tilted population as in the audited one",
        *constant,
    )
