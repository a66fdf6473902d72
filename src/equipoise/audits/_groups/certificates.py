"""Yes-or-no certificates for every group of a bench, as a finding."""

import numpy as np

from equipoise._codec import to_plain
from equipoise._rng import Seed
from equipoise.audits._fields import finite, provenance_of
from equipoise.audits._groups.bench import Bench, group_fields, notes_of, published_notes
from equipoise.audits._groups.options import CertifyOptions
from equipoise.audits._groups.published import bootstrap_certificates
from equipoise.audits._groups.scores import answerable, exactness, stepped_down
from equipoise.audits._progress import Progress
from equipoise.audits.methods import Certificates
from equipoise.errors import OptionError
from equipoise.findings.certificates import CertificateList, CertifiedGroup
from equipoise.findings.limits import tolerance_words, tolerated
from equipoise.findings.words import level_text
from equipoise.methods.arrays import FloatArray
from equipoise.methods.hypotheses import Above, Below, Null
from equipoise.methods.inference.core import Core


def certify_bench(
    bench: Bench, options: CertifyOptions, seed: Seed, progress: Progress
) -> CertificateList:
    """Certify the groups of a bench for the tolerance."""
    limit = _limit(bench, options)
    if isinstance(options.method, Certificates):
        core, _, score = answerable(
            bench.core, options.level, "lower", options.method.draws, seed, progress
        )
        worst = _by_scores(core, bench, options, limit, seed)
        # 1 − 0.9 is a hair below 0.1, which must not cost a certificate
        certified = np.nan_to_num(worst, nan=1.0) <= (1 - options.level) * (1 + 1e-9)
        engine, trust = "normal scores of all groups, stepped down", _trust(bench)
        notes = notes_of(core, score, bench.claim.metric, bench.noun)
    else:
        certified, worst, engine = bootstrap_certificates(bench, options, limit, seed, progress)
        trust = "large-sample approximation by the bootstrap, as published"
        notes = list(published_notes(bench, ~np.isnan(worst), options.method))
    return CertificateList(
        claim=bench.claim.quoted(),
        question=bench.claim.words,
        guarantee=(
            f"With {level_text(options.level)} confidence not one certificate is false, for "
            f"{bench.every}"
        ),
        assumptions=(*bench.assumptions, trust),
        provenance=provenance_of(bench.cells, seed.number),
        rows=tuple(
            CertifiedGroup(
                **fields, certified=bool(certified[i]), p_adjusted=finite(worst[i]), note=note
            )
            for i, (fields, note) in enumerate(zip(group_fields(bench), notes, strict=True))
        ),
        metric=bench.claim.metric.words,
        against=bench.claim.target.words,
        claimed=tolerance_words(limit, options.side, bench.relative, bench.cells.zero_one),
        level=options.level,
        tolerance=limit,
        side=options.side,
        method=to_plain(options.method),
        engine=engine,
    )


def _trust(bench: Bench) -> str:
    return f"error rate {exactness(bench, many=len(bench.collection) > 1)}"


def _by_scores(
    core: Core, bench: Bench, options: CertifyOptions, limit: float, seed: Seed
) -> FloatArray:
    """Adjusted p-values of the claim's opposite; both ends of a range must be refuted."""
    low, high = tolerated(limit, options.side, bench.relative)
    nulls: list[Null] = [] if low is None else [Above(limit=low)]
    nulls += [] if high is None else [Below(limit=high)]
    # an intersection–union test: each end is tested at the full level, since both must be refuted
    adjusted = [
        stepped_down(core, null.p_value(core.tails), null, options.method.draws, seed)
        for null in nulls
    ]
    return np.asarray(np.max(adjusted, axis=0))


def _limit(bench: Bench, options: CertifyOptions) -> float:
    if options.tolerance is None:
        raise OptionError(
            "Certificates need a tolerance: what should each group be certified for? Pass "
            "tolerance=…, or leave method= out for bounds."
        )
    if bench.relative and not isinstance(options.method, Certificates):
        raise OptionError("Published certificates are for gaps; use method='certificates'.")
    return options.tolerance
