"""What the summaries need of each group: its size, its mean, how its rows vary, and the core."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from equipoise.methods.arrays import BoolArray, FloatArray, IntArray
from equipoise.methods.inference.clusters import ClusterSums
from equipoise.methods.inference.comparison import Moments, Status, over, plain_moments
from equipoise.methods.inference.core import Core, core_of, plain_worth
from equipoise.methods.targets import Constant, Overall, Target

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
    >>> from equipoise.methods.inference.comparison import plain_moments
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
            raise ValueError(f"{name} must be finite; group {_first(~np.isfinite(values))} is not")
    if np.any(weight < 0):
        raise ValueError(f"sizes must not be negative; group {_first(weight < 0)} is")
    outside = (total < 0) | (total > weight * (1 + 1e-12))
    if binary and np.any(outside):
        raise ValueError(
            f"a 0/1 metric has totals between 0 and the size; group {_first(outside)} has not"
        )


def _first(mask: BoolArray) -> int:
    return int(np.flatnonzero(mask)[0])


def _too_few(rows: FloatArray, reasons: list[Exclusion | None]) -> str:
    if rows.size and np.all(rows == 1):
        return "every group has one row, so no sampling error can be estimated"
    usable = reasons.count(None)
    why = next((f" (the first left out: {reason})" for reason in reasons if reason), "")
    return f"a spread needs at least two groups with an answer; got {usable} of {rows.size}{why}"
