"""Summaries of how far groups are apart, in worlds that are hard for them.

    python validation/inference/summaries.py [--full]

Where groups are equal, an interval that leaves equality is an error (promised: half of 5 %); where
they differ, one that misses the true spread is (promised: 5 %). In every world the six measures
must agree: either all lower ends show a difference or none does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from designs import sums_of
from records import main, write

from equipoise.methods.spread import (
    Meta,
    bootstrap_draws,
    meta_metric,
    sample_from_groups,
    summarize_spread,
    weigh,
)
from equipoise.methods.spread.sample import highest_z, no_spread

Floats = npt.NDArray[np.float64]
LEVEL, RESAMPLES, SEED = 0.95, 400, 20_261_116


@dataclass(frozen=True)
class Rows:
    """One world's rows."""

    group: npt.NDArray[np.int64]
    value: Floats
    weight: Floats | None = None
    cluster: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Design:
    """A way of making worlds, and the true group means."""

    draw: Callable[[np.random.Generator], Rows]
    truth: tuple[float, ...]
    binary: bool = True


def rates(sizes: list[int], truth: list[float]) -> Design:
    """Plain rows of a 0/1 metric."""
    group = np.repeat(np.arange(len(sizes)), sizes)

    def draw(rng: np.random.Generator) -> Rows:
        return Rows(group, (rng.random(group.size) < np.array(truth)[group]).astype(float))

    return Design(draw, tuple(truth))


def informative(sizes: list[int], share: list[float]) -> Design:
    """Ones weigh five times as much as zeros, on average, and unequally."""
    group = np.repeat(np.arange(len(sizes)), sizes)

    def draw(rng: np.random.Generator) -> Rows:
        value = (rng.random(group.size) < np.array(share)[group]).astype(float)
        weight = np.where(value == 1, 5 * rng.exponential(1, group.size), rng.random(group.size))
        return Rows(group, value, weight)

    truth = tuple(p * 5 / (p * 5 + (1 - p) * 0.5) for p in share)
    return Design(draw, truth)


def real(
    sizes: list[int], shift: list[float], noise: Callable[[np.random.Generator, int], Floats]
) -> Design:
    """Plain rows of a real metric; ``noise`` has the mean 1."""
    group = np.repeat(np.arange(len(sizes)), sizes)

    def draw(rng: np.random.Generator) -> Rows:
        return Rows(group, noise(rng, group.size) + np.array(shift)[group])

    return Design(draw, tuple(1 + s for s in shift), binary=False)


def unequal(sizes: list[int], spreads: list[float]) -> Design:
    """Normal rows with the mean 1 and a spread for each group."""
    group = np.repeat(np.arange(len(sizes)), sizes)

    def draw(rng: np.random.Generator) -> Rows:
        return Rows(group, 1 + rng.normal(size=group.size) * np.array(spreads)[group])

    return Design(draw, (1.0,) * len(sizes), binary=False)


def lognormal(rng: np.random.Generator, n: int) -> Floats:
    """Skewness 6, mean 1."""
    return np.asarray(rng.lognormal(-0.5, 1, n))


def exponential(rng: np.random.Generator, n: int) -> Floats:
    """Skewness 2, mean 1."""
    return np.asarray(rng.exponential(1, n))


def spiky(rng: np.random.Generator, n: int) -> Floats:
    """One row in fifty is fifty times the mean, all others nearly nothing."""
    return np.asarray(50.0 * (rng.random(n) < 0.02) + 0.1 * rng.standard_normal(n))


def clustered(clusters: int, rows: int, truth: list[float], shared: bool) -> Design:
    """Clusters with their own rate, of groups by themselves or of all groups."""
    groups = len(truth)

    def draw(rng: np.random.Generator) -> Rows:
        number = clusters if shared else clusters * groups
        cluster = np.repeat(np.arange(number), rows)
        group = rng.integers(groups, size=cluster.size) if shared else cluster // clusters
        up = rng.choice([-0.25, 0.25], size=number)[cluster]
        return Rows(
            group,
            (rng.random(group.size) < np.array(truth)[group] + up).astype(float),
            None,
            cluster,
        )

    return Design(draw, tuple(truth))


