"""Methods as values: which mathematics an audit uses, with its options."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from equipoise._codec import from_plain, kind
from equipoise._validate import known_name, listing, real, whole, yes_or_no
from equipoise.errors import OptionError
from equipoise.methods import bootstrap

Engine = Literal["auto", "exact", "moments"]
Test = Literal["auto", "mid-p", "exact", "likelihood", "score"]
Family = Literal["sidak", "bonferroni", "pointwise"]
_FAMILIES = ("sidak", "bonferroni", "pointwise")


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
        yes_or_no("scaled", self.scaled)
        yes_or_no("studentized", self.studentized)

    def settled(self, has_spread: bool) -> Self:
        """The options as they apply with an engine that draws a spread, or does not."""
        studentized = self.studentized and self.scaled and has_spread
        default = SHRINK if studentized else math.inf
        shrink = default if self.shrink is None else self.shrink
        return dataclasses.replace(self, studentized=studentized, shrink=shrink)

    def scaling(self, power: float) -> bootstrap.Scaling | bootstrap.Unscaled:
        """The scale of groups, once the options are settled."""
        if not self.scaled or self.shrink is None:
            return bootstrap.Unscaled()
        return bootstrap.Scaling(floor=self.floor, shrink=self.shrink, power=power)


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

    def __post_init__(self) -> None:
        _Resampling.__post_init__(self)
        yes_or_no("step_down", self.step_down)


@kind("all_ranges")
@dataclass(frozen=True, slots=True, kw_only=True)
class AllRanges:
    """Certificates for all ranges of a number with end points in the data, without listing them.

    The unscaled criterion is linear in the group, so one running sum per resample covers millions
    of ranges; it suits ranges that hold a good share of the rows.

    >>> AllRanges().resamples
    1000
    """

    resamples: int = 1000
    """How often the rows are resampled."""

    def __post_init__(self) -> None:
        _check_resampling(self.resamples, "auto")


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
    restricted variance. Tilts have ``auto`` and ``score``, which are the same there."""

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


@kind("band")
@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Bounds for 0/1 metrics by likelihood: simultaneous, and sensible in groups of any size.

    A bound is where the signed root of the group's (profile) likelihood ratio reaches a critical
    value that all groups share: the quantile of the largest of correlated normals.

    >>> Band().calibrated
    True
    """

    draws: int | None = None
    """Draws behind the critical value; None is 5000, fewer for very large collections."""
    calibrated: bool = True
    """Whether the likelihood ratio of small groups is divided by its mean to order 1/n."""

    def __post_init__(self) -> None:
        yes_or_no("calibrated", self.calibrated)
        if self.draws is not None:
            whole("draws", self.draws, least=20)


@kind("likelihood")
@dataclass(frozen=True, slots=True, kw_only=True)
class Likelihood:
    """Empirical likelihood, group by group.

    >>> Likelihood().target
    'profile'
    """

    target: Literal["profile", "plug-in"] = "profile"
    """``profile`` counts the error of an estimated target: 0/1 metrics profile it out, real-valued
    ones use pseudo-values. ``plug-in`` is the published form, which takes the estimate for the
    truth: its intervals cover too rarely against others, and too often against everybody."""
    calibration: Literal["auto", "none"] = "auto"
    """``auto`` corrects the χ² limit in groups under 1000 rows: Bartlett's factor for 0/1 metrics,
    the adjusted likelihood for others."""
    family: Family = "sidak"
    """How `certify` makes intervals hold at once; ``pointwise`` ones hold one at a time."""
    min_rows: int = 30
    """Smaller groups of a real-valued metric get no interval and no p-value: if it is skewed, a few
    rows cannot tell. Groups of a 0/1 metric have an answer at any size."""

    def __post_init__(self) -> None:
        whole("min_rows", self.min_rows)
        known_name("target", self.target, ("profile", "plug-in"))
        known_name("calibration", self.calibration, ("auto", "none"))
        known_name("family", self.family, _FAMILIES)


@kind("euclidean")
@dataclass(frozen=True, slots=True, kw_only=True)
class Euclidean:
    """Euclidean likelihood: only means and variances are needed, for any metric and any target.

    >>> Euclidean().calibration
    'auto'
    """

    calibration: Literal["auto", "none"] = "auto"
    """``auto`` uses Student's distribution with the group's rows less one; ``none`` the normal."""
    family: Family = "sidak"
    """How `certify` makes intervals hold at once; ``pointwise`` ones hold one at a time."""

    def __post_init__(self) -> None:
        known_name("calibration", self.calibration, ("auto", "none"))
        known_name("family", self.family, _FAMILIES)


Method = (
    Bootstrap | Certificates | UnderNull | BootstrapT | Band | Likelihood | Euclidean | AllRanges
)

NAMES: Mapping[str, Method] = {
    "bootstrap": Bootstrap(),
    "bootstrap-published": Bootstrap(studentized=False),
    "bootstrap-unscaled": Bootstrap(scaled=False),
    "certificates": Certificates(),
    "certificates-published": Certificates(studentized=False, step_down=False),
    "all-ranges": AllRanges(),
    "certificates-unscaled": Certificates(scaled=False, step_down=False),
    "under-null": UnderNull(),
    "mid-p": UnderNull(test="mid-p"),
    "exact": UnderNull(test="exact"),
    "likelihood-ratio": UnderNull(test="likelihood"),
    "score": UnderNull(test="score"),
    "bootstrap-t": BootstrapT(),
    "band": Band(),
    "likelihood": Likelihood(),
    "likelihood-plugin": Likelihood(target="plug-in", calibration="none", min_rows=1),
    "euclidean": Euclidean(),
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


def with_resamples(method: Any, resamples: int | None) -> Any:
    """The method with another number of resamples or draws, where it makes any.

    >>> with_resamples(Band(), 200).draws
    200
    """
    if resamples is None:
        return method
    known = {field.name for field in dataclasses.fields(method)}
    names = [name for name in ("resamples", "draws") if name in known]
    if not names:
        raise OptionError(
            f"resamples= has no meaning here: {type(method).__name__} does not resample. Leave it "
            "out."
        )
    return dataclasses.replace(method, **{names[0]: resamples})
