"""Targets: what a group's metric is compared with."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equipoise._codec import Plain, from_plain, kind, to_plain
from equipoise._validate import real
from equipoise.claims.formula import parse
from equipoise.errors import ClaimError


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a group's metric is compared with; ``0.8 * target`` scales it."""

    scale: float = 1.0
    """Factor applied to the target, as in the four-fifths rule."""

    def __mul__(self, factor: float) -> "Target":
        """The target scaled by ``factor``."""
        return dataclasses.replace(self, scale=self.scale * real("The scale of a target", factor))

    __rmul__ = __mul__

    @property
    def words(self) -> str:
        """The target as it reads in a sentence."""
        return self._words() if self.scale == 1 else f"{self.scale:g} × {self._words()}"

    def _words(self) -> str:
        raise NotImplementedError

    def to_plan(self) -> Plain:
        """Plain form, which `equipoise.from_plan` reads."""
        plain: Plain = to_plain(self)
        return plain


@kind("constant")
@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Target):
    """A known number."""

    value: float

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

    where: Mapping[str, Any]
    """Attribute → value of the reference group."""

    def __hash__(self) -> int:
        return hash((self.scale, tuple(sorted(self.where.items(), key=repr))))

    def _words(self) -> str:
        return ", ".join(str(value) for value in self.where.values())


@kind("complement")
@dataclass(frozen=True, slots=True, kw_only=True)
class Complement(Target):
    """The metric of everyone outside the group."""

    def _words(self) -> str:
        return "everyone else"


@kind("custom")
@dataclass(frozen=True, slots=True, kw_only=True)
class Custom(Target):
    """An estimate made elsewhere, with its influence values so that its error is counted."""

    estimate: float
    influence: str
    """Formula or column of each row's influence on the estimate (mean zero over the rows)."""

    def _words(self) -> str:
        return f"the estimate {self.estimate:g}"


def constant(value: float) -> Constant:
    """Compare with a known number.

    >>> constant(0.1).words
    '0.1'
    """
    return Constant(value=real("The target", value))


def overall() -> Overall:
    """Compare each group with everyone.

    >>> overall().words
    'everyone'
    """
    return Overall()


def complement() -> Complement:
    """Compare each group with everyone outside it.

    >>> complement().words
    'everyone else'
    """
    return Complement()


def reference(where: Mapping[str, Any] | None = None, /, **attributes: Any) -> Reference:
    """Compare with one group, named by its attributes.

    A column whose name is no Python name goes into a dictionary.

    >>> (0.8 * reference(race="Caucasian")).words
    '0.8 × Caucasian'
    """
    group = {**(where or {}), **attributes}
    if not group:
        raise ClaimError('reference needs at least one attribute, such as reference(sex="Male").')
    return Reference(where=group)


def custom(estimate: float, influence: str) -> Custom:
    """Compare with an estimate of your own, whose sampling error is then accounted for.

    ``influence`` is a column or formula: each row's first-order effect on the estimate, averaging
    zero over the rows. The estimate's variance is the mean square of the influence divided by n.

    >>> custom(0.31, "influence").words
    'the estimate 0.31'
    """
    parse(influence)
    return Custom(estimate=real("The estimate", estimate), influence=influence)


def as_target(value: Any) -> Target:
    """A target given as a value or as a number."""
    if isinstance(value, Target):
        return value
    if isinstance(value, Mapping):
        return as_target(from_plain(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return constant(value)
    raise ClaimError(
        "A target is a number, overall(), complement(), reference(attribute=value) or "
        f"custom(…); got {value!r}."
    )
