"""The score-based cumulative sum: the largest total score over models and thresholds."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from equipoise.methods.inference.student import turned_by_skewness
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray

# --- What is left of each outcome beyond the tolerance, and how it varies at the edge ---

WORTH_OF_A_ROW = 0.1
"""What a real outcome adds to the size of a subgroup: as much as one of risk 0.11 or 0.89."""

Draw = Callable[[np.random.Generator, int], FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Null:
    """Residuals of n rows in both directions, and draws of them under the null hypothesis.

    Arrays of length 2n hold first the residuals from the upper end of what is tolerated, which
    count where the outcome is thought too high for its prediction, then those from the lower end.
    """

    predicted: FloatArray
    """The prediction of each row."""
    low: FloatArray
    """Lowest expected outcome that is tolerated."""
    high: FloatArray
    """Highest expected outcome that is tolerated."""
    observed: FloatArray
    """Outcome minus upper end, then outcome minus lower end."""
    variance: FloatArray
    """Variance of the same at the edge of the null hypothesis."""
    draw: Draw
    """Residuals of ``size`` draws, one draw to a line. Both ends share their randomness, so that
    they bound every outcome the null hypothesis allows."""
    exact: bool
    """Whether the draws have the distribution of the edge itself, and not only its limit."""
    third: FloatArray
    """Third central moment at the edge, in the order of ``observed``."""
    worth: FloatArray
    """What each row adds to the size of a subgroup: its variance, for outcomes 0 or 1."""
    cluster: IntArray | None = None
    """Rows that vary together, numbered from 0; None where every row varies alone."""
    coins: tuple[FloatArray, FloatArray] | None = None
    """Variance and third moment of outcomes 0 or 1 if everybody's clusters were equally tied, where
    there are clusters."""

    def __len__(self) -> int:
        return len(self.predicted)

    @property
    def point(self) -> bool:
        """Whether the null hypothesis leaves no room, so that both ends are one."""
        return bool(np.array_equal(self.low, self.high))


def bernoulli_null(
    outcome: FloatArray,
    predicted: FloatArray,
    *,
    tolerance: float,
    weight: FloatArray | None = None,
) -> Null:
    """Outcomes 0 or 1 and predicted risks: the edge is a coin with risk ± tolerance.

    Weights multiply residuals, drawn ones as well.

    >>> null = bernoulli_null(np.array([1.0, 0.0]), np.array([0.5, 0.98]), tolerance=0.05)
    >>> null.observed.round(2).tolist()
    [0.45, -1.0, 0.55, -0.93]
    """
    y, p = _aligned(outcome, predicted, tolerance)
    if not np.isin(y, (0.0, 1.0)).all() or p.min(initial=0.0) < 0 or p.max(initial=0.0) > 1:
        raise ValueError("outcomes must be 0 or 1, and predicted risks lie between 0 and 1")
    # Projected into [0, 1] as after (2) of Feng and others.
    low, high = np.clip(p - tolerance, 0.0, 1.0), np.clip(p + tolerance, 0.0, 1.0)
    ends = np.concatenate([high, low])
    times = None if weight is None else np.tile(_weights(weight, p.size), 2)
    each = np.ones(2 * p.size) if times is None else times

    def draw(rng: np.random.Generator, size: int) -> FloatArray:
        uniform = rng.random((size, p.size))
        drawn = np.empty((size, 2 * p.size))
        # One uniform for both ends, as in Theorem 4 of Feng and others: every outcome that the null
        # allows lies between the two.
        np.less(uniform, high, out=drawn[:, : p.size], casting="unsafe")
        np.less(uniform, low, out=drawn[:, p.size :], casting="unsafe")
        drawn -= ends
        if times is not None:
            drawn *= times
        return drawn

    return Null(
        predicted=p,
        low=low,
        high=high,
        observed=each * (np.tile(y, 2) - ends),
        variance=each**2 * ends * (1 - ends),
        draw=draw,
        exact=True,
        third=each**3 * ends * (1 - ends) * (1 - 2 * ends),
        worth=np.maximum(high * (1 - high), low * (1 - low)),
    )


def sign_flip_null(
    outcome: FloatArray,
    predicted: FloatArray,
    *,
    tolerance: float,
    weight: FloatArray | None = None,
    cluster: IntArray | None = None,
    risks: bool = False,
) -> Null:
    """Real outcomes: at the edge a residual is as likely as the same with its sign changed.

    Exact for symmetric errors, right for large samples for others. Rows of a cluster, of real or
    of 0/1 outcomes, change their signs together; ``risks`` says that predictions are risks, so that
    outcomes vary at least as coins do. A handful of rows of risk 0.97 that all came true shows next
    to no variance of its own.

    >>> null = sign_flip_null(np.array([3.0, 0.0]), np.array([1.0, 1.0]), tolerance=0.5)
    >>> null.observed.tolist()
    [1.5, -1.5, 2.5, -0.5]
    """
    y, f = _aligned(outcome, predicted, tolerance)
    each = np.ones(f.size) if weight is None else _weights(weight, f.size)
    observed = np.concatenate([each * (y - f - tolerance), each * (y - f + tolerance)])
    low, high = f - tolerance, f + tolerance
    coins = None
    if risks:
        ends, times = np.clip(np.concatenate([high, low]), 0.0, 1.0), np.tile(each, 2)
        observed = times * (np.tile(y, 2) - ends)
        high, low = ends[: f.size], ends[f.size :]
        spread = ends * (1 - ends)
        alike = _design_effect(each * (y - f), each**2 * np.clip(f * (1 - f), 0.0, None), cluster)
        coins = alike * times**2 * spread, alike**2 * times**3 * spread * (1 - 2 * ends)
    units = f.size if cluster is None else int(cluster.max(initial=-1)) + 1

    def draw(rng: np.random.Generator, size: int) -> FloatArray:
        signs = 2.0 * rng.integers(0, 2, (size, units), dtype=np.int8) - 1
        if cluster is not None:
            signs = signs[:, cluster]
        return np.asarray(np.tile(signs, 2) * observed, dtype=np.float64)

    return Null(
        predicted=f,
        low=low,
        high=high,
        observed=observed,
        # flipping a sign leaves the square alone, so the scale is the same in every draw
        variance=observed**2,
        draw=draw,
        exact=False,
        third=observed**3,
        worth=np.full(f.size, WORTH_OF_A_ROW),
        cluster=cluster,
        coins=coins,
    )


def _aligned(
    outcome: FloatArray, predicted: FloatArray, tolerance: float
) -> tuple[FloatArray, FloatArray]:
    y, p = np.asarray(outcome, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if y.shape != p.shape or y.ndim != 1:
        raise ValueError(f"outcomes and predictions differ in shape: {y.shape} and {p.shape}")
    if not np.isfinite(y).all() or not np.isfinite(p).all():
        raise ValueError("outcomes and predictions must be finite")
    if not 0 <= tolerance < np.inf:
        raise ValueError(f"the tolerance must be at least 0; got {tolerance}")
    return y, p


def _design_effect(residual: FloatArray, variance: FloatArray, cluster: IntArray | None) -> float:
    """How many times as much everybody's sum varies as if no rows varied together; at least 1."""
    total = float(variance.sum())
    if cluster is None or not total > 0:
        return 1.0
    return max(1.0, float((np.bincount(cluster, residual) ** 2).sum()) / total)


