"""Empirical and Euclidean likelihood group by group: samples, intervals, p-values."""

import dataclasses
from collections.abc import Iterator
from typing import TypedDict

import numpy as np

from equipoise._validate import Seed
from equipoise.audits._common import Found, Progress, progress_bar
from equipoise.audits._groups.problem import CertifyOptions, Problem
from equipoise.audits.methods import Euclidean, Likelihood
from equipoise.claims import claim as targets
from equipoise.errors import OptionError
from equipoise.findings.words import level_text
from equipoise.methods.hypotheses import Null, normal_tails
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray, per_mille
from equipoise.methods.numerics import Progress as Tell
from equipoise.methods.published import bootstrap, likelihood
from equipoise.methods.stored import (
    Recipe,
    StoredBand,
    StoredStudent,
    numbers_of,
    stored_parts,
    whole_of,
)
from equipoise.methods.targets import Complement, Constant, Custom, Overall, Reference, Status

# --- Rows of the groups, for real-valued likelihood: a group's own values, or pseudo-values ---

#: Values handled at a time.
_BLOCK = 4_000_000
#: Cells × groups up to which memberships are written out.
_MEMBERSHIPS = 50_000_000

Batch = tuple[IntArray, likelihood.Segments]


def membership(problem: Problem) -> BoolArray:
    """Which cells each group consists of, shape ``(G, C)``."""
    if problem.moments.rows.size * len(problem.collection) > _MEMBERSHIPS:
        raise OptionError(
            "This method lists the rows of every group, which is too much for a collection of "
            f"{len(problem.collection):,} groups. Use method='euclidean' or 'bootstrap'."
        )
    return np.asarray(problem.collection.sums(np.eye(problem.moments.rows.size)).T > 0.5)


def rows_of(problem: Problem) -> bootstrap.RowData:
    """The rows, if likelihood can be used on them at all."""
    if problem.cells.clusters is not None or problem.cells.weighted:
        raise OptionError(
            "Empirical likelihood needs rows without weights and clusters. certify and flag take "
            "such rows with method='bootstrap'."
        )
    return bootstrap_rows(problem)


def bootstrap_rows(problem: Problem) -> bootstrap.RowData:
    """The rows; of a 0/1 metric the zeros and ones of each cell, with how often they occurred."""
    if not problem.moments.binary:
        return problem.rows()
    rows, ones = np.rint(problem.cells.rows), np.rint(problem.cells.total)
    number = rows.size
    return bootstrap.RowData(
        cell=np.repeat(np.arange(number), 2),
        value=np.tile([0.0, 1.0], number),
        count=np.stack([rows - ones, ones], axis=1).ravel().astype(np.int64),
    )


def own_values(problem: Problem) -> Iterator[Batch]:
    """The values of each group that has rows, some groups at a time."""
    rows, member = rows_of(problem), membership(problem)
    sizes = member.astype(np.float64) @ np.bincount(rows.cell, minlength=member.shape[1])
    for chosen in _batches(sizes, problem):
        inside = [np.flatnonzero(member[i][rows.cell]) for i in chosen]
        take = np.concatenate(inside)
        yield chosen, _segments([x.size for x in inside], rows.value[take], rows.count, take)


def influence_values(problem: Problem) -> Iterator[Batch]:
    """ε̂ + influence of every row, for each group: their mean is ε̂, whatever the target."""
    rows, member = rows_of(problem), membership(problem)
    number = rows.value.size
    for chosen in _batches(np.where(problem.estimates.rows > 0, number, 0.0), problem):
        values = [
            influence(problem, rows, member[i], i) + problem.estimates.estimate[i] for i in chosen
        ]
        take = np.tile(np.arange(number), chosen.size)
        groups = _segments([number] * chosen.size, np.concatenate(values), rows.count, take)
        yield (
            chosen,
            likelihood.Segments(
                value=groups.value,
                start=groups.start,
                count=groups.count,
                worth=problem.estimates.rows[chosen],
            ),
        )


