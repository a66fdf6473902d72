"""The furthest means within reach: nothing in the region differs more."""

import numpy as np
import pytest

from equipoise.methods.spread import sample_from_sums
from equipoise.methods.spread.equality import _furthest_step, furthest_means
from equipoise.methods.spread.sample import mean_limits, one_sided_z


def test_no_point_of_the_ellipsoid_differs_more() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        count = int(rng.integers(2, 7))
        y, error = rng.normal(size=count), rng.uniform(0.05, 1, size=count)
        step = _furthest_step(y, error, 1.96)
        assert np.sum((step / error) ** 2) == pytest.approx(1.96**2, rel=1e-6)
        tried = rng.normal(size=(20_000, count))
        tried *= 1.96 / np.linalg.norm(tried, axis=1, keepdims=True)
        assert np.var(y + step) >= np.var(y + tried * error, axis=1).max() - 1e-9


def test_equal_means_move_in_the_loudest_direction() -> None:
    step = _furthest_step(np.full(3, 0.5), np.array([0.1, 0.01, 0.01]), 2.0)
    assert abs(step[0]) == pytest.approx(0.2, rel=0.02)
    assert np.abs(step[1:]).max() < 0.002


@pytest.mark.parametrize("binary", [True, False])
def test_the_means_stay_within_their_limits(binary: bool) -> None:
    n, total = np.array([25, 40, 300]), np.array([25.0, 10.0, 150.0])
    square = total if binary else 2 * total
    sample = sample_from_sums(n, total, square, binary=binary)
    low, high = mean_limits(sample, one_sided_z(0.025))
    found = furthest_means(sample, 0.025)
    assert np.all((low <= found) & (found <= high))
    assert np.var(found) > np.var(sample.mean)
