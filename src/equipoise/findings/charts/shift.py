"""A tilt over its covariates: the tilt itself, and the population before and after it."""

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.findings.charts.style import ALERT, CALM, INK, UNSURE, data, styled

#: One colour for each series of either panel.
_COLOURS = {"tilt": ALERT, "asked about": UNSURE, "as audited": CALM, "tilted": INK}


def tilt_chart(profile: Sequence[Mapping[str, Any]], *, title: str, subtitle: str) -> Any:
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


def _panels(records: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    tilt = [_point(r, "tilt", r["tilt"]) for r in records]
    tilt += [_point(r, "asked about", r["wanted"]) for r in records if r["wanted"] is not None]
    share = [_point(r, "as audited", r["rows"]) for r in records]
    share += [_point(r, "tilted", r["tilted"]) for r in records]
    return [
        _panel(tilt, name, "weight (average 1)"),
        _panel(share, name, "share of the population"),
    ]


def _point(record: Mapping[str, Any], series: str, value: float) -> dict[str, Any]:
    start, stop = record["from"], record["to"]
    number = isinstance(start, int | float) and not isinstance(start, bool)
    at = (start + stop) / 2 if number else "missing" if start is None else str(start)
    return {"at": at, "series": series, "value": value}


def _panel(records: list[dict[str, Any]], name: str, axis: str) -> Any:
    import altair as alt

    # All panels share one scale, since charts side by side share their legend.
    scale = alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values()))
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
    return drawn.properties(width=300, height=200)
