"""The workbench of group audits: cells, groups and target in the form the mathematics takes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from equipoise._rng import Seed
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
from equipoise.errors import ClaimError, OptionError
from equipoise.methods import bootstrap
from equipoise.trail import Trail

#: Rows × resamples up to which rows of a real-valued metric are resampled one by one.
EXACT_LIMIT = 200_000_000
# A multinomial costs about eight row draws per category, and a cell has two of them.
_ROWS_PER_CELL = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """All that a method needs of one claim on one trail."""

    claim: Claim
    cells: Cells
    collection: Collection
    moments: bootstrap.CellMoments
    target: bootstrap.Target
    estimates: bootstrap.GroupEstimates
    influence: bootstrap.InfluenceSums | None
    rows: Callable[[], bootstrap.RowData]
    """Fetches the rows, for the one engine that needs them."""

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
    """Scan the rows once, form the groups, and estimate their disparities."""
    cells, influence = _gather(trail, claim)
    return assemble(claim, cells, lambda: _row_data(trail, claim, cells), influence)


def assemble(
    claim: Claim,
    cells: Cells,
    rows: Callable[[], bootstrap.RowData],
    influence: bootstrap.InfluenceSums | None = None,
) -> Bench:
    """A bench from cells that exist already."""
    collection = form_groups(claim.across, cells)
    _check_outside(claim, collection)
    moments = cell_moments(cells)
    target = method_target(claim.target, cells, influence)
    estimate = bootstrap.estimate_ratios if isinstance(claim, Ratio) else bootstrap.estimate_gaps
    return Bench(
        claim=claim,
        cells=cells,
        collection=collection,
        moments=moments,
        target=target,
        estimates=estimate(moments, target, collection.sums),
        influence=influence,
        rows=rows,
    )


def _check_outside(claim: Claim, collection: Collection) -> None:
    if isinstance(claim.target, targets.Complement) and is_tilted(collection):
        raise ClaimError(
            "A tilt has no outside: rows count more or less, and complement() needs groups. "
            "Use overall(), reference(…), custom(…) or a constant as the target."
        )


def is_tilted(collection: Collection) -> bool:
    """Whether a collection weighs rows by more than 0 and 1."""
    return isinstance(collection.sums, bootstrap.TiltSums)


def groups_only(collection: Collection, verb: str) -> None:
    """Refuse tilts where counts of rows are needed."""
    if is_tilted(collection):
        raise OptionError(
            f"{verb} takes groups, or tilts that weigh by 0 and 1. For other tilts there are "
            "certify and flag."
        )


def cell_moments(cells: Cells) -> bootstrap.CellMoments:
    """The cells' sums as the bootstrap takes them."""
    return bootstrap.CellMoments(
        rows=cells.rows,
        weight=cells.weight,
        total=cells.total,
        weight2=cells.weight2,
        total2=cells.total2,
        square2=cells.square2,
        binary=cells.zero_one and not cells.weighted,
    )


def method_target(
    target: targets.Target, cells: Cells, influence: bootstrap.InfluenceSums | None
) -> bootstrap.Target:
    """A claim's target as the bootstrap takes it."""
    match target:
        case targets.Constant(value=value, scale=scale):
            return bootstrap.Constant(value=value, scale=scale)
        case targets.Overall(scale=scale):
            return bootstrap.Overall(scale=scale)
        case targets.Complement(scale=scale):
            return bootstrap.Complement(scale=scale)
        case targets.Reference(where=where, scale=scale):
            return bootstrap.Reference(cells=reference_cells(where, cells), scale=scale)
        case targets.Custom(estimate=estimate, scale=scale) if influence is not None:
            return bootstrap.Custom(value=estimate, influence=influence, scale=scale)
    raise ClaimError(f"{type(target).__name__} is not a target this audit can use.")


def make_engine(bench: Bench, engine: str, resamples: int) -> bootstrap.Engine:
    """The resampling engine: clusters if there are any, exact where it is affordable."""
    cells = bench.cells
    if cells.clusters is not None:
        if engine == "moments":
            raise OptionError("engine='moments' cannot resample clusters; use engine='auto'.")
        return bootstrap.ClusterEngine(cluster_data(bench), len(cells), float(cells.counted))
    if bench.moments.binary and engine != "moments" and not _scattered(bench):
        return bootstrap.BinaryEngine(bench.moments, bench.influence)
    affordable = cells.counted * resamples <= EXACT_LIMIT
    if engine == "exact" or (engine == "auto" and affordable):
        counted = bench.moments.binary and bench.influence is None
        rows = bootstrap.counted_rows(bench.moments) if counted else bench.rows()
        return bootstrap.RowEngine(rows, len(cells))
    return bootstrap.MomentsEngine(bench.moments, bench.influence)


