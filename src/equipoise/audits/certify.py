"""`certify`: bounds, or certificates, that hold for every group at once."""

import dataclasses
from typing import Literal, Unpack, overload

from equipoise._rng import Rng, Seed, seed_of
from equipoise._validate import known_keywords
from equipoise.audits._common import Progress, Roles, TrailLike, as_source
from equipoise.audits._groups.bounds import bound_groups, certify_groups, certify_ranges
from equipoise.audits._groups.problem import CertifyOptions, check_method, jointly, set_up
from equipoise.audits.methods import (
    AllRanges,
    Betting,
    Bootstrap,
    BootstrapCertificates,
    Certificates,
    Euclidean,
    Likelihood,
    Method,
    Pivotal,
    as_method,
    with_resamples,
)
from equipoise.cells.tally import Tallied
from equipoise.claims import Claim, Together, as_claim
from equipoise.findings.bounds import Bounds, RangeCertificates
from equipoise.findings.flags import CertificateList
from equipoise.findings.joint_test import Joint
from equipoise.findings.words import Side, level_text
from equipoise.trail import Trail

#: What one claim gets, by the method.
Certified = Bounds | CertificateList | RangeCertificates

BoundsMethod = (
    Literal["pivotal", "bootstrap", "bootstrap-unscaled"]
    | Literal["likelihood", "likelihood-plugin", "euclidean", "betting"]
    | Pivotal
    | Bootstrap
    | Likelihood
    | Euclidean
    | Betting
)
CertificateMethod = (
    Literal["certificates", "certificates-published", "certificates-unscaled"]
    | Certificates
    | BootstrapCertificates
)


RangesMethod = AllRanges | Literal["all-ranges"]


class _Options(Roles, total=False):
    """Options whose values do not change what kind of finding comes back."""

    level: float
    side: Side
    tolerance: float | None
    resamples: int | None
    rng: Rng
    progress: Progress


@overload
def certify(
    trail: TrailLike | Tallied,
    claim: Claim,
    *,
    method: BoundsMethod | None = None,
    **options: Unpack[_Options],
) -> Bounds: ...
@overload
def certify(
    trail: TrailLike | Tallied,
    claim: Claim,
    *,
    method: CertificateMethod,
    **options: Unpack[_Options],
) -> CertificateList: ...
@overload
def certify(
    trail: TrailLike | Tallied,
    claim: Claim,
    *,
    method: RangesMethod,
    **options: Unpack[_Options],
) -> RangeCertificates: ...
@overload
def certify(
    trail: TrailLike | Tallied,
    claim: Together,
    *,
    method: BoundsMethod | CertificateMethod | RangesMethod | None = None,
    **options: Unpack[_Options],
) -> Joint: ...
@overload
def certify(
    trail: TrailLike | Tallied,
    claim: Claim | Together,
    *,
    method: BoundsMethod | CertificateMethod | RangesMethod | None = None,
    **options: Unpack[_Options],
) -> Certified | Joint: ...
@known_keywords
def certify(
    trail: TrailLike | Tallied,
    claim: Claim | Together,
    *,
    level: float = 0.95,
    side: Side = "both",
    tolerance: float | None = None,
    method: BoundsMethod | CertificateMethod | RangesMethod | None = None,
    resamples: int | None = None,
    rng: Rng = None,
    progress: Progress = None,
    **roles: Unpack[Roles],
) -> Certified | Joint:
    """Bounds on every group's disparity that all hold at once, with the stated confidence.

    Parameters
    ----------
    trail, claim
        The audit trail, or its counts from `tally`, and the question. A path or a table will do as
        well, with what its columns mean as further keywords: ``label="hired"``, as in `read`.
    level
        Confidence that not a single bound is wrong.
    side
        Lower bounds, upper bounds, or both.
    tolerance
        A disparity that is tolerated. ``side="both"`` asks whether every group's disparity lies
        within it, ``"upper"`` whether it lies below, ``"lower"`` whether it lies above; each group
        then gets a verdict: kept, exceeded, or undetermined. For a ratio, ``"both"`` means
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
    source = as_source(trail, roles)
    if not isinstance(claim, Together):
        return _certify(source, as_claim(claim), options, seed_of(rng), progress)

    def part(each: Claim, error: float, seed: Seed) -> Certified:
        return _certify(source, each, dataclasses.replace(options, level=1 - error), seed, progress)

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


def _asked(method: object, resamples: int | None) -> Method:
    return with_resamples(as_method(method, _METHODS, "certify"), resamples)


def _certify(
    trail: Trail | Tallied, claim: Claim, options: CertifyOptions, seed: Seed, progress: Progress
) -> Certified:
    options.check_claim(claim)
    if isinstance(options.method, AllRanges):
        return certify_ranges(trail, claim, options, seed, progress)
    problem = set_up(trail, claim)
    if options.method is None:
        chosen = with_resamples(Pivotal(), options.resamples)
        options = dataclasses.replace(options, method=chosen)
    check_method(problem, options.method, _TILTABLE)
    certificates = isinstance(options.method, Certificates | BootstrapCertificates)
    answer = certify_groups if certificates else bound_groups
    return answer(problem, options, seed, progress)
