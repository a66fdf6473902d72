"""Bound by width: for ranges of a number, the worst bound over all ranges of each width."""

from collections.abc import Sequence
from typing import Any

from equipoise.findings.charts.style import CALM, UNSURE, WIDTH, data, styled


def width_curve(
    points: Sequence[dict[str, float]], *, title: str, subtitle: str, axis: str, attribute: str
) -> Any:
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
