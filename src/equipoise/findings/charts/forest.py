"""Forest plot: one line per group, its estimate and its interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.findings.charts.style import (
    ALERT,
    CALM,
    ROW,
    UNSURE,
    WIDTH,
    data,
    rules,
    something,
    styled,
)
from equipoise.findings.verdict import Verdict

_ABOVE, _BELOW, _NEITHER = "above the dashed line", "below the dashed line", "not told apart"
_COLOURS = {
    str(Verdict.SHOWN): CALM,
    str(Verdict.SHOWN_NOT): ALERT,
    str(Verdict.UNDETERMINED): UNSURE,
    _ABOVE: ALERT,
    _BELOW: CALM,
    _NEITHER: UNSURE,
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

    shown = _largest(something(lines), most)
    records = [
        {"group": f"{line.group} (n = {line.n:,})", **interval, "reading": line.colour}
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
) -> Any:
    """Two sets of intervals on one axis, told apart by colour, shape and height in the line."""
    import altair as alt

    names = list(series)
    order = [line.group for line in _largest(something(series[names[0]]), most)]
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
        return _ABOVE
    if upper is not None and upper < even:
        return _BELOW
    return _NEITHER


def _largest(lines: Sequence[Line], most: int) -> list[Line]:
    """The largest groups, which have most to say, from the highest down; the table has them all."""
    largest = sorted(lines, key=lambda line: -line.n)[:most]
    return sorted(largest, key=lambda line: -line.centre)


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


def _layers(base: Any, shape: Any, size: int, axis: str, reference: Sequence[float]) -> Any:
    """Dashed rules, then the intervals, then the estimates, each over the one before."""
    import altair as alt

    spans = base.mark_rule(strokeWidth=2).encode(x=alt.X("lower:Q", title=axis), x2="upper:Q")
    points = base.mark_point(filled=True, size=size, opacity=1)
    below = [rules("x", reference)] if reference else []
    return alt.layer(*below, spans, points.encode(x="estimate:Q", shape=shape))


def _cut(number: int, shown: int) -> str:
    return "" if number <= shown else f"; the {shown} largest of {number:,} groups"
