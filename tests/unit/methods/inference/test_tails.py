"""Tails of weighted sums of binomials against a loop over every outcome."""

import numpy as np
import pytest
from scipy.stats import beta, binom

from equipoise.methods.hypotheses import (
    apart_at_most,
    binomial_at_least,
    binomial_at_most,
    linear_tails,
)
from equipoise.methods.numerics import FloatArray
from tests.unit.methods.inference.naive import chances, written_out


def ours(
    rows: list[float], rates: list[float], a: list[float], seen: float, noise: float = 0.0
) -> tuple[float, float]:
    n, p, b = (np.array(x, dtype=np.float64)[:, None] for x in (rows, rates, a))
    up, down = linear_tails(n, p, b, np.array([seen]), np.array([noise]))
    return float(up[0]), float(down[0])


def same(found: tuple[float, float], aim: tuple[float, float], rtol: float, atol: float) -> None:
    np.testing.assert_allclose(found, aim, rtol=rtol, atol=atol)


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_small_parts_are_exact(parts: int, seed: int) -> None:
    rng = np.random.default_rng([seed, parts])
    rows = rng.integers(1, 12, parts).astype(float).tolist()
    rates, a = rng.random(parts).tolist(), rng.normal(size=parts).tolist()
    # the value of one of the outcomes, which must count in both tails
    seen = sum(x * rng.integers(0, n + 1) / n for x, n in zip(a, rows, strict=True))
    aim = written_out(rows, rates, a, seen, 0.0)
    same(ours(rows, rates, a, seen), aim, 1e-9, 1e-12)
    assert sum(aim) >= 1


@pytest.mark.parametrize("seed", range(6))
def test_equal_coefficients_count_ties_once_on_either_side(seed: int) -> None:
    """Sums of the same counts in another order differ by rounding; that must not lose a tie."""
    rng = np.random.default_rng(seed)
    n = float(rng.integers(3, 12))
    k = rng.integers(0, int(n) + 1, 2)
    seen = float(k[0] / n - k[1] / n)
    aim = written_out([n, n], [0.3, 0.4], [1.0, -1.0], seen, 0.0)
    same(ours([n, n], [0.3, 0.4], [1.0, -1.0], seen), aim, 1e-9, 1e-12)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_noise_is_added_to_every_outcome(parts: int, seed: int) -> None:
    rng = np.random.default_rng([seed, parts])
    rows = rng.integers(2, 12, parts).astype(float).tolist()
    rates, a = rng.uniform(0.1, 0.9, parts).tolist(), rng.normal(size=parts).tolist()
    seen, noise = float(rng.normal()), float(rng.uniform(0.001, 0.2))
    aim = written_out(rows, rates, a, seen, noise)
    same(ours(rows, rates, a, seen, noise), aim, 1e-6, 1e-12)


@pytest.mark.parametrize("n", [0.7, 1.4, 7.4, 23.9])
@pytest.mark.parametrize("share", [0.0, 0.13, 0.5, 1.0])
def test_a_fraction_of_a_row_has_the_tails_of_the_beta_function(n: float, share: float) -> None:
    """Korn and Graubard: P(K ≥ k) = I(rate; k, n − k + 1) for any k and n."""
    k = share * n
    up, down = ours([n], [0.3], [1.0], share)
    assert up == pytest.approx(1.0 if k == 0 else float(beta.cdf(0.3, k, n - k + 1)), abs=1e-9)
    assert down == pytest.approx(1.0 if share == 1 else float(beta.sf(0.3, k + 1, n - k)), abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_fractions_of_rows_in_two_parts(seed: int) -> None:
    """Each outcome of the part that varies least, closed by the beta tail of the other."""
    rng = np.random.default_rng(seed)
    n = rng.uniform(2, 15, 2)
    rates, a = rng.uniform(0.2, 0.8, 2), np.array([1.0, -1.0])
    seen = float(rng.uniform(-0.4, 0.4))
    first = int(np.argmin(n * rates * (1 - rates)))
    last = 1 - first
    up = down = 0.0
    for share, chance in chances(n[first], rates[first]):
        k = a[last] * (seen - a[first] * share) * n[last]
        at_least = _beyond(k, n[last], rates[last])
        at_most = _beyond(n[last] - k, n[last], 1 - rates[last])
        up += chance * (at_least if a[last] > 0 else at_most)
        down += chance * (at_most if a[last] > 0 else at_least)
    same(ours(n.tolist(), rates.tolist(), a.tolist(), seen), (up, down), 1e-7, 1e-9)


def _beyond(k: float, n: float, rate: float) -> float:
    """P(K ≥ k) of a binomial with a fraction of a row."""
    if k <= 0:
        return 1.0
    return float(beta.cdf(rate, k, n - k + 1)) if k < n + 1 else 0.0


def test_whole_numbers_written_as_fractions_are_the_binomial() -> None:
    k, n = np.arange(-1.0, 8.0), np.full(9, 6.0)
    np.testing.assert_allclose(binomial_at_most(k, n, np.full(9, 0.3)), binom.cdf(k, 6, 0.3))
    np.testing.assert_allclose(binomial_at_least(k, n, np.full(9, 0.3)), binom.sf(k - 1, 6, 0.3))


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.5])
@pytest.mark.parametrize("z", [0.0, 1.5, 3.0, 5.0, 8.0])
def test_one_large_part_keeps_its_digits_far_out(rate: float, z: float) -> None:
    n = 20_000.0
    k = np.floor(n * rate + z * np.sqrt(n * rate * (1 - rate)))
    up, down = ours([n], [rate], [1.0], k / n)
    assert up == pytest.approx(float(binom.sf(k - 1, n, rate)), rel=0.02)
    assert down == pytest.approx(float(binom.cdf(k, n, rate)), rel=0.02)


