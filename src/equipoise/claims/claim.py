"""Claims: a metric, a target and a group collection joined into one question.

The target is what a group's metric is compared with.
"""

import dataclasses
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from equipoise._codec import Scalar, Written, canonical, from_plain, kind, made_from
from equipoise._validate import known_keywords, known_name, listing, modest
from equipoise.claims.formula import parse
from equipoise.claims.groups import (
    Answers,
    AttributeLike,
    Binned,
    Dimension,
    Factors,
    Graded,
    Groups,
    GroupsLike,
    Intersections,
    Levels,
    Ordered,
    Overlap,
    Tilt,
    as_dimension,
    as_groups,
    bins,
    everyone,
    named_level,
)
from equipoise.claims.measure import one_class
from equipoise.claims.metric import (
    METRICS,
    Metric,
    MetricLike,
    as_metric,
    false_positive_rate,
    residual,
    true_positive_rate,
)
from equipoise.errors import ClaimError


@dataclass(frozen=True, slots=True, kw_only=True)
class Target(Written):
    """What a group's metric is compared with; ``0.8 * target`` scales it.

    >>> import equipoise as eq
    >>> (0.8 * eq.overall()).words
    '0.8 × everyone'
    """

    scale: float = 1.0
    """Factor applied to the target, as in the four-fifths rule."""

    def __post_init__(self) -> None:
        modest("The scale of a target", self.scale)

    def __mul__(self, factor: float) -> "Target":
        """The target scaled by ``factor``."""
        return dataclasses.replace(self, scale=self.scale * modest("The scale of a target", factor))

    __rmul__ = __mul__

    @property
    def words(self) -> str:
        """The target as it reads in a sentence."""
        return self._words() if self.scale == 1 else f"{self.scale:g} × {self._words()}"

    def _words(self) -> str:
        raise NotImplementedError


@kind("constant")
@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Target):
    """A known number."""

    value: float

    def __post_init__(self) -> None:
        Target.__post_init__(self)
        object.__setattr__(self, "value", modest("The target", self.value))

    def _words(self) -> str:
        return f"{self.value:g}"


@kind("overall")
@dataclass(frozen=True, slots=True, kw_only=True)
class Overall(Target):
    """The metric over everyone."""

    def _words(self) -> str:
        return "everyone"


@kind("reference")
@dataclass(frozen=True, slots=True, kw_only=True)
class Reference(Target):
    """The metric of one named group."""

    where: "Mapping[str, Scalar | Mapping[str, Scalar]]"
    """Attribute → value of the reference group, or → ends of a range."""

    def __post_init__(self) -> None:
        Target.__post_init__(self)
        if not isinstance(self.where, Mapping) or not self.where:
            raise ClaimError(
                'reference needs at least one attribute, such as reference(sex="Male").'
            )
        object.__setattr__(self, "where", _plain_where(self.where))

    def __hash__(self) -> int:
        # A mapping has no hash; in their one plain form, equal groups have equal texts.
        return hash((self.scale, repr(sorted(self.where.items(), key=repr))))

    def _words(self) -> str:
        return ", ".join(_level_words(name, value) for name, value in self.where.items())


@kind("complement")
@dataclass(frozen=True, slots=True, kw_only=True)
class Complement(Target):
    """The metric of everyone outside the group."""

    def _words(self) -> str:
        return "everyone else"


@kind("highest")
@dataclass(frozen=True, slots=True, kw_only=True)
class Highest(Target):
    """The metric of whichever group has the highest, among those formed by the same attributes."""

    share: float = 0.0
    """Groups with a smaller share of the rows do not count as the highest."""

    def __post_init__(self) -> None:
        Target.__post_init__(self)
        if not 0 <= modest("share", self.share) < 1:
            raise ClaimError(f"share must lie between 0 and 1, such as 0.02; got {self.share!r}.")

    def _words(self) -> str:
        least = f" of at least {100 * self.share:g} % of the rows" if self.share else ""
        return f"the highest group{least}"


