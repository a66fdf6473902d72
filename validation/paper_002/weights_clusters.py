"""Sampling weights and clusters: how often the bounds of the audit value miss.

Rows are drawn with unequal chances and weighted back, with noise in the weights; clusters share a
kind of people, so that their rows are alike. Truths are those of the worlds without either.
One-sided bounds that miss are false verdicts at the edge of the null, where the tolerance is the
truth. Beside the default stands what plain rows would say of the same tables.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import main, write
from transport_worlds import SEED, World, fair, free_moves, miss_limit, rare, two_sided, unique

from equipoise.methods.numerics import FloatArray
from equipoise.methods.transport import Sample, infer, plain_sample, unit_sample

Draw = Callable[[FloatArray, np.random.Generator], Sample]


def weighted(rows: int, *, first: float = 2.0, second: float = 0.5) -> Draw:
    """Rows drawn so often in every other cell and in the rest, with noisy weights."""

    def draw(share: FloatArray, rng: np.random.Generator) -> Sample:
        often = np.where(np.arange(share.size) % 2 == 0, first, second)
        chance = share * often / (share @ often)
        cell = rng.choice(share.size, rows, p=chance)
        weight = np.exp(0.5 * rng.normal(size=rows)) / often[cell]
        worth = weight.sum() ** 2 / (weight**2).sum()
        return unit_sample(np.arange(rows), cell, weight, cells=share.size, rows=worth)

    return draw


def clustered(clusters: int, *, noisy: bool = False) -> Draw:
    """Clusters of some ten rows, a third of which are of the cluster's own kind."""

    def draw(share: FloatArray, rng: np.random.Generator) -> Sample:
        size = 1 + rng.poisson(9, clusters)
        unit = np.repeat(np.arange(clusters), size)
        own = rng.choice(share.size, clusters, p=share)[unit]
        cell = np.where(
            rng.random(unit.size) < 1 / 3, own, rng.choice(share.size, unit.size, p=share)
        )
        weight = np.exp(0.5 * rng.normal(size=unit.size)) if noisy else np.ones(unit.size)
        worth = weight.sum() ** 2 / (weight**2).sum()
        return unit_sample(unit, cell, weight, cells=share.size, rows=worth)

    return draw


DESIGNS = {
    "500 weighted rows": weighted(500),
    "2000 weighted rows": weighted(2000),
    "1000 rows, heavy where rare": weighted(1000, first=0.5, second=2.0),
    "30 clusters": clustered(30),
    "200 clusters": clustered(200),
    "60 clusters of weighted rows": clustered(60, noisy=True),
}


def worlds() -> dict[str, World]:
    """Values of zero and above, with a unique dual and at a tie."""
    return {
        "fair": fair(),
        "free moves, 0/1 loss": free_moves(binary=True),
        "free moves, graded loss": free_moves(binary=False),
        "free moves, rare gains": rare(),
        "unique, 8 cells": unique(8),
        "tie, two-sided": two_sided(),
    }


def run(full: bool = False) -> dict[str, Any]:
    """Count misses of every world and design."""
    replicates = 1000 if full else 100
    rows = [
        _row(name, world, design, way, replicates)
        for name, world in worlds().items()
        for design in DESIGNS
        for way in ("default", "as plain rows")
    ]
    result = {
        "source": "Sampling weights and clusters: misses of 95 % bounds",
        "rows": rows,
        "agrees": all(row["agrees"] for row in rows if row["agrees"] is not None),
    }
    return write(__file__, "weights_clusters", result, full)


def _row(name: str, world: World, design: str, way: str, replicates: int) -> dict[str, Any]:
    rng, truth, slack = np.random.default_rng(SEED), world.truth, 1e-12
    missed, width, counted = np.zeros(3, dtype=int), 0.0, 0
    for _ in range(replicates):
        sample = DESIGNS[design](world.weights, rng)
        # as if every unit of weight were a row of its own
        plain = plain_sample(np.round(sample.share * sample.rows), sample.cells)
        taken = sample if way == "default" else plain
        found = infer(world.problem, taken, rng=rng, resamples=300)
        ends, low, high = found.interval(), found.lower(), found.upper()
        if ends is None or low is None or high is None:
            continue
        inside = ends[0] - slack <= truth <= ends[1] + slack
        missed += [not inside, low > truth + slack, high < truth - slack]
        width, counted = width + ends[1] - ends[0], counted + 1
    shares = missed / max(counted, 1)
    return {
        "world": name,
        "design": design,
        "way": way,
        "interval": round(float(shares[0]), 4),
        "lower_bound": round(float(shares[1]), 4),
        "upper_bound": round(float(shares[2]), 4),
        "most": round(miss_limit(counted), 4),
        "mean_width": round(width / max(counted, 1), 4),
        "samples": counted,
        "agrees": bool(np.all(shares <= miss_limit(counted))) if way == "default" else None,
    }


if __name__ == "__main__":
    main("weights_clusters", run)
