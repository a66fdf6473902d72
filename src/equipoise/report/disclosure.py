"""Which counts may be published so that no hidden one can be worked out closely.

A reader knows the published counts, and that each is a sum of people in cells: of all attributes of
the page, times what happened and what was decided. What he concludes about a hidden count lies
between the ends of two linear programmes. There must be room for ``least`` on either side of every
small count (down to the one person without whom there is no group). He knows this rule too, and can
ask on which tables it would hide just these groups. So nothing is hidden because it is cheapest: of
one attribute all groups below twice the limit go together, of several whole blocks, formed by sizes
that are shown. Whether that is enough follows from what he then sees, and from nothing else: every
hidden group that may be small must be possible with one row and with twice the limit. Otherwise
blocks become wider. Groups are hidden under every metric, and of metrics of which nothing is known
whose numbers give away a few people, the later is not told at all (`too_close`).
"""

import ast
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
#: Other groups that are looked at, the smallest first, for one that may be why some are hidden.
MOST_OTHERS = 12
_ROOM = 1e-6

#: What each metric counts, over (label, prediction, score) with None for a missing value: the rows
#: on which it counts, and those among them that add one.
TYPES = tuple(itertools.product((0, 1, None), (0, 1, None), (1, None)))
RATES: dict[str, tuple[str, str]] = {
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
_OF_DECISIONS = (
    *("f1", "lift", "balanced_accuracy", "matthews"),
    *("macro_recall", "macro_precision", "macro_f1"),
)
_OF_SCORES = (
    *("brier", "log_loss", "squared_error", "absolute_error", "residual", "auc", "gini"),
    *("expected_calibration_error", "actual_expected"),
)
#: The rows on which a metric counts, if it is known who they are.
COUNTED = {
    **{metric: counted for metric, (counted, _) in RATES.items()},
    **dict.fromkeys(_OF_DECISIONS, "y is not None and p is not None"),
    **dict.fromkeys(_OF_SCORES, "y is not None and s is not None"),
}
#: Kinds of people that metrics of which nothing is known may tell apart.
MOST_KINDS = 100


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
    secrets = _secret_keys(table, least, gaps) | {key for _, key in already}
    if not secrets:
        return set()
    lean, crowd = _lean(table)
    gone = {count for count in table if count[0] in crowd}
    space = Space.of(lean, gaps)
    if space is None:
        # too many cells to look at: what several attributes form together is not told at all
        gone |= {count for count in table if len(json.loads(count[1])) > 1}
        lean = {count: told for count, told in lean.items() if count not in gone}
        space = Space.of(lean, gaps)
    table = {count: told for count, told in table.items() if count not in gone}
    secrets &= {key for _, key in table}
    if space is None:
        return gone | set(table)
    reader = Reader(space, lean, least)
    wheres = [json.loads(key) for _, key in table]
    # a level may stand in groups of several attributes alone
    sizes = [len({in_text(w[name]) for w in wheres if name in w}) for name in _names(table)]
    width, found = 2, set[Count]()
    while width < 4 * max(sizes, default=1):
        blocks = _in_blocks(table, secrets, least, width)
        found = {count for count in table if count[1] in blocks}
        if reader.allows(set(lean) - found):
            break
        width *= 2
    keys = {key for _, key in _further(reader, lean, found & set(lean))}
    return gone | found | {count for count in table if count[1] in keys}


def _lean(table: Table) -> tuple[Table, set[str]]:
    """The table without metrics that say nothing new of anybody's number, and those too many.

    Where the numbers of all groups are those of another metric, so are the rows.
    """
    sizes: dict[str, dict[Key, int]] = defaultdict(dict)
    for (metric, key), told in table.items():
        sizes[metric][key] = told.n
    kept: dict[str, dict[Key, int]] = {}
    crowd, kinds = set[str](), 1
    for metric, own in sizes.items():
        states = 1 if metric in COUNTED else len(_states(metric))
        if states == 2 and own in kept.values():
            continue
        if kinds * states > MOST_KINDS:
            crowd.add(metric)
            continue
        kept[metric], kinds = own, kinds * states
    return {count: told for count, told in table.items() if count[0] in kept}, crowd


def is_rate(metric: str) -> bool:
    """Whether a metric adds one or nothing for each row, by what it is and not by its values.

    >>> is_rate("accuracy"), is_rate("auc"), is_rate('{"kind": "metric", "value": "age > 40"}')
    (True, False, True)
    """
    if metric in RATES or metric in ("scoring_rate", "coverage"):
        return True
    try:
        made = json.loads(metric)
        value = ast.parse(str(made["value"]), mode="eval").body
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError):
        return False
    negated = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
    return negated or isinstance(value, ast.Compare | ast.BoolOp)


