"""`change`: a metric under two models on the same rows, beside plain loops over the rows."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import equipoise as eq
from equipoise.plan.plan import Plan
from equipoise.plan.run import gate, run

RATES = (
    "selection_rate", "accuracy", "error_rate", "false_positive_rate", "false_negative_rate",
    "true_positive_rate", "true_negative_rate", "positive_predictive_value",
    "negative_predictive_value",
)  # fmt: skip


def _table(n: int = 900, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    label, group = rng.integers(0, 2, n), rng.choice(["a", "b", "c"], n)
    old = np.where(rng.random(n) < 0.8, label, 1 - label)
    new = np.where(rng.random(n) < np.where(group == "c", 0.3, 0.05), 1 - old, old)
    return pl.DataFrame(
        {
            "y": label,
            "old": old,
            "new": new,
            "g": group,
            "s": rng.random(n),
            "t": rng.random(n),
            "w": rng.choice([0.5, 1.0, 3.0], n),
            "house": rng.integers(0, 120, n),
        }
    )


def _naive(rows: list[dict[str, Any]], metric: str, model: str) -> float | None:
    """The metric of one model, row by row."""
    hits = total = 0.0
    for row in rows:
        y, said, w = row["y"], row[model], row.get("weight", 1.0)
        value, counts = {
            "selection_rate": (said, True),
            "accuracy": (y == said, True),
            "error_rate": (y != said, True),
            "false_positive_rate": (said, y == 0),
            "false_negative_rate": (1 - said, y == 1),
            "true_positive_rate": (said, y == 1),
            "true_negative_rate": (1 - said, y == 0),
            "positive_predictive_value": (y, said == 1),
            "negative_predictive_value": (1 - y, said == 0),
        }[metric]
        hits, total = hits + w * value * counts, total + w * counts
    return hits / total if total else None


@pytest.mark.parametrize("metric", RATES)
@pytest.mark.parametrize("weight", [None, "w"])
def test_before_after_and_change_are_those_of_a_loop(metric: str, weight: str | None) -> None:
    table = _table()
    trail = eq.read(table, label="y", weight=weight, attributes=["g"])
    claim = eq.gap(eq.change(metric, before="old", after="new"), across="g")
    verbs = (eq.certify(trail, claim, rng=1), eq.flag(trail, claim), eq.describe(trail, claim))
    for found in verbs:
        for row, both in zip(list[Any](found.rows), found.changed, strict=True):
            here = table.filter(pl.col("g") == row.group)
            rows = [{**r, "weight": r["w"] if weight else 1.0} for r in here.to_dicts()]
            before, after = _naive(rows, metric, "old"), _naive(rows, metric, "new")
            assert before is not None
            assert after is not None
            assert both.before == pytest.approx(before)
            assert both.after == pytest.approx(after)
            assert row.disparity == pytest.approx(after - before)
            assert row.disparity == pytest.approx(both.change)


def test_losses_of_scores_and_thresholds_of_scores_too() -> None:
    table = _table()
    trail = eq.read(table, label="y", attributes=["g"])
    squared = eq.certify(
        trail, eq.gap(eq.change("brier", before="s", after="t"), across="g"), rng=1
    )
    here = table.filter(pl.col("g") == "a")
    wanted = ((here["y"] - here["t"]) ** 2 - (here["y"] - here["s"]) ** 2).mean()
    assert squared.rows[0].disparity == pytest.approx(wanted)
    said = table.with_columns(
        old=(pl.col("s") >= 0.6).cast(pl.Int8), new=(pl.col("t") >= 0.6).cast(pl.Int8)
    )
    for metric in ("false_positive_rate", "positive_predictive_value"):
        by_score = eq.change(metric, before="s", after="t", threshold=0.6)
        by_word = eq.change(metric, before="old", after="new")
        one = eq.certify(trail, eq.gap(by_score, across="g"), rng=1)
        other = eq.certify(
            eq.read(said, label="y", attributes=["g"]), eq.gap(by_word, across="g"), rng=1
        )
        assert [r.upper for r in one.rows] == pytest.approx([r.upper for r in other.rows])
    clipped = eq.change(eq.squared_error.clip(0, 0.5), before="s", after="t")
    y, s, t = (here[name].to_numpy() for name in ("y", "s", "t"))
    value = np.minimum((y - t) ** 2, 0.5) - np.minimum((y - s) ** 2, 0.5)
    found = eq.certify(trail, eq.gap(clipped, across="g"), rng=1)
    assert found.rows[0].disparity == pytest.approx(float(np.mean(value)))


@pytest.mark.parametrize("metric", ["error_rate", "positive_predictive_value"])
def test_words_truth_values_engines_counts_and_stored_plans_agree(metric: str) -> None:
    table = _table()
    claim = eq.gap(eq.change(metric, before="old", after="new"), across="g")
    trail = eq.read(table, label="y", attributes=["g"])
    wanted = eq.certify(trail, claim, rng=1, side="upper", tolerance=0.05)
    assert eq.from_plan(json.loads(json.dumps(claim.to_plan()))) == claim
    words = table.with_columns(
        pl.col("y", "old", "new").replace_strict({0: "no", 1: "yes"}, return_dtype=pl.String)
    )
    sources: list[Any] = [
        eq.read(words, label="y", positive="yes", attributes=["g"]),
        eq.read(
            words, label="y", prediction="new", positive={"label": "yes", "prediction": "yes"},
            attributes=["g"],
        ),
        eq.read(table.with_columns(pl.col("old", "new") == 1), label="y", attributes=["g"]),
        eq.read(pd.DataFrame(table.to_dict(as_series=False)), label="y", attributes=["g"]),
        eq.read(table.to_arrow(), label="y", attributes=["g"]),
        eq.Tallied.from_json(eq.tally(trail, claim).to_json()),
        eq.merge(
            *(
                eq.tally(eq.read(part, label="y", attributes=["g"]), claim)
                for part in (table.head(400), table.tail(500))
            )
        ),
    ]  # fmt: skip
    counted = table.group_by("y", "old", "new", "g").len("n")
    sources.append(eq.read(counted, label="y", count="n", attributes=["g"]))
    for source in sources:
        found = eq.certify(source, claim, rng=1, side="upper", tolerance=0.05)
        assert found.rows == wanted.rows
        assert found.changed == wanted.changed
    again = wanted.at(0.8)
    assert all(
        tight.upper < wide.upper
        for tight, wide in zip(again.rows, wanted.rows, strict=True)
        if tight.upper is not None and wide.upper is not None
    )


def test_rows_without_an_answer_of_both_models_are_left_out_and_counted() -> None:
    table = _table(60).with_columns(
        old=pl.when(pl.int_range(60) < 4).then(None).otherwise(pl.col("old")),
        new=pl.when(pl.int_range(60).is_between(2, 8)).then(None).otherwise(pl.col("new")),
    )
    trail = eq.read(table, label="y", attributes=["g"])
    for metric in ("error_rate", "positive_predictive_value"):
        found = eq.describe(trail, eq.gap(eq.change(metric, before="old", after="new"), across="g"))
        assert found.provenance.excluded == {"missing old": 4, "missing new": 5}
    kept = [r for r in table.to_dicts() if r["old"] is not None and r["new"] is not None]
    claim = eq.gap(eq.change("error_rate", before="old", after="new"), across="g")
    both = eq.certify(trail, claim, rng=1).changed[0]
    here = [r for r in kept if r["g"] == both.group]
    assert both.n == len(here)
    assert both.before == pytest.approx(_naive(here, "error_rate", "old"))


def test_only_rows_that_got_worse_are_no_certainty() -> None:
    # of three values that could be, two were seen: zero change must not look impossible
    table = pl.DataFrame({"y": [0] * 50, "old": [0] * 50, "new": [1] + [0] * 49, "g": ["a"] * 50})
    trail = eq.read(table, label="y", attributes=["g"])
    claim = eq.gap(eq.change("error_rate", before="old", after="new"), across="g")
    assert eq.flag(trail, claim, above=0.0).rows[0].p == pytest.approx(0.25, abs=0.05)
    by_hand = eq.metric("worse", "new - old", values=(-1, 0, 1))
    free = eq.read(table, label="y", attributes=["g", "old", "new"])
    assert eq.flag(free, eq.gap(by_hand, across="g", target=0), above=0.0).rows[0].p == (
        pytest.approx(eq.flag(trail, claim, above=0.0).rows[0].p)
    )


def test_rates_on_overlapping_rows_know_few_rows_and_none() -> None:
    """Nobody moved, one did, and nobody was ever selected."""
    rows = [("same", 1, 1, 1)] * 40 + [("same", 0, 0, 0)] * 10
    rows += [("one", 1, 1, 1)] * 40 + [("one", 0, 0, 1)] + [("none", 1, 0, 0)] * 30
    rows += [("late", 1, 0, 1)] * 30
    table = pl.DataFrame(rows, schema=["g", "y", "old", "new"], orient="row")
    claim = eq.gap(eq.change("positive_predictive_value", before="old", after="new"), across="g")
    found = eq.certify(eq.read(table, label="y", attributes=["g"]), claim, rng=1)
    by = {row.group: row for row in found.rows}
    assert by["same"].disparity == 0
    # four rows' worth of bounds: three groups of 40 rows share 5 %
    assert 0 > (by["same"].lower or 0) > -0.15
    assert 0 < (by["same"].upper or 0) < 0.15
    assert (by["one"].lower or 0) < 40 / 41 - 1 < 0 < (by["one"].upper or 0)
    assert by["g: none"].note == "no row counts after"
    assert by["late"].note == "no row counted before"
    assert {row.group: row.after for row in found.changed}["late"] == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"before": "old", "after": "old"}, "same column"),
        ({"metric": "coverage"}, "reads neither"),
        ({"metric": eq.metric("both", "abs(prediction - score)")}, "reads both"),
        ({"metric": "brier", "threshold": 0.5}, "leave out threshold"),
        ({"before": ""}, "name of a column"),
        ({"metric": eq.metric("m", "label == prediction", where="prediction == 1")}, "depend on"),
        ({"metric": eq.change("accuracy", before="a", after="b")}, "change already"),
    ],
)
def test_changes_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    asked = {"metric": "accuracy", "before": "old", "after": "new", **options}
    with pytest.raises(eq.ClaimError, match=message):
        eq.change(asked.pop("metric"), **asked)


def test_claims_and_tables_that_cannot_be_asked_are_refused() -> None:
    table = _table(30).with_columns(word=pl.lit("x"), three=pl.int_range(30) % 3)
    trail = eq.read(table, label="y", attributes=["g"])
    ppv = eq.change("positive_predictive_value", before="old", after="new")
    better = eq.change("accuracy", before="old", after="new")
    cases: list[tuple[Any, str]] = [
        (lambda: eq.ratio(better, across="g"), "gap"),
        (lambda: eq.gap(ppv, across="g", target=eq.overall()), "target 0"),
        (lambda: eq.summarize(trail, eq.gap(ppv, across="g")), "knows no change"),
        (
            lambda: eq.certify(trail, eq.gap(ppv, across="g"), method="bootstrap"),
            "leave method= out",
        ),
    ]
    for column, said in (("gone", "no column"), ("word", "holds text"), ("three", "two values")):
        asked = eq.gap(eq.change("accuracy", before="old", after=column), across="g")
        cases.append((lambda asked=asked: eq.certify(trail, asked, rng=1), said))
    beyond = eq.gap(eq.change("brier", before="s", after="house"), across="g")
    cases.append((lambda: eq.certify(trail, beyond, rng=1), "between 0 and 1"))
    for asked_of, message in cases:
        with pytest.raises(eq.EquipoiseError, match=message):
            asked_of()


def test_a_plan_names_the_models_once_and_the_gate_judges(tmp_path: Path) -> None:
    _table().write_csv(tmp_path / "rows.csv")
    text = """
