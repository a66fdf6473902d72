"""Group estimates: share, mean, target, disparity or ratio, and the disparity's variance."""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import BoolArray, FloatArray, GroupSums, IntArray
from equipoise.methods.inference.comparison import Status
from equipoise.methods.published.bootstrap.data import CellMoments, observed_totals
from equipoise.methods.published.bootstrap.sums import GroupTotals, group_totals, quotient, second
from equipoise.methods.published.bootstrap.targets import (
    target_estimate,
    target_status,
    variance_terms,
)
from equipoise.methods.targets import Target

#: Sums come to 33 binary digits, so differences of squares below this share are no spread.
ROUNDING = 2e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEstimates:
    """What the data say of each group, arrays of shape ``(G,)``; NaN where undefined."""

    rows: FloatArray
    """Rows in the group."""
    share: FloatArray
    """Weighted share p̂ of the group."""
    mean: FloatArray
    """Mean metric μ̂ of the group."""
    target: FloatArray
    """Target θ̂ the group is compared with."""
    estimate: FloatArray
    """Disparity μ̂ − θ̂, or ratio μ̂ / θ̂."""
    sensitivity: FloatArray
    """How far the compared value moves per unit of θ: 1 for a gap, μ̂/θ̂ for a ratio."""
    unit: FloatArray
    """What one unit of the estimate is worth in units of the metric: 1, or θ̂ for a ratio."""
    variance: FloatArray
    """σ̂²: asymptotic variance of √(n p̂) times the error of the estimate, in metric units."""
    status: IntArray
    """One :class:`Status` code per group."""
    sample: float
    """Rows n in all."""
    spread: float
    """Standard deviation of the metric over all rows."""

    @property
    def usable(self) -> BoolArray:
        """Groups for which the bootstrap process exists."""
        bad = (Status.EMPTY, Status.CONSTANT, Status.NO_TARGET)
        return ~np.isin(self.status, bad)

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of the estimate."""
        return np.sqrt(quotient(self.variance, self.share * self.sample)) / self.unit


def estimate_gaps(moments: CellMoments, target: Target, sums: GroupSums) -> GroupEstimates:
    """Disparities μ̂(G) − θ̂ of every group.

    >>> from equipoise.methods.published.bootstrap import unweighted_moments
    >>> from equipoise.methods.targets import Overall
    >>> cells = unweighted_moments(np.array([4.0, 6.0]), np.array([1.0, 3.0]))
    >>> estimate_gaps(cells, Overall(), lambda x: x).estimate.round(3).tolist()
    [-0.15, 0.1]
    """
    compared = _compare(moments, target, sums)
    one = np.ones_like(compared.theta)
    gap = compared.mean - compared.theta
    return _assemble(compared, estimate=gap, sensitivity=one, unit=one)


def estimate_ratios(moments: CellMoments, target: Target, sums: GroupSums) -> GroupEstimates:
    """Ratios μ̂(G) / θ̂ of every group; a target that is not positive has no ratio.

    >>> from equipoise.methods.published.bootstrap import unweighted_moments
    >>> from equipoise.methods.targets import Overall
    >>> cells = unweighted_moments(np.array([4.0, 6.0]), np.array([1.0, 3.0]))
    >>> estimate_ratios(cells, Overall(), lambda x: x).estimate.tolist()
    [0.625, 1.25]
    """
    compared = _compare(moments, target, sums)
    unit = np.where(compared.theta > 0, compared.theta, np.nan)
    ratio = compared.mean / unit
    return _assemble(compared, estimate=ratio, sensitivity=ratio, unit=unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """Groups beside their target, before it is decided how to compare the two."""

    moments: CellMoments
    rows: FloatArray
    share: FloatArray
    mean: FloatArray
    theta: FloatArray
    own: FloatArray
    other: FloatArray
    both: FloatArray
    from_target: FloatArray


def _compare(moments: CellMoments, target: Target, sums: GroupSums) -> _Compared:
    cells = observed_totals(moments)
    groups = group_totals(cells, sums, spread=True)
    other, both = variance_terms(target, cells, groups, sums)
    theta = np.broadcast_to(target_estimate(target, cells, groups), groups.weight.shape)
    return _Compared(
        moments=moments,
        rows=sums(moments.rows),
        share=groups.weight[0] / max(float(moments.weight.sum()), np.finfo(float).tiny),
        mean=quotient(groups.total, groups.weight)[0],
        theta=theta[0].copy(),
        own=_real_variance(groups)[0],
        other=other[0],
        both=both[0],
        from_target=target_status(target, moments.rows, sums),
    )


def _assemble(
    c: _Compared, *, estimate: FloatArray, sensitivity: FloatArray, unit: FloatArray
) -> GroupEstimates:
    n, spread = float(c.moments.rows.sum()), overall_spread(c.moments)
    # The delta method; for a ratio r = μ/θ, θ times its error is that of μ − rθ. Times n p̂ it is
    # σ̂² of line 7 of Algorithm 2 of Cherian and Candès, in which the sensitivity is one.
    variance = c.own + sensitivity**2 * c.other - 2 * sensitivity * c.both
    return GroupEstimates(
        rows=c.rows,
        share=c.share,
        mean=c.mean,
        target=c.theta,
        estimate=estimate,
        sensitivity=sensitivity,
        unit=unit,
        variance=np.maximum(variance, 0.0) * n * c.share,
        # A ratio to a target that is not positive has no unit; the product carries its NaN along.
        status=_status(c.rows, unit * c.theta, spread, c.from_target),
        sample=n,
        spread=spread,
    )


def mean_variance(groups: GroupTotals) -> FloatArray:
    """Variance of each group's mean, shape ``(b, G)``."""
    mean = quotient(groups.total, groups.weight)
    return quotient(second(*groups.second_groups, mean), groups.weight**2)


def _real_variance(groups: GroupTotals) -> FloatArray:
    """Variance of each group's mean, zero where all that is left of it is rounding."""
    w2, s2, q2 = groups.second_groups
    about = second(w2, s2, q2, quotient(groups.total, groups.weight))
    return quotient(np.where(about > ROUNDING * q2, about, 0.0), groups.weight**2)


def overall_spread(m: CellMoments) -> float:
    """Standard deviation of L, in the sense in which the resampled overall mean varies."""
    weight = float(m.weight.sum())
    if weight <= 0:
        return 0.0
    w2, s2, q2 = (np.asarray(x.sum()) for x in (m.weight2, m.total2, m.square2))
    mean = np.asarray(m.total.sum() / weight)
    about = float(second(w2, s2, q2, mean))
    real = about > ROUNDING * float(q2)
    # √n times the standard error of the weighted mean, which for equal weights is sd(L) itself.
    return float(np.sqrt(about * float(m.rows.sum()))) / weight if real else 0.0


def _status(
    rows: FloatArray, theta: FloatArray, spread: float, from_target: FloatArray
) -> IntArray:
    status = from_target.astype(np.int64)
    if spread == 0:
        status[:] = Status.CONSTANT
    # Later lines overrule earlier ones: an empty group is empty whatever its target is.
    status[(np.rint(rows) == 1) & (status == Status.OK)] = Status.SINGLE
    status[np.isnan(theta)] = Status.NO_TARGET
    status[rows == 0] = Status.EMPTY
    return status
