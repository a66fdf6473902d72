"""Laws of the cells: what must not matter, and what must add up."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.cells import Cells, gather
from tests.laws import oracle
from tests.laws.oracle import METRICS, Row
from tests.laws.tables import law, rows, trail_of

ACROSS = eq.intersections("g", "h", "k")
metrics = st.sampled_from(sorted(METRICS))
FIRST, SECOND = ("weight", "total", "square"), ("weight2", "total2", "square2")
THIRD = ("weight3", "total3", "square3", "cube3")
MOMENTS = (*FIRST, *SECOND, *THIRD)


def cells_of(table: list[Row], metric: str, across: Any = ACROSS, **roles: Any) -> Cells:
    (cells,) = gather(trail_of(table, **roles), [eq.gap(metric, across=across)])
    return cells


def assert_same(one: Cells, two: Cells) -> None:
    assert one.counted > 0
    assert [axis.levels for axis in one.axes] == [axis.levels for axis in two.axes]
    np.testing.assert_array_equal(one.index, two.index)
    np.testing.assert_array_equal(one.present, two.present)
    np.testing.assert_array_equal(one.rows, two.rows)
    for name in MOMENTS:
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-12, atol=1e-12)
    assert (one.scanned, one.excluded, one.ineligible) == (
        two.scanned,
        two.excluded,
        two.ineligible,
    )
    assert one.fingerprint() == two.fingerprint()


@law
@given(rows, metrics)
def test_counts_are_repeated_rows(table: list[Row], metric: str) -> None:
    repeated = [{**row, "times": 1} for row in table for _ in range(row["times"])]
    assert_same(cells_of(table, metric, count="times"), cells_of(repeated, metric))


@law
@given(rows, metrics, st.integers(0, 2**32 - 1))
def test_row_order_is_irrelevant(table: list[Row], metric: str, seed: int) -> None:
    shuffled = random.Random(seed).sample(table, len(table))
    assert_same(cells_of(table, metric, weight="w"), cells_of(shuffled, metric, weight="w"))


@law
@given(rows, metrics)
def test_cells_are_what_a_loop_finds(table: list[Row], metric: str) -> None:
    cells = cells_of(table, metric, count="times", weight="w")
    seen = set()
    for position, codes in enumerate(cells.index.tolist()):
        levels = tuple(axis.levels[c] for axis, c in zip(cells.axes, codes, strict=True))
        seen.add(levels)
        inside = [row for row in table if tuple(oracle.level(row[n]) for n in "ghk") == levels]
        wanted = oracle.sums(inside, METRICS[metric])
        assert (cells.present[position], cells.rows[position]) == (wanted.present, wanted.rows)
        for name in (*FIRST, *THIRD):
            assert getattr(cells, name)[position] == pytest.approx(getattr(wanted, name), abs=1e-12)
    counted = [row for row in table if row["times"]]
    assert seen == {tuple(oracle.level(row[n]) for n in "ghk") for row in counted}


@law
@given(rows, metrics)
def test_a_partition_adds_up_to_the_whole(table: list[Row], metric: str) -> None:
    fine, coarse = cells_of(table, metric), cells_of(table, metric, eq.intersections("h"))
    for name in ("present", "rows", *MOMENTS):
        assert getattr(fine, name).sum() == pytest.approx(getattr(coarse, name).sum(), abs=1e-9)
    assert (fine.scanned, fine.excluded) == (coarse.scanned, coarse.excluded)


@law
@given(rows, metrics)
def test_every_row_is_accounted_for(table: list[Row], metric: str) -> None:
    cells = cells_of(table, metric)
    complete = "p" if metric in ("accuracy", "false_positive_rate") else "s"
    full = [r for r in table if not oracle.missing(r["y"]) and not oracle.missing(r[complete])]
    counted = [row for row in full if METRICS[metric](row) is not None]
    assert cells.scanned == len(table)
    assert cells.counted == len(counted)
    assert cells.ineligible == len(full) - len(counted)
    assert sum(cells.excluded.values()) == len(table) - len(full)
    assert cells.scanned == cells.counted + cells.ineligible + sum(cells.excluded.values())
    missing_label = sum(row["y"] is None for row in table)
    assert cells.excluded.get("missing label", 0) == missing_label


@law
@given(rows, metrics)
def test_weights_of_one_change_nothing(table: list[Row], metric: str) -> None:
    ones = [{**row, "w": 1.0} for row in table]
    weighted, plain = cells_of(ones, metric, weight="w"), cells_of(ones, metric)
    assert weighted.weighted
    assert not plain.weighted
    assert_same(weighted, plain)


@law
@given(rows, metrics)
def test_whole_weights_are_counts_for_point_values(table: list[Row], metric: str) -> None:
    known = [{**row, "times": int(row["w"])} for row in table]
    claim = eq.gap(metric, across=ACROSS, target=eq.complement())
    weighted = eq.describe(trail_of(known, weight="w"), claim)
    counted = eq.describe(trail_of(known, count="times"), claim)
    assert [row.group for row in weighted.rows] == [row.group for row in counted.rows]
    for ours, theirs in zip(weighted.rows, counted.rows, strict=True):
        assert ours.value == pytest.approx(theirs.value)
        assert ours.target == pytest.approx(theirs.target)


@law
@given(rows, metrics, st.sampled_from(["times", "w"]))
def test_a_missing_count_or_weight_leaves_a_row_out(
    table: list[Row], metric: str, column: str
) -> None:
    role = {"times": "count", "w": "weight"}[column]
    holes: list[Row] = [{**row, column: None} if i % 3 == 2 else row for i, row in enumerate(table)]
    lost = sum(row[column] is None for row in holes)
    found = cells_of(holes, metric, **{role: column})
    kept = cells_of([row for row in holes if row[column] is not None], metric, **{role: column})
    assert found.counted == kept.counted
    assert found.total.sum() == pytest.approx(kept.total.sum(), abs=1e-9)
    assert found.scanned == kept.scanned + lost
    assert found.excluded.get(f"missing {role}", 0) == lost
