"""How numbers, limits and verdicts read in sentences."""

import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from equipoise._validate import known_name
from equipoise.errors import EquipoiseError

if TYPE_CHECKING:
    from equipoise.findings.finding import Finding

#: Why there is nothing to say of a group that others are compared with.
SELF_TARGET = "the group is its own target"

# --- The three answers to a claim with a tolerance ---


class Verdict(StrEnum):
    """What the data show about a claim. Absence of evidence has a name of its own.

    >>> str(Verdict.EXCEEDED)
    'exceeded'
    """

    KEPT = "kept"
    """The claim holds, at the stated level."""
    EXCEEDED = "exceeded"
    """The claim fails, at the stated level."""
    UNDETERMINED = "undetermined"
    """The data show neither."""


def together(verdicts: Iterable[Verdict | None]) -> Verdict:
    """One verdict for several groups or findings: a single violation outweighs everything else.

    >>> together([Verdict.KEPT, None]), together([None])
    (<Verdict.KEPT: 'kept'>, <Verdict.UNDETERMINED: 'undetermined'>)
    """
    # What has no verdict weighs nothing: flags that found none do not show fairness.
    said = {verdict for verdict in verdicts if verdict is not None}
    if Verdict.EXCEEDED in said:
        return Verdict.EXCEEDED
    return Verdict.KEPT if said == {Verdict.KEPT} else Verdict.UNDETERMINED


# --- How numbers read in sentences ---


def percent(value: float, digits: int = 1) -> str:
    """A share as a percentage.

    >>> percent(0.3027)
    '30.3 %'
    """
    return f"{100 * value:.{digits}f} %"


def level_text(level: float) -> str:
    """A confidence level, never rounded up to certainty.

    >>> level_text(0.95), level_text(0.999)
    ('95 %', '99.9 %')
    """
    return f"{100 * level:.10g} %"


def amount(value: float | None, share: bool) -> str:
    """A metric's value: a percentage if it is a share, a plain number otherwise.

    >>> amount(0.25, True), amount(12.3456, False), amount(None, True)
    ('25.0 %', '12.35', 'not available')
    """
    if value is None:
        return "not available"
    return percent(value) if share else f"{value:.4g}"


def difference(value: float, share: bool) -> str:
    """A disparity: percentage points if the metric is a share, a plain number otherwise.

    >>> difference(0.0547, True), difference(-1.5, False)
    ('+5.5 points', '-1.5')
    """
    # adding zero turns a rounded -0.0 into 0.0
    return f"{round(100 * value, 1) + 0.0:+.1f} points" if share else f"{value + 0.0:+.4g}"


def disparity_text(value: float, relative: bool, share: bool) -> str:
    """A disparity, be it a ratio or a difference.

    >>> disparity_text(1.234, relative=True, share=True), disparity_text(0.1, False, share=True)
    ('1.23', '+10.0 points')
    """
    return f"{value:.2f}" if relative else difference(value, share)


def p_text(p: float | None) -> str:
    """A p-value after its name; none is zero, but some are too small to be written.

    >>> p_text(0.0123), p_text(0.0)
    ('= 0.012', '< 1e-300')
    """
    if p is None:
        return "unknown"
    return f"= {p:.2g}" if p >= 1e-300 else "< 1e-300"


def distance(value: float | None, relative: bool) -> float:
    """How far a disparity is from none; half as much is as far as twice as much.

    >>> distance(-0.2, relative=False), distance(0.5, relative=True) == distance(2.0, True)
    (0.2, True)
    """
    if value is None:
        return 0.0
    return abs(value) if not relative else abs(math.log(max(value, 1e-12)))


#: The smallest p-value that is told from nothing.
_LEAST = 1e-300


def telling_order(row: object, relative: bool) -> tuple[bool, float]:
    """Where a row stands among those that say most: violations, then strength of evidence.

    Not by size alone: the furthest of many small groups are those that chance moved furthest.
    """
    violates = getattr(row, "flagged", False) or getattr(row, "alarm", False)
    violates = violates or getattr(row, "verdict", None) is Verdict.EXCEEDED
    told, p = getattr(row, "evidence", None), getattr(row, "p", None)
    far = distance(getattr(row, "disparity", None), relative)
    if told is not None:
        return not violates, -abs(told)
    if p is not None:
        # by powers of ten, since next to 1 all tiny p-values would be the same number
        return not violates, math.log(max(p, _LEAST)) - far / 1e9
    low, high = getattr(row, "lower", None), getattr(row, "upper", None)
    if low is None or high is None:
        return not violates, 0.0 if hasattr(row, "p") or hasattr(row, "lower") else -far
    return not violates, -far / max(high - low, 1e-12)


