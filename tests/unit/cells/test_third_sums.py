"""Sums of third order: what a loop over the rows finds, in the same one scan."""

import dataclasses
import importlib
import json
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import equipoise as eq
from equipoise.cells import Cells, gather
from equipoise.cells.tally import steady_cells

ROWS = 240
THIRD = ("weight3", "total3", "square3", "cube3")
ROLES = {"label": "y", "prediction": "d", "score": "s", "low": "a", "high": "b"}

ENGINES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda table: table,
    "polars": pl.from_pandas,
    "polars, lazy": lambda table: pl.from_pandas(table).lazy(),
    "duckdb": duckdb.from_df,
}

SAMPLES: dict[str, dict[str, str]] = {
    "plain": {},
    "counts": {"count": "n"},
    "weights": {"weight": "w"},
    "counts and weights": {"count": "n", "weight": "w"},
}

#: Each metric with what it is on a row of the table, NaN where it does not count.
METRICS: dict[str, tuple[Any, Callable[[Any], float]]] = {
    "real, signed": ("residual", lambda row: row.y - row.s),
    "real, clipped": (
        eq.residual.clip(-0.25, 0.4),
        lambda row: np.clip(row.y - row.s, -0.25, 0.4),
    ),
    "real, from keys": (
        eq.Metric(name="cost", value="2 * label - 3 * prediction", binary=("label", "prediction")),
        lambda row: 2 * row.y - 3 * row.d,
    ),
    "0/1, from keys": ("accuracy", lambda row: float(row.y == row.d)),
    "real, from keys, clipped": (
        eq.accuracy.clip(0.2, 0.9),
        lambda row: np.clip(float(row.y == row.d), 0.2, 0.9),
    ),
    "0/1, some rows": (
        "false_positive_rate",
        lambda row: row.d if row.y == 0 else np.nan,
    ),
    "0/1, summed": (
        eq.Metric(
            name="covered", value="low <= score and score <= high", by_role=True, zero_one=True
        ),
        lambda row: np.nan if np.isnan(row.s) else float(row.a <= row.s <= row.b),
    ),
    "0/1, found": (
        eq.metric("high", "s > 0.5"),
        lambda row: np.nan if np.isnan(row.s) else float(row.s > 0.5),
    ),
}


def _table(rows: int = ROWS, seed: int = 8) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    score = np.where(rng.random(rows) < 0.1, np.nan, rng.random(rows))
    return pd.DataFrame(
        {
            "y": rng.integers(0, 2, rows),
            "d": rng.integers(0, 2, rows),
            "s": score,
            "a": rng.random(rows) - 0.5,
            "b": rng.random(rows) + 0.5,
            "w": np.where(rng.random(rows) < 0.05, np.nan, rng.lognormal(size=rows)),
            "n": rng.integers(0, 4, rows),
            "c": rng.integers(0, 9, rows),
            "g": rng.choice(["a", "b", "c"], rows),
        }
    )


TABLE = _table()


def _read(table: Any, **roles: Any) -> eq.Trail:
    return eq.read(table, **{**ROLES, **roles}, attributes=["g"])


def _cells(source: Any, metric: Any) -> Cells:
    (cells,) = gather(source, [eq.gap(metric, across="g")])
    return cells


def _loop(
    table: pd.DataFrame, value: Callable[[Any], float], count: str = "", weight: str = ""
) -> dict[str, list[float]]:
    """The sums of third order of each group, a row at a time."""
    sums = {name: dict.fromkeys("abc", 0.0) for name in THIRD}
    for row in table.itertuples():
        w = float(getattr(row, weight)) if weight else 1.0
        times = int(getattr(row, count)) if count else 1
        measured = value(row)
        if np.isnan(w) or np.isnan(measured):
            continue
        for power, name in enumerate(THIRD):
            sums[name][str(row.g)] += times * w**3 * measured**power
    return {name: list(found.values()) for name, found in sums.items()}


