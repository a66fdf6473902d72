"""Degenerate worlds: every verb states an outcome, gives no NaN, and certifies nothing."""

import json
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.findings import Verdict

# the verbs return one of several findings, which each test knows


def trail_of(group: Any, value: Any, **more: Any) -> eq.Trail:
    table = {"group": group, "value": value, **more}
    return eq.read(pl.DataFrame(table))


VALUE = eq.metric("value", "value")
ODD = {
    "one row": (["a"] * 30 + ["b"], [0, 1, 1] * 10 + [1]),
    "constant metric": (["a"] * 20 + ["b"] * 20, [1] * 40),
    "constant in one group": (["a"] * 30 + ["b"] * 5, [0, 1, 1] * 10 + [1] * 5),
    "one group is everybody": (["a"] * 30, [0, 1, 1] * 10),
    "one row in all": (["a"], [1]),
    "two rows": (["a", "b"], [0, 1]),
}
REAL = {name: (group, [x * 1.5 + 0.25 for x in value]) for name, (group, value) in ODD.items()}
TARGETS = {"overall": None, "known": 0.5, "complement": eq.complement()}


def numbers_are_numbers(finding: Any) -> None:
    # json refuses NaN and infinity where allow_nan is off
    json.dumps(json.loads(finding.to_json()), allow_nan=False)
    assert "nan" not in " ".join(finding.sentences()).lower().split()


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("name", list(ODD))
@pytest.mark.parametrize("table", [ODD, REAL], ids=["0/1", "real"])
def test_every_verb_states_an_outcome(table: dict[str, Any], name: str, target: str) -> None:
    trail = trail_of(*table[name])
    claim = eq.gap(VALUE, across="group", target=TARGETS[target])
    bounds = eq.certify(trail, claim, tolerance=0.4, rng=1)
    certificates = eq.certify(trail, claim, tolerance=0.4, method="certificates", rng=1)
    flags = eq.flag(trail, claim, rng=1)
    for finding in (bounds, certificates, flags):
        numbers_are_numbers(finding)
    rows: list[Any] = [*bounds.rows, *certificates.rows]
    for row in rows:
        if row.n <= 1:
            # a row of a 0/1 metric is a count like any other; of a real one nothing is known
            assert row.note or table is ODD
            assert getattr(row, "verdict", None) is not Verdict.KEPT
            assert not getattr(row, "certified", False)
    if name == "constant metric":
        if table is REAL:
            assert all(row.verdict is Verdict.UNDETERMINED for row in bounds.rows)
            assert not any(row.certified for row in certificates.rows)
        else:
            # twenty ones of twenty are counts like any other, and leave room on one side at least
            assert all(row.upper - row.lower > 0.05 for row in bounds.rows)


def test_twenty_ones_of_twenty_are_evidence_as_counts_and_none_as_numbers() -> None:
    """If the groups' rates were forty points apart, 20 of 20 twice has a chance below 0.6²⁰."""
    claim = eq.gap(VALUE, across="group", target=eq.complement())
    counts, numbers = (
        eq.certify(trail_of(*table["constant metric"]), claim, tolerance=0.4, rng=1)
        for table in (ODD, REAL)
    )
    assert counts.verdict is Verdict.KEPT
    assert numbers.verdict is Verdict.UNDETERMINED
    assert {row.note for row in numbers.rows} == {
        "its rows are all alike, or too close for their size, so its uncertainty is unknown"
    }


def test_a_metric_that_never_varies_is_named_as_such() -> None:
    trail = trail_of(*ODD["constant metric"])
    claim = eq.gap(VALUE, across="group", target=0.5)
    bounds = eq.certify(trail, claim, rng=1, method="bootstrap")
    assert all(row.lower is None and "all alike" in row.note for row in bounds.rows)
    assert any("all alike" in sentence for sentence in bounds.sentences())


def test_a_group_without_counting_rows() -> None:
    table = pl.DataFrame(
        {"group": ["a"] * 20 + ["b"] * 5, "y": [0, 1] * 10 + [1] * 5, "p": [0, 1, 1, 0, 1] * 5}
    )
    trail = eq.read(table, label="y", prediction="p")
    claim = eq.gap(eq.false_positive_rate, across="group")
    for finding in (eq.certify(trail, claim, rng=1), eq.flag(trail, claim, rng=1)):
        row = finding.ask(group="b")
        assert (row.n, row.disparity) == (0, None)
        assert row.note == "no row on which the metric counts"
        numbers_are_numbers(finding)


def test_a_reference_without_counting_rows() -> None:
    table = pl.DataFrame(
        {"group": ["a"] * 20 + ["b"] * 5, "y": [0, 1] * 10 + [1] * 5, "p": [0, 1, 1, 0, 1] * 5}
    )
    trail = eq.read(table, label="y", prediction="p")
    claim = eq.gap(eq.false_positive_rate, across="group", target=eq.reference(group="b"))
    for verb in (eq.certify, eq.flag):
        with pytest.raises(eq.ClaimError, match="reference group group='b' has no row"):
            verb(trail, claim, rng=1)


