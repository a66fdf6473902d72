"""Evidence over time: look after every batch, for as long as one likes.

A batch brings n rows to every part of a group and its target. That a disparity keeps its limit says
Σ aⱼ θⱼ ≤ c of the parts' means θ, with a and c known from the limit and the n. Before the outcomes
are seen, take any means θ° with Σ aⱼ θ°ⱼ = c and any stake λ ≥ 0, and bet on every row: with
uⱼ = λ aⱼ / nⱼ a row x of part j multiplies the evidence by 1 + uⱼ (x − θ°ⱼ). The batch's factor has
the mean

    Π (1 + uⱼ (θⱼ − θ°ⱼ))^nⱼ ≤ exp(Σ nⱼ uⱼ (θⱼ − θ°ⱼ)) = exp(λ (Σ aⱼ θⱼ − c)) ≤ 1

under all means that keep the limit, however few rows there are; where θ° misses the limit by a
rounding r = c − Σ aⱼ θ°ⱼ > 0, the factor is divided by exp(λ r). Rows of one part may have
different means, since a product of unequal factors is at most the power of their average. Products
over batches therefore reach 1/α with a chance of at most α, ever (Ville), and so do averages of
such products. The truth may move as it likes as long as it keeps the limit.

θ° are likely means on the limit given all earlier batches; several stakes, each the best
one for some excess over the limit, make a product each, and the evidence is their average.

For 0/1 metrics the factor is known from counts. For other bounded metrics Fan's inequality
log(1 + λy) ≥ λy + (λ + log(1 − λ)) y² (y ≥ −1) bounds it from below by sums and sums of squares.
For weighted, clustered or unbounded metrics E exp(y − y²/6 − Ey²/3) ≤ 1 (Delyon) is used with
estimated variances: that alone is asymptotic.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from equipoise.methods.inference.student import independent_score
from equipoise.methods.numerics import (
    BLOCK_NUMBERS,
    BoolArray,
    FloatArray,
    GroupSums,
    IntArray,
    child,
    over_or_zero,
)
from equipoise.methods.targets import Comparison, Moments, Status, Target

STEPS = np.geomspace(0.012, 0.32, 7)
"""Excesses over the limit that stakes are made for, in standard deviations of the contrast."""
_LIKELY = STEPS * np.exp(-0.5 * (STEPS / 0.11) ** 2)
WEIGHTS = _LIKELY / _LIKELY.sum()
"""Shares of the evidence that start with each stake: excesses half-normal about nothing."""
PRIOR = 1.0
"""Rows that every part is taken to have had before the first batch, half of them ones."""
MOST = 0.9
"""A row never takes more than this share of what is staked on."""
BURN_IN = 50.0
"""Rows of every part, in all, before estimated variances are trusted."""
PER_SKEWNESS = 25.0
"""How many more for every squared unit of skewness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Batches of every group beside its target; arrays of shape ``(parts, T, G)``."""

    target: Target
    """What groups are compared with."""
    relative: bool
    """Whether the disparity is a ratio."""
    sums: Moments
    """Sums of every part in every batch."""
    zero_one: bool
    """Whether the metric is 0 or 1 on every row."""
    ends: tuple[float, float] | None
    """Smallest and largest possible value; None where there are none or rows have weights."""
    effect: FloatArray | None = None
    """How many times larger clusters make the variance, as known at each batch, ``(T, G)``."""

    @property
    def exact(self) -> bool:
        """Whether no variance is estimated."""
        return self.ends is not None

    @property
    def shape(self) -> tuple[int, int]:
        """Batches and groups."""
        _, times, groups = self.sums.rows.shape
        return times, groups

    def comparison(self, here: slice = slice(None)) -> Comparison:
        """Groups beside their targets, batch after batch in one row."""
        flat = {
            name: getattr(self.sums, name)[:, here].reshape(len(self.sums.rows), -1)
            for name in Moments.__dataclass_fields__
        }
        return Comparison(target=self.target, relative=self.relative, parts=Moments(**flat))

    def pooled(self, edges: list[int]) -> "Stream":
        """The same rows in fewer, longer batches, which begin at ``edges``."""
        added = {
            name: np.add.reduceat(getattr(self.sums, name), edges, axis=1)
            for name in Moments.__dataclass_fields__
        }
        last = [*(edge - 1 for edge in edges[1:]), -1]
        effect = None if self.effect is None else self.effect[last]
        return replace(self, sums=Moments(**added), effect=effect)

    def some(self, groups: list[int]) -> "Stream":
        """Some of the groups."""
        effect = None if self.effect is None else self.effect[:, groups]
        return replace(self, sums=self.sums.some(np.array(groups)), effect=effect)


def stream_of(
    cells: Moments,
    target: Target,
    sums: GroupSums,
    *,
    relative: bool,
    zero_one: bool,
    ends: tuple[float, float] | None,
    effect: FloatArray | None = None,
) -> Stream:
    """The batches of every group of a collection, from cell sums ``(T, C)``.

    >>> from equipoise.methods.targets import plain_moments
    >>> from equipoise.methods.targets import Complement
    >>> n, k = np.full((3, 2), 100.0), np.array([[80.0, 20.0]] * 3)
    >>> options = {"relative": False, "zero_one": True, "ends": (0.0, 1.0)}
    >>> stream = stream_of(plain_moments(n, k, k, k), Complement(), lambda x: x, **options)
    >>> log_capital(log_bets(stream, np.zeros(2), above=True))[-1].round(1).tolist()
    [63.2, -5.9]
    """
    return Stream(
        target=target,
        relative=relative,
        sums=cells.parts(target, sums),
        zero_one=zero_one,
        ends=ends,
        effect=effect,
    )


# --- Bets ---


def log_bets(
    stream: Stream, limit: FloatArray, *, above: bool, window: int | None = None
) -> FloatArray:
    """Logarithm of each batch's factor for every stake, ``(stakes, T, G)``.

    The null is that disparities are at most ``limit`` (at least, if not ``above``). With a
    ``window`` guesses are made from so many batches before, not from all.
    """
    times, groups = stream.shape
    out = np.empty((STEPS.size, times, groups))
    past = _Past(stream, window)
    for here in _blocks(times, groups):
        null = _null(stream, limit, above, here)
        bet = _counted if stream.exact else _estimated
        out[:, here] = bet(stream, past, null, here)
    return out


def log_capital(bets: FloatArray) -> FloatArray:
    """Logarithm of the evidence after each batch, ``(T, G)``."""
    together: FloatArray = logsumexp(np.cumsum(bets, axis=1), axis=0, b=WEIGHTS[:, None, None])
    return together


def log_detector(bets: FloatArray) -> FloatArray:
    """Logarithm of the evidence that something has begun at some batch, ``(T, G)``.

    Rₜ = eₜ (1 + Rₜ₋₁) of each stake, averaged; while nothing is wrong its mean is at most t.
    """
    running = np.full((bets.shape[0], bets.shape[2]), -np.inf)
    out = np.empty(bets.shape[1:])
    for time in range(bets.shape[1]):
        # a batch that brings a group nothing is none of its batches
        asked = (bets[:, time] != 0).any(axis=0)
        running = np.where(asked, bets[:, time] + np.logaddexp(0.0, running), running)
        out[time] = logsumexp(running, axis=0, b=WEIGHTS[:, None])
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class _Null:
    """Σ slope · mean ≤ limit in every batch, with slopes ``(parts, t, G)``."""

    slope: FloatArray
    limit: FloatArray
    compared: BoolArray
    """Whether there are rows on both sides."""
    asked: BoolArray
    """Whether there is a question as well: a limit that some rates keep and others do not."""


def _null(stream: Stream, limit: FloatArray, above: bool, here: slice) -> _Null:
    found = stream.comparison(here)
    parts = found.parts.rows.shape[0]
    shape = (parts, -1, stream.shape[1])
    wanted = np.broadcast_to(limit, (found.parts.rows.shape[1] // limit.size, limit.size)).ravel()
    sign = 1.0 if above else -1.0
    slope = found.slopes(found.factor(wanted)) * found.parts.weight
    slope = sign * np.where((np.abs(slope) > 1e-12) & (found.parts.rows > 0), slope, 0.0)
    aim = sign * found.aim(wanted)
    # a ratio to a rate of zero is a question all the same: the contrast has no quotient
    status = np.where(found.status == Status.ZERO_TARGET, 0, found.status)
    if not found.target.estimated:
        status = found.status
    compared = status == Status.OK
    asked = compared.copy()
    if stream.ends is not None:
        low, high = stream.ends
        aim, slope = aim - low * slope.sum(axis=0), slope * (high - low)
        least, most = np.minimum(slope, 0).sum(axis=0), np.maximum(slope, 0).sum(axis=0)
        asked &= (aim > least) & (aim < most)
    return _Null(
        slope=slope.reshape(shape),
        limit=aim.reshape(shape[1:]),
        compared=compared.reshape(shape[1:]),
        asked=asked.reshape(shape[1:]),
    )


class _Past:
    """Sums of earlier batches."""

    def __init__(self, stream: Stream, window: int | None) -> None:
        self._stream, self._window = stream, window
        self._known: dict[str, FloatArray] = {}

    def before(self, name: str, here: slice) -> FloatArray:
        """Sums over the batches before each of those asked for."""
        every = self._sums(name)
        first = np.arange(here.start, here.stop)
        begin = np.zeros_like(first) if self._window is None else first - self._window
        return np.asarray(every[:, first] - every[:, np.maximum(begin, 0)])

    def until(self, name: str, here: slice) -> FloatArray:
        """Sums over all batches up to each, itself included."""
        return np.asarray(self._sums(name)[:, here.start + 1 : here.stop + 1])

    def _sums(self, name: str) -> FloatArray:
        if name not in self._known:
            x = getattr(self._stream.sums, name)
            start = np.zeros_like(x[:, :1])
            self._known[name] = np.concatenate([start, np.cumsum(x, axis=1)], axis=1)
        return self._known[name]


def _counted(stream: Stream, past: _Past, null: _Null, here: slice) -> FloatArray:
    """Bets on rows of a bounded metric, from counts or from sums of squares."""
    low, high = stream.ends or (0.0, 1.0)
    wide = high - low
    n = stream.sums.rows[:, here]
    total = (stream.sums.total[:, here] - low * n) / wide
    known = past.before("rows", here) + PRIOR
    seen = (past.before("total", here) - low * (known - PRIOR)) / wide
    guess = np.clip((seen + PRIOR / 2) / known, 1e-9, 1 - 1e-9)
    mean = _on_the_limit(guess, known, null)
    # what is left to the limit is paid for
    left = np.maximum(null.limit - (null.slope * mean).sum(axis=0), 0.0)
    variance, square = mean * (1 - mean), total
    if not stream.zero_one:
        square = _scaled(stream.sums.square2[:, here], stream.sums.total[:, here], n, low, wide)
        squares, totals = past.before("square2", here), past.before("total", here)
        squares = _scaled(squares, totals, known - PRIOR, low, wide)
        # before the first batch, as if values were spread evenly
        variance = np.maximum((squares + PRIOR / 3) / known - guess**2, 1e-4 * variance)
    rows = np.where(n > 0, n, 1.0)
    # what the unit of the contrast varies by, and what it costs to know it from this batch
    spread = np.sqrt((null.slope**2 * variance).sum(axis=0))
    cost = (null.slope**2 * variance / rows).sum(axis=0)
    unit = np.divide(spread, cost, out=np.zeros_like(cost), where=null.asked & (cost > 0))
    stake = null.slope * (unit / rows)
    worst = np.maximum(-stake * (1 - mean), stake * mean).max(axis=0)
    out = np.empty((STEPS.size, *unit.shape))
    for i, step in enumerate(STEPS):
        most = np.divide(MOST, worst, out=np.full_like(worst, np.inf), where=worst > 0)
        taken = np.minimum(step, most)
        u = stake * taken
        if stream.zero_one:
            told = total * np.log1p(u * (1 - mean)) + (n - total) * np.log1p(-u * mean)
        else:
            moved = square - 2 * mean * total + n * mean**2
            told = u * (total - n * mean) + u**2 * moved * _fan(
                np.where(u > 0, u * mean, -u * (1 - mean))
            )
        out[i] = told.sum(axis=0) - taken * unit * left
    return out


_NEWTON = 5
_FAR = 3.0
"""Steps to the limit, and how far one of them goes at most, in logits."""


def _on_the_limit(guess: FloatArray, known: FloatArray, null: _Null) -> FloatArray:
    """Means on the limit near the guess: logits move by a / n, the least sure the furthest."""
    pull = null.slope / known
    longest = np.maximum(np.abs(pull).max(axis=0), 1e-300)
    start = np.log(guess) - np.log1p(-guess)
    # beyond 30 there is nothing but 0 and 1
    start, moved = np.clip(start, -30, 30), np.zeros(longest.shape)
    mean = guess
    for _ in range(_NEWTON):
        miss = null.limit - (null.slope * mean).sum(axis=0)
        bend = (null.slope * pull * mean * (1 - mean)).sum(axis=0)
        step = np.divide(miss, bend, out=np.zeros_like(miss), where=bend > 1e-300)
        moved = moved + np.clip(step, -_FAR / longest, _FAR / longest)
        mean = 1 / (1 + np.exp(-np.clip(start + pull * moved, -30, 30)))
    return mean


def _scaled(
    square: FloatArray, total: FloatArray, rows: FloatArray, low: float, wide: float
) -> FloatArray:
    """Sums of squares after a metric is moved to between 0 and 1."""
    return (square - 2 * low * total + rows * low**2) / wide**2


def _fan(share: FloatArray) -> FloatArray:
    """(λ + log(1 − λ)) / λ², which is −1/2 at zero."""
    small = share < 1e-4
    safe = np.where(small, 0.5, share)
    return np.where(small, -0.5 - share / 3, (safe + np.log1p(-safe)) / safe**2)


def _estimated(stream: Stream, past: _Past, null: _Null, here: slice) -> FloatArray:
    """Bets on Σ w (x − θ°), whose mean is zero on the limit whatever the weights are.

    Weights of a row are taken to be on average what they were before, and the variance to be what
    all rows so far show. Nothing is bet before there are enough of them, and more if they are
    skewed: rows that have not come yet may be the ones that count.
    """
    now = stream.sums
    rows, before = now.rows[:, here], past.before("rows", here)
    heavy = past.before("weight", here)
    used = (null.slope != 0) & (rows > 0)
    mean = over_or_zero(past.before("total", here), heavy)
    # the most likely means on the limit, each row as sure as all others
    worth = over_or_zero(heavy**2, past.before("weight2", here))
    middle = over_or_zero(past.before("square2", here), past.before("weight2", here)) - mean**2
    pull = over_or_zero(null.slope * np.maximum(middle, 1e-12), worth)
    bend = (null.slope * pull).sum(axis=0)
    miss = null.limit - (null.slope * mean).sum(axis=0)
    mean = mean + pull * over_or_zero(miss, bend)
    until = {name: past.until(name, here) for name in Moments.__dataclass_fields__}
    second = until["square2"] - 2 * mean * until["total2"] + mean**2 * until["weight2"]
    third = until["cube3"] - 3 * mean * until["square3"]
    third = third + 3 * mean**2 * until["total3"] - mean**3 * until["weight3"]
    per = over_or_zero(np.maximum(second, 0.0), until["rows"])
    skewness = over_or_zero(np.abs(over_or_zero(third, until["rows"])), per**1.5)
    expected = rows * over_or_zero(heavy, before)
    share = over_or_zero(null.slope, expected)
    variance = (share**2 * per * rows).sum(axis=0)
    known = np.ones(variance.shape, dtype=bool)
    if stream.effect is not None:
        # infinite as long as there are too few clusters to know it
        known = np.isfinite(stream.effect[here])
        variance = variance * np.where(known, stream.effect[here], 1.0)
    total, weight = now.total[:, here], now.weight[:, here]
    moved = (share * (total - mean * weight)).sum(axis=0)
    enough = before >= BURN_IN + PER_SKEWNESS * skewness**2
    able = null.asked & np.where(used, enough, True).all(axis=0) & known & (variance > 0)
    spread = np.sqrt((null.slope**2 * per * over_or_zero(before, heavy) ** 2).sum(axis=0))
    out = np.zeros((STEPS.size, *variance.shape))
    for i, step in enumerate(STEPS):
        stake = np.divide(step * spread, variance, out=np.zeros_like(variance), where=able)
        y = stake * moved
        out[i] = np.where(able, y - y**2 / 6 - stake**2 * variance / 3, 0.0)
    return out


def _blocks(times: int, groups: int) -> Iterator[slice]:
    size = max(1, BLOCK_NUMBERS // (8 * max(groups, 1)))
    for start in range(0, times, size):
        yield slice(start, min(start + size, times))


# --- Many groups ---

LATER = 0.05
"""Share of the error that is kept for groups that are not there from the start."""


def error_shares(stream: Stream) -> FloatArray:
    """The share of the error that each group has, by when it first had a row.

    Those of the first batch share nearly all of it; groups that turn up later share what was kept
    for them, less and less. Shares never change, so that no newcomer takes back an alarm.
    """
    group = np.array(stream.target.group, dtype=bool)
    rows = stream.sums.rows[group].sum(axis=0) > 0
    first = np.where(rows.any(axis=0), rows.argmax(axis=0), stream.shape[0])
    out = np.zeros(first.size)
    for place, time in enumerate(np.unique(first).tolist()):
        here = first == time
        part = 1 - LATER if place == 0 else LATER * 6 / (np.pi * place) ** 2
        out[here] = part / here.sum()
    return out


def e_bh(told: FloatArray, error: float) -> tuple[BoolArray, FloatArray]:
    """e-BH after every batch (Wang and Ramdas 2022), and what one more group would need now.

    ``told`` is the logarithm of each group's evidence times its share.
    """
    ranks = np.arange(1, told.shape[1] + 1)
    steps = -np.log(ranks * error)
    ordered = -np.sort(-told, axis=1)
    passed = ordered >= steps - 1e-12
    last = np.where(passed.any(axis=1), told.shape[1] - np.argmax(passed[:, ::-1], axis=1), 0)
    cut = np.where(last > 0, steps[np.maximum(last, 1) - 1], np.inf)
    alarms = told >= cut[:, None] - 1e-12
    following = steps[min(int(last[-1]), told.shape[1] - 1)]
    now = np.where(alarms[-1], cut[-1], following)
    return alarms, now


# --- Bounds over time ---

HALVINGS = 13


def sequence_bounds(
    stream: Stream, error: FloatArray, possible: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Bounds of every group's disparity by all batches, each exceeded ever with its own ``error``.

    They are for a disparity that does not move; of one that does, the lower bound says that some
    batch exceeded it.
    """
    estimate = pooled_batches(stream).estimate
    centre = np.where(np.isfinite(estimate), estimate, 0.0)
    found = []
    for above, end in ((True, possible[0]), (False, possible[1])):
        # what is rejected, and what is not
        out = np.full(centre.shape, end if np.isfinite(end) else np.nan)
        wide = np.abs(centre) + 1.0
        out = np.where(np.isfinite(out), out, centre - wide if above else centre + wide)
        inner = centre.copy()
        for _ in range(HALVINGS):
            at = (out + inner) / 2
            beyond = _ruled_out(stream, at, above, error)[-1]
            out, inner = np.where(beyond, at, out), np.where(beyond, inner, at)
        never = ~_ruled_out(stream, out, above, error)[-1]
        found.append(np.where(never | ~np.isfinite(estimate), np.nan, out))
    return found[0], found[1]


