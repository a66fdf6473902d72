"""An attacker with the published data and a linear programme learns no hidden count closely.

The model of the attacker is written here from scratch: cells of month, place, sex, label and
prediction; every published number is an equation; each hidden count is bounded from both sides. He
is taken to know of every group that there is at least one such row, which nothing can hide.
"""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import equipoise as eq
from equipoise.cli.main import execute
from equipoise.report.suppress import published as made_public
from equipoise.report.suppress import suppressed
from tests.safety.conftest import number

LEAST = 10
METRICS = ("accuracy", "false_positive_rate", "selection_rate", "positive_predictive_value")
COUNTS: dict[str, Any] = {
    "accuracy": lambda y, p: (1, y == p),
    "false_positive_rate": lambda y, p: (y == 0, p == 1),
    "selection_rate": lambda y, p: (1, p == 1),
    "positive_predictive_value": lambda y, p: (p == 1, y == 1),
}
NAMES = ("month", "place", "sex")
LEVELS = {"month": ("jan", "feb"), "place": ("N", "S", "W"), "sex": ("f", "m")}
CELLS = list(itertools.product(*LEVELS.values(), (0, 1), (0, 1)))


def audited(rng: np.random.Generator) -> tuple[tuple[eq.Finding, ...], "np.ndarray[Any, Any]"]:
    """Findings on a random table with small cells, by several metrics, some by month."""
    sizes = rng.choice([0, 1, 2, 4, 9, 40], len(CELLS), p=[0.2, 0.2, 0.2, 0.15, 0.1, 0.15])
    frame = pl.DataFrame(
        [(*cell, int(n)) for cell, n in zip(CELLS, sizes, strict=True) if n],
        schema=[*NAMES, "y", "p", "count"],
        orient="row",
    )
    trail = eq.read(frame, label="y", prediction="p", count="count")
    chosen = rng.choice(METRICS, rng.integers(1, 4), replace=False)
    cuts = [("place",), ("month", "place"), ("place", "sex"), NAMES, ("month", "sex")]
    found: list[eq.Finding] = []
    for metric in chosen:
        cut = cuts[rng.integers(len(cuts))]
        claim = eq.gap(str(metric), across=eq.intersections(*cut))
        verb: Any = eq.flag if rng.random() < 0.5 else eq.describe
        found.append(verb(trail, claim))
    return tuple(found), sizes


def mask(metric: str, where: dict[str, str], hit: bool) -> "np.ndarray[Any, Any]":
    made = np.zeros(len(CELLS))
    for i, cell in enumerate(CELLS):
        counted, adds = COUNTS[metric](*cell[3:])
        inside = all(cell[NAMES.index(name)] == level for name, level in where.items())
        made[i] = inside and counted and (adds or not hit)
    return made


def equations(published: dict[str, Any]) -> tuple[list[Any], list[float]]:
    """Every number of the published file as a sum of cells."""
    left, right = [], []
    for entry in published["entries"]:
        finding = entry["finding"]
        if finding is None:
            continue
        metric, total = finding["claim"]["metric"], finding["provenance"]["counted"]
        left.append(mask(metric, {}, False))
        right.append(float(total))
        for row in finding["rows"]:
            left.append(mask(metric, row["where"], False))
            right.append(float(row["n"]))
            hits = row["value"] * row["n"] if row["value"] is not None else None
            # three digits tell how many were counted in a group of a few hundred
            if hits is not None and row["n"] < 400:
                left.append(mask(metric, row["where"], True))
                right.append(float(round(hits)))
            if row["target"] is not None and total < 400:
                left.append(mask(metric, {}, True))
                right.append(float(round(row["target"] * total)))
    return left, right


def ends(left: list[Any], right: list[float], there: list[Any], asked: Any) -> tuple[float, float]:
    found = []
    for sign in (1.0, -1.0):
        done = linprog(
            sign * asked,
            A_eq=np.array(left) if left else None,
            b_eq=np.array(right) if left else None,
            A_ub=-np.array(there),
            b_ub=-np.ones(len(there)),
            bounds=(0, None),
            method="highs",
        )
        assert done.status in (0, 3), done.message
        found.append(sign * done.fun if done.status == 0 else np.inf)
    return found[0], found[1]