def _assert_sums(cells: Cells, wanted: dict[str, list[float]], rtol: float = 1e-12) -> None:
    assert cells.axes[0].levels == ("a", "b", "c")
    for name in THIRD:
        # signed sums cancel, so they are measured against the sums of squares
        atol = rtol * max(wanted["square3"])
        np.testing.assert_allclose(getattr(cells, name), wanted[name], rtol=rtol, atol=atol)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("metric", METRICS)
def test_third_sums_are_what_a_loop_finds(engine: str, sample: str, metric: str) -> None:
    asked, value = METRICS[metric]
    cells = _cells(_read(ENGINES[engine](TABLE), **SAMPLES[sample]), asked)
    wanted = _loop(TABLE, value, **SAMPLES[sample])
    _assert_sums(cells, wanted)
    _assert_sums(steady_cells(cells), wanted, rtol=2.0**-31)


@pytest.mark.parametrize("metric", METRICS)
def test_without_weights_all_orders_are_one_array(metric: str) -> None:
    for roles in ({}, {"count": "n"}, {"cluster": "c"}):
        cells = _cells(_read(TABLE, **roles), METRICS[metric][0])
        assert cells.weight3 is cells.weight2 is cells.weight
        assert cells.total3 is cells.total2 is cells.total
        assert cells.square3 is cells.square2 is cells.square
        np.testing.assert_array_equal(cells.weight3, cells.rows)
        assert (cells.cube3 is cells.total) == cells.zero_one == metric.startswith("0/1")


def test_a_row_of_no_known_cluster_has_no_part_in_them() -> None:
    table = TABLE.assign(c=TABLE["c"].where(TABLE["c"] < 7))
    known = table[table["c"].notna()]
    for metric in ("real, signed", "0/1, from keys"):
        asked, value = METRICS[metric]
        cells = _cells(_read(table, cluster="c", weight="w"), asked)
        assert cells.excluded["missing cluster"] > 0
        _assert_sums(cells, _loop(known, value, weight="w"))


def _columns(metric: str, **roles: Any) -> set[str]:
    """The sums of third order that an engine is asked for."""
    scan = eq.tally(_read(TABLE, **roles), eq.gap(METRICS[metric][0], across="g")).scan
    assert scan.third_sums() <= set(scan.table)
    return {name.removeprefix("m0_") for name in scan.table if name.endswith("3")}


def test_engines_are_asked_for_no_more_than_is_needed() -> None:
    for metric in METRICS:
        local = "from keys" in metric or metric == "0/1, some rows"
        # what is 0 or 1 is known beforehand of all but the last
        cubes = set() if local or metric == "0/1, summed" else {"cube3"}
        assert _columns(metric) == _columns(metric, count="n") == cubes
        assert _columns(metric, weight="w") == cubes | ({"weight3"} if local else set(THIRD[:3]))


def test_they_come_from_the_one_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = importlib.import_module("equipoise.cells.gather")
    fetch, sent = module.fetch, []

    def counted(frame: Any, source: str) -> Any:
        sent.append(source)
        return fetch(frame, source)

    monkeypatch.setattr(module, "fetch", counted)
    claims = [eq.gap(metric, across="g") for metric, _ in METRICS.values()]
    for roles in SAMPLES.values():
        sent.clear()
        found = gather(_read(duckdb.from_df(TABLE), **roles), claims)
        assert len(sent) == 1
        for cells, (_, value) in zip(found, METRICS.values(), strict=True):
            _assert_sums(cells, _loop(TABLE, value, **roles))


@pytest.mark.parametrize("sample", SAMPLES)
def test_counts_keep_them_on_their_way_and_when_merged(sample: str) -> None:
    roles = SAMPLES[sample]
    claims = [eq.gap(metric, across="g") for metric, _ in METRICS.values()]
    parts = [TABLE[:70], TABLE[70:71], TABLE[71:]]
    counts = [eq.tally(_read(part, **roles), *claims) for part in parts]
    sent = [eq.Tallied.from_json(part.to_json()) for part in counts]
    whole = eq.tally(_read(TABLE, **roles), *claims)
    for tallied in (whole, eq.Tallied.from_json(whole.to_json()), eq.merge(*sent)):
        for metric, value in METRICS.values():
            _assert_sums(_cells(tallied, metric), _loop(TABLE, value, **roles))


