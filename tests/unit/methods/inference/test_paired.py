"""Tails of means of −1, 0 and 1 about a known number, beside tables written out by hand."""

import itertools
import math

import numpy as np
import pytest

from equipoise.methods.inference.core import core_of
from equipoise.methods.inference.counts import far_tail
from equipoise.methods.numerics import FloatArray
from equipoise.methods.targets import Constant, plain_moments


def _tables(n: int) -> list[tuple[int, int]]:
    return [(b, c) for b, c in itertools.product(range(n + 1), repeat=2) if b + c <= n]


def _chance(n: int, b: int, c: int, up: float, down: float) -> float:
    rest = max(1 - up - down, 0.0)
    ways = math.factorial(n) / (math.factorial(b) * math.factorial(c) * math.factorial(n - b - c))
    return ways * up**b * down**c * rest ** (n - b - c)


def _naive_score(n: int, b: int, c: int, mean: float) -> float:
    """The bent score, the share of changed rows found by trying shares one after the other."""
    grid = abs(mean) + np.linspace(0, 1, 200_001) * (1 - abs(mean))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = sum(
            k * np.log(p) if k else 0.0
            for k, p in ((b, (grid + mean) / 2), (c, (grid - mean) / 2), (n - b - c, 1 - grid))
        )
    share = float(grid[int(np.nanargmax(logs))]) if isinstance(logs, np.ndarray) else abs(mean)
    variance = max(n * (share - mean**2), 1e-12)
    gap = b - c - n * mean
    z = 0.0 if abs(gap) < 1e-9 * n else gap / math.sqrt(variance)
    return z + (z**3 - 3 * z) / (12 * (variance + 1))


@pytest.mark.parametrize(("n", "mean"), [(7, 0.0), (6, 0.15), (6, -0.2)])
def test_p_values_are_the_largest_chance_of_tables_as_high_in_the_order(
    n: int, mean: float
) -> None:
    scores = {table: _naive_score(n, *table, mean) for table in _tables(n)}
    for seen in [table for table in scores if scores[table] > 0.5][::3]:
        higher = [table for table in scores if scores[table] >= scores[seen] - 1e-4]
        chances = [
            sum(_chance(n, *table, (r + mean) / 2, (r - mean) / 2) for table in higher)
            for r in np.linspace(abs(mean), 1, 301)
        ]
        one = np.ones(1)
        found = float(far_tail(n * one, seen[0] * one, seen[1] * one, mean * one)[0])
        # the share is sought within 99.99 % of what the data allow, on a grid
        assert found <= max(chances) * 1.001
        assert found >= 0.5 * max(chances)


def _both(n: int, plus: FloatArray, minus: FloatArray, mean: float) -> FloatArray:
    core = core_of(
        plain_moments(np.full(plus.shape, float(n)), plus - minus, plus + minus, plus - minus),
        Constant(value=0.0),
        lambda x: x,
        relative=False,
        zero_one=False,
        weighted=False,
        values=(-1.0, 0.0, 1.0),
    )
    return np.stack(core.pivot.tails(np.full(plus.shape, mean), np.arange(plus.size)))


@pytest.mark.parametrize("mean", [0.0, 0.02, -0.1, 0.4])
def test_enumerated_errors_stay_at_the_nominal_ones(mean: float) -> None:
    for n in (4, 9, 15):
        tables = _tables(n)
        plus, minus = (np.array(x, dtype=np.float64) for x in zip(*tables, strict=True))
        tails = _both(n, plus, minus, mean)
        for share in abs(mean) + np.linspace(0.01, 1, 12) * (1 - abs(mean)):
            chance = np.array(
                [_chance(n, *t, (share + mean) / 2, (share - mean) / 2) for t in tables]
            )
            for error in (0.1, 0.05, 0.01, 0.002):
                for p in tails:
                    assert chance[p <= error].sum() <= 1.01 * error


def test_no_less_is_shown_than_by_mcnemars_exact_test() -> None:
    n = 30
    plus, minus = (np.array(x, dtype=np.float64) for x in zip(*_tables(n), strict=True))
    up, _ = _both(n, plus, minus, 0.0)
    exact = np.array(
        [
            sum(math.comb(int(b + c), k) for k in range(int(b), int(b + c) + 1)) / 2 ** int(b + c)
            for b, c in zip(plus, minus, strict=True)
        ]
    )
    near = (exact < 0.2) & (exact > 1e-6)
    assert near.sum() > 50
    assert bool((up[near] <= exact[near] * 1.001).all())
    assert float(np.median(up[near] / exact[near])) < 0.75


def test_signs_turned_turn_the_tails_and_many_changes_join_on() -> None:
    plus, minus = np.array([9.0, 60.0, 5.0, 0.0]), np.array([2.0, 30.0, 5.0, 0.0])
    up, down = _both(500, plus, minus, 0.01)
    other, turned = _both(500, minus, plus, -0.01)
    assert np.allclose(up, turned)
    assert np.allclose(down, other)
    # at the seam between tables written out and sums, p-values are of one size
    rows = np.array([99.0, 101.0])
    few = np.array([_both(1000, r / 2 + 12, r / 2 - 12, 0.0)[0] for r in rows[:, None]])
    assert 0.7 < float(few[0, 0] / few[1, 0]) < 1.4
