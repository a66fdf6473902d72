"""The one query of an audit: keys to group by and sums to take, as narwhals expressions.

Every metric of an audit shares a single scan. Roles that are two-valued become keys, so a rate
such as the false positive rate is worked out afterwards on the few grouped rows; a metric that
also needs scores or other columns is summed by the engine under the same keys.
Only counts and conditional sums are asked of the engine, after explicit tests for null and NaN,
because engines differ in nearly everything else.
"""

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._codec import canonical, to_plain
from equipoise._validate import listing
from equipoise.claims.claim import Claim
from equipoise.claims.formula import Formula, Mention, Term, as_number, as_truth, parse
from equipoise.claims.groups import (
    Answers,
    Binned,
    Condition,
    Dimension,
    Graded,
    Levels,
    Ordered,
    Overlap,
    Period,
    Tilt,
    Values,
)
from equipoise.claims.metric import Metric
from equipoise.errors import ClaimError, TrailError
from equipoise.methods.numerics import AnyArray, FloatArray, IntArray, merge
from equipoise.trail import Roles, Trail
from equipoise.trail.engine import Frame, engine_errors, objects
from equipoise.trail.trail import (
    RESERVED,
    ROLE_NAMES,
    TWO_VALUED,
    is_text,
    not_nan,
    require_column,
    truth_number,
)

# --- Grouped rows into cells, and into clusters within cells ---


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


# --- A scan: the grouped rows that one look gave, and what is needed to read them ---

Columns = dict[str, AnyArray]

#: Sums that belong to the rows, not to a metric.
ROW_SUMS = ("present", "missing_weight", "weight", "weight2", "weight3")


def is_local(metric: Metric) -> bool:
    """Whether a metric can be worked out from the two-valued roles alone."""
    texts = isinstance(metric.value, str) and not isinstance(metric.where, nw.Expr)
    known = {Mention(role) for role in metric.binary}
    known |= {Mention(column, "column") for column in metric.models}
    read = {reference for formula in metric.formulas() for reference in formula.references}
    return texts and bool(read) and read <= known


def two_valued(metrics: Sequence[Metric]) -> tuple[str, ...]:
    """The two-valued roles that some metric reads; they are grouped by."""
    return tuple(r for r in TWO_VALUED if any(r in metric.binary for metric in metrics))


def model_columns(metrics: Sequence[Metric]) -> tuple[str, ...]:
    """Columns that some metric reads as a prediction; they are grouped by, as model0 and so on."""
    return tuple(dict.fromkeys(column for metric in metrics for column in metric.models))


def unit_columns(roles: Roles, metric: Metric) -> dict[str, str]:
    """The columns that must lie between 0 and 1, by what they are to the metric."""
    change = metric.change
    if change is None:
        return {role: roles.column(role) for role in metric.unit}
    if not change.of.unit:
        return {}
    return {"before": change.before, "after": change.after}


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
        models = (f"model{i}" for i in range(len(model_columns(self.metrics))))
        fixed = [*TWO_VALUED, *models, "cluster", "pair"]
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
        known = model_columns(self.metrics)
        named |= {
            f"model{new}": self.table[f"model{known.index(column)}"]
            for new, column in enumerate(model_columns(metrics))
        }
        named |= {name: self.table[name] for name in ("cluster", "pair") if name in self.table}
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
        models = set(metric.models) <= set(model_columns(self.metrics))
        if is_local(metric) and set(metric.binary) <= set(self.two_valued) and models:
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


# --- Claims as narwhals expressions: keys to group by, values to add up, rows to count ---


def key_of(trail: Trail, dimension: Dimension) -> nw.Expr:
    """The expression whose values are the levels of a dimension."""
    if isinstance(dimension, Levels | Values):
        return trail.key(trail.attribute(dimension.column))
    if isinstance(dimension, Period):
        return _period(trail, dimension)
    if isinstance(dimension, Tilt):
        return weight_of(trail, dimension)
    if isinstance(dimension, Overlap):
        metric = dimension.change.metric()
        old, new = (condition_of(trail, text, metric) for text in dimension.change.wheres())
        return truth_number(old) + truth_number(new) * 2
    if isinstance(dimension, Condition):
        return truth_number(condition_of(trail, dimension.formula, None, guarded=True))
    if isinstance(dimension, Graded):
        return graded_value(trail, dimension)
    if isinstance(dimension, Answers):
        return trail.key(trail.roles.column(dimension.role))
    if isinstance(dimension, Binned):
        column = trail.attribute(dimension.column)
        return nw.when(trail.present(column)).then(_bin_code(trail.number(column), dimension.cuts))
    column = ordered_column(trail, dimension)
    value, present = trail.number(column), trail.present(column)
    if dimension.edges is None:
        return nw.when(present).then(value)
    first, *inner, last = dimension.edges
    # What lies beyond the edges belongs to no range, but still to everyone.
    inside = present & (value >= first) & (value <= last)
    return nw.when(inside).then(_bin_code(value, inner))


