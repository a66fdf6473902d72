"""What is asked: metric, target, groups, and the claims that join them."""

from equipoise.claims.claim import (
    Claim,
    Gap,
    Ratio,
    Together,
    as_claim,
    equalized_odds,
    from_plan,
    gap,
    multicalibration,
    ratio,
)
from equipoise.claims.dimension import binned
from equipoise.claims.groups import (
    Groups,
    bins,
    boxes,
    intersections,
    intervals,
    leaves,
    masks,
    thresholds,
)
from equipoise.claims.metric import METRICS, Metric, metric
from equipoise.claims.target import Target, complement, constant, custom, overall, reference
from equipoise.claims.tilts import tilts

__all__ = [
    "METRICS",
    "Claim",
    "Gap",
    "Groups",
    "Metric",
    "Ratio",
    "Target",
    "Together",
    "as_claim",
    "binned",
    "bins",
    "boxes",
    "complement",
    "constant",
    "custom",
    "equalized_odds",
    "from_plan",
    "gap",
    "intersections",
    "intervals",
    "leaves",
    "masks",
    "metric",
    "multicalibration",
    "overall",
    "ratio",
    "reference",
    "thresholds",
    "tilts",
]
