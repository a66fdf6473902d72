"""Charts of a calibration audit: control chart, importance, calibration curves."""

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.findings.charts.style import (
    ALERT,
    CALM,
    INK,
    ROW,
    UNSURE,
    WIDTH,
    data,
    rules,
    something,
    styled,
)

Records = Sequence[Mapping[str, Any]]

_COLOURS = [ALERT, CALM, UNSURE, INK]


def control_chart(
    records: Records,
    critical: float | None,
    best: tuple[str | None, float] | None,
    *,
    unit: str,
    title: str,
    subtitle: str,
) -> Any:
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


def _diamond(values: list[dict[str, Any]], end: float) -> list[Any]:
    import altair as alt

    found = [record for record in values if record["found it"]]
    if not found:
        return []
    top = min(found, key=lambda record: abs(float(record["share"]) - end))
    point = alt.Chart(data([top])).mark_point(shape="diamond", filled=True, size=140, color=ALERT)
    return [point.encode(x="share:Q", y="value:Q", tooltip=["model:N", "share:Q", "value:Q"])]


def importance_chart(records: Records, *, title: str, subtitle: str) -> Any:
    """A bar per column. Each record has ``column`` and ``drop``."""
    import altair as alt

    bars = (
        alt.Chart(data([dict(record) for record in records]))
        .mark_bar()
        .encode(
            x=alt.X("drop:Q", title="drop of the statistic"),
            y=alt.Y("column:N", sort=None, title=None),
            color=alt.condition(alt.datum.drop > 0, alt.value(CALM), alt.value(UNSURE)),
            tooltip=["column:N", "drop:Q"],
        )
    )
    return styled(bars.properties(width=WIDTH, height=alt.Step(ROW)), title, subtitle)


def calibration_curves(records: Records, tolerance: float, *, title: str, subtitle: str) -> Any:
    """Observed against predicted by group, beside the diagonal and the tolerance around it.

    Each record has ``group``, ``n``, ``predicted`` and ``observed``.
    """
    return styled(_curves(records, tolerance).properties(width=WIDTH, height=320), title, subtitle)


def stratified_curves(records: Records, tolerance: float, *, title: str, subtitle: str) -> Any:
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


def _curves(records: Records, tolerance: float) -> Any:
    import altair as alt

    # The band spans what was predicted: beyond it there is nothing to compare.
    ends = [float(record["predicted"]) for record in records] or [0.0, 1.0]
    low, high = min(ends), max(ends)
    band = [{"x": x, "low": x - tolerance, "high": x + tolerance, "at": x} for x in (low, high)]
    allowed = alt.Chart(data(band)).mark_area(opacity=0.15, color=INK)
    diagonal = alt.Chart(data(band)).mark_line(color=INK, strokeDash=[4, 3])
    names = list(dict.fromkeys(record["group"] for record in records))
    points = (
        alt.Chart(data([dict(record) for record in records]))
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
    return (
        allowed.encode(x="x:Q", y="low:Q", y2="high:Q")
        + diagonal.encode(x="x:Q", y="at:Q")
        + points
    )
