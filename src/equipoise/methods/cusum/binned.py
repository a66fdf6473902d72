"""Chi-squared tests: rows in bins along an axis, and how far each bin is beyond the tolerance."""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.cusum.detectors import Side
from equipoise.methods.cusum.null import Null


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Binned:
    """The largest, over axes, of the sum over bins of squared standardised excesses."""

    members: tuple[FloatArray, ...]
    """For each axis, rows × bins: 1 where the row is in the bin."""
    spread: tuple[FloatArray, ...]
    """For each axis, ends of the tolerance × bins: standard deviation of the bin's sum."""
    signs: tuple[float, ...]
    """+1 to look above the upper end, −1 to look below the lower one; zero does not look."""

    def values(self, residuals: FloatArray) -> FloatArray:
        """The statistic of each line of drawn residuals."""
        largest = np.zeros(len(residuals))
        for axis in range(len(self.members)):
            excess = self.excess(axis, residuals)
            np.maximum(largest, (excess**2).sum(axis=-1), out=largest)
        return largest

    def observed(self, null: Null) -> float:
        """The statistic of the rows as they are."""
        return float(self.values(null.observed[None, :])[0])

    def excess(self, axis: int, residuals: FloatArray) -> FloatArray:
        """How many standard deviations each bin is beyond the tolerance, whichever way is worse."""
        inside, spread = self.members[axis], self.spread[axis]
        n, worst = len(inside), np.zeros((*residuals.shape[:-1], inside.shape[1]))
        for end, sign in enumerate(self.signs):
            if sign:
                sums = residuals[..., end * n : (end + 1) * n] @ inside
                beyond = np.divide(
                    sums, spread[end], out=np.zeros_like(sums), where=spread[end] > 0
                )
                # what lies within the tolerance is no excess, and starts from zero
                np.maximum(worst, sign * beyond, out=worst)
        return worst

    def best(self, null: Null) -> None:
        """A chi-squared test points at no single subgroup."""
        return


def binned(bins: IntArray, null: Null, side: Side = Side.BOTH) -> Binned:
    """The statistic for rows in bins: axes × rows, the number of the row's bin.

    >>> from equipoise.methods.cusum.null import bernoulli_null
    >>> null = bernoulli_null(np.array([1.0, 1.0, 0.0, 1.0]), np.full(4, 0.5), tolerance=0.0)
    >>> statistic = binned(np.array([[0, 0, 1, 1]]), null)
    >>> statistic.values(null.observed[None, :]).round(6).tolist()
    [2.0]
    """
    members = tuple(_indicators(line) for line in np.atleast_2d(bins))
    variance = null.variance.reshape(2, -1)
    spread = tuple(np.sqrt(variance @ inside) for inside in members)
    signs = (0.0 if side is Side.OVER else 1.0, 0.0 if side is Side.UNDER else -1.0)
    return Binned(members=members, spread=spread, signs=signs)


def quantile_bins(axis: FloatArray, number: int) -> IntArray:
    """Bins of about equally many rows along each axis; equal values share a bin.

    >>> quantile_bins(np.array([[1.0, 2.0, 2.0, 5.0]]), 2).tolist()
    [[0, 0, 0, 1]]
    """
    lines = []
    for line in np.atleast_2d(axis):
        # Cuts are values that occur, so that bins are the same on every monotone scale.
        cuts = np.quantile(line, np.arange(1, number) / number, method="inverted_cdf")
        lines.append(np.searchsorted(np.unique(cuts), line, side="left"))
    return np.stack(lines).astype(np.int64)


def _indicators(line: IntArray) -> FloatArray:
    return np.asarray(line[:, None] == np.unique(line), dtype=np.float64)
