"""Rows of a finding as the tables of the page.

Ask: every group's bounds at a few levels, worked out here; the page only looks them up.
"""

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeVar

from equipoise._validate import number_text
from equipoise.errors import OptionError
from equipoise.findings import Finding
from equipoise.findings.adjusted import is_paired
from equipoise.findings.bounds import BoundedGroup, Bounds
from equipoise.findings.joint_test import Joint
from equipoise.findings.words import (
    LONG,
    Verdict,
    clipped,
    head_text,
    level_text,
    plural,
    telling_order,
    tidy,
    tolerance_words,
    unit_of,
    unit_text,
)
from equipoise.report.differences import ends_of, overlapping

T = TypeVar("T")


def tidied(value: object) -> object:
    """The same plain data with every text tidied and clipped, keys left alone."""
    if isinstance(value, str):
        return clipped(tidy(value), 4 * LONG if " " in value else LONG)
    if isinstance(value, list | tuple):
        return [tidied(item) for item in value]
    if isinstance(value, dict):
        return {key: tidied(item) for key, item in value.items()}
    return value


# --- Rows of a finding as the tables of the page ---

MOST_ROWS = 2000
"""Rows of one table that are embedded; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One value of a table."""

    text: str
    """What is shown."""
    order: str = ""
    """What rows are sorted by, where that is not the text."""
    whole: str = ""
    """All of a text that is shown in part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table, with what was left out of it."""

    caption: str
    """What it lists."""
    heads: tuple[tuple[str, bool], ...]
    """Columns, and whether each holds numbers."""
    rows: tuple[tuple[Cell, ...], ...]
    """The rows shown."""
    total: int
    """Rows there are."""


def tables_of(finding: Finding) -> tuple[Table, ...]:
    """The rows of a finding and, where it lists groups beside them, those."""
    made = [_table(f"{finding.noun}s".capitalize(), worst_first(finding), finding.columns, finding)]
    beside, columns = getattr(finding, "groups", None), getattr(finding, "group_columns", None)
    if beside and columns:
        made = [
            _table("Measures", finding.rows, finding.columns, finding),
            _table("Groups", beside, columns, finding),
        ]
    without = getattr(finding, "adjusted", ())
    if without:
        columns = (
            "group", "n", "unadjusted", "explained", "strata", "shared", "apart", "same",
            "compared", "smallest", "hidden",
        )  # fmt: skip
        made.append(_table(f"Without {finding.given}", without, columns, finding))
    changed = getattr(finding, "changed", ())
    if changed:
        columns = ("group", "n", "before", "after", "change", "verdict", "flagged")
        paired = is_paired(finding.claim)
        caption = "Partners (before) and groups (after)" if paired else "Before and after"
        made.append(_table(caption, _with_verdicts(finding), columns, finding))
    unsure = getattr(finding, "unknown", ())
    if any(getattr(one, "unknown", 0) for one in unsure):
        columns = (
            "group", "n", "unknown", "lowest", "highest", "lower", "upper", "tipping",
            "regressed", "calibration",
        )  # fmt: skip
        made.append(_table("Unknown people", unsure, columns, finding))
    if labels := getattr(finding, "labels", ()):
        columns = ("group", "n", "gold", "worth", "followed")
        made.append(_table("True and cheap labels", labels, columns, finding))
    if tried := getattr(finding, "tried", ()):
        columns = ("rule", "loss", "worst", "verdict", "chosen")
        made.append(_table("Rules that were tried", tried, columns, finding))
    return tuple(table for table in made if table.total)


def _with_verdicts(finding: Finding) -> list[object]:
    """Both rates of every group, with what is shown about it."""
    shown = {(row.group, str(row.where)): row for row in finding.rows}
    listed: list[object] = []
    for row in getattr(finding, "changed", ()):
        other = shown.get((row.group, str(row.where)))
        said = {name: getattr(other, name, None) for name in ("verdict", "flagged")}
        told = {name: getattr(row, name) for name in ("group", "n", "before", "after", "change")}
        listed.append(SimpleNamespace(**told, **said))
    return listed


def worst_first(finding: Finding) -> Sequence[object]:
    """The rows, those that violate a limit first, then by how telling they are."""
    rows: Sequence[object] = finding.rows
    if isinstance(finding, Joint):
        return finding.by_evidence()
    if finding.kind not in ("bounds", "flags", "description", "certificates"):
        return rows
    relative = bool(getattr(finding, "relative", False))
    return sorted(rows, key=lambda row: telling_order(row, relative))


