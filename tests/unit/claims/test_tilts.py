"""Tilts as values: what they hold, what they refuse, how they are written down."""

import json
from typing import Any

import pytest

import equipoise as eq
from equipoise.claims.groups import Tilt, Tilts, Values

# bad input is given on purpose
tilts: Any = eq.tilts


def weigh(columns: Any) -> Any:
    return columns["age"] / 100


def test_columns_formulas_and_functions_stand_side_by_side() -> None:
    made = eq.tilts("w", {"two words": "x > 1"}, older="age / 100", old=weigh, columns=["age"])
    assert [tilt.name for tilt in made.weights] == ["w", "two words", "older", "old"]
    assert made.dimensions() == (
        Tilt("w", "column('w')"),
        Tilt("two words", "x > 1"),
        Tilt("older", "age / 100"),
        Values("age"),
    )


def test_a_column_may_be_called_anything() -> None:
    made = eq.tilts("days 'late'")
    assert isinstance(made.weights[0], Tilt)
    assert made.weights[0].formula == "column(\"days 'late'\")"


def test_columns_and_formulas_survive_a_plan() -> None:
    claim = eq.gap("accuracy", across=eq.tilts("w", older="age / 100", max_groups=5))
    back = eq.from_plan(json.loads(json.dumps(claim.to_plan())))
    assert back == claim
    assert hash(back) == hash(claim)
    assert isinstance(back.across, Tilts)
    assert claim.across.to_plan() == {
        "kind": "tilts",
        "max_groups": 5,
        "weights": [
            {"kind": "tilt", "name": "w", "formula": "column('w')"},
            {"kind": "tilt", "name": "older", "formula": "age / 100"},
        ],
    }


def test_a_plan_cannot_hold_a_function() -> None:
    claim = eq.gap("accuracy", across=eq.tilts(old=weigh, columns=["age"]))
    with pytest.raises(eq.ClaimError, match="cannot be written to a plan"):
        claim.to_plan()
    with pytest.raises(eq.ClaimError, match="which a plan cannot hold"):
        eq.from_plan(claim.quoted())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tilts(), "at least one weight"),
        (lambda: tilts(3), "names of columns, or names with formulas; got 3"),
        (lambda: tilts(""), "names of columns"),
        (lambda: tilts(a="x +"), "cannot be read"),
        (lambda: tilts(a=3), "A formula is text"),
        (lambda: tilts({"": "x"}), "A tilt needs a name"),
        (lambda: tilts("a", a="x"), "names 'a' more than once"),
        (lambda: tilts(a=weigh), "say which columns it reads"),
        (lambda: tilts(a="x", columns=["x"]), "columns= is for functions"),
        (lambda: tilts(a=weigh, columns="age"), "must be a list of column names"),
        (lambda: tilts(a=weigh, columns=["x", "x"]), "more than once"),
        (lambda: tilts("a", "b", max_groups=1), "more than the limit of 1"),
        (lambda: Tilts(weights=("x",)), "names with formulas or functions"),  # type: ignore[arg-type]
        (lambda: eq.bins(eq.tilts("a")), "bins cuts a plain collection"),
        (lambda: eq.multicalibration(across=eq.tilts("a")), "bins cuts a plain collection"),
    ],
)
def test_bad_tilts_are_refused(make: Any, message: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=message.replace("+", r"\+")):
        make()
