"""Empirical likelihood against direct optimisation over the weights of the rows.

The weights p maximise Σ log(n p) under Σ p = 1 and Σ p g = 0. scipy solves the conditions of the
optimum for all weights at once; statistics agree to 1e-8.
"""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import root

from equipoise.methods.published.likelihood import segments
from equipoise.methods.published.likelihood.mean import joint_ratio, mean_ratio


def weights_ratio(g: Any) -> float:
    """−2 Σ log(n p) at the best weights, from the conditions 1/p = ν + g·λ solved for (p, ν, λ)."""
    n, m = g.shape

    def conditions(v: Any) -> Any:
        p, nu, lam = v[:n], v[n], v[n + 1 :]
        return np.concatenate([1 - p * (nu + g @ lam), [p.sum() - 1], g.T @ p])

    def jacobian(v: Any) -> Any:
        p, nu, lam = v[:n], v[n], v[n + 1 :]
        j = np.zeros((n + 1 + m, n + 1 + m))
        j[:n, :n] = -np.diag(nu + g @ lam)
        j[:n, n], j[:n, n + 1 :] = -p, -p[:, None] * g
        j[n, :n], j[n + 1 :, :n] = 1.0, g.T
        return j

    start = np.concatenate([np.full(n, 1 / n), [n], np.zeros(m)])
    found = root(conditions, start, jac=jacobian, tol=1e-14)
    p = found.x[:n]
    assert np.abs(conditions(found.x)).max() < 1e-9
    assert (p > 0).all()
    return float(-2 * np.log(n * p).sum())


@pytest.mark.parametrize("seed", range(5))
def test_one_mean(seed: int) -> None:
    x = np.random.default_rng(seed).exponential(size=25)
    aim = weights_ratio((x - 1.1)[:, None])
    found = mean_ratio(segments([x]), np.array([1.1])).statistic[0]
    assert found == pytest.approx(aim, abs=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_overlapping_groups_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, a, b = rng.exponential(size=40), rng.random(40) < 0.6, rng.random(40) < 0.5
    g = np.column_stack([a * (x - 1.0), b * (x - 1.05)])
    assert joint_ratio(g, adjusted=False).statistic == pytest.approx(weights_ratio(g), abs=1e-8)
