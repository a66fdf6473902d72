"""Squared errors of a line fitted to noisy points: the worlds in which certificates were tried."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearWorld:
    """x uniform on [0, 1], y normal about slope·x, predicted by slope·x plus a slip.

    The metric is the squared error of the prediction. Its mean over a range of x is known.
    """

    slip: float
    """Slope of the fitted line minus the true slope."""
    heteroskedastic: bool
    """Whether the variance of y is x (else it is 1)."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Points x and squared errors of a sample of ``n``."""
        x = rng.random(n)
        noise = rng.standard_normal(n) * (np.sqrt(x) if self.heteroskedastic else 1.0)
        return x, (noise - self.slip * x) ** 2

    def value(self, start: Floats, stop: Floats) -> Floats:
        """True mean squared error over x in [start, stop].

        >>> world = LinearWorld(slip=0.0, heteroskedastic=True)
        >>> world.value(np.array([0.0]), np.array([0.6])).tolist()
        [0.3]
        """
        bias = self.slip**2 * (start**2 + start * stop + stop**2) / 3
        return np.asarray(bias + ((start + stop) / 2 if self.heteroskedastic else 1.0))


def linear_world(
    rng: np.random.Generator, *, heteroskedastic: bool, training: int = 1000
) -> LinearWorld:
    """Fit a line through the origin to ``training`` points and keep how far it is off.

    >>> abs(linear_world(np.random.default_rng(1), heteroskedastic=False).slip) < 0.3
    True
    """
    x = rng.random(training)
    noise = rng.standard_normal(training) * (np.sqrt(x) if heteroskedastic else 1.0)
    return LinearWorld(slip=float(x @ noise / (x @ x)), heteroskedastic=heteroskedastic)
