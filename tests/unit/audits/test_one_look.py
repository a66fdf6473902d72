"""Audits of rows ask their source once, and count what they fetched as the source would have."""

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.cells import gather, rows
from equipoise.cells.rows import one_look
from equipoise.cells.tally import Cells, steady_cells
from equipoise.errors import EquipoiseError
from equipoise.trail.engine import queries_sent

N = 500
ROLES: dict[str, dict[str, str]] = {
    "plain": {},
    "weight": {"weight": "w"},
    "count": {"count": "c"},
    "cluster": {"cluster": "m"},
    "both": {"weight": "w", "cluster": "m"},
}
VERBS: dict[str, Callable[[eq.Trail], Any]] = {
    "shift": lambda t: eq.shift(
        t, eq.gap("false_positive_rate"), over=["x", "g"], resamples=20, rng=1
    ),
    "shift to a reference": lambda t: eq.shift(
        t, eq.gap("brier", target=eq.reference(g="a")), over="x", resamples=20, rng=1
    ),
    "shift of a sample": lambda t: eq.shift(
        t, eq.gap("brier"), over="x", sample=200, resamples=20, rng=1
    ),
    "monotone": lambda t: eq.shift(
        t, eq.gap("accuracy"), over=eq.monotone("x", grid=8), resamples=20, rng=1
    ),
    "monotone in every value": lambda t: eq.shift(
        t,
        eq.gap("brier", target=eq.reference(g="a")),
        over=eq.monotone("age", grid=None),
        resamples=20,
        rng=1,
    ),
    "calibration": lambda t: (
        eq.calibration(t, features=["x", "g"], method="platt", resamples=20, rng=1)
        if not {"weight", "cluster"} & dict(t.roles).keys()
        else eq.calibration(t, features=["x"], resamples=20, importance=0, rng=1)
    ),
    "calibration of a sample": lambda t: eq.calibration(
        t, features=["x", "g"], resamples=20, importance=0, sample=300, rng=1
    ),
    "discover": lambda t: eq.discover(
        t, "accuracy", features=["x", "g"], leaf_rows=20, target=eq.overall(), rng=1
    ),
    "discover in a sample": lambda t: eq.discover(
        t, "brier", features=["x", "g"], leaf_rows=20, sample=300, rng=1
    ),
    "individual": lambda t: eq.individual(t, features=["g"], vary="g", rng=1),
}


def _table() -> pl.DataFrame:
    rng = np.random.default_rng(1)
    score = np.clip(rng.random(N), 0.01, 0.99).round(2)
    table = pl.DataFrame(
        {
            "g": rng.choice(list("abc"), N),
            "x": rng.normal(size=N).round(1),
            "age": rng.integers(18, 40, N),
            "y": (rng.random(N) < score).astype(int),
            "p": (score > 0.5).astype(int),
            "s": score,
            "w": rng.choice([0.0, 0.5, 1.0, 2.0], N),
            "c": rng.integers(0, 4, N),
            "m": rng.integers(0, 80, N),
        }
    )
    for name in ("g", "x", "y", "s", "w", "c", "m"):
        gone = pl.Series(rng.random(N) < 0.03)
        table = table.with_columns(pl.when(gone).then(None).otherwise(pl.col(name)).alias(name))
    return table


@pytest.fixture(scope="module")
def source() -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    connection.register("decisions", _table().to_arrow())
    return connection.table("decisions")


def _trail(source: Any, roles: str) -> eq.Trail:
    return eq.read(source, label="y", prediction="p", score="s", **ROLES[roles])


#: `discover` takes no clusters.
ASKED = [
    (verb, roles)
    for verb in VERBS
    for roles in ROLES
    if not (verb.startswith("discover") and "cluster" in ROLES[roles])
]


@pytest.mark.parametrize(("verb", "roles"), ASKED)
def test_audits_of_rows_ask_their_source_once(source: Any, verb: str, roles: str) -> None:
    with queries_sent() as sent:
        VERBS[verb](_trail(source, roles))
    assert len(sent) == 1


