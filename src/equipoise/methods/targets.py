"""What a group is compared with: the one place that knows what a target is.

A target cuts the rows behind each group into disjoint parts and says which of them make up the
group and which the target. Estimates, variances, influence values, tests and bounds all follow from
the sums over the parts, so a new target is one class here.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from equipoise.methods.numerics import BoolArray, FloatArray, GroupSums

# --- What a group is compared with: the one place that knows what a target is ---


@dataclass(frozen=True, slots=True, kw_only=True)
class InfluenceSums:
    """Sums of a custom target's influence values ψ, whose mean moves the target."""

    rows: float
    """Number of rows n."""
    total: FloatArray
    """Sum of w ψ per cell, shape ``(C,)``."""
    product: FloatArray
    """Sum of w ψ L per cell, shape ``(C,)``."""
    sum: float
    """Sum of ψ over all rows."""
    square: float
    """Sum of ψ² over all rows."""

    @property
    def variance(self) -> float:
        """Variance of the estimate."""
        n = max(self.rows, 1.0)
        return (self.square / n - (self.sum / n) ** 2) / n


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A target θ, possibly scaled. Subclasses say of which parts group and target are made."""

    scale: float = 1.0
    """Factor on the target; 0.8 gives the four-fifths rule."""

    group: ClassVar[tuple[bool, ...]] = (True,)
    """Which parts make up the group."""
    against: ClassVar[tuple[bool, ...]] = (False,)
    """Which parts make up the target; none of them if it is a number."""

    def parts(self, x: FloatArray, sums: GroupSums) -> FloatArray:
        """Sums of cell values over every part of every group, shape ``(parts, …, G)``."""
        return sums(x)[None]

    def total(self, x: FloatArray, inside: FloatArray) -> FloatArray:
        """Sums of cell values ``(b, C)`` over the target, given those over the groups."""
        return np.asarray(x.sum(axis=-1, keepdims=True))

    def members(self, cells: int) -> FloatArray:
        """Which cells the target is made of, where it is one for all groups, shape ``(C,)``."""
        return np.full(cells, float(self.estimated))

    @property
    def number(self) -> float:
        """The target's value where it is not estimated from parts."""
        return 0.0

    @property
    def mixed(self) -> bool:
        """Whether group or target consist of several parts, so that their shares count too."""
        return sum(self.group) > 1 or sum(self.against) > 1

    @property
    def estimated(self) -> bool:
        """Whether the target is a mean of rows."""
        return any(self.against)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Target):
    """A known number."""

    value: float
    """The number."""

    @property
    def number(self) -> float:
        """The number itself."""
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Overall(Target):
    """The mean of all rows, the group's own among them."""

    group: ClassVar[tuple[bool, ...]] = (True, False)
    against: ClassVar[tuple[bool, ...]] = (True, True)

    def parts(self, x: FloatArray, sums: GroupSums) -> FloatArray:
        """The group, and everybody else."""
        return _inside_outside(x, sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class Complement(Target):
    """The mean of all rows outside the group."""

    group: ClassVar[tuple[bool, ...]] = (True, False)
    against: ClassVar[tuple[bool, ...]] = (False, True)

    def parts(self, x: FloatArray, sums: GroupSums) -> FloatArray:
        """The group, and everybody else."""
        return _inside_outside(x, sums)

    def total(self, x: FloatArray, inside: FloatArray) -> FloatArray:
        """All that is not inside."""
        return np.asarray(x.sum(axis=-1, keepdims=True) - inside)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference(Target):
    """The mean of a reference group R, which may overlap the audited groups."""

    cells: BoolArray
    """Which cells make up R, shape ``(C,)``."""

    group: ClassVar[tuple[bool, ...]] = (True, True, False)
    against: ClassVar[tuple[bool, ...]] = (False, True, True)

    def parts(self, x: FloatArray, sums: GroupSums) -> FloatArray:
        """The group outside R, the overlap, and R outside the group."""
        inside = np.where(self.cells, x, 0.0)
        every, both = sums(x), sums(inside)
        rest = inside.sum(axis=-1, keepdims=True) - both
        return np.stack([_rounded(every - both, every), both, _rounded(rest, both)])

    def total(self, x: FloatArray, inside: FloatArray) -> FloatArray:
        """The cells of R."""
        # take() keeps rows contiguous, so that each is added in the same order in any block
        chosen = np.flatnonzero(self.cells)
        return np.asarray(np.take(x, chosen, axis=-1).sum(axis=-1, keepdims=True))

    def members(self, cells: int) -> FloatArray:
        """The cells of R."""
        return np.asarray(self.cells, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Highest(Target):
    """The highest of a group's rivals, whichever that is; it has no parts of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom(Target):
    """Any asymptotically linear estimate, known through its influence values."""

    value: float
    """The estimate on the data."""
    influence: InfluenceSums
    """Sums of its influence values."""

    @property
    def number(self) -> float:
        """The estimate."""
        return self.value


def _inside_outside(x: FloatArray, sums: GroupSums) -> FloatArray:
    inside = sums(x)
    whole = x.sum(axis=-1, keepdims=True)
    return np.stack([inside, _rounded(whole - inside, whole)])


def _rounded(x: FloatArray, size: FloatArray) -> FloatArray:
    """Differences of sums; what is left of nothing is a sliver of rounding, not a row."""
    return np.where(np.abs(x) <= 1e-11 * np.abs(size), 0.0, x)


# --- Sums over tilts: a row counts with a weight of its own instead of being inside or outside
# ---
#
# The mean of a tilt h is Σ w h L / Σ w h, linear in h above and below, so estimates and resamples
# need only another operator from cells to tilts. Variances of such means need the squares of h.


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
