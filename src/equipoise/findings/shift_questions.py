"""Questions to a tilt audit: weights, groups and populations in the coordinates of the span."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from equipoise._codec import canonical
from equipoise._validate import known_name, listing
from equipoise.errors import ClaimError, OptionError
from equipoise.findings.shift_space import (
    NON_NEGATIVE,
    Covariate,
    OfCovariates,
    ShiftBasis,
    ShiftRecord,
    ShiftSpace,
    build_kernel,
)
from equipoise.methods import tilts
from equipoise.methods.numerics import BoolArray, FloatArray

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

# --- Tables that a reader brings to a tilt audit, as the encoded covariates it was made with ---


class HasFrame(Protocol):
    """A trail, as far as it is known here."""

    @property
    def frame(self) -> object:
        """The table with its rows."""


#: A table that another population is described by.
Population: TypeAlias = "Mapping[str, Any] | IntoFrame | HasFrame"


def encode_table(
    covariates: Sequence[Covariate], table: Population
) -> tuple[FloatArray, FloatArray]:
    """Encoded covariates of the complete rows of a table, and how much each row counts."""
    columns, mass = _columns(covariates, table)
    encoded = [c.encode(values) for c, values in zip(covariates, columns, strict=True)]
    if len({len(values) for values in encoded}) > 1:
        raise OptionError("The covariates have columns of different lengths.")
    points = np.column_stack(encoded)
    known = np.all(np.isfinite(points), axis=1)
    counts = np.ones(len(points)) if mass is None else mass
    if not (counts[known] > 0).any():
        raise ClaimError("The table has no row with a value of every covariate.")
    return points[known], counts[known]


def _columns(
    covariates: Sequence[Covariate], table: Population
) -> tuple[list[list[object]], FloatArray | None]:
    names = [covariate.name for covariate in covariates]
    if isinstance(table, Mapping):
        _check_columns(names, list(table))
        return [list(table[name]) for name in names], None
    import narwhals as nw

    # A trail carries its frame and says which columns count; a bare table does neither.
    native: Any = getattr(table, "frame", table)
    frame = nw.from_native(native)
    _check_columns(names, frame.collect_schema().names())
    roles = getattr(table, "roles", None)
    counted = [c for c in (getattr(roles, "count", None), getattr(roles, "weight", None)) if c]
    chosen = frame.select(*names, *counted)
    found = chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen
    mass = None
    for column in counted:
        # A row without a count or a weight stands for nobody.
        part = np.array(
            [0.0 if v is None else v for v in found[column].to_list()], dtype=np.float64
        )
        mass = part if mass is None else mass * part
    return [found[name].to_list() for name in names], mass


def _check_columns(names: Sequence[str], there: Sequence[str]) -> None:
    missing = [name for name in names if name not in there]
    if missing:
        raise ClaimError(
            f"The table lacks the covariates {listing(missing)}. It has: {listing(there)}."
        )


# --- Questions to a tilt audit: weights, groups and populations in the coordinates of the span
# ---

#: Points of another population treated at a time.
_BLOCK = 4096


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """A distribution of covariates that a tilt should approach."""

    label: str
    """What it is called."""
    where: Mapping[str, Any]
    """The group as data, if it is one."""
    wanted: FloatArray
    """Mean of the features in it."""
    space: ShiftSpace | None = None
    """The rows, if the question is about them."""
    on_rows: FloatArray | None = None
    """Its density against the audited population on each row, where known."""
    uncovered: float | None = None
    """Share of it that is unlike every row audited."""

    def distance(self, found: tilts.Closest) -> float | None:
        """Share of the tilted population that lies elsewhere than the one asked about."""
        if self.on_rows is None or self.space is None:
            return None
        share, tilt = self.space.share, np.maximum(found.values, 0.0)
        # Half the absolute differences of two distributions: their distance in total variation.
        apart = np.abs(tilt / (share @ tilt) - self.on_rows / (share @ self.on_rows))
        return float(share @ apart / 2)

    def mismatch(self, basis: ShiftBasis, found: tilts.Closest) -> float | None:
        """What remains of the kernel's distance between the populations."""
        if self.on_rows is not None:
            return None
        everyone = basis.mean
        # The kernel's distance between two populations is that of their mean features.
        before = float(np.linalg.norm(everyone - self.wanted))
        mean = float(everyone @ found.coordinates)
        after = float(np.linalg.norm(basis.once @ found.coordinates / mean - self.wanted))
        return after / before if before > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sections:
    """A mixture of kernel sections."""

    coordinates: FloatArray
    """Its part in the span."""
    values: FloatArray | None = None
    """Its value on each row, if it may leave the span."""
    norm: float | None = None
    """Its squared norm, if it may leave the span."""


