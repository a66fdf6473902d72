"""What follows from published numbers by setting them against each other.

Each number by itself may be large, and the difference of two of them a few people: ranges that end
close to one another, metrics that count almost the same rows, groups that overlap, and everybody
less all groups.
"""

import dataclasses
import itertools
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from equipoise._validate import closed_range_text, number_text, open_range_text
from equipoise.findings import Finding
from equipoise.findings.calibration import Calibration, CurvePoint
from equipoise.findings.monitoring import MonitoredGroup
from equipoise.report.disclosure import (
    ALL,
    COUNTED,
    RATES,
    TYPES,
    Count,
    Key,
    Reader,
    Space,
    Table,
    Told,
    Vector,
    counts_on,
    counts_within,
    cuts_of,
    families,
    holds,
    in_text,
    kinds_of_people,
)

# --- Which ranges of a number may be published: no difference of two of them may be small ---

Range = tuple[float, float]


def overlapping(wheres: Iterable[Mapping[str, object]]) -> set[str]:
    """Attributes of which groups take ranges that overlap, rather than levels or bins."""
    ranges: dict[str, set[Range]] = defaultdict(set)
    for where in wheres:
        for name, value in where.items():
            ends = ends_of(value)
            if ends is not None:
                ranges[name].add(ends)
    return {name for name, found in ranges.items() if len({low for low, _ in found}) < len(found)}


def ends_of(value: object) -> Range | None:
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
    wheres: Mapping[str, Mapping[str, object]], sizes: Mapping[str, int], total: int, least: int
) -> set[str]:
    """Ranges that would tell of fewer than ``least`` rows when set against another."""
    gone: set[str] = set()
    for name in overlapping(wheres.values()):
        runs: dict[str, dict[Range, str]] = defaultdict(dict)
        for key, where in wheres.items():
            ends = ends_of(where.get(name))
            if ends is not None:
                rest = {other: value for other, value in where.items() if other != name}
                runs[json.dumps(rest, sort_keys=True)][ends] = key
        for rest_text, family in runs.items():
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


# --- Metrics whose rows, set against those of others, give away a few people ---


def too_close(table: Table, gone: set[Count], least: int, *, gaps: bool) -> set[str]:
    """Metrics that must not be told beside those before them, by what would be shown of both.

    >>> table = {(metric, key): Told(n=n) for metric, sizes in {
    ...     "accuracy": {'{"a": "x"}': 580, '{"a": "y"}': 450, "{}": 1030},
    ...     "age": {'{"a": "x"}': 577, '{"a": "y"}': 450, "{}": 1027}}.items()
    ...     for key, n in sizes.items()}
    >>> too_close(table, set(), 10, gaps=True)
    {'age'}
    """
    hidden_keys = {key for _, key in gone if key != ALL}
    sizes: dict[str, dict[Key, int]] = defaultdict(dict)
    shares: dict[str, list[dict[Key, int]]] = defaultdict(lambda: [{}, {}])
    for (metric, key), told in table.items():
        if (metric, ALL) not in gone:
            sizes[metric][key] = told.n
            if told.hits is not None and key not in hidden_keys:
                shares[metric][0][key] = told.hits
                shares[metric][1][key] = told.n - told.hits
    kept: dict[str, dict[Key, int]] = {}
    found: set[str] = set()
    for metric, own in sizes.items():
        seen = _without(own, hidden_keys)
        near = any(
            (_is_open_pair(metric, name, gaps) and _is_close(own, other, hidden_keys, least))
            or (
                (gaps or not {metric, name} <= set(COUNTED))
                and _is_a_share(
                    [seen, *shares[metric]], [_without(other, hidden_keys), *shares[name]], least
                )
            )
            for name, other in kept.items()
        )
        if near or _closes_a_sum(metric, seen, kept, hidden_keys, least):
            found.add(metric)
        else:
            kept[metric] = own
    return found


