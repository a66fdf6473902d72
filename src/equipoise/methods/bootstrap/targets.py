"""What a group is compared with, estimated afresh from whatever totals it is handed."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from equipoise.methods.arrays import BoolArray, FloatArray, GroupSums
from equipoise.methods.bootstrap.data import InfluenceSums, Totals
from equipoise.methods.bootstrap.status import Status
from equipoise.methods.bootstrap.sums import (
    GroupTotals,
    Second,
    quotient,
    second,
    second_shared,
    sum_each,
    take_sum,
)
from equipoise.methods.tilted import members, weighs_alike


class Target(Protocol):
    """A target θ, possibly scaled: θ = scale × mean."""

    def estimate(self, cells: Totals, groups: GroupTotals) -> FloatArray:
        """θ in each batch, shape ``(b, 1)`` or ``(b, G)``; NaN where the target has no rows."""
        ...

    def variance_terms(
        self, cells: Totals, groups: GroupTotals, sums: GroupSums
    ) -> tuple[FloatArray, FloatArray]:
        """Variance of θ̂, and its covariance with each group's mean."""
        ...

    def status(self, rows: FloatArray, sums: GroupSums) -> FloatArray:
        """Status code of each group as far as the target decides it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A known number."""

    value: float
    """The number."""
    scale: float = 1.0
    """Factor on it."""

    def estimate(self, cells: Totals, groups: GroupTotals) -> FloatArray:
        """The number itself in every batch."""
        return np.full((cells.weight.shape[0], 1), self.scale * self.value)

    def variance_terms(
        self, cells: Totals, groups: GroupTotals, sums: GroupSums
    ) -> tuple[FloatArray, FloatArray]:
        """A known number does not vary."""
        return np.zeros((1, 1)), np.zeros((1, 1))

    def status(self, rows: FloatArray, sums: GroupSums) -> FloatArray:
        """Never an obstacle."""
        return np.full(sums(rows).shape, float(Status.OK))


