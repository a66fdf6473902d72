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


def hidden(
    table: Table, least: int, already: Iterable[Count] = (), *, gaps: bool = False
) -> set[Count]:
    """The counts that must not be told; ``already`` are hidden for other reasons.

    ``gaps`` says that labels or predictions are missing in some rows. Where nothing is missing the
    reader is taken to know that, which makes him stronger.

    >>> sizes = {'{"a": "x"}': 100, '{"a": "y"}': 50, '{"a": "z"}': 4, "{}": 154}
    >>> table = {("accuracy", key): Told(n=n) for key, n in sizes.items()}
    >>> sorted(key for _, key in hidden(table, 10))
    ['{"a": "y"}', '{"a": "z"}']
    """
    gone = {c for c, told in table.items() if c[1] != ALL and told.n < least} | set(already)
    space = _Space.of(table, gaps)
    if space is None:
        # too many cells to look at: what several attributes form together is not told at all
        gone |= {count for count in table if len(json.loads(count[1])) > 1}
        table = {count: told for count, told in table.items() if len(json.loads(count[1])) < 2}
        space = _Space.of(table, gaps)
        if space is None:
            return gone | set(table)
    return gone | _cheapest(space, table, gone, least)


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
    def of(cls, table: Table, gaps: bool) -> "_Space | None":
        wheres = {key: json.loads(key) for _, key in table}
        metrics = list(dict.fromkeys(metric for metric, _ in table))
        types = _types(metrics, gaps)
        loose = _loose(table)
        blocks = _blocks(wheres.values())
        pieces = {n: _pieces(n, wheres.values(), n in loose) for block in blocks for n in block}
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


def _types(metrics: Sequence[str], gaps: bool) -> list[list[tuple[bool, bool]]]:
    """Kinds of people that the metrics tell apart: for each metric, counted and adding one."""
    own = [metric for metric in metrics if metric not in _RATES]
    found = []
    for y, p in _TYPES:
        if not gaps and None in (y, p):
            continue
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


def _loose(table: Table) -> set[str]:
    """Attributes whose groups leave somebody over, such as those with a missing value."""
    found = {
        json.dumps(sorted(set(json.loads(kids[0][1])) - set(json.loads(parent[1]))))
        for parent, kids in _families(table)
        if table[parent].n != sum(table[kid].n for kid in kids)
    }
    loose = {name for names in found for name in json.loads(names)}
    widest: dict[Count, int] = defaultdict(int)
    for (metric, key), told in table.items():
        where = json.loads(key)
        if len(where) == 1 and isinstance(next(iter(where.values())), Mapping):
            name = next(iter(where))
            widest[metric, name] = max(widest[metric, name], told.n)
    for (metric, name), most in widest.items():
        if (metric, ALL) in table and most < table[metric, ALL].n:
            loose.add(name)
    return loose


def _pieces(name: str, wheres: Iterable[Mapping[str, object]], loose: bool) -> list[Piece]:
    """The smallest parts into which the groups cut an attribute, and a part for all others."""
    others: list[Piece] = [("other", None)] if loose else []
    values = [where[name] for where in wheres if name in where]
    if any(isinstance(value, Mapping) for value in values):
        cuts = sorted({cut for value in values for cut in _ends(value)})
        inner = [("range", pair) for pair in itertools.pairwise(cuts)]
        words = {json.dumps(v) for v in values if not isinstance(v, Mapping) and not _number(v)}
        return [*inner, *(("level", word) for word in sorted(words)), *others]
    levels = sorted({json.dumps(value, sort_keys=True, default=str) for value in values})
    return [*(("level", level) for level in levels), *others]


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
    mask: Mask


def _secrets(table: Table, least: int, space: _Space) -> list[_Secret]:
    """Counts that are small: of groups, of what groups leave over, and between two metrics."""
    found: list[_Secret] = []

    def add(n: int, plus: Count, less: Sequence[Count]) -> None:
        if 0 < n < least or (n == 0 and not less):
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


Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """So many people, as the most or as the least, must be possible in some cells."""

    cells: Vector
    goal: float
    up: bool


