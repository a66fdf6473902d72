"""Formulas written as text: what a metric measures, on whom it counts, who is in a group.

A formula is a Python expression of column and role names with arithmetic, comparisons, ``and``,
``or``, ``not``, ``in (…)`` and a few functions. Being text it can stand in an audit plan; being
evaluated by operators it runs alike on narwhals expressions (in the engine) and on arrays.
"""

import ast
import functools
import operator
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from equipoise._validate import did_you_mean, listing
from equipoise.errors import ClaimError

# --- What formulas compute with: the same operations on narwhals expressions and on arrays ---
#
# Where engines differ at the edge of an operation (a logarithm of zero, a root of a negative
# number, a division by zero: an error here, infinity there, null elsewhere), one meaning is fixed
# here.


Value = nw.Expr | npt.NDArray[Any]
"""What a formula computes with: expressions in an engine, arrays outside it."""


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


def divide(top: nw.Expr, bottom: nw.Expr) -> nw.Expr:
    """Division; by zero it has no value."""
    return nw.when(bottom != 0).then(top / bottom)


def remainder(value: nw.Expr, divisor: nw.Expr) -> nw.Expr:
    """The remainder, with the sign of the divisor; by zero it has no value."""
    # Engines disagree on the sign, and some have no remainder at all.
    return value - divisor * divide(value, divisor).floor()


def power(base: nw.Expr, exponent: nw.Expr) -> nw.Expr:
    """A power; that of a negative number, or zero to a negative one, has no value."""
    defined = (base > 0) | ((base == 0) & (exponent >= 0))
    return nw.when(defined).then(base**exponent)


def whole_power(base: Value, exponent: int) -> Value:
    """A power with a whole exponent, which negative numbers have too."""
    if exponent < 0:
        return _operate(ast.Div, _one(base), whole_power(base, -exponent))
    # A product is exact where an engine's power function may not be.
    made: Value = operator.mul(base, base) if exponent == 2 else operator.pow(base, float(exponent))
    return made


def logarithm(value: nw.Expr) -> nw.Expr:
    """The natural logarithm: minus infinity at zero, no value below it."""
    positive = nw.when(value > 0).then(value).log()
    return nw.when(value == 0).then(nw.lit(float("-inf"))).otherwise(positive)


def root(value: nw.Expr) -> nw.Expr:
    """The square root, which negative numbers do not have."""
    return nw.when(value >= 0).then(value).sqrt()


def is_in(value: Value, choices: list[str] | list[float]) -> Value:
    """Whether a value is one of the choices."""
    # not by its class: what stands for every operand while a formula is checked has it too
    return value.is_in(choices) if hasattr(value, "is_in") else np.isin(value, choices)


def told(truth: Value) -> Value:
    """Whether a comparison of text holds; it does not where the text is missing.

    A row with a missing value never counts, so nothing is lost, and pandas cannot join the two
    kinds of missing truth values that text and numbers give.
    """
    return truth.fill_null(False) if isinstance(truth, nw.Expr) else truth


def _operate(sign: type, left: Value, right: Value) -> Value:
    known = _ARITHMETIC | _IN_ENGINES if isinstance(right, nw.Expr) else _ARITHMETIC
    return known[sign](left, right)


def _one(like: Value) -> Value:
    if isinstance(like, nw.Expr):
        return nw.lit(1.0)
    one: Any = np.float64(1.0)
    return one if _is_array(like) else like


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray | np.generic)


# --- Formulas written as text: what a metric measures, on whom it counts, who is in a group ---

_Binary = Callable[[Any, Any], Value]
_ARITHMETIC: dict[type, _Binary] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_IN_ENGINES: dict[type, _Binary] = {ast.Div: divide, ast.Mod: remainder, ast.Pow: power}
_EQUALITY: dict[type, _Binary] = {ast.Eq: operator.eq, ast.NotEq: operator.ne}
_ORDER: dict[type, _Binary] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
# Each in engines and on arrays.
_FUNCTIONS: dict[str, tuple[Callable[[nw.Expr], nw.Expr], Callable[[Any], Value]]] = {
    "abs": (nw.Expr.abs, np.abs),
    "log": (logarithm, np.log),
    "exp": (nw.Expr.exp, np.exp),
    "sqrt": (root, np.sqrt),
}
# Names that cannot be written as a Python name, or that need telling apart, go through these.
_REFERENCES = ("column", "role")
_LONGEST = 10_000
# Engines evaluate expressions by recursion, and some end the process when it goes too deep.
_DEEPEST = 150
# Guards against zero and negative numbers repeat what they guard, so nested ones multiply: how
# often an engine computes the operands of each, and how many operations it may come to.
_REPEATED: dict[object, int] = {"log": 7, "sqrt": 4, ast.Div: 2, ast.Mod: 4, ast.Pow: 4}
_LARGEST = 4_000


