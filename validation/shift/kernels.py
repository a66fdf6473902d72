"""Tilts in the space of a kernel: how often bounds are wrong, how wide they are, what they cost.

A world is wrong if any of its answers misses the truth: tilts toward people who are the same in all
samples, mixtures of these, ranges of the first covariate by their closest tilts, and two mixtures
of the sample's own rows that lean on its errors. Beside the half-width of the fixed tilts stands
that by the earlier scale |P h| √(P h²) + 0.001 ‖h‖², which did not know that constants cancel
against the average over everyone, in the same samples; and the time of both in CPU seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import agreed, main, standard_error, write
from tilt_worlds import SEED, World, group_questions, questions

import equipoise as eq
from equipoise.methods import tilts
from equipoise.methods.numerics import FloatArray
from equipoise.methods.tilts import draws as tilt_draws

LEVEL, RESAMPLES = 0.9, 300
EARLIER_FLOOR = 1e-3
EARLIER_WORLDS = 15
"""Samples in which the earlier scale is computed as well."""


def smooth(width: float | None) -> Callable[[tuple[str, ...]], Any]:
    """A Gaussian kernel of this bandwidth."""
    return lambda names: eq.gaussian(*names, bandwidth=width)


def rough(width: float | None) -> Callable[[tuple[str, ...]], Any]:
    """A Laplace kernel of this bandwidth."""
    return lambda names: eq.laplace(*names, bandwidth=width)


def mostly_tied(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    """Whole numbers, most of them zero."""
    return rng.poisson(0.4, (n, p)).astype(np.float64)


def twins(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    """Every column the same."""
    return np.repeat(rng.standard_normal((n, 1)), p, axis=1)


def with_constant(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    """All columns but the first are constant."""
    x = np.ones((n, p))
    x[:, 0] = rng.standard_normal(n)
    return x


def far_tails(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    """A covariate without variance."""
    return rng.standard_t(1.5, (n, p))


HIGH = eq.reference(part="high")
WORLDS = (
    World("wide kernel, 400 rows", 400, smooth(10.0)),
    World("wide kernel, 1000 rows", 1000, smooth(10.0)),
    World("twice the spread, 400 rows", 400, smooth(2.0)),
    World("twice the spread, 1000 rows", 1000, smooth(2.0)),
    World("half the spread", 400, smooth(0.5)),
    World("known target", 400, smooth(2.0), target=0.3),
    World("a group as target", 400, smooth(2.0), target=HIGH),
    World("four fifths of everyone", 400, smooth(2.0), target=0.8 * eq.overall()),
    World("skewed metric", 400, smooth(2.0), outcome="squared"),
    World("rare events", 400, smooth(2.0), outcome="rare"),
    World("weights", 400, smooth(2.0), weights="plain"),
    World("clusters of four", 400, smooth(2.0), clusters=True),
    World("rough kernel", 400, rough(1.0)),
    World("ten columns, 500 rows", 500, rough(None), columns=10),
    World("ten columns, 2000 rows", 2000, rough(None), columns=10),
    World("hostile: ties", 400, smooth(1.0), draw=mostly_tied),
    World("hostile: a constant column", 400, smooth(2.0), columns=2, draw=with_constant),
    World("hostile: two equal columns", 400, smooth(2.0), columns=2, draw=twins),
    World("hostile: heavy-tailed metric", 400, smooth(2.0), outcome="heavy"),
    World("hostile: heavy-tailed covariate", 400, smooth(1.0), draw=far_tails),
    World("hostile: skewed weights", 400, smooth(2.0), weights="skewed"),
    World("hostile: 40 rows", 40, smooth(2.0)),
    World("hostile: huge bandwidth", 300, smooth(1e4)),
    World("hostile: tiny bandwidth", 300, smooth(0.02)),
    World("hostile: tilts that touch zero", 400, smooth(0.2), slope=0.9),
)
WIDE = ("wide kernel, 400 rows", "wide kernel, 1000 rows")
USUAL = 1000
SAMPLES = {"ten columns, 500 rows": 400, "ten columns, 2000 rows": 200}
"""Samples in a full run, where an audit takes about a second."""


def run(full: bool = False) -> dict[str, Any]:
    """Count wrong answers; ``full`` draws more than 10 samples of each world."""
    numbers = [SAMPLES.get(world.name, USUAL) if full else 10 for world in WORLDS]
    with ProcessPoolExecutor(max_workers=2) as pool:
        rows = list(pool.map(_numbered, range(len(WORLDS)), numbers))
    rows += _more_rows(rows)
    result = {
        "source": "bounds under tilts in the space of a kernel",
        "nominal": round(1 - LEVEL, 2),
        "rows": rows,
        "agrees": agreed(rows),
    }
    return write(__file__, "kernels", result, full)


def _numbered(place: int, samples: int) -> dict[str, Any]:
    # worlds hold functions, which do not travel between processes
    return _row(WORLDS[place], samples)


def _row(world: World, samples: int) -> dict[str, Any]:
    wrong, half, spent = 0, [], 0.0
    earlier_half, earlier_spent, compared = [], 0.0, 0.0
    for sample in range(samples):
        rng = np.random.default_rng([SEED, *world.name.encode(), sample])
        trail, people, error = world.sample(rng)
        started = time.process_time()
        found = _audit(world, trail, sample)
        taken = time.process_time() - started
        spent += taken
        asked = [*questions(world, found, people, error, rng), *group_questions(world, found)]
        wrong += any(_missed(answer, truth) for _, answer, truth in asked)
        widths = [_half(answer) for kind, answer, _ in asked if kind in ("section", "mixture")]
        half.append(float(np.median(widths)))
        if sample < EARLIER_WORLDS:
            widths, seconds = _earlier(world, found, sample)
            earlier_half.append(float(np.median(widths)))
            earlier_spent += seconds
            compared += _again(found, sample)
    rate = wrong / samples
    ratio = float(np.mean(half[:EARLIER_WORLDS]) / np.mean(earlier_half))
    # A point above nominal, and three standard errors at that rate.
    nominal = 1 - LEVEL
    most = nominal + 0.01 + 3 * standard_error(nominal + 0.01, samples)
    good = rate <= most and (world.name not in WIDE or ratio <= 0.25)
    return {
        "world": world.name,
        "rows": world.n,
        "samples": samples,
        "wrong": round(rate, 4),
        "most": round(most, 4),
        "half_width": round(float(np.mean(half)), 5),
        "earlier_half_width": round(float(np.mean(earlier_half)), 5),
        "ratio": round(ratio, 4),
        "cpu_seconds": round(spent / samples, 4),
        "cpu_over_earlier": round(compared / earlier_spent, 2),
        "agrees": bool(good),
    }


def _audit(world: World, trail: eq.Trail, seed: int) -> Any:
    return eq.shift(
        trail,
        world.claim,
        over=world.over(world.names),
        level=LEVEL,
        resamples=RESAMPLES,
        rng=seed,
        progress=False,
        **world.options,
    )


def _missed(answer: Any, truth: float) -> bool:
    below = answer.lower is not None and answer.lower > truth
    return below or (answer.upper is not None and answer.upper < truth)


def _half(answer: Any) -> float:
    """Half the width; one, more than any rate can differ, for an answer that says nothing."""
    return 1.0 if answer.lower is None else min(float(answer.upper - answer.lower) / 2, 1.0)


def _sample(found: Any, *, centred: bool) -> tilts.TiltSample:
    space = found.space
    return tilts.TiltSample(
        features=space.features * space.weights[:, None],
        values=space.values,
        influence=space.influence,
        counts=space.counts,
        paired=space.paired if centred else np.zeros_like(space.paired),
        apart=space.apart if centred else 0.0,
        clusters=space.clusters,
    )


def _timed(found: Any, seed: int, floor: float, *, centred: bool) -> tuple[tilts.TiltAudit, float]:
    sample = _sample(found, centred=centred)
    started = time.process_time()
    audit = tilts.audit_tilts(
        sample,
        tilts.RowTilts(sample),
        method=tilts.Method.RESCALED,
        floor=floor,
        resamples=RESAMPLES,
        seed=np.random.SeedSequence(seed),
    )
    return audit, time.process_time() - started


def _again(found: Any, seed: int) -> float:
    """CPU seconds of the mathematics alone."""
    return _timed(found, seed, found.floor, centred=True)[1]


def _earlier(world: World, found: Any, seed: int) -> tuple[list[float], float]:
    """Half-widths of the fixed tilts by the earlier scale, and its CPU seconds."""
    audit, seconds = _timed(found, seed, EARLIER_FLOOR, centred=False)
    critical = tilts.critical_value(audit.draws, LEVEL, "both")
    moments, basis = audit.moments, found.basis
    features = tilts.features_of(found.space.kernel, basis.pivots, basis.corner, world.centres())
    made = []
    for weights in world.fixed_weights():
        beta = weights @ features
        mean, square = moments.mean @ beta, beta @ moments.second @ beta
        scale = float(tilt_draws.scale_of(mean, square, beta @ beta, EARLIER_FLOOR))
        made.append(min(critical * scale / mean**2, 1.0))
    return made, seconds


def _more_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Whether ten columns are answered, and answered better with more rows."""
    few, many = (
        next(row for row in rows if row["world"] == f"ten columns, {n} rows") for n in (500, 2000)
    )
    return [
        {
            "world": "ten columns: four times the rows",
            "half_width": many["half_width"],
            "earlier_half_width": 1.0,
            "ratio": round(many["half_width"] / few["half_width"], 4),
            "agrees": few["half_width"] < 0.25 and many["half_width"] < 0.75 * few["half_width"],
        }
    ]


if __name__ == "__main__":
    main("tilts in the space of a kernel", run)
