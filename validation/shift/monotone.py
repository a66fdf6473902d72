"""Monotone tilts: how often any of many random monotone weights, or any half-line, is missed.

A world is wrong if a single answer misses the truth: every half-line, and random weights that rise
or fall, of which half begin at zero and some give nearly everything to a few people.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import agreed, main, standard_error, write
from tilt_worlds import SEED, World

import equipoise as eq
from equipoise.methods.numerics import FloatArray

LEVEL, GRID, RESAMPLES, ASKED = 0.9, 20, 1000, 30


def tied(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    """Whole numbers from zero to eight."""
    return rng.binomial(8, 0.3, (n, p)).astype(np.float64)


def _over(names: tuple[str, ...]) -> Any:
    return eq.monotone(names[0], grid=GRID)


WORLDS = (
    World("rate", 400, _over),
    World("rate, 2000 rows", 2000, _over),
    World("known target", 400, _over, target=0.3),
    World("a group as target", 400, _over, target=eq.reference(part="high")),
    World("rare events", 400, _over, outcome="rare"),
    World("skewed metric", 400, _over, outcome="amount"),
    World("squared errors", 400, _over, outcome="squared"),
    World("weights", 400, _over, weights="plain"),
    World("skewed weights", 400, _over, weights="skewed"),
    World("clusters of four", 400, _over, clusters=True),
    World("ties", 400, _over, draw=tied),
    World("40 rows", 40, _over),
)
USUAL = 1000
SAMPLES = {"clusters of four": 300, "40 rows": 400, "skewed weights": 400}
"""Samples in a full run, where an audit takes over a second."""


def run(full: bool = False) -> dict[str, Any]:
    """Count wrong answers; ``full`` draws 1000 samples of most worlds instead of 10."""
    numbers = [SAMPLES.get(world.name, USUAL) if full else 10 for world in WORLDS]
    with ProcessPoolExecutor(max_workers=2) as pool:
        rows = list(pool.map(_numbered, range(len(WORLDS)), numbers))
    result = {
        "source": "bounds under monotone tilts",
        "nominal": round(1 - LEVEL, 2),
        "rows": rows,
        "agrees": agreed(rows),
    }
    return write(__file__, "monotone", result, full)


def _numbered(place: int, samples: int) -> dict[str, Any]:
    # worlds hold functions, which do not travel between processes
    return _row(WORLDS[place], samples)


def _row(world: World, samples: int) -> dict[str, Any]:
    wrong, answered, half, spent = 0, 0, [], 0.0
    for sample in range(samples):
        rng = np.random.default_rng([SEED, *world.name.encode(), 5, sample])
        trail, _, _ = world.sample(rng)
        started = time.process_time()
        found: Any = eq.shift(
            trail,
            world.claim,
            over=world.over(world.names),
            level=LEVEL,
            resamples=RESAMPLES,
            rng=sample,
            progress=False,
        )
        spent += time.process_time() - started
        asked = _questions(world, found, rng)
        wrong += any(_missed(answer, truth) for answer, truth in asked)
        told = [a for a, _ in asked if a.lower is not None and a.upper is not None]
        answered += len(told) / len(asked)
        half += [(answer.upper - answer.lower) / 2 for answer in told]
    nominal = 1 - LEVEL
    most = nominal + 0.01 + 3 * standard_error(nominal + 0.01, samples)
    return {
        "world": world.name,
        "rows": world.n,
        "samples": samples,
        "asked": ASKED + 2 * (GRID - 1),
        "answered": round(answered / samples, 3),
        "wrong": round(wrong / samples, 4),
        "most": round(most, 4),
        "half_width": round(float(np.median(half)), 4) if half else None,
        "cpu_seconds": round(spent / samples, 3),
        "agrees": wrong / samples <= most,
    }


def _questions(world: World, found: Any, rng: np.random.Generator) -> list[tuple[Any, float]]:
    """Every half-line and random monotone weights, with the truth in the population."""
    cuts = [each.start for each in found.stretches[1:]]
    place = np.searchsorted(cuts, world.people()[:, 0], side="right")
    size = len(found.stretches)
    asked = []
    for row, cut in zip(found.rows, [*range(1, size), *range(1, size)], strict=True):
        inside = place < cut if len(asked) < size - 1 else place >= cut
        asked.append((row, world.truth(inside.astype(np.float64))))
    for i in range(ASKED):
        weights = np.cumsum(rng.random(size) ** rng.choice([1, 4, 16]))
        weights = weights + (i % 2) * rng.exponential() * weights[-1]
        weights = weights[:: 1 if i % 3 else -1]
        asked.append((found.ask_tilt(weights), world.truth(weights[place])))
    return asked


def _missed(answer: Any, truth: float) -> bool:
    below = answer.lower is not None and answer.lower > truth + 1e-12
    return below or (answer.upper is not None and answer.upper < truth - 1e-12)


if __name__ == "__main__":
    main("monotone tilts", run)
