"""The same claims on every source give the same cells, row counts included."""

from typing import Any

import narwhals as nw
import numpy as np
import pytest

import equipoise as eq
from equipoise.cells import Cells, form_groups, gather
from tests.conformance.sources import every_source, opened
from tests.conformance.table import ROWS, awkward_table

# Ibis speaks to DuckDB in words that DuckDB has given up.
pytestmark = pytest.mark.filterwarnings(
    r"ignore:fetch_arrow_table\(\) is deprecated:DeprecationWarning"
)

TABLE = awkward_table()
BASIC: dict[str, Any] = {"label": "outcome", "prediction": "decision", "score": "score"}
VERDICT: dict[str, Any] = {"label": "verdict", "prediction": "decision", "positive": "yes"}
by_sex = eq.intersections("sex", "race")
late = eq.metric("late", "column('days late') > 3", where="label == 1")
cost = eq.metric("cost", "amount * score / (1 + abs(amount)) ** 0.5 - age % 7")
native = eq.metric("twice", nw.col("age") * 2.0, where=~nw.col("age").is_null())

CASES: dict[str, tuple[dict[str, Any], eq.Claim]] = {
    "binary rates": (BASIC, eq.gap("false_positive_rate", across=by_sex)),
    "predictive value": (BASIC, eq.gap("positive_predictive_value", across=by_sex)),
    "accuracy, text label": (VERDICT, eq.gap("accuracy", across=by_sex)),
    "selection": (BASIC, eq.ratio("selection_rate", across="race", target=eq.complement())),
    "brier": (BASIC, eq.gap("brier", across=by_sex)),
    "log loss": (BASIC, eq.gap("log_loss", across=by_sex)),
    "log loss, clipped": (BASIC, eq.gap(eq.log_loss.clip(0.1, 0.9), across=by_sex)),
    "absolute error": (BASIC, eq.gap("absolute_error", across="sex")),
    "absolute error, truth label": (
        {"label": "member", "score": "score"},
        eq.gap("absolute_error", across="sex"),
    ),
    "coverage": (
        {"label": "score", "low": "lower", "high": "higher"},
        eq.gap("coverage", across=by_sex),
    ),
    "formula": (BASIC, eq.gap(late, across=by_sex)),
    "arithmetic": (BASIC, eq.gap(cost, across=by_sex)),
    "expression": (BASIC, eq.gap(native, across=by_sex)),
    "weights": ({**BASIC, "weight": "weight"}, eq.gap("true_positive_rate", across=by_sex)),
    "weights, summed": ({**BASIC, "weight": "weight"}, eq.gap("brier", across=by_sex)),
    "counts": ({**BASIC, "count": "times"}, eq.gap("error_rate", across=by_sex)),
    "counts and weights": (
        {**BASIC, "count": "times", "weight": "weight"},
        eq.gap("residual", across=by_sex),
    ),
    "clusters": ({**BASIC, "cluster": "age"}, eq.gap("accuracy", across="sex")),
    "binned": (
        BASIC,
        eq.gap("accuracy", across=eq.intersections("sex", eq.binned("income", cuts=(1, 2)))),
    ),
    "decimals": (BASIC, eq.gap("accuracy", across="hours")),
    "truth values": (BASIC, eq.gap("accuracy", across="member")),
    "dates": (BASIC, eq.gap("accuracy", across="born")),
    "time zones": (BASIC, eq.gap("accuracy", across="seen")),
    "clock times": (BASIC, eq.gap("accuracy", across="noted")),
    "numbers": (BASIC, eq.gap("accuracy", across="income")),
    "intervals, values": (BASIC, eq.gap("accuracy", across=eq.intervals("age"))),
    "intervals, edges": (
        BASIC,
        eq.gap("brier", across=eq.intervals("income", edges=(0.5, 1.25, 3))),
    ),
    "intervals, grid": (BASIC, eq.gap("accuracy", across=eq.intervals("amount", grid=7))),
    "thresholds": (BASIC, eq.gap("accuracy", across=eq.thresholds("age"))),
    "boxes": (BASIC, eq.gap("accuracy", across=eq.boxes("age", "amount", grid=4))),
    "masks": (
        BASIC,
        eq.gap(
            "accuracy",
            across=eq.masks(
                {
                    "young women": "age < 25 and sex == 'Female'",
                    "some": "race in ('Asian', 'Black') and not member",
                    "members": "member",
                    "late": "column('days late') in (2, 5) or amount > 10",
                }
            ),
        ),
    ),
    "tilts": (
        BASIC,
        eq.gap(
            "accuracy",
            across=eq.tilts(
                "days late",
                older="exp(age / 10) / (1 + amount ** 2)",
                members="member",
                rich="sqrt(income) * score",
            ),
        ),
    ),
    "bins": (BASIC, eq.multicalibration(across="sex", number=4)),
    "reference elsewhere": (
        BASIC,
        eq.gap("accuracy", across="sex", target=eq.reference(member=True)),
    ),
    "four fifths": (
        BASIC,
        eq.ratio("selection_rate", across="race", target=0.8 * eq.reference(sex="Male")),
    ),
}


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
    for name in ("weight", "total", "square", "weight2", "total2", "square2"):
        ours, theirs = getattr(found, name), getattr(wanted, name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12 * np.abs(theirs).max())
    assert found.fingerprint() == wanted.fingerprint()


def test_describe_agrees_and_counts_every_row(source: eq.Trail) -> None:
    for case in ("binary rates", "brier", "intervals, grid", "expression"):
        roles, claim = CASES[case]
        found = eq.describe(eq.read(source, **roles), claim)
        wanted = eq.describe(eq.read(TABLE, **roles), claim)
        assert found.provenance.scanned == ROWS
        assert sum(row.n for row in found.rows) > 0
        assert [(r.group, r.where, r.n) for r in found.rows] == [
            (r.group, r.where, r.n) for r in wanted.rows
        ]
        assert [r.value for r in found.rows] == pytest.approx([r.value for r in wanted.rows])


def test_tilts_agree_to_the_last_digit(source: eq.Trail) -> None:
    across = eq.tilts(
        "days late",
        late="exp(0 - column('days late') / 3)",
        members="member",
        odd=lambda columns: np.where(columns["hours"] == 40, 2.0, 1.0),
        columns=["hours"],
    )
    claim = eq.gap("accuracy", across=across)
    for method in (None, "bootstrap-published"):
        found, wanted = (
            eq.certify(eq.read(table, **BASIC), claim, method=method, resamples=60, rng=3)
            for table in (source, TABLE)
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