@kind("custom")
@dataclass(frozen=True, slots=True, kw_only=True)
class Custom(Target):
    """An estimate made elsewhere, with its influence values so that its error is counted."""

    estimate: float
    influence: str
    """Formula or column of each row's influence on the estimate (mean zero over the rows)."""

    def __post_init__(self) -> None:
        Target.__post_init__(self)
        object.__setattr__(self, "estimate", modest("The estimate", self.estimate))
        parse(self.influence)

    def _words(self) -> str:
        return f"the estimate {self.estimate:g}"


@known_keywords
def constant(value: float) -> Constant:
    """Compare with a known number.

    >>> constant(0.1).words
    '0.1'
    """
    return Constant(value=value)


@known_keywords
def overall() -> Overall:
    """Compare each group with everyone.

    >>> overall().words
    'everyone'
    """
    return Overall()


@known_keywords
def complement() -> Complement:
    """Compare each group with everyone outside it.

    >>> complement().words
    'everyone else'
    """
    return Complement()


@known_keywords
def highest(share: float = 0.0) -> Highest:
    """Compare each group with the one whose metric is highest, whichever that is.

    Only groups formed by the same attributes are compared: sexes with sexes, combinations of race
    and sex with such combinations. Groups with less than ``share`` of the rows are not taken for
    the highest. That the highest is picked after looking is accounted for, ties included.

    >>> highest(0.02).words
    'the highest group of at least 2 % of the rows'
    """
    return Highest(share=share)


@known_keywords
def reference(where: Mapping[str, object] | None = None, /, **attributes: object) -> Reference:
    """Compare with one group, named by its attributes.

    A column whose name is no Python name goes into a dictionary. Where groups are ranges of a
    number, one is given by its ends: ``reference(age={"from": 25, "below": 45})``.

    >>> (0.8 * reference(race="Caucasian")).words
    '0.8 × Caucasian'
    """
    if where is not None and not isinstance(where, Mapping):
        raise ClaimError(
            f'reference takes attributes, such as reference(sex="Male"); got {where!r}.'
        )
    return made_from(Reference, where={**(where or {}), **attributes})


@known_keywords
def custom(estimate: float, influence: str) -> Custom:
    """Compare with an estimate of your own, whose sampling error is then accounted for.

    ``influence`` is a column or formula: each row's first-order effect on the estimate, averaging
    zero over the rows. The estimate's variance is the mean square of the influence divided by n.

    >>> custom(0.31, "influence").words
    'the estimate 0.31'
    """
    return Custom(estimate=estimate, influence=influence)


_Number = float | numbers.Real | np.floating | np.integer
TargetLike = Target | Literal["overall", "complement", "highest"] | _Number | Mapping[str, object]
"""A target as claims take it: a value, a number, the word for one, or its plain form."""


def as_target(value: object) -> Target:
    """A target given as a value, as a number, or by the word for one without options."""
    if isinstance(value, Target):
        return value
    if isinstance(value, str) and value in _BY_WORD:
        return _BY_WORD[value]()
    if isinstance(value, Mapping) and ("kind" in value or set(value) == {"number"}):
        return as_target(from_plain(value))
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return made_from(Constant, value=value)
    raise ClaimError(
        "A target is a number, overall(), complement(), highest(), reference(attribute=value) "
        f"or custom(…); got {value!r}."
    )


_BY_WORD: dict[str, Callable[[], Target]] = {
    "overall": overall,
    "complement": complement,
    "highest": highest,
}


def _plain_where(where: Mapping[str, object]) -> dict[str, object]:
    return {str(name): _plain_level(name, value) for name, value in where.items()}


def _plain_level(name: object, value: object) -> object:
    if isinstance(value, Mapping):
        return {end: canonical(number) for end, number in value.items()}
    # as text, which is what `canonical` makes of the unknown, a pair would match no group
    if hasattr(value, "__len__") and not isinstance(value, str):
        raise ClaimError(
            f"A group has one value of {name!r}, or one range such as {{'from': 25, 'below': 45}} "
            f"(or 'to', where the end is included); got {value!r:.80}."
        )
    return canonical(value)


def _level_words(name: str, value: Scalar | Mapping[str, Scalar]) -> str:
    if isinstance(value, str):
        return named_level(name, value)
    if isinstance(value, bool):
        return name if value else f"not {name}"
    if isinstance(value, Mapping):
        return " ".join([name, *(f"{word} {end}" for word, end in value.items())])
    return f"{name} missing" if value is None else f"{name} {value}"


