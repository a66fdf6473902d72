"""What the summaries need of each group: its size, its mean, how its rows vary, and the core.

Measures that are no means as means: pseudo-values of rows.

A measure h of a group is a smooth function of totals that does not depend on how many rows there
are, so that row i moves it by w_i ∇h·x_i and these moves add up to nothing. The numbers
h + W ∇h·x_i, W being the group's weight, then have the weighted mean h and vary as h does. What is
known for means serves for them: how groups spread, and whether one spread is larger than another.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import betaincinv, log_ndtr, ndtr, ndtri, xlogy

from equipoise.methods.inference.core import Core, core_of, plain_worth
from equipoise.methods.inference.student import ClusterSums
from equipoise.methods.measures import Measure, Totals
from equipoise.methods.numerics import FloatArray, IntArray, over
from equipoise.methods.targets import Constant, Moments, Overall, Status, Target, plain_moments

# --- What the summaries need of each group: its size, its mean, how its rows vary, and the core

LEAST_ROWS = 3
"""Real-valued groups of fewer rows take no part. One test of all groups asks less of each than a
bound for every group does."""


class Exclusion(StrEnum):
    """Why a group takes no part in a summary."""

    EMPTY = "no row on which the metric counts"
    SINGLE = "one row: its sampling error cannot be estimated"
    WEIGHTS = "weights so unequal that it counts as fewer than two rows"
    FEW_CLUSTERS = "too few clusters, or a few that outweigh all others"
    FEW_ROWS = f"fewer than {LEAST_ROWS} rows: too few to know how the metric varies"
    CONSTANT = "its rows are all alike, so its uncertainty is unknown"
    SKEWED = "too skewed a metric for its rows"
    FEW_OF_A_KIND = "too few rows of some kind for the measure, such as positives"


_REASONS = {
    Status.EMPTY: Exclusion.EMPTY,
    Status.SINGLE: Exclusion.SINGLE,
    Status.FEW_CLUSTERS: Exclusion.FEW_CLUSTERS,
    Status.FEW_ROWS: Exclusion.FEW_ROWS,
    Status.CONSTANT: Exclusion.CONSTANT,
    Status.SKEWED: Exclusion.SKEWED,
}


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupSample:
    """The usable groups of one audit.

    Attributes
    ----------
    size
        Rows per group; with weights or clusters what they are worth, rounded down.
    mean
        Mean of the metric per group.
    spread
        Variance of the metric among a group's rows, divisor ``size``.
    binary
        Whether the metric takes the values 0 and 1 only.
    kept
        Positions of the usable groups in the arrays handed in.
    excluded
        Positions of the groups left out.
    reasons
        Why each of them was left out, in the order of ``excluded``.
    sums
        The usable groups' sums.
    clusters
        Their sums by cluster, if rows come in clusters.
    """

    size: IntArray
    mean: FloatArray
    spread: FloatArray
    binary: bool
    kept: IntArray
    excluded: IntArray
    reasons: tuple[Exclusion, ...]
    sums: Moments
    clusters: ClusterSums | None

    @cached_property
    def alone(self) -> Core:
        """The usable groups, each beside a number: their limits come from here."""
        return _core(self.sums, Constant(value=0.0), self.clusters, self.binary, self.weighted)

    @cached_property
    def beside(self) -> Core:
        """The usable groups beside all of them together: whether they differ comes from here."""
        return _core(self.sums, Overall(), self.clusters, self.binary, self.weighted)

    @property
    def weighted(self) -> bool:
        """Whether rows have weights; without, they are counted."""
        return self.sums.weight is not self.sums.rows

    @cached_property
    def skewness(self) -> FloatArray:
        """Skewness of each group mean: that of its own rows or of everybody's, the larger."""
        if self.binary:
            return np.zeros(self.groups)
        found = self.alone.spread
        usual = found.usual.sum(axis=0)
        return np.where(np.abs(usual) > np.abs(found.skewness), usual, found.skewness)

    @property
    def counted(self) -> bool:
        """Whether ``size`` and ``mean`` are plain counts of independent rows."""
        return self.binary and not self.weighted and self.clusters is None

    @property
    def groups(self) -> int:
        """Number of usable groups."""
        return int(self.size.size)

    @property
    def overall(self) -> float:
        """Mean of the metric over all rows of the usable groups."""
        return float(np.average(self.mean, weights=self.size))

    @property
    def constant(self) -> bool:
        """Whether every row has the same value, so that resampling can show no error at all."""
        return bool(np.all(self.spread == 0) and np.ptp(self.mean) == 0)

    @property
    def frozen(self) -> bool:
        """Whether no group has any variation among its own rows."""
        return bool(np.all(self.spread == 0))


