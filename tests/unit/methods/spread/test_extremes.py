"""Intervals of the largest differences: tables, degenerate groups, coverage."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import studentized_range

from equipoise.methods.numerics import FloatArray
from equipoise.methods.spread import GroupSample, Interval, sample_from_sums
from equipoise.methods.spread.equality import (
    difference_interval,
    max_deviation_interval,
    mean_deviation_interval,
    ratio_interval,
    signed_size,
)
from equipoise.methods.spread.sample import mean_limits, one_sided_z, range_z, sidak_z

Make = Callable[[GroupSample, float], Interval]
Truth = Callable[[FloatArray], float]


@pytest.mark.parametrize("groups", [2, 5, 100])
def test_range_critical_value_is_the_studentised_range(groups: int) -> None:
    expected = studentized_range.ppf(0.975, groups, 1e6) / np.sqrt(2)
    assert range_z(0.025, groups) == pytest.approx(expected, abs=2e-4)


def test_sidak_is_exact_for_independent_groups() -> None:
    z = sidak_z(0.025, 7)
    assert (2 * ndtr(z) - 1) ** 7 == pytest.approx(0.975)


def _naive_difference(sample: GroupSample, level: float) -> tuple[float, float]:
    tail = (1 - level) / 2
    wide = mean_limits(sample, range_z(tail, sample.groups))
    near = mean_limits(sample, one_sided_z(tail))
    y, lows, highs = sample.mean, [], []
    for i in range(y.size):
        for j in range(y.size):
            if i != j:
                error = np.hypot(y[i] - wide[0][i], wide[1][j] - y[j])
                lows.append(y[i] - y[j] - error)
                highs.append(y[i] - y[j] + np.hypot(near[1][i] - y[i], y[j] - near[0][j]))
    return max(0, max(lows)), max(highs)


def test_difference_is_the_worst_pair_also_over_several_blocks() -> None:
    rng = np.random.default_rng(3)
    for groups in (3, 300):
        size = rng.integers(5, 90, groups)
        total = rng.binomial(size, rng.uniform(0.2, 0.8, groups)).astype(float)
        sample = sample_from_sums(size, total, binary=True)
        ours = difference_interval(sample, 0.9)
        assert (ours.lower, ours.upper) == pytest.approx(_naive_difference(sample, 0.9))


def test_ratio_ends_are_where_the_difference_limits_change_sign() -> None:
    sample = sample_from_sums(np.array([60, 80]), np.array([15.0, 44.0]), binary=True)
    low, high = mean_limits(sample, range_z(0.025, 2))
    y, r = sample.mean, ratio_interval(sample, 0.95).lower
    error = np.hypot(y[1] - low[1], r * (high[0] - y[0]))
    assert y[1] - r * y[0] == pytest.approx(error)
    low, high = mean_limits(sample, one_sided_z(0.025))
    r = ratio_interval(sample, 0.95).upper
    error = np.hypot(high[1] - y[1], r * (y[0] - low[0]))
    assert r * y[0] - y[1] == pytest.approx(error)


def test_a_mean_that_could_be_zero_makes_the_ratio_unbounded() -> None:
    sample = sample_from_sums(np.array([40, 40]), np.array([0.0, 20.0]), binary=True)
    ends = ratio_interval(sample, 0.95)
    assert ends.upper == np.inf
    assert 1 < ends.lower < 40


def test_signed_size_is_the_average_over_random_splits() -> None:
    rng = np.random.default_rng(4)
    split = rng.standard_normal(400_000)
    for d in (0.0, 0.7, -2.0):
        average = np.mean((d - split) * np.sign(d + split))
        value, slope = signed_size(np.array([d]), np.array([1.0]))
        assert value[0] == pytest.approx(average, abs=0.01)
        step = signed_size(np.array([d + 1e-6]), np.array([1.0]))[0] - value
        assert slope[0] == pytest.approx(step[0] / 1e-6, abs=1e-4)


CASES: dict[str, tuple[Make, Truth]] = {
    "difference": (difference_interval, lambda m: float(np.ptp(m))),
    "max deviation": (max_deviation_interval, lambda m: float(np.abs(m - m.mean()).max())),
    "mean deviation": (mean_deviation_interval, lambda m: float(np.abs(m - m.mean()).mean())),
    "ratio": (ratio_interval, lambda m: float(m.max() / m.min())),
}
WORLDS = {
    "nothing differs, many groups": (np.full(60, 40), np.full(60, 0.7)),
    "nothing differs, unequal groups": (np.array([12, 40, 90, 400]), np.full(4, 0.3)),
    "half differ": (np.full(20, 50), np.where(np.arange(20) < 10, 0.5, 0.7)),
    "spread": (np.array([40, 60, 130, 900]), np.array([0.4, 0.5, 0.7, 0.6])),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("case", CASES)
def test_intervals_cover_at_zero_and_elsewhere(case: str, world: str) -> None:
    make, truth = CASES[case]
    size, rate = WORLDS[world]
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(300):
        sample = sample_from_sums(size, rng.binomial(size, rate).astype(float), binary=True)
        ends = make(sample, 0.95)
        hits += ends.lower - 1e-12 <= truth(rate) <= ends.upper + 1e-12
    assert hits >= 268  # binomial(300, 0.95), false alarm below 1e-4


def test_real_metrics_cover_too() -> None:
    rng = np.random.default_rng(6)
    size, centre = np.array([20, 25, 40]), np.array([0.0, 0.5, 1.0])
    hits = 0
    for _ in range(300):
        rows = [rng.normal(c, 1, n) for c, n in zip(centre, size, strict=True)]
        total = np.array([r.sum() for r in rows])
        square = np.array([(r**2).sum() for r in rows])
        ends = difference_interval(sample_from_sums(size, total, square, binary=False), 0.95)
        hits += ends.lower <= 1.0 <= ends.upper
    assert hits >= 268
