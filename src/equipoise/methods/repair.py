"""Rules that turn scores into other decisions or other scores, learnt on one part of the rows.

Everything a threshold does to a mean can be had from two sums per cell and threshold: of the rows
that would be told yes, with the value they have then, and of the others, with the value they have
if told no. A recalibration is a rising line through a few knots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from equipoise.methods.numerics import FloatArray, IntArray

#: Rows below which a cell has no threshold of its own.
FEW = 20


def threshold_grid(score: FloatArray, number: int) -> FloatArray:
    """At most ``number`` thresholds between the scores, evenly spread over the rows.

    Every threshold lies between two scores that occur, so that none of them stands on an edge.

    >>> threshold_grid(np.array([0.1, 0.1, 0.3, 0.7]), 10).tolist()
    [0.1, 0.2, 0.5]
    """
    values, copies = np.unique(score, return_counts=True)
    if len(values) == 1:
        return values
    cuts = np.concatenate([values[:1], values[:-1] + np.diff(values) / 2])
    below = np.concatenate([[0], np.cumsum(copies)[:-1]])
    if len(cuts) <= number:
        return cuts
    wanted = np.linspace(0, below[-1], number)
    return cuts[np.unique(np.searchsorted(below, wanted, side="left"))]


@dataclass(frozen=True, slots=True)
class Potential:
    """What a row adds if it is told no, and if it is told yes: one array of two for each."""

    no: FloatArray
    yes: FloatArray


def by_threshold(
    added: Potential, reached: IntArray, cell: IntArray, thresholds: int, cells: int
) -> FloatArray:
    """Sums over the rows of every cell under every threshold, of shape (thresholds, cells).

    ``reached`` is how many of the thresholds, which rise, each row's score reaches.
    """
    size = (cells, thresholds + 1)
    place = cell * (thresholds + 1) + reached
    yes, no = (
        np.bincount(place, weights=x, minlength=cells * (thresholds + 1)).reshape(size)
        for x in (added.yes, added.no)
    )
    # the rows that reach more than j thresholds are told yes by threshold j
    told_yes = yes.sum(axis=1, keepdims=True) - np.cumsum(yes, axis=1)
    return np.asarray((told_yes + np.cumsum(no, axis=1))[:, :thresholds].T)


def aligned(rate: FloatArray, rows: FloatArray, loss: FloatArray, wanted: float) -> IntArray:
    """For every cell the threshold that brings its rate nearest to ``wanted``.

    Arrays are of shape (thresholds, cells). Among thresholds that come equally near the one with
    the least loss counts; -1 stands for cells with too few rows for a threshold of their own.
    """
    far = np.where(np.isnan(rate), np.inf, np.abs(rate - wanted))
    nearest = far.min(axis=0, keepdims=True)
    chosen = np.argmin(np.where(far <= nearest + 1e-12, loss, np.inf), axis=0)
    few = (rows.max(axis=0) < FEW) | ~np.isfinite(nearest[0])
    return np.where(few, -1, chosen).astype(np.int64)


# --- Recalibration: a line that never falls, through a few knots ---


def rising_means(value: FloatArray, weight: FloatArray) -> tuple[FloatArray, IntArray]:
    """The rising sequence nearest to ``value`` by weighted squares, and the blocks it consists of.

    >>> rising_means(np.array([1.0, 3.0, 2.0]), np.ones(3))[0].tolist()
    [1.0, 2.5, 2.5]
    """
    means: list[float] = []
    weights: list[float] = []
    sizes: list[int] = []
    for mean, heavy in zip(value.tolist(), weight.tolist(), strict=True):
        size = 1
        while means and means[-1] >= mean:
            before, own = means.pop(), weights.pop()
            mean = (before * own + mean * heavy) / (own + heavy)
            heavy += own
            size += sizes.pop()
        means.append(mean)
        weights.append(heavy)
        sizes.append(size)
    blocks = np.repeat(np.arange(len(sizes)), sizes)
    return np.repeat(means, sizes), blocks.astype(np.int64)


def isotonic_knots(score: FloatArray, label: FloatArray, weight: FloatArray) -> FloatArray:
    """Knots, of shape (knots, 2), of the rising function of the score nearest to the label.

    Each block of the fit has a knot at either end; between blocks the line rises evenly.
    """
    values, place = np.unique(score, return_inverse=True)
    heavy = np.bincount(place, weights=weight, minlength=len(values)).astype(np.float64)
    total = np.bincount(place, weights=weight * label, minlength=len(values))
    # scores whose rows weigh nothing tell nothing
    told = heavy > 0
    values, heavy, total = values[told], heavy[told], total[told]
    fitted, blocks = rising_means(total / heavy, heavy)
    first = np.flatnonzero(np.diff(blocks, prepend=-1))
    last = np.append(first[1:] - 1, len(values) - 1)
    ends = np.unique(np.concatenate([first, last]))
    return np.stack([values[ends], fitted[ends]], axis=1)


def few_knots(score: FloatArray, label: FloatArray, weight: FloatArray, number: int) -> FloatArray:
    """Knots at the mean score of at most ``number`` equally large sets of rows, in rising order."""
    order = np.argsort(score, kind="stable")
    s, y, w = score[order], label[order], weight[order]
    # equal scores stay together
    _, start = np.unique(s, return_index=True)
    share = (np.cumsum(w) - w)[start] / w.sum()
    bins = np.minimum((share * number).astype(np.int64), number - 1)
    row_bin = np.repeat(bins, np.diff(np.append(start, len(s))))
    _, at = np.unique(row_bin, return_inverse=True)
    heavy = np.bincount(at, weights=w).astype(np.float64)
    x, mean = (np.bincount(at, weights=w * z) / heavy for z in (s, y))
    fitted, _ = rising_means(mean, heavy)
    return np.stack([x, fitted], axis=1)


def straight_knots(score: FloatArray, label: FloatArray, weight: FloatArray) -> FloatArray:
    """Two knots of the straight line nearest to the label, which does not fall."""
    w = weight / weight.sum()
    centre, mean = float(w @ score), float(w @ label)
    spread = float(w @ (score - centre) ** 2)
    slope = max(float(w @ ((score - centre) * (label - mean))) / spread, 0.0) if spread else 0.0
    ends = np.unique([score.min(), score.max()])
    return np.stack([ends, mean + slope * (ends - centre)], axis=1)


def recalibrated(knots: FloatArray, score: FloatArray) -> FloatArray:
    """The line through the knots at the scores; level beyond the first and the last."""
    return np.asarray(np.interp(score, knots[:, 0], knots[:, 1]))


# --- Which candidate to certify: judged on the rows it was learnt on ---


def worst_overrun(
    disparity: FloatArray,
    error: FloatArray,
    reach: float,
    allowed: tuple[float | None, float | None],
) -> FloatArray:
    """By how much bounds of ``reach`` errors would go beyond what is allowed, in the worst group.

    Arrays are of shape (candidates, groups); below zero the candidate would most likely be
    certified. A group without an answer is none that could be certified.
    """
    low, high = allowed
    over = np.full(disparity.shape, -np.inf)
    if high is not None:
        over = np.maximum(over, disparity + reach * error - high)
    if low is not None:
        over = np.maximum(over, low - (disparity - reach * error))
    return np.asarray(np.where(np.isnan(over), np.inf, over).max(axis=1))


def cheapest(
    loss: FloatArray, overrun: Callable[[float], FloatArray], reaches: FloatArray
) -> list[int]:
    """For every reach the candidate of least loss that would be certified, each once, in order.

    Where none would be, the one that comes nearest. Candidates come by their place, and among
    equals the first counts, so that the answer depends on nothing else.
    """
    found: list[int] = []
    for reach in reaches.tolist():
        over = overrun(reach)
        fine = np.flatnonzero(over < 0)
        best = fine[np.argmin(loss[fine])] if fine.size else np.argmin(over)
        if int(best) not in found:
            found.append(int(best))
    return found
