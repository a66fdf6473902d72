"""The published bootstrap on a group problem: engines, bounds and certificates of its paper."""

import numpy as np

from equipoise._rng import Seed
from equipoise.audits._common import Progress, progress_bar
from equipoise.audits._groups.problem import CertifyOptions, Found, Problem
from equipoise.errors import OptionError
from equipoise.methods.inference.comparison import Status
from equipoise.methods.numerics import BoolArray, FloatArray, per_mille
from equipoise.methods.numerics import Progress as Tell
from equipoise.methods.published import bootstrap

# --- The published bootstrap on a problem: engines, bounds and certificates as their paper has them
# ---

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
