"""`read` and `from_arrays`: whatever comes in, a trail or a clear refusal."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import equipoise as eq
from tests.fuzz import cases, tables
from tests.fuzz.conftest import CASES
from tests.fuzz.outcome import check_finding, outcome
from tests.fuzz.tables import Rng, chance, pick

Record = Any


def test_tables(record_property: Record) -> None:
    record_property(CASES, cases.run("read", read_once))


def read_once(rng: Rng) -> None:
    table = tables.random_table(rng, spoilt=0.8)
    source, roles = tables.source_of(rng, table), tables.random_roles(rng, table, wrong=0.5)
    before, given = tables.snapshot(source), copy.deepcopy(roles)
    trail = outcome(lambda: eq.read(source, **roles))
    if trail is not None:
        assert repr(trail)
        if chance(rng, 0.4):
            describe(rng, trail)
    tables.unchanged(source, before)
    assert repr(roles) == repr(given)


def describe(rng: Rng, trail: eq.Trail) -> None:
    """Group by any column that the trail offers, with a metric that is about any other."""
    if not trail.attributes:
        return
    column = pick(rng, trail.attributes)
    metrics = ("accuracy", "brier", "residual", eq.metric("any", f"column({column!r})"))
    found = outcome(lambda: eq.describe(trail, eq.gap(pick(rng, metrics), across=column)))
    if found is not None:
        check_finding(found)


def test_files(record_property: Record, tmp_path: Path) -> None:
    def one(rng: Rng) -> None:
        path = tables.write_file(rng, tables.random_table(rng, spoilt=0.4), tmp_path)
        content = path.read_bytes()
        trail = outcome(lambda: eq.read(path, **pick(rng, ROLES)))
        if trail is not None:
            describe(rng, trail)
        assert path.read_bytes() == content
        path.unlink()

    record_property(CASES, cases.run("read files", one))


ROLES: tuple[dict[str, Any], ...] = (
    {},
    {"label": "y", "prediction": "p"},
    {"label": "y", "score": "s"},
    {"label": "y", "prediction": "p", "weight": "w", "count": "k"},
    {"label": "g", "positive": "a"},
)


def test_arrays(record_property: Record) -> None:
    record_property(CASES, cases.run("arrays", arrays_once))


def arrays_once(rng: Rng) -> None:
    table = tables.random_table(rng, spoilt=0.7)
    given = {
        "y_true": pick(rng, (*[table.columns.get("y")] * 4, None, 5, "yes", [[0, 1]], object())),
        "y_pred": pick(rng, (*[table.columns.get("p")] * 4, None, table.columns.get("g"))),
        "y_score": pick(rng, (*[table.columns.get("s")] * 3, None, table.columns.get("x"))),
        "sample_weight": pick(rng, (None, None, None, table.columns.get("w"))),
        "sensitive_features": _features(rng, table),
        "positive": pick(rng, (None, None, None, 1, "a", {"label": True})),
    }
    given = {name: _held(rng, value) for name, value in given.items()}
    before = copy.deepcopy(given)
    trail = outcome(lambda: eq.from_arrays(**given))
    if trail is not None:
        describe(rng, trail)
    for name, value in given.items():
        _same(value, before[name])


def _features(rng: Rng, table: tables.Table) -> Any:
    chosen = {name: table.columns[name] for name in ("g", "h", "x") if name in table.columns}
    frame = pd.DataFrame({str(name): pd.Series(v, dtype=object) for name, v in chosen.items()})
    single = next(iter(chosen.values()))
    short = {**chosen, "h": [*single, "a"]}
    deep = np.asarray(single, dtype=object)[:, None] if single else np.empty((0, 2))
    strange: tuple[Any, ...] = (
        {},
        None,
        {"": single},
        {"label": single},
        {"G": single, "g": single},
        5,
        short,
    )
    return pick(rng, (chosen, chosen, single, frame, deep, *strange))


def _held(rng: Rng, value: Any) -> Any:
    """A list as it is, or as an array, a series or a tuple."""
    if not isinstance(value, list) or value == [[0, 1]]:
        return value
    how = int(rng.integers(4))
    if how == 1:
        made = np.empty(len(value), dtype=object)
        made[:] = value
        return made
    if how == 2:
        return pd.Series(value, dtype=object) if chance(rng, 0.5) else pd.Series(value)
    return tuple(value) if how == 3 else value


def _same(value: Any, before: Any) -> None:
    if isinstance(value, pd.DataFrame):
        pd.testing.assert_frame_equal(value, before)
    elif isinstance(value, pd.Series):
        pd.testing.assert_series_equal(value, before)
    elif type(value) is not object:
        assert repr(value) == repr(before)


@pytest.mark.parametrize("source", [object(), 5, b"x", [], lambda: None, eq, "", " ", "\0", "~"])
def test_what_is_no_table_at_all(source: Any) -> None:
    assert outcome(lambda: eq.read(source)) is None
