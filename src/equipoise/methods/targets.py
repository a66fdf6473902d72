"""What a group is compared with: the one place that knows what a target is.

A target cuts the rows behind each group into disjoint parts and says which of them make up the
group and which the target. Estimates, variances, influence values, tests and bounds all follow from
the sums over the parts, so a new target is one class here.
"""

from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from equipoise.methods.hypotheses import Tails
from equipoise.methods.numerics import BoolArray, FloatArray, GroupSums, IntArray, over

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
class Before(Target):
    """The group's own rows that counted before, some of which count after as well."""

    before: BoolArray
    """Which cells counted before, shape ``(C,)``."""
    after: BoolArray
    """Which cells count after."""

    group: ClassVar[tuple[bool, ...]] = (True, True, False)
    against: ClassVar[tuple[bool, ...]] = (False, True, True)

    def parts(self, x: FloatArray, sums: GroupSums) -> FloatArray:
        """Rows that count after only, at both times, and before only."""
        kinds = (self.after & ~self.before, self.after & self.before, self.before & ~self.after)
        return np.stack([sums(np.where(kind, x, 0.0)) for kind in kinds])


@dataclass(frozen=True, slots=True, kw_only=True)
class Opposite(Target):
    """The mean of rows that every group has of its own, such as those that are surely outside."""

    other: GroupSums
    """Sums over the target of every group."""
    both: GroupSums
    """Sums over what group and target have in common."""

    group: ClassVar[tuple[bool, ...]] = (True, True, False)
    against: ClassVar[tuple[bool, ...]] = (False, True, True)

    def parts(self, x: FloatArray, sums: GroupSums) -> FloatArray:
        """The group outside its target, the overlap, and the target outside the group."""
        every, both, other = sums(x), self.both(x), self.other(x)
        return np.stack([_rounded(every - both, every), both, _rounded(other - both, other)])


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


# --- Groups beside their target: sums over disjoint parts, and the contrast that a disparity is ---

#: Sums come to 33 binary digits, so differences of squares below this share are no spread.
ROUNDING = 2e-9
#: A part seen as many times as often as its share says is one that such a share rules out.
FAR_TOO_OFTEN = 20.0


class Status(IntEnum):
    """Why a group has no answer; worded by the layer above.

    >>> Status(1).name
    'EMPTY'
    """

    OK = 0
    """The group can be audited."""
    EMPTY = 1
    """No row belongs to the group."""
    SINGLE = 2
    """One row only, of a metric whose spread has to be estimated."""
    CONSTANT = 3
    """The group's rows are all alike, so nothing says how uncertain its mean is."""
    NO_TARGET = 4
    """The target has no rows here (empty reference, nobody outside)."""
    IDENTICAL = 5
    """The group is its own target, so the disparity is zero by definition."""
    ZERO_TARGET = 6
    """A ratio to a target whose mean is not above zero."""
    SKEWED = 7
    """Too few rows for a metric as skewed as this."""
    FEW_CLUSTERS = 8
    """Too few clusters, or a few that outweigh all others."""
    FEW_ROWS = 9
    """Too few rows, of the group or its target, to know how a real-valued metric varies."""
    NO_OVERLAP = 10
    """No stratum has rows of the group and of its target."""
    UNDEFINED = 11
    """The measure has no value here, or none of its target: it lacks rows of some kind."""
    FEW_PAIRS = 12
    """Too few pairs of partners to know how their differences vary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Sums over rows: per cell ``(C,)``, or per part of each group ``(parts, G)``.

    Row i has weight w and metric L. Without sampling weights w = 1 and the sums of higher order in
    w are the same arrays.
    """

    rows: FloatArray
    """Number of rows."""
    weight: FloatArray
    """Σ w."""
    total: FloatArray
    """Σ w L."""
    weight2: FloatArray
    """Σ w²."""
    total2: FloatArray
    """Σ w² L."""
    square2: FloatArray
    """Σ w² L²."""
    weight3: FloatArray
    """Σ w³."""
    total3: FloatArray
    """Σ w³ L."""
    square3: FloatArray
    """Σ w³ L²."""
    cube3: FloatArray
    """Σ w³ L³."""

    def some(self, chosen: IntArray | BoolArray) -> "Moments":
        """The sums of some of the groups."""
        done: dict[int, FloatArray] = {}
        for f in fields(self):
            x = getattr(self, f.name)
            # arrays that are one stay one
            done.setdefault(id(x), x[..., chosen])
        return Moments(**{f.name: done[id(getattr(self, f.name))] for f in fields(self)})

    def parts(self, target: Target, sums: GroupSums) -> "Moments":
        """Cell sums added up over the parts of every group."""
        done: dict[int, FloatArray] = {}
        for f in fields(self):
            x = getattr(self, f.name)
            if id(x) not in done:
                done[id(x)] = target.parts(x, sums)
        return Moments(**{f.name: done[id(getattr(self, f.name))] for f in fields(self)})


