"""`certify`: bounds, or certificates, that hold for every group at once."""

import dataclasses
from typing import Any, Literal

from equipoise._codec import to_plain
from equipoise._rng import Rng, Seed, seed_of
from equipoise._validate import fraction, known_keywords, known_name, modest, whole
from equipoise.audits._atoms import atoms_of
from equipoise.audits._bench import (
    SELF_TARGET,
    Bench,
    check_method,
    finite,
    group_fields,
    make_engine,
    possible_range,
    set_up,
    status_note,
)
from equipoise.audits._likelihood import Found, band_applies, likelihood_bounds
from equipoise.audits._progress import Progress, progress_bar
from equipoise.audits._provenance import provenance_of
from equipoise.audits._together import jointly
from equipoise.audits.methods import (
    AllRanges,
    Band,
    Bootstrap,
    Certificates,
    Euclidean,
    Likelihood,
    as_method,
)
from equipoise.audits.ranges import certify_ranges
from equipoise.cells.tallied import Tallied
from equipoise.claims import Claim, Ratio, Together, as_claim
from equipoise.errors import OptionError
from equipoise.findings.bounds import (
    BoundedGroup,
    Bounds,
    clamp,
    judge,
    tolerance_words,
    vacuous_note,
)
from equipoise.findings.certificates import CertificateList, CertifiedGroup
from equipoise.findings.joint import Joint
from equipoise.findings.ranges import RangeCertificates
from equipoise.findings.words import level_text
from equipoise.methods import bootstrap
from equipoise.trail import Trail

Side = Literal["lower", "upper", "both"]


@known_keywords
def certify(
    trail: Trail | Tallied,
    claim: Claim | Together,
    *,
    level: float = 0.90,
    side: Side = "both",
    tolerance: float | None = None,
    method: Any = None,
    resamples: int | None = None,
    rng: Rng = None,
    progress: Progress = None,
) -> Bounds | CertificateList | RangeCertificates | Joint:
    """Bounds on every group's disparity that all hold at once, with the stated confidence.

    Parameters
    ----------
    trail, claim
        The audit trail, or its counts from `tally`, and the question.
    level
        Confidence that not a single bound is wrong.
    side
        Lower bounds, upper bounds, or both.
    tolerance
        A disparity that is tolerated. ``side="both"`` asks whether every group's disparity lies
        within it, ``"upper"`` whether it lies below, ``"lower"`` whether it lies above; each group
        then gets a verdict. For a ratio, ``"both"`` means between the tolerance and its inverse.
    method
        As a value or by name: `Band` (bounds by likelihood; the default for 0/1 metrics without
        weights, clusters, tilts or a custom target), `Bootstrap` (bounds; the default for all
        others), `Likelihood` and `Euclidean` (intervals group by group), `Certificates` (yes or no
        for each group, needs a tolerance) or `AllRanges` (the same for all ranges of a number).
    resamples
        Shorthand for the method's number of resamples or draws.
    rng
        Seed; the same seed gives the same answer. If not given, one is drawn and recorded.
    progress
        Whether to show a bar, or a function called with (done, total).

    Examples
    --------
    >>> import equipoise as eq
    >>> claim = eq.gap(eq.false_positive_rate, across=eq.intersections("race", "sex"))
    >>> bounds = eq.certify(eq.datasets.compas(), claim, level=0.95, rng=7)
    >>> row = bounds.ask(race="African-American")
    >>> round(row.disparity, 3), row.lower > 0.08
    (0.121, True)
    """
    if isinstance(claim, Together):
        same = seed_of(rng).number if rng is None else rng
        return jointly(
            claim,
            lambda part, error: certify(
                trail,
                part,
                level=1 - error,
                side=side,
                tolerance=tolerance,
                method=method,
                resamples=resamples,
                rng=same,
                progress=progress,
            ),
            1 - fraction("level", level),
            f"With {level_text(level)} confidence everything shown holds at once, for all claims",
        )
    fraction("level", level)
    known_name("side", side, ("lower", "upper", "both"))
    asked = as_claim(claim)
    _check_tolerance(tolerance, side, asked)
    chosen = None if method is None else as_method(method, _METHODS, "certify")
    if resamples is not None:
        whole("resamples", resamples, least=20)
        chosen = chosen and _shortened(chosen, resamples)
    seed = seed_of(rng)
    if isinstance(chosen, AllRanges):
        return certify_ranges(
            trail,
            asked,
            chosen,
            level=level,
            side=side,
            tolerance=tolerance,
            seed=seed,
            progress=progress,
        )
    bench = set_up(trail, asked)
    if chosen is None:
        chosen = _shortened(default_method(bench), resamples)
    check_method(bench, chosen, _TILTABLE)
    if isinstance(chosen, Band | Likelihood | Euclidean):
        found = likelihood_bounds(bench, chosen, level, side, seed, progress)
        return _assembled(bench, chosen, level, side, tolerance, seed, found)
    if isinstance(chosen, Certificates):
        return _certificates(bench, chosen, level, side, tolerance, seed, progress)
    return _bounds(bench, chosen, level, side, tolerance, seed, progress)


