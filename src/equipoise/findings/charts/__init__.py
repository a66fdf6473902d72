"""Pictures of findings, drawn with Altair when asked for.

Colours and sizes shared by all charts, chosen to keep their contrast in print.

Charts of groups: forest plots, the lattice of flags, width against rows.

Groups ranked by disparity, drawn as plain HTML and SVG: no script, no library, any width.

Names and numbers are text of the page, so that they stay legible on a phone and in print; only the
tracks between them are pictures, whose places are percentages.
"""

import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from equipoise._validate import names_extra
from equipoise.errors import OptionError
from equipoise.findings.words import Verdict, clipped, tidy

if TYPE_CHECKING:
    import altair as alt
    from altair.typing import ChartType

    from equipoise.findings.flags import FlaggedGroup

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


# --- Forest plot: one line per group, its estimate and its interval ---

ABOVE, BELOW, NEITHER = "above the dashed line", "below the dashed line", "not told apart"
_COLOURS = {
    str(Verdict.KEPT): CALM,
    str(Verdict.EXCEEDED): ALERT,
    str(Verdict.UNDETERMINED): UNSURE,
    ABOVE: ALERT,
    BELOW: CALM,
    NEITHER: UNSURE,
}
# what colour says, shape says too
_SHAPES = {ALERT: "diamond", CALM: "circle", UNSURE: "square"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestLine:
    """One line of a forest plot."""

    group: str
    n: int
    centre: float
    lower: float | None
    """Lower end of the interval; None if it has none, and is drawn as far as anything is."""
    upper: float | None
    """Upper end of the same."""
    colour: str
    """What the interval shows: a verdict, or what `reading` says."""
    open: tuple[float, float] | None = None
    """What unknown people alone leave open, drawn wide inside the interval."""


class ForestAxis(NamedTuple):
    """What the axis of a forest plot shows, and whether it is read in hundredths."""

    title: str
    hundredths: bool = False

    @property
    def labels(self) -> "alt.Axis":
        """Its numbers, in the unit of its title."""
        import altair as alt

        if self.hundredths:
            return alt.Axis(labelExpr="format(100 * datum.value, '.3~r')")
        return alt.Axis()


def disparity_axis(relative: bool, share: bool) -> ForestAxis:
    """An axis of disparities: in points if those of shares, as in every text and table.

    >>> disparity_axis(relative=False, share=True)
    ForestAxis(title='disparity (points)', hundredths=True)
    """
    if relative:
        return ForestAxis("ratio")
    return ForestAxis("disparity (points)", hundredths=True) if share else ForestAxis("disparity")


def forest(
    lines: Sequence[ForestLine],
    *,
    title: str,
    subtitle: str,
    axis: ForestAxis,
    reference: Sequence[float],
    most: int = 40,
    loud: Collection[str] = (),
) -> "ChartType":
    """Groups down the page, intervals across, dashed rules at the values to compare with.

    Of more than ``most`` groups those that exceed a limit, or are ``loud``, and the furthest from
    the middle of the rules are drawn.
    """
    import altair as alt

    shown = _furthest(something(lines), reference, most, loud)
    records = [
        {
            "group": f"{line.group} (n = {line.n:,})",
            **interval,
            **_open(line),
            "reading": line.colour,
        }
        for line, interval in zip(shown, _intervals(shown, lines), strict=True)
    ]
    kinds = [kind for kind in _COLOURS if any(r["reading"] == kind for r in records)]
    colours = [_COLOURS[kind] for kind in kinds]
    base = alt.Chart(data(records)).encode(
        y=alt.Y("group:N", sort=None, title=None),
        color=alt.Color("reading:N", scale=alt.Scale(domain=kinds, range=colours)),
        tooltip=["group:N", "estimate:Q", "lower:Q", "upper:Q", "reading:N"],
    )
    shapes = alt.Scale(domain=kinds, range=[_SHAPES[colour] for colour in colours])
    chart = _layers(base, alt.Shape("reading:N", scale=shapes), 45, axis, reference)
    if any(line.open is not None for line in shown):
        wide = base.transform_filter("isValid(datum.lowest)").mark_rule(strokeWidth=8, opacity=0.35)
        chart = alt.layer(wide.encode(x="lowest:Q", x2="highest:Q"), chart)
    sized = chart.properties(width=WIDTH, height=ROW * len(records))
    return styled(sized, title, subtitle + _cut(len(lines), len(shown)))


def forest_pair(
    series: Mapping[str, Sequence[ForestLine]],
    *,
    title: str,
    subtitle: str,
    axis: ForestAxis,
    reference: Sequence[float],
    most: int = 40,
) -> "ChartType":
    """Two sets of intervals on one axis, told apart by colour, shape and height in the line."""
    import altair as alt

    names = list(series)
    order = [line.group for line in _furthest(something(series[names[0]]), reference, most)]
    records = [
        {"group": line.group, "n": line.n, **interval, "method": name}
        for name, lines in series.items()
        for line, interval in zip(lines, _intervals(lines, lines), strict=True)
        if line.group in set(order)
    ]
    base = alt.Chart(data(records)).encode(
        y=alt.Y("group:N", sort=order, title=None),
        yOffset=alt.YOffset("method:N", sort=names),
        color=alt.Color("method:N", scale=alt.Scale(domain=names, range=[CALM, ALERT])),
        tooltip=["group:N", "n:Q", "method:N", "estimate:Q", "lower:Q", "upper:Q"],
    )
    shapes = alt.Scale(domain=names, range=["circle", "diamond"])
    chart = _layers(base, alt.Shape("method:N", scale=shapes), 35, axis, reference)
    sized = chart.properties(width=WIDTH, height=2 * ROW * len(order))
    return styled(sized, title, subtitle + _cut(len(series[names[0]]), len(order)))


def reading(lower: float | None, upper: float | None, even: float) -> str:
    """What an interval says about the value that everybody would have if all were alike."""
    if lower is not None and lower > even:
        return ABOVE
    if upper is not None and upper < even:
        return BELOW
    return NEITHER


def _furthest(
    lines: Sequence[ForestLine], reference: Sequence[float], most: int, loud: Collection[str] = ()
) -> list[ForestLine]:
    """What exceeds its limit and what lies furthest out, from the highest down."""
    middle = sum(reference) / len(reference) if reference else 0.0

    def order(line: ForestLine) -> tuple[bool, float]:
        exceeds = line.group in loud or line.colour == str(Verdict.EXCEEDED)
        return not exceeds, -abs(line.centre - middle)

    furthest = sorted(lines, key=order)[:most]
    return sorted(furthest, key=lambda line: -line.centre)


def _intervals(shown: Sequence[ForestLine], lines: Sequence[ForestLine]) -> list[dict[str, float]]:
    known = [x for line in lines for x in (line.centre, line.lower, line.upper) if x is not None]
    return [
        {
            "estimate": line.centre,
            "lower": min(known) if line.lower is None else line.lower,
            "upper": max(known) if line.upper is None else line.upper,
        }
        for line in shown
    ]


def _open(line: ForestLine) -> dict[str, float]:
    return {} if line.open is None else {"lowest": line.open[0], "highest": line.open[1]}


def _layers(
    base: "ChartType", shape: "alt.Shape", size: int, axis: ForestAxis, reference: Sequence[float]
) -> "ChartType":
    """Dashed rules, then the intervals, then the estimates, each over the one before."""
    import altair as alt

    spans = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("lower:Q", title=axis.title, axis=axis.labels), x2="upper:Q"
    )
    points = base.mark_point(filled=True, size=size, opacity=1)
    below = [rules("x", reference)] if reference else []
    return alt.layer(*below, spans, points.encode(x="estimate:Q", shape=shape))


