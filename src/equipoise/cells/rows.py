"""Rows, for methods that cannot work from totals: only the columns they need, up to a limit."""

from dataclasses import dataclass

import numpy as np

from equipoise._codec import canonical
from equipoise.cells.cells import Axis, Cells
from equipoise.cells.expressions import value_of
from equipoise.cells.query import Query
from equipoise.cells.sampling import MAX_ROWS
from equipoise.cells.tallied import Tallied, rows_behind
from equipoise.cells.tilts import steady_weights
from equipoise.claims.dimension import Levels, Ordered, Tilt, Values
from equipoise.claims.metric import Metric
from equipoise.errors import TrailError
from equipoise.methods.arrays import AnyArray, FloatArray, IntArray
from equipoise.trail import Trail
from equipoise.trail.engine import fetch


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows on which a metric counts."""

    cell: IntArray
    """Position of each row's cell."""
    value: FloatArray
    """The metric."""
    weight: FloatArray | None
    """Sampling weight, if the trail has one."""
    count: IntArray | None
    """How many rows each row stands for, if the trail says."""
    extra: FloatArray | None
    """The value of a further formula, if one was asked for."""


def pull_rows(
    source: Trail | Tallied, metric: Metric, cells: Cells, extra: str | None = None
) -> Rows:
    """The rows behind the cells of a metric."""
    trail = rows_behind(source)
    # A table of counts is short however many people it speaks of.
    if cells.counted > MAX_ROWS and trail.roles.count is None:
        raise TrailError(
            f"This method needs the rows themselves, and there are {cells.counted:,}, more than "
            f"{MAX_ROWS:,}. Use one that works from totals: method=Bootstrap(engine='moments')."
        )
    dimensions = tuple(axis.dimension for axis in cells.axes)
    query = Query(trail, dimensions, (metric,))
    further = {} if extra is None else {"extra": value_of(trail, _formula(extra))}
    table = fetch(query.rows(further), trail.source)
    codes = [level_codes(axis, table[f"key{i}"]) for i, axis in enumerate(cells.axes)]
    index = np.stack(codes, axis=1) if codes else np.zeros((len(table["value"]), 0), dtype=np.int64)
    return Rows(
        cell=cell_numbers(index, cells.index),
        value=table["value"].astype(np.float64),
        weight=table["weight"].astype(np.float64) if "weight" in table else None,
        count=table["count"].astype(np.int64) if "count" in table else None,
        extra=table["extra"].astype(np.float64) if "extra" in table else None,
    )


def _formula(text: str) -> Metric:
    return Metric(name="a further formula", value=text)


def level_codes(axis: Axis, column: AnyArray) -> IntArray:
    """Level positions of raw key values; missing ones come after the last level of a line."""
    dimension = axis.dimension
    if isinstance(dimension, Tilt):
        column = steady_weights(column)
    by_value = isinstance(dimension, Levels | Values | Tilt) or (
        isinstance(dimension, Ordered) and dimension.edges is None
    )
    if by_value:
        position = {level: i for i, level in enumerate(axis.levels)}
        values = [position.get(canonical(v), len(axis)) for v in column.tolist()]
        return np.array(values, dtype=np.int64)
    ranges = len([level for level in axis.levels if level is not None])
    return np.array([ranges if v is None or v != v else int(v) for v in column.tolist()], np.int64)


def cell_numbers(index: IntArray, cells: IntArray) -> IntArray:
    """Position of each row's levels among the cells, which are sorted."""
    both = np.concatenate([cells, index])
    _, inverse = np.unique(both, axis=0, return_inverse=True)
    # The cells come first and are all different, so each marks its own number.
    number = np.empty(len(cells), dtype=np.int64)
    number[inverse.reshape(-1)[: len(cells)]] = np.arange(len(cells))
    return number[inverse.reshape(-1)[len(cells) :]]
