"""Tables an audit cannot use: nothing computed, and a message that says what to do."""

import gzip
import importlib
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet  # type: ignore[import-untyped]
import pytest

import equipoise as eq

DATA: dict[str, list[Any]] = {
    "y": [1, 0, 1, 0],
    "p": [1, 1, 0, 0],
    "s": [1.0, 0.2, 0.0, 0.3],
    "g": ["a", "b", "a", None],
    "x": [1.0, 2.0, 0.0, 4.0],
}
TABLE = pl.DataFrame(DATA)
CLAIM = eq.gap("accuracy", across="g")


def audit(source: Any, claim: Any = CLAIM, **roles: Any) -> Any:
    return eq.describe(
        eq.read(source, **{"label": "y", "prediction": "p", "score": "s"} | roles), claim
    )


def refuses(error: type[eq.EquipoiseError], *parts: str) -> Any:
    """Expect exactly this kind of error, its message holding every part."""
    pattern = "(?s)" + "".join(f"(?=.*{part})" for part in parts)
    return pytest.raises(error, match=pattern)


def with_column(**columns: Any) -> pl.DataFrame:
    return TABLE.with_columns(**{name: pl.Series(values) for name, values in columns.items()})


def test_missing_column_names_the_nearest_and_what_exists() -> None:
    with refuses(eq.TrailError, "label='yy'", "Did you mean 'y'", "'y', 'p', 's', 'g', 'x'"):
        eq.read(TABLE, label="yy")
    with refuses(eq.TrailError, "attribute 'gg'", "Did you mean 'g'"):
        audit(TABLE, eq.gap("accuracy", across="gg"))
    with refuses(eq.TrailError, "attribute 'zz'", "'y', 'p'"):
        eq.read(TABLE, attributes=["zz"])


def test_a_role_is_no_attribute_unless_asked_for() -> None:
    with refuses(eq.TrailError, "'y' is not among the attributes", "'g', 'x'", "attributes="):
        audit(TABLE, eq.gap("accuracy", across="y"))
    assert audit(TABLE, eq.gap("accuracy", across="y"), attributes=["y"]).rows[0].group == "y 0"


@pytest.mark.parametrize("label", [5, ["y"], ("y",)])
def test_a_role_is_a_column_name(label: Any) -> None:
    with refuses(eq.TrailError, "no column for label="):
        eq.read(TABLE, label=label)


def test_attributes_are_a_list_of_names() -> None:
    for wrong in ("g", 5):
        with refuses(eq.OptionError, "attributes must be a list", "got"):
            eq.read(TABLE, attributes=wrong)  # type: ignore[arg-type]
    with refuses(eq.OptionError, "'g' more than once"):
        eq.read(TABLE, attributes=["g", "g"])


def test_one_column_has_one_role() -> None:
    with refuses(eq.TrailError, "'y' is given two roles, label and weight"):
        eq.read(TABLE, label="y", weight="y")
    assert eq.read(TABLE, prediction="p", score="p").roles.score == "p"


def test_a_metric_says_which_role_it_needs() -> None:
    with refuses(
        eq.TrailError, "needs a prediction column", "this trail has: 'label'", "prediction=…"
    ):
        audit(TABLE, prediction=None, score=None)
    with refuses(eq.TrailError, "needs a low column"):
        audit(TABLE, eq.gap("coverage", across="g"))


@pytest.mark.parametrize("source", [None, [1, 2], {"a": [1]}, 5, pl.Series([1]), pd.Series([1])])
def test_what_is_no_table(source: Any) -> None:
    with refuses(eq.TrailError, f"from {type(source).__name__}", "Pass a path, a pandas"):
        eq.read(source)


# --- values -------------------------------------------------------------------------------


def test_label_with_three_values() -> None:
    with refuses(
        eq.TrailError, "label column 'y'", "two values", "it holds 3: 0, 1, 2", "positive="
    ):
        audit(with_column(y=[0, 1, 2, 2]))
    with refuses(eq.TrailError, "it holds 2: 0, 2"):
        audit(with_column(y=[0, 0, 2, 2]))
    with refuses(eq.TrailError, "it holds 3: 'a', 'b', 'c'"):
        audit(with_column(y=["a", "b", "c", "c"]), positive="a")


