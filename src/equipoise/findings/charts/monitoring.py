"""Charts of monitoring: evidence over time, and confidence sequences."""

from typing import TYPE_CHECKING

from equipoise.findings.charts.style import (
    ALERT,
    UNSURE,
    WIDTH,
    Record,
    data,
    rules,
    something,
    styled,
)

if TYPE_CHECKING:
    from altair.typing import ChartType

    from equipoise.findings.monitoring import Monitoring

#: Labels of periods along the axis.
_LABELS = 12


def evidence_chart(found: "Monitoring", *, title: str, subtitle: str) -> "ChartType":
    """A line per group with most evidence, alarms marked; below, their confidence sequences."""
    import altair as alt

    rows = found.shown()
    lines: list[Record] = [
        {"group": row.group, "period": period, "at": i, "value": value, "alarm": row.alarm}
        for row in rows
        for i, (period, value) in enumerate(zip(found.periods, row.history, strict=False))
        if value is not None
    ]
    raised = {row.group: row.raised for row in rows}
    marked = [record for record in lines if record["period"] == raised[record["group"]]]
    step = max(1, len(found.periods) // _LABELS)
    x = alt.X(
        "period:N",
        sort=list(found.periods),
        title=None,
        axis=alt.Axis(values=list(found.periods[::step]), labelAngle=-40, grid=False),
    )
    colour = alt.Color(
        "alarm:N", scale=alt.Scale(domain=[True, False], range=[ALERT, UNSURE]), legend=None
    )
    unit = "score of the look" if found.reading == "planned" else "evidence, powers of ten"
    base = alt.Chart(data(something(lines)))
    curves = base.mark_line().encode(
        x=x,
        y=alt.Y("value:Q", title=unit),
        detail="group:N",
        color=colour,
        tooltip=["group:N", "period:N", alt.Tooltip("value:Q", format=".2f")],
    )
    layers: list[ChartType] = [curves, rules("y", [found.threshold])]
    if marked:
        layers.append(
            alt.Chart(data(marked))
            .mark_point(shape="diamond", filled=True, size=110, color=ALERT)
            .encode(x=x, y="value:Q", tooltip=["group:N", "period:N"])
        )
    # names of quiet groups would lie on top of one another, but for that of the first
    named = [row.group for row in rows if row.alarm]
    named += [row.group for row in rows if not row.alarm][:1]
    latest = {record["group"]: record for record in lines}
    last = [latest[name] for name in named if name in latest]
    layers.append(
        alt.Chart(data(last))
        .mark_text(align="left", dx=6, fontSize=10, limit=220)
        .encode(x=x, y="value:Q", text="group:N", color=colour)
    )
    top = alt.layer(*layers).properties(width=WIDTH, height=260)
    bands = _bands(found, x)
    return styled(alt.vconcat(top, *bands) if bands else top, title, subtitle)


def _bands(found: "Monitoring", x: object) -> "list[ChartType]":
    import altair as alt

    records: list[Record] = [
        {"group": row.group, "period": period, "lower": low, "upper": high}
        for row in found.rows
        if row.band
        for period, (low, high) in zip(found.periods, row.band, strict=False)
        if low is not None and high is not None
    ]
    if not records:
        return []
    # one small panel for each group, on one scale
    names = list(dict.fromkeys(record["group"] for record in records))
    panels: list[ChartType] = []
    for name in names:
        own = [record for record in records if record["group"] == name]
        area = (
            alt.Chart(data(own))
            .mark_area(opacity=0.35, interpolate="step-after", color=UNSURE)
            .encode(
                x=x,
                y=alt.Y("lower:Q", title=None),
                y2="upper:Q",
                tooltip=["period:N", "lower:Q", "upper:Q"],
            )
        )
        panel = alt.layer(area, rules("y", found.limits))
        panels.append(
            panel.properties(width=WIDTH, height=80, title=f"{name}: confidence sequence")
        )
    return panels
