"""The audited rows and the span of tilts, kept beside a finding so that it can be asked more."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._codec import canonical
from equipoise.errors import EquipoiseError
from equipoise.findings.finding import NOT_STORED, ComparedFinding
from equipoise.findings.words import Ends, Side, ends_text
from equipoise.methods import tilts
from equipoise.methods.numerics import AnyArray, FloatArray, IntArray

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
# ---

#: Bins in which a number is shown.
_BINS = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShiftBasis:
    """What is stored with a finding: enough to estimate any tilt of the span."""

    pivots: FloatArray
    """Encoded covariates of the rows whose kernel sections span the tilts."""
    corner: FloatArray
    """Coordinates of these sections, lower triangular."""
    mean: FloatArray
    """Mean of the features."""
    cross: FloatArray
    """Mean of the features times the metric minus its mean."""
    second: FloatArray
    """Mean of the products of features."""
    centred: FloatArray
    """The same of features minus what the target counts already: the form behind the scale."""
    once: FloatArray
    """The same with sampling weights counted once."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShiftSpace:
    """The rows, for questions that need them; not stored."""

    kernel: tilts.Kernel
    """The kernel on encoded covariates."""
    points: FloatArray
    """Encoded covariates of the rows."""
    features: FloatArray
    """Coordinates of the rows in the span."""
    left: FloatArray
    """Squared norm of what the span leaves out of each row's kernel section."""
    weights: FloatArray
    """Sampling weights with mean one."""
    counts: FloatArray
    """How many rows each row stands for."""
    values: FloatArray
    """The metric minus its mean over everyone."""
    influence: FloatArray
    """First-order effect of each row on the target."""
    paired: FloatArray
    """How much each row counts in the target."""
    apart: float
    """Mean square of the influence that is not paired with the metric, over its variance."""
    clusters: IntArray | None
    """Number of each row's cluster."""

    @property
    def share(self) -> FloatArray:
        """Each row's share of the population."""
        return np.asarray(self.counts * self.weights / self.counts.sum())

    def columns(self, covariates: Sequence[Covariate]) -> dict[str, AnyArray]:
        """The covariates of the rows as arrays by name, for a function that is given to us."""
        found: dict[str, AnyArray] = {}
        for i, covariate in enumerate(covariates):
            codes = self.points[:, i]
            levels = covariate.levels
            found[covariate.name] = (
                codes.copy() if levels is None else np.array([levels[int(c)] for c in codes])
            )
        return found


def profile_of(
    space: ShiftSpace, covariates: Sequence[Covariate], tilt: FloatArray, wanted: FloatArray | None
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
    draws: tuple[tuple[float, float], ...] = dataclasses.field(repr=False)
    """Lowest and highest value over tilts in the span in each resample."""
    basis: ShiftBasis = dataclasses.field(repr=False, compare=False)
    """Averages from which tilts of the span are estimated."""
    space: ShiftSpace | None = dataclasses.field(
        default=None, repr=False, compare=False, metadata=NOT_STORED
    )
    """The rows; not stored, so that a finding read back answers only what needs none."""
