"""p-values of 0/1 metrics under tilts, with a spread that is never below what the null implies."""

import numpy as np

from equipoise.methods.arrays import FloatArray, GroupSums
from equipoise.methods.bootstrap.data import CellMoments
from equipoise.methods.bootstrap.estimates import GroupEstimates, estimate_gaps
from equipoise.methods.bootstrap.flags import BootstrapPValues, as_p_values, pooled_moments
from equipoise.methods.bootstrap.sums import quotient
from equipoise.methods.bootstrap.targets import Target
from equipoise.methods.nulls.hypotheses import Null, normal_tails


def score_p_values(
    moments: CellMoments, groups: GroupEstimates, target: Target, sums: GroupSums, null: Null
) -> BootstrapPValues:
    """p-values of gaps in a 0/1 metric, rows counting with any weights.

    The observed spread of a rate near zero vanishes exactly when the estimate is extreme. It is
    replaced by the spread of a common rate equal to what the null says of the tilt, wherever that
    is larger; in large samples that can only lower the error rate.

    >>> from equipoise.methods.bootstrap import Overall, unweighted_moments
    >>> from equipoise.methods.nulls import Above
    >>> cells = unweighted_moments(np.array([400.0, 600.0]), np.array([100.0, 300.0]))
    >>> gaps = estimate_gaps(cells, Overall(), lambda x: x)
    >>> found = score_p_values(cells, gaps, Overall(), lambda x: x, Above(limit=0.0))
    >>> (found.p < 0.01).tolist()
    [False, True]
    """
    if not moments.binary:
        raise ValueError("the spread under the null is known of an unweighted 0/1 metric only")
    pooled = estimate_gaps(pooled_moments(moments), target, sums)
    overall = float(moments.total.sum() / max(moments.weight.sum(), 1.0))
    common = float(_variance(np.array(overall)))
    # With one rate everywhere the standard error is that rate's √(μ(1 − μ)) times a factor that
    # depends on weights and overlaps alone; the factor serves every null.
    per_unit = np.nan_to_num(pooled.standard_error) / np.sqrt(max(common, 1e-300))
    seen = np.nan_to_num(groups.standard_error)

    def error(limit: float) -> FloatArray:
        implied: FloatArray = per_unit * np.sqrt(_variance(groups.target + limit))
        return np.maximum(seen, implied)

    def tails(limit: float) -> tuple[FloatArray, FloatArray]:
        return normal_tails(quotient(groups.estimate - limit, error(limit)))

    # Reported, and zero if either is; each end of a range is tested with its own.
    spread: FloatArray = np.min([error(limit) for limit in null.limits], axis=0)
    return as_p_values(groups, null.p_value(tails), spread, groups.usable & (spread > 0))


def _variance(rate: FloatArray) -> FloatArray:
    """Variance of a 0/1 value; a rate that cannot be has none."""
    inside = np.clip(np.nan_to_num(rate), 0.0, 1.0)
    return np.asarray(inside * (1 - inside))