def _weights(weight: FloatArray, rows: int) -> FloatArray:
    w = np.asarray(weight, dtype=np.float64)
    if w.shape != (rows,) or not np.isfinite(w).all() or (w < 0).any() or not (w > 0).any():
        raise ValueError(f"weights must be finite and at least 0, one for each of {rows} rows")
    # scaled to a mean of one, so that neither huge nor tiny weights lose digits
    return np.asarray(w / w.mean(), dtype=np.float64)


# --- Sums along many directions in standard deviations, made nearly normal, so that they compare
#
# A direction gives every row a signed weight; a positive one counts the row from the upper end of
# what is tolerated, a negative one from the lower. Its sum grows with every outcome that has a
# positive weight and falls with every other, so at the edge of the null hypothesis it is as large
# as can be. Whatever rises with all sums of a family shares that, and its rank among draws is a
# p-value.

LEAST_WORTH = 2.0
"""Variance of the outcomes, added up, that a direction must rest on: 10 rows of risk 0.3."""
LEAST_CLUSTERS = 10.0
"""Clusters, counted as if all were of one size, that a direction must rest on."""
FEWEST_CLUSTERS = 4.0
"""The same for directions in which everybody has a part."""
_LINES = 64


class Family(Protocol):
    """Directions of which sums are taken."""

    def sums(self, residuals: FloatArray) -> FloatArray:
        """Sums of each line of residuals: directions × lines."""
        ...

    def powers(self, second: FloatArray, third: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums of squared weights times the one, and of cubed weights times the other."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Standard:
    """How the sums of a family are measured."""

    spread: FloatArray
    """Standard deviation of each sum at the edge of the null hypothesis."""
    skewness: FloatArray
    """Skewness of each sum at the edge, where that is known."""
    open: BoolArray
    """Which directions rest on enough rows to be looked at."""
    turns: FloatArray
    """Skewness of sums, (3, directions): as their own residuals show it, if these were shaped like
    all others, and of coins. Empty where the edge is drawn."""

    bonus: FloatArray | None = None
    """What is added to each score."""

    def scores(self, sums: FloatArray) -> FloatArray:
        """Scores of drawn sums, directions × draws; −∞ where a direction is not looked at."""
        inverse = np.divide(1.0, self.spread, out=np.zeros_like(self.spread), where=self.open)
        z = sums * inverse[:, None]
        if self.skewness.any():
            z = bent(z, self.skewness[:, None])
        if self.bonus is not None:
            z += self.bonus[:, None]
        z[~self.open] = -np.inf
        return z

    def observed(self, sums: FloatArray) -> FloatArray:
        """Scores of the observed sums; where only signs are drawn, skewness is allowed for."""
        z = self.scores(sums[:, None])[:, 0]
        if self.turns.size:
            extra = 0.0 if self.bonus is None else self.bonus
            plain = np.where(self.open, z, 0.0) - np.where(self.open, extra, 0.0)
            turned = [turned_by_skewness(plain, skewness) for skewness in self.turns]
            z = np.where(self.open, np.minimum(plain, np.min(turned, axis=0)) + extra, -np.inf)
        return np.asarray(z)


def standard(
    family: Family, null: Null, *, least: float = LEAST_WORTH, skewed: bool = True
) -> Standard:
    """Measure a family's sums.

    ``least`` is the worth of the rows that a direction must rest on; ``skewed`` says whether known
    skewness is undone.
    """
    variance, third = family.powers(null.variance, null.third)
    worth, _ = family.powers(np.tile(null.worth, 2), np.zeros(2 * len(null)))
    enough = worth > least
    ones = np.ones(2 * len(null))
    plain, cubes = family.powers(ones, ones)
    if null.cluster is not None:
        variance, third, plain, cubes, clusters = _by_cluster(family, null)
        enough &= clusters >= (LEAST_CLUSTERS if least > 0 else FEWEST_CLUSTERS)
    coins, cubed = (variance, third) if null.coins is None else family.powers(*null.coins)
    variance = np.maximum(variance, coins)
    # what rounding leaves of sums that cancel is no spread
    enough &= variance > 1e-12 * max(float(variance.max(initial=0.0)), 1e-300)
    gamma = _skewness(third, variance)
    if null.exact:
        known = gamma if skewed else np.zeros_like(gamma)
        turns = np.zeros((0, gamma.size))
    else:
        known, usual = np.zeros_like(gamma), shape_of(null) * _skewness(cubes, plain)
        turns = np.stack([gamma, usual, _skewness(cubed, variance)])
    return Standard(spread=np.sqrt(variance), skewness=known, open=enough, turns=turns)


def bent(z: FloatArray, skewness: FloatArray) -> FloatArray:
    """A standardised sum of known skewness made nearly normal by a square root; it rises with z.

    To first order z − γ(z² − 1)/6, as Cornish and Fisher have it, which would turn back.

    >>> bent(np.array([0.0, 3.0]), np.array([0.0, 0.5])).round(3).tolist()
    [0.0, 2.569]
    """
    root = np.sqrt(np.maximum(1 + (2 / 3) * skewness * z, 0.0))
    return np.asarray(2 * z / (1 + root) + skewness / 6)


def shape_of(null: Null) -> float:
    """Skewness of all residuals, or of the clusters' totals, about their mean."""
    middle = (null.observed[: len(null)] + null.observed[len(null) :]) / 2
    if null.cluster is not None:
        middle = np.asarray(np.bincount(null.cluster, middle), dtype=np.float64)
    about = middle - middle.mean()
    return float(_skewness(np.array([(about**3).mean()]), np.array([(about**2).mean()]))[0])


def _skewness(third: FloatArray, variance: FloatArray) -> FloatArray:
    safe = np.where(variance > 0, variance, 1.0)
    return np.where(variance > 0, third / safe**1.5, 0.0)


def _by_cluster(family: Family, null: Null) -> tuple[FloatArray, ...]:
    """Second and third moments of cluster sums, those of plain rows, and clusters worth."""
    total = [np.zeros(0)] * 5
    for chosen in _lines(null):
        masks = np.tile(chosen, 2)
        own, ones = family.sums(masks * null.observed), family.sums(masks.astype(np.float64))
        parts = [own**2, own**3, ones**2, ones**3, own**4]
        found = [part.sum(axis=1) for part in parts]
        total = [a + b if a.size else b for a, b in zip(total, found, strict=True)]
    fourth = np.maximum(total[4], 1e-300)
    return (*total[:4], np.where(total[4] > 0, total[0] ** 2 / fourth, 0.0))


def _lines(null: Null) -> Iterator[BoolArray]:
    """Clusters a few at a time, one line for each: True for its rows."""
    cluster: IntArray = null.cluster if null.cluster is not None else np.arange(len(null))
    for first in range(0, int(cluster.max(initial=-1)) + 1, _LINES):
        last = min(first + _LINES, int(cluster.max()) + 1)
        yield np.asarray(cluster == np.arange(first, last)[:, None])


# --- The score-based cumulative sum: the largest total score over models and thresholds ---


class Scale(StrEnum):
    """How sums over subgroups of different sizes, from different models, are made comparable."""

    RAW = "raw"
    """Divided by the number of rows, as published: the model with the largest residuals wins."""
    STANDARD = "standard"
    """Divided by their standard deviation at the edge of the null hypothesis."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Walk:
    """One residual model's walk through the rows, from the worst predicted violation on."""

    model: int
    """Position of the model."""
    order: IntArray
    """Rows with a predicted violation, the largest first."""
    place: IntArray
    """Where each one's residual stands among the 2n of the null."""
    weight: FloatArray
    """Signed weight of each."""
    ends: IntArray
    """Positions at which a threshold may lie: the last row of each tie that is large enough."""
    factor: FloatArray
    """What the sum at each of these is multiplied by."""
    shrink: FloatArray
    """What the observed sum is multiplied by besides, for skewness and noise that folds share."""

    def sums(self, residuals: FloatArray) -> FloatArray:
        """Scaled sums at every threshold; residuals have the 2n on their last axis."""
        scores = residuals.take(self.place, axis=-1)
        scores *= self.weight
        np.cumsum(scores, axis=-1, out=scores)
        if self.ends.size < self.order.size:
            scores = scores.take(self.ends, axis=-1)
        scores *= self.factor
        return scores

    def observed(self, null: Null) -> FloatArray:
        """The sums of the rows as they are."""
        return self.sums(null.observed) * self.shrink


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """A part of a subgroup that is off one way."""

    members: IntArray
    """Its rows."""
    sign: int
    """+1 where outcomes are thought too high for their predictions, −1 where too low."""
    sets: tuple[tuple[int, int], ...] = ()
    """By column, the set of its partition; empty where no scan found it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Best:
    """The subgroup with the largest score."""

    model: int
    """Position of the residual model that found it."""
    members: IntArray
    """Its rows, the worst predicted violation first."""
    threshold: float
    """Smallest predicted violation among them; the score, where a scan found it."""
    pieces: tuple[Piece, ...]
    """Its rows by the way they are off: no two directions in one."""
    bonus: float = 0.0
    """What its score has ahead of others, where a scan found it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cusum:
    """The statistic: never below zero, which is the score of looking at nobody."""

    paths: tuple[Walk, ...]
    """One for each model that predicts a violation in enough rows."""
    weights: FloatArray
    """Signed weights: models × rows."""

    def values(self, residuals: FloatArray) -> FloatArray:
        """The statistic of each line of drawn residuals."""
        largest = np.zeros(len(residuals))
        for path in self.paths:
            np.maximum(largest, path.sums(residuals).max(axis=1), out=largest)
        return largest

    def observed(self, null: Null) -> float:
        """The statistic of the rows as they are."""
        return max([0.0, *(float(path.observed(null).max()) for path in self.paths)])

    def best(self, null: Null) -> Best | None:
        """The subgroup behind the observed statistic; None if no sum is positive."""
        walks = [(path, path.observed(null)) for path in self.paths]
        if not walks or max(float(sums.max()) for _, sums in walks) <= 0:
            return None
        path, sums = max(walks, key=lambda walk: float(walk[1].max()))
        last = int(path.ends[np.argmax(sums)])
        members = path.order[: last + 1]
        return Best(
            model=path.model,
            members=members,
            threshold=float(np.abs(path.weight[last])),
            pieces=pieces_of(members, self.weights[path.model, members]),
        )


def pieces_of(members: IntArray, weights: FloatArray) -> tuple[Piece, ...]:
    """Rows by the sign of their weights, in the order they come."""
    ways = [(way, members[way * weights > 0]) for way in (1, -1)]
    return tuple(Piece(members=rows, sign=way) for way, rows in ways if rows.size)


def cusum(
    weights: FloatArray,
    null: Null,
    *,
    noise: FloatArray | None = None,
    scale: Scale = Scale.STANDARD,
    prevalence: float = 0.0,
    thresholds: bool = True,
) -> Cusum:
    """The statistic for signed weights, such as `violations` gives.

    Parameters
    ----------
    weights
        Models × rows; the sign says which end of the tolerance the row is measured from.
    null
        The residuals.
    noise
        Variance of each weight that comes from the rows it was learned on, if these are tested as
        well, as in `fold_noise`.
    scale
        How sums are made comparable.
    prevalence
        Only subgroups that hold more than this share of the rows are looked at.
    thresholds
        Whether every threshold is tried, or only all rows with a predicted violation together.
    """
    weights = np.atleast_2d(weights)
    lines = np.zeros_like(weights) if noise is None else np.atleast_2d(noise)
    pairs = enumerate(zip(weights, lines, strict=True))
    paths = (_path(m, line, about, null, scale, prevalence) for m, (line, about) in pairs)
    kept = [path for path in paths if path.ends.size]
    chosen: Sequence[Walk] = kept if thresholds else [_last(path) for path in kept]
    return Cusum(paths=tuple(chosen), weights=weights)


def _path(
    model: int, line: FloatArray, noise: FloatArray, null: Null, scale: Scale, prevalence: float
) -> Walk:
    size, n = np.abs(line), len(null)
    chosen = np.flatnonzero(size)
    order = chosen[np.argsort(-size[chosen], kind="stable")].astype(np.int64)
    weight = line[order]
    # (12) of Feng and others: the sign of the detector says from which end a residual counts.
    place = order + n * (weight < 0)
    # rows with the same predicted violation enter together or not at all
    ends = np.flatnonzero(np.diff(np.abs(weight), append=-1.0))
    variance, third = _moments(weight, order, place, null)
    coins, cubed = variance, third
    if null.coins is not None:
        squares, cubes = null.coins
        coins, cubed = np.cumsum(squares[place] * weight**2), np.cumsum(cubes[place] * weight**3)
    variance, third, cubed = np.maximum(variance, coins)[ends], third[ends], cubed[ends]
    shared = np.cumsum(null.variance[place] * noise[order])[ends]
    # (13) in Appendix A of Feng and others. Besides, sums over a handful of rows are too skewed to
    # be measured in standard deviations.
    usable = (ends + 1 > prevalence * n) & ((variance > 0) | (scale is Scale.RAW))
    ends, variance, shared = ends[usable], variance[usable], shared[usable]
    skewed = np.stack([third, cubed])[:, usable]
    # weights that are nothing but noise double the variance of the sum, and no more
    ratio = np.divide(shared, variance, out=np.zeros_like(shared), where=variance > 0)
    return Walk(
        model=model,
        order=order,
        place=place,
        weight=weight,
        ends=ends.astype(np.int64),
        # Raw is the mean of (4); standard is the ratio (6), by which power is determined there.
        factor=np.full(ends.size, 1 / n) if scale is Scale.RAW else 1 / np.sqrt(variance),
        shrink=_skew_shrink(weight, place, ends, variance, skewed, null)
        / np.sqrt(1 + np.minimum(ratio, 1.0)),
    )


def _moments(
    weight: FloatArray, order: IntArray, place: IntArray, null: Null
) -> tuple[FloatArray, FloatArray]:
    """Second and third moments of the sum so far, row after row, or cluster after cluster."""
    if null.cluster is None:
        second, third = null.variance[place] * weight**2, null.third[place] * weight**3
        return np.cumsum(second), np.cumsum(third)
    scores = null.observed[place] * weight
    # what the row's cluster has added up to before it
    cluster = null.cluster[order]
    together = np.argsort(cluster, kind="stable")
    running = np.cumsum(scores[together]) - scores[together]
    first = np.searchsorted(cluster[together], cluster[together], side="left")
    before = np.empty_like(scores)
    before[together] = running - running[first]
    after = before + scores
    return np.cumsum(after**2 - before**2), np.cumsum(after**3 - before**3)


def _skew_shrink(
    weight: FloatArray,
    place: IntArray,
    ends: IntArray,
    variance: FloatArray,
    thirds: FloatArray,
    null: Null,
) -> FloatArray:
    """What skewness leaves of each observed sum where draws only change signs; 1 otherwise."""
    if null.exact or not ends.size:
        return np.ones(ends.size)
    total = np.cumsum(null.observed[place] * weight)[ends]
    spread = np.sqrt(np.where(variance > 0, variance, 1.0))
    z = np.where(variance > 0, total / spread, 0.0)
    plain, cubes = np.cumsum(weight**2)[ends], np.cumsum(weight**3)[ends]
    skewness = (*(thirds / spread**3), shape_of(null) * cubes / plain**1.5)
    turned = np.min([z, *(turned_by_skewness(z, g) for g in skewness)], axis=0)
    return np.asarray(np.divide(np.maximum(turned, 0.0), z, out=np.ones_like(z), where=z > 0))


def _last(path: Walk) -> Walk:
    return dataclasses.replace(
        path, ends=path.ends[-1:], factor=path.factor[-1:], shrink=path.shrink[-1:]
    )


# --- How rarely a statistic is as large, about: what several say is put together by it ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """About how rarely a statistic is as large: half its square as Gumbel's distribution has it.

    Half the square of a standardised sum is about a log likelihood ratio, whose largest value has
    this tail. It says what statistics are worth beside each other and has no part in the level.

    >>> chance = Tail(place=2.0, scale=1.0).log_chance(np.array([1.0, 3.0, 12.0]))
    >>> chance.round(2).tolist()
    [-0.01, -2.54, -70.0]
    >>> round(Tail(place=2.0, scale=1.0).value(-70.0), 6)
    12.0
    """

    place: float
    """Where the distribution of half the square lies."""
    scale: float
    """How far it spreads; 0 for a statistic that does not vary."""

    def log_chance(self, values: FloatArray) -> FloatArray:
        """Logarithm of the chance of a value as large."""
        half = np.maximum(values, 0.0) ** 2 / 2
        if self.scale == 0:
            return np.where(half > self.place, -_NEVER, 0.0)
        x = np.clip((half - self.place) / self.scale, -_NEVER, _NEVER)
        rare = np.exp(-np.clip(x, -3.0, None))
        # far out the chance is as small as its own exponent says
        return np.where(x > 30, -x, np.log(-np.expm1(-rare)))

    def value(self, log_chance: float) -> float:
        """The value that is reached with this chance."""
        if self.scale == 0:
            return 0.0 if log_chance == 0 else math.sqrt(2 * self.place)
        rare = math.exp(log_chance)
        x = -log_chance if rare < 1e-13 else -math.log(max(-math.log1p(-min(rare, 1.0)), 1e-300))
        return math.sqrt(2 * max(self.place + self.scale * x, 0.0))


_NEVER = 1e6
"""Exponent of a chance that is none."""


def tail_of(values: FloatArray) -> Tail:
    """The tail of a statistic by its mean and its spread in some draws."""
    half = np.maximum(values, 0.0) ** 2 / 2
    scale = float(half.std()) * math.sqrt(6) / math.pi
    return Tail(place=float(half.mean()) - np.euler_gamma * scale, scale=scale)


# --- Which rows residual models are fitted on, and which they are tested on; order is irrelevant


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
