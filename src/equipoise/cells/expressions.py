"""Claims as narwhals expressions: keys to group by, values to add up, rows to count."""

import functools
import operator
from collections.abc import Iterable, Sequence

import narwhals as nw

from equipoise.claims.arithmetic import Term, as_number, as_truth
from equipoise.claims.dimension import (
    Binned,
    Condition,
    Dimension,
    Levels,
    Ordered,
    Tilt,
    Values,
)
from equipoise.claims.formula import Formula, Reference, parse
from equipoise.claims.metric import Metric
from equipoise.errors import ClaimError
from equipoise.trail import Trail
from equipoise.trail.roles import ROLE_NAMES, TWO_VALUED, is_text, require_column
from equipoise.trail.trail import not_nan, truth_number


def key_of(trail: Trail, dimension: Dimension) -> nw.Expr:
    """The expression whose values are the levels of a dimension."""
    if isinstance(dimension, Levels | Values):
        return trail.key(trail.attribute(dimension.column))
    if isinstance(dimension, Tilt):
        return weight_of(trail, dimension)
    if isinstance(dimension, Condition):
        return truth_number(condition_of(trail, dimension.formula, None, guarded=True))
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


def column_of(trail: Trail, reference: Reference, by_role: bool = False) -> str:
    """The column that a name in a formula means."""
    if reference.marked == "role" or (by_role and reference.marked is None):
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

    def operand(reference: Reference) -> Term:
        is_role = reference.marked != "column" and reference.name in TWO_VALUED
        if is_role and reference.name in trail.roles:
            role = reference.name
            # Read as 0 and 1 also where the column holds words, which a formula could not add up.
            if role in trail.positive or role in binary:
                return Term(trail.indicator(role), "number")
        return _column_term(trail, column_of(trail, reference, by_role))

    return formula.evaluate(operand, nw.lit)


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
    return nw.sum_horizontal(*(truth_number(value >= cut) for cut in cuts))


def _role_rank(reference: Reference) -> int:
    is_role = reference.name in ROLE_NAMES
    return ROLE_NAMES.index(reference.name) if is_role else len(ROLE_NAMES)
