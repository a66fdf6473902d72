"""Formulas: what may be written, what may not, and what it means."""

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.claims.formula import Mention, Term, parse

X = np.array([-2.0, 0.0, 0.5, 3.0])


def value(text: str) -> object:
    def operand(reference: Mention) -> Term:
        sort = "truth" if reference.name == "flag" else "number"
        return Term(X > 0 if reference.name == "flag" else X, sort)

    with np.errstate(all="ignore"):
        return parse(text).evaluate(operand, np.float64).value


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x + 1", X + 1),
        ("2 * x - x / 4", 2 * X - X / 4),
        ("x ** 2", X**2),
        ("x ** 3", X**3),
        ("x % 2", X % 2),
        ("-x", -X),
        ("abs(x)", np.abs(X)),
        ("exp(x)", np.exp(X)),
        ("x > 0", X > 0),
        ("-1 < x <= 0.5", (X > -1) & (X <= 0.5)),
        ("x == 0 or x == 3", (X == 0) | (X == 3)),
        ("not x > 0", X <= 0),
        ("x in (0, 3)", np.isin(X, [0, 3])),
        ("x not in [0, 3]", ~np.isin(X, [0, 3])),
        ("flag + flag", 2.0 * (X > 0)),
        ("(x > 0) - (x < 0)", np.sign(X)),
        ("not flag", X <= 0),
        ("flag == True", X > 0),
        ("flag and x < 1", (X > 0) & (X < 1)),
        # a number holds where it is 1, not wherever it is anything but 0
        ("x + 0.5 and flag", X == 0.5),
        ("2 ** 3", 8.0),
    ],
)
def test_values(text: str, wanted: object) -> None:
    np.testing.assert_array_equal(value(text), wanted)


def test_names_and_references() -> None:
    formula = parse("column('a b') + role('score') * label")
    assert formula.names == ("a b", "label", "score")
    assert Mention("a b", "column") in formula.references


FORBIDDEN = {
    "x.real": "Attribute is not allowed",
    "x.__class__.__mro__": "Attribute is not allowed",
    "__import__('os')": "no function '__import__'",
    "lgo(x)": "Did you mean 'log'",
    "open('/etc/passwd')": "no function 'open'",
    "lambda: 1": "Lambda is not allowed",
    "x[0]": "Subscript is not allowed",
    "[a for a in x]": "ListComp is not allowed",
    "x if x else x": "IfExp is not allowed",
    "f'{x}'": "JoinedStr is not allowed",
    "x is 1": "Is is not allowed",
    "x // 2": "FloorDiv is not allowed",
    "x & 1": "BitAnd is not allowed",
    "x << 2": "LShift is not allowed",
    "~x": "Invert is not allowed",
    "abs(x, 2)": "Call is not allowed",
    "abs(x=1)": "Call is not allowed",
    "x.abs()": "Call is not allowed",
    "(lambda y: y)(x)": "Call is not allowed",
    "column(x)": "takes one quoted name",
    "x == None": "None is not a number",
    "...": "Ellipsis is not",
    "b'a'": "is not a number",
    "1j": "is not a number",
    "-'a'": "uses text where a number is needed",
    "not 'a'": "uses text where a truth value is needed",
    "'a' + x": "uses text where a number is needed",
    "abs('a')": "uses text",
    "x in (1, 'a')": "'in' needs a list",
    "x in x": "'in' needs a list",
    "x in (y, 1)": "'in' needs a list",
    "x in ()": "'in' needs a list",
    "'a' < 'b'": "==, != and in only",
    "x and": "cannot be read: SyntaxError",
    "class": "column\\('days late'\\)",
    "x := 3": "cannot be read: SyntaxError",
    "x = 3": "cannot be read: SyntaxError",
    "import os": "cannot be read: SyntaxError",
    "x\x00": "cannot be read",
    "": "A formula is text",
    "   ": "A formula is text",
    "1" + "0" * 400: "a number that is too large",
    "x + " * 3000 + "x": "characters, more than 10,000",
    "(" * 5000: "cannot be read",
    "(" * 300 + "x" + ")" * 300: "cannot be read",
    "-" * 400 + "x": "nested more than 150 deep",
    "+".join(["x"] * 400): "nested more than 150 deep",
    "-" * 4000 + "x": "cannot be",
}


