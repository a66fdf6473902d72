"""Counts without rows: what they answer, what they refuse, how they travel."""

import json
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import equipoise as eq

ROWS = 900


def _table(rows: int = ROWS, seed: int = 5) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "y": rng.integers(0, 2, rows),
            "d": rng.integers(0, 2, rows),
            "s": rng.random(rows).round(3),
            "g": rng.choice(["a", "b", "c"], rows),
            "h": rng.choice([True, False], rows),
            "age": rng.integers(18, 70, rows),
        }
    )


def _read(table: Any, **roles: Any) -> eq.Trail:
    return eq.read(table, **{"label": "y", "prediction": "d", "score": "s", **roles})


FPR = eq.gap("false_positive_rate", across=["g", "h"])
BRIER = eq.gap("brier", across="g")


def test_counts_for_one_rate_serve_the_other_rates() -> None:
    trail = _read(_table())
    counts = eq.tally(trail, FPR)
    other = eq.gap("positive_predictive_value", across="h")
    assert eq.certify(counts, other, rng=3) == eq.certify(trail, other, rng=3)
    both = eq.equalized_odds(across="g")
    assert eq.flag(counts, both, rng=3) == eq.flag(trail, both, rng=3)


def test_what_was_not_counted_is_refused_by_name() -> None:
    counts = eq.tally(_read(_table()), FPR)
    with pytest.raises(eq.ClaimError, match=r"'brier' is not among .* 'false_positive_rate'"):
        eq.describe(counts, BRIER)
    with pytest.raises(eq.ClaimError, match="not cut by 'age' as this claim asks, but by 'g', 'h'"):
        eq.describe(counts, eq.gap("accuracy", across="age"))
    with pytest.raises(eq.ClaimError, match="not cut by 'age'"):
        eq.describe(counts, eq.gap("accuracy", across=eq.intervals("age", edges=(18, 40, 70))))


def test_every_group_verb_takes_counts() -> None:
    trail = _read(_table())
    by = eq.gap("selection_rate", across="g")
    counts = eq.tally(trail, FPR, BRIER, by, eq.gap("selection_rate", across="h"))
    for audit in (
        lambda rows: eq.describe(rows, BRIER),
        lambda rows: eq.certify(rows, BRIER, resamples=50, rng=1),
        lambda rows: eq.certify(
            rows, FPR, tolerance=0.3, method="certificates", resamples=50, rng=1
        ),
        lambda rows: eq.flag(rows, BRIER, resamples=50, rng=1),
        lambda rows: eq.joint_test(rows, FPR, rng=1),
        lambda rows: eq.summarize(rows, "selection_rate", across="g", resamples=50, rng=1),
        lambda rows: eq.compare(rows, "selection_rate", across=["g", "h"], resamples=50, rng=1),
    ):
        assert audit(counts) == audit(trail)


def test_counts_that_came_from_elsewhere_have_no_rows() -> None:
    counts = eq.tally(_read(_table()), BRIER)
    sent = eq.Tallied.from_json(counts.to_json())
    with pytest.raises(eq.TrailError, match=r"needs single rows, and these are counts.*moments"):
        eq.certify(sent, BRIER, method="bootstrap", rng=1)
    moments = eq.Bootstrap(engine="moments", resamples=60)
    trail = _read(_table())
    # the default needs no rows, only their sums
    assert eq.certify(sent, BRIER, rng=1) == eq.certify(trail, BRIER, rng=1)
    found, wanted = (eq.certify(rows, BRIER, method=moments, rng=1) for rows in (sent, trail))
    assert found == wanted


def test_custom_targets_are_counted_with_their_influence() -> None:
    claim = eq.gap("accuracy", across="g", target=eq.custom(0.5, influence="score - 0.5"))
    trail = _read(_table())
    moments = eq.Bootstrap(engine="moments", resamples=60)
    sent = eq.Tallied.from_dict(eq.tally(trail, claim).to_dict())
    found, wanted = (eq.certify(rows, claim, method=moments, rng=1) for rows in (sent, trail))
    assert found == wanted


