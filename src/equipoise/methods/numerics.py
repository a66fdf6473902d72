"""Shared numerics: array types, sums over groups, random streams in chunks, quantiles."""

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

# --- The array types that the mathematics speaks, and the one thing it asks of a group collection
# ---

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]


class GroupSums(Protocol):
    """Sums cell values over every group of a collection.

    ``sums(x)`` takes an array whose last axis runs over the cells and returns one whose last axis
    runs over the groups, in the collection's order. It is linear, and a group's sum never depends
    on which other groups are in the collection.
    """

    def __call__(self, x: FloatArray, /) -> FloatArray: ...


# --- Random streams in fixed chunks, so that neither blocks nor threads can change an answer ---

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


# --- The quantile of the papers: inf{x : F(x) ≥ q} ---


def quantile(values: FloatArray, q: float) -> float:
    """Smallest x with at least a share q of the values at or below it.

    >>> quantile(np.array([4.0, 1.0, 3.0, 2.0]), 0.5)
    2.0
    >>> quantile(np.array([4.0, 1.0, 3.0, 2.0]), 0.51)
    3.0
    """
    # Cherian and Candès define it so before (3); interpolating would give another critical value.
    return float(np.partition(values, rank(values.size, q))[rank(values.size, q)])


def rank(size: int, q: float) -> int:
    """Index of that quantile among the sorted values.

    >>> rank(500, 0.9), rank(100, 0.55)
    (449, 54)
    """
    # 0.55 × 100 must be 55, not the hair above it that floating point makes of it
    return min(size - 1, max(0, math.ceil(q * size - 1e-9) - 1))


def column_medians(values: FloatArray) -> FloatArray:
    """Median of each column in the same sense, leaving NaN out; NaN for a column without values.

    >>> column_medians(np.array([[1.0, np.nan], [5.0, 2.0], [3.0, np.nan]])).tolist()
    [3.0, 2.0]
    """
    counts = np.sum(~np.isnan(values), axis=0)
    out = np.full(values.shape[1], np.nan)
    for count in np.unique(counts[counts > 0]):
        chosen = np.flatnonzero(counts == count)
        # Line 9 of Algorithm 4 asks for Quantile(0.5): the lower of two middle values.
        k = rank(int(count), 0.5)
        # few columns at a time: partition copies; it puts NaN last
        for start in range(0, chosen.size, 1024):
            part = chosen[start : start + 1024]
            out[part] = np.partition(values[:, part], k, axis=0)[k]
    return out


def per_mille(values: FloatArray) -> tuple[float, ...]:
    """The quantiles of the levels 0.1 %, 0.2 % … 99.9 %; empty without values.

    >>> len(per_mille(np.arange(50.0))), per_mille(np.arange(50.0))[899]
    (999, 44.0)
    """
    if values.size == 0:
        return ()
    ordered = np.sort(values)
    return tuple(float(ordered[rank(values.size, i / 1000)]) for i in range(1, 1000))
