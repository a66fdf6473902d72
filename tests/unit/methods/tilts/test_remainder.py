"""Tails of means of residual features: exceeded as rarely as stated, and no wider than needed."""

import numpy as np
import pytest

from equipoise.methods.tilts import Gaussian, Kernel, Laplace, factor_kernel
from equipoise.methods.tilts.kernels import mean_bound, norm_bound, overlap_of


def test_the_norm_is_exceeded_once_in_a_million() -> None:
    x = np.log(2e6)
    found = norm_bound(np.full(50, 0.2), np.ones(50), None)
    assert found**2 == pytest.approx((1 + 2 * np.sqrt(x) + 2 * x) * 0.04 / 50)
    counted = norm_bound(np.array([0.2]), np.array([50.0]), None)
    assert counted == pytest.approx(found)


def test_rows_of_a_cluster_may_point_the_same_way() -> None:
    size, clusters = np.full(60, 0.2), np.arange(60) // 6
    apart, together = (norm_bound(size, np.ones(60), c, overlap=0.1) for c in (None, clusters))
    assert together > np.sqrt(6) * apart


@pytest.mark.parametrize("kernel", [Laplace((0.5, 0.5, 0.5)), Gaussian((0.4, 0.4, 0.4))])
def test_overlap_is_that_of_the_whole_residual_matrix(kernel: Kernel) -> None:
    rng = np.random.default_rng(1)
    x = rng.random((300, 3))
    found = factor_kernel(kernel, x, max_rank=20)
    weight = rng.random(300) + 0.5
    rest = kernel.block(x, x) - found.features @ found.features.T
    gamma = rest * weight[:, None] * weight
    expected = np.sqrt((gamma**2).sum()) / np.trace(gamma)
    size = np.sqrt(found.left) * weight
    got = overlap_of(kernel, x, found.features, size, np.ones(300))
    assert got == pytest.approx(expected, rel=0.1)


def test_resampled_norms_stay_below_the_bound_and_not_far_below() -> None:
    rng = np.random.default_rng(2)
    x, values = rng.random((300, 3)), rng.standard_normal(300)
    kernel = Laplace((0.5, 0.5, 0.5))
    found = factor_kernel(kernel, x, max_rank=20)
    rest = kernel.block(x, x) - found.features @ found.features.T
    drawn = rng.multinomial(300, np.full(300, 1 / 300), 2000) - 1.0
    moved = drawn * values / 300
    norms = np.sqrt(np.einsum("bi,ij,bj->b", moved, rest, moved, optimize=True))
    size = np.sqrt(found.left) * np.abs(values)
    overlap = overlap_of(kernel, x, found.features, size, np.ones(300))
    bound = norm_bound(size, np.ones(300), None, overlap)
    assert norms.max() < bound < 3 * np.median(norms)
    assert bound < 0.5 * norm_bound(size, np.ones(300), None)


def test_a_mean_moves_by_less_than_five_standard_errors() -> None:
    values = np.random.default_rng(3).standard_normal(400)
    found = mean_bound(values, np.ones(400), None)
    assert found == pytest.approx(4.9 * values.std() / 20)
    assert mean_bound(values, np.ones(400), np.arange(400) // 4) > 0