_METHODS = (Bootstrap, Certificates, AllRanges, Band, Likelihood, Euclidean)
_TILTABLE = {"bootstrap": Bootstrap, "certificates": Certificates}


def default_method(bench: Bench) -> Band | Bootstrap:
    """The band for unweighted 0/1 metrics, the bootstrap for all others."""
    return Band() if band_applies(bench) else Bootstrap()


def _shortened(method: Any, resamples: int | None) -> Any:
    """The method with another number of resamples."""
    if resamples is None:
        return method
    if isinstance(method, Likelihood | Euclidean):
        raise OptionError("resamples= has no meaning here: this method does not resample.")
    name = "draws" if isinstance(method, Band) else "resamples"
    return dataclasses.replace(method, **{name: resamples})


def _check_tolerance(tolerance: float | None, side: Side, claim: Claim) -> None:
    if tolerance is None:
        return
    modest("tolerance", tolerance)
    if isinstance(claim, Ratio):
        if tolerance <= 0 or (side == "both" and tolerance >= 1):
            raise OptionError(
                "For a ratio the tolerance is a share such as 0.8, between 0 and 1; "
                f"got {tolerance!r}."
            )
    elif side == "both" and tolerance <= 0:
        raise OptionError(f"tolerance must be above 0 with side='both'; got {tolerance!r}.")


def _bounds(
    bench: Bench,
    method: Bootstrap,
    level: float,
    side: Side,
    tolerance: float | None,
    seed: Seed,
    progress: Progress,
) -> Bounds:
    with progress_bar(progress, method.resamples, "certify") as tell:
        audit = _audit(bench, method, seed, tell)
        method = method.settled(audit.engine.has_spread)
        scaling = _scaling(method, power=1.5)
        extremes = bootstrap.bound_extremes(audit, scaling, studentized=method.studentized)
    read = bootstrap.simultaneous_bounds(
        bench.estimates, extremes, scaling, level=level, side=bootstrap.Side(side)
    )
    reach = bootstrap.half_width_factors(bench.estimates, scaling)
    found = Found(
        lower=read.lower,
        upper=read.upper,
        reach=reach,
        critical=read.critical,
        draws=tuple(zip(extremes.lowest.tolist(), extremes.highest.tolist(), strict=True)),
        engine=extremes.engine,
        recipe=None,
        guarantee="",
        assumption="large-sample approximation by the bootstrap",
    )
    return _assembled(bench, method, level, side, tolerance, seed, found)


