"""Figures 3, 4 and 5: where estimates of the between-group variance lie, and their resamples.

Figure 3 is a histogram over 1000 samples: the plain estimate lies above the truth, the corrected
one around it. Figures 4 and 5 are histograms of resamples of one sample: the plain and the
corrected variance lie above the truth, and only the double-corrected interval contains it. One
sample is luck, so the share of samples in which an interval contains the truth is in Table 3; here
it is the middle of the resamples that is compared, averaged over samples. The pictures print no
numbers.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import agreed, main, write
from spread_worlds import SEED, scenarios

from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.spread import (
    Meta,
    bootstrap_draws,
    meta_metric,
    published_intervals,
    sample_from_sums,
)
from equipoise.methods.spread.variance import sample_variance

ESTIMATORS = ("uncorrected", "single_corrected", "double_corrected")


def run(full: bool = False) -> dict[str, Any]:
    """Bias of the estimates, and of the resamples."""
    rng = np.random.default_rng([SEED, 3])
    samples = 1000 if full else 200
    rows = [
        row
        for name, (size, rate) in scenarios().items()
        for row in (*_estimates(name, size, rate, samples, rng), *_resamples(name, size, rate, rng))
    ]
    result = {"source": "Figures 3, 4 and 5", "rows": rows, "agrees": agreed(rows)}
    return write(__file__, "figures_3_5", result, full)


def _truth(rate: FloatArray) -> float:
    return 0.0 if np.ptp(rate) == 0 else float(np.var(rate, ddof=1))


def _estimates(
    name: str, size: IntArray, rate: FloatArray, samples: int, rng: np.random.Generator
) -> list[dict[str, Any]]:
    found = []
    for _ in range(samples):
        sample = sample_from_sums(size, rng.binomial(size, rate).astype(float), binary=True)
        plain = float(meta_metric(Meta.VARIANCE, sample.mean))
        found.append((plain, sample_variance(sample, unbiased=False)))
    bias = np.mean(found, axis=0) - _truth(rate)
    error = np.std(found, axis=0, ddof=1) / np.sqrt(samples)
    # Y(1 − Y)/n is too small by 1/n on average, which is far below a histogram's bar.
    noise = float(np.mean(rate * (1 - rate) / size**2))
    return [
        _row("Figure 3", name, "uncorrected", "above the truth", bias[0], error[0], bias[0] > 0),
        _row(
            *("Figure 3", name, "single_corrected", "at the truth", bias[1], error[1]),
            abs(bias[1] - noise) <= 3.3 * error[1],
        ),
    ]


def _resamples(
    name: str, size: IntArray, rate: FloatArray, rng: np.random.Generator
) -> list[dict[str, Any]]:
    truth, found = _truth(rate), []
    for _ in range(40):
        sample = sample_from_sums(size, rng.binomial(size, rate).astype(float), binary=True)
        ends = published_intervals(sample, bootstrap_draws(sample, 500, rng), 0.95)
        found.append([(ends[kind].raw_lower + ends[kind].upper) / 2 - truth for kind in ESTIMATORS])
    bias = np.mean(found, axis=0)
    error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    above, nearest = "above the truth", np.argmin(np.abs(bias)) == 2
    return [
        _row("Figures 4 and 5", name, "uncorrected", above, bias[0], error[0], bias[0] > 0),
        _row("Figures 4 and 5", name, "single_corrected", above, bias[1], error[1], bias[1] > 0),
        _row(
            *("Figure 5", name, "double_corrected", "nearest to it", bias[2], error[2]),
            nearest and abs(bias[2]) < bias[0] / 4,
        ),
    ]


def _row(
    figure: str, name: str, kind: str, published: str, bias: float, error: float, agrees: Any
) -> dict[str, Any]:
    return {
        "figure": figure,
        "scenario": name,
        "estimate": kind,
        "published": published,
        "bias": float(f"{bias:.3g}"),
        "monte_carlo_error": float(f"{error:.2g}"),
        "agrees": bool(agrees),
    }


if __name__ == "__main__":
    main("figures 3, 4 and 5", run)
