"""Trails from arrays: what scikit-learn and Fairlearn hold."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest

import equipoise as eq

LABEL = [0, 1, 1, 0, 1, 0]
DECIDED = [1, 1, 0, 0, 1, 1]
SEX = ["f", "m", "f", "m", "f", None]


def _rates(trail: eq.Trail, by: str) -> dict[str, tuple[int, float | None]]:
    found = eq.describe(trail, eq.gap("accuracy", across=by))
    return {row.group: (row.n, row.value) for row in found.rows}


@pytest.mark.parametrize(
    "features",
    [
        {"sex": SEX},
        pd.DataFrame({"sex": SEX}),
        pd.Series(SEX, name="sex"),
        {"sex": pd.Categorical(SEX)},
    ],
)
def test_equal_to_reading_a_table(features: Any) -> None:
    table = pd.DataFrame({"y": LABEL, "d": DECIDED, "sex": SEX})
    expected = _rates(eq.read(table, label="y", prediction="d"), "sex")
    assert _rates(eq.from_arrays(LABEL, DECIDED, sensitive_features=features), "sex") == expected
    assert len(expected) >= 3


def test_nameless_features_get_names() -> None:
    one = eq.from_arrays(LABEL, DECIDED, sensitive_features=np.array(["a", "b"] * 3))
    two = eq.from_arrays(LABEL, DECIDED, sensitive_features=np.array([["a", "x"], ["b", "y"]] * 3))
    assert one.attributes == ("group",)
    assert two.attributes == ("feature_1", "feature_2")


def _right(rows: int) -> int:
    trail = eq.from_arrays([1] * rows, [1, *[0] * (rows - 1)], sensitive_features=["a"] * rows)
    return round(rows * (_rates(trail, "group")["a"][1] or 0.0))


def test_tables_of_one_engine_do_not_mix() -> None:
    trails = [
        eq.from_arrays([1] * n, [1] * n, sensitive_features={"sex": ["f"] * n}) for n in (3, 7)
    ]
    assert [_rates(trail, "sex")["f"][0] for trail in reversed(trails)] == [7, 3]
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(_right, range(2, 40))) == {1}


def test_a_process_that_is_split_off_has_an_engine_of_its_own() -> None:
    assert _right(5) == 1
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_right, (6,)).get(timeout=60) == 1


def test_words_as_labels_and_hostile_names() -> None:
    trail = eq.from_arrays(
        ["yes", "no", "yes"],
        ["no", "no", "yes"],
        sensitive_features={'a"; DROP TABLE x; --': ["p", "q", "p"]},
        positive="yes",
    )
    assert sum(n for n, _ in _rates(trail, 'a"; DROP TABLE x; --').values()) >= 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"y_true": [0, 1], "sensitive_features": ["a"]}, "lengths are: label 2, group 1"),
        ({"y_true": [[0, 1]], "sensitive_features": ["a"]}, "one value per row"),
        ({"y_true": [], "sensitive_features": []}, "no rows"),
        ({"y_true": [1], "sensitive_features": {"label": ["a"]}}, "Rename it"),
        ({"y_true": [1, 0], "sensitive_features": {"g": ["a", {}]}}, "mixes values"),
        ({"y_true": [1]}, "sensitive_features"),
        ({"y_tru": [1], "sensitive_features": ["a"]}, "Did you mean 'y_true'"),
    ],
)
def test_bad_arrays(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=says):
        eq.from_arrays(**arguments)


def test_what_a_mask_hides_is_missing() -> None:
    """Values that their owner declared invalid were counted, −9 and all."""
    label = np.ma.array([0, 1, -9, 1] * 10, mask=[False, False, True, False] * 10)
    groups = np.ma.array([["a", "x"], ["b", "y"]] * 20, mask=[[False, False], [False, True]] * 20)
    trail = eq.from_arrays(label, [0, 1, 1, 1] * 10, sensitive_features=groups)
    told = eq.describe(trail, eq.gap(eq.accuracy, across="feature_2"))
    assert told.provenance.excluded == {"missing label": 10}
    assert [row.n for row in told.rows if "x" in row.group] == [10]
    assert len(told.rows) == 2
