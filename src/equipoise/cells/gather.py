"""`gather`: from a trail and claims to cells, in one scan."""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from equipoise._validate import listing
from equipoise.cells.cells import Axis, Cells
from equipoise.cells.levels import canonical, encode
from equipoise.cells.query import Query, key_of, metric_columns, ordered_column
from equipoise.claims.claim import Claim
from equipoise.claims.dimension import Binned, Condition, Dimension, Levels, Ordered
from equipoise.claims.formula import parse
from equipoise.claims.metric import Metric
from equipoise.errors import ClaimError, TrailError
from equipoise.methods.arrays import AnyArray, BoolArray, FloatArray, IntArray
from equipoise.trail import Trail
from equipoise.trail.engine import fetch

#: More grouped rows than this are refused: the attributes cut the table too finely.
MAX_CELLS = 1_000_000

Columns = dict[str, AnyArray]
_MOMENTS = ("weight", "total", "square", "weight2", "total2", "square2")


def gather(trail: Trail, claims: Sequence[Claim]) -> tuple[Cells, ...]:
    """The cells of each claim's metric, over the dimensions of all the claims, in one scan."""
    wanted = dict.fromkeys(d for claim in claims for d in claim.dimensions())
    dimensions = tuple(_with_edges(trail, dimension) for dimension in wanted)
    query = Query(trail, dimensions, tuple(claim.metric for claim in claims))
    table = _run(query)
    axes, index = _axes(query, table)
    return tuple(_cells(query, position, table, axes, index) for position in range(len(claims)))


def _run(query: Query) -> Columns:
    _check_reads(query)
    table = fetch(query.frame(MAX_CELLS), query.trail.source)
    rows = len(table["present"])
    if rows > MAX_CELLS:
        raise ClaimError(_too_fine(query))
    if rows == 0:
        raise TrailError(f"{query.trail.source} has no rows.")
    _check_rows(query, table)
    return table


def _check_reads(query: Query) -> None:
    for metric in query.metrics:
        for role in metric.binary:
            query.trail.indicator(role)
        metric_columns(query.trail, metric)


def _check_rows(query: Query, table: Columns) -> None:
    for role, rule in (
        ("count", "whole numbers of at least 0"),
        ("weight", "at least 0 and finite"),
    ):
        bad = _total(table, f"bad_{role}")
        if bad:
            column = query.trail.roles.column(role)
            raise TrailError(
                f"The {role} column {column!r} must hold {rule}; {bad:,} rows do not. "
                "Correct or remove them."
            )


def _axes(query: Query, table: Columns) -> tuple[tuple[Axis, ...], IntArray]:
    axes, codes = [], []
    for position, dimension in enumerate(query.dimensions):
        levels, code = _levels(dimension, table[f"key{position}"])
        axes.append(Axis(dimension=dimension, levels=levels))
        codes.append(code)
    size = len(table["present"])
    return tuple(axes), np.stack(codes, axis=1) if codes else np.zeros((size, 0), dtype=np.int64)


def _levels(dimension: Dimension, column: AnyArray) -> tuple[tuple[Any, ...], IntArray]:
    if isinstance(dimension, Levels):
        return encode(column, dimension.column)
    if isinstance(dimension, Condition):
        return (False, True), column.astype(np.int64)
    if isinstance(dimension, Ordered) and dimension.edges is None:
        levels, codes = encode(column, dimension.column)
        # Missing is no point of the line: it takes the position after the last one.
        return tuple(level for level in levels if level is not None), codes
    bounds = _bounds(dimension)
    missing = np.array([value is None or value != value for value in column.tolist()], dtype=bool)
    codes = np.where(missing, len(bounds), np.where(missing, 0, column)).astype(np.int64)
    named = isinstance(dimension, Binned) and bool(missing.any())
    return (*bounds, None) if named else bounds, codes


def _bounds(dimension: Binned | Ordered) -> tuple[tuple[float | None, float | None], ...]:
    ends = (None, *dimension.cuts, None) if isinstance(dimension, Binned) else dimension.edges or ()
    return tuple(itertools.pairwise(ends))


