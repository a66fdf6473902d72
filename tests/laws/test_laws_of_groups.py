"""Laws of the groups: every fast operator gives what going through the rows gives."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.cells import Cells, Collection, form_groups, gather
from equipoise.cells import groups as form
from equipoise.claims.groups import Groups
from tests.laws import oracle
from tests.laws.oracle import METRICS, Row
from tests.laws.tables import law, rows, trail_of

metrics = st.sampled_from(sorted(METRICS))
Member = Callable[[Row, dict[str, Any]], bool]


def counted(table: list[Row]) -> eq.Trail:
    return trail_of(table, count="times", weight="w")


def formed(table: list[Row], metric: str, across: Groups) -> tuple[Cells, Collection]:
    (cells,) = gather(counted(table), [eq.gap(metric, across=across)])
    return cells, form_groups(across, cells)


def assert_brute_force(table: list[Row], metric: str, across: Groups, member: Member) -> int:
    """Every group's sums against a loop over the rows; how many groups there were."""
    cells, collection = formed(table, metric, across)
    for group, where in enumerate(collection.wheres()):
        wanted = oracle.sums([row for row in table if member(row, where)], METRICS[metric])
        for name in ("present", "rows", "weight", "total", "square"):
            ours = collection.sums(getattr(cells, name))[group]
            assert ours == pytest.approx(getattr(wanted, name), abs=1e-9), (where, name)
    assert len({str(where) for where in collection.wheres()}) == len(collection)
    assert len(set(collection.labels())) == len(collection)
    return len(collection)


def by_level(row: Row, where: Mapping[str, Any]) -> bool:
    return all(oracle.level(row[name]) == value for name, value in where.items())


def in_range(value: Any, ends: dict[str, float]) -> bool:
    if oracle.missing(value):
        return False
    above = ends.get("from", -math.inf) <= value
    return bool(
        above and (value <= ends["to"] if "to" in ends else value < ends.get("below", math.inf))
    )


def by_range(row: Row, where: dict[str, Any]) -> bool:
    return all(in_range(row[name], ends) for name, ends in where.items())


def distinct(table: list[Row], name: str) -> list[float]:
    return sorted({row[name] for row in table if row["times"] and not oracle.missing(row[name])})


@law
@given(rows, metrics, st.sampled_from([None, 1, 2]))
def test_intersections_by_cube_are_masks(table: list[Row], metric: str, depth: int | None) -> None:
    across = eq.intersections("g", "h", "k", depth=depth)
    number = assert_brute_force(table, metric, across, by_level)
    wanted = {
        tuple((n, oracle.level(row[n])) for n in names)
        for row in table
        if row["times"]
        for names in ("g", "h", "k", "gh", "gk", "hk", "ghk")
        if depth is None or len(names) <= depth
    }
    assert number == len(wanted)


@law
@given(rows, metrics, st.sampled_from([None, 2]))
def test_sparse_path_is_dense_path(table: list[Row], metric: str, depth: int | None) -> None:
    across = eq.intersections("g", "h", "k", depth=depth)
    cells, dense = formed(table, metric, across)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(form, "_BOX_LIMIT", 0)
        patch.setattr(form, "_BOX_FILL", 0)
        sparse = form_groups(across, cells)
    assert type(sparse.sums) is not type(dense.sums)
    np.testing.assert_array_equal(sparse.choices, dense.choices)
    block = np.stack([cells.present, cells.total, cells.square])
    np.testing.assert_allclose(sparse.sums(block), dense.sums(block), rtol=1e-12, atol=1e-12)


@law
@given(rows, metrics)
def test_intervals_by_prefix_are_brute_force(table: list[Row], metric: str) -> None:
    number = assert_brute_force(table, metric, eq.intervals("x"), by_range)
    points = len(distinct(table, "x"))
    assert number == points * (points + 1) // 2


@law
@given(rows, metrics)
def test_intervals_on_edges_are_brute_force(table: list[Row], metric: str) -> None:
    across = eq.intervals("x", edges=(0.5, 1.0, 4.0, 5.0))
    assert assert_brute_force(table, metric, across, by_range) > 0


@law
@given(rows, metrics, st.integers(2, 6))
def test_a_grid_falls_on_quantiles(table: list[Row], metric: str, grid: int) -> None:
    across = eq.intervals("x", grid=grid)
    assert assert_brute_force(table, metric, across, by_range) > 0
    cells, _ = formed(table, metric, across)
    repeated = [row["x"] for row in table for _ in range(row["times"])]
    values = sorted(value for value in repeated if not oracle.missing(value))
    # The smallest value with at least the wanted share of rows at or below it.
    inner = [values[math.ceil(i / grid * len(values) - 1e-9) - 1] for i in range(1, grid)]
    edges = sorted({values[0], *inner, values[-1]})
    assert [a for a, _ in cells.axes[0].levels] + [cells.axes[0].levels[-1][1]] == edges


@law
@given(rows, metrics)
def test_thresholds_are_brute_force(table: list[Row], metric: str) -> None:
    number = assert_brute_force(table, metric, eq.thresholds("x"), by_range)
    assert number == 2 * (len(distinct(table, "x")) - 1)


@law
@given(rows, metrics)
def test_boxes_are_brute_force(table: list[Row], metric: str) -> None:
    across = eq.boxes("x", "z", edges={"x": (0.5, 1.0, 4.0, 9.0)}, grid=2)
    assert assert_brute_force(table, metric, across, by_range) > 0


