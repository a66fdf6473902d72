"""Empirical likelihood against direct optimisation over the weights of the rows.

The weights p maximise Σ log(n p) under Σ p = 1 and Σ p g = 0. scipy solves the conditions of the
optimum for all weights at once, and searches the target by itself; statistics agree to 1e-8.
"""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar, root

from equipoise.methods.likelihood import (
    TwoSamples,
    joint_ratio,
    mean_ratio,
    profile_interval,
    profile_ratio,
    profile_roots,
    segments,
)


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


@pytest.mark.parametrize("seed", range(5))
def test_the_complement_is_profiled_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.exponential(size=20) + 0.2, rng.exponential(size=25)

    def at(theta: float) -> float:
        return weights_ratio((a - theta - 0.15)[:, None]) + weights_ratio((b - theta)[:, None])

    centre = (a.mean() - 0.15 + b.mean()) / 2
    aim = minimize_scalar(
        at, bounds=(centre - 0.3, centre + 0.3), method="bounded", options={"xatol": 1e-10}
    ).fun
    both = TwoSamples(group=segments([a]), other=segments([b]))
    assert profile_ratio(both, np.array([0.15])).statistic[0] == pytest.approx(aim, abs=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_the_overall_mean_is_profiled_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.exponential(size=20) + 0.2, rng.exponential(size=25)
    x, inside = np.concatenate([a, b]), np.arange(45) < 20

    def at(theta: float) -> float:
        return weights_ratio(np.column_stack([inside * (x - theta - 0.1), x - theta]))

    aim = minimize_scalar(
        at, bounds=(x.mean() - 0.2, x.mean() + 0.2), method="bounded", options={"xatol": 1e-10}
    ).fun
    both = TwoSamples(group=segments([a]), other=segments([b]), overall=True)
    assert profile_ratio(both, np.array([0.1])).statistic[0] == pytest.approx(aim, abs=1e-8)


def test_profile_intervals_end_on_their_cut() -> None:
    rng = np.random.default_rng(3)
    both = TwoSamples(
        group=segments([rng.exponential(size=60)]), other=segments([rng.exponential(size=80)])
    )
    low, high = profile_interval(both, 1.96)
    assert profile_roots(both, low)[0] == pytest.approx(1.96, abs=1e-6)
    assert profile_roots(both, high)[0] == pytest.approx(-1.96, abs=1e-6)
