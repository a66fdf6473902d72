"""Colours and sizes shared by all charts, chosen to keep their contrast in print."""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from equipoise.errors import OptionError

T = TypeVar("T")

#: Verdicts and flags, darkest where the news is worst. Pages look these very values up to find the
#: partners they take on dark paper.
CALM, ALERT, UNSURE, INK = "#3b6ea5", "#b2432f", "#8a8a8a", "#333333"
#: Widths in pixels.
WIDTH, ROW = 520, 18


#: Named, since a picture made with one "sans-serif" may be shown with a wider one, which cuts names
#: off. These two are as wide as each other, and wider than what else may be there.
_FONT = "Verdana, 'DejaVu Sans', sans-serif"


def styled(chart: Any, title: str, subtitle: str | list[str]) -> Any:
    """A chart with a title that says what it shows and a subtitle that says what is guaranteed."""
    import altair as alt

    heading = alt.TitleParams(title, subtitle=subtitle, anchor="start", subtitleColor="#555555")
    return (
        chart.properties(title=heading)
        .configure(font=_FONT)
        .configure_view(stroke=None)
        .configure_axis(labelLimit=320, gridColor="#e6e6e6", labelFontSize=10, titleFontSize=11)
        .configure_legend(orient="bottom", title=None)
    )


def rules(channel: Literal["x", "y"], values: Sequence[float]) -> Any:
    """Dashed rules across a chart, at the values to compare with."""
    import altair as alt

    chart = alt.Chart(data([{"at": value} for value in values]))
    return chart.mark_rule(strokeDash=[4, 3], color="#777777").encode(**{channel: "at:Q"})


def something(records: Sequence[T]) -> Sequence[T]:
    """What is to be drawn; an error if it is nothing, since an empty chart tells nothing."""
    if not records:
        raise OptionError("There is nothing to draw: no row of this finding has the numbers.")
    return records


def data(records: list[dict[str, Any]]) -> Any:
    """Records as inline Altair data."""
    import altair as alt

    return alt.InlineData(values=records)