def plain_moments(
    rows: FloatArray, total: FloatArray, square: FloatArray, cube: FloatArray
) -> Moments:
    """Sums of an unweighted metric.

    >>> cells = plain_moments(*(np.array([x]) for x in (4.0, 1.0, 1.0, 1.0)))
    >>> cells.weight3 is cells.rows
    True
    """
    return Moments(
        rows=rows,
        weight=rows,
        total=total,
        weight2=rows,
        total2=total,
        square2=square,
        weight3=rows,
        total3=total,
        square3=square,
        cube3=cube,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Every group beside its target, arrays of shape ``(parts, G)`` or ``(G,)``."""

    target: Target
    """What groups are compared with."""
    relative: bool
    """Whether the disparity is a ratio rather than a difference."""
    parts: Moments
    """Sums over the parts of each group."""
    custom: FloatArray | None = None
    """Covariance of a custom target with each group's mean."""
    tilts: FloatArray | None = None
    """Weights of the cells in each tilt, ``(C, G)``; every cell is then a part of its own."""

    def some(self, chosen: IntArray) -> "Comparison":
        """Some of the groups."""
        both = None if self.custom is None else self.custom[chosen]
        tilts = None if self.tilts is None else self.tilts[:, chosen]
        return replace(self, parts=self.parts.some(chosen), custom=both, tilts=tilts)

    @property
    def in_group(self) -> FloatArray:
        """One for parts of the group, else zero, as a column; for tilts, weights of cells."""
        if self.tilts is not None:
            return self.tilts
        return np.array(self.target.group, dtype=np.float64)[:, None]

    @property
    def in_target(self) -> FloatArray:
        """One for parts of the target, else zero, as a column."""
        if self.tilts is not None:
            return self.target.members(self.tilts.shape[0])[:, None]
        return np.array(self.target.against, dtype=np.float64)[:, None]

    @property
    def group_weight(self) -> FloatArray:
        """Weight of each group."""
        return np.asarray((self.in_group * self.parts.weight).sum(axis=0))

    @property
    def target_weight(self) -> FloatArray:
        """Weight of each group's target."""
        return np.asarray((self.in_target * self.parts.weight).sum(axis=0))

    @property
    def rows(self) -> FloatArray:
        """Rows of each group; for a tilt, how many rows of equal weight it is worth."""
        own = np.asarray((self.in_group * self.parts.rows).sum(axis=0))
        if self.tilts is None:
            return own
        return np.nan_to_num(over(own**2, (self.tilts**2 * self.parts.rows).sum(axis=0)))

    @property
    def mean(self) -> FloatArray:
        """Mean metric of each group; NaN without rows."""
        return over((self.in_group * self.parts.total).sum(axis=0), self.group_weight)

    @property
    def theta(self) -> FloatArray:
        """The unscaled target of each group; NaN without rows."""
        if not self.target.estimated:
            return np.full(self.parts.rows.shape[1], self.target.number)
        return over((self.in_target * self.parts.total).sum(axis=0), self.target_weight)

    @property
    def estimate(self) -> FloatArray:
        """The disparity as estimated."""
        theta = self.target.scale * self.theta
        if not self.relative:
            return self.mean - theta
        return over(self.mean, np.where(theta > 0, theta, np.nan))

    def factor(self, disparity: FloatArray) -> FloatArray:
        """What the target is multiplied by if the disparity has this value."""
        scale = self.target.scale
        return scale * disparity if self.relative else np.full_like(disparity, scale)

    def aim(self, disparity: FloatArray) -> FloatArray:
        """What the contrast of the parts should be."""
        known = 0.0 if self.target.estimated else self.target.number
        return (0.0 if self.relative else disparity) + self.factor(disparity) * known

    def slopes(self, factor: FloatArray) -> FloatArray:
        """Aⱼ: effect of a unit of w L in each part."""
        own = self.in_group * _share(self.group_weight)
        return np.asarray(own - factor * self.in_target * _share(self.target_weight))

    def intercepts(self, factor: FloatArray, rates: FloatArray) -> FloatArray:
        """Bⱼ: effect of a unit of w in each part, at given means of the parts."""
        w = self.parts.weight
        both = []
        for member in (self.in_group, self.in_target):
            share = _share((member * w).sum(axis=0))
            both.append(member * share * (member * w * rates).sum(axis=0) * share)
        return np.asarray(both[0] - factor * both[1])

    @property
    def status(self) -> IntArray:
        """What the sizes alone say of each group."""
        w = self.parts.rows
        out = np.full(w.shape[1], int(Status.OK), dtype=np.int64)
        if self.target.estimated:
            # of the same parts, in the same proportion: all slopes then vanish
            here, there = self.in_group, self.in_target
            own, other = (np.sum(x * w, axis=0) for x in (here, there))
            apart = np.abs(here * w * other - there * w * own).sum(axis=0)
            # whatever the scale: four fifths of itself is no news of anybody
            same = (apart <= 1e-12 * own * other) & (own > 0)
            out[same] = Status.IDENTICAL
            if self.relative:
                out[~(self.target.scale * self.theta > 0) & ~same] = Status.ZERO_TARGET
            out[(w * self.in_target).sum(axis=0) == 0] = Status.NO_TARGET
        elif self.relative and not self.target.scale * self.target.number > 0:
            out[:] = Status.ZERO_TARGET
        out[np.isnan(self.mean)] = Status.EMPTY
        return out

    def reweighed(self, times: FloatArray) -> "Comparison":
        """The same groups with the weight of every part multiplied.

        How many rows a part has by chance varies with those expected or with those seen, whichever
        are more. Of a part that is seen far too often those seen say nothing any more.
        """
        weight = self.parts.weight * times
        # as many rows in all
        expected = times * over(self.parts.weight.sum(axis=0), weight.sum(axis=0))
        spread = np.maximum(expected, np.minimum(1.0, FAR_TOO_OFTEN * expected))
        parts = replace(self.parts, weight=weight, weight2=self.parts.weight2 * spread)
        return replace(self, parts=parts)

    def both(self, x: FloatArray, sums: GroupSums) -> tuple[FloatArray, FloatArray]:
        """Sums of cell values ``(b, C)`` over every group, and over its target, ``(b, G)``."""
        if self.tilts is not None:
            members = self.target.members(x.shape[-1])
            return sums(x), np.broadcast_to(
                (x * members).sum(axis=-1, keepdims=True), (*x.shape[:-1], self.tilts.shape[1])
            )
        parts = self.target.parts(x, sums)
        return (
            (self.in_group[:, None, :] * parts).sum(axis=0),
            (self.in_target[:, None, :] * parts).sum(axis=0),
        )

    def moves(
        self, weight: FloatArray, total: FloatArray, factor: FloatArray, sums: GroupSums
    ) -> FloatArray:
        """First-order moves ``(b, G)`` of the contrast when cell sums move by so much."""
        (w, v), (s, t) = self.both(weight, sums), self.both(total, sums)
        own, other = _share(self.group_weight), _share(self.target_weight)
        mean, theta = np.nan_to_num(self.mean), np.nan_to_num(self.theta)
        return np.asarray((s - mean * w) * own - factor * (t - theta * v) * other)

    def custom_variance(self, factor: FloatArray) -> FloatArray:
        """What the error of a custom target adds to the variance of the contrast."""
        if not isinstance(self.target, Custom) or self.custom is None:
            return np.zeros(self.parts.rows.shape[1])
        return np.asarray(factor**2 * self.target.influence.variance - 2 * factor * self.custom)


def compare(
    cells: Moments, target: Target, sums: GroupSums, *, relative: bool = False
) -> Comparison:
    """Every group of a collection beside its target, from cell sums.

    >>> from equipoise.methods.targets import Overall
    >>> cells = plain_moments(*(np.array(x) for x in ([4.0, 6.0], *[[1.0, 3.0]] * 3)))
    >>> compare(cells, Overall(), lambda x: x).estimate.round(3).tolist()
    [-0.15, 0.1]
    """
    both = None
    if isinstance(target, Custom):
        psi = target.influence
        mean = over(sums(cells.total), sums(cells.weight))
        # Cov(L, ψ | G)/n, as in line 7 of Algorithm 2 of Cherian and Candès
        covered = over(sums(psi.product) - mean * sums(psi.total), sums(cells.weight))
        both = covered / max(psi.rows, 1.0)
    if isinstance(sums, TiltSums):
        weights = sums.weights
        every = Moments(
            **{
                f.name: np.broadcast_to(getattr(cells, f.name)[:, None], weights.shape)
                for f in fields(cells)
            }
        )
        return Comparison(target=target, relative=relative, parts=every, custom=both, tilts=weights)
    return Comparison(
        target=target, relative=relative, parts=cells.parts(target, sums), custom=both
    )


def _share(weight: FloatArray) -> FloatArray:
    return np.divide(1.0, weight, out=np.zeros_like(weight), where=weight > 0)


# --- Groups against the highest one, whichever that is ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked(Comparison):
    """Groups beside the highest of their rivals."""

    top: FloatArray
    """The highest rate seen among a group's rivals and itself; NaN without rivals."""
    own: FloatArray
    """The rate of each group."""

    def some(self, chosen: IntArray) -> "Ranked":
        """Some of the groups."""
        return Ranked(
            target=self.target,
            relative=self.relative,
            parts=self.parts.some(chosen),
            top=self.top[chosen],
            own=self.own[chosen],
        )

    @property
    def mean(self) -> FloatArray:
        """The rate of each group."""
        return self.own

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
        """About the standard error of each disparity: where a search starts."""
        ...

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """Chances, if the disparity were this, of an estimate as high, and as low, as was seen."""
        ...


@runtime_checkable
class OneSided(Protocol):
    """A pivot for which one tail is less work than two."""

    def tail(self, disparity: FloatArray, chosen: IntArray, upper: BoolArray) -> FloatArray:
        """The upper tail where that is asked for, the lower one elsewhere."""
        ...


def one_tail(
    pivot: OnePivot, disparity: FloatArray, chosen: IntArray, upper: BoolArray
) -> FloatArray:
    """One tail of each group: a search for a bound looks at no other."""
    if isinstance(pivot, OneSided):
        return pivot.tail(disparity, chosen, upper)
    up, down = pivot.tails(disparity, chosen)
    return np.where(upper, up, down)


class OfComparison:
    """What pivots have that speak of one comparison."""

    __slots__ = ()

    comparison: Comparison

    @property
    def estimate(self) -> FloatArray:
        """The disparities."""
        return self.comparison.estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """One group that may be the highest, and the others beside it."""

    pivot: OnePivot
    """Their disparities to it."""
    against: BoolArray
    """Which groups are compared with it, ``(G,)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HighestPivot(OfComparison):
    """p-values of disparities to the highest group."""

    comparison: Ranked
    """Groups beside the highest."""
    rivals: tuple[Rival, ...]
    """Every group that may be the highest."""

    @property
    def error(self) -> FloatArray:
        """About the standard error: the largest against any rival."""
        every = [np.where(r.against, r.pivot.error, 0.0) for r in self.rivals]
        found = np.max(every, axis=0) if every else np.zeros(self.estimate.shape)
        return np.asarray(np.where(np.isfinite(found) & (found > 0), found, 1.0))

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """Chances, if the disparity were this, of an estimate as high, and as low, as was seen."""
        both = np.tile(disparity, 2), np.tile(chosen, 2)
        up, down = np.split(self.tail(*both, np.repeat([True, False], chosen.size)), 2)
        return up, down

    def tail(self, disparity: FloatArray, chosen: IntArray, upper: BoolArray) -> FloatArray:
        """One of the two, the upper one where that is asked for: half the work.

        An estimate is as likely to be as high as the likeliest rival makes it; as low only as the
        unlikeliest does, times the number of rivals, since which is the highest is not known.
        """
        found, number = np.where(upper, 0.0, 1.0), np.zeros(chosen.size)
        for rival in self.rivals:
            here = np.flatnonzero(rival.against[chosen])
            if here.size == 0:
                continue
            own, high = (
                one_tail(rival.pivot, disparity[here], chosen[here], upper[here]),
                upper[here],
            )
            found[here] = np.where(high, np.maximum(found[here], own), np.minimum(found[here], own))
            number[here] += 1
        return np.where(upper, found, np.minimum(found * np.maximum(number, 1.0), 1.0))


class Stated(Comparison):
    """Groups whose moves are drawn for themselves."""

    __slots__ = ()

    def moves(
        self, weight: FloatArray, total: FloatArray, factor: FloatArray, sums: GroupSums
    ) -> FloatArray:
        """Moves are drawn for the groups, not for cells."""
        return total
