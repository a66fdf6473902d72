"""Targets: what a group's metric is compared with."""

import dataclasses
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from equipoise._codec import Scalar, Written, canonical, from_plain, kind, made_from
from equipoise._validate import known_keywords, modest
from equipoise.claims.formula import parse
from equipoise.claims.groups import named_level
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
