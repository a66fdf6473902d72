"""Nulls about a disparity, how tails become p-values, and how many p-values are adjusted."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from equipoise.methods.numerics import FloatArray, IntArray

# --- Nulls about a disparity, and how one-sided tail probabilities become a p-value ---

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


# --- Adjusted p-values for many groups: BH, BY, e-BH, Holm, and step-down maxima of drawn scores
# ---
#
# NaN marks a group that could not be tested: it is left out of the family and stays NaN.


def benjamini_hochberg(p: FloatArray) -> FloatArray:
    """Adjusted p-values that control the false discovery rate under positive dependence.

    >>> benjamini_hochberg(np.array([0.01, 0.04, np.nan, 0.03])).tolist()
    [0.03, 0.04, nan, 0.04]
    """
    # Under positive dependence on the true nulls: Benjamini and Yekutieli 2001, Theorem 1.2.
    return _step_up(p, 1.0)


def benjamini_yekutieli(p: FloatArray) -> FloatArray:
    """Adjusted p-values that control the false discovery rate under any dependence.

    >>> benjamini_yekutieli(np.array([0.01, 0.5])).tolist()
    [0.03, 0.75]
    """
    tested = int(np.sum(~np.isnan(p)))
    # The price of any dependence is 1 + 1/2 + … + 1/m (Benjamini and Yekutieli 2001).
    return _step_up(p, float(np.sum(1 / np.arange(1, tested + 1))))


def holm(p: FloatArray) -> FloatArray:
    """Adjusted p-values that control the familywise error under any dependence.

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order, out = _ordered(p), np.full(p.shape, np.nan)
    left = np.arange(order.size, 0, -1)
    # Step-down, hence the running maximum: once one null is kept, so are all with larger p-values.
    out[order] = np.minimum(np.maximum.accumulate(p[order] * left), 1.0)
    return out


def e_benjamini_hochberg(p: FloatArray) -> FloatArray:
    """Adjusted p-values of e-BH: false discovery rate under any dependence, by e-values.

    Each p-value becomes the e-value (1 − p + p ln p)/(p ln² p), a mixture of all power calibrators
    (Vovk and Wang 2021), and e-values e₍ₖ₎ ≥ m/(kα) are discoveries (Wang and Ramdas 2022).

    >>> e_benjamini_hochberg(np.array([1e-6, 0.5])).round(4).tolist()
    [0.0004, 1.0]
    """
    return _step_up(np.where(np.isnan(p), np.nan, inverse_e_values(p)), 1.0)


def inverse_e_values(p: FloatArray) -> FloatArray:
    """One over the e-value of each p-value, which e-BH treats as BH treats p-values.

    >>> inverse_e_values(np.array([1e-6])).round(6).tolist()
    [0.000191]
    """
    # between 0 and 1 exclusively the formula is smooth; at the ends it has limits
    x = np.clip(p, 1e-300, 1 - 1e-9)
    log = np.log(x)
    e = (1 - x + x * log) / (x * log * log)
    return np.asarray(1 / np.maximum(e, 1e-300))


def _step_up(p: FloatArray, factor: float) -> FloatArray:
    order, out = _ordered(p), np.full(p.shape, np.nan)
    m = order.size
    scaled = p[order] * (factor * m / np.arange(1, m + 1))
    # Step-up, hence from the largest down: all are rejected up to the last that passes, also those
    # that did not pass themselves.
    out[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return out


def _ordered(p: FloatArray) -> IntArray:
    """Indices of the tested p-values, smallest first."""
    order = np.argsort(p, kind="stable")
    return np.asarray(order[: int(np.sum(~np.isnan(p)))], dtype=np.int64)


class StepDown:
    """Step-down maxima (Westfall–Young, Romano–Wolf) over a stream of resampled statistics.

    Large statistics speak against their null. Blocks of centred resampled statistics, shape
    ``(b, G)``, are added one by one; only counts are kept. A NaN in a block means that the resample
    says nothing of that group. One pass serves every level: a group is rejected at level α when its
    statistic and all larger ones reach the (1 − α)-quantile of the maximum over the groups that are
    not larger.

    >>> step = StepDown(np.array([3.0, 1.0]))
    >>> step.add(np.array([[0.0, 2.0], [0.5, 0.5], [1.0, -1.0]]))
    >>> step.p_values().tolist()
    [0.25, 0.5]
    """

    def __init__(self, statistic: FloatArray) -> None:
        """Start with the observed statistics, NaN for groups that cannot be tested."""
        self._order = _ordered(-np.asarray(statistic, dtype=np.float64))
        self._sorted = statistic[self._order]
        self._size = statistic.size
        self._above = np.zeros(self._order.size)
        self._reached = np.zeros(self._order.size)
        self._draws = 0

    def add(self, block: FloatArray) -> None:
        """Count the resamples whose maximum over the groups not larger is above the statistic."""
        if self._order.size == 0:
            return
        # from the smallest statistic up, a running maximum is one over all groups not larger
        tail = np.take(block, self._order[::-1], axis=1)
        np.copyto(tail, -np.inf, where=np.isnan(tail))
        np.maximum.accumulate(tail, axis=1, out=tail)
        tail = tail[:, ::-1]
        self._above += np.sum(tail > self._sorted, axis=0)
        self._reached += np.sum(tail >= self._sorted, axis=0)
        self._draws += block.shape[0]

    def shares_above(self) -> FloatArray:
        """Smallest α at which each group is rejected: share of resamples strictly above."""
        # Without the 1 of `p_values`: certificates compare with t*, a quantile of resamples alone.
        return self._place(self._above / max(self._draws, 1))

    def p_values(self) -> FloatArray:
        """Adjusted p-values (1 + resamples that reach the statistic) / (1 + resamples)."""
        return self._place((1 + self._reached) / (1 + self._draws))

    def _place(self, shares: FloatArray) -> FloatArray:
        out = np.full(self._size, np.nan)
        # a group is never rejected before one with a larger statistic
        out[self._order] = np.maximum.accumulate(shares) if shares.size else shares
        return out
