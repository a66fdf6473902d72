"""Confidence bounds and p-values from what is known about the sampling error.

Each kind answers the same four questions: a lower and an upper confidence bound at error rate
``alpha``, and the p-values of "the audit value is at most δ" and "… is at least δ".
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import bdtr, bdtrc, betainc, betaincinv, ndtr, ndtri, stdtr, stdtrit

from equipoise.methods.numerics import BoolArray, FloatArray, quantile


class Limit(Protocol):
    """What is known about the sampling error of an audit value."""

    def lower(self, alpha: float) -> float:
        """Lower confidence bound that fails with probability ``alpha``."""
        ...

    def upper(self, alpha: float) -> float:
        """Upper confidence bound that fails with probability ``alpha``."""
        ...

    def p_above(self, delta: float) -> float | None:
        """p-value of the null that the value is at most ``delta``; None if nothing is random."""
        ...

    def p_below(self, delta: float) -> float | None:
        """p-value of the null that the value is at least ``delta``; None if nothing is random."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PointLimit:
    """The value does not depend on the sample near the one seen.

    Attributes
    ----------
    value
        The audit value.
    """

    value: float

    def lower(self, alpha: float) -> float:
        """The value."""
        return self.value

    def upper(self, alpha: float) -> float:
        """The value."""
        return self.value

    def p_above(self, delta: float) -> None:
        """None: nothing is random."""
        return None

    def p_below(self, delta: float) -> None:
        """None: nothing is random."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenLimit:
    """The rows seen do not vary, but cells without rows would.

    Their share of the population is at most 1 − alpha^(1/n) with probability 1 − alpha, exactly.

    Attributes
    ----------
    value
        The audit value.
    n
        Number of rows, or how many the units seen are worth.
    excess
        How much more than the rows seen the worst unseen cell gains; not negative.
    """

    value: float
    n: float
    excess: float

    def lower(self, alpha: float) -> float:
        """The value if all the unseen mass gained nothing."""
        return float(self.value * alpha ** (1 / self.n))

    def upper(self, alpha: float) -> float:
        """The value if all the unseen mass were in the worst cell."""
        return float(self.value + self.excess * (1 - alpha ** (1 / self.n)))

    def p_above(self, delta: float) -> float:
        """Chance of seeing none of the cells that would bring the value down to ``delta``."""
        return 1.0 if self.value <= delta else float((max(delta, 0.0) / self.value) ** self.n)

    def p_below(self, delta: float) -> float:
        """Chance of seeing none of the cells that would bring the value up to ``delta``."""
        if delta <= self.value:
            return 1.0
        if self.excess <= 0:
            return 0.0
        return float(max(0.0, 1 - (delta - self.value) / self.excess) ** self.n)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinomialLimit:
    """Every row gains one of two amounts, so the value is a binomial share, whatever n.

    Attributes
    ----------
    hits
        Rows that gain the larger amount.
    n
        Number of rows.
    small, large
        The two amounts.
    """

    hits: int
    n: int
    small: float
    large: float

    def lower(self, alpha: float) -> float:
        """Clopper and Pearson's lower bound."""
        x, n = self.hits, self.n
        return self._value(0.0 if x == 0 else float(betaincinv(x, n - x + 1, alpha)))

    def upper(self, alpha: float) -> float:
        """Clopper and Pearson's upper bound."""
        x, n = self.hits, self.n
        return self._value(1.0 if x == n else float(betaincinv(x + 1, n - x, 1 - alpha)))

    def p_above(self, delta: float) -> float:
        """Exact binomial tail at or above the hits seen."""
        return 1.0 if self.hits == 0 else float(bdtrc(self.hits - 1, self.n, self._share(delta)))

    def p_below(self, delta: float) -> float:
        """Exact binomial tail at or below the hits seen."""
        return float(bdtr(self.hits, self.n, self._share(delta)))

    def _value(self, share: float) -> float:
        return self.small + (self.large - self.small) * share

    def _share(self, value: float) -> float:
        return min(1.0, max(0.0, (value - self.small) / (self.large - self.small)))


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaLimit:
    """The value is a constant plus the mean of bounded net gains, whatever their distribution.

    The normal limit sees too little of rare large gains. Here one more row is imagined, with the
    largest gain for an upper bound and the smallest for a lower one, and a beta distribution with
    the mean and variance that this implies gives the bound. With two different gains this is the
    interval of Clopper and Pearson; in large samples it is the normal limit.

    Attributes
    ----------
    offset
        What is added to the mean.
    n
        Number of rows, or how many weighted or clustered ones are worth.
    mean
        Mean net gain of the rows.
    variance
        Variance of the rows' net gains, divisor n.
    low, high
        Smallest and largest net gain of any cell.
    """

    offset: float
    n: float
    mean: float
    variance: float
    low: float
    high: float

    def lower(self, alpha: float) -> float:
        """Quantile of the beta distribution with one more row at the smallest gain."""
        return self._value(_beta_quantile(*self._with(self.low), alpha))

    def upper(self, alpha: float) -> float:
        """Quantile of the beta distribution with one more row at the largest gain."""
        return self._value(_beta_quantile(*self._with(self.high), 1 - alpha))

    def p_above(self, delta: float) -> float:
        """The error rate at which the lower bound is ``delta``."""
        return _beta_below(*self._with(self.low), self._share(delta))

    def p_below(self, delta: float) -> float:
        """The error rate at which the upper bound is ``delta``."""
        return 1 - _beta_below(*self._with(self.high), self._share(delta))

    def _with(self, row: float) -> tuple[float, float]:
        """Mean and variance, on the unit interval, after one more row."""
        n, width = self.n, self._width()
        mean = (n * self.mean + row) / (n + 1)
        spread = n * (self.variance + (row - self.mean) ** 2 / (n + 1)) / (n + 1)
        # A beta of size n + 1, as Clopper and Pearson's, has variance μ(1 − μ)/(n + 2).
        return (mean - self.low) / width, spread / width**2 / (n + 2)

    def _value(self, share: float) -> float:
        return self.offset + self.low + self._width() * share

    def _share(self, value: float) -> float:
        return min(1.0, max(0.0, (value - self.offset - self.low) / self._width()))

    def _width(self) -> float:
        # with a single gain there is nothing to scale, and everything below is zero
        return self.high - self.low or 1.0


