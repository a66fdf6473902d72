"""The Monte-Carlo test: the observed statistic among draws at the edge of the null hypothesis."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from scipy.special import logit

from equipoise.methods.cusum.statistic import Best, Null
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray

# --- The Monte-Carlo test: the observed statistic among draws at the edge of the null hypothesis
# ---

CHUNK = 16
"""Draws from one random stream. Part of the definition of the results: never tune it."""

#: Relative difference below which a drawn statistic counts as equal to the observed one.
ROUNDING = 1e-10

Progress = Callable[[int], None]


class Statistic(Protocol):
    """What the test needs of a statistic."""

    def values(self, residuals: FloatArray) -> FloatArray:
        """The statistic of each line of drawn residuals."""
        ...

    def observed(self, null: Null) -> float:
        """The statistic of the rows as they are."""
        ...

    def best(self, null: Null) -> Best | None:
        """The subgroup it points at, if it points at one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tested:
    """One or more statistics, tested together."""

    chosen: int
    """Position of the statistic that says most, on its own; what follows is about this one."""
    statistic: float
    """The observed value."""
    p: float
    """p-value of all statistics together: the observed ones are counted among the draws."""
    drawn: FloatArray
    """The statistic of every draw, in ascending order."""
    smallest: FloatArray
    """For the draws and the observed rows, the smallest p-value over statistics, ascending."""
    best: Best | None
    """The subgroup behind the observed value, if there is one."""
    share: float = 1.0
    """How much this statistic counts beside the others."""
    alone: tuple[float, ...] = ()
    """The p-value of every statistic on its own."""

    def critical(self, error: float) -> float:
        """The value that must be exceeded for p ≤ ``error``; infinite if draws are too few."""
        size = self.smallest.size
        # A product that should be whole may come out a hair below, and lose a rank.
        rank = math.floor(error * size * (1 + 1e-12))
        # the largest p-value that so few of all have or undercut
        allowed = self.smallest[rank - 1] if rank else 0.0
        if rank < size and rank and self.smallest[rank] == allowed:
            below = self.smallest[self.smallest < allowed]
            allowed = below[-1] if below.size else 0.0
        place = math.floor(float(allowed) * self.share * size + 1e-6)
        return float(self.drawn[-place]) if 0 < place <= self.drawn.size else math.inf


def run_test(
    *statistics: Statistic,
    null: Null,
    draws: int,
    seed: np.random.SeedSequence,
    shares: Sequence[float] | None = None,
    finer: int = 1,
    block: int | None = None,
    progress: Progress | None = None,
) -> Tested:
    """Draw the statistics ``draws`` times at the edge of the null hypothesis.

    Of several statistics the smallest p-value counts, and is compared with the smallest p-value of
    every draw. ``shares`` divide p-values first: a statistic with twice the share counts as much
    with a p-value twice as large; such statistics must be measured in standard deviations, since of
    several that no draw reaches the one furthest beyond its draws is chosen. Where no draw reaches
    the observed statistics, ``finer`` times as many are made; a p-value below 1 / (draws + 1) needs
    both counts, so it keeps its level. ``block`` is how many draws are worked on at once; the
    answer does not depend on it. The seed is copied, not consumed. ``progress`` is told how many
    draws are done, and may raise to stop.
    """
    found = _ranked(statistics, null, draws, seed, shares, block, progress)
    if finer > 1 and found.p * (draws + 1) < 1.5:
        # the draws made so far come first again
        found = _ranked(statistics, null, finer * draws, seed, shares, block, progress)
    return found


