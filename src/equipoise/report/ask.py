"""Ask: what the page needs to answer for any group of the collection by itself."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.findings import Finding
from equipoise.findings.atoms import Atoms
from equipoise.findings.bounds import BoundedGroup, Bounds
from equipoise.findings.limits import tolerance_words
from equipoise.findings.words import plural
from equipoise.report.ranges import ends_of, overlapping
from equipoise.report.tables import strongest
from equipoise.report.text import clipped, tidy

Ask = dict[str, Any]

MOST_GROUPS = 20_000
"""Groups that are embedded one by one where they cannot be made from cells."""


def ask_of(finding: Finding) -> Ask | None:
    """The questions that bounds answer in the page; None for findings of another kind."""
    if not isinstance(finding, Bounds) or not finding.rows or finding.critical is None:
        return None
    recipe = finding.recipe or {}
    made = _from_cells(finding.atoms, recipe) if finding.atoms else _from_rows(finding)
    return {**_frame(finding), **_levels(finding, recipe), **made}


def _frame(finding: Bounds) -> Ask:
    """What every answer is measured, limited and worded by."""
    return {
        "noun": finding.noun,
        "scope": plural(len(finding), finding.noun),
        "against": clipped(tidy(finding.against)),
        "guarantee": tidy(finding.guarantee),
        "share": finding.share,
        "relative": finding.relative,
        "side": finding.side,
        "tolerance": finding.tolerance,
        "claimed": _claimed(finding),
        "limits": list(finding.limits),
        "level": finding.level,
        "critical": finding.critical,
    }


def _claimed(finding: Bounds) -> str:
    """What the tolerance says of a group, in words."""
    if finding.tolerance is None:
        return ""
    return tolerance_words(finding.tolerance, finding.side, finding.relative, finding.share)


def _levels(finding: Bounds, recipe: Mapping[str, Any]) -> Ask:
    """What another level is read from: the draws, the family, or nothing."""
    bootstrap = finding.method.get("kind") == "bootstrap"
    # A new critical value makes new bounds only where the page can make bounds at all: from counts,
    # or as estimate ± critical value × reach.
    free = bool(finding.draws) and (_is_band(recipe) or bootstrap)
    family = recipe.get("family") if _is_band(recipe) and not free else None
    return {
        "levelled": free or family is not None,
        # Thirteen digits take less room, and answers agree with Python's to nine all the same.
        "draws": [float(f"{x:.13g}") for x in sorted(finding.statistics())] if free else None,
        "family": family,
        "groupsAudited": recipe.get("groups", len(finding)),
    }


def _is_band(recipe: Mapping[str, Any]) -> bool:
    return recipe.get("kind") == "band"


def _shape(recipe: Mapping[str, Any]) -> Ask:
    """What a group's counts are compared with."""
    return {name: recipe[name] for name in ("against", "scale", "value", "calibrated", "relative")}


def _from_cells(atoms: Atoms, recipe: Mapping[str, Any]) -> Ask:
    """Attributes and counts, from which the page makes every group by itself."""
    return {
        "depth": atoms.depth,
        "axes": [
            {
                "name": clipped(tidy(axis.name)),
                "form": axis.form,
                "texts": [clipped(tidy(text)) for text in axis.texts],
                "ends": list(axis.ends),
                "closed": list(axis.closed),
            }
            for axis in atoms.axes
        ],
        "cells": {
            "codes": atoms.codes,
            "rows": atoms.rows,
            "ones": atoms.ones,
            "inside": atoms.inside or None,
            **_shape(recipe),
        },
        "groups": None,
        "unlisted": 0,
    }


def _from_rows(finding: Bounds) -> Ask:
    """Attributes found in the rows, and the rows themselves with what they are made from."""
    rows: Sequence[BoundedGroup] = strongest(finding.rows, MOST_GROUPS)
    axes, choices = _axes_of(rows) or _labels_of(rows, finding.noun)
    recipe = finding.recipe or {}
    parts = _parts_of(finding.rows, recipe) if _is_band(recipe) else {}
    return {
        "depth": len(axes),
        "axes": axes,
        "cells": None,
        "shape": _shape(recipe) if parts else None,
        "groups": [
            [
                choice,
                *(row.n, row.value, row.target, row.disparity, row.lower, row.upper, row.reach),
                None if row.verdict is None else str(row.verdict),
                tidy(row.note),
                parts.get(id(row)),
            ]
            for choice, row in zip(choices, rows, strict=True)
        ],
        "unlisted": len(finding.rows) - len(rows),
    }


def _parts_of(rows: Sequence[BoundedGroup], recipe: Mapping[str, Any]) -> dict[int, Any]:
    """Rows and ones of each group's parts, by the row itself: labels need not be unique."""
    columns = zip(zip(*recipe["rows"], strict=True), zip(*recipe["ones"], strict=True), strict=True)
    return {id(row): two for row, two in zip(rows, columns, strict=True)}


def _axes_of(rows: Sequence[BoundedGroup]) -> tuple[list[Ask], list[list[Any]]] | None:
    """A choice for each attribute; None if that does not tell the groups apart."""
    names = list(dict.fromkeys(name for row in rows for name in row.where))
    runs = overlapping(row.where for row in rows)
    made = [_axis(name, [row.where for row in rows], name in runs) for name in names]
    axes, places = [axis for axis, _ in made], [column for _, column in made]
    choices = [list(choice) for choice in zip(*places, strict=True)] if made else []
    unlike = len({json.dumps(choice) for choice in choices})
    return (axes, choices) if names and unlike == len(rows) else None


def _axis(name: str, wheres: list[Mapping[str, Any]], runs: bool) -> tuple[Ask, list[Any]]:
    shown = clipped(tidy(name))
    if runs and all(ends_of(where.get(name)) is not None for where in wheres):
        return _runs(shown, [where[name] for where in wheres])
    # As text, since to Python the levels 1 and true are one.
    values = [json.dumps(where[name], default=str) if name in where else None for where in wheres]
    known = {value: i for i, value in enumerate(dict.fromkeys(v for v in values if v is not None))}
    axis = {"name": shown, "form": "levels", "texts": [_said(name, json.loads(v)) for v in known]}
    return axis, [None if value is None else known[value] for value in values]


def _runs(name: str, values: list[Mapping[str, Any]]) -> tuple[Ask, list[Any]]:
    pairs = [ends_of(value) or (0.0, 0.0) for value in values]
    lows, highs = sorted({low for low, _ in pairs}), sorted({high for _, high in pairs})
    closed = {pair[1]: "to" in value for pair, value in zip(pairs, values, strict=True)}
    axis = {
        "name": name,
        "form": "ranges",
        "texts": [f"{low:.10g}" for low in lows],
        "ends": [f"{high:.10g}" for high in highs],
        "closed": [closed[high] for high in highs],
    }
    return axis, [[lows.index(low), highs.index(high)] for low, high in pairs]


def _labels_of(rows: Sequence[BoundedGroup], noun: str) -> tuple[list[Ask], list[list[Any]]]:
    texts = [clipped(tidy(row.group)) for row in rows]
    return [{"name": noun, "form": "bins", "texts": texts}], [[i] for i in range(len(rows))]


def _said(name: str, value: Any) -> str:
    """A level in words."""
    if value is None:
        return clipped(tidy(f"{name} missing"))
    if isinstance(value, bool):
        return clipped(tidy(name if value else f"not {name}"))
    if isinstance(value, Mapping):
        return clipped(tidy(f"{name} " + ", ".join(f"{k} {v}" for k, v in value.items())))
    return clipped(tidy(value if isinstance(value, str) else f"{name} {value}"))