def test_no_hidden_count_is_known_closely() -> None:
    rng, hidden, pinned, shown = np.random.default_rng(21), 0, [], 0
    while hidden < number(40, 2000):
        findings, sizes = audited(rng)
        kept_back = suppressed(findings, LEAST)
        published = json.loads(made_public(eq.Evidence.of(*findings), kept_back, LEAST))
        left, right = equations(published)
        there = [
            mask(found.claim["metric"], row.where, False)
            for found in findings
            for row in found.rows
            if row.n
        ]
        truth = [float(one @ sizes) for one in left]
        assert truth == right, "the attacker's own model must agree with the table"
        for found, entry in zip(findings, published["entries"], strict=True):
            kept = [row["group"] for row in entry["finding"]["rows"]] if entry["finding"] else []
            shown += len(kept)
            for row in found.rows:
                if row.n >= LEAST:
                    continue
                assert row.group not in kept
                hidden += 1
                asked = mask(found.claim["metric"], row.where, False)
                low, high = ends(left, right, there, asked)
                # the least that it takes for all these groups to exist, if nothing is published
                fewest, _ = ends([], [], there, asked)
                if low > max(row.n - LEAST, fewest) + 1e-4 or high < row.n + LEAST - 1e-4:
                    pinned.append((row.group, row.n, low, high))
    assert pinned == []
    # hiding everything would be no art
    assert shown > hidden / 10


def test_two_metrics_do_not_give_the_third() -> None:
    # 100 rows under one metric and 97 under another: three people with label 1
    rows = [("N", 0, 0, 60), ("N", 0, 1, 37), ("N", 1, 1, 3), ("S", 0, 0, 80), ("S", 1, 1, 70)]
    rows += [("S", 0, 1, 40), ("S", 1, 0, 50)]
    frame = pl.DataFrame(rows, schema=["place", "y", "p", "count"], orient="row")
    trail = eq.read(frame, label="y", prediction="p", count="count")
    asked = ("accuracy", "false_positive_rate", "true_positive_rate")
    found = [eq.describe(trail, eq.gap(metric, across="place")) for metric in asked]
    published = json.loads(str(eq.report(*found, suppress=LEAST).published))
    told = {
        (entry["finding"]["claim"]["metric"], row["group"]): row["n"]
        for entry in published["entries"]
        if entry["finding"]
        for row in entry["finding"]["rows"]
    }
    assert ("true_positive_rate", "N") not in told
    assert not {("accuracy", "N"), ("false_positive_rate", "N")} <= set(told)


@pytest.mark.parametrize("target", ["reference", "complement"])
def test_a_small_reference_group_is_neither_named_nor_quoted(target: str) -> None:
    rows = [("Tiny", 0, 1, 3), ("N", 0, 0, 80), ("N", 0, 1, 30), ("S", 0, 0, 50), ("S", 0, 1, 45)]
    frame = pl.DataFrame(rows, schema=["place", "y", "p", "count"], orient="row")
    trail = eq.read(frame, label="y", prediction="p", count="count")
    against = eq.reference(place="Tiny") if target == "reference" else eq.complement()
    claim = eq.gap("false_positive_rate", across="place", target=against)
    report = eq.report(eq.flag(trail, claim), eq.certify(trail, claim, rng=1), suppress=LEAST)
    assert "Tiny" not in report.html
    assert report.published is not None
    assert "Tiny" not in report.published


def test_nothing_is_left_that_guesses_can_be_tried_against() -> None:
    trail = eq.datasets.compas()
    found = eq.certify(trail, eq.gap("accuracy", across="race"), tolerance=0.2, rng=7)
    evidence = eq.Evidence.of(found)
    report = eq.report(evidence, suppress=50)
    assert report.published is not None
    for text in (report.html, report.published):
        for mark in (found.provenance.fingerprint, evidence.fingerprint, evidence.seal):
            assert mark not in text
        assert repr(found.critical) not in text
        assert "Native American" not in text
    with pytest.raises(eq.EquipoiseError, match="published with small groups left out"):
        eq.Evidence.from_json(report.published)


