"""The same claims on every source give the same cells, row counts included."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import equipoise as eq
from equipoise.cells import Cells, form_groups, gather
from tests.conformance.cases import BASIC, CASES, TABLE, late
from tests.conformance.sources import every_source, opened
from tests.conformance.table import ROWS

# Ibis speaks to DuckDB in words that DuckDB has given up.
pytestmark = pytest.mark.filterwarnings(
    r"ignore:fetch_arrow_table\(\) is deprecated:DeprecationWarning"
)

POWERS = ("weight", "total", "square")
SUMS = (*(f"{power}{order}" for order in ("", "2", "3") for power in POWERS), "cube3")


@pytest.fixture(scope="module")
def already_open() -> dict[str, eq.Trail]:
    return {}


@pytest.fixture(params=every_source())
def source(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    already_open: dict[str, eq.Trail],
) -> eq.Trail:
    """The table without roles, opened once on each engine."""
    name = request.param
    if name not in already_open:
        already_open[name] = eq.read(opened(name, TABLE, tmp_path_factory.mktemp(name), request))
    return already_open[name]


@pytest.fixture(scope="module")
def expected() -> dict[str, Cells]:
    return {case: cells_of(TABLE, case) for case in CASES}


def cells_of(source: Any, case: str) -> Cells:
    roles, claim = CASES[case]
    (cells,) = gather(eq.read(source, **roles), [claim])
    return cells


@pytest.mark.parametrize("case", CASES)
def test_cells_are_identical(source: eq.Trail, case: str, expected: dict[str, Cells]) -> None:
    found, wanted = cells_of(source, case), expected[case]
    assert found.counted > 50
    assert found.scanned == wanted.scanned
    assert [axis.levels for axis in found.axes] == [axis.levels for axis in wanted.axes]
    assert found.excluded == wanted.excluded
    assert (found.counted, found.ineligible) == (wanted.counted, wanted.ineligible)
    assert found.zero_one == wanted.zero_one
    np.testing.assert_array_equal(found.index, wanted.index)
    np.testing.assert_array_equal(found.present, wanted.present)
    np.testing.assert_array_equal(found.rows, wanted.rows)
    for name in SUMS:
        ours, theirs = getattr(found, name), getattr(wanted, name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12 * np.abs(theirs).max())
    assert found.fingerprint() == wanted.fingerprint()


def test_describe_agrees_and_counts_every_row(source: eq.Trail) -> None:
    for case in ("binary rates", "brier", "weights, summed", "intervals, grid", "expression"):
        roles, claim = CASES[case]
        found = eq.describe(eq.read(source, **roles), claim)
        wanted = eq.describe(eq.read(TABLE, **roles), claim)
        assert found.provenance.scanned == ROWS
        assert sum(row.n for row in found.rows) > 0
        assert [(r.group, r.where, r.n) for r in found.rows] == [
            (r.group, r.where, r.n) for r in wanted.rows
        ]
        assert found.rows == wanted.rows


def test_findings_agree_to_the_last_digit(source: eq.Trail) -> None:
    for case in ("binary rates", "brier", "weights", "clusters", "dates"):
        roles, claim = CASES[case]
        found, wanted = (
            eq.certify(eq.read(table, **roles), claim, resamples=60, rng=3)
            for table in (source, TABLE)
        )
        assert found.provenance.scanned == ROWS
        assert found.rows == wanted.rows
        assert found.provenance.fingerprint == wanted.provenance.fingerprint
        flagged, expected = (eq.flag(eq.read(t, **roles), claim, rng=3) for t in (source, TABLE))
        assert flagged.rows == expected.rows


def test_tilts_agree_to_the_last_digit(source: eq.Trail) -> None:
    across = eq.tilts(
        "days late",
        late="exp(0 - column('days late') / 3)",
        members="member",
        odd=lambda columns: np.where(columns["hours"] == 40, 2.0, 1.0),
        columns=["hours"],
    )
    claim = eq.gap("accuracy", across=across)
    found, wanted = (
        eq.certify(eq.read(table, **BASIC), claim, resamples=60, rng=3) for table in (source, TABLE)
    )
    assert found.rows == wanted.rows
    assert found.provenance.fingerprint == wanted.provenance.fingerprint


def test_several_claims_share_one_scan_and_do_not_disturb_each_other() -> None:
    trail = eq.read(TABLE, **BASIC)
    claims = [
        eq.gap("accuracy", across=eq.intervals("age", grid=3)),
        eq.gap("brier", across=eq.intervals("age", grid=5)),
        eq.gap(late, across="sex"),
    ]
    for claim, together in zip(claims, gather(trail, claims), strict=True):
        (alone,) = gather(trail, [claim])
        ours, theirs = form_groups(claim.across, together), form_groups(claim.across, alone)
        assert ours.labels() == theirs.labels()
        np.testing.assert_allclose(ours.sums(together.total), theirs.sums(alone.total))
        np.testing.assert_array_equal(ours.sums(together.rows), theirs.sums(alone.rows))


def test_fingerprint_sees_a_changed_row() -> None:
    changed = TABLE.slice(1)
    for case in ("binary rates", "brier", "weights, summed"):
        assert cells_of(changed, case).fingerprint() != cells_of(TABLE, case).fingerprint()


def _guessed() -> Any:
    """A table of which much is unknown: groups, probabilities, labels."""
    rng = np.random.default_rng(77)
    rows = 400
    race = rng.choice(["Asian", "Black", "White"], rows).tolist()
    chance = rng.dirichlet([0.7, 0.5], rows)[:, 0].round(6)
    label = rng.integers(0, 2, rows)
    return pa.table(
        {
            "race": pa.array([None if i % 9 == 0 else r for i, r in enumerate(race)], pa.string()),
            "p_one": pa.array(chance), "p_other": pa.array(1 - chance),
            "outcome": pa.array([None if i % 3 else y for i, y in enumerate(label.tolist())]),
            "decision": pa.array(rng.integers(0, 2, rows)),
            "seen": pa.array(rng.uniform(0.2, 0.9, rows).round(6)),
        }
    )  # fmt: skip


ROUNDABOUT: dict[str, tuple[dict[str, Any], eq.Claim]] = {
    "worst": ({}, eq.gap("selection_rate", across="race", unknown="worst")),
    "probabilities": (
        {"proxy": {"kind": {"one": "p_one", "other": "p_other"}}},
        eq.gap("selection_rate", across="kind"),
    ),
    "logged chances": ({"observed": "seen"}, eq.gap("accuracy", across="race")),
}


@pytest.mark.parametrize(
    "name",
    [
        "pandas-nullable",
        "duckdb",
        pytest.param("ibis-postgres", marks=pytest.mark.postgres),
        pytest.param("spark", marks=pytest.mark.spark),
    ],
)
def test_the_unknown_is_the_same_everywhere(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    table = _guessed()
    source = eq.read(opened(name, table, tmp_path, request))
    for roles, claim in ROUNDABOUT.values():
        every = {"label": "outcome", "prediction": "decision", **roles}
        found, wanted = (eq.certify(eq.read(x, **every), claim, rng=1) for x in (source, table))
        assert found.rows == wanted.rows
        assert found.unknown == wanted.unknown
