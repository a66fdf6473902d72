"""Cells: the totals from which every group audit is computed."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from equipoise.claims.groups import Dimension, Tilt
from equipoise.claims.metric import Metric
from equipoise.errors import ClaimError
from equipoise.methods.numerics import FloatArray, IntArray

# --- Cells: the totals from which every group audit is computed ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One dimension with the levels found in the data, in a fixed order."""

    dimension: Dimension
    levels: tuple[Any, ...]
    """Values of the attribute, or (from, to) pairs for ranges; None is the missing level."""
    asked: Dimension | None = None
    """The dimension as it was asked for, where the data had to say what its edges are."""

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self.dimension.name

    def __len__(self) -> int:
        return len(self.levels)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterTable:
    """Totals by cluster and cell, sorted by cluster, one entry per pair that has rows."""

    cluster: IntArray
    """Number of the cluster."""
    cell: IntArray
    """Position of the cell."""
    weight: FloatArray
    """Sum of weights."""
    total: FloatArray
    """Weighted sum of the metric."""
    square: FloatArray
    """Weighted sum of its square."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """Totals of one metric over the atoms of the population.

    Arrays have one entry per cell. Without sampling weights ``weight``, ``weight2`` and ``weight3``
    equal ``rows``, and the totals with a 2 or a 3 equal those without.
    """

    metric: Metric
    axes: tuple[Axis, ...]
    index: IntArray = field(repr=False)
    """Level position of each cell along each axis: shape (cells, axes)."""
    present: FloatArray = field(repr=False)
    """Rows in the table, whether or not the metric counts on them."""
    rows: FloatArray = field(repr=False)
    """Rows on which the metric counts."""
    weight: FloatArray = field(repr=False)
    """Sum of weights."""
    total: FloatArray = field(repr=False)
    """Weighted sum of the metric."""
    square: FloatArray = field(repr=False)
    """Weighted sum of its square."""
    weight2: FloatArray = field(repr=False)
    """Sum of squared weights."""
    total2: FloatArray = field(repr=False)
    """Sum of the metric times the squared weight."""
    square2: FloatArray = field(repr=False)
    """Sum of the squared metric times the squared weight."""
    weight3: FloatArray = field(repr=False)
    """Sum of cubed weights."""
    total3: FloatArray = field(repr=False)
    """Sum of the metric times the cubed weight."""
    square3: FloatArray = field(repr=False)
    """Sum of the squared metric times the cubed weight."""
    cube3: FloatArray = field(repr=False)
    """Sum of the cubed metric times the cubed weight; equal to ``total3`` if it is 0 or 1."""
    zero_one: bool
    """Whether every value of the metric is 0 or 1."""
    weighted: bool
    """Whether rows carry sampling weights."""
    scanned: int
    """Rows looked at, counting frequencies."""
    excluded: Mapping[str, int]
    """Rows left out, by reason."""
    source: str
    """What the rows were read from."""
    clusters: ClusterTable | None = field(default=None, repr=False)
    """Totals by cluster, if the trail has a cluster column."""
    values: tuple[float, ...] = ()
    """All the values that the metric can take, where they are few and known."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def counted(self) -> int:
        """Rows on which the metric counts, over all cells."""
        return round(float(self.rows.sum()))

    @property
    def ineligible(self) -> int:
        """Rows that are complete but on which the metric does not count."""
        return self.scanned - self.counted - sum(self.excluded.values())

    def axis(self, name: str) -> int:
        """Position of the attribute called ``name``, or -1; a tilt is none, however called."""
        names = [None if isinstance(a.dimension, Tilt) else a.name for a in self.axes]
        return names.index(name) if name in names else -1

    def cut_by(self, dimension: Dimension) -> int:
        """Position of the axis that a collection asks for."""
        for position, axis in enumerate(self.axes):
            if dimension in (axis.dimension, axis.asked):
                return position
        raise ClaimError(
            f"The cells were not cut by {dimension.name!r}; gather them for this claim."
        )

    def fingerprint(self) -> str:
        """A digest of the cells: the same from every engine and in every row order.

        Sums of second and third order stay out of it: they are of the same rows.
        """
        content = {
            "metric": self.metric.name,
            # Written out, so that the levels 1 and '1' do not look the same.
            "axes": [[axis.name, [repr(level) for level in axis.levels]] for axis in self.axes],
            "index": self.index.tolist(),
            "counts": [array.astype(np.int64).tolist() for array in (self.present, self.rows)],
            "totals": self._rounded(),
            "scanned": self.scanned,
            "excluded": dict(sorted(self.excluded.items())),
        }
        text = json.dumps(content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def _rounded(self) -> list[list[str]]:
        """The totals to seven digits, since engines add the same numbers in different orders.

        A total may cancel to nearly nothing, so it is measured against the size of what was added.
        """
        size = np.sqrt(self.weight * self.square)
        share = np.divide(self.total, size, out=np.zeros_like(size), where=size > 0)
        return [
            [f"{value:.7g}" for value in self.weight],
            [f"{round(value, 7) + 0.0:.7f}" for value in share],
            [f"{value:.7g}" for value in self.square],
        ]


# --- Sums that do not depend on the order in which rows were added up ---

#: Binary digits that are kept: engines agree on them for any number of rows met in practice.
DIGITS = 33


def steady(x: FloatArray, size: FloatArray) -> FloatArray:
    """Sums to 33 binary digits: engines and threads add the same rows in different orders.

    Without this the last digits of a real-valued metric would differ from run to run.

    >>> one, other = (steady(np.array([x]), np.array([1.0])) for x in (0.1 + 0.2, 0.3))
    >>> bool(one == other)
    True
    """
    known = (size > 0) & np.isfinite(size)
    unit = np.exp2(np.ceil(np.log2(np.where(known, size, 1.0))) - DIGITS)
    # sums too small for so many digits are kept to those that floats have
    unit = np.maximum(unit, np.finfo(np.float64).smallest_subnormal)
    # a size that is no float, since the weights are too large for their powers, tells nothing
    return np.where(known, np.round(np.where(known, x, 0.0) / unit) * unit, x)


def steady_cells(cells: Cells) -> Cells:
    """The cells as audits take them: the same to the last digit from every engine.

    Counts are exact anyway; sums of real numbers are rounded.
    """
    if cells.zero_one and not cells.weighted:
        return cells
    table = cells.clusters
    if table is not None:
        table = replace(table, **_sums(table.weight, table.total, table.square))
    plain = _sums(cells.weight, cells.total, cells.square)
    second = _sums(cells.weight2, cells.total2, cells.square2, order="2")
    third = _sums(cells.weight3, cells.total3, cells.square3, order="3")
    cube = third["total3"] if cells.zero_one else _cube(cells)
    return replace(cells, clusters=table, **plain, **second, **third, cube3=cube)


def _sums(
    weight: FloatArray, total: FloatArray, square: FloatArray, order: str = ""
) -> dict[str, Any]:
    return {
        f"weight{order}": steady(weight, weight),
        # A sum of signed values may cancel, so it is rounded in units of what was added up.
        f"total{order}": steady(total, _between(weight, square)),
        f"square{order}": steady(square, square),
    }


def _between(weight: FloatArray, square: FloatArray) -> FloatArray:
    """The geometric mean, also where the product of two powers of weights is none of a float."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = weight * square
        usual = (product >= np.finfo(np.float64).tiny) & np.isfinite(product)
        return np.where(usual, np.sqrt(product), np.sqrt(weight) * np.sqrt(square))


def _cube(cells: Cells) -> FloatArray:
    """The sums of cubes, in units of what was added up.

    The cubes, taken without their signs, add up to at least what they would if all values were
    equally large; where a few outweigh the others, they show in the sum itself.
    """
    weight, square, cube = cells.weight3, cells.square3, cells.cube3
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.divide(square, weight, out=np.zeros_like(square), where=weight > 0)
        size = np.maximum(np.abs(cube), square * np.sqrt(mean))
    return steady(cube, size)
