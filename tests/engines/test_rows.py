"""Methods that need rows, on engines: only so many leave them, and the same ones everywhere."""

from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import equipoise as eq
from equipoise.cells import rows as sampling
from equipoise.cells.rows import RowTable, pull_table
from tests.conformance.sources import every_source, opened

ROWS = 3000
SAMPLE = 400
pytestmark = pytest.mark.filterwarnings(
    r"ignore:fetch_arrow_table\(\) is deprecated:DeprecationWarning"
)


def _table() -> pa.Table:
    rng = np.random.default_rng(17)
    # half of the scores are rounded, so that many rows are equal
    score = np.where(rng.random(ROWS) < 0.5, rng.integers(1, 4, ROWS) / 4, rng.random(ROWS))
    return pa.table(
        {
            "y": (rng.random(ROWS) < score).astype(np.int64),
            "s": score,
            "age": rng.integers(-2, 3, ROWS),
            "group": pa.array(rng.choice(np.array(["a", "b", None], dtype=object), ROWS)),
            "member": rng.random(ROWS) < 0.5,
        }
    )


TABLE = _table()


@pytest.fixture(params=every_source())
def trail(request: pytest.FixtureRequest, tmp_path: Path) -> eq.Trail:
    return eq.read(opened(request.param, TABLE, tmp_path, request), label="y", score="s")


@pytest.fixture
def thin_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a thousand rows were more than a machine should hold."""
    monkeypatch.setattr(sampling, "THIN_ABOVE", 1000)


def _thinned(trail: eq.Trail) -> RowTable:
    names = ("s", "age", "group", "member")
    columns = {f"feature{i}": trail.key(name) for i, name in enumerate(names)}
    seed = np.random.SeedSequence(7)
    return pull_table(trail, eq.log_loss, columns, sample=SAMPLE, seed=seed)


@pytest.mark.usefixtures("thin_early")
def test_every_engine_gives_up_the_same_rows(trail: eq.Trail) -> None:
    here, there = _thinned(trail), _thinned(eq.read(TABLE, label="y", score="s"))
    assert here.counts.sum() > SAMPLE
    assert here.left == there.left == ROWS - here.counts.sum()
    np.testing.assert_array_equal(here.counts, there.counts)
    for name in ("feature0", "feature1", "feature3"):
        ours, theirs = here.columns[name].astype(float), there.columns[name].astype(float)
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.usefixtures("thin_early")
def test_a_sampled_audit_is_the_same_on_every_engine(trail: eq.Trail) -> None:
    found, wanted = (
        eq.discover(t, eq.brier, features=["age", "group"], sample=SAMPLE, leaf_rows=20, rng=7)
        for t in (trail, eq.read(TABLE, label="y", score="s"))
    )
    assert f"drawn from {ROWS:,}" in found.guarantee
    assert found.rows == wanted.rows


def test_past_the_limit_the_way_out_is_named(
    trail: eq.Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "MAX_ROWS", 1000)
    with pytest.raises(eq.TrailError, match=r"more than 1,000. Pass sample=200_000 and rng=7"):
        eq.discover(trail, eq.brier, features=["age", "group"], rng=7)
