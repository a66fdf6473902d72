"""Charts of calibration, tilts, spreads and comparable people."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from equipoise.findings.charts import (
    ALERT,
    CALM,
    INK,
    ROW,
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
    from equipoise.findings.summary import ComparedSpread

# --- Charts of a calibration audit: control chart, importance, calibration curves ---

Records = Sequence[Record]

_COLOURS = [ALERT, CALM, UNSURE, INK]


def control_chart(
    records: Records,
    critical: float | None,
    best: tuple[str | None, float] | None,
    *,
    unit: str,
    title: str,
    subtitle: str,
) -> "ChartType":
    """One line per residual model, the one that found the subgroup in colour; a dashed limit.

    Each record has ``model``, ``share`` and ``value``. ``best`` is the model that found the
    subgroup and the subgroup's share, at which a diamond stands.
    """
    import altair as alt

    name, end = best or (None, 0.0)
    values = [{**record, "found it": record["model"] == name} for record in something(records)]
    lines = (
        alt.Chart(data(values))
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("share:Q", title="share of rows, worst predicted first", axis={"format": "%"}),
            y=alt.Y("value:Q", title=f"cumulative score, {unit}"),
            detail="model:N",
            color=alt.Color(
                "found it:N",
                scale=alt.Scale(domain=[True, False], range=[ALERT, UNSURE]),
                legend=None,
            ),
            size=alt.condition(alt.datum["found it"], alt.value(2.5), alt.value(1)),
            tooltip=["model:N", "share:Q", "value:Q"],
        )
    )
    layers = [lines, *_diamond(values, end)]
    if critical is not None:
        layers.append(rules("y", [critical]))
    return styled(alt.layer(*layers).properties(width=WIDTH, height=280), title, subtitle)


def _diamond(values: Records, end: float) -> "list[ChartType]":
    import altair as alt

    found = [record for record in values if record["found it"]]
    if not found:
        return []
    top = min(found, key=lambda record: abs(float(record["share"]) - end))
    point = alt.Chart(data([top])).mark_point(shape="diamond", filled=True, size=140, color=ALERT)
    return [point.encode(x="share:Q", y="value:Q", tooltip=["model:N", "share:Q", "value:Q"])]


def importance_chart(records: Records, *, title: str, subtitle: str) -> "ChartType":
    """A bar per column. Each record has ``column`` and ``drop``."""
    import altair as alt

    bars = (
        alt.Chart(data(records))
        .mark_bar()
        .encode(
            x=alt.X("drop:Q", title="drop of the statistic"),
            y=alt.Y("column:N", sort=None, title=None),
            color=alt.condition(alt.datum.drop > 0, alt.value(CALM), alt.value(UNSURE)),
            tooltip=["column:N", "drop:Q"],
        )
    )
    return styled(bars.properties(width=WIDTH, height=alt.Step(ROW)), title, subtitle)


def calibration_curves(
    records: Records, tolerance: float, *, title: str, subtitle: str
) -> "ChartType":
    """Observed against predicted by group, beside the diagonal and the tolerance around it.

    Each record has ``group``, ``n``, ``predicted`` and ``observed``.
    """
    return styled(_curves(records, tolerance).properties(width=WIDTH, height=320), title, subtitle)


def stratified_curves(
    records: Records, tolerance: float, *, title: str, subtitle: str
) -> "ChartType":
    """The same once for each column, in strata of it. Each record has ``column`` besides."""
    import altair as alt

    columns = list(dict.fromkeys(record["column"] for record in something(records)))
    charts = [
        _curves([r for r in records if r["column"] == column], tolerance).properties(
            width=WIDTH // 2 - 40, height=260, title=f"by {column}"
        )
        for column in columns
    ]
    return styled(alt.hconcat(*charts).resolve_scale(color="independent"), title, subtitle)


def _curves(records: Records, tolerance: float) -> "ChartType":
    import altair as alt

    # The band spans what was predicted: beyond it there is nothing to compare.
    ends = [float(record["predicted"]) for record in records] or [0.0, 1.0]
    low, high = min(ends), max(ends)
    band = [{"x": x, "low": x - tolerance, "high": x + tolerance, "at": x} for x in (low, high)]
    allowed = alt.Chart(data(band)).mark_area(opacity=0.15, color=INK)
    diagonal = alt.Chart(data(band)).mark_line(color=INK, strokeDash=[4, 3])
    names = list(dict.fromkeys(record["group"] for record in records))
    points = (
        alt.Chart(data(records))
        .mark_line(point=True)
        .encode(
            x=alt.X("predicted:Q", title="predicted"),
            y=alt.Y("observed:Q", title="observed"),
            color=alt.Color(
                "group:N", sort=names, scale=alt.Scale(domain=names, range=_COLOURS[: len(names)])
            ),
            tooltip=["group:N", "n:Q", "predicted:Q", "observed:Q"],
        )
    )
    made: ChartType = (
        allowed.encode(x="x:Q", y="low:Q", y2="high:Q")
        + diagonal.encode(x="x:Q", y="at:Q")
        + points
    )
    return made


# --- A tilt over its covariates: the tilt itself, and the population before and after it ---

#: One colour for each series of either panel.
_TILT_COLOURS = {"tilt": ALERT, "asked about": UNSURE, "as audited": CALM, "tilted": INK}


def tilt_chart(profile: Records, *, title: str, subtitle: str) -> "ChartType":
    """For each covariate the tilt (left) and the shares of the population (right).

    Each record has ``covariate``, ``from``, ``to``, ``rows``, ``tilted``, ``tilt``, ``wanted``.
    """
    import altair as alt

    names = list(dict.fromkeys(str(record["covariate"]) for record in profile))
    rows = [
        alt.hconcat(*_panels([r for r in profile if r["covariate"] == name], name))
        for name in names
    ]
    whole = alt.vconcat(*rows) if rows else alt.vconcat(alt.Chart(data([])).mark_point())
    return styled(whole, title, subtitle)


def _panels(records: Records, name: str) -> "list[ChartType]":
    tilt = [_point(r, "tilt", r["tilt"]) for r in records]
    tilt += [_point(r, "asked about", r["wanted"]) for r in records if r["wanted"] is not None]
    share = [_point(r, "as audited", r["rows"]) for r in records]
    share += [_point(r, "tilted", r["tilted"]) for r in records]
    return [
        _tilt_panel(tilt, name, "weight (average 1)"),
        _tilt_panel(share, name, "share of the population"),
    ]


def _point(record: Record, series: str, value: float) -> Record:
    start, stop = record["from"], record["to"]
    number = isinstance(start, int | float) and not isinstance(start, bool)
    at = (start + stop) / 2 if number else "missing" if start is None else str(start)
    return {"at": at, "series": series, "value": value}


def _tilt_panel(records: Records, name: str, axis: str) -> "ChartType":
    import altair as alt

    # All panels share one scale, since charts side by side share their legend.
    scale = alt.Scale(domain=list(_TILT_COLOURS), range=list(_TILT_COLOURS.values()))
    chart = alt.Chart(data(records)).encode(
        y=alt.Y("value:Q", title=axis), color=alt.Color("series:N", scale=scale)
    )
    if all(isinstance(record["at"], int | float) for record in records):
        place = alt.X("at:Q", title=name, scale=alt.Scale(zero=False))
        tips = ["at:Q", "series:N", "value:Q"]
        drawn = chart.mark_line(interpolate="step").encode(x=place, tooltip=tips)
    else:
        place = alt.X("at:N", title=name, axis=alt.Axis(labelAngle=0))
        tips = ["at:N", "series:N", "value:Q"]
        drawn = chart.mark_bar().encode(x=place, xOffset="series:N", tooltip=tips)
    made: ChartType = drawn.properties(width=300, height=200)
    return made


# --- Spreads: uncorrected beside corrected intervals by measure, and differences of spreads ---

_SERIES = {"uncorrected": UNSURE, "corrected": CALM}
_WIDTH, _LINE, _NAMES = 420, 34, 170


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartSpan:
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


def spans(bars: Sequence[ChartSpan], *, title: str, subtitle: Sequence[str]) -> "ChartType":
    """A panel for each measure, with both its intervals."""
    import altair as alt

    panels: dict[str, list[ChartSpan]] = {}
    for bar in something(bars):
        panels.setdefault(bar.measure, []).append(bar)
    drawn = alt.vconcat(*(_spread_panel(own) for own in panels.values()), spacing=14)
    wrapped = [
        line for text in subtitle for line in textwrap.wrap(text, 100, break_on_hyphens=False)
    ]
    return styled(drawn, title, wrapped)


def _spread_panel(bars: Sequence[ChartSpan]) -> "ChartType":
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


def _record(bar: ChartSpan, bars: Sequence[ChartSpan]) -> dict[str, str | float | None]:
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


def _beyond(bar: ChartSpan, known: Sequence[float]) -> float:
    """Where to draw an end that does not exist: past everything that does."""
    far = max([*known, bar.lower or bar.least])
    return far + 0.25 * (far - bar.least)


def differences(rows: "Sequence[ComparedSpread]", *, title: str, subtitle: str) -> "ChartType":
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


# --- Who would be treated differently: a heat map of people leaving and arriving ---


def heat_map(records: Records, *, title: str, subtitle: str) -> "ChartType":
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
    panel = alt.layer(cells, texts, data=data(records))
    header = alt.Header(title=None, labelFontSize=12)
    drawn = panel.properties(width=alt.Step(46), height=alt.Step(30))
    faceted = drawn.facet(row=alt.Row("panel:N", sort=None, header=header), spacing=14)
    return styled(faceted, title, subtitle)


def trade_off(records: Records, tolerance: float, *, title: str, subtitle: str) -> "ChartType":
    """Error and audit value of each model in the order given, bounds, and the tolerance.

    Each record has ``model``, ``series`` and ``value``.
    """
    import altair as alt

    names = list(dict.fromkeys(record["series"] for record in records))
    base = alt.Chart(data(records)).encode(
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


# --- Charts of monitoring: evidence over time, and confidence sequences ---

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


# --- Models beside each other: loss against disparity, with a box around each ---


def frontier(
    records: Records,
    *,
    limit: float,
    level: float,
    axes: tuple[str, str],
    title: str,
    subtitle: str,
) -> "ChartType":
    """A point and a box for each model; dashed, the loss that is tolerated and a disparity.

    Each record has ``model``, ``loss``, ``disparity``, the ends of both and a ``reading``.
    """
    import altair as alt

    names = ["present", "shown to be less discriminatory", "not shown"]
    base = alt.Chart(data(something(records))).encode(
        color=alt.Color("reading:N", scale=alt.Scale(domain=names, range=[INK, CALM, UNSURE])),
        tooltip=[
            "model:N",
            alt.Tooltip("loss:Q", format=".4f"),
            alt.Tooltip("disparity:Q", format=".4f"),
        ],
    )
    x, y = (alt.Scale(zero=False), alt.Scale(zero=False))
    boxes = base.mark_rect(opacity=0.12, stroke=UNSURE, strokeWidth=0.5).encode(
        x=alt.X("loss from:Q", scale=x, title=axes[0]),
        x2="loss to:Q",
        y=alt.Y("from:Q", scale=y, title=axes[1]),
        y2="to:Q",
    )
    shape = alt.Shape("reading:N", scale=alt.Scale(domain=names, range=_SHAPES))
    points = base.mark_point(filled=True, size=80, opacity=1).encode(
        x="loss:Q", y="disparity:Q", shape=shape
    )
    called = base.mark_text(align="left", dx=8, dy=-6, fontSize=10, limit=180).encode(
        x="loss:Q", y="disparity:Q", text="model:N"
    )
    drawn = alt.layer(rules("x", [limit]), rules("y", [level]), boxes, points, called)
    return styled(drawn.properties(width=WIDTH, height=320), title, subtitle)


_SHAPES = ["square", "circle", "diamond"]
