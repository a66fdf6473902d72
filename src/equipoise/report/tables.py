"""Rows of a finding as the tables of the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.findings import Finding
from equipoise.findings.tables import cell_text
from equipoise.findings.verdict import Verdict
from equipoise.report.text import LONG, clipped, tidy

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
    made = [_table(f"{finding.noun}s".capitalize(), finding.rows, finding.columns)]
    beside, columns = getattr(finding, "groups", None), getattr(finding, "group_columns", None)
    if beside and columns:
        made = [
            _table("Measures", finding.rows, finding.columns),
            _table("Groups", beside, columns),
        ]
    return tuple(table for table in made if table.total)


def _table(caption: str, rows: Sequence[Any], columns: Sequence[str]) -> Table:
    shown = strongest(rows, MOST_ROWS)
    used = [c for c in columns if any(getattr(row, c, None) not in (None, "") for row in shown)]
    numeric = {column: _is_numeric(shown, column) for column in used}
    return Table(
        caption=caption,
        heads=tuple((column.replace("_", " "), numeric[column]) for column in used),
        rows=tuple(tuple(_cell(column, getattr(row, column)) for column in used) for row in shown),
        total=len(rows),
    )


def strongest(rows: Sequence[Any], most: int) -> Sequence[Any]:
    """The rows that say most, in their own order: by p-value, by bound, or by size."""
    return [rows[place] for place in places_of_strongest(rows, most)]


def places_of_strongest(rows: Sequence[Any], most: int) -> list[int]:
    """Where the rows that say most stand, in order."""
    if len(rows) <= most:
        return list(range(len(rows)))
    ranked = sorted(range(len(rows)), key=lambda i: _weakness(rows[i]))
    return sorted(ranked[:most])


def _weakness(row: Any) -> tuple[float, float]:
    size = -float(getattr(row, "n", 0) or 0)
    p = getattr(row, "p", None)
    if p is not None:
        return float(p), size
    # By whichever bound lies further from nothing: high lower bounds, low upper ones.
    ends = (getattr(row, "lower", None), getattr(row, "upper", None))
    known = [x for x in (ends[0], None if ends[1] is None else -ends[1]) if x is not None]
    return (-max(known), size) if known else (float("inf"), size)


def _cell(column: str, value: Any) -> Cell:
    if column == "verdict":
        value = _READINGS.get(str(value), value)
    text = tidy(cell_text(value))
    short = clipped(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Cell(text=short, whole=text if len(text) > LONG else "")
    return Cell(text=text, order=repr(value))


# a sign beside the word, since colour alone must not tell verdicts apart
_READINGS = {
    str(Verdict.SHOWN): "✓ shown",
    str(Verdict.SHOWN_NOT): "✕ shown not",
    str(Verdict.UNDETERMINED): "? undetermined",
}


def _is_numeric(rows: Sequence[Any], column: str) -> bool:
    values = [getattr(row, column) for row in rows if getattr(row, column) is not None]
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    return bool(values) and numbers