DESIGNS = {
    "rates, groups of 2 to 5 rows among large, rate .9": rates([2, 3, 4, 5, 400, 900], [0.9] * 6),
    "rates, twelve groups of 2 to 5 rows, rate .85": rates([2, 3, 4, 5] * 3, [0.85] * 12),
    "rates, groups of 2 to 5 rows, apart": rates(
        [2, 3, 4, 5, 400, 900], [0.9, 0.8, 0.9, 0.7, 0.8, 0.9]
    ),
    "rates, forty groups, apart": rates(
        [10 + 2 * i for i in range(40)], [0.2 + i / 60 for i in range(40)]
    ),
    "rates, forty groups": rates([10 + 2 * i for i in range(40)], [0.8] * 40),
    "rates, two groups, apart": rates([40, 900], [0.5, 0.65]),
    # a small group with a high rate beside large ones with a low rate
    "rates, 12 rows at .15 beside 3000 at .02": rates([3000, 12], [0.02, 0.15]),
    "rates, 30 rows at .10 beside 3000 at .02": rates([3000, 30], [0.02, 0.10]),
    "rates, 20 rows at .20 beside 3000 at .05": rates([3000, 20], [0.05, 0.20]),
    "rates, 30 rows at .15 beside 300 at .02": rates([300, 30], [0.02, 0.15]),
    "rates, 200 rows at .04 beside 5000 at .01": rates([5000, 200], [0.01, 0.04]),
    "rates, 12 rows at .15 beside seven of 3000 at .02": rates(
        [3000] * 7 + [12], [0.02] * 7 + [0.15]
    ),
    "rates, 12 rows at .15 beside seven of 300 at .02": rates(
        [300] * 7 + [12], [0.02] * 7 + [0.15]
    ),
    "rates, 40 rows at .08 beside seven of 3000 at .02": rates(
        [3000] * 7 + [40], [0.02] * 7 + [0.08]
    ),
    "rates, 12 rows at .30 beside two of 3000 at .10": rates([3000, 3000, 12], [0.1, 0.1, 0.3]),
    "rates, 10 rows at .60 beside nineteen of 400 at .30": rates(
        [400] * 19 + [10], [0.3] * 19 + [0.6]
    ),
    "rates, 10 rows at .80 beside seven of 3000 at .50": rates(
        [3000] * 7 + [10], [0.5] * 7 + [0.8]
    ),
    "rates, 5 and 5 rows at .2 and .8": rates([5, 5], [0.2, 0.8]),
    "rates, 8 and 8 rows at .15 and .85": rates([8, 8], [0.15, 0.85]),
    "weights related to the outcome": informative([150] * 5, [0.4] * 5),
    "weights related to the outcome, apart": informative([150] * 5, [0.2, 0.3, 0.4, 0.4, 0.5]),
    "lognormal, 40 to 300 rows": real([40, 60, 100, 200, 300], [0.0] * 5, lognormal),
    "lognormal, apart": real([100, 150, 200, 300, 500], [0.0, 0.1, 0.4, 0.6, 0.2], lognormal),
    "exponential, 25 to 200 rows": real([25, 40, 60, 100, 200], [0.0] * 5, exponential),
    "exponential, twenty groups, apart": real(
        [30 + 10 * i for i in range(20)], [0.04 * i for i in range(20)], exponential
    ),
    "exponential, 5 to 8 rows beside 900": real([5, 6, 8, 200, 900], [0.0] * 5, exponential),
    "exponential, 5 to 8 rows beside 900, apart": real(
        [5, 6, 8, 200, 900], [0.0, 0.3, 0.6, 0.0, 0.3], exponential
    ),
    "uniform, 3 and 4 rows": real([3, 3, 4, 4, 3], [0.0] * 5, lambda g, n: g.uniform(0.5, 1.5, n)),
    "spreads 5, .2, 1, .1, from 3 rows": unequal([3, 4, 50, 300], [5.0, 0.2, 1.0, 0.1]),
    "spikes": real([100, 200, 400, 800], [0.0] * 4, spiky),
    "spikes, apart": real([400, 800, 1600, 3200], [0.0, 0.5, 1.5, 2.0], spiky),
    "clusters of a group": clustered(12, 20, [0.5] * 4, shared=False),
    "clusters of a group, apart": clustered(15, 20, [0.35, 0.5, 0.55, 0.65], shared=False),
    "clusters across groups": clustered(25, 24, [0.5] * 4, shared=True),
    "clusters across groups, apart": clustered(30, 24, [0.35, 0.5, 0.55, 0.65], shared=True),
}