def test_counts_travel_as_plain_json() -> None:
    counts = eq.tally(_read(_table(), positive=None), FPR, BRIER)
    text = counts.to_json()
    assert json.loads(text)["format"] == "equipoise counts"
    again = eq.Tallied.from_json(text)
    assert again.to_json() == text
    assert (again.rows, len(again)) == (ROWS, len(counts))
    assert repr(again).startswith("Tallied(900 rows of a polars table; 'false_positive_rate'")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.pop("metrics"),
        lambda data: data["counts"].pop("present"),
        lambda data: data["counts"]["present"].pop(),
        lambda data: data["counts"]["present"].__setitem__(0, -3),
        lambda data: data["counts"].__setitem__("present", ["x"] * len(data["counts"]["present"])),
        lambda data: data.update(version=3),
        lambda data: data.update(format="something else"),
        lambda data: data.update(roles={"label": "y", "judge": "j"}),
        lambda data: data.update(dimensions=[{"kind": "no such"}]),
    ],
)
def test_damaged_counts_are_refused(damage: Any) -> None:
    data = json.loads(eq.tally(_read(_table()), FPR).to_json())
    damage(data)
    with pytest.raises(eq.EquipoiseError):
        eq.Tallied.from_dict(data)
    with pytest.raises(eq.TrailError, match="no JSON"):
        eq.Tallied.from_json("{")


def test_an_expression_has_no_written_form() -> None:
    metric = eq.metric("twice", nw.col("age") * 2.0)
    claim = eq.gap(metric, across="g")
    trail = _read(_table())
    counts = eq.tally(trail, claim)
    assert eq.describe(counts, claim).rows == eq.describe(trail, claim).rows
    with pytest.raises(eq.ClaimError, match="cannot be written"):
        counts.to_json()


def test_counts_of_different_questions_are_not_merged() -> None:
    table = _table()
    here = eq.tally(_read(table), FPR)
    worded = _read(table.with_columns(d=pl.col("d").cast(str)), positive={"prediction": "1"})
    for other, words in (
        (eq.tally(_read(table), BRIER), "different metrics"),
        (eq.tally(_read(table), eq.gap("false_positive_rate", across="g")), "different attributes"),
        (eq.tally(_read(table, score=None), FPR), "different roles"),
        (eq.tally(worded, FPR), "different values that count as 1"),
    ):
        with pytest.raises(eq.TrailError, match=words):
            eq.merge(here, other)
    with pytest.raises(eq.TrailError, match="merge takes counts"):
        eq.merge(here, _read(table))  # type: ignore[arg-type]
    with pytest.raises(eq.TrailError, match="merge takes counts"):
        eq.merge()


def test_places_must_agree_on_edges_and_types() -> None:
    claim = eq.gap("accuracy", across=eq.intervals("age", grid=3))
    one, two = (
        eq.tally(_read(t), claim) for t in (_table(), _table(seed=6).filter(pl.col("age") > 40))
    )
    with pytest.raises(eq.TrailError, match=r"found different edges.*Pass edges=…"):
        eq.merge(one, two)
    as_number = _table().with_columns(h=pl.col("h").cast(int))
    with pytest.raises(eq.TrailError, match="'h' holds 'numbers', 'truth values'"):
        eq.merge(eq.tally(_read(_table()), FPR), eq.tally(_read(as_number), FPR))


def test_a_level_that_only_one_place_has_is_there() -> None:
    claim = eq.gap("accuracy", across="g")
    parts = [_table().filter(pl.col("g") == level) for level in "abc"]
    merged = eq.merge(*(eq.tally(_read(part), claim) for part in parts))
    assert eq.describe(merged, claim).rows == eq.describe(_read(_table()), claim).rows
    assert merged.source == "a polars table"


def test_tally_says_what_it_takes() -> None:
    with pytest.raises(eq.ClaimError, match="at least one claim"):
        eq.tally(_read(_table()))
    with pytest.raises(eq.TrailError, match="Expected a trail"):
        eq.tally(_table(), FPR)  # type: ignore[arg-type]
    with pytest.raises(eq.ClaimError, match="Expected a claim"):
        eq.tally(_read(_table()), "accuracy")  # type: ignore[arg-type]


def test_rows_without_a_count_are_told_of_every_place() -> None:
    places = [
        _read(
            _table(20, seed).with_columns(n=pl.Series([None] * lost + [2] * (20 - lost))), count="n"
        )
        for seed, lost in ((1, 3), (2, 5))
    ]
    merged = eq.merge(*(eq.tally(place, FPR) for place in places))
    assert merged.rows == 2 * (17 + 15) + 8
    assert eq.describe(merged, FPR).provenance.excluded["missing count"] == 8