def _period(trail: Trail, dimension: Period) -> nw.Expr:
    """The day of each row, or the name of its batch."""
    name = dimension.column
    require_column(name, trail.schema, f"period={name!r}")
    dtype = trail.schema[name]
    if dimension.dated and isinstance(dtype, nw.Datetime):
        return nw.col(name).dt.truncate("1d")
    if dimension.dated and is_text(dtype):
        # 2026-11-15 begins every way to write that day and a time on it
        return nw.col(name).str.slice(0, 10)
    return trail.key(name)


def graded_value(trail: Trail, graded: Graded) -> nw.Expr:
    """The number whose order counts, or the range it lies in; null where it is missing."""
    metric = Metric(name=graded.formula, value=graded.formula)
    if graded.times is not None:
        inside = f"log(1 + (({graded.formula}) - {graded.low!r}) / {graded.scale!r})"
        metric = Metric(name=graded.formula, value=f"{inside} * {graded.times!r}")
    value = value_of(trail, metric)
    known = all_of(trail.present(column) for column in metric_columns(trail, metric))
    return nw.when(known).then(value if graded.times is None else value.floor())


def ordered_column(trail: Trail, dimension: Ordered) -> str:
    """The column behind an ordered dimension, which may be named by its role."""
    if dimension.role:
        return trail.roles.column(dimension.column)
    return trail.attribute(dimension.column)


def metric_columns(trail: Trail, metric: Metric) -> list[str]:
    """The columns a metric reads, roles first and in the order of the roles."""
    references = dict.fromkeys(r for formula in metric.formulas() for r in formula.references)
    # A fixed order, since a row that lacks several columns is counted under the first of them.
    ordered = sorted(references, key=lambda r: (_role_rank(r), r.name))
    return list(dict.fromkeys(column_of(trail, ref, metric.by_role) for ref in ordered))


def column_of(trail: Trail, reference: Mention, by_role: bool = False) -> str:
    """The column that a name in a formula means."""
    if reference.marked == "role" or (by_role and reference.marked is None):
        if reference.name == "median":
            raise ClaimError(
                "scoring_rate needs the median of all scores, which describe, certify and flag "
                "find from a trail; this audit does not."
            )
        if reference.name not in ROLE_NAMES:
            raise ClaimError(
                f"{reference.name!r} is not a role. There is: {', '.join(ROLE_NAMES)}."
            )
        return trail.roles.column(reference.name)
    if reference.marked == "column":
        require_column(reference.name, trail.schema, f"column({reference.name!r})")
        return reference.name
    return trail.resolve(reference.name)


def value_of(trail: Trail, metric: Metric) -> nw.Expr:
    """A metric's value per row, as a double; null or NaN where it has none."""
    if isinstance(metric.value, nw.Expr):
        value = metric.value.cast(nw.Float64)
    else:
        formula = parse(metric.value)
        term = _evaluate(trail, formula, metric)
        if term.sort not in ("number", "truth"):
            raise ClaimError(
                f"Metric {metric.name!r} must give a number; {formula.text!r} gives {term.sort}."
            )
        value = as_number(term).cast(nw.Float64)
    return _clip(value, metric) if metric.clipped else value


def counted_value(trail: Trail, metric: Metric) -> nw.Expr:
    """A metric's value on the rows on which it counts, null on all others."""
    present = all_of(trail.present(column) for column in metric_columns(trail, metric))
    counts = present & condition_of(trail, metric.where, metric)
    return nw.when(counts).then(value_of(trail, metric))


def condition_of(
    trail: Trail, where: str | nw.Expr | None, metric: Metric | None, guarded: bool = False
) -> nw.Expr:
    """A truth value per row; a row with a missing value in a column it names does not hold."""
    if where is None:
        return nw.lit(True)
    if isinstance(where, nw.Expr):
        return where.fill_null(False)
    formula = parse(where)
    term = _evaluate(trail, formula, metric)
    if term.sort not in ("number", "truth"):
        raise ClaimError(f"The formula {formula.text!r} must hold or not; it gives {term.sort}.")
    value = as_truth(term)
    if guarded:
        columns = dict.fromkeys(column_of(trail, reference) for reference in formula.references)
        value = all_of([value, *(trail.present(column) for column in columns)])
    # SQL's third truth value, unknown, is no yes.
    held: nw.Expr = value.fill_null(False)
    return held


