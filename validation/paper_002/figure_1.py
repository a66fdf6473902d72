"""Figure 1: the sampling distribution beside its limit and beside the m-out-of-n bootstrap.

The paper does not say which problem its histograms show; here are one with a unique dual, whose
limit is normal, and one without, whose limit is minus the absolute value of a normal. Distances are
Kolmogorov's; the bootstrap's is the average over several samples.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import main, write
from transport_worlds import SEED, World, two_sided, unique

from equipoise.methods.numerics import FloatArray
from equipoise.methods.transport import plain_sample
from equipoise.methods.transport.answers import default_rows, directional_draws, resampled_draws
from equipoise.methods.transport.problem import near_optimal

QUANTILES = (0.025, 0.25, 0.5, 0.75, 0.975)


def run(full: bool = False) -> dict[str, Any]:
    """Draw the three distributions and measure how far apart they are."""
    draws, samples = (20_000, 50) if full else (4000, 10)
    rng = np.random.default_rng(SEED)
    worlds = {"unique dual": unique(8), "dual not unique": two_sided()}
    rows = [
        row
        for name, world in worlds.items()
        for n in (1000, 100_000)
        for row in _rows(name, world, n, draws, samples, rng)
    ]
    judged = [row for row in rows if row["close"] is not None]
    result = {
        "source": "Figure 1",
        "draws": draws,
        "rows": rows,
        "agrees": all(row["close"] for row in judged),
    }
    return write(__file__, "figure_1", result, full)


def _rows(
    name: str, world: World, n: int, draws: int, samples: int, rng: np.random.Generator
) -> list[dict[str, Any]]:
    p, f = world.problem, world.weights
    sampled = np.sqrt(n) * (p.values(rng.multinomial(n, f, size=draws) / n) - world.truth)
    # the limit at the population itself: a sample so large that it is the population
    people = plain_sample(np.round(f * 10**9), p.cells)
    window = near_optimal(p, people, 0.0)
    limit = directional_draws(p, people, window, resamples=draws, rng=rng)
    again = [
        resampled_draws(
            p,
            plain_sample(rng.multinomial(n, f), p.cells),
            units=default_rows(n),
            resamples=draws // 4,
            rng=rng,
        )
        for _ in range(samples)
    ]
    apart = float(np.mean([_distance(sampled, drawn) for drawn in again]))
    noise = float(np.sqrt(-np.log(1e-3 / 2) / draws))
    large = n >= 100_000
    return [
        _row(name, n, "sampling distribution", sampled, None, None),
        _row(
            name,
            n,
            "limit (Theorem 3.1)",
            limit,
            _distance(sampled, limit),
            # the limit must be indistinguishable at large n
            _distance(sampled, limit) < noise + 0.01 if large else None,
        ),
        _row(
            name,
            n,
            "m-out-of-n bootstrap",
            again[0],
            apart,
            apart < 0.1 if large and name == "unique dual" else None,
        ),
    ]


def _row(
    name: str, n: int, what: str, drawn: FloatArray, apart: float | None, close: bool | None
) -> dict[str, Any]:
    return {
        "world": name,
        "n": n,
        "distribution": what,
        "quantiles": [round(float(q), 4) for q in np.quantile(drawn, QUANTILES)],
        "distance_from_sampling": None if apart is None else round(apart, 4),
        "close": close,
    }


def _distance(a: FloatArray, b: FloatArray) -> float:
    grid = np.concatenate((a, b))
    one, two = (np.searchsorted(np.sort(x), grid, side="right") / x.size for x in (a, b))
    return float(np.abs(one - two).max())


if __name__ == "__main__":
    main("figure 1", run)
