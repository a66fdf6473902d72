"""Which ranges of a number may be published: no difference of two of them may be small."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

Range = tuple[float, float]


def overlapping(wheres: Iterable[Mapping[str, Any]]) -> set[str]:
    """Attributes of which groups take ranges that overlap, rather than levels or bins."""
    ranges: dict[str, set[Range]] = defaultdict(set)
    for where in wheres:
        for name, value in where.items():
            ends = ends_of(value)
            if ends is not None:
                ranges[name].add(ends)
    return {name for name, found in ranges.items() if len({low for low, _ in found}) < len(found)}


def ends_of(value: Any) -> Range | None:
    """Both ends of a range given as data; None if it is something else.

    >>> ends_of({"from": 18, "below": 25}), ends_of("Female")
    ((18.0, 25.0), None)
    """
    if not isinstance(value, Mapping) or "from" not in value:
        return None
    high = value.get("to", value.get("below"))
    known = isinstance(high, int | float) and isinstance(value["from"], int | float)
    return (float(value["from"]), float(high)) if known and high is not None else None


def close_ranges(
    wheres: Mapping[str, Mapping[str, Any]], sizes: Mapping[str, int], total: int, least: int
) -> set[str]:
    """Ranges that would tell of fewer than ``least`` rows when set against another."""
    gone: set[str] = set()
    for name in overlapping(wheres.values()):
        families: dict[str, dict[Range, str]] = defaultdict(dict)
        for key, where in wheres.items():
            ends = ends_of(where.get(name))
            if ends is not None:
                rest = {other: value for other, value in where.items() if other != name}
                families[json.dumps(rest, sort_keys=True)][ends] = key
        for rest_text, family in families.items():
            # Only of everybody is the number published beside the ranges.
            all_rows = total if rest_text == "{}" else None
            counts = {ends: sizes[key] for ends, key in family.items()}
            kept = far_apart(counts, all_rows, least)
            gone |= {key for ends, key in family.items() if ends not in kept}
    return gone


def far_apart(counts: Mapping[Range, int], total: int | None, least: int) -> set[Range]:
    """The ranges whose ends are cuts with no rows, or at least ``least``, between any two.

    >>> sizes = {(1, 1): 4, (2, 2): 8, (3, 3): 20, (1, 2): 12, (2, 3): 28, (1, 3): 32}
    >>> sorted(far_apart(sizes, 32, 10))
    [(1, 2), (1, 3), (3, 3)]
    """
    lows, highs = sorted({low for low, _ in counts}), sorted({high for _, high in counts})
    # Not every run between the same points: how they overlap is unknown, so none is safe.
    if len(lows) != len(highs):
        return set()
    before = _running(counts, lows, highs)
    # The rows between two cuts are the difference of two ranges, so no two cuts may be close.
    cuts = [0]
    for place in range(1, len(before)):
        if _apart(before[place] - before[cuts[-1]], least):
            cuts.append(place)
    # Rows in no range, such as those with a missing value, are everybody less the longest one.
    end = before[-1] if total is None else total
    while len(cuts) > 1 and not _apart(end - before[cuts[-1]], least):
        cuts.pop()
    first, last = {lows[i] for i in cuts if i < len(lows)}, {highs[i - 1] for i in cuts if i}
    return {ends for ends in counts if ends[0] in first and ends[1] in last}


def _running(counts: Mapping[Range, int], lows: list[float], highs: list[float]) -> list[int]:
    """Rows before each cut, from the ranges that begin at the first point."""
    before = [0]
    for high in highs:
        before.append(counts.get((lows[0], high), before[-1]))
    # half-lines leave out the whole line: its two parts give it
    for place in range(1, len(highs)):
        rest = counts.get((lows[place], highs[-1]), 0)
        before[-1] = max(before[-1], before[place] + rest)
    return before


def _apart(rows: int, least: int) -> bool:
    return rows == 0 or rows >= least
