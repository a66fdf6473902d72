"""`certify`: bounds, or certificates, that hold for every group at once."""

import dataclasses
import math
from dataclasses import replace
from typing import Literal, Unpack, overload

import numpy as np
from scipy.special import ndtri

from equipoise._codec import to_plain
from equipoise._validate import Rng, Seed, known_keywords, seed_of
from equipoise.audits._common import (
    Found,
    Progress,
    RoleKeywords,
    TrailLike,
    answerable,
    as_source,
    finite,
    independent,
    jointly,
    possible_range,
    progress_bar,
    provenance_of,
    stepped_down,
)
from equipoise.audits._groups.likelihood import (
    bootstrap_bounds,
    bootstrap_certificates,
    bootstrap_rows,
    likelihood_bounds,
    membership,
)
from equipoise.audits._groups.problem import (
    CertifyOptions,
    GroupFields,
    Problem,
    about,
    adjusted_groups,
    changed_groups,
    check_method,
    group_fields,
    method_target,
    notes_of,
    published_moments,
    published_notes,
    set_up,
    unknown_beside,
)
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
    exactness,
    with_resamples,
)
from equipoise.cells import Cells, gather
from equipoise.cells.rows import pull_rows
from equipoise.cells.tally import Tallied, steady_cells
from equipoise.claims import Claim, Ratio, Together, as_claim
from equipoise.claims.claim import Constant, Overall
from equipoise.claims.groups import Intervals
from equipoise.errors import OptionError
from equipoise.findings.bounds import BoundedGroup, Bounds, CertifiedRange, RangeCertificates
from equipoise.findings.flags import CertificateList, CertifiedGroup
from equipoise.findings.joint_test import Joint
from equipoise.findings.words import Side, level_text, tolerance_words, tolerated
from equipoise.methods.hypotheses import Above, Below, Null
from equipoise.methods.inference.core import Core
from equipoise.methods.inference.student import betting_bounds
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray
from equipoise.methods.published import bootstrap
from equipoise.methods.stored import stored
from equipoise.methods.targets import Complement, Custom, Status
from equipoise.trail import Trail

# --- Exact bounds for bounded metrics: every mean by betting, and disparities from two of them

_NO_ANSWER = (Status.EMPTY, Status.NO_TARGET, Status.IDENTICAL, Status.ZERO_TARGET)


def bounds_by_betting(problem: Problem, level: float, side: str, seed: Seed) -> Found:
    """Bounds that hold for groups of any size, whatever the metric's distribution."""
    low, high = _range(problem)
    status = problem.core.comparison.status
    chosen = np.flatnonzero(~np.isin(status, _NO_ANSWER))
    lower, upper = (np.full(status.shape, np.nan) for _ in range(2))
    member = membership(problem)
    others = _targets(problem, member, chosen)
    # every mean is bounded on every side that is asked for, each at its share of the error
    means = chosen.size + len(others)
    error = (1 - level) / max(means * (2 if side == "both" else 1), 1)
    rows = bootstrap_rows(problem)
    rng = np.random.default_rng(seed.sequence)

    def mean_within(cells: BoolArray) -> tuple[float, float]:
        here = cells[rows.cell]
        times = None if rows.count is None else rows.count[here]
        value = rows.value[here] if times is None else np.repeat(rows.value[here], times)
        return betting_bounds(value, low, high, error, rng)

    against = [mean_within(cells) for cells in others]
    known = (problem.target.number,) * 2
    for place, group in enumerate(chosen):
        own = mean_within(member[group])
        target = against[place if len(against) > 1 else 0] if against else known
        lower[group], upper[group] = _disparity(own, target, problem)
    return Found(
        lower=lower if side != "upper" else np.full_like(lower, np.nan),
        upper=upper if side != "lower" else np.full_like(upper, np.nan),
        reach=np.where(np.isnan(lower), np.nan, (upper - lower) / 2),
        critical=float("nan"),
        engine="betting on the rows in random orders",
        recipe=None,
        guarantee="",
        assumption=(
            "error rate exact at any number of rows, for any distribution between "
            f"{low:g} and {high:g}"
        ),
        notes=_notes(problem, chosen),
    )


