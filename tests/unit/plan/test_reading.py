"""Plans read strictly: one clear message that names the line."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.plan import Plan, draft, plan_schema
from equipoise.plan.plan import read_yaml

PLAN = """\
equipoise: 1
title: A title
seed: 7
trail:
  source: "equipoise:compas"
audits:
  - audit: certify
    claim:
      kind: gap
      metric: false_positive_rate
      across: [race]
    level: 0.9
"""


def test_a_plan_is_read() -> None:
    plan = Plan.parse(PLAN)
    assert plan.names() == ("certify",)
    asked = plan.audits[0].options()
    assert asked == {"claim": eq.gap("false_positive_rate", across=["race"]), "level": 0.9}


def test_what_an_audit_takes_is_made_once_and_the_plan_stays_as_written() -> None:
    written = {"kind": "masks", "conditions": [{"kind": "condition", "name": "a", "formula": "x"}]}
    metric = {"kind": "metric", "name": "late", "value": "days"}
    audit = {"audit": "summarize", "metric": metric, "across": written}
    plain = {"equipoise": 1, "seed": 1, "trail": {"source": "d.csv"}, "audits": [audit]}
    plan = Plan.from_plain(plain)
    asked = plan.audits[0].options()
    assert asked == {"metric": eq.metric("late", "days"), "across": eq.masks(a="x")}
    assert plan.to_plain() == plain


def test_a_plan_without_a_file_has_no_lines() -> None:
    with pytest.raises(eq.PlanError, match=r"^the plan: seed is missing"):
        Plan.from_plain({"equipoise": 1, "trail": {"source": "d.csv"}, "audits": []})


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("level: 0.9", "levle: 0.9", 12, "Did you mean 'level'"),
        ("level: 0.9", 'level: "0.9"', 12, "valid number"),
        ("level: 0.9", "level: .nan", 12, "is no number"),
        ("level: 0.9", "level: 1" + "0" * 5000, 12, "cannot be read"),
        ("level: 0.9", "level: 0x" + "F" * 100, 12, "too large"),
        ("level: 0.9", "level: 0.9\n    level: 0.8", 13, "second time"),
        ("level: 0.9", "level: 95", 12, "between 0 and 1"),
        ("level: 0.9", "method: boostrap", 12, "Did you mean 'bootstrap'"),
        ("level: 0.9", "resamples: 1", 12, "whole number of at least"),
        ("seed: 7", "seed: -7", 3, "greater than or equal to 0"),
        ("seed: 7", "seed: true", 3, "valid integer"),
        ("seed: 7\n", "", 1, "seed is missing"),
        ("seed: 7", "seed: &here 7", 3, "anchors"),
        ("seed: 7", "seed: *here", 3, "anchors"),
        ("seed: 7", "seed: !!python/object/apply:os.system [ls]", 3, "tag"),
        ("title: A title", "<<: {a: 1}", 2, "merge keys"),
        ("title: A title", "[a]: 1", 2, "key must be a word"),
        ("title: A title", "title: @x", 2, "not YAML"),
        ("title: A title", "title: [", 4, "not YAML"),
        ("audit: certify", "audit: certfy", 7, "Did you mean 'certify'"),
        ("audit: certify", "auditt: certify", 7, "each audit needs"),
        ("source:", "sorce:", 5, "Did you mean 'source'"),
        ("equipoise: 1", "equipoise: 9", 1, "should be 1"),
        ("metric: false_positive_rate", "metric: fpr", 8, "does not exist"),
        ("kind: gap", "kind: gapp", 8, "Did you mean 'gap'"),
        ("across: [race]", "across: {kind: boxes}", 8, "needs"),
    ],
)
def test_mistakes_are_named_with_their_line(old: str, new: str, line: int, says: str) -> None:
    assert old in PLAN
    with pytest.raises(eq.PlanError, match=f"(?s)audit.yaml, line {line}: .*{says}"):
        Plan.parse(PLAN.replace(old, new), "audit.yaml")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            "summarize\n    metric: accuracy\n    across: race\n    measures: [varianse]",
            "'variance'",
        ),
        ("discover\n    metric: accuracy\n    depth: 0", "depth must be"),
        ("individual\n    vary: race\n    method: normale", "'normal'"),
        ("calibration\n    level: 95", "level must lie"),
        (
            "describe\n    claim: {kind: gap, metric: accuracy, across: race}\n    small: -1",
            "small",
        ),
    ],
)
def test_options_are_judged_before_there_are_data(options: str, says: str) -> None:
    head = PLAN.split("  - audit")[0].replace("equipoise:compas", "no such file.csv")
    text = f"{head}  - audit: {options}\n"
    with pytest.raises(eq.PlanError, match=rf"line {text.count(chr(10))}: .*{says}"):
        Plan.parse(text)


@pytest.mark.parametrize("text", ["", "- 1", "5", "null", "hello"])
def test_what_is_no_plan_at_all(text: str) -> None:
    with pytest.raises(eq.PlanError, match="must be a mapping"):
        Plan.parse(text)


def test_a_second_document_and_deep_nesting() -> None:
    with pytest.raises(eq.PlanError, match="second document"):
        Plan.parse(PLAN + "---\na: 1\n")
    with pytest.raises(eq.PlanError, match="deep"):
        Plan.parse("[" * 1000)
    with pytest.raises(eq.PlanError, match="characters"):
        Plan.parse("a" * 1_000_001)


def test_two_audits_of_one_name() -> None:
    twice = (
        PLAN
        + "  - {audit: describe, name: certify, claim: {kind: gap, metric: accuracy,"
        + (" across: [sex]}}\n")
    )
    with pytest.raises(eq.PlanError, match="line 13: there are two audits named 'certify'"):
        Plan.parse(twice, "p")


def test_words_stay_words() -> None:
    read = read_yaml("a: [yes, no, on, 2020-01-01, true, 'true', 1, 1.5, null]", "p").data["a"]
    assert read == ["yes", "no", "on", "2020-01-01", True, "true", 1, 1.5, None]


def test_the_hash_is_of_the_meaning() -> None:
    first = Plan.parse(PLAN)
    commented = Plan.parse("# a comment\n" + PLAN.replace("[race]", "['race']  # groups"))
    other = Plan.parse(PLAN.replace("0.9", "0.95"))
    assert first.hash == commented.hash == Plan.from_plain(first.to_plain()).hash
    assert first.hash != other.hash
    # neither does the order in which the fields of a claim stand
    fields = "      kind: gap\n      metric: false_positive_rate\n"
    turned = "      metric: false_positive_rate\n      kind: gap\n"
    assert fields in PLAN
    assert Plan.parse(PLAN.replace(fields, turned)).hash == Plan.parse(PLAN).hash


def test_the_schema_knows_every_option() -> None:
    schema = plan_schema()
    options = schema["$defs"]["certify"]["properties"]
    assert {"claim", "level", "tolerance", "method"} <= set(options)
    assert "rng" not in options
    assert schema["$defs"]["certify"]["additionalProperties"] is False


@given(st.text(max_size=300) | st.binary(max_size=200).map(lambda b: b.decode("latin-1")))
def test_any_text_is_a_plan_or_a_plan_error(text: str) -> None:
    with pytest.raises(eq.PlanError):
        Plan.parse(text)


@pytest.mark.parametrize("sign", ["\n", "\x85", "\u2028", "#", ": ", '"', "\x07", "é"])
def test_a_draft_quotes_any_name(tmp_path: Path, sign: str) -> None:
    name = f"a{sign}b"
    path = tmp_path / "d.parquet"
    pl.DataFrame({"label": [0, 1], "prediction": [1, 1], name: ["x", "y"]}).write_parquet(path)
    plan = Plan.parse(draft(str(path)))
    assert plan.audits[0].options()["claim"].across == eq.intersections(name)
