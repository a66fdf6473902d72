"""Text that comes from tables: made fit to be shown, whatever it holds."""

import unicodedata
from typing import Any

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


def number_text(value: float) -> str:
    """A number as it reads in the name of a group: commas from ten thousand up.

    >>> number_text(25.0), number_text(0.125), number_text(25000)
    ('25', '0.125', '25,000')
    """
    return f"{value:,.10g}" if 10_000 <= abs(value) < 1e10 else f"{value:.10g}"


def tidied(value: Any) -> Any:
    """The same plain data with every text tidied and clipped, keys left alone."""
    if isinstance(value, str):
        return clipped(tidy(value), 4 * LONG if " " in value else LONG)
    if isinstance(value, list | tuple):
        return [tidied(item) for item in value]
    if isinstance(value, dict):
        return {key: tidied(item) for key, item in value.items()}
    return value


def _is_control(sign: str) -> bool:
    return unicodedata.category(sign) in ("Cc", "Cs") or sign in _TURNING