@dataclass(frozen=True, slots=True, kw_only=True)
class Overall:
    """The mean of all rows."""

    scale: float = 1.0
    """Factor on the mean."""

    def estimate(self, cells: Totals, groups: GroupTotals) -> FloatArray:
        """Mean of each batch."""
        w, s = (x.sum(axis=-1, keepdims=True) for x in (cells.weight, cells.total))
        return self.scale * quotient(s, w)

    def variance_terms(
        self, cells: Totals, groups: GroupTotals, sums: GroupSums
    ) -> tuple[FloatArray, FloatArray]:
        """Every row moves the overall mean, the group's own rows included."""
        everything = BoolMask(np.ones(cells.weight.shape[-1], dtype=bool))
        return everything.covariance(cells, groups, second_shared(groups, sums), self.scale)

    def status(self, rows: FloatArray, sums: GroupSums) -> FloatArray:
        """The group of everybody is its own target."""
        everyone = (members(sums)(rows) == rows.sum()) & weighs_alike(sums)
        same = everyone & (self.scale == 1.0)
        return np.where(same, float(Status.IDENTICAL), float(Status.OK))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The mean of a reference group R, which may overlap the audited groups."""

    cells: BoolArray
    """Which cells make up R, shape ``(C,)``."""
    scale: float = 1.0
    """Factor on the mean; 0.8 gives the four-fifths rule."""

    def estimate(self, cells: Totals, groups: GroupTotals) -> FloatArray:
        """Mean of R in each batch."""
        chosen = np.flatnonzero(self.cells)
        return self.scale * quotient(take_sum(cells.total, chosen), take_sum(cells.weight, chosen))

    def variance_terms(
        self, cells: Totals, groups: GroupTotals, sums: GroupSums
    ) -> tuple[FloatArray, FloatArray]:
        """Rows of R move the target; rows in both R and the group move both means."""
        mask = BoolMask(np.asarray(self.cells, dtype=bool))
        return mask.variance_terms(cells, groups, sums, self.scale)

    def status(self, rows: FloatArray, sums: GroupSums) -> FloatArray:
        """An empty reference is no target; R compared with itself is zero by definition."""
        inside = np.where(self.cells, rows, 0.0)
        here, both, whole = members(sums)(rows), members(sums)(inside), inside.sum()
        if whole == 0:
            return np.full(here.shape, float(Status.NO_TARGET))
        same = (here == both) & (both == whole) & weighs_alike(sums) & (self.scale == 1.0)
        return np.where(same, float(Status.IDENTICAL), float(Status.OK))


@dataclass(frozen=True, slots=True, kw_only=True)
class Complement:
    """The mean of all rows outside the group; a tilt has no outside."""

    scale: float = 1.0
    """Factor on the mean."""

    def estimate(self, cells: Totals, groups: GroupTotals) -> FloatArray:
        """Mean outside each group, in each batch."""
        w, s = (x.sum(axis=-1, keepdims=True) for x in (cells.weight, cells.total))
        rest = w - groups.weight
        # weights need not cancel exactly; a sliver of rounding is nobody
        return self.scale * quotient(s - groups.total, np.where(rest > 1e-9 * w, rest, 0.0))

    def variance_terms(
        self, cells: Totals, groups: GroupTotals, sums: GroupSums
    ) -> tuple[FloatArray, FloatArray]:
        """The complement shares no row with the group."""
        w2, s2, q2 = (x.sum(axis=-1, keepdims=True) for x in groups.second_cells)
        weight = cells.weight.sum(axis=-1, keepdims=True) - groups.weight
        # At scale zero the variance is multiplied by zero below, whatever stands for the mean.
        mean = self.estimate(cells, groups) / self.scale if self.scale else groups.weight * 0.0
        here = groups.second_groups
        spread = second(w2 - here[0], s2 - here[1], q2 - here[2], mean)
        return self.scale**2 * quotient(np.maximum(spread, 0.0), weight**2), np.zeros((1, 1))

    def status(self, rows: FloatArray, sums: GroupSums) -> FloatArray:
        """The group of everybody has nothing outside."""
        none = sums(rows) == rows.sum()
        return np.where(none, float(Status.NO_TARGET), float(Status.OK))


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """Any asymptotically linear estimate, moved in each resample with the mean of its ψ."""

    value: float
    """The estimate on the data."""
    influence: InfluenceSums
    """Sums of its influence values."""
    scale: float = 1.0
    """Factor on the estimate."""

    def estimate(self, cells: Totals, groups: GroupTotals) -> FloatArray:
        """The estimate plus the change in the mean of ψ."""
        if cells.influence is None:
            raise ValueError("the engine was built without the custom target's influence values")
        return self.scale * (self.value + cells.influence)[:, None]

    def variance_terms(
        self, cells: Totals, groups: GroupTotals, sums: GroupSums
    ) -> tuple[FloatArray, FloatArray]:
        """From the sums of ψ, ψ² and ψL."""
        psi, n = self.influence, max(self.influence.rows, 1.0)
        own = (psi.square / n - (psi.sum / n) ** 2) / n
        mean = quotient(groups.total, groups.weight)
        # Cov(L, ψ | G)/n, as in line 7 of Algorithm 2 of Cherian and Candès.
        both = quotient(sums(psi.product) - mean * sums(psi.total), groups.weight) / n
        return np.full((1, 1), self.scale**2 * own), self.scale * both

    def status(self, rows: FloatArray, sums: GroupSums) -> FloatArray:
        """Never an obstacle."""
        return np.full(sums(rows).shape, float(Status.OK))


class BoolMask:
    """A set of cells acting as target: the shared arithmetic of overall and reference."""

    def __init__(self, cells: BoolArray) -> None:
        """Remember which cells are in the set."""
        self._mask = cells
        self._chosen = np.flatnonzero(cells)

    def variance_terms(
        self, cells: Totals, groups: GroupTotals, sums: GroupSums, scale: float
    ) -> tuple[FloatArray, FloatArray]:
        """Variance of the set's mean, and covariance with each group's mean."""
        inside = {id(x): np.where(self._mask, x, 0.0) for x in groups.second_cells}
        a, b, c = sum_each(sums, [inside[id(x)] for x in groups.second_cells])
        return self.covariance(cells, groups, (a, b, c), scale)

    def covariance(
        self, cells: Totals, groups: GroupTotals, overlap: Second, scale: float
    ) -> tuple[FloatArray, FloatArray]:
        """The same, given the second-order sums over what each group shares with the set."""
        weight, total = (take_sum(x, self._chosen) for x in (cells.weight, cells.total))
        theta = quotient(total, weight)
        w2, s2, q2 = (take_sum(x, self._chosen) for x in groups.second_cells)
        own = quotient(second(w2, s2, q2, theta), weight**2)
        a, b, c = overlap
        mean = quotient(groups.total, groups.weight)
        # Σ w²(L − μ)(L − θ) over the rows in both, which alone move both means.
        shared = c - (mean + theta) * b + mean * theta * a
        return scale**2 * own, scale * quotient(shared, groups.weight * weight)