def section_coordinates(
    finding: ShiftRecord, weights: FloatArray, at: Mapping[str, Sequence[object]] | None
) -> Sections:
    """A tilt given by weights on kernel sections."""
    if weights.ndim != 1 or not np.all(np.isfinite(weights)):
        raise OptionError("Weights on kernel sections are a list of finite numbers.")
    if at is None:
        return _kept_sections(finding, weights)
    space = _rows_of(finding, "weights on sections at points of your own")
    points = encode_table(finding.covariates, at)[0]
    if len(points) != len(weights):
        raise OptionError(f"There are {len(points)} points and {len(weights)} weights.")
    values = tilts.section_sums(space.kernel, space.points, points, weights)
    if not _surely(finding, weights):
        other = points_between(finding)
        there = tilts.section_sums(space.kernel, other, points, weights)
        _refuse_negative(finding, values, other, there)
    features = tilts.features_of(space.kernel, finding.basis.pivots, finding.basis.corner, points)
    norm = float(weights @ tilts.section_sums(space.kernel, points, points, weights))
    return Sections(coordinates=features.T @ weights, values=np.maximum(values, 0.0), norm=norm)


def _kept_sections(finding: ShiftRecord, weights: FloatArray) -> Sections:
    if len(weights) != finding.rank:
        raise OptionError(
            f"There are {finding.rank} kernel sections, listed by sections(); got {len(weights)} "
            "weights. Pass at=… for sections elsewhere."
        )
    coordinates = finding.basis.corner.T @ weights
    if not _surely(finding, weights):
        rows = finding.basis.corner if finding.space is None else finding.space.features
        other = points_between(finding)
        there = features_between(finding, other) @ coordinates
        _refuse_negative(finding, rows @ coordinates, other, there)
    return Sections(coordinates=coordinates)


def _surely(finding: ShiftRecord, weights: FloatArray) -> bool:
    """Whether a mixture of sections is non-negative everywhere, without looking."""
    return weights.min() >= 0 and all(part.form in NON_NEGATIVE for part in finding.kernel)


def points_between(finding: ShiftRecord, offset: float = 0.5) -> FloatArray:
    """Points of the support where no row lies; none where the kernel cannot be evaluated."""
    if finding.space is None and any(part.form == "function" for part in finding.kernel):
        return finding.basis.pivots[:0]
    points = finding.basis.pivots if finding.space is None else finding.space.points
    fixed = [i for i, c in enumerate(finding.covariates) if c.levels is not None]
    return tilts.points_between(points, fixed, offset=offset)


def features_between(finding: ShiftRecord, points: FloatArray) -> FloatArray:
    """Coordinates of these points in the span."""
    if not len(points):
        return np.zeros((0, finding.rank))
    basis = finding.basis
    return tilts.features_of(_kernel_of(finding), basis.pivots, basis.corner, points)


def _kernel_of(finding: ShiftRecord) -> tilts.Kernel:
    if finding.space is not None:
        return finding.space.kernel
    return build_kernel(finding.kernel, [c.name for c in finding.covariates])


