"""The paper's formulas written out by hand, row by row and loop by loop."""

from __future__ import annotations

import math

import numpy as np

from equipoise.methods.numerics import FloatArray
from equipoise.methods.targets import Moments


def variance(means: list[float]) -> float:
    centre = sum(means) / len(means)
    return sum((y - centre) ** 2 for y in means) / (len(means) - 1)


def corrected(means: list[float], sizes: list[int]) -> float:
    noise = [y * (1 - y) / n for y, n in zip(means, sizes, strict=True)]
    return variance(means) - sum(noise) / len(noise)


def double_corrected(means: list[float], sizes: list[int]) -> float:
    pairs = list(zip(means, sizes, strict=True))
    noise = [2 * y * (1 - y) / n - y * (1 - y) / n**2 for y, n in pairs]
    return variance(means) - sum(noise) / len(noise)


def entropy(means: list[float], alpha: float) -> float:
    centre = sum(means) / len(means)
    shares = [y / centre for y in means]
    if alpha == 0:
        return -sum(math.log(s) for s in shares) / len(shares)
    if alpha == 1:
        return sum(s * math.log(s) for s in shares) / len(shares)
    return sum(s**alpha - 1 for s in shares) / (len(shares) * alpha * (alpha - 1))


def row_bootstrap(rows: list[FloatArray], resamples: int, rng: np.random.Generator) -> FloatArray:
    """Resample the rows of every group with replacement; group means per resample."""
    out = np.empty((resamples, len(rows)))
    for b in range(resamples):
        for k, values in enumerate(rows):
            out[b, k] = rng.choice(values, size=values.size).mean()
    return out


def group_sums(rows: list[FloatArray], weight: list[FloatArray]) -> Moments:
    """Sums of weighted rows, a group at a time."""
    pairs = list(zip(rows, weight, strict=True))

    def sums(power: int, moment: int) -> FloatArray:
        return np.array([float((w**power * x**moment).sum()) for x, w in pairs])

    return Moments(
        rows=np.array([float(x.size) for x in rows]),
        weight=sums(1, 0),
        total=sums(1, 1),
        weight2=sums(2, 0),
        total2=sums(2, 1),
        square2=sums(2, 2),
        weight3=sums(3, 0),
        total3=sums(3, 1),
        square3=sums(3, 2),
        cube3=sums(3, 3),
    )
