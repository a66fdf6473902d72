"""Methods as values: which mathematics an audit uses, with its options."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from equipoise._codec import from_plain, kind
from equipoise._validate import known_name, listing, real, whole, yes_or_no
from equipoise.errors import OptionError
from equipoise.methods.inference.orthogonal import Residual
from equipoise.methods.published import bootstrap
from equipoise.methods.targets import Before, Constant, Highest, Overall

if TYPE_CHECKING:
    from equipoise.audits._groups.problem import Problem

Engine = Literal["auto", "exact", "moments"]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resampling:
    """Options that published bounds and certificates share."""

    resamples: int = 1000
    """How often the rows are resampled."""
    engine: Engine = "auto"
    """``exact`` resamples rows (from counts where the metric is 0/1); ``moments`` draws totals
    from the normal with the same covariance, at a cost that does not grow with the rows."""
    scaled: bool = True
    """Whether answers adapt to the size of a group; unscaled ones suit only the largest."""
    floor: float = 0.01
    """Share of the rows below which groups get no narrower bounds."""
    shrink: float = math.inf
    """Shrinkage of each group's spread toward the overall one: the larger, the closer; infinite
    uses the overall one."""

    def __post_init__(self) -> None:
        _check_resampling(self.resamples, self.engine)
        _check_scale(self.floor, self.shrink)
        yes_or_no("scaled", self.scaled)

    def scaling(self, power: float) -> bootstrap.Scaling | bootstrap.Unscaled:
        """The scale of groups."""
        if not self.scaled:
            return bootstrap.Unscaled()
        return bootstrap.Scaling(floor=self.floor, shrink=self.shrink, power=power)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """Methods that draw the scores of all groups together."""

    resamples: int | None = None
    """Draws of all groups' scores; None is 10,000, fewer for very large collections."""

    def __post_init__(self) -> None:
        if self.resamples is not None:
            whole("resamples", self.resamples, least=20)


@kind("pivotal")
@dataclass(frozen=True, slots=True, kw_only=True)
class Pivotal(_Drawn):
    """The default of every group audit: a pivot per group, and one joint law for all of them.

    Counts have the tails of counts, exact where they are small; real-valued metrics are measured
    by each group's own spread, corrected for skewness; weights and clusters count as what they are
    worth. All groups' scores are drawn together for the one critical value or adjustment they
    share.

    >>> Pivotal().resamples is None
    True
    """


@kind("bootstrap")
@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap(_Resampling):
    """The bootstrap as published: simultaneous bounds in `certify`, p-values in `flag`.

    Its error rates do not hold in small groups or with groups of unequal spread.

    >>> Bootstrap(resamples=500).floor
    0.01
    """


@kind("stepped")
@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates(_Drawn):
    """Yes-or-no certificates: more of them than bounds give, but no numbers.

    The scores of the bounds, stepped down: certified groups are dropped and the rest looked at
    again, at the same error rate.

    >>> Certificates().resamples is None
    True
    """


@kind("certificate_bootstrap")
@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapCertificates(_Resampling):
    """Certificates by the bootstrap as published.

    A group far from the limit needs more rows, because the error of its share counts too.

    >>> BootstrapCertificates().step_down
    False
    """

    step_down: bool = False
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


@kind("betting")
@dataclass(frozen=True, slots=True, kw_only=True)
class Betting:
    """Exact bounds for a bounded metric: any number of rows, any distribution, wider by two fifths.

    Every mean is bounded by betting against it, groups and targets apart, and Bonferroni's
    inequality joins them; nothing is approximated.

    >>> Betting()
    Betting()
    """


Method = (
    Pivotal
    | Certificates
    | Bootstrap
    | BootstrapCertificates
    | Likelihood
    | Euclidean
    | Betting
    | AllRanges
)

