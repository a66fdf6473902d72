"""A scan: the grouped rows that one look at the table gave, and what is needed to read them.

Cells are made from a scan alone. A scan made for several claims can be narrowed to one of them, and
is then what a look at the table for that claim would have given.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._codec import canonical, to_plain
from equipoise._validate import listing
from equipoise.cells.cells import ClusterTable
from equipoise.claims.claim import Claim
from equipoise.claims.groups import Dimension
from equipoise.claims.metric import Metric
from equipoise.errors import ClaimError
from equipoise.methods.numerics import AnyArray, FloatArray, IntArray
from equipoise.trail import Roles
from equipoise.trail.engine import objects
from equipoise.trail.trail import TWO_VALUED

# --- Grouped rows into cells, and into clusters within cells ---


def merge(index: IntArray, totals: dict[str, FloatArray]) -> tuple[IntArray, dict[str, FloatArray]]:
    """Add up grouped rows that fall into the same cell, cells in the order of their levels."""
    cells, inverse = np.unique(index, axis=0, return_inverse=True)
    place = inverse.reshape(-1)
    distinct = {id(values): values for values in totals.values()}
    # Adding in a fixed order makes the sums independent of the order an engine returned rows in.
    order = np.lexsort((*distinct.values(), place))
    place = place[order]

    def added(values: FloatArray) -> FloatArray:
        return np.bincount(place, values[order], len(cells)).astype(np.float64)

    return cells.astype(np.int64), each_once(added, totals)


def each_once(
    change: Callable[[FloatArray], FloatArray], sums: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Every array changed, one with several names only once.

    Without weights the sums of all orders are the same arrays, and stay so.
    """
    changed = {key: change(values) for key, values in {id(v): v for v in sums.values()}.items()}
    return {name: changed[id(values)] for name, values in sums.items()}


Order = Callable[[object], str | tuple[str, object]]


def by_kind(value: object) -> tuple[str, object]:
    """The usual order of clusters: whole numbers apart from others."""
    return str(type(value)), value


def by_size(value: object) -> tuple[str, object]:
    """Another order of clusters: all numbers together."""
    return "text" if isinstance(value, str) else "number", value


def cluster_codes(column: AnyArray, order: Order = by_kind) -> IntArray:
    """A number for each row's cluster in the order of their names, -1 where it is missing."""
    coded = code(column)
    known = sorted((level for level in coded.levels if level is not None), key=order)
    return coded.place({level: i for i, level in enumerate(known)}, -1)


def cluster_table(
    clusters: IntArray, index: IntArray, counts: FloatArray, moments: dict[str, FloatArray]
) -> ClusterTable:
    """Totals by cluster and cell."""
    _, cell = np.unique(index, axis=0, return_inverse=True)
    kept = counts > 0
    pairs = np.stack([clusters[kept], cell.reshape(-1)[kept]], axis=1)
    totals = {name: moments[name][kept] for name in ("weight", "total", "square")}
    found, merged = merge(pairs, totals)
    # Clusters without a counted row say nothing, so the others are numbered anew.
    _, cluster = np.unique(found[:, 0], return_inverse=True)
    return ClusterTable(cluster=cluster.reshape(-1).astype(np.int64), cell=found[:, 1], **merged)


# --- A scan: the grouped rows that one look at the table gave, and what is needed to read them
# ---

Columns = dict[str, AnyArray]

#: Sums that belong to the rows, not to a metric.
ROW_SUMS = ("present", "missing_weight", "weight", "weight2", "weight3")


def is_local(metric: Metric) -> bool:
    """Whether a metric can be worked out from the two-valued roles alone."""
    texts = isinstance(metric.value, str) and not isinstance(metric.where, nw.Expr)
    return texts and bool(metric.names()) and set(metric.names()) <= set(metric.binary)


def two_valued(metrics: Sequence[Metric]) -> tuple[str, ...]:
    """The two-valued roles that some metric reads; they are grouped by."""
    return tuple(r for r in TWO_VALUED if any(r in metric.binary for metric in metrics))