def _cut(number: int, shown: int) -> str:
    return "" if number <= shown else f"; the {shown} furthest of {number:,} groups"


# --- Lattice: groups by how many attributes they combine, flagged ones filled in ---

_BOX_WIDTH, _BOX_HEIGHT, _BETWEEN, _GAP = 190, 38, 12, 60
#: Boxes side by side; a printed page is no wider.
_ACROSS = 4
#: Groups up to which a picture of boxes can be read.
MOST_BOXES = 20


def lattice(
    rows: "Sequence[FlaggedGroup]", *, said: Callable[[float], str], title: str, subtitle: str
) -> "ChartType":
    """Boxes joined from each group to the groups that refine it by one more attribute.

    ``said`` puts a disparity into words.
    """
    import altair as alt

    chosen = something(rows)
    boxes = _place(chosen, said)
    lines = _links(chosen, boxes)
    width = max(box["right"] for box in boxes) + _BETWEEN / 2
    height = max(box["bottom"] for box in boxes) + _BOX_HEIGHT / 2
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, width]))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[height, 0]))
    links = alt.Chart(data(lines)).mark_rule(color="#c4c4c4").encode(x=x, y=y, x2="x2:Q", y2="y2:Q")
    base = alt.Chart(data(boxes)).encode(tooltip=["group:N", "n:Q", "text:N"])
    fill = alt.condition("datum.flagged", alt.value(ALERT), alt.value("#f4f4f4"))
    rects = base.mark_rect(stroke="#8a8a8a", cornerRadius=3).encode(
        x=alt.X("left:Q", axis=None),
        x2="right:Q",
        y=alt.Y("top:Q", axis=None),
        y2="bottom:Q",
        color=fill,
    )
    ink = alt.condition("datum.flagged", alt.value("white"), alt.value(INK))
    names = base.mark_text(fontSize=10, dy=-6, limit=_BOX_WIDTH - 20).encode(
        x=x, y=y, text="group:N", color=ink
    )
    values = base.mark_text(fontSize=10, dy=8).encode(x=x, y=y, text="text:N", color=ink)
    chart = (links + rects + names + values).properties(width=width, height=height)
    return styled(chart, title, subtitle)