def sample_from_sums(
    n: IntArray,
    total: FloatArray,
    square: FloatArray | None = None,
    cube: FloatArray | None = None,
    *,
    binary: bool,
) -> GroupSample:
    """Build the sample from row counts and the sums of the metric, its squares and its cubes.

    A 0/1 metric needs no squares or cubes; without cubes a real metric is taken to be symmetric.

    Examples
    --------
    >>> import numpy as np
    >>> s = sample_from_sums(np.array([4, 1, 5]), np.array([1.0, 1.0, 4.0]), binary=True)
    >>> s.mean.tolist(), s.excluded.tolist(), s.reasons[0].value
    ([0.25, 0.8], [1], 'one row: its sampling error cannot be estimated')
    """
    rows, total = np.asarray(n, dtype=np.float64), np.asarray(total, dtype=np.float64)
    if square is None and not binary:
        raise ValueError("a metric that is not 0/1 needs the sums of its squares")
    square = total if binary or square is None else np.asarray(square, dtype=np.float64)
    _check({"sizes": rows, "totals": total, "squares": square}, binary)
    if cube is None:
        mean = np.nan_to_num(over(total, rows))
        # the sum of cubes of rows that lie evenly about their mean
        cube = total if binary else 3 * mean * square - 2 * mean**2 * total
    return sample_from_groups(plain_moments(rows, total, square, cube), binary=binary)


def sample_from_groups(
    groups: Moments,
    *,
    binary: bool,
    clusters: ClusterSums | None = None,
    score: float = 0.0,
    least: int = 2,
) -> GroupSample:
    """Build the sample from each group's sums, with weights and clusters where there are any.

    Weights are there if ``weight`` is another array than ``rows``.
    Groups that the core cannot answer take no part, nor those too skewed to reach ``score``, unless
    all are: then they have no limits, and no summary has an upper end. The
    worth of weighted or clustered rows is rounded down, so that what is drawn errs on the wide
    side. With ``least`` 1 every group with a row is kept, as published; only what is published may
    be asked of such a sample.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.targets import plain_moments
    >>> ones = np.array([2.0, 3.0])
    >>> s = sample_from_groups(plain_moments(np.array([4.0, 6.0]), ones, ones, ones), binary=True)
    >>> s.size.tolist(), s.mean.tolist()
    ([4, 6], [0.5, 0.5])
    """
    weighted = groups.weight is not groups.rows
    plain = not weighted and clusters is None
    worth, status = groups.rows, np.where(groups.rows > 0, Status.OK, Status.EMPTY)
    if not (binary and plain) and least > 1:
        core = _core(groups, Constant(value=0.0), clusters, binary, weighted)
        status = core.guarded(score).status
        worth = worth if plain else plain_worth(core, varies(groups, binary))
    size, reasons = _usable(groups.rows, np.asarray(status), worth, least)
    while True:
        kept = np.flatnonzero([reason is None for reason in reasons])
        skewed = [i for i, reason in enumerate(reasons) if reason is Exclusion.SKEWED]
        if kept.size < 2 and kept.size + len(skewed) >= 2:
            # there would be nothing left to speak of: all are kept, without limits
            score = -np.inf
            for i in skewed:
                reasons[i] = None
            continue
        if kept.size < 2:
            raise ValueError(_too_few(groups.rows, reasons))
        some = groups.some(kept)
        place = np.full(groups.rows.size, -1)
        place[kept] = np.arange(kept.size)
        theirs = None if clusters is None else clusters.moved(place, kept.size)
        if (binary and plain) or least < 2:
            break
        # what all rows show of skewness has changed with the groups that were left out
        core = _core(some, Constant(value=0.0), theirs, binary, weighted)
        status = core.guarded(score).status
        if not status.any():
            break
        for at in np.flatnonzero(status).tolist():
            reasons[kept[at]] = _REASONS[Status(status[at])]
    return GroupSample(
        size=size[kept],
        mean=some.total / some.weight,
        spread=varies(some, binary),
        binary=binary,
        kept=kept.astype(np.int64),
        excluded=np.flatnonzero([reason is not None for reason in reasons]).astype(np.int64),
        reasons=tuple(reason for reason in reasons if reason is not None),
        sums=some,
        clusters=theirs,
    )