@pytest.mark.parametrize("z", [-4.0, -2.0, 0.5, 2.0, 4.0])
@pytest.mark.parametrize("sizes", [(900.0, 3000.0), (1500.0, 1500.0), (40.0, 5000.0)])
def test_large_and_mixed_parts_are_close_to_the_exact_sum(
    sizes: tuple[float, float], z: float
) -> None:
    n, p = np.array(sizes), np.array([0.3, 0.4])
    error = float(np.sqrt((p * (1 - p) / n).sum()))
    # an outcome, so that the discreteness of the smaller part is met
    k = np.round(n * (p + np.array([1.0, 0.0]) * z * error))
    seen = float(k[0] / n[0] - k[1] / n[1])
    up, down = ours(n.tolist(), p.tolist(), [1.0, -1.0], seen)
    first = np.arange(n[0] + 1)
    left = (first / n[0] - seen) * n[1]
    chance = binom.pmf(first, n[0], p[0])
    aim_up = float(chance @ binom.cdf(np.floor(left + 1e-7), n[1], p[1]))
    aim_down = float(chance @ binom.sf(np.ceil(left - 1e-7) - 1, n[1], p[1]))
    assert up == pytest.approx(aim_up, rel=0.03)
    assert down == pytest.approx(aim_down, rel=0.03)


def test_parts_that_do_not_move_leave_a_certain_value() -> None:
    assert ours([5.0, 9.0], [0.0, 1.0], [1.0, -1.0], -1.0) == (1.0, 1.0)
    up, down = ours([5.0, 9.0], [0.0, 1.0], [1.0, -1.0], 0.0)
    assert (up, down) == (0.0, 1.0)


@pytest.mark.parametrize("seed", range(4))
def test_groups_do_not_depend_on_their_neighbours(seed: int) -> None:
    """Groups are sorted into tasks and blocks; none of that may change an answer."""
    rng = np.random.default_rng(seed)
    shape = (3, 40)
    n = np.where(rng.random(shape) < 0.3, rng.uniform(1, 9, shape), rng.integers(1, 4000, shape))
    rates, a = rng.random(shape), rng.normal(size=shape) * (rng.random(shape) < 0.8)
    seen, noise = rng.normal(size=40), np.where(rng.random(40) < 0.5, 0.0, 0.01)
    together = linear_tails(n, rates, a, seen, noise)
    for i in range(40):
        one = slice(i, i + 1)
        alone = linear_tails(n[:, one], rates[:, one], a[:, one], seen[one], noise[one])
        for x, y in zip(together, alone, strict=True):
            np.testing.assert_allclose(x[i], y[0], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("n", [6.0, 300.0, 30_000.0])
def test_tails_fall_with_what_was_seen(n: float) -> None:
    seen = np.linspace(-0.2, 1.2, 57)
    one: FloatArray = np.ones((1, seen.size))
    up, down = linear_tails(n * one, 0.4 * one, one, seen, np.zeros(seen.size))
    assert bool((np.diff(up) <= 1e-9).all())
    assert bool((np.diff(down) >= -1e-9).all())


def test_rates_apart_are_those_of_a_search_over_all_rates() -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        n1, n0 = rng.integers(1, 30, 2)
        k1, k0 = rng.integers(0, n1 + 1), rng.integers(0, n0 + 1)
        gap = float(rng.uniform(-0.9, 0.9))
        rate = np.linspace(max(-gap, 0.0), min(1 - gap, 1.0), 20_001)
        first, second = binom.cdf(k1, n1, rate + gap), binom.sf(k0 - 1, n0, rate)
        naive = min(2 * float(np.minimum(first, second).max()), 1.0)
        one = np.ones(1)
        found = float(apart_at_most(k1 * one, n1 * one, k0 * one, n0 * one, gap * one)[0])
        # never below what it must be
        assert found >= naive - 1e-9
        assert found == pytest.approx(naive, abs=2e-3)
