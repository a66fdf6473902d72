"""What findings keep, and how it answers again: at another level, at other values."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

import numpy as np

from equipoise.methods.numerics import FloatArray, IntArray

if TYPE_CHECKING:
    from equipoise.methods.inference.core import Core, Pivot
    from equipoise.methods.inference.counts import CountPivot
    from equipoise.methods.inference.student import LeftOut
    from equipoise.methods.inference.unknown import EitherPivot, PairCore
    from equipoise.methods.published.likelihood import Parts
    from equipoise.methods.targets import Comparison, Moments, Target

# --- The parts that findings keep, each told by its kind; light, since every reader needs them ---

Numbers: TypeAlias = tuple[float, ...]
Table: TypeAlias = tuple[Numbers, ...]
"""Parts × groups: a group and what it is compared with."""
Whole: TypeAlias = tuple[tuple[int, ...], ...]

_IF_ANY = {"stored": "if any"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBand:
    """Disjoint counts behind empirical likelihood of shares."""

    kind: Literal["band"] = "band"
    rows: Whole
    ones: Whole
    against: Literal["known", "overall", "complement", "reference"]
    scale: float
    value: float
    relative: bool
    calibrated: bool
    family: str
    groups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStudent:
    """Estimates with their standard errors and degrees of freedom."""

    kind: Literal["student"] = "student"
    estimate: Numbers
    error: Numbers
    degrees: Numbers
    family: str
    groups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pivot:
    """What all pivots of one comparison have."""

    kind: Literal["pivot"] = "pivot"
    target: str
    scale: float
    value: float
    relative: bool
    answered: tuple[int, ...]
    few: tuple[bool, ...] | None = field(default=None, metadata=_IF_ANY)
    """Groups that share too many rows with their target to be told apart by a spread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Means of groups and targets, and their variances, where a contrast is normal."""

    mean: Numbers
    theta: Numbers
    variances: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCounts(_Pivot):
    """Plain counts of shares."""

    form: Literal["counts"] = "counts"
    rows: Whole
    ones: Whole
    normal: Contrast | None = field(default=None, metadata=_IF_ANY)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWorth(_Pivot):
    """Shares of weighted or clustered rows, and how many plain rows they are worth."""

    form: Literal["worth"] = "worth"
    rows: Table
    weight: Table
    total: Table
    weight2: Table
    worth: Table
    degrees: Numbers
    normal: Contrast | None = field(default=None, metadata=_IF_ANY)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredValues(_Pivot):
    """A metric of few known values."""

    form: Literal["values"] = "values"
    values: Numbers
    rows: Table
    total: Table
    square2: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSpread(_Pivot):
    """Means with their spread: sums of first, second and third order."""

    form: Literal["spread"] = "spread"
    shape: float
    rows: Table
    weight: Table
    total: Table
    weight2: Table
    total2: Table
    square2: Table
    weight3: Table
    total3: Table
    square3: Table
    cube3: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredClusters(_Pivot):
    """Means of clustered rows, and what leaving out a cluster does."""

    form: Literal["clusters"] = "clusters"
    rows: Table
    weight: Table
    total: Table
    weight2: Table
    powers: tuple[Table, ...]
    sizes: Table
    clusters: int
    blank: Numbers
    shape: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMeasure(_Pivot):
    """A measure that is no mean, with its spread: of rows, or of clusters left out."""

    form: Literal["measure"] = "measure"
    rows: Table
    weight: Table
    total: Table
    weight2: Table
    mean: Numbers
    theta: Numbers
    slack: Table
    powers: tuple[Table, ...] | None = field(default=None, metadata=_IF_ANY)
    sizes: Table | None = field(default=None, metadata=_IF_ANY)
    clusters: int | None = field(default=None, metadata=_IF_ANY)
    blank: Numbers | None = field(default=None, metadata=_IF_ANY)
    square: tuple[tuple[Table, ...], ...] | None = field(default=None, metadata=_IF_ANY)
    cube: Table | None = field(default=None, metadata=_IF_ANY)
    size: tuple[Table, ...] | None = field(default=None, metadata=_IF_ANY)
    shape: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPair:
    """Two pivots, one for each end, and where searches between them start."""

    kind: Literal["pivot"] = "pivot"
    form: Literal["pair"] = "pair"
    answered: tuple[int, ...]
    estimate: Numbers
    error: Numbers
    low: "StoredPivot"
    high: "StoredPivot"


StoredPivot: TypeAlias = (
    StoredCounts
    | StoredWorth
    | StoredValues
    | StoredSpread
    | StoredClusters
    | StoredMeasure
    | StoredPair
)
Recipe: TypeAlias = StoredBand | StoredStudent | StoredPivot
"""What bounds are made from again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelihoodRegion:
    """The scores of all groups, which are few where the metric is 0/1."""

    kind: Literal["likelihood"] = "likelihood"
    zero: Table
    slope: Table
    count: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class EuclideanRegion:
    """The second moments of the scores."""

    kind: Literal["euclidean"] = "euclidean"
    rows: float
    estimate: Numbers
    zero: Table
    cross: Table
    slope: Table


