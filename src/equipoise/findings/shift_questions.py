"""Questions to a tilt audit: its kernel, covariates and tilts, and what a reader may ask."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from equipoise._codec import canonical
from equipoise._validate import known_name, listing
from equipoise.errors import ClaimError, EquipoiseError, OptionError
from equipoise.findings.finding import NOT_STORED, ComparedFinding
from equipoise.findings.words import Ends, Side, ends_text
from equipoise.methods import tilts
from equipoise.methods.numerics import AnyArray, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

# --- Kernels as findings write them down, and the covariates they compare people by ---

#: Forms whose values are never negative, so that mixtures of sections are tilts.
NON_NEGATIVE = ("gaussian", "laplace", "same")

#: A kernel of the caller's own: all pairs of the rows of two matrices.
KernelFunction = Callable[[FloatArray, FloatArray], npt.ArrayLike]
#: What a caller may ask about: a number, or yes or no, for each row, of the covariates by name.
OfCovariates = Callable[[dict[str, AnyArray]], npt.ArrayLike]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPart:
    """One factor of a product kernel."""

    form: str
    """``gaussian``, ``laplace``, ``same`` (equal or not), the name of a kernel, or ``function``."""
    columns: tuple[str, ...]
    """The covariates it compares."""
    bandwidths: tuple[float, ...] = ()
    """The bandwidth of each, in its own units."""
    options: Mapping[str, Any] | None = None
    """Options of a kernel given by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Covariate:
    """One column that tilts may depend on."""

    name: str
    """The column."""
    levels: tuple[Any, ...] | None = None
    """The levels of a category; None for a number."""

    def encode(self, values: Sequence[object]) -> FloatArray:
        """Numbers as they are, categories by position; −1 for a level that was not audited."""
        if self.levels is None:
            return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
        # No row has the place −1, so an unknown level is unlike all of them.
        place = {level: i for i, level in enumerate(self.levels)}
        found = [place.get(canonical(value), -1) for value in values]
        return np.array(found, dtype=np.float64)

    def decode(self, code: float) -> object:
        """The value behind a number."""
        return canonical(code) if self.levels is None else self.levels[int(code)]


def build_kernel(
    parts: Sequence[KernelPart],
    names: Sequence[str],
    functions: Mapping[int, KernelFunction] | None = None,
) -> tilts.Kernel:
    """The kernel on encoded covariates; ``functions`` holds those that have no plain form."""
    made = []
    for i, part in enumerate(parts):
        columns = tuple(names.index(column) for column in part.columns)
        made.append((_one(part, (functions or {}).get(i)), columns))
    return tilts.Product(tuple(made))


def _one(part: KernelPart, function: KernelFunction | None) -> tilts.Kernel:
    if part.form == "gaussian":
        return tilts.Gaussian(part.bandwidths)
    if part.form == "laplace":
        return tilts.Laplace(part.bandwidths)
    if part.form == "same":
        return tilts.Same()
    if function is not None:
        return tilts.Function(lambda x, y: np.asarray(function(x, y)))
    if part.form == "function":
        raise EquipoiseError(
            "This finding was made with a kernel of your own, which cannot be stored. Run the "
            "audit again to ask about tilts that it has to evaluate anew."
        )
    return _one(part, named_kernel(part.form, part.options or {}))


def kernel_words(parts: Sequence[KernelPart]) -> str:
    """The covariates with their bandwidths, or with the form of their kernel.

    >>> kernel_words([KernelPart(form="gaussian", columns=("age",), bandwidths=(5.0,))])
    'age (bandwidth 5)'
    """
    said = []
    for part in parts:
        if part.bandwidths:
            pairs = zip(part.columns, part.bandwidths, strict=True)
            said += [f"{column} (bandwidth {width:.3g})" for column, width in pairs]
        else:
            form = "equal or not" if part.form == "same" else part.form
            said += [f"{column} ({form})" for column in part.columns]
    return ", ".join(said)


