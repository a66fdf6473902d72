"""Score tests along a few axes at once: recalibration, and a line in every input."""

from dataclasses import dataclass

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.cusum.detectors import Side, one_sided
from equipoise.methods.cusum.null import Null
from equipoise.methods.cusum.standard import Standard, standard
from equipoise.methods.cusum.statistic import Best, Piece

#: What is left of an axis, of its length, when those before it are taken out, to count as one.
_INDEPENDENT = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Axes:
    """The statistic: the length of the scores along uncorrelated axes, whichever way is worse.

    Without a tolerance its square is the score test of a generalised linear model with these
    inputs, the prediction as its offset.
    """

    weights: FloatArray
    """Rows × axes."""
    ends: FloatArray
    """2n × directions: the axes, then the axes turned round, as they weigh either end."""
    standard: Standard
    """How sums are measured."""
    side: Side
    """Which violations are looked for."""

    def sums(self, residuals: FloatArray) -> FloatArray:
        """Sums of each line of residuals: directions × lines."""
        return np.asarray((residuals @ self.ends).T)

    def powers(self, second: FloatArray, third: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums of squared weights times the one, and of cubed weights times the other."""
        return second @ self.ends**2, third @ self.ends**3

    def values(self, residuals: FloatArray) -> FloatArray:
        """The statistic of each line of drawn residuals."""
        return _length(self.standard.scores(self.sums(residuals)))

    def scores(self, null: Null) -> FloatArray:
        """The score of every direction, of the rows as they are."""
        return self.standard.observed(self.sums(null.observed[None])[:, 0])

    def observed(self, null: Null) -> float:
        """The statistic of the rows as they are."""
        return float(_length(self.scores(null)[:, None])[0])

    def best(self, null: Null) -> Best | None:
        """Rows on either side of the line that fits best; None if no score is positive."""
        scores = np.maximum(self.scores(null), 0.0)
        axes = self.weights.shape[1]
        slope = scores[:axes] - scores[axes:]
        along = one_sided(np.round(self.weights @ slope, 12), self.side)
        if not along.any():
            return None
        order = np.argsort(-np.abs(along), kind="stable")
        members = order[along[order] != 0]
        pieces = tuple(
            Piece(members=members[way * along[members] > 0], sign=way, sets=())
            for way in (1, -1)
            if (way * along > 0).any()
        )
        return Best(model=0, members=members, threshold=0.0, pieces=pieces)


def _length(scores: FloatArray) -> FloatArray:
    up, down = np.split(np.maximum(scores, 0.0), 2)
    return np.asarray(np.sqrt((np.maximum(up, down) ** 2).sum(axis=0)))


def axes(inputs: FloatArray, null: Null, side: Side = Side.BOTH) -> Axes | None:
    """The statistic for rows × inputs, taken in order: each is freed of those before it.

    None if there is no axis, or outcomes do not vary.
    """
    weights = _uncorrelated(inputs, null)
    if not weights.size:
        return None
    turned = np.concatenate([weights, -weights], axis=1)
    up, down = np.maximum(turned, 0.0), np.minimum(turned, 0.0)
    ends = np.concatenate([one_sided(up, side), one_sided(down, side)])
    made = Axes(weights=weights, ends=ends, standard=_NONE, side=side)
    measured = standard(made, null, least=0.0, skewed=False)
    if not measured.open.any():
        return None
    return Axes(weights=weights, ends=ends, standard=measured, side=side)


_NONE = Standard(
    spread=np.zeros(0), skewness=np.zeros(0), open=np.zeros(0, dtype=bool), turns=np.zeros((0, 0))
)


def _uncorrelated(inputs: FloatArray, null: Null) -> FloatArray:
    """Columns whose sums of residuals have unit variance and no correlation, in the middle."""
    n = len(null)
    root = np.sqrt((null.variance[:n] + null.variance[n:]) / 2)
    found: list[FloatArray] = []
    for column in inputs.T:
        size = float(np.abs(column).max(initial=0.0))
        left = root * column / size if size > 0 else root * 0.0
        length = float(np.linalg.norm(left))
        # twice, since once leaves rounding behind where columns are nearly alike
        for _ in range(2):
            for axis in found:
                left = left - (axis @ left) * axis
        if length > 0 and np.linalg.norm(left) > _INDEPENDENT * length:
            found.append(left / np.linalg.norm(left))
    if not found:
        return np.zeros((n, 0))
    scaled = np.column_stack(found)
    return np.divide(scaled, root[:, None], out=np.zeros_like(scaled), where=root[:, None] > 0)