def _range(problem: Problem) -> tuple[float, float]:
    metric = problem.claim.metric
    if metric.low is None or metric.high is None:
        raise OptionError(
            f"Betting needs a metric with a smallest and a largest value, and {metric.words} has "
            "no such limits. Bound it with .clip(low, high), or leave method= out."
        )
    if why := can_bet(problem):
        raise OptionError(f"Betting {why} Leave method= out.")
    return metric.low, metric.high


def can_bet(problem: Problem) -> str:
    """What is in the way of betting, but for the range of the metric; empty if nothing."""
    if problem.measured is not None:
        return "bets on means of rows, and this is none."
    if problem.cells.weighted or problem.cells.clusters is not None:
        return "needs independent rows that count alike, and these have weights or clusters."
    if isinstance(problem.target, Custom):
        return "does not know a custom target."
    return "counts rows, and a tilt weighs them." if problem.tilted else ""


def _targets(problem: Problem, member: BoolArray, chosen: IntArray) -> list[BoolArray]:
    """Cells of what groups are compared with: one set for all, or one for each."""
    if isinstance(problem.target, Complement):
        return [~member[group] for group in chosen]
    if not problem.target.estimated:
        return []
    return [problem.target.members(member.shape[1]) > 0]


def _disparity(
    own: tuple[float, float], target: tuple[float, float], problem: Problem
) -> tuple[float, float]:
    low, high = (problem.target.scale * x for x in sorted(target))
    if not problem.relative:
        return own[0] - high, own[1] - low
    if low > 0:
        corners = [one / other for one in own for other in (low, high)]
        return min(corners), max(corners)
    # a target that may be zero bounds nothing but how small a ratio is
    return own[0] / high if own[0] >= 0 < high else -np.inf, np.inf


def _notes(problem: Problem, chosen: IntArray) -> tuple[str, ...]:
    said: list[str] = notes_of(problem.core, 0.0, problem.claim.metric, problem.noun)
    answered = np.zeros(len(said), dtype=bool)
    answered[chosen] = True
    return tuple("" if yes else note for yes, note in zip(answered, said, strict=True))


# --- Bounds on every group of a problem that hold at once, as a finding ---


def bound_groups(
    problem: Problem, options: CertifyOptions, seed: Seed, progress: Progress
) -> Bounds:
    """Bound the groups of a problem by a method that gives numbers."""
    if isinstance(options.method, Pivotal):
        return _finding(problem, options, seed, _by_scores(problem, options, seed, progress))
    if isinstance(options.method, Bootstrap):
        return _finding(problem, options, seed, bootstrap_bounds(problem, options, seed, progress))
    if isinstance(options.method, Betting):
        found = bounds_by_betting(problem, options.level, options.side, seed)
        return _finding(problem, options, seed, found)
    found = likelihood_bounds(problem, options.method, options.level, options.side)
    return _finding(problem, options, seed, found)


def _by_scores(problem: Problem, options: CertifyOptions, seed: Seed, progress: Progress) -> Found:
    core, critical, score = answerable(
        problem.core, options.level, options.side, options.method.resamples, seed, progress
    )
    low, high = (np.full(core.status.shape, np.nan) for _ in range(2))
    if core.answered.size:
        low, high = core.bounds(critical.value, limits_of(problem))
    none = np.full(low.shape, np.nan)
    return Found(
        lower=low if options.side != "upper" else none,
        upper=high if options.side != "lower" else none,
        against=_against(core, problem, options, critical.value),
        reach=np.where(np.isnan(low), np.nan, core.pivot.error),
        critical=critical.value,
        quantiles=critical.quantiles,
        engine="normal scores of all groups; no rows resampled",
        recipe=stored(core),
        guarantee="",
        assumption=_trust(problem),
        notes=tuple(
            notes_of(core, score, problem.claim.metric, problem.noun, bets=can_bet(problem) == "")
        ),
    )


def _trust(problem: Problem) -> str:
    return f"error rate {exactness(problem, many=len(problem.collection) > 1)}"


def limits_of(problem: Problem) -> tuple[float, float]:
    """Smallest and largest disparity that is possible at all, infinite where there is no limit."""
    low, high = possible_range(problem.claim, problem.cells.zero_one)
    return (-math.inf if low is None else low), (math.inf if high is None else high)