WeightsName = Literal["mantel-haenszel", "group", "population"]
UnknownName = Literal["group", "random", "worst"]
UnlabelledName = Literal["out", "worst"]
#: Factors as claims take them: names of columns, attributes cut into ranges, or factors(…).
GivenLike = str | Factors | Sequence[AttributeLike | Factors]

# A plan file may leave out what `gap` may: everyone, against everyone.
_UNSAID: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Written):
    """One question about every group of a collection.

    Made by [`gap`][equipoise.gap] and [`ratio`][equipoise.ratio].

    >>> import equipoise as eq
    >>> claim = eq.gap("selection_rate", across="sex", target=0.5)
    >>> claim.metric, claim.words
    (Metric(selection_rate), 'selection rate against 0.5')
    """

    metric: Metric
    across: Groups = _UNSAID
    target: Target = _UNSAID
    given: tuple[Dimension | Factors, ...] = ()
    """Legitimate factors: people are compared with others who share them."""
    weights: WeightsName = "mantel-haenszel"
    """What strata of these factors are weighed by."""
    unknown: UnknownName = "group"
    """What is made of people whose attributes are unknown: a group of their own, nobody's (as if
    missing at random), or whatever would be worst."""
    unlabelled: UnlabelledName = "out"
    """What is made of rows without a label, which a metric of labels needs: left out, or whatever
    would be worst."""

    @property
    def words(self) -> str:
        """The question as it reads in a sentence."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        # The one place where names become values: functions and plan files both come through here.
        whom = everyone() if self.across is None else as_groups(self.across)
        given = _factors(self.given)
        # with others who share their factors, which a group's own rows do not tell
        learnt, measured = any(isinstance(one, Factors) for one in given), as_metric(self.metric)
        usual: Target = complement() if learnt else overall()
        usual = usual if measured.change is None else Constant(value=0)
        whose = usual if self.target is None else as_target(self.target)
        object.__setattr__(self, "metric", measured)
        object.__setattr__(self, "across", whom)
        object.__setattr__(self, "target", whose)
        object.__setattr__(self, "given", given)
        known_name("weights", self.weights, get_args(WeightsName), ClaimError)
        known_name("unknown", self.unknown, get_args(UnknownName), ClaimError)
        known_name("unlabelled", self.unlabelled, get_args(UnlabelledName), ClaimError)
        self._check_given()
        if measured.overlapping and (self.given or whom.weighs or whose != Constant(value=0)):
            raise ClaimError(
                f"The {measured.words} compares rates of two sets of rows: it takes groups and "
                "the target 0, no given=, no tilts."
            )
        self._check_unknown()
        self._check_unlabelled()
        self._check_measure()

    def _check_measure(self) -> None:
        """Refuse what measures that are no means cannot be asked so far."""
        if self.metric.measure is None:
            return
        asked = {
            "given=": bool(self.given),
            "unknown=": self.unknown != "group",
            "unlabelled=": self.unlabelled != "out",
            "tilts": self.across.weighs,
            "custom target": isinstance(self.target, Custom),
        }
        for what, there in asked.items():
            if there:
                raise ClaimError(
                    f"The {self.metric.words} is no mean of rows, and takes no {what}."
                )
        if set(self.kinds()) & set(self.across.dimensions()):
            raise ClaimError(
                f"The {self.metric.words} is made of these ranges of the score, so groups cannot "
                "be formed by them as well. Choose other ranges."
            )

    def _check_given(self) -> None:
        """Refuse factors where nobody could be compared with others who share them."""
        if not self.given:
            if self.weights != "mantel-haenszel":
                raise ClaimError("weights= says how strata count; it needs given=….")
            return
        own = {dimension.name for dimension in self.across.dimensions()}
        both = [name for name in self.given_columns if name in own]
        if both:
            raise ClaimError(
                f"{listing(both)} forms the groups, so everybody who shares it is in the same one. "
                "Leave it out of given=."
            )
        if self.across.weighs or not isinstance(self.target, Overall | Complement | Reference):
            raise ClaimError(
                "given= compares groups with other people: with everyone, complement() or "
                "reference(…)."
            )
        if self.learnt and (isinstance(self, Ratio) or isinstance(self.target, Overall)):
            raise ClaimError(
                "factors(…) takes gap(…) against complement() or reference(…). For ratios, and "
                "against everyone, give columns that form strata."
            )
        if self.learnt and self.target.scale != 1:
            raise ClaimError("factors(…) takes a target that is not scaled.")
        if isinstance(self.target, Overall) and self.target.scale != 1:
            raise ClaimError("A scaled target given factors needs complement() or reference(…).")
        if isinstance(self.target, Reference):
            named = [name for name in self.given_columns if name in self.target.where]
            if named:
                raise ClaimError(f"The reference is named by {listing(named)}, which is given.")

    def _check_unknown(self) -> None:
        """Refuse questions whose answer nobody knows if some people's attributes are unknown."""
        if self.unknown == "group":
            return
        asked = f"unknown={self.unknown!r}"
        if not isinstance(self.across, Intersections):
            raise ClaimError(
                f"{asked} is about groups formed by values of attributes: across='race', or "
                "intersections(…)."
            )
        if self.given:
            raise ClaimError(f"{asked} takes no given= so far; leave one of them out.")
        if isinstance(self.target, Reference) and None in self.target.where.values():
            raise ClaimError(f"The unknown are no reference with {asked}.")
        if self.unknown == "worst" and isinstance(self.target, Highest | Custom):
            raise ClaimError(
                f"{asked} compares with a number, everyone, complement() or reference(…); got "
                f"{self.target.words}."
            )

    def _check_unlabelled(self) -> None:
        """Refuse questions that missing labels leave without an answer."""
        if self.unlabelled == "out":
            return
        if "label" not in self.metric.names():
            raise ClaimError(
                f"unlabelled='worst' is about labels, and {self.metric.name!r} needs none."
            )
        if self.given or self.unknown != "group" or self.across.weighs:
            raise ClaimError(
                "unlabelled='worst' takes plain groups so far: no given=, unknown= or tilts."
            )
        if not isinstance(self.target, Complement | Reference | Constant):
            raise ClaimError(
                "unlabelled='worst' compares with others or with a number: complement(), "
                f"reference(…) or a constant; got {self.target.words}. A group cannot be at its "
                "lowest while everyone, it among them, is at the highest."
            )

    @property
    def learnt(self) -> Factors | None:
        """The factors from which outcome and membership are predicted, if there are such."""
        return next((one for one in self.given if isinstance(one, Factors)), None)

    @property
    def given_columns(self) -> tuple[str, ...]:
        """The columns that are given."""
        each = (one.columns if isinstance(one, Factors) else (one.name,) for one in self.given)
        return tuple(dict.fromkeys(name for names in each for name in names))

    @property
    def given_words(self) -> str:
        """The factors as they read after a question; empty without any."""
        return f", given {', '.join(self.given_columns)}" if self.given else ""

    @property
    def unknown_words(self) -> str:
        """What is made of the unknown, as it reads after a question; empty as usual."""
        said = {"random": ", of those who are known", "worst": ", whoever the unknown are"}
        worst = self.unlabelled == "worst"
        return said.get(self.unknown, "") + (", whatever the missing labels are" if worst else "")

    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions of the groups, of the reference group, and of what is given."""
        needed = list(self.across.dimensions())
        if isinstance(self.target, Reference):
            # A tilt may be called like a column, but it does not cut by it.
            cut_by = {dimension.name for dimension in needed if not isinstance(dimension, Tilt)}
            needed += [Levels(name) for name in self.target.where if name not in cut_by]
        if not self.learnt:
            needed += [one for one in self.given if not isinstance(one, Factors)]
        if self.metric.overlapping is not None:
            needed.append(Overlap(self.metric.overlapping))
        needed += self.kinds()
        return tuple(dict.fromkeys(needed))

    def kinds(self) -> tuple[Dimension, ...]:
        """What rows are cut by besides, where a measure needs more than totals of groups."""
        measure = self.metric.measure
        if measure is None:
            return ()
        if measure.classes:
            return Answers("label"), Answers("prediction")
        if measure.edges:
            return (Ordered("score", edges=measure.edges, role=True),)
        return () if measure.graded is None else (Graded(measure.graded),)


@kind("gap")
@dataclass(frozen=True, slots=True, kw_only=True)
class Gap(Claim):
    """The difference between each group's metric and the target."""

    @property
    def words(self) -> str:
        """The question as it reads in a sentence."""
        return (
            f"{self.metric.words} against {self.target.words}{self.given_words}{self.unknown_words}"
        )