def _refuse_negative(
    finding: ShiftRecord, values: FloatArray, other: FloatArray, there: FloatArray
) -> None:
    # Sums of kernel values that cancel leave rounding errors of either sign.
    limit = -tilts.TOLERATED * np.abs(values).max()
    negative = values < limit
    if negative.any():
        raise OptionError(
            f"The tilt is negative on {int(negative.sum()):,} of {len(values):,} rows; weights of "
            "people cannot be negative."
        )
    if len(there) and there.min() < limit:
        raise OptionError(
            "The tilt is positive on the rows but negative between them, near "
            f"{point_words(finding, other[np.argmin(there)])}; weights of people cannot be "
            "negative."
        )


def point_words(finding: ShiftRecord, point: FloatArray) -> str:
    """A point of the covariates in words."""
    pairs = zip(finding.covariates, point, strict=True)
    return ", ".join(
        f"{c.name} {x:.4g}" if c.levels is None else str(c.decode(float(x))) for c, x in pairs
    )


def weight_question(finding: ShiftRecord, tilt: OfCovariates, name: str) -> Question:
    """A tilt given by a function of the covariates."""
    space = _rows_of(finding, "a tilt given as a function")
    values = np.asarray(tilt(space.columns(finding.covariates)), dtype=np.float64)
    label = name or getattr(tilt, "__name__", "") or "a tilt"
    return _on_rows(finding, space, values, "a tilt" if label == "<lambda>" else label, {})


def group_question(
    finding: ShiftRecord,
    group: OfCovariates | Mapping[str, object] | None,
    where: Mapping[str, object],
    name: str,
) -> Question:
    """A group given by a function or by covariates."""
    space = _rows_of(finding, "a group")
    if callable(group):
        inside = np.asarray(group(space.columns(finding.covariates)))
        label = name or "the group"
        return _on_rows(finding, space, inside.astype(np.float64), label, {})
    if group is not None and not isinstance(group, Mapping):
        raise OptionError(f"A group is a function or covariates by name; got {group!r}.")
    asked = {**(group or {}), **where}
    if not asked:
        raise OptionError("Which group? Name covariates, such as ask_group(age=(18, 25)).")
    inside = np.ones(len(space.points), dtype=bool)
    for column, value in asked.items():
        position = _position(finding.covariates, column)
        inside &= _holds(finding.covariates[position], space.points[:, position], value)
    label = name or ", ".join(_words(column, value) for column, value in asked.items())
    return _on_rows(finding, space, inside.astype(np.float64), label, asked)


def _on_rows(
    finding: ShiftRecord,
    space: ShiftSpace,
    values: FloatArray,
    label: str,
    where: Mapping[str, object],
) -> Question:
    if values.shape != (len(space.points),) or not np.all(np.isfinite(values)):
        raise OptionError(
            f"{label}: expected a finite number for each of {len(space.points):,} rows (rows with "
            f"equal covariates and metric are one); got an array of shape {values.shape}."
        )
    if values.min() < 0:
        raise OptionError(
            f"{label}: a tilt must not be negative; the least value is {values.min():g}."
        )
    mass = space.share * values
    if mass.sum() <= 0:
        raise ClaimError(f"{label}: no row audited lies there.")
    plain = {
        key: list(value) if isinstance(value, tuple) else value for key, value in where.items()
    }
    return Question(
        label=label,
        where=plain,
        wanted=mass @ space.features / mass.sum(),
        space=space,
        on_rows=values,
    )


def population_question(finding: ShiftRecord, table: Population, name: str) -> Question:
    """Another population, given by a table with the covariates."""
    points, mass = encode_table(finding.covariates, table)
    kernel = _kernel_of(finding)
    wanted, alike = np.zeros(finding.rank), 0.0
    for start in range(0, len(points), _BLOCK):
        part, weight = points[start : start + _BLOCK], mass[start : start + _BLOCK]
        features = tilts.features_of(kernel, finding.basis.pivots, finding.basis.corner, part)
        # Of a point's kernel the span explains all where rows were audited, nothing far from them.
        own = np.maximum(kernel.diagonal(part), 1e-300)
        wanted += weight @ features
        alike += float(weight @ np.minimum((features**2).sum(axis=1) / own, 1.0))
    total = mass.sum()
    if alike <= 1e-6 * total:
        raise ClaimError("That population is unlike every row audited: no tilt leads there.")
    return Question(
        label=name or "the other population",
        where={},
        wanted=wanted / total,
        uncovered=max(0.0, 1 - alike / float(total)),
    )