def test_everybody_has_no_complement() -> None:
    trail = trail_of(*ODD["one group is everybody"])
    claim = eq.gap(VALUE, across="group", target=eq.complement())
    bounds = eq.certify(trail, claim, tolerance=0.9, rng=1)
    assert bounds.rows[0].note == "the target has no row to compare with"
    assert bounds.rows[0].verdict is Verdict.UNDETERMINED


def test_a_group_compared_with_itself_differs_by_nothing() -> None:
    trail = trail_of(*ODD["one group is everybody"])
    bounds = eq.certify(trail, eq.gap(VALUE, across="group"), rng=1)
    row = bounds.rows[0]
    assert (row.disparity, row.lower, row.upper) == (0.0, None, None)
    assert row.note == "the group is its own target"
    assert eq.flag(trail, eq.gap(VALUE, across="group"), rng=1).rows[0].p is None


def test_a_ratio_to_zero_has_no_bounds() -> None:
    trail = trail_of(["a"] * 20 + ["b"] * 20, [0] * 20 + [0, 1] * 10)
    claim = eq.ratio(VALUE, across="group", target=eq.reference(group="a"))
    for finding in (
        eq.certify(trail, claim, tolerance=0.8, rng=1),
        eq.flag(trail, claim, below=0.8),
    ):
        numbers_are_numbers(finding)
    row = eq.certify(trail, claim, rng=1).ask(group="b")
    assert (row.disparity, row.lower, row.upper) == (None, None, None)
    assert row.note == "the target is zero here, so there is no ratio to it"
    published = eq.certify(trail, claim, method="bootstrap", rng=1).ask(group="b")
    assert (published.lower, published.note) == (None, row.note)


def test_identical_groups_get_identical_answers() -> None:
    group = ["a", "b"] * 40
    trail = trail_of(group, [0, 0, 1, 1] * 20, copy=group)
    found = eq.certify(trail, eq.gap(VALUE, across=eq.intersections("group", "copy")), rng=1)
    ends = {
        (row.lower, row.upper)
        for row in found.rows
        if row.where.get("group", "a") == "a" and row.where.get("copy", "a") == "a"
    }
    assert len(ends) == 1


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(
    "method", ["pivotal", "certificates", "bootstrap", "certificates-published"]
)
def test_rows_that_never_differ_within_a_group_bound_nothing(times: int, method: Any) -> None:
    rng = np.random.default_rng(1)
    data = pl.DataFrame({"g": [f"{i}" for i in range(50)], "x": rng.random(50)})
    trail = eq.read(pl.concat([data] * times), attributes=["g"])
    claim = eq.gap(eq.metric("x", "x", low=0, high=1), across="g", target=0.5)
    found: Any = eq.certify(trail, claim, side="lower", tolerance=0.0, method=method, rng=1)
    if method.startswith("certificates"):
        assert not found.certified
        assert all(row.note for row in found.rows)
    else:
        assert all(row.lower is None and row.note for row in found.rows)
        assert all(row.lower is None for row in found.at(0.5).rows)


def test_one_row_is_not_bounded_by_the_little_that_others_vary() -> None:
    rng = np.random.default_rng(1)
    alone = pl.DataFrame({"g": [f"{i}" for i in range(50)], "x": rng.random(50)})
    pair = pl.DataFrame({"g": ["pair", "pair"], "x": [0.5, 0.501]})
    trail = eq.read(pl.concat([alone, pair]), attributes=["g"])
    claim = eq.gap(eq.metric("x", "x", low=0, high=1), across="g", target=0.5)
    for method in ("bootstrap", "pivotal"):
        rows = eq.certify(trail, claim, method=method, rng=1).rows
        assert all(row.lower is None and row.upper is None for row in rows if row.n == 1)


@pytest.mark.parametrize("method", ["bootstrap", "euclidean"])
def test_notes_of_a_published_method_are_its_own(method: Any) -> None:
    """Ten rows of a real-valued metric have bounds as published; the default would not answer."""
    rng = np.random.default_rng(2)
    trail = trail_of(["a"] * 10 + ["b"] * 200, rng.random(210).tolist())
    claim = eq.gap(VALUE, across="group", target=0.5)
    published = eq.certify(trail, claim, method=method, rng=1).ask(group="a")
    assert published.lower is not None
    assert published.note == ""
    flagged = eq.flag(trail, claim, method=method, rng=1).ask(group="a")
    assert flagged.p is not None
    assert flagged.note == ""
    ours = eq.certify(trail, claim, rng=1).ask(group="a")
    assert ours.lower is None
    assert ours.note.startswith("too few rows")
