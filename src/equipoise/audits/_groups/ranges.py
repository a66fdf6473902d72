"""Certificates for all ranges of a number, by running sums instead of a list of groups."""

from dataclasses import replace

import numpy as np

from equipoise._codec import to_plain
from equipoise._rng import Seed
from equipoise.audits._fields import independent, provenance_of
from equipoise.audits._groups.bench import method_target, published_moments
from equipoise.audits._groups.options import CertifyOptions
from equipoise.audits._progress import Progress, progress_bar
from equipoise.cells import Cells, gather
from equipoise.cells.rows import pull_rows
from equipoise.cells.steady import steady_cells
from equipoise.cells.tallied import Tallied
from equipoise.claims import Claim, Ratio
from equipoise.claims.groups import Intervals
from equipoise.claims.target import Constant, Overall
from equipoise.errors import OptionError
from equipoise.findings.limits import tolerance_words
from equipoise.findings.ranges import CertifiedRange, RangeCertificates
from equipoise.findings.words import level_text
from equipoise.methods.arrays import FloatArray
from equipoise.methods.published import bootstrap
from equipoise.trail import Trail


def certify_ranges(
    trail: Trail | Tallied,
    claim: Claim,
    options: CertifyOptions,
    seed: Seed,
    progress: Progress,
) -> RangeCertificates:
    """Certify every range with end points in the data, in one pass per resample."""
    limit = _check(claim, options.tolerance)
    gathered = steady_cells(*gather(trail, [claim]))
    cells, points = _on_the_line(gathered)
    moments, target = published_moments(cells), method_target(claim.target, cells, None)
    engine = _engine(trail, claim, gathered, cells, moments)
    aims = {"lower": [(limit, True)], "upper": [(limit, False)]}
    with progress_bar(progress, options.method.resamples, "certify") as tell:
        found = [
            bootstrap.certify_intervals(
                engine,
                moments,
                target,
                limit=bound,
                upward=upward,
                resamples=options.method.resamples,
                seed=seed.sequence,
                progress=tell,
            )
            for bound, upward in aims.get(options.side, [(-limit, True), (limit, False)])
        ]
    empty = _without_rows(claim, options, cells, points, found, limit)
    empty = replace(empty, provenance=provenance_of(cells, seed.number), engine=engine.name)
    return replace(empty, rows=_widest(empty))


def _without_rows(
    claim: Claim,
    options: CertifyOptions,
    cells: Cells,
    points: tuple[float, ...],
    found: list[bootstrap.IntervalCertificates],
    limit: float,
) -> RangeCertificates:
    """The finding before its widest ranges are looked up."""
    level = options.level
    number = len(points) * (len(points) + 1) // 2
    bars = [f.critical(level) if f.spread > 0 else float(np.finfo(float).max) for f in found]
    return RangeCertificates(
        claim=claim.to_plan(),
        question=claim.words,
        guarantee=(
            f"With {level_text(level)} confidence not one certificate is false, among all "
            f"{number:,} ranges"
        ),
        assumptions=(
            independent(),
            "large-sample approximation by the bootstrap",
        ),
        provenance=provenance_of(cells),
        rows=(),
        metric=claim.metric.words,
        attribute=claim.across.dimensions()[0].name,
        claimed=tolerance_words(limit, options.side, False, cells.zero_one),
        level=level,
        tolerance=limit,
        side=options.side,
        method=to_plain(options.method),
        engine="",
        ranges=number,
        points=points,
        target=_theta(claim, cells),
        sizes=_running(cells.rows),
        weights=_running(cells.weight),
        totals=_running(cells.total),
        evidence=tuple(tuple(f.prefix.tolist()) for f in found),
        bars=tuple(bars),
        everyone=isinstance(claim.target, Overall),
    )


def _check(claim: Claim, tolerance: float | None) -> float:
    across = claim.across
    if not isinstance(across, Intervals) or across.attribute.edges or across.attribute.quantiles:
        raise OptionError(
            "AllRanges needs across=intervals(attribute), without edges= and grid=; got "
            f"{type(across).__name__.lower()}."
        )
    if isinstance(claim, Ratio):
        raise OptionError("AllRanges is for gaps. For a ratio, certify the gap to a scaled target.")
    if not isinstance(claim.target, Constant | Overall):
        raise OptionError(
            f"AllRanges compares with a number or with everyone; got {claim.target.words}. Use "
            "method='certificates', with a grid."
        )
    if tolerance is None:
        raise OptionError(
            "Certificates need a tolerance: what should each range be certified for? Pass "
            "tolerance=…."
        )
    return float(tolerance)


def _on_the_line(cells: Cells) -> tuple[Cells, tuple[float, ...]]:
    """The cells in the order of the attribute; rows without a value lie on no range."""
    if cells.clusters is not None:
        raise OptionError("AllRanges does not resample clusters; use method='certificates'.")
    (axis,) = cells.axes
    here = cells.index[:, 0] < len(axis)
    lost = round(float(cells.rows[~here].sum()))
    excluded = {**cells.excluded, f"missing {axis.name}": lost} if lost else cells.excluded
    sums = ("weight", "total", "square", "weight2", "total2", "square2")
    names = ("present", "rows", *sums, "weight3", "total3", "square3", "cube3")
    kept = {name: getattr(cells, name)[here] for name in names}
    points = tuple(float(axis.levels[i]) for i in cells.index[here, 0])
    return replace(cells, index=cells.index[here], excluded=excluded, **kept), points


def _engine(
    trail: Trail | Tallied,
    claim: Claim,
    gathered: Cells,
    cells: Cells,
    moments: bootstrap.CellMoments,
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


def _running(values: FloatArray) -> tuple[float, ...]:
    return (0.0, *np.cumsum(values).tolist())


def _widest(found: RangeCertificates) -> tuple[CertifiedRange, ...]:
    """Certified ranges that lie in no wider certified one, in the order of the attribute."""
    sizes, evidence = np.array(found.sizes), [np.array(sums) for sums in found.evidence]
    rows, reached = [], 0
    for start in range(len(found.points)):
        held = sizes - sizes[start]
        enough = (held >= 2) & ~(found.everyone & (held == sizes[-1]))
        for sums, bar in zip(evidence, found.bars, strict=True):
            enough &= sums - sums[start] >= bar
        first = max(start + 1, reached + 1)
        stops = np.flatnonzero(enough[first:])
        if stops.size:
            reached = first + int(stops[-1])
            rows.append(found.between(start, reached))
    return tuple(rows)
