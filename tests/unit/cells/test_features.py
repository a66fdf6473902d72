"""Features of rows: what each column is, what is missing, and the words of a rule."""

import polars as pl
import pytest

import equipoise as eq
from equipoise.cells.groups import Feature
from tests.unit.cells.looks import pulled


@pytest.mark.parametrize(
    ("feature", "low", "high", "words", "inside"),
    [
        (Feature("x"), 1.0, None, "x over 1", [False, False, True, True]),
        (Feature("x"), None, 2.0, "x at most 2", [True, True, True, False]),
        (Feature("x"), 1.0, 2.0, "x over 1 and at most 2", [False, False, True, False]),
        (Feature("g", "a"), 0.5, None, "g is a", [True, True, False, False]),
        (Feature("g", "a"), None, 0.5, "g is not a", [False, False, True, True]),
    ],
)
def test_a_rule_is_the_same_in_words_and_as_a_formula(
    feature: Feature, low: float | None, high: float | None, words: str, inside: list[bool]
) -> None:
    said, formula = feature.rule(low, high)
    assert said == words
    table = pl.DataFrame({"p": [1, 1, 1, 1], "x": [0.0, 1.0, 2.0, 3.0], "g": ["a", "a", "b", "b"]})
    claim = eq.gap("selection_rate", across=eq.masks(group=formula))
    for i, wanted in enumerate(inside):
        (row,) = eq.describe(eq.read(table[i : i + 1], prediction="p"), claim).rows
        assert row.n == wanted


def test_a_row_that_lacks_several_numbers_is_counted_once() -> None:
    table = pl.DataFrame(
        {
            "y": [0.5, 1.5, 2.5, 3.5],
            "a": [1.0, None, None, 4.0],
            "b": [1.0, None, 3.0, float("nan")],
            "g": ["x", None, None, None],
            "n": [1, 2, 4, 8],
        }
    )
    trail = eq.read(table, label="y", count="n")
    rows = pulled(trail, eq.metric("mine", "label"), ["a", "b", "g"])
    assert rows.missing == {"missing a": 6, "missing b": 8}
    assert rows.value.tolist() == [0.5]
    # a missing text is none of the levels, and no reason to leave a row out
    rows = pulled(trail, eq.metric("mine", "label"), ["g"])
    assert rows.missing == {}
    assert rows.matrix.ravel().tolist() == [1.0, 0.0, 0.0, 0.0]
