"""Sums along many directions in standard deviations, made nearly normal, so that they compare.

A direction gives every row a signed weight; a positive one counts the row from the upper end of
what is tolerated, a negative one from the lower. Its sum grows with every outcome that has a
positive weight and falls with every other, so at the edge of the null hypothesis it is as large as
can be. Whatever rises with all sums of a family shares that, and its rank among draws is a p-value.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from equipoise.methods.arrays import BoolArray, FloatArray, IntArray
from equipoise.methods.cusum.null import Null
from equipoise.methods.inference.student import turned_by_skewness

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