def thin() -> pl.DataFrame:
    """Large groups by one attribute, and a few people where two cross."""
    sizes = {("x", "u"): 300, ("x", "v"): 150, ("y", "u"): 200, ("y", "v"): 4, ("z", "u"): 120,
             ("z", "v"): 90, ("y", "t"): 3}  # fmt: skip
    rows = [
        (a, b, i % 2, int(i % 3 == 0), i % 10 / 10) for (a, b), n in sizes.items() for i in range(n)
    ]
    return pl.DataFrame(rows, schema=["a", "b", "y", "p", "s"], orient="row")


@pytest.mark.parametrize("across", [["a", "b"], ["b", "y"], ["a", "b", "y"]])
def test_a_summary_of_several_attributes_names_nobody(across: list[str]) -> None:
    """Groups of two attributes were published in full where no group of one was on the page."""
    trail = eq.read(thin(), label="y", prediction="p", score="s", attributes=["a", "b", "y"][:2])
    if "y" in across:
        trail = eq.read(thin(), prediction="p", attributes=["a", "b", "y"])
    found = eq.summarize(trail, eq.selection_rate, across=across, rng=7)
    for findings in (
        [found],
        [found, eq.compare(trail, eq.selection_rate, across=["a", "b"], rng=7)],
    ):
        report = eq.report(*findings, suppress=10)
        told = json.loads(report.published or "")
        assert [entry["finding"] for entry in told["entries"]] == [None] * len(findings)
        assert "y, v</bdi>" not in report.html


def test_comparisons_of_spread_say_nothing_of_groups_that_are_not_listed() -> None:
    """Three people of level t: their rate could be read from the spread by b."""
    trail = eq.read(thin(), label="y", prediction="p", score="s", attributes=["a", "b"])
    found = eq.compare(trail, eq.selection_rate, across=["a", "b"], rng=7)
    (entry,) = json.loads(eq.report(found, suppress=10).published or "")["entries"]
    assert entry["finding"] is None


def test_people_without_partners_in_a_stratum_are_not_counted_in_public() -> None:
    """The three people of y and t stood on the page as "apart: 3"."""
    trail = eq.read(thin(), label="y", prediction="p", score="s", attributes=["a", "b"])
    claim = eq.gap(eq.selection_rate, across="a", given=["b"])
    for found in (
        eq.certify(trail, claim, rng=7),
        eq.flag(trail, claim),
        eq.describe(trail, claim),
    ):
        assert any(row.apart == 3 for row in found.adjusted)
        (entry,) = json.loads(eq.report(found, suppress=10).published or "")["entries"]
        assert entry["finding"] is None


def test_rules_are_not_told_beside_hidden_groups() -> None:
    """The rule "b is not t" counts everybody but those who are hidden."""
    trail = eq.read(thin(), label="y", prediction="p", score="s", attributes=["a", "b"])
    rule = eq.gap(eq.selection_rate, across=eq.masks({"not t": "column('b') != 't'"}))
    table = eq.describe(trail, eq.gap(eq.selection_rate, across=["b"]))
    for found in (eq.describe(trail, rule), eq.flag(trail, rule), eq.certify(trail, rule, rng=7)):
        entries = json.loads(eq.report(table, found, suppress=10).published or "")["entries"]
        assert entries[1]["finding"] is None


# --- Counts of different metrics, set against each other ---

POSITIVE = eq.metric("mean score of positives", "score", where="label == 1")
AGE, OLD = eq.metric("mean age", "age"), eq.metric("old", "age > 40")


