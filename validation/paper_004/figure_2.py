"""Figure 2: upward bias of the six meta-metrics, before and after correction.

Five thousand rows in K equal groups, true rates equally spaced from a lower bound to 0.9. The paper
prints curves, not numbers: what must agree is their sign and that they rise with K.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import main, write
from spread_worlds import SEED

from equipoise.methods.spread import Meta, bootstrap_draws, meta_metric, sample_from_sums
from equipoise.methods.spread.recommended import corrected_value

GROUPS = (5, 10, 25, 50, 100, 150)
LOWER_BOUNDS = (0.5, 0.7, 0.9)
ROWS = 5000
REPLICATES = 1000


def run(full: bool = False) -> dict[str, Any]:
    """Simulate the bias curves."""
    replicates, resamples = (REPLICATES, 500) if full else (200, 200)
    rng = np.random.default_rng(SEED)
    rows = []
    for bound in LOWER_BOUNDS:
        for groups in GROUPS:
            rows += _point(bound, groups, replicates, resamples, rng)
    verdicts = _verdicts(rows)
    result = {
        "source": "Figure 2",
        "replicates": replicates,
        "published": "every plug-in value is biased upwards, the more the more groups there are",
        "rows": rows,
        "checks": verdicts,
        "agrees": all(verdicts.values()),
    }
    return write(__file__, "figure_2", result, full)


def _point(bound, groups, replicates, resamples, rng):  # type: ignore[no-untyped-def]
    size = np.full(groups, round(ROWS / groups))
    rate = np.linspace(bound, 0.9, groups)
    errors: dict[Meta, list[tuple[float, float, float]]] = {kind: [] for kind in Meta}
    for _ in range(replicates):
        sample = sample_from_sums(size, rng.binomial(size, rate).astype(float), binary=True)
        draws = bootstrap_draws(sample, resamples, rng)
        for kind in Meta:
            truth = float(meta_metric(kind, rate))
            plain = float(meta_metric(kind, sample.mean)) - truth
            corrected = corrected_value(sample, kind, draws)
            once = np.nan if corrected is None else corrected - truth
            cut = np.nan if corrected is None else max(once, -truth + (kind is Meta.RATIO))
            errors[kind].append((plain, once, cut))
    return [_row(kind, bound, groups, np.array(errors[kind])) for kind in Meta]


def _row(kind, bound, groups, errors):  # type: ignore[no-untyped-def]
    usable = errors[np.isfinite(errors).all(axis=1)]
    mean = usable.mean(axis=0)
    error = usable.std(axis=0, ddof=1) / np.sqrt(len(usable))
    return {
        "meta_metric": kind.value,
        "lower_bound": bound,
        "groups": groups,
        "bias_before": float(mean[0]),
        "bias_after": float(mean[1]),
        "bias_after_cut_at_zero": float(mean[2]),
        "monte_carlo_error": [float(x) for x in error],
        "replicates_with_a_finite_value": len(usable),
    }


def _verdicts(rows: list[dict[str, Any]]) -> dict[str, bool]:
    upwards = all(row["bias_before"] > -3.3 * row["monte_carlo_error"][0] for row in rows)
    rising = all(_end(rows, kind, bound)["rises"] for kind in Meta for bound in LOWER_BOUNDS)
    # The correction may overshoot by a little where there is next to nothing to correct.
    smaller = all(
        abs(row["bias_after"]) <= abs(row["bias_before"]) + 3.3 * row["monte_carlo_error"][1]
        for row in rows
    )
    unbiased = all(
        abs(row["bias_after"]) <= 3.6 * row["monte_carlo_error"][1]
        for row in rows
        if row["meta_metric"] == Meta.VARIANCE.value
    )
    return {
        "plug-in values are biased upwards": upwards,
        "the bias rises with the number of groups": rising,
        "the correction makes every bias smaller": smaller,
        "the corrected variance is unbiased": unbiased,
    }


def _end(rows: list[dict[str, Any]], kind: Meta, bound: float) -> dict[str, bool]:
    curve = [r for r in rows if r["meta_metric"] == kind.value and r["lower_bound"] == bound]
    return {"rises": curve[-1]["bias_before"] > curve[0]["bias_before"]}


if __name__ == "__main__":
    main("figure 2", run)
