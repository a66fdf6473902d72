"""Feng et al., testing for strong calibration: stored validation figures, and Figure 1."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.methods import cusum

RESULTS = Path(__file__).parents[2] / "validation" / "paper_001" / "results"


def stored(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", ["type_i", "segments"])
def test_error_rates_are_within_their_bands(name: str) -> None:
    judged = [row for row in stored(name)["rows"] if row["holds"] is not None]
    assert judged
    assert all(row["holds"] for row in judged)


def test_no_comparator_has_more_power_beyond_monte_carlo_error() -> None:
    judged = [row for row in stored("figure_2")["rows"] if row.get("not_beaten") is not None]
    published = [row for row in judged if not row["method"].startswith("cusum")]
    assert len(published) >= 5 * 3
    assert all(row["not_beaten"] for row in published)


def test_the_control_chart_peaks_where_the_subgroup_ends() -> None:
    # Figure 1: an early peak for a small subgroup, a late one for a large one
    rng = np.random.default_rng(1)
    n, score = 2000, np.full(2000, 0.3)
    for size in (100, 1000):
        guess = np.linspace(0.3, 0.06, n)
        outcome = (rng.random(n) < np.where(np.arange(n) < size, 0.7, 0.3)).astype(float)
        null = cusum.bernoulli_null(outcome, score, tolerance=0.05)
        statistic = cusum.cusum(cusum.violations(guess[None], null), null)
        best = statistic.best(null)
        assert best is not None
        assert abs(best.members.size - size) < 0.2 * size
