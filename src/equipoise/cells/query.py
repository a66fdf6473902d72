"""The one query of an audit: keys to group by and sums to take, as narwhals expressions.

Every metric of an audit shares a single scan. Roles that are two-valued become keys, so a rate
such as the false positive rate is worked out afterwards on the few grouped rows; a metric that
also needs scores or other columns is summed by the engine under the same keys.
Only counts and conditional sums are asked of the engine, after explicit tests for null and NaN,
because engines differ in nearly everything else.
"""

import ast
import functools
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import narwhals as nw

from equipoise.claims.dimension import Binned, Condition, Dimension, Levels, Ordered
from equipoise.claims.formula import Formula, Reference, parse
from equipoise.claims.metric import Metric
from equipoise.errors import ClaimError
from equipoise.trail import Trail
from equipoise.trail.roles import ROLE_NAMES, TWO_VALUED
from equipoise.trail.trail import Frame


@dataclass(frozen=True, slots=True)
class Query:
    """What to group by and what to add up."""

    trail: Trail
    dimensions: tuple[Dimension, ...]
    metrics: tuple[Metric, ...]

    @property
    def two_valued(self) -> tuple[str, ...]:
        """The two-valued roles that some metric reads; they are grouped by."""
        return tuple(r for r in TWO_VALUED if any(r in metric.binary for metric in self.metrics))

    @property
    def weighted(self) -> bool:
        """Whether the trail has sampling weights."""
        return self.trail.roles.weight is not None

    def frame(self, limit: int) -> Frame:
        """The grouped table, cut off just past ``limit`` rows."""
        keys = {f"key{i}": key_of(self.trail, d) for i, d in enumerate(self.dimensions)}
        keys |= {role: self.trail.text(self.trail.roles.column(role)) for role in self.two_valued}
        # A table without attributes still needs something to group by.
        keys = keys or {"key": nw.lit(0)}
        # Keys get names of their own, so that no column of the table can be mistaken for one.
        named = {name: f"__equipoise_{name}" for name in keys}
        added = {named[name]: expression for name, expression in keys.items()}
        frame = self.trail.frame.with_columns(**added, **self._values())
        grouped = frame.group_by(*named.values()).agg(*self._sums())
        return grouped.rename({new: old for old, new in named.items()}).head(limit + 1)

    def is_local(self, metric: Metric) -> bool:
        """Whether a metric can be worked out from the keys alone."""
        texts = isinstance(metric.value, str) and not isinstance(metric.where, nw.Expr)
        return texts and set(metric.names()) <= set(metric.binary)

    def _sums(self) -> list[nw.Expr]:
        sums = {"present": self._frequency()} if self.trail.roles.count else {}
        sums |= self._row_checks()
        for position, metric in enumerate(self.metrics):
            if not self.is_local(metric):
                sums |= self._metric_sums(metric, f"m{position}_")
        counted = [] if self.trail.roles.count else [nw.len().alias("present")]
        return counted + [expression.sum().alias(name) for name, expression in sums.items()]

    def _frequency(self) -> nw.Expr:
        """How many rows a row stands for; rows without a usable count or weight stand for none."""
        needed = [c for c in (self.trail.roles.count, self.trail.roles.weight) if c is not None]
        usable = all_of(self.trail.present(column) for column in needed)
        count = self.trail.roles.count
        return _when(usable, self.trail.number(count) if count else nw.lit(1.0))

    def _row_checks(self) -> dict[str, nw.Expr]:
        sums: dict[str, nw.Expr] = {}
        for role in ("count", "weight"):
            if role not in self.trail.roles:
                continue
            column = self.trail.roles.column(role)
            value, present = self.trail.number(column), self.trail.present(column)
            bad = (value < 0) | (value - value != 0)
            if role == "count":
                bad = bad | (value != value.floor())
            sums[f"missing_{role}"] = _when(~present, nw.lit(1.0))
            sums[f"bad_{role}"] = _when(present & bad, nw.lit(1.0))
        if self.weighted:
            weight = _when(
                self._usable_weight(), self.trail.number(self.trail.roles.column("weight"))
            )
            sums |= {"weight": self._frequency() * weight, "weight2": self._frequency() * weight**2}
        return sums

    def _usable_weight(self) -> nw.Expr:
        return self.trail.present(self.trail.roles.column("weight"))

    def _metric_sums(self, metric: Metric, prefix: str) -> dict[str, nw.Expr]:
        """Sums of one metric. Its value is null wherever it does not count, and sums skip nulls."""
        trail, value = self.trail, nw.col(f"__equipoise_{prefix}value")
        sums = self._moments(value, prefix)
        for i, present in enumerate(self._present_so_far(metric)):
            sums[f"{prefix}present{i}"] = _when(present, self._frequency())
        if may_fail(metric):
            counts = self._counts(metric)
            sums[f"{prefix}expected"] = _when(counts, self._frequency())
        if not metric.zero_one:
            sums[f"{prefix}other"] = _when((value != 0) & (value != 1), nw.lit(1.0))
        for role in metric.unit:
            column = trail.roles.column(role)
            score = trail.number(column)
            outside = trail.present(column) & ((score < 0) | (score > 1))
            sums[f"{prefix}outside_{role}"] = _when(outside, nw.lit(1.0))
        return sums

    def _values(self) -> dict[str, nw.Expr]:
        """The value of every metric that the engine sums, null on rows where it does not count."""
        return {
            f"__equipoise_m{i}_value": nw.when(self._counts(metric)).then(
                _clipped(value_of(self.trail, metric), metric)
            )
            for i, metric in enumerate(self.metrics)
            if not self.is_local(metric)
        }

    def _counts(self, metric: Metric) -> nw.Expr:
        present = all_of(self.trail.present(c) for c in metric_columns(self.trail, metric))
        if metric.where is None:
            return present
        return present & condition_of(self.trail, metric.where, metric)

    def _present_so_far(self, metric: Metric) -> list[nw.Expr]:
        """For each column a metric reads: this one and all before it have a value."""
        present = [self.trail.present(column) for column in metric_columns(self.trail, metric)]
        return [all_of(present[: i + 1]) for i in range(len(present))]

    def _moments(self, value: nw.Expr, prefix: str) -> dict[str, nw.Expr]:
        known = ~value.is_null()
        if self.trail.roles.count is None and not self.weighted:
            rows = {f"{prefix}rows": _when(known, nw.lit(1.0))}
            return rows | {f"{prefix}total": value, f"{prefix}square": value * value}
        frequency = self._frequency()
        sums = {f"{prefix}rows": _when(known, frequency)}
        for suffix, weight in self._weights():
            mass = frequency if weight is None else frequency * weight
            sums[f"{prefix}weight{suffix}"] = _when(known, mass)
            sums[f"{prefix}total{suffix}"] = mass * value
            sums[f"{prefix}square{suffix}"] = mass * value * value
        return sums

    def _weights(self) -> list[tuple[str, nw.Expr | None]]:
        if not self.weighted:
            return [("", None)]
        column = self.trail.roles.column("weight")
        weight = _when(self._usable_weight(), self.trail.number(column))
        return [("", weight), ("2", weight * weight)]


