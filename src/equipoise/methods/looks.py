"""Planned looks: an error rate spent over a fixed number of looks at growing data.

All groups are looked at after every batch, with everything seen so far. Of K looks the k-th may
bring the chance of any false alarm so far to α k / K. Scores of a group at successive looks are
those of a sum with independent pieces, each as correlated between groups as its batch says; the
boundary of a look is drawn from their joint law given the boundaries already used.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.methods.inference.joint import independent_score
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray, child

NUMBERS, FEWEST, MOST = 40_000_000, 10_000, 60_000
"""Draws times looks and groups that are affordable, and how many draws there are at least and at
most."""
LEAST = 10.0
"""Expected rows of either outcome, in every part, that the joint law needs."""

#: Draws scores of the groups with some number, from a seed.
Scores = Callable[[int, np.random.SeedSequence], Iterator[FloatArray]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What one batch adds."""

    groups: IntArray
    """The groups that it tells something about."""
    information: FloatArray
    """How much: one over the variance of each group's disparity, ``(G,)``; zero for the others."""
    scores: Scores
    """Joint scores of those groups."""


def boundaries(
    pieces: Sequence[Piece],
    tested: Sequence[BoolArray],
    *,
    error: float,
    looks: int,
    two_sided: bool,
    seed: np.random.SeedSequence,
) -> FloatArray:
    """The score that a group must exceed at each look so far.

    ``tested`` says of each look which groups are tested at it. A standard error of what the draws
    can tell is kept back, so that their noise does not add to the error.

    >>> one = Piece(
    ...     groups=np.array([0]),
    ...     information=np.array([1.0]),
    ...     scores=lambda n, seed: iter([np.random.default_rng(seed).standard_normal((n, 1))]),
    ... )
    >>> yes, seed = np.array([True]), np.random.SeedSequence(1)
    >>> boundaries([one, one], [yes] * 2, error=0.05, looks=2, two_sided=True, seed=seed).round(1)
    array([2.2, 2.1])
    """
    size = pieces[0].information.size
    draws = int(np.clip(NUMBERS // max(size * len(pieces), 1), FEWEST, MOST))
    total, known = np.zeros((draws, size)), np.zeros(size)
    crossed = np.zeros(draws, dtype=bool)
    out = np.full(len(pieces), np.inf)
    for k, (piece, asked) in enumerate(zip(pieces, tested, strict=True)):
        drawn = np.concatenate(list(piece.scores(draws, child(seed, k))))[:draws]
        total[:, piece.groups] += drawn * np.sqrt(piece.information[piece.groups])
        known = known + piece.information
        able = asked & (known > 0)
        if not bool(able.any()):
            continue
        score = total[:, able] / np.sqrt(known[able])
        largest = (np.abs(score) if two_sided else score).max(axis=1)
        wanted = error * (k + 1) / looks * draws
        spent = int(np.floor(wanted - np.sqrt(wanted))) - int(crossed.sum())
        # never above what independent groups would need with the look's own share
        cap = independent_score(1 - error / looks, int(able.sum()), two_sided)
        out[k] = cap
        if spent > 0:
            still = np.sort(largest[~crossed])
            out[k] = min(float(still[-min(spent, still.size)]), cap)
        crossed |= largest >= out[k]
    return out
