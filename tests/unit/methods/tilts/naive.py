"""The tilt process written straight from its definition, with dense matrices and brute force."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from equipoise.methods.numerics import FloatArray
from equipoise.methods.tilts import TiltMoments, TiltSample
from equipoise.methods.tilts.draws import Deviations


def square_root(k: FloatArray) -> FloatArray:
    """K^{1/2}."""
    size, axes = np.linalg.eigh(k)
    return np.asarray((axes * np.sqrt(np.maximum(size, 0.0))) @ axes.T)


def unscaled(k: FloatArray, loss: FloatArray, w: FloatArray, psi: FloatArray) -> FloatArray:
    """Extreme eigenvalues of K^{1/2} (A + Aᵀ)/2 K^{1/2}, the estimated target as t·11ᵀ."""
    n = len(loss)
    one = np.ones(n)
    t = np.mean((w - 1) * psi)
    a = (np.outer(w * loss, one) - np.outer(w, loss) - t * np.outer(one, one)) / n**2
    root = square_root(k)
    values = np.linalg.eigvalsh(root @ ((a + a.T) / 2) @ root)
    return np.array([values[0], values[-1]])


def process(loss: FloatArray, w: FloatArray, psi: FloatArray, h: FloatArray) -> float:
    """P_n h · P_n* h · (ε* − ε̂) to first order, for the values h of one tilt."""
    t = np.mean((w - 1) * psi)
    return float(
        np.mean(w * loss * h) * np.mean(h) - np.mean(w * h) * np.mean(loss * h) - t * h.mean() ** 2
    )


def largest(function: Callable[[FloatArray], float], rank: int, rng: np.random.Generator) -> float:
    """Maximum over the sphere: many random directions, the best of them polished twice."""
    solver: Any = minimize
    tried = rng.standard_normal((2000, rank))
    values = np.array([function(x / np.linalg.norm(x)) for x in tried])
    best = values.max()
    for start in tried[np.argsort(-values)[:5]]:
        x = start / np.linalg.norm(start)
        for _ in range(2):
            found = solver(
                lambda y: -function(y / max(float(np.linalg.norm(y)), 1e-12)),
                x,
                method="Nelder-Mead",
                options={"maxiter": 4000, "xatol": 1e-10, "fatol": 1e-14},
            )
            x = found.x
        best = max(best, -float(found.fun))
    return float(best)


def ratio(
    moments: TiltMoments, drawn: Deviations, floor: float, reach: tuple[float, float] | None
) -> Callable[[FloatArray], float]:
    """Process over scale of the first resample, as a function of the coordinates of a tilt."""
    t, v, u = drawn.target[0], drawn.cross[0], drawn.mean[0]

    def value(beta: FloatArray) -> float:
        mean, cross = moments.mean @ beta, moments.cross @ beta
        square = max(float(beta @ moments.centred @ beta), 0.0)
        scale = abs(mean) * np.sqrt(square) + floor * beta @ beta
        if reach is None:
            top = (v @ beta) * mean - (u @ beta) * cross - t * mean**2
        else:
            top = max(mean * (v @ beta - nu * (u @ beta)) - t * mean**2 for nu in reach)
        return float(top / scale)

    return value


def small_sample(
    rng: np.random.Generator, n: int, features: FloatArray, *, estimated: bool
) -> TiltSample:
    """A sample whose metric depends on the first feature."""
    values = features[:, 0] * rng.standard_normal() + rng.standard_normal(n)
    values = values - values.mean()
    return TiltSample(
        features=features,
        values=values,
        influence=values if estimated else np.zeros(n),
        counts=np.ones(n),
        paired=np.ones(n) if estimated else np.zeros(n),
    )
