"""Who would be treated differently: a heat map of people leaving and arriving."""

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.findings.charts.style import ALERT, CALM, INK, WIDTH, data, rules, styled


def heat_map(records: Sequence[Mapping[str, Any]], *, title: str, subtitle: str) -> Any:
    """One panel per label: varied features down, the other features across, change in people.

    Each record has ``panel``, ``row``, ``column`` and ``change``.
    """
    import altair as alt

    base = alt.Chart().encode(
        x=alt.X("column:N", sort=None, title=None, axis=alt.Axis(labelAngle=-40)),
        y=alt.Y("row:N", sort=None, title=None),
        tooltip=["panel:N", "row:N", "column:N", "change:Q"],
    )
    largest = max([abs(float(record["change"])) for record in records] or [1.0]) or 1.0
    scale = alt.Scale(domain=[-largest, 0, largest], range=[CALM, "#f7f7f7", ALERT])
    cells = base.mark_rect().encode(color=alt.Color("change:Q", scale=scale, legend=None))
    # On light paper the type is dark throughout. On dark paper, where the strongest cells are the
    # bright ones, light type is hard to read on them: a page swaps these two inks for its own.
    strong = f"abs(datum.change) > {0.55 * largest}"
    texts = base.mark_text().encode(
        text=alt.Text("change:Q", format="+,.0f"),
        color=alt.condition(strong, alt.value("#000000"), alt.value(INK)),
    )
    panel = alt.layer(cells, texts, data=data([dict(record) for record in records]))
    header = alt.Header(title=None, labelFontSize=12)
    drawn = panel.properties(width=alt.Step(46), height=alt.Step(30))
    faceted = drawn.facet(row=alt.Row("panel:N", sort=None, header=header), spacing=14)
    return styled(faceted, title, subtitle)


def trade_off(
    records: Sequence[Mapping[str, Any]], tolerance: float, *, title: str, subtitle: str
) -> Any:
    """Error and audit value of each model in the order given, bounds, and the tolerance.

    Each record has ``model``, ``series`` and ``value``.
    """
    import altair as alt

    names = list(dict.fromkeys(record["series"] for record in records))
    base = alt.Chart(data([dict(record) for record in records])).encode(
        x=alt.X("model:N", sort=None, title=None, axis=alt.Axis(labelAngle=-40)),
        y=alt.Y("value:Q", title=None),
        color=alt.Color(
            "series:N", sort=names, scale=alt.Scale(domain=names, range=[INK, ALERT, CALM, CALM])
        ),
        strokeDash=alt.StrokeDash(
            "series:N",
            sort=names,
            scale=alt.Scale(domain=names, range=[[1, 0], [1, 0], [6, 3], [2, 2]]),
        ),
        tooltip=["model:N", "series:N", "value:Q", "chosen:N"],
    )
    points = base.mark_point(filled=True, opacity=1).encode(
        size=alt.condition(alt.datum.chosen == "chosen", alt.value(160), alt.value(40))
    )
    drawn = base.mark_line() + points + rules("y", [tolerance])
    layered = drawn.properties(width=WIDTH, height=300)
    return styled(layered, title, subtitle)
