"""Errors of bounds and flags over tilts that are worth from some forty rows to most of them.

One fixed seed and a binomial band: more errors than the upper end of the band have a chance below
1e-5 if the error rate is the nominal one.
"""

from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import bdtrc

import equipoise as eq

# the verbs return one of several findings, which each test knows

WORLDS, N, NOMINAL = 150, 300, 0.10
GRID = np.arange(40) / 39
TILTS = {
    "rising": ("x", GRID),
    "falling": ("1 - x", 1 - GRID),
    "steep": ("exp(4 * x)", np.exp(4 * GRID)),
    "peak": ("exp(0 - ((x - 0.3) / 0.08) ** 2)", np.exp(-(((GRID - 0.3) / 0.08) ** 2))),
}
UNEVEN, EVEN = 0.15 + 0.4 * GRID**2, np.full(40, 0.25)
MEANS = {
    "uneven rate": UNEVEN,
    "rate": EVEN,
    "rare": np.full(40, 0.05),
    "uneven amount": 2 * UNEVEN,
    "amount": EVEN,
}
ACROSS = eq.tilts("random", {name: formula for name, (formula, _) in TILTS.items()})
CLAIM = eq.gap(eq.metric("value", "y"), across=ACROSS)


def most(count: int) -> int:
    """The largest number of errors that is compatible with the nominal rate."""
    return next(k for k in range(count + 1) if bdtrc(k, count, NOMINAL) < 1e-5)


@cache
def samples(name: str) -> list[eq.Trail]:
    rng = np.random.default_rng(20260401)
    trails = []
    for _ in range(WORLDS):
        place = rng.integers(0, 40, N)
        mean = MEANS[name][place]
        drawn = rng.exponential(mean) if "amount" in name else (rng.random(N) < mean) * 1.0
        weight = np.round(rng.lognormal(size=N), 3)
        trails.append(eq.read(pl.DataFrame({"x": GRID[place], "y": drawn, "random": weight})))
    return trails


def truth(name: str) -> dict[str, float]:
    mean = MEANS[name]
    gaps = {k: float(np.average(mean, weights=h) - mean.mean()) for k, (_, h) in TILTS.items()}
    return {"random": 0.0, **gaps}


@pytest.mark.slow
@pytest.mark.parametrize("side", ["lower", "upper", "both"])
@pytest.mark.parametrize("name", ["rate", "rare", "uneven rate", "uneven amount"])
def test_bounds_over_tilts_hold_as_often_as_stated(name: str, side: Any) -> None:
    true, missed = truth(name), 0
    for seed, trail in enumerate(samples(name)):
        found = eq.certify(trail, CLAIM, level=1 - NOMINAL, side=side, resamples=300, rng=seed)
        missed += any(
            (row.lower is not None and row.lower > true[row.group])
            or (row.upper is not None and row.upper < true[row.group])
            for row in found.rows
        )
    assert missed <= most(WORLDS)


@pytest.mark.slow
@pytest.mark.parametrize("limits", [{}, {"above": 0.0}, {"below": 0.0}])
@pytest.mark.parametrize("name", ["rate", "rare", "amount"])
def test_tilts_are_flagged_at_most_as_often_as_stated(name: str, limits: Any) -> None:
    more: dict[str, Any] = {"resamples": 400} if name == "amount" else {}
    fired = sum(
        bool(eq.flag(trail, CLAIM, fdr=NOMINAL, rng=seed, **more, **limits).flagged)
        for seed, trail in enumerate(samples(name))
    )
    assert fired <= most(WORLDS)
