"""What formulas compute with: the same operations on narwhals expressions and on arrays.

Where engines differ at the edge of an operation (a logarithm of zero, a root of a negative number,
a division by zero: an error here, infinity there, null elsewhere), one meaning is fixed here.
"""

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np


@dataclass(frozen=True, slots=True)
class Term:
    """A value together with what sort of value it is."""

    value: Any
    sort: str
    """``number``, ``truth``, ``text``, ``any`` (not known yet), or the type of an unusable one."""


def as_number(term: Term) -> Any:
    """A truth value as 0 and 1; a number as it is."""
    if term.sort != "truth":
        return term.value
    if isinstance(term.value, nw.Expr):
        # Via whole numbers: not every engine casts a truth value straight to a double.
        return term.value.cast(nw.Int32).cast(nw.Float64)  # as PostgreSQL takes truth values
    return np.asarray(term.value, dtype=np.float64) if _is_array(term.value) else term.value


def as_truth(term: Term) -> Any:
    """A number as whether it is 1; a truth value as it is."""
    return term.value == 1 if term.sort == "number" else term.value


def divide(top: Any, bottom: Any) -> Any:
    """Division; by zero it has no value."""
    if isinstance(bottom, nw.Expr):
        return nw.when(bottom != 0).then(top / bottom)
    return top / bottom


def remainder(value: Any, divisor: Any) -> Any:
    """The remainder, with the sign of the divisor; by zero it has no value."""
    if isinstance(divisor, nw.Expr):
        # Engines disagree on the sign, and some have no remainder at all.
        return value - divisor * divide(value, divisor).floor()
    return value % divisor


def power(base: Any, exponent: Any) -> Any:
    """A power; that of a negative number, or zero to a negative one, has no value."""
    if isinstance(base, nw.Expr):
        defined = (base > 0) | ((base == 0) & (exponent >= 0))
        return nw.when(defined).then(base**exponent)
    return base**exponent


def whole_power(base: Any, exponent: int) -> Any:
    """A power with a whole exponent, which negative numbers have too."""
    if exponent < 0:
        return divide(_one(base), whole_power(base, -exponent))
    # A product is exact where an engine's power function may not be.
    return base * base if exponent == 2 else base ** float(exponent)


def logarithm(value: Any) -> Any:
    """The natural logarithm: minus infinity at zero, no value below it."""
    if isinstance(value, nw.Expr):
        positive = nw.when(value > 0).then(value).log()
        return nw.when(value == 0).then(nw.lit(float("-inf"))).otherwise(positive)
    return np.log(value)


def root(value: Any) -> Any:
    """The square root, which negative numbers do not have."""
    return nw.when(value >= 0).then(value).sqrt() if isinstance(value, nw.Expr) else np.sqrt(value)


def exponential(value: Any) -> Any:
    """The exponential function."""
    return value.exp() if isinstance(value, nw.Expr) else np.exp(value)


def absolute(value: Any) -> Any:
    """The absolute value."""
    return value.abs() if isinstance(value, nw.Expr) else np.abs(value)


def is_in(value: Any, choices: list[Any]) -> Any:
    """Whether a value is one of the choices."""
    return value.is_in(choices) if hasattr(value, "is_in") else np.isin(value, choices)


def told(truth: Any) -> Any:
    """Whether a comparison of text holds; it does not where the text is missing.

    A row with a missing value never counts, so nothing is lost, and pandas cannot join the two
    kinds of missing truth values that text and numbers give.
    """
    return truth.fill_null(False) if isinstance(truth, nw.Expr) else truth


def _one(like: Any) -> Any:
    if isinstance(like, nw.Expr):
        return nw.lit(1.0)
    return np.float64(1.0) if _is_array(like) else like


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic)