def key_of(trail: Trail, dimension: Dimension) -> nw.Expr:
    """The expression whose values are the levels of a dimension."""
    if isinstance(dimension, Levels):
        return trail.text(trail.attribute(dimension.column))
    if isinstance(dimension, Condition):
        return condition_of(trail, dimension.formula, None, guarded=True).cast(nw.Int64)
    if isinstance(dimension, Binned):
        column = trail.attribute(dimension.column)
        return nw.when(trail.present(column)).then(_bin_code(trail.number(column), dimension.cuts))
    column = ordered_column(trail, dimension)
    value, present = trail.number(column), trail.present(column)
    if dimension.edges is None:
        return nw.when(present).then(value)
    first, *inner, last = dimension.edges
    inside = present & (value >= first) & (value <= last)
    return nw.when(inside).then(_bin_code(value, inner))


def ordered_column(trail: Trail, dimension: Ordered) -> str:
    """The column behind an ordered dimension, which may be named by its role."""
    if dimension.role:
        return trail.roles.column(dimension.column)
    return trail.attribute(dimension.column)


def metric_columns(trail: Trail, metric: Metric) -> list[str]:
    """The columns a metric reads, roles first and in the order of the roles."""
    references = dict.fromkeys(r for formula in metric.formulas() for r in formula.references)
    ordered = sorted(references, key=lambda r: (_role_rank(r), r.name))
    return list(dict.fromkeys(column_of(trail, reference) for reference in ordered))


