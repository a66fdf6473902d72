"""Differences of two spreads where a small group stands beside a large one.

    python validation/inference/comparisons.py [--full]

A small group whose rows are nearly all alike hardly moves in resamples, so an interval made of
resamples alone is too narrow. Promised: the true difference of variances is missed in 5 %.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from records import main, write

from equipoise.methods.spread.compare import Contrast, compare_attributes, compare_models

LEVEL, RESAMPLES, SEED = 0.95, 400, 20_261_117
World = Callable[[np.random.Generator], tuple[Contrast, float]]


def beside_a_coin(sizes: list[int], rates: list[float]) -> World:
    """An attribute with groups of these sizes and rates, and one that says nothing."""
    apart = float(np.var(rates, ddof=1))

    def draw(rng: np.random.Generator) -> tuple[Contrast, float]:
        first = np.repeat(np.arange(len(sizes)), 2)
        second = np.tile([0, 1], len(sizes))
        heads = rng.binomial(sizes, 0.5)
        n = np.stack([heads, np.array(sizes) - heads], axis=1).ravel()
        ones = rng.binomial(n, np.repeat(rates, 2)).astype(float)
        found = compare_attributes(
            n, ones, None, first, second, binary=True, rng=rng, level=LEVEL, resamples=RESAMPLES
        )
        return found, apart

    return draw


def two_models(sizes: list[int], one: list[float], two: list[float]) -> World:
    """Two models with independent errors on the same groups."""
    values = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    truth = float(np.var(one, ddof=1) - np.var(two, ddof=1))

    def draw(rng: np.random.Generator) -> tuple[Contrast, float]:
        counts = [
            rng.multinomial(n, [(1 - a) * (1 - b), (1 - a) * b, a * (1 - b), a * b])
            for n, a, b in zip(sizes, one, two, strict=True)
        ]
        found = compare_models(
            np.array(counts), values, binary=True, rng=rng, level=LEVEL, resamples=RESAMPLES
        )
        return found[0, 1], truth

    return draw


DESIGNS: dict[str, World] = {
    "30 rows at .10 and 3000 at .02, beside a coin": beside_a_coin([30, 3000], [0.1, 0.02]),
    "30 rows at .30 and 600 at .10, beside a coin": beside_a_coin([30, 600], [0.3, 0.1]),
    "three groups of 40, 400, 400, beside a coin": beside_a_coin([40, 400, 400], [0.3, 0.2, 0.2]),
    "two models, groups of 15 and 1000": two_models([15, 1000], [0.15, 0.02], [0.02, 0.02]),
    "two models, groups of 300": two_models([300] * 4, [0.2, 0.3, 0.4, 0.5], [0.3] * 4),
    "two models alike, groups of 30 and 3000": two_models([30, 3000], [0.1, 0.02], [0.1, 0.02]),
}


def one(task: tuple[str, int]) -> dict[str, Any]:
    """One design in all its worlds."""
    name, worlds = task
    below = above = 0
    for world in range(worlds):
        rng = np.random.default_rng([SEED, list(DESIGNS).index(name), world])
        found, truth = DESIGNS[name](rng)
        below += truth < found.lower - 1e-12
        above += truth > found.upper + 1e-12
    share = (below + above) / worlds
    bar = 0.06 + 3 * (0.05 * 0.95 / worlds) ** 0.5
    return {
        "design": name,
        "worlds": worlds,
        "nominal": 1 - LEVEL,
        "below": below / worlds,
        "above": above / worlds,
        "missed": share,
        "bar": round(bar, 4),
        "agrees": share <= bar,
    }


def run(full: bool = False) -> dict[str, Any]:
    """Examine the designs; ``full`` takes 1000 worlds instead of 60."""
    worlds = 1000 if full else 60
    with ProcessPoolExecutor(max_workers=2) as pool:
        rows = list(pool.map(one, [(name, worlds) for name in DESIGNS]))
    result = {
        "source": "differences of spreads",
        "worlds": worlds,
        "rows": rows,
        "agrees": all(row["agrees"] for row in rows),
    }
    return write(__file__, "comparisons", result, full)


if __name__ == "__main__":
    main("differences of spreads", run)