def test_a_real_label_is_refused_quickly() -> None:
    many = pl.DataFrame({"y": [i / 7 for i in range(5000)], "p": [0, 1] * 2500, "g": ["a"] * 5000})
    with refuses(eq.TrailError, "it holds 5,000: ", "4,995 more"):
        audit(many, score=None)


def test_text_labels_need_positive() -> None:
    table = with_column(y=["no", "yes", "no", "yes"])
    with refuses(eq.TrailError, "label column 'y' holds text", "positive="):
        audit(table)
    with refuses(eq.TrailError, "positive='ja' does not occur", "'no', 'yes'"):
        audit(table, positive="ja")
    assert audit(table, positive="yes").overall == 0.5


def test_positive_in_all_its_forms() -> None:
    assert eq.read(TABLE, label="y", prediction="p", positive=1).positive == {
        "label": 1,
        "prediction": 1,
    }
    text = with_column(y=["no", "yes", "no", "yes"], p=[False, True, False, True])
    both = {"label": "yes", "prediction": True}
    assert eq.read(text, label="y", prediction="p", positive="yes").positive == {"label": "yes"}
    assert eq.read(text, label="y", prediction="p", positive=both).positive == both
    assert audit(text, positive=both).overall == 1.0
    flipped = {"label": "no", "prediction": False}
    selected = eq.gap("selection_rate", across="g")
    assert audit(text, selected, positive=flipped).overall == 0.5
    one_two = with_column(y=[1, 2, 2, 1])
    assert (
        audit(one_two, eq.gap("false_positive_rate", across="g"), positive={"label": 2}).overall
        == 0.5
    )
    with refuses(eq.TrailError, "positive='yes' fits neither", "label holds Int64"):
        eq.read(TABLE, label="y", positive="yes")
    with refuses(eq.TrailError, "positive='yes' cannot occur in the label column 'y'", "Int64"):
        eq.read(TABLE, label="y", positive={"label": "yes"})
    with refuses(eq.TrailError, "positive= names 'lable'", "'label'"):
        eq.read(TABLE, label="y", positive={"lable": 1})
    with refuses(eq.TrailError, "neither role is played"):
        eq.read(TABLE, positive="yes")


@pytest.mark.parametrize("metric", ["brier", "log_loss"])
def test_score_outside_the_unit_interval(metric: str) -> None:
    with refuses(
        eq.TrailError, f"'{metric}' needs a score between 0 and 1; 1 row of column 's'", "Rescale"
    ):
        audit(with_column(s=[0.5, 1.5, None, 0.2]), eq.gap(metric, across="g"))
    assert audit(with_column(s=[0.5, 1.5, None, 0.2]), eq.gap("squared_error", across="g"))


ENGINES: dict[str, Callable[[Any], Any]] = {
    "polars": lambda t: t,
    "pandas": lambda t: t.to_pandas(),
    "pyarrow": lambda t: t.to_arrow(),
    "duckdb": lambda t: duckdb.connect().from_arrow(t.to_arrow()),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "formula",
    ["1 / x", "log(x)", "sqrt(x - 3)", "exp(1000 * x)", "x ** -1", "x % 0", "(x - 3) ** 0.5"],
)
def test_a_metric_that_is_no_number(engine: str, formula: str) -> None:
    with refuses(eq.TrailError, "Metric 'mine' is infinite, too large, or not a number"):
        audit(ENGINES[engine](TABLE), eq.gap(eq.metric("mine", formula), across="g"))
    rest = eq.metric("mine", formula, where="x == 4 and not x == 0")
    if formula not in ("exp(1000 * x)", "x % 0"):
        assert audit(ENGINES[engine](TABLE), eq.gap(rest, across="g")).provenance.counted == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_log_loss_of_a_certain_mistake(engine: str) -> None:
    source = ENGINES[engine](TABLE)  # the third row has score 0 and label 1
    with refuses(eq.TrailError, "'log_loss' is infinite", ".clip"):
        audit(source, eq.gap("log_loss", across="g"))
    found = audit(source, eq.gap(eq.log_loss.clip(0, 5), across="g"))
    assert found.provenance.counted == 4
    assert found.overall == pytest.approx((0.0 + 0.22314355131421 + 5.0 + 0.35667494393873) / 4)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("column", ["y", "s"])
