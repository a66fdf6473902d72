"""Figure 8: a bound on coverage over a union of three ranges, by a tilt that resembles it.

Published, for a fitted quantile forest and ranges that are not given: with 90 % confidence for all
tilts at once, at least 84.0 % of the tilted population are covered (n = 1,000, bandwidth 0.5). Here
the stand-in band's world is audited, whose coverage is known, over many holdout sets, with the
published (unscaled) form and the default. The published bound should look like one of these.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from audit_worlds import SEED
from records import agreed, main, not_above, write

import equipoise as eq
from equipoise.worlds import conformal_world

PUBLISHED, LEVEL, ROWS, BINS = 0.84, 0.9, 1000, 50
UNION = [(0.5, 1.2), (2.0, 2.8), (3.9, 4.6)]
WORLD = conformal_world(BINS)


def run(full: bool = False) -> dict[str, Any]:
    """The distribution of the bound over holdout sets, and how often it holds."""
    rng = np.random.default_rng(SEED)
    sets = 100 if full else 20
    found: dict[str, list[tuple[float, float, float, float]]] = {"unscaled": [], "rescaled": []}
    for trial in range(sets):
        x = rng.random(ROWS) * 5
        covered = rng.random(ROWS) < WORLD.rate[(x * BINS / 5).astype(int)]
        frame = pl.DataFrame({"x": x, "covered": covered.astype(int)})
        trail = eq.read(frame, prediction="covered")
        for method, answers in found.items():
            answers.append(_bound(trail, method, trial))
    rows = [_row(method, answers) for method, answers in found.items()]
    result = {"source": "Figure 8", "rows": rows, "agrees": agreed(rows)}
    return write(__file__, "figure_8", result, full)


def _bound(trail: eq.Trail, method: str, trial: int) -> tuple[float, float, float, float]:
    """The lower bound, the true coverage under the tilt, the distance, the effective size."""
    audit = eq.shift(
        trail,
        eq.gap(eq.selection_rate, target=0.0),
        over=eq.gaussian("x", bandwidth=0.5),
        level=LEVEL,
        side="lower",
        method=method,
        resamples=500,
        rng=trial,
    )
    answer = audit.ask_group(x=UNION)
    # The truth under the tilt: its share in each bin of the profile times the true coverage there.
    weight = np.array([(r["from"] + r["to"]) / 2 for r in answer.profile])
    rate = WORLD.rate[np.minimum((weight * BINS / 5).astype(int), BINS - 1)]
    tilted = np.array([r["tilt"] for r in answer.profile])
    truth = float(np.average(rate, weights=tilted))
    if answer.lower is None or answer.distance is None or answer.effective is None:
        raise RuntimeError("the audit gave no bound")
    return answer.lower, truth, answer.distance, answer.effective


def _row(method: str, answers: list[tuple[float, float, float, float]]) -> dict[str, Any]:
    bound, truth, distance, effective = (np.array(x) for x in zip(*answers, strict=True))
    misses = int(np.sum(bound > truth))
    low, high = np.quantile(bound, [0.005, 0.995])
    typical = bool(low - 0.01 <= PUBLISHED <= high + 0.01)
    return {
        "figure": "lower bound on coverage over three ranges",
        "method": method,
        "published": PUBLISHED if method == "unscaled" else None,
        "ours": round(float(bound.mean()), 4),
        "monte_carlo_error": round(float(bound.std(ddof=1)), 4),
        "range": [round(float(low), 4), round(float(high), 4)],
        "truth": round(float(truth.mean()), 4),
        "misses": misses,
        "sets": len(bound),
        "distance": round(float(distance.mean()), 4),
        "effective_rows": round(float(effective.mean())),
        "agrees": not_above(misses, len(bound), 1 - LEVEL) and (typical or method == "rescaled"),
    }


if __name__ == "__main__":
    main("figure 8", run)