def _is_a_share(
    one: Sequence[Mapping[Key, int]], other: Sequence[Mapping[Key, int]], least: int
) -> bool:
    """Whether those who add one to a metric, or nothing, are but for a few the rows of another."""
    pairs = list(itertools.product(one, other))
    for mine, theirs in pairs[1:]:
        apart = [n - theirs[key] for key, n in mine.items() if key in theirs]
        if apart and _one_way(apart) and any(0 < abs(n) < least for n in apart):
            return True
    return False


def _one_way(apart: Sequence[int]) -> bool:
    return min(apart, default=0) >= 0 or max(apart, default=0) <= 0


def _without(sizes: Mapping[Key, int], hidden_keys: set[Key]) -> dict[Key, int]:
    return {key: n for key, n in sizes.items() if key not in hidden_keys}


def _is_open_pair(one: str, other: str, gaps: bool) -> bool:
    """Whether the programmes do not know yet what lies between the rows of two metrics."""
    if one not in COUNTED or other not in COUNTED:
        return True
    if not gaps or counts_within(one, other, gaps) or counts_within(other, one, gaps):
        return False
    # that nothing but missing values keeps apart
    same = all(counts_on(one, person) == counts_on(other, person) for person in TYPES)
    return comparable(one, other) and not same


def comparable(one: str, other: str) -> bool:
    """Whether one metric may count on the other's rows but for a few, values missing or not.

    >>> comparable("accuracy", "selection_rate")
    True
    >>> comparable("true_positive_rate", "false_positive_rate")
    False
    """
    if one not in COUNTED or other not in COUNTED:
        return True
    pairs = [
        (counts_on(one, person), counts_on(other, person)) for person in kinds_of_people(gaps=False)
    ]
    return all(b or not a for a, b in pairs) or all(a or not b for a, b in pairs)


def _is_close(
    one: Mapping[Key, int], other: Mapping[Key, int], hidden_keys: set[Key], least: int
) -> bool:
    """Whether the rows of two metrics differ by a few people whom a reader could count."""
    both = [key for key in one if key in other and key not in hidden_keys]
    apart = [one[key] - other[key] for key in both]
    if any(0 < abs(n) < least for n in apart):
        return True
    if not any(apart) or min(apart) < 0 < max(apart):
        # the same rows; or each counts on some that the other does not
        return False
    large, small = (one, other) if max(apart) > 0 else (other, one)
    return _leaves_few(large, small, hidden_keys, least)


def _leaves_few(
    large: Mapping[Key, int], small: Mapping[Key, int], hidden_keys: set[Key], least: int
) -> bool:
    """Whether of some group, or of some who are left over, it is known that only a few lie between.

    The second metric is taken to count on rows of the first and on no others.
    """
    pair = {"large": large, "small": small}
    table = {(name, key): Told(n=n) for name, own in pair.items() for key, n in own.items()}
    # so that both speak of all groups, shown or not
    unknown = {(name, key) for name in pair for _, key in table} - set(table)
    gone = unknown | {count for count in table if count[1] in hidden_keys}
    whole = {name: own[ALL] for name, own in pair.items()}
    every = dict(sorted({**table, **{count: Told(n=whole[count[0]]) for count in unknown}}.items()))
    space = Space.of(
        every, False, [[(True, False), (True, False)], [(True, False), (False, False)]]
    )
    if space is None:
        return True
    reader, shown = Reader(space, every, least), set(every) - gone
    masks = [
        space.rows["large", key] & ~space.rows["small", key]
        for key in {key for _, key in every}
        if not {("large", key), ("small", key)} <= shown
    ]
    for parent, kids in families({count: every[count] for count in every if count[0] == "large"}):
        rest = space.rows[parent] & ~space.rows["small", parent[1]]
        for kid in kids:
            rest &= ~space.rows[kid]
        masks.append(rest)
    return any(reader.knows_few(mask, shown) for mask in masks)


