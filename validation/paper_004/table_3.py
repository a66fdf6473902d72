"""Table 3: coverage of 95 % intervals for the between-group variance.

The three published estimators, and beside them the Q-profile interval of meta-analysis and the
interval recommended here. The Q-profile answers for a population of groups, so with spread between
the groups it is wide by design.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import agreed, main, standard_error, within_band, write
from spread_worlds import SEED, scenarios

from equipoise.methods.spread import (
    Interval,
    Meta,
    bootstrap_draws,
    published_intervals,
    sample_from_sums,
    weigh,
)
from equipoise.methods.spread.recommended import recommended_interval
from equipoise.methods.spread.variance import q_profile_interval

PUBLISHED = {
    "equal size, equal performance": (0.0, 0.0, 0.997),
    "unequal size, equal performance": (0.0, 0.0, 0.993),
    "equal size, unequal performance": (0.154, 0.676, 0.949),
    "unequal size, unequal performance": (0.104, 0.604, 0.930),
}
ESTIMATORS = ("uncorrected", "single_corrected", "double_corrected")
REPLICATES = 1000
RESAMPLES = 500


def run(full: bool = False) -> dict[str, Any]:
    """Reproduce the table and extend it."""
    replicates, ours = (REPLICATES, REPLICATES) if full else (300, 80)
    rng = np.random.default_rng(SEED)
    rows = []
    for name, (size, rate) in scenarios().items():
        # Equal rates have a variance of rounding size, which is zero.
        truth = 0.0 if np.ptp(rate) == 0 else float(np.var(rate, ddof=1))
        hits, widths = _simulate(size, rate, truth, replicates, ours, rng)
        rows += _published_rows(name, hits, widths)
        rows += _extended_rows(name, truth, hits, widths)
    result = {"source": "Table 3", "replicates": replicates, "rows": rows, "agrees": agreed(rows)}
    return write(__file__, "table_3", result, full)


def _simulate(size, rate, truth, replicates, ours, rng):  # type: ignore[no-untyped-def]
    hits: dict[str, list[bool]] = {}
    widths: dict[str, list[float]] = {}

    def note(kind: str, ends: Interval) -> None:
        hits.setdefault(kind, []).append(ends.lower <= truth <= ends.upper)
        widths.setdefault(kind, []).append(ends.upper - ends.lower)

    for replicate in range(replicates):
        total = rng.binomial(size, rate).astype(np.float64)
        sample = sample_from_sums(size, total, binary=True)
        draws = bootstrap_draws(sample, RESAMPLES, rng)
        for kind, ends in published_intervals(sample, draws, 0.95).items():
            note(kind, ends)
        note("q_profile", q_profile_interval(sample, 0.95))
        # The recommended interval costs ten times the others; the quick run samples it.
        if replicate < ours:
            evidence = weigh(sample, level=0.95, resamples=RESAMPLES, rng=rng)
            ends = recommended_interval(sample, Meta.VARIANCE, evidence, draws)
            if ends is not None:
                note("recommended", ends)
    return hits, widths


def _published_rows(name, hits, widths):  # type: ignore[no-untyped-def]
    rows = []
    for kind, published in zip(ESTIMATORS, PUBLISHED[name], strict=True):
        share, count = float(np.mean(hits[kind])), len(hits[kind])
        # Both figures carry Monte-Carlo error, the published one from 1000 replicates.
        error = (standard_error(share, count) ** 2 + standard_error(published, 1000) ** 2) ** 0.5
        rows.append(
            {
                "scenario": name,
                "interval": kind,
                "published": published,
                "ours": round(share, 4),
                "monte_carlo_error": round(standard_error(share, count), 4),
                "mean_width": float(np.mean(widths[kind])),
                "agrees": abs(share - published) <= 3.3 * error,
            }
        )
    return rows


def _extended_rows(name, truth, hits, widths):  # type: ignore[no-untyped-def]
    rows = []
    nominal = 0.975 if truth == 0 else 0.95
    for kind in ("q_profile", "recommended"):
        count, found = len(hits[kind]), int(np.sum(hits[kind]))
        agrees = within_band(found, count, nominal) if kind == "recommended" else None
        rows.append(
            {
                "scenario": name,
                "interval": kind,
                "published": None,
                "nominal": nominal,
                "ours": round(found / count, 4),
                "monte_carlo_error": round(standard_error(found / count, count), 4),
                "mean_width": float(np.mean(widths[kind])),
                "agrees": agrees,
            }
        )
    return rows


if __name__ == "__main__":
    main("table 3", run)