def column_of(trail: Trail, reference: Reference) -> str:
    """The column that a name in a formula means."""
    if reference.marked == "role":
        return trail.roles.column(reference.name)
    if reference.marked == "column":
        return (
            trail.resolve(reference.name) if reference.name not in trail.schema else reference.name
        )
    return trail.resolve(reference.name)


def value_of(trail: Trail, metric: Metric) -> nw.Expr:
    """A metric's value per row, as a double."""
    if isinstance(metric.value, nw.Expr):
        return metric.value.cast(nw.Float64)
    formula = parse(metric.value)
    value = _evaluate(trail, formula, metric)
    # Via whole numbers: not every engine casts a truth value straight to a double.
    return (
        value.cast(nw.Int64).cast(nw.Float64)
        if _is_truth(trail, formula)
        else value.cast(nw.Float64)
    )


def condition_of(
    trail: Trail, where: str | nw.Expr | None, metric: Metric | None, guarded: bool = False
) -> nw.Expr:
    """A truth value per row; a row with a missing value in a column it names does not hold."""
    if where is None:
        return nw.lit(True)
    if isinstance(where, nw.Expr):
        return where.fill_null(False)
    formula = parse(where)
    value = _evaluate(trail, formula, metric)
    if not _is_truth(trail, formula):
        value = value == 1
    if guarded:
        columns = dict.fromkeys(column_of(trail, reference) for reference in formula.references)
        value = all_of([value, *(trail.present(column) for column in columns)])
    return value.fill_null(False)


def may_fail(metric: Metric) -> bool:
    """Whether a metric may have no value although all that it reads is there (0 / 0, log of 0)."""
    if isinstance(metric.value, nw.Expr):
        return True
    return any(_is_partial(node) for node in ast.walk(parse(metric.value).tree))


def _is_partial(node: ast.AST) -> bool:
    """Whether an operation is undefined for some numbers."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        power = node.right.value if isinstance(node.right, ast.Constant) else None
        return not (isinstance(power, int) and power >= 0)
    return isinstance(node, ast.Div | ast.Mod | ast.Call)


def all_of(expressions: Iterable[nw.Expr]) -> nw.Expr:
    """True where every expression is."""
    return functools.reduce(operator.and_, expressions, nw.lit(True))


def _evaluate(trail: Trail, formula: Formula, metric: Metric | None) -> nw.Expr:
    binary = metric.binary if metric else ()

    def operand(reference: Reference) -> nw.Expr:
        role = (
            reference.name if reference.marked != "column" and reference.name in TWO_VALUED else ""
        )
        if role and role in trail.roles and (role in binary or role in trail.positive):
            return trail.indicator(role)
        column = column_of(trail, reference)
        dtype = trail.schema[column]
        return trail.number(column) if dtype.is_numeric() else trail.text(column)

    try:
        value = formula.evaluate(operand)
    except TypeError as error:
        raise ClaimError(f"The formula {formula.text!r} cannot be used: {error}.") from error
    return value if isinstance(value, nw.Expr) else nw.lit(value)


def _is_truth(trail: Trail, formula: Formula) -> bool:
    node = formula.tree
    if isinstance(node, ast.Name | ast.Call) and len(formula.references) == 1:
        column = column_of(trail, formula.references[0])
        is_reference = isinstance(node, ast.Name) or getattr(node.func, "id", "") in (
            "column",
            "role",
        )
        return is_reference and isinstance(trail.schema[column], nw.Boolean)
    return isinstance(node, ast.Compare | ast.BoolOp) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    )


def _clipped(value: nw.Expr, metric: Metric) -> nw.Expr:
    return value.clip(metric.low, metric.high) if metric.clipped else value


def _when(condition: nw.Expr, value: nw.Expr) -> nw.Expr:
    return nw.when(condition).then(value).otherwise(nw.lit(0.0))


def _bin_code(value: nw.Expr, cuts: Sequence[float]) -> nw.Expr:
    return functools.reduce(
        operator.add, ((value >= cut).cast(nw.Int64) for cut in cuts), nw.lit(0).cast(nw.Int64)
    )


def _role_rank(reference: Reference) -> int:
    names = [*ROLE_NAMES]
    return names.index(reference.name) if reference.name in names else len(names)