def test_infinite_role_values(engine: str, column: str) -> None:
    table = TABLE.with_columns(**{column: pl.Series([float("inf"), 1.0, 0.0, None])})
    with refuses(eq.TrailError, "'residual' is infinite"):
        audit(ENGINES[engine](table), eq.gap("residual", across="g"))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_promised_range_is_checked(engine: str) -> None:
    promised = eq.metric("mine", "x", low=0, high=3)
    with refuses(eq.TrailError, "never above 3", "1 row", ".clip"):
        audit(ENGINES[engine](TABLE), eq.gap(promised, across="g"))
    assert audit(ENGINES[engine](TABLE), eq.gap(promised.clip(0, 3), across="g")).overall == 1.5


def test_mixed_types() -> None:
    mixed = pd.DataFrame({**DATA, "g": [1, "a", 2, None], "m": [1, "a", 2, None]})
    with refuses(eq.ClaimError, "'g' mixes text and numbers", "Convert"):
        audit(mixed)
    with refuses(eq.TrailError, "score column 'm' must hold numbers", "Convert"):
        eq.read(mixed, score="m")
    with refuses(eq.TrailError, "label column 'm'", "mixed types", "positive="):
        audit(mixed, CLAIM, label="m")


def test_mixed_csv_column_is_text(tmp_path: Path) -> None:
    path = tmp_path / "mixed.csv"
    path.write_text("y,p,g\n1,1,a\n2,0,b\nx,1,c\n")
    with refuses(eq.TrailError, "label column 'y' holds text"):
        audit(path, score=None)
    with refuses(eq.TrailError, "'y' must hold numbers; it holds String"):
        eq.read(path, score="y")


def test_nested_columns_cannot_be_grouped_by() -> None:
    for values in ([[1], [2], [1], [2]], [{"a": 1}] * 4, [b"x"] * 4):
        with refuses(eq.TrailError, "'g' holds", "cannot be grouped", "Make a column"):
            audit(pl.DataFrame({**DATA, "g": values}))
    with pytest.raises(eq.TrailError, match="unhashable"):
        audit(pd.DataFrame({**DATA, "g": [[1], [2], [1], [2]]}))


def test_a_date_is_no_number() -> None:
    import datetime

    table = with_column(g=[datetime.date(2020, 1, 1)] * 4)
    with refuses(eq.TrailError, "'g' is used as a number but holds Date", "Convert"):
        audit(table, eq.gap("accuracy", across=eq.intervals("g")))


# --- counts and weights -------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bad", [-1.0, 1.5, float("inf")])
def test_bad_counts(engine: str, bad: float) -> None:
    table = with_column(c=[bad, 1.0, 1.0, 1.0])
    with refuses(
        eq.TrailError, "count column 'c' must hold whole numbers of at least 0; 1 row does not"
    ):
        audit(ENGINES[engine](table), count="c")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bad", [-1.0, float("inf"), float("-inf"), 1e200, 1e-200])
def test_bad_weights(engine: str, bad: float) -> None:
    table = with_column(c=[bad, bad, 1.0, 1.0])
    with refuses(
        eq.TrailError,
        "weight column 'c' must hold finite numbers of at least 0, from 1e-60 to 1e60 where not 0; "
        "2 rows do not",
    ):
        audit(ENGINES[engine](table), weight="c")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("role", ["count", "weight"])
