"""Charts of groups: forest plots, the lattice of flags, width against rows."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from equipoise.findings.charts.style import (
    ALERT,
    CALM,
    INK,
    ROW,
    UNSURE,
    WIDTH,
    Record,
    data,
    rules,
    something,
    styled,
)
from equipoise.findings.words import Verdict

if TYPE_CHECKING:
    import altair as alt
    from altair.typing import ChartType

    from equipoise.findings.flags import FlaggedGroup

# --- Forest plot: one line per group, its estimate and its interval ---

ABOVE, BELOW, NEITHER = "above the dashed line", "below the dashed line", "not told apart"
_COLOURS = {
    str(Verdict.KEPT): CALM,
    str(Verdict.EXCEEDED): ALERT,
    str(Verdict.UNDETERMINED): UNSURE,
    ABOVE: ALERT,
    BELOW: CALM,
    NEITHER: UNSURE,
}
# what colour says, shape says too
_SHAPES = {ALERT: "diamond", CALM: "circle", UNSURE: "square"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a forest plot."""

    group: str
    n: int
    centre: float
    lower: float | None
    """Lower end of the interval; None if it has none, and is drawn as far as anything is."""
    upper: float | None
    """Upper end of the same."""
    colour: str
    """What the interval shows: a verdict, or what `reading` says."""
    open: tuple[float, float] | None = None
    """What unknown people alone leave open, drawn wide inside the interval."""


def forest(
    lines: Sequence[Line],
    *,
    title: str,
    subtitle: str,
    axis: str,
    reference: Sequence[float],
    most: int = 40,
    loud: Collection[str] = (),
) -> "ChartType":
    """Groups down the page, intervals across, dashed rules at the values to compare with.

    Of more than ``most`` groups those that exceed a limit, or are ``loud``, and the furthest from
    the middle of the rules are drawn.
    """
    import altair as alt

    shown = _furthest(something(lines), reference, most, loud)
    records = [
        {
            "group": f"{line.group} (n = {line.n:,})",
            **interval,
            **_open(line),
            "reading": line.colour,
        }
        for line, interval in zip(shown, _intervals(shown, lines), strict=True)
    ]
    kinds = [kind for kind in _COLOURS if any(r["reading"] == kind for r in records)]
    colours = [_COLOURS[kind] for kind in kinds]
    base = alt.Chart(data(records)).encode(
        y=alt.Y("group:N", sort=None, title=None),
        color=alt.Color("reading:N", scale=alt.Scale(domain=kinds, range=colours)),
        tooltip=["group:N", "estimate:Q", "lower:Q", "upper:Q", "reading:N"],
    )
    shapes = alt.Scale(domain=kinds, range=[_SHAPES[colour] for colour in colours])
    chart = _layers(base, alt.Shape("reading:N", scale=shapes), 45, axis, reference)
    if any(line.open is not None for line in shown):
        wide = base.transform_filter("isValid(datum.lowest)").mark_rule(strokeWidth=8, opacity=0.35)
        chart = alt.layer(wide.encode(x="lowest:Q", x2="highest:Q"), chart)
    sized = chart.properties(width=WIDTH, height=ROW * len(records))
    return styled(sized, title, subtitle + _cut(len(lines), len(shown)))


def forest_pair(
    series: Mapping[str, Sequence[Line]],
    *,
    title: str,
    subtitle: str,
    axis: str,
    reference: Sequence[float],
    most: int = 40,
) -> "ChartType":
    """Two sets of intervals on one axis, told apart by colour, shape and height in the line."""
    import altair as alt

    names = list(series)
    order = [line.group for line in _furthest(something(series[names[0]]), reference, most)]
    records = [
        {"group": line.group, "n": line.n, **interval, "method": name}
        for name, lines in series.items()
        for line, interval in zip(lines, _intervals(lines, lines), strict=True)
        if line.group in set(order)
    ]
    base = alt.Chart(data(records)).encode(
        y=alt.Y("group:N", sort=order, title=None),
        yOffset=alt.YOffset("method:N", sort=names),
        color=alt.Color("method:N", scale=alt.Scale(domain=names, range=[CALM, ALERT])),
        tooltip=["group:N", "n:Q", "method:N", "estimate:Q", "lower:Q", "upper:Q"],
    )
    shapes = alt.Scale(domain=names, range=["circle", "diamond"])
    chart = _layers(base, alt.Shape("method:N", scale=shapes), 35, axis, reference)
    sized = chart.properties(width=WIDTH, height=2 * ROW * len(order))
    return styled(sized, title, subtitle + _cut(len(series[names[0]]), len(order)))


