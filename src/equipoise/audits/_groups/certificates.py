"""Yes-or-no certificates for every group of a bench, as a finding."""

from equipoise._codec import to_plain
from equipoise._rng import Seed
from equipoise.audits._fields import finite, provenance_of
from equipoise.audits._groups.bench import (
    Bench,
    audit_of,
    group_fields,
    status_note,
    without_spread,
)
from equipoise.audits._groups.options import CertifyOptions
from equipoise.audits._progress import Progress, progress_bar
from equipoise.errors import OptionError
from equipoise.findings.certificates import CertificateList, CertifiedGroup
from equipoise.findings.limits import tolerance_words
from equipoise.findings.words import level_text
from equipoise.methods import bootstrap

_AIMS = {"lower": bootstrap.Aim.ABOVE, "upper": bootstrap.Aim.BELOW, "both": bootstrap.Aim.WITHIN}


def certify_bench(
    bench: Bench, options: CertifyOptions, seed: Seed, progress: Progress
) -> CertificateList:
    """Certify the groups of a bench for the tolerance."""
    limit = _limit(bench, options.tolerance)
    with progress_bar(progress, options.method.resamples, "certify") as tell:
        audit = audit_of(bench, options.method.engine, options.method.resamples, seed, tell)
        method = options.method.settled(audit.engine.has_spread)
        results = bootstrap.certify(
            audit,
            # the studentized process is that of the bounds, and so is its scale
            method.scaling(power=1.5 if method.studentized else 0.5),
            aim=_AIMS[options.side],
            limit=limit,
            step_down=method.step_down,
            studentized=method.studentized,
        )
    return CertificateList(
        claim=bench.claim.quoted(),
        question=bench.claim.words,
        guarantee=(
            f"With {level_text(options.level)} confidence not one certificate is false, for "
            f"{bench.every}"
        ),
        assumptions=(*bench.assumptions, "large-sample approximation by the bootstrap"),
        provenance=provenance_of(bench.cells, seed.number),
        rows=_rows(bench, results, options.level),
        metric=bench.claim.metric.words,
        against=bench.claim.target.words,
        claimed=tolerance_words(limit, options.side, False, bench.cells.zero_one),
        level=options.level,
        tolerance=limit,
        side=options.side,
        method=to_plain(method),
        engine=audit.engine.name,
    )


def _limit(bench: Bench, tolerance: float | None) -> float:
    if tolerance is None:
        raise OptionError(
            "Certificates need a tolerance: what should each group be certified for? Pass "
            "tolerance=…, or use method='bootstrap' for bounds."
        )
    if bench.relative:
        raise OptionError(
            "Certificates are for gaps. For a ratio, certify the gap to a scaled target, such as "
            "target=0.8 * reference(…) with tolerance=0 and side='lower'."
        )
    return tolerance


def _rows(
    bench: Bench, results: tuple[bootstrap.Certificates, ...], level: float
) -> tuple[CertifiedGroup, ...]:
    # equal rows show no error, which is not to say that there is none
    certified = bootstrap.combine(results, level) & (not without_spread(bench))
    # both sides of a range must be certified, so the weaker one is the group's p-value
    worst = [max(float(r.exceedances[i]) for r in results) for i in range(len(certified))]
    return tuple(
        CertifiedGroup(
            **fields,
            certified=bool(certified[i]),
            p_adjusted=finite(worst[i]),
            note=status_note(bench, i),
        )
        for i, fields in enumerate(group_fields(bench))
    )
