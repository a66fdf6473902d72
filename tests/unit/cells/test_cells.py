"""Cells: what they say about themselves."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.cells import form_groups, gather
from equipoise.cells.groups import encode, sort_levels
from equipoise.cells.rows import pull_rows
from equipoise.cells.tally import steady
from equipoise.methods.numerics import merge
from equipoise.methods.targets import TiltSums

TABLE = pl.DataFrame(
    {"y": [1, 0, 1, 0], "p": [1, 1, 0, 0], "g": ["a", "b", "a", None], "s": [0.1, 0.7, 0.2, 0.9]}
)
TRAIL = eq.read(TABLE, label="y", prediction="p", score="s")


def test_fingerprint_tells_things_apart() -> None:
    (cells,) = gather(TRAIL, [eq.gap("residual", across="g")])
    print_ = cells.fingerprint()
    (axis,) = cells.axes
    assert len(print_) == 64
    changed = [
        dataclasses.replace(cells, total=cells.total + 0.01),
        dataclasses.replace(cells, square=cells.square * 1.001),
        dataclasses.replace(cells, rows=cells.rows + 1),
        dataclasses.replace(cells, present=cells.present + 1),
        dataclasses.replace(cells, scanned=5),
        dataclasses.replace(cells, excluded={"missing label": 1}),
        dataclasses.replace(cells, metric=eq.accuracy),
        dataclasses.replace(cells, axes=(dataclasses.replace(axis, levels=("a", "c", None)),)),
        dataclasses.replace(cells, axes=(dataclasses.replace(axis, levels=("a", "b", "None")),)),
    ]
    assert len({print_, *(other.fingerprint() for other in changed)}) == len(changed) + 1


def test_fingerprint_does_not_see_rounding() -> None:
    (cells,) = gather(TRAIL, [eq.gap("residual", across="g")])
    rng = np.random.default_rng(5)
    for _ in range(200):
        noise = 1 + 1e-15 * rng.standard_normal(3)
        cancelled = dataclasses.replace(cells, total=np.array([0.3, 1e-17 * noise[0], -1e-17]))
        plain = dataclasses.replace(cells, total=np.array([0.3, 0.0, 0.0]))
        assert cancelled.fingerprint() == plain.fingerprint()
        assert (
            dataclasses.replace(cells, square=cells.square * noise).fingerprint()
            == cells.fingerprint()
        )


def test_a_metric_of_zero_and_one_is_noticed() -> None:
    for metric, wanted in (
        ("accuracy", True),
        (eq.metric("high", "score > 0.5", where="label == 1 or g == 'b'"), True),
        (eq.metric("number", "label", where="score > 0.5"), True),
        ("brier", False),
        (eq.accuracy.clip(0, 0.5), False),
    ):
        for source in (TABLE, TABLE.to_pandas(), TABLE.to_arrow()):
            trail = eq.read(source, label="y", prediction="p", score="s")
            (cells,) = gather(trail, [eq.gap(metric, across="g")])
            assert cells.zero_one == wanted


def test_levels_in_order() -> None:
    assert sort_levels({3, 1.5, None, True}, "a") == (True, 1.5, 3, None)
    levels, codes = encode(np.array(["b", None, "a", "b"], dtype=object), "g", "")
    assert (levels, codes.tolist()) == (("a", "b", None), [1, 2, 0, 1])
    with pytest.raises(eq.ClaimError, match="mixes text and numbers"):
        sort_levels({"a", 1}, "g")


def test_what_is_audited_can_be_a_path_or_a_table(tmp_path: Path) -> None:
    claim = eq.gap("accuracy", across="g")
    table = pl.DataFrame({"y": [0, 1, 1], "d": [0, 1, 0], "g": ["a", "b", "b"]})
    table.write_csv(tmp_path / "decisions.csv")
    roles: dict[str, Any] = {"label": "y", "prediction": "d"}
    read = eq.describe(eq.read(table, **roles), claim)
    for source in (table, str(tmp_path / "decisions.csv"), tmp_path / "decisions.csv"):
        assert eq.describe(source, claim, **roles).rows == read.rows
    with pytest.raises(eq.TrailError, match="cannot be read from int"):
        eq.describe(3, claim)  # type: ignore[call-overload]
    with pytest.raises(eq.OptionError, match="says already what its columns mean"):
        eq.describe(eq.read(table, **roles), claim, label="y")
    with pytest.raises(eq.OptionError, match=r"'labl' does not exist\. Did you mean 'label'"):
        eq.describe(table, claim, labl="y")  # type: ignore[call-overload]


def test_two_grids_of_one_attribute_are_kept_apart() -> None:
    trail = eq.read(pl.DataFrame({"y": [0, 1] * 50, "a": range(100)}), label="y")
    metric = eq.metric("mine", "label")
    coarse, fine = (eq.gap(metric, across=eq.intervals("a", grid=g)) for g in (2, 4))
    found = gather(trail, [coarse, fine])
    from equipoise.cells import form_groups

    assert [
        len(form_groups(c.across, cells)) for c, cells in zip((coarse, fine), found, strict=True)
    ] == [3, 10]


def test_a_row_that_lacks_several_columns_is_counted_once() -> None:
    table = pl.DataFrame(
        {
            "y": [1, None, None, 0, 1],
            "p": [1, None, 1, None, 0],
            "s": [0.5, None, 0.5, 0.5, float("nan")],
            "n": [1, 2, 4, 8, 16],
        }
    )
    trail = eq.read(table, label="y", prediction="p", score="s", count="n", attributes=[])
    local, pushed = gather(trail, [eq.gap("accuracy"), eq.gap(eq.metric("m", "label + score"))])
    assert local.excluded == {"missing label": 6, "missing prediction": 8}
    assert pushed.excluded == {"missing label": 6, "missing score": 16}
    for cells in (local, pushed):
        assert cells.scanned == cells.counted + sum(cells.excluded.values()) == 31


def test_sums_do_not_depend_on_the_order_of_the_rows() -> None:
    rng = np.random.default_rng(3)
    index, value = rng.integers(0, 3, (4000, 1)), rng.standard_normal(4000)
    cells, sums = merge(index, {"total": value, "square": value**2})
    for _ in range(5):
        order = rng.permutation(4000)
        again = {"total": value[order], "square": value[order] ** 2}
        cells_again, sums_again = merge(index[order], again)
        np.testing.assert_array_equal(cells_again, cells)
        for name, column in sums.items():
            np.testing.assert_array_equal(sums_again[name], column)


def test_weighted_sums_are_those_of_the_rows() -> None:
    label, decided = np.array([1, 0, 1, 0, 1, 0]), np.array([1, 1, 0, 0, 1, 0])
    score, count = np.array([0.9, 0.6, 0.2, 0.1, 0.7, 0.3]), np.array([1, 2, 3, 4, 5, 6])
    weight = np.array([0.5, 2.0, 3.0, 0.0, 1.5, np.nan])
    columns = {"y": label, "p": decided, "s": score, "n": count, "w": weight}
    roles = {"label": "y", "prediction": "p", "score": "s", "weight": "w"}
    for counted in (True, False):
        often = (count if counted else np.ones(6))[:5]
        trail = eq.read(pl.DataFrame(columns), **roles, **({"count": "n"} if counted else {}))
        found = gather(trail, [eq.gap("accuracy"), eq.gap("brier")])
        values = (label == decided) * 1.0, (label - score) ** 2
        for cells, value in zip(found, values, strict=True):
            x, w = value[:5], weight[:5]
            assert cells.excluded == {"missing weight": 6 if counted else 1}
            assert cells.rows.sum() == often.sum()
            for power, suffix in ((w, ""), (w**2, "2")):
                for name, term in (("weight", x**0), ("total", x), ("square", x**2)):
                    summed = getattr(cells, f"{name}{suffix}").sum()
                    assert summed == pytest.approx((often * power * term).sum())


def test_steady_sums_forget_the_order_of_addition_and_little_else() -> None:
    rng = np.random.default_rng(6)
    values = rng.lognormal(size=20_000)
    orders = [np.cumsum(rng.permutation(values))[-1] for _ in range(20)]
    assert len(set(orders)) > 1
    made = {float(steady(np.array([one]), np.array([one]))[0]) for one in orders}
    assert len(made) == 1
    assert made.pop() == pytest.approx(values.sum(), rel=2.0**-32)


def test_rows_that_stand_for_nobody_are_not_pulled() -> None:
    table = pl.DataFrame({"y": [0.5, 1.5, 2.5], "n": [2, 0, 3], "g": ["a", "only here", "b"]})
    trail = eq.read(table, label="y", count="n")
    claim = eq.gap(eq.metric("mine", "label"), across="g")
    (cells,) = gather(trail, [claim])
    rows = pull_rows(trail, claim.metric, cells)
    assert rows.count is not None
    assert sorted(zip(rows.cell, rows.value, rows.count, strict=True)) == [(0, 0.5, 2), (1, 2.5, 3)]


def test_a_tilt_is_taken_on_the_scale_on_which_it_equals_its_square() -> None:
    table = pl.DataFrame({"y": [0.5, 1.5, 2.5, 3.5], "x": [0.0, 1.0, 2.0, 7.0]})
    claim = eq.gap(eq.metric("mine", "label"), across=eq.tilts(one="x / 10", other="3 * x"))
    (cells,) = gather(eq.read(table, label="y"), [claim])
    sums = form_groups(claim.across, cells).sums
    assert isinstance(sums, TiltSums)
    first = sums.first(cells.rows)
    # Σ h = Σ h² = (Σ x)² / Σ x²: the number of rows that a tilt is worth, whatever its unit
    np.testing.assert_allclose(first, [100 / 54, 100 / 54])
    np.testing.assert_allclose(sums.squares(cells.rows), first)


def test_weights_that_differ_in_the_last_digit_are_one_level() -> None:
    table = pl.DataFrame({"y": [0, 1, 1], "h": [0.1 + 0.2, 0.3, 0.7]})
    claim = eq.gap(eq.metric("mine", "label"), across=eq.tilts("h"))
    (cells,) = gather(eq.read(table, label="y"), [claim])
    assert cells.rows.tolist() == [2, 1]


def test_a_row_of_no_known_cluster_does_not_count() -> None:
    table = pl.DataFrame({"y": [1, 0, 1, 0], "p": [1, 1, 1, 0], "c": ["k", None, "k", "l"]})
    trail = eq.read(table, label="y", prediction="p", cluster="c", attributes=[])
    (cells,) = gather(trail, [eq.gap("accuracy")])
    assert (cells.scanned, cells.counted, cells.excluded) == (4, 3, {"missing cluster": 1})
    assert cells.total.sum() == 3
    assert cells.clusters is not None
    assert cells.clusters.weight.tolist() == [2, 1]