def with_a_few_apart(few: int) -> eq.Trail:
    """Of 580 people of A a few have label 0, and as many no age."""
    rows = [
        (
            group,
            int(i >= zeros),
            i % 2,
            0.1 + 0.8 * (i * 7 % 11) / 11,
            None if group == "A" and i < few else 20.0 + i % 50,
        )
        for group, n, zeros in (("A", 580, few), ("B", 420, 200), ("C", 300, 150), ("D", 260, 130))
        for i in range(n)
    ]
    names = ["race", "label", "prediction", "score", "age"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    return eq.read(frame, label="label", prediction="prediction", score="score")


@pytest.mark.parametrize("few", [3, 7])
@pytest.mark.parametrize(
    "metrics",
    [
        ("accuracy", "true_positive_rate"),
        ("brier", "true_positive_rate"),
        ("accuracy", POSITIVE),
        ("brier", POSITIVE),
        ("accuracy", AGE),
        ("brier", AGE),
        (AGE, "brier"),
        ("auc", OLD),
        ("f1", AGE),
        (eq.median("score"), eq.median("age")),
        ("brier", "false_positive_rate", POSITIVE),
        (POSITIVE, "error_rate", AGE),
    ],
    ids=str,
)
def test_no_two_metrics_count_a_few_people(metrics: tuple[Any, ...], few: int) -> None:
    """580 rows under one metric and 577 under another: three people."""
    trail = with_a_few_apart(few)
    found = [eq.describe(trail, eq.gap(metric, across="race")) for metric in metrics]
    report = eq.report(*found, suppress=LEAST)
    told: dict[str, list[int]] = {}
    for entry in json.loads(report.published or "")["entries"]:
        for row in (entry["finding"] or {"rows": []})["rows"]:
            told.setdefault(row["group"], []).append(row["n"])
        if entry["finding"]:
            told.setdefault("all", []).append(entry["finding"]["provenance"]["counted"])
    apart = {abs(a - b) for ns in told.values() for a, b in itertools.combinations(ns, 2)}
    assert told
    assert not apart & set(range(1, LEAST))
    # nor anywhere else
    if told.get("A") == [580] or told["all"][0] == 1560:
        assert not {f"{580 - few:,}", f"{1560 - few:,}"} & set(numbers_on(report.html))


def numbers_on(page: str) -> list[str]:
    import re

    return re.findall(r"(?<![\d.])\d[\d,]*(?![\d.]*\d)", page)


def test_a_sum_of_two_metrics_beside_a_third_counts_nobody() -> None:
    # who decided otherwise or has label 0, and the positives with a score: three have none
    rows = [(g, y, i % 2, None if g == "A" and y and i < 3 else 0.5 + i % 5 / 10)
            for g, ns in (("A", (300, 280)), ("B", (200, 220))) for y in (0, 1)
            for i in range(ns[y])]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["race", "y", "p", "s"], orient="row")
    trail = eq.read(frame, label="y", prediction="p", score="s")
    positives = eq.metric("mean", "column('s')", where="label == 1")
    asked = ("accuracy", "false_positive_rate", positives)
    found = [eq.describe(trail, eq.gap(metric, across="race")) for metric in asked]
    entries = json.loads(eq.report(*found, suppress=LEAST).published or "")["entries"]
    assert [entry["finding"] is None for entry in entries] == [False, False, True]


def test_what_hidden_groups_leave_between_two_metrics_is_not_counted() -> None:
    # A and B have every age; of the small groups, who are hidden, three have none
    sizes = {"A": 580, "B": 420, "C": 5, "D": 12, "G": 13}
    rows = [
        (group, i % 2, None if group == "D" and i < 3 else 30.0 + i % 20)
        for group, n in sizes.items()
        for i in range(n)
    ]
    frame = pl.DataFrame(rows, schema=["race", "p", "age"], orient="row")
    trail = eq.read(frame, prediction="p")
    found = [eq.describe(trail, eq.gap(m, across="race")) for m in ("selection_rate", AGE)]
    entries = json.loads(eq.report(*found, suppress=LEAST).published or "")["entries"]
    assert [entry["finding"] is None for entry in entries] == [False, True]


def test_the_same_rows_are_told_under_many_metrics() -> None:
    # hiding everything would be no art
    trail = with_a_few_apart(0)
    metrics = ("accuracy", "brier", "auc", AGE, OLD, eq.median("age"), POSITIVE)
    found = [eq.describe(trail, eq.gap(metric, across="race")) for metric in metrics]
    report = eq.report(*found, suppress=LEAST)
    assert report.suppressed == 0
    assert all(one.told for one in report.told)


