"""p-values for rows that come in clusters: the jackknife over clusters and Student's t."""

import numpy as np
from scipy.special import stdtr

from equipoise.methods.arrays import FloatArray, GroupSums
from equipoise.methods.bootstrap.data import CellMoments, ClusterData, Totals
from equipoise.methods.bootstrap.estimates import GroupEstimates
from equipoise.methods.bootstrap.flags import BootstrapPValues, as_p_values
from equipoise.methods.bootstrap.sums import group_totals, quotient
from equipoise.methods.bootstrap.targets import Target
from equipoise.methods.nulls.hypotheses import Null

FEWEST = 10
"""Groups met by fewer clusters are not tested: their spread is too uncertain."""
BLOCK_NUMBERS = 1 << 21


def cluster_t(
    clusters: ClusterData,
    moments: CellMoments,
    groups: GroupEstimates,
    target: Target,
    sums: GroupSums,
    null: Null,
) -> BootstrapPValues:
    """p-values of gaps with the standard error of leaving out one cluster at a time.

    The reference is Student's t with one degree of freedom less than the clusters that the group
    meets.

    >>> from equipoise.methods.bootstrap import Overall, estimate_gaps, unweighted_moments
    >>> from equipoise.methods.nulls import Above
    >>> cell = np.tile([0, 1], 40)
    >>> total = np.where(cell == 1, 3.0, 1.0) + np.repeat(np.arange(40) % 2, 2)
    >>> table = ClusterData(
    ...     cluster=np.repeat(np.arange(40), 2), cell=cell, weight=np.full(80, 5.0), total=total
    ... )
    >>> cells = unweighted_moments(np.full(2, 200.0), np.bincount(cell, total))
    >>> gaps = estimate_gaps(cells, Overall(), lambda x: x)
    >>> cluster_t(table, cells, gaps, Overall(), lambda x: x, Above(limit=0.0)).p.round(3).tolist()
    [1.0, 0.0]
    """
    error, met = _jackknife(clusters, moments, target, sums)
    testable = groups.usable & (met >= FEWEST) & (np.nan_to_num(error) > 0)
    # Clusters that the group does not meet say nothing about its spread.
    degrees = np.maximum(met - 1.0, 1.0)

    def tails(limit: float) -> tuple[FloatArray, FloatArray]:
        t = np.nan_to_num(quotient(groups.estimate - limit, np.where(testable, error, 1.0)))
        return np.asarray(stdtr(degrees, -t)), np.asarray(stdtr(degrees, t))

    return as_p_values(groups, null.p_value(tails), error, testable)


def _jackknife(
    clusters: ClusterData, moments: CellMoments, target: Target, sums: GroupSums
) -> tuple[FloatArray, FloatArray]:
    """Standard error of each gap, and the number of clusters each group meets."""
    number = int(clusters.cluster[-1]) + 1 if clusters.cluster.size else 0
    cells = moments.weight.size
    step = max(1, BLOCK_NUMBERS // max(cells, int(sums(moments.rows).size), 1))
    gaps = []
    met = np.zeros(sums(moments.rows).shape)
    for start in range(0, number, step):
        left = _left_out(clusters, cells, start, min(start + step, number))
        here = Totals(weight=moments.weight - left[0], total=moments.total - left[1])
        now = group_totals(here, sums)
        gaps.append(quotient(now.total, now.weight) - target.estimate(here, now))
        met += np.sum(sums(left[0]) > 0, axis=0)
    found = np.concatenate(gaps) if gaps else np.zeros((0, met.size))
    # For a mean, leaving out cluster i of m moves it by (x̄ − xᵢ)/(m − 1); times (m − 1)/m the
    # squares then add up to s²/m.
    about = np.sum((found - found.mean(axis=0)) ** 2, axis=0) if number else np.zeros_like(met)
    return np.sqrt(about * max(number - 1, 0) / max(number, 1)), met


def _left_out(clusters: ClusterData, cells: int, start: int, stop: int) -> FloatArray:
    """Totals of the clusters start … stop − 1, shape ``(2, b, C)``."""
    first, last = np.searchsorted(clusters.cluster, [start, stop])
    out = np.zeros((2, stop - start, cells))
    place = (clusters.cluster[first:last] - start, clusters.cell[first:last])
    out[0][place] = clusters.weight[first:last]
    out[1][place] = clusters.total[first:last]
    return out