def _core(
    groups: Moments, target: Target, clusters: ClusterSums | None, binary: bool, weighted: bool
) -> Core:
    return core_of(
        groups,
        target,
        lambda x: x,
        relative=False,
        zero_one=binary,
        weighted=weighted,
        clusters=clusters,
        least_rows=LEAST_ROWS,
    )


def varies(groups: Moments, binary: bool) -> FloatArray:
    """Variance of the rows of each group; 0 where it is below rounding, or there are no rows."""
    mean = np.nan_to_num(over(groups.total, groups.weight))
    if binary:
        return np.asarray(np.clip(mean * (1 - mean), 0.0, 0.25))
    about = groups.square2 - 2 * mean * groups.total2 + mean**2 * groups.weight2
    about = np.where(about < 1e-13 * groups.square2, 0.0, about)
    return np.nan_to_num(over(about, groups.weight2))


def _usable(
    rows: FloatArray, status: IntArray, worth: FloatArray, least: int
) -> tuple[IntArray, list[Exclusion | None]]:
    """What each group is worth in plain rows, and why it is left out, if it is."""
    # the small allowance keeps whole numbers that were computed from rounding down
    size = np.floor(worth * (1 + 1e-12) + 1e-9).astype(np.int64)
    reasons = [_REASONS.get(Status(code)) for code in status.tolist()]
    for i in np.flatnonzero(size < least):
        if reasons[i] is None:
            reasons[i] = Exclusion.SINGLE if rows[i] < 2 else Exclusion.WEIGHTS
    return size, reasons


def _check(columns: Mapping[str, FloatArray], binary: bool) -> None:
    weight, total = columns["sizes"], columns["totals"]
    for name, values in columns.items():
        if values.ndim != 1 or values.shape != weight.shape:
            raise ValueError(f"{name} must be one number per group; got shape {values.shape}")
        if not np.all(np.isfinite(values)):
            raise ValueError(
                f"{name} must be finite; group {np.argmin(np.isfinite(values))} is not"
            )
    if np.any(weight < 0):
        raise ValueError(f"sizes must not be negative; group {np.argmax(weight < 0)} is")
    outside = (total < 0) | (total > weight * (1 + 1e-12))
    if binary and np.any(outside):
        raise ValueError(
            f"a 0/1 metric has totals between 0 and the size; group {np.argmax(outside)} has not"
        )


def _too_few(rows: FloatArray, reasons: list[Exclusion | None]) -> str:
    if rows.size and np.all(rows == 1):
        return "every group has one row, so no sampling error can be estimated"
    usable = reasons.count(None)
    why = next((f" (the first left out: {reason})" for reason in reasons if reason), "")
    return f"a spread needs at least two groups with an answer; got {usable} of {rows.size}{why}"


# --- Limits for single group means, and the critical values that make many of them hold at once

_HALVINGS = 42
_NODES = 400


