"""A row-by-row bootstrap written straight from the algorithms: slow, and easy to check by eye."""

from collections.abc import Callable

import numpy as np

from equipoise.methods.numerics import BoolArray, FloatArray, GroupSums, IntArray

TargetOf = Callable[[IntArray, BoolArray], float]
"""From the drawn row numbers and one group's membership of all rows to θ."""


def disparity(drawn: IntArray, member: BoolArray, loss: FloatArray, theta: float) -> float:
    """ε of one group in one sample; 0 stands in where the group is empty (its share is 0 too)."""
    inside = drawn[member[drawn]]
    return float(np.mean(loss[inside])) - theta if inside.size else 0.0


def cell_sums(cell: IntArray, x: FloatArray, cells: int) -> FloatArray:
    return np.asarray(np.bincount(cell, x, cells), dtype=np.float64)


def share(drawn: IntArray, member: BoolArray) -> float:
    return float(np.mean(member[drawn]))


def scale_of(member: BoolArray, loss: FloatArray, floor: float) -> float:
    """ŝ with w₀ = ∞."""
    return float(max(float(np.mean(member)), floor) ** 1.5 * np.std(loss))


def algorithm_2(
    groups: BoolArray,
    loss: FloatArray,
    theta: TargetOf,
    scales: list[float],
    resamples: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Maximum and minimum over the groups of the rescaled process, per resample."""
    n = loss.size
    rows = np.arange(n)
    before = [disparity(rows, g, loss, theta(rows, g)) for g in groups]
    tops, bottoms = np.zeros(resamples), np.zeros(resamples)
    for b in range(resamples):
        drawn = rng.integers(0, n, size=n)
        values = []
        for g, s, e in zip(groups, scales, before, strict=True):
            now = disparity(drawn, g, loss, theta(drawn, g))
            values.append(share(rows, g) * share(drawn, g) * (now - e) / s)
        tops[b], bottoms[b] = max(values), min(values)
    return tops, bottoms


def algorithm_3(
    groups: BoolArray,
    loss: FloatArray,
    theta: TargetOf,
    limit: float,
    resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Maximum over the groups of the certificate process, per resample."""
    n = loss.size
    rows = np.arange(n)
    before = [share(rows, g) * (disparity(rows, g, loss, theta(rows, g)) - limit) for g in groups]
    tops = np.zeros(resamples)
    for b in range(resamples):
        drawn = rng.integers(0, n, size=n)
        now = [
            share(drawn, g) * (disparity(drawn, g, loss, theta(drawn, g)) - limit) for g in groups
        ]
        tops[b] = max(x - y for x, y in zip(now, before, strict=True))
    return tops


def algorithm_4_scales(
    groups: BoolArray,
    loss: FloatArray,
    theta: TargetOf,
    resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """|ε* − ε̂| of every group in every resample that met the group."""
    n = loss.size
    rows = np.arange(n)
    out = np.full((resamples, len(groups)), np.nan)
    for b in range(resamples):
        drawn = rng.integers(0, n, size=n)
        for j, g in enumerate(groups):
            if g[drawn].any():
                now = disparity(drawn, g, loss, theta(drawn, g))
                out[b, j] = abs(now - disparity(rows, g, loss, theta(rows, g)))
    return out


def sums_of(groups_by_cell: BoolArray) -> GroupSums:
    """Group sums from a (G, C) membership table of the cells."""
    table = groups_by_cell.astype(np.float64)

    def sums(x: FloatArray, /) -> FloatArray:
        return np.asarray((x[..., None, :] * table).sum(axis=-1))

    return sums


def interval_cells(cells: int) -> BoolArray:
    """All runs of neighbouring cells."""
    runs = [(i, j) for i in range(cells) for j in range(i + 1, cells + 1)]
    return np.array([[i <= c < j for c in range(cells)] for i, j in runs])
