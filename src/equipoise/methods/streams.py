"""Random streams in fixed chunks, so that neither blocks nor threads can change an answer."""

from collections.abc import Callable

import numpy as np

CHUNK = 32
"""Resamples drawn from one stream. Part of the definition of the results: never tune it."""

BLOCK_NUMBERS = 1 << 22
"""How many numbers one array of a block may hold (32 MB of floats)."""

Progress = Callable[[int], None]
"""Called with the number of resamples finished so far; may raise to stop."""


def child(seed: np.random.SeedSequence, number: int) -> np.random.SeedSequence:
    """The seed of one chunk; the parent is copied, not consumed.

    >>> child(np.random.SeedSequence(1), 2).spawn_key
    (2,)
    """
    # built by hand because spawn() advances a counter inside the caller's object
    return np.random.SeedSequence(
        seed.entropy, spawn_key=(*seed.spawn_key, number), pool_size=seed.pool_size
    )