def apart(value: float, relative: bool, share: bool) -> str:
    """How far above or below something a disparity is, to be followed by its name.

    >>> apart(-0.256, relative=False, share=True), apart(1.5, relative=True, share=True)
    ('25.6 points below', '1.50 times')
    >>> apart(0.0, relative=False, share=True), apart(1e-4, relative=False, share=True)
    ('the same as', 'less than 0.1 points above')
    """
    # sums in another order leave a difference where there is none
    if math.isclose(value, float(relative), rel_tol=1e-12, abs_tol=1e-12):
        return "the same as"
    if relative:
        return f"{value:.2f} times"
    way = "below" if value < 0 else "above"
    if rounds_away(value, share):
        return f"less than 0.1 points {way}"
    return f"{unsigned(value, share)} {way}"


def rounds_away(value: float, share: bool) -> bool:
    """Whether a difference is too small to be written in points; plain numbers never are."""
    return share and round(100 * abs(value), 1) == 0


def ends_text(
    lower: float | None, upper: float | None, said: Callable[[float], str], otherwise: str
) -> str:
    """The bounds there are, or what to say if there is none.

    >>> ends_text(0.25, None, "{:+.1f}".format, "no bound")
    'at least +0.2'
    """
    ends = [
        *([] if lower is None else [f"at least {said(lower)}"]),
        *([] if upper is None else [f"at most {said(upper)}"]),
    ]
    return " and ".join(ends) or otherwise


def unsigned(value: float, share: bool) -> str:
    """The size of a disparity, without its sign.

    >>> unsigned(-0.05, True)
    '5.0 points'
    """
    return difference(abs(value), share).removeprefix("+")


def is_change(claim: Mapping[str, object]) -> bool:
    """Whether the metric of a claim is a difference itself: how far another metric moved."""
    metric = claim.get("metric")
    return isinstance(metric, Mapping) and metric.get("kind") == "change"


# --- How the values and heads of tables read ---

MISSING = "–"


def cell_text(value: object) -> str:
    """One value of a table.

    >>> cell_text(0.123456), cell_text(None), cell_text(1234), cell_text(True)
    ('0.123', '–', '1,234', 'yes')
    """
    if value is None or value == "":
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        # Anything smaller would read as 0.000, which it is not.
        return f"{value:,.3f}" if 0.0005 <= abs(value) < 1e5 or value == 0 else f"{value:.3g}"
    return str(value)


#: Kinds of findings whose tables are about shares, and may be read in per cent and points.
_IN_POINTS = (
    "bounds", "flags", "certificates", "description", "power", "repair", "joint_test", "joint",
    "shift", "monotone shift", "calibration",
)  # fmt: skip
#: Columns of numbers that count people or rows, and need no fractions of them.
_COUNTED = ("effective", "people")
_DISPARITIES = (
    "disparity",
    "disparity_before",
    "lower",
    "upper",
    "region_lower",
    "region_upper",
    "unadjusted",
    "explained",
    "lowest",
    "highest",
    "regressed",
    "change",
    "above",
    "below",
)


def unit_of(finding: "Finding", column: str) -> str:
    """What a column of numbers is counted in: "%", "points", "times", "rows" or nothing."""
    share = bool(getattr(finding, "share", False))
    if column in _COUNTED:
        return "rows"
    if finding.kind not in _IN_POINTS:
        return ""
    ends_of_value = finding.kind == "description" and column in ("lower", "upper")
    changed = column not in ("before", "after") and is_change(finding.claim)
    if column in ("value", "target", "before", "after") or ends_of_value:
        return ("points" if changed else "%") if share else ""
    if column not in _DISPARITIES:
        return ""
    if getattr(finding, "relative", False) or finding.claim.get("kind") == "ratio":
        return "times"
    return "points" if share else ""


def unit_text(value: object, unit: str) -> str:
    """One value of a table in its unit, which the head of the column names.

    >>> unit_text(0.4471, "%"), unit_text(-0.256, "points"), unit_text(None, "points")
    ('44.7', '-25.6', '–')
    """
    if not unit or not isinstance(value, float):
        return cell_text(value)
    if unit == "times":
        return f"{value:.2f}"
    if unit == "rows":
        return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"
    # adding zero turns a rounded -0.0 into 0.0
    rounded = round(100 * value, 1) + 0.0
    return f"{rounded:+.1f}" if unit == "points" else f"{rounded:.1f}"


