"""The audit value of many distributions at once: one weighted cumulative sum each."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.transport.checks import budget_within, losses_within
from equipoise.methods.transport.hulls import Hulls, build_hulls
from equipoise.methods.transport.moves import Moves

BLOCK_NUMBERS = 1 << 20
"""How many numbers one array of a block may hold (8 MB of floats)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An auditor's problem, ready to be evaluated at any distribution over its cells.

    Attributes
    ----------
    losses
        The model's loss in each cell.
    budget
        Largest average cost that moving everybody may have.
    hulls
        What each cell can gain for what it spends.
    isolated
        Number of cells that are comparable with no other.
    """

    losses: FloatArray
    budget: float
    hulls: Hulls
    isolated: int

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(self.losses.size)

    @property
    def linear(self) -> bool:
        """Whether the value is linear in the distribution, because the budget never matters."""
        dearest = np.max(self.hulls.spent + self.hulls.width, initial=0.0)
        return self.budget == 0 or self.budget >= float(dearest)

    @property
    def scale(self) -> float:
        """The size of losses, to tell rounding from difference."""
        return float(np.abs(self.losses).max())

    @property
    def ceiling(self) -> float:
        """No distribution can have a larger value: the largest gain of any cell."""
        return float(self.gradient(np.inf if self.budget == 0 else 0.0).max())

    def gradient(self, price: float) -> FloatArray:
        """Best gain of each cell, net of its cost at the given price.

        The value is the smallest of budget × price + distribution · gradient(price) over all
        prices, which makes it concave in the distribution.
        """
        h = self.hulls
        # an infinite price buys nothing, and 0 × ∞ must not appear
        net = np.maximum(h.slope - price, 0.0) * h.width
        return h.base_gain + summed(h.row, net, h.cells)

    def spending(self, segments: int) -> FloatArray:
        """Cost per unit of mass of each cell once the first ``segments`` segments are taken."""
        h = self.hulls
        return summed(h.row[:segments], h.width[:segments], h.cells)

    def values(self, weights: npt.ArrayLike) -> FloatArray:
        """The audit value of each distribution; the last axis runs over the cells.

        Examples
        --------
        >>> from equipoise.methods.transport import from_matrix, prepare
        >>> p = prepare(from_matrix([[0, 1], [1, 0]]), [0.0, 1.0], budget=0.25)
        >>> p.values([[1.0, 0.0], [0.5, 0.5], [0.1, 0.9]]).tolist()
        [0.25, 0.25, 0.1]
        """
        array = np.asarray(weights, dtype=np.float64)
        if array.ndim == 0 or array.shape[-1] != self.cells:
            raise ValueError(f"expected {self.cells} weights per row; got shape {array.shape}")
        rows = array.reshape(-1, self.cells)
        if self.linear:
            # At budget zero only free moves are made; at one that never binds, budget has no price.
            found = rows @ self.gradient(np.inf if self.budget == 0 else 0.0)
        else:
            found = self._knapsacks(rows)
        return found.reshape(array.shape[:-1])

    def _knapsacks(self, rows: FloatArray) -> FloatArray:
        # segments of cells that are empty in every row hold nothing
        used = np.any(rows > 0, axis=0)
        h = self.hulls.chosen(used[self.hulls.row])
        drops = h.slope - np.append(h.slope[1:], 0.0)
        out = rows @ h.base_gain
        size = max(1, BLOCK_NUMBERS // max(1, h.row.size))
        for begin in range(0, len(rows), size):
            block = np.ascontiguousarray(rows[begin : begin + size].T)
            filled = block[h.row]
            filled *= h.width[:, None]
            np.cumsum(filled, axis=0, out=filled)
            # Abel's summation of slope × what each segment takes; every term is positive
            np.minimum(filled, self.budget, out=filled)
            out[begin : begin + size] += drops @ filled
        return out


def summed(cell: IntArray, amount: FloatArray, cells: int) -> FloatArray:
    """Total amount per cell."""
    return np.bincount(cell, amount, minlength=cells).astype(np.float64)


def prepare(
    moves: Moves,
    losses: npt.ArrayLike,
    *,
    budget: float = 0.0,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Problem:
    """Check the input and build the hulls, once for all distributions.

    Parameters
    ----------
    moves
        Which cells are comparable and what moving costs.
    losses
        The model's loss in each cell.
    budget
        Largest average cost, zero or more; may be infinite. Free moves need none.
    bounds
        The least and the largest loss there can be.

    Examples
    --------
    >>> from equipoise.methods.transport import within_classes
    >>> problem = prepare(within_classes([0, 0, 1, 1]), [0, 1, 1, 1])
    >>> problem.linear, problem.values([0.25, 0.25, 0.25, 0.25]).tolist()
    (True, 0.25)
    """
    checked = losses_within(losses, moves.cells, bounds)
    return Problem(
        losses=checked,
        budget=budget_within(budget),
        hulls=build_hulls(moves, checked),
        isolated=int(np.count_nonzero(moves.isolated)),
    )