@pytest.mark.parametrize("roles", ["plain", "weight"])
@pytest.mark.parametrize("verb", VERBS)
def test_rows_that_do_not_fit_one_look_give_the_same_answers(
    source: Any, verb: str, roles: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trail = _trail(source, roles)
    at_once = VERBS[verb](trail).to_dict()
    monkeypatch.setattr(rows, "MAX_CELLS", 10)
    monkeypatch.setattr("equipoise.audits._people.MAX_CELLS", 5)
    with queries_sent() as sent:
        apart = VERBS[verb](trail).to_dict()
    assert len(sent) > 1
    assert apart == at_once


def test_labels_of_several_kinds_are_compared_with_predictions_in_one_look() -> None:
    rng = np.random.default_rng(2)
    table = pl.DataFrame(
        {name: rng.integers(0, 3, 200) for name in ("y", "p")} | {"g": rng.choice(list("ab"), 200)}
    )
    for name in ("numbers", "words"):
        trail = eq.read(table, label="y", prediction="p")
        with queries_sent() as sent:
            assert eq.individual(trail, features=["g"], vary="g", rng=1).share
        assert len(sent) == 1, name
        table = table.with_columns(pl.col("y", "p").cast(pl.String))
    foreign = table.with_columns(p=pl.lit("7"))
    with pytest.raises(EquipoiseError, match="holds '7', which the label"):
        eq.individual(eq.read(foreign, label="y", prediction="p"), features=["g"], vary="g")


METRICS = {
    "of two roles": eq.false_positive_rate,
    "of a score": eq.brier,
    "clipped": eq.log_loss.clip(0, 3),
    "with a range": eq.metric("x", "x", low=-9, high=9),
    "of few values": eq.metric("sign", "label - prediction", values=(-1, 0, 1)),
    "where": eq.metric("mine", "x * s", where="age > 25 and g != 'b'"),
}
BY_ALL = eq.intersections("g", "age")


def _arrays(cells: Cells) -> dict[str, Any]:
    kept = ("index", "present", "rows", *(f"{n}{o}" for n in ("weight", "total") for o in "23"))
    found = {name: getattr(cells, name).tolist() for name in (*kept, "square", "cube3")}
    clusters = cells.clusters
    if clusters is not None:
        found |= {name: getattr(clusters, name).tolist() for name in ("cluster", "cell", "total")}
    return found | {"axes": cells.axes, "lost": cells.excluded, "counts": cells.zero_one}


@pytest.mark.parametrize("roles", ROLES)
@pytest.mark.parametrize("metric", METRICS)
def test_rows_are_counted_as_their_source_counts_them(source: Any, metric: str, roles: str) -> None:
    claims = [eq.gap(METRICS[metric], across=BY_ALL), eq.gap(eq.accuracy, across=BY_ALL)]
    trail = _trail(source, roles)
    with one_look(trail, claims, claims[0].metric, {}, most=N) as look:
        here = [steady_cells(cells) for cells in look.cells(claims)]
        table = look.rows(cells=here[0])
    there = [steady_cells(cells) for cells in gather(trail, claims)]
    assert [_arrays(cells) for cells in here] == [_arrays(cells) for cells in there]
    assert [c.fingerprint() for c in here] == [c.fingerprint() for c in there]
    assert table.counts.sum() >= here[0].counted > 0


@pytest.mark.parametrize(
    ("column", "values", "roles"),
    [
        ("x", [float("inf"), 0.0], "plain"),
        ("x", [-20.0, 0.0], "plain"),
        ("x", [20.0, 0.0], "plain"),
        ("s", [1.5, 0.5], "plain"),
        ("y", [3, 0], "plain"),
        ("w", [-1.0, 1.0], "weight"),
        ("w", [1e-99, 1.0], "weight"),
        ("c", [1.5, 1.0], "count"),
        ("c", [float("inf"), 1.0], "count"),
    ],
)
def test_rows_that_cannot_be_counted_are_refused_in_the_same_words(
    column: str, values: list[float], roles: str
) -> None:
    broken = _table().head(60).with_columns(pl.Series(column, values * 30))
    trail = _trail(broken, roles)
    metric = {"x": METRICS["with a range"], "s": eq.brier}.get(column, eq.accuracy)
    said = []
    for most in (1000, 10):
        with (
            pytest.raises(EquipoiseError) as error,
            one_look(trail, [eq.gap(metric)], metric, {}, most=most) as look,
        ):
            look.cells([eq.gap(metric)])
        said.append(str(error.value))
    assert said[0] == said[1]
