"""Bounds by betting against a loop over rows, and against worlds that are known."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from equipoise.methods.inference.student import MOST, ORDERED, ORDERS, betting_bounds
from equipoise.methods.numerics import FloatArray


def capital(order: FloatArray, m: float, error: float) -> float:
    """What one unit becomes by betting against a mean of at most m, row by row."""
    money, seen = 1.0, [0.5]
    square = 0.25
    for count, x in enumerate(order):
        variance = 0.25 if count == 0 else square / (count + 1)
        bet = math.sqrt(2 * math.log(1 / error) / (len(order) * variance))
        money *= 1 + min(bet, MOST / m) * (x - m)
        seen.append(float(x))
        square += (x - sum(seen) / len(seen)) ** 2
    return money


@pytest.mark.parametrize("n", [1, 7, 60])
def test_bounds_are_the_means_against_which_betting_did_not_pay(n: int) -> None:
    x, error = np.random.default_rng(n).beta(0.5, 2, n), 0.03
    low, high = betting_bounds(x, 0.0, 1.0, error, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    orders = [rng.permutation(x) for _ in range(ORDERS)]
    backwards = [rng.permutation(1 - x) for _ in range(ORDERS)]
    for end, rows in ((low, orders), (1 - high, backwards)):
        for m, pays in ((end * 0.999, True), (end * 1.001, False)):
            if m > 0:
                mean = sum(capital(order, m, error) for order in rows) / ORDERS
                assert (mean >= 1 / error) == pays


def test_bounds_scale_with_the_range_and_know_nothing_without_rows() -> None:
    x = np.random.default_rng(2).random(50)
    one = betting_bounds(x, 0.0, 1.0, 0.05, np.random.default_rng(1))
    two = betting_bounds(10 * x - 5, -5.0, 5.0, 0.05, np.random.default_rng(1))
    np.testing.assert_allclose(two, 10 * np.array(one) - 5, rtol=1e-9)
    assert betting_bounds(np.zeros(0), -1.0, 2.0, 0.05, np.random.default_rng(1)) == (-1.0, 2.0)
    low, high = betting_bounds(np.zeros(30), 0.0, 1.0, 0.05, np.random.default_rng(1))
    assert low == 0
    assert 0 < high < 0.2
    assert ORDERED > ORDERS


@pytest.mark.parametrize(("n", "rate"), [(5, 0.3), (12, 0.05), (25, 0.02), (40, 0.5)])
def test_rare_spikes_are_covered_at_any_number_of_rows(n: int, rate: float) -> None:
    """Zeros and ones, 1000 worlds: each side misses no more often than has a chance of 1e-4."""
    rng, error, worlds = np.random.default_rng(n), 0.1, 1000
    missed = np.zeros(2, dtype=int)
    for _ in range(worlds):
        x = (rng.random(n) < rate).astype(np.float64)
        low, high = betting_bounds(x, 0.0, 1.0, error, rng)
        missed += [low > rate, high < rate]
    assert missed.max() <= binom.ppf(1 - 1e-4, worlds, error)