def named_kernel(name: str, options: Mapping[str, object]) -> KernelFunction:
    """A pairwise kernel of scikit-learn."""
    from sklearn.metrics.pairwise import pairwise_kernels

    def values(x: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(pairwise_kernels(x, y, metric=name, **options))

    return values


# --- The audited rows and the span of tilts, kept beside a finding so that it can be asked more

#: Bins in which a number is shown.
_BINS = 40


def columns_of(rows: tilts.TiltRows, covariates: Sequence[Covariate]) -> dict[str, AnyArray]:
    """The covariates of the rows as arrays by name, for a function that is given to us."""
    found: dict[str, AnyArray] = {}
    for i, covariate in enumerate(covariates):
        codes = rows.points[:, i]
        levels = covariate.levels
        found[covariate.name] = (
            codes.copy() if levels is None else np.array([levels[int(c)] for c in codes])
        )
    return found


def profile_of(
    space: tilts.TiltRows,
    covariates: Sequence[Covariate],
    tilt: FloatArray,
    wanted: FloatArray | None,
) -> tuple[dict[str, object], ...]:
    """How the population lies along each covariate, before and after a tilt, for a chart."""
    before = space.share
    after = before * tilt / (before @ tilt)
    aim = None if wanted is None else before * wanted / (before @ wanted)
    records: list[dict[str, object]] = []
    for i, covariate in enumerate(covariates):
        records += _along(covariate, space.points[:, i], before, after, aim)
    return tuple(records)


def _along(
    covariate: Covariate,
    codes: FloatArray,
    before: FloatArray,
    after: FloatArray,
    aim: FloatArray | None,
) -> list[dict[str, object]]:
    place, ends = _bins(covariate, codes)
    size = len(ends)
    sums = [
        np.bincount(place, x, minlength=size) if x is not None else None
        for x in (before, after, aim)
    ]
    found: list[dict[str, object]] = []
    for k, (start, stop) in enumerate(ends):
        rows, tilted, wanted = (None if x is None else float(x[k]) for x in sums)
        if rows is None or tilted is None or rows <= 0:
            continue
        found.append(
            {
                "covariate": covariate.name,
                "from": start,
                "to": stop,
                "rows": rows,
                "tilted": tilted,
                "tilt": tilted / rows,
                "wanted": None if wanted is None else wanted / rows,
            }
        )
    return found


def _bins(
    covariate: Covariate, codes: FloatArray
) -> tuple[IntArray, Sequence[tuple[object, object]]]:
    """Each row's bin, and the ends of every bin; a category is a bin of its own."""
    if covariate.levels is not None:
        return codes.astype(np.int64), [(level, level) for level in covariate.levels]
    distinct = np.unique(codes)
    if len(distinct) <= _BINS:
        place = np.searchsorted(distinct, codes)
        return place, [(float(value), float(value)) for value in distinct]
    edges = np.linspace(distinct[0], distinct[-1], _BINS + 1)
    # The largest value ends the last bin rather than beginning one of its own.
    place = np.clip(np.searchsorted(edges, codes, side="right") - 1, 0, _BINS - 1)
    return place, list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


# --- One tilt and its bounds: a row of a finding, and the answer to a question ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Tilted:
    """One tilt of the population with its simultaneous bounds."""

    group: str
    """The tilt in words."""
    where: Mapping[str, Any]
    """Where the tilt leans, if it can be said by covariates."""
    n: int
    """Rows audited."""
    effective: float | None
    """Effective sample size: as many rows would tell as much about the tilted population."""
    value: float | None
    """The metric in the tilted population."""
    target: float
    """What it is compared with."""
    disparity: float | None
    """Value minus target."""
    lower: float | None
    """Lower bound on the disparity; None if there is none."""
    upper: float | None
    """Upper bound on the disparity; None if there is none."""
    note: str = ""
    """Why a bound is missing, or what to keep in mind."""
    reach: float | None = None
    """Half-width of the bounds per unit of the critical value."""
    beyond: float = 0.0
    """Half-width added for what the tilt has outside the span of the kept kernel sections."""

    def __str__(self) -> str:
        said = ends_text(self.lower, self.upper, "{:+.3f}".format, self.note)
        estimate = "unknown" if self.disparity is None else f"{self.disparity:+.3f}"
        about = "" if self.effective is None else f" (effective n = {self.effective:,.0f})"
        return f"{self.group}: {estimate}, {said}{about}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTilt(Tilted):
    """The answer to a question about a tilt."""

    distance: float | None = None
    """Share of the tilted population that lies elsewhere than the one asked about: 0 if the tilt
    is what was asked about, 1 if they have nothing in common."""
    mismatch: float | None = None
    """For a population: what remains of the kernel's distance to it; 1 if the tilt does nothing."""
    uncovered: float | None = None
    """For a population: share of it that is unlike every row audited."""
    penalty: float | None = None
    """Penalty on the norm with which the closest tilt was found."""
    profile: tuple[Mapping[str, Any], ...] = dataclasses.field(default=(), repr=False)
    """The population along each covariate, before and after the tilt."""


# --- The numbers of a tilt audit, from which its questions are answered ---


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ShiftRecord(ComparedFinding[Tilted]):
    """What a tilt audit found, before anything is asked of it."""

    retired: ClassVar[Mapping[str, str]] = {
        "draws": "every resample; run the audit again, which keeps a table in their place"
    }

    n: int
    """Rows audited."""
    share: bool
    """Whether the metric is a share, read in percentage points."""
    target: float
    """What the metric is compared with."""
    mean: float
    """The metric over everyone."""
    spread: float
    """By how much the metric can differ between people."""
    level: float
    """Confidence that every bound holds."""
    side: Side
    """Which bounds were computed."""
    limits: Ends
    """Smallest and largest disparity that is possible at all."""
    method: str
    """In which units tilts are compared: rescaled, signed or unscaled."""
    floor: float | None
    """What the squared norm of a tilt counts in its scale; None without a scale."""
    engine: str
    """How resamples were drawn: exact, moments or clusters."""
    resamples: int
    """How often."""
    critical: float | None
    """The critical value for tilts in the span; None if there is no answer."""
    rank: int
    """Kernel sections that span the tilts."""
    residual: float
    """Share of the kernel's trace outside their span."""
    kernel: tuple[KernelPart, ...]
    """The kernel, with the bandwidths used."""
    covariates: tuple[Covariate, ...]
    """The covariates."""
    reach: tuple[float, float]
    """Least and largest average metric under the tilts of the span, where the method uses it."""
    sampled: int | None
    """Rows drawn at random, if a sample was asked for."""
    reason: str
    """Why there is no answer; empty if there is one."""
    quantiles: tuple[float, ...] = dataclasses.field(repr=False)
    """Critical values at equally spaced levels up to 100 %, rounded up; 1,000 at most."""
    basis: tilts.TiltBasis = dataclasses.field(repr=False, compare=False)
    """Averages from which tilts of the span are estimated."""
    space: tilts.TiltRows | None = dataclasses.field(
        default=None, repr=False, compare=False, metadata=NOT_STORED
    )
    """The rows; not stored, so that a finding read back answers only what needs none."""

    @property
    def span(self) -> tilts.TiltSpan:
        """The tilts that were bounded, as the mathematics takes them."""
        return tilts.TiltSpan(
            basis=self.basis,
            rows=self.space,
            n=self.n,
            mean=self.mean,
            target=self.target,
            floor=self.floor,
            averages=self.reach if self.method == "rescaled" else None,
        )


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """A distribution of covariates that a tilt should approach."""

    label: str
    """What it is called."""
    where: Mapping[str, Any]
    """The group as data, if it is one."""
    aim: tilts.Aim
    """What the tilt should come near to."""
    uncovered: float | None = None
    """Share of it that is unlike every row audited."""


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
        other = unseen_points(finding)
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
        other = unseen_points(finding)
        there = features_between(finding, other) @ coordinates
        _refuse_negative(finding, rows @ coordinates, other, there)
    return Sections(coordinates=coordinates)


def _surely(finding: ShiftRecord, weights: FloatArray) -> bool:
    """Whether a mixture of sections is non-negative everywhere, without looking."""
    return weights.min() >= 0 and all(part.form in NON_NEGATIVE for part in finding.kernel)


def unseen_points(finding: ShiftRecord, offset: float = 0.5) -> FloatArray:
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
    values = np.asarray(tilt(columns_of(space, finding.covariates)), dtype=np.float64)
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
        inside = np.asarray(group(columns_of(space, finding.covariates)))
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
    space: tilts.TiltRows,
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
        aim=tilts.Aim(wanted=mass @ space.features / mass.sum(), on_rows=values),
    )


