"""The one table of rows: columns coded once, missing values counted once, one sampler."""

import datetime
import decimal

import duckdb
import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise._codec import canonical
from equipoise.cells import query
from equipoise.cells.groups import leaf_rules
from equipoise.cells.query import by_size, cluster_codes, code, numbers
from equipoise.cells.rows import pull_table
from equipoise.trail.engine import fetch, objects
from tests.unit.cells.looks import pulled

DAY = datetime.date(2020, 2, 1)


def test_a_value_is_put_into_its_one_form_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def noted(value: object) -> object:
        seen.append(value)
        return canonical(value)

    monkeypatch.setattr(query, "canonical", noted)
    coded = code(objects(["a", None, "b", "a"] * 50))
    assert seen == ["a", None, "b"]
    assert coded.levels == ["a", None, "b"]
    assert coded.codes[:4].tolist() == [0, 1, 2, 0]


def test_equal_values_of_other_types_are_one_level() -> None:
    column = objects([1, 1.0, decimal.Decimal(1), float("nan"), None, DAY, "2020-02-01", [1]])
    assert code(column).levels == [1, None, "2020-02-01", "[1]"]


def test_numbers_have_nan_where_they_are_missing() -> None:
    found = numbers(objects([1, None, decimal.Decimal("2.5"), True]))
    np.testing.assert_array_equal(found, [1.0, np.nan, 2.5, 1.0])


def test_clusters_are_numbered_in_the_order_asked_for() -> None:
    column = objects([10, 2.5, None, 9])
    assert cluster_codes(column).tolist() == [2, 0, -1, 1]
    assert cluster_codes(column, by_size).tolist() == [2, 0, -1, 1]
    assert cluster_codes(column, repr).tolist() == [0, 1, -1, 2]


def test_numbers_leave_an_engine_as_an_array_and_what_is_missing_as_none() -> None:
    table = pl.DataFrame({"x": [0.5, 1.5], "n": [1, None], "t": ["a", None]})
    connection = duckdb.connect()
    connection.register("here", table.to_arrow())
    for source in (table, connection.table("here")):
        found = fetch(eq.read(source).frame, "here")
        assert found["x"].dtype == np.float64
        assert [column.tolist() for column in found.values()] == [
            [0.5, 1.5],
            [1, None],
            ["a", None],
        ]


def test_rows_keep_their_columns_together() -> None:
    table = pl.DataFrame({"y": [3.0, 1.0, 2.0], "w": [1.0, 2.0, 3.0], "m": ["b", None, "a"]})
    trail = eq.read(table, label="y", weight="w", cluster="m")
    rows = pull_table(trail, eq.metric("mine", "label"), {"extra": trail.key("w")})
    assert rows.cluster is not None
    assert rows.cluster.tolist() == [1, -1, 0]
    part = rows.part(np.argsort(rows.value))
    assert part.value.tolist() == [1.0, 2.0, 3.0]
    assert part.extra is not None
    assert part.extra.tolist() == part.weights.tolist() == [2.0, 3.0, 1.0]
    assert rows.one_by_one(np.array([0, 2])).tolist() == [0, 2]


def test_leaves_of_a_tree_are_rules() -> None:
    from sklearn.tree import DecisionTreeRegressor

    table = pl.DataFrame({"y": [0.0, 0.0, 1.0, 5.0], "x": [1.0, 2.0, 3.0, 4.0]})
    rows = pulled(eq.read(table, label="y"), eq.metric("mine", "label"), ["x"])
    tree = DecisionTreeRegressor(max_depth=2).fit(rows.matrix, rows.value)
    rules = leaf_rules(tree.tree_, rows.features)
    assert [words for words, _ in rules.values()] == [
        "x at most 2.5",
        "x over 2.5 and at most 3.5",
        "x over 3.5",
    ]
    stump = DecisionTreeRegressor().fit(rows.matrix, np.zeros(4))
    assert leaf_rules(stump.tree_, rows.features) == {0: ("everyone", "1 == 1")}
