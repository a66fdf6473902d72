"""p-values of every group by empirical or Euclidean likelihood."""

import numpy as np

from equipoise.audits._groups.bench import Bench
from equipoise.audits._groups.likelihood import band_applies, comparable, counted_parts, errors_of
from equipoise.audits._groups.samples import own_values, pseudo_values
from equipoise.audits.methods import Euclidean, Likelihood
from equipoise.methods.arrays import FloatArray
from equipoise.methods.hypotheses import Null, normal_tails
from equipoise.methods.published import likelihood
from equipoise.methods.targets import Constant


def likelihood_p_values(bench: Bench, method: Likelihood | Euclidean, null: Null) -> FloatArray:
    """One p-value per group, NaN where nothing says how its values vary."""
    if isinstance(method, Euclidean):
        return _euclidean(bench, method, null)
    known = isinstance(bench.target, Constant)
    if band_applies(bench):
        return _counted(bench, method, null, known or method.target == "plug-in")
    p = np.full(len(bench.collection), np.nan)
    plain = known or method.target == "plug-in"
    for chosen, groups in own_values(bench) if plain else pseudo_values(bench):
        adjust = likelihood.adjustment(groups) if method.calibration == "auto" else None
        target = bench.estimates.target[chosen] if plain else np.zeros(chosen.size)
        p[chosen] = likelihood.mean_p_values(groups, target, null, adjust)
    return p


def _counted(bench: Bench, method: Likelihood, null: Null, known: bool) -> FloatArray:
    if not known:
        parts = counted_parts(bench)
        auto = method.calibration == "auto"
        p = null.p_value(
            lambda limit: normal_tails(likelihood.part_roots(parts, limit, calibrated=auto))
        )
        return np.where(comparable(bench), p, np.nan)
    rows, ones = (bench.collection.sums(x) for x in (bench.cells.rows, bench.cells.total))
    theta = np.nan_to_num(bench.estimates.target)
    auto = method.calibration == "auto"

    def tails(limit: float) -> tuple[FloatArray, FloatArray]:
        rate = np.clip(theta + limit, 0.0, 1.0)
        return normal_tails(likelihood.known_roots(ones, rows, rate, calibrated=auto))

    return np.where(rows > 0, null.p_value(tails), np.nan)


def _euclidean(bench: Bench, method: Euclidean, null: Null) -> FloatArray:
    error, degrees = errors_of(bench, method)
    estimate = bench.estimates.estimate

    def tails(limit: float) -> tuple[FloatArray, FloatArray]:
        return normal_tails(likelihood.student_roots(estimate - limit, error, degrees))

    return null.p_value(tails)
