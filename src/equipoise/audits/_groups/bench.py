"""The workbench of group audits: cells, groups and target in the form the mathematics takes."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from equipoise._validate import listing
from equipoise.audits._fields import finite, independent, unit_of
from equipoise.cells import Cells, Collection, form_groups, gather
from equipoise.cells.influence import influence_claims, influence_formula
from equipoise.cells.rows import pull_rows
from equipoise.cells.steady import steady_cells
from equipoise.cells.tallied import Tallied
from equipoise.cells.targets import reference_cells
from equipoise.claims import Claim, Ratio
from equipoise.claims import target as targets
from equipoise.claims.metric import Metric
from equipoise.errors import ClaimError, OptionError
from equipoise.methods.arrays import BoolArray, FloatArray
from equipoise.methods.inference.clusters import ClusterSums
from equipoise.methods.inference.comparison import Moments, Status
from equipoise.methods.inference.core import Core, core_of
from equipoise.methods.inference.student import rows_needed
from equipoise.methods.published.bootstrap import (
    CellMoments,
    GroupEstimates,
    RowData,
    canonical_rows,
    estimate_gaps,
    estimate_ratios,
)
from equipoise.methods.targets import (
    Complement,
    Constant,
    Custom,
    InfluenceSums,
    Overall,
    Reference,
    Target,
)
from equipoise.methods.tilted import TiltSums
from equipoise.trail import Trail


@dataclass(frozen=True, kw_only=True)
class Bench:
    """All that a method needs of one claim on one trail."""

    claim: Claim
    cells: Cells
    collection: Collection
    target: Target
    influence: InfluenceSums | None
    rows: Callable[[], RowData]
    """Fetches the rows, for the methods that need them."""

    @cached_property
    def core(self) -> Core:
        """Pivots of every group, their joint law, and why some have no answer."""
        return make_core(self.cells, self.target, self.collection, relative=self.relative)

    @cached_property
    def moments(self) -> CellMoments:
        """The cells' sums as the published methods take them."""
        return published_moments(self.cells)

    @cached_property
    def estimates(self) -> GroupEstimates:
        """What the published methods know of every group."""
        estimate = estimate_ratios if self.relative else estimate_gaps
        return estimate(self.moments, self.target, self.collection.sums)

    @property
    def relative(self) -> bool:
        """Whether disparities are ratios."""
        return isinstance(self.claim, Ratio)

    @property
    def tilted(self) -> bool:
        """Whether rows count with weights of their own, so that counts do not say everything."""
        return is_tilted(self.collection)

    @property
    def noun(self) -> str:
        """What the members of the collection are called."""
        return "tilt" if self.claim.across.weighs else "group"

    @property
    def every(self) -> str:
        """All members of the collection, in words."""
        number = len(self.collection)
        return f"every one of the {number:,} {self.noun}s" if number > 1 else f"the one {self.noun}"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What every method on this bench takes for granted."""
        return (
            independent(unit_of(self.cells)),
            f"the collection of {self.noun}s was fixed before looking at the outcomes",
        )


def set_up(trail: Trail | Tallied, claim: Claim) -> Bench:
    """Scan the rows once and form the groups."""
    cells, influence = _gather(trail, claim)
    return assemble(claim, cells, lambda: _row_data(trail, claim, cells), influence)


def assemble(
    claim: Claim,
    cells: Cells,
    rows: Callable[[], RowData],
    influence: InfluenceSums | None = None,
) -> Bench:
    """A bench from cells that exist already."""
    collection = form_groups(claim.across, cells)
    if isinstance(claim.target, targets.Complement) and is_tilted(collection):
        raise ClaimError(
            "A tilt has no outside: rows count more or less, and complement() needs groups. "
            "Use overall(), reference(…), custom(…) or a constant as the target."
        )
    return Bench(
        claim=claim,
        cells=cells,
        collection=collection,
        target=method_target(claim.target, cells, influence),
        influence=influence,
        rows=rows,
    )


def make_core(cells: Cells, target: Target, collection: Collection, *, relative: bool) -> Core:
    """The inference core of a collection of groups."""
    return core_of(
        cell_moments(cells),
        target,
        collection.sums,
        relative=relative,
        zero_one=cells.zero_one,
        weighted=cells.weighted,
        clusters=cluster_sums(cells, target),
        values=cells.values,
    )


def cell_moments(cells: Cells) -> Moments:
    """The cells' sums as the mathematics takes them, weights being about one."""
    one = weight_unit(cells)
    two, three = one**2, one**3
    return Moments(
        rows=cells.rows,
        # without sampling weights they are one array, which says that counts are counts
        weight=cells.weight / one if cells.weighted else cells.rows,
        total=cells.total / one,
        weight2=cells.weight2 / two,
        total2=cells.total2 / two,
        square2=cells.square2 / two,
        weight3=cells.weight3 / three,
        total3=cells.total3 / three,
        square3=cells.square3 / three,
        cube3=cells.cube3 / three,
    )