def _beta_quantile(mean: float, variance: float, q: float) -> float:
    if variance <= 0 or not 0 < mean < 1:
        return mean
    size = mean * (1 - mean) / variance - 1
    return float(betaincinv(mean * size, (1 - mean) * size, q))


def _beta_below(mean: float, variance: float, share: float) -> float:
    """Chance that the beta distribution lies at or below the share."""
    if variance <= 0 or not 0 < mean < 1:
        return 1.0 if share >= mean else 0.0
    size = mean * (1 - mean) / variance - 1
    return float(betainc(mean * size, (1 - mean) * size, share))


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalLimit:
    """The derivative is linear, so the limit is normal.

    Attributes
    ----------
    value
        The audit value.
    error
        Its standard error.
    """

    value: float
    error: float

    def lower(self, alpha: float) -> float:
        """The value minus a normal quantile of standard errors."""
        return self.value - float(ndtri(1 - alpha)) * self.error

    def upper(self, alpha: float) -> float:
        """The value plus a normal quantile of standard errors."""
        return self.value + float(ndtri(1 - alpha)) * self.error

    def p_above(self, delta: float) -> float:
        """Normal tail above the distance to ``delta``."""
        return float(ndtr((delta - self.value) / self.error))

    def p_below(self, delta: float) -> float:
        """Normal tail below the distance to ``delta``."""
        return float(ndtr((self.value - delta) / self.error))


