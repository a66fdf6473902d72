"""The bootstrap process over the groups, written without dividing by a resampled share.

p*(ε* − ε̂) = S*_G/W* − (W*_G/W*)(θ* + ε̂), so a group that a resample happens to miss contributes
zero instead of a division by zero.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from equipoise.methods.numerics import BLOCK_NUMBERS, CHUNK, FloatArray, GroupSums, Progress, child
from equipoise.methods.published.bootstrap.data import GroupTotals, Totals, group_totals
from equipoise.methods.published.bootstrap.estimates import (
    GroupEstimates,
    Scaling,
    Unscaled,
    target_estimate,
)
from equipoise.methods.targets import Constant, Target

# --- Resamples in fixed chunks, one random stream each, so that blocks cannot change the answer
# ---


class Engine(Protocol):
    """Draws resampled cell totals."""

    @property
    def name(self) -> str:
        """How the result names the engine: exact, moments or clusters."""
        ...

    @property
    def has_spread(self) -> bool:
        """Whether second moments are drawn, so that a resample has a spread of its own."""
        ...

    def draw(self, rng: np.random.Generator, size: int) -> Totals:
        """Totals of ``size`` resamples."""
        ...


def resampled(
    engine: Engine,
    *,
    resamples: int,
    seed: np.random.SeedSequence,
    groups: int,
    block: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Totals]:
    """Yield the resampled totals block by block; the numbers do not depend on ``block``.

    Each call with the same seed yields the same resamples: the seed is copied, not consumed.
    """
    # A block is a part of a chunk, and only chunks own a stream: memory never changes a number.
    rows = max(1, min(CHUNK, BLOCK_NUMBERS // max(groups, 1))) if block is None else block
    chunks = -(-resamples // CHUNK)
    done = 0
    for chunk in range(chunks):
        size = min(CHUNK, resamples - done)
        totals = engine.draw(np.random.default_rng(child(seed, chunk)), size)
        for start in range(0, size, rows):
            yield totals.part(slice(start, start + rows))
        done += size
        if progress is not None:
            progress(done)


# --- The bootstrap process over the groups, written without dividing by a resampled share ---


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


# --- Extremes of the bootstrap process over the groups: all that simultaneous bounds need ---


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