def weight_of(trail: Trail, tilt: Tilt) -> nw.Expr:
    """A tilt's weight per row; null where it has none.

    A formula that holds or not weighs by 1 and 0 like a group of that formula, so a row with a
    missing value weighs nothing; one that gives a number has no weight there.
    """
    formula = parse(tilt.formula)
    term = _evaluate(trail, formula, None)
    if term.sort == "truth":
        held = condition_of(trail, tilt.formula, None, guarded=True)
        return truth_number(held).cast(nw.Float64)
    if term.sort != "number":
        raise ClaimError(
            f"Tilt {tilt.name!r} must give a number; {formula.text!r} gives {term.sort}."
        )
    columns = dict.fromkeys(column_of(trail, reference) for reference in formula.references)
    value = term.value.cast(nw.Float64)
    known = all_of([*(trail.present(column) for column in columns), not_nan(value)])
    return nw.when(known).then(value)


def all_of(expressions: Iterable[nw.Expr]) -> nw.Expr:
    """True where every expression is."""
    every = list(expressions)
    return functools.reduce(operator.and_, every) if every else nw.lit(True)


def when(condition: nw.Expr, value: nw.Expr) -> nw.Expr:
    """The value where the condition holds, and zero elsewhere."""
    return nw.when(condition).then(value).otherwise(nw.lit(0.0))


def _evaluate(trail: Trail, formula: Formula, metric: Metric | None) -> Term:
    binary = metric.binary if metric else ()
    by_role = metric is not None and metric.by_role

    def operand(reference: Mention) -> Term:
        if metric is not None and reference.marked == "column" and reference.name in metric.models:
            return Term(trail.model_indicator(reference.name), "number")
        is_role = reference.marked != "column" and reference.name in TWO_VALUED
        if is_role and reference.name in trail.roles:
            role = reference.name
            # Read as 0 and 1 also where the column holds words, which a formula could not add up.
            if role in trail.positive or role in binary:
                return Term(trail.indicator(role), "number")
        return _column_term(trail, column_of(trail, reference, by_role))

    try:
        return formula.evaluate(operand, nw.lit)
    except TrailError as error:
        name = formula.text.strip()
        if name not in trail.schema:
            raise
        # hours-per-week is a column to whoever wrote it, and a subtraction to a formula
        said = f"The formula {name!r} subtracts or divides. For the column write column({name!r})."
        raise TrailError(said) from error


def _column_term(trail: Trail, column: str) -> Term:
    dtype = trail.schema[column]
    if isinstance(dtype, nw.Boolean):
        return Term(nw.col(column), "truth")
    if dtype.is_numeric():
        return Term(trail.number(column), "number")
    return Term(trail.key(column), "text" if is_text(dtype) else f"a column of type {dtype}")


def _clip(value: nw.Expr, metric: Metric) -> nw.Expr:
    # Engines disagree on whether NaN and null lie beyond a bound; here they stay what they are.
    known = ~value.is_null() & not_nan(value)
    return nw.when(known).then(value.clip(metric.low, metric.high))


def _bin_code(value: nw.Expr, cuts: Sequence[float]) -> nw.Expr:
    if not cuts:
        return nw.lit(0).cast(nw.Int32)
    # How many cuts are passed: engines have comparisons in common, but no way of binning.
    return _added([truth_number(value >= cut) for cut in cuts])


def _added(terms: list[nw.Expr]) -> nw.Expr:
    """A sum, in stages where it is long: engines read a sum term by term, each a level deeper."""
    if len(terms) <= _AT_ONCE:
        return nw.sum_horizontal(*terms)
    parts = [terms[i : i + _AT_ONCE] for i in range(0, len(terms), _AT_ONCE)]
    return _added([nw.sum_horizontal(*part) for part in parts])


#: Terms of a sum at once.
_AT_ONCE = 50


def _role_rank(reference: Mention) -> int:
    is_role = reference.name in ROLE_NAMES
    return ROLE_NAMES.index(reference.name) if is_role else len(ROLE_NAMES)


# --- The one query of an audit: keys to group by and sums to take, as narwhals expressions ---