def joint_scores(
    problem: Problem, rows: bootstrap.RowData, member: BoolArray, used: IntArray, plugged: bool
) -> likelihood.Scores:
    """What each row says about each disparity, as a function of its value.

    Unlike influence values these use the target in place of the group's own mean, so that groups
    made of each other's rows depend on each other exactly.
    """
    if problem.moments.binary and rows.count is not None:
        # outcomes of cells that nobody is in are not even possible
        seen = problem.cells.rows[rows.cell] > 0
        rows = bootstrap.RowData(
            cell=rows.cell[seen], value=rows.value[seen], count=rows.count[seen]
        )
    count = np.ones(rows.value.size) if rows.count is None else rows.count.astype(np.float64)
    pairs = [_score(problem, rows, c, int(i), plugged) for c, i in zip(member, used, strict=True)]
    empty = [np.zeros((rows.value.size, 0))] * 2
    zero, slope = (np.stack(x, axis=1) for x in zip(*pairs, strict=True)) if pairs else empty
    known = isinstance(problem.target, Constant) or plugged
    apart = known and not bool((member.sum(axis=0) > 1).any())
    # a group of two ones could have had a zero: with 0/1 metrics all outcomes are known
    return likelihood.Scores(
        zero=zero, slope=slope, count=count, disjoint=apart, support=problem.moments.binary
    )


def _score(
    problem: Problem, rows: bootstrap.RowData, cells: BoolArray, group: int, plugged: bool
) -> tuple[FloatArray, FloatArray]:
    """Scores at zero, and how they fall with the disparity."""
    found, x = problem.estimates, rows.value
    inside, share = cells[rows.cell], float(found.share[group])
    target = problem.target
    if isinstance(target, Complement) and target.scale == 1 and not plugged:
        # with θ the mean of everybody and p the share, μ(G) = θ + (1 − p)ε and μ(rest) = θ − pε
        theta, p = float(problem.cells.total.sum() / problem.cells.rows.sum()), share
        zero = np.where(inside, (x - theta) / p, -(x - theta) / (1 - p))
        return zero, np.where(inside, (1 - p) / p, p / (1 - p))
    theta = float(found.target[group])
    own, slope = np.where(inside, x - theta, 0.0) / share, np.where(inside, 1 / share, 0.0)
    if plugged:
        return own, slope
    centred = np.where(inside, x - found.mean[group], 0.0) / share
    return np.asarray(own - (centred - influence(problem, rows, cells, group))), slope


def influence(
    problem: Problem, rows: bootstrap.RowData, cells: BoolArray, group: int
) -> FloatArray:
    """Influence values of one group's disparity."""
    found, x = problem.estimates, rows.value
    inside = cells[rows.cell]
    share = float(found.share[group])
    own = np.where(inside, x - found.mean[group], 0.0) / share
    target = problem.target
    theta = found.target[group]
    match target:
        case Constant():
            return own
        case Overall(scale=scale):
            # every row moves the overall mean, the group's own included
            return np.asarray(own - (scale * x - theta))
        case Complement(scale=scale):
            return np.asarray(own - np.where(inside, 0.0, scale * x - theta) / (1 - share))
        case Reference(cells=reference, scale=scale):
            there = reference[rows.cell]
            part = float(problem.cells.rows[reference].sum()) / float(problem.cells.rows.sum())
            return np.asarray(own - np.where(there, scale * x - theta, 0.0) / part)
        case Custom(scale=scale) if rows.influence is not None:
            return np.asarray(own - scale * (rows.influence - rows.influence.mean()))
    raise OptionError("Likelihood cannot use this target; use method='bootstrap'.")