@pytest.mark.parametrize("text", FORBIDDEN, ids=lambda text: text[:30])
def test_what_may_not_be_written(text: str) -> None:
    with pytest.raises(eq.ClaimError, match=FORBIDDEN[text]) as caught:
        eq.metric("mine", text)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("wrong", [None, 5, ["x"], ("x",), 1.5])
def test_a_formula_is_text(wrong: object) -> None:
    with pytest.raises(eq.ClaimError, match="formulas or narwhals expressions; got"):
        eq.metric("mine", wrong)  # type: ignore[arg-type]
    with pytest.raises(eq.ClaimError, match="A formula is text"):
        eq.masks({"young": wrong})  # type: ignore[dict-item]


def test_large_constants_are_not_worked_out_here() -> None:
    assert parse("9 ** 9 ** 9 ** 9").names == ()
    assert parse("1 / 0").names == ()


def test_comparisons_do_not_grow_with_nesting() -> None:
    assert parse("(" * 40 + "x" + " == 1)" * 40).names == ("x",)


def test_doubtful_escapes_do_not_warn() -> None:
    assert parse(r"x == '\d'").names == ("x",)


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("g == 1", "compares text with number"),
        ("x == 'a'", "compares text with number"),
        ("g < 'b'", "==, != and in only"),
        ("g + 1", "uses text where a number is needed"),
        ("x in ('a', 'b')", "looks for text among number"),
        ("g in (1, 2)", "uses text where a number"),
        ("not g", "uses text where a truth value"),
        ("day > 3", "uses a column of type Date where a number"),
        ("day == '2020-01-01'", "compares text with a column of type Date"),
        ("g", "must give a number; 'g' gives text"),
    ],
)
def test_types_are_checked_against_the_table(formula: str, says: str) -> None:
    import datetime

    import polars as pl

    table = pl.DataFrame({"g": ["a"], "x": [1.0], "day": [datetime.date(2020, 1, 1)], "y": [1]})
    with pytest.raises(eq.ClaimError, match=says):
        eq.describe(eq.read(table), eq.gap(eq.metric("mine", formula), across="y"))


def test_an_expression_with_nothing_on_some_rows() -> None:
    import polars as pl

    table = pl.DataFrame({"g": ["a", "b"], "x": [1.0, None]})
    with pytest.raises(eq.TrailError, match=r"not a number on some rows. If these rows .* where="):
        eq.describe(eq.read(table), eq.gap(eq.metric("mine", nw.col("x")), across="g"))
    with pytest.raises(eq.TrailError, match=r"could not be read: .*zz"):
        eq.describe(eq.read(table), eq.gap(eq.metric("mine", nw.col("zz")), across="g"))


@pytest.mark.parametrize("formula", ["1 / x > 0", "x ** -1 > 0", "log(x) > -1e9", "x % x == 0"])
@pytest.mark.parametrize("engine", ["polars", "pandas", "pyarrow"])
def test_what_has_no_value_does_not_hold_on_any_engine(formula: str, engine: str) -> None:
    table = pl.DataFrame({"p": [1, 0, 1, 0], "x": [-1.0, 0.0, 0.5, 2.0]})
    given = {"polars": table, "pandas": table.to_pandas(), "pyarrow": table.to_arrow()}[engine]
    claim = eq.gap("selection_rate", across=eq.masks(group=formula))
    (row,) = eq.describe(eq.read(given, prediction="p"), claim).rows
    # zero divides nothing, and has no logarithm that is a number
    assert row.n == (3 if formula == "x % x == 0" else 2)


def test_names_are_those_written_not_those_python_takes_them_for() -> None:
    assert parse("ª > 1 and a < 2").names == ("a", "ª")
    assert parse("(größe\n + ﬁ) > ｘ").names == ("größe", "ﬁ", "ｘ")
