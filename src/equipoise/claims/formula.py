"""Formulas written as text: what a metric measures, on whom it counts, who is in a group.

A formula is a Python expression of column and role names with arithmetic, comparisons, ``and``,
``or``, ``not``, ``in (…)`` and a few functions. Being text it can stand in an audit plan; being
evaluated by operators it runs alike on narwhals expressions (in the engine) and on arrays.
"""

import ast
import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._validate import did_you_mean, listing
from equipoise.errors import ClaimError

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "abs": abs,
    "log": lambda x: x.log() if isinstance(x, nw.Expr) else np.log(x),
    "exp": lambda x: x.exp() if isinstance(x, nw.Expr) else np.exp(x),
    "sqrt": lambda x: x.sqrt() if isinstance(x, nw.Expr) else np.sqrt(x),
}
# Names that cannot be written as a Python name, or that need telling apart, go through these.
_REFERENCES = ("column", "role")


@dataclass(frozen=True, slots=True)
class Reference:
    """A name in a formula: a plain one, or one marked as a column or as a role."""

    name: str
    marked: str | None = None


@dataclass(frozen=True, slots=True)
class Formula:
    """A parsed formula, ready to be evaluated with any kind of operand.

    >>> parse("label == 0 and score > 0.5").names
    ('label', 'score')
    """

    text: str
    tree: ast.expr
    references: tuple[Reference, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names it mentions, sorted."""
        return tuple(sorted({reference.name for reference in self.references}))

    def evaluate(self, operand: Callable[[Reference], Any]) -> Any:
        """The formula's value where ``operand`` says what each name stands for."""
        return _evaluate(self.tree, operand)


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> Formula:
    """Read a formula; an error points at what is not understood."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ClaimError(
            f"The formula {_short(text)} cannot be read: {type(error).__name__}. "
            "Write a Python expression such as 'label == 0 and age < 25'."
        ) from error
    found: list[Reference] = []

    def note(reference: Reference) -> _Anything:
        found.append(reference)
        return _Anything()

    _evaluate(tree, note, text)
    return Formula(text.strip(), tree, tuple(dict.fromkeys(found)))


class _Anything:
    """Stands for every operand while a formula is checked: any operation on it gives it back."""

    def _same(self, *_: Any) -> "_Anything":
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _same
    __truediv__ = __rtruediv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _same
    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = __rand__ = __ror__ = _same
    __invert__ = __neg__ = __abs__ = log = exp = sqrt = is_in = _same
    __eq__ = __ne__ = _same  # type: ignore[assignment]
    __hash__ = object.__hash__


def _evaluate(node: ast.expr, operand: Callable[[Reference], Any], text: str = "") -> Any:
    again = functools.partial(_evaluate, operand=operand, text=text)
    match node:
        case ast.Name(id=name):
            return operand(Reference(name))
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -again(inner)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return ~again(inner)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](again(left), again(right))
        case ast.BoolOp(op=op, values=values):
            join = operator.and_ if isinstance(op, ast.And) else operator.or_
            return functools.reduce(join, [again(value) for value in values])
        case ast.Compare():
            return _comparison(node, again, text)
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]):
            return _call(name, inner, operand, again, text)
    raise _unknown(text, f"{type(node).__name__} is not allowed")


def _comparison(node: ast.Compare, again: Callable[[ast.expr], Any], text: str) -> Any:
    parts = []
    for left, op, right in zip(
        [node.left, *node.comparators], node.ops, node.comparators, strict=False
    ):
        if isinstance(op, ast.In | ast.NotIn):
            inside = _is_in(again(left), _constants(right, text))
            parts.append(inside if isinstance(op, ast.In) else ~inside)
        elif type(op) in _BINARY:
            parts.append(_BINARY[type(op)](again(left), again(right)))
        else:
            raise _unknown(text, f"{type(op).__name__} is not allowed")
    return functools.reduce(operator.and_, parts)


def _call(name: str, inner: ast.expr, operand: Any, again: Any, text: str) -> Any:
    if name in _REFERENCES:
        if not (isinstance(inner, ast.Constant) and isinstance(inner.value, str)):
            raise _unknown(text, f"{name}(…) takes one quoted name")
        return operand(Reference(inner.value, name))
    if name not in _FUNCTIONS:
        known = [*_FUNCTIONS, *_REFERENCES]
        raise _unknown(
            text,
            f"there is no function {name!r}.{did_you_mean(name, known)} There is {listing(known)}",
        )
    value = again(inner)
    return value if isinstance(value, _Anything) else _FUNCTIONS[name](value)


def _is_in(value: Any, choices: list[Any]) -> Any:
    return value.is_in(choices) if hasattr(value, "is_in") else np.isin(value, choices)


def _constants(node: ast.expr, text: str) -> list[Any]:
    items = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else []
    if not items or not all(isinstance(item, ast.Constant) for item in items):
        raise _unknown(text, "'in' needs a list of constants, such as in ('a', 'b')")
    return [item.value for item in items if isinstance(item, ast.Constant)]


def _unknown(text: str, what: str) -> ClaimError:
    return ClaimError(f"The formula {_short(text)} cannot be used: {what}.")


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "…")