def distinct_metrics(claims: Sequence[Claim]) -> tuple[Metric, ...]:
    """The metrics of the claims, each once, in the order in which they come."""
    found: list[Metric] = []
    for claim in claims:
        if all(_plain(claim.metric) != _plain(known) for known in found):
            found.append(claim.metric)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scan:
    """What one look at the table gave."""

    dimensions: tuple[Dimension, ...]
    """What the rows are cut by, with the edges that the data gave."""
    asked: tuple[Dimension, ...]
    """The same as they were asked for."""
    metrics: tuple[Metric, ...]
    """What is counted."""
    reads: tuple[tuple[str, ...], ...]
    """For each metric what it reads, as messages call it, in the order in which it is missed."""
    roles: Roles
    """The columns of the table."""
    positive: Mapping[str, Any]
    """The value that counts as 1, where it is not 1 or True."""
    source: str
    """What the rows were read from."""
    table: Columns
    """The grouped rows that stand for at least one row: keys in one form, and sums."""
    uncounted: int
    """Rows that do not say how many they stand for."""

    @property
    def weighted(self) -> bool:
        """Whether rows carry sampling weights."""
        return self.roles.weight is not None

    @property
    def two_valued(self) -> tuple[str, ...]:
        """The two-valued roles that are keys."""
        return tuple(role for role in TWO_VALUED if role in self.table)

    def key_columns(self) -> dict[str, AnyArray]:
        """The columns by which rows are grouped."""
        fixed = [*TWO_VALUED, "cluster"]
        names = [*(f"key{i}" for i in range(len(self.dimensions))), *fixed]
        return {name: self.table[name] for name in names if name in self.table}

    def sum_columns(self) -> dict[str, AnyArray]:
        """The columns that add up."""
        return {n: column for n, column in self.table.items() if n not in self.key_columns()}

    def third_sums(self) -> set[str]:
        """The columns of third order: none for 0/1 metrics on rows without weights."""
        names = {"weight3"} if self.weighted else set()
        for position, metric in enumerate(self.metrics):
            if not is_local(metric):
                powers = ["weight", "total", "square"] if self.weighted else []
                powers += [] if metric.zero_one else ["cube"]
                names |= {f"m{position}_{power}3" for power in powers}
        return names

    def narrowed(self, claims: Sequence[Claim]) -> "Scan":
        """What a look at the table for these claims alone would have given."""
        wanted = tuple(dict.fromkeys(d for claim in claims for d in claim.dimensions()))
        axes = [self._axis(dimension) for dimension in wanted]
        metrics = distinct_metrics(claims)
        sums: Columns = {n: c for n, c in self.table.items() if n in ROW_SUMS}
        reads: list[tuple[str, ...]] = []
        for new, metric in enumerate(metrics):
            old = self._counted(metric)
            reads.append(() if old is None else self.reads[old])
            sums |= {} if old is None else self._metric_sums(old, new)
        named = {f"key{new}": self.table[f"key{old}"] for new, old in enumerate(axes)}
        named |= {role: self.table[role] for role in two_valued(metrics)}
        if "cluster" in self.table:
            named["cluster"] = self.table["cluster"]
        return replace(
            self,
            dimensions=tuple(self.dimensions[i] for i in axes),
            asked=wanted,
            metrics=metrics,
            reads=tuple(reads),
            table=regrouped(named, sums),
        )

    def _metric_sums(self, old: int, new: int) -> Columns:
        prefix = f"m{old}_"
        return {
            f"m{new}_{name.removeprefix(prefix)}": column
            for name, column in self.table.items()
            if name.startswith(prefix)
        }

    def _axis(self, dimension: Dimension) -> int:
        for position, pair in enumerate(zip(self.dimensions, self.asked, strict=True)):
            if dimension in pair:
                return position
        names = listing(dict.fromkeys(d.name for d in self.dimensions))
        raise ClaimError(
            f"These counts are not cut by {dimension.name!r} as this claim asks, but by {names}. "
            "Pass the claim to tally(…)."
        )

    def position(self, metric: Metric) -> int:
        """The position of a metric, or -1."""
        plain = [_plain(known) for known in self.metrics]
        return plain.index(_plain(metric)) if _plain(metric) in plain else -1

    def _counted(self, metric: Metric) -> int | None:
        """The position of a metric; None where the keys tell all about it."""
        position = self.position(metric)
        if position >= 0:
            return position
        # Grouped by label and prediction, the rows answer every metric of the two.
        if is_local(metric) and set(metric.binary) <= set(self.two_valued):
            return None
        names = listing(known.name for known in self.metrics)
        raise ClaimError(
            f"Metric {metric.name!r} is not among these counts, which hold {names}. "
            "Pass its claim to tally(…)."
        )


