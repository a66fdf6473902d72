"""The Monte-Carlo test: the observed statistic among draws at the edge of the null hypothesis."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.cusum.null import Null
from equipoise.methods.cusum.statistic import Best

CHUNK = 16
"""Draws from one random stream. Part of the definition of the results: never tune it."""

#: Relative difference below which a drawn statistic counts as equal to the observed one.
ROUNDING = 1e-10

Progress = Callable[[int], None]


class Statistic(Protocol):
    """What the test needs of a statistic."""

    def values(self, residuals: FloatArray) -> FloatArray:
        """The statistic of each line of drawn residuals."""
        ...

    def observed(self, null: Null) -> float:
        """The statistic of the rows as they are."""
        ...

    def best(self, null: Null) -> Best | None:
        """The subgroup it points at, if it points at one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tested:
    """A statistic with its p-value."""

    statistic: float
    """The observed value."""
    p: float
    """Share of draws that reach it, the observed one counted among them."""
    drawn: FloatArray
    """The statistic of every draw, in ascending order."""
    best: Best | None
    """The subgroup behind the observed value, if there is one."""

    def critical(self, error: float) -> float:
        """The value that must be exceeded for p ≤ ``error``; infinite if draws are too few."""
        rank = math.floor(error * (self.drawn.size + 1) * (1 + 1e-12))
        return float(self.drawn[-rank]) if rank else math.inf


def run_test(
    statistic: Statistic,
    null: Null,
    *,
    draws: int,
    seed: np.random.SeedSequence,
    block: int | None = None,
    progress: Progress | None = None,
) -> Tested:
    """Draw the statistic ``draws`` times at the edge of the null hypothesis.

    ``block`` is how many draws are worked on at once; the answer does not depend on it. The seed
    is copied, not consumed. ``progress`` is told how many draws are done, and may raise to stop.
    """
    observed = statistic.observed(null)
    drawn: list[FloatArray] = []
    done = 0
    for residuals in _drawn(null, draws, seed, block or CHUNK):
        drawn.append(statistic.values(residuals))
        done += len(residuals)
        if progress is not None:
            progress(done)
    every = np.sort(np.concatenate(drawn)) if drawn else np.zeros(0)
    reached = int(np.count_nonzero(every >= observed - ROUNDING * max(abs(observed), 1e-300)))
    return Tested(
        statistic=observed,
        p=(1 + reached) / (draws + 1),
        drawn=every,
        best=statistic.best(null),
    )


def _drawn(
    null: Null, draws: int, seed: np.random.SeedSequence, block: int
) -> Iterator[FloatArray]:
    for number, start in enumerate(range(0, draws, CHUNK)):
        # built by hand because spawn() advances a counter inside the caller's object
        child = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
        residuals = null.draw(np.random.default_rng(child), min(CHUNK, draws - start))
        for first in range(0, len(residuals), block):
            yield residuals[first : first + block]