def _rows_of(finding: ShiftRecord, what: str) -> ShiftSpace:
    if finding.space is None:
        raise OptionError(
            f"A finding that was read back does not hold the rows, which {what} needs. It answers "
            "weights on sections() and ask_population; run the audit again for the rest."
        )
    return finding.space


def _position(covariates: Sequence[Covariate], name: str) -> int:
    names = [covariate.name for covariate in covariates]
    return names.index(known_name("Covariate", name, names, ClaimError))


def _holds(covariate: Covariate, codes: FloatArray, value: Any) -> BoolArray:
    if isinstance(value, list | set | frozenset):
        parts = [_holds(covariate, codes, each) for each in value]
        return np.any(parts, axis=0) if parts else np.zeros(len(codes), dtype=bool)
    if isinstance(value, tuple):
        if covariate.levels is not None or len(value) != 2:
            raise ClaimError(f"{covariate.name}: a range is a pair of numbers; got {value!r}.")
        return np.asarray((codes >= value[0]) & (codes <= value[1]))
    if covariate.levels is None:
        return np.asarray(codes == float(value))
    wanted = canonical(value)
    if wanted not in covariate.levels:
        raise ClaimError(
            f"{covariate.name} has no level {value!r}. There is: {listing(covariate.levels)}."
        )
    return np.asarray(codes == covariate.levels.index(wanted))


def _words(name: str, value: object) -> str:
    if isinstance(value, tuple) and len(value) == 2:
        return f"{name} {value[0]:g} to {value[1]:g}"
    if isinstance(value, list | set | frozenset):
        return " or ".join(_words(name, each) for each in value)
    return value if isinstance(value, str) else f"{name} {value}"


# --- What a tilt is estimated to be, and which tilt comes closest to what is asked about ---

#: A tilt found by iteration may dip below zero by rounding; one that dips further is not a tilt.
_LOWEST = -1e-3
#: A tilt whose part in the span has less than this share of its mean is not told by the span.
_LEAST = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A tilt's disparity and how sharply the rows tell it."""

    disparity: float
    """Mean metric of the tilted population minus the target."""
    reach: float | None
    """Half-width of the bounds per unit of the critical value; None if the span says nothing."""
    beyond: float
    """Half-width added for what the tilt has outside the span."""
    effective: float
    """Effective sample size."""


def estimate(
    finding: ShiftRecord,
    coordinates: FloatArray,
    *,
    values: FloatArray | None = None,
    norm: float | None = None,
) -> Estimate | None:
    """The estimate of a tilt; None if it is zero on every row.

    ``values`` on the rows and the squared ``norm`` are given for tilts outside the span, of which
    the coordinates hold only a part.
    """
    basis = finding.basis
    mean, cross = float(basis.mean @ coordinates), float(basis.cross @ coordinates)
    square = float(coordinates @ basis.second @ coordinates)
    inside, beyond = mean, 0.0
    if values is not None and norm is not None and finding.space is not None:
        weighed = finding.space.weights * values
        share = finding.space.counts / finding.space.counts.sum()
        mean, cross = float(share @ weighed), float(share @ (weighed * finding.space.values))
        square = float(share @ weighed**2)
        if mean > 0:
            beyond = _beyond(finding, finding.space, coordinates, weighed, norm) / mean
    if mean <= 0 or square <= 0:
        return None
    return Estimate(
        # The metric was centred before averaging; here its mean comes back.
        disparity=cross / mean + finding.mean - finding.target,
        # A tilt counts with average one, so its scale is divided by the mean it has instead.
        reach=_scale(finding, coordinates) / inside / mean if inside > _LEAST * mean else None,
        beyond=beyond,
        # n_eff of Appendix D of Cherian and Candès.
        effective=finding.n * mean**2 / square,
    )