def _against(
    core: Core, problem: Problem, options: CertifyOptions, critical: float
) -> np.ndarray | None:
    """Bounds on the other side, where a one-sided limit may be shown not to be kept.

    A group either keeps its limit or does not, so it can be judged wrongly in one way only. With m
    groups each at the error (1 − level)/m no judgement is wrong; the bounds that show a limit kept
    are at least as strict.
    """
    if not _judges_both_ways(options) or not core.answered.size:
        return None
    number = core.answered.size
    strict = float(-ndtri((1 - options.level) / number))
    # an upper bound judges a lower limit, and the other way round
    low, high = core.bounds(max(strict, critical), limits_of(problem))
    return high if options.side == "lower" else low


def _finding(problem: Problem, options: CertifyOptions, seed: Seed, found: Found) -> Bounds:
    draft = Bounds(
        **about(problem, seed.number),
        guarantee=found.guarantee or _guarantee(problem, options),
        assumptions=(*problem.assumptions, found.assumption),
        rows=(),
        share=problem.share,
        relative=problem.relative,
        level=options.level,
        side=options.side,
        tolerance=options.tolerance,
        limits=possible_range(problem.claim, problem.cells.zero_one),
        method=to_plain(options.method),
        engine=found.engine,
        critical=finite(found.critical),
        quantiles=found.quantiles,
        recipe=found.recipe,
        adjusted=adjusted_groups(problem),
        changed=changed_groups(problem),
        **unknown_beside(problem, options, seed),
    )
    notes = found.notes or published_notes(problem, ~np.isnan(found.reach), options.method)
    other = found.against if found.against is not None else np.full(found.lower.shape, np.nan)
    columns = (found.lower, found.upper, found.reach, other)
    ends = zip(*(x.tolist() for x in columns), strict=True)
    rows = tuple(
        _bounded(draft, fields, note, *map(finite, four))
        for fields, note, four in zip(group_fields(problem), notes, ends, strict=True)
    )
    return dataclasses.replace(draft, rows=rows)


def _guarantee(problem: Problem, options: CertifyOptions) -> str:
    kept = "" if options.side == "both" else f"{options.side} "
    said = (
        f"With {level_text(options.level)} confidence all {kept}bounds hold at once, for "
        f"{problem.every}"
    )
    if not _judges_both_ways(options):
        return said
    other = "upper" if options.side == "lower" else "lower"
    # each of the three at the stated confidence, not all of them together
    return (
        f"{said}; as surely, no verdict is wrong; and as surely, all {other} bounds hold that show "
        "a limit to be exceeded"
    )


def _judges_both_ways(options: CertifyOptions) -> bool:
    """Whether a one-sided limit can be shown not to be kept, which needs the other bounds."""
    limited = options.side != "both" and options.tolerance is not None
    return limited and isinstance(options.method, Pivotal)


def _bounded(
    draft: Bounds,
    fields: GroupFields,
    note: str,
    lower: float | None,
    upper: float | None,
    reach: float | None,
    other: float | None,
) -> BoundedGroup:
    row = BoundedGroup(**fields, lower=lower, upper=upper, note=note, reach=reach)
    return draft.judged(row, other)


# --- Yes-or-no certificates for every group of a problem, as a finding ---


def certify_groups(
    problem: Problem, options: CertifyOptions, seed: Seed, progress: Progress
) -> CertificateList:
    """Certify the groups of a problem for the tolerance."""
    limit = _limit(problem, options)
    if isinstance(options.method, Certificates):
        core, _, score = answerable(
            problem.core, options.level, "lower", options.method.resamples, seed, progress
        )
        worst = _stepped_down(core, problem, options, limit, seed)
        # 1 − 0.9 is a hair below 0.1, which must not cost a certificate
        certified = np.nan_to_num(worst, nan=1.0) <= (1 - options.level) * (1 + 1e-9)
        engine, trust = "normal scores of all groups, stepped down", _trust(problem)
        notes = notes_of(core, score, problem.claim.metric, problem.noun)
    else:
        certified, worst, engine = bootstrap_certificates(problem, options, limit, seed, progress)
        trust = "large-sample approximation by the bootstrap, as published"
        notes = list(published_notes(problem, ~np.isnan(worst), options.method))
    return CertificateList(
        **about(problem, seed.number),
        guarantee=(
            f"With {level_text(options.level)} confidence not one certificate is false, for "
            f"{problem.every}"
        ),
        assumptions=(*problem.assumptions, trust),
        rows=tuple(
            CertifiedGroup(
                **fields, certified=bool(certified[i]), p_adjusted=finite(worst[i]), note=note
            )
            for i, (fields, note) in enumerate(zip(group_fields(problem), notes, strict=True))
        ),
        claimed=tolerance_words(limit, options.side, problem.relative, problem.share),
        level=options.level,
        tolerance=limit,
        side=options.side,
        method=to_plain(options.method),
        engine=engine,
    )


