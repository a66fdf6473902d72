"""The process in which every resample is measured in units of its own spread.

The bounds rest on p̂²(ε̂ − ε)/ŝ, and ŝ is estimated from the same rows as ε̂: when a skewed metric
shows few large values, both come out low together. Recomputing ŝ in each resample carries that
over into the critical value; keeping it fixed makes upper bounds of a squared error fail.
"""

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.bootstrap.data import Totals
from equipoise.methods.bootstrap.process import Audit, deviations_of
from equipoise.methods.bootstrap.scaling import Scaling
from equipoise.methods.bootstrap.sums import GroupTotals, group_totals, second, second_order
from equipoise.methods.bootstrap.targets import Constant

BEYOND = float(np.finfo(np.float64).max)
"""Stands for a deviation in a resample without any spread: larger than every critical value."""


def studentized_deviations(audit: Audit, cells: Totals, scaling: Scaling) -> FloatArray:
    """p*²(ε* − ε̂)/ŝ* of every group in every resample of the block, shape ``(b, G)``.

    A group that the resample missed contributes zero.
    """
    local = np.isfinite(scaling.shrink)
    now = group_totals(cells, audit.sums, spread=bool(local))
    share = now.weight / _positive(cells.weight.sum(axis=-1, keepdims=True))
    variance = _variance(audit, cells, now, share) if local else 0.0
    scale = scaling.scale(share, variance, overall_spreads(cells, audit.groups.sample))
    change = deviations_of(audit, cells, now)
    change *= share
    if bool((scale > 0).all()):
        change /= scale
        return change
    out = np.divide(change, scale, out=np.zeros_like(change), where=scale > 0)
    # rounding leaves dust where nothing varies and nothing has moved
    moved = np.abs(change) > 1e-12 * np.abs(np.nan_to_num(audit.groups.mean))
    return np.where((scale <= 0) & moved, np.copysign(BEYOND, change), out)


def _variance(audit: Audit, cells: Totals, now: GroupTotals, share: FloatArray) -> FloatArray:
    """σ̂²: n p̂ times the variance of each group's estimate, as the resample would estimate it."""
    own = _row_variance(now, share, audit.groups.sample)
    if isinstance(audit.target, Constant):
        return own
    k = np.nan_to_num(audit.groups.sensitivity)
    other, both = audit.target.variance_terms(cells, now, audit.sums)
    # Line 7 of Algorithm 2 of Cherian and Candès, from the resample's own sums.
    own += (k**2 * other - 2 * k * both) * (share * audit.groups.sample)
    # a target that the resample missed has no variance of its own
    return np.maximum(np.nan_to_num(own, copy=False), 0.0, out=own)


def _row_variance(now: GroupTotals, share: FloatArray, sample: float) -> FloatArray:
    """The part of σ̂² that is the group's own; zero where the resample missed the group."""
    # Not the least positive number: this is squared below, and must stay finite.
    per_row = 1 / np.maximum(now.weight, 1e-100)
    mean = now.total * per_row
    w2, s2, q2 = now.second_groups
    if s2 is q2 and s2 is now.total and w2 is now.weight:
        # a 0/1 metric without weights: n p μ(1 − μ) / (n p)
        own: FloatArray = 1 - mean
        own *= mean
        return own
    per_row *= per_row
    per_row *= second(w2, s2, q2, mean)
    per_row *= share
    per_row *= sample
    return per_row


def overall_spreads(cells: Totals, sample: float) -> FloatArray:
    """Standard deviation of the metric in each resample, shape ``(b, 1)``."""
    weight = _positive(cells.weight.sum(axis=-1, keepdims=True))
    w2, s2, q2 = (x.sum(axis=-1, keepdims=True) for x in second_order(cells))
    mean = cells.total.sum(axis=-1, keepdims=True) / weight
    about = second(w2, s2, q2, mean)
    # A difference of squares, of which rounding alone leaves about this share.
    about = np.where(about > 1e-12 * q2, about, 0.0)
    return np.asarray(np.sqrt(about * sample) / weight)


def _positive(x: FloatArray) -> FloatArray:
    return np.where(x > 0, x, 1.0)
