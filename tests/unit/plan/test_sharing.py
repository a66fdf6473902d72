"""The group audits of a plan share one scan, and nothing else changes."""

import importlib
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.plan import Plan, run

PLAN = """
equipoise: 1
seed: 7
trail: {source: decisions.csv, label: y, prediction: d, score: s}
audits:
  - {audit: flag, claim: {kind: gap, metric: false_positive_rate, across: [g, h]}}
  - audit: certify
    claim: {kind: gap, metric: false_positive_rate, across: [g, h]}
    tolerance: 0.3
  - {audit: certify, name: odds, claim: {kind: together, name: equalized odds, claims: [
      {kind: gap, metric: false_positive_rate, across: [g]},
      {kind: gap, metric: true_positive_rate, across: [g]}]}}
  - {audit: describe, claim: {kind: gap, metric: brier, across: [h]}}
  - {audit: joint_test, claim: {kind: gap, metric: accuracy, across: [g]}}
  - {audit: summarize, metric: selection_rate, across: [g], resamples: 50}
  - {audit: compare, metric: selection_rate, across: [g, h], resamples: 50}
"""

# the package shows the function of this name
sharing = import_module("equipoise.plan.run")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(11)
    rows = 500
    pl.DataFrame(
        {
            "y": rng.integers(0, 2, rows),
            "d": rng.integers(0, 2, rows),
            "s": rng.random(rows).round(3),
            "g": rng.choice(["a", "b", "c"], rows),
            "h": rng.choice(["x", "y"], rows),
        }
    ).write_csv(tmp_path / "decisions.csv")
    return tmp_path


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every query that gathering sends to an engine."""
    gather: Any = importlib.import_module("equipoise.cells.gather")
    sent: list[str] = []
    fetch = gather.fetch

    def counted(frame: Any, source: str) -> Any:
        sent.append(source)
        return fetch(frame, source)

    monkeypatch.setattr(gather, "fetch", counted)
    return sent


def test_all_group_audits_share_one_scan(folder: Path, scans: list[str]) -> None:
    shared = run(Plan.parse(PLAN), folder=folder)
    assert len(scans) == 1
    assert len(shared.entries) == 7


def test_sharing_changes_no_number(
    folder: Path, scans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = run(Plan.parse(PLAN), folder=folder)
    scans.clear()
    # too few cells allowed: first one scan for audits that cut alike, then one for each
    monkeypatch.setattr(sharing, "MOST_CELLS", 1)
    alone = run(Plan.parse(PLAN), folder=folder)
    assert len(scans) > 7
    assert [entry.finding for entry in shared.entries] == [e.finding for e in alone.entries]


def test_audits_that_cut_alike_share_where_all_together_cut_too_finely(
    folder: Path, scans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan.parse(PLAN)
    wanted = run(plan, folder=folder)
    scans.clear()
    # 24 cells with g, h, label and prediction; 12 with g
    monkeypatch.setattr(sharing, "MOST_CELLS", 12)
    found = run(plan, folder=folder)
    assert len(scans) < 10
    assert [e.finding for e in found.entries] == [e.finding for e in wanted.entries]


def test_one_bad_audit_is_named_and_does_not_hide_behind_the_others(folder: Path) -> None:
    bad = PLAN.replace("metric: brier, across: [h]", "metric: brier, across: [nowhere]")
    with pytest.raises(eq.TrailError, match=r"^describe: .*nowhere"):
        run(Plan.parse(bad), folder=folder)