def reading(lower: float | None, upper: float | None, even: float) -> str:
    """What an interval says about the value that everybody would have if all were alike."""
    if lower is not None and lower > even:
        return ABOVE
    if upper is not None and upper < even:
        return BELOW
    return NEITHER


def _furthest(
    lines: Sequence[Line], reference: Sequence[float], most: int, loud: Collection[str] = ()
) -> list[Line]:
    """What exceeds its limit and what lies furthest out, from the highest down."""
    middle = sum(reference) / len(reference) if reference else 0.0

    def order(line: Line) -> tuple[bool, float]:
        exceeds = line.group in loud or line.colour == str(Verdict.EXCEEDED)
        return not exceeds, -abs(line.centre - middle)

    furthest = sorted(lines, key=order)[:most]
    return sorted(furthest, key=lambda line: -line.centre)


def _intervals(shown: Sequence[Line], lines: Sequence[Line]) -> list[dict[str, float]]:
    known = [x for line in lines for x in (line.centre, line.lower, line.upper) if x is not None]
    return [
        {
            "estimate": line.centre,
            "lower": min(known) if line.lower is None else line.lower,
            "upper": max(known) if line.upper is None else line.upper,
        }
        for line in shown
    ]


def _open(line: Line) -> dict[str, float]:
    return {} if line.open is None else {"lowest": line.open[0], "highest": line.open[1]}


def _layers(
    base: "ChartType", shape: "alt.Shape", size: int, axis: str, reference: Sequence[float]
) -> "ChartType":
    """Dashed rules, then the intervals, then the estimates, each over the one before."""
    import altair as alt

    spans = base.mark_rule(strokeWidth=2).encode(x=alt.X("lower:Q", title=axis), x2="upper:Q")
    points = base.mark_point(filled=True, size=size, opacity=1)
    below = [rules("x", reference)] if reference else []
    return alt.layer(*below, spans, points.encode(x="estimate:Q", shape=shape))


def _cut(number: int, shown: int) -> str:
    return "" if number <= shown else f"; the {shown} furthest of {number:,} groups"


# --- Lattice: groups by how many attributes they combine, flagged ones filled in ---

_BOX_WIDTH, _BOX_HEIGHT, _BETWEEN, _GAP = 190, 38, 12, 60
#: Boxes side by side; a printed page is no wider.
_ACROSS = 4
#: Groups up to which a picture of boxes can be read.
MOST_BOXES = 20


def lattice(
    rows: "Sequence[FlaggedGroup]", *, said: Callable[[float], str], title: str, subtitle: str
) -> "ChartType":
    """Boxes joined from each group to the groups that refine it by one more attribute.

    ``said`` puts a disparity into words.
    """
    import altair as alt

    chosen = something(rows)
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


def _refines(fine: "FlaggedGroup", broad: "FlaggedGroup") -> bool:
    return broad.where.items() <= fine.where.items() and len(broad.where) < len(fine.where)


def _place(rows: "Sequence[FlaggedGroup]", said: Callable[[float], str]) -> list[Record]:
    layers: dict[int, list[FlaggedGroup]] = {}
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


def _box(row: "FlaggedGroup", text: str, x: float, y: float) -> Record:
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


def _links(rows: "Sequence[FlaggedGroup]", boxes: Sequence[Record]) -> list[dict[str, float]]:
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


# --- Bound by width: for ranges of a number, the worst bound over all ranges of each width ---


def width_curve(
    points: Sequence[dict[str, float]], *, title: str, subtitle: str, axis: str, attribute: str
) -> "ChartType":
    """A solid line for the guaranteed bound and a dashed one for what was observed."""
    import altair as alt

    records = [
        {"width": point["width"], "value": point[key], "line": name}
        for point in points
        for key, name in (("bound", "simultaneous bound"), ("observed", "observed"))
    ]
    colour = alt.Color(
        "line:N",
        scale=alt.Scale(domain=["simultaneous bound", "observed"], range=[CALM, UNSURE]),
    )
    dash = alt.StrokeDash(
        "line:N",
        scale=alt.Scale(domain=["simultaneous bound", "observed"], range=[[1, 0], [4, 3]]),
        legend=None,
    )
    chart = (
        alt.Chart(data(records))
        .mark_line(point=True)
        .encode(
            x=alt.X("width:Q", title=f"width of the range of {attribute}"),
            # The shape of the curve matters here, not its height above nothing.
            y=alt.Y("value:Q", title=axis, scale=alt.Scale(zero=False)),
            color=colour,
            strokeDash=dash,
            tooltip=["width:Q", "value:Q", "line:N"],
        )
        .properties(width=WIDTH, height=280)
    )
    return styled(chart, title, subtitle)
