"""What is handed to the page for Ask: every group's bounds at every level that is offered."""

import dataclasses
import json
from typing import Any

import pytest

import equipoise as eq
from equipoise.findings import Bounds, from_json
from equipoise.report import ask
from equipoise.report.ask import Ask, ask_of
from tests.browser.audits import many_bounds

LEVELS = [0.8, 0.9, 0.95, 0.99]
ASKED = (
    *("overall", "reference", "depth", "binned", "thresholds", "grid", "boxes", "large numbers"),
    *("shared levels", "bins", "masks", "tilts", "bootstrap", "bootstrap ranges"),
    *("bootstrap ratio", "euclidean", "pointwise", "plug-in"),
)
OWN_TARGET = "the group is its own target"


@pytest.fixture(scope="module")
def bounds() -> dict[str, Bounds]:
    return many_bounds(*ASKED)


def asked_of(finding: eq.Finding) -> Ask:
    made = ask_of(finding)
    assert made is not None
    return made


def offered(asked: Ask) -> list[float]:
    return [level["level"] for level in asked["levels"]]


def name(asked: Ask, choice: list[Any]) -> str:
    """A group in words, as the page puts it together."""
    said = [_chosen(axis, one) for axis, one in zip(asked["axes"], choice, strict=True)]
    return ", ".join(text for text in said if text)


def _chosen(axis: Ask, one: Any) -> str:
    if not isinstance(one, list):
        return "" if one is None else str(axis["texts"][one])
    low, high = axis["texts"][one[0]], axis["ends"][one[1]]
    if not axis["closed"][one[1]]:
        return f"{axis['name']} {low} to under {high}"
    return f"{axis['name']} {low}" if low == high else f"{axis['name']} {low} to {high}"


@pytest.mark.parametrize("which", ["overall", "reference", "grid", "bootstrap ratio", "euclidean"])
def test_every_answer_is_that_of_the_finding_at_the_level(
    bounds: dict[str, Bounds], which: str
) -> None:
    found = bounds[which]
    asked = asked_of(found)
    assert offered(asked) == LEVELS
    for place, level in enumerate(LEVELS):
        rows = (found if level == found.level else found.at(level)).rows
        for row, (_, n, disparity, answers) in zip(rows, asked["groups"], strict=True):
            lower, upper, verdict, note = answers[place]
            for ours, theirs in (
                (row.disparity, disparity),
                (row.lower, lower),
                (row.upper, upper),
            ):
                assert theirs == (ours and pytest.approx(ours, rel=1e-9, abs=1e-9))
            said = None if verdict is None else asked["verdicts"][verdict]
            assert (n, asked["notes"][note]) == (row.n, row.note)
            assert said == (None if row.verdict is None else str(row.verdict))


def test_choices_name_the_groups(bounds: dict[str, Bounds]) -> None:
    for found in bounds.values():
        asked = ask_of(dataclasses.replace(found, recipe=None, quantiles=()))
        assert asked is not None
        names = [name(asked, choice) for choice, *_ in asked["groups"]]
        assert names == [row.group for row in found.rows]


def test_levels_that_no_name_tells_of_are_named_plainly(bounds: dict[str, Bounds]) -> None:
    rows = tuple(row for row in bounds["depth"].rows if len(row.where) > 1)
    asked = asked_of(dataclasses.replace(bounds["depth"], rows=rows, recipe=None))
    assert [axis["texts"] for axis in asked["axes"]] == [
        ["a, b", "north", "south", "place missing"],
        ["not married", "married"],
        ["children 0", "children 1", "children 2", "children 3"],
    ]


def test_the_finding_may_have_been_stored(bounds: dict[str, Bounds]) -> None:
    stored = from_json(bounds["shared levels"].to_json())
    assert ask_of(stored) == ask_of(bounds["shared levels"])


def test_own_levels_are_offered_among_the_others(bounds: dict[str, Bounds]) -> None:
    asked = asked_of(bounds["large numbers"])
    assert offered(asked) == [0.8, 0.9, 0.925, 0.95, 0.99]
    assert asked["audited"] == 2
    assert [level["text"] for level in asked["levels"]][2] == "92.5 %"
    assert all(level["scope"].startswith(f"With {level['text']}") for level in asked["levels"])


