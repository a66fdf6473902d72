"""Flags over tilts where nothing is wrong: how often anything is flagged, with skewed metrics.

The metric does not depend on the covariate, so every tilted population is like the whole. Tilts
rise, fall, peak, and weigh at random; the metric is skewed, up to a tail without a third moment.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import agreed, main, standard_error, write
from tilt_worlds import SEED

import equipoise as eq

FDR, ROWS = 0.10, 300
ACROSS = eq.tilts(
    "random",
    rising="x",
    falling="1 - x",
    steep="exp(4 * x)",
    peak="exp(0 - ((x - 0.3) / 0.08) ** 2)",
)
CLAIM = eq.gap(eq.metric("value", "y"), across=ACROSS)
LIMITS: dict[str, dict[str, float]] = {
    "either way": {},
    "above": {"above": 0.0},
    "below": {"below": 0.0},
}
OUTCOMES: dict[str, Any] = {
    "exponential": lambda rng: rng.exponential(size=ROWS),
    "lognormal": lambda rng: rng.lognormal(size=ROWS),
    "lognormal, 1.5": lambda rng: rng.lognormal(sigma=1.5, size=ROWS),
    "squared errors": lambda rng: rng.standard_normal(ROWS) ** 2,
    "Pareto, 2.5": lambda rng: rng.pareto(2.5, ROWS),
    "mirrored exponential": lambda rng: -rng.exponential(size=ROWS),
}


def run(full: bool = False) -> dict[str, Any]:
    """Count samples with any flag; ``full`` draws 1000 of each kind instead of 10."""
    samples = 1000 if full else 10
    with ProcessPoolExecutor(max_workers=2) as pool:
        found = pool.map(_rows, OUTCOMES, [samples] * len(OUTCOMES))
        rows = [row for part in found for row in part]
    result = {
        "source": "flags over tilts with skewed metrics",
        "nominal": FDR,
        "rows": rows,
        "agrees": agreed(rows),
    }
    return write(__file__, "flags", result, full)


def _rows(name: str, samples: int) -> list[dict[str, Any]]:
    fired, answered = dict.fromkeys(LIMITS, 0), 0.0
    for sample in range(samples):
        rng = np.random.default_rng([SEED, *name.encode(), sample])
        frame = pl.DataFrame(
            {
                "x": rng.integers(0, 40, ROWS) / 39,
                "y": OUTCOMES[name](rng),
                "random": np.round(rng.lognormal(size=ROWS), 3),
            }
        )
        trail = eq.read(frame)
        for way, limits in LIMITS.items():
            found: Any = eq.flag(trail, CLAIM, fdr=FDR, rng=sample, **limits)
            fired[way] += bool(found.flagged)
        answered += float(np.mean([row.p is not None for row in found.rows]))
    most = FDR + 0.01 + 3 * standard_error(FDR + 0.01, samples)
    return [
        {
            "metric": name,
            "question": way,
            "rows": ROWS,
            "samples": samples,
            "answered": round(answered / samples, 3),
            "flagged": round(count / samples, 4),
            "most": round(most, 4),
            "agrees": count / samples <= most,
        }
        for way, count in fired.items()
    ]


if __name__ == "__main__":
    main("flags over tilts", run)
