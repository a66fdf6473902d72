"""Two recordings of one program are the same; what differs between others is found and named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools import same_answers

SOURCE = same_answers.ROOT / "src"
FEW = {"describe": 2, "flag": 2, "tally": 2}


def written(folder: Path, answer: Any) -> Path:
    folder.mkdir()
    (folder / "one.json").write_text(json.dumps(answer))
    return folder


def changes(tmp_path: Path, *rules: dict[str, Any]) -> list[same_answers.Named]:
    path = tmp_path / "named.json"
    path.write_text(json.dumps(rules))
    return same_answers.read_named(path)


def test_there_are_two_hundred_questions_of_every_verb() -> None:
    assert sum(same_answers.NUMBERS.values()) == 200
    assert same_answers.NUMBERS.keys() == same_answers.ASKING.keys()


@pytest.mark.parametrize("verb", same_answers.ASKING)
def test_a_question_is_always_the_same(verb: str) -> None:
    one, other = (same_answers.question(verb, 3) for _ in range(2))
    assert one.words == other.words
    assert one.table.equals(other.table)


@pytest.mark.parametrize("verb", same_answers.LEVELS)
def test_every_verb_with_a_level_is_told_one(verb: str) -> None:
    numbers = range(same_answers.NUMBERS[verb])
    assert all("level=" in same_answers.question(verb, i).text for i in numbers)


def test_a_recording_again_is_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ends = [same_answers.record(tmp_path / name, SOURCE, FEW, plans=False) for name in "ab"]
    assert ends[0] == ends[1]
    assert sum(ends[0].values()) == 6
    assert not [end for _, end in ends[0] if end == "crashed"]
    assert same_answers.main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert "6 the same byte for byte" in capsys.readouterr().out


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    written(tmp_path / "full", {})
    with pytest.raises(SystemExit, match="not empty"):
        same_answers.record(tmp_path / "full", SOURCE, FEW, plans=False)


def test_another_package_than_the_one_asked_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="not from"):
        same_answers.record(tmp_path / "new", tmp_path, FEW, plans=False)


def test_plans_of_the_documentation_are_found_and_get_levels() -> None:
    names = [name for name, _ in same_answers.documented_plans()]
    assert "plan-first-audit-0" in names
    plan = {"audits": [{"audit": "shift"}, {"audit": "flag"}, {"audit": "certify", "level": 0.5}]}
    levels = [audit.get("level") for audit in same_answers.with_levels(plan)["audits"]]
    assert levels == [0.90, None, 0.5]


@pytest.mark.parametrize(
    ("before", "after"),
    [(0.1, 0.1 + 2e-17 + 1e-17), (0.0, -0.0), (1, 1.0), (True, 1), (None, 0), ([1], [1, 2])],
)
def test_numbers_are_compared_without_tolerance(before: Any, after: Any) -> None:
    assert len(list(same_answers.differences({"p": before}, {"p": after}))) == 1


def test_differences_are_shown_with_their_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = written(tmp_path / "a", {"finding": {"rows": [{"p": 0.5}]}, "sentences": ["so"]})
    after = written(tmp_path / "b", {"finding": {"rows": [{"p": 0.25}]}, "sentences": ["so"]})
    assert same_answers.main(["compare", str(before), str(after)]) == 1
    said = capsys.readouterr().out
    assert "finding.rows.0.p: 0.5 → 0.25" in said
    assert "1 different (0 of these in words alone)" in said


BEFORE = {"finding": {"old": 1, "gone": 2, "time": 3, "k": "step", "v": 4}, "sentences": ["a b"]}
AFTER = {"finding": {"new": 1, "time": 9, "k": "walk", "v": 5}, "sentences": ["a c"]}
RULES: tuple[dict[str, Any], ...] = (
    {"path": "finding.old", "rename": "new"},
    {"path": "**.gone", "drop": True},
    {"path": "finding.time", "ignore": True},
    {"path": "finding.k", "before": "step", "after": "walk"},
    {"path": "finding.v", "before": 4, "after": 5},
    {"path": "sentences.*", "before": "b", "after": "c", "audit": "on*"},
)


def test_named_changes_explain_what_differs(tmp_path: Path) -> None:
    before, after = written(tmp_path / "a", BEFORE), written(tmp_path / "b", AFTER)
    named = changes(tmp_path, *RULES)
    assert same_answers.compare(before, after, named)
    assert all(change.uses for change in named)


@pytest.mark.parametrize("left_out", range(len(RULES)))
def test_every_named_change_is_needed(tmp_path: Path, left_out: int) -> None:
    before, after = written(tmp_path / "a", BEFORE), written(tmp_path / "b", AFTER)
    named = changes(tmp_path, *(rule for i, rule in enumerate(RULES) if i != left_out))
    assert not same_answers.compare(before, after, named)


@pytest.mark.parametrize("rule", [{}, {"before": 1}, {"drop": True}, {"rename": "a", "drop": True}])
def test_a_change_that_says_nothing_is_refused(tmp_path: Path, rule: dict[str, Any]) -> None:
    with pytest.raises(SystemExit):
        changes(tmp_path, rule)


def test_an_answer_that_is_missing_differs(tmp_path: Path) -> None:
    before, after = written(tmp_path / "a", BEFORE), written(tmp_path / "b", BEFORE)
    (after / "two.json").write_text("{}")
    assert not same_answers.compare(before, after)
