"""What findings of every verb say in the same way: source, independence, range, numbers."""

import math
from typing import Any

from equipoise._version import __version__
from equipoise.cells import Cells
from equipoise.claims import Claim, Ratio
from equipoise.claims import target as targets
from equipoise.findings import Provenance


def provenance_of(cells: Cells, seed: int | None = None) -> Provenance:
    """Where a finding comes from, by the cells it was computed on."""
    return Provenance(
        version=__version__,
        source=cells.source,
        scanned=cells.scanned,
        counted=cells.counted,
        excluded=dict(cells.excluded),
        ineligible=cells.ineligible,
        cells=len(cells),
        fingerprint=cells.fingerprint(),
        seed=seed,
    )


def independent(unit: str = "rows") -> str:
    """The assumption that no audit does without."""
    return f"{unit} are independent draws from the population audited"


def unit_of(cells: Cells) -> str:
    """What is drawn independently: rows, or clusters where the trail names them."""
    return "rows" if cells.clusters is None else "clusters"


def possible_range(claim: Claim, zero_one: bool = False) -> tuple[float | None, float | None]:
    """Smallest and largest disparity that is possible at all; None where there is no limit.

    ``zero_one`` says that the metric was found to be 0/1, whatever its author declared.
    """
    target, (low, high) = claim.target, (claim.metric.low, claim.metric.high)
    if zero_one and (low is None or high is None):
        low, high = 0.0, 1.0
    if isinstance(claim, Ratio):
        return (0.0 if low is not None and low >= 0 else None), None
    if low is None or high is None:
        return None, None
    if isinstance(target, targets.Constant | targets.Custom):
        value = target.value if isinstance(target, targets.Constant) else target.estimate
        return low - target.scale * value, high - target.scale * value
    # a mean of other rows lies anywhere in the metric's range, whatever the group's own is
    ends = sorted((target.scale * low, target.scale * high))
    return low - ends[1], high - ends[0]


def finite(value: Any) -> float | None:
    """A number for a result: None where there is none."""
    return float(value) if math.isfinite(value) else None
