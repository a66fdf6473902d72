"""Groups against the highest one, whichever that is.

A group's disparity to the highest rate is the smallest of its disparities to all rivals:
μ/max μⱼ = min μ/μⱼ. That it lies above a limit is shown if it does against every rival, each at the
full error: the truly highest is one of them, and nothing is paid for not knowing which. That it is
below is shown if it is against some rival, at the error divided by their number. To take the
highest group seen for the highest there is would be wrong most where rates are tied.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from equipoise.methods.inference.comparison import Comparison, Status
from equipoise.methods.inference.tails import Tails
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked(Comparison):
    """Groups beside the highest of their rivals."""

    top: FloatArray
    """The highest rate seen among a group's rivals and itself; NaN without rivals."""

    def some(self, chosen: IntArray) -> "Ranked":
        """Some of the groups."""
        return Ranked(
            target=self.target,
            relative=self.relative,
            parts=self.parts.some(chosen),
            top=self.top[chosen],
        )

    @property
    def theta(self) -> FloatArray:
        """The highest rate that was seen."""
        return self.top

    @property
    def status(self) -> IntArray:
        """What the sizes alone say of each group."""
        out = np.full(self.top.shape, int(Status.OK), dtype=np.int64)
        if self.relative:
            out[~(self.target.scale * self.top > 0)] = Status.ZERO_TARGET
        out[np.isnan(self.top)] = Status.NO_TARGET
        out[np.isnan(self.mean)] = Status.EMPTY
        return out


class OnePivot(Protocol):
    """What is asked of the comparison with one rival."""

    @property
    def error(self) -> FloatArray:
        """About the standard error of each disparity."""
        ...

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """Both tails of the chosen groups."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """One group that may be the highest, and the others beside it."""

    pivot: OnePivot
    """Their disparities to it."""
    against: BoolArray
    """Which groups are compared with it, ``(G,)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HighestPivot:
    """p-values of disparities to the highest group."""

    comparison: Ranked
    """Groups beside the highest."""
    rivals: tuple[Rival, ...]
    """Every group that may be the highest."""

    @property
    def estimate(self) -> FloatArray:
        """The disparities."""
        return self.comparison.estimate

    @property
    def error(self) -> FloatArray:
        """About the standard error: the largest against any rival."""
        every = [np.where(r.against, r.pivot.error, 0.0) for r in self.rivals]
        found = np.max(every, axis=0) if every else np.zeros(self.estimate.shape)
        return np.asarray(np.where(np.isfinite(found) & (found > 0), found, 1.0))

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """Chances, if the disparity were this, of an estimate as high, and as low, as was seen."""
        up, down = np.zeros(chosen.size), np.ones(chosen.size)
        number = np.zeros(chosen.size)
        for rival in self.rivals:
            here = np.flatnonzero(rival.against[chosen])
            if here.size == 0:
                continue
            high, low = rival.pivot.tails(disparity[here], chosen[here])
            up[here] = np.maximum(up[here], high)
            down[here] = np.minimum(down[here], low)
            number[here] += 1
        return up, np.minimum(down * np.maximum(number, 1.0), 1.0)
