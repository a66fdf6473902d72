"""Grouped rows into cells, and into clusters within cells."""

from collections.abc import Callable, Mapping

import numpy as np

from equipoise.cells.cells import ClusterTable
from equipoise.methods.arrays import AnyArray, FloatArray, IntArray


def merge(index: IntArray, totals: dict[str, FloatArray]) -> tuple[IntArray, dict[str, FloatArray]]:
    """Add up grouped rows that fall into the same cell, cells in the order of their levels."""
    cells, inverse = np.unique(index, axis=0, return_inverse=True)
    place = inverse.reshape(-1)
    distinct = {id(values): values for values in totals.values()}
    # Adding in a fixed order makes the sums independent of the order an engine returned rows in.
    order = np.lexsort((*distinct.values(), place))
    place = place[order]

    def added(values: FloatArray) -> FloatArray:
        return np.bincount(place, values[order], len(cells)).astype(np.float64)

    return cells.astype(np.int64), each_once(added, totals)


def each_once(
    change: Callable[[FloatArray], FloatArray], sums: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Every array changed, one with several names only once.

    Without weights the sums of all orders are the same arrays, and stay so.
    """
    changed = {key: change(values) for key, values in {id(v): v for v in sums.values()}.items()}
    return {name: changed[id(values)] for name, values in sums.items()}


def cluster_codes(column: AnyArray) -> IntArray:
    """A number for each grouped row's cluster, -1 where it is missing."""
    values = column.tolist()
    known = sorted(
        {value for value in values if value is not None}, key=lambda v: (str(type(v)), v)
    )
    number = {value: i for i, value in enumerate(known)}
    return np.array([number.get(value, -1) for value in values], dtype=np.int64)


def cluster_table(
    clusters: IntArray, index: IntArray, counts: FloatArray, moments: dict[str, FloatArray]
) -> ClusterTable:
    """Totals by cluster and cell."""
    _, cell = np.unique(index, axis=0, return_inverse=True)
    kept = counts > 0
    pairs = np.stack([clusters[kept], cell.reshape(-1)[kept]], axis=1)
    totals = {name: moments[name][kept] for name in ("weight", "total", "square")}
    found, merged = merge(pairs, totals)
    # Clusters without a counted row say nothing, so the others are numbered anew.
    _, cluster = np.unique(found[:, 0], return_inverse=True)
    return ClusterTable(cluster=cluster.reshape(-1).astype(np.int64), cell=found[:, 1], **merged)
