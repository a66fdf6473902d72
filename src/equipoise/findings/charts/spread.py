"""Spreads: uncorrected beside corrected intervals, by measure, metric and attribute."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from equipoise._validate import listing
from equipoise.errors import OptionError
from equipoise.findings.charts.style import CALM, UNSURE, data, styled
from equipoise.findings.words import percent

if TYPE_CHECKING:
    from equipoise.findings.summary import Summary

_SERIES = {"uncorrected": UNSURE, "corrected": CALM}
_WIDTH, _LINE = 420, 34


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One interval of the chart."""

    panel: str
    """The panel it stands in; each panel has a scale of its own."""
    line: str
    """The line of the panel."""
    series: str
    """Uncorrected or corrected."""
    centre: float | None
    lower: float | None
    upper: float | None
    least: float
    """The value if all groups were equal."""


def spans(bars: Sequence[Span], *, title: str, subtitle: Sequence[str]) -> Any:
    """One panel after another, each with a line for every attribute and two intervals on it."""
    import altair as alt

    records = [_record(bar, bars) for bar in bars]
    lines = list(dict.fromkeys(bar.line for bar in bars))
    panels = list(dict.fromkeys(bar.panel for bar in bars))
    base = alt.Chart().encode(
        y=alt.Y("line:N", sort=lines, title=None, axis=_axis(alt, len(lines))),
        yOffset=alt.YOffset("series:N", sort=list(_SERIES)),
        color=alt.Color(
            "series:N",
            sort=list(_SERIES),
            scale=alt.Scale(domain=list(_SERIES), range=list(_SERIES.values())),
        ),
        tooltip=["panel:N", "line:N", "series:N", "estimate:Q", "lower:Q", "upper:Q", "note:N"],
    )
    ends = alt.X("lower:Q", title=None, axis=alt.Axis(tickCount=6), scale=alt.Scale(zero=False))
    bars_drawn = base.mark_rule(strokeWidth=3).encode(x=ends, x2="drawn:Q")
    points = base.mark_point(filled=True, size=50, opacity=1).encode(x="estimate:Q")
    # An arrow head says that the interval goes on.
    arrows = base.mark_point(shape="triangle-right", filled=True, size=90, opacity=1)
    even = alt.Chart().mark_rule(strokeDash=[4, 3], color="#777777").encode(x="least:Q")
    panel = alt.layer(
        even, bars_drawn, points, arrows.encode(x="open:Q"), data=data(records)
    ).properties(width=_WIDTH, height=_LINE * len(lines))
    header = alt.Header(title=None, labelAngle=0, labelAlign="left", labelAnchor="middle")
    faceted = panel.facet(row=alt.Row("panel:N", sort=panels, header=header), spacing=14)
    wrapped = [
        line for text in subtitle for line in textwrap.wrap(text, 100, break_on_hyphens=False)
    ]
    return styled(faceted.resolve_scale(x="independent"), title, wrapped)  # type: ignore[arg-type]


def beside(summaries: Sequence["Summary"], measure: str = "standard deviation") -> Any:
    """Several summaries in one picture: a panel for each metric, a line for each attribute.

    Parameters
    ----------
    summaries
        Findings of `equipoise.summarize`.
    measure
        Which measure to draw; the standard deviation reads in the metric's own unit.
    """
    if not summaries:
        raise OptionError("beside needs at least one summary.")
    bars = []
    for summary in summaries:
        row = summary.sd if measure == "standard deviation" else summary.row(measure)
        if row is None:
            known = [r.measure for r in summary.rows]
            raise OptionError(
                f"The summary of {summary.metric} across {summary.by} has no {measure!r}. "
                f"It has: {listing(known)}."
            )
        bars += summary.bars(row, panel=summary.metric)
    levels = sorted({percent(summary.level, 0) for summary in summaries})
    notes = dict.fromkeys(note for summary in summaries for note in summary.excluded_note())
    return spans(
        bars,
        title=f"Spread between groups: {measure}",
        subtitle=[f"{', '.join(levels)} intervals; dashed: all groups equal", *notes],
    )


def _axis(alt: Any, lines: int) -> Any:
    # A single line needs no name on every panel: the title has it.
    return alt.Axis(labels=lines > 1, ticks=lines > 1, domain=lines > 1)


def _record(bar: Span, bars: Sequence[Span]) -> dict[str, Any]:
    known = [x for b in bars if b.panel == bar.panel for x in (b.centre, b.upper) if x is not None]
    return {
        "panel": bar.panel,
        "line": bar.line,
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

    records = [
        {
            "pair": f"{row.first} − {row.second}",
            "difference": row.difference,
            "lower": row.lower,
            "upper": row.upper,
            "larger": f"larger for {row.larger}" if row.larger else "not told apart",
        }
        for row in rows
    ]
    names = list(dict.fromkeys(record["larger"] for record in records))
    colours = [UNSURE if name == "not told apart" else CALM for name in names]
    base = alt.Chart(data(records)).encode(
        y=alt.Y("pair:N", sort=None, title=None),
        color=alt.Color("larger:N", scale=alt.Scale(domain=names, range=colours)),
        tooltip=["pair:N", "difference:Q", "lower:Q", "upper:Q", "larger:N"],
    )
    ends = alt.X("lower:Q", title="difference of variances")
    drawn = base.mark_rule(strokeWidth=3).encode(x=ends, x2="upper:Q")
    points = base.mark_point(filled=True, size=50, opacity=1).encode(x="difference:Q")
    zero = alt.Chart(data([{"at": 0}])).mark_rule(strokeDash=[4, 3], color="#777777")
    layered = (zero.encode(x="at:Q") + drawn + points).properties(
        width=_WIDTH, height=_LINE * max(len(records), 1)
    )
    return styled(layered, title, subtitle)