M = TypeVar("M")
NAMES: Mapping[str, Method] = {
    "pivotal": Pivotal(),
    "certificates": Certificates(),
    "bootstrap": Bootstrap(),
    "bootstrap-unscaled": Bootstrap(scaled=False),
    "certificates-published": BootstrapCertificates(),
    "certificates-unscaled": BootstrapCertificates(scaled=False),
    "all-ranges": AllRanges(),
    "likelihood": Likelihood(),
    "likelihood-plugin": Likelihood(target="plug-in", calibration="none", min_rows=1),
    "euclidean": Euclidean(),
    "betting": Betting(),
}


def as_method(value: object, allowed: tuple[type[Method], ...], verb: str) -> Method:
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


def with_resamples(method: M, resamples: int | None) -> M:
    """The method with another number of resamples, where it makes any.

    >>> with_resamples(Pivotal(), 200).resamples
    200
    """
    if resamples is None:
        return method
    changed: Any = method
    if "resamples" not in {field.name for field in dataclasses.fields(changed)}:
        raise OptionError(
            f"resamples= has no meaning here: {type(method).__name__} does not resample. Leave it "
            "out."
        )
    made: M = dataclasses.replace(changed, resamples=resamples)
    return made


# --- How far error rates can be trusted ---


def exactness(problem: "Problem", *, many: bool) -> str:
    """How far the error rate can be trusted, in words."""
    core, noun = problem.core, problem.noun
    if problem.measured is not None:
        return problem.measured.trust(many, noun)
    if problem.trust:
        return problem.trust
    if isinstance(core.comparison, Residual):
        learnt = "; predictions come from other folds" if problem.claim.learnt else ""
        return (
            "asymptotic in the rows whose membership the factors leave open, by orthogonal scores"
            f"{learnt}; {noun}s are joined by normal scores with fitted correlations"
        )
    if problem.median is not None or problem.medians:
        how = "widened by what the error of the median adds (asymptotic)"
        if problem.medians:
            how = f"for all {len(problem.medians) + 1} scores that may be the median (99 %)"
        return f"as that of counts above a known score, {how}; {noun}s are joined as if independent"
    if problem.claim.given:
        return (
            "asymptotic in the rows of all strata together, however small each is (measured from 3 "
            f"strata of 300 rows to 500 of 3); {noun}s are joined by normal scores"
        )
    if isinstance(problem.target, Highest):
        return (
            f"as that of each pair of {noun}s; which is the highest is left open, and {noun}s are "
            "joined as if independent"
        )
    joint = f"; {noun}s are joined by normal scores with fitted correlations" if many else ""
    if problem.cells.clusters is not None:
        return (
            "asymptotic in the number of clusters, guarded by leaving each out once and by their "
            f"effective number{joint}"
        )
    if isinstance(problem.target, Before) and problem.cells.zero_one:
        return (
            "asymptotic in the rows that count before or after but not at both times, corrected "
            "for skewness; where they are worth fewer than 10, or skewed, bounds are those of "
            f"binomials and hold for any number{joint}"
        )
    if not core.counted:
        return (
            f"asymptotic, by each {noun}'s own spread corrected for skewness, guarded by not "
            f"answering {noun}s too skewed for their rows{joint}"
        )
    if not problem.cells.zero_one:
        known = ""
        if isinstance(problem.target, Constant):
            # enumerated in validation/inference/change.py
            known = ": over all tables of 3 to 60 rows the error is at most 1.01 times the nominal"
        return f"near exact in each group, by tails of counts of its few values{known}{joint}"
    if problem.cells.weighted:
        return f"asymptotic, by counts that weighted rows are worth{joint}"
    if isinstance(problem.target, Constant):
        return f"exact in each group, by binomial tails{joint}"
    drawn = ""
    if isinstance(problem.target, Overall):
        # enumerated too, with the group's size drawn: a ratio at rates of 0.99 and 0.33 is worst
        drawn = " (0.4 points if the groups' shares are drawn as well)"
    return (
        "near exact in each group: over all tables of up to 40 rows a part the error exceeds the "
        f"nominal one by less than half a point{drawn}{joint}"
    )