@pytest.mark.parametrize("metric", ["accuracy", "brier", "auc", "f1", eq.median("score"), AGE])
def test_which_groups_are_hidden_rests_on_no_hidden_value(metric: Any) -> None:
    """The same people, dealt otherwise to the hidden groups of 5, 12 and 13."""
    people = [(1, 1, 0.8)] * 10 + [(1, 0, 0.4)] * 7 + [(0, 1, 0.7)] * 6 + [(0, 0, 0.2)] * 7
    shown = [
        (group, i % 2, i // 2 % 2, (0.2, 0.4, 0.7, 0.8)[i % 4])
        for group, n in (("A", 580), ("B", 420))
        for i in range(n)
    ]
    rng, hidden = np.random.default_rng(5), set()
    for _ in range(number(12, 60)):
        dealt = zip("C" * 5 + "D" * 12 + "G" * 13, rng.permutation(len(people)), strict=True)
        rows = [*((group, *people[i]) for group, i in dealt), *shown]
        frame = pl.DataFrame(rows, schema=["race", "y", "p", "s"], orient="row")
        frame = frame.with_columns(age=pl.col("s"), score=pl.col("s"))
        trail = eq.read(frame, label="y", prediction="p", score="score")
        found = eq.describe(trail, eq.gap(metric, across="race"))
        hidden.add(eq.report(found, suppress=LEAST).suppressed)
    assert len(hidden) == 1


def test_no_table_of_an_earlier_export_stays_beside_a_suppressed_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder exported before kept, with --force, the full table of what may not be told."""
    trail = eq.read(thin(), label="y", prediction="p", score="s", attributes=["a", "b"])
    claim = eq.gap("accuracy", across=["a", "b"])
    found = (eq.certify(trail, claim, rng=7), eq.power(trail, claim, rng=7))
    eq.Evidence.of(*found).save(tmp_path / "e.json")
    export = ["export", str(tmp_path / "e.json"), str(tmp_path / "c"), "--to", "csv", "-q"]
    assert execute(export) == 0
    full = {path.name: path.read_text() for path in (tmp_path / "c").iterdir()}
    assert "power.csv" in full
    assert execute([*export, "--suppress", "10", "--force"]) == 3
    assert "power.csv" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in (tmp_path / "c").iterdir()} == full
    export[2] = str(tmp_path / "empty")
    assert execute([*export, "--suppress", "10"]) == 0
    assert execute([*export, "--suppress", "10", "--force"]) == 0


def test_who_adds_one_is_set_against_the_rows_of_other_metrics() -> None:
    """240 are selected, and 237 of the selected have a score: three have none."""
    rows = [
        (group, int(i < chosen), None if group == "A" and i < 3 else 0.5 + i % 5 / 10)
        for group, n, chosen in (("A", 580, 240), ("B", 420, 200))
        for i in range(n)
    ]
    trail = eq.read(pl.DataFrame(rows, schema=["race", "p", "s"], orient="row"), prediction="p")
    of_selected = eq.metric("mean score", "column('s')", where="prediction == 1")
    found = [eq.describe(trail, eq.gap(m, across="race")) for m in ("selection_rate", of_selected)]
    entries = json.loads(eq.report(*found, suppress=LEAST).published or "")["entries"]
    assert [entry["finding"] is None for entry in entries] == [False, True]


def test_a_question_that_is_not_told_takes_nothing_from_others() -> None:
    trail = with_a_few_apart(3)
    others: list[eq.Finding] = [
        eq.certify(trail, eq.gap("brier", across="race"), rng=7),
        eq.joint_test(trail, eq.gap("brier", across="race"), rng=7),
    ]
    alone = json.loads(eq.report(*others, suppress=LEAST).published or "")["entries"]
    age = eq.describe(trail, eq.gap(AGE, across="race"))
    beside = json.loads(eq.report(*others, age, suppress=LEAST).published or "")["entries"]
    assert beside[:2] == alone
    assert beside[2]["finding"] is None


def test_many_metrics_of_ones_own_are_looked_at_in_bounded_time() -> None:
    sizes = {"A": 580, "B": 420, "C": 5, "D": 12, "G": 13}
    rows = [(group, i % 2, 30.0 + i % 20) for group, n in sizes.items() for i in range(n)]
    trail = eq.read(pl.DataFrame(rows, schema=["g", "p", "age"], orient="row"), prediction="p")
    metrics = [eq.metric(f"above {cut}", f"age > {cut}") for cut in range(31, 46)]
    metrics += [eq.metric(f"mean {power}", f"age ** {power}") for power in (1, 2, 3)]
    found = [eq.describe(trail, eq.gap(metric, across="g")) for metric in metrics]
    report = eq.report(*found, suppress=LEAST)
    entries = json.loads(report.published or "")["entries"]
    for entry in entries:
        named = {row["group"] for row in (entry["finding"] or {"rows": []})["rows"]}
        assert not named & {"C", "D", "G"}
    assert sum(entry["finding"] is not None for entry in entries) >= 5