@kind("ratio")
@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio(Claim):
    """The ratio of each group's metric to the target."""

    def __post_init__(self) -> None:
        if self.across is None:
            raise ClaimError("A ratio needs groups: pass across=….")
        if as_metric(self.metric).change is not None:
            raise ClaimError("A change is a difference: pass gap(change(…), across=…).")
        Claim.__post_init__(self)
        target = self.target
        if target.scale == 0 or (isinstance(target, Constant) and target.value == 0):
            raise ClaimError("A ratio needs a target that is not zero.")
        if self.given and isinstance(target, Overall):
            raise ClaimError("A ratio given factors needs complement() or reference(…).")

    @property
    def words(self) -> str:
        """The question as it reads in a sentence."""
        compared = f"{self.metric.words} as a share of {self.target.words}"
        return f"{compared}{self.given_words}{self.unknown_words}"


@kind("together")
@dataclass(frozen=True, slots=True, kw_only=True)
class Together(Written):
    """Several claims asked as one: the guarantee holds for all of them at once."""

    name: str
    claims: tuple[Claim, ...]

    def __post_init__(self) -> None:
        if not self.claims:
            raise ClaimError(f"{self.name!r} joins no claim at all.")
        object.__setattr__(self, "claims", tuple(as_claim(claim) for claim in self.claims))


