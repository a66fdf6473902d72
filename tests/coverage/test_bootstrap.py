"""Errors of bounds and flags in forty overlapping groups, the smallest of about three rows.

One fixed seed and a binomial band: with W worlds at 5 %, more than the upper end of the band has a
chance below 1e-5.
"""

from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import bdtrc

import equipoise as eq
from equipoise.worlds import People, boundary_world, null_world, uneven_world

# the verbs return one of several findings, which each test knows

WORLDS, N, NOMINAL = 100, 2000, 0.05
WORLD = {
    "null": null_world(smallest=3 / N),
    "rare": null_world(rate=0.05, smallest=3 / N),
    "boundary": boundary_world(smallest=3 / N),
    "uneven": uneven_world(smallest=3 / N),
}


def most(count: int) -> int:
    """The largest number of errors that is compatible with the nominal rate."""
    return next(k for k in range(count + 1) if bdtrc(k, count, NOMINAL) < 1e-5)


@cache
def samples(name: str) -> list[eq.Trail]:
    rng = np.random.default_rng(20260101)
    tables = (WORLD[name].table(N, rng) for _ in range(WORLDS))
    return [eq.read(pl.DataFrame(t), prediction="outcome", count="people") for t in tables]


def claim_of(world: People, target: float | None = None) -> eq.Claim:
    return eq.gap("selection_rate", across=world.groups(), target=target)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["lower", "upper", "both"])
@pytest.mark.parametrize("name", ["null", "rare", "uneven"])
def test_bounds_all_hold_as_often_as_stated(name: str, side: Any) -> None:
    world = WORLD[name]
    claim, everyone, missed = claim_of(world), world.overall(), 0
    for seed, trail in enumerate(samples(name)):
        found = eq.certify(trail, claim, level=0.95, side=side, resamples=300, rng=seed)
        truth = [world.value(row.where) - everyone for row in found.rows]
        missed += any(
            (row.lower is not None and row.lower > t) or (row.upper is not None and row.upper < t)
            for row, t in zip(found.rows, truth, strict=True)
        )
    assert missed <= most(WORLDS)


@pytest.mark.slow
@pytest.mark.parametrize("control", ["bh", "max-t"])
@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("null", {}),
        ("null", {"above": 0.0}),
        ("rare", {}),
        ("rare", {"below": 0.0}),
        ("boundary", {"above": 0.05}),
        ("boundary", {"outside": (-0.05, 0.05)}),
    ],
)
def test_flags_fire_at_most_as_often_as_stated(name: str, limits: Any, control: Any) -> None:
    claim = claim_of(WORLD[name], 0.25 if name == "boundary" else None)
    trails = samples(name) if control == "bh" else samples(name)[:40]
    fired = sum(
        bool(eq.flag(trail, claim, fdr=NOMINAL, control=control, rng=seed, **limits).flagged)
        for seed, trail in enumerate(trails)
    )
    assert fired <= most(len(trails))


def test_the_published_p_values_would_be_caught() -> None:
    claim = claim_of(WORLD["rare"])
    fired = sum(
        bool(eq.flag(t, claim, fdr=NOMINAL, method="bootstrap", resamples=200, rng=s).flagged)
        for s, t in enumerate(samples("rare")[:40])
    )
    assert fired > most(40)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_one_tiny_group_beside_a_large_one_is_no_easy_flag(size: int) -> None:
    # every outcome of the tiny group, weighted by its chance at rate 1/2: no sampling error at all
    chance = 0.0
    for ones in range(size + 1):
        table = {
            "g": ["b"] * size + ["a"] * 1000,
            "y": [1] * ones + [0] * (size - ones) + [0, 1] * 500,
        }
        trail = eq.read(pl.DataFrame(table), prediction="y")
        found = eq.flag(trail, eq.gap("selection_rate", across=eq.masks(tiny="g == 'b'")), fdr=0.1)
        ways = float(np.prod([(size - i) / (i + 1) for i in range(ones)]))
        chance += bool(found.flagged) * ways / 2**size
    # mid-p may exceed its level by a little, never by a multiple
    assert chance <= 0.125 + 1e-12