def _assembled(
    bench: Bench,
    method: Any,
    level: float,
    side: Side,
    tolerance: float | None,
    seed: Seed,
    found: Found,
) -> Bounds:
    kept = {} if side == "both" else {"upper": "upper ", "lower": "lower "}
    words = (
        f"With {level_text(level)} confidence all {kept.get(side, '')}bounds hold at once, for "
        f"{_every(bench)}"
    )
    draft = Bounds(
        claim=bench.claim.quoted(),
        question=bench.claim.words,
        guarantee=found.guarantee or words,
        assumptions=(*_assumptions(bench), found.assumption),
        provenance=provenance_of(bench.cells, seed.number),
        rows=(),
        metric=bench.claim.metric.words,
        against=bench.claim.target.words,
        share=bench.cells.zero_one,
        relative=bench.relative,
        level=level,
        side=side,
        tolerance=tolerance,
        limits=possible_range(bench),
        method=to_plain(method),
        engine=found.engine,
        critical=finite(found.critical),
        draws=found.draws,
        recipe=found.recipe,
        atoms=atoms_of(bench) if _is_band(found) else None,
    )
    ends = zip(found.lower.tolist(), found.upper.tolist(), found.reach.tolist(), strict=True)
    rows = tuple(
        _bounded(draft, fields, status_note(bench, i), *map(finite, three))
        for i, (fields, three) in enumerate(zip(group_fields(bench), ends, strict=True))
    )
    return dataclasses.replace(draft, rows=rows)


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
    row = BoundedGroup(
        **fields,
        lower=clamp(lower, draft),
        upper=clamp(upper, draft),
        note=note,
        reach=reach,
    )
    verdict = judge(row, draft.tolerance, draft.side, draft.relative)
    said = vacuous_note(row, draft)
    if verdict is None and said == note:
        return row
    return dataclasses.replace(row, verdict=verdict, note=said)


def _certificates(
    bench: Bench,
    method: Certificates,
    level: float,
    side: Side,
    tolerance: float | None,
    seed: Seed,
    progress: Progress,
) -> CertificateList:
    if tolerance is None:
        raise OptionError("Certificates need a tolerance: what should each group be certified for?")
    if bench.relative:
        raise OptionError(
            "Certificates are for gaps. For a ratio, certify the gap to a scaled target, such as "
            "target=0.8 * reference(…) with tolerance=0 and side='lower'."
        )
    aim = {"lower": bootstrap.Aim.ABOVE, "upper": bootstrap.Aim.BELOW, "both": bootstrap.Aim.WITHIN}
    with progress_bar(progress, method.resamples, "certify") as tell:
        audit = _audit(bench, method, seed, tell)
        method = method.settled(audit.engine.has_spread)
        results = bootstrap.certify(
            audit,
            _scaling(method, power=1.5 if method.studentized else 0.5),
            aim=aim[side],
            limit=tolerance,
            step_down=method.step_down,
            studentized=method.studentized,
        )
    certified = bootstrap.combine(results, level)
    worst = [max(float(r.exceedances[i]) for r in results) for i in range(len(certified))]
    return CertificateList(
        claim=bench.claim.quoted(),
        question=bench.claim.words,
        guarantee=(
            f"With {level_text(level)} confidence not one certificate is false, for {_every(bench)}"
        ),
        assumptions=(*_assumptions(bench), "large-sample approximation by the bootstrap"),
        provenance=provenance_of(bench.cells, seed.number),
        rows=tuple(
            CertifiedGroup(
                **fields,
                certified=bool(certified[i]),
                p_adjusted=finite(worst[i]),
                note=status_note(bench, i),
            )
            for i, fields in enumerate(group_fields(bench))
        ),
        metric=bench.claim.metric.words,
        against=bench.claim.target.words,
        claimed=tolerance_words(tolerance, side, False, bench.cells.zero_one),
        level=level,
        tolerance=tolerance,
        side=side,
        method=to_plain(method),
        engine=audit.engine.name,
    )


def _audit(
    bench: Bench, method: Bootstrap | Certificates, seed: Seed, tell: Any
) -> bootstrap.Audit:
    return bootstrap.Audit(
        engine=make_engine(bench, method.engine, method.resamples),
        groups=bench.estimates,
        target=bench.target,
        sums=bench.collection.sums,
        resamples=method.resamples,
        seed=seed.sequence,
        progress=tell,
    )


def _scaling(
    method: Bootstrap | Certificates, power: float
) -> bootstrap.Scaling | bootstrap.Unscaled:
    if not method.scaled or method.shrink is None:
        return bootstrap.Unscaled()
    return bootstrap.Scaling(floor=method.floor, shrink=method.shrink, power=power)


def _every(bench: Bench) -> str:
    number = len(bench.collection)
    noun = bench.noun
    return f"every one of the {number:,} {noun}s" if number > 1 else f"the one {noun}"


def _assumptions(bench: Bench) -> tuple[str, ...]:
    unit = "clusters" if bench.cells.clusters is not None else "rows"
    return (
        f"{unit} are independent draws from the population audited",
        f"the collection of {bench.noun}s was fixed before looking at the outcomes",
    )