@dataclass(frozen=True, slots=True, kw_only=True)
class StudentLimit:
    """Another limit, with Student's tails: the standard error is itself estimated from few units.

    Attributes
    ----------
    limit
        What would be known if the standard error were.
    degrees
        Degrees of freedom of the standard error.
    """

    limit: Limit
    degrees: float

    def lower(self, alpha: float) -> float:
        """The lower bound at the error rate whose normal quantile is Student's."""
        return self.limit.lower(self._normal(alpha))

    def upper(self, alpha: float) -> float:
        """The upper bound at the same."""
        return self.limit.upper(self._normal(alpha))

    def p_above(self, delta: float) -> float | None:
        """Student's tail at the normal score of the p-value."""
        return self._student(self.limit.p_above(delta))

    def p_below(self, delta: float) -> float | None:
        """Student's tail at the normal score of the p-value."""
        return self._student(self.limit.p_below(delta))

    def _normal(self, alpha: float) -> float:
        return float(ndtr(stdtrit(self.degrees, alpha)))

    def _student(self, p: float | None) -> float | None:
        return None if p is None else float(stdtr(self.degrees, float(ndtri(p))))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftedLimit:
    """Another limit, moved outwards by what the losses of some cells may be wrong by.

    Attributes
    ----------
    limit
        What would be known if the losses were.
    down, up
        By how much the value seen may be too large, and too small.
    """

    limit: Limit
    down: float
    up: float

    # Half of every error rate pays for the losses, so that both may fail at once (Bonferroni).

    def lower(self, alpha: float) -> float:
        """The lower bound, less what the losses may be wrong by."""
        return self.limit.lower(alpha / 2) - self.down

    def upper(self, alpha: float) -> float:
        """The upper bound, and what the losses may be wrong by."""
        return self.limit.upper(alpha / 2) + self.up

    def p_above(self, delta: float) -> float | None:
        """The error rate at which the lower bound is ``delta``."""
        return _twice(self.limit.p_above(delta + self.down))

    def p_below(self, delta: float) -> float | None:
        """The error rate at which the upper bound is ``delta``."""
        # no audit value is below zero, so there is no smaller tolerance to ask about
        return _twice(self.limit.p_below(max(0.0, delta - self.up)))


def _twice(p: float | None) -> float | None:
    return None if p is None else min(1.0, 2 * p)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLimit:
    """Draws of √n × (sample value − population value).

    Attributes
    ----------
    value
        The audit value.
    n
        Number of rows or other units.
    draws
        The draws.
    """

    value: float
    n: int
    draws: FloatArray

    def lower(self, alpha: float) -> float:
        """The value minus the upper quantile of the draws."""
        return self.value - quantile(self.draws, 1 - alpha) / math.sqrt(self.n)

    def upper(self, alpha: float) -> float:
        """The value minus the lower quantile of the draws, which is usually negative."""
        # (4.1) of Xue, Yurochkin and Sun has a plus; the proof of their Theorem 4.3 has this.
        return self.value - quantile(self.draws, alpha) / math.sqrt(self.n)

    def p_above(self, delta: float) -> float:
        """Share of draws as far above as the value is above ``delta``."""
        # The error rate at which the lower bound of Theorem 4.5 of the same paper reaches δ.
        return self._share(self.draws >= math.sqrt(self.n) * (self.value - delta))

    def p_below(self, delta: float) -> float:
        """Share of draws as far below as the value is below ``delta``."""
        return self._share(self.draws <= math.sqrt(self.n) * (self.value - delta))

    def _share(self, extreme: BoolArray) -> float:
        # The sample counts among its own draws, so that no p-value is zero.
        return float((1 + np.count_nonzero(extreme)) / (1 + self.draws.size))


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedLimit:
    """Bounds from several sources, each the safe one on its side.

    The limit is a minimum over prices. Too many prices make the upper bound wide and the lower
    bound short, too few the reverse: so the upper bound is read off the minimum over all prices
    that may be optimal, and the lower bound off a single one, which the limit never exceeds. The
    upper bound is also at least what one optimal price alone would give with rare gains allowed
    for.

    Attributes
    ----------
    below
        Gives lower bounds.
    above
        Gives upper bounds.
    rare
        Gives upper bounds that allow for rare gains.
    """

    below: NormalLimit
    above: DrawnLimit
    rare: BetaLimit

    def lower(self, alpha: float) -> float:
        """Lower bound from the normal limit at one price."""
        return self.below.lower(alpha)

    def upper(self, alpha: float) -> float:
        """The larger of the upper bounds."""
        return max(self.above.upper(alpha), self.rare.upper(alpha))

    def p_above(self, delta: float) -> float:
        """p-value that belongs to the lower bound."""
        return self.below.p_above(delta)

    def p_below(self, delta: float) -> float:
        """p-value that belongs to the upper bound."""
        return max(self.above.p_below(delta), self.rare.p_below(delta))