def _refines(fine: "FlaggedGroup", broad: "FlaggedGroup") -> bool:
    return broad.where.items() <= fine.where.items() and len(broad.where) < len(fine.where)


def _place(rows: "Sequence[FlaggedGroup]", said: Callable[[float], str]) -> list[Record]:
    layers: dict[int, list[FlaggedGroup]] = {}
    for row in rows:
        layers.setdefault(len(row.where), []).append(row)
    across = min(_ACROSS, max(2, *map(len, layers.values())))
    boxes, y = [], float(_BOX_HEIGHT)
    for _, layer in sorted(layers.items()):
        for start in range(0, len(layer), across):
            line = layer[start : start + across]
            step = across * (_BOX_WIDTH + _BETWEEN) / len(line)
            for i, row in enumerate(line):
                shown = "" if row.disparity is None else f"{said(row.disparity)}, n = {row.n:,}"
                boxes.append(_box(row, shown, (i + 0.5) * step, y))
            y += _BOX_HEIGHT + _BETWEEN
        y += _GAP - _BETWEEN
    return boxes


def _box(row: "FlaggedGroup", text: str, x: float, y: float) -> Record:
    return {
        "group": row.group,
        "n": row.n,
        "text": text,
        "flagged": row.flagged,
        "x": x,
        "y": y,
        "left": x - _BOX_WIDTH / 2,
        "right": x + _BOX_WIDTH / 2,
        "top": y - _BOX_HEIGHT / 2,
        "bottom": y + _BOX_HEIGHT / 2,
    }


def _links(rows: "Sequence[FlaggedGroup]", boxes: Sequence[Record]) -> list[dict[str, float]]:
    at = {box["group"]: box for box in boxes}
    return [
        {
            "x": at[broad.group]["x"],
            "y": at[broad.group]["bottom"],
            "x2": at[fine.group]["x"],
            "y2": at[fine.group]["top"],
        }
        for broad in rows
        for fine in rows
        if _refines(fine, broad) and len(fine.where) == len(broad.where) + 1
    ]


# --- Bound by width: for ranges of a number, the worst bound over all ranges of each width ---


def width_curve(
    points: Sequence[dict[str, float]], *, title: str, subtitle: str, axis: str, attribute: str
) -> "ChartType":
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