def _closes_a_sum(
    metric: str,
    own: Mapping[Key, int],
    kept: Mapping[str, Mapping[Key, int]],
    hidden_keys: set[Key],
    least: int,
) -> bool:
    """Whether a metric and two others differ by a few people, one being the sum of the others."""
    for one, other in itertools.combinations(kept, 2):
        if {metric, one, other} <= set(COUNTED):
            continue
        both = [key for key in own if key in kept[one] and key in kept[other]]
        lines = [
            (own[key], kept[one][key], kept[other][key])
            for key in _without(dict.fromkeys(both, 0), hidden_keys)
        ]
        for a, b, c in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):
            apart = [line[a] - line[b] - line[c] for line in lines]
            if _one_way(apart) and any(0 < abs(n) < least for n in apart):
                return True
    return False


# --- What is told, set against everything that was told before it on the page ---


class Sized(Protocol):
    """A row of a finding that says of how many people it is."""

    @property
    def group(self) -> str:
        """The group in words."""

    @property
    def n(self) -> int:
        """How many people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers of people that a finding tells."""

    metric: str
    table: str
    """The table of rows."""
    sizes: Mapping[Key, int]
    """Groups, and everybody."""
    hits: Mapping[Key, int]
    """How many of them add one, where a rate tells that."""
    left: tuple[int, ...]
    """How many are in the groups of an attribute that are not shown, taken together."""
    whole: int
    """Everybody, with those on whom something was learnt."""
    by_rule: bool
    """Whether nothing is known of how groups overlap."""

    @property
    def others(self) -> dict[Key, int]:
        """How many add nothing."""
        return {key: self.sizes[key] - n for key, n in self.hits.items()}


def gives_away(one: Numbers, told: Sequence[Numbers], least: int) -> bool:
    """Whether the numbers of a finding, beside those told before it, tell of a few people."""

    def few(n: int) -> bool:
        return 0 < abs(n) < least

    for other in told:
        both = one.sizes.keys() & other.sizes.keys()
        if comparable(one.metric, other.metric) and (
            few(one.whole - other.whole) or any(few(one.sizes[k] - other.sizes[k]) for k in both)
        ):
            return True
        if one.by_rule or other.by_rule:
            if _few_in_sums(one.sizes, other.sizes, least):
                return True
            shares = (one.sizes, other.hits), (one.sizes, other.others), (one.hits, other.sizes)
            apart = itertools.chain(*(itertools.product(a.values(), b.values()) for a, b in shares))
            if any(few(a - b) for a, b in apart):
                return True
        # somebody may look at those alone who are not shown elsewhere
        sides = (one.left, (other.whole,)), (other.left, (one.whole,))
        apart = itertools.chain(*(itertools.product(a, b) for a, b in sides))
        if one.table != other.table and any(few(a - b) for a, b in apart):
            return True
    own = {key: n for key, n in one.sizes.items() if key != ALL}
    # groups that make up everybody hold what they hold
    if one.by_rule and sum(own.values()) != one.sizes.get(ALL) and _few_within(one.sizes, least):
        return True
    every = [one, *told]
    beside = {
        key: n
        for each in every[::-1]
        if each.metric == one.metric or each.sizes.get(ALL) == one.sizes.get(ALL)
        for key, n in each.sizes.items()
    }
    own_table = [each for each in every if each.table == one.table]
    return _few_between_cuts(beside, least) or any(
        _few_lack_something(own_table, key, least)
        or _few_lack_something(every, key, least)
        or _few_in_tables(every, key, least)
        for key in one.sizes
    )


def _few_in_tables(every: Sequence[Numbers], key: Key, least: int) -> bool:
    """Whether a group in one table is but for a few what it is in two others together."""
    sizes: dict[str, int] = {}
    for each in every:
        if each.metric == every[0].metric and key in each.sizes:
            sizes.setdefault(each.table, each.sizes[key])
    n = sizes.get(every[0].table, 0)
    others = [size for table, size in sizes.items() if table != every[0].table]
    pairs = itertools.combinations(others, 2)
    return any(0 < abs(2 * max(n, a, b) - n - a - b) < least for a, b in pairs)