@known_keywords
def gap(
    metric: MetricLike,
    *,
    across: GroupsLike | None = None,
    target: TargetLike | None = None,
    given: GivenLike = (),
    weights: WeightsName = "mantel-haenszel",
    unknown: UnknownName = "group",
    unlabelled: UnlabelledName = "out",
) -> Gap:
    """How far each group's metric lies from the target (everyone, unless said otherwise).

    Without ``across`` there is one group, everyone, which is what `equipoise.shift` starts from.

    With ``given`` people are compared with others who share these legitimate factors, such as the
    department they applied to. Strata are weighed by ``"mantel-haenszel"`` (where the data know
    most), by the ``"group"``'s own composition or by the ``"population"``'s. Factors that form no
    strata, such as an income, go into `equipoise.factors`.

    ``unknown`` says what becomes of people whose attribute is missing: ``"group"`` makes them a
    group of their own; ``"random"`` leaves them out of the groups that the attribute forms, as if
    it were missing at random; ``"worst"`` allows for every group they may belong to. Rows without
    a label are left out of error rates; ``unlabelled="worst"`` allows for either label instead.

    >>> import equipoise as eq
    >>> eq.gap(eq.false_positive_rate, across=eq.intersections("race", "sex")).words
    'false positive rate against everyone'
    """
    return made_from(
        Gap,
        metric=metric,
        across=across,
        target=target,
        given=given,
        weights=weights,
        unknown=unknown,
        unlabelled=unlabelled,
    )


@known_keywords
def ratio(
    metric: MetricLike,
    *,
    across: GroupsLike,
    target: TargetLike | None = None,
    given: GivenLike = (),
    weights: WeightsName = "mantel-haenszel",
    unknown: UnknownName = "group",
    unlabelled: UnlabelledName = "out",
) -> Ratio:
    """Each group's metric divided by the target; other options as in `gap`.

    >>> import equipoise as eq
    >>> eq.ratio(eq.selection_rate, across="sex", target=eq.reference(sex="Male")).words
    'selection rate as a share of Male'
    """
    return made_from(
        Ratio,
        metric=metric,
        across=across,
        target=target,
        given=given,
        weights=weights,
        unknown=unknown,
        unlabelled=unlabelled,
    )