#: Cubes of smaller values than this are taken for zero.
NOTHING = 1e-80

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
            frame = frame.select(*keys, **sums)
            added = [nw.col(name).sum().alias(name.removeprefix(RESERVED)) for name in sums]
            counted = [] if self.trail.roles.count else [nw.len().alias("present")]
            grouped = frame.group_by(*keys).agg(*counted, *added)
            return grouped.rename({key: key.removeprefix(RESERVED) for key in keys}).head(limit + 1)

    def rows(self, further: Mapping[str, nw.Expr]) -> Frame:
        """The rows on which the first metric counts: keys, value, weight, count, and what else."""
        metric, trail = self.metrics[0], self.trail
        columns = {f"key{i}": key_of(trail, d) for i, d in enumerate(self.dimensions)}
        columns |= further
        columns["value"] = self.value(metric)
        for role in ("weight", "count"):
            if role in trail.roles:
                columns[role] = trail.number(trail.roles.column(role))
        with engine_errors(trail.source):
            frame = trail.frame.select(**columns)
            return frame.filter(~nw.col("value").is_null())

    def value(self, metric: Metric) -> nw.Expr:
        """A metric's value on the rows on which it counts, null on all others."""
        trail, usable = self.trail, self._counts(metric)
        if (count := trail.roles.count) is not None:
            # a row that stands for nobody is in no cell
            usable = trail.present(count) & usable & (trail.number(count) > 0)
        return nw.when(usable).then(value_of(trail, metric))

    def every_row(self, further: Mapping[str, nw.Expr]) -> Frame:
        """All rows as they are: what `frame` groups by, what its sums are made of, and what else.

        For each metric that is summed: its value, whether there is one (``known``), and which of
        what it reads is there.
        """
        trail = self.trail
        columns = self.keys() | {
            role: trail.number(trail.roles.column(role))
            for role in ("weight", "count")
            if role in trail.roles
        }
        for name, value in self._values().items():
            metric = self.metrics[int(name[1 : name.index("_")])]
            prefix = name.removesuffix("value")
            columns |= {name: value, f"{prefix}known": ~value.is_null()}
            columns |= {f"{prefix}{n}": held for n, held in self._held(metric).items()}
        with engine_errors(trail.source):
            return trail.frame.select(**columns, **further)

    def keys(self) -> dict[str, nw.Expr]:
        """What to group by: dimensions, two-valued roles, clusters."""
        trail = self.trail
        keys = {f"key{i}": key_of(trail, d) for i, d in enumerate(self.dimensions)}
        keys |= {role: trail.key(trail.roles.column(role)) for role in two_valued(self.metrics)}
        models = enumerate(model_columns(self.metrics))
        keys |= {f"model{i}": trail.key(column) for i, column in models}
        if trail.roles.cluster is not None:
            keys["cluster"] = trail.key(trail.roles.cluster)
        if trail.roles.pair not in (None, trail.roles.cluster):
            keys["pair"] = trail.key(trail.roles.column("pair"))
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
        for name, held in self._held(metric).items():
            lost = nw.lit(1.0) if name.startswith("outside") else self._frequency()
            sums[f"{prefix}{name}"] = when(held, lost)
        if not metric.zero_one and not metric.in_unit:
            sums[f"{prefix}other"] = when(known & (value != 0) & (value != 1), nw.lit(1.0))
        low, high = promised_range(metric)
        if low is not None:
            sums[f"{prefix}below"] = when(known & (value < low), nw.lit(1.0))
        if high is not None:
            sums[f"{prefix}above"] = when(known & (value > high), nw.lit(1.0))
        if metric.values:
            other = all_of(value != v for v in metric.values)
            sums[f"{prefix}strange"] = when(known & other, nw.lit(1.0))
        return sums

    def _held(self, metric: Metric) -> dict[str, nw.Expr]:
        """What is there of all that a metric reads, by the names of the sums."""
        present = self._present_so_far(metric)
        held = {f"present{i}": so_far for i, so_far in enumerate(present)}
        if metric.where is not None or not present:
            held["expected"] = self._counts(metric)
        for role, column in unit_columns(self.trail.roles, metric).items():
            score = self.trail.number(column)
            held[f"outside_{role}"] = self.trail.present(column) & ((score < 0) | (score > 1))
        return held

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


def promised_range(metric: Metric) -> tuple[float | None, float | None]:
    """The ends that the values of a metric are only said to keep."""
    # that of a built-in metric follows from its formula, and that of a measure is none of rows
    promised = not isinstance(metric.shorthand(), str) and not metric.clipped
    return (metric.low, metric.high) if promised and metric.measure is None else (None, None)


def _cube(value: nw.Expr) -> nw.Expr:
    """The cube, null where it is next to nothing.

    PostgreSQL fails on a product that is too small for a double, such as the cube of a squared
    error of 1e-120, which a very confident score may well have.
    """
    return nw.when(value.abs() > NOTHING).then(value * value * value)


def _reserved(columns: dict[str, nw.Expr]) -> dict[str, nw.Expr]:
    """Names of our own, so that no column of the table can be mistaken for one."""
    return {RESERVED + name: expression for name, expression in columns.items()}