# --- What goes together: decided by what the reader sees, not by what is small ---


def _secret_keys(table: Table, least: int, gaps: bool) -> set[Key]:
    """Groups that are small, or small but for another metric, or the least of a small remainder."""
    found = {key for (_, key), told in table.items() if key != ALL and told.n < least}
    for one, other in _nested(table, gaps):
        if 0 < table[one].n - table[other].n < least:
            found.add(one[1])
    for parent, kids in families(table):
        if 0 < table[parent].n - sum(table[kid].n for kid in kids) < least:
            found.add(min((table[kid].n, kid[1]) for kid in kids)[1])
    return found - {ALL}


def _in_blocks(table: Table, secrets: set[Key], least: int, width: int) -> set[Key]:
    """Groups to be hidden with those that must be."""
    wheres = {key: json.loads(key) for _, key in table if key != ALL}
    names = _names(table)
    made = {name: _levels_in_blocks(table, name, secrets, least, width) for name in names}

    def block(where: Mapping[str, object]) -> tuple[tuple[str, int], ...]:
        return tuple((name, made[name][0][in_text(where[name])]) for name in sorted(where))

    hit = {block(wheres[key]) for key in secrets if len(wheres[key]) > 1}
    found = set[Key]()
    for key, where in wheres.items():
        if len(where) > 1:
            # of a level that is hidden all parts are
            hides = any(in_text(value) in made[name][1] for name, value in where.items())
            found |= {key} if hides or block(where) in hit else set()
        else:
            ((name, value),) = where.items()
            found |= {key} if in_text(value) in made[name][1] else set()
    return found


def _names(table: Table) -> list[str]:
    return sorted({name for _, key in table for name in json.loads(key)})


