"""The Monte-Carlo test: the observed statistic among draws at the edge of the null hypothesis.

The scan looks at every half-line and level of one column, and every pair of them of two columns.
Rows are counted into the cells of a table for each pair of columns; sums over half-lines, levels,
corners and the two diagonals of a cross are sums over cells. No outcome takes part in the choice of
cells, so the scan looks at all rows at once and its p-value is exact wherever the draws are.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Protocol

import numpy as np
from scipy import sparse
from scipy.special import logit, logsumexp

from equipoise.methods.cusum.statistic import Best, Null, Piece, Standard, Tail, standard, tail_of
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray, child

MEASURED = 100
"""Draws by which the tails of several statistics are measured; they have no part in the test."""
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
    evidence: FloatArray
    """For the draws and the observed rows, what all statistics say together, in ascending order."""
    best: Best | None
    """The subgroup behind the observed value, if there is one."""
    tail: Tail | None = None
    """The tail of this statistic, where statistics have shares."""
    share: float = 1.0
    """How much this statistic counts beside the others."""
    others: float = 0.0
    """The shares of all others."""
    alone: tuple[float, ...] = ()
    """The p-value of every statistic on its own."""

    def critical(self, error: float) -> float:
        """The value beyond which this statistic is enough for p ≤ ``error``, whatever others say.

        Infinite if draws are too few.
        """
        size = self.evidence.size
        # A product that should be whole may come out a hair below, and lose a rank.
        rank = math.floor(error * size * (1 + 1e-12))
        # what so few of all reach
        enough = self.evidence[size - rank :]
        if rank and rank < size:
            enough = enough[enough > _with_hair(self.evidence[size - rank - 1])]
        if enough.size == 0:
            return math.inf
        if self.tail is None:
            place = math.floor(size / float(enough[0]) + 1e-6)
            return float(self.drawn[-place]) if 0 < place <= self.drawn.size else math.inf
        # others say at least their shares; what is missing must come from this one
        asked = float(enough[0])
        left = asked + math.log1p(-min(self.others * math.exp(-asked), 1 - 1e-12))
        return self.tail.value(min(math.log(self.share) - left, 0.0))


def _with_hair(evidence: float) -> float:
    """Evidence beyond this is more than the same up to rounding."""
    return float(evidence + ROUNDING * max(abs(evidence), 1.0))


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
    every draw. With ``shares``, chances of statistics as large are measured by a few draws of their
    own and joined by their harmonic mean, in which a statistic with twice the share counts as much
    with twice the chance; so two that both show something show more than one, and the more a
    statistic exceeds its draws, the more it says. What is compared with the draws rises with every
    statistic, and is fixed before them, so that p keeps its level. Such statistics must be measured
    in standard deviations. Where no draw reaches the observed statistics, ``finer`` times as many
    are made; a p-value below 1 / (draws + 1) needs both counts, so it keeps its level. ``block`` is
    how many draws are worked on at once; the answer does not depend on it. The seed is copied, not
    consumed. ``progress`` is told how many draws are done, and may raise to stop.
    """
    block, tails = block or CHUNK, None
    if shares is not None:
        apart = _drawn(null, MEASURED, child(child(seed, 0), 0), block)
        few = np.concatenate([_values(statistics, lines) for lines in apart], axis=1)
        tails = [tail_of(line) for line in few]
    found = _ranked(statistics, null, draws, seed, shares, tails, block, progress)
    if finer > 1 and found.p * (draws + 1) < 1.5:
        # the draws made so far come first again
        found = _ranked(statistics, null, finer * draws, seed, shares, tails, block, progress)
    return found


def _values(statistics: Sequence[Statistic], residuals: FloatArray) -> FloatArray:
    return np.stack([statistic.values(residuals) for statistic in statistics])


