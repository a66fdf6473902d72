"""Empirical likelihood of means: against root finding, its laws, and simulated coverage."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import bdtr

from equipoise.methods.hypotheses import Above, Below, Outside
from equipoise.methods.published.likelihood import (
    Segments,
    adjustment,
    known_roots,
    mean_interval,
    mean_p_values,
    segments,
)
from equipoise.methods.published.likelihood.bounds import mean_roots
from equipoise.methods.published.likelihood.mean import mean_ratio


def naive(x: Any, value: float) -> float:
    """Owen's ratio by root finding, one group at a time."""
    g = x - value
    if not g.min() < 0 < g.max():
        return np.inf
    low, high = -1 / g.max(), -1 / g.min()
    inside = 1e-12 * (high - low)
    at = brentq(lambda s: (g / (1 + s * g)).sum(), low + inside, high - inside, xtol=1e-15)
    return float(2 * np.log1p(at * g).sum())


def some_groups() -> list[Any]:
    rng = np.random.default_rng(5)
    return [rng.exponential(size=size) for size in rng.integers(2, 60, 200)]


def test_many_groups_at_once_are_each_group_alone() -> None:
    values = some_groups()
    rng = np.random.default_rng(6)
    at = np.array([v.mean() + rng.normal() * v.std() / np.sqrt(v.size) for v in values])
    found = mean_ratio(segments(values), at).statistic
    aims = np.array([naive(v, a) for v, a in zip(values, at, strict=True)])
    assert np.array_equal(np.isinf(found), np.isinf(aims))
    known = np.isfinite(aims)
    assert np.allclose(found[known], aims[known], rtol=1e-8, atol=1e-9)


def test_zeros_and_ones_give_the_binomial_ratio() -> None:
    x = np.array([0.0] * 7 + [1.0] * 3)
    found = mean_roots(segments([x]), np.array([0.5]))
    # 2 log of the binomial likelihood at 3/10 over that at 1/2, by hand
    ratio = 2 * (3 * np.log(0.3 / 0.5) + 7 * np.log(0.7 / 0.5))
    assert found[0] == pytest.approx(-np.sqrt(ratio))
    one = known_roots(np.array([3.0]), np.array([10.0]), np.array([0.5]), calibrated=False)
    assert found[0] == pytest.approx(float(one[0]))


def test_counts_are_repeated_rows() -> None:
    x, times = np.array([0.0, 1.0, 5.0]), np.array([3.0, 2.0, 1.0])
    short = Segments(value=x, start=np.zeros(1, dtype=np.int64), count=times)
    long = segments([np.repeat(x, times.astype(int))])
    at = np.array([1.5])
    for adjust in (None, np.ones(1)):
        one, two = (mean_ratio(g, at, adjust=adjust).statistic for g in (short, long))
        assert one[0] == pytest.approx(two[0], rel=1e-10)


@pytest.mark.parametrize("adjusted", [False, True])
def test_interval_ends_lie_on_the_cut(adjusted: bool) -> None:
    groups = segments([v for v in some_groups() if v.size > 12])
    adjust = adjustment(groups) if adjusted else None
    low, high = mean_interval(groups, 1.96, adjust)
    assert np.allclose(mean_roots(groups, low, adjust), 1.96, atol=1e-7)
    assert np.allclose(mean_roots(groups, high, adjust), -1.96, atol=1e-7)


def test_the_slope_is_the_derivative() -> None:
    groups = segments(some_groups())
    adjust, at = adjustment(groups), groups.mean + 0.1
    up, down = (mean_ratio(groups, at + h, adjust=adjust).statistic for h in (1e-6, -1e-6))
    slope = mean_ratio(groups, at, adjust=adjust).slope
    assert np.allclose((up - down) / 2e-6, slope, rtol=1e-4, atol=1e-4)


def test_two_or_three_rows_exclude_nothing() -> None:
    groups = segments([np.array([1.0, 2.0]), np.array([1.0, 2.0, 4.0])])
    low, high = mean_interval(groups, 1.96, adjustment(groups))
    assert np.isneginf(low).all()
    assert np.isposinf(high).all()
    p = mean_p_values(groups, np.array([9.0, 9.0]), Below(limit=0.0), adjustment(groups))
    assert (p > 0.1).all()


def test_the_added_point_of_pseudo_values_is_that_of_the_rows_they_rest_on() -> None:
    few = Segments(
        value=np.arange(100.0), start=np.zeros(1, dtype=np.int64), worth=np.array([25.0])
    )
    # a weight of 25 rows' point, spread over 100 values
    assert adjustment(few)[0] == pytest.approx(np.log(25) / 2 * 100 / 25)


def test_values_that_do_not_vary_say_nothing() -> None:
    groups = segments([np.ones(5), np.arange(5.0)])
    assert np.isnan(mean_ratio(groups, np.zeros(2)).statistic[0])
    assert np.isnan(mean_interval(groups, 1.96)[0]).tolist() == [True, False]


def test_a_range_of_one_point_is_the_two_sided_test() -> None:
    groups = segments([np.random.default_rng(1).normal(size=40) + 0.3])
    zero = np.zeros(1)
    up = mean_p_values(groups, zero, Above(limit=0.0))[0]
    both = mean_p_values(groups, zero, Outside(low=0.0, high=0.0))[0]
    assert both == pytest.approx(2 * min(up, 1 - up))


@pytest.mark.parametrize("n", [20, 200])
def test_adjusted_intervals_cover(n: int) -> None:
    """Normal values, 2000 worlds at 95 %: accept 1854 and more (a false alarm below 1e-5)."""
    worlds = 2000
    x = np.random.default_rng(11).normal(size=worlds * n)
    groups = Segments(value=x, start=np.arange(0, worlds * n, n))
    ratio = mean_ratio(groups, np.zeros(worlds), adjust=adjustment(groups)).statistic
    hits = int((ratio <= 3.841458820694124).sum())
    assert 1854 <= hits <= 1945
    assert bdtr(hits, worlds, 0.95) > 1e-5
