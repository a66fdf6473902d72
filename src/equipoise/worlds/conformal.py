"""Coverage of a 90 % prediction band over the counts of Romano, Patterson and Candès (2019).

Their outcome is Poisson(sin²x + 0.1) + 0.03 x ε₁ + 25·1{u < 0.01} ε₂ with x uniform on [0, 5]. In
place of a fitted quantile forest stands a fixed band, mean ± q·√(variance of the counts + 0.1),
with q set so that it covers exactly 90 % of the population. Its coverage at every x is a sum of
normal probabilities, so the truth of every range of x is known.
"""

from dataclasses import dataclass
from math import erf, factorial

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

WIDTH = 5.0
_POINTS = 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConformalWorld:
    """Coverage of the band in equal bins of x on [0, 5]."""

    rate: Floats
    """True coverage in each bin."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[npt.NDArray[np.int64], ...]:
        """Points and covered points of each bin in a sample of ``n``."""
        bins = len(self.rate)
        rows = rng.multinomial(n, np.full(bins, 1 / bins))
        return rows, rng.binomial(rows, self.rate)

    def value(self, start: int, stop: int) -> float:
        """True coverage over the bins start … stop − 1."""
        return float(self.rate[start:stop].mean())


def conformal_world(bins: int = 50) -> ConformalWorld:
    """The world cut into ``bins`` bins.

    >>> world = conformal_world()
    >>> round(world.value(0, 50), 6)
    0.9
    """
    x = (np.arange(bins * _POINTS) + 0.5) * WIDTH / (bins * _POINTS)
    low, high = 0.0, 10.0
    # a wider band covers more, so halving finds the width: 40 times leave an error of 1e-11
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _covered(x, middle).mean() < 0.9 else (low, middle)
    return ConformalWorld(rate=_covered(x, low).reshape(bins, _POINTS).mean(axis=1))


def _covered(x: Floats, q: float) -> Floats:
    mean = np.sin(x) ** 2 + 0.1
    reach = q * np.sqrt(mean + 0.1)
    return coverage(x, mean - reach, mean + reach)


def coverage(x: Floats, low: Floats, high: Floats) -> Floats:
    """The chance that the outcome at each x lies between two ends.

    >>> coverage(np.array([1.0]), np.array([-100.0]), np.array([100.0])).round(3).tolist()
    [1.0]
    """
    mean = np.sin(x) ** 2 + 0.1
    covered = np.zeros_like(x)
    # one count in a hundred has an error with standard deviation 25
    for part, noise in ((0.99, 0.03 * x), (0.01, np.hypot(0.03 * x, 25.0))):
        for count in range(8):
            chance = np.exp(-mean) * mean**count / factorial(count)
            above, below = ((end - count) / noise for end in (high, low))
            covered += part * chance * (_phi(above) - _phi(below))
    return covered


def _phi(z: Floats) -> Floats:
    return np.array([0.5 * (1 + erf(value / np.sqrt(2))) for value in z.tolist()])
