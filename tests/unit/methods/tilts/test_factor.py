"""Factors of kernel matrices: exact on their pivots, and honest about what is left."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from equipoise.methods.numerics import FloatArray
from equipoise.methods.tilts import (
    Function,
    Gaussian,
    Kernel,
    Laplace,
    NotPositiveError,
    Product,
    Same,
    factor_kernel,
    features_of,
    section_sums,
)


@pytest.fixture
def x() -> FloatArray:
    return np.random.default_rng(1).random((60, 2)) * [10.0, 1.0]


def test_kernels_equal_scikit_learn(x: FloatArray) -> None:
    scaled = x / [3.0, 0.5]
    np.testing.assert_allclose(
        Gaussian((3.0, 0.5)).block(x, x), rbf_kernel(scaled, gamma=0.5), atol=1e-14
    )
    np.testing.assert_allclose(
        Laplace((3.0, 0.5)).block(x, x), laplacian_kernel(scaled, gamma=1.0), atol=1e-14
    )


def test_a_product_compares_each_part_by_its_own_columns(x: FloatArray) -> None:
    group = np.random.default_rng(2).integers(0, 3, (60, 1)).astype(float)
    kernel = Product(((Gaussian((3.0,)), (0,)), (Same(), (2,)), (Laplace((0.5,)), (1,))))
    expected = (
        np.exp(-0.5 * ((x[:, :1] - x[:, 0]) / 3.0) ** 2)
        * np.exp(-np.abs(x[:, 1:] - x[:, 1]) / 0.5)
        * (group == group.T)
    )
    table = np.column_stack([x, group])
    np.testing.assert_allclose(kernel.block(table, table), expected, atol=1e-14)
    np.testing.assert_allclose(kernel.diagonal(table), 1.0)


@pytest.mark.parametrize("kernel", [Gaussian((3.0, 0.5)), Laplace((3.0, 0.5))])
def test_factor_is_exact_on_pivots_and_its_residual_is_the_trace(
    kernel: Kernel, x: FloatArray
) -> None:
    k = kernel.block(x, x)
    found = factor_kernel(kernel, x, tolerance=0.01)
    left = k - found.features @ found.features.T
    assert found.rank < 60
    assert found.residual <= 0.01
    np.testing.assert_allclose(np.diag(left), found.left, atol=1e-12)
    assert found.residual == pytest.approx(np.trace(left) / np.trace(k), abs=1e-12)
    assert np.abs(left[found.pivots]).max() < 1e-12
    assert np.linalg.eigvalsh(left)[0] > -1e-12
    np.testing.assert_allclose(found.corner, np.tril(found.corner), atol=1e-12)


def test_the_whole_kernel_is_recovered(x: FloatArray) -> None:
    kernel = Laplace((3.0, 0.5))
    found = factor_kernel(kernel, x, tolerance=0.0)
    np.testing.assert_allclose(found.features @ found.features.T, kernel.block(x, x), atol=1e-10)


def test_max_rank_stops_the_factor(x: FloatArray) -> None:
    found = factor_kernel(Laplace((3.0, 0.5)), x, max_rank=5)
    assert found.rank == 5
    assert found.residual > 0.01


def test_equal_points_add_no_rank(x: FloatArray) -> None:
    kernel = Gaussian((3.0, 0.5))
    once, thrice = (factor_kernel(kernel, np.tile(x[:5], (times, 1))) for times in (1, 3))
    assert once.rank == thrice.rank == 5
    assert factor_kernel(kernel, np.ones((7, 2))).rank == 1


def test_new_points_get_the_coordinates_that_give_the_kernel(x: FloatArray) -> None:
    kernel = Gaussian((3.0, 0.5))
    found = factor_kernel(kernel, x)
    there = np.random.default_rng(3).random((10, 2)) * [10.0, 1.0]
    features = features_of(kernel, x[found.pivots], found.corner, there)
    np.testing.assert_allclose(features @ found.features.T, kernel.block(there, x), atol=1e-3)
    np.testing.assert_allclose(
        features @ found.corner.T, kernel.block(there, x[found.pivots]), atol=1e-9
    )


def test_section_sums_equal_the_matrix(x: FloatArray) -> None:
    weights = np.random.default_rng(4).standard_normal(60)
    kernel = Gaussian((3.0, 0.5))
    np.testing.assert_allclose(
        section_sums(kernel, x, x, weights), kernel.block(x, x) @ weights, atol=1e-12
    )


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda a, b: np.tanh(3 * a @ b.T - 4), "not positive"),
        (lambda a, b: -np.exp(-((a[:, :1] - b[:, 0]) ** 2)), "not positive"),
        (lambda a, b: np.exp(-np.abs(a[:, :1] - 2 * b[:, 0])), "not symmetric"),
        (lambda a, b: np.full((len(a), len(b)), np.nan), "not finite"),
        (lambda a, b: -np.abs(a[:, :1] - b[:, 0]), "not positive"),
    ],
)
def test_functions_that_are_no_kernels_are_named(
    function: object, says: str, x: FloatArray
) -> None:
    with pytest.raises(NotPositiveError, match=says):
        factor_kernel(Function(function), x)  # type: ignore[arg-type]


def test_the_factor_itself_notices_what_the_check_may_miss(x: FloatArray) -> None:
    indefinite = Function(lambda a, b: 1.0 - ((a[:, :1] - b[:, 0]) / 4) ** 2)
    with pytest.raises(NotPositiveError, match="factoring leaves"):
        factor_kernel(indefinite, x, check=False)
