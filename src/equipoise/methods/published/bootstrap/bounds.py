"""Simultaneous bounds, read off the stored extremes at any level for any group."""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.published.bootstrap.estimates import GroupEstimates
from equipoise.methods.published.bootstrap.extremes import Extremes
from equipoise.methods.published.bootstrap.scaling import Scaling, Unscaled
from equipoise.methods.quantiles import quantile


class Side(Enum):
    """Which bounds are wanted."""

    LOWER = "lower"
    UPPER = "upper"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds that hold for every group of the collection at once."""

    lower: FloatArray
    """Lower bounds; −inf when only upper ones were asked for; NaN for groups that have none."""
    upper: FloatArray
    """Upper bounds; +inf when only lower ones were asked for; NaN for groups that have none."""
    critical: float
    """Critical value t*; NaN when no group could be audited."""
    level: float
    """Confidence level."""
    side: Side
    """Which bounds were asked for."""


def critical_value(extremes: Extremes, *, level: float, side: Side) -> float:
    """t*: the level-quantile of the process's maximum, of minus its minimum, or of both."""
    if extremes.highest.size == 0:
        return float("nan")
    if side is Side.LOWER:
        return quantile(extremes.highest, level)
    # Cherian and Candès, Appendix B.3, use the quantile of the maximum here too, since the limit is
    # symmetric. A skewed metric in a small sample is not, so the minimum has its own.
    if side is Side.UPPER:
        return quantile(-extremes.lowest, level)
    # Appendix B.3, the absolute process: the quantile of the larger of the two, not two quantiles
    # at half the error each.
    return quantile(np.maximum(extremes.highest, -extremes.lowest), level)


def simultaneous_bounds(
    groups: GroupEstimates,
    extremes: Extremes,
    scaling: Scaling | Unscaled,
    *,
    level: float,
    side: Side,
) -> Bounds:
    """ε̂ ∓ t* ŝ / p̂² for the given groups.

    ``groups`` may be others than those of the run, as long as each belongs to the collection whose
    extremes are handed in (and ``scaling`` is the one they were computed with).
    """
    # Cherian and Candès, (7) and (8): the process was multiplied by p̂ and by p*, so that small
    # groups cannot rule its maximum, and the bound divides by p̂² in turn.
    critical = critical_value(extremes, level=level, side=side)
    with np.errstate(over="ignore"):
        # a width beyond all floats is no bound at all
        width = critical * half_width_factors(groups, scaling)
    blank = np.where(np.isnan(width), np.nan, 0.0)
    lower = groups.estimate - width if side is not Side.UPPER else blank - np.inf
    upper = groups.estimate + width if side is not Side.LOWER else blank + np.inf
    return Bounds(lower=lower, upper=upper, critical=critical, level=level, side=side)


def half_width_factors(groups: GroupEstimates, scaling: Scaling | Unscaled) -> FloatArray:
    """ŝ / p̂² in units of the estimate: the half-width per unit of the critical value."""
    usable = groups.usable
    share = np.where(usable, groups.share, 1.0)
    # The process of a ratio μ/θ is that of μ − rθ, in units of the metric; hence the last divisor.
    factor = scaling.factors(groups) / share**2 / groups.unit
    return np.where(usable, factor, np.nan)
