"""Ask: every group's bounds at a few levels, worked out here; the page only looks them up."""

import contextlib
from collections.abc import Mapping
from typing import Any

from equipoise.errors import OptionError
from equipoise.findings import Finding, Verdict
from equipoise.findings.bounds import BoundedGroup, Bounds
from equipoise.findings.limits import tolerance_words
from equipoise.findings.words import level_text, plural
from equipoise.report.choices import choices_of
from equipoise.report.tables import places_of_strongest
from equipoise.report.text import clipped, tidy

Ask = dict[str, Any]

MOST_GROUPS = 20_000
"""Groups that are embedded; the others are counted."""
LEVELS = (0.80, 0.90, 0.95, 0.99)
"""Levels that are offered beside the finding's own."""
MANY_GROUPS = 2_000
"""Larger collections are offered at fewer levels, since every level is embedded."""
LEVELS_OF_MANY = (0.95,)
"""Levels that are offered for them beside their own."""

_VERDICTS = tuple(map(str, Verdict))


def ask_of(finding: Finding) -> Ask | None:
    """The questions that bounds answer in the page; None for findings of another kind."""
    if not isinstance(finding, Bounds) or not finding.rows or finding.critical is None:
        return None
    places = places_of_strongest(finding.rows, MOST_GROUPS)
    rows = [finding.rows[place] for place in places]
    axes, choices = choices_of(rows, finding.noun)
    levels = _at_levels(finding)
    return {
        **_frame(finding),
        "levels": [
            {"level": one.level, "text": level_text(one.level), "scope": tidy(one.guarantee)}
            for one in levels
        ],
        "audited": [one.level for one in levels].index(finding.level),
        "axes": axes,
        **_groups(levels, places, choices),
        "unlisted": len(finding.rows) - len(rows),
    }


def _frame(finding: Bounds) -> Ask:
    """What every answer is worded by."""
    return {
        "noun": finding.noun,
        "scope": plural(len(finding), finding.noun),
        "against": clipped(tidy(finding.against)),
        "share": finding.share,
        "relative": finding.relative,
        "claimed": _claimed(finding),
        "at_once": finding.method.get("family") != "pointwise",
    }


def _claimed(finding: Bounds) -> str:
    """What the tolerance says of a group, in words."""
    if finding.tolerance is None:
        return ""
    return tolerance_words(finding.tolerance, finding.side, finding.relative, finding.share)


def _at_levels(finding: Bounds) -> list[Bounds]:
    """The finding at every level that is offered, the lowest first."""
    made = [finding]
    for level in LEVELS if len(finding.rows) <= MANY_GROUPS else LEVELS_OF_MANY:
        if level_text(level) != level_text(finding.level):
            # what keeps too little to be read at another level is offered at its own
            with contextlib.suppress(OptionError):
                made.append(finding.at(level))
    return sorted(made, key=lambda one: one.level)


def _groups(levels: list[Bounds], places: list[int], choices: list[list[Any]]) -> Ask:
    """For each group its size, its estimate and, at each level, its bounds, verdict and note."""
    columns = [[one.rows[place] for place in places] for one in levels]
    notes = list(dict.fromkeys(tidy(row.note) for column in columns for row in column))
    number = {note: i for i, note in enumerate(notes)}
    return {
        "notes": notes,
        "verdicts": _VERDICTS,
        "groups": [
            [choice, rows[0].n, _short(rows[0].disparity), [_answer(row, number) for row in rows]]
            for choice, rows in zip(choices, zip(*columns, strict=True), strict=True)
        ],
    }


def _answer(row: BoundedGroup, notes: Mapping[str, int]) -> list[Any]:
    verdict = None if row.verdict is None else _VERDICTS.index(str(row.verdict))
    return [_short(row.lower), _short(row.upper), verdict, notes[tidy(row.note)]]


def _short(value: float | None) -> float | None:
    # Eleven digits take less room, and answers agree with Python's to nine all the same.
    return None if value is None else float(f"{value:.11g}")