def _few_lack_something(every: Sequence[Numbers], key: Key, least: int) -> bool:
    """Whether it is known of a few people of a group that they lack a label, or something else.

    Of metrics of labels and predictions it is known who they count on, and who adds one.
    """
    # of other tables only what this one does not tell: they may count others
    near = sorted(every, key=lambda each: each.table == every[0].table)
    there = [each for each in near if each.metric in COUNTED and key in each.sizes]
    known = {each.metric: each for each in there}
    if len(known) < 2 or every[0].metric not in known:
        return False
    sums: list[int] = []
    masks: list[list[bool]] = []
    for metric, each in known.items():
        sums.append(each.whole if key == ALL else each.sizes[key])
        masks.append([counts_on(metric, person) for person in TYPES])
        if metric in RATES and key in each.hits:
            sums.append(each.hits[key])
            adds = RATES[metric][1]
            masks.append([counts_on(metric, person) and holds(adds, person) for person in TYPES])
    people = list(zip(TYPES, zip(*masks, strict=True), strict=True))
    whole = {seen for person, seen in people if None not in person}
    kinds = sorted({seen for _, seen in people if any(seen)})
    lacking = np.array([float(seen not in whole) for seen in kinds])
    matrix = np.array(kinds, dtype=float).T

    def end(kind: Vector, sign: float) -> float:
        from scipy.optimize import linprog

        found: Any = linprog(sign * kind, A_eq=matrix, b_eq=sums, bounds=(0, None), method="highs")
        return sign * float(found.fun) if found.status == 0 else math.nan

    # as a rule nobody need lack anything; numbers that fit no table are those of several
    if not end(lacking, 1.0) > 0.5:
        return False
    ways = [lacking, *(lacking * one for one in np.eye(len(kinds)) if (lacking * one).any())]
    ends = ((end(way, 1.0), end(way, -1.0)) for way in ways)
    return any(0.5 < low < least - 0.5 and high < 2 * least - 1.5 for low, high in ends)


#: Numbers of two findings, and of one, whose sums are looked at; among more some are always close.
MOST_NUMBERS, MOST_OF_ONE = 200, 60


def _few_in_sums(one: Mapping[Key, int], other: Mapping[Key, int], least: int) -> bool:
    """Whether a number is but for a few another, or the sum of two others."""
    if max(len(one), len(other)) > MOST_NUMBERS:
        return True
    a, b = (np.array(sorted(set(sizes.values())), dtype=np.int64) for sizes in (one, other))
    apart = [np.subtract.outer(a, b).ravel()]
    for few, many in ((a, b), (b, a)):
        upper = np.triu_indices(many.size, 1)
        pairs = np.add.outer(many, many)[upper]
        apart.append(np.subtract.outer(few, pairs).ravel())
        differences = np.abs(np.subtract.outer(many, many)[upper])
        apart.append(np.subtract.outer(few, differences).ravel())
    return any(bool(((each != 0) & (np.abs(each) < least)).any()) for each in apart)


def _few_within(sizes: Mapping[Key, int], least: int) -> bool:
    """The same among the numbers of one finding."""
    n = list(sizes.values())
    if len(n) > MOST_OF_ONE:
        return True
    for one, other in itertools.combinations(n, 2):
        if 0 < abs(one - other) < least:
            return True
    triples = itertools.combinations(n, 3)
    return any(0 < abs(2 * max(three) - sum(three)) < least for three in triples)


Cut = tuple[float, int]
Steps = list[tuple[Cut, Cut, int]]