def _batches(sizes: FloatArray, problem: Problem) -> Iterator[IntArray]:
    """Groups that have an estimate and differ from their target, in batches of bearable size."""
    status = problem.estimates.status
    bad = (Status.EMPTY, Status.NO_TARGET, Status.IDENTICAL)
    useful = np.flatnonzero((sizes > 0) & ~np.isin(status, bad))
    if useful.size == 0:
        return
    part = (np.cumsum(sizes[useful]) // _BLOCK).astype(np.int64)
    for number in np.unique(part):
        yield useful[part == number]


def _segments(
    sizes: list[int], value: FloatArray, count: IntArray | None, take: IntArray
) -> likelihood.Segments:
    start = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    times = None if count is None else count[take].astype(np.float64)
    if times is None or bool((times > 0).all()):
        return likelihood.Segments(value=value, start=start, count=times)
    # values that never occurred must not widen the range of the data
    keep = times > 0
    kept = np.add.reduceat(keep.astype(np.int64), start)
    begin = np.concatenate([[0], np.cumsum(kept)[:-1]]).astype(np.int64)
    return likelihood.Segments(value=value[keep], start=begin, count=times[keep])


# --- Intervals group by group by empirical or Euclidean likelihood, as published and corrected

WRONG = (
    "as published: the estimated target is taken for the truth, so these intervals cover too "
    "rarely against other groups and too often against everybody"
)
_FAMILIES = {"sidak": "Šidák's", "bonferroni": "Bonferroni's"}


class _Said(TypedDict):
    """What bounds come with, in words."""

    engine: str
    guarantee: str
    assumption: str


def band_applies(problem: Problem) -> bool:
    """Whether counts say all there is to say: a 0/1 metric without weights or clusters."""
    counted = problem.moments.binary and problem.cells.clusters is None and not problem.tilted
    return counted and not isinstance(problem.claim.target, targets.Custom)


def likelihood_bounds(
    problem: Problem, method: Likelihood | Euclidean, level: float, side: str
) -> Found:
    """Intervals of every group by the method."""
    number = len(problem.collection)
    critical = likelihood.normal_critical(level, method.family, number, two_sided=side == "both")
    shared: _Said = {
        "engine": "no resampling",
        "guarantee": _guarantee(problem, method, level),
        "assumption": "large-sample approximation of the likelihood ratio by χ²",
    }
    if isinstance(method, Euclidean):
        return _euclidean(problem, method, critical, side, number, shared)
    if problem.relative:
        raise OptionError("Likelihood intervals are for gaps; leave method= out for ratios.")
    plugged = method.target == "plug-in" and not isinstance(problem.target, Constant)
    if band_applies(problem) and not plugged:
        kept = _recipe(problem, calibrated=method.calibration == "auto", plugged=False)
        recipe = dataclasses.replace(kept, family=method.family, groups=number)
        return _from_counts(problem, critical, side, recipe, shared)
    low, high = real_interval(problem, method, critical)
    return _found(problem, low, high, critical, side, None, shared)


def _from_counts(
    problem: Problem, critical: float, side: str, recipe: StoredBand, shared: _Said
) -> Found:
    low, high = likelihood.band(stored_parts(recipe), critical, calibrated=recipe.calibrated)
    usable = comparable(problem)
    low, high = np.where(usable, low, np.nan), np.where(usable, high, np.nan)
    return _found(problem, low, high, critical, side, recipe, shared)


def comparable(problem: Problem) -> BoolArray:
    """Groups with an estimate, and a target other than the group itself."""
    bad = (Status.EMPTY, Status.NO_TARGET, Status.IDENTICAL)
    return ~np.isnan(problem.estimates.estimate) & ~np.isin(problem.estimates.status, bad)


def counted_parts(problem: Problem) -> likelihood.Parts:
    """The disjoint parts behind every group of a 0/1 metric."""
    return stored_parts(_recipe(problem, calibrated=True, plugged=False))


_AGAINST: dict[type, likelihood.Against] = {
    Overall: "overall",
    Complement: "complement",
    Reference: "reference",
}


def _recipe(problem: Problem, *, calibrated: bool, plugged: bool) -> StoredBand:
    target = problem.target
    against: likelihood.Against = "known" if plugged else _AGAINST.get(type(target), "known")
    reference = target.cells if isinstance(target, Reference) else None
    rows, ones, sums = problem.cells.rows, problem.cells.total, problem.collection.sums
    parts = likelihood.band_parts(rows, ones, sums, against, reference=reference)
    return StoredBand(
        rows=whole_of(parts.rows),
        ones=whole_of(parts.ones),
        against=against,
        scale=1.0 if plugged else float(getattr(target, "scale", 1.0)),
        value=float(getattr(target, "value", 0.0)),
        relative=problem.relative,
        calibrated=calibrated,
        # said by whoever keeps it
        family="",
        groups=0,
    )


def ends_at(problem: Problem, method: Likelihood, critical: float) -> tuple[FloatArray, FloatArray]:
    """Ends of every group's interval at a critical value of the signed root."""
    plugged = method.target == "plug-in" and not isinstance(problem.target, Constant)
    if not band_applies(problem) or plugged:
        return real_interval(problem, method, critical)
    recipe = _recipe(problem, calibrated=method.calibration == "auto", plugged=False)
    nothing: _Said = {"engine": "", "guarantee": "", "assumption": ""}
    found = _from_counts(problem, critical, "both", recipe, nothing)
    return found.lower, found.upper


def real_interval(
    problem: Problem, method: Likelihood, critical: float
) -> tuple[FloatArray, FloatArray]:
    """Intervals from the rows: of the group's values, or of pseudo-values."""
    low, high = (np.full(len(problem.collection), np.nan) for _ in range(2))
    known = isinstance(problem.target, Constant)
    plain = known or method.target == "plug-in"
    for chosen, groups in own_values(problem) if plain else influence_values(problem):
        adjust = likelihood.adjustment(groups) if method.calibration == "auto" else None
        ends = likelihood.mean_interval(groups, critical, adjust)
        shift = problem.estimates.target[chosen] if plain else 0.0
        low[chosen], high[chosen] = ends[0] - shift, ends[1] - shift
    few = problem.estimates.rows < (1 if problem.moments.binary else method.min_rows)
    return np.where(few, np.nan, low), np.where(few, np.nan, high)


def _euclidean(
    problem: Problem,
    method: Euclidean,
    critical: float,
    side: str,
    groups: int,
    shared: _Said,
) -> Found:
    error, degrees = errors_of(problem, method)
    estimate = problem.estimates.estimate
    low, high = likelihood.student_interval(estimate, error, degrees, critical)
    recipe = StoredStudent(
        estimate=numbers_of(np.nan_to_num(estimate)),
        error=numbers_of(error),
        degrees=numbers_of(np.minimum(degrees, 1e9)),
        family=method.family,
        groups=groups,
    )
    return _found(problem, low, high, critical, side, recipe, shared)


def errors_of(problem: Problem, method: Euclidean) -> tuple[FloatArray, FloatArray]:
    """Standard errors and degrees of freedom; zero where nothing says how values vary."""
    if problem.cells.clusters is not None:
        raise OptionError("Euclidean likelihood does not know clusters; use method='bootstrap'.")
    found = problem.estimates
    # a group whose values are all the same has a spread only through its target
    own = bootstrap.estimate_gaps(problem.moments, Constant(value=0.0), problem.collection.sums)
    error = np.where(own.variance > 0, np.nan_to_num(found.standard_error), 0.0)
    degrees = found.rows - 1 if method.calibration == "auto" else np.full(error.shape, np.inf)
    return error, np.where(found.rows > 1, degrees, 0.0)


def _found(
    problem: Problem,
    low: FloatArray,
    high: FloatArray,
    critical: float,
    side: str,
    recipe: Recipe | None,
    shared: _Said,
) -> Found:
    none = np.full(low.shape, np.nan)
    with np.errstate(invalid="ignore"):
        half = (high - low) / 2 / max(critical, 1e-9)
    return Found(
        lower=low if side != "upper" else none,
        upper=high if side != "lower" else none,
        # open at one end is still a bound
        reach=np.where(np.isinf(half), 1e9, half),
        critical=critical,
        recipe=recipe,
        **shared,
    )


def _guarantee(problem: Problem, method: Likelihood | Euclidean, level: float) -> str:
    number = len(problem.collection)
    plugged = isinstance(method, Likelihood) and method.target == "plug-in"
    warning = f"; {WRONG}" if plugged and not isinstance(problem.target, Constant) else ""
    if method.family == "pointwise" or number == 1:
        said = f"With {level_text(level)} confidence each interval holds, one group at a time"
        return said + warning
    return (
        f"With {level_text(level)} confidence all intervals hold at once, for every one of the "
        f"{number:,} groups, by {_FAMILIES[method.family]} inequality{warning}"
    )


# --- p-values of every group by empirical or Euclidean likelihood ---


def likelihood_p_values(problem: Problem, method: Likelihood | Euclidean, null: Null) -> FloatArray:
    """One p-value per group, NaN where nothing says how its values vary."""
    if isinstance(method, Euclidean):
        return _euclidean_p_values(problem, method, null)
    known = isinstance(problem.target, Constant)
    if band_applies(problem):
        return _counted(problem, method, null, known or method.target == "plug-in")
    p = np.full(len(problem.collection), np.nan)
    plain = known or method.target == "plug-in"
    for chosen, groups in own_values(problem) if plain else influence_values(problem):
        adjust = likelihood.adjustment(groups) if method.calibration == "auto" else None
        target = problem.estimates.target[chosen] if plain else np.zeros(chosen.size)
        p[chosen] = likelihood.mean_p_values(groups, target, null, adjust)
    return p


def _counted(problem: Problem, method: Likelihood, null: Null, known: bool) -> FloatArray:
    if not known:
        parts = counted_parts(problem)
        auto = method.calibration == "auto"
        p = null.p_value(
            lambda limit: normal_tails(likelihood.part_roots(parts, limit, calibrated=auto))
        )
        return np.where(comparable(problem), p, np.nan)
    rows, ones = (problem.collection.sums(x) for x in (problem.cells.rows, problem.cells.total))
    theta = np.nan_to_num(problem.estimates.target)
    auto = method.calibration == "auto"

    def tails(limit: float) -> tuple[FloatArray, FloatArray]:
        rate = np.clip(theta + limit, 0.0, 1.0)
        return normal_tails(likelihood.known_roots(ones, rows, rate, calibrated=auto))

    return np.where(rows > 0, null.p_value(tails), np.nan)


def _euclidean_p_values(problem: Problem, method: Euclidean, null: Null) -> FloatArray:
    error, degrees = errors_of(problem, method)
    estimate = problem.estimates.estimate

    def tails(limit: float) -> tuple[FloatArray, FloatArray]:
        return normal_tails(likelihood.student_roots(estimate - limit, error, degrees))

    return null.p_value(tails)


# --- The published bootstrap on a problem: engines, bounds and certificates as their paper has them

#: Rows × resamples up to which rows of a real-valued metric are resampled one by one.
EXACT_LIMIT = 200_000_000


def make_engine(problem: Problem, engine: str, resamples: int) -> bootstrap.Engine:
    """The resampling engine: clusters if there are any, exact where it is affordable."""
    cells = problem.cells
    if cells.clusters is not None:
        if engine == "moments":
            raise OptionError("engine='moments' cannot resample clusters; use engine='auto'.")
        return bootstrap.ClusterEngine(_cluster_data(problem), len(cells), float(cells.counted))
    if problem.moments.binary and engine != "moments":
        return bootstrap.BinaryEngine(problem.moments, problem.influence)
    affordable = cells.counted * resamples <= EXACT_LIMIT
    if engine == "exact" or (engine == "auto" and affordable):
        return bootstrap.RowEngine(problem.rows(), len(cells))
    return bootstrap.MomentsEngine(problem.moments, problem.influence)


def audit_of(
    problem: Problem, engine: str, resamples: int, seed: Seed, tell: Tell
) -> bootstrap.Audit:
    """The problem as the bootstrap takes it, with its engine."""
    return bootstrap.Audit(
        engine=make_engine(problem, engine, resamples),
        groups=problem.estimates,
        target=problem.target,
        sums=problem.collection.sums,
        resamples=resamples,
        seed=seed.sequence,
        progress=tell,
    )


def bootstrap_bounds(
    problem: Problem, options: CertifyOptions, seed: Seed, progress: Progress
) -> Found:
    """Bounds by Algorithms 1, 2 and 6."""
    method = options.method
    with progress_bar(progress, method.resamples, "certify") as tell:
        audit = audit_of(problem, method.engine, method.resamples, seed, tell)
        scaling = method.scaling(power=1.5)
        extremes = bootstrap.bound_extremes(audit, scaling)
    side = bootstrap.Side(options.side)
    read = bootstrap.simultaneous_bounds(
        problem.estimates, extremes, scaling, level=options.level, side=side
    )
    # One row has no spread of its own, and equal rows show none: nothing follows from either.
    bad = (Status.SINGLE, Status.IDENTICAL)
    alone = np.isin(problem.estimates.status, bad) | without_spread(problem)
    reach = bootstrap.half_width_factors(problem.estimates, scaling)
    largest = {
        "lower": extremes.highest,
        "upper": -extremes.lowest,
        "both": np.maximum(extremes.highest, -extremes.lowest),
    }[options.side]
    return Found(
        lower=np.where(alone, np.nan, read.lower),
        upper=np.where(alone, np.nan, read.upper),
        reach=np.where(alone, np.nan, reach),
        critical=read.critical,
        quantiles=per_mille(largest),
        engine=extremes.engine,
        recipe=None,
        guarantee="",
        assumption="large-sample approximation by the bootstrap, as published",
    )


def bootstrap_certificates(
    problem: Problem, options: CertifyOptions, limit: float, seed: Seed, progress: Progress
) -> tuple[BoolArray, FloatArray, str]:
    """Certificates by Algorithms 3 and 7: which hold, at which error rate, by which engine."""
    method = options.method
    aims = {
        "lower": bootstrap.Aim.ABOVE,
        "upper": bootstrap.Aim.BELOW,
        "both": bootstrap.Aim.WITHIN,
    }
    with progress_bar(progress, method.resamples, "certify") as tell:
        audit = audit_of(problem, method.engine, method.resamples, seed, tell)
        results = bootstrap.certify(
            audit,
            method.scaling(power=0.5),
            aim=aims[options.side],
            limit=limit,
            step_down=method.step_down,
        )
    # equal rows show no error, which is not to say that there is none, and nobody is certified for
    # being like themselves
    itself = problem.estimates.status == Status.IDENTICAL
    silent = itself | without_spread(problem)
    certified = bootstrap.combine(results, options.level) & ~silent
    # both sides of a range must be certified, so the weaker one is the group's p-value
    worst = np.max([r.exceedances for r in results], axis=0)
    return certified, np.where(silent, np.nan, worst), audit.engine.name


def without_spread(problem: Problem) -> bool:
    """Whether no group has two rows that differ: then no resample can differ from the sample."""
    sums = problem.collection.sums
    cells = problem.cells
    weight, total, square = (sums(x) for x in (cells.weight, cells.total, cells.square))
    some = weight > 0
    centred = square[some] - total[some] ** 2 / weight[some]
    # sums are kept to 33 binary digits, so a smaller remainder is rounding
    return bool((centred <= 1e-9 * square[some]).all())


def _cluster_data(problem: Problem) -> bootstrap.ClusterData:
    table = problem.cells.clusters
    if table is None or problem.influence is not None:
        raise OptionError("A custom target cannot be combined with a cluster column.")
    return bootstrap.ClusterData(
        cluster=table.cluster, cell=table.cell, weight=table.weight, total=table.total
    )
