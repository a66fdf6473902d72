"""Groups as choices a reader can make: a level, or the two ends of a range, of each attribute."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.findings.bounds import BoundedGroup
from equipoise.report.ranges import ends_of, overlapping
from equipoise.report.text import clipped, number_text, tidy

Axis = dict[str, Any]
"""One attribute: its name, and in words the levels or ends there are to choose from."""
Choice = list[Any]
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


def _level(name: str, value: Any) -> Level:
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
    name: str, wheres: list[Mapping[str, Any]], runs: bool, said: Mapping[Level, str]
) -> tuple[Axis, list[Any]]:
    shown = clipped(tidy(name))
    if runs and all(ends_of(where.get(name)) is not None for where in wheres):
        return _runs(shown, [where[name] for where in wheres])
    levels = [_level(name, where[name]) if name in where else None for where in wheres]
    known = list(dict.fromkeys(level for level in levels if level is not None))
    place = {level: i for i, level in enumerate(known)}
    texts = [clipped(tidy(said.get(level) or _plainly(*level))) for level in known]
    axis = {"name": shown, "form": "levels", "texts": texts, "free": None in levels}
    return axis, [None if level is None else place[level] for level in levels]


def _runs(name: str, values: list[Mapping[str, Any]]) -> tuple[Axis, list[Any]]:
    pairs = [ends_of(value) or (0.0, 0.0) for value in values]
    lows, highs = (sorted(set(ends)) for ends in zip(*pairs, strict=True))
    closed = {pair[1]: "to" in value for pair, value in zip(pairs, values, strict=True)}
    choices = [[lows.index(low), highs.index(high)] for low, high in pairs]
    axis = {
        "name": name,
        "form": "ranges",
        "texts": [number_text(low) for low in lows],
        "ends": [number_text(high) for high in highs],
        "closed": [closed[high] for high in highs],
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


def _range_text(ends: Mapping[str, Any]) -> str:
    """A range as it reads in the names of groups.

    >>> [_range_text(x) for x in ({"below": 25}, {"from": 25, "to": 40}, {"from": 40})]
    ['under 25', '25 to 40', '40 and over']
    """
    said = {end: number_text(x) if isinstance(x, int | float) else x for end, x in ends.items()}
    if "from" not in said:
        return f"under {said.get('below')}"
    if "to" in said:
        return said["from"] if said["from"] == said["to"] else f"{said['from']} to {said['to']}"
    rest = f"to under {said['below']}" if "below" in said else "and over"
    return f"{said['from']} {rest}"
