"""How levels and ranges read in English."""

from typing import Any

from equipoise.claims.dimension import Binned, Condition


def number_text(value: float) -> str:
    """A number as people write it: no trailing zeros, and commas from ten thousand up.

    >>> number_text(25.0), number_text(0.125), number_text(1990), number_text(25000)
    ('25', '0.125', '1990', '25,000')
    """
    return f"{value:,.10g}" if 10_000 <= abs(value) < 1e10 else f"{value:.10g}"


def level_text(dimension: Any, level: Any, told_apart: bool) -> str:
    """One level of an attribute; text stands alone unless another attribute uses it too."""
    name = dimension.name
    if isinstance(dimension, Condition):
        return name if level else f"not {name}"
    if level is None:
        return f"{name} missing"
    if isinstance(dimension, Binned):
        return open_range_text(name, *level)
    if isinstance(level, bool):
        return name if level else f"not {name}"
    if isinstance(level, str):
        return level if told_apart and level.strip() else f"{name} {level!r}"
    # A level is a name, so it keeps every digit and takes no commas.
    return f"{name} {level!r}"


def open_range_text(name: str, low: float | None, high: float | None) -> str:
    """A range that includes its lower end and not its upper; None is unbounded.

    >>> open_range_text("age", None, 25), open_range_text("age", 25, 45)
    ('age under 25', 'age 25 to under 45')
    """
    if low is None:
        return f"{name} under {number_text(0.0 if high is None else high)}"
    if high is None:
        return f"{name} {number_text(low)} and over"
    return f"{name} {number_text(low)} to under {number_text(high)}"


def closed_range_text(name: str, low: float, high: float) -> str:
    """A range that includes both ends.

    >>> closed_range_text("age", 25, 45), closed_range_text("age", 25, 25)
    ('age 25 to 45', 'age 25')
    """
    if low == high:
        return f"{name} {number_text(low)}"
    return f"{name} {number_text(low)} to {number_text(high)}"
