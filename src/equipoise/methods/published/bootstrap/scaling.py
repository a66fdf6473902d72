"""The scale ŝ(G) that keeps small groups from ruling the maximum."""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.published.bootstrap.estimates import GroupEstimates


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """ŝ = max(p̂, floor)^power · (w σ̂_G + (1 − w) sd(L)) with w = p̂ / (p̂ + shrink)."""

    floor: float = 0.01
    """Share p_* below which groups get no narrower bounds."""
    shrink: float = np.inf
    """w₀: infinite uses the overall spread for every group, 0 each group's own."""
    power: float = 1.5
    """3/2 gives bounds that shrink like 1/√|G|; for Boolean certificates 1/2 does the same."""

    def factors(self, groups: GroupEstimates) -> FloatArray:
        """ŝ of each group; NaN where no scale can be formed."""
        scale = self.scale(groups.share, groups.variance, groups.spread)
        return np.where(scale > 0, scale, np.nan)

    def scale(
        self, share: FloatArray, variance: FloatArray | float, spread: FloatArray | float
    ) -> FloatArray:
        """ŝ from a group's share and variance, and the overall spread."""
        # (9) of Cherian and Candès. Below the floor p_* the scale stops shrinking, or groups of a
        # few rows would decide the critical value of all.
        size = _power(np.maximum(share, self.floor), self.power)
        # Their recommendation after (9): estimating each group's variance can harm small samples.
        if np.isinf(self.shrink):
            return size * spread
        if self.shrink == 0:
            return size * np.sqrt(variance)
        # w σ + (1 − w) s = s + w (σ − s), in place: this is where most of the time goes
        mixed = np.sqrt(variance)
        mixed -= spread
        mixed *= share / (share + self.shrink)
        mixed += spread
        mixed *= size
        return np.asarray(mixed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscaled:
    """ŝ = 1: the published first form, tight for the largest groups only."""

    def factors(self, groups: GroupEstimates) -> FloatArray:
        """One for every group."""
        return np.ones_like(groups.share)

    def scale(
        self, share: FloatArray, variance: FloatArray | float, spread: FloatArray | float
    ) -> FloatArray:
        """One for every group."""
        return np.ones_like(share)


def _power(x: FloatArray, power: float) -> FloatArray:
    # the two powers in use need no logarithm
    if power == 1.5:
        return x * np.sqrt(x)
    return np.sqrt(x) if power == 0.5 else np.asarray(x**power)
