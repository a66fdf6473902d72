"""Measures that are no means: what each is, as a smooth function of a group's totals.

Every row has a place among a few kinds (the range of its score, its label, its class) and a vector
of numbers. A measure depends on the totals of that vector by kind, and not on how many rows there
are. Whatever infers from it needs its value and its slopes alone.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from equipoise.methods.inference.student import LEAST_ROWS
from equipoise.methods.numerics import FloatArray, IntArray, over

DOUBT = 1.0
"""Rows that each side of a table of classes is taken to have shown besides, spread over its kinds,
when its variance is worked out: eight right answers of eight do not show that none is wrong."""


COARSE = 24
"""Kinds by which the joint law of the groups follows them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over rows by kind and cell; the vector of a row has ``d`` numbers."""

    first: FloatArray
    """Σ w x, ``(K, d, C)``."""
    second: FloatArray
    """Σ w² x xᵀ, ``(K, d, d, C)``."""
    third: FloatArray
    """Σ w³ x x x, ``(K, d, d, d, C)``."""
    weight: FloatArray
    """Σ w by kind, ``(K, C)``."""
    weight2: FloatArray
    """Σ w² by kind."""
    side: IntArray
    """Which kinds are judged by their own number of rows: positives and negatives, classes."""
    order: IntArray
    """Where each kind stands on the line, so that neighbours of a side can be put together."""

    @property
    def kinds(self) -> int:
        """Number of kinds."""
        return int(self.first.shape[0])

    def merged(self, most: int) -> "tuple[Totals, IntArray]":
        """The same with neighbouring places put together, and where each kind went.

        At most ``most`` places are left, which hold about as many rows each.
        """
        places = int(self.order.max()) + 1
        if places <= most:
            return self, np.arange(self.kinds)
        rows = np.bincount(self.order, self.weight.sum(axis=-1), places)
        middle = (np.cumsum(rows) - rows / 2) / max(float(rows.sum()), 1e-300)
        rank = np.minimum((middle * most).astype(np.int64), most - 1)
        _, rank = np.unique(rank, return_inverse=True)
        pairs = np.stack([self.side, rank.reshape(-1)[self.order]], axis=1)
        known, place = np.unique(pairs, axis=0, return_inverse=True)
        place = place.reshape(-1).astype(np.int64)

        def added(x: FloatArray) -> FloatArray:
            out = np.zeros((len(known), *x.shape[1:]))
            np.add.at(out, place, x)
            return out

        sums = {n: added(getattr(self, n)) for n in ("first", "second", "third")}
        sums |= {n: added(getattr(self, n)) for n in ("weight", "weight2")}
        return Totals(**sums, side=known[:, 0], order=known[:, 1]), place


def counted_totals(
    rows: tuple[FloatArray, FloatArray, FloatArray], side: IntArray, order: IntArray | None = None
) -> Totals:
    """Totals of rows that are of one kind or another and nothing else, by powers of weights.

    >>> one = np.ones((2, 3))
    >>> counted_totals((one, one, one), np.array([0, 0])).first.shape
    (2, 1, 3)
    """
    one, two, three = rows
    return Totals(
        first=one[:, None],
        second=two[:, None, None],
        third=three[:, None, None, None],
        weight=one,
        weight2=two,
        side=side,
        order=np.arange(len(side)) if order is None else order,
    )


class Measure(Protocol):
    """A function of the totals of a group that does not depend on how many rows there are."""

    @property
    def least(self) -> float:
        """Rows that each side of a group must be worth."""
        ...

    def value(self, t: FloatArray, totals: Totals) -> tuple[FloatArray, FloatArray]:
        """H ``(G,)``, NaN where it has none, and ∇h ``(K, d, G)``, at totals ``(K, d, G)``."""
        ...

    def slack(self, t: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How much h may be too high, and too low, apart from chance."""
        ...