def in_text(value: object) -> str:
    """Plain data as text: the same for the same data."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _levels_in_blocks(
    table: Table, name: str, secrets: set[Key], least: int, width: int
) -> tuple[dict[str, int], set[str]]:
    """The block of each level of an attribute, by size, and the levels that are hidden."""
    sizes: dict[str, dict[str, int]] = defaultdict(dict)
    levels: dict[str, Key] = {}
    for (metric, key), told in table.items():
        where = json.loads(key)
        if set(where) == {name}:
            sizes[metric][in_text(where[name])] = told.n
            levels[in_text(where[name])] = key
    gone = {level for level, key in levels.items() if key in secrets}
    if gone:
        for metric, own in sizes.items():
            every = table.get((metric, ALL))
            rest = 0 if every is None else every.n - sum(own.values())
            gone |= _with_least(own, gone & set(own), max(rest, 0), least)
    others = {in_text(json.loads(key)[name]) for _, key in table if name in json.loads(key)}
    size = {
        level: max((own.get(level, 0) for own in sizes.values()), default=0) for level in others
    }
    stay = sorted(others - gone, key=lambda level: (size[level], level))
    ordered = [*sorted(gone), *stay]
    # the last is not alone
    last = max(len(ordered) - 2, 0) // width
    numbers = {level: min(i // width, last) for i, level in enumerate(ordered)}
    # what is hidden is in one block, whose sizes are not shown
    return numbers | dict.fromkeys(gone, 0), gone


def _with_least(sizes: Mapping[str, int], gone: set[str], rest: int, least: int) -> set[str]:
    """With small groups go all below twice the limit, and the next until there is room."""
    found = gone | {level for level, n in sizes.items() if n < 2 * least}
    small = [n for level, n in sizes.items() if n < least] + [rest] * (0 < rest < least)
    most = max(small, default=least - 1) + least
    for level in sorted(set(sizes) - found, key=lambda level: (sizes[level], level)):
        members = len(found) + (rest > 0)
        if members > 1 and sum(sizes[each] for each in found) + rest >= most + members - 1:
            break
        found.add(level)
    return found


# --- Cells: all attributes of the page, times label and prediction ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The cells, and which of them each count sums."""

    cells: int
    rows: Mapping[Count, Mask]
    hits: Mapping[Count, Mask]
    gaps: bool
    """Whether values may be missing."""
    links: list[npt.NDArray[np.float64]] = field(default_factory=list)
    """Sums that are the same however people are cut: each is zero."""

    @classmethod
    def of(
        cls, table: Table, gaps: bool, types: Sequence[Sequence[tuple[bool, bool]]] = ()
    ) -> "Space | None":
        """The cells of a table; None if they are too many."""
        wheres = {key: json.loads(key) for _, key in table}
        metrics = list(dict.fromkeys(metric for metric, _ in table))
        types = types or _types(metrics, gaps)
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
        made = cls(cells=int(starts[-1]), rows=rows, hits=hits, gaps=gaps)
        for i in range(1, len(blocks)):
            for number in range(len(types)):
                link = np.zeros(made.cells)
                link[starts[0] + number : starts[1] : len(types)] = 1.0
                link[starts[i] + number : starts[i + 1] : len(types)] = -1.0
                made.links.append(link)
        return made


def _types(metrics: Sequence[str], gaps: bool) -> list[list[tuple[bool, bool]]]:
    """Kinds of people that the metrics tell apart: for each metric, counted and adding one."""
    own = [metric for metric in metrics if metric not in COUNTED]
    found = []
    for person in kinds_of_people(gaps):
        known = {}
        for metric in COUNTED:
            on = counts_on(metric, person)
            known[metric] = (on, on and metric in RATES and holds(RATES[metric][1], person))
        # of other metrics nothing is known but that they count on rows of their own
        for chosen in itertools.product(*map(_states, own)):
            others = dict(zip(own, chosen, strict=True))
            found.append([known[m] if m in known else others[m] for m in metrics])
    return list(map(list, dict.fromkeys(map(tuple, found))))


def kinds_of_people(gaps: bool) -> list[tuple[int | None, ...]]:
    """Label, prediction and score that somebody may have."""
    return [person for person in TYPES if gaps or None not in person]


def _states(metric: str) -> list[tuple[bool, bool]]:
    """What a metric of which nothing is known may make of somebody."""
    return [(False, False), (True, False), *([(True, True)] if is_rate(metric) else [])]


def holds(text: str, person: tuple[int | None, ...]) -> bool:
    """Whether something is true of somebody."""
    return bool(eval(text, dict(zip("yps", person, strict=True))))


def counts_on(metric: str, person: tuple[int | None, ...]) -> bool:
    """Whether a metric counts on somebody."""
    return holds(COUNTED[metric], person)


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
        for parent, kids in families(table)
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
        cuts = sorted({cut for value in values for cut in cuts_of(value)})
        inner = [("range", pair) for pair in itertools.pairwise(cuts)]
        words = {json.dumps(v) for v in values if not isinstance(v, Mapping) and not _number(v)}
        return [*inner, *(("level", word) for word in sorted(words)), *others]
    levels = sorted({json.dumps(value, sort_keys=True, default=str) for value in values})
    return [*(("level", level) for level in levels), *others]


def cuts_of(value: object) -> list[tuple[float, int]]:
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
        ends = cuts_of(value)
        return bool(ends) and ends[0] <= what[0] and what[1] <= ends[1]
    return kind == "level" and what == json.dumps(value, sort_keys=True, default=str)