def _table(caption: str, rows: Sequence[object], columns: Sequence[str], finding: Finding) -> Table:
    shown = strongest(rows, MOST_ROWS)
    used = [c for c in columns if any(getattr(row, c, None) not in (None, "") for row in shown)]
    numeric = {column: _is_numeric(shown, column) for column in used}
    units = {column: unit_of(finding, column) for column in used}
    return Table(
        caption=caption,
        heads=tuple((head_text(column, units[column]), numeric[column]) for column in used),
        rows=tuple(
            tuple(_cell(column, getattr(row, column), units[column]) for column in used)
            for row in shown
        ),
        total=len(rows),
    )


def strongest(rows: Sequence[T], most: int) -> list[T]:
    """The rows that say most, in their own order: by p-value, by bound, or by size."""
    return [rows[place] for place in places_of_strongest(rows, most)]


def places_of_strongest(rows: Sequence[object], most: int) -> list[int]:
    """Where the rows that say most stand, in order."""
    if len(rows) <= most:
        return list(range(len(rows)))
    ranked = sorted(range(len(rows)), key=lambda i: _weakness(rows[i]))
    return sorted(ranked[:most])


def _weakness(row: object) -> tuple[float, float]:
    size = -float(getattr(row, "n", 0) or 0)
    p = getattr(row, "p", None)
    if p is not None:
        return float(p), size
    # By whichever bound lies further from nothing: high lower bounds, low upper ones.
    ends = (getattr(row, "lower", None), getattr(row, "upper", None))
    known = [x for x in (ends[0], None if ends[1] is None else -ends[1]) if x is not None]
    return (-max(known), size) if known else (float("inf"), size)


