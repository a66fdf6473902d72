"""How group means of several attributes or models move together, from what single units do.

A unit is a cluster, or a row where rows are independent. What it does to a mean is its own distance
from that mean, by its share of the weight; the sum of the products over all units is the covariance
of the means.
"""

import numpy as np
from scipy import sparse

from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.inference.comparison import Moments, over


def unit_covariance(
    unit: IntArray, place: IntArray, weight: FloatArray, total: FloatArray, places: int
) -> FloatArray:
    """Covariance of the means at all places, from what independent units add to them.

    A unit that is a large part of its group counts for a little more, as if it had been left out.

    Parameters
    ----------
    unit
        Independent unit of each entry, numbered from 0.
    place
        Mean to which the entry belongs, numbered from 0: a group of one of the sides.
    weight
        Weight of the entry.
    total
        Weighted sum of the metric in the entry.
    places
        Number of means.

    Examples
    --------
    >>> import numpy as np
    >>> rows, value = np.arange(4), np.array([0.0, 1.0, 1.0, 1.0])
    >>> unit_covariance(rows, rows // 2, np.ones(4), value, 2).round(6).tolist()
    [[0.25, 0.0], [0.0, 0.0]]
    """
    w, s = (_added(place, x, places) for x in (weight, total))
    mean = np.nan_to_num(over(s, w))
    shape = (int(unit.max()) + 1 if unit.size else 0, places)
    part = 1 / np.maximum(w[place], 1e-300)
    shares, moves = (
        sparse.csr_array((x, (unit, place)), shape=shape)
        for x in (weight * part, (total - weight * mean[place]) * part)
    )
    # entries of one unit at one place become one; without it the mean is 1/(1 − share) further
    shares.sum_duplicates()
    moves.sum_duplicates()
    moves.data = moves.data / np.maximum(1 - shares.data, 1e-9)
    units = np.bincount(moves.indices, minlength=places)
    # the jackknife: (n − 1)/n times the sum of squares over n units
    factor = np.sqrt(np.maximum(1 - 1 / np.maximum(units, 1), 0.0))
    return np.asarray((moves.T @ moves).toarray() * np.outer(factor, factor))


def cell_covariance(cells: Moments, places: tuple[IntArray, ...], number: int) -> FloatArray:
    """Covariance of the means at all places, from cells of independent rows.

    ``places`` says for every side where each cell belongs, −1 for nowhere.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.inference.comparison import plain_moments
    >>> n, s = np.array([4.0, 4.0]), np.array([2.0, 1.0])
    >>> sides = (np.array([0, 1]), np.array([2, 2]))
    >>> cell_covariance(plain_moments(n, s, s, s), sides, 3).round(4).tolist()
    [[0.0625, 0.0, 0.0312], [0.0, 0.0469, 0.0234], [0.0312, 0.0234, 0.0293]]
    """
    centre = np.nan_to_num(over(cells.total2, cells.weight2))
    rest = np.sqrt(np.maximum(cells.square2 - centre * cells.total2, 0.0))
    entries = []
    for place in places:
        there = np.flatnonzero(place >= 0)
        at = place[there]
        weight, total = (_added(at, x[there], number) for x in (cells.weight, cells.total))
        mean, part = np.nan_to_num(over(total, weight)), 1 / np.maximum(weight[at], 1e-300)
        # the rows of a cell move a mean by how far the cell lies from it, and by how they differ
        between = np.sqrt(cells.weight2[there]) * (centre[there] - mean[at])
        entries += [(2 * there, at, between * part), (2 * there + 1, at, rest[there] * part)]
    unit, at, move = (np.concatenate(x) for x in zip(*entries, strict=True))
    moves = sparse.csr_array((move, (unit, at)), shape=(2 * centre.size, number))
    return np.asarray((moves.T @ moves).toarray())


def _added(place: IntArray, x: FloatArray, places: int) -> FloatArray:
    return np.asarray(np.bincount(place, weights=x, minlength=places), dtype=np.float64)
