"""Behind `shift`: classes of tilts as values, and the rows of a tilt audit.

A class of tilts is smooth in some covariates (kernels), or monotone in one. The rows carry
covariates, metric and influence of the target, merged where equal.
"""

import dataclasses
import hashlib
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._codec import Written, from_plain, kind, to_plain
from equipoise._validate import LARGEST, columns_named, known_keywords, known_name, listing, whole
from equipoise.cells import Cells
from equipoise.cells.gather import reference_cells
from equipoise.cells.query import Coded, code
from equipoise.cells.rows import Look, RowTable, feature_keys, formula_of, one_look, renumbered
from equipoise.claims import Claim
from equipoise.claims import claim as targets
from equipoise.claims.claim import Gap
from equipoise.claims.groups import everyone
from equipoise.errors import ClaimError, OptionError, TrailError
from equipoise.findings.shift_questions import (
    Covariate,
    KernelFunction,
    KernelPart,
    build_kernel,
    named_kernel,
)
from equipoise.methods import tilts
from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.trail import Trail
from equipoise.trail.trail import expect_trail

if TYPE_CHECKING:
    from equipoise.findings.shift_questions import KernelFunction

Bandwidth = float | Sequence[float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TiltKernel:
    """How alike two people are by some covariates; ``*`` multiplies kernels."""

    columns: tuple[str, ...]
    """The covariates."""

    def __post_init__(self) -> None:
        if not self.columns:
            raise OptionError('A kernel needs at least one covariate, such as gaussian("age").')
        object.__setattr__(self, "columns", columns_named("A kernel", self.columns))

    def __mul__(self, other: "TiltKernel") -> "ProductKernel":
        """Alike only if alike by both."""
        if not isinstance(other, TiltKernel):
            return NotImplemented
        return ProductKernel(columns=(*self.columns, *other.columns), factors=(self, other))

    def factors_of(self) -> tuple["TiltKernel", ...]:
        """The kernels that are multiplied."""
        return (self,)

    def to_plan(self) -> object:
        """Plain form; a function of your own is named, not written out."""
        return to_plain(self, other=lambda value: f"a {type(value).__name__}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Smooth(TiltKernel):
    """A kernel with a bandwidth for each number."""

    bandwidth: Bandwidth = None
    """Distance over which tilts may change, in the units of each covariate; None for the median
    distance between people."""

    def __post_init__(self) -> None:
        TiltKernel.__post_init__(self)
        width = self.bandwidth
        if isinstance(width, list):
            width = tuple(width)
            object.__setattr__(self, "bandwidth", width)
        if isinstance(width, tuple) and len(width) != len(self.columns):
            raise OptionError(
                f"bandwidth= takes one number, or one for each of {listing(self.columns)}; "
                f"got {len(width)}."
            )
        for each in width if isinstance(width, tuple) else () if width is None else (width,):
            _check_bandwidth(each)


@kind("gaussian")
@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianKernel(_Smooth):
    """exp(−½ Σ ((x − y) / bandwidth)²) over numbers, times "equal or not" over categories."""


@kind("laplace")
@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceKernel(_Smooth):
    """exp(−Σ |x − y| / bandwidth) over numbers, times "equal or not" over categories."""


@kind("kernel")
@dataclass(frozen=True, slots=True, kw_only=True)
class OtherKernel(TiltKernel):
    """A pairwise kernel of scikit-learn by name, or a function of two matrices."""

    function: "str | KernelFunction"
    """The name or the function."""
    options: Mapping[str, Any] | None = None
    """Options of a kernel given by name."""

    def __post_init__(self) -> None:
        TiltKernel.__post_init__(self)
        if isinstance(self.function, str):
            known_name("Kernel", self.function, _named_kernels())
        elif not callable(self.function):
            raise OptionError(
                "A kernel is the name of one in scikit-learn, or a function of two matrices; "
                f"got {self.function!r}."
            )


@kind("product_kernel")
@dataclass(frozen=True, slots=True, kw_only=True)
class ProductKernel(TiltKernel):
    """Several kernels multiplied, each on covariates of its own."""

    factors: tuple[TiltKernel, ...]

    def factors_of(self) -> tuple[TiltKernel, ...]:
        """The kernels that are multiplied."""
        return tuple(each for factor in self.factors for each in factor.factors_of())


@known_keywords
def gaussian(*columns: str, bandwidth: Bandwidth = None) -> GaussianKernel:
    """Smooth tilts over covariates; categories among them are told apart entirely.

    ``bandwidth`` is the distance over which a tilt may change: one number, one for each covariate,
    or None for the median distance between people, which the finding records.

    >>> gaussian("age", "priors", bandwidth=(5, 2)).columns
    ('age', 'priors')
    """
    return GaussianKernel(columns=columns, bandwidth=bandwidth)


@known_keywords
def laplace(*columns: str, bandwidth: Bandwidth = None) -> LaplaceKernel:
    """Rougher tilts than `gaussian` of the same bandwidth.

    >>> (laplace("age", bandwidth=5) * gaussian("priors")).columns
    ('age', 'priors')
    """
    return LaplaceKernel(columns=columns, bandwidth=bandwidth)


@known_keywords
def kernel(function: "str | KernelFunction", *columns: str, **options: object) -> OtherKernel:
    """Any kernel: a pairwise kernel of scikit-learn by name, or a function of two matrices.

    A function takes two matrices with the covariates as columns and returns the matrix of its
    values. It must be symmetric and positive semi-definite, which is checked on the data.

    >>> kernel("polynomial", "age", degree=2).options
    {'degree': 2}
    """
    if options and not isinstance(function, str):
        raise OptionError("Options go with a kernel given by name; bind them in your function.")
    return OtherKernel(columns=columns, function=function, options=options or None)


@kind("monotone")
@dataclass(frozen=True, slots=True, kw_only=True)
class MonotoneTilts(Written):
    """Every weight of at least zero that only rises, or only falls, in one number."""

    column: str
    """The number."""
    grid: int | None = 50
    """How many stretches of about equally many rows to cut it into; None for every value."""

    def __post_init__(self) -> None:
        columns_named("monotone", (self.column,))
        if self.grid is not None:
            whole("grid", self.grid, least=2)


@known_keywords
def monotone(column: str, *, grid: int | None = 50) -> MonotoneTilts:
    """All tilts that rise, and all that fall, in one number: a class of its own beside kernels.

    Weights are constant within stretches of the number: every distinct value if there are at most
    ``grid``, else so many of about equally many rows; ``grid=None`` takes every value.

    >>> monotone("age", grid=20).column
    'age'
    """
    return MonotoneTilts(column=column, grid=grid)


def as_tilts(value: object) -> TiltKernel | MonotoneTilts:
    """A class of tilts given as a value, as plain data, or as covariate names (Gaussian)."""
    if isinstance(value, Mapping):
        value = from_plain(value)
    if isinstance(value, str):
        return gaussian(value)
    if isinstance(value, list | tuple) and value and all(isinstance(v, str) for v in value):
        return gaussian(*value)
    if not isinstance(value, TiltKernel | MonotoneTilts):
        raise ClaimError(
            'over= takes a kernel such as gaussian("age"), monotone("age"), or covariate names; '
            f"got {value!r}."
        )
    return value


def bandwidths_of(factor: TiltKernel) -> dict[str, float]:
    """The bandwidths that were given, by covariate."""
    if not isinstance(factor, _Smooth) or factor.bandwidth is None:
        return {}
    width = factor.bandwidth
    every = width if isinstance(width, tuple) else (width,) * len(factor.columns)
    return {name: float(each) for name, each in zip(factor.columns, every, strict=True)}


def _check_bandwidth(value: float) -> None:
    good = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if good and value > LARGEST:
        raise OptionError(
            "An infinite bandwidth makes every tilt constant along the covariate; leave it out."
        )
    if not good or not value > 0:
        raise OptionError(f"bandwidth must be a positive number; got {value!r}.")


def _named_kernels() -> Iterable[str]:
    from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

    return sorted(PAIRWISE_KERNEL_FUNCTIONS)


# --- The rows of a tilt audit: covariates, metric, influence of the target, merged where equal

#: More rows than this are not audited without being asked to sample.
MAX_SHIFT_ROWS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShiftRows:
    """Rows on which the metric counts, equal ones merged, in an order of their own."""

    covariates: tuple[Covariate, ...]
    """What the columns of the points are."""
    points: FloatArray
    """Rows × covariates, categories by position."""
    values: FloatArray
    """The metric."""
    influence: FloatArray
    """First-order effect of each row on the target."""
    paired: FloatArray
    """How much each row counts in the target; zeros for a number."""
    apart: float
    """Mean square of the influence that is not paired with the metric, over its variance."""
    weights: FloatArray
    """Sampling weights with mean one; ones if there are none."""
    counts: FloatArray
    """How many rows each row stands for."""
    clusters: IntArray | None
    """Number of each row's cluster."""
    target: float
    """What the metric is compared with."""
    mean: float
    """The metric over everyone."""
    cells: Cells
    """The cells as gathered, for the record."""
    lost: dict[str, int]
    """Rows left out because a covariate was missing, by reason."""
    sampled: int | None
    """Rows drawn at random, if a sample was asked for."""

    @property
    def n(self) -> int:
        """Number of rows."""
        return round(float(self.counts.sum()))

    def fingerprint(self) -> str:
        """A digest of the rows, the same in every order."""
        columns = [self.points, self.values, self.influence, self.weights, self.counts]
        # Thirty binary digits: engines may differ in the last ones.
        digits, power = np.frexp(np.column_stack(columns))
        content = np.rint(digits * 2**30).astype(np.int64).tobytes() + power.tobytes()
        return hashlib.sha256(self.cells.fingerprint().encode() + content).hexdigest()


@contextmanager
def look_at_shift(
    trail: Trail,
    claim: Claim,
    columns: Sequence[str],
    sample: int | None,
    beside: Sequence[Claim] = (),
) -> Iterator[Look]:
    """A look at what a tilt audit needs of each row, and at what other claims count."""
    if isinstance(claim.target, targets.Complement):
        raise ClaimError(
            "A tilt has no complement. Compare with overall(), a number, reference(…) or custom(…)."
        )
    further = feature_keys(expect_trail(trail), columns)
    if isinstance(claim.target, targets.Custom):
        # the influence that was given
        further["extra"] = formula_of(trail, claim.target.influence, "the influence")
    claims = [_overall(claim), *beside]
    with one_look(trail, claims, claim.metric, further, most=MAX_SHIFT_ROWS, sample=sample) as look:
        yield look


def _overall(claim: Claim) -> Gap:
    return Gap(metric=claim.metric, across=everyone(), target=claim.target)


def pull_shift_rows(
    look: Look,
    claim: Claim,
    columns: Sequence[str],
    sample: int | None,
    seed: np.random.SeedSequence,
) -> ShiftRows:
    """Fetch the columns that are needed, leave out what is missing, merge what is equal."""
    trail = look.query.trail
    (cells,) = look.cells([_overall(claim)])
    if cells.counted > MAX_SHIFT_ROWS and sample is None and trail.roles.count is None:
        raise TrailError(
            f"There are {cells.counted:,} rows, more than {MAX_SHIFT_ROWS:,}. Pass sample=… to "
            "audit that many, drawn at random."
        )
    table = look.rows(cells=cells, order=repr, sample=sample, seed=seed)
    extra = np.zeros(len(table)) if table.extra is None else table.extra
    if isinstance(claim.target, targets.Reference):
        # who is in the reference group
        extra = reference_cells(claim.target.where, cells)[table.cell].astype(np.float64)
    table = dataclasses.replace(table, columns={**table.columns, "extra": extra})
    coded = [code(table.columns[f"feature{i}"]) for i in range(len(columns))]
    covariates = tuple(map(partial(_covariate, trail), columns, coded))
    points = [cov.encode(c.levels)[c.codes] for cov, c in zip(covariates, coded, strict=True)]
    known = table.weights > 0
    if table.cluster is not None:
        known &= table.cluster >= 0
    table = dataclasses.replace(table, matrix=np.column_stack(points)).complete(
        known, {name: np.isfinite(x) for name, x in zip(columns, points, strict=True)}
    )
    if not len(table):
        raise ClaimError(f"No row has a value of every covariate: {table.missing}.")
    merged = _merged(table)
    drawn = merged.sampled(sample, seed, np.arange(len(merged)))
    return _finished(claim, cells, covariates, drawn, sample)


def _covariate(trail: Trail, name: str, column: Coded) -> Covariate:
    if trail.schema[name].is_numeric():
        return Covariate(name=name)
    # A missing category is a level of its own, as everywhere else.
    levels = sorted(column.levels, key=lambda v: (v is None, str(v)))
    return Covariate(name=name, levels=tuple(levels))


def _merged(table: RowTable) -> RowTable:
    """The rows in an order of their own, equal ones as one."""
    tied = [] if table.cluster is None else [table.cluster]
    columns = [*table.matrix.T, table.value, table.weights, table.columns["extra"], *tied]
    order = np.lexsort(columns[::-1])
    rows = np.column_stack(columns)[order]
    first = np.concatenate([[True], np.any(rows[1:] != rows[:-1], axis=1)])
    counts = np.add.reduceat(table.counts[order], np.flatnonzero(first))
    return dataclasses.replace(table.part(order[first]), count=counts)


def _finished(
    claim: Claim,
    cells: Cells,
    covariates: tuple[Covariate, ...],
    table: RowTable,
    sample: int | None,
) -> ShiftRows:
    counts = table.counts.astype(np.float64)
    n = counts.sum()
    weights = table.weights / (counts @ table.weights / n)
    mean = float(counts @ (weights * table.value) / n)
    raw = _Raw(table.value, table.columns["extra"], weights, counts, mean)
    against = _target(claim.target, raw)
    return ShiftRows(
        covariates=covariates,
        points=table.matrix,
        values=table.value,
        influence=against.influence,
        paired=against.paired,
        apart=against.apart,
        weights=weights,
        counts=counts,
        clusters=None if table.cluster is None else renumbered(table.cluster),
        target=against.value,
        mean=mean,
        cells=cells,
        lost=dict(table.missing),
        sampled=None if sample is None or sample > n else int(n),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Raw:
    """What the target is worked out from."""

    values: FloatArray
    extra: FloatArray
    weights: FloatArray
    counts: FloatArray
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Against:
    """What the metric is compared with, and how the rows enter it."""

    value: float
    influence: FloatArray
    paired: FloatArray
    apart: float = 0.0

    def scaled(self, scale: float) -> "_Against":
        return _Against(
            value=scale * self.value,
            influence=scale * self.influence,
            paired=scale * self.paired,
            apart=scale**2 * self.apart,
        )


def _target(target: targets.Target, raw: _Raw) -> _Against:
    """The target's value, each row's influence on it, and how much each row counts in it."""
    n, none = raw.counts.sum(), np.zeros_like(raw.values)
    match target:
        case targets.Constant(value=value):
            found = _Against(value=value, influence=none, paired=none)
        case targets.Custom(estimate=value):
            if np.isnan(raw.extra).any():
                raise ClaimError("The influence of a custom target is missing on some rows.")
            influence = raw.extra - raw.counts @ raw.extra / n
            found = _custom(value, influence, raw)
        case targets.Reference():
            inside = raw.weights * raw.extra
            share = raw.counts @ inside / n
            if share <= 0:
                raise ClaimError("No row of the reference group has every covariate.")
            paired = inside / share
            value = float(raw.counts @ (paired * raw.values) / n)
            found = _Against(value=value, influence=paired * (raw.values - value), paired=paired)
        case _:
            influence = raw.weights * (raw.values - raw.mean)
            found = _Against(value=raw.mean, influence=influence, paired=raw.weights)
    return found.scaled(target.scale)


def _custom(value: float, influence: FloatArray, raw: _Raw) -> _Against:
    """A target of which only the influence is known: what of it follows the metric, by regression.

    For the influence of the average over everyone this is all of it, and the target is treated as
    that average is.
    """
    moved = raw.weights * (raw.values - raw.mean)
    square = float(raw.counts @ moved**2)
    if square <= 0:
        return _Against(value=value, influence=influence, paired=np.zeros_like(moved))
    slope = float(raw.counts @ (influence * moved)) / square
    rest = float(raw.counts @ (influence - slope * moved) ** 2)
    return _Against(
        value=value,
        influence=influence,
        paired=slope * raw.weights,
        # In units of the variance of the metric, which the scale leaves to the critical value.
        apart=rest * float(raw.counts @ raw.weights**2) / float(raw.counts.sum()) / square,
    )


def describe_point(covariates: Sequence[Covariate], point: FloatArray) -> dict[str, object]:
    """The covariates of a row as data."""
    return {c.name: c.decode(float(x)) for c, x in zip(covariates, point, strict=True)}


# --- From covariates to the span of tilts: bandwidths, the kernel, and its factor ---

#: Rows between which distances are taken to find a bandwidth.
_MEASURED = 1000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Span:
    """The kernel and the sections that span its tilts."""

    parts: tuple[KernelPart, ...]
    """The kernel as it is written down."""
    kernel: tilts.Kernel
    """The kernel on encoded covariates."""
    factor: tilts.Factor
    """Its factor on the rows."""
    constant: tuple[str, ...]
    """Covariates that are the same on every row."""


def make_span(rows: ShiftRows, over: TiltKernel, residual: float, max_rank: int) -> Span:
    """Settle the bandwidths, then factor the kernel on the rows."""
    parts: list[KernelPart] = []
    functions: dict[int, KernelFunction] = {}
    for each in over.factors_of():
        made = _parts(rows, each)
        if isinstance(each, OtherKernel):
            functions[len(parts)] = _function(each)
        parts += made
    kernel = build_kernel(parts, [c.name for c in rows.covariates], functions)
    try:
        # Only a kernel that is not known to be one needs the check.
        found = tilts.factor_kernel(
            kernel, rows.points, tolerance=residual, max_rank=max_rank, check=bool(functions)
        )
    except tilts.NotPositiveError as error:
        raise OptionError(f"The kernel cannot be used: {error}.") from error
    except Exception as error:
        if not functions:
            raise
        # a function of the caller's, or its options, may fail in any way
        raise OptionError(f"The kernel failed: {type(error).__name__}: {error}.") from error
    if found.rank == 0:
        raise OptionError("The kernel is zero on every row, so there is no tilt.")
    same = np.ptp(rows.points, axis=0) == 0
    constant = tuple(c.name for c, one in zip(rows.covariates, same, strict=True) if one)
    return Span(parts=tuple(parts), kernel=kernel, factor=found, constant=constant)


def _function(factor: OtherKernel) -> KernelFunction:
    if isinstance(factor.function, str):
        return named_kernel(factor.function, factor.options or {})
    return factor.function


def _parts(rows: ShiftRows, factor: TiltKernel) -> list[KernelPart]:
    levels = {c.name: c.levels for c in rows.covariates}
    numbers = tuple(name for name in factor.columns if levels[name] is None)
    categories = tuple(name for name in factor.columns if levels[name] is not None)
    if isinstance(factor, OtherKernel):
        if categories:
            raise ClaimError(
                f"A kernel by name or function compares numbers; {categories[0]!r} is a category. "
                f'Multiply by gaussian("{categories[0]}"), which tells categories apart.'
            )
        return [_other(factor)]
    if not isinstance(factor, GaussianKernel | LaplaceKernel):
        raise OptionError(f"{type(factor).__name__} is not a kernel that tilts can use.")
    made = []
    if numbers:
        form = "gaussian" if isinstance(factor, GaussianKernel) else "laplace"
        widths = bandwidths_of(factor) or _medians(rows, numbers, form)
        chosen = tuple(widths[name] for name in numbers)
        made.append(KernelPart(form=form, columns=numbers, bandwidths=chosen))
    if categories:
        made.append(KernelPart(form="same", columns=categories))
    return made


def _other(factor: OtherKernel) -> KernelPart:
    if isinstance(factor.function, str):
        return KernelPart(form=factor.function, columns=factor.columns, options=factor.options)
    return KernelPart(form="function", columns=factor.columns)


def _medians(rows: ShiftRows, names: tuple[str, ...], form: str) -> Mapping[str, float]:
    """The median distance between people, spread over the covariates by their own spread."""
    places = [i for i, c in enumerate(rows.covariates) if c.name in names]
    order = [rows.covariates[i].name for i in places]
    x = rows.points[:, places]
    share = rows.counts / rows.counts.sum()
    spread = np.sqrt(np.maximum(share @ (x - share @ x) ** 2, 0.0))
    # A constant covariate has no distances; any bandwidth gives the same kernel.
    unit = np.where(spread > 1e-12 * (np.abs(x).max(axis=0) + 1e-300), spread, np.inf)
    median = _median_distance(x[_spaced(rows.counts)] / unit, form)
    widths = np.where(np.isfinite(unit), unit * median, 1.0)
    return {name: float(width) for name, width in zip(order, widths, strict=True)}


def _spaced(counts: FloatArray) -> IntArray:
    """Rows at equal distances in the order of the rows, those with large counts more often."""
    number = min(_MEASURED, int(counts.sum()))
    wanted = (np.arange(number) + 0.5) / number
    return np.searchsorted(np.cumsum(counts) / counts.sum(), wanted - 1e-12).astype(np.int64)


def _median_distance(x: FloatArray, form: str) -> float:
    total = np.zeros((len(x), len(x)))
    for column in x.T:
        apart = np.abs(column[:, None] - column[None, :])
        total += apart**2 if form == "gaussian" else apart
    distance = (np.sqrt(total) if form == "gaussian" else total)[np.triu_indices(len(x), 1)]
    if not distance.any():
        return 1.0
    median = float(np.median(distance))
    # With mostly equal rows the median is zero; the mean of the distances that there are is not.
    return median if median > 0 else float(distance[distance > 0].mean())
