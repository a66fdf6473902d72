"""Bounds from a pivot: the disparities whose tail is no smaller than an allowed error."""

from typing import Protocol

import numpy as np
from scipy.special import ndtri

from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.inference.tails import Tails

MAX_STEPS = 60
CLOSE = 2e-4
"""Standard errors to which a bound is found."""


class Pivot(Protocol):
    """What inference needs to know of every group."""

    @property
    def estimate(self) -> FloatArray:
        """The disparity of each group, NaN where there is none."""
        ...

    @property
    def error(self) -> FloatArray:
        """About its standard error: where a search starts."""
        ...

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        """Chances, if the disparity were this, of an estimate as high, and as low, as was seen."""
        ...


def bounds(
    pivot: Pivot, chosen: IntArray, critical: float, possible: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bound of the chosen groups at a critical normal score.

    Neither bound excludes the estimate, and neither leaves the range of what is possible.
    """
    estimate, error = pivot.estimate[chosen], np.maximum(pivot.error[chosen], 1e-12)
    twice = np.concatenate([chosen, chosen])
    search = _Search(
        start=np.concatenate([estimate, estimate]),
        error=np.concatenate([error, error]),
        end=np.repeat(np.array(possible, dtype=np.float64), chosen.size),
        sign=np.repeat([-1.0, 1.0], chosen.size),
        critical=critical,
    )
    while search.todo.size and search.steps < MAX_STEPS:
        here = search.todo
        up, down = pivot.tails(search.at[here], twice[here])
        search.learn(np.where(search.sign[here] < 0, up, down))
    low, high = np.split(search.outer, 2)
    return (
        np.maximum(np.fmin(low, estimate), possible[0]),
        np.minimum(np.fmax(high, estimate), possible[1]),
    )


class _Search:
    """The furthest value, on one side of each estimate, whose score stays below the critical one.

    In normal scores a tail is nearly a straight line, so a secant is close at once; a bracket keeps
    it honest where outcomes are few and the tail has steps. What is found is the rejected end of
    the bracket, so that a bound never promises more than the tail allows.
    """

    def __init__(
        self,
        *,
        start: FloatArray,
        error: FloatArray,
        end: FloatArray,
        sign: FloatArray,
        critical: float,
    ) -> None:
        self.sign, self.critical, self.steps = sign, critical, 0
        self._error, self._end = error, end
        self._inner, self.outer = start.copy(), end.copy()
        self._score_in, self._score_out = np.full_like(start, -0.1), np.full_like(start, np.nan)
        # how many times in a row the same end of the bracket moved, with a sign
        self._run = np.zeros(start.shape, dtype=np.int64)
        self.at = self._inside(start + sign * critical * error, np.arange(start.size))
        self.todo = np.flatnonzero(np.isfinite(start) & (sign * (end - start) > 0))

    def learn(self, tail: FloatArray) -> None:
        """Take in the tails at the present values, and choose the next ones."""
        todo, at = self.todo, self.at[self.todo]
        score = -ndtri(np.clip(tail, 1e-300, 1 - 1e-16))
        beyond = score > self.critical
        for place, value, where in (
            (self._inner, at, ~beyond),
            (self._score_in, score, ~beyond),
            (self.outer, at, beyond),
            (self._score_out, score, beyond),
        ):
            place[todo[where]] = value[where]
        run = self._run[todo]
        self._run[todo] = np.where(beyond, np.maximum(run, 0) + 1, np.minimum(run, 0) - 1)
        # at the very end of what is possible nothing lies further out
        ended = ~beyond & (at == self._end[todo])
        near = np.abs(score - self.critical) < CLOSE
        self.outer[todo[near]] = at[near]
        narrow = np.abs(self.outer[todo] - self._inner[todo]) <= CLOSE * self._error[todo]
        self.todo = todo[~(ended | near | narrow)]
        self.at[self.todo] = self._next(self.todo)
        self.steps += 1

    def _next(self, todo: IntArray) -> FloatArray:
        a, b = self._inner[todo], self.outer[todo]
        fa, fb = self._score_in[todo] - self.critical, self._score_out[todo] - self.critical
        run = np.abs(self._run[todo])
        rise = np.where(fb > fa, fb - fa, 1.0)
        share = np.where(fb > fa, -fa / rise, 0.5)
        # an end that stays put three times is too far away: halve
        share = np.where(run >= 3, 0.5, np.clip(share, 0.01, 0.99))
        # while nothing has been rejected, go outward, ever faster
        further = np.maximum(-1.02 * fa, 0.1) * self._error[todo] * 2.0 ** np.minimum(run - 1, 60)
        ahead = self._inside(a + self.sign[todo] * further, todo)
        with np.errstate(invalid="ignore"):
            within = a + share * (b - a)
        return np.where(np.isnan(fb), ahead, within)

    def _inside(self, value: FloatArray, todo: IntArray) -> FloatArray:
        sign, end = self.sign[todo], self._end[todo]
        return np.where(sign > 0, np.minimum(value, end), np.maximum(value, end))
