"""The scale ŝ(G) that keeps small groups from ruling the maximum."""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.bootstrap.estimates import GroupEstimates


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
        p = groups.share
        own = np.ones_like(p) if self.shrink == 0 else p / (p + self.shrink)
        sigma = np.where(own > 0, np.sqrt(groups.variance), 0.0)
        spread = own * sigma + (1 - own) * groups.spread
        scale = np.maximum(p, self.floor) ** self.power * spread
        return np.where(scale > 0, scale, np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscaled:
    """ŝ = 1: the published first form, tight for the largest groups only."""

    def factors(self, groups: GroupEstimates) -> FloatArray:
        """One for every group."""
        return np.ones_like(groups.share)
