"""Values that `individual` and `select_fair` take: ways to a fair metric, and to its error."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy.typing as npt

from equipoise._codec import from_plain, kind
from equipoise._validate import (
    fraction,
    known_name,
    listing,
    real,
    whole,
)
from equipoise.errors import OptionError
from equipoise.methods import transport
from equipoise.trail import Trail

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class FairMetric:
    """A squared distance blind to the varied features and to what predicts them.

    By default the metric is learnt from the rows audited, and its error is part of the answer: the
    bounds hold for the metric that the whole population would give. In small samples, and at small
    budgets, they are wide. A metric that is known, or learnt elsewhere, gives shorter ones, about
    that metric.

    >>> FairMetric(split=0.3).split
    0.3
    """

    directions: Sequence[Mapping[str, Any]] | None = None
    """What is not to count, if it is known: for each direction a number for each feature, or for
    each level of a category, such as ``{"income": 1.0, "area": {"north": 2.0}}``. Features then
    keep their own units."""
    learn_from: Trail | None = None
    """Another table with the same features to learn from; the metric is then taken as given."""
    split: float | None = None
    """Share of the rows (or clusters), drawn at random, from which the metric is learnt and then
    taken as given; only the others are audited."""
    neighbours: int | None = None
    """Consider only moves to so many nearest kinds of people, and bound what is lost; all of them
    by default, unless there are too many pairs."""

    def __post_init__(self) -> None:
        given = [n for n in ("directions", "learn_from", "split") if getattr(self, n) is not None]
        if len(given) > 1:
            raise OptionError(
                f"A fair metric is known in one way; got {listing(given)}. Keep one of them."
            )
        if self.directions is not None:
            object.__setattr__(self, "directions", _directions(self.directions))
        if self.learn_from is not None and not isinstance(self.learn_from, Trail):
            raise OptionError(
                "learn_from must be a trail, such as equipoise.read(…) gives; got "
                f"{type(self.learn_from).__name__}."
            )
        if self.split is not None:
            fraction("split", self.split)
        if self.neighbours is not None:
            whole("neighbours", self.neighbours)


def _directions(value: object) -> tuple[Mapping[str, object], ...]:
    listed = value if isinstance(value, list | tuple) else ()
    if not listed or not all(isinstance(given, Mapping) and given for given in listed):
        raise OptionError(
            "directions must be a list of dictionaries from features to numbers, such as "
            f"[{{'income': 1.0}}]; got {value!r}."
        )
    return tuple(listed)


#: What moving people costs: nothing, a matrix over the cells, a function of two people, a metric.
Cost = (
    Literal["fair-metric"]
    | FairMetric
    | Sequence[Sequence[float]]
    | npt.NDArray[Any]
    | Callable[[dict[str, Any], dict[str, Any]], float]
    | None
)


@kind("directional")
@dataclass(frozen=True, slots=True, kw_only=True)
class Directional:
    """The limit itself: the smallest derivative over all prices that may be optimal.

    >>> Directional(kappa=2.0).kappa
    2.0
    """

    kappa: float | None = None
    """How many standard errors from optimal a price may be and still count as perhaps optimal;
    √log n by default."""

    def __post_init__(self) -> None:
        if self.kappa is not None and not real("kappa", self.kappa) >= 0:
            raise OptionError(f"kappa must be zero or more; got {self.kappa!r}.")


@kind("m_out_of_n")
@dataclass(frozen=True, slots=True, kw_only=True)
class MOutOfN:
    """The m-out-of-n bootstrap as published.

    >>> MOutOfN(m=100).m
    100
    """

    m: int | None = None
    """Rows, or clusters, in a resample; 2√n by default. It must grow with n, but more slowly."""

    def __post_init__(self) -> None:
        if self.m is not None:
            whole("m", self.m)


@kind("numerical_derivative")
@dataclass(frozen=True, slots=True, kw_only=True)
class NumericalDerivative:
    """Difference quotients along normal vectors, as published.

    >>> NumericalDerivative(step=0.05).step
    0.05
    """

    step: float | None = None
    """Step of the quotient; n^(−1/4) by default. It must vanish, but more slowly than 1/√n."""
    tries: int | None = None
    """Most vectors drawn, of which only those are kept that leave every share at zero or above; 20
    for each draw wanted by default."""

    def __post_init__(self) -> None:
        if self.step is not None and not real("step", self.step) > 0:
            raise OptionError(f"step must be above 0; got {self.step!r}.")
        if self.tries is not None:
            whole("tries", self.tries)


Inferred = Directional | MOutOfN | NumericalDerivative
IndividualMethod = (
    Inferred
    | Literal["auto", "exact", "beta", "normal"]
    | Literal["directional", "bootstrap", "m-out-of-n", "numerical"]
)

#: Names of the methods, as the option takes them.
METHODS = {
    "auto": transport.Method.AUTO,
    "exact": transport.Method.EXACT,
    "beta": transport.Method.BETA,
    "normal": transport.Method.NORMAL,
    "directional": transport.Method.DIRECTIONAL,
    "bootstrap": transport.Method.BOOTSTRAP,
    "m-out-of-n": transport.Method.M_OUT_OF_N,
    "numerical": transport.Method.NUMERICAL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A method with its options, as the mathematics takes them."""

    method: transport.Method
    kappa: float | None = None
    units: int | None = None
    step: float | None = None
    tries: int | None = None


def as_inferred(value: object) -> Chosen:
    """A method given by name, as a value or as plain data."""
    given = from_plain(value) if isinstance(value, Mapping) else value
    match given:
        case Directional():
            return Chosen(method=transport.Method.DIRECTIONAL, kappa=given.kappa)
        case MOutOfN():
            return Chosen(method=transport.Method.M_OUT_OF_N, units=given.m)
        case NumericalDerivative():
            found = transport.Method.NUMERICAL
            return Chosen(method=found, step=given.step, tries=given.tries)
        case str():
            return Chosen(method=METHODS[known_name("method", given, METHODS)])
    raise OptionError(
        f"method is one of {listing(METHODS)}, or Directional(…), MOutOfN(…) or "
        f"NumericalDerivative(…); got {value!r}."
    )