def head_text(column: str, unit: str) -> str:
    """The head of a column, with its unit.

    >>> head_text("p_adjusted", ""), head_text("disparity", "points")
    ('p adjusted', 'disparity (points)')
    """
    return column.replace("_", " ") + (f" ({unit})" if unit else "")


def plural(number: int, one: str, many: str | None = None) -> str:
    """A count with its noun.

    >>> plural(1, "group"), plural(1234, "row")
    ('1 group', '1,234 rows')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def listed(parts: Sequence[str]) -> str:
    """Some things in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else "".join(parts)


def be(number: int) -> str:
    """Whether so many things "are", or one "is".

    >>> be(1), be(0)
    ('is', 'are')
    """
    return "is" if number == 1 else "are"


#: What rows are called that are the other half of a pair.
PARTNERS = "counted with their partners"
#: Rows that have no true label: they are not left out, since their cheap label counts.
CHEAP_ONLY = "with a cheap label only"
#: What is said of rows that are not left out.
COUNTED = (PARTNERS, CHEAP_ONLY)


def left_out(excluded: Mapping[str, int], ineligible: int) -> str:
    """A sentence on the rows that were not used.

    >>> left_out({"missing label": 3}, 10)
    '3 rows were left out (3 missing label); the metric does not count on 10 others.'
    >>> left_out({PARTNERS: 4}, 0)
    'Rows count as 4 pairs. No row was left out.'
    """
    if PARTNERS in excluded:
        others = {reason: rows for reason, rows in excluded.items() if reason != PARTNERS}
        pairs = plural(excluded[PARTNERS], "pair")
        return f"Rows count as {pairs}. {left_out(others, ineligible)}"
    gone = {reason: rows for reason, rows in excluded.items() if reason != CHEAP_ONLY}
    lost = sum(gone.values())
    reasons = ", ".join(f"{rows:,} {reason}" for reason, rows in gone.items())
    were = "was" if lost == 1 else "were"
    first = f"{plural(lost, 'row')} {were} left out ({reasons})" if lost else "No row was left out"
    if not ineligible:
        return f"{first}."
    other = plural(ineligible, "other" if lost else "row")
    return f"{first}; the metric does not count on {other}."


# --- Text that comes from tables: made fit to be shown, whatever it holds ---

LONG = 120
"""Names of more characters are shown in part."""

