"""Colours and sizes shared by all charts, chosen to keep their contrast in print."""

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from equipoise._validate import names_extra
from equipoise.errors import OptionError

if TYPE_CHECKING:
    import altair as alt
    from altair.typing import ChartType

T = TypeVar("T")

#: One mark of a chart: its fields by name, texts and numbers.
Record = Mapping[str, Any]

#: Verdicts and flags, darkest where the news is worst. Pages look these very values up to find the
#: partners they take on dark paper.
CALM, ALERT, UNSURE, INK = "#3b6ea5", "#b2432f", "#8a8a8a", "#333333"
#: Widths in pixels.
WIDTH, ROW = 520, 18


#: Named, since a picture made with one "sans-serif" may be shown with a wider one, which cuts names
#: off. These two are as wide as each other, and wider than what else may be there.
_FONT = "Verdana, 'DejaVu Sans', sans-serif"


def styled(chart: "ChartType", title: str, subtitle: str | list[str]) -> "ChartType":
    """A chart with a title that says what it shows and a subtitle that says what is guaranteed."""
    import altair as alt

    heading = alt.TitleParams(title, subtitle=subtitle, anchor="start", subtitleColor="#555555")
    made: ChartType = (
        chart.properties(title=heading)
        .configure(font=_FONT)
        .configure_view(stroke=None)
        .configure_axis(labelLimit=320, gridColor="#e6e6e6", labelFontSize=10, titleFontSize=11)
        .configure_legend(orient="bottom", title=None)
    )
    # Altair's own way to show a chart in a notebook fetches libraries from the network.
    object.__setattr__(made, "_repr_mimebundle_", functools.partial(_shown, made))
    return made


@names_extra
def svg_of(chart: "ChartType") -> str:
    """The chart as a picture, made here."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(chart.to_json()))


def _shown(chart: "ChartType", *_: object, **options: object) -> object:
    """A chart in a notebook: a picture, unless another way to show charts was chosen in Altair."""
    import altair as alt

    if alt.renderers.active != "default":
        return type(chart)._repr_mimebundle_(chart, **options)
    return {"image/svg+xml": svg_of(chart)}


def rules(channel: Literal["x", "y"], values: Sequence[float]) -> "ChartType":
    """Dashed rules across a chart, at the values to compare with."""
    import altair as alt

    at = alt.Chart(data([{"at": value} for value in values]))
    made: ChartType = at.mark_rule(strokeDash=[4, 3], color="#777777").encode(**{channel: "at:Q"})
    return made


def something(records: Sequence[T]) -> Sequence[T]:
    """What is to be drawn; an error if it is nothing, since an empty chart tells nothing."""
    if not records:
        raise OptionError("There is nothing to draw: no row of this finding has the numbers.")
    return records


def data(records: Sequence[Record]) -> "alt.InlineData":
    """Records as inline Altair data."""
    import altair as alt

    return alt.InlineData(values=[dict(record) for record in records])
