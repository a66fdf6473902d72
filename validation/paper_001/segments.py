"""A perfectly calibrated score and 48 overlapping segments: how often is something found?

Two attributes of six levels each that have nothing to do with the outcome; tolerance zero, level
0.95. Reading the smallest p-value over segments, as a common package does, finds something in most
such samples.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from calibration_worlds import SEED, World
from records import main, most, write

from equipoise.worlds import RiskTable, segment_risks

N, ERROR = 600, 0.05


def run(full: bool = False) -> dict[str, Any]:
    """Count false alarms of the default, and of the smallest p-value over segments."""
    replicates = 60 if full else 15
    ours = published = uncorrected = smallest = 0
    for i in range(replicates):
        table = segment_risks(N, rng=np.random.default_rng([SEED, 48, i]))
        world = World(table, [SEED, 48, i])
        ours += world.p("cusum", 0.0) <= ERROR
        published += world.p("cusum-published", 0.0) <= ERROR
        uncorrected += world.p("cusum-standardised, uncorrected", 0.0) <= ERROR
        smallest += naive_p(table) <= ERROR
    rows = [
        _row("cusum", ours, replicates),
        {**_row("cusum-standardised, uncorrected", uncorrected, replicates), "holds": None},
        {**_row("cusum-published", published, replicates), "holds": None},
        {**_row("smallest of 48 p-values", smallest, replicates), "holds": None},
    ]
    result = {
        "source": "A calibrated model in 48 overlapping segments, nominal 0.05",
        "rows": rows,
        "agrees": rows[0]["holds"] and smallest > most(replicates, ERROR),
    }
    return write(__file__, "segments", result, full)


def naive_p(table: RiskTable) -> float:
    """The smallest two-sided p-value over all segments, each read on its own."""
    y, p = np.asarray(table["y"], dtype=float), np.asarray(table["score"], dtype=float)
    a, b = np.asarray(table["a"]), np.asarray(table["b"])
    masks = [a == level for level in np.unique(a)] + [b == level for level in np.unique(b)]
    masks += [(a == i) & (b == j) for i in np.unique(a) for j in np.unique(b)]
    z = [abs((y - p)[m].sum()) / np.sqrt((p * (1 - p))[m].sum()) for m in masks if m.any()]
    return float(2 * ndtr(-max(z)))


def _row(method: str, count: int, replicates: int) -> dict[str, Any]:
    return {
        "method": method,
        "n": N,
        "replicates": replicates,
        "false_alarms": count,
        "rate": round(count / replicates, 3),
        "band": f"at most {most(replicates, ERROR)}",
        "holds": count <= most(replicates, ERROR),
    }


if __name__ == "__main__":
    main("segments", run)
