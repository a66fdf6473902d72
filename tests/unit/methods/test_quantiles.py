"""Quantiles as inf{x : F(x) ≥ q}."""

import numpy as np
import pytest

from equipoise.methods.numerics import column_medians, quantile


@pytest.mark.parametrize("q", [0.001, 0.1, 0.5, 0.9, 0.95, 0.999, 1.0])
@pytest.mark.parametrize("size", [1, 2, 7, 100, 500])
def test_quantile_is_the_smallest_value_with_enough_below(size: int, q: float) -> None:
    x = np.round(np.random.default_rng(size).normal(size=size), 1)
    found = quantile(x, q)
    assert np.mean(x <= found) >= q - 1e-12
    assert np.mean(x < found) < q


def test_a_share_that_rounding_lifts_above_a_whole_number_is_that_number() -> None:
    assert 0.55 * 100 > 55
    assert quantile(np.arange(1.0, 101.0), 0.55) == 55


def test_column_medians_leave_blanks_out() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(41, 2500))
    x[rng.random(x.shape) < 0.2] = np.nan
    x[:, 3] = np.nan
    expected = [quantile(c[~np.isnan(c)], 0.5) if (~np.isnan(c)).any() else np.nan for c in x.T]
    np.testing.assert_array_equal(column_medians(x), expected)
