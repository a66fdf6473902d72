"""Lattice: groups by how many attributes they combine, flagged ones filled in."""

from collections.abc import Callable, Sequence
from typing import Any

from equipoise.findings.charts.style import ALERT, INK, data, something, styled

_BOX_WIDTH, _BOX_HEIGHT, _BETWEEN, _GAP = 190, 38, 12, 60
#: Boxes side by side; a printed page is no wider.
_ACROSS = 4
#: Boxes that fit into a picture; the table has the others.
_MOST = 60


def lattice(rows: Sequence[Any], *, said: Callable[[float], str], title: str, subtitle: str) -> Any:
    """Boxes joined from each group to the groups that refine it by one more attribute.

    ``said`` puts a disparity into words.
    """
    import altair as alt

    chosen = _relevant(something(rows))[:_MOST]
    boxes = _place(chosen, said)
    lines = _links(chosen, boxes)
    width = max(box["right"] for box in boxes) + _BETWEEN / 2
    height = max(box["bottom"] for box in boxes) + _BOX_HEIGHT / 2
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, width]))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[height, 0]))
    links = alt.Chart(data(lines)).mark_rule(color="#c4c4c4").encode(x=x, y=y, x2="x2:Q", y2="y2:Q")
    base = alt.Chart(data(boxes)).encode(tooltip=["group:N", "n:Q", "text:N"])
    fill = alt.condition("datum.flagged", alt.value(ALERT), alt.value("#f4f4f4"))
    rects = base.mark_rect(stroke="#8a8a8a", cornerRadius=3).encode(
        x=alt.X("left:Q", axis=None),
        x2="right:Q",
        y=alt.Y("top:Q", axis=None),
        y2="bottom:Q",
        color=fill,
    )
    ink = alt.condition("datum.flagged", alt.value("white"), alt.value(INK))
    names = base.mark_text(fontSize=10, dy=-6, limit=_BOX_WIDTH - 20).encode(
        x=x, y=y, text="group:N", color=ink
    )
    values = base.mark_text(fontSize=10, dy=8).encode(x=x, y=y, text="text:N", color=ink)
    chart = (links + rects + names + values).properties(width=width, height=height)
    return styled(chart, title, subtitle)


def _relevant(rows: Sequence[Any]) -> list[Any]:
    """All groups if there are few; otherwise the flagged ones and the groups they refine."""
    # More boxes than this cannot be read. Broader groups stay with the flagged ones that refine
    # them, since they tell whether a flag is news or follows from them.
    if len(rows) <= 30:
        return list(rows)
    flagged = [row for row in rows if row.flagged]
    kept = [row for row in rows if row.flagged or any(_refines(f, row) for f in flagged)]
    return kept or [row for row in rows if len(row.where) == 1]


def _refines(fine: Any, broad: Any) -> bool:
    return broad.where.items() <= fine.where.items() and len(broad.where) < len(fine.where)


def _place(rows: Sequence[Any], said: Callable[[float], str]) -> list[dict[str, Any]]:
    layers: dict[int, list[Any]] = {}
    for row in rows:
        layers.setdefault(len(row.where), []).append(row)
    across = min(_ACROSS, max(2, *map(len, layers.values())))
    boxes, y = [], float(_BOX_HEIGHT)
    for _, layer in sorted(layers.items()):
        for start in range(0, len(layer), across):
            line = layer[start : start + across]
            step = across * (_BOX_WIDTH + _BETWEEN) / len(line)
            for i, row in enumerate(line):
                shown = "" if row.disparity is None else f"{said(row.disparity)}, n = {row.n:,}"
                boxes.append(_box(row, shown, (i + 0.5) * step, y))
            y += _BOX_HEIGHT + _BETWEEN
        y += _GAP - _BETWEEN
    return boxes


def _box(row: Any, text: str, x: float, y: float) -> dict[str, Any]:
    return {
        "group": row.group,
        "n": row.n,
        "text": text,
        "flagged": row.flagged,
        "x": x,
        "y": y,
        "left": x - _BOX_WIDTH / 2,
        "right": x + _BOX_WIDTH / 2,
        "top": y - _BOX_HEIGHT / 2,
        "bottom": y + _BOX_HEIGHT / 2,
    }


def _links(rows: Sequence[Any], boxes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    at = {box["group"]: box for box in boxes}
    return [
        {
            "x": at[broad.group]["x"],
            "y": at[broad.group]["bottom"],
            "x2": at[fine.group]["x"],
            "y2": at[fine.group]["top"],
        }
        for broad in rows
        for fine in rows
        if _refines(fine, broad) and len(fine.where) == len(broad.where) + 1
    ]