def _ranked(
    statistics: Sequence[Statistic],
    null: Null,
    draws: int,
    seed: np.random.SeedSequence,
    shares: Sequence[float] | None,
    block: int | None,
    progress: Progress | None,
) -> Tested:
    observed = np.array([statistic.observed(null) for statistic in statistics])
    lines, done = [observed[:, None]], 0
    for residuals in _drawn(null, draws, seed, block or CHUNK):
        lines.append(np.stack([statistic.values(residuals) for statistic in statistics]))
        done += len(residuals)
        if progress is not None:
            progress(done)
    values = np.concatenate(lines, axis=1)
    # Each statistic becomes its own p-value first, so that scales of different statistics compare.
    alone = np.stack([_reached(line) for line in values])
    share = np.ones(len(statistics)) if shares is None else np.asarray(shares, dtype=np.float64)
    weighed = alone / share[:, None]
    smallest = weighed.min(axis=0)
    chosen = int(np.argmin(weighed[:, 0]))
    if shares is not None and alone[chosen, 0] * values.shape[1] < 1.5:
        chosen = _furthest(values, alone[:, 0])
    reached = smallest <= smallest[0] * (1 + ROUNDING)
    return Tested(
        chosen=chosen,
        statistic=float(observed[chosen]),
        p=float(np.count_nonzero(reached) / smallest.size),
        drawn=np.sort(values[chosen, 1:]),
        smallest=np.sort(smallest),
        best=statistics[chosen].best(null),
        share=float(share[chosen]),
        alone=tuple(alone[:, 0].tolist()),
    )


def _furthest(values: FloatArray, alone: FloatArray) -> int:
    """Of the statistics that no draw reaches, the one whose square most exceeds that of its draws.

    Half the square of a standardised sum is about a log likelihood ratio, so that statistics of one
    and of many degrees of freedom compare. One that is zero in every draw comes before all.
    """
    excess = values[:, 0] ** 2 - (values[:, 1:] ** 2).mean(axis=1)
    excess[(values[:, 1:] == 0).all(axis=1)] = np.inf
    return int(np.argmax(np.where(alone * values.shape[1] < 1.5, excess, -np.inf)))


def _reached(values: FloatArray) -> FloatArray:
    """For each value, the share of all that reach it; nearly equal values count as equal."""
    ordered = np.sort(values)
    limit = values - ROUNDING * np.maximum(np.abs(values), 1e-300)
    return np.asarray((values.size - np.searchsorted(ordered, limit)) / values.size)


def _drawn(
    null: Null, draws: int, seed: np.random.SeedSequence, block: int
) -> Iterator[FloatArray]:
    for number, start in enumerate(range(0, draws, CHUNK)):
        # built by hand because spawn() advances a counter inside the caller's object
        child = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, number))
        residuals = null.draw(np.random.default_rng(child), min(CHUNK, draws - start))
        for first in range(0, len(residuals), block):
            yield residuals[first : first + block]


# --- Where to look: signed weights of rows, positive where outcomes are thought too high ---

#: Digits to which predicted residuals count; smaller differences are rounding, hence ties.
DIGITS = 12


class Side(StrEnum):
    """Which violations are looked for."""

    BOTH = "both"
    """Either."""
    UNDER = "upper"
    """Expected outcomes above the prediction: the model under-estimates."""
    OVER = "lower"
    """Expected outcomes below the prediction: the model over-estimates."""


def violations(residuals: FloatArray, null: Null, side: Side = Side.BOTH) -> FloatArray:
    """By how much each row is predicted to break the tolerance: models × rows, zero if it is not.

    ``residuals`` are predicted means of outcome minus prediction, one line per model, each made
    without the row's own outcome.

    >>> from equipoise.methods.cusum.statistic import bernoulli_null
    >>> null = bernoulli_null(np.zeros(3), np.array([0.5, 0.5, 0.97]), tolerance=0.05)
    >>> violations(np.array([[0.02, -0.15, 0.2]]), null).round(3).tolist()
    [[0.0, -0.1, 0.0]]
    """
    lines = np.atleast_2d(np.asarray(residuals, dtype=np.float64))
    if lines.shape[1] != len(null) or not np.isfinite(lines).all():
        raise ValueError(f"predicted residuals must be finite, one for each of {len(null)} rows")
    guess = lines + null.predicted
    if null.exact:
        np.clip(guess, 0.0, 1.0, out=guess)
    # Section 2.1 of Feng and others: the expected score is largest for p₀ − p̂_δ, measured from the
    # edge of the tolerance. Their (7) weighs by the predicted residual itself.
    beyond = np.where(guess > null.high, guess - null.high, np.minimum(guess - null.low, 0.0))
    return one_sided(np.asarray(np.round(beyond, DIGITS), dtype=np.float64), side)