def _cells(
    query: Query, position: int, table: Columns, axes: tuple[Axis, ...], index: IntArray
) -> Cells:
    metric = query.metrics[position]
    if query.is_local(metric):
        counts, moments, excluded = _local(query, metric, table)
        zero_one = _zero_one(moments)
    else:
        prefix = f"m{position}_"
        _check_metric(query, metric, table, prefix)
        counts, moments, excluded = _pushed(query, metric, table, prefix)
        zero_one = metric.zero_one or _total(table, f"{prefix}other") == 0
    present = _floats(table["present"])
    lost = {f"missing {role}": _total(table, f"missing_{role}") for role in ("count", "weight")}
    excluded = {reason: rows for reason, rows in {**lost, **excluded}.items() if rows}
    if not counts.sum():
        raise ClaimError(_nobody(metric, present, excluded))
    merged_index, merged = _merge(index, {"present": present, "rows": counts, **moments})
    return Cells(
        metric=metric,
        axes=axes,
        index=merged_index,
        zero_one=zero_one,
        weighted=query.weighted,
        scanned=round(float(present.sum())) + sum(lost.values()),
        excluded=excluded,
        source=query.trail.source,
        **merged,
    )


def _local(
    query: Query, metric: Metric, table: Columns
) -> tuple[FloatArray, dict[str, FloatArray], dict[str, int]]:
    """A metric of two-valued roles, worked out on the grouped rows themselves."""
    roles = {role: _indicator(query.trail, role, table[role]) for role in query.two_valued}
    frequency = _floats(table["present"])
    complete: BoolArray = np.ones(len(frequency), dtype=bool)
    excluded: dict[str, int] = {}
    for role in metric.binary:
        missing = np.isnan(roles[role])
        excluded[f"missing {role}"] = round(float(frequency[complete & missing].sum()))
        complete &= ~missing
    held = _on_arrays(metric.where, roles) if metric.where is not None else np.ones_like(frequency)
    counts = complete & (held == 1)
    value = np.where(counts, _on_arrays(metric.value, roles), 0.0)
    if metric.clipped:
        value = np.clip(value, metric.low, metric.high)
    weight = _floats(table["weight"]) if query.weighted else frequency
    weight2 = _floats(table["weight2"]) if query.weighted else frequency
    moments = {
        f"{name}{order}": np.where(counts, w * power, 0.0)
        for order, w in (("", weight), ("2", weight2))
        for name, power in (("weight", 1.0), ("total", value), ("square", value**2))
    }
    return np.where(counts, frequency, 0.0), moments, excluded


def _pushed(
    query: Query, metric: Metric, table: Columns, prefix: str
) -> tuple[FloatArray, dict[str, FloatArray], dict[str, int]]:
    """A metric that the engine has summed."""
    rows = _floats(table[f"{prefix}rows"])
    total, square = (_floats(table[f"{prefix}{name}"]) for name in ("total", "square"))
    if query.weighted:
        moments = {name: _floats(table[f"{prefix}{name}"]) for name in _MOMENTS}
    else:
        moments = dict(zip(_MOMENTS, (rows, total, square) * 2, strict=True))
    columns = metric_columns(query.trail, metric)
    present = [_total(table, "present")]
    present += [_total(table, f"{prefix}present{i}") for i in range(len(columns))]
    excluded = {
        f"missing {_called(query.trail, column)}": present[i] - present[i + 1]
        for i, column in enumerate(columns)
    }
    return rows, moments, excluded


def _check_metric(query: Query, metric: Metric, table: Columns, prefix: str) -> None:
    for role in query.two_valued:
        if role in metric.binary:
            _indicator(query.trail, role, table[role])
    for role in metric.unit:
        outside = _total(table, f"{prefix}outside_{role}")
        if outside:
            raise TrailError(
                f"Metric {metric.name!r} needs a {role} between 0 and 1; {outside:,} rows of "
                f"column {query.trail.roles.column(role)!r} lie outside. Rescale the column."
            )
    # One infinite or undefined value makes the sum of squares infinite, undefined or absent.
    known = all(v is not None and math.isfinite(v) for v in table[f"{prefix}square"].tolist())
    expected = _total(table, f"{prefix}expected")
    if not known or (expected and expected != _total(table, f"{prefix}rows")):
        raise TrailError(
            f"Metric {metric.name!r} is infinite or not a number on some rows. "
            "Correct these rows, or bound the metric with .clip(low, high)."
        )


def _indicator(trail: Trail, role: str, column: AnyArray) -> FloatArray:
    """A two-valued role as 0, 1 and NaN (missing), after checking that it has two values."""
    values = [canonical(value) for value in column.tolist()]
    found = {value for value in values if value is not None}
    name = trail.roles.column(role)
    positive = canonical(trail.positive.get(role, 1))
    if role in trail.positive and positive not in found:
        raise TrailError(
            f"positive={positive!r} does not occur in the {role} column {name!r}, "
            f"which holds {listing(sorted(found, key=str))}."
        )
    allowed = found if role in trail.positive else {0, 1}
    if len(found) > 2 or not found <= allowed:
        raise TrailError(
            f"The {role} column {name!r} must hold two values, 0/1 or another pair with "
            f"positive=…; it holds {len(found)}: {listing(sorted(found, key=str), most=5)}."
        )
    return np.array([np.nan if v is None else float(v == positive) for v in values])


