"""Methods as values: which mathematics an audit uses, with its options."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from equipoise._codec import from_plain, kind
from equipoise._validate import known_name, listing, real, whole
from equipoise.errors import OptionError

Engine = Literal["auto", "exact", "moments"]
Test = Literal["auto", "mid-p", "exact", "likelihood", "score"]


def _check_resampling(resamples: int, engine: str) -> None:
    whole("resamples", resamples, least=20)
    known_name("engine", engine, ("auto", "exact", "moments"))


def _check_scale(floor: float, shrink: float | None) -> None:
    if not 0 < real("floor", floor) <= 1:
        raise OptionError(f"floor must lie in (0, 1]; got {floor!r}.")
    if shrink is not None and not shrink >= 0:
        raise OptionError(f"shrink must be at least 0; got {shrink!r}.")


#: Shrinkage that keeps the coverage of skewed metrics near nominal and the bounds narrow.
SHRINK = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resampling:
    """Options that bounds and certificates share."""

    resamples: int = 1000
    """How often the rows are resampled."""
    engine: Engine = "auto"
    """``exact`` resamples rows (from counts where the metric is 0/1); ``moments`` draws totals
    from the normal with the same covariance, at a cost that does not grow with the rows."""
    scaled: bool = True
    """Whether answers adapt to the size of a group; unscaled ones suit only the largest."""
    studentized: bool = True
    """Whether each resample is measured in units of its own spread, which keeps the error rate of
    skewed metrics. Engines that draw no spread (moments, clusters) do without, and say so."""
    floor: float = 0.01
    """Share of the rows below which groups get no narrower bounds."""
    shrink: float | None = None
    """Shrinkage of each group's spread toward the overall one: the larger, the closer; infinite
    uses the overall one. None picks 0.2 for studentized answers and infinity for others."""

    def __post_init__(self) -> None:
        _check_resampling(self.resamples, self.engine)
        _check_scale(self.floor, self.shrink)

    def settled(self, has_spread: bool) -> Self:
        """The options as they apply with an engine that draws a spread, or does not."""
        studentized = self.studentized and self.scaled and has_spread
        default = SHRINK if studentized else math.inf
        shrink = default if self.shrink is None else self.shrink
        return dataclasses.replace(self, studentized=studentized, shrink=shrink)


@kind("bootstrap")
@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap(_Resampling):
    """The bootstrap: simultaneous bounds in `certify`, p-values as published in `flag`.

    The published bounds are ``Bootstrap(studentized=False)``, with one scale for all resamples.

    >>> Bootstrap(resamples=500).floor
    0.01
    """


@kind("certificate_bootstrap")
@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates(_Resampling):
    """Yes-or-no certificates by the bootstrap: more of them than bounds give, but no numbers.

    Studentized, they are the bounds stepped down. ``Certificates(studentized=False)`` and
    ``Certificates(scaled=False)`` are the published forms, in which a group far from the limit
    needs more rows, because the error of its share counts too.

    >>> Certificates().step_down
    True
    """

    step_down: bool = True
    """Drop certified groups and look again at the rest: the same error rate, more certificates."""


@kind("under_null")
@dataclass(frozen=True, slots=True, kw_only=True)
class UnderNull:
    """Tests of 0/1 metrics whose spread is taken under the null: right in groups of any size.

    >>> UnderNull().test
    'auto'
    """

    test: Test = "auto"
    """``auto`` is mid-p for a known target and, for an estimated one, profile likelihood but no
    smaller than mid-p; ``exact`` never errs but needs a known target; ``score`` uses the
    restricted variance."""

    def __post_init__(self) -> None:
        known_name("test", self.test, ("auto", "mid-p", "exact", "likelihood", "score"))


@kind("bootstrap_t")
@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapT:
    """Tests of real-valued metrics: the studentised disparity against its own resamples.

    Rows are always resampled one by one, since every resample needs a spread of its own. With a
    cluster column the spread comes from leaving out one cluster at a time, without resampling.

    >>> BootstrapT().min_rows
    20
    """

    resamples: int = 2000
    """How often the rows are resampled."""
    min_rows: int = 20
    """Smaller groups are not tested: their spread cannot be estimated."""

    def __post_init__(self) -> None:
        _check_resampling(self.resamples, "exact")
        whole("min_rows", self.min_rows)


Method = Bootstrap | Certificates | UnderNull | BootstrapT

NAMES: Mapping[str, Method] = {
    "bootstrap": Bootstrap(),
    "bootstrap-published": Bootstrap(studentized=False),
    "bootstrap-unscaled": Bootstrap(scaled=False),
    "certificates": Certificates(),
    "certificates-published": Certificates(studentized=False, step_down=False),
    "certificates-unscaled": Certificates(scaled=False, step_down=False),
    "under-null": UnderNull(),
    "mid-p": UnderNull(test="mid-p"),
    "exact": UnderNull(test="exact"),
    "likelihood-ratio": UnderNull(test="likelihood"),
    "score": UnderNull(test="score"),
    "bootstrap-t": BootstrapT(),
}


def as_method(value: Any, allowed: tuple[type, ...], verb: str) -> Any:
    """A method given as a value, by name or as plain data, if the verb can use it."""
    if isinstance(value, Mapping):
        value = from_plain(value)
    if isinstance(value, str):
        usable = [name for name, method in NAMES.items() if isinstance(method, allowed)]
        value = NAMES[known_name(f"{verb} method", value, usable)]
    if not isinstance(value, allowed):
        names = [cls.__name__ for cls in allowed]
        raise OptionError(f"{verb} takes a method of {listing(names)}; got {value!r}.")
    return value
