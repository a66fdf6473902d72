"""Rows as a table: aligned text for terminals, HTML for notebooks."""

from collections.abc import Sequence
from html import escape
from typing import Any

MISSING = "–"
#: Characters of a name that fit beside the numbers of a row.
_WIDEST = 48


def text_table(rows: Sequence[Any], columns: Sequence[str]) -> str:
    """Aligned plain text in which long names are cut."""
    heads = [column.replace("_", " ") for column in columns]
    body = [[_cut(cell_text(getattr(row, column))) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in [heads, *body]) for i in range(len(columns))]
    numeric = [_is_numeric(rows, column) for column in columns]
    return "\n".join(_line(line, widths, numeric) for line in [heads, *body])


def html_table(rows: Sequence[Any], columns: Sequence[str]) -> str:
    """An HTML table with every value escaped."""
    head = "".join(f'<th scope="col">{escape(c.replace("_", " "))}</th>' for c in columns)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{escape(cell_text(getattr(row, c)))}</td>" for c in columns)
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def cell_text(value: Any) -> str:
    """One value of a table.

    >>> cell_text(0.123456), cell_text(None), cell_text(1234), cell_text(True)
    ('0.123', '–', '1,234', 'yes')
    """
    if value is None or value == "":
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        # Anything smaller would read as 0.000, which it is not.
        return f"{value:,.3f}" if 0.0005 <= abs(value) < 1e5 or value == 0 else f"{value:.3g}"
    return str(value)


def _line(cells: list[str], widths: list[int], numeric: list[bool]) -> str:
    pairs = zip(cells, widths, numeric, strict=True)
    return "  ".join(c.rjust(w) if right else c.ljust(w) for c, w, right in pairs).rstrip()


def _is_numeric(rows: Sequence[Any], column: str) -> bool:
    values = [getattr(row, column) for row in rows if getattr(row, column) is not None]
    return bool(values) and all(isinstance(value, int | float) for value in values)


def _cut(text: str) -> str:
    # Line breaks in a group's name must not break the table.
    flat = " ".join(text.split())
    return flat if len(flat) <= _WIDEST else flat[: _WIDEST - 1] + "…"
