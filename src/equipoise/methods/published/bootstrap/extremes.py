"""Extremes of the bootstrap process over the groups: all that simultaneous bounds need."""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.published.bootstrap.process import Audit, bound_deviations, columns
from equipoise.methods.published.bootstrap.scaling import Scaling, Unscaled


@dataclass(frozen=True, slots=True, kw_only=True)
class Extremes:
    """Largest and smallest value of the scaled process in each resample.

    They are the whole distribution of the critical value: any level and any side can be read off.
    """

    highest: FloatArray
    """Maximum over the groups, shape ``(B,)``."""
    lowest: FloatArray
    """Minimum over the groups, shape ``(B,)``."""
    engine: str
    """Engine that drew the resamples."""


def bound_extremes(audit: Audit, scaling: Scaling | Unscaled) -> Extremes:
    """Run Algorithms 1, 2 and 6: the extremes of ŝ⁻¹ p̂ p*(ε* − ε̂) in each resample."""
    scale = scaling.factors(audit.groups)
    live = np.flatnonzero(audit.groups.usable & ~np.isnan(scale))
    # Line 10 of Algorithm 2 of Cherian and Candès: p* is in the deviations, p̂ and 1/ŝ are here.
    factor = audit.groups.share[live] / scale[live]
    tops, bottoms = [np.zeros(0)], [np.zeros(0)]
    for cells in audit.blocks() if live.size else ():
        process = columns(bound_deviations(audit, cells), live) * factor
        tops.append(process.max(axis=1))
        bottoms.append(process.min(axis=1))
    return Extremes(
        highest=np.concatenate(tops), lowest=np.concatenate(bottoms), engine=audit.engine.name
    )
