"""Finding one group among the rows of a result, however the user names it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise._validate import did_you_mean, listing
from equipoise.errors import ClaimError


def find_row(
    rows: Sequence[Any], group: Mapping[str, Any] | str | None, where: Mapping[str, Any]
) -> Any:
    """The row of a group given by label, by attributes, or by the ends of ranges."""
    if isinstance(group, str):
        return _by_label(rows, group)
    wanted = {**(group or {}), **where}
    fitting = [row for row in rows if set(row.where) == set(wanted)]
    if not fitting:
        raise ClaimError(_no_such_attributes(rows, wanted))
    for name, value in wanted.items():
        fitting = _narrow(fitting, name, value)
    return fitting[0]


def _by_label(rows: Sequence[Any], label: str) -> Any:
    for row in rows:
        if row.group == label:
            return row
    labels = [row.group for row in rows]
    raise ClaimError(
        f"There is no group {label!r} in this collection of {len(rows):,}."
        f"{did_you_mean(label, labels)}"
    )


def _narrow(rows: list[Any], name: str, value: Any) -> list[Any]:
    if isinstance(value, tuple | list) and len(value) == 2:
        return _by_range(rows, name, value[0], value[1])
    kept = [row for row in rows if _same(row.where[name], value)]
    if not kept:
        levels = dict.fromkeys(str(row.where[name]) for row in rows)
        raise ClaimError(f"No such group has {name} {value!r}. There is: {listing(levels)}.")
    return kept


def _by_range(rows: list[Any], name: str, low: Any, high: Any) -> list[Any]:
    """Rows whose range is [low, high]: the widest run of data points inside, or the exact edges."""
    ranges = [row for row in rows if isinstance(row.where[name], Mapping)]
    inside = [row for row in ranges if _within(row.where[name], low, high)]
    if not inside:
        ends = sorted({end for row in ranges for end in row.where[name].values()})
        raise ClaimError(
            f"No range of {name} lies in [{low}, {high}]. End points: {listing(ends)}."
        )
    # Between data points nobody lies, so any ends mean the widest run of points inside them. A grid
    # has people everywhere: ends that are not on it would cut through a cell.
    best = max(inside, key=lambda row: _end(row.where[name]) - row.where[name]["from"])
    found = best.where[name]
    if "below" in found and not (_near(found["from"], low) and _near(found["below"], high)):
        ends = sorted({end for row in ranges for end in row.where[name].values()})
        raise ClaimError(
            f"The ranges of {name} lie on a grid, and [{low}, {high}) is not on it. "
            f"End points: {listing(ends)}."
        )
    return [row for row in inside if row.where[name] == found]


def _within(found: Mapping[str, Any], low: Any, high: Any) -> bool:
    if "from" not in found:
        return False
    begins = found["from"] >= low or _near(found["from"], low)
    return bool(begins and (_end(found) <= high or _near(_end(found), high)))


def _near(end: Any, asked: Any) -> bool:
    """Whether two ends are the same but for rounding: a grid may hold 0.6000000000000001."""
    return math.isclose(end, asked, rel_tol=1e-12, abs_tol=1e-12)


def _end(found: Mapping[str, Any]) -> Any:
    return found["to"] if "to" in found else found.get("below", float("inf"))


def range_width(found: Mapping[str, Any]) -> float:
    """How wide a range is, from end to end."""
    return float(_end(found) - found["from"])


def _same(found: Any, wanted: Any) -> bool:
    # To Python true equals 1; in a table they are different levels.
    return bool(found == wanted) and isinstance(found, bool) == isinstance(wanted, bool)


def _no_such_attributes(rows: Sequence[Any], wanted: Mapping[str, Any]) -> str:
    known = dict.fromkeys(name for row in rows for name in row.where)
    strange = [name for name in wanted if name not in known]
    if strange:
        hint = did_you_mean(strange[0], known)
        return (
            f"{listing(strange)} is no attribute of this audit.{hint} There is: {listing(known)}."
        )
    return (
        f"No group of this collection is formed by {listing(wanted)} together and has a row. "
        f"The collection is fixed when the audit is run; there are {len(rows):,} groups in it."
    )
