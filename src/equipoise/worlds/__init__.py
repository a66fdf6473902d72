"""Synthetic worlds with a known truth: for validation, for documentation, and to try a plan on."""

from equipoise.worlds.conformal import ConformalWorld, conformal_world, coverage
from equipoise.worlds.linear import LinearWorld, linear_world
from equipoise.worlds.people import People, boundary_world, null_world, planted, uneven_world
from equipoise.worlds.risks import (
    RiskTable,
    boundary_risks,
    interaction_risks,
    segment_risks,
)
from equipoise.worlds.skewed import SkewedWorld, skewed_world

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
