"""p-values of every group by empirical or Euclidean likelihood."""

import numpy as np

from equipoise.audits._groups.bench import Bench
from equipoise.audits._groups.likelihood import band_applies, comparable, counted_parts, errors_of
from equipoise.audits._groups.samples import own_values, pseudo_values
from equipoise.audits.methods import Euclidean, Likelihood
from equipoise.errors import OptionError
from equipoise.methods import bootstrap, likelihood, nulls
from equipoise.methods.arrays import FloatArray


def likelihood_p_values(
    bench: Bench, method: Likelihood | Euclidean, null: nulls.Null
) -> FloatArray:
    """One p-value per group, NaN where nothing says how its values vary."""
    if isinstance(method, Euclidean):
        return _euclidean(bench, method, null)
    known = isinstance(bench.target, bootstrap.Constant)
    if band_applies(bench):
        return _counted(bench, method, null, known or method.target == "plug-in")
    p = np.full(len(bench.collection), np.nan)
    plain = known or method.target == "plug-in"
    for chosen, groups in own_values(bench) if plain else pseudo_values(bench):
        adjust = likelihood.adjustment(groups) if method.calibration == "auto" else None
        target = bench.estimates.target[chosen] if plain else np.zeros(chosen.size)
        p[chosen] = likelihood.mean_p_values(groups, target, null, adjust)
    return p


def _counted(bench: Bench, method: Likelihood, null: nulls.Null, known: bool) -> FloatArray:
    if not known:
        parts = counted_parts(bench)
        auto = method.calibration == "auto"
        p = null.p_value(
            lambda limit: nulls.normal_tails(likelihood.part_roots(parts, limit, calibrated=auto))
        )
        return np.where(comparable(bench), p, np.nan)
    rows, ones = (bench.collection.sums(x) for x in (bench.cells.rows, bench.cells.total))
    tails = nulls.likelihood_bartlett if method.calibration == "auto" else nulls.likelihood
    theta = np.nan_to_num(bench.estimates.target)
    return nulls.known_target(ones, rows, theta, null, tails)


def _euclidean(bench: Bench, method: Euclidean, null: nulls.Null) -> FloatArray:
    error, degrees = errors_of(bench, method)
    estimate = bench.estimates.estimate

    def tails(limit: float) -> tuple[FloatArray, FloatArray]:
        return nulls.normal_tails(likelihood.student_roots(estimate - limit, error, degrees))

    return null.p_value(tails)


def contrast_of(bench: Bench) -> nulls.Contrast:
    """A 0/1 metric against an estimated target, as a contrast of disjoint parts."""
    rows, ones = bench.cells.rows, bench.cells.total
    target, sums = bench.target, bench.collection.sums
    if isinstance(target, bootstrap.Overall):
        return nulls.against_overall(rows, ones, sums, scale=target.scale)
    if isinstance(target, bootstrap.Reference):
        return nulls.against_reference(rows, ones, sums, target.cells, scale=target.scale)
    if isinstance(target, bootstrap.Complement):
        return nulls.against_complement(rows, ones, sums, scale=target.scale)
    raise OptionError("This target has no test under the null; use method='bootstrap-t'.")
