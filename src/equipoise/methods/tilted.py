"""Sums over tilts: a row counts with a weight of its own instead of being inside or outside.

The mean of a tilt h is Σ w h L / Σ w h, linear in h above and below, so estimates and resamples
need only another operator from cells to tilts. Variances of such means need the squares of h.
"""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import BoolArray, FloatArray, GroupSums


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TiltSums:
    """Sums of cell values weighted by each tilt."""

    first: GroupSums
    """Weights each cell by h."""
    squares: GroupSums
    """Weights each cell by h²."""
    members: GroupSums
    """Adds up the cells in which h is positive."""
    flat: BoolArray
    """Which tilts weigh all their rows alike, and so are groups."""
    weights: FloatArray
    """The weight of each cell in each tilt, shape ``(C, G)``."""

    def __call__(self, x: FloatArray, /) -> FloatArray:
        """Σ h x of every tilt."""
        return self.first(x)


def squared(sums: GroupSums) -> GroupSums:
    """The operator with the squares of the weights; that of groups is the operator itself.

    >>> plain = lambda x: x
    >>> squared(plain) is plain
    True
    """
    return sums.squares if isinstance(sums, TiltSums) else sums


def members(sums: GroupSums) -> GroupSums:
    """The operator that asks only whether a cell counts at all."""
    return sums.members if isinstance(sums, TiltSums) else sums


def weighs_alike(sums: GroupSums) -> BoolArray:
    """Whether each group or tilt weighs all its rows alike; broadcasts over the collection."""
    return sums.flat if isinstance(sums, TiltSums) else np.ones(1, dtype=bool)


def worth(sums: GroupSums, rows: FloatArray) -> FloatArray:
    """How many rows of equal weight a group or tilt is worth: (Σ h)² / Σ h².

    >>> half = TiltSums(
    ...     first=lambda x: x @ np.array([1.0, 0.5]),
    ...     squares=lambda x: x @ np.array([1.0, 0.25]),
    ...     members=lambda x: x.sum(axis=-1),
    ...     flat=np.array(False),
    ...     weights=np.array([[1.0], [0.5]]),
    ... )
    >>> float(worth(half, np.array([10.0, 10.0])))
    18.0
    """
    if not isinstance(sums, TiltSums):
        return sums(rows)
    first, squares = sums.first(rows), sums.squares(rows)
    # Kish's effective size, the n_eff of Appendix D of Cherian and Candès.
    kish = first**2 / np.where(squares > 0, squares, 1.0)
    # a group's rows are whole numbers, and stay so
    return np.where(sums.flat, sums.members(rows), kish)
