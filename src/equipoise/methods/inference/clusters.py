"""Clusters: how far a contrast strays when whole clusters are left out, one at a time.

Rows of one cluster are alike, so clusters take the place of rows. Leaving out cluster c moves the
means by about its influence, a little more where the cluster is large (the CR3 variance); how many
clusters that is worth follows from how unequal they are, in size and in what they did.
"""

from dataclasses import dataclass, replace
from math import comb

import numpy as np

from equipoise.methods.inference.comparison import Comparison, over
from equipoise.methods.inference.student import Spread, beyond
from equipoise.methods.numerics import FloatArray, GroupSums, IntArray

LEAST_DEGREES = 3.0
"""Contrasts worth fewer degrees of freedom are not answered."""
_NUMBERS = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSums:
    """Sums by cluster and cell, sorted by cluster; clusters are numbered from 0."""

    cluster: IntArray
    """Cluster of each entry."""
    cell: IntArray
    """Cell of each entry."""
    weight: FloatArray
    """Σ w of the entry."""
    total: FloatArray
    """Σ w L of the entry."""
    cells: int
    """Number of cells."""

    @property
    def number(self) -> int:
        """Number of clusters."""
        return int(self.cluster[-1]) + 1 if self.cluster.size else 0

    def moved(self, place: IntArray, cells: int) -> "ClusterSums":
        """The same with every cell at another place; those at −1 are left out.

        >>> two = np.array([0, 1])
        >>> sums = ClusterSums(cluster=two, cell=two, weight=two + 1.0, total=two * 1.0, cells=2)
        >>> sums.moved(np.array([-1, 0]), 1).weight.tolist()
        [2.0]
        """
        there = place[self.cell] >= 0
        _, cluster = np.unique(self.cluster[there], return_inverse=True)
        return ClusterSums(
            cluster=cluster.astype(np.int64),
            cell=place[self.cell[there]],
            weight=self.weight[there],
            total=self.total[there],
            cells=cells,
        )

    def cell_sums(self) -> tuple[FloatArray, FloatArray]:
        """Weight and total of every cell, over all clusters."""
        weight, total = (
            np.bincount(self.cell, weights=x, minlength=self.cells).astype(np.float64)
            for x in (self.weight, self.total)
        )
        return weight, total

    def blocks(self, groups: int) -> list[tuple[FloatArray, FloatArray]]:
        """Dense sums ``(b, C)`` of weight and total, some clusters at a time."""
        step = max(1, _NUMBERS // max(self.cells, groups, 1))
        out = []
        for start in range(0, self.number, step):
            stop = min(start + step, self.number)
            first, last = np.searchsorted(self.cluster, [start, stop])
            place = (self.cluster[first:last] - start, self.cell[first:last])
            both = []
            for x in (self.weight, self.total):
                dense = np.zeros((stop - start, self.cells))
                np.add.at(dense, place, x[first:last])
                both.append(dense)
            out.append((both[0], both[1]))
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Power sums of what leaving out a cluster does to a group's mean u and its target's t.

    The contrast u − f t has the powers Σ (u − f t)ᵏ for every factor f.
    """

    powers: tuple[FloatArray, ...]
    """For k = 2, 3, 4: Σ u^(k−i) tⁱ for i = 0 … k, shapes ``(k + 1, G)``."""
    sizes: FloatArray
    """Σ g, Σ h, Σ g², Σ gh, Σ h² of squared shares g of group and h of target, ``(5, G)``."""
    clusters: int
    """Number of clusters."""
    blank: FloatArray
    """Whether some cluster holds all of a group or its target, ``(G,)``."""
    shape: float = 0.0
    """Skewness of what single clusters do, over all groups."""

    def some(self, chosen: IntArray) -> "LeftOut":
        """Some of the groups."""
        return LeftOut(
            powers=tuple(x[:, chosen] for x in self.powers),
            sizes=self.sizes[:, chosen],
            clusters=self.clusters,
            blank=self.blank[chosen],
            shape=self.shape,
        )

    def shaped(self, factor: FloatArray) -> "LeftOut":
        """The same with the skewness that clusters show over all groups.

        A group that happens to miss the rare large clusters looks harmless; others know better.
        """
        found = self.spread(factor)
        number = np.nan_to_num(over(np.ones_like(factor), self.sizes[0]))
        ok = (found.variance > 0) & (self.blank == 0)
        number = np.where(ok, number, 0.0)
        each = np.where(ok, found.skewness, 0.0) * np.sqrt(number)
        every = max(float(number.sum()), 1.0)
        # what one cluster does, from what it does to a mean of so many
        second = float((np.where(ok, found.variance, 0.0) * number**2).sum()) / every
        third = float((each * (np.where(ok, found.variance, 0.0) * number) ** 1.5 * number).sum())
        pooled = third / every / second**1.5 if second > 1e-200 else 0.0
        typical = np.copysign(((number * each**2).sum() / every) ** 0.5, (number * each).sum())
        # chance alone gives n clusters a squared skewness of about 6/n
        shapes = (beyond(pooled, 6 / every), beyond(float(typical), 6 * float(ok.sum()) / every))
        return replace(self, shape=max(shapes, key=abs))

    def spread(self, factor: FloatArray) -> Spread:
        """Spread of the contrast at a factor on the target."""
        square, third, fourth = (
            sum(comb(k, i) * (-factor) ** i * x[i] for i in range(k + 1))
            for k, x in zip((2, 3, 4), self.powers, strict=True)
        )
        square, fourth = np.maximum(square, 0.0), np.maximum(fourth, 0.0)
        m, f2 = self.clusters, factor**2
        g, h, gg, gh, hh = self.sizes
        size, size2 = g + f2 * h, gg + 2 * f2 * gh + f2**2 * hh
        # by size as if whole clusters moved together; by outcome, three for normal influence
        by_size = np.nan_to_num(over(size**2, size2))
        by_outcome = 3 * np.nan_to_num(over(square**2, fourth))
        degrees = np.where(square > 0, np.minimum(by_size, np.minimum(by_outcome, m)), by_size)
        # leaving out moves against the influence, hence the sign
        skew = -np.nan_to_num(over(third, square**1.5))
        return Spread(
            variance=square * max(m - 1, 0) / max(m, 1),
            skewness=skew,
            usual=self.shape * np.stack([np.sqrt(g), -np.sqrt(h) * (factor != 0)]),
            degrees=np.where(self.blank > 0, 0.0, np.maximum(degrees - 1, 0.0)),
        )


def leave_out(clusters: ClusterSums, found: Comparison, sums: GroupSums) -> LeftOut:
    """Leave out every cluster once."""
    groups = found.parts.rows.shape[1]
    powers = [np.zeros((k + 1, groups)) for k in (2, 3, 4)]
    sizes, blank = np.zeros((5, groups)), np.zeros(groups)
    weights, totals = (found.both(x[None], sums) for x in clusters.cell_sums())
    wholes = tuple(zip(weights, totals, strict=True))
    means = (found.mean, found.theta)
    for weight, total in clusters.blocks(groups):
        moves, shares = [], []
        gone = zip(found.both(weight, sums), found.both(total, sums), strict=True)
        for (gone_w, gone_s), (whole_w, whole_s), mean in zip(gone, wholes, means, strict=True):
            left = np.where(whole_w - gone_w > 1e-9 * whole_w, whole_w - gone_w, 0.0)
            moved = over(whole_s - gone_s, left) - mean
            touched = gone_w > 0
            blank += (touched & (left == 0)).any(axis=0)
            moves.append(np.where(touched, np.nan_to_num(moved), 0.0))
            shares.append(np.nan_to_num(over(gone_w, whole_w)) ** 2)
        u, t = moves
        for k, out in zip((2, 3, 4), powers, strict=True):
            for i in range(k + 1):
                out[i] += (u ** (k - i) * t**i).sum(axis=0)
        g, h = shares
        sizes += np.stack([x.sum(axis=0) for x in (g, h, g * g, g * h, h * h)])
    return LeftOut(powers=tuple(powers), sizes=sizes, clusters=clusters.number, blank=blank)
