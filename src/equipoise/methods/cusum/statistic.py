"""The score-based cumulative sum: the largest total score over models and thresholds."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from equipoise.methods.arrays import FloatArray, IntArray
from equipoise.methods.cusum.null import Null
from equipoise.methods.cusum.standard import shape_of
from equipoise.methods.inference.student import turned_by_skewness


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
