"""Groups ranked by disparity, drawn as plain HTML and SVG: no script, no library, any width.

Names and numbers are text of the page, so that they stay legible on a phone and in print; only the
tracks between them are pictures, whose places are percentages.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from equipoise.findings.words import clipped, tidy

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
    axis = "".join(
        f'<span style="left:{scale.place(x)}%">{escape(said(x))}</span>'
        for x in _ticks(scale, even, limits)
    )
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


def _ticks(scale: Scale, even: float, limits: Sequence[float]) -> list[float]:
    """Values that are named below the tracks: no two so close that their words overlap."""
    made: list[float] = []
    for value in (even, *limits, scale.low, scale.high):
        at = scale.place(value)
        if all(abs(at - scale.place(other)) >= 14 for other in made):
            made.append(value)
    return sorted(made)


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
  grid-template-columns: minmax(7rem, 36%) 1fr 6rem }
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
.dots-legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: .6rem 0 0;
  font-size: .85rem }
.dots-legend b { color: var(--dot) }
</style>"""
