"""The bootstrap process over the groups, written without dividing by a resampled share.

p*(ε* − ε̂) = S*_G/W* − (W*_G/W*)(θ* + ε̂), so a group that a resample happens to miss contributes
zero instead of a division by zero.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray, GroupSums
from equipoise.methods.published.bootstrap.data import Totals
from equipoise.methods.published.bootstrap.estimates import GroupEstimates
from equipoise.methods.published.bootstrap.streams import Engine, resampled
from equipoise.methods.published.bootstrap.sums import GroupTotals, group_totals
from equipoise.methods.published.bootstrap.targets import target_estimate
from equipoise.methods.streams import Progress
from equipoise.methods.targets import Constant, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Everything a bootstrap over groups works on."""

    engine: Engine
    """Draws the resampled cell totals."""
    groups: GroupEstimates
    """Estimates on the data."""
    target: Target
    """Re-estimated in every resample."""
    sums: GroupSums
    """From cells to groups."""
    resamples: int
    """Number B of resamples."""
    seed: np.random.SeedSequence
    """Root of the random streams."""
    block: int | None = None
    """Resamples handled at a time; None fits memory. Does not change any number."""
    progress: Progress | None = None
    """Told how many resamples are done."""

    def blocks(self) -> Iterator[Totals]:
        """The resampled cell totals, block by block."""
        return resampled(
            self.engine,
            resamples=self.resamples,
            seed=self.seed,
            groups=self.groups.share.size,
            block=self.block,
            progress=self.progress,
        )


def target_shift(audit: Audit, cells: Totals, groups: GroupTotals) -> FloatArray:
    """θ* − θ̂ in each resample; a resample without target rows leaves the target where it was."""
    now = target_estimate(audit.target, cells, groups)
    # a target common to all groups stays one column wide, which halves the work
    before = audit.groups.target[: 1 if now.shape[1] == 1 else None]
    return np.nan_to_num(now - np.nan_to_num(before), copy=False)


def bound_deviations(audit: Audit, cells: Totals) -> FloatArray:
    """p*(ε* − ε̂) of every group in every resample of the block, shape ``(b, G)``."""
    return deviations_of(audit, cells, group_totals(cells, audit.sums))


def deviations_of(audit: Audit, cells: Totals, now: GroupTotals) -> FloatArray:
    """The same, given the totals of the groups."""
    centre = np.nan_to_num(audit.groups.mean)
    if isinstance(audit.target, Constant):
        return _relative(cells, now, np.broadcast_to(centre, now.weight.shape).copy())
    shift = target_shift(audit, cells, now)
    expected = shift * np.nan_to_num(audit.groups.sensitivity)
    expected += centre
    return _relative(cells, now, expected)


def certificate_deviations(audit: Audit, cells: Totals, limit: float) -> FloatArray:
    """p*(ε* − limit) − p̂(ε̂ − limit) of every group in every resample of the block."""
    now = group_totals(cells, audit.sums)
    # Line 4 of Algorithm 3 of Cherian and Candès. It is p*(ε* − ε̂) + (p* − p̂)(ε̂ − limit): the
    # second part, the share's own error, grows with the distance from the limit and costs power.
    expected = target_shift(audit, cells, now) + (np.nan_to_num(audit.groups.target) + limit)
    deviations = _relative(cells, now, expected)
    deviations -= certificate_values(audit.groups, limit)
    return deviations


def certificate_values(groups: GroupEstimates, limit: float) -> FloatArray:
    """p̂(ε̂ − limit) of every group, zero where undefined."""
    return np.nan_to_num(groups.share * (groups.estimate - limit))


def _relative(cells: Totals, now: GroupTotals, expected: FloatArray) -> FloatArray:
    """(S*_G − expected · W*_G) / W*."""
    size = cells.weight.sum(axis=-1, keepdims=True)
    expected *= now.weight
    out = now.total - expected
    out /= np.where(size > 0, size, 1.0)
    return out


def columns(values: FloatArray, chosen: np.ndarray) -> FloatArray:
    """Some columns, without copying when all are asked for in order."""
    return values if chosen.size == values.shape[1] else np.take(values, chosen, axis=1)
