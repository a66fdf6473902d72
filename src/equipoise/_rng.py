"""Randomness: one seed, made at the edge, handed down as independent streams."""

import secrets
from dataclasses import dataclass

import numpy as np

from equipoise.errors import OptionError

Rng = int | np.random.Generator | None


@dataclass(frozen=True, slots=True)
class Seed:
    """Where an audit's randomness starts, and the number that repeats it."""

    sequence: np.random.SeedSequence
    number: int | None
    """The integer to pass as ``rng=`` to get the same answer; None for a caller's generator."""


def seed_of(rng: Rng) -> Seed:
    """Turn the ``rng`` argument of a verb into a seed.

    ``None`` draws a fresh seed, which the result records, so that even an unseeded audit can be
    performed again.

    >>> seed_of(7).number
    7
    """
    if isinstance(rng, np.random.Generator):
        # Drawn, not copied: the caller's generator moves on, so two audits in a row differ.
        words = rng.integers(0, 2**32, size=4, dtype=np.uint32)
        return Seed(np.random.SeedSequence([int(word) for word in words]), None)
    number = secrets.randbits(32) if rng is None else rng
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 0:
        raise OptionError(
            f"rng must be None, a whole number of at least 0, or a numpy Generator; got {rng!r}."
        )
    return Seed(np.random.SeedSequence(int(number)), int(number))