def weight_unit(cells: Cells) -> float:
    """The power of two nearest to the mean weight: dividing by it loses no digit."""
    if not cells.weighted:
        return 1.0
    mean = float(cells.weight.sum()) / max(float(cells.rows.sum()), 1.0)
    return float(2.0 ** round(math.log2(mean))) if mean > 0 else 1.0


def published_moments(cells: Cells) -> CellMoments:
    """The cells' sums as the published methods take them."""
    return CellMoments(
        rows=cells.rows,
        weight=cells.weight,
        total=cells.total,
        weight2=cells.weight2,
        total2=cells.total2,
        square2=cells.square2,
        binary=cells.zero_one and not cells.weighted,
    )


def cluster_sums(cells: Cells, target: Target) -> ClusterSums | None:
    """Sums by cluster, if the trail has a cluster column."""
    table = cells.clusters
    if table is None:
        return None
    if isinstance(target, Custom):
        raise OptionError("A custom target cannot be combined with a cluster column.")
    return ClusterSums(
        cluster=table.cluster,
        cell=table.cell,
        weight=table.weight / weight_unit(cells),
        total=table.total / weight_unit(cells),
        cells=len(cells),
    )


def is_tilted(collection: Collection) -> bool:
    """Whether a collection weighs rows by more than 0 and 1."""
    return isinstance(collection.sums, TiltSums)


def groups_only(collection: Collection, verb: str) -> None:
    """Refuse tilts where counts of rows are needed."""
    if is_tilted(collection):
        raise OptionError(
            f"{verb} takes groups, or tilts that weigh by 0 and 1. For other tilts there are "
            "certify and flag."
        )


def method_target(target: targets.Target, cells: Cells, influence: InfluenceSums | None) -> Target:
    """A claim's target as the mathematics takes it."""
    match target:
        case targets.Constant(value=value, scale=scale):
            return Constant(value=value, scale=scale)
        case targets.Overall(scale=scale):
            return Overall(scale=scale)
        case targets.Complement(scale=scale):
            return Complement(scale=scale)
        case targets.Reference(where=where, scale=scale):
            return Reference(cells=reference_cells(where, cells), scale=scale)
        case targets.Custom(estimate=estimate, scale=scale) if influence is not None:
            return Custom(value=estimate, influence=influence, scale=scale)
    raise ClaimError(f"{type(target).__name__} is not a target this audit can use.")


def _row_data(trail: Trail | Tallied, claim: Claim, cells: Cells) -> RowData:
    rows = pull_rows(trail, claim.metric, cells, influence_formula(claim))
    return canonical_rows(
        cell=rows.cell,
        value=rows.value,
        weight=rows.weight,
        count=rows.count,
        influence=rows.extra,
    )


def _gather(trail: Trail | Tallied, claim: Claim) -> tuple[Cells, InfluenceSums | None]:
    extra = influence_claims(claim)
    if not extra:
        return steady_cells(*gather(trail, [claim])), None
    cells, psi, product = map(steady_cells, gather(trail, [claim, *extra]))
    return cells, InfluenceSums(
        rows=float(cells.counted),
        total=psi.total,
        product=product.total,
        sum=float(psi.total.sum()),
        square=float(psi.square.sum()),
    )