@dataclass(frozen=True, slots=True)
class Mention:
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
    references: tuple[Mention, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names it mentions, sorted."""
        return tuple(sorted({reference.name for reference in self.references}))

    def evaluate(
        self, operand: Callable[[Mention], Term], constant: Callable[[str | float], object]
    ) -> Term:
        """The formula's value, where the two functions say what names and constants stand for."""
        return _Evaluation(self.text, operand, constant).term(self.tree)


def with_column(text: str, role: str, column: str, at_least: float | None = None) -> str:
    """The formula with a column in place of a role, or with whether it reaches a number.

    >>> with_column("label != prediction", "prediction", "new says")
    "label != column('new says')"
    >>> with_column("label", "score", "s"), with_column("1 - prediction", "prediction", "s", 0.5)
    ('label', "1 - (column('s') >= 0.5)")
    """
    written = f"column({column!r})" if at_least is None else f"column({column!r}) >= {at_least!r}"
    return with_condition(text, role, written)


def with_condition(text: str, role: str, written: str) -> str:
    """The formula with another one in place of a role.

    >>> with_condition("1 - label", "label", "role('label') == 'cat'")
    "1 - (role('label') == 'cat')"
    """
    put = ast.parse(written, mode="eval").body

    class _Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return put if node.id == role else node

        def visit_Call(self, node: ast.Call) -> ast.AST:
            match node:
                case ast.Call(func=ast.Name(id="role"), args=[ast.Constant(value=name)]):
                    return put if name == role else node
                case ast.Call(func=ast.Name(id="column")):
                    return node
            node.args = [self.visit(argument) for argument in node.args]
            return node

    return ast.unparse(_Put().visit(_tree(text)))


def parse(text: str) -> Formula:
    """Read a formula; an error points at what is not understood."""
    if not isinstance(text, str) or not text.strip():
        raise ClaimError(f"A formula is text such as 'label == 0 and age < 25'; got {text!r}.")
    return _parse(text)


# Checked when a value is made and read again by every audit: a few formulas, many times.
@functools.lru_cache(maxsize=1024)
def _parse(text: str) -> Formula:
    if len(text) > _LONGEST:
        raise _unusable(text, f"it has {len(text):,} characters, more than {_LONGEST:,}")
    found: list[Mention] = []

    def note(reference: Mention) -> Term:
        found.append(reference)
        return Term(_Anything(), "any")

    formula = Formula(text.strip(), _tree(text), ())
    if _depth(formula.tree) > _DEEPEST:
        raise _unusable(text, f"it is nested more than {_DEEPEST} deep")
    if _work(formula.tree) > _LARGEST:
        raise _unusable(
            text, "its logarithms, roots, quotients and powers are nested too deeply to compute"
        )
    formula.evaluate(note, lambda _: _Anything())
    return Formula(formula.text, formula.tree, tuple(dict.fromkeys(found)))


def _tree(text: str) -> ast.expr:
    try:
        with warnings.catch_warnings():
            # Python warns of doubtful escapes in quoted text; here they are just text.
            warnings.simplefilter("ignore")
            return _as_written(ast.parse(text.strip(), mode="eval").body, text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ClaimError(
            f"The formula {_short(text)} cannot be read: {type(error).__name__}. "
            "Write a Python expression such as 'label == 0 and age < 25'; a column whose name is "
            "no Python name is written column('days late')."
        ) from error


def _as_written(tree: ast.expr, text: str) -> ast.expr:
    """The tree with names as they are written: Python takes ª for a, but columns are not alike."""
    for node in () if text.isascii() else ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = ast.get_source_segment(text, node) or node.id
    return tree


def _depth(tree: ast.AST) -> int:
    level: list[ast.AST] = [tree]
    depth = 0
    while level:
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        depth += 1
    return depth


def _work(node: ast.AST) -> int:
    """How many operations a formula comes to in an engine, operands that are repeated included."""
    inner = 1 + sum(_work(child) for child in ast.iter_child_nodes(node))
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return inner * _REPEATED.get(name, 1)
        case ast.BinOp(op=op):
            return inner * _REPEATED.get(type(op), 1)
    return inner


class _Anything:
    """Stands for every operand while a formula is checked: any operation on it gives it back."""

    def _same(self, *_: object) -> "_Anything":
        return self

    __add__ = __sub__ = __mul__ = __truediv__ = __mod__ = __pow__ = _same
    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = _same
    __invert__ = __neg__ = is_in = _same
    __eq__ = __ne__ = _same  # type: ignore[assignment]
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """One walk over a formula's tree."""

    text: str
    operand: Callable[[Mention], Term]
    constant: Callable[[str | float], object]

    def term(self, node: ast.expr) -> Term:
        match node:
            case ast.Name(id=name):
                return self.operand(Mention(name))
            case ast.Constant(value=value):
                return self._constant(value)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return Term(self._number(inner) * -1, "number")
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return Term(~self._truth(inner), "truth")
            case ast.BinOp(op=ast.Pow(), left=base, right=exponent):
                return self._power(base, exponent)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return Term(_operate(type(op), self._number(left), self._number(right)), "number")
            case ast.BoolOp(op=op, values=values):
                join = operator.and_ if isinstance(op, ast.And) else operator.or_
                return Term(functools.reduce(join, map(self._truth, values)), "truth")
            case ast.Compare():
                return self._comparison(node)
            case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]):
                return self._call(name, inner)
        what = getattr(node, "op", node)
        raise _unusable(self.text, f"{type(what).__name__} is not allowed")

    def _constant(self, value: object) -> Term:
        if isinstance(value, str):
            return Term(self.constant(value), "text")
        if not isinstance(value, bool | int | float):
            raise _unusable(self.text, f"{value!r} is not a number, a text, True or False")
        try:
            return Term(self.constant(float(value)), "number")
        except OverflowError as error:
            raise _unusable(self.text, "it holds a number that is too large") from error

    def _number(self, node: ast.expr) -> Value:
        return self._as_number(self.term(node))

    def _as_number(self, term: Term) -> Value:
        self._refuse_other(term, "a number")
        number: Value = as_number(term)
        return number

    def _truth(self, node: ast.expr) -> Value:
        term = self.term(node)
        self._refuse_other(term, "a truth value")
        truth: Value = as_truth(term)
        return truth

    def _refuse_other(self, term: Term, wanted: str) -> None:
        if term.sort not in ("number", "truth", "any"):
            raise _unusable(self.text, f"it uses {term.sort} where {wanted} is needed")

    def _power(self, base: ast.expr, exponent: ast.expr) -> Term:
        whole = _whole(exponent)
        if whole is not None:
            return Term(whole_power(self._number(base), whole), "number")
        return Term(_operate(ast.Pow, self._number(base), self._number(exponent)), "number")

    def _comparison(self, node: ast.Compare) -> Term:
        # 0 < a < b holds where both parts do, as in Python.
        sides = [node.left, *node.comparators]
        parts = [
            self._compare(left, op, right)
            for left, op, right in zip(sides[:-1], node.ops, sides[1:], strict=True)
        ]
        return Term(functools.reduce(operator.and_, parts), "truth")

    def _compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Value:
        if isinstance(op, ast.In | ast.NotIn):
            inside = self._is_in(left, right)
            return inside if isinstance(op, ast.In) else ~inside
        if type(op) not in _EQUALITY | _ORDER:
            raise _unusable(self.text, f"{type(op).__name__} is not allowed")
        pair = self.term(left), self.term(right)
        if "text" in (pair[0].sort, pair[1].sort):
            return self._compare_text(pair, op)
        return (_EQUALITY | _ORDER)[type(op)](*map(self._as_number, pair))

    def _compare_text(self, pair: tuple[Term, Term], op: ast.cmpop) -> Value:
        if not {term.sort for term in pair} <= {"text", "any"}:
            other = next(term.sort for term in pair if term.sort not in ("text", "any"))
            raise _unusable(self.text, f"it compares text with {other}")
        if type(op) not in _EQUALITY:
            raise _unusable(self.text, "text can be compared by ==, != and in only")
        return told(_EQUALITY[type(op)](pair[0].value, pair[1].value))

    def _is_in(self, left: ast.expr, right: ast.expr) -> Value:
        choices = _constants(right, self.text)
        term = self.term(left)
        if all(isinstance(choice, str) for choice in choices):
            if term.sort not in ("text", "any"):
                raise _unusable(self.text, f"it looks for text among {term.sort}")
            return told(is_in(term.value, choices))
        return is_in(self._as_number(term), [float(choice) for choice in choices])

    def _call(self, name: str, inner: ast.expr) -> Term:
        if name in _REFERENCES:
            if not (isinstance(inner, ast.Constant) and isinstance(inner.value, str)):
                raise _unusable(self.text, f"{name}(…) takes one quoted name")
            return self.operand(Mention(inner.value, name))
        if name not in _FUNCTIONS:
            known = [*_FUNCTIONS, *_REFERENCES]
            hint = did_you_mean(name, known)
            raise _unusable(
                self.text, f"there is no function {name!r}.{hint} There is {listing(known)}"
            )
        in_engines, on_arrays = _FUNCTIONS[name]
        value = self._number(inner)
        if isinstance(value, nw.Expr):
            return Term(in_engines(value), "number")
        # While a formula is checked there is no value that a function could be applied to.
        return Term(value if isinstance(value, _Anything) else on_arrays(value), "number")


def _whole(node: ast.expr) -> int | None:
    """A small whole number written out, such as 2 or -1."""
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() as value) if value <= 64:
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)) if value <= 64:
            return -value
    return None


def _constants(node: ast.expr, text: str) -> list[str] | list[float]:
    items = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else []
    values = [item.value for item in items if isinstance(item, ast.Constant)]
    texts = [value for value in values if isinstance(value, str)]
    numbers = [value for value in values if isinstance(value, bool | int | float)]
    if not items or len(items) not in (len(texts), len(numbers)):
        raise _unusable(text, "'in' needs a list of numbers or of texts, such as in ('a', 'b')")
    return texts or numbers


def _unusable(text: str, what: str) -> ClaimError:
    return ClaimError(f"The formula {_short(text)} cannot be used: {what}.")


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "…")