def test_a_level_off_by_rounding_is_not_offered_twice(bounds: dict[str, Bounds]) -> None:
    found = dataclasses.replace(bounds["bootstrap"], level=0.7 + 0.2)
    assert found.level != 0.9
    assert len(offered(asked_of(found))) == len(LEVELS)


def test_what_keeps_too_little_is_offered_at_its_own_level(bounds: dict[str, Bounds]) -> None:
    for which in ("tilts", "plug-in"):
        assert offered(asked_of(bounds[which])) == [0.95]
    assert offered(asked_of(dataclasses.replace(bounds["depth"], recipe=None))) == [0.95]


def test_large_collections_are_offered_at_fewer_levels(
    bounds: dict[str, Bounds], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask, "MANY_GROUPS", len(bounds["bootstrap"]) - 1)
    assert offered(asked_of(bounds["bootstrap"])) == [0.95]
    assert offered(asked_of(bounds["bootstrap ranges"])) == LEVELS


def test_very_large_collections_are_cut_to_what_says_most(
    bounds: dict[str, Bounds], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask, "MOST_GROUPS", 10)
    found = bounds["bootstrap"]
    asked = asked_of(found)
    assert asked["unlisted"] == len(found) - 10
    strict = found.at(0.99)
    for choice, n, _, answers in asked["groups"]:
        row = strict.ask(name(asked, choice))
        assert (n, answers[-1][0]) == (row.n, pytest.approx(row.lower))


def test_a_group_that_is_its_own_target_has_a_note_alone(bounds: dict[str, Bounds]) -> None:
    asked = asked_of(dataclasses.replace(bounds["reference"], recipe=None))
    (own,) = [group for group in asked["groups"] if name(asked, group[0]) == "Caucasian"]
    note = asked["notes"].index(OWN_TARGET)
    assert own[3] == [[None, None, None, note]]


def test_the_page_is_told_what_answers_are_worded_by(bounds: dict[str, Bounds]) -> None:
    assert asked_of(bounds["bootstrap ratio"])["claimed"] == "between 0.80 and 1.25"
    assert asked_of(bounds["bootstrap"])["claimed"] == ""
    assert asked_of(bounds["bootstrap"])["at_once"]
    assert not asked_of(bounds["pointwise"])["at_once"]
    page = eq.report(bounds["pointwise"]).html
    assert "Each bound holds by itself" in page
    assert "Asking costs nothing" not in page


def test_ranges_know_whether_their_ends_belong(bounds: dict[str, Bounds]) -> None:
    (grid,) = asked_of(bounds["bootstrap ranges"])["axes"]
    assert grid["closed"] == [False] * 7 + [True]
    (points,) = asked_of(bounds["thresholds"])["axes"]
    assert set(points["closed"]) == {True}
    assert points["texts"] == points["ends"]


def test_ends_have_a_nearest_one_with_which_there_is_a_range(bounds: dict[str, Bounds]) -> None:
    (points,) = asked_of(bounds["thresholds"])["axes"]
    last = len(points["ends"]) - 1
    assert points["nearest"] == [0] + [last] * last
    whole = bounds["bootstrap ranges"]
    fewer = dataclasses.replace(whole, rows=tuple(row for row in whole.rows if row.n >= 200))
    asked = asked_of(fewer)
    choices = [choice for (choice,), *_ in asked["groups"]]
    (axis,) = asked["axes"]
    assert len(whole) - len(fewer) > 5
    assert all([low, high] in choices for low, high in enumerate(axis["nearest"]))


def test_an_answer_takes_little_room(bounds: dict[str, Bounds]) -> None:
    asked = asked_of(bounds["bootstrap"])
    size = len(json.dumps(asked["groups"], separators=(",", ":")))
    assert size < 50 * (1 + len(LEVELS)) * len(asked["groups"])


def test_only_bounds_are_asked() -> None:
    trail, claim = eq.datasets.compas(), eq.gap("accuracy", across="race")
    assert ask_of(eq.describe(trail, claim)) is None
    assert ask_of(eq.flag(trail, claim, rng=1)) is None
