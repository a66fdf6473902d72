"""The score-based cumulative sum: the largest total score over models and thresholds."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from equipoise.methods.cusum.null import Null
from equipoise.methods.inference.student import turned_by_skewness
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray

# --- Sums along many directions in standard deviations, made nearly normal, so that they compare
# ---
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


def unbent(score: FloatArray, skewness: FloatArray) -> FloatArray:
    """The standardised sum that has this score.

    >>> unbent(bent(np.array([3.0]), np.array([0.5])), np.array([0.5])).round(9).tolist()
    [3.0]
    """
    straight = score - skewness / 6
    return np.asarray(straight + skewness * straight**2 / 6)


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
class Path:
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

    paths: tuple[Path, ...]
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
    chosen: Sequence[Path] = kept if thresholds else [_last(path) for path in kept]
    return Cusum(paths=tuple(chosen), weights=weights)


def _path(
    model: int, line: FloatArray, noise: FloatArray, null: Null, scale: Scale, prevalence: float
) -> Path:
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
    return Path(
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


def _last(path: Path) -> Path:
    return dataclasses.replace(
        path, ends=path.ends[-1:], factor=path.factor[-1:], shrink=path.shrink[-1:]
    )