# Marks that turn the direction of what follows could make a page read as it was not written.
_TURNING = {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def tidy(text: str) -> str:
    """One line without control characters, whatever the text held.

    >>> tidy(f"a{chr(10)}b{chr(0)}c")
    'a b�c'
    """
    flat = " ".join(text.split())
    return "".join("\ufffd" if _is_control(sign) else sign for sign in flat)


def clipped(text: str, most: int = LONG) -> str:
    """A long text by its beginning and its end, so that similar names stay apart.

    >>> clipped("abcdefghij", 8)
    'abcd…hij'
    """
    if len(text) <= most:
        return text
    tail = most * 3 // 8
    return f"{text[: most - tail - 1]}…{text[-tail:]}"


def _is_control(sign: str) -> bool:
    return unicodedata.category(sign) in ("Cc", "Cs") or sign in _TURNING


# --- Bounds held against what is possible at all, and against a tolerance ---

Side = Literal["lower", "upper", "both"]
Ends = tuple[float | None, float | None]
"""A lowest and a highest value; None where there is no end."""


def clamp(bound: float | None, limits: Ends) -> float | None:
    """A bound moved into the range of what is possible at all.

    >>> clamp(-1.3, (-1.0, 1.0)), clamp(math.inf, (None, None))
    (-1.0, None)
    """
    # A bound at infinity excludes nothing, and JSON has no such number.
    if bound is None or not math.isfinite(bound):
        return None
    low, high = limits
    if low is not None:
        bound = max(bound, low)
    return min(bound, high) if high is not None else bound


def says_something(lower: float | None, upper: float | None, limits: Ends) -> bool:
    """Whether bounds exclude anything that was not impossible anyway.

    >>> says_something(-1.0, 0.2, (-1.0, 1.0)), says_something(-1.0, 1.0, (-1.0, 1.0))
    (True, False)
    """
    low, high = limits
    says_low = lower is not None and (low is None or lower > low)
    says_high = upper is not None and (high is None or upper < high)
    return says_low or says_high


class HasEnds(Protocol):
    """A row with bounds."""

    @property
    def lower(self) -> float | None:
        """Lower bound; None if there is none."""

    @property
    def upper(self) -> float | None:
        """Upper bound; None if there is none."""


Bounded = TypeVar("Bounded", bound=HasEnds)


def furthest(rows: Iterable[Bounded], even: float) -> tuple[Bounded | None, Bounded | None]:
    """The row shown to lie furthest above ``even``, and the one shown to lie furthest below.

    Rows are ranked by the bound nearest to ``even``, not by the estimate: the largest of many
    estimates is mostly that of a small group.
    """
    ends = [(row.lower, row.upper, row) for row in rows]
    above = [(low, row) for low, _, row in ends if low is not None and low > even]
    below = [(high, row) for _, high, row in ends if high is not None and high < even]
    return (
        max(above, key=itemgetter(0), default=(even, None))[1],
        min(below, key=itemgetter(0), default=(even, None))[1],
    )


def tolerated(tolerance: float, side: Side, relative: bool) -> Ends:
    """The open range of disparities that a tolerance allows.

    >>> tolerated(0.1, "both", relative=False), tolerated(0.8, "both", relative=True)
    ((-0.1, 0.1), (0.8, 1.25))
    """
    if side == "lower":
        return tolerance, None
    if side == "upper":
        return None, tolerance
    # A ratio turned over is the same comparison seen from the other side.
    return (tolerance, 1 / tolerance) if relative else (-tolerance, tolerance)


def judged(lower: float | None, upper: float | None, allowed: Ends) -> Verdict:
    """What bounds show of the claim that a disparity lies inside an open range.

    An end of the range itself is not allowed: bounds that touch it from within show nothing, and
    bounds that begin there show a violation.

    >>> str(judged(-0.02, 0.06, (-0.1, 0.1))), str(judged(0.1, 0.3, (-0.1, 0.1)))
    ('kept', 'exceeded')
    """
    low, high = allowed
    inside_low = low is None or (lower is not None and lower > low)
    inside_high = high is None or (upper is not None and upper < high)
    if inside_low and inside_high:
        return Verdict.KEPT
    beyond_high = high is not None and lower is not None and lower >= high
    beyond_low = low is not None and upper is not None and upper <= low
    return Verdict.EXCEEDED if beyond_high or beyond_low else Verdict.UNDETERMINED


def tolerance_words(tolerance: float, side: Side, relative: bool, share: bool) -> str:
    """The tolerance as it reads in a sentence.

    >>> tolerance_words(0.1, "both", relative=False, share=True)
    'between -10.0 points and +10.0 points'
    """
    low, high = tolerated(tolerance, side, relative)
    said = [None if end is None else disparity_text(end, relative, share) for end in (low, high)]
    if low is None:
        return f"below {said[1]}"
    if high is None:
        return f"above {said[0]}"
    return f"between {said[0]} and {said[1]}"


# --- Method notes: what each kind of finding answers, how, and when not to use it ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a reader needs to know of one kind of finding."""

    kind: str
    """The kind of finding."""
    title: str
    """Its name in plain words."""
    question: str
    """The question it answers."""
    computed: str
    """What is computed, in a few sentences."""
    reading: str
    """How to read it."""
    avoid: str
    """When not to use it."""
    paper: str
    """Where the method comes from."""


def _read(text: str) -> dict[str, Note]:
    """The notes of a text: a heading for each kind, then its fields; further lines are indented."""
    notes = {}
    for part in text.split("# ")[1:]:
        kind, rest = part.split("\n", 1)
        lines = rest.replace("\n    ", " ").strip().split("\n")
        fields = dict(line.split(": ", 1) for line in lines)
        notes[kind] = Note(kind=kind, **fields)
    return notes


NOTES: Mapping[str, Note] = MappingProxyType(
    _read(files("equipoise.findings").joinpath("notes.txt").read_text(encoding="utf-8"))
)
"""The note of each kind of finding."""


def note_of(kind: str) -> Note:
    """The note of a kind of finding; an error says which kinds there are.

    >>> note_of("flags").title
    'Groups that are flagged'
    """
    spelled = {_plain(name): name for name in NOTES}
    name = spelled.get(_plain(str(kind)), str(kind))
    return NOTES[known_name("Kind of finding", name, NOTES, EquipoiseError)]


def _plain(name: str) -> str:
    return name.replace("_", " ").replace("-", " ").strip().lower()