def one(task: tuple[str, int]) -> dict[str, Any]:
    """One design in all its worlds."""
    name, worlds = task
    design = DESIGNS[name]
    groups, truth = len(design.truth), np.array(design.truth)
    alike = bool(np.ptp(truth) == 0)
    missed, split, answered = dict.fromkeys(Meta, 0), 0, 0
    wide = dict.fromkeys(Meta, 0.0)
    for world in range(worlds):
        rng = np.random.default_rng([SEED, list(DESIGNS).index(name), world])
        rows = design.draw(rng)
        moments, clusters = sums_of(rows.group, rows.value, rows.weight, rows.cluster, groups)
        try:
            sample = sample_from_groups(
                moments,
                binary=design.binary,
                clusters=clusters,
                score=highest_z((1 - LEVEL) / 2, groups),
            )
        except ValueError:
            continue
        answered += 1
        draws = bootstrap_draws(sample, RESAMPLES, rng)
        evidence = weigh(sample, level=LEVEL, resamples=RESAMPLES, rng=rng)
        showing = set()
        for kind in Meta:
            if kind in (Meta.RATIO, Meta.ENTROPY) and np.any(sample.mean < 0):
                continue
            ends = summarize_spread(sample, kind, draws=draws, evidence=evidence).interval
            if ends is None:
                continue
            true = float(meta_metric(kind, truth[sample.kept]))
            missed[kind] += not ends.lower - 1e-12 <= true <= ends.upper + 1e-12
            showing.add(ends.lower > no_spread(kind))
            wide[kind] += min(ends.upper, 1e3)
        split += len(showing) > 1
    told = max(answered, 1)
    worst = max(missed.values()) / told
    nominal = (1 - LEVEL) / (2 if alike else 1)
    bar = nominal + 0.01 + 3 * float(np.sqrt(nominal * (1 - nominal) / told))
    return {
        "design": name,
        "worlds": worlds,
        "answered": round(answered / worlds, 3),
        "nominal": nominal,
        **{kind.name.lower(): round(missed[kind] / told, 4) for kind in Meta},
        "upper": {kind.name.lower(): round(wide[kind] / told, 4) for kind in Meta},
        "worst": round(worst, 4),
        "bar": round(bar, 4),
        "disagreeing": split,
        "agrees": worst <= bar and split == 0,
    }


def run(full: bool = False) -> dict[str, Any]:
    """Examine the designs; ``full`` takes 1000 worlds instead of 100."""
    worlds = 1000 if full else 100
    with ProcessPoolExecutor(max_workers=2) as pool:
        rows = list(pool.map(one, [(name, worlds) for name in DESIGNS]))
    result = {
        "source": "worlds hard for summaries",
        "worlds": worlds,
        "rows": rows,
        "agrees": all(row["agrees"] for row in rows),
    }
    return write(__file__, "summaries", result, full)


if __name__ == "__main__":
    main("summaries", run)