Region: TypeAlias = LikelihoodRegion | EuclideanRegion
"""What a joint region is made from again."""


def numbers_of(x: FloatArray | IntArray) -> Numbers:
    """A line of numbers as findings keep it."""
    return tuple(x.tolist())


def table_of(x: FloatArray) -> Table:
    """A table as findings keep it."""
    return tuple(map(numbers_of, x))


def whole_of(x: FloatArray) -> Whole:
    """A table of counts as findings keep it."""
    return tuple(tuple(line) for line in np.rint(x).astype(np.int64).tolist())


# --- From pivots to what is kept of them ---


def stored(core: "Core") -> StoredPivot | None:
    """What is kept of the pivot of a core; None where it would be too much or is not known.

    >>> from equipoise.methods.inference.core import core_of
    >>> from equipoise.methods.targets import Constant, plain_moments
    >>> counts = plain_moments(*[np.array([40.0]), *[np.array([10.0])] * 3])
    >>> options = {"relative": False, "zero_one": True, "weighted": False}
    >>> core = core_of(counts, Constant(value=0.2), lambda x: x, **options)
    >>> kept = stored(core)
    >>> kept.form, bool(restored_bounds(kept, 1.96, (-1.0, 1.0))[0][0] < 0)
    ('counts', True)
    """
    # whoever only reads findings needs none of the inference core
    from equipoise.methods.inference.core import ClusterPivot, OverlapPivot
    from equipoise.methods.inference.counts import CountPivot
    from equipoise.methods.inference.multinomial import FewValuedPivot
    from equipoise.methods.inference.orthogonal import Residual
    from equipoise.methods.inference.student import StudentPivot
    from equipoise.methods.inference.unknown import EitherPivot, PairCore
    from equipoise.methods.targets import Custom

    found, pivot = core.comparison, core.pivot
    if found.tilts is not None or isinstance(found.target, Custom) or isinstance(found, Residual):
        return None
    if isinstance(core, PairCore):
        return _pair(core)
    if isinstance(pivot, EitherPivot):
        return _either(core, pivot)
    asked = _asked(core)
    if isinstance(pivot, OverlapPivot):
        asked["few"], pivot = tuple(pivot.few.tolist()), pivot.many
    m = found.parts
    if isinstance(pivot, CountPivot):
        return _counts(asked, m, pivot)
    if isinstance(pivot, FewValuedPivot):
        rows, total, square2 = map(table_of, (m.rows, m.total, m.square2))
        return StoredValues(
            **asked, values=tuple(pivot.values), rows=rows, total=total, square2=square2
        )
    if isinstance(pivot, StudentPivot):
        return StoredSpread(
            **asked,
            **_means(m),
            shape=pivot.shape,
            total2=table_of(m.total2),
            square2=table_of(m.square2),
            weight3=table_of(m.weight3),
            total3=table_of(m.total3),
            square3=table_of(m.square3),
            cube3=table_of(m.cube3),
        )
    if isinstance(pivot, ClusterPivot):
        return StoredClusters(**asked, **_means(m), **_left_out(pivot.left_out))
    return _measure(core, asked)


class _Asked(TypedDict):
    """What every pivot of one comparison keeps."""

    target: str
    scale: float
    value: float
    relative: bool
    answered: tuple[int, ...]
    few: tuple[bool, ...] | None


class _Means(TypedDict):
    rows: Table
    weight: Table
    total: Table
    weight2: Table


class _Left(TypedDict):
    powers: tuple[Table, ...]
    sizes: Table
    clusters: int
    blank: Numbers
    shape: float