equipoise: 1
trail: {source: rows.csv, label: y, attributes: [g]}
models: {before: old, after: new}
seed: 7
audits:
  - audit: certify
    claim: {kind: gap, metric: {kind: change, of: error_rate}, across: g}
    side: upper
    tolerance: 0.01
  - audit: flag
    claim: {kind: gap, metric: {kind: change, of: positive_predictive_value}, across: g}
"""
    evidence = run(Plan.parse(text), folder=tmp_path)
    bounds = evidence.entries[0].finding
    assert isinstance(bounds, eq.Bounds)
    assert [row.change is not None for row in bounds.changed] == [True] * 3
    assert gate(evidence, undetermined="fail").code != 0
    assert " before and " in bounds.headline()
    page = eq.report(bounds).html
    for words in ("Before and after", "before (%)", "change (points)", "✕ exceeded"):
        assert words in page
    with pytest.raises(eq.PlanError, match="before"):
        Plan.parse(text.replace("models: {before: old, after: new}\n", ""))


def test_one_sided_limits_that_are_exceeded_are_said_to_be() -> None:
    trail = eq.read(_table(), label="y", attributes=["g"])
    claim = eq.gap(eq.change("error_rate", before="old", after="new"), across="g")
    found = eq.certify(trail, claim, side="upper", tolerance=0.01, rng=7)
    assert str(found.ask("c").verdict) == "exceeded"
    said = found.sentences()
    assert any(s.startswith("Most surely above: c (n =") and "at least" in s for s in said)
    assert not any("told apart" in s for s in said)
    # without a limit one side is all that is known
    (only,) = [s for s in eq.certify(trail, claim, side="upper", rng=7).sentences() if "lie" in s]
    assert only == "No group is shown to lie below 0."
    (only,) = [
        s
        for s in eq.certify(trail, claim, side="lower", tolerance=-0.9, rng=7).sentences()
        if s.startswith("Most surely above: c")
    ]


def test_tables_without_a_changed_row_keep_their_word() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 300)
    table = pl.DataFrame({"y": label, "old": label, "g": np.repeat(["a", "b", "c"], [97, 94, 109])})
    trail = eq.read(table.with_columns(new="old"), label="y", attributes=["g"])
    for metric in ("error_rate", "false_positive_rate", "positive_predictive_value"):
        claim = eq.gap(eq.change(metric, before="old", after="new"), across="g")
        for row in eq.certify(trail, claim, side="upper", rng=7).rows:
            # one group alone, by hand: none of n rows changed
            assert row.upper is not None
            assert row.upper > 1 - 0.05 ** (1 / row.n)
        # flags, certificates and a test of all groups at once show nothing either
        assert not eq.flag(trail, claim, control="max-t", rng=7).flagged
        assert eq.joint_test(trail, claim, rng=7).p == pytest.approx(1, abs=0.01)