#: Groups that are drawn; the table has more.
MOST = 24
#: Room at either end of a track, in per cent, so that no mark is cut.
_EDGE = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One group: its estimate and, if there is one, its interval."""

    group: str
    n: int
    value: float
    lower: float | None = None
    upper: float | None = None
    open: tuple[float, float] | None = None
    """What unknown people alone leave open, drawn wide inside the interval."""
    order: tuple[bool, float]
    """How telling it is: what `words.telling_order` says of its row."""
    loud: bool = False
    """Whether it is flagged or exceeds its limit."""
    settled: bool = True
    """Whether it is told apart from its target; grey otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What the places on a track mean."""

    low: float
    high: float
    relative: bool

    def place(self, value: float) -> float:
        """Where a value stands, in per cent of the track."""
        low, high, at = (self._plain(x) for x in (self.low, self.high, value))
        share = (at - low) / (high - low)
        return round(_EDGE + (100 - 2 * _EDGE) * min(max(share, 0.0), 1.0), 2)

    def _plain(self, value: float) -> float:
        # half as much is as far as twice as much
        return math.log(max(value, 1e-3)) if self.relative else value


def chosen(dots: Sequence[Dot], most: int = MOST) -> list[Dot]:
    """The most telling groups, from the lowest to the highest.

    >>> cases = [("a", 0.1), ("b", -0.3), ("c", 0.0)]
    >>> dots = [Dot(group=g, n=9, value=v, order=(True, -abs(v))) for g, v in cases]
    >>> [dot.group for dot in chosen(dots, most=2)]
    ['b', 'a']
    """
    telling = sorted(dots, key=lambda dot: (dot.order, dot.group))
    return sorted(telling[:most], key=lambda dot: (dot.value, dot.group))


def ranked(
    dots: Sequence[Dot],
    *,
    even: float,
    limits: Sequence[float],
    relative: bool,
    said: Callable[[float], str],
    words: tuple[str, str, str],
    intervals: str = "",
    ignorance: str = "",
) -> str:
    """The chart as a piece of a page; empty if there is nothing to draw.

    ``even`` is where there is no disparity, ``limits`` what is tolerated, ``said`` puts a value
    into words, and ``words`` say what loud, settled and other groups are.

    >>> dots = [Dot(group="a <b>", n=9, value=0.1, order=(True, 0.0))]
    >>> made = ranked(dots, even=0, limits=[], relative=False, said=str, words=("x", "y", "z"))
    >>> "a &lt;b&gt;" in made, "<script" in made
    (True, False)
    """
    shown = chosen(dots)
    if not shown:
        return ""
    scale = _scale(shown, even, limits, relative)
    rows = "".join(_row(dot, scale, even, limits, said) for dot in shown)
    axis = "".join(tick.drawn() for tick in _ticks(scale, even, limits, said))
    return (
        f'<div class="dots">{_STYLE}{rows}'
        f'<div class="dots-row dots-axis"><span></span><span>{axis}</span><span></span></div>'
        f"{_legend(shown, even, words, intervals, ignorance, bool(limits))}</div>"
    )


def _scale(shown: Sequence[Dot], even: float, limits: Sequence[float], relative: bool) -> Scale:
    ends = [x for dot in shown for x in (dot.lower, dot.upper) if x is not None]
    known = [*(dot.value for dot in shown), even, *limits, *ends]
    known = [x for x in known if math.isfinite(x)]
    low, high = min(known), max(known)
    if relative:
        # a ratio of 0 has no place on a scale of ratios, and a thousandfold dwarfs all others
        low, high = max(low, 0.05), min(max(high, 1.05), 20.0)
        return Scale(low=min(low, 0.95), high=high, relative=True)
    return Scale(low=low, high=high if high > low else low + 1.0, relative=False)


#: Digits that fit under a track on a phone, and on paper or a large screen.
_NARROW, _WIDE = 28, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tick:
    """A value that is named below the tracks."""

    at: float
    text: str
    narrow: bool
    """Whether there is room for it on a phone."""

    def drawn(self) -> str:
        """Centred below its place, but never beyond the ends of the track."""
        half = f"{len(self.text) / 2:g}ch"
        wide = "" if self.narrow else ' class="dots-wide"'
        place = f"left:clamp({half},{self.at}%,100% - {half})"
        return f'<span{wide} style="{place}">{escape(self.text)}</span>'

    def clear_of(self, other: "_Tick", track: int) -> bool:
        """Whether words stand apart on a track of so many digits."""
        own, its = len(self.text) / 2, len(other.text) / 2
        apart = abs(
            min(max(self.at / 100 * track, own), track - own)
            - min(max(other.at / 100 * track, its), track - its)
        )
        return apart >= own + its + 1


def _ticks(
    scale: Scale, even: float, limits: Sequence[float], said: Callable[[float], str]
) -> list[_Tick]:
    """What is named below the tracks, the even point and limits first: no words overlap."""
    values = (even, *limits, scale.low, scale.high)
    found: list[_Tick] = []
    for narrow, track in ((True, _NARROW), (False, _WIDE)):
        for value in values:
            text = said(value) if value or scale.relative else "0"
            tick = _Tick(at=scale.place(value), text=text, narrow=narrow)
            if all(tick.clear_of(other, track) for other in found):
                found.append(tick)
    return sorted(found, key=lambda tick: tick.at)


def _row(
    dot: Dot, scale: Scale, even: float, limits: Sequence[float], said: Callable[[float], str]
) -> str:
    tone = "dots-quiet" if not dot.settled else "dots-over" if dot.value > even else "dots-under"
    at = scale.place(dot.value)
    low = scale.place(scale.low if dot.lower is None else dot.lower)
    high = scale.place(scale.high if dot.upper is None else dot.upper)
    span = "" if dot.lower is None and dot.upper is None else _line(low, high, "dots-span")
    if dot.open is not None:
        span += _line(scale.place(dot.open[0]), scale.place(dot.open[1]), "dots-open")
    mark = (
        f'<svg x="{at}%" y="50%" overflow="visible"><path d="M0-6L6 0L0 6L-6 0Z"/></svg>'
        if dot.loud
        else f'<circle cx="{at}%" cy="50%" r="4"/>'
    )
    middle = scale.place(even)
    rules = "".join(
        f'<line class="dots-limit" x1="{x}%" x2="{x}%" y1="0" y2="100%"/>'
        for x in map(scale.place, limits)
    )
    name = f"{escape(clipped(tidy(dot.group), 90))} <small>n&#8239;=&#8239;{dot.n:,}</small>"
    return (
        f'<div class="dots-row {tone}"><span class="dots-name"><bdi>{name}</bdi></span>'
        f'<span class="dots-track"><svg aria-hidden="true">'
        f'<line class="dots-even" x1="{middle}%" x2="{middle}%" y1="0" y2="100%"/>{rules}'
        f"{span}{mark}</svg></span>"
        f'<span class="dots-said">{escape(said(dot.value))}</span></div>'
    )


def _line(low: float, high: float, name: str) -> str:
    return f'<line class="{name}" x1="{low}%" x2="{high}%" y1="50%" y2="50%"/>'


def _legend(
    shown: Sequence[Dot],
    even: float,
    words: tuple[str, str, str],
    intervals: str,
    ignorance: str,
    limited: bool,
) -> str:
    loud, settled, quiet = words
    kinds = [
        ("dots-over", "◆", f"{loud}, above", lambda d: d.loud and d.settled and d.value > even),
        ("dots-under", "◆", f"{loud}, below", lambda d: d.loud and d.settled and d.value <= even),
        ("dots-over", "●", f"{settled}, above", lambda d: _calm(d) and d.value > even),
        ("dots-under", "●", f"{settled}, below", lambda d: _calm(d) and d.value <= even),
        ("dots-quiet", "●", quiet, lambda d: not d.settled),
    ]
    parts = [
        f'<span class="{tone}"><b aria-hidden="true">{sign}</b> {escape(text)}</span>'
        for tone, sign, text, holds in kinds
        if text and any(map(holds, shown))
    ]
    parts += [f"<span>― {escape(intervals)}</span>"] if intervals else []
    parts += [f"<span>▬ {escape(ignorance)}</span>"] if ignorance else []
    parts += ["<span>┆ the limit</span>"] if limited else []
    return f'<p class="dots-legend">{" ".join(parts)}</p>'


def _calm(dot: Dot) -> bool:
    return dot.settled and not dot.loud


# the colours of a page where there is one, and a notebook's otherwise
_STYLE = """<style>
.dots { font-size: .9rem; line-height: 1.3; max-width: 52rem }
.dots-row { display: grid; gap: .6rem; break-inside: avoid; min-height: 1.3rem;
  grid-template-columns: minmax(7rem, 42%) 1fr 6rem }
