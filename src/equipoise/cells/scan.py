"""A scan: the grouped rows that one look at the table gave, and what is needed to read them.

Cells are made from a scan alone. A scan made for several claims can be narrowed to one of them, and
is then what a look at the table for that claim would have given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._codec import canonical, to_plain
from equipoise._validate import listing
from equipoise.cells.merge import merge
from equipoise.claims.claim import Claim
from equipoise.claims.dimension import Dimension
from equipoise.claims.metric import Metric
from equipoise.errors import ClaimError
from equipoise.methods.arrays import AnyArray, FloatArray, IntArray
from equipoise.trail import Roles
from equipoise.trail.engine import objects
from equipoise.trail.roles import TWO_VALUED

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
    coded = [_codes(column) for column in keys.values()]
    index = np.stack([code for _, code in coded] or [np.zeros(length, dtype=np.int64)], axis=1)
    rows, merged = merge(index, sums)
    found: Columns = {
        name: objects([values[i] for i in rows[:, position].tolist()])
        for position, (name, (values, _)) in enumerate(zip(keys, coded, strict=True))
    }
    return found | merged


def floats(column: AnyArray) -> FloatArray:
    """A fetched column of sums; the sum of nothing is zero."""
    if column.dtype == np.float64:
        return column
    return np.array([0.0 if v is None else float(v) for v in column.tolist()], dtype=np.float64)


def plain_keys(column: AnyArray) -> AnyArray:
    """A fetched key in the one form that equal values have on every engine."""
    return objects([canonical(value) for value in column.tolist()])


def _codes(column: AnyArray) -> tuple[list[Any], IntArray]:
    number: dict[Any, int] = {}
    codes = [number.setdefault(value, len(number)) for value in column.tolist()]
    return list(number), np.array(codes, dtype=np.int64)


def _plain(metric: Metric) -> Any:
    """A metric in a form that can be compared; one with an expression is equal to itself only."""
    return to_plain(metric, other=id)
