"""The resampled mean of a custom target's influence values, given resampled cell totals."""

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.published.bootstrap.data import CellMoments
from equipoise.methods.targets import InfluenceSums


class InfluenceDraw:
    """Draws the mean of ψ from its normal law given the cells' weights and totals.

    Within a cell ψ is regressed on (w, wL); what the totals do not explain is drawn afresh. For a
    0/1 metric the regression is exact and only the residual is a normal approximation.
    """

    def __init__(self, moments: CellMoments, psi: InfluenceSums) -> None:
        """Solve the regression of ψ on the totals of each cell."""
        self._weight, self._total = moments.weight, moments.total
        self._b1, self._b2 = _solve(moments, psi)
        self._n = max(psi.rows, 1.0)
        explained = float((self._b1 * psi.total + self._b2 * psi.product).sum())
        # what is left after regression, and after the totals have explained the mean of ψ
        linear = float((self._b1 * self._weight + self._b2 * self._total).sum())
        left = psi.square - explained - (psi.sum - linear) ** 2 / self._n
        self._spread = float(np.sqrt(max(0.0, left)))

    def draw(self, rng: np.random.Generator, weight: FloatArray, total: FloatArray) -> FloatArray:
        """Change in the mean of ψ for each resample, shape ``(b,)``."""
        moved = (self._b1 * (weight - self._weight) + self._b2 * (total - self._total)).sum(axis=-1)
        noise = rng.standard_normal(weight.shape[0]) * self._spread
        return np.asarray((moved + noise) / self._n)


def _solve(m: CellMoments, psi: InfluenceSums) -> tuple[FloatArray, FloatArray]:
    """Coefficients of the least-squares fit of ψ on (w, wL), cell by cell."""
    # Normal equations of ψ = b₁ w + b₂ w L: two unknowns in each cell, so solved by hand.
    det = m.weight2 * m.square2 - m.total2**2
    # By Cauchy–Schwarz the determinant is not negative; this little of its first term is rounding.
    flat = det <= 1e-12 * m.weight2 * m.square2
    safe = np.where(flat, 1.0, det)
    b1 = (m.square2 * psi.total - m.total2 * psi.product) / safe
    b2 = (m.weight2 * psi.product - m.total2 * psi.total) / safe
    # a constant metric leaves one direction only
    alone = np.divide(psi.total, m.weight2, out=np.zeros_like(det), where=m.weight2 > 0)
    return np.where(flat, alone, b1), np.where(flat, 0.0, b2)