def _factors(given: object) -> tuple[Dimension | Factors, ...]:
    listed = [given] if isinstance(given, str | Binned | Factors) else given
    if not isinstance(listed, list | tuple):
        raise ClaimError(f"given takes names of columns, such as ['department']; got {given!r}.")
    each = (one if isinstance(one, Factors) else as_dimension(one) for one in listed)
    return tuple(dict.fromkeys(each))


@known_keywords
def equalized_odds(*, across: GroupsLike, target: TargetLike | None = None) -> Together:
    """False and true positive rates, both against the target, as one question.

    >>> [claim.metric.name for claim in equalized_odds(across="sex").claims]
    ['false_positive_rate', 'true_positive_rate']
    """
    # Hardt, Price and Srebro (2016) ask that both rates be equal, so either may harm a group.
    pair = tuple(
        gap(m, across=across, target=target) for m in (false_positive_rate, true_positive_rate)
    )
    return Together(name="equalized odds", claims=pair)


@known_keywords
def each_class(
    metric: MetricLike,
    classes: Iterable[str | float | bool],
    *,
    across: GroupsLike,
    target: TargetLike | None = None,
) -> Together:
    """A metric of label and prediction, each class against the rest, as one family of claims.

    Bounds and flags then hold for all groups and all classes at once.

    >>> family = each_class("true_positive_rate", ["cat", "dog"], across="place")
    >>> [claim.metric.name for claim in family.claims]
    ['true_positive_rate of cat', 'true_positive_rate of dog']
    """
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise ClaimError(f"classes are a list such as ['cat', 'dog']; got {classes!r}.")
    metrics = [one_class(metric, each) for each in dict.fromkeys(classes)]
    parts = tuple(gap(one, across=across, target=target) for one in metrics)
    return Together(name=f"{as_metric(metric).words} of each class", claims=parts)


@known_keywords
def multicalibration(
    *, across: GroupsLike, edges: Iterable[float] | None = None, number: int = 10
) -> Gap:
    """Whether outcome minus score averages zero in every group, in every range of the score.

    >>> multicalibration(across="sex", number=5).words
    'residual against 0'
    """
    cut = bins(across, edges=edges, number=number)
    return Gap(metric=residual, across=cut, target=Constant(value=0))


def as_claim(value: object) -> Claim:
    """A claim given as a value or as plain data."""
    made = from_plan(value) if isinstance(value, Mapping) else value
    if isinstance(made, Claim):
        return made
    if isinstance(made, Together):
        raise ClaimError(
            f"{made.name!r} is {len(made.claims)} claims; this asks one at a time. "
            "Pass each of its .claims."
        )
    raise ClaimError(
        f"Expected a claim, such as gap(false_positive_rate, across=…); got {value!r}."
    )


def parts_of(claim: Claim | Together) -> tuple[Claim, ...]:
    """The claims that are asked at once; one alone is its only part."""
    return claim.claims if isinstance(claim, Together) else (as_claim(claim),)


@known_keywords
def from_plan(data: object) -> Any:
    """Any metric, target, group collection or claim from its plain form.

    >>> import equipoise as eq
    >>> claim = eq.gap("accuracy", across=eq.intersections("race"))
    >>> eq.from_plan(claim.to_plan()) == claim
    True
    """
    if isinstance(data, str):
        return as_metric(data)
    if not isinstance(data, Mapping) or "kind" not in data:
        raise ClaimError(
            f"Expected the name of a metric ({', '.join(METRICS)}) or a mapping with 'kind'; "
            f"got {data!r}."
        )
    return from_plain(data)


# --- Measures that are no means ---


def only_means(claims: Iterable[Claim]) -> None:
    """Refuse measures that are no means."""
    for claim in claims:
        if claim.metric.measure is not None:
            raise ClaimError(
                f"This audit knows no {claim.metric.words}, which is no mean of rows; certify, "
                "flag, describe and joint_test do."
            )


def measure_claims(claim: Claim) -> list[Claim]:
    """What is summed beside a measure that is no mean, on the same rows and cut alike."""
    measure = claim.metric.measure
    if measure is None:
        return []
    return [replace(claim, metric=metric) for metric in measure.parts()[1:]]
