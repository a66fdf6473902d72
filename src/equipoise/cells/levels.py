"""Levels: the values of an attribute, brought to one form whatever engine they came from."""

import datetime
import decimal
import math
from typing import Any

import numpy as np

from equipoise._validate import listing
from equipoise.errors import ClaimError
from equipoise.methods.arrays import AnyArray, IntArray

#: An attribute with more levels than this is refused: it is more likely an identifier.
MAX_LEVELS = 10_000


def canonical(value: Any) -> Any:
    """One form for equal values: plain Python, whole numbers as int, NaN as missing.

    >>> canonical(np.float64(3.0)), canonical(float("nan")), canonical(decimal.Decimal("1.50"))
    (3, None, 1.5)
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float | decimal.Decimal):
        number = float(value)
        if math.isnan(number):
            return None
        return int(number) if number.is_integer() else number
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return None if _is_missing(value) else str(value)


def encode(column: AnyArray, called: str) -> tuple[tuple[Any, ...], IntArray]:
    """The levels of a column in a fixed order (missing last) and each row's position among them."""
    values = [canonical(value) for value in column.tolist()]
    found = set(values)
    if len(found) > MAX_LEVELS:
        raise ClaimError(
            f"Attribute {called!r} has {len(found):,} levels, more than {MAX_LEVELS:,}: it looks "
            f"like an identifier. Cut it into ranges with binned({called!r}, cuts=…), "
            "or leave it out."
        )
    levels = sort_levels(found, called)
    position = {level: i for i, level in enumerate(levels)}
    return levels, np.array([position[value] for value in values], dtype=np.int64)


def sort_levels(found: set[Any], called: str) -> tuple[Any, ...]:
    """Levels in order: numbers by size, text by letters, missing last."""
    kinds = {"text" if isinstance(v, str) else "number" for v in found if v is not None}
    if len(kinds) > 1:
        some = [next(v for v in found if isinstance(v, str)), *(v for v in found if _is_number(v))]
        raise ClaimError(
            f"Attribute {called!r} mixes text and numbers ({listing(some[:3])}). "
            "Convert the column to one type."
        )
    present = sorted(value for value in found if value is not None)
    return (*present, None) if None in found else tuple(present)


def _is_number(value: Any) -> bool:
    return value is not None and not isinstance(value, str)


def _is_missing(value: Any) -> bool:
    # pandas has its own missing values, which are equal to nothing, themselves included.
    return type(value).__name__ in ("NAType", "NaTType")
