"""Figure 6: the Adult income model by race, by age band, and by both.

95 % intervals of the plain and of the double-corrected variance, on the bundled counts, beside the
recommended interval. The three published by number are the double-corrected ones for race.
"""

from __future__ import annotations

import csv
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import agreed, main, write
from spread_worlds import SEED

from equipoise.methods.spread import GroupSample, report_variance, sample_from_sums

METRICS = {
    "true positive rate": "1",
    "false positive rate": "0",
    "selection rate": None,
}
ATTRIBUTES = {"race": ("race",), "age band": ("age_band",), "both": ("race", "age_band")}
EXPECTED = {
    "true positive rate": (0.0, 0.036),
    "false positive rate": (0.00053, 0.00229),
    "selection rate": (0.0037, 0.0102),
}


def run(full: bool = False) -> dict[str, Any]:
    """Compute every interval of the figure."""
    resamples = 100_000 if full else 10_000
    rng = np.random.default_rng(SEED)
    counts = _counts()
    rows = [
        _row(counts, metric, label, resamples, rng) for metric in METRICS for label in ATTRIBUTES
    ]
    result = {"source": "Figure 6", "resamples": resamples, "rows": rows, "agrees": agreed(rows)}
    return write(__file__, "figure_6", result, full)


def _counts() -> list[dict[str, str]]:
    path = resources.files("equipoise") / "datasets" / "adult_predictions.csv"
    with path.open(encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def _sample(
    counts: list[dict[str, str]], outcome: str | None, keys: tuple[str, ...]
) -> tuple[GroupSample, list[str]]:
    levels = sorted({tuple(row[key] for key in keys) for row in counts})
    place = {level: i for i, level in enumerate(levels)}
    size, total = np.zeros(len(levels), dtype=np.int64), np.zeros(len(levels))
    for row in counts:
        if outcome is None or row["high_income"] == outcome:
            group = place[tuple(row[key] for key in keys)]
            size[group] += int(row["n"])
            total[group] += int(row["n"]) * int(row["high_income_predicted"])
    return sample_from_sums(size, total, binary=True), [" × ".join(level) for level in levels]


def _row(
    counts: list[dict[str, str]],
    metric: str,
    label: str,
    resamples: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    sample, names = _sample(counts, METRICS[metric], ATTRIBUTES[label])
    report = report_variance(sample, rng=rng, resamples=resamples)
    expected = EXPECTED[metric] if label == "race" else None
    ours = (report.double_corrected.lower, report.double_corrected.upper)
    return {
        "metric": metric,
        "attribute": label,
        "groups": sample.groups,
        "left_out": [
            f"{names[i]}: {why}" for i, why in zip(sample.excluded, sample.reasons, strict=True)
        ],
        "published": expected,
        "double_corrected": ours,
        "double_corrected_before_cutting": report.double_corrected.raw_lower,
        "uncorrected": (report.uncorrected.lower, report.uncorrected.upper),
        "recommended": (report.interval.lower, report.interval.upper),
        "recommended_sd": (report.sd_interval.lower, report.sd_interval.upper),
        "p_no_spread": report.p_zero,
        "corrected": report.corrected_raw,
        "q_profile": (report.q_profile.lower, report.q_profile.upper),
        # The expected ends are known to two or three figures.
        "agrees": None if expected is None else bool(np.allclose(ours, expected, 0.03, 2e-5)),
    }


if __name__ == "__main__":
    main("figure 6", run)
