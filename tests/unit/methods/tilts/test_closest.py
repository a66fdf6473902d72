"""The closest non-negative tilt: against a general solver, and never negative."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from equipoise.methods.tilts import Gaussian, factor_kernel, features_of, points_between
from equipoise.methods.tilts.audit import closest_tilts


@pytest.mark.parametrize("penalty", [1e-2, 1e-4])
def test_closest_tilt_equals_a_general_solver(penalty: float) -> None:
    rng = np.random.default_rng(1)
    x = np.sort(rng.random((60, 1)), axis=0)
    features = factor_kernel(Gaussian((0.15,)), x, max_rank=6).features
    inside = (x[:, 0] > 0.3) & (x[:, 0] < 0.5)
    second, wanted = features.T @ features / 60, features[inside].mean(axis=0)
    found = closest_tilts(features, second, wanted, [penalty])[0]
    matrix = second + penalty * np.trace(second) * np.eye(6)

    def cost(beta: object) -> float:
        b = np.asarray(beta)
        return float(b @ matrix @ b - 2 * b @ wanted)

    solver: Any = minimize
    solved = solver(
        cost,
        np.zeros(6),
        jac=lambda b: 2 * (matrix @ b - wanted),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda b: features @ b, "jac": lambda b: features},
        options={"maxiter": 500, "ftol": 1e-14},
    )
    assert solved.success
    assert found.values.min() >= -1e-6 * found.values.max()
    assert cost(found.coordinates) == pytest.approx(cost(solved.x), rel=1e-5)


def test_smaller_penalties_come_closer() -> None:
    x = np.linspace(0, 1, 300)[:, None]
    features = factor_kernel(Gaussian((0.1,)), x).features
    inside = (x[:, 0] > 0.3) & (x[:, 0] < 0.6)
    second = features.T @ features / 300
    density = inside / inside.mean()
    misses = [
        float(np.mean((found.values - density) ** 2))
        for found in closest_tilts(features, second, features[inside].mean(axis=0))
    ]
    assert misses == sorted(misses, reverse=True)
    assert misses[-1] < misses[0] / 4


def test_the_whole_population_is_approached_by_the_constant() -> None:
    x = np.linspace(0, 1, 100)[:, None]
    features = factor_kernel(Gaussian((0.5,)), x).features
    second = features.T @ features / 100
    found = closest_tilts(features, second, features.mean(axis=0), [1e-8])[0]
    np.testing.assert_allclose(found.values, 1.0, atol=0.02)


@pytest.mark.parametrize("width", [0.1, 0.5, 2.0])
def test_tilts_are_not_negative_between_few_rows_either(width: float) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((60, 1))
    kernel = Gaussian((width,))
    factor = factor_kernel(kernel, x)
    inside = (x[:, 0] > 0) & (x[:, 0] < 1)
    second, wanted = factor.features.T @ factor.features / 60, factor.features[inside].mean(axis=0)

    def lowest(between: Any) -> float:
        found = closest_tilts(factor.features, second, wanted, [1e-5], between)[0]
        everywhere = np.linspace(x.min(), x.max(), 3001)[:, None]
        seen = features_of(kernel, x[factor.pivots], factor.corner, everywhere) @ found.coordinates
        return float(seen.min() / found.values.max())

    between = features_of(kernel, x[factor.pivots], factor.corner, points_between(x))
    assert lowest(None) < -5e-3
    assert lowest(between) > -1e-3


def test_points_between_rows_keep_to_their_category() -> None:
    points = np.array([[0.0, 0.0], [4.0, 0.0], [100.0, 1.0], [104.0, 1.0]])
    found = points_between(points, fixed=[1], number=8)
    assert set(found[:, 1]) == {0.0, 1.0}
    assert np.all((found[:, 0] <= 4) == (found[:, 1] == 0))
    assert len(points_between(np.ones((5, 2)))) == 0
    assert len(points_between(points[:, 1:], fixed=[0])) == 0
    two = points_between(np.random.default_rng(1).random((50, 2)), number=100)
    assert two.shape == (100, 2)
    assert two.min() >= 0
    assert two.max() <= 1
