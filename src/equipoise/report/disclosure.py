"""Which counts may be published so that no hidden one can be worked out closely.

A reader of a page knows the published counts exactly and knows that every count is a sum of people
in cells: of all attributes of the page, times what happened and what was decided. Whatever he
concludes about a hidden count lies between the ends of two linear programmes over those cells. A
set of hidden counts is good if between these ends there is room for ``least`` on either side of
every small count (down to zero). It is found small count by small count: the published counts that
must be free to move for the small one to be larger, or smaller, by as much, at the least price of
what is moved (a linear programme); what is hidden already is free. Then whatever has become
needless is shown again.
"""

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Key = str
"""A group as JSON: attribute → value, or → ends of a range."""
Count = tuple[str, Key]
"""A metric and a group: what is shown or hidden as one."""
Mask = npt.NDArray[np.bool_]

#: Everybody, as a group.
ALL: Key = "{}"
#: Cells beyond which groups of several attributes are hidden rather than looked at.
MOST_CELLS = 20_000
#: Programmes that are spent on showing again what need not be hidden.
MOST_LOOKS = 2_000
_ROOM = 1e-6

#: What each metric counts, over (label, prediction) with None for a missing value: the rows on
#: which it counts, and those among them that add one.
_TYPES = tuple(itertools.product((0, 1, None), (0, 1, None)))
_RATES: dict[str, tuple[str, str]] = {
    "selection_rate": ("p is not None", "p == 1"),
    "false_positive_rate": ("y == 0 and p is not None", "p == 1"),
    "false_negative_rate": ("y == 1 and p is not None", "p == 0"),
    "true_positive_rate": ("y == 1 and p is not None", "p == 1"),
    "true_negative_rate": ("y == 0 and p is not None", "p == 0"),
    "positive_predictive_value": ("p == 1 and y is not None", "y == 1"),
    "negative_predictive_value": ("p == 0 and y is not None", "y == 0"),
    "accuracy": ("y is not None and p is not None", "y == p"),
    "error_rate": ("y is not None and p is not None", "y != p"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a page would tell of one group under one metric."""

    n: int
    """Rows on which the metric counts."""
    hits: int | None = None
    """How many of them add one, where the rate gives that away."""


Table = Mapping[Count, Told]
"""Everything about one table of rows that a page would tell; everybody is the group ``{}``."""


def hidden(table: Table, least: int, already: Iterable[Count] = ()) -> set[Count]:
    """The counts that must not be told; ``already`` are hidden for other reasons.

    >>> sizes = {'{"a": "x"}': 100, '{"a": "y"}': 50, '{"a": "z"}': 4, "{}": 154}
    >>> table = {("accuracy", key): Told(n=n) for key, n in sizes.items()}
    >>> sorted(key for _, key in hidden(table, 10))
    ['{"a": "y"}', '{"a": "z"}']
    """
    gone = {c for c, told in table.items() if c[1] != ALL and told.n < least} | set(already)
    if not gone and not _close(table, least):
        return gone
    space = _Space.of(table)
    if space is None:
        # too many cells to look at: what several attributes form together is not told at all
        gone |= {count for count in table if len(json.loads(count[1])) > 1}
        table = {count: told for count, told in table.items() if len(json.loads(count[1])) < 2}
        space = _Space.of(table)
        if space is None:
            return gone | set(table)
    return gone | _cheapest(space, table, gone, least)


def bounds_of(
    table: Table, shown: Iterable[Count], asked: Sequence[Count]
) -> list[tuple[float, float]]:
    """The smallest and largest number of rows a reader of ``shown`` must allow for each count."""
    space, seen = _Space.of(table), set(shown)
    if space is None:
        return [(0.0, math.inf) for _ in asked]
    reader = _Reader(space, table, [space.rows[count] for count in asked])
    return [
        (reader.end(one, seen, up=False), reader.end(one, seen, up=True)) for one in reader.asked
    ]


def _close(table: Table, least: int) -> bool:
    return any(0 < secret.n < least for secret in _secrets(table, least))


# --- Cells: all attributes of the page, times label and prediction ---


@dataclass(frozen=True, slots=True, kw_only=True)
class _Space:
    """The cells, and which of them each count sums."""

    cells: int
    rows: Mapping[Count, Mask]
    hits: Mapping[Count, Mask]
    links: list[npt.NDArray[np.float64]] = field(default_factory=list)
    """Sums that are the same however people are cut: each is zero."""

    @classmethod
    def of(cls, table: Table) -> "_Space | None":
        wheres = {key: json.loads(key) for _, key in table}
        metrics = list(dict.fromkeys(metric for metric, _ in table))
        types = _types(table, metrics)
        blocks = _blocks(wheres.values())
        pieces = {name: _pieces(name, wheres.values()) for block in blocks for name in block}
        shapes = [[len(pieces[name]) for name in block] for block in blocks]
        sizes = [math.prod(shape) * len(types) for shape in shapes]
        if sum(sizes) > MOST_CELLS:
            return None
        starts = np.cumsum([0, *sizes])
        rows: dict[Count, Mask] = {}
        hits: dict[Count, Mask] = {}
        for metric, key in table:
            home = next((i for i, b in enumerate(blocks) if set(wheres[key]) <= set(b)), 0)
            inside = _inside(wheres[key], blocks[home], pieces)
            for store, place in ((rows, 0), (hits, 1)):
                mask = np.zeros(int(starts[-1]), dtype=bool)
                chosen = np.array([signature[metrics.index(metric)][place] for signature in types])
                mask[starts[home] : starts[home + 1]] = np.outer(inside, chosen).ravel()
                store[metric, key] = mask
        made = cls(cells=int(starts[-1]), rows=rows, hits=hits)
        for i in range(1, len(blocks)):
            for number in range(len(types)):
                link = np.zeros(made.cells)
                link[starts[0] + number : starts[1] : len(types)] = 1.0
                link[starts[i] + number : starts[i + 1] : len(types)] = -1.0
                made.links.append(link)
        return made


def _types(table: Table, metrics: Sequence[str]) -> list[list[tuple[bool, bool]]]:
    """Kinds of people that the metrics tell apart: for each metric, counted and adding one."""
    own = [metric for metric in metrics if metric not in _RATES]
    found = []
    for y, p in _TYPES:
        known = {}
        for metric, (counted, adds) in _RATES.items():
            on = bool(eval(counted, {"y": y, "p": p}))
            known[metric] = (on, on and bool(eval(adds, {"y": y, "p": p})))
        # of other metrics nothing is known but that they count on rows of their own
        for chosen in itertools.product((False, True), repeat=min(len(own), 3)):
            others = dict(zip(own, ((on, False) for on in chosen), strict=False))
            found.append([known.get(m, others.get(m, (True, False))) for m in metrics])
    return list(map(list, dict.fromkeys(map(tuple, found))))


def _blocks(wheres: Iterable[Mapping[str, object]]) -> list[list[str]]:
    """Attributes that stand together in some group; the others are tied by the total alone."""
    blocks: list[set[str]] = []
    for where in wheres:
        names = set(where)
        joined = [block for block in blocks if block & names]
        blocks = [block for block in blocks if not block & names]
        if names:
            blocks.append(names.union(*joined))
    return [sorted(block) for block in blocks] or [[]]


Piece = tuple[str, Any]


def _pieces(name: str, wheres: Iterable[Mapping[str, object]]) -> list[Piece]:
    """The smallest parts into which the groups cut an attribute, and a part for all others."""
    values = [where[name] for where in wheres if name in where]
    if any(isinstance(value, Mapping) for value in values):
        cuts = sorted({cut for value in values for cut in _ends(value)})
        inner = [("range", pair) for pair in itertools.pairwise(cuts)]
        words = {json.dumps(v) for v in values if not isinstance(v, Mapping) and not _number(v)}
        return [*inner, *(("level", word) for word in sorted(words)), ("other", None)]
    levels = sorted({json.dumps(value, sort_keys=True, default=str) for value in values})
    return [*(("level", level) for level in levels), ("other", None)]


def _ends(value: object) -> list[tuple[float, int]]:
    """Where a range begins and ends; the second part tells whether a cut is before or after."""
    if _number(value):
        number = float(value)  # type: ignore[arg-type]
        return [(number, 0), (number, 1)]
    if not isinstance(value, Mapping):
        return []
    ends: list[tuple[float, int]] = []
    low, to, below = value.get("from"), value.get("to"), value.get("below")
    ends.append((float(low), 0) if _number(low) else (-math.inf, 0))  # type: ignore[arg-type]
    if _number(to):
        ends.append((float(to), 1))  # type: ignore[arg-type]
    else:
        ends.append((float(below), 0) if _number(below) else (math.inf, 1))  # type: ignore[arg-type]
    return ends


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _inside(
    where: Mapping[str, object], block: Sequence[str], pieces: Mapping[str, list[Piece]]
) -> Mask:
    """Which combinations of pieces a group is made of."""
    sides = []
    for name in block:
        sides.append(
            np.array([name not in where or _covers(where[name], p) for p in pieces[name]], bool)
        )
    made = np.ones(1, dtype=bool)
    for side in sides:
        made = np.outer(made, side).ravel()
    return made


def _covers(value: object, piece: Piece) -> bool:
    kind, what = piece
    if kind == "range":
        ends = _ends(value)
        return bool(ends) and ends[0] <= what[0] and what[1] <= ends[1]
    return kind == "level" and what == json.dumps(value, sort_keys=True, default=str)


# --- What must not be known: small groups, small remainders, small differences of metrics ---


@dataclass(frozen=True, slots=True, kw_only=True)
class _Secret:
    n: int
    mask: Mask | None = None


def _secrets(table: Table, least: int, space: _Space | None = None) -> list[_Secret]:
    """Counts that are small: of groups, of what groups leave over, and between two metrics."""
    found: list[_Secret] = []

    def add(n: int, plus: Count, less: Sequence[Count]) -> None:
        if 0 < n < least or (n == 0 and not less):
            mask = None
            if space is not None:
                mask = space.rows[plus].copy()
                for one in less:
                    mask &= ~space.rows[one]
            found.append(_Secret(n=n, mask=mask))

    for count, told in table.items():
        if told.n < least and count[1] != ALL:
            add(told.n, count, [])
    for parent, kids in _families(table):
        add(table[parent].n - sum(table[kid].n for kid in kids), parent, kids)
    by_group: dict[Key, list[Count]] = defaultdict(list)
    for count in table:
        by_group[count[1]].append(count)
    for counts in by_group.values():
        for one, other in itertools.permutations(counts, 2):
            if _within(other[0], one[0]):
                add(table[one].n - table[other].n, one, [other])
    return found


def _within(small: str, large: str) -> bool:
    """Whether one metric counts only on rows on which another does."""
    if small not in _RATES or large not in _RATES or small == large:
        return False
    pairs = [
        [bool(eval(_RATES[metric][0], {"y": y, "p": p})) for metric in (small, large)]
        for y, p in _TYPES
    ]
    return all(b or not a for a, b in pairs) and pairs != [[b, b] for _, b in pairs]


def _families(table: Table) -> list[tuple[Count, list[Count]]]:
    """Each group with the groups that cut it by one more attribute into parts without overlap."""
    found: dict[tuple[Count, str], list[Count]] = defaultdict(list)
    for metric, key in table:
        where = json.loads(key)
        for name in where:
            rest = {other: value for other, value in where.items() if other != name}
            parent = (metric, json.dumps(rest, sort_keys=True, ensure_ascii=False))
            if parent in table:
                found[parent, name].append((metric, key))
    return [
        (parent, kids)
        for (parent, name), kids in found.items()
        if not any(isinstance(json.loads(key)[name], Mapping) for _, key in kids)
    ]


# --- The reader's two linear programmes, and the cheapest set that spoils them ---


class _Reader:
    """What a reader knows of cells, those that nothing tells apart taken together."""

    def __init__(self, space: _Space, table: Table, masks: Sequence[Mask] = ()) -> None:
        listed, known, self.owners = [], [], []
        for count, told in table.items():
            for mask, number in ((space.rows[count], told.n), (space.hits[count], told.hits)):
                if number is not None:
                    listed.append(mask.astype(float))
                    known.append(float(number))
                    self.owners.append(count)
        self.known = np.array(known)
        every = np.array([*listed, *space.links, *(mask.astype(float) for mask in masks)])
        columns, of_cell = np.unique(every.reshape(-1, space.cells), axis=1, return_inverse=True)
        self.matrix = columns[: len(listed)]
        self.links = columns[len(listed) : len(listed) + len(space.links)]
        self.asked = columns[len(listed) + len(space.links) :]
        self.cells = np.bincount(of_cell.ravel())

    def end(self, asked: npt.NDArray[np.float64], shown: set[Count], *, up: bool) -> float:
        """The largest (or smallest) a sum of cells can be for a reader of some counts."""
        from scipy.optimize import linprog

        rows = [i for i, owner in enumerate(self.owners) if owner in shown]
        equal = np.vstack([self.matrix[rows], self.links])
        known = np.concatenate([self.known[rows], np.zeros(len(self.links))])
        sign = -1.0 if up else 1.0
        found: Any = linprog(sign * asked, A_eq=equal, b_eq=known, bounds=(0, None), method="highs")
        if found.status == 3:
            return math.inf
        return sign * float(found.fun) if found.status == 0 else math.nan

    def allows(
        self, asked: npt.NDArray[np.float64], goal: float, up: bool, shown: set[Count]
    ) -> bool:
        """Whether a reader of some counts must allow for so many people, or so few."""
        end = self.end(asked, shown, up=up)
        return end >= goal - _ROOM if up else end <= goal + _ROOM

    def freed(
        self,
        asked: npt.NDArray[np.float64],
        goal: float,
        gone: set[Count],
        cost: Mapping[Count, float],
        *,
        up: bool,
    ) -> set[Count]:
        """Counts to be hidden, at little cost, so that a sum of cells could be at ``goal``."""
        from scipy.optimize import linprog

        rows = [i for i, owner in enumerate(self.owners) if owner not in gone]
        m, c = len(rows), self.matrix.shape[1]
        # every count may move up or down, at its price for each row it moves by
        prices = [cost[self.owners[i]] for i in rows]
        known = np.concatenate([self.known[rows], np.zeros(len(self.links))])
        moves = np.vstack([np.eye(m), np.zeros((len(self.links), m))])
        equal = np.hstack([np.vstack([self.matrix[rows], self.links]), -moves, moves])
        sign = -1.0 if up else 1.0
        found: Any = linprog(
            np.concatenate([np.zeros(c), prices, prices]),
            A_ub=np.concatenate([sign * asked, np.zeros(2 * m)])[None, :],
            b_ub=[sign * goal],
            A_eq=equal,
            b_eq=known,
            bounds=(0, None),
            method="highs",
        )
        if found.status != 0:
            return {self.owners[i] for i in rows}
        moved = found.x[c : c + m] + found.x[c + m :]
        return {self.owners[i] for i, by in zip(rows, moved, strict=True) if by > _ROOM}


Asked = tuple[npt.NDArray[np.float64], float, bool]
"""Cells, how many people must be possible in them, and whether as the most or the least."""


def _cheapest(space: _Space, table: Table, gone: set[Count], least: int) -> set[Count]:
    """More counts to hide, so that no secret is known closely."""
    secrets = sorted(_secrets(table, least, space), key=lambda one: one.n)
    reader = _Reader(space, table, [one.mask for one in secrets if one.mask is not None])
    wanted: list[Asked] = []
    for secret, asked in zip(secrets, reader.asked, strict=True):
        wanted += [(asked, secret.n + least, True), (asked, max(secret.n - least, 0), False)]
    cost, more = {count: _cost(count, table) for count in table}, set[Count]()
    for asked, goal, up in wanted:
        more |= reader.freed(asked, float(goal), gone | more, cost, up=up)
    # what was hidden for one may have become needless through what was hidden for another
    if len(more) * len(wanted) <= MOST_LOOKS:
        for count in sorted(more, key=lambda one: (-cost[one], one)):
            shown = set(table) - gone - more | {count}
            if all(reader.allows(*one, shown) for one in wanted):
                more.discard(count)
    return more


def _cost(count: Count, table: Table) -> float:
    """What the reader loses: more by a large group, most by not knowing the total."""
    if count[1] == ALL:
        return 1000.0
    most = max(told.n for told in table.values()) or 1
    return 1.0 + 2.0 * table[count].n / most + 1.0 / len(json.loads(count[1]))
