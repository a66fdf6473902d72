"""Metrics with few values: what may be said of them, and what the scan checks."""

import polars as pl
import pytest

import equipoise as eq

TABLE = pl.DataFrame({"group": ["a"] * 6 + ["b"] * 6, "change": [-1, 0, 0, 0, 1, 1] * 2})
CHANGE = eq.metric("change", "change", values=(1, -1, 0))


def test_values_are_ordered_and_bound_the_metric() -> None:
    assert CHANGE.values == (-1.0, 0.0, 1.0)
    assert (CHANGE.low, CHANGE.high) == (-1.0, 1.0)
    assert eq.from_plan(CHANGE.to_plan()) == CHANGE


@pytest.mark.parametrize("values", [(0, 1, 5), (1,), (0, 1, 2, 3), "01", 3])
def test_other_values_are_refused(values: object) -> None:
    with pytest.raises(eq.EquipoiseError, match="values"):
        eq.metric("change", "change", values=values)  # type: ignore[arg-type]


def test_small_groups_are_answered_by_counts() -> None:
    claim = eq.gap(CHANGE, across="group", target=eq.constant(0))
    found = eq.certify(eq.read(TABLE), claim, rng=1)
    assert all(row.lower is not None and row.upper is not None for row in found.rows)
    assert all(row.lower <= row.disparity <= row.upper for row in found.rows)
    plain = eq.gap(eq.metric("change", "change"), across="group", target=eq.constant(0))
    assert all(row.note for row in eq.certify(eq.read(TABLE), plain, rng=1).rows)


def test_the_scan_checks_the_values() -> None:
    halves = eq.metric("half", "change / 2", values=(-1, 0, 1))
    with pytest.raises(eq.TrailError, match="says its values are -1, 0, 1; on 6 rows"):
        eq.describe(eq.read(TABLE), eq.gap(halves, across="group"))
