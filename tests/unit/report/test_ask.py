"""What is handed to the page for Ask, and the atoms it is made from."""

import dataclasses
from typing import Any

import pytest

import equipoise as eq
from equipoise.findings import BoundedGroup, Bounds, from_json
from equipoise.findings.atoms import Atoms
from equipoise.report.ask import ask_of
from tests.browser.audits import many_bounds


@pytest.fixture(scope="module")
def bounds() -> dict[str, Bounds]:
    return many_bounds()


def members(atoms: Atoms, row: BoundedGroup) -> list[bool]:
    """Which atoms belong to a group, by its attributes alone."""
    inside = [True] * len(atoms.rows)
    for axis, codes in zip(atoms.axes, atoms.codes, strict=True):
        if axis.name in row.where:
            fits = [_fits(axis, code, row.where[axis.name]) for code in codes]
            inside = [a and b for a, b in zip(inside, fits, strict=True)]
    return inside


def _fits(axis: Any, code: int, wanted: Any) -> bool:
    if code >= len(axis.values):
        return False
    if axis.form in ("levels", "bins"):
        return bool(axis.values[code] == wanted)
    low, high = axis.values[code]
    return bool(wanted["from"] <= low and high <= wanted.get("to", wanted.get("below")))


def test_atoms_give_every_group_of_every_collection(bounds: dict[str, Bounds]) -> None:
    seen = 0
    for name, found in bounds.items():
        if found.atoms is None:
            continue
        for row in found.rows:
            inside = members(found.atoms, row)
            rows, ones = (
                sum(x for x, take in zip(column, inside, strict=True) if take)
                for column in (found.atoms.rows, found.atoms.ones)
            )
            assert rows == row.n, (name, row.group)
            assert (ones / rows if rows else None) == pytest.approx(row.value), (name, row.group)
            seen += 1
    assert seen > 2000


def test_which_findings_have_atoms(bounds: dict[str, Bounds]) -> None:
    without = {name for name, found in bounds.items() if found.atoms is None}
    assert without == {"masks", "bootstrap", "bootstrap ranges", "bootstrap ratio", "euclidean"}


def test_findings_with_atoms_survive_json(bounds: dict[str, Bounds]) -> None:
    for found in bounds.values():
        assert from_json(found.to_json()) == found


def test_findings_stored_without_atoms_can_be_read(bounds: dict[str, Bounds]) -> None:
    data = bounds["overall"].to_dict()
    del data["atoms"]
    found = eq.findings.from_dict(data)
    assert isinstance(found, Bounds)
    assert found.atoms is None
    asked = ask_of(found)
    assert asked is not None
    assert len(asked["groups"]) == len(found)


def test_the_page_is_told_what_answers_are_judged_by(bounds: dict[str, Bounds]) -> None:
    asked = {name: ask_of(bounds[name]) or {} for name in ("overall", "scaled", "bootstrap ratio")}
    told = [[one["tolerance"], one["side"], one["relative"]] for one in asked.values()]
    assert told == [[0.1, "both", False], [0.0, "lower", False], [0.8, "both", True]]
    assert asked["overall"]["claimed"] == "between -10.0 points and +10.0 points"
    assert (ask_of(bounds["complement"]) or {})["tolerance"] is None


def test_ranges_without_cells_know_whether_their_ends_belong(bounds: dict[str, Bounds]) -> None:
    grid = ask_of(bounds["bootstrap ranges"]) or {}
    assert set(grid["axes"][0]["closed"][:-1]) == {False}
    points = dataclasses.replace(bounds["intervals"], atoms=None, recipe=None)
    assert set((ask_of(points) or {})["axes"][0]["closed"]) == {True}


def test_only_bounds_are_asked() -> None:
    trail, claim = eq.datasets.compas(), eq.gap("accuracy", across="race")
    assert ask_of(eq.describe(trail, claim)) is None
    assert ask_of(eq.flag(trail, claim, rng=1)) is None


def test_the_level_is_free_only_where_a_distribution_is_kept(bounds: dict[str, Bounds]) -> None:
    fixed = {name for name, found in bounds.items() if not (ask_of(found) or {})["levelled"]}
    assert fixed == {"euclidean"}
