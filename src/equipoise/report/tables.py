"""Rows of a finding as the tables of the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TypeVar

from equipoise.findings import Finding
from equipoise.findings.adjusted import is_paired
from equipoise.findings.finding import unit_of, unit_text
from equipoise.findings.words import LONG, Verdict, clipped, head_text, telling_order, tidy

T = TypeVar("T")


def number_text(value: float) -> str:
    """A number as it reads in the name of a group: commas from ten thousand up.

    >>> number_text(25.0), number_text(0.125), number_text(25000)
    ('25', '0.125', '25,000')
    """
    return f"{value:,.10g}" if 10_000 <= abs(value) < 1e10 else f"{value:.10g}"


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