class _Reader:
    """What a reader knows: sums over cells, those that no sum tells apart taken together."""

    def __init__(self, space: _Space, table: Table, shown: Iterable[Count]) -> None:
        listed: list[Mask] = []
        known, self.owners = [], []
        for count in shown:
            told = table[count]
            for mask, n in ((space.rows[count], told.n), (space.hits[count], told.hits)):
                if n is not None:
                    listed.append(mask)
                    known.append(float(n))
                    self.owners.append(count)
        every = np.array([*listed, *space.links], dtype=float).reshape(-1, space.cells)
        columns, of_cell = np.unique(every, axis=1, return_inverse=True)
        self.matrix, self.of_cell = columns, of_cell.ravel()
        self.known = np.array([*known, *(0.0 for _ in space.links)])
        self.cells = np.bincount(self.of_cell)

    def within(self, mask: Mask, *, up: bool) -> Vector:
        """What a sum of cells can be at most, or must be at least, in cells taken together."""
        inside = np.bincount(self.of_cell, weights=mask, minlength=len(self.cells))
        # of cells that nothing tells apart any share may lie in the sum
        return (inside > 0 if up else inside == self.cells).astype(float)

    def end(self, cells: Vector, shown: set[Count], *, up: bool) -> float:
        """The largest (or smallest) a sum of cells can be for a reader of some counts."""
        from scipy.optimize import linprog

        if not cells.any():
            return 0.0
        rows = self._rows(shown)
        sign = -1.0 if up else 1.0
        found: Any = linprog(
            sign * cells,
            A_eq=self.matrix[rows],
            b_eq=self.known[rows],
            bounds=(0, None),
            method="highs",
        )
        if found.status == 3:
            return math.inf
        # numbers that fit no table allow for nothing
        return sign * float(found.fun) if found.status == 0 else -sign * math.inf

    def _rows(self, shown: set[Count]) -> list[int]:
        links = range(len(self.owners), len(self.known))
        return [*(i for i, owner in enumerate(self.owners) if owner in shown), *links]

    def allows(self, wish: _Wish, shown: set[Count]) -> bool:
        """Whether a reader of some counts must allow for what is wished."""
        end = self.end(wish.cells, shown, up=wish.up)
        return end >= wish.goal - _ROOM if wish.up else end <= wish.goal + _ROOM

    def freed(self, wish: _Wish, shown: set[Count], cost: Mapping[Count, float]) -> set[Count]:
        """Shown counts to be hidden, at little cost, so that the wish comes true."""
        from scipy.optimize import linprog
        from scipy.sparse import csr_array, eye_array, hstack

        rows = self._rows(shown)
        owners = [self.owners[i] for i in rows if i < len(self.owners)]
        c, m = self.matrix.shape[1], len(owners)
        # every count may move up or down, at its price for each row it moves by
        prices = [cost[owner] for owner in owners]
        moves = csr_array(eye_array(len(rows), m))
        sign = -1.0 if wish.up else 1.0
        solve: Any = linprog  # its published types know no sparse matrices
        found = solve(
            np.concatenate([np.zeros(c), prices, prices]),
            A_ub=csr_array(np.concatenate([sign * wish.cells, np.zeros(2 * m)])[None, :]),
            b_ub=[sign * wish.goal],
            A_eq=hstack([csr_array(self.matrix[rows]), -moves, moves]),
            b_eq=self.known[rows],
            bounds=(0, None),
            method="highs",
        )
        if found.status != 0:
            return set(owners)
        moved = found.x[c : c + m] + found.x[c + m :]
        return {owner for owner, by in zip(owners, moved, strict=True) if by > _ROOM}


def _cheapest(space: _Space, table: Table, gone: set[Count], least: int) -> set[Count]:
    """More counts to hide, so that no secret is known closely."""
    shown = [count for count in table if count not in gone]
    reader = _Reader(space, table, shown)
    wishes = _wishes(reader, _secrets(table, least, space), least)
    cost, more = {count: _cost(count, table) for count in table}, set[Count]()
    for wish in wishes:
        if not reader.allows(wish, set(shown) - more):
            more |= reader.freed(wish, set(shown) - more, cost)
    # what was hidden for one may have become needless through what was hidden for another
    if len(more) * len(wishes) <= MOST_LOOKS:
        for count in sorted(more, key=lambda one: (-cost[one], one)):
            seen = set(shown) - more | {count}
            if all(reader.allows(wish, seen) for wish in wishes):
                more.discard(count)
    return more


def _wishes(reader: _Reader, secrets: Iterable[_Secret], least: int) -> list[_Wish]:
    """For every secret that it could be larger and smaller; of several about the same, the most."""
    found: dict[tuple[bytes, bool], _Wish] = {}
    for secret in sorted(secrets, key=lambda one: one.n):
        ends = ((True, float(secret.n + least)), (False, float(max(secret.n - least, 0))))
        for up, goal in ends:
            cells = reader.within(secret.mask, up=up)
            place = cells.tobytes(), up
            known = found.get(place)
            if known is not None:
                goal = max(goal, known.goal) if up else min(goal, known.goal)
            found[place] = _Wish(cells=cells, goal=goal, up=up)
    return list(found.values())


def _cost(count: Count, table: Table) -> float:
    """What the reader loses: more by a large group, most by not knowing the total."""
    if count[1] == ALL:
        return 1000.0
    most = max(told.n for told in table.values()) or 1
    return 1.0 + 2.0 * table[count].n / most + 1.0 / len(json.loads(count[1]))