def _of_version_1(tallied: eq.Tallied) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(tallied.to_json())
    kept = {n: column for n, column in data["counts"].items() if n not in tallied.scan.third_sums()}
    return {**data, "version": 1, "counts": kept}


def test_counts_of_the_version_before_are_read_where_they_say_enough() -> None:
    rates = [eq.gap(METRICS[name][0], across="g") for name in ("0/1, from keys", "0/1, summed")]
    now = eq.tally(_read(TABLE), *rates)
    before = eq.Tallied.from_dict(_of_version_1(now))
    for claim in rates:
        assert eq.describe(before, claim).rows == eq.describe(now, claim).rows
    assert eq.merge(before, now).rows == 2 * ROWS


@pytest.mark.parametrize(
    ("metric", "roles"),
    [("real, signed", {}), ("0/1, found", {}), ("0/1, from keys", {"weight": "w"})],
)
def test_counts_that_lack_them_are_refused(metric: str, roles: dict[str, str]) -> None:
    now = eq.tally(_read(TABLE, **roles), eq.gap(METRICS[metric][0], across="g"))
    before = _of_version_1(now)
    with pytest.raises(eq.TrailError, match="have the format version 1; this one reads 2"):
        eq.Tallied.from_dict(before)
    with pytest.raises(eq.TrailError, match="damaged: columns are missing"):
        eq.Tallied.from_dict({**before, "version": 2})


@pytest.mark.parametrize("spread", [0.0, 1.0, 3.0])
def test_cubes_that_cancel_do_not_depend_on_the_order_of_addition(spread: float) -> None:
    rng = np.random.default_rng(4)
    half = rng.lognormal(sigma=spread, size=5_000) * rng.choice([-1, 1], 5_000)
    values, weight = np.concatenate([half, -half]), np.tile(rng.lognormal(size=5_000), 2)
    seen: dict[str, set[float]] = {name: set() for name in THIRD}
    raw = set()
    for _ in range(20):
        order = rng.permutation(len(values))
        table = pl.DataFrame({"x": values[order], "w": weight[order], "g": "a"})
        trail = eq.read(table, weight="w", attributes=["g"])
        cells = _cells(trail, eq.metric("mine", "x"))
        raw.add(float(cells.cube3[0]))
        for name in THIRD:
            seen[name].add(abs(float(getattr(steady_cells(cells), name)[0])))
    assert len(raw) > 1
    assert [len(found) for found in seen.values()] == [1] * 4
    assert seen["cube3"] == {0.0}


def test_sums_of_weights_whose_powers_leave_the_floats_are_kept() -> None:
    cells = _cells(_read(TABLE, weight="w"), "residual")
    names = [f"{name}{order}" for order in ("", "2", "3") for name in ("weight", "total", "square")]
    for scale in (1e-70, 1e70):
        powers = {name: scale ** int(name[-1] if name[-1] in "23" else 1) for name in names}
        scaled = {name: getattr(cells, name) * powers[name] for name in names}
        there = dataclasses.replace(cells, **scaled, cube3=cells.cube3 * scale**3)
        found, wanted = steady_cells(there), steady_cells(cells)
        for name in names:
            back = getattr(found, name) / powers[name]
            np.testing.assert_allclose(back, getattr(wanted, name), rtol=1e-8)


def test_the_fingerprint_does_not_see_them() -> None:
    cells = _cells(_read(TABLE, weight="w"), "residual")
    changed = dataclasses.replace(cells, **{name: getattr(cells, name) + 1 for name in THIRD})
    assert changed.fingerprint() == cells.fingerprint()