def audit_of(
    bench: Bench, engine: str, resamples: int, seed: Seed, tell: bootstrap.Progress
) -> bootstrap.Audit:
    """The bench as the bootstrap takes it, with its engine."""
    return bootstrap.Audit(
        engine=make_engine(bench, engine, resamples),
        groups=bench.estimates,
        target=bench.target,
        sums=bench.collection.sums,
        resamples=resamples,
        seed=seed.sequence,
        progress=tell,
    )


def _scattered(bench: Bench) -> bool:
    """Whether tilts cut so finely that drawing rows is cheaper than drawing counts of cells."""
    return bench.tilted and bench.cells.counted < _ROWS_PER_CELL * len(bench.cells)


def _row_data(trail: Trail | Tallied, claim: Claim, cells: Cells) -> bootstrap.RowData:
    rows = pull_rows(trail, claim.metric, cells, influence_formula(claim))
    return bootstrap.canonical_rows(
        cell=rows.cell,
        value=rows.value,
        weight=rows.weight,
        count=rows.count,
        influence=rows.extra,
    )


def cluster_data(bench: Bench) -> bootstrap.ClusterData:
    """Totals by cluster as the bootstrap takes them."""
    table = bench.cells.clusters
    if table is None or bench.influence is not None:
        raise OptionError("A custom target cannot be combined with a cluster column.")
    return bootstrap.ClusterData(
        cluster=table.cluster, cell=table.cell, weight=table.weight, total=table.total
    )


def _gather(trail: Trail | Tallied, claim: Claim) -> tuple[Cells, bootstrap.InfluenceSums | None]:
    extra = influence_claims(claim)
    if not extra:
        return steady_cells(*gather(trail, [claim])), None
    cells, psi, product = map(steady_cells, gather(trail, [claim, *extra]))
    return cells, bootstrap.InfluenceSums(
        rows=float(cells.counted),
        total=psi.total,
        product=product.total,
        sum=float(psi.total.sum()),
        square=float(psi.square.sum()),
    )


def without_spread(bench: Bench) -> bool:
    """Whether no group has two rows that differ: then no resample can differ from the sample."""
    sums = bench.collection.sums
    cells = bench.cells
    weight, total, square = (sums(x) for x in (cells.weight, cells.total, cells.square))
    some = weight > 0
    centred = square[some] - total[some] ** 2 / weight[some]
    # sums are kept to 33 binary digits, so a smaller remainder is rounding
    return bool((centred <= 1e-9 * square[some]).all())


def group_fields(bench: Bench) -> list[dict[str, Any]]:
    """The fields that every row about a group begins with, in the order of the collection."""
    found = bench.estimates
    columns = zip(
        bench.collection.labels(),
        bench.collection.wheres(),
        found.rows.tolist(),
        found.mean.tolist(),
        found.target.tolist(),
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


def status_note(bench: Bench, group: int) -> str:
    """Why a group has no answer, in words; empty if it has one."""
    status = bootstrap.Status(int(bench.estimates.status[group]))
    if status is bootstrap.Status.EMPTY and bench.noun == "tilt":
        return "weight 0 on every row on which the metric counts"
    return _NOTES.get(status, "")


def check_method(bench: Bench, method: object, usable: Mapping[str, type]) -> None:
    """Refuse a method that counts rows where tilts weigh them; ``usable`` are those that do not."""
    if bench.tilted and not isinstance(method, tuple(usable.values())):
        raise OptionError(
            f"{type(method).__name__} counts rows, and a tilt weighs them. Tilts other than 0 and "
            f"1 take method= {listing(usable)}."
        )


SELF_TARGET = "the group is its own target"
_NOTES = {
    bootstrap.Status.EMPTY: "no row on which the metric counts",
    bootstrap.Status.SINGLE: "one row only",
    bootstrap.Status.CONSTANT: "the metric does not vary, so its uncertainty cannot be estimated",
    bootstrap.Status.NO_TARGET: "the target has no row to compare with",
    bootstrap.Status.IDENTICAL: SELF_TARGET,
}