def one_sided(weights: FloatArray, side: Side) -> FloatArray:
    """The weights with those of the side that is not looked for set to zero."""
    if side is Side.UNDER:
        return np.maximum(weights, 0.0)
    return np.minimum(weights, 0.0) if side is Side.OVER else weights


def recalibration_axes(null: Null, side: Side = Side.BOTH) -> FloatArray:
    """Weights that need no residual model: the level and the slope of a recalibration.

    Too high or too low everywhere, too steep or too flat along the log odds of the prediction (the
    prediction itself, centred, for real outcomes): the directions of Platt's scaling.

    >>> from equipoise.methods.cusum.statistic import bernoulli_null
    >>> null = bernoulli_null(np.zeros(2), np.array([0.5, 0.9]), tolerance=0.05)
    >>> recalibration_axes(null, Side.UNDER).round(2).tolist()
    [[1.0, 1.0], [0.0, 2.2]]
    """
    p = null.predicted
    slope = risk_axis(p, risks=null.exact)
    axes = np.round(np.stack([np.ones_like(p), -np.ones_like(p), slope, -slope]), DIGITS)
    weights = one_sided(np.asarray(axes, dtype=np.float64), side)
    return weights[np.any(weights != 0, axis=1)]


def risk_axis(predicted: FloatArray, *, risks: bool) -> FloatArray:
    """Predictions on the scale on which a recalibration is a line: log odds, or centred numbers.

    >>> risk_axis(np.array([0.5, 0.9]), risks=True).round(2).tolist()
    [0.0, 2.2]
    """
    if not risks:
        return np.asarray(predicted - predicted.mean(), dtype=np.float64)
    # risks of 0 and 1 have infinite log odds; a sample cannot tell them from these
    return np.asarray(logit(np.clip(predicted, 1e-4, 1 - 1e-4)), dtype=np.float64)


# --- Which rows residual models are fitted on, and which they are tested on; order is irrelevant
# ---


def canonical_order(*columns: FloatArray) -> IntArray:
    """An order of the rows that depends on their values only.

    >>> canonical_order(np.array([2.0, 1.0, 1.0]), np.array([0.0, 5.0, 4.0])).tolist()
    [2, 1, 0]
    """
    return np.lexsort(columns[::-1]).astype(np.int64)


def stratified_folds(strata: FloatArray, folds: int, rng: np.random.Generator) -> IntArray:
    """The fold of each row: at random, but as equal as can be within each stratum and over all.

    >>> folds = stratified_folds(np.repeat([0.0, 1.0], 4), 2, np.random.default_rng(1))
    >>> np.bincount(folds[:4]).tolist(), np.bincount(folds[4:]).tolist()
    ([2, 2], [2, 2])
    """
    # shuffled, then sorted by stratum and dealt like cards
    shuffled = rng.permutation(len(strata))
    dealt = shuffled[np.argsort(strata[shuffled], kind="stable")]
    fold = np.empty(len(strata), dtype=np.int64)
    fold[dealt] = np.arange(len(strata)) % folds
    return fold


def split_rows(rows: int, share: float, rng: np.random.Generator) -> BoolArray:
    """True for the rows to fit on. Outcomes play no part, so the test is exact given the split.

    >>> int(split_rows(8, 0.75, np.random.default_rng(1)).sum())
    6
    """
    # Theorem 1 of Feng and others holds given the rows fitted on, if these say nothing of the rest.
    fitted = np.zeros(rows, dtype=bool)
    fitted[rng.permutation(rows)[: round(share * rows)]] = True
    return fitted