def _on_arrays(formula: str | nw.Expr, roles: dict[str, FloatArray]) -> FloatArray:
    if not isinstance(formula, str):
        raise ClaimError("Only formulas written as text are worked out here.")
    result = parse(formula).evaluate(lambda reference: roles[reference.name])
    return np.asarray(result, dtype=np.float64)


def _merge(
    index: IntArray, totals: dict[str, FloatArray]
) -> tuple[IntArray, dict[str, FloatArray]]:
    """Add up grouped rows that fall into the same cell, cells in the order of their levels."""
    cells, inverse = np.unique(index, axis=0, return_inverse=True)
    # Adding in a fixed order makes the sums independent of the order an engine returned rows in.
    order = np.lexsort((*totals.values(), inverse))
    place = inverse.reshape(-1)[order]
    merged = {
        name: np.bincount(place, weights=values[order], minlength=len(cells)).astype(np.float64)
        for name, values in totals.items()
    }
    return cells.astype(np.int64), merged


def _with_edges(trail: Trail, dimension: Dimension) -> Dimension:
    """Replace a number of quantiles by the edges found in the data."""
    if not isinstance(dimension, Ordered) or dimension.quantiles is None:
        return dimension
    column = ordered_column(trail, dimension)
    every = dataclasses.replace(dimension, quantiles=None)
    query = Query(trail, (every,), ())
    table = fetch(query.frame(MAX_CELLS), trail.source)
    values, counts = _observed(table)
    if len(values) == 0:
        raise TrailError(f"Column {column!r} has no value to form ranges from.")
    # The inverse of the distribution function: exact, and the same on every engine.
    share = np.cumsum(counts) / counts.sum()
    wanted = np.arange(1, dimension.quantiles) / dimension.quantiles
    inner = values[np.searchsorted(share, wanted - 1e-12)]
    edges = np.unique(np.concatenate(([values[0]], inner, [values[-1]])))
    if len(edges) < 2:
        raise ClaimError(f"Column {column!r} has one value only, {values[0]:g}; there is no range.")
    return Ordered(dimension.column, edges=tuple(map(float, edges)), role=dimension.role)


def _observed(table: Columns) -> tuple[FloatArray, FloatArray]:
    keep = np.array([value is not None and value == value for value in table["key0"].tolist()])
    values, counts = _floats(table["key0"][keep]), _floats(table["present"][keep])
    order = np.argsort(values)
    return values[order], counts[order]


def _called(trail: Trail, column: str) -> str:
    roles = [role for role, name in trail.roles if name == column]
    return roles[0] if roles else column


def _zero_one(moments: dict[str, FloatArray]) -> bool:
    return bool(np.array_equal(moments["total"], moments["square"]))


def _total(table: Columns, name: str) -> int:
    return round(float(_floats(table[name]).sum())) if name in table else 0


def _floats(column: AnyArray) -> FloatArray:
    return np.array([0.0 if v is None else float(v) for v in column.tolist()], dtype=np.float64)


def _nobody(metric: Metric, present: FloatArray, excluded: dict[str, int]) -> str:
    lost = ", ".join(f"{rows:,} {reason}" for reason, rows in excluded.items()) or "none excluded"
    where = f" (rows where {metric.where})" if isinstance(metric.where, str) else ""
    return (
        f"Metric {metric.name!r}{where} counts on no row: of {round(float(present.sum())):,} rows, "
        f"{lost}. Check the label and prediction columns."
    )


def _too_fine(query: Query) -> str:
    """Name the attribute that cuts most finely; asked only once the limit is passed."""
    sizes = {}
    for dimension in query.dimensions:
        key = query.trail.frame.select(key_of(query.trail, dimension).alias("key"))
        table = fetch(key.select(nw.col("key").n_unique().alias("n")), query.trail.source)
        sizes[dimension.name] = int(table["n"][0])
    worst = max(sizes, key=lambda name: sizes[name]) if sizes else "label"
    return (
        f"The attributes cut the table into more than {MAX_CELLS:,} cells; {worst!r} alone has "
        f"{sizes.get(worst, 0):,} levels. Leave it out, or cut it into ranges with binned(…)."
    )