def _stepped_down(
    core: Core, problem: Problem, options: CertifyOptions, limit: float, seed: Seed
) -> FloatArray:
    """Adjusted p-values of the claim's opposite; both ends of a range must be refuted."""
    low, high = tolerated(limit, options.side, problem.relative)
    nulls: list[Null] = [] if low is None else [Above(limit=low)]
    nulls += [] if high is None else [Below(limit=high)]
    # an intersection–union test: each end is tested at the full level, since both must be refuted
    adjusted = [
        stepped_down(core, null.p_value(core.tails), null, options.method.resamples, seed)
        for null in nulls
    ]
    return np.asarray(np.max(adjusted, axis=0))


def _limit(problem: Problem, options: CertifyOptions) -> float:
    if options.tolerance is None:
        raise OptionError(
            "Certificates need a tolerance: what should each group be certified for? Pass "
            "tolerance=…, or leave method= out for bounds."
        )
    if problem.relative and not isinstance(options.method, Certificates):
        raise OptionError("Published certificates are for gaps; use method='certificates'.")
    return options.tolerance


# --- Certificates for all ranges of a number, by running sums instead of a list of groups ---


def certify_ranges(
    trail: Trail | Tallied,
    claim: Claim,
    options: CertifyOptions,
    seed: Seed,
    progress: Progress,
) -> RangeCertificates:
    """Certify every range with end points in the data, in one pass per resample."""
    limit = _check(claim, options.tolerance)
    gathered = steady_cells(*gather(trail, [claim]))
    cells, points = _on_the_line(gathered)
    moments, target = published_moments(cells), method_target(claim.target, cells, None)
    engine = _engine(trail, claim, gathered, cells, moments)
    aims = {"lower": [(limit, True)], "upper": [(limit, False)]}
    with progress_bar(progress, options.method.resamples, "certify") as tell:
        found = [
            bootstrap.certify_intervals(
                engine,
                moments,
                target,
                limit=bound,
                upward=upward,
                resamples=options.method.resamples,
                seed=seed.sequence,
                progress=tell,
            )
            for bound, upward in aims.get(options.side, [(-limit, True), (limit, False)])
        ]
    empty = _without_rows(claim, options, cells, points, found, limit)
    empty = replace(empty, provenance=provenance_of(cells, seed.number), engine=engine.name)
    return replace(empty, rows=_widest(empty))


def _without_rows(
    claim: Claim,
    options: CertifyOptions,
    cells: Cells,
    points: tuple[float, ...],
    found: list[bootstrap.IntervalCertificates],
    limit: float,
) -> RangeCertificates:
    """The finding before its widest ranges are looked up."""
    level = options.level
    number = len(points) * (len(points) + 1) // 2
    bars = [f.critical(level) if f.spread > 0 else float(np.finfo(float).max) for f in found]
    return RangeCertificates(
        claim=claim.to_plan(),
        question=claim.words,
        guarantee=(
            f"With {level_text(level)} confidence not one certificate is false, among all "
            f"{number:,} ranges"
        ),
        assumptions=(
            independent(),
            "large-sample approximation by the bootstrap",
        ),
        provenance=provenance_of(cells),
        rows=(),
        metric=claim.metric.words,
        attribute=claim.across.dimensions()[0].name,
        claimed=tolerance_words(limit, options.side, False, cells.zero_one),
        level=level,
        tolerance=limit,
        side=options.side,
        method=to_plain(options.method),
        engine="",
        ranges=number,
        points=points,
        target=_theta(claim, cells),
        sizes=_running(cells.rows),
        weights=_running(cells.weight),
        totals=_running(cells.total),
        evidence=tuple(tuple(f.prefix.tolist()) for f in found),
        bars=tuple(bars),
        everyone=isinstance(claim.target, Overall),
    )


