"""A target estimated afresh from resampled totals, with the variance it adds to a disparity."""

import numpy as np

from equipoise.methods.arrays import FloatArray, GroupSums
from equipoise.methods.inference.comparison import Status
from equipoise.methods.published.bootstrap.data import Totals
from equipoise.methods.published.bootstrap.sums import GroupTotals, quotient, second
from equipoise.methods.targets import Custom, Target


def target_estimate(target: Target, cells: Totals, groups: GroupTotals) -> FloatArray:
    """θ in each batch, shape ``(b, 1)`` or ``(b, G)``; NaN where the target has no rows."""
    if isinstance(target, Custom):
        if cells.influence is None:
            raise ValueError("the engine was built without the custom target's influence values")
        return target.scale * (target.value + cells.influence)[:, None]
    if not target.estimated:
        return np.full((cells.weight.shape[0], 1), target.scale * target.number)
    whole = cells.weight.sum(axis=-1, keepdims=True)
    weight = target.total(cells.weight, groups.weight)
    # weights need not cancel exactly; a sliver of rounding is nobody
    weight = np.where(weight > 1e-9 * whole, weight, 0.0)
    return target.scale * quotient(target.total(cells.total, groups.total), weight)


def variance_terms(
    target: Target, cells: Totals, groups: GroupTotals, sums: GroupSums
) -> tuple[FloatArray, FloatArray]:
    """Variance of θ̂, and its covariance with each group's mean."""
    if isinstance(target, Custom):
        return _custom_terms(target, groups, sums)
    if not target.estimated:
        return np.zeros((1, 1)), np.zeros((1, 1))
    group, against = (
        np.array(flags, dtype=np.float64)[:, None, None] for flags in (target.group, target.against)
    )
    done = {id(x): target.parts(x, sums) for x in groups.second_cells}
    parts = [done[id(x)] for x in groups.second_cells]
    weight = target.total(cells.weight, groups.weight)
    theta = quotient(target.total(cells.total, groups.total), weight)
    a, b, c = ((against * x).sum(axis=0) for x in parts)
    own = quotient(second(a, b, c, theta), weight**2)
    # Σ w²(L − μ)(L − θ) over the rows in both, which alone move both means.
    a, b, c = ((group * against * x).sum(axis=0) for x in parts)
    mean = quotient(groups.total, groups.weight)
    shared = c - (mean + theta) * b + mean * theta * a
    both = quotient(shared, groups.weight * weight)
    return target.scale**2 * own, target.scale * np.nan_to_num(both)


def _custom_terms(
    target: Custom, groups: GroupTotals, sums: GroupSums
) -> tuple[FloatArray, FloatArray]:
    psi, n = target.influence, max(target.influence.rows, 1.0)
    mean = quotient(groups.total, groups.weight)
    # Cov(L, ψ | G)/n, as in line 7 of Algorithm 2 of Cherian and Candès.
    both = quotient(sums(psi.product) - mean * sums(psi.total), groups.weight) / n
    return np.full((1, 1), target.scale**2 * psi.variance), target.scale * both


def target_status(target: Target, rows: FloatArray, sums: GroupSums) -> FloatArray:
    """Status of each group as far as the target decides it."""
    out = np.full(sums(rows).shape, float(Status.OK))
    if not target.estimated:
        return out
    group, against = (
        np.array(flags, dtype=bool)[:, None] for flags in (target.group, target.against)
    )
    parts = target.parts(rows, sums)
    same = ((group != against) * parts).sum(axis=0) == 0
    out[same & (target.scale == 1.0)] = Status.IDENTICAL
    out[(against * parts).sum(axis=0) == 0] = Status.NO_TARGET
    return out