.dots-row + .dots-row { border-top: 1px solid var(--line, #8883) }
.dots-name, .dots-said { align-self: center }
.dots-name { overflow-wrap: anywhere; text-align: right }
.dots-name small { color: var(--soft, #777); white-space: nowrap }
.dots-said { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.dots-track { position: relative; min-height: 1.3rem }
.dots-track > svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible }
.dots-over { --dot: var(--high, #a4501f) }
.dots-under { --dot: var(--low, #2b66a3) }
.dots-quiet { --dot: var(--faint, #7b818a) }
.dots-track circle, .dots-track path { fill: var(--dot) }
.dots-span { stroke: var(--dot); stroke-width: 2 }
.dots-open { stroke: var(--dot); stroke-width: 8; stroke-opacity: .35 }
.dots-even { stroke: var(--soft, #777); stroke-width: 1 }
.dots-limit { stroke: var(--soft, #777); stroke-width: 1; stroke-dasharray: 3 3 }
.dots-row.dots-axis { border-top: 1px solid var(--soft, #777); height: 1.5rem }
.dots-axis > span { position: relative; height: 100% }
.dots-axis > span > span { position: absolute; transform: translateX(-50%); white-space: nowrap;
  color: var(--soft, #777); font-size: .8rem }
@media screen and (max-width: 52rem) { .dots-axis .dots-wide { display: none } }
@media (max-width: 40rem) {
  /* names above their tracks, which have little enough room */
  .dots-row { grid-template-columns: 1fr 6rem; row-gap: 0; padding: .15rem 0 }
  .dots-row > .dots-name { grid-column: 1 / -1; text-align: left }
  .dots-axis > span:first-child { display: none }
}
@media print {
  /* names on one line leave room for the chart below the words that belong to it */
  .dots { font-size: .75rem; line-height: 1.2 }
  .dots-row { grid-template-columns: 45% 1fr 5rem; min-height: 1rem }
  .dots-track { min-height: 1rem }
}
.dots-legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: .6rem 0 0;
  font-size: .85rem }
.dots-legend b { color: var(--dot) }
</style>"""