# --- What must not be known: small groups, small remainders, small differences of metrics ---


def _may_be_small(table: Table, hidden: set[Count], space: Space) -> dict[bytes, Mask]:
    """What is not told and may be small, as far as its place goes: cells it is the sum of.

    Hidden groups, what they leave over, and what lies between two metrics of one. Which of them
    are small is nobody's business here: a rule that looked would tell.
    """
    masks = [space.rows[count] for count in hidden if count[1] != ALL]
    for parent, kids in families(table):
        if parent in hidden or not hidden.isdisjoint(kids):
            rest = space.rows[parent].copy()
            for kid in kids:
                rest &= ~space.rows[kid]
            masks.append(rest)
    for one, other in _nested(table, space.gaps):
        if one in hidden or other in hidden:
            masks.append(space.rows[one] & ~space.rows[other])
    return {mask.tobytes(): mask for mask in masks if mask.any()}


def _nested(table: Table, gaps: bool) -> list[tuple[Count, Count]]:
    """Pairs of metrics of a group, of which the second counts on some rows of the first."""
    by_group: dict[Key, list[Count]] = defaultdict(list)
    for count in table:
        by_group[count[1]].append(count)
    pairs = (pair for counts in by_group.values() for pair in itertools.permutations(counts, 2))
    return [(one, other) for one, other in pairs if counts_within(other[0], one[0], gaps)]


def counts_within(small: str, large: str, gaps: bool) -> bool:
    """Whether one metric counts only on rows on which another does, and not on all of them."""
    if small not in COUNTED or large not in COUNTED or small == large:
        return False
    pairs = [(counts_on(small, one), counts_on(large, one)) for one in kinds_of_people(gaps)]
    return all(b or not a for a, b in pairs) and any(a != b for a, b in pairs)


def families(table: Table) -> list[tuple[Count, list[Count]]]:
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


# --- The reader's two linear programmes ---


Vector = npt.NDArray[np.float64]


