"""Reading and re-reading a trail."""

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import equipoise as eq
from equipoise.trail.engine import engine_errors, fetch

TABLE = pl.DataFrame({"y": [1, 0], "p": [1, 1], "g": ["a", "b"], "x": [1.5, None]})


def test_repr_names_source_roles_and_attributes() -> None:
    trail = eq.read(TABLE, label="y", prediction="p")
    assert repr(trail) == "Trail(a polars table; label='y', prediction='p'; attributes 'g', 'x')"
    assert repr(eq.read(TABLE, attributes=[])) == "Trail(a polars table; no roles; attributes none)"


def test_a_trail_can_be_given_other_roles() -> None:
    first = eq.read(TABLE, label="y")
    again = eq.read(first, prediction="p", attributes=["g"])
    assert (again.roles.label, again.roles.prediction) == (None, "p")
    assert (again.attributes, again.source) == (("g",), "a polars table")


def test_the_callers_table_is_left_alone() -> None:
    table = pd.DataFrame(
        {"y": [1, 0, None], "p": [True, None, False], "g": ["a", "b", "c"]}, dtype=object
    )
    before = table.copy(deep=True)
    trail = eq.read(table, label="y", prediction="p")
    found = eq.describe(trail, eq.gap("accuracy", across="g"))
    assert found.provenance.excluded == {"missing label": 1, "missing prediction": 1}
    pd.testing.assert_frame_equal(table, before)
    assert list(table.dtypes) == list(before.dtypes)


@pytest.mark.parametrize("error", [TypeError("x"), ZeroDivisionError("x"), KeyError("x")])
def test_our_own_mistakes_are_not_blamed_on_the_table(error: Exception) -> None:
    with pytest.raises(type(error)), engine_errors("a table"):
        raise error


def test_engine_errors_name_the_source() -> None:
    def broken() -> Any:
        return pl.DataFrame({"a": [1]}).select("b")

    with (
        pytest.raises(eq.TrailError, match=r"^the file could not be read: .*b"),
        engine_errors("the file"),
    ):
        broken()
    with pytest.raises(eq.TrailError, match="gone"), engine_errors("the file"):
        raise OSError("gone")


def test_every_role_is_listed() -> None:
    roles = eq.read(TABLE, label="y", weight="x", cluster="g").roles
    assert list(roles) == [("label", "y"), ("weight", "x"), ("cluster", "g")]
    assert "cluster" in roles
    assert "score" not in roles


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_signs_of_a_glob_in_a_file_name_are_just_signs(tmp_path: Path, suffix: str) -> None:
    for name, group in (("d[1]", "a"), ("d1", "b")):
        table = pl.DataFrame({"y": [0, 1], "g": [group, group]})
        path = str(tmp_path / f"{name}.{suffix}")
        table.write_csv(path) if suffix == "csv" else table.write_parquet(path)
    trail = eq.read(tmp_path / f"d[1].{suffix}", label="y")
    assert fetch(trail.frame.select("g"), "d")["g"].tolist() == ["a", "a"]


def test_folders_named_by_a_value_are_a_column_if_all_of_them_are_read(tmp_path: Path) -> None:
    for year in (2020, 2021):
        (tmp_path / f"year={year}").mkdir()
        pl.DataFrame({"y": [0, 1]}).write_parquet(tmp_path / f"year={year}" / "d.parquet")
    assert eq.read(tmp_path, label="y").attributes == ("year",)
    assert eq.read(tmp_path / "year=2020" / "d.parquet", label="y").attributes == ()


def test_true_is_no_number() -> None:
    with pytest.raises(eq.TrailError, match="positive=True fits neither"):
        eq.read(TABLE, label="y", prediction="p", positive=True)
    truths = TABLE.with_columns(y=pl.col("y") == 1)
    assert eq.read(truths, label="y", prediction="p", positive=True).positive == {"label": True}
