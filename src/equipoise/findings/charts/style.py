"""Colours and sizes shared by all charts, chosen to keep their contrast in print."""

from typing import Any

#: Verdicts and flags, darkest where the news is worst.
CALM, ALERT, UNSURE, INK = "#3b6ea5", "#b2432f", "#8a8a8a", "#333333"
#: Widths in pixels.
WIDTH, ROW = 520, 18


def styled(chart: Any, title: str, subtitle: str) -> Any:
    """A chart with a title that says what it shows and a subtitle that says what is guaranteed."""
    import altair as alt

    heading = alt.TitleParams(title, subtitle=subtitle, anchor="start", subtitleColor="#555555")
    return (
        chart.properties(title=heading)
        .configure_view(stroke=None)
        .configure_axis(labelLimit=320, gridColor="#e6e6e6", labelFontSize=11, titleFontSize=12)
        .configure_legend(orient="bottom", title=None)
    )


def data(records: list[dict[str, Any]]) -> Any:
    """Records as inline Altair data."""
    import altair as alt

    return alt.InlineData(values=records)
