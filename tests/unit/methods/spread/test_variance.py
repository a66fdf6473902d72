"""Corrected variances: unbiased by enumeration and by simulation."""

import numpy as np
import pytest

from equipoise.methods.numerics import FloatArray
from equipoise.methods.spread import (
    bootstrap_draws,
    published_intervals,
    sample_from_sums,
    sample_variance,
)
from equipoise.methods.spread.variance import double_corrected, double_factor
from tests.unit.methods.spread import naive

SIZES, TOTALS = np.array([5, 9, 30, 12]), np.array([1.0, 8, 13, 6])


def test_corrections_equal_the_paper_formulas() -> None:
    sample = sample_from_sums(SIZES, TOTALS, binary=True)
    means = (TOTALS / SIZES).tolist()
    ours = sample_variance(sample, unbiased=False)
    assert ours == pytest.approx(naive.corrected(means, SIZES.tolist()))
    draws = bootstrap_draws(sample, 50, np.random.default_rng(1))
    expected = [naive.double_corrected(row, SIZES.tolist()) for row in draws.mean.tolist()]
    assert double_corrected(draws, SIZES) == pytest.approx(np.array(expected))


def _all_outcomes(n: int, rate: float) -> tuple[FloatArray, FloatArray]:
    hits = np.arange(n + 1)
    ways = np.array(
        [np.prod(np.arange(n - k + 1, n + 1)) / np.prod(np.arange(1, k + 1)) for k in hits]
    )
    return hits / n, ways * rate**hits * (1 - rate) ** (n - hits)


def test_unbiased_corrections_are_exactly_unbiased_over_all_outcomes() -> None:
    n, rate = 6, 0.3
    y, p = _all_outcomes(n, rate)
    assert p @ (y * (1 - y) / (n - 1)) == pytest.approx(rate * (1 - rate) / n)
    # A resample of a sample: sum over both layers.
    factor = float(double_factor(np.array([n]), unbiased=True)[0])
    twice = [_all_outcomes(n, float(v))[1] for v in y]
    layer = np.array(p) @ np.array(twice)
    true = layer @ y**2 - (layer @ y) ** 2
    assert layer @ (y * (1 - y) * factor) == pytest.approx(true)
    assert true == pytest.approx(rate * (1 - rate) * (2 / n - 1 / n**2))


def test_intervals_are_cut_at_zero_and_remember_what_was_cut() -> None:
    sample = sample_from_sums(np.full(6, 15), np.array([4.0, 7, 9, 6, 8, 5]), binary=True)
    draws = bootstrap_draws(sample, 400, np.random.default_rng(2))
    ends = published_intervals(sample, draws, 0.95)["double_corrected"]
    assert ends.lower == 0.0
    assert ends.raw_lower < 0 < ends.upper == ends.raw_upper


def test_counts_are_repeated_rows() -> None:
    once = sample_from_sums(SIZES, TOTALS, binary=True)
    thrice = sample_from_sums(SIZES * 3, TOTALS * 3, binary=True)
    assert sample_variance(thrice, unbiased=False) > sample_variance(once, unbiased=False)
    assert np.array_equal(once.mean, thrice.mean)