def group_fields(bench: Bench) -> list[dict[str, Any]]:
    """The fields that every row about a group begins with, in the order of the collection."""
    found = bench.core.comparison
    columns = zip(
        bench.collection.labels(),
        bench.collection.wheres(),
        found.rows.tolist(),
        found.mean.tolist(),
        (found.target.scale * found.theta).tolist(),
        found.estimate.tolist(),
        strict=True,
    )
    return [
        {
            "group": label,
            "where": where,
            "n": round(rows),
            "value": finite(mean),
            "target": finite(target),
            "disparity": finite(disparity),
        }
        for label, where, rows, mean, target, disparity in columns
    ]


def notes_of(
    core: Core, score: float, metric: Metric, noun: str = "group", *, bets: bool = False
) -> list[str]:
    """Why each group has no answer, in words; empty if it has one.

    ``bets`` says whether bounds by betting could be asked for instead.
    """
    open_ended = metric.low is None or metric.high is None
    otherwise = ", or a metric bounded with .clip(low, high)" if open_ended else ""
    if bets and not open_ended:
        otherwise = ", or method='betting'"
    needed: FloatArray = rows_needed(core.comparison.rows, core.reach, score)
    out = []
    for status, rows in zip(core.status.tolist(), needed.tolist(), strict=True):
        said = _said(status, noun)
        if status == Status.SKEWED:
            said = f"too skewed for its rows: about {_about(rows)} would be needed{otherwise}"
        out.append(said)
    return out


def published_notes(bench: Bench, answered: BoolArray, method: object) -> tuple[str, ...]:
    """Why a published method says nothing about a group, in words; empty if it says something."""
    found, least = bench.estimates, getattr(method, "min_rows", 1)
    # the published methods know no difference between no rows and a rate of zero
    zero = bench.core.status == Status.ZERO_TARGET
    status = np.where(zero, int(Status.ZERO_TARGET), found.status)
    few = np.where(found.rows < least, "fewer rows than the minimum", _NOTES[Status.CONSTANT])
    return tuple(
        "" if said else _said(code, bench.noun) or otherwise
        for said, code, otherwise in zip(
            answered.tolist(), status.tolist(), few.tolist(), strict=True
        )
    )


def _said(status: int, noun: str) -> str:
    if status == Status.EMPTY and noun == "tilt":
        return "weight 0 on every row on which the metric counts"
    return _NOTES.get(Status(status), "")


def _about(rows: float) -> str:
    """A number of rows to two digits."""
    if not np.isfinite(rows) or rows >= 1e15:
        return "very many rows"
    digits = max(len(str(int(rows))) - 2, 0)
    return f"{int(round(rows, -digits)):,} rows"


def check_method(bench: Bench, method: object, usable: Mapping[str, type]) -> None:
    """Refuse a method that counts rows where tilts weigh them; ``usable`` are those that do not."""
    if bench.tilted and not isinstance(method, tuple(usable.values())):
        raise OptionError(
            f"{type(method).__name__} counts rows, and a tilt weighs them. Tilts other than 0 and "
            f"1 take method= {listing(usable)}, or none."
        )


SELF_TARGET = "the group is its own target"
_NOTES = {
    Status.EMPTY: "no row on which the metric counts",
    Status.SINGLE: "one row only",
    Status.CONSTANT: (
        "its rows are all alike, or too close for their size, so its uncertainty is unknown"
    ),
    Status.NO_TARGET: "the target has no row to compare with",
    Status.IDENTICAL: SELF_TARGET,
    Status.ZERO_TARGET: "the target is zero here, so there is no ratio to it",
    Status.FEW_CLUSTERS: "too few clusters, or a few that outweigh all others",
    Status.FEW_ROWS: "too few rows, here or in the target, to know how the metric varies",
}