@pytest.mark.parametrize("missing", [None, float("nan")])
def test_missing_counts_and_weights_are_counted(
    engine: str, role: str, missing: float | None
) -> None:
    table = TABLE.with_columns(c=pl.Series([missing, 1.0, 2.0, 1.0], dtype=pl.Float64))
    found = audit(ENGINES[engine](table), **{role: "c"}).provenance
    assert found.excluded == {f"missing {role}": 1}
    assert found.scanned == (5 if role == "count" else 4)
    assert found.scanned == found.counted + found.ineligible + sum(found.excluded.values())


def test_nobody_left() -> None:
    zeros = with_column(c=[0, 0, 0, 0], n=[None, None, None, None])
    with refuses(eq.TrailError, "has no rows"):
        audit(zeros, count="c")
    with refuses(eq.TrailError, "have weight 0", "weight column"):
        audit(zeros, weight="c")
    none = TABLE.with_columns(n=pl.lit(None, dtype=pl.Int64))
    with refuses(eq.TrailError, "4 have no count"):
        audit(none, count="n")
    with refuses(eq.ClaimError, "counts on no row", "4 missing weight"):
        audit(none, weight="n")


def test_empty_table_and_zero_eligible_rows() -> None:
    for source in (
        TABLE.head(0),
        TABLE.head(0).to_pandas(),
        TABLE.head(0).to_arrow(),
        TABLE.head(0).lazy(),
    ):
        with refuses(eq.TrailError, "has no rows"):
            audit(source)
    with refuses(
        eq.ClaimError, "'false_positive_rate'", "label == 0", "counts on no row: of 4 rows"
    ):
        audit(with_column(y=[1, 1, 1, 1]), eq.gap("false_positive_rate", across="g"))
    with refuses(eq.ClaimError, "counts on no row", "4 missing label"):
        audit(TABLE.with_columns(y=pl.lit(None, dtype=pl.Int64)))


# --- names --------------------------------------------------------------------------------


def test_duplicate_column_names(tmp_path: Path) -> None:
    says = ("more than one column named 'a'", "Rename")
    with refuses(eq.TrailError, *says):
        eq.read(pd.DataFrame([[1, 2, 3]], columns=["a", "a", "b"]))
    twice = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    with refuses(eq.TrailError, *says):
        eq.read(twice)
    pyarrow.parquet.write_table(twice, tmp_path / "twice.parquet")
    with refuses(eq.TrailError, "twice.parquet", *says):
        eq.read(tmp_path / "twice.parquet")
    (tmp_path / "twice.csv").write_text("a,b,a\n1,2,3\n")
    with refuses(eq.TrailError, "twice.csv", *says):
        eq.read(tmp_path / "twice.csv")
    (tmp_path / "twice.csv.gz").write_bytes(gzip.compress(b"a,a\n1,2\n"))
    with refuses(eq.TrailError, "twice.csv.gz", *says):
        eq.read(tmp_path / "twice.csv.gz")
    with refuses(eq.TrailError, "'A', 'a'"):
        eq.read(pl.DataFrame({"A": [1], "a": [2]}))


def test_column_names_are_text_and_not_ours() -> None:
    with refuses(eq.TrailError, "names that are text", "called 0"):
        eq.read(pd.DataFrame([[1, 2]]))
    for name in ("__equipoise_key0", "__EQUIPOISE_x"):
        with refuses(eq.TrailError, name, "reserved", "Rename"):
            eq.read(TABLE.rename({"g": name}))


AWKWARD = [
    "present", "key0", "n", "label", "m0_rows", "m0_value", "weight", "where", "group", "kind",
    "SELECT", "a b", 'quo"te', "it's", "x;--drop", "[x]", "émoji 🎉", "new\nline", "{name}", "100%",
]  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_column_names(engine: str, name: str) -> None:
    table = ENGINES[engine](TABLE.rename({"g": name}))
    for metric in (
        "accuracy",
        "brier",
        eq.metric("is a", f"column({name!r}) == 'a'", where="x < 3"),
    ):
        found = audit(table, eq.gap(metric, across=eq.intersections(name)))
        assert [row.n for row in found.rows] == (
            [2, 1, 0] if isinstance(metric, eq.Metric) else [2, 1, 1]
        )
        assert found.rows[0].group == "a"
        assert found.rows[-1].group == f"{name} missing"
        assert found.rows[0].where == {name: "a"}


