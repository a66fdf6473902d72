"""Bounds held against what is possible at all, and against a tolerance."""

import math
from collections.abc import Iterable
from typing import Any, Literal

from equipoise.findings.verdict import Verdict
from equipoise.findings.words import disparity_text

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


def furthest(rows: Iterable[Any], even: float) -> tuple[Any | None, Any | None]:
    """The row shown to lie furthest above ``even``, and the one shown to lie furthest below.

    Rows are ranked by the bound nearest to ``even``, not by the estimate: the largest of many
    estimates is mostly that of a small group.
    """
    rows = list(rows)
    above = [row for row in rows if row.lower is not None and row.lower > even]
    below = [row for row in rows if row.upper is not None and row.upper < even]
    return (
        max(above, key=lambda row: row.lower, default=None),
        min(below, key=lambda row: row.upper, default=None),
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
    ('shown', 'shown not')
    """
    low, high = allowed
    inside_low = low is None or (lower is not None and lower > low)
    inside_high = high is None or (upper is not None and upper < high)
    if inside_low and inside_high:
        return Verdict.SHOWN
    beyond_high = high is not None and lower is not None and lower >= high
    beyond_low = low is not None and upper is not None and upper <= low
    return Verdict.SHOWN_NOT if beyond_high or beyond_low else Verdict.UNDETERMINED


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
