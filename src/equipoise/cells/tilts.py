"""From tilts, as asked, to the weight of every cell and the sums over them."""

from typing import Any

import numpy as np

from equipoise._codec import canonical
from equipoise._validate import listing, rows_text
from equipoise.cells.cells import Axis, Cells
from equipoise.cells.collection import Collection
from equipoise.cells.operators import sparse_sums
from equipoise.cells.views import EveryLevel
from equipoise.claims.dimension import Levels, Tilt
from equipoise.claims.tilts import Computed, Tilts
from equipoise.errors import ClaimError, TrailError
from equipoise.methods.arrays import AnyArray, FloatArray, GroupSums
from equipoise.methods.tilted import TiltSums

# What a group is called by in `where`, and in `ask(tilt=…)`.
_CALLED = "tilt"


def steady_weights(column: AnyArray) -> FloatArray:
    """Weights to 40 binary digits, NaN where they are missing.

    Engines disagree on the last digit of an exponential, and cells must not.

    >>> weights = steady_weights(np.array([None, 1, 0.3, 0.1 + 0.2], dtype=object))
    >>> weights.round(9).tolist(), bool(weights[2] == weights[3])
    ([nan, 1.0, 0.3, 0.3], True)
    """
    known = (canonical(value) for value in column.tolist())
    values = np.array([np.nan if value is None else float(value) for value in known])
    return _rounded(values)


def form_tilts(groups: Tilts, cells: Cells) -> Collection:
    """The tilts as a collection; where all of them weigh by 0 and 1, it is one of groups."""
    names = tuple(tilt.name for tilt in groups.weights)
    view = EveryLevel(Axis(dimension=Levels(_CALLED), levels=names))
    weights = np.stack([_weights(tilt, cells) for tilt in groups.weights], axis=1)
    choices = np.arange(len(names), dtype=np.int64)[:, None]
    return Collection(groups=groups, views=(view,), choices=choices, sums=_sums(weights, cells))


def _sums(weights: FloatArray, cells: Cells) -> GroupSums:
    """Operators from cells to tilts, given weights of shape (cells, tilts)."""
    flat = np.array([_is_flat(column) for column in weights.T])
    cell, tilt = np.nonzero(weights)
    number = weights.shape[1]
    members = sparse_sums(tilt, cell, number, len(weights))
    if flat.all():
        return members
    dense = np.stack([_scaled(column, cells.rows) for column in weights.T], axis=1)
    scaled = dense[cell, tilt]
    return TiltSums(
        first=sparse_sums(tilt, cell, number, len(weights), scaled),
        squares=sparse_sums(tilt, cell, number, len(weights), scaled**2),
        members=members,
        flat=flat,
        weights=dense,
    )


def _is_flat(weight: FloatArray) -> bool:
    positive = weight[weight > 0]
    return positive.size == 0 or bool((positive == positive[0]).all())


def _scaled(weight: FloatArray, rows: FloatArray) -> FloatArray:
    """A tilt on the scale on which Σ h = Σ h²: its share is then the rows that it is worth.

    An indicator is on that scale already. Any scale gives the same means; this one makes bounds
    adapt to a tilt as they do to a group of as many rows, whatever its largest weight.
    """
    if _is_flat(weight):
        return np.where(weight > 0, 1.0, 0.0)
    # dividing first keeps the squares of huge and tiny weights within range
    unit = weight / weight.max()
    return np.asarray(unit * ((rows * unit).sum() / (rows * unit * unit).sum()))


def _weights(tilt: Tilt | Computed, cells: Cells) -> FloatArray:
    """The weight of each cell, zero where the metric counts on no row."""
    found = _computed(tilt, cells) if isinstance(tilt, Computed) else _axis_weights(tilt, cells)
    counted = cells.rows > 0
    for wrong, what in (
        (np.isnan(found), "missing or not a number"),
        (found < 0, "negative"),
        (np.isinf(found), "infinite"),
    ):
        rows = round(float(cells.rows[wrong & counted].sum()))
        if rows:
            raise TrailError(
                f"The weights of tilt {tilt.name!r} must be numbers of at least 0; on "
                f"{rows_text(rows)} on which the metric counts they are {what}. Correct the "
                "column, or write a formula or function that gives every row a weight."
            )
    return np.where(counted, found, 0.0)


def _axis_weights(tilt: Tilt, cells: Cells) -> FloatArray:
    position = cells.cut_by(tilt)
    known = [np.nan if v is None else v for v in cells.axes[position].levels]
    return np.asarray(np.array(known, dtype=np.float64)[cells.index[:, position]])


def _computed(tilt: Computed, cells: Cells) -> FloatArray:
    columns = {name: _column(name, cells) for name in tilt.columns}
    found = _called(tilt, columns, len(cells))
    some = slice(0, None, 2)
    again = _called(tilt, {n: c[some] for n, c in columns.items()}, len(cells.rows[some]))
    # A weight that depends on who else is there would be worked out on cells, not on rows.
    if not np.allclose(found[some], again, rtol=1e-9, atol=0.0, equal_nan=True):
        raise ClaimError(
            f"The function of tilt {tilt.name!r} must weigh each entry by its own values alone; "
            "asked for half of the entries it gave other weights. Compute the column beforehand."
        )
    return _rounded(found)


def _called(tilt: Computed, columns: dict[str, AnyArray], size: int) -> FloatArray:
    given = {name: column.copy() for name, column in columns.items()}
    try:
        found = np.asarray(tilt.function(given), dtype=np.float64)
    except KeyError as error:
        raise ClaimError(
            f"The function of tilt {tilt.name!r} asks for {error}; it was given "
            f"{listing(columns)}. Name every column that it reads in columns=…."
        ) from error
    except Exception as error:
        raise ClaimError(f"The function of tilt {tilt.name!r} failed: {error}.") from error
    if found.shape != (size,):
        raise ClaimError(
            f"The function of tilt {tilt.name!r} must return one weight for each of {size:,} "
            f"entries; it returned an array of shape {found.shape}."
        )
    return found


def _column(name: str, cells: Cells) -> AnyArray:
    """A column's value in every cell: numbers with NaN, or text with None."""
    position = cells.axis(name)
    levels: tuple[Any, ...] = cells.axes[position].levels
    text = any(isinstance(level, str) for level in levels)
    values = levels if text else [np.nan if v is None else float(v) for v in levels]
    array = np.array(values, dtype=object if text else np.float64)
    return np.asarray(array[cells.index[:, position]])


def _rounded(values: FloatArray) -> FloatArray:
    part, power = np.frexp(values)
    # adding zero turns minus zero into zero
    return np.asarray(np.ldexp(np.rint(np.ldexp(part, 40)), power - 40) + 0.0)
