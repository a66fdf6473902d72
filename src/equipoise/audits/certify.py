"""`certify`: bounds, or certificates, that hold for every group at once."""

import dataclasses
from typing import Any, Literal, TypedDict, Unpack, overload

from equipoise._rng import Rng, Seed, seed_of
from equipoise._validate import known_keywords
from equipoise.audits._groups.bench import check_method, set_up
from equipoise.audits._groups.bounds import bound_bench
from equipoise.audits._groups.certificates import certify_bench
from equipoise.audits._groups.options import CertifyOptions
from equipoise.audits._groups.ranges import certify_ranges
from equipoise.audits._groups.together import jointly
from equipoise.audits._progress import Progress
from equipoise.audits.methods import (
    AllRanges,
    Betting,
    Bootstrap,
    BootstrapCertificates,
    Certificates,
    Euclidean,
    Likelihood,
    Pivotal,
    as_method,
    with_resamples,
)
from equipoise.cells.tallied import Tallied
from equipoise.claims import Claim, Together, as_claim
from equipoise.findings.bounds import Bounds
from equipoise.findings.certificates import CertificateList
from equipoise.findings.joint import Joint
from equipoise.findings.limits import Side
from equipoise.findings.ranges import RangeCertificates
from equipoise.findings.words import level_text
from equipoise.trail import Trail

#: What one claim gets, by the method.
Certified = Bounds | CertificateList | RangeCertificates

_ForBounds = (
    Literal["pivotal", "bootstrap", "bootstrap-unscaled"]
    | Literal["likelihood", "likelihood-plugin", "euclidean", "betting"]
    | Pivotal
    | Bootstrap
    | Likelihood
    | Euclidean
    | Betting
)
_ForCertificates = (
    Literal["certificates", "certificates-published", "certificates-unscaled"]
    | Certificates
    | BootstrapCertificates
)


class _Options(TypedDict, total=False):
    """Options whose values do not change what kind of finding comes back."""

    level: float
    side: Side
    tolerance: float | None
    resamples: int | None
    rng: Rng
    progress: Progress


@overload
def certify(
    trail: Trail | Tallied,
    claim: Claim,
    *,
    method: _ForBounds | None = None,
    **options: Unpack[_Options],
) -> Bounds: ...
@overload
def certify(
    trail: Trail | Tallied,
    claim: Claim,
    *,
    method: _ForCertificates,
    **options: Unpack[_Options],
) -> CertificateList: ...
@overload
def certify(
    trail: Trail | Tallied,
    claim: Claim,
    *,
    method: AllRanges | Literal["all-ranges"],
    **options: Unpack[_Options],
) -> RangeCertificates: ...
@overload
def certify(
    trail: Trail | Tallied, claim: Together, *, method: Any = None, **options: Unpack[_Options]
) -> Joint: ...
@overload
def certify(
    trail: Trail | Tallied,
    claim: Claim | Together,
    *,
    method: Any = None,
    **options: Unpack[_Options],
) -> Certified | Joint: ...
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
) -> Certified | Joint:
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
        then gets a verdict: shown, shown not, or undetermined. For a ratio, ``"both"`` means
        between the tolerance and its inverse.
    method
        As a value or by name: `Pivotal` (bounds; the default), `Certificates` (yes or no for each
        group, needs a tolerance), `AllRanges` (the same for all ranges of a number); and as
        published `Bootstrap`, `BootstrapCertificates`, `Likelihood` and `Euclidean`.
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
    options = CertifyOptions(
        level=level,
        side=side,
        tolerance=tolerance,
        method=None if method is None else _asked(method, resamples),
        resamples=resamples,
    )
    if not isinstance(claim, Together):
        return _certify(trail, as_claim(claim), options, seed_of(rng), progress)

    def part(each: Claim, error: float, seed: Seed) -> Certified:
        return _certify(trail, each, dataclasses.replace(options, level=1 - error), seed, progress)

    promise = f"With {level_text(level)} confidence everything shown holds at once, for all claims"
    return jointly(claim, part, 1 - level, rng, promise)


_METHODS = (
    Pivotal,
    Certificates,
    AllRanges,
    Bootstrap,
    BootstrapCertificates,
    Likelihood,
    Euclidean,
    Betting,
)
_TILTABLE = {"pivotal": Pivotal, "certificates": Certificates}


def _asked(method: Any, resamples: int | None) -> Any:
    return with_resamples(as_method(method, _METHODS, "certify"), resamples)


def _certify(
    trail: Trail | Tallied, claim: Claim, options: CertifyOptions, seed: Seed, progress: Progress
) -> Certified:
    options.check_claim(claim)
    if isinstance(options.method, AllRanges):
        return certify_ranges(trail, claim, options, seed, progress)
    bench = set_up(trail, claim)
    if options.method is None:
        chosen = with_resamples(Pivotal(), options.resamples)
        options = dataclasses.replace(options, method=chosen)
    check_method(bench, options.method, _TILTABLE)
    certificates = isinstance(options.method, Certificates | BootstrapCertificates)
    answer = certify_bench if certificates else bound_bench
    return answer(bench, options, seed, progress)
