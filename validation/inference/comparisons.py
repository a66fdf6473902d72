"""Differences of two spreads where a small group stands beside a large one.

    python validation/inference/comparisons.py [--full]

A small group whose rows are nearly all alike hardly moves in resamples, so an interval made of
resamples alone is too narrow. Measures that are no means are compared by their pseudo-values.
Promised: the true difference of variances is missed in 5 %.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtr

sys.path.insert(0, str(Path(__file__).parents[1]))

from records import main, write

import equipoise as eq
from equipoise.methods.spread.compare import Contrast, compare_attributes, compare_models

LEVEL, RESAMPLES, SEED = 0.95, 400, 20_261_117
World = Callable[[np.random.Generator], tuple[Any, float]]


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


def areas(sizes: list[int], apart: list[list[float]]) -> World:
    """AUCs of groups whose positives score so much higher: of two models, or beside a coin."""
    auc = [ndtr(np.array(one) / np.sqrt(2)) for one in apart]
    truth = float(np.var(auc[0], ddof=1) - (np.var(auc[1], ddof=1) if len(auc) > 1 else 0.0))
    group = np.repeat(np.arange(len(sizes)), sizes)

    def draw(rng: np.random.Generator) -> tuple[Any, float]:
        label = (rng.random(len(group)) < 0.4).astype(int)
        shared = rng.normal(size=len(group))
        columns = {"group": [f"g{g}" for g in group], "label": label, "coin": _coin(rng, group)}
        for m, one in enumerate(apart):
            luck = 0.6 * shared + 0.8 * rng.normal(size=len(group))
            columns[f"score{m}"] = luck + label * np.array(one)[group]
        return _compared(columns, eq.auc, len(apart), "score", rng), truth

    return draw


def f1_of_models(sizes: list[int], wrong: list[list[float]]) -> World:
    """F1 of two models that err so often; half of all labels are ones."""
    found = [(1 - np.array(w)) / (1 - np.array(w) + np.array(w)) for w in wrong]
    truth = float(np.var(found[0], ddof=1) - np.var(found[1], ddof=1))
    group = np.repeat(np.arange(len(sizes)), sizes)

    def draw(rng: np.random.Generator) -> tuple[Any, float]:
        label = rng.integers(0, 2, len(group))
        columns = {"group": [f"g{g}" for g in group], "label": label, "coin": _coin(rng, group)}
        for m, one in enumerate(wrong):
            errs = rng.random(len(group)) < np.array(one)[group]
            columns[f"prediction{m}"] = np.where(errs, 1 - label, label)
        return _compared(columns, eq.f1, 2, "prediction", rng), truth

    return draw


def _coin(rng: np.random.Generator, group: Any) -> list[str]:
    return [f"c{c}" for c in rng.integers(0, 2, len(group))]


def _compared(
    columns: dict[str, Any], metric: eq.Metric, models: int, role: str, rng: np.random.Generator
) -> Any:
    trail = eq.read(
        pl.DataFrame(columns), label="label", attributes=["group", "coin"], **{role: f"{role}0"}
    )
    asked: dict[str, Any] = {"across": ["group", "coin"]}
    if models > 1:
        asked = {"across": "group", "models": {str(m): f"{role}{m}" for m in range(models)}}
    seed = int(rng.integers(1 << 30))
    return eq.compare(trail, metric, level=LEVEL, resamples=RESAMPLES, rng=seed, **asked).rows[0]


DESIGNS: dict[str, World] = {
    "30 rows at .10 and 3000 at .02, beside a coin": beside_a_coin([30, 3000], [0.1, 0.02]),
    "30 rows at .30 and 600 at .10, beside a coin": beside_a_coin([30, 600], [0.3, 0.1]),
    "three groups of 40, 400, 400, beside a coin": beside_a_coin([40, 400, 400], [0.3, 0.2, 0.2]),
    "two models, groups of 15 and 1000": two_models([15, 1000], [0.15, 0.02], [0.02, 0.02]),
    "two models, groups of 300": two_models([300] * 4, [0.2, 0.3, 0.4, 0.5], [0.3] * 4),
    "two models alike, groups of 30 and 3000": two_models([30, 3000], [0.1, 0.02], [0.1, 0.02]),
    "AUC, groups of 60, 300, 300, beside a coin": areas([60, 300, 300], [[1.0, 1.5, 0.8]]),
    "AUC of two models, groups of 100": areas([100] * 4, [[0.5, 1, 1.5, 2], [1.0] * 4]),
    "AUC of two models alike, groups of 50 and 800": areas([50, 800], [[0.8, 1.4]] * 2),
    "AUC near one, groups of 50 and 800": areas([50, 800], [[3.5, 3.0], [3.0, 3.0]]),
    "F1 of two models, groups of 60 and 600": f1_of_models([60, 600], [[0.3, 0.1], [0.1, 0.1]]),
    "F1 of two models alike, groups of 60": f1_of_models([60] * 6, [[0.2] * 6] * 2),
}


def one(task: tuple[str, int]) -> dict[str, Any]:
    """One design in all its worlds."""
    name, worlds = task
    below = above = open_ = refused = 0
    for world in range(worlds):
        rng = np.random.default_rng([SEED, list(DESIGNS).index(name), world])
        try:
            found, truth = DESIGNS[name](rng)
        except eq.ClaimError:
            # a group whose rows are all alike: no answer is given
            refused += 1
            continue
        # where there is no end, none can be missed
        below += found.lower is not None and truth < found.lower - 1e-12
        above += found.upper is not None and truth > found.upper + 1e-12
        open_ += found.lower is None or found.upper is None
    share = (below + above) / worlds
    bar = 0.06 + 3 * (0.05 * 0.95 / worlds) ** 0.5
    return {
        "design": name,
        "worlds": worlds,
        "nominal": 1 - LEVEL,
        "below": below / worlds,
        "above": above / worlds,
        "missed": share,
        "without_an_end": open_ / worlds,
        "refused": refused / worlds,
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
