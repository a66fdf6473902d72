"""Certificates for all ranges of a number, by running sums instead of a list of groups."""

from dataclasses import dataclass, replace

import numpy as np

from equipoise._codec import to_plain
from equipoise._rng import Seed
from equipoise.audits._bench import cell_moments, method_target
from equipoise.audits._progress import Progress, progress_bar
from equipoise.audits._provenance import provenance_of
from equipoise.audits.methods import AllRanges
from equipoise.cells import Cells, gather
from equipoise.cells.rows import pull_rows
from equipoise.cells.words import closed_range_text
from equipoise.claims import Claim
from equipoise.claims.groups import Intervals
from equipoise.claims.target import Constant, Overall
from equipoise.errors import OptionError
from equipoise.findings.bounds import Side, tolerance_words
from equipoise.findings.ranges import CertifiedRange, RangeCertificates
from equipoise.findings.words import level_text
from equipoise.methods import bootstrap
from equipoise.methods.arrays import FloatArray
from equipoise.trail import Trail


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ladder:
    """Running sums over the points of the attribute."""

    points: tuple[float, ...]
    rows: FloatArray
    weight: FloatArray
    total: FloatArray


def certify_ranges(
    trail: Trail,
    claim: Claim,
    method: AllRanges,
    *,
    level: float,
    side: Side,
    tolerance: float | None,
    seed: Seed,
    progress: Progress,
) -> RangeCertificates:
    """Certify every range with end points in the data, in one pass per resample."""
    limit = _check(claim, tolerance)
    (gathered,) = gather(trail, [claim])
    cells, points = _on_the_line(gathered)
    moments, target = cell_moments(cells), method_target(claim.target, cells, None)
    engine = _engine(trail, claim, gathered, cells, moments)
    aims = {"lower": [(limit, True)], "upper": [(limit, False)]}
    with progress_bar(progress, method.resamples, "certify") as tell:
        found = [
            bootstrap.certify_intervals(
                engine,
                moments,
                target,
                limit=bound,
                upward=upward,
                resamples=method.resamples,
                seed=seed.sequence,
                progress=tell,
            )
            for bound, upward in aims.get(side, [(-limit, True), (limit, False)])
        ]
    ladder = _Ladder(
        points=points,
        rows=_running(cells.rows),
        weight=_running(cells.weight),
        total=_running(cells.total),
    )
    name = claim.across.dimensions()[0].name
    bars = [f.critical(level) if f.spread > 0 else float(np.finfo(float).max) for f in found]
    theta = _theta(claim, cells)
    return RangeCertificates(
        claim=claim.to_plan(),
        question=claim.words,
        guarantee=(
            f"With {level_text(level)} confidence not one certificate is false, among all "
            f"{len(points) * (len(points) + 1) // 2:,} ranges"
        ),
        assumptions=(
            "rows are independent draws from the population audited",
            "large-sample approximation by the bootstrap",
        ),
        provenance=provenance_of(cells, seed.number),
        rows=_widest(ladder, [f.prefix for f in found], bars, name, theta),
        metric=claim.metric.words,
        attribute=name,
        claimed=tolerance_words(limit, side, False, cells.zero_one),
        level=level,
        tolerance=limit,
        side=side,
        method=to_plain(method),
        engine=engine.name,
        ranges=len(points) * (len(points) + 1) // 2,
        points=points,
        sizes=tuple(ladder.rows.tolist()),
        evidence=tuple(tuple(f.prefix.tolist()) for f in found),
        bars=tuple(bars),
    )


def _check(claim: Claim, tolerance: float | None) -> float:
    across = claim.across
    if not isinstance(across, Intervals) or across.attribute.edges or across.attribute.quantiles:
        raise OptionError("AllRanges needs across=intervals(attribute), without edges= and grid=.")
    if not isinstance(claim.target, Constant | Overall):
        raise OptionError("AllRanges compares with a number or with everyone.")
    if tolerance is None:
        raise OptionError("Certificates need a tolerance: what should each range be certified for?")
    return float(tolerance)


def _on_the_line(cells: Cells) -> tuple[Cells, tuple[float, ...]]:
    """The cells in the order of the attribute; rows without a value lie on no range."""
    if cells.clusters is not None:
        raise OptionError("AllRanges does not resample clusters; use method='certificates'.")
    (axis,) = cells.axes
    here = cells.index[:, 0] < len(axis)
    lost = round(float(cells.rows[~here].sum()))
    excluded = {**cells.excluded, f"missing {axis.name}": lost} if lost else cells.excluded
    names = ("present", "rows", "weight", "total", "square", "weight2", "total2", "square2")
    kept = {name: getattr(cells, name)[here] for name in names}
    points = tuple(float(axis.levels[i]) for i in cells.index[here, 0])
    return replace(cells, index=cells.index[here], excluded=excluded, **kept), points


def _engine(
    trail: Trail, claim: Claim, gathered: Cells, cells: Cells, moments: bootstrap.CellMoments
) -> bootstrap.Engine:
    if moments.binary:
        return bootstrap.BinaryEngine(moments)
    rows = pull_rows(trail, claim.metric, gathered)
    here = rows.cell < len(cells)
    data = bootstrap.canonical_rows(
        cell=rows.cell[here],
        value=rows.value[here],
        weight=None if rows.weight is None else rows.weight[here],
        count=None if rows.count is None else rows.count[here],
    )
    return bootstrap.RowEngine(data, len(cells))


def _theta(claim: Claim, cells: Cells) -> float:
    if isinstance(claim.target, Constant):
        return claim.target.scale * claim.target.value
    return claim.target.scale * float(cells.total.sum() / cells.weight.sum())


def _running(values: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(values)])


def _widest(
    ladder: _Ladder, evidence: list[FloatArray], bars: list[float], name: str, theta: float
) -> tuple[CertifiedRange, ...]:
    """Certified ranges that lie in no wider certified one, in the order of the attribute."""
    rows, reached = [], 0
    for start in range(len(ladder.points)):
        enough = ladder.rows - ladder.rows[start] >= 2
        for sums, bar in zip(evidence, bars, strict=True):
            enough &= sums - sums[start] >= bar
        stops = np.flatnonzero(enough[max(start + 1, reached + 1) :])
        if stops.size:
            reached = max(start + 1, reached + 1) + int(stops[-1])
            rows.append(_range(ladder, start, reached, name, theta))
    return tuple(rows)


def _range(ladder: _Ladder, start: int, stop: int, name: str, theta: float) -> CertifiedRange:
    low, high = ladder.points[start], ladder.points[stop - 1]
    value = float(
        (ladder.total[stop] - ladder.total[start]) / (ladder.weight[stop] - ladder.weight[start])
    )
    return CertifiedRange(
        group=closed_range_text(name, low, high),
        where={name: {"from": low, "to": high}},
        n=round(float(ladder.rows[stop] - ladder.rows[start])),
        value=value,
        disparity=value - theta,
    )
