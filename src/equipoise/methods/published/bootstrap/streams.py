"""Resamples in fixed chunks, one random stream each, so that blocks cannot change the answer."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from equipoise.methods.published.bootstrap.data import Totals
from equipoise.methods.streams import BLOCK_NUMBERS, CHUNK, Progress, child


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