def _check(claim: Claim, tolerance: float | None) -> float:
    across = claim.across
    if not isinstance(across, Intervals) or across.attribute.edges or across.attribute.quantiles:
        raise OptionError(
            "AllRanges needs across=intervals(attribute), without edges= and grid=; got "
            f"{type(across).__name__.lower()}."
        )
    if claim.unlabelled != "out":
        raise OptionError("AllRanges knows no unlabelled=; use method='pivotal', with a grid.")
    if isinstance(claim, Ratio):
        raise OptionError("AllRanges is for gaps. For a ratio, certify the gap to a scaled target.")
    if not isinstance(claim.target, Constant | Overall):
        raise OptionError(
            f"AllRanges compares with a number or with everyone; got {claim.target.words}. Use "
            "method='certificates', with a grid."
        )
    if tolerance is None:
        raise OptionError(
            "Certificates need a tolerance: what should each range be certified for? Pass "
            "tolerance=…."
        )
    return float(tolerance)


def _on_the_line(cells: Cells) -> tuple[Cells, tuple[float, ...]]:
    """The cells in the order of the attribute; rows without a value lie on no range."""
    if cells.clusters is not None:
        raise OptionError("AllRanges does not resample clusters; use method='certificates'.")
    (axis,) = cells.axes
    here = cells.index[:, 0] < len(axis)
    lost = round(float(cells.rows[~here].sum()))
    excluded = {**cells.excluded, f"missing {axis.name}": lost} if lost else cells.excluded
    sums = ("weight", "total", "square", "weight2", "total2", "square2")
    names = ("present", "rows", *sums, "weight3", "total3", "square3", "cube3")
    kept = {name: getattr(cells, name)[here] for name in names}
    points = tuple(float(axis.levels[i]) for i in cells.index[here, 0])
    return replace(cells, index=cells.index[here], excluded=excluded, **kept), points


def _engine(
    trail: Trail | Tallied,
    claim: Claim,
    gathered: Cells,
    cells: Cells,
    moments: bootstrap.CellMoments,
) -> bootstrap.Engine:
    if moments.binary:
        return bootstrap.BinaryEngine(moments)
    rows = pull_rows(trail, claim.metric, gathered)
    here = rows.cell < len(cells)
    data = bootstrap.canonical_rows(
        cell=rows.cell[here],
        value=rows.value[here],
        weight=None if rows.weight is None else rows.weight[here],
        count=None if rows.count is None else rows.count[here],
    )
    return bootstrap.RowEngine(data, len(cells))


def _theta(claim: Claim, cells: Cells) -> float:
    if isinstance(claim.target, Constant):
        return claim.target.scale * claim.target.value
    return claim.target.scale * float(cells.total.sum() / cells.weight.sum())


def _running(values: FloatArray) -> tuple[float, ...]:
    return (0.0, *np.cumsum(values).tolist())


def _widest(found: RangeCertificates) -> tuple[CertifiedRange, ...]:
    """Certified ranges that lie in no wider certified one, in the order of the attribute."""
    sizes, evidence = np.array(found.sizes), [np.array(sums) for sums in found.evidence]
    rows, reached = [], 0
    for start in range(len(found.points)):
        held = sizes - sizes[start]
        enough = (held >= 2) & ~(found.everyone & (held == sizes[-1]))
        for sums, bar in zip(evidence, found.bars, strict=True):
            enough &= sums - sums[start] >= bar
        first = max(start + 1, reached + 1)
        stops = np.flatnonzero(enough[first:])
        if stops.size:
            reached = first + int(stops[-1])
            rows.append(found.between(start, reached))
    return tuple(rows)


# --- `certify`: bounds, or certificates, that hold for every group at once ---

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


class _Options(RoleKeywords, total=False):
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
    **roles: Unpack[RoleKeywords],
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