def regrouped(keys: Columns, sums: Columns) -> Columns:
    """Grouped rows with equal keys added up; their order does not matter."""
    length = len(next(iter(sums.values())))
    coded = [code(column) for column in keys.values()]
    index = np.stack([c.codes for c in coded] or [np.zeros(length, dtype=np.int64)], axis=1)
    rows, merged = merge(index, sums)
    levels = [objects(c.levels)[place] for c, place in zip(coded, rows.T, strict=False)]
    return dict(zip(keys, levels, strict=True)) | merged


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A column by its distinct values, each in the one form that equal values have everywhere."""

    levels: list[Any]
    codes: IntArray
    """Position of each row's value among the levels."""

    def each(self, values: Sequence[object], dtype: type = object) -> AnyArray:
        """For each row what was found for its level."""
        found = objects(values) if dtype is object else np.array(values, dtype=dtype)
        return found[self.codes]

    def place(self, position: Mapping[object, int], otherwise: int) -> IntArray:
        """Where each row's value stands, or ``otherwise`` if it stands nowhere."""
        return self.each([position.get(level, otherwise) for level in self.levels], np.int64)


def code(column: AnyArray) -> Coded:
    """The distinct values of a fetched column, in the order in which they come, and where they are.

    Values are looked at once each, since most columns have few.
    """
    values = column.tolist()
    try:
        number = {value: i for i, value in enumerate(dict.fromkeys(values))}
    except TypeError:
        # lists and the like, which have a form of their own as text
        return code(objects([canonical(value) for value in values]))
    levels: dict[Any, int] = {}
    known = [levels.setdefault(canonical(value), len(levels)) for value in number]
    codes = np.array([number[value] for value in values], dtype=np.int64)
    return Coded(list(levels), np.array(known, dtype=np.int64)[codes])


def floats(column: AnyArray) -> FloatArray:
    """A fetched column of sums; the sum of nothing is zero."""
    if column.dtype != object:
        return column.astype(np.float64, copy=False)
    return np.array([0.0 if v is None else float(v) for v in column.tolist()], dtype=np.float64)


def numbers(column: AnyArray) -> FloatArray:
    """A fetched column of numbers, NaN where one is missing."""
    try:
        return column.astype(np.float64, copy=False)
    except TypeError:
        # a missing value of pandas is no number to NumPy
        known = [np.nan if canonical(value) is None else value for value in column.tolist()]
        return np.array(known, dtype=np.float64)


def plain_keys(column: AnyArray) -> AnyArray:
    """A fetched key in the one form that equal values have on every engine."""
    coded = code(column)
    return coded.each(coded.levels)


def _plain(metric: Metric) -> object:
    """A metric in a form that can be compared; one with an expression is equal to itself only."""
    return to_plain(metric, other=id)


# --- Levels: the values of an attribute in a fixed order, whatever engine they came from ---

#: An attribute with more levels than this is refused: it is more likely an identifier.
MAX_LEVELS = 10_000


def encode(
    column: AnyArray, called: str, advice: str, most: int = MAX_LEVELS
) -> tuple[tuple[object, ...], IntArray]:
    """The levels of a key in a fixed order (missing last) and each row's position among them.

    ``advice`` tells what to do when there are too many, which is more than ``most``.
    """
    coded = code(column)
    if len(coded.levels) > most:
        raise ClaimError(
            f"Attribute {called!r} has {len(coded.levels):,} levels, more than {most:,}. {advice}"
        )
    levels = sort_levels(set(coded.levels), called)
    return levels, coded.place({level: i for i, level in enumerate(levels)}, -1)


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


def _is_number(value: object) -> bool:
    return value is not None and not isinstance(value, str)
