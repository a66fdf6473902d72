"""The Monte-Carlo test: the observed statistic among draws at the edge of the null hypothesis."""

import math
from collections.abc import Callable, Iterator, Sequence
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
    """One or more statistics, tested together."""

    chosen: int
    """Position of the statistic that says most, on its own; what follows is about this one."""
    statistic: float
    """The observed value."""
    p: float
    """p-value of all statistics together: the observed ones are counted among the draws."""
    drawn: FloatArray
    """The statistic of every draw, in ascending order."""
    smallest: FloatArray
    """For the draws and the observed rows, the smallest p-value over statistics, ascending."""
    best: Best | None
    """The subgroup behind the observed value, if there is one."""
    share: float = 1.0
    """How much this statistic counts beside the others."""
    alone: tuple[float, ...] = ()
    """The p-value of every statistic on its own."""

    def critical(self, error: float) -> float:
        """The value that must be exceeded for p ≤ ``error``; infinite if draws are too few."""
        size = self.smallest.size
        # A product that should be whole may come out a hair below, and lose a rank.
        rank = math.floor(error * size * (1 + 1e-12))
        # the largest p-value that so few of all have or undercut
        allowed = self.smallest[rank - 1] if rank else 0.0
        if rank < size and rank and self.smallest[rank] == allowed:
            below = self.smallest[self.smallest < allowed]
            allowed = below[-1] if below.size else 0.0
        place = math.floor(float(allowed) * self.share * size + 1e-6)
        return float(self.drawn[-place]) if 0 < place <= self.drawn.size else math.inf


def run_test(
    *statistics: Statistic,
    null: Null,
    draws: int,
    seed: np.random.SeedSequence,
    shares: Sequence[float] | None = None,
    finer: int = 1,
    block: int | None = None,
    progress: Progress | None = None,
) -> Tested:
    """Draw the statistics ``draws`` times at the edge of the null hypothesis.

    Of several statistics the smallest p-value counts, and is compared with the smallest p-value of
    every draw. ``shares`` divide p-values first: a statistic with twice the share counts as much
    with a p-value twice as large; such statistics must be measured in standard deviations, since of
    several that no draw reaches the one furthest beyond its draws is chosen. Where no draw reaches
    the observed statistics, ``finer`` times as many are made; a p-value below 1 / (draws + 1) needs
    both counts, so it keeps its level. ``block`` is how many draws are worked on at once; the
    answer does not depend on it. The seed is copied, not consumed. ``progress`` is told how many
    draws are done, and may raise to stop.
    """
    found = _ranked(statistics, null, draws, seed, shares, block, progress)
    if finer > 1 and found.p * (draws + 1) < 1.5:
        # the draws made so far come first again
        found = _ranked(statistics, null, finer * draws, seed, shares, block, progress)
    return found


def _ranked(
    statistics: Sequence[Statistic],
    null: Null,
    draws: int,
    seed: np.random.SeedSequence,
    shares: Sequence[float] | None,
    block: int | None,
    progress: Progress | None,
) -> Tested:
    observed = np.array([statistic.observed(null) for statistic in statistics])
    lines, done = [observed[:, None]], 0
    for residuals in _drawn(null, draws, seed, block or CHUNK):
        lines.append(np.stack([statistic.values(residuals) for statistic in statistics]))
        done += len(residuals)
        if progress is not None:
            progress(done)
    values = np.concatenate(lines, axis=1)
    # Each statistic becomes its own p-value first, so that scales of different statistics compare.
    alone = np.stack([_reached(line) for line in values])
    share = np.ones(len(statistics)) if shares is None else np.asarray(shares, dtype=np.float64)
    weighed = alone / share[:, None]
    smallest = weighed.min(axis=0)
    chosen = int(np.argmin(weighed[:, 0]))
    if shares is not None and alone[chosen, 0] * values.shape[1] < 1.5:
        chosen = _furthest(values, alone[:, 0])
    reached = smallest <= smallest[0] * (1 + ROUNDING)
    return Tested(
        chosen=chosen,
        statistic=float(observed[chosen]),
        p=float(np.count_nonzero(reached) / smallest.size),
        drawn=np.sort(values[chosen, 1:]),
        smallest=np.sort(smallest),
        best=statistics[chosen].best(null),
        share=float(share[chosen]),
        alone=tuple(alone[:, 0].tolist()),
    )


def _furthest(values: FloatArray, alone: FloatArray) -> int:
    """Of the statistics that no draw reaches, the one whose square most exceeds that of its draws.

    Half the square of a standardised sum is about a log likelihood ratio, so that statistics of one
    and of many degrees of freedom compare. One that is zero in every draw comes before all.
    """
    excess = values[:, 0] ** 2 - (values[:, 1:] ** 2).mean(axis=1)
    excess[(values[:, 1:] == 0).all(axis=1)] = np.inf
    return int(np.argmax(np.where(alone * values.shape[1] < 1.5, excess, -np.inf)))


def _reached(values: FloatArray) -> FloatArray:
    """For each value, the share of all that reach it; nearly equal values count as equal."""
    ordered = np.sort(values)
    limit = values - ROUNDING * np.maximum(np.abs(values), 1e-300)
    return np.asarray((values.size - np.searchsorted(ordered, limit)) / values.size)


def _drawn(
    null: Null, draws: int, seed: np.random.SeedSequence, block: int
) -> Iterator[FloatArray]:
    for number, start in enumerate(range(0, draws, CHUNK)):
        # built by hand because spawn() advances a counter inside the caller's object
        child = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
        residuals = null.draw(np.random.default_rng(child), min(CHUNK, draws - start))
        for first in range(0, len(residuals), block):
            yield residuals[first : first + block]
