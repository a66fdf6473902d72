"""A real-valued metric with a long right tail, the same in every group."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SkewedWorld:
    """Cells of given shares; the metric is gamma with mean 1 and the given shape everywhere."""

    share: Floats
    """Share of each cell."""
    shape: float
    """Shape of the gamma distribution: skewness is 2/√shape."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], Floats]:
        """Cell and metric of each of ``n`` rows."""
        cell = rng.choice(len(self.share), size=n, p=self.share)
        return cell, rng.gamma(self.shape, 1 / self.shape, size=n)


def skewed_world(cells: int = 12, *, shape: float = 0.5) -> SkewedWorld:
    """Cells whose shares fall geometrically, so that some hold a handful of rows.

    >>> skewed_world(3).share.round(3).tolist()
    [0.571, 0.286, 0.143]
    """
    share = 0.5 ** np.arange(cells)
    return SkewedWorld(share=share / share.sum(), shape=shape)
