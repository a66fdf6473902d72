"""Calibration of joint tests: shares of draws, their tail, and streams that differ."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import chdtri

from equipoise.methods.published.likelihood import (
    ResampledNull,
    Segments,
    adjustment,
    disjoint_draws,
    euclidean_draws,
    ratio_draws,
    segments,
)
from equipoise.methods.published.likelihood.mean import joint_disjoint

FLAT = ResampledNull(draws=np.arange(1.0, 400.0), rank=3)


def test_the_data_count_among_their_draws() -> None:
    assert FLAT.p(380.5) == (1 + 19) / 400
    assert FLAT.p(380.0) == (1 + 20) / 400
    assert FLAT.p(0.0) == 1


def test_the_region_holds_what_the_test_does_not_reject() -> None:
    for level in (0.5, 0.9, 0.95, 0.99):
        cut = FLAT.critical(level)
        assert FLAT.p(cut - 0.5) > 1 - level
        assert FLAT.p(cut + 0.5) <= 1 - level + 1e-12


def test_beyond_the_draws_the_tail_of_chi_squared_goes_on() -> None:
    top = FLAT.critical(0.99)
    assert FLAT.critical(0.999) == pytest.approx(top * chdtri(3, 0.001) / chdtri(3, 0.01))
    assert FLAT.p(FLAT.critical(0.999)) == pytest.approx(0.001)


def test_no_two_resamples_are_the_same() -> None:
    rng, seed = np.random.default_rng(1), np.random.SeedSequence(1)
    groups = segments([rng.exponential(size=30), rng.exponential(size=50)])
    found = disjoint_draws(groups, adjustment(groups), draws=199, seed=seed)
    assert np.unique(found.draws).size == 199
    g = rng.exponential(size=(60, 2))
    assert (
        np.unique(euclidean_draws(g - g.mean(axis=0), np.ones(60), draws=199, seed=seed).draws).size
        == 199
    )


def test_calibration_is_the_share_of_draws_and_falls_all_the_way() -> None:
    made = ResampledNull(draws=np.sort(np.random.default_rng(3).chisquare(4, 399) * 1.2), rank=4)
    p = [made.p(t) for t in np.linspace(0, 80, 300)]
    assert p[0] == 1.0
    assert all(a >= b for a, b in pairwise(p))
    assert 0 < p[-1] < 1e-10
    for level in (0.8, 0.9, 0.95, 0.999):
        cut = made.critical(level)
        assert made.p(cut * (1 + 1e-9)) <= 1 - level + 1e-9
        assert made.p(cut * 0.999) > 1 - level - 1e-9


def test_resampled_statistics_repeat_and_match_a_naive_loop() -> None:
    rng = np.random.default_rng(5)
    g = rng.exponential(size=(50, 2)) - 1
    g = g - g.mean(axis=0)
    seed = np.random.SeedSequence(4)
    made = euclidean_draws(g, np.ones(50), draws=32, seed=seed)
    again = euclidean_draws(g, np.ones(50), draws=32, seed=seed)
    assert np.array_equal(made.draws, again.draws)
    stream = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(0,)))
    naive = []
    for picked in stream.integers(0, 50, size=(32, 50)):
        rows = g[picked]
        mean, spread = rows.mean(axis=0), np.cov(rows.T, bias=True)
        naive.append(50 * mean @ np.linalg.solve(spread, mean))
    assert np.allclose(made.draws, np.sort(naive), rtol=1e-6)
    likely = ratio_draws(g, np.ones(50), draws=32, seed=seed)
    assert likely.rank == 2
    assert np.isfinite(likely.draws).all()


def test_calibration_brings_the_joint_test_of_skewed_groups_to_its_level() -> None:
    """Five groups of 60 squared normals, 400 worlds at 5 %: 7 to 34 rejections (1e-3)."""
    rng, rejected, plain = np.random.default_rng(20260104), 0, 0
    start = np.arange(0, 300, 60)
    for world in range(400):
        groups = Segments(value=rng.normal(size=300) ** 2, start=start)
        adjust = np.full(5, np.log(60) / 2)
        found = joint_disjoint(groups, np.ones(5), adjust)
        centred = Segments(value=groups.value - groups.spread(groups.mean), start=start)
        seed = np.random.SeedSequence([1, world])
        made = disjoint_draws(centred, adjust, draws=99, seed=seed)
        rejected += made.p(found.statistic) <= 0.05
        plain += joint_disjoint(groups, np.ones(5)).p <= 0.05
    assert 7 <= rejected <= 34
    assert plain > 34