def population_question(finding: ShiftRecord, table: Population, name: str) -> Question:
    """Another population, given by a table with the covariates."""
    points, mass = encode_table(finding.covariates, table)
    wanted, alike = tilts.mean_features(_kernel_of(finding), finding.basis, points, mass)
    if alike <= 1e-6:
        raise ClaimError("That population is unlike every row audited: no tilt leads there.")
    return Question(
        label=name or "the other population",
        where={},
        aim=tilts.Aim(wanted=wanted, on_rows=None),
        uncovered=max(0.0, 1 - alike),
    )


def _rows_of(finding: ShiftRecord, what: str) -> tilts.TiltRows:
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


# --- Which tilt comes closest to what is asked about ---


def closest(finding: ShiftRecord, question: Question, penalty: float | None) -> tilts.Closest:
    """The tilt that best answers a question, weighing width against distance."""
    found = finding.span.nearest(
        question.aim,
        penalty,
        features_between(finding, unseen_points(finding)),
        critical=finding.critical or 0.0,
        spread=finding.spread,
    )
    if found is None:
        raise OptionError(
            f"No non-negative tilt comes near {question.label}: it lies where no row is."
        )
    return found


def where_negative(finding: ShiftRecord, found: tilts.Closest) -> str:
    """Where between the rows a tilt is below zero by more than a thousandth of its largest value.

    Looked at where the search for the tilt did not look; empty if there is no such place.
    """
    points = unseen_points(finding, offset=0.0)
    values = features_between(finding, points) @ found.coordinates
    top = float(found.values.max())
    if not len(values) or values.min() > tilts.LOWEST * top:
        return ""
    place = point_words(finding, points[np.argmin(values)])
    return f"weight {values.min() / top:.1%} of the largest near {place}, where no row lies"
