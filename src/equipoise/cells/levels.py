"""Levels: the values of an attribute in a fixed order, whatever engine they came from."""

from typing import Any

import numpy as np

from equipoise._validate import listing
from equipoise.errors import ClaimError
from equipoise.methods.arrays import AnyArray, IntArray

#: An attribute with more levels than this is refused: it is more likely an identifier.
MAX_LEVELS = 10_000


def encode(
    column: AnyArray, called: str, advice: str, most: int = MAX_LEVELS
) -> tuple[tuple[Any, ...], IntArray]:
    """The levels of a key in a fixed order (missing last) and each row's position among them.

    ``advice`` tells what to do when there are too many, which is more than ``most``.
    """
    values = column.tolist()
    found = set(values)
    if len(found) > most:
        raise ClaimError(
            f"Attribute {called!r} has {len(found):,} levels, more than {most:,}. {advice}"
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
