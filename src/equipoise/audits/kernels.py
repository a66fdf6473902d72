"""Classes of tilts as values: smooth in some covariates (kernels), or monotone in one."""

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from equipoise._codec import Written, from_plain, kind, to_plain
from equipoise._validate import (
    LARGEST,
    columns_named,
    known_keywords,
    known_name,
    listing,
    whole,
)
from equipoise.errors import ClaimError, OptionError

if TYPE_CHECKING:
    from equipoise.findings.shift_space import KernelFunction

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
