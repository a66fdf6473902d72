"""Errors of likelihood intervals and joint tests, one fixed seed, binomial limits.

Each count of errors is held to the range that a rate of exactly 5 % leaves with a chance of at most
1e-5 on either side, or, where conservative answers are no error, to its upper end.
"""

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import bdtr, bdtrc

import equipoise as eq
from equipoise.methods.published.likelihood import (
    Parts,
    Segments,
    adjustment,
    band,
    disjoint_draws,
    part_roots,
)
from equipoise.methods.published.likelihood.mean import joint_disjoint, mean_ratio
from equipoise.worlds import null_world

SEED, NOMINAL, CUT = 20260105, 0.05, 1.959963984540054


def ends(count: int) -> tuple[int, int]:
    """Fewest and most errors that are compatible with the nominal rate."""
    low = next(k for k in range(count + 1) if bdtr(k, count, NOMINAL) > 1e-5)
    return low, next(k for k in range(count + 1) if bdtrc(k, count, NOMINAL) < 1e-5)


@pytest.mark.parametrize("against", ["complement", "overall"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_intervals_against_an_estimated_target(share: float, against: Any) -> None:
    rng = np.random.default_rng([SEED, round(10 * share)])
    worlds, n = 2000, 1000
    size = rng.binomial(n, share, worlds)
    ones, rest = rng.binomial(size, 0.4), rng.binomial(n - size, 0.3)
    parts = Parts(
        rows=np.stack([size, n - size]).astype(float),
        ones=np.stack([ones, rest]).astype(float),
        against=against,
    )
    truth = 0.1 if against == "complement" else 0.1 * (1 - share)
    low, high = band(parts, CUT)
    fewest, most = ends(worlds)
    assert fewest <= int(((truth < low) | (truth > high)).sum()) <= most
    # and p-values at the truth, which is not zero
    assert fewest <= int((np.abs(part_roots(parts, truth)) > CUT).sum()) <= most


def test_the_published_plug_in_would_be_caught() -> None:
    rng = np.random.default_rng(SEED)
    inside, outside = rng.exponential(size=(500, 600)), rng.exponential(size=(500, 200))
    groups = Segments(value=inside.ravel(), start=np.arange(500) * 600)
    missed = mean_ratio(groups, outside.mean(axis=1)).statistic > CUT**2
    assert int(missed.sum()) > ends(500)[1]


@pytest.mark.parametrize("rows", [50, 200])
def test_intervals_of_a_skewed_metric(rows: int) -> None:
    rng = np.random.default_rng([SEED, rows])
    groups = Segments(value=rng.exponential(size=2000 * rows), start=np.arange(2000) * rows)
    missed = mean_ratio(groups, np.ones(2000), adjust=adjustment(groups)).statistic > CUT**2
    fewest, most = ends(2000)
    assert fewest <= int(missed.sum()) <= most


@pytest.mark.slow
def test_the_calibrated_joint_test_of_ten_skewed_groups() -> None:
    rng, rejected, worlds = np.random.default_rng([SEED, 10]), 0, 300
    start, truth = np.arange(0, 2000, 200), np.ones(10)
    for world in range(worlds):
        groups = Segments(value=rng.normal(size=2000) ** 2, start=start)
        adjust = adjustment(groups)
        centred = Segments(value=groups.value - groups.spread(groups.mean), start=start)
        seed = np.random.SeedSequence([SEED, world])
        made = disjoint_draws(centred, adjust, draws=99, seed=seed)
        rejected += made.p(joint_disjoint(groups, truth, adjust).statistic) <= NOMINAL
    fewest, most = ends(worlds)
    assert fewest <= rejected <= most


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "method", "worlds"),
    [(None, "likelihood", 30), (None, "euclidean", 60), (0.3, "euclidean", 60)],
)
def test_the_joint_test_of_forty_groups_down_to_three_people(
    target: Any, method: Any, worlds: int
) -> None:
    world, rng = null_world(smallest=3 / 600), np.random.default_rng([SEED, 40])
    claim = eq.gap("selection_rate", across=world.groups(), target=target)
    rejected = 0
    for seed in range(worlds):
        table = pl.DataFrame(world.table(600, rng))
        trail = eq.read(table, prediction="outcome", count="people")
        found = eq.joint_test(trail, claim, method=method, intervals=False, rng=seed)
        rejected += found.rejected
    assert rejected <= ends(worlds)[1]