def _ranked(
    statistics: Sequence[Statistic],
    null: Null,
    draws: int,
    seed: np.random.SeedSequence,
    shares: Sequence[float] | None,
    tails: Sequence[Tail] | None,
    block: int,
    progress: Progress | None,
) -> Tested:
    observed = np.array([statistic.observed(null) for statistic in statistics])
    lines, done = [observed[:, None]], 0
    for residuals in _drawn(null, draws, seed, block):
        lines.append(_values(statistics, residuals))
        done += len(residuals)
        if progress is not None:
            progress(done)
    values = np.concatenate(lines, axis=1)
    alone = np.stack([_reached(line) for line in values])
    share = np.ones(len(statistics)) if shares is None else np.asarray(shares, dtype=np.float64)
    if tails is None:
        # each statistic becomes its own p-value first, so that different scales compare
        chosen = int(np.argmin(alone[:, 0]))
        evidence = 1 / alone.min(axis=0)
    else:
        pairs = zip(tails, values, strict=True)
        said = np.log(share)[:, None] - np.stack([tail.log_chance(line) for tail, line in pairs])
        chosen = int(np.argmax(said[:, 0]))
        if alone[chosen, 0] * values.shape[1] < 1.5:
            chosen = _furthest(values, alone[:, 0])
        evidence = logsumexp(said, axis=0)
    return Tested(
        chosen=chosen,
        statistic=float(observed[chosen]),
        p=float(np.mean(evidence >= evidence[0] - (_with_hair(evidence[0]) - evidence[0]))),
        drawn=np.sort(values[chosen, 1:]),
        evidence=np.sort(evidence),
        best=statistics[chosen].best(null),
        tail=None if tails is None else tails[chosen],
        share=float(share[chosen]),
        others=float(share.sum() - share[chosen]),
        alone=tuple(alone[:, 0].tolist()),
    )


def _furthest(values: FloatArray, alone: FloatArray) -> int:
    """Of the statistics that no draw reaches, the one whose square most exceeds that of its draws.

    Half the square of a standardised sum is about a log likelihood ratio, so that statistics of one
    and of many degrees of freedom compare; tails measured by a few draws do not reach so far. One
    that is zero in every draw comes before all.
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


# --- Chi-squared tests: rows in bins along an axis, and how far each bin is beyond the tolerance


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


# --- The scan: every half-line and level of one column, and every pair of them of two columns ---

TENTHS = tuple(i / 10 for i in range(1, 10))
"""Shares of rows at which half-lines end, where columns are looked at two at a time."""
TAILS = (0.02, 0.05, *TENTHS, 0.95, 0.98)
"""The same where a column is looked at alone."""
SMALL_SETS = 0.25
"""How far small sets are ahead. What is off in a large set shows along the score or along a line as
well, and other tests look there; what is off in a small one only a scan can see."""
MOST_SUMS = 40_000
"""About how many sums a scan of pairs may take; with more columns, half-lines are fewer."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BinSets:
    """A column in bins, and the sets of bins that are looked at."""

    bins: IntArray
    """The bin of each row."""
    sets: FloatArray
    """Sets × bins: 1 where the bin is in the set. First come the half-lines up to each cut, then
    those beyond it, then single bins."""
    cuts: FloatArray
    """Where half-lines end."""
    singles: IntArray
    """The bin of each set that is a single one."""

    @property
    def width(self) -> int:
        """How many bins there are."""
        return int(self.sets.shape[1])


def half_lines(
    values: FloatArray, missing: BoolArray | None = None, shares: Sequence[float] = TENTHS
) -> BinSets:
    """Both half-lines at each of some quantiles; missing values are a set of their own.

    >>> half_lines(np.array([1.0, 2.0, 2.0, 3.0]), shares=(0.5,)).sets.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    gone = np.zeros(values.size, dtype=bool) if missing is None else missing
    known = values[~gone]
    cuts = np.zeros(0)
    if known.size:
        # cuts are values that occur, so that sets are the same on every monotone scale
        cuts = np.unique(np.quantile(known, shares, method="inverted_cdf"))
        cuts = cuts[cuts < known.max()]
    bins = np.where(gone, cuts.size + 1, np.searchsorted(cuts, values, side="left"))
    width = cuts.size + 1 + int(gone.any())
    upto = (np.arange(width) <= np.arange(cuts.size)[:, None]).astype(np.float64)
    beyond = 1 - upto
    singles = np.zeros(0, dtype=np.int64)
    if gone.any():
        beyond[:, -1] = 0.0
        singles = np.array([width - 1])
    sets = np.concatenate([upto, beyond, np.eye(width)[singles]])
    return BinSets(bins=bins.astype(np.int64), sets=sets, cuts=cuts, singles=singles)


def levels(codes: IntArray) -> BinSets:
    """Each level of a column without order; with two levels they are the two half-lines.

    >>> levels(np.array([0, 2, 1])).sets.tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    width = int(codes.max(initial=0)) + 1
    if width == 2:
        return half_lines(codes.astype(np.float64), shares=(0.0,))
    singles = np.arange(width)
    return BinSets(bins=codes, sets=np.eye(width), cuts=np.zeros(0), singles=singles)


