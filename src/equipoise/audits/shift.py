"""`shift`: bounds on a metric under every tilt of the covariates, smooth up to a bandwidth."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack, overload

import numpy as np

from equipoise._rng import Rng, Seed, seed_of
from equipoise._validate import known_keywords
from equipoise.audits._progress import Progress, progress_bar
from equipoise.audits._shift.finding import finding_of
from equipoise.audits._shift.monotone import shift_monotone
from equipoise.audits._shift.options import Engine, ShiftOptions
from equipoise.audits._shift.rows import ShiftRows, pull_shift_rows
from equipoise.audits._shift.span import Span, make_span
from equipoise.audits.kernels import MonotoneTilts, TiltKernel, as_tilts
from equipoise.claims import Claim, as_claim
from equipoise.claims.claim import Gap
from equipoise.errors import ClaimError, OptionError
from equipoise.findings.limits import Side
from equipoise.findings.monotone import MonotoneShift
from equipoise.findings.shift import Shift
from equipoise.methods import tilts
from equipoise.trail import Trail

#: Rows × resamples up to which rows are resampled one by one.
EXACT_LIMIT = 50_000_000
#: What the squared norm of a tilt counts in its scale, in units of the kernel's diagonal.
#: Chosen for width, between the best of 0.001, 0.003 … 0.3 on ten samples (five kernels, 500 and
#: 2,000 rows): mostly 0.01 for smooth kernels, 0.03 and more for rough ones. Less makes rough tilts
#: decide the critical value of all; more widens tilts toward a few people at the edge.
FLOOR = 0.02
#: What a caller who asks about monotone tilts leaves as it is.
_KERNEL_DEFAULTS: dict[str, Any] = {
    "method": "rescaled",
    "engine": "auto",
    "floor": FLOOR,
    "residual": tilts.TOLERANCE,
    "max_rank": tilts.MAX_RANK,
    "sample": None,
}


class _Options(TypedDict, total=False):
    """Options whose values do not change what kind of finding comes back."""

    level: float
    side: Side
    method: str
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
    trail: Trail, claim: Claim, *, over: MonotoneTilts, **options: Unpack[_Options]
) -> MonotoneShift: ...
@overload
def shift(
    trail: Trail,
    claim: Claim,
    *,
    over: TiltKernel | str | Sequence[str],
    **options: Unpack[_Options],
) -> Shift: ...
@overload
def shift(
    trail: Trail, claim: Claim, *, over: Mapping[str, Any], **options: Unpack[_Options]
) -> Shift | MonotoneShift: ...
@known_keywords
def shift(
    trail: Trail,
    claim: Claim,
    *,
    over: Any,
    level: float = 0.90,
    side: Side = "both",
    method: str = "rescaled",
    engine: Engine = "auto",
    resamples: int = 1000,
    floor: float = FLOOR,
    residual: float = tilts.TOLERANCE,
    max_rank: int = tilts.MAX_RANK,
    sample: int | None = None,
    rng: Rng = None,
    progress: Progress = None,
) -> Shift | MonotoneShift:
    """Bounds on the metric under every non-negative tilt of the covariates that is smooth enough.

    A tilt weighs people by their covariates. The tilts are the non-negative functions in the space
    of a kernel; bounds hold for all of them at once, so the finding may be asked about any tilt,
    any group (by the closest tilt) and any other population, as often as one likes.

    Parameters
    ----------
    trail
        The audit trail.
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
    asked = as_claim(claim)
    if not isinstance(asked, Gap):
        raise ClaimError("shift asks about a gap; compare with a scaled target instead of a ratio.")
    chosen, seed = as_tilts(over), seed_of(rng)
    if isinstance(chosen, MonotoneTilts):
        _only_for_kernels(options)
        return shift_monotone(
            trail,
            asked,
            chosen,
            level=level,
            side=side,
            resamples=resamples,
            seed=seed,
            progress=progress,
        )
    rows = pull_shift_rows(trail, asked, chosen.columns, sample, seed.sequence)
    span = make_span(rows, chosen, residual, max_rank)
    sampled, found = _audit(rows, span, options, seed, progress)
    return finding_of(asked, rows, span, options, seed, sampled, found)


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