@lru_cache(maxsize=64)
def mean_limits(sample: GroupSample, z: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper limit of every group mean at the two-sided critical value ``z``.

    They come from the core's pivots: exact tails of counts (Clopper and Pearson's limits),
    otherwise Student's with a correction for skewness.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.spread import sample_from_sums
    >>> s = sample_from_sums(np.array([10, 10]), np.array([10.0, 5.0]), binary=True)
    >>> low, high = mean_limits(s, 1.96)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.691, 0.187], [1.0, 0.813])
    """
    if sample.counted:
        n, tail = sample.size.astype(np.float64), float(ndtr(-z))
        ones = np.rint(sample.mean * n)
        some, rest = np.maximum(ones, 0.5), np.maximum(n - ones, 0.5)
        low = np.where(ones > 0, betaincinv(some, n - ones + 1, tail), 0.0)
        high = np.where(ones < n, betaincinv(ones + 1, rest, 1 - tail), 1.0)
        return low, high
    possible = (0.0, 1.0) if sample.binary else (-np.inf, np.inf)
    return sample.alone.bounds(z, possible)


def one_sided_z(tail: float) -> float:
    """Critical value of a single one-sided limit.

    Examples
    --------
    >>> round(one_sided_z(0.025), 4)
    1.96
    """
    return float(-ndtri(tail))


def sidak_z(tail: float, count: int) -> float:
    """Two-sided critical value for ``count`` groups at once with total error ``tail``.

    Šidák's inequality holds for normal errors with any correlation.

    Examples
    --------
    >>> round(sidak_z(0.05, 1), 4)
    1.96
    """
    # 1 − (1 − tail)^(1/count), which would cancel for many groups.
    each = -math.expm1(math.log1p(-tail) / count)
    return float(-ndtri(each / 2))


def highest_z(tail: float, groups: int) -> float:
    """The highest critical value that any summary of so many groups asks for.

    >>> round(highest_z(0.025, 2), 2)
    2.5
    """
    return max(range_z(tail, groups), sidak_z(tail, groups))


@lru_cache(maxsize=256)
def range_z(tail: float, groups: int) -> float:
    """Critical value for the differences of all pairs of groups at once.

    The upper ``tail`` point of the studentised range divided by √2. It is exact for equally precise
    groups and conservative otherwise (the Tukey–Kramer inequality).

    Examples
    --------
    >>> round(range_z(0.05, 3) * 2**0.5, 3)
    3.314
    """
    low, high = 0.0, 20.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _range_tail(middle, groups) > tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2 / math.sqrt(2)


def _range_tail(width: float, groups: int) -> float:
    """P(range of ``groups`` standard normals > width), integrating over the largest of them."""
    # The density at ±9 is about 10⁻¹⁸, and for so smooth an integrand equal steps are enough.
    nodes = np.linspace(-9.0, 9.0, _NODES)
    step = nodes[1] - nodes[0]
    log_density = -(nodes**2) / 2 - 0.5 * math.log(2 * math.pi)
    # P(all others lie within `width` below the largest), on the log scale for many groups.
    gap = -np.expm1(log_ndtr(nodes - width) - log_ndtr(nodes))
    log_inside = (groups - 1) * (log_ndtr(nodes) + np.log(np.maximum(gap, 1e-300)))
    return float(1 - groups * np.sum(np.exp(log_density + log_inside)) * step)


# --- The six meta-metrics: one number for how far apart the group means are ---


class Meta(StrEnum):
    """The summaries of a vector of group means."""

    DIFFERENCE = "max-min difference"
    RATIO = "max-min ratio"
    MAX_DEVIATION = "max absolute difference"
    MEAN_DEVIATION = "mean absolute deviation"
    VARIANCE = "variance"
    ENTROPY = "generalized entropy index"


def meta_metric(kind: Meta, mean: FloatArray, *, alpha: float = 2.0) -> FloatArray:
    """Compute one meta-metric of the group means on the last axis.

    Deviations are taken from the plain mean of the group means, each group counting once. The ratio
    is infinite where the smallest mean is zero; so is the entropy index of order 0 or less.

    Parameters
    ----------
    kind
        Which of the six.
    mean
        Group means; the last axis runs over the groups.
    alpha
        Order of the generalized entropy index; 0 and 1 are its limits.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0.2, 0.4, 0.6])
    >>> round(float(meta_metric(Meta.VARIANCE, y)), 6)
    0.04
    >>> round(float(meta_metric(Meta.RATIO, y)), 6)
    3.0
    """
    if kind is Meta.DIFFERENCE:
        return np.asarray(mean.max(axis=-1) - mean.min(axis=-1))
    if kind is Meta.RATIO:
        return _ratio(mean)
    if kind is Meta.MAX_DEVIATION:
        return np.asarray(np.abs(deviations(mean)).max(axis=-1))
    if kind is Meta.MEAN_DEVIATION:
        return np.asarray(np.abs(deviations(mean)).mean(axis=-1))
    if kind is Meta.VARIANCE:
        # Divisor K − 1 as in Table 1 of Lum, Zhang and Bower: only then is the bias the plain mean
        # of the sampling variances (their Section 4).
        return np.asarray(mean.var(axis=-1, ddof=1))
    return _entropy(mean, alpha)


def deviations(mean: FloatArray) -> FloatArray:
    """Distance of each group mean from the plain mean of the group means."""
    return np.asarray(mean - mean.mean(axis=-1, keepdims=True))


def no_spread(kind: Meta) -> float:
    """Return the value of the meta-metric when all groups are equal."""
    return 1.0 if kind is Meta.RATIO else 0.0


def needs_positive(kind: Meta) -> bool:
    """Whether the meta-metric has a meaning for non-negative metrics only."""
    return kind in (Meta.RATIO, Meta.ENTROPY)


def _ratio(mean: FloatArray) -> FloatArray:
    low, high = mean.min(axis=-1), mean.max(axis=-1)
    # All means zero are equal means.
    ratio = np.where(high > 0, np.inf, 1.0)
    return np.asarray(np.divide(high, low, out=ratio, where=low > 0))


def _entropy(mean: FloatArray, alpha: float) -> FloatArray:
    # normal draws of a small mean may fall below zero, where no mean of such a metric lies
    mean = np.maximum(mean, 0.0)
    centre = mean.mean(axis=-1, keepdims=True)
    share = np.divide(mean, centre, out=np.ones_like(mean), where=centre > 0)
    with np.errstate(divide="ignore", over="ignore"):
        # Table 1 of Lum, Zhang and Bower leaves out the orders 0 and 1, limits of what follows.
        if alpha == 0:
            return np.asarray(-np.log(share).mean(axis=-1))
        if alpha == 1:
            return np.asarray(xlogy(share, share).mean(axis=-1))
        return np.asarray((share**alpha - 1).mean(axis=-1) / (alpha * (alpha - 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """What a measure needs of each row."""

    measure: Measure
    """The function of totals."""
    kind: IntArray
    """Kind of each row."""
    side: IntArray
    """Of each kind: which are judged by their own number of rows."""
    order: IntArray
    """Of each kind: where it stands on the line."""
    numbers: FloatArray
    """Numbers of each row that are added up, ``(N, d)``."""

    def some(self, rows: IntArray) -> "Kinds":
        """Some of the rows, with the kinds and places of the line that they are of."""
        used, kind = np.unique(self.kind[rows], return_inverse=True)
        if len(self.order) <= 4 or not self.order.any():
            # few kinds, or no line: a measure may need all of them by their numbers
            used, kind = np.arange(len(self.order)), self.kind[rows]
        _, order = np.unique(self.order[used], return_inverse=True)
        return Kinds(
            measure=self.measure, kind=kind.reshape(-1), side=self.side[used],
            order=order.reshape(-1), numbers=self.numbers[rows],
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Pseudo:
    """Rows whose mean in every group is the measure of the group."""

    value: FloatArray
    """The pseudo-value of each row; NaN in groups that have no measure."""
    few: IntArray
    """Groups with too few rows of some kind, or whose measure is not defined."""


def pseudo_values(kinds: Kinds, weight: FloatArray, group: IntArray, groups: int) -> Pseudo:
    """Pseudo-values of all rows, group by group; rows of group −1 have none.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.methods.measures import OfTable
    >>> table = np.array([0, 1, 2, 3, 3] * 20)
    >>> f1 = Kinds(measure=OfTable(name="f1"), kind=table, side=np.array([0, 1, 1, 1]),
    ...            order=np.zeros(4, dtype=int), numbers=np.ones((100, 1)))
    >>> made = pseudo_values(f1, np.ones(100), np.zeros(100, dtype=int), 1)
    >>> round(float(made.value.mean()), 6)
    0.666667
    """
    out, few = np.full(group.size, np.nan), []
    by_group = np.argsort(group, kind="stable")
    stops = np.searchsorted(group[by_group], np.arange(groups + 1))
    for g in range(groups):
        rows = by_group[stops[g] : stops[g + 1]]
        own, w = kinds.some(rows), weight[rows]
        totals = _totals(own, w)
        found, slope = own.measure.value(totals.first, totals)
        worth = np.bincount(own.side, totals.weight[:, 0]) ** 2 / np.maximum(
            np.bincount(own.side, totals.weight2[:, 0]), 1e-300
        )
        present = np.isin(np.unique(kinds.side), np.unique(own.side[totals.weight[:, 0] > 0]))
        if not np.isfinite(found[0]) or not present.all() or worth.min() < own.measure.least:
            few.append(g)
            continue
        out[rows] = found[0] + w.sum() * (slope[own.kind, :, 0] * own.numbers).sum(axis=1)
    return Pseudo(value=out, few=np.array(few, dtype=np.int64))


def _totals(kinds: Kinds, weight: FloatArray) -> Totals:
    number, d = len(kinds.side), kinds.numbers.shape[1]
    first = np.zeros((number, d, 1))
    np.add.at(first[:, :, 0], kinds.kind, weight[:, None] * kinds.numbers)
    one, two = (_added(kinds.kind, weight**k, number)[:, None] for k in (1, 2))
    none = np.zeros((number, d, d, 1))
    return Totals(
        first=first, second=none, third=none[:, None], weight=one, weight2=two,
        side=kinds.side, order=kinds.order,
    )  # fmt: skip


def row_moments(
    value: FloatArray, weight: FloatArray | None, group: IntArray, groups: int
) -> Moments:
    """Sums of numbers by group; without weights counts are counts.

    >>> import numpy as np
    >>> row_moments(np.array([1.0, 2.0, 3.0]), None, np.array([0, 0, 1]), 2).total.tolist()
    [3.0, 3.0]
    """
    w = np.ones(value.size) if weight is None else weight

    def added(k: int, power: int) -> FloatArray:
        return _added(group, w**k * value**power, groups)

    rows = np.bincount(group, minlength=groups).astype(np.float64)
    if weight is None:
        one, two, three = (added(0, power) for power in (1, 2, 3))
        return Moments(
            rows=rows, weight=rows, total=one, weight2=rows, total2=one, square2=two,
            weight3=rows, total3=one, square3=two, cube3=three,
        )  # fmt: skip
    return Moments(
        rows=rows, weight=added(1, 0), total=added(1, 1),
        weight2=added(2, 0), total2=added(2, 1), square2=added(2, 2),
        weight3=added(3, 0), total3=added(3, 1), square3=added(3, 2), cube3=added(3, 3),
    )  # fmt: skip


def row_clusters(
    value: FloatArray, weight: FloatArray, group: IntArray, cluster: IntArray, groups: int
) -> ClusterSums:
    """The same by cluster.

    >>> import numpy as np
    >>> one, two = np.ones(3), np.array([0, 0, 1])
    >>> row_clusters(one, one, np.array([0, 1, 1]), two, 2).total.tolist()
    [1.0, 1.0, 1.0]
    """
    pairs, place = np.unique(np.stack([cluster, group], axis=1), axis=0, return_inverse=True)
    at = place.reshape(-1)
    _, number = np.unique(pairs[:, 0], return_inverse=True)
    return ClusterSums(
        cluster=number.reshape(-1).astype(np.int64), cell=pairs[:, 1].astype(np.int64),
        weight=_added(at, weight, len(pairs)),
        total=_added(at, weight * value, len(pairs)), cells=groups,
    )  # fmt: skip


def _added(place: IntArray, x: FloatArray, places: int) -> FloatArray:
    return np.bincount(place, x, places).astype(np.float64)
