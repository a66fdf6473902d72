"""Nulls about a disparity, and how one-sided tail probabilities become a p-value."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from equipoise.methods.arrays import FloatArray

Tails = Callable[[float], tuple[FloatArray, FloatArray]]
"""From a limit to the chances, if ε were there, of an estimate as high, and as low, as this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Above:
    """Null ε ≤ limit: a small p-value shows a disparity above the limit."""

    limit: float
    """The limit."""

    @property
    def limits(self) -> tuple[float, ...]:
        """Limits at which the tails are needed."""
        return (self.limit,)

    def p_value(self, tails: Tails) -> FloatArray:
        """Chance of an estimate at least as high."""
        return tails(self.limit)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Below:
    """Null ε ≥ limit: a small p-value shows a disparity below the limit."""

    limit: float
    """The limit."""

    @property
    def limits(self) -> tuple[float, ...]:
        """Limits at which the tails are needed."""
        return (self.limit,)

    def p_value(self, tails: Tails) -> FloatArray:
        """Chance of an estimate at least as low."""
        return tails(self.limit)[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """Null low ≤ ε ≤ high: a small p-value shows a disparity outside the range.

    With t the distance outside the range and w its width, both in standard errors,
    p = Φ̄(t) + Φ̄(t + w): two-sided for a range of one point, one-sided for a very wide one, and of
    the right size in between. The smaller of two one-sided p-values would have twice its size.
    """

    low: float
    """Lower end of the range."""
    high: float
    """Upper end of the range."""

    @property
    def limits(self) -> tuple[float, ...]:
        """Limits at which the tails are needed."""
        return (self.low, self.high)

    def p_value(self, tails: Tails) -> FloatArray:
        """Sum of the tails beyond the estimate, on the side where the estimate lies."""
        # Cherian and Candès take the smaller of two one-sided p-values (p₃ in Appendix C), the
        # paper on empirical likelihood that of the nearer end (Theorem 9, (4.5)): at width zero,
        # size 2α.
        (up_low, down_low), (up_high, down_high) = tails(self.low), tails(self.high)
        both = np.minimum(up_high + up_low, down_low + down_high)
        return np.minimum(both, 1.0)


Null = Above | Below | Outside
"""Any of the three."""


def normal_tails(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both normal tails of a signed statistic.

    >>> normal_tails(np.array([0.0]))
    (array([0.5]), array([0.5]))
    """
    return np.asarray(ndtr(-z)), np.asarray(ndtr(z))