def _ruled_out(stream: Stream, limit: FloatArray, above: bool, error: FloatArray) -> BoolArray:
    """Whether a limit is ruled out by each batch: by evidence, or since no rates keep it."""
    told = log_capital(log_bets(stream, limit, above=above)) >= -np.log(error)
    if stream.ends is not None:
        null = _null(stream, limit, above, slice(0, stream.shape[0]))
        least = np.minimum(null.slope, 0).sum(axis=0)
        told |= null.compared & (null.limit < least)
    return np.logical_or.accumulate(told, axis=0)


def pooled_batches(stream: Stream) -> Comparison:
    """All batches together, as one."""
    return stream.pooled([0]).comparison()


def reach(stream: Stream, limit: FloatArray, error: FloatArray, *, above: bool) -> FloatArray:
    """The disparity beyond the limit that would most likely have been found by now.

    A contrast that exceeds its limit by x earns about x²/2V in a batch where its variance is V.
    """
    null = _null(stream, limit, above, slice(0, stream.shape[0]))
    found = stream.comparison()
    every = pooled_batches(stream)
    mean = over_or_zero(every.parts.total, every.parts.weight)[:, None]
    if stream.zero_one:
        variance = mean * (1 - mean)
    else:
        variance = over_or_zero(every.parts.square2, every.parts.weight2)[:, None] - mean**2
    wide = 1.0 if stream.ends is None else stream.ends[1] - stream.ends[0]
    share = over_or_zero(found.parts.weight2, found.parts.weight**2).reshape(null.slope.shape)
    cost = (null.slope**2 * variance / wide**2 * share).sum(axis=0)
    if stream.effect is not None:
        cost = cost * np.where(np.isfinite(stream.effect), stream.effect, 0.0)
    told = np.divide(1.0, cost, out=np.zeros_like(cost), where=null.asked & (cost > 0)).sum(axis=0)
    needed = 2 * (np.log(1 / error) - np.log(WEIGHTS.max()))
    excess = np.sqrt(np.divide(needed, told, out=np.full_like(told, np.inf), where=told > 0))
    if stream.relative:
        excess = excess / np.maximum(stream.target.scale * every.theta, 1e-300)
    return np.asarray(limit + excess if above else limit - excess)


