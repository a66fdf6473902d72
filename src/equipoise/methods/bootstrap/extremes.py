"""Extremes of the bootstrap process over the groups: all that simultaneous bounds need."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.bootstrap.data import Totals
from equipoise.methods.bootstrap.process import Audit, bound_deviations, columns
from equipoise.methods.bootstrap.scaling import Scaling, Unscaled
from equipoise.methods.bootstrap.studentized import studentized_deviations


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


def bound_extremes(
    audit: Audit, scaling: Scaling | Unscaled, *, studentized: bool = False
) -> Extremes:
    """Run Algorithms 1, 2 and 6: the extremes of ŝ⁻¹ p̂ p*(ε* − ε̂) in each resample.

    With ``studentized`` they are those of p*²(ε* − ε̂)/ŝ*, every resample in units of its own
    spread, which needs an engine that draws second moments.
    """
    scale = scaling.factors(audit.groups)
    live = np.flatnonzero(audit.groups.usable & ~np.isnan(scale))
    process_of = bound_process(audit, scaling, live, studentized=studentized)
    tops, bottoms = [np.zeros(0)], [np.zeros(0)]
    for cells in audit.blocks() if live.size else ():
        process = process_of(cells)
        tops.append(process.max(axis=1))
        bottoms.append(process.min(axis=1))
    return Extremes(
        highest=np.concatenate(tops), lowest=np.concatenate(bottoms), engine=audit.engine.name
    )


def bound_process(
    audit: Audit, scaling: Scaling | Unscaled, live: IntArray, *, studentized: bool
) -> Callable[[Totals], FloatArray]:
    """The process of the bounds for the groups ``live``, from a block of resampled totals."""
    if studentized and isinstance(scaling, Scaling):
        return lambda cells: columns(studentized_deviations(audit, cells, scaling), live)
    # Line 10 of Algorithm 2 of Cherian and Candès: p* is in the deviations, p̂ and 1/ŝ are here.
    factor = audit.groups.share[live] / scaling.factors(audit.groups)[live]
    return lambda cells: columns(bound_deviations(audit, cells), live) * factor
