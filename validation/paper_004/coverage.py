"""Coverage of the intervals recommended by default, at zero and at positive spreads.

Nominal 95 %. The variance should cover in the binomial band of 95 % where the groups differ and of
97.5 % where they do not (a two-sided interval at the boundary can err on one side only). The bounds
for extremes, for the mean absolute deviation and for small spreads guarantee at least that.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import main, not_below, standard_error, within_band, write
from spread_worlds import SEED, World, scenarios

from equipoise.methods.spread import (
    Meta,
    bootstrap_draws,
    meta_metric,
    sample_from_sums,
    summarize_spread,
    weigh,
)
from equipoise.methods.spread.sample import no_spread

FEW = np.array([40, 60, 130, 400, 4000])
ONE_TINY = np.array([20, 300, 300, 300, 400, 500, 600, 800, 900])


def worlds() -> dict[str, World]:
    """Return sizes and true rates of every world, published and beyond."""
    step = np.arange(100)
    unequal = np.round(10 + 80 * step / 99).astype(np.int64)
    half = np.where(step < 50, 0.5, np.where(step % 2, 0.7, 0.3))
    return {
        **scenarios(),
        "100 groups, small spread": (unequal, 0.8 + 0.03 * np.where(step % 2, 1, -1)),
        "100 groups, half of them alike": (np.full(100, 50), half),
        "5 unequal groups, no spread": (FEW, np.full(5, 0.6)),
        "5 unequal groups, spread": (FEW, np.array([0.4, 0.5, 0.6, 0.7, 0.65])),
        "5 equal groups, spread": (np.full(5, 1000), np.array([0.4, 0.5, 0.6, 0.7, 0.65])),
        "5 equal groups, one apart": (np.full(5, 500), np.array([0.7, 0.6, 0.6, 0.6, 0.6])),
        "10 groups, rare event, no spread": (np.full(10, 50), np.full(10, 0.02)),
        "10 groups, rare event, spread": (np.full(10, 50), np.linspace(0.01, 0.1, 10)),
        "2 groups, spread": (np.full(2, 300), np.array([0.5, 0.6])),
        "2 groups, 40 and 900 rows": (np.array([40, 900]), np.array([0.5, 0.65])),
        "4 very unequal groups": (np.array([30, 60, 500, 5000]), np.array([0.3, 0.5, 0.45, 0.6])),
        "9 groups, a tiny one apart": (ONE_TINY, np.array([0.2, *[0.5] * 5, 0.52, 0.5, 0.48])),
        "4 tiny groups, no spread": (np.array([3, 5, 9, 30]), np.full(4, 0.5)),
        "7 tiny groups, no spread": (np.array([2, 3, 4, 5, 8, 12, 20]), np.full(7, 0.7)),
    }


def run(full: bool = False) -> dict[str, Any]:
    """Count how often each recommended interval contains the truth."""
    rng = np.random.default_rng(SEED)
    rows = []
    for name, (size, rate) in worlds().items():
        many = size.size > 50
        replicates = (500 if many else 1000) if full else (60 if many else 200)
        rows += _world(name, size, rate, replicates, 500, rng)
    result = {
        "source": "recommended defaults",
        "rows": rows,
        "below_nominal": [r for r in rows if not r["at_least_nominal"]],
        "agrees": all(r["at_least_nominal"] for r in rows),
    }
    return write(__file__, "coverage", result, full)


def _world(name, size, rate, replicates, resamples, rng):  # type: ignore[no-untyped-def]
    hits = dict.fromkeys(Meta, 0)
    percentile = 0
    alike = np.ptp(rate) == 0
    known = {kind: no_spread(kind) if alike else float(meta_metric(kind, rate)) for kind in Meta}
    counted = 0
    for _ in range(replicates):
        sample = sample_from_sums(size, rng.binomial(size, rate).astype(float), binary=True)
        if sample.frozen:
            continue
        counted += 1
        draws = bootstrap_draws(sample, resamples, rng)
        low, high = np.quantile(meta_metric(Meta.DIFFERENCE, draws.mean), [0.025, 0.975])
        percentile += bool(low <= known[Meta.DIFFERENCE] <= high)
        evidence = weigh(sample, level=0.95, resamples=resamples, rng=rng)
        for kind in Meta:
            ends = summarize_spread(sample, kind, draws=draws, evidence=evidence).interval
            slack = 1e-12
            hits[kind] += bool(
                ends is not None and ends.lower - slack <= known[kind] <= ends.upper + slack
            )
    rows = [_row(name, kind, known[kind], hits[kind], counted) for kind in Meta]
    rows[0]["percentile_bootstrap"] = percentile / counted
    return rows


def _row(name, kind, truth, hits, count):  # type: ignore[no-untyped-def]
    nominal = 0.975 if truth == no_spread(kind) else 0.95
    return {
        "world": name,
        "meta_metric": kind.value,
        "truth": truth,
        "nominal": nominal,
        "ours": round(hits / count, 4),
        "worlds_counted": count,
        "monte_carlo_error": round(standard_error(hits / count, count), 4),
        "in_band": within_band(hits, count, nominal),
        "at_least_nominal": not_below(hits, count, nominal),
    }


if __name__ == "__main__":
    main("coverage", run)
