"""The statistics and p-values written straight from the theorems: one loop for each symbol."""

import math
from collections.abc import Callable

import numpy as np

from equipoise.methods.numerics import FloatArray


def edge(p: float, g: float, delta: float) -> float:
    """The risk at the edge of the null: p + δ sign(g), inside [0, 1]."""
    sign = int(g > 0) - int(g < 0)
    return min(max(p + delta * sign, 0.0), 1.0)


def score(y: FloatArray, p: FloatArray, g: FloatArray, delta: float, gamma: float) -> float:
    """Σ (Y − p̂_{δ sign h}) h with h = g·1{|g| ≥ γ}: the inner sum of (12)."""
    total = 0.0
    for i in range(len(y)):
        if abs(g[i]) >= gamma:
            total += (y[i] - edge(p[i], g[i], delta)) * g[i]
    return total


def spread(p: FloatArray, g: FloatArray, delta: float, gamma: float) -> float:
    """Standard deviation of the same under the edge."""
    total = 0.0
    for i in range(len(p)):
        if abs(g[i]) >= gamma:
            q = edge(p[i], g[i], delta)
            total += q * (1 - q) * g[i] ** 2
    return math.sqrt(total)


def statistic(
    outcomes: Callable[[int], FloatArray],
    p: FloatArray,
    weights: FloatArray,
    delta: float,
    *,
    scale: str,
    prevalence: float,
) -> float:
    """The largest over models and thresholds; ``outcomes`` may differ between models."""
    best = 0.0
    for model, g in enumerate(weights):
        y = outcomes(model)
        for gamma in sorted({abs(x) for x in g if x != 0}):
            members = sum(abs(x) >= gamma for x in g)
            if members <= prevalence * len(g):
                continue
            unit = float(len(p)) if scale == "raw" else spread(p, g, delta, gamma)
            if unit > 0:
                best = max(best, score(y, p, g, delta, gamma) / unit)
    return best


def p_value(
    y: FloatArray,
    p: FloatArray,
    weights: FloatArray,
    delta: float,
    draws: int,
    rng: np.random.Generator,
    *,
    scale: str,
    prevalence: float,
) -> float:
    """Theorem 4: one uniform for each row, shared between models that may disagree on the sign."""

    def value(outcomes: Callable[[int], FloatArray]) -> float:
        return statistic(outcomes, p, weights, delta, scale=scale, prevalence=prevalence)

    observed = value(lambda _: y)
    reached = 0
    for _ in range(draws):
        u = rng.random(len(p))

        def outcomes(model: int, u: FloatArray = u) -> FloatArray:
            pairs = zip(u, p, weights[model], strict=True)
            return np.array([float(a < edge(b, g, delta)) for a, b, g in pairs])

        reached += value(outcomes) >= observed - 1e-12
    return (1 + reached) / (1 + draws)


def chi_squared(
    y: FloatArray, p: FloatArray, bins: list[int], delta: float, side: str = "both"
) -> float:
    """Sum over bins of the squared excess beyond the tolerance, in standard deviations."""
    total = 0.0
    for b in set(bins):
        rows = [i for i in range(len(y)) if bins[i] == b]
        worst = 0.0
        for sign in (1, -1):
            if (side, sign) in (("upper", -1), ("lower", 1)):
                continue
            q = [edge(p[i], sign, delta) for i in rows]
            deviation = math.sqrt(sum(x * (1 - x) for x in q))
            excess = sign * sum(y[i] - x for i, x in zip(rows, q, strict=True))
            if deviation > 0:
                worst = max(worst, excess / deviation)
        total += worst**2
    return total