def _scale(finding: ShiftRecord, coordinates: FloatArray) -> float:
    size, basis = float(coordinates @ coordinates), finding.basis
    # Unscaled bounds hold on the unit ball: a tilt of another norm is brought there first.
    if finding.floor is None:
        return size
    square = max(float(coordinates @ basis.centred @ coordinates), 0.0)
    return float(tilts.scale_of(float(basis.mean @ coordinates), square, size, finding.floor))


def _beyond(
    finding: ShiftRecord,
    space: ShiftSpace,
    coordinates: FloatArray,
    weighed: FloatArray,
    norm: float,
) -> float:
    """By how much the part outside the span can move the tilt's sum (see `tilts.remainder`)."""
    share = space.counts / space.counts.sum()
    outside = weighed - space.weights * (space.features @ coordinates)
    length = float(coordinates @ coordinates)
    average = float(share @ (weighed * space.values)) / float(share @ weighed)
    apart = space.values - average
    # Outside the span each row has features of squared norm ``left``, times its weight.
    size = np.sqrt(space.left) * space.weights * np.abs(apart)
    overlap = tilts.overlap_of(space.kernel, space.points, space.features, size, space.counts)
    moved = tilts.norm_bound(size, space.counts, space.clusters, overlap)
    single = float(share @ outside) * space.influence
    single = single + float(share @ (outside * apart)) * space.paired
    total = math.sqrt(max(norm - length, 0.0)) * moved
    total += tilts.mean_bound(single, space.counts, space.clusters)
    low, high = _allowed(finding, coordinates)
    slip = max(low - average, average - high, 0.0)
    if slip == 0:
        return total
    rows = space.features * space.weights[:, None] - space.paired[:, None] * finding.basis.mean
    turned = tilts.norm_bound(np.linalg.norm(rows, axis=1), space.counts, space.clusters)
    return total + slip * math.sqrt(length) * turned


def _allowed(finding: ShiftRecord, coordinates: FloatArray) -> tuple[float, float]:
    """Between which averages of the centred metric the critical value speaks of a tilt."""
    if finding.method == "rescaled":
        return finding.reach[0] - finding.mean, finding.reach[1] - finding.mean
    own = float(finding.basis.cross @ coordinates) / float(finding.basis.mean @ coordinates)
    return own, own


def closest(finding: ShiftRecord, question: Question, penalty: float | None) -> tilts.Closest:
    """The tilt that best answers a question, weighing width against distance."""
    rows = finding.basis.corner if finding.space is None else finding.space.features
    # The search takes penalties as shares of this trace; readers give, and are told, them whole.
    size = float(finding.basis.once.trace())
    penalties = tilts.PENALTIES if penalty is None else (penalty / size,)
    other = features_between(finding, points_between(finding))
    tried = tilts.closest_tilts(rows, finding.basis.once, question.wanted, penalties, other)
    usable = [found for found in tried if found.lowest > _LOWEST]
    if not usable:
        raise OptionError(
            f"No non-negative tilt comes near {question.label}: it lies where no row is."
        )
    # The choice costs no confidence, since the bounds of all tilts hold at once.
    return min(usable, key=lambda found: _cost(finding, question, found))


def where_negative(finding: ShiftRecord, found: tilts.Closest) -> str:
    """Where between the rows a tilt is below zero by more than a thousandth of its largest value.

    Looked at where the search for the tilt did not look; empty if there is no such place.
    """
    points = points_between(finding, offset=0.0)
    values = features_between(finding, points) @ found.coordinates
    top = float(found.values.max())
    if not len(values) or values.min() > _LOWEST * top:
        return ""
    place = point_words(finding, points[np.argmin(values)])
    return f"weight {values.min() / top:.1%} of the largest near {place}, where no row lies"


def _cost(finding: ShiftRecord, question: Question, found: tilts.Closest) -> float:
    """Half-width of the bounds, and what the metric may change over the distance that is left."""
    made = estimate(finding, found.coordinates)
    if made is None:
        return float("inf")
    away = question.distance(found)
    if away is None:
        away = question.mismatch(finding.basis, found) or 0.0
    return (finding.critical or 0.0) * (made.reach or 0.0) + finding.spread * away
