"""`shift`: bounds on a metric under every tilt of the covariates, smooth up to a bandwidth."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Unpack, overload

import numpy as np

from equipoise._validate import (
    Rng,
    Seed,
    confidence,
    known_keywords,
    known_name,
    real,
    seed_of,
    whole,
)
from equipoise.audits._common import (
    Progress,
    RoleKeywords,
    TrailLike,
    as_trail,
    independent,
    plain_claim,
    possible_range,
    progress_bar,
    provenance_of,
)
from equipoise.audits._shift import (
    MonotoneTilts,
    ShiftRows,
    Span,
    TiltKernel,
    as_tilts,
    describe_point,
    look_at_shift,
    make_span,
    pull_shift_rows,
)
from equipoise.audits.certify import certify
from equipoise.cells.gather import influence_claims, side_claims
from equipoise.claims import Claim, as_claim, thresholds
from equipoise.claims import claim as targets
from equipoise.claims.claim import Gap
from equipoise.errors import ClaimError, OptionError
from equipoise.findings import Provenance
from equipoise.findings.bounds import BoundedGroup, Bounds
from equipoise.findings.shift import MonotoneShift, Shift, Stretch, half_level, share_critical
from equipoise.findings.shift_questions import NON_NEGATIVE, Tilted
from equipoise.findings.words import Side, level_text
from equipoise.methods import tilts
from equipoise.methods.numerics import FloatArray
from equipoise.methods.tilts.audit import share_errors
from equipoise.trail import Trail

# --- Monotone tilts: half-lines by `certify`, and the shares of the population betwee ---


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
    line = Gap(metric=claim.metric, across=thresholds(over.column), target=claim.target)
    told = _counted_apart(trail, over.column)
    beside = [] if told else [line, *influence_claims(line), *side_claims(line)]
    with look_at_shift(trail, claim, (over.column,), None, beside) as look:
        rows = pull_shift_rows(look, claim, (over.column,), None, seed.sequence)
        _check_number(rows, over.column)
        across = thresholds(over.column, grid=_grid(rows, over))
        halves: Bounds = certify(
            trail if told else look.along(across.attribute),
            dataclasses.replace(line, across=across),
            level=half_level(level),
            side=side,
            resamples=resamples,
            rng=seed.number,
            progress=progress,
        )
    return _finding(claim, rows, halves, over.column, level, seed)


def _counted_apart(trail: Trail, column: str) -> bool:
    """Whether half-lines are no plain counts of rows: labels are cheap, or there is no line."""
    odd = trail.roles.proxy_label or trail.roles.observed or trail.proxies
    return bool(odd) or not trail.schema[trail.attribute(column)].is_numeric()


def _check_number(rows: ShiftRows, column: str) -> None:
    """Weights rise in a number, and in one that has more than one value."""
    if rows.covariates[0].levels is not None:
        raise ClaimError(
            f"Weights rise or fall with a number; {column!r} is a category. For categories "
            f'use gaussian("{column}"), which tells them apart.'
        )
    if np.ptp(rows.points) == 0:
        raise ClaimError(
            f"{column!r} is {rows.points[0, 0]:g} on every row, so no weight can rise in it."
        )


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
        halves=halves,
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


# --- What a caller of `shift` asks for, checked before any row is read ---

Engine = Literal["auto", "exact", "moments"]


ShiftMethod = Literal["rescaled", "unscaled", "signed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftOptions:
    """Everything about a tilt audit but the data, the claim and the kernel."""

    level: float
    side: Side
    method: ShiftMethod
    engine: str
    resamples: int
    floor: float
    residual: float
    max_rank: int
    sample: int | None

    def __post_init__(self) -> None:
        confidence(self.level)
        known_name("side", self.side, ("lower", "upper", "both"))
        known_name("shift method", self.method, [str(each) for each in tilts.Method])
        known_name("engine", self.engine, ("auto", "exact", "moments"))
        whole("resamples", self.resamples, least=20)
        whole("max_rank", self.max_rank)
        if self.sample is not None:
            whole("sample", self.sample, least=2)
        if not 0 < real("floor", self.floor) <= 1:
            raise OptionError(f"floor must lie in (0, 1]; got {self.floor!r}.")
        if not 0 <= real("residual", self.residual) < 1:
            raise OptionError(f"residual must lie in [0, 1); got {self.residual!r}.")


# --- From a bootstrapped tilt process to a finding: bounds, the tilts shown, and what to keep ---

#: Tilts shown without being asked about.
SHOWN = 24


def shift_finding(
    claim: Gap,
    rows: ShiftRows,
    span: Span,
    options: ShiftOptions,
    seed: Seed,
    sample: tilts.TiltSample,
    found: tilts.TiltAudit,
) -> Shift:
    """The finding of an audited tilt process."""
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
        quantiles=() if reason else tilts.critical_table(found.draws, options.side),
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
        return "there is one row only, which shows nothing of the sampling error"
    if np.ptp(rows.values) == 0:
        return "the metric is the same on every row, and resampling cannot show its error"
    if rows.clusters is not None and rows.clusters.max() == 0:
        return "there is one cluster only, which shows nothing of the sampling error"
    return ""


def _basis(rows: ShiftRows, span: Span, moments: tilts.TiltMoments) -> tilts.TiltBasis:
    once = moments.second
    if np.any(rows.weights != 1):
        share = rows.counts * rows.weights / rows.n
        once = span.factor.features.T @ (span.factor.features * share[:, None])
    return tilts.TiltBasis(
        pivots=rows.points[span.factor.pivots],
        corner=span.factor.corner,
        mean=moments.mean,
        cross=moments.cross,
        second=moments.second,
        centred=moments.centred,
        once=once,
    )


def _space(rows: ShiftRows, span: Span, sample: tilts.TiltSample) -> tilts.TiltRows:
    return tilts.TiltRows(
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


def _words(where: Mapping[str, object]) -> str:
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
        return f"none: {reason}"
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


# --- `shift`: bounds on a metric under every tilt of the covariates, smooth up to a bandwidth ---

#: Rows × resamples up to which rows are resampled one by one.
EXACT_LIMIT = 50_000_000
#: What the squared norm of a tilt counts in its scale, in units of the kernel's diagonal.
#: Chosen for width, between the best of 0.001, 0.003 … 0.3 on ten samples (five kernels, 500 and
#: 2,000 rows): mostly 0.01 for smooth kernels, 0.03 and more for rough ones. Less makes rough tilts
#: decide the critical value of all; more widens tilts toward a few people at the edge.
FLOOR = 0.02
#: What a caller who asks about monotone tilts leaves as it is.
_KERNEL_DEFAULTS: dict[str, object] = {
    "method": "rescaled",
    "engine": "auto",
    "floor": FLOOR,
    "residual": tilts.TOLERANCE,
    "max_rank": tilts.MAX_RANK,
    "sample": None,
}


class _Options(RoleKeywords, total=False):
    """Options whose values do not change what kind of finding comes back."""

    level: float
    side: Side
    method: ShiftMethod
    engine: Engine
    resamples: int
    floor: float
    residual: float
    max_rank: int
    sample: int | None
    rng: Rng
    progress: Progress


@overload
def shift(
    trail: TrailLike, claim: Claim, *, over: MonotoneTilts, **options: Unpack[_Options]
) -> MonotoneShift: ...
@overload
def shift(
    trail: TrailLike,
    claim: Claim,
    *,
    over: TiltKernel | str | Sequence[str],
    **options: Unpack[_Options],
) -> Shift: ...
@overload
def shift(
    trail: TrailLike, claim: Claim, *, over: Mapping[str, object], **options: Unpack[_Options]
) -> Shift | MonotoneShift: ...
@known_keywords
def shift(
    trail: TrailLike,
    claim: Claim,
    *,
    over: MonotoneTilts | TiltKernel | str | Sequence[str] | Mapping[str, object],
    level: float = 0.95,
    side: Side = "both",
    method: ShiftMethod = "rescaled",
    engine: Engine = "auto",
    resamples: int = 1000,
    floor: float = FLOOR,
    residual: float = tilts.TOLERANCE,
    max_rank: int = tilts.MAX_RANK,
    sample: int | None = None,
    rng: Rng = None,
    progress: Progress = None,
    **roles: Unpack[RoleKeywords],
) -> Shift | MonotoneShift:
    """Bounds on the metric under every non-negative tilt of the covariates that is smooth enough.

    A tilt weighs people by their covariates. The tilts are the non-negative functions in the space
    of a kernel; bounds hold for all of them at once, so the finding may be asked about any tilt,
    any group (by the closest tilt) and any other population, as often as one likes.

    Parameters
    ----------
    trail
        The audit trail, or a path or table as in `certify`.
    claim
        A gap such as ``gap(false_positive_rate)``; its groups, if any, play no part.
    over
        The covariates and how smoothly tilts vary over them: `gaussian`, `laplace`, `kernel`,
        products of these, or names of covariates (Gaussian with the median bandwidth). Or
        `monotone`: every weight that rises, or falls, in one number; it takes level, side,
        resamples, rng and progress, and half-lines are bounded as by `certify`.
    level
        Confidence that every bound holds.
    side
        ``"lower"``, ``"upper"`` or ``"both"``.
    method
        ``"rescaled"`` measures each tilt in units of its own sampling error; ``"unscaled"`` is the
        published form, tight only for tilts near the whole population; ``"signed"`` rescales as
        well but over functions of either sign.
    engine
        ``"exact"`` resamples rows; ``"moments"`` draws averages from the normal with the same
        covariance, at a cost that does not grow with rows × resamples.
    resamples
        How often.
    floor
        What the squared norm of a tilt counts in its scale: rougher tilts get wider bounds.
    residual, max_rank
        When to stop adding kernel sections: at this share of the kernel's trace, or at so many.
        What is left out widens the bounds of tilts that need it.
    sample
        Audit so many rows, drawn at random.
    rng, progress
        As in `certify`.

    Examples
    --------
    >>> import equipoise as eq
    >>> found = eq.shift(
    ...     eq.datasets.compas(), eq.gap(eq.accuracy), over=eq.gaussian("age", "sex"), rng=7
    ... )
    >>> found.rank, found.engine
    (6, 'exact')
    >>> young = found.ask_group(age="Less than 25")
    >>> young.upper < 0, young.distance < 0.001
    (True, True)
    """
    options = ShiftOptions(
        level=level,
        side=side,
        method=method,
        engine=engine,
        resamples=resamples,
        floor=floor,
        residual=residual,
        max_rank=max_rank,
        sample=sample,
    )
    asked = plain_claim(as_claim(claim), "shift")
    if not isinstance(asked, Gap):
        raise ClaimError("shift asks about a gap; compare with a scaled target instead of a ratio.")
    chosen, seed, source = as_tilts(over), seed_of(rng), as_trail(trail, roles)
    if isinstance(chosen, MonotoneTilts):
        _only_for_kernels(options)
        return shift_monotone(
            source,
            asked,
            chosen,
            level=level,
            side=side,
            resamples=resamples,
            seed=seed,
            progress=progress,
        )
    with look_at_shift(source, asked, chosen.columns, sample) as look:
        rows = pull_shift_rows(look, asked, chosen.columns, sample, seed.sequence)
    span = make_span(rows, chosen, residual, max_rank)
    sampled, found = _audit(rows, span, options, seed, progress)
    return shift_finding(asked, rows, span, options, seed, sampled, found)


def _only_for_kernels(options: ShiftOptions) -> None:
    """Options that say how a kernel is treated mean nothing without one."""
    for name, default in _KERNEL_DEFAULTS.items():
        if getattr(options, name) != default:
            raise OptionError(
                f"{name}= is about kernels; monotone tilts take level, side, resamples, rng and "
                "progress."
            )


def _audit(
    rows: ShiftRows, span: Span, options: ShiftOptions, seed: Seed, progress: Progress
) -> tuple[tilts.TiltSample, tilts.TiltAudit]:
    plain = bool(np.all(rows.weights == 1))
    weights = rows.weights
    sample = tilts.TiltSample(
        features=span.factor.features if plain else span.factor.features * weights[:, None],
        values=rows.values - rows.mean,
        influence=rows.influence,
        counts=rows.counts,
        paired=rows.paired,
        apart=rows.apart,
        clusters=rows.clusters,
    )
    # The floor is in units of the kernel, so that k and 2k give the same bounds.
    diagonal = np.einsum("ij,ij->i", sample.features, sample.features)
    size = float(rows.counts @ (diagonal + weights**2 * span.factor.left)) / rows.n
    with progress_bar(progress, options.resamples, "shift") as tell:
        found = tilts.audit_tilts(
            sample,
            _engine(rows, sample, options),
            method=tilts.Method(options.method),
            floor=options.floor * size,
            resamples=options.resamples,
            seed=seed.sequence,
            progress=tell,
        )
    return sample, found


def _engine(rows: ShiftRows, sample: tilts.TiltSample, options: ShiftOptions) -> tilts.TiltEngine:
    if rows.clusters is not None:
        if options.engine == "moments":
            raise OptionError("engine='moments' cannot resample clusters; use engine='auto'.")
        return tilts.RowTilts(sample)
    affordable = rows.n * options.resamples <= EXACT_LIMIT
    if options.engine == "exact" or (options.engine == "auto" and affordable):
        return tilts.RowTilts(sample)
    return tilts.NormalTilts(sample)
