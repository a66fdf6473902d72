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


# As published these two do not allow for noise that folds share, and exceed their level at the edge
# of the tolerance; power bought that way is not compared. Their corrected forms are.
BEYOND_THEIR_LEVEL = ("cusum-published", "simple-score", "cusum-standardised, uncorrected")


def judged_rows() -> list[dict[str, Any]]:
    judged = [row for row in stored("figure_2")["rows"] if row.get("not_beaten") is not None]
    return [row for row in judged if row["method"] not in BEYOND_THEIR_LEVEL]


def test_no_test_that_holds_its_level_beats_that_of_the_paper() -> None:
    """The adaptive CUSUM is highest in every cell, beyond three errors of a difference."""
    fair = judged_rows()
    assert {row["method"] for row in fair} >= {"simple-score, corrected", "multicalibration"}
    assert len(fair) >= 8 * 3

    def cell(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["audited"], row["tolerance"], row["n"]

    papers = {cell(row): row for row in fair if row["method"] == "cusum"}
    for row in fair:
        own, other, n = papers[cell(row)]["power"], row["power"], row["replicates"]
        error = np.sqrt((own * (1 - own) + other * (1 - other)) / n)
        assert other - own <= 3 * error + 1 / n, row


@pytest.mark.xfail(
    strict=True,
    reason="known defect: what models learn has too small a part of the portfolio's error, so that "
    "the paper's own test, and others, find more than the default in the paper's worlds",
)
def test_no_test_that_holds_its_level_beats_the_default() -> None:
    assert all(row["not_beaten"] for row in judged_rows())


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
