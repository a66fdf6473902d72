"""A fair metric learnt from the rows: how often 95 % intervals miss.

Two features, of which one, both or none betray the sensitive one; the truth is known because the
population is. The default speaks of the metric that the population would give, and counts the error
of learning it. A metric learnt on one half of the rows and audited on the other speaks of the
metric as learnt. Beside them stands what went wrong: the learnt metric taken as known, judged by
the metric of the population.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import main, write
from transport_worlds import SEED, miss_limit

import equipoise as eq
from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.transport import Problem, fair_costs, infer, learn_metric, prepare

ROWS = 1000
BUDGETS = (0.005, 0.02, 0.1)
LEANS = {"both betray": (0.8, 0.3), "one betrays": (1.5, 0.0), "none betrays": (0.0, 0.0)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """Kinds of people: a sensitive feature, two others, a label, and their shares."""

    sensitive: IntArray
    features: IntArray
    label: IntArray
    share: FloatArray

    @property
    def losses(self) -> FloatArray:
        """What the model gets wrong."""
        return np.asarray(_decides(self.sensitive, *self.features.T) != self.label, dtype=float)

    def problem(self, learnt_on: FloatArray, budget: float) -> Problem:
        """The auditor's problem with the metric that these shares give."""
        metric = learn_metric(self.features, self.sensitive, learnt_on)
        points = self.features / metric.units
        costs = fair_costs(points, metric.directions, classes=self.label)
        return prepare(costs, self.losses, budget=budget)

    def table(self, counts: IntArray) -> pl.DataFrame:
        """One line for each kind of people."""
        a, b = self.features.T
        return pl.DataFrame({"s": self.sensitive, "a": a, "b": b, "y": self.label, "n": counts})


def _decides(s: Any, a: Any, b: Any) -> Any:
    return (0.6 * a + 0.5 * b + 0.7 * s > 2.0) * 1


def population(first: float, second: float) -> Population:
    """Four levels of each feature, which lean on the sensitive one by so much."""
    axes = np.meshgrid([0, 1], range(4), range(4), [0, 1], indexing="ij")
    s, a, b, y = (axis.ravel() for axis in axes)
    middle, other = a - 1.5 - first * (s - 0.5), b - 1.5 - second * (s - 0.5)
    share = np.exp(-0.5 * (middle**2 + (other - 0.3 * (a - 1.5)) ** 2))
    if first == second == 0:
        share = np.exp(-0.5 * (middle**2 + other**2))
    positive = 1 / (1 + np.exp(-(0.5 * (a - 1.5) + 0.4 * (b - 1.5))))
    share = share * np.where(y == 1, positive, 1 - positive)
    return Population(
        sensitive=s, features=np.stack([a, b], axis=1), label=y, share=share / share.sum()
    )


def run(full: bool = False) -> dict[str, Any]:
    """Count misses of every world, budget and way to the metric."""
    replicates = 1000 if full else 60
    rows: list[dict[str, Any]] = []
    for name, leans in LEANS.items():
        for budget in BUDGETS:
            rows += _rows(name, population(*leans), budget, replicates)
    result = {
        "source": "A learnt fair metric: misses of 95 % intervals",
        "rows": rows,
        "agrees": all(row["agrees"] for row in rows if row["agrees"] is not None),
    }
    return write(__file__, "learnt_metric", result, full)


def _rows(name: str, people: Population, budget: float, replicates: int) -> list[dict[str, Any]]:
    rng, found = np.random.default_rng(SEED), {way: [] for way in ("default", "split", "known")}
    truth = float(people.problem(people.share, budget).values(people.share))
    for _ in range(replicates):
        counts = rng.multinomial(ROWS, people.share)
        problem = people.problem(counts / ROWS, budget)
        known = infer(problem, counts, rng=rng, resamples=300).interval()
        found["known"].append((known, truth))
        found["default"].append((_audited(people, counts, budget, "fair-metric", rng), truth))
        learnt, audited = _halves(counts, rng)
        other = people.table(learnt).filter(pl.col("n") > 0)
        metric = eq.FairMetric(learn_from=_trail(other))
        of_learnt = float(people.problem(learnt / learnt.sum(), budget).values(people.share))
        found["split"].append((_audited(people, audited, budget, metric, rng), of_learnt))
    said = {
        "default": "learnt, its error counted",
        "split": "learnt on one half, audited on the other",
        "known": "learnt and taken as known",
    }
    return [_row(name, budget, said[way], way != "known", found[way]) for way in found]


def _halves(counts: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    first = rng.multivariate_hypergeometric(counts, counts.sum() // 2)
    return first, counts - first


def _trail(table: pl.DataFrame) -> Any:
    return eq.read(table, label="y", count="n", attributes=["s", "a", "b"])


def _audited(
    people: Population, counts: IntArray, budget: float, cost: Any, rng: np.random.Generator
) -> tuple[float, float] | None:
    found = eq.individual(
        _trail(people.table(counts).filter(pl.col("n") > 0)),
        vary="s",
        model=lambda frame: _decides(frame["s"], frame["a"], frame["b"]),
        cost=cost,
        budget=budget,
        resamples=300,
        rng=rng,
    )
    return None if found.lower is None or found.upper is None else (found.lower, found.upper)


def _row(
    name: str,
    budget: float,
    way: str,
    judged: bool,
    found: list[tuple[tuple[float, float] | None, float]],
) -> dict[str, Any]:
    ends = [(low, high, truth) for end, truth in found if end is not None for low, high in [end]]
    misses = sum(not low - 1e-12 <= truth <= high + 1e-12 for low, high, truth in ends)
    share = misses / len(ends)
    return {
        "world": name,
        "rows": ROWS,
        "budget": budget,
        "metric": way,
        "misses": round(share, 4),
        "most": round(miss_limit(len(ends)), 4),
        "mean_width": round(float(np.mean([high - low for low, high, _ in ends])), 4),
        "samples": len(ends),
        "agrees": share <= miss_limit(len(ends)) if judged else None,
    }


if __name__ == "__main__":
    main("learnt_metric", run)
