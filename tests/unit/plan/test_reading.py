"""Plans read strictly: one clear message that names the line."""

import json
import math
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.plan import Plan, draft, plan_schema
from equipoise.plan import plan as plan_module
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
        ("level: 0.9", r'"\e[2J": 0.9', 12, r"'\\x1b\[2J' does not exist here"),
        ("level: 0.9", 'level: "0.9"', 12, "level must be a number; got '0.9'"),
        ("level: 0.9", "level: .nan", 12, "is no number"),
        ("level: 0.9", "level: 1" + "0" * 5000, 12, "cannot be read"),
        ("level: 0.9", "level: 0x" + "F" * 100, 12, "too large"),
        ("level: 0.9", "level: 0.9\n    level: 0.8", 13, "second time"),
        ("level: 0.9", "level: 95", 12, "between 0 and 1"),
        ("level: 0.9", "method: boostrap", 12, "Did you mean 'bootstrap'"),
        ("level: 0.9", "resamples: 1", 12, "whole number of at least"),
        ("seed: 7", "seed: -7", 3, "seed must be a whole number of at least 0; got -7"),
        ("seed: 7", "seed: true", 3, "seed must be a whole number; got True"),
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
        ("source:", "sorce:", 5, "trail.sorce does not exist here. Did you mean 'source'"),
        (
            "source:",
            "attributes:\n  - a\n  - 5\n  source:",
            7,
            "trail.attributes must be text; got 5",
        ),
        ("seed: 7", "seed: x\nseeds: 7", 4, r"seeds does not exist here.* \(and 1 more\)"),
        ("equipoise: 1", "equipoise: 9", 1, "equipoise must be 1; got 9"),
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


HEAD = {"equipoise": 1, "seed": 7, "trail": {"source": "d.csv"}}
CLAIM = {"kind": "gap", "metric": "accuracy", "across": ["g"]}
CERTIFY = {"audit": "certify", "claim": CLAIM}


@pytest.mark.parametrize(
    ("audit", "more", "quoted", "digest"),
    [
        # what an option reads as a number is one, whole or not
        ({"audit": "flag", "claim": CLAIM, "above": 1}, {}, '"above": 1.0', "b6b256e1623add51"),
        # what may be anything is quoted as it came
        ({"audit": "discover", "metric": "accuracy", "target": 1}, {}, ": 1}]", "c45c90a9f2073ea1"),
        (
            {"audit": "individual", "vary": "g", "cost": [[1, 0], [0, 1]]},
            {},
            "0, 1]]",
            "8a71fdc9db",
        ),
        # a default that is written is a decision too
        ({"at": None, "audit": "joint_test", "claim": CLAIM}, {}, '"at": null', "71fe7dbe69aab29e"),
        # the order is that of the format, not of the file
        (
            CERTIFY,
            {"models": {"threshold": 1, "before": "b", "after": "a"}},
            '{"before": "b", "after": "a", "threshold": 1.0}, "seed": 7',
            "6d2c4b89d28bddc9",
        ),
    ],
)
def test_plans_keep_their_text_and_their_hash(
    audit: dict[str, Any], more: dict[str, Any], quoted: str, digest: str
) -> None:
    # evidence written by earlier versions holds these
    plan = Plan.from_plain({**HEAD, "audits": [audit], **more})
    assert quoted in json.dumps(plan.to_plain())
    assert plan.hash.startswith(digest)
    assert Plan.from_plain(plan.to_plain()) == plan


def test_what_is_quoted_cannot_change_the_plan() -> None:
    data: dict[str, Any] = {**HEAD, "audits": [CERTIFY]}
    plan = Plan.from_plain(data)
    before = plan.hash
    plan.to_plain()["audits"][0]["claim"]["across"].append("h")
    assert plan.hash == before


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"tolerance": math.inf}, "tolerance must be finite; got inf"),
        ({"tolerance": 10**400}, "tolerance must be a number that is not so large"),
        ({"name": "\ud800"}, "half a character"),
        ({"name": object()}, "holds what no file can"),
        ({"claim": {"kind": "gap", "\ud800": 1}}, "half a character"),
    ],
)
def test_plain_data_that_no_file_can_hold(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(eq.PlanError, match=f"^the plan.*{says}"):
        Plan.from_plain({**HEAD, "audits": [{**CERTIFY, **wrong}]})


def test_characters_that_were_escaped_in_halves_are_whole() -> None:
    plan = Plan.parse(PLAN.replace("A title", json.dumps("smile 😀")))
    assert plan.title == "smile 😀"
    source = '"postgres://me:hunter2secret\\ud83d@host/d"'
    with pytest.raises(eq.PlanError, match=r"line 5: .*half a character") as refused:
        Plan.parse(PLAN.replace('"equipoise:compas"', source))
    assert "hunter2" not in str(refused.value)


def test_plain_data_nested_without_end() -> None:
    for depth in (100, 500, 100_000):
        nested: Any = 1
        for _ in range(depth):
            nested = [nested]
        with pytest.raises(eq.PlanError, match=r"deep|recursion"):
            Plan.from_plain({**HEAD, "audits": [{**CERTIFY, "claim": {"kind": nested}}]})


def test_a_password_is_no_part_of_a_message() -> None:
    source = [f"postgres://me:hunter2secret@{'host' * 30}/d"]
    with pytest.raises(eq.PlanError, match=r"trail.source must be text; got .*\*\*\*") as refused:
        Plan.from_plain({**HEAD, "trail": {"source": source}, "audits": [CERTIFY]})
    assert "hunter2" not in str(refused.value)


def plans_of_the_docs() -> list[str]:
    """The plans that are shown in the documentation."""
    pages = (Path(__file__).parents[3] / "docs").rglob("*.md")
    blocks = [
        re.findall(r"```yaml[^\n]*\n(.*?)```", page.read_text("utf-8"), re.S) for page in pages
    ]
    return [block for found in blocks for block in found if "equipoise: 1\n" in block]


def test_the_schema_takes_every_plan_and_refuses_what_the_reader_refuses() -> None:
    schema = plan_schema()
    # not in an environment that has the core alone
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    demo = Path(plan_module.__file__).with_name("demo.yaml").read_text("utf-8")
    texts = [PLAN, demo, *plans_of_the_docs()]
    assert len(texts) > 4
    for text in texts:
        data = read_yaml(text, "plan").data
        assert [error.message for error in check.iter_errors(data)] == []
        assert check.is_valid(Plan.parse(text).to_plain())
    data = {**HEAD, "audits": [CERTIFY]}
    assert check.is_valid(data)
    mistakes: list[dict[str, Any]] = [
        {"seed": -1},
        {"seed": "7"},
        {"audits": []},
        {"zz": 1},
        {"trail": {}},
        {"audits": [{**CERTIFY, "level": "0.9"}]},
        {"audits": [{**CERTIFY, "levle": 0.9}]},
        {"audits": [{**CERTIFY, "audit": "flag", "outside": [1]}]},
    ]
    for wrong in mistakes:
        assert not check.is_valid({**data, **wrong})
        with pytest.raises(eq.PlanError):
            Plan.from_plain({**data, **wrong})


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
