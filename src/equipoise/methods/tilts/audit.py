"""The tilt audit on arrays: resample, take suprema, keep their distribution."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from equipoise.methods.arrays import FloatArray
from equipoise.methods.quantiles import quantile
from equipoise.methods.streams import Progress
from equipoise.methods.tilts.draws import Deviations, TiltEngine, deviations, joined
from equipoise.methods.tilts.process import unscaled_extremes
from equipoise.methods.tilts.rescaled import reach_of, rescaled_extremes
from equipoise.methods.tilts.sample import TiltMoments, TiltSample, moments_of
from equipoise.methods.tilts.scale import ScaleGrid, make_grid
from equipoise.methods.tilts.signed import signed_extremes


class Method(StrEnum):
    """In which units tilts are compared."""

    RESCALED = "rescaled"
    SIGNED = "signed"
    UNSCALED = "unscaled"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TiltAudit:
    """The distribution of the suprema, and the averages from which tilts are estimated."""

    method: Method
    """In which units tilts are compared."""
    floor: float | None
    """What the squared norm counts in the scale; None without a scale."""
    moments: TiltMoments
    """Averages over the rows."""
    reach: tuple[float, float]
    """Between which values the average metric lies under non-negative tilts of the span."""
    draws: FloatArray
    """Lowest and highest value over tilts in the span, for each resample."""
    engine: str
    """How resamples were drawn."""


def audit_tilts(
    sample: TiltSample,
    engine: TiltEngine,
    *,
    method: Method,
    floor: float,
    resamples: int,
    seed: np.random.SeedSequence,
    progress: Progress | None = None,
) -> TiltAudit:
    """Resample and keep the extremes of the process.

    >>> from equipoise.methods.tilts.draws import RowTilts
    >>> rng = np.random.default_rng(1)
    >>> values = rng.standard_normal(50)
    >>> sample = TiltSample(
    ...     features=np.ones((50, 1)), values=values - values.mean(), influence=np.zeros(50),
    ...     counts=np.ones(50), paired=np.zeros(50),
    ... )
    >>> found = audit_tilts(
    ...     sample, RowTilts(sample), method=Method.UNSCALED, floor=0.001, resamples=200,
    ...     seed=np.random.SeedSequence(1),
    ... )
    >>> 0.1 < critical_value(found.draws, 0.9, "lower") < 0.3
    True
    """
    moments = moments_of(sample)
    # Only the rescaled process needs the range; it costs a pass over the rows.
    reach = reach_of(sample, moments) if method is Method.RESCALED else (0.0, 0.0)
    grid = None if method is Method.UNSCALED else make_grid(moments, floor)
    scale = None if grid is None else floor
    chunks = deviations(engine, resamples=resamples, seed=seed, progress=progress)
    draws = [_extremes(method, grid, moments, reach, drawn) for drawn in joined(chunks)]
    return TiltAudit(
        method=method,
        floor=scale,
        moments=moments,
        reach=reach,
        draws=np.concatenate(draws),
        engine=engine.name,
    )


def _extremes(
    method: Method,
    grid: ScaleGrid | None,
    moments: TiltMoments,
    reach: tuple[float, float],
    drawn: Deviations,
) -> FloatArray:
    if grid is None:
        return unscaled_extremes(moments, drawn)
    if method is Method.SIGNED:
        found = signed_extremes(grid, moments, drawn)
    else:
        found = rescaled_extremes(grid, moments, reach, drawn)
    # In units of the resample's own spread; bounds have that of the rows, which is one.
    return np.asarray(found / drawn.spread[:, None])


def critical_value(draws: FloatArray, level: float, side: str) -> float:
    """The quantile that bounds need: of the highest, the lowest, or the larger of both.

    >>> critical_value(np.array([[-3.0, 1.0], [-1.0, 2.0]]), 0.5, "both")
    2.0
    """
    values = {
        "lower": draws[:, 1],
        "upper": -draws[:, 0],
        "both": np.maximum(draws[:, 1], -draws[:, 0]),
    }[side]
    return quantile(values, level)