def pair_shares(columns: int) -> tuple[float, ...]:
    """Quantiles for pairs of so many columns: nine, or fewer where pairs are many.

    >>> len(pair_shares(8)), len(pair_shares(20)), pair_shares(60)
    (9, 4, (0.5,))
    """
    pairs = max(1, columns * (columns - 1) // 2)
    cuts = int(np.clip(np.sqrt(MOST_SUMS / (10 * pairs)), 1, 9))
    return tuple((np.arange(1, cuts + 1) / (cuts + 1)).tolist())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Block:
    """The table of one or two columns, and the sets of either."""

    columns: tuple[int, ...]
    left: BinSets
    right: FloatArray
    """Sets × bins of the second column; a single 1 where there is none."""
    crossed: int
    """Half-lines of the second column, if both have some and crosses are looked at."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.left.width, self.right.shape[1]

    @property
    def size(self) -> int:
        """How many directions there are."""
        return 2 * len(self.left.sets) * len(self.right) + 2 * self.left.cuts.size * self.crossed

    def asked(self, side: Side) -> BoolArray:
        """Which directions belong to a side; crosses belong to both sides only together."""
        sets = len(self.left.sets) * len(self.right)
        ways = [side is not Side.OVER, side is not Side.UNDER, side is Side.BOTH]
        return np.repeat(ways, [sets, sets, self.size - 2 * sets])

    def over_sets(self, table: FloatArray) -> FloatArray:
        """From sums over cells, cells × lines, to sums over pairs of sets."""
        lines = table.shape[1]
        first = self.left.sets @ table.reshape(self.shape[0], -1)
        return np.asarray(self.right @ first.reshape(-1, self.shape[1], lines))

    def directions(self, high: FloatArray, low: FloatArray, sign: float) -> FloatArray:
        """Too high, too low, and the two crosses; ``sign`` is that of the lower end's sums."""
        lines = high.shape[-1]
        parts = [high.reshape(-1, lines), sign * low.reshape(-1, lines)]
        if self.crossed:
            a, b = self.left.cuts.size, self.crossed
            (hi, lo), (near, far) = (high, low), (slice(0, a), slice(a, 2 * a))
            left, right = slice(0, b), slice(b, 2 * b)
            parts += [
                (hi[x, left] + hi[y, right] + sign * (lo[x, right] + lo[y, left])).reshape(
                    -1, lines
                )
                for x, y in ((near, far), (far, near))
            ]
        return np.concatenate(parts)

    def pieces(self, direction: int, second: BinSets | None) -> tuple[Piece, ...]:
        """What a direction looks at: each piece a set of either column and which way."""
        a, b = len(self.left.sets), len(self.right)
        if direction < 2 * a * b:
            way, inside = divmod(direction, a * b)
            i, j = divmod(inside, b)
            return (self._piece(1 - 2 * way, i, j, second),)
        way, inside = divmod(direction - 2 * a * b, self.left.cuts.size * self.crossed)
        i, j = divmod(inside, self.crossed)
        far_i, far_j, sign = i + self.left.cuts.size, j + self.crossed, 1 - 2 * way
        return (
            self._piece(sign, i, j, second),
            self._piece(sign, far_i, far_j, second),
            self._piece(-sign, i, far_j, second),
            self._piece(-sign, far_i, j, second),
        )

    def _piece(self, sign: int, i: int, j: int, second: BinSets | None) -> Piece:
        inside = self.left.sets[i, self.left.bins] > 0
        sets = [(self.columns[0], i)]
        if second is not None:
            inside = inside & (second.sets[j, second.bins] > 0)
            sets.append((self.columns[1], j))
        return Piece(members=np.flatnonzero(inside), sign=sign, sets=tuple(sets))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scan:
    """The statistic: the largest score over all directions."""

    partitions: tuple[BinSets, ...]
    """The columns."""
    blocks: tuple[_Block, ...]
    table: sparse.csr_matrix
    """Cells of all tables × rows: 1 where the row is in the cell."""
    point: bool
    """Whether both ends of the tolerance are one."""
    standard: Standard
    """How sums are measured."""

    def sums(self, residuals: FloatArray) -> FloatArray:
        """Sums of each line of residuals: directions × lines."""
        return self._over(residuals, -1.0)

    def powers(self, second: FloatArray, third: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights are 1 and −1: squares add up, cubes keep their sign."""
        return self._over(second[None], 1.0)[:, 0], self._over(third[None], -1.0)[:, 0]

    def _over(self, lines: FloatArray, sign: float) -> FloatArray:
        n = self.table.shape[1]
        high = self.table @ np.ascontiguousarray(lines[:, :n].T)
        same = self.point and sign < 0
        low = high if same else self.table @ np.ascontiguousarray(lines[:, n:].T)
        found, start = [], 0
        for block in self.blocks:
            end = start + block.shape[0] * block.shape[1]
            up = block.over_sets(high[start:end])
            down = up if same else block.over_sets(low[start:end])
            found.append(block.directions(up, down, sign))
            start = end
        return np.concatenate(found)

    def values(self, residuals: FloatArray) -> FloatArray:
        """The statistic of each line of drawn residuals."""
        return np.asarray(self.standard.scores(self.sums(residuals)).max(axis=0))

    def scores(self, null: Null) -> FloatArray:
        """The score of every direction, of the rows as they are."""
        return self.standard.observed(self.sums(null.observed[None])[:, 0])

    def observed(self, null: Null) -> float:
        """The statistic of the rows as they are."""
        return float(self.scores(null).max())

    def best(self, null: Null) -> Best | None:
        """The subgroup of the largest score; None if no score is positive."""
        scores = self.scores(null)
        place = int(np.argmax(scores))
        if not scores[place] > 0:
            return None
        block, direction = self._block_of(place)
        second = self.partitions[block.columns[1]] if len(block.columns) > 1 else None
        pieces = block.pieces(direction, second)
        return Best(
            model=0,
            members=np.concatenate([piece.members for piece in pieces]),
            threshold=float(scores[place]),
            pieces=pieces,
            bonus=0.0 if self.standard.bonus is None else float(self.standard.bonus[place]),
        )

    def without(self, column: int, null: Null) -> float:
        """The statistic if one column were not looked at."""
        scores = self.scores(null)
        kept = [
            float(scores[start : start + block.size].max())
            for block, start in self._starts()
            if column not in block.columns and block.size
        ]
        return max([0.0, *kept])

    def _starts(self) -> Iterator[tuple[_Block, int]]:
        start = 0
        for block in self.blocks:
            yield block, start
            start += block.size

    def _block_of(self, place: int) -> tuple[_Block, int]:
        block, start = next((b, s) for b, s in self._starts() if place < s + b.size)
        return block, place - start


def scan(
    partitions: Sequence[BinSets], null: Null, *, pairs: bool, side: Side = Side.BOTH
) -> Scan | None:
    """Look at every column alone, or at every pair; None if there is nothing to look at."""
    numbers = range(len(partitions))
    chosen = list(combinations(numbers, 2)) if pairs else [(i,) for i in numbers]
    blocks = [_block([partitions[i] for i in columns], columns) for columns in chosen]
    blocks = [block for block in blocks if block.size]
    if not blocks or not len(null):
        return None
    found = Scan(
        partitions=tuple(partitions),
        blocks=tuple(blocks),
        table=sparse.vstack([_cells(block, partitions) for block in blocks], format="csr"),
        point=null.point,
        standard=_UNKNOWN,
    )
    measured = standard(found, null)
    asked = np.concatenate([block.asked(side) for block in blocks])
    measured = dataclasses.replace(measured, open=measured.open & asked, bonus=_bonus(found, null))
    return dataclasses.replace(found, standard=measured) if measured.open.any() else None


def _bonus(found: Scan, null: Null) -> FloatArray:
    """What small sets have ahead of large ones: a part of what keeps maxima over sizes level."""
    size, _ = found.powers(np.tile(null.worth, 2), np.zeros(2 * len(null)))
    total = max(float(null.worth.sum()), 1e-300)
    share = np.clip(size / total, 1e-12, 1.0)
    return np.asarray(SMALL_SETS * np.sqrt(-2 * np.log(share)))


_UNKNOWN = Standard(
    spread=np.zeros(0),
    skewness=np.zeros(0),
    open=np.zeros(0, dtype=bool),
    turns=np.zeros((0, 0)),
)


def _block(columns: Sequence[BinSets], numbers: tuple[int, ...]) -> _Block:
    left, right, crossed = columns[0], np.ones((1, 1)), 0
    if len(columns) > 1:
        right, crossed = columns[1].sets, columns[1].cuts.size
    return _Block(columns=numbers, left=left, right=right, crossed=crossed)


def _cells(block: _Block, partitions: Sequence[BinSets]) -> sparse.csr_matrix:
    cell = partitions[block.columns[0]].bins
    if len(block.columns) > 1:
        cell = cell * block.shape[1] + partitions[block.columns[1]].bins
    n = cell.size
    shape = (block.shape[0] * block.shape[1], n)
    return sparse.csr_matrix((np.ones(n), (cell, np.arange(n))), shape=shape)


# --- Score tests along a few axes at once: recalibration, and a line in every input ---

#: What is left of an axis, of its length, when those before it are taken out, to count as one.
_INDEPENDENT = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Axes:
    """The statistic: the length of the scores along uncorrelated axes, whichever way is worse.

    Without a tolerance its square is the score test of a generalised linear model with these
    inputs, the prediction as its offset.
    """

    weights: FloatArray
    """Rows × axes."""
    ends: FloatArray
    """2n × directions: the axes, then the axes turned round, as they weigh either end."""
    standard: Standard
    """How sums are measured."""
    side: Side
    """Which violations are looked for."""

    def sums(self, residuals: FloatArray) -> FloatArray:
        """Sums of each line of residuals: directions × lines."""
        return np.asarray((residuals @ self.ends).T)

    def powers(self, second: FloatArray, third: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums of squared weights times the one, and of cubed weights times the other."""
        return second @ self.ends**2, third @ self.ends**3

    def values(self, residuals: FloatArray) -> FloatArray:
        """The statistic of each line of drawn residuals."""
        return _length(self.standard.scores(self.sums(residuals)))

    def scores(self, null: Null) -> FloatArray:
        """The score of every direction, of the rows as they are."""
        return self.standard.observed(self.sums(null.observed[None])[:, 0])

    def observed(self, null: Null) -> float:
        """The statistic of the rows as they are."""
        return float(_length(self.scores(null)[:, None])[0])

    def best(self, null: Null) -> Best | None:
        """Rows on either side of the line that fits best; None if no score is positive."""
        scores = np.maximum(self.scores(null), 0.0)
        axes = self.weights.shape[1]
        slope = scores[:axes] - scores[axes:]
        along = one_sided(np.round(self.weights @ slope, 12), self.side)
        if not along.any():
            return None
        order = np.argsort(-np.abs(along), kind="stable")
        members = order[along[order] != 0]
        pieces = tuple(
            Piece(members=members[way * along[members] > 0], sign=way, sets=())
            for way in (1, -1)
            if (way * along > 0).any()
        )
        return Best(model=0, members=members, threshold=0.0, pieces=pieces)


def _length(scores: FloatArray) -> FloatArray:
    up, down = np.split(np.maximum(scores, 0.0), 2)
    return np.asarray(np.sqrt((np.maximum(up, down) ** 2).sum(axis=0)))


def axes(inputs: FloatArray, null: Null, side: Side = Side.BOTH) -> Axes | None:
    """The statistic for rows × inputs, taken in order: each is freed of those before it.

    None if there is no axis, or outcomes do not vary.
    """
    weights = _uncorrelated(inputs, null)
    if not weights.size:
        return None
    turned = np.concatenate([weights, -weights], axis=1)
    up, down = np.maximum(turned, 0.0), np.minimum(turned, 0.0)
    ends = np.concatenate([one_sided(up, side), one_sided(down, side)])
    made = Axes(weights=weights, ends=ends, standard=_NONE, side=side)
    measured = standard(made, null, least=0.0, skewed=False)
    if not measured.open.any():
        return None
    return Axes(weights=weights, ends=ends, standard=measured, side=side)


_NONE = Standard(
    spread=np.zeros(0), skewness=np.zeros(0), open=np.zeros(0, dtype=bool), turns=np.zeros((0, 0))
)


def _uncorrelated(inputs: FloatArray, null: Null) -> FloatArray:
    """Columns whose sums of residuals have unit variance and no correlation, in the middle."""
    n = len(null)
    root = np.sqrt((null.variance[:n] + null.variance[n:]) / 2)
    found: list[FloatArray] = []
    for column in inputs.T:
        size = float(np.abs(column).max(initial=0.0))
        left = root * column / size if size > 0 else root * 0.0
        length = float(np.linalg.norm(left))
        # twice, since once leaves rounding behind where columns are nearly alike
        for _ in range(2):
            for axis in found:
                left = left - (axis @ left) * axis
        if length > 0 and np.linalg.norm(left) > _INDEPENDENT * length:
            found.append(left / np.linalg.norm(left))
    if not found:
        return np.zeros((n, 0))
    scaled = np.column_stack(found)
    return np.divide(scaled, root[:, None], out=np.zeros_like(scaled), where=root[:, None] > 0)
