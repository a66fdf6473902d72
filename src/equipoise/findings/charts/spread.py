"""Spreads: uncorrected beside corrected intervals by measure, and differences of spreads."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.findings.charts.style import CALM, UNSURE, data, rules, something, styled

_SERIES = {"uncorrected": UNSURE, "corrected": CALM}
_WIDTH, _LINE, _NAMES = 420, 34, 170


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One interval of the chart."""

    measure: str
    """The measure; each has a panel with a scale of its own."""
    series: str
    """Uncorrected or corrected."""
    centre: float | None
    lower: float | None
    upper: float | None
    least: float
    """The value if all groups were equal."""


def spans(bars: Sequence[Span], *, title: str, subtitle: Sequence[str]) -> Any:
    """A panel for each measure, with both its intervals."""
    import altair as alt

    panels: dict[str, list[Span]] = {}
    for bar in something(bars):
        panels.setdefault(bar.measure, []).append(bar)
    drawn = alt.vconcat(*(_panel(own) for own in panels.values()), spacing=14)
    wrapped = [
        line for text in subtitle for line in textwrap.wrap(text, 100, break_on_hyphens=False)
    ]
    return styled(drawn, title, wrapped)


def _panel(bars: Sequence[Span]) -> Any:
    """One measure, on a scale of its own, with the layers for which it has numbers."""
    import altair as alt

    records = [_record(bar, bars) for bar in bars]
    # labels, not titles: a title beside its axis gets no room of its own and is cut off
    beside = alt.Axis(title=None, ticks=False, domain=False, labelLimit=_NAMES, minExtent=_NAMES)
    base = alt.Chart().encode(
        y=alt.Y("measure:N", axis=beside),
        yOffset=alt.YOffset("series:N", sort=list(_SERIES)),
        color=alt.Color(
            "series:N",
            sort=list(_SERIES),
            scale=alt.Scale(domain=list(_SERIES), range=list(_SERIES.values())),
        ),
        tooltip=["measure:N", "series:N", "estimate:Q", "lower:Q", "upper:Q", "note:N"],
    )
    ends = alt.X("lower:Q", title=None, axis=alt.Axis(tickCount=6), scale=alt.Scale(zero=False))
    even = alt.Chart().mark_rule(strokeDash=[4, 3], color="#777777").encode(x="least:Q")
    layers = [even, base.mark_rule(strokeWidth=3).encode(x=ends, x2="drawn:Q")]
    # A layer without a single number has no extent, of which the page would complain.
    if any(record["estimate"] is not None for record in records):
        points = base.mark_point(filled=True, size=50, opacity=1)
        layers.append(points.encode(x="estimate:Q"))
    if any(record["open"] is not None for record in records):
        # An arrow head says that the interval goes on.
        arrows = base.mark_point(shape="triangle-right", filled=True, size=90, opacity=1)
        layers.append(arrows.encode(x="open:Q"))
    return alt.layer(*layers, data=data(records)).properties(width=_WIDTH, height=_LINE)


def _record(bar: Span, bars: Sequence[Span]) -> dict[str, Any]:
    known = [x for each in bars for x in (each.centre, each.upper) if x is not None]
    return {
        "measure": bar.measure,
        "series": bar.series,
        "estimate": bar.centre,
        "lower": bar.lower,
        "upper": bar.upper,
        "drawn": _beyond(bar, known) if bar.upper is None else bar.upper,
        "open": _beyond(bar, known) if bar.upper is None else None,
        "least": bar.least,
        "note": "no upper limit" if bar.upper is None else "",
    }


def _beyond(bar: Span, known: Sequence[float]) -> float:
    """Where to draw an end that does not exist: past everything that does."""
    far = max([*known, bar.lower or bar.least])
    return far + 0.25 * (far - bar.least)


def differences(rows: Sequence[Any], *, title: str, subtitle: str) -> Any:
    """One line for each pair that is compared, its interval, and a dashed rule at no difference."""
    import altair as alt

    measures = {row.measure for row in rows}
    records = [
        {
            "pair": f"{row.first} − {row.second}"
            + (f": {row.measure}" if len(measures) > 1 else ""),
            "difference": row.difference,
            "lower": row.lower,
            "upper": row.upper,
            "larger": f"larger for {row.larger}" if row.larger else "not told apart",
        }
        for row in something(rows)
    ]
    names = list(dict.fromkeys(record["larger"] for record in records))
    colours = [UNSURE if name == "not told apart" else CALM for name in names]
    base = alt.Chart(data(records)).encode(
        y=alt.Y("pair:N", sort=None, title=None),
        color=alt.Color("larger:N", scale=alt.Scale(domain=names, range=colours)),
        tooltip=["pair:N", "difference:Q", "lower:Q", "upper:Q", "larger:N"],
    )
    scale = "difference" if len(measures) > 1 else f"difference by {next(iter(measures), '')}"
    ends = alt.X("lower:Q", title=scale)
    drawn = base.mark_rule(strokeWidth=3).encode(x=ends, x2="upper:Q")
    points = base.mark_point(filled=True, size=50, opacity=1).encode(x="difference:Q")
    layered = (rules("x", [0]) + drawn + points).properties(
        width=_WIDTH, height=_LINE * len(records)
    )
    return styled(layered, title, subtitle)
