"""One binomial against a known rate: definitions, ranges, ends, and what a size can reach."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from equipoise.methods.nulls import (
    Above,
    Below,
    Null,
    Outside,
    RateTails,
    exact,
    exact_outside,
    known_target,
    likelihood,
    likelihood_bartlett,
    mid_p,
    score,
    signed_root,
    smallest_reachable,
)

ALL = [exact, mid_p, likelihood, likelihood_bartlett, score]
K = np.array([0.0, 3.0, 7.0, 10.0])
N = np.full(4, 10.0)
THETA = np.full(4, 0.4)


def test_exact_and_mid_p_are_binomial_tails() -> None:
    p = known_target(K, N, THETA, Above(limit=0.1), exact)
    np.testing.assert_allclose(p, binom.sf(K - 1, 10, 0.5))
    p = known_target(K, N, THETA, Below(limit=0.1), exact)
    np.testing.assert_allclose(p, binom.cdf(K, 10, 0.5))
    p = known_target(K, N, THETA, Above(limit=0.1), mid_p)
    np.testing.assert_allclose(p, binom.sf(K, 10, 0.5) + binom.pmf(K, 10, 0.5) / 2)
    p = known_target(K, N, THETA, Below(limit=0.1), mid_p)
    np.testing.assert_allclose(p, binom.cdf(K - 1, 10, 0.5) + binom.pmf(K, 10, 0.5) / 2, atol=1e-15)


def test_small_tails_keep_their_digits() -> None:
    p = known_target(np.array([0.0]), np.array([1000.0]), np.array([0.5]), Below(limit=0.0), exact)
    np.testing.assert_allclose(p, 0.5**1000, rtol=1e-9)


def test_likelihood_and_score_by_hand() -> None:
    k, n, rate = np.array([7.0]), np.array([10.0]), np.array([0.5])
    log_ratio = 7 * np.log(0.7 / 0.5) + 3 * np.log(0.3 / 0.5)
    np.testing.assert_allclose(signed_root(k, n, rate), np.sqrt(2 * log_ratio))
    np.testing.assert_allclose(score(k, n, rate)[0], ndtr(-0.2 / np.sqrt(0.025)))
    factor = 1 + (4 - 1) / 60
    np.testing.assert_allclose(
        likelihood_bartlett(k, n, rate)[0], ndtr(-np.sqrt(2 * log_ratio / factor))
    )


def test_bartlett_factor_is_the_mean_of_the_ratio_under_the_null() -> None:
    left = []
    for n in (60, 240):
        k = np.arange(n + 1.0)
        ratio = signed_root(k, np.full(n + 1, float(n)), np.full(n + 1, 0.3)) ** 2
        mean = float(binom.pmf(k, n, 0.3) @ ratio)
        left.append(abs(mean - 1 - (1 / (0.3 * 0.7) - 1) / (6 * n)))
    # what the factor leaves is of order 1/n²: four times the rows, a sixteenth
    assert left[0] < 1e-3
    assert left[1] == pytest.approx(left[0] / 16, rel=0.2)


@pytest.mark.parametrize("tails", ALL)
def test_a_range_of_one_point_is_two_sided_and_a_wide_one_is_one_sided(tails: RateTails) -> None:
    up = known_target(K, N, THETA, Above(limit=0.0), tails)
    down = known_target(K, N, THETA, Below(limit=0.0), tails)
    point = known_target(K, N, THETA, Outside(low=0.0, high=0.0), tails)
    np.testing.assert_allclose(point, np.minimum(1, 2 * np.minimum(up, down)))
    n, k = np.array([4000.0]), np.array([2700.0])
    wide = known_target(k, n, np.array([0.4]), Outside(low=-0.25, high=0.25), tails)
    one = known_target(k, n, np.array([0.4]), Above(limit=0.25), tails)
    np.testing.assert_allclose(wide, one, rtol=1e-9)
    assert np.all(known_target(K, N, THETA, Outside(low=-1.0, high=1.0), tails) >= 0.5)


def test_the_range_formula_of_the_normal() -> None:
    k, n, theta = np.array([620.0]), np.array([1000.0]), np.array([0.6])
    found = known_target(k, n, theta, Outside(low=-0.01, high=0.01), likelihood)
    high, low = signed_root(k, n, theta + 0.01), signed_root(k, n, theta - 0.01)
    np.testing.assert_allclose(found, ndtr(-high) + ndtr(-(high + (low - high))))


@pytest.mark.parametrize("width", [0.0, 0.03, 0.1, 0.3])
@pytest.mark.parametrize("n", [5, 20, 60])
def test_size_of_ranges_never_exceeds_nominal_for_the_guaranteed_form(n: int, width: float) -> None:
    k, size = np.arange(n + 1.0), np.full(n + 1, float(n))
    p = exact_outside(k, size, np.full(n + 1, 0.4), -width, width)
    for rate in np.linspace(0.4 - width, 0.4 + width, 7):
        for alpha in (0.01, 0.05, 0.2):
            assert binom.pmf(k, n, rate) @ (p <= alpha) <= alpha


@pytest.mark.parametrize("null", [Above(limit=0.1), Below(limit=-0.1)])
def test_exact_p_values_have_their_size_at_the_boundary(null: Null) -> None:
    n = 37
    k, size = np.arange(n + 1.0), np.full(n + 1, float(n))
    p = known_target(k, size, np.full(n + 1, 0.4), null, exact)
    rate = 0.4 + null.limits[0]
    for alpha in np.linspace(0.01, 0.99, 15):
        assert binom.pmf(k, n, rate) @ (p <= alpha) <= alpha + 1e-12


@pytest.mark.parametrize("tails", ALL)
def test_all_zero_all_one_empty_and_impossible_rates(tails: RateTails) -> None:
    k, n = np.array([0.0, 5.0, 0.0, 5.0, 0.0]), np.array([5.0, 5.0, 5.0, 5.0, 0.0])
    theta = np.array([0.0, 0.0, 1.0, 1.0, 0.5])
    above = known_target(k, n, theta, Above(limit=0.0), tails)
    assert np.isnan(above[4])
    # ones under a rate of zero refute it; no outcome refutes "at most one"
    assert above[1] == 0
    assert above[0] >= 0.5
    assert np.all(above[[2, 3]] >= 0.5)
    below = known_target(k, n, theta, Below(limit=0.0), tails)
    assert below[2] == 0
    assert np.all(below[[0, 1, 3]] >= 0.5)
    beyond = known_target(k, n, theta, Above(limit=2.0), tails)
    assert np.all(beyond[:4] >= 0.5)


@pytest.mark.parametrize("tails", ALL)
@pytest.mark.parametrize(
    "null", [Above(limit=0.05), Below(limit=-0.05), Outside(low=-0.05, high=0.1)]
)
def test_reachable_is_the_best_of_all_outcomes(tails: RateTails, null: Null) -> None:
    n = np.array([0.0, 1.0, 2.0, 4.0, 9.0, 30.0, 77.0])
    theta = np.full(7, 0.35)
    found = smallest_reachable(n, theta, null, tails, alpha=0.02)
    assert np.isnan(found.smallest_p[0])
    for j in range(1, 7):
        k = np.arange(n[j] + 1)
        size = np.full(k.size, n[j])
        p = known_target(k, size, np.full(k.size, 0.35), null, tails)
        assert found.smallest_p[j] == pytest.approx(p.min())
        shown = k[p <= 0.02] / n[j] - 0.35
        up, down = shown[shown > 0], shown[shown < 0]
        above, below = found.disparity_above[j], found.disparity_below[j]
        assert np.isnan(above) if up.size == 0 else above == pytest.approx(up.min())
        assert np.isnan(below) if down.size == 0 else below == pytest.approx(down.max())


def test_a_p_value_equal_to_the_level_is_reached() -> None:
    # two or three of three have a chance of exactly one half
    found = smallest_reachable(np.array([3.0]), np.array([0.5]), Above(limit=0.0), exact, alpha=0.5)
    assert found.smallest_p.tolist() == [0.125]
    assert found.disparity_above[0] == pytest.approx(2 / 3 - 0.5)
