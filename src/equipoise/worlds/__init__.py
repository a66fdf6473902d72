"""Synthetic worlds with a known truth: for validation, for documentation, and to try a plan on."""

from equipoise.worlds.worlds import (
    ConformalWorld,
    LinearWorld,
    People,
    RiskTable,
    SkewedWorld,
    boundary_risks,
    boundary_world,
    conformal_world,
    coverage,
    interaction_risks,
    linear_world,
    null_world,
    planted,
    segment_risks,
    skewed_world,
    uneven_world,
)

__all__ = [
    "ConformalWorld",
    "LinearWorld",
    "People",
    "RiskTable",
    "SkewedWorld",
    "boundary_risks",
    "boundary_world",
    "conformal_world",
    "coverage",
    "interaction_risks",
    "linear_world",
    "null_world",
    "planted",
    "segment_risks",
    "skewed_world",
    "uneven_world",
]
