"""Forest plot: one line per group, its estimate and its interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.findings.charts.style import ALERT, CALM, ROW, UNSURE, WIDTH, data, styled
from equipoise.findings.verdict import Verdict

_COLOURS = {
    str(Verdict.SHOWN): CALM,
    str(Verdict.SHOWN_NOT): ALERT,
    str(Verdict.UNDETERMINED): UNSURE,
    "above zero": ALERT,
    "below zero": CALM,
    "not told apart": UNSURE,
}
# what colour says, shape says too
_SHAPES = {ALERT: "diamond", CALM: "circle", UNSURE: "square"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a forest plot."""

    group: str
    n: int
    centre: float
    lower: float
    upper: float
    colour: str


def forest(
    lines: Sequence[Line],
    *,
    title: str,
    subtitle: str,
    axis: str,
    reference: Sequence[float],
    most: int = 40,
) -> Any:
    """Groups down the page, intervals across, dashed rules at the values to compare with."""
    import altair as alt

    # The largest groups are the ones with something to say; the table has them all.
    shown = sorted(lines, key=lambda line: -line.n)[:most]
    shown = sorted(shown, key=lambda line: -line.centre)
    records = [
        {
            "group": f"{line.group} (n = {line.n:,})",
            "estimate": line.centre,
            "lower": line.lower,
            "upper": line.upper,
            "reading": line.colour,
        }
        for line in shown
    ]
    kinds = [kind for kind in _COLOURS if any(r["reading"] == kind for r in records)]
    colours = [_COLOURS[kind] for kind in kinds]
    base = alt.Chart(data(records)).encode(
        y=alt.Y("group:N", sort=None, title=None),
        color=alt.Color("reading:N", scale=alt.Scale(domain=kinds, range=colours)),
        tooltip=["group:N", "estimate:Q", "lower:Q", "upper:Q", "reading:N"],
    )
    spans = base.mark_rule(strokeWidth=2).encode(x=alt.X("lower:Q", title=axis), x2="upper:Q")
    shapes = alt.Scale(domain=kinds, range=[_SHAPES[colour] for colour in colours])
    points = base.mark_point(filled=True, size=45, opacity=1).encode(
        x="estimate:Q", shape=alt.Shape("reading:N", scale=shapes)
    )
    rules = alt.Chart(data([{"at": value} for value in reference]))
    lined = rules.mark_rule(strokeDash=[4, 3], color="#777777").encode(x="at:Q")
    chart = (lined + spans + points).properties(width=WIDTH, height=ROW * max(len(records), 1))
    return styled(chart, title, subtitle + _cut(len(lines), len(shown)))


def forest_pair(
    series: Mapping[str, Sequence[Line]],
    *,
    title: str,
    subtitle: str,
    axis: str,
    reference: Sequence[float],
    most: int = 40,
) -> Any:
    """Two sets of intervals on one axis, told apart by colour, shape and height in the line."""
    import altair as alt

    names = list(series)
    first = sorted(series[names[0]], key=lambda line: -line.n)[:most]
    order = [line.group for line in sorted(first, key=lambda line: -line.centre)]
    records = [
        {
            "group": line.group,
            "n": line.n,
            "estimate": line.centre,
            "lower": line.lower,
            "upper": line.upper,
            "method": name,
        }
        for name, lines in series.items()
        for line in lines
        if line.group in set(order)
    ]
    base = alt.Chart(data(records)).encode(
        y=alt.Y("group:N", sort=order, title=None),
        yOffset=alt.YOffset("method:N", sort=names),
        color=alt.Color("method:N", scale=alt.Scale(domain=names, range=[CALM, ALERT])),
        tooltip=["group:N", "n:Q", "method:N", "estimate:Q", "lower:Q", "upper:Q"],
    )
    spans = base.mark_rule(strokeWidth=2).encode(x=alt.X("lower:Q", title=axis), x2="upper:Q")
    shapes = alt.Scale(domain=names, range=["circle", "diamond"])
    points = base.mark_point(filled=True, size=35, opacity=1).encode(
        x="estimate:Q", shape=alt.Shape("method:N", scale=shapes)
    )
    rules = alt.Chart(data([{"at": value} for value in reference]))
    lined = rules.mark_rule(strokeDash=[4, 3], color="#777777").encode(x="at:Q")
    height = 2 * ROW * max(len(order), 1)
    chart = (lined + spans + points).properties(width=WIDTH, height=height)
    return styled(chart, title, subtitle + _cut(len(series[names[0]]), len(order)))


def reading(lower: float | None, upper: float | None, zero: float) -> str:
    """What an interval says about zero difference."""
    if lower is not None and lower > zero:
        return "above zero"
    if upper is not None and upper < zero:
        return "below zero"
    return "not told apart"


def _cut(number: int, shown: int) -> str:
    return "" if number <= shown else f"; the {shown} largest of {number:,} groups"
