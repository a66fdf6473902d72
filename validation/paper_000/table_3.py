"""Table 3: false discovery rate of flags on the paper's three tasks, on a stand-in population.

The census data behind the table are not bundled, so a population of 200,000 people stands in for
them: forty groups of race, sex and age, a classifier whose error rate, and a model whose squared
error, differ between them. Samples of n are drawn with replacement, as in the paper, and a flag is
false if the group's figure in the whole population does not exceed the threshold. Only the bar of
10 % can be compared; the published rates belong to another population.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from audit_worlds import SEED, bench_of
from records import agreed, main, write
from type_i import options

import equipoise as eq
from equipoise._validate import Seed
from equipoise.audits.flag import flag_groups
from equipoise.worlds import LEVELS, uneven_world

PUBLISHED = {
    "1: error rate above 0.5": (0.045, 0.038, 0.032, 0.025, 0.021, 0.014),
    "2: error rate above average": (0.003, 0.005, 0.003, 0.004, 0.003, 0.004),
    "3: squared error above average": (0.0, 0.0, 0.0, 0.0, 0.0, 0.002),
}
SIZES = (100, 200, 400, 800, 1600, 3200)
RATE = 0.10
WORLD = uneven_world(rate=0.45, spread=0.12, smallest=0.002)
METRIC = eq.metric("error", "error")


def run(full: bool = False) -> dict[str, Any]:
    """False discovery rates of the default and of Algorithm 4."""
    rng = np.random.default_rng(SEED)
    rows = []
    for task, published in PUBLISHED.items():
        for column, n in enumerate(SIZES):
            trials = (1000 if task[0] != "3" else 300) if full else (40 if task[0] != "3" else 8)
            for name, extra in METHODS.items():
                shares = [_one(task, n, rng, trial, extra) for trial in range(trials)]
                rows.append(_row(task, n, name, published[column], shares))
    return write(
        __file__,
        "table_3",
        {"source": "Table 3", "nominal": RATE, "rows": rows, "agrees": agreed(rows)},
        full,
    )


METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "Algorithm 4": {"method": "bootstrap", "resamples": 500},
}


def _one(task: str, n: int, rng: np.random.Generator, trial: int, extra: dict[str, Any]) -> float:
    """The share of false flags among the flags of one sample."""
    target = 0.5 if task[0] == "1" else None
    claim = eq.gap(METRIC, across=WORLD.groups(), target=target)
    levels = list(LEVELS.values())
    if task[0] == "3":
        cell = rng.choice(len(WORLD.share), size=n, p=WORLD.share)
        # An exponential squared error whose mean is twice the cell's rate.
        value = rng.exponential(2 * WORLD.rate[cell])
        problem = bench_of(claim, levels, WORLD.index, cell=cell, value=value)
    else:
        problem = bench_of(claim, levels, WORLD.index, counts=WORLD.draw(n, rng))
    seed = Seed(np.random.SeedSequence([SEED, trial]), trial)
    found = flag_groups(problem, options(above=0.0, **{**extra, "fdr": RATE}), seed, False)
    bar = 0.5 if task[0] == "1" else WORLD.overall()
    false = sum(WORLD.value(row.where) <= bar for row in found.flagged)
    return false / max(len(found.flagged), 1)


def _row(task: str, n: int, name: str, published: float, shares: list[float]) -> dict[str, Any]:
    value = float(np.mean(shares))
    error = max(float(np.std(shares)), 0.05) / np.sqrt(len(shares))
    return {
        "world": task,
        "n": n,
        "figure": "false discovery rate",
        "method": name,
        "published": published,
        "ours": round(value, 4),
        "monte_carlo_error": round(float(error), 4),
        "trials": len(shares),
        "agrees": bool(value <= RATE + 3 * error) if name == "default" else None,
    }


if __name__ == "__main__":
    main("table 3", run)