def _asked(core: "Core") -> _Asked:
    target = core.comparison.target
    return {
        "target": type(target).__name__.lower(),
        "scale": target.scale,
        "value": target.number,
        "relative": core.comparison.relative,
        "answered": tuple(core.answered.tolist()),
        "few": None,
    }


def _means(m: "Moments") -> _Means:
    return {
        "rows": table_of(m.rows),
        "weight": table_of(m.weight),
        "total": table_of(m.total),
        "weight2": table_of(m.weight2),
    }


def _counts(asked: _Asked, m: "Moments", pivot: "CountPivot") -> StoredCounts | StoredWorth:
    plain = m.weight is m.rows and pivot.rows is m.rows
    if plain and bool(np.isinf(pivot.degrees).all()):
        return StoredCounts(**asked, rows=whole_of(m.rows), ones=whole_of(m.total))
    degrees = np.where(np.isinf(pivot.degrees), 1e9, pivot.degrees)
    return StoredWorth(
        **asked, **_means(m), worth=table_of(pivot.rows), degrees=numbers_of(degrees)
    )


def _either(core: "Core", pivot: "EitherPivot") -> StoredPivot | None:
    counts = stored(replace(core, pivot=pivot.counts))
    if not isinstance(counts, StoredCounts | StoredWorth):
        return counts
    mean, theta = (numbers_of(np.nan_to_num(x)) for x in (pivot.normal.mean, pivot.normal.theta))
    variances = table_of(np.nan_to_num(pivot.normal.variances))
    return replace(counts, normal=Contrast(mean=mean, theta=theta, variances=variances))


def _left_out(left: "LeftOut") -> _Left:
    return {
        "powers": tuple(map(table_of, left.powers)),
        "sizes": table_of(left.sizes),
        "clusters": left.clusters,
        "blank": numbers_of(left.blank),
        "shape": left.shape,
    }


def _measure(core: "Core", asked: _Asked) -> StoredMeasure | None:
    """The pivot of a measure that is no mean; quantiles would take all their rows."""
    # few audits ask for one
    from equipoise.methods.inference.measures import MeasurePivot
    from equipoise.methods.inference.student import LeftOut

    found, pivot = core.comparison, core.pivot
    if not isinstance(pivot, MeasurePivot):
        return None
    spreads = pivot.spreads
    made = StoredMeasure(
        **asked,
        **_means(found.parts),
        mean=numbers_of(np.nan_to_num(found.mean)),
        theta=numbers_of(np.nan_to_num(found.theta)),
        slack=table_of(np.nan_to_num(pivot.slack)),
        shape=spreads.shape,
    )
    if isinstance(spreads, LeftOut):
        return replace(made, **_left_out(spreads))
    square, cube, size = map(np.nan_to_num, (spreads.square, spreads.cube, spreads.size))
    return replace(
        made,
        square=tuple(tuple(map(table_of, each)) for each in square),
        cube=table_of(cube),
        size=tuple(map(table_of, size)),
    )


def _pair(core: "PairCore") -> StoredPair | None:
    """Both ends, and where searches between them start."""
    low, high = stored(core.low), stored(core.high)
    if low is None or high is None:
        return None
    where = (core.pivot.estimate, core.pivot.error)
    estimate, error = (numbers_of(np.nan_to_num(x, posinf=0.0, neginf=0.0)) for x in where)
    return StoredPair(
        answered=tuple(core.answered.tolist()), estimate=estimate, error=error, low=low, high=high
    )


def some_groups(kept: Recipe | None, places: Sequence[int]) -> StoredCounts | StoredValues | None:
    """What is kept of some groups; None where it tells more than their own sums and the rest's."""
    if not isinstance(kept, StoredCounts | StoredValues) or kept.few is not None:
        return None
    there = set(kept.answered)
    answered = tuple(new for new, old in enumerate(places) if old in there)
    if isinstance(kept, StoredCounts):
        rows, ones = (
            tuple(tuple(line[i] for i in places) for line in table)
            for table in (kept.rows, kept.ones)
        )
        alone = replace(kept, answered=answered, rows=rows, ones=ones)
        return alone if kept.normal is None else None
    rows_of, total, square2 = (
        tuple(tuple(line[i] for i in places) for line in table)
        for table in (kept.rows, kept.total, kept.square2)
    )
    return replace(kept, answered=answered, rows=rows_of, total=total, square2=square2)


