"""Empirical likelihood of a contrast of means over disjoint parts: targets profiled out.

With the complement, or a reference that shares no row with the group, ε = μ(G) − c·μ(R), and the
profile likelihood is the least of ELR_G(ε + cθ) + ELR_R(θ) over θ. Both are convex and their slopes
known at no extra cost, so θ is one safeguarded Newton search for all groups together. Against
everybody the group's share P is profiled too: ε = (1 − cP) μ(G) − c(1 − P) μ(rest).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from equipoise.methods.arrays import FloatArray
from equipoise.methods.likelihood.mean import Segments, mean_ratio

MAX_STEPS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSamples:
    """Groups beside what they are compared with, the same number of segments each."""

    group: Segments
    """Values of each group."""
    other: Segments
    """Values of each group's complement or reference."""
    scale: float = 1.0
    """Factor on the target."""
    overall: bool = False
    """Whether the target is everybody, and ``other`` the rest."""

    @property
    def estimate(self) -> FloatArray:
        """The disparity of each group."""
        here, there = self.group.mean, self.other.mean
        if not self.overall:
            return here - self.scale * there
        p = self.share
        return (1 - self.scale * p) * here - self.scale * (1 - p) * there

    @property
    def share(self) -> FloatArray:
        """Share of the group among all rows."""
        n = self.group.rows
        return n / (n + self.other.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRatio:
    """Profile likelihood ratio of each group's disparity, arrays of shape ``(G,)``."""

    statistic: FloatArray
    """Minus twice the log ratio; NaN where a part does not vary, infinite out of reach."""
    slope: FloatArray
    """Its derivative in the disparity tested."""
    theta: FloatArray
    """The most likely mean of the other part."""


def profile_ratio(both: TwoSamples, value: FloatArray) -> ProfileRatio:
    """Profile likelihood ratio of ε = value.

    >>> from equipoise.methods.likelihood import segments
    >>> a, b = segments([np.array([0.0, 1.0, 2.0])]), segments([np.array([1.0, 2.0, 3.0])])
    >>> profile_ratio(TwoSamples(group=a, other=b), np.array([-1.0])).statistic.round(9).tolist()
    [0.0]
    """
    if both.overall:
        return _over_shares(both, value)
    one = np.ones_like(value)
    return _at_share(both, value, one, both.scale * one)


def _over_shares(both: TwoSamples, value: FloatArray) -> ProfileRatio:
    """Least over the share P: the slope in P is known, so its zero is searched in a bracket."""
    n, p, c = both.group.rows + both.other.rows, both.share, both.scale
    low, high = p / 50, 1 - (1 - p) / 50
    at, before, slope_before = p, np.full_like(p, np.nan), np.full_like(p, np.nan)
    for _ in range(MAX_STEPS):
        a, b = 1 - c * at, c * (1 - at)
        inner = _at_share(both, value, a, b)
        moved = c * (value + b * inner.theta - a * inner.theta) / a**2
        slope = np.nan_to_num(inner.slope) * a * moved + 2 * n * ((1 - p) / (1 - at) - p / at)
        low, high = np.where(slope > 0, low, at), np.where(slope > 0, at, high)
        bend = np.divide(
            slope - slope_before, at - before, out=np.full_like(p, np.nan), where=at != before
        )
        bend = np.where(bend > 0, bend, 2 * n / (at * (1 - at)))
        before, slope_before = at, slope
        step = at - slope / bend
        if bool((np.abs(step - at) <= 1e-8 * at).all()):
            break
        at = np.where((step > low) & (step < high), step, (low + high) / 2)
    lost = 2 * n * (xlogy(p, p / before) + xlogy(1 - p, (1 - p) / (1 - before)))
    return ProfileRatio(statistic=inner.statistic + lost, slope=inner.slope, theta=inner.theta)


def _at_share(both: TwoSamples, value: FloatArray, a: FloatArray, b: FloatArray) -> ProfileRatio:
    """Least over θ of the two ratios under a·μ − b·θ = value."""
    low, high = _range(both, value, a, b)
    possible = low < high
    low, high = np.where(possible, low, 0.0), np.where(possible, high, 1.0)
    at = np.clip(_start(both, value, a, b), low + 0.01 * (high - low), high - 0.01 * (high - low))
    best, width = np.full_like(value, np.inf), high - low
    for _ in range(MAX_STEPS):
        here, there = mean_ratio(both.group, (value + b * at) / a), mean_ratio(both.other, at)
        new = here.statistic + there.statistic
        best = np.fmin(best, new)
        slope = here.slope * b / a + there.slope
        rising = np.isnan(slope) | (slope > 0)
        # outside the range of either sample the slope says nothing; the middle decides
        low, high = np.where(rising, low, at), np.where(rising, at, high)
        bend = _bend(both, value, a, b, at, here.multiplier, there.multiplier)
        step = at - np.divide(slope, bend, out=np.full_like(at, np.nan), where=bend > 0)
        # the statistic is flat at its least: errors of θ count squared
        near = 1e-8 * (width + np.abs(at))
        settled = (np.abs(step - at) <= near) | (high - low <= near)
        if bool((settled | ~possible).all()):
            break
        at = np.where((step > low) & (step < high), step, (low + high) / 2)
    varies = both.group.varies & both.other.varies
    return ProfileRatio(
        statistic=np.where(varies, np.where(possible, best, np.inf), np.nan),
        slope=here.slope / a,
        theta=at,
    )


def _bend(
    both: TwoSamples,
    value: FloatArray,
    a: FloatArray,
    b: FloatArray,
    at: FloatArray,
    here: FloatArray,
    there: FloatArray,
) -> FloatArray:
    """Second derivative of the sum in θ."""
    first = _curvature(both.group, (value + b * at) / a, np.nan_to_num(here))
    return np.asarray((b / a) ** 2 * first + _curvature(both.other, at, np.nan_to_num(there)))


def _curvature(groups: Segments, value: FloatArray, multiplier: FloatArray) -> FloatArray:
    g = groups.value - groups.spread(value)
    inverse = 1 / np.maximum(1 + groups.spread(multiplier) * g, 1e-9)
    top = groups.sums(inverse * inverse)
    return np.asarray(2 * groups.rows * top / groups.sums((g * inverse) ** 2))


def _range(
    both: TwoSamples, value: FloatArray, a: FloatArray, b: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Targets for which both means lie inside the range of their sample."""
    ends = [
        (np.minimum.reduceat(s.value, s.start), np.maximum.reduceat(s.value, s.start))
        for s in (both.group, both.other)
    ]
    lowest, highest = ((a * end - value) / b for end in ends[0])
    return np.maximum(lowest, ends[1][0]), np.minimum(highest, ends[1][1])


def _start(both: TwoSamples, value: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """Where the least would be if both ratios were parabolas."""
    here, there = both.group.mean, both.other.mean
    weights = []
    for s, mean in ((both.group, here), (both.other, there)):
        spread = s.sums((s.value - s.spread(mean)) ** 2)
        weights.append(s.rows**2 / np.maximum(spread, 1e-300))
    slope = b / a
    first = weights[0] * slope * (here - value / a)
    return np.asarray((first + weights[1] * there) / (weights[0] * slope**2 + weights[1]))