def _cell(column: str, value: object, unit: str) -> Cell:
    if column == "verdict":
        value = _READINGS.get(str(value), value)
    text = tidy(unit_text(value, unit))
    short = clipped(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Cell(text=short, whole=text if len(text) > LONG else "")
    return Cell(text=text, order=repr(value))


# a sign beside the word, since colour alone must not tell verdicts apart
_READINGS = {
    str(Verdict.KEPT): "✓ kept",
    str(Verdict.EXCEEDED): "✕ exceeded",
    str(Verdict.UNDETERMINED): "? undetermined",
}


def _is_numeric(rows: Sequence[object], column: str) -> bool:
    values = [getattr(row, column) for row in rows if getattr(row, column) is not None]
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    return bool(values) and numbers


# --- Groups as choices a reader can make: a level, or the two ends of a range, of each attribute

Axis = dict[str, Any]
"""One attribute: its name, and in words the levels or ends there are to choose from."""
Choice = list[object]
"""For each attribute the place of a level, those of both ends of a range, or None for any."""
Level = tuple[str, str]
"""An attribute and one of its values, as text: to Python the levels 1 and true are one."""


def choices_of(rows: Sequence[BoundedGroup], noun: str) -> tuple[list[Axis], list[Choice]]:
    """The attributes that groups are chosen by, and the choice that each group is."""
    return _by_attributes(rows) or _by_label(rows, noun)


def _by_attributes(rows: Sequence[BoundedGroup]) -> tuple[list[Axis], list[Choice]] | None:
    """A choice for each attribute; None if that does not tell the groups apart."""
    names = _names_of(rows)
    runs, said = overlapping(row.where for row in rows), _texts_of(rows)
    made = [_axis(name, [row.where for row in rows], name in runs, said) for name in names]
    axes, places = [axis for axis, _ in made], [column for _, column in made]
    choices = [list(choice) for choice in zip(*places, strict=True)] if made else []
    unlike = len({json.dumps(choice) for choice in choices})
    return (axes, choices) if names and unlike == len(rows) else None


def _names_of(rows: Sequence[BoundedGroup]) -> list[str]:
    """The attributes, in the order in which they stand in the names of groups."""
    last: dict[str, int] = {}
    for row in rows:
        for place, name in enumerate(row.where):
            last[name] = max(last.get(name, 0), place)
    return sorted(last, key=last.__getitem__)


def _level(name: str, value: object) -> Level:
    return name, json.dumps(value, default=str)


def _texts_of(rows: Sequence[BoundedGroup]) -> dict[Level, str]:
    """Levels as they read in the names of groups, where these tell."""
    named = [[_level(name, value) for name, value in row.where.items()] for row in rows]
    ranges = {level for levels in named for level in levels if level[1].startswith("{")}
    said = {level: _plainly(*level) for level in ranges}
    for levels, row in sorted(zip(named, rows, strict=True), key=lambda pair: len(pair[0])):
        new = [level for level in levels if level not in said]
        if len(new) == 1:
            # with all levels but one known, that one is the rest of the name
            place = levels.index(new[0])
            before = "".join(f"{said[level]}, " for level in levels[:place])
            after = "".join(f", {said[level]}" for level in levels[place + 1 :])
            if row.group.startswith(before) and row.group.endswith(after):
                said[new[0]] = row.group[len(before) : len(row.group) - len(after)]
    return said


def _axis(
    name: str, wheres: list[Mapping[str, object]], runs: bool, said: Mapping[Level, str]
) -> tuple[Axis, Sequence[object]]:
    shown = clipped(tidy(name))
    if runs and all(ends_of(where.get(name)) is not None for where in wheres):
        return _runs(shown, [where[name] for where in wheres])
    levels = [_level(name, where[name]) if name in where else None for where in wheres]
    known = list(dict.fromkeys(level for level in levels if level is not None))
    place = {level: i for i, level in enumerate(known)}
    texts = [clipped(tidy(said.get(level) or _plainly(*level))) for level in known]
    axis = {"name": shown, "form": "levels", "texts": texts, "free": None in levels}
    return axis, [None if level is None else place[level] for level in levels]


def _runs(name: str, values: list[object]) -> tuple[Axis, Sequence[object]]:
    pairs = [ends_of(value) or (0.0, 0.0) for value in values]
    lows, highs = (sorted(set(ends)) for ends in zip(*pairs, strict=True))
    ends = {high: v for (_, high), v in zip(pairs, values, strict=True) if isinstance(v, Mapping)}
    choices = [[lows.index(low), highs.index(high)] for low, high in pairs]
    axis: Axis = {
        "name": name,
        "form": "ranges",
        "texts": [number_text(low) for low in lows],
        "ends": [number_text(high) for high in highs],
        "closed": ["to" in ends[high] for high in highs],
        # with some ranges suppressed, ends need not come in pairs
        "nearest": [min(j for i, j in choices if i == place) for place in range(len(lows))],
    }
    return axis, choices


def _by_label(rows: Sequence[BoundedGroup], noun: str) -> tuple[list[Axis], list[Choice]]:
    texts = [clipped(tidy(row.group)) for row in rows]
    axis = {"name": noun, "form": "levels", "texts": texts, "free": False}
    return [axis], [[i] for i in range(len(rows))]


def _plainly(name: str, value: str) -> str:
    """A level of which no group's name tells how it reads."""
    level = json.loads(value)
    if level is None:
        return f"{name} missing"
    if isinstance(level, bool):
        return name if level else f"not {name}"
    if isinstance(level, Mapping):
        return f"{name} {_range_text(level)}"
    return level if isinstance(level, str) else f"{name} {level}"


def _range_text(ends: Mapping[str, object]) -> str:
    """A range as it reads in the names of groups.

    >>> [_range_text(x) for x in ({"below": 25}, {"from": 25, "to": 40}, {"from": 40})]
    ['under 25', '25 to 40', '40 and over']
    """
    said = {
        end: number_text(x) if isinstance(x, float | int) else f"{x}" for end, x in ends.items()
    }
    if "from" not in said:
        return f"under {said.get('below')}"
    if "to" in said:
        return said["from"] if said["from"] == said["to"] else f"{said['from']} to {said['to']}"
    rest = f"to under {said['below']}" if "below" in said else "and over"
    return f"{said['from']} {rest}"


# --- Ask: every group's bounds at a few levels, worked out here; the page only looks them up ---

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


def _groups(levels: list[Bounds], places: list[int], choices: list[Choice]) -> Ask:
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


def _answer(row: BoundedGroup, notes: Mapping[str, int]) -> list[float | None]:
    verdict = None if row.verdict is None else _VERDICTS.index(str(row.verdict))
    return [_short(row.lower), _short(row.upper), verdict, notes[tidy(row.note)]]


def _short(value: float | None) -> float | None:
    # Eleven digits take less room, and answers agree with Python's to nine all the same.
    return None if value is None else float(f"{value:.11g}")