def _few_between_cuts(sizes: Mapping[Key, int], least: int) -> bool:
    """Whether ranges of a number tell of a few people between two cuts, or outside of all."""
    steps_of: dict[tuple[str, Key], Steps] = defaultdict(list)
    wheres = {key: json.loads(key) for key in sizes}
    widest = _widest(wheres.values())
    for key, where in wheres.items():
        if len(where) > 1:
            # the widest range of an attribute is everybody, if anything is
            where = {name: at for name, at in where.items() if in_text(at) != widest.get(name)}
        for name, value in where.items():
            if ends := cuts_of(value) if isinstance(value, Mapping) else []:
                others = {other: level for other, level in where.items() if other != name}
                steps_of[name, in_text(others)].append((ends[0], ends[1], sizes[key]))
    lengths: dict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
    for (name, rest), steps in steps_of.items():
        for places in _places(steps):
            ordered = [places[cut] for cut in sorted(places)]
            length = ordered[-1] - ordered[0]
            outside = [sizes[key] - length for key in {rest, ALL} if key in sizes]
            between = [b - a for a, b in itertools.pairwise(ordered)]
            if any(0 < abs(n) < least for n in [*between, *outside]):
                return True
            lengths[name, tuple(sorted(json.loads(rest)))].append(length)
    # levels of other attributes, each with all of its ranges
    total = sizes.get(ALL, 0)
    return any(0 < total - sum(each) < least for each in lengths.values())


def _widest(wheres: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Of each attribute the range that holds all its others, where there is one."""
    ranges: dict[str, dict[str, list[Cut]]] = defaultdict(dict)
    for where in wheres:
        for name, value in where.items():
            if isinstance(value, Mapping):
                ranges[name][in_text(value)] = cuts_of(value)
    return {
        name: text
        for name, own in ranges.items()
        for text, ends in own.items()
        if len(own) > 1 and all(ends[0] <= a and b <= ends[1] for a, b in own.values())
    }


def _places(steps: Steps) -> list[dict[Cut, int]]:
    """How many rows lie below each cut, for cuts whose distance follows from the ranges."""
    found: list[dict[Cut, int]] = []
    left = list(steps)
    while left:
        places, reached = {left[0][0]: 0}, True
        while reached:
            reached = False
            for low, high, n in left:
                if (low in places) != (high in places):
                    places[high if low in places else low] = (
                        places[low] + n if low in places else places[high] - n
                    )
                    reached = True
        left = [step for step in left if step[0] not in places]
        found.append(places)
    return found


def opened(row: Any, first: Mapping[str, float], last: Mapping[str, float]) -> Any:
    """A group of ranges, without the ends that are nobody's business, in words as well."""
    where, group = dict(getattr(row, "where", None) or {}), row.group
    for name, value in where.items():
        if not isinstance(value, Mapping) or "from" not in value or len(value) < 2:
            continue
        low, high = value["from"], value.get("to", value.get("below"))
        ends = {("from", first[name]), ("to", last[name])}
        kept = {end: n for end, n in value.items() if (end, n) not in ends}
        text = open_range_text(name, kept.get("from"), kept.get("below")) if kept else f"any {name}"
        if "to" in kept:
            text = f"{name} at most {number_text(high)}"
        if len(kept) < len(value):
            old = (closed_range_text if "to" in value else open_range_text)(name, low, high)
            where[name], group = kept, group.replace(old, text)
    return dataclasses.replace(row, where=where, group=group) if where else row


# --- What would be the values of a few people ---


def whole_curves(finding: Calibration, least: int) -> tuple[CurvePoint, ...]:
    """Curves of columns whose levels make up everybody, or leave enough over."""
    sizes: dict[str | None, int] = defaultdict(int)
    for point in finding.column_curves:
        sizes[point.column] += point.n
    return tuple(
        point
        for point in finding.column_curves
        if not 0 < abs(finding.tested - sizes[point.column]) < least
    )


def names_a_value(finding: Finding, shown: Finding, least: int) -> bool:
    """Whether a quantile near an end of the values is that of a few people."""
    metric = finding.claim.get("metric")
    share = metric.get("q") if isinstance(metric, Mapping) else None
    if not isinstance(share, float):
        return False
    return any(row.n * min(share, 1 - share) < least for row in shown.rows if hasattr(row, "n"))


def over_time(row: MonitoredGroup, least: int) -> MonitoredGroup:
    """A group over time, without its history if a batch is of a few people."""
    few = row.smallest is not None and row.smallest < least
    gone: dict[str, Any] = {"history": (), "band": (), "raised": None} if few else {}
    return dataclasses.replace(row, smallest=None, **gone)