GRID = 32


def sequence_path(
    stream: Stream, error: FloatArray, possible: tuple[float, float], times: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Both ends of the confidence sequences at some batches, ``(times, G)``.

    Of a grid of disparities either side of the estimate, those rejected by each time.
    """
    estimate = pooled_batches(stream).estimate
    centre = np.where(np.isfinite(estimate), estimate, 0.0)
    found = []
    for above, end in ((True, possible[0]), (False, possible[1])):
        far = np.where(np.isfinite(end), end, centre + (-1.0 if above else 1.0))
        path = np.full(stream.shape, end if np.isfinite(end) else np.nan)
        for share in np.linspace(1.0, 0.0, GRID + 1)[:-1] ** 2:
            at = centre + share * (far - centre)
            path = np.where(_ruled_out(stream, at, above, error), at, path)
        found.append(path[times])
    return found[0], found[1]


# --- Planned looks: an error rate spent over a fixed number of looks at growing data ---

NUMBERS, FEWEST_DRAWS, MOST_DRAWS = 40_000_000, 10_000, 60_000
"""Draws times looks and groups that are affordable, and how many draws there are at least and at
most."""
LEAST = 10.0
"""Expected rows of either outcome, in every part, that the joint law needs."""

#: Draws scores of the groups with some number, from a seed.
Scores = Callable[[int, np.random.SeedSequence], Iterator[FloatArray]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSums:
    """What one batch adds."""

    groups: IntArray
    """The groups that it tells something about."""
    information: FloatArray
    """How much: one over the variance of each group's disparity, ``(G,)``; zero for the others."""
    scores: Scores
    """Joint scores of those groups."""


def boundaries(
    pieces: Sequence[BatchSums],
    tested: Sequence[BoolArray],
    *,
    error: float,
    looks: int,
    two_sided: bool,
    seed: np.random.SeedSequence,
) -> FloatArray:
    """The score that a group must exceed at each look so far.

    ``tested`` says of each look which groups are tested at it. A standard error of what the draws
    can tell is kept back, so that their noise does not add to the error.

    >>> one = BatchSums(
    ...     groups=np.array([0]),
    ...     information=np.array([1.0]),
    ...     scores=lambda n, seed: iter([np.random.default_rng(seed).standard_normal((n, 1))]),
    ... )
    >>> yes, seed = np.array([True]), np.random.SeedSequence(1)
    >>> boundaries([one, one], [yes] * 2, error=0.05, looks=2, two_sided=True, seed=seed).round(1)
    array([2.2, 2.1])
    """
    size = pieces[0].information.size
    draws = int(np.clip(NUMBERS // max(size * len(pieces), 1), FEWEST_DRAWS, MOST_DRAWS))
    total, known = np.zeros((draws, size)), np.zeros(size)
    crossed = np.zeros(draws, dtype=bool)
    out = np.full(len(pieces), np.inf)
    for k, (piece, asked) in enumerate(zip(pieces, tested, strict=True)):
        drawn = np.concatenate(list(piece.scores(draws, child(seed, k))))[:draws]
        total[:, piece.groups] += drawn * np.sqrt(piece.information[piece.groups])
        known = known + piece.information
        able = asked & (known > 0)
        if not bool(able.any()):
            continue
        score = total[:, able] / np.sqrt(known[able])
        largest = (np.abs(score) if two_sided else score).max(axis=1)
        wanted = error * (k + 1) / looks * draws
        spent = int(np.floor(wanted - np.sqrt(wanted))) - int(crossed.sum())
        # never above what independent groups would need with the look's own share
        cap = independent_score(1 - error / looks, int(able.sum()), two_sided)
        out[k] = cap
        if spent > 0:
            still = np.sort(largest[~crossed])
            out[k] = min(float(still[-min(spent, still.size)]), cap)
        crossed |= largest >= out[k]
    return out