class Reader:
    """What a reader knows: sums over cells, those that no sum tells apart taken together."""

    def __init__(self, space: Space, table: Table, least: int) -> None:
        self.space, self.table, self.least = space, table, least
        listed: list[Mask] = []
        known, self.owners, self.groups = [], [], []
        for count, told in table.items():
            if told.n > 0:
                # that there is such a group the reader knows
                self.groups.append(len(listed))
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

    def end(self, cells: Vector, shown: set[Count], *, up: bool, small: int | None = None) -> float:
        """The largest (or smallest) a sum of cells can be for a reader of some counts.

        ``small`` is the place of a group that must have fewer rows than the limit.
        """
        from scipy.optimize import linprog

        if not cells.any():
            return 0.0
        rows = self._rows(shown)
        sign = -1.0 if up else 1.0
        there = [i for i in self.groups if self.owners[i] not in shown]
        most = [] if small is None else [small]
        found: Any = linprog(
            sign * cells,
            A_eq=self.matrix[rows],
            b_eq=self.known[rows],
            A_ub=np.concatenate([-self.matrix[there], self.matrix[most]]),
            b_ub=np.array([-1.0] * len(there) + [self.least - 1.0] * len(most)),
            bounds=(0, None),
            method="highs",
        )
        if found.status == 3:
            return math.inf
        return sign * float(found.fun) if found.status == 0 else math.nan

    def _rows(self, shown: set[Count]) -> list[int]:
        links = range(len(self.owners), len(self.known))
        return [*(i for i, owner in enumerate(self.owners) if owner in shown), *links]

    def allows(self, shown: set[Count]) -> bool:
        """Whether nobody who is hidden is known closely by a reader of some counts.

        A function of what he sees and of nothing else: whatever may be small must be possible
        with one person and with twice the limit, whether it is small or not. He also knows that
        something is hidden because a group is small: if it is not this one, it must be possible
        that it is another.
        """
        hidden = set(self.table) - shown
        masks = _may_be_small(self.table, hidden, self.space)
        lowest = {place: self._lowest(mask, shown) for place, mask in masks.items()}
        open_ = {place: mask for place, mask in masks.items() if lowest[place] < self.least - _ROOM}
        groups = [
            i
            for i in self.groups
            if self.owners[i] in hidden and self.space.rows[self.owners[i]].tobytes() in open_
        ]
        groups.sort(key=lambda i: (lowest[self.space.rows[self.owners[i]].tobytes()], i))
        return all(
            self._is_open(place, mask, lowest[place], groups, shown)
            for place, mask in open_.items()
        ) and self._either_way(open_, shown)

    def knows_few(self, mask: Mask, shown: set[Count]) -> bool:
        """Whether somebody is in a sum of cells, but it is known to be only a few."""
        low, high = (self.end(self.within(mask, up=up), shown, up=up) for up in (False, True))
        if math.isnan(low) or math.isnan(high):
            return True
        wide = low <= 1 + _ROOM and high >= 2 * self.least - 1 - _ROOM
        return high > _ROOM and low < self.least - _ROOM and not wide

    def _lowest(self, mask: Mask, shown: set[Count]) -> float:
        end = self.end(self.within(mask, up=False), shown, up=False)
        # numbers that fit no table, such as those of weighted rows, tell nothing
        return 0.0 if math.isnan(end) else end

    def _is_open(
        self, place: bytes, mask: Mask, lowest: float, groups: list[int], shown: set[Count]
    ) -> bool:
        """Whether what may be small may also be one person, and twice the limit."""
        if lowest > 1 + _ROOM:
            # a group of two groups has two people, if nothing at all is shown
            anyway = self.end(self.within(mask, up=False), set(), up=False)
            if lowest > anyway + _ROOM:
                return False
        cells, goal = self.within(mask, up=True), 2 * self.least - 1 - _ROOM
        end = self.end(cells, shown, up=True)
        if math.isnan(end):
            return True
        others = [i for i in groups if self.space.rows[self.owners[i]].tobytes() != place]
        ends = (self.end(cells, shown, up=True, small=i) for i in others[:MOST_OTHERS])
        return end >= goal and any(other >= goal for other in ends)

    def _either_way(self, open_: Mapping[bytes, Mask], shown: set[Count]) -> bool:
        """Whether of every group that may be small some may add one, and some may not.

        Unless a group that is shown, and that it is part of, says the same of everybody in it.
        """
        for count, told in self.table.items():
            mask = self.space.rows[count]
            if count in shown or told.hits is None or mask.tobytes() not in open_:
                continue
            for adds in (True, False):
                chosen = self.space.hits[count] if adds else mask & ~self.space.hits[count]
                end = self.end(self.within(chosen, up=True), shown, up=True)
                if end < 1 - _ROOM and not self._said(count, adds, shown):
                    return False
        return True

    def _said(self, count: Count, adds: bool, shown: set[Count]) -> bool:
        """Whether a shown group says that nobody in it adds one, or that everybody does."""
        mask = self.space.rows[count]
        return any(
            own[0] == count[0]
            and self.table[own].hits == (0 if adds else self.table[own].n)
            and not (mask & ~self.space.rows[own]).any()
            for own in shown
        )


def _further(reader: Reader, table: Table, gone: set[Count]) -> set[Count]:
    """More counts to hide, so that no secret is known closely: all of some attributes at a time."""
    formed = {count: tuple(sorted(json.loads(count[1]))) for count in table}
    touched = {name for count in gone for name in formed[count]}
    # what several attributes form goes before the attributes themselves, everybody last
    order = sorted(
        set(formed.values()),
        key=lambda names: (not names, touched.isdisjoint(names), -len(names), names),
    )
    gone = set(gone)
    for names in order:
        if reader.allows(set(table) - gone):
            break
        gone |= {count for count, own in formed.items() if own == names}
    return gone