def _none(t: FloatArray) -> tuple[FloatArray, FloatArray]:
    zero = np.zeros(t.shape[-1])
    return zero, zero


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """The area under the ROC curve; kinds are ranges of the score of negatives, then of positives.

    >>> rows, side = np.array([[3.0], [1.0], [1.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> totals = counted_totals((rows, rows, rows), side, np.array([0, 1, 0, 1]))
    >>> Area().value(totals.first, totals)[0].tolist()
    [0.75]
    """

    gini: bool = False
    """Whether it is written as 2 AUC − 1."""
    exact: bool = True
    """Whether all scores of a range are the same."""
    least: float = 10.0

    def value(self, t: FloatArray, totals: Totals) -> tuple[FloatArray, FloatArray]:
        """DeLong's placements are the gradient."""
        neg, pos = self._sides(t, totals)
        m, n = pos.sum(axis=0), neg.sum(axis=0)
        below = over(np.cumsum(neg, axis=0) - neg / 2, n)
        above = 1 - over(np.cumsum(pos, axis=0) - pos / 2, m)
        area = over((pos * np.nan_to_num(below)).sum(axis=0), np.where(n > 0, m, 0.0))
        slope = np.zeros_like(t)
        placed = (over(above - area, n), over(below - area, m))
        for side, each in enumerate(placed):
            here = totals.side == side
            slope[here, 0] = each[totals.order[here]]
        slope = np.nan_to_num(slope)
        return (2 * area - 1, 2 * slope) if self.gini else (area, slope)

    def _sides(self, t: FloatArray, totals: Totals) -> tuple[FloatArray, FloatArray]:
        places = int(totals.order.max()) + 1
        both = np.zeros((2, places, t.shape[-1]))
        both[totals.side, totals.order] = t[:, 0]
        return both[0], both[1]

    def slack(self, t: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Half the share of pairs that lie in one range."""
        if self.exact:
            return _none(t)
        half = t.shape[0] // 2
        neg, pos = t[:half, 0], t[half:, 0]
        pairs = over((neg * pos).sum(axis=0), neg.sum(axis=0) * pos.sum(axis=0))
        share = np.nan_to_num(pairs) * (1.0 if self.gini else 0.5)
        return share, share


Table = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Weights of true negatives, false positives, false negatives, true positives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfTable:
    """A function of the four numbers of label and prediction."""

    name: str
    least: float = 10.0

    def value(self, t: FloatArray, totals: Totals) -> tuple[FloatArray, FloatArray]:
        """The measure and its gradient."""
        table: Table = (t[0, 0], t[1, 0], t[2, 0], t[3, 0])
        with np.errstate(divide="ignore", invalid="ignore"):
            found, slopes = _TABLES[self.name](*table)
        fine = np.isfinite(found)
        slope = np.stack([np.broadcast_to(x, found.shape) for x in slopes])[:, None]
        return np.where(fine, found, np.nan), np.where(fine & np.isfinite(slope), slope, 0.0)

    def slack(self, t: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """None."""
        return _none(t)


def _f1(tn: FloatArray, fp: FloatArray, fn: FloatArray, tp: FloatArray) -> tuple[FloatArray, Table]:
    whole = 2 * tp + fp + fn
    found = 2 * tp / whole
    wrong = -found / whole
    return found, (np.zeros_like(found), wrong, wrong, 2 * (1 - found) / whole)


def _lift(
    tn: FloatArray, fp: FloatArray, fn: FloatArray, tp: FloatArray
) -> tuple[FloatArray, Table]:
    said, are, every = tp + fp, tp + fn, tn + fp + fn + tp
    found = tp * every / (said * are)
    right = every / (said * are) + found * (1 / every - 1 / said - 1 / are)
    return found, (
        found / every,
        found * (1 / every - 1 / said),
        found * (1 / every - 1 / are),
        right,
    )


def _balanced(
    tn: FloatArray, fp: FloatArray, fn: FloatArray, tp: FloatArray
) -> tuple[FloatArray, Table]:
    ones, zeros = tp + fn, tn + fp
    high, low = tp / ones, tn / zeros
    slopes = ((1 - low) / zeros, -low / zeros, -high / ones, (1 - high) / ones)
    return (high + low) / 2, tuple(x / 2 for x in slopes)  # type: ignore[return-value]


def _matthews(
    tn: FloatArray, fp: FloatArray, fn: FloatArray, tp: FloatArray
) -> tuple[FloatArray, Table]:
    said, unsaid, are, not_ = tp + fp, tn + fn, tp + fn, tn + fp
    root = np.sqrt(said * unsaid * are * not_)
    found = (tp * tn - fp * fn) / root
    half = -found / 2
    return found, (
        tp / root + half * (1 / unsaid + 1 / not_),
        -fn / root + half * (1 / said + 1 / not_),
        -fp / root + half * (1 / unsaid + 1 / are),
        tn / root + half * (1 / said + 1 / are),
    )


_TABLES = {"f1": _f1, "lift": _lift, "balanced_accuracy": _balanced, "matthews": _matthews}


SIDES = {
    "f1": (0, 1, 1, 1),
    "lift": (0, 0, 1, 1),
    "balanced_accuracy": (0, 0, 1, 1),
    "matthews": (0, 0, 1, 1),
}
"""Of each measure of label and prediction: which of the four numbers are judged together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotient:
    """The total of one number over that of another, such as actual over expected."""

    least: float = float(LEAST_ROWS)

    def value(self, t: FloatArray, totals: Totals) -> tuple[FloatArray, FloatArray]:
        """The quotient and its gradient."""
        top, bottom = t[0]
        found = over(top, bottom)
        share = np.nan_to_num(over(np.ones_like(bottom), bottom))
        return found, np.stack([share, -np.nan_to_num(found) * share])[None]

    def slack(self, t: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """None."""
        return _none(t)


SURE_SIGN = 3.7
"""Standard errors from zero at which the sign of a range's error is taken as known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationError:
    """The mean over ranges of the score of |mean outcome − mean score|, weighed by their rows.

    Absolute values of noise do not cancel, so that it is too high on average: by at most √(2/π)
    standard deviations in each range whose sign is open, and by nothing where it is clear. It is
    never too low on average, since it is the largest over all signs of a plain mean.
    """

    least: float = float(LEAST_ROWS)

    def value(self, t: FloatArray, totals: Totals) -> tuple[FloatArray, FloatArray]:
        """The plug-in value and its gradient at the signs seen."""
        every = t[:, 0].sum(axis=0)
        found = over(np.abs(t[:, 1]).sum(axis=0), every)
        share = np.nan_to_num(over(np.ones_like(every), every))
        own = np.broadcast_to(-np.nan_to_num(found) * share, t[:, 0].shape)
        return found, np.stack([own, np.sign(t[:, 1]) * share], axis=1)

    def slack(self, t: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What noise adds where signs are open."""
        noise = np.sqrt(np.maximum(second[:, 1, 1], 0.0))
        unclear = np.abs(t[:, 1]) <= SURE_SIGN * noise
        added = np.sqrt(2 / np.pi) * np.where(unclear, noise, 0.0).sum(axis=0)
        return np.nan_to_num(over(added, t[:, 0].sum(axis=0))), np.zeros(t.shape[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Macro:
    """The plain average over classes of recall, precision or F1; kinds are (label, prediction)."""

    name: str
    classes: int
    least: float = 10.0

    def value(self, t: FloatArray, totals: Totals) -> tuple[FloatArray, FloatArray]:
        """The average and its gradient; NaN where some class is absent."""
        k = self.classes
        table = t[:, 0].reshape(k, k, -1)
        right = np.einsum("iig->ig", table)
        are, said = table.sum(axis=1), table.sum(axis=0)
        whole = {"macro_recall": are, "macro_precision": said}.get(self.name, are + said)
        times = 2.0 if self.name == "macro_f1" else 1.0
        each = over(times * right, whole)
        wrong = np.nan_to_num(-each * over(np.ones_like(whole), whole)) / k
        slope = np.zeros_like(table)
        if self.name != "macro_precision":
            slope += wrong[:, None]
        if self.name != "macro_recall":
            slope += wrong[None]
        gain = np.nan_to_num(over(np.full_like(whole, times / k), whole))
        slope[np.arange(k), np.arange(k)] += gain
        # a class that nobody has, or that nobody is said to have, is not averaged over
        lacks = (are <= 0).any(axis=0) | (said <= 0).any(axis=0)
        found = np.where(lacks, np.nan, each.mean(axis=0))
        return found, slope.reshape(k * k, 1, -1)

    def slack(self, t: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """None."""
        return _none(t)