def fold_noise(weights: FloatArray) -> FloatArray:
    """How much of each weight is noise of the rows it was learned on: models × rows variances.

    ``weights`` are folds × models × rows: what models fitted without each fold say of every row.

    With folds every row is tested and learned from. If weights are nothing but noise, the sum of
    scores counts each pair of rows in different folds twice, once each way, which doubles its
    variance; draws that hold the weights fixed do not know. Two models share all rows they were
    fitted on but one fold in K − 1 each, so K − 1 times their variance is that of either.

    >>> fold_noise(np.array([[[0.1, 0.2]], [[0.1, 0.4]]])).round(3).tolist()
    [[0.0, 0.02]]
    """
    folds = len(weights)
    return np.asarray((folds - 1) * weights.var(axis=0, ddof=1), dtype=np.float64)


# --- Chi-squared tests: rows in bins along an axis, and how far each bin is beyond the tolerance
# ---


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Binned:
    """The largest, over axes, of the sum over bins of squared standardised excesses."""

    members: tuple[FloatArray, ...]
    """For each axis, rows × bins: 1 where the row is in the bin."""
    spread: tuple[FloatArray, ...]
    """For each axis, ends of the tolerance × bins: standard deviation of the bin's sum."""
    signs: tuple[float, ...]
    """+1 to look above the upper end, −1 to look below the lower one; zero does not look."""

    def values(self, residuals: FloatArray) -> FloatArray:
        """The statistic of each line of drawn residuals."""
        largest = np.zeros(len(residuals))
        for axis in range(len(self.members)):
            excess = self.excess(axis, residuals)
            np.maximum(largest, (excess**2).sum(axis=-1), out=largest)
        return largest

    def observed(self, null: Null) -> float:
        """The statistic of the rows as they are."""
        return float(self.values(null.observed[None, :])[0])

    def excess(self, axis: int, residuals: FloatArray) -> FloatArray:
        """How many standard deviations each bin is beyond the tolerance, whichever way is worse."""
        inside, spread = self.members[axis], self.spread[axis]
        n, worst = len(inside), np.zeros((*residuals.shape[:-1], inside.shape[1]))
        for end, sign in enumerate(self.signs):
            if sign:
                sums = residuals[..., end * n : (end + 1) * n] @ inside
                beyond = np.divide(
                    sums, spread[end], out=np.zeros_like(sums), where=spread[end] > 0
                )
                # what lies within the tolerance is no excess, and starts from zero
                np.maximum(worst, sign * beyond, out=worst)
        return worst

    def best(self, null: Null) -> None:
        """A chi-squared test points at no single subgroup."""
        return


def binned(bins: IntArray, null: Null, side: Side = Side.BOTH) -> Binned:
    """The statistic for rows in bins: axes × rows, the number of the row's bin.

    >>> from equipoise.methods.cusum.statistic import bernoulli_null
    >>> null = bernoulli_null(np.array([1.0, 1.0, 0.0, 1.0]), np.full(4, 0.5), tolerance=0.0)
    >>> statistic = binned(np.array([[0, 0, 1, 1]]), null)
    >>> statistic.values(null.observed[None, :]).round(6).tolist()
    [2.0]
    """
    members = tuple(_indicators(line) for line in np.atleast_2d(bins))
    variance = null.variance.reshape(2, -1)
    spread = tuple(np.sqrt(variance @ inside) for inside in members)
    signs = (0.0 if side is Side.OVER else 1.0, 0.0 if side is Side.UNDER else -1.0)
    return Binned(members=members, spread=spread, signs=signs)


def quantile_bins(axis: FloatArray, number: int) -> IntArray:
    """Bins of about equally many rows along each axis; equal values share a bin.

    >>> quantile_bins(np.array([[1.0, 2.0, 2.0, 5.0]]), 2).tolist()
    [[0, 0, 0, 1]]
    """
    lines = []
    for line in np.atleast_2d(axis):
        # Cuts are values that occur, so that bins are the same on every monotone scale.
        cuts = np.quantile(line, np.arange(1, number) / number, method="inverted_cdf")
        lines.append(np.searchsorted(np.unique(cuts), line, side="left"))
    return np.stack(lines).astype(np.int64)


def _indicators(line: IntArray) -> FloatArray:
    return np.asarray(line[:, None] == np.unique(line), dtype=np.float64)
