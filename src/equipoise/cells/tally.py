"""One metric on the grouped rows: what it counts, what it adds up to, what it leaves out."""

from dataclasses import dataclass

import narwhals as nw
import numpy as np

from equipoise._codec import canonical
from equipoise._validate import LARGEST, listing, rows_text
from equipoise.cells.merge import each_once
from equipoise.cells.scan import Columns, Scan, floats, is_local
from equipoise.claims.arithmetic import Term, as_number, as_truth
from equipoise.claims.formula import Reference, parse
from equipoise.claims.metric import Metric
from equipoise.errors import ClaimError, TrailError
from equipoise.methods.arrays import FloatArray

_POWERS = ("weight", "total", "square")
#: Of each order of the weights. Rows are added in the order of their last sums, so the third order
#: comes first: it has no say in the digits of the others.
_ORDERS = ("3", "", "2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Totals of one metric; arrays have one entry per grouped row."""

    rows: FloatArray
    """Rows on which the metric counts."""
    moments: dict[str, FloatArray]
    """Weighted sums, by the names they have in the cells."""
    excluded: dict[str, int]
    """Rows left out because the metric reads something that is missing."""
    zero_one: bool
    """Whether every value is 0 or 1."""
    values: tuple[float, ...] = ()
    """All the values there can be, where they are few and known."""


def tally(scan: Scan, position: int) -> Tally:
    """The totals of the metric at ``position`` of the scan."""
    metric = scan.metrics[position]
    if is_local(metric):
        return _local(scan, metric)
    prefix, reads = f"m{position}_", scan.reads[position]
    _check_metric(scan, metric, reads, prefix)
    return _pushed(scan, metric, reads, prefix)


def total(table: Columns, name: str) -> int:
    """A fetched column of counts, added up; zero if it was not asked for."""
    return round(float(floats(table[name]).sum())) if name in table else 0


def _local(scan: Scan, metric: Metric) -> Tally:
    """A metric of two-valued roles, worked out on the grouped rows themselves."""
    table = scan.table
    roles = {role: _indicator(scan, role) for role in scan.two_valued}
    frequency = table["present"]
    if scan.weighted:
        frequency = frequency - table["missing_weight"]
    complete = np.ones(len(frequency), dtype=bool)
    excluded: dict[str, int] = {}
    for role in metric.binary:
        # A row that lacks several roles is counted once, under the first of them.
        missing = np.isnan(roles[role])
        excluded[f"missing {role}"] = round(float(frequency[complete & missing].sum()))
        complete &= ~missing
    counts = complete & as_truth(_on_arrays(metric.where or "1 == 1", roles))
    # Where the metric does not count its value may not exist, and is thrown away.
    with np.errstate(all="ignore"):
        value = np.where(counts, as_number(_on_arrays(metric.value, roles)), 0.0)
    if metric.clipped:
        value = np.clip(value, metric.low, metric.high)
    if not np.all(np.abs(value) <= LARGEST):
        raise TrailError(
            f"Metric {metric.name!r} is infinite, too large, or not a number on some rows. "
            "Bound it with .clip(low, high)."
        )
    zero_one = bool(np.isin(value[counts], (0.0, 1.0)).all())
    moments = _local_moments(scan, frequency, value, zero_one)
    return Tally(
        rows=np.where(counts, frequency, 0.0),
        moments=each_once(lambda sums: np.where(counts, sums, 0.0), moments),
        excluded=excluded,
        zero_one=zero_one,
        values=_few(value[counts]),
    )


def _few(value: FloatArray) -> tuple[float, ...]:
    """The values found, if they are among −1, 0 and 1."""
    # differences of 0/1 roles; other values that occur say nothing of those that could
    return (-1.0, 0.0, 1.0) if bool(np.isin(value, (-1.0, 0.0, 1.0)).all()) else ()


def _local_moments(
    scan: Scan, frequency: FloatArray, value: FloatArray, zero_one: bool
) -> dict[str, FloatArray]:
    if not scan.weighted:
        cube = None if zero_one else frequency * value**3
        return _unweighted(frequency, frequency * value, frequency * value**2, cube)
    # the cube of a huge weight is infinite, and then so are the sums of third order, or unknown
    with np.errstate(over="ignore", invalid="ignore"):
        moments = {
            f"{name}{order}": scan.table[f"weight{order}"] * value**power
            for order in _ORDERS
            for power, name in enumerate(_POWERS)
        }
        cube = moments["total3"] if zero_one else scan.table["weight3"] * value**3
    return {"cube3": cube, **moments}


def _unweighted(
    rows: FloatArray, total: FloatArray, square: FloatArray, cube: FloatArray | None
) -> dict[str, FloatArray]:
    """Without weights the weight is the number of rows, and so are its square and its cube.

    Where the metric is 0 or 1 there is no need of a cube.
    """
    sums = dict(zip(_POWERS, (rows, total, square), strict=True))
    every = {f"{name}{order}": x for order in _ORDERS for name, x in sums.items()}
    return {"cube3": total if cube is None else cube, **every}


def _pushed(scan: Scan, metric: Metric, reads: tuple[str, ...], prefix: str) -> Tally:
    """A metric that the engine has summed."""
    table = scan.table
    rows = table[f"{prefix}rows"]
    zero_one = metric.zero_one or _only_zero_one(metric, table, prefix)
    cube = None if zero_one else table[f"{prefix}cube3"]
    if scan.weighted:
        names = [f"{name}{order}" for order in _ORDERS for name in _POWERS]
        moments = {name: table[f"{prefix}{name}"] for name in names}
        moments = {"cube3": moments["total3"] if cube is None else cube, **moments}
    else:
        moments = _unweighted(rows, table[f"{prefix}total"], table[f"{prefix}square"], cube)
    # Each column is counted among the rows that have all before it, so the losses add up.
    present = [total(table, "present") - total(table, "missing_weight")]
    present += [total(table, f"{prefix}present{i}") for i in range(len(reads))]
    excluded = {f"missing {name}": present[i] - present[i + 1] for i, name in enumerate(reads)}
    return Tally(
        rows=rows, moments=moments, excluded=excluded, zero_one=zero_one, values=metric.values
    )


def _only_zero_one(metric: Metric, table: Columns, prefix: str) -> bool:
    if metric.in_unit:
        # Between 0 and 1 a square is smaller than its root, so equal sums leave only 0 and 1.
        return bool(np.array_equal(table[f"{prefix}total"], table[f"{prefix}square"]))
    return total(table, f"{prefix}other") == 0


def _check_metric(scan: Scan, metric: Metric, reads: tuple[str, ...], prefix: str) -> None:
    table = scan.table
    for role in scan.two_valued:
        if role in metric.binary:
            _indicator(scan, role)
    for role in metric.unit:
        outside = total(table, f"{prefix}outside_{role}")
        if outside:
            raise TrailError(
                f"Metric {metric.name!r} needs a {role} between 0 and 1; {rows_text(outside)} "
                f"of column {scan.roles.column(role)!r} lie outside. Rescale the column."
            )
    _check_defined(metric, reads, table, prefix)
    for side, end in (("below", metric.low), ("above", metric.high)):
        beyond = total(table, f"{prefix}{side}")
        if beyond:
            raise TrailError(
                f"Metric {metric.name!r} says its values are never {side} {end:g}; on "
                f"{rows_text(beyond)} they are. Correct these rows, or bound the metric with "
                ".clip(low, high)."
            )
    strange = total(table, f"{prefix}strange")
    if strange:
        known = ", ".join(f"{value:g}" for value in metric.values)
        raise TrailError(
            f"Metric {metric.name!r} says its values are {known}; on {rows_text(strange)} it is "
            "something else. Correct these rows, or leave values= out."
        )


def _check_defined(metric: Metric, reads: tuple[str, ...], table: Columns, prefix: str) -> None:
    # One infinite or undefined value makes the sum of squares infinite, undefined or absent.
    finite = bool((table[f"{prefix}square"] <= LARGEST**2).all())
    last = f"{prefix}present{len(reads) - 1}"
    expected = total(table, f"{prefix}expected" if f"{prefix}expected" in table else last)
    if finite and expected == total(table, f"{prefix}rows"):
        return
    advice = "Correct these rows, or bound the metric with .clip(low, high)."
    if isinstance(metric.value, nw.Expr):
        advice = "If these rows are to be left out, say so with where=…."
    elif finite:
        advice = "Correct these rows, or leave them out with where=…."
    raise TrailError(
        f"Metric {metric.name!r} is infinite, too large, or not a number on some rows. {advice}"
    )


def _indicator(scan: Scan, role: str) -> FloatArray:
    """A two-valued role as 0, 1 and NaN (missing), after checking that it has two values."""
    values = scan.table[role].tolist()
    found = {value for value in values if value is not None}
    name = scan.roles.column(role)
    positive = canonical(scan.positive.get(role, 1))
    held = listing(sorted(found, key=str), most=5)
    if role in scan.positive and found and positive not in found:
        raise TrailError(
            f"positive={positive!r} does not occur in the {role} column {name!r}, "
            f"which holds {held}."
        )
    # 1 and 2 may be codes for no and yes or the reverse; only 0 and 1 speak for themselves.
    allowed = found if role in scan.positive else {0, 1}
    if len(found) > 2 or not found <= allowed:
        raise TrailError(
            f"The {role} column {name!r} must hold two values, 0/1 or another pair with "
            f"positive=…; it holds {len(found):,}: {held}."
        )
    return np.array([np.nan if v is None else float(v == positive) for v in values])


def _on_arrays(formula: str | nw.Expr, roles: dict[str, FloatArray]) -> Term:
    if not isinstance(formula, str):
        raise ClaimError("Only formulas written as text are worked out here.")

    def operand(reference: Reference) -> Term:
        return Term(roles[reference.name], "number")

    return parse(formula).evaluate(operand, np.float64)