def test_role_names_as_column_names() -> None:
    table = TABLE.with_columns(label=pl.Series([0, 1, 0, 1]))
    assert audit(table).overall == 0.5  # a built-in metric means the role
    with refuses(eq.TrailError, "'label' could mean the label role", "role\\('label'\\)"):
        audit(table, eq.gap(eq.metric("mine", "label + 1"), across="g"))
    told = eq.metric("mine", "role('label') + 10 * column('label')")
    assert audit(table, eq.gap(told, across="g")).overall == (1 + 10 + 1 + 10) / 4
    same = TABLE.rename({"y": "label"})
    assert audit(same, eq.gap(eq.metric("mine", "label"), across="g"), label="label").overall == 0.5


def test_role_not_played_but_a_column() -> None:
    table = TABLE.with_columns(weight=pl.Series([1, 2, 3, 4]))
    assert audit(table, eq.gap(eq.metric("mine", "weight"), across="g")).overall == 2.5
    with refuses(eq.TrailError, "needs a high column"):
        audit(table, eq.gap(eq.metric("mine", "high"), across="g"))


# --- too much -----------------------------------------------------------------------------


def test_an_attribute_with_100_000_levels_is_refused_quickly() -> None:
    n = 100_000
    table = pl.DataFrame({"y": [0, 1] * (n // 2), "p": [1, 0] * (n // 2), "id": range(n)})
    tracemalloc.start()
    begun = time.process_time()
    with refuses(eq.ClaimError, "'id' has 100,000 levels", "10,000", "binned\\('id'"):
        audit(table, eq.gap("accuracy", across=eq.intersections("id")), score=None)
    with refuses(eq.ClaimError, "'id' has 100,000 levels", "grid="):
        audit(table, eq.gap("accuracy", across=eq.intervals("id")), score=None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200e6
    assert time.process_time() - begun < 20
    grid = audit(table, eq.gap("accuracy", across=eq.intervals("id", grid=4)), score=None)
    assert [row.n for row in grid.rows][:4] == [24_999, 49_999, 74_999, 100_000]


def test_too_many_groups_says_how_many() -> None:
    with refuses(eq.ClaimError, "has 11 groups, more than the limit of 3", "depth=", "max_groups="):
        audit(TABLE, eq.gap("accuracy", across=eq.intersections("g", "x", max_groups=3)))
    with refuses(eq.ClaimError, "has 10 groups", "limit of 9", "grid="):
        audit(TABLE, eq.gap("accuracy", across=eq.intervals("x", max_groups=9)))
    with refuses(eq.ClaimError, "names 2 groups, more than the limit of 1"):
        eq.masks(a="x > 1", b="x > 2", max_groups=1)


def test_too_many_cells_names_the_worst_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("equipoise.cells.gather"), "MAX_CELLS", 3)
    with refuses(eq.ClaimError, "more than 3 cells", "'x' alone has 4 levels", "binned"):
        audit(TABLE, eq.gap("accuracy", across=eq.intersections("g", "x")))
    with refuses(eq.ClaimError, "'x' has more than 3 different values", "edges="):
        audit(TABLE, eq.gap("accuracy", across=eq.intervals("x", grid=2)))


def test_no_range_in_one_value() -> None:
    one = with_column(x=[2.0, 2.0, 2.0, 2.0])
    with refuses(eq.ClaimError, "'x' has one value only, 2"):
        audit(one, eq.gap("accuracy", across=eq.intervals("x", grid=3)))
    with refuses(eq.ClaimError, "no group"):
        audit(one, eq.gap("accuracy", across=eq.thresholds("x")))
    none = TABLE.with_columns(x=pl.lit(None, dtype=pl.Float64))
    with refuses(eq.TrailError, "'x' has no finite value"):
        audit(none, eq.gap("accuracy", across=eq.intervals("x", grid=3)))