# --- And back: bounds, critical values and regions from what was kept ---


@contextmanager
def _undamaged() -> Iterator[None]:
    """Data in a file that somebody edited may hold what does not fit."""
    try:
        yield
    except (LookupError, TypeError) as error:
        said = f"{type(error).__name__}: {error}"
        raise ValueError(f"What was kept to read this again is damaged ({said})") from error


@_undamaged()
def restored_bounds(
    kept: Recipe, critical: float, possible: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Bounds of every group at a critical value, from what was kept; NaN without an answer."""
    from equipoise.methods.inference.core import bounds
    from equipoise.methods.published import likelihood

    if isinstance(kept, StoredBand):
        return likelihood.band(stored_parts(kept), critical, calibrated=kept.calibrated)
    if isinstance(kept, StoredStudent):
        estimate, error, degrees = map(_array, (kept.estimate, kept.error, kept.degrees))
        return likelihood.student_interval(estimate, error, degrees, critical)
    pivot, size = _restored(kept)
    low, high = np.full(size, np.nan), np.full(size, np.nan)
    chosen = np.array(kept.answered, dtype=np.int64)
    if chosen.size:
        low[chosen], high[chosen] = bounds(pivot, chosen, critical, possible)
    return low, high


def _array(values: object) -> FloatArray:
    return np.array(values, dtype=np.float64)


def _restored(kept: StoredPivot) -> "tuple[Pivot, int]":
    from equipoise.methods.inference.core import ClusterPivot, OverlapPivot
    from equipoise.methods.inference.counts import CountPivot
    from equipoise.methods.inference.multinomial import FewValuedPivot
    from equipoise.methods.inference.student import StudentPivot
    from equipoise.methods.inference.unknown import PairPivot

    if isinstance(kept, StoredPair):
        (low, size), (high, _) = _restored(kept.low), _restored(kept.high)
        estimate, error = _array(kept.estimate), _array(kept.error)
        return PairPivot(estimate=estimate, error=error, low=low, high=high), size
    found = _comparison(kept)
    size = found.parts.rows.shape[1]
    if isinstance(kept, StoredCounts):
        degrees = np.full(size, np.inf)
        counts = CountPivot(comparison=found, rows=found.parts.rows, degrees=degrees)
        return _with_normal(counts, kept.normal), size
    if isinstance(kept, StoredWorth):
        degrees = _array(kept.degrees)
        degrees = np.where(degrees >= 1e9, np.inf, degrees)
        counts = CountPivot(comparison=found, rows=_array(kept.worth), degrees=degrees)
        return _with_normal(counts, kept.normal), size
    if isinstance(kept, StoredValues):
        return FewValuedPivot(comparison=found, values=kept.values), size
    if isinstance(kept, StoredSpread):
        spread = StudentPivot(comparison=found, shape=float(kept.shape))
        if kept.few is None:
            return spread, size
        few = np.array(kept.few, dtype=bool)
        return OverlapPivot(comparison=found, many=spread, few=few), size
    if isinstance(kept, StoredMeasure):
        return _restored_measure(kept, found), size
    left = _restored_left_out(kept.powers, kept.sizes, kept.clusters, kept.blank, kept.shape)
    return ClusterPivot(comparison=found, left_out=left), size


def _comparison(
    kept: StoredCounts | StoredWorth | StoredValues | StoredSpread | StoredClusters | StoredMeasure,
) -> "Comparison":
    from equipoise.methods.targets import Comparison, Moments

    if isinstance(kept, StoredCounts):
        given = {"rows": _array(kept.rows), "total": _array(kept.ones)}
    else:
        names = [f.name for f in fields(Moments) if hasattr(kept, f.name)]
        given = {name: _array(getattr(kept, name)) for name in names}
    rows = given["rows"]
    given = {"weight": rows, "weight2": rows, **given}
    none = np.zeros_like(rows)
    return Comparison(
        target=_target(kept.target, kept.scale, kept.value),
        relative=kept.relative,
        parts=Moments(**{f.name: given.get(f.name, none) for f in fields(Moments)}),
    )


def _target(name: str, scale: float, value: float) -> "Target":
    from equipoise.methods.targets import Complement, Constant, Overall, Reference

    # the parts are stored, so that nobody asks which cells they came from
    cells = np.zeros(0, dtype=bool)
    targets: Mapping[str, Target] = {
        "constant": Constant(scale=scale, value=value),
        "overall": Overall(scale=scale),
        "complement": Complement(scale=scale),
        **dict.fromkeys(("before", "opposite", "reference"), Reference(scale=scale, cells=cells)),
    }
    return targets[name]


def _with_normal(counts: "CountPivot", kept: Contrast | None) -> "Pivot":
    from equipoise.methods.inference.unknown import ContrastPivot, EitherPivot

    if kept is None:
        return counts
    normal = ContrastPivot(
        mean=_array(kept.mean),
        theta=_array(kept.theta),
        variances=_array(kept.variances),
        relative=counts.comparison.relative,
    )
    return EitherPivot(normal=normal, counts=counts)


def _restored_measure(kept: StoredMeasure, found: "Comparison") -> "Pivot":
    from equipoise.methods.inference.measures import Forms, Measured, MeasurePivot, Spreads

    none = np.zeros((0, found.rows.size))
    same = Measured(
        target=found.target,
        relative=found.relative,
        parts=found.parts,
        value=_array(kept.mean),
        beside=_array(kept.theta),
        slopes_own=none,
        slopes_other=none,
    )
    spreads: Spreads
    if kept.powers is not None:
        spreads = _restored_left_out(kept.powers, kept.sizes, kept.clusters, kept.blank, kept.shape)
    else:
        square, cube, size = map(_array, (kept.square, kept.cube, kept.size))
        shape = float(kept.shape)
        spreads = Forms(square=square, cube=cube, size=size, shape=shape, found=same)
    return MeasurePivot(comparison=same, spreads=spreads, slack=_array(kept.slack))


def _restored_left_out(
    powers: tuple[Table, ...],
    sizes: Table | None,
    clusters: int | None,
    blank: Numbers | None,
    shape: float,
) -> "LeftOut":
    from equipoise.methods.inference.student import LeftOut

    if sizes is None or clusters is None or blank is None:
        raise TypeError("some of what clusters do is missing")
    return LeftOut(
        powers=tuple(map(_array, powers)),
        sizes=_array(sizes),
        clusters=clusters,
        blank=_array(blank),
        shape=float(shape),
    )


def stored_parts(kept: StoredBand) -> "Parts":
    """The counts behind a band, from what was kept."""
    from equipoise.methods.published.likelihood import Parts

    return Parts(
        rows=_array(kept.rows),
        ones=_array(kept.ones),
        against=kept.against,
        scale=kept.scale,
        value=kept.value,
        relative=kept.relative,
    )


@_undamaged()
def family_critical(family: str, groups: int, level: float, side: str) -> float:
    """The critical value of normal scores that makes a family of intervals hold."""
    from equipoise.methods.published.likelihood import normal_critical

    return normal_critical(level, family, groups, two_sided=side == "both")


def quantile_at(quantiles: tuple[float, ...], level: float) -> float | None:
    """The critical value of a level, from a table of 0.1 %, 0.2 % … 99.9 %.

    Between two entries the larger one is taken; beyond the last there is none.

    >>> quantile_at(tuple(range(1, 1000)), 0.9), quantile_at(tuple(range(1, 1000)), 0.9002)
    (900, 901)
    """
    # 0.9 of 1000 may come out as 900.0000000000001, which would take the next one
    position = math.ceil(level * 1000 - 1e-9) - 1
    return None if position >= len(quantiles) else quantiles[max(position, 0)]


@_undamaged()
def region_statistic(region: Region, values: Mapping[int, float]) -> float:
    """The joint statistic at values of some disparities, the others being free."""
    from equipoise.methods.published import likelihood

    chosen = np.array(list(values), dtype=np.int64)
    at = np.array(list(values.values()), dtype=np.float64)
    zero, slope = _array(region.zero), _array(region.slope)
    if isinstance(region, EuclideanRegion):
        moments = likelihood.Moments(
            rows=region.rows,
            estimate=_array(region.estimate),
            zero=zero,
            cross=_array(region.cross),
            slope=slope,
        )
        return likelihood.euclidean_at(moments, at, chosen).statistic
    scores = likelihood.Scores(zero=zero, slope=slope, count=_array(region.count), support=True)
    # A constraint left out is profiled: its disparity takes the most likely value.
    return likelihood.likelihood_at(scores.some(chosen), at).statistic