@law
@given(rows, metrics)
def test_binned_attributes_are_brute_force(table: list[Row], metric: str) -> None:
    across = eq.intersections("h", eq.binned("x", cuts=(1, 4)))

    def member(row: Row, where: dict[str, Any]) -> bool:
        ends = where.get("x", {})
        inside = oracle.missing(row["x"]) if ends is None else not ends or in_range(row["x"], ends)
        return bool(inside and ("h" not in where or row["h"] == where["h"]))

    assert assert_brute_force(table, metric, across, member) > 0


MASKS: dict[str, tuple[str, Callable[[Row], bool]]] = {
    "low": ("x < 2 and h == 'u'", lambda r: r["x"] < 2 and r["h"] == "u"),
    "not one": ("not k == 1", lambda r: r["k"] != 1),
    "some": ("g in ('a', 'c') or p", lambda r: r["g"] in ("a", "c") or r["p"] == 1),
    "nobody": ("k > 99", lambda r: False),
}


@law
@given(rows, metrics)
def test_masks_are_brute_force(table: list[Row], metric: str) -> None:
    reads = {"low": "xh", "not one": "k", "some": "gp", "nobody": "k"}
    across = eq.masks({name: formula for name, (formula, _) in MASKS.items()})

    def member(row: Row, where: dict[str, Any]) -> bool:
        (name,) = where
        complete = not any(oracle.missing(row[column]) for column in reads[name])
        return complete and MASKS[name][1](row)

    # A group that was named is reported even if it is empty.
    assert assert_brute_force(table, metric, across, member) == len(MASKS)


@law
@given(rows, st.sampled_from(["accuracy", "brier", "false_positive_rate"]), st.integers(0, 9))
def test_indicator_tilts_are_masks(table: list[Row], metric: str, seed: int) -> None:
    formulas = {name: formula for name, (formula, _) in MASKS.items()}
    trail = trail_of(table)
    masks, tilts = (
        eq.certify(trail, eq.gap(metric, across=across), resamples=20, rng=seed)
        for across in (eq.masks(formulas), eq.tilts(formulas))
    )
    names = ("group", "n", "value", "target", "disparity", "lower", "upper", "reach")
    for a, b in zip(masks.rows, tilts.rows, strict=True):
        assert [getattr(a, name) for name in names] == [getattr(b, name) for name in names]


@law
@given(rows, st.sampled_from(["accuracy", "brier"]))
def test_tilts_are_weighted_means(table: list[Row], metric: str) -> None:
    trail, across = trail_of(table, count="times"), eq.tilts("w", twice="2 * p + (h == 'u') * w")
    weights: dict[str, Callable[[Row], float]] = {
        "w": lambda r: r["w"],
        "twice": lambda r: 2 * r["p"] + (r["h"] == "u") * r["w"],
    }
    found = eq.certify(trail, eq.gap(metric, across=across), resamples=20, rng=1)
    known = [r for r in table if r["y"] is not None]
    if metric == "brier":
        known = [r for r in known if not oracle.missing(r["s"])]
    for row in found.rows:
        h = [r["times"] * weights[row.group](r) for r in known]
        if metric == "accuracy":
            x = [float(r["y"] == r["p"]) for r in known]
        else:
            x = [(r["y"] - r["s"]) ** 2 for r in known]
        assert row.value == pytest.approx(np.dot(h, x) / sum(h), rel=1e-9, abs=1e-9)


@law
@given(rows, metrics, st.sampled_from(["intersections", "masks", "thresholds"]))
def test_bins_are_brute_force(table: list[Row], metric: str, kind: str) -> None:
    inner: dict[str, Groups] = {
        "intersections": eq.intersections("g", "h"),
        "masks": eq.masks(low="z < 1", up="h == 'u'"),
        "thresholds": eq.thresholds("z"),
    }
    across = eq.bins(inner[kind], edges=(0, 0.125, 0.6, 1))

    def member(row: Row, where: dict[str, Any]) -> bool:
        outer = {name: value for name, value in where.items() if name != "score"}
        if not in_range(row["s"], where["score"]):
            return False
        if kind == "masks":
            (name,) = outer
            return row["z"] is not None and row["z"] < 1 if name == "low" else row["h"] == "u"
        return by_level(row, outer) if kind == "intersections" else by_range(row, outer)

    if kind == "thresholds" and len(distinct(table, "z")) < 2:
        return
    assert assert_brute_force(table, metric, across, member) > 0


@law
@given(rows, metrics)
def test_targets_are_what_a_loop_finds(table: list[Row], metric: str) -> None:
    across = eq.intersections("g", "h")

    def mean(inside: list[Row]) -> float | None:
        found = oracle.sums(inside, METRICS[metric])
        return found.total / found.weight if found.weight else None

    for target, member in (
        (eq.overall(), lambda row, where: True),
        (eq.complement(), lambda row, where: not by_level(row, where)),
        (eq.reference(k=1), lambda row, where: row["k"] == 1),
    ):
        found = eq.describe(counted(table), eq.gap(metric, across=across, target=target))
        for row in found.rows:
            compared = mean([other for other in table if member(other, row.where)])
            assert row.target == pytest.approx(compared)
            own = mean([other for other in table if by_level(other, row.where)])
            assert row.value == pytest.approx(own)
            if row.value is None or row.target is None:
                assert row.disparity is None
            else:
                assert row.disparity == pytest.approx(row.value - row.target)
