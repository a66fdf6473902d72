"""The one query of an audit: keys to group by and sums to take, as narwhals expressions.

Every metric of an audit shares a single scan. Roles that are two-valued become keys, so a rate
such as the false positive rate is worked out afterwards on the few grouped rows; a metric that
also needs scores or other columns is summed by the engine under the same keys.
Only counts and conditional sums are asked of the engine, after explicit tests for null and NaN,
because engines differ in nearly everything else.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import narwhals as nw

from equipoise.cells.expressions import all_of, condition_of, key_of, metric_columns, value_of, when
from equipoise.cells.scan import is_local, two_valued
from equipoise.claims.dimension import Dimension
from equipoise.claims.metric import Metric
from equipoise.trail import Trail
from equipoise.trail.engine import engine_errors
from equipoise.trail.trail import RESERVED, Frame

#: Cubes of smaller values than this are taken for zero.
_NOTHING = 1e-80

MOST_WEIGHT = 1e60
"""Weights may be as large as this, and as small as one over it."""


@dataclass(frozen=True, slots=True)
class Query:
    """What to group by and what to add up."""

    trail: Trail
    dimensions: tuple[Dimension, ...]
    metrics: tuple[Metric, ...]

    @property
    def weighted(self) -> bool:
        """Whether the trail has sampling weights."""
        return self.trail.roles.weight is not None

    def frame(self, limit: int) -> Frame:
        """The grouped table, cut off just past ``limit`` rows."""
        with engine_errors(self.trail.source):
            keys, sums = _reserved(self.keys()), _reserved(self._sums())
            frame = self.trail.frame.with_columns(**keys, **_reserved(self._values()))
            # Each summand gets a column first: pandas can only aggregate plain columns quickly.
            frame = (frame.with_columns(**sums) if sums else frame).select(*keys, *sums)
            added = [nw.col(name).sum().alias(name.removeprefix(RESERVED)) for name in sums]
            counted = [] if self.trail.roles.count else [nw.len().alias("present")]
            grouped = frame.group_by(*keys).agg(*counted, *added)
            return grouped.rename({key: key.removeprefix(RESERVED) for key in keys}).head(limit + 1)

    def rows(self, further: Mapping[str, nw.Expr]) -> Frame:
        """The rows on which the first metric counts: keys, value, weight, count, and what else."""
        metric, trail = self.metrics[0], self.trail
        columns = {f"key{i}": key_of(trail, d) for i, d in enumerate(self.dimensions)}
        columns |= further
        usable = all_of(
            trail.present(c) for c in (trail.roles.count, trail.roles.weight) if c is not None
        )
        if trail.roles.count is not None:
            # a row that stands for nobody is in no cell
            usable = usable & (trail.number(trail.roles.count) > 0)
        # Null wherever the row does not count, so that one filter leaves the right rows.
        columns["value"] = nw.when(usable & self._counts(metric)).then(value_of(trail, metric))
        for role in ("weight", "count"):
            if role in trail.roles:
                columns[role] = trail.number(trail.roles.column(role))
        with engine_errors(trail.source):
            frame = trail.frame.select(**columns)
            return frame.filter(~nw.col("value").is_null())

    def keys(self) -> dict[str, nw.Expr]:
        """What to group by: dimensions, two-valued roles, clusters."""
        trail = self.trail
        keys = {f"key{i}": key_of(trail, d) for i, d in enumerate(self.dimensions)}
        keys |= {role: trail.key(trail.roles.column(role)) for role in two_valued(self.metrics)}
        if trail.roles.cluster is not None:
            keys["cluster"] = trail.key(trail.roles.cluster)
        # A table without attributes still needs something to group by.
        return keys or {"key": nw.lit(0)}

    def _values(self) -> dict[str, nw.Expr]:
        """The value of every metric that the engine sums, null on rows where it does not count."""
        return {
            f"m{i}_value": nw.when(self._counts(metric)).then(value_of(self.trail, metric))
            for i, metric in enumerate(self.metrics)
            if not is_local(metric)
        }

    def _sums(self) -> dict[str, nw.Expr]:
        sums = {"present": self._frequency()} if self.trail.roles.count else {}
        sums |= self._row_checks()
        for position, metric in enumerate(self.metrics):
            if not is_local(metric):
                sums |= self._metric_sums(metric, f"m{position}_")
        return sums

    def _frequency(self) -> nw.Expr:
        """How many rows a row stands for; without a count it stands for none."""
        count = self.trail.roles.count
        if count is None:
            return nw.lit(1.0)
        return when(self.trail.present(count), self.trail.number(count))

    def _row_checks(self) -> dict[str, nw.Expr]:
        sums: dict[str, nw.Expr] = {}
        trail = self.trail
        for role in ("count", "weight"):
            if role in trail.roles:
                column = trail.roles.column(role)
                value, present = trail.number(column), trail.present(column)
                # x - x is 0 for finite x only.
                bad = (value < 0) | (value - value != 0)
                if role == "count":
                    bad = bad | (value != value.floor())
                else:
                    # their cubes are added up, and must be numbers
                    bad = bad | (value > MOST_WEIGHT) | ((value > 0) & (value < 1 / MOST_WEIGHT))
                lost = nw.lit(1.0) if role == "count" else self._frequency()
                sums[f"missing_{role}"] = when(~present, lost)
                sums[f"bad_{role}"] = when(present & bad, nw.lit(1.0))
        for suffix, weight in self._weights():
            if weight is not None:
                sums[f"weight{suffix}"] = self._frequency() * weight
        return sums

    def _metric_sums(self, metric: Metric, prefix: str) -> dict[str, nw.Expr]:
        """Sums of one metric. Its value is null wherever it does not count, and sums skip nulls."""
        value = nw.col(f"{RESERVED}{prefix}value")
        known = ~value.is_null()
        sums = self._moments(metric, value, known, prefix)
        present = self._present_so_far(metric)
        for i, so_far in enumerate(present):
            sums[f"{prefix}present{i}"] = when(so_far, self._frequency())
        if metric.where is not None or not present:
            sums[f"{prefix}expected"] = when(self._counts(metric), self._frequency())
        if not metric.zero_one and not metric.in_unit:
            sums[f"{prefix}other"] = when(known & (value != 0) & (value != 1), nw.lit(1.0))
        return sums | self._range_checks(metric, value, known, prefix)

    def _range_checks(
        self, metric: Metric, value: nw.Expr, known: nw.Expr, prefix: str
    ) -> dict[str, nw.Expr]:
        sums: dict[str, nw.Expr] = {}
        for role in metric.unit:
            column = self.trail.roles.column(role)
            score = self.trail.number(column)
            outside = self.trail.present(column) & ((score < 0) | (score > 1))
            sums[f"{prefix}outside_{role}"] = when(outside, nw.lit(1.0))
        # The range of a built-in metric follows from its formula; that of another is a promise.
        if metric.shorthand() is None and not metric.clipped:
            if metric.low is not None:
                sums[f"{prefix}below"] = when(known & (value < metric.low), nw.lit(1.0))
            if metric.high is not None:
                sums[f"{prefix}above"] = when(known & (value > metric.high), nw.lit(1.0))
        if metric.values:
            other = all_of(value != v for v in metric.values)
            sums[f"{prefix}strange"] = when(known & other, nw.lit(1.0))
        return sums

    def _counts(self, metric: Metric) -> nw.Expr:
        present = all_of([*self._weighable(), *self._presence(metric)])
        if metric.where is None:
            return present
        return present & condition_of(self.trail, metric.where, metric)

    def _present_so_far(self, metric: Metric) -> list[nw.Expr]:
        """For each column a metric reads: this one and all before it have a value."""
        present = self._presence(metric)
        return [all_of([*self._weighable(), *present[: i + 1]]) for i in range(len(present))]

    def _presence(self, metric: Metric) -> list[nw.Expr]:
        return [self.trail.present(column) for column in metric_columns(self.trail, metric)]

    def _weighable(self) -> list[nw.Expr]:
        weight = self.trail.roles.weight
        return [] if weight is None else [self.trail.present(weight)]

    def _moments(
        self, metric: Metric, value: nw.Expr, known: nw.Expr, prefix: str
    ) -> dict[str, nw.Expr]:
        # 0 and 1 are their own cubes
        cubes = {} if metric.zero_one else {f"{prefix}cube3": _cube(value)}
        if self.trail.roles.count is None and not self.weighted:
            rows = {f"{prefix}rows": when(known, nw.lit(1.0))}
            return rows | {f"{prefix}total": value, f"{prefix}square": value * value} | cubes
        mass = frequency = self._frequency()
        sums = {f"{prefix}rows": when(known, frequency)}
        for suffix, weight in self._weights():
            mass = frequency if weight is None else frequency * weight
            sums[f"{prefix}weight{suffix}"] = when(known, mass)
            sums[f"{prefix}total{suffix}"] = mass * value
            sums[f"{prefix}square{suffix}"] = mass * value * value
        # the last weight is that of the highest order, the only one in which cubes are needed
        return sums | {name: mass * cube for name, cube in cubes.items()}

    def _weights(self) -> list[tuple[str, nw.Expr | None]]:
        column = self.trail.roles.weight
        if column is None:
            return [("", None)]
        weight = when(self.trail.present(column), self.trail.number(column))
        return [("", weight), ("2", weight * weight), ("3", weight * weight * weight)]


def _cube(value: nw.Expr) -> nw.Expr:
    """The cube, null where it is next to nothing.

    PostgreSQL fails on a product that is too small for a double, such as the cube of a squared
    error of 1e-120, which a very confident score may well have.
    """
    return nw.when(value.abs() > _NOTHING).then(value * value * value)


def _reserved(columns: dict[str, nw.Expr]) -> dict[str, nw.Expr]:
    """Names of our own, so that no column of the table can be mistaken for one."""
    return {RESERVED + name: expression for name, expression in columns.items()}
