"""What the tests of failures share: a small table, a plan over it, and what must not be shown."""

import traceback
from pathlib import Path

import polars as pl
import pytest

import equipoise as eq

SECRET = "hunter2%40home"
PLAIN = "hunter2@home"
ROWS = 400
CLAIM = eq.gap("accuracy", across="g")
ROLES = {"label": "y", "prediction": "d"}

PLAN = """
equipoise: 1
title: Decisions
seed: 7
trail: {source: SOURCE, table: TABLE, label: y, prediction: d}
audits:
  - audit: certify
    claim: {kind: gap, metric: accuracy, across: [g]}
    tolerance: 0.4
  - audit: flag
    claim: {kind: gap, metric: false_positive_rate, across: [g]}
"""


def small_table(rows: int = ROWS) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "y": [i % 2 for i in range(rows)],
            "d": [(i // 2) % 2 for i in range(rows)],
            "g": ["ab"[(i // 4) % 2] for i in range(rows)],
        }
    )


def write_plan(folder: Path, source: str, table: str = "failing") -> Path:
    path = folder / "audit.yaml"
    path.write_text(PLAN.replace("SOURCE", f'"{source}"').replace("TABLE", table))
    return path


def said(error: BaseException) -> str:
    """Everything that a traceback would show."""
    return "".join(traceback.format_exception(error))


def refused(url: str, table: str | None, *words: str) -> None:
    with pytest.raises(eq.TrailError) as caught:
        eq.describe(eq.read(url, table=table, **ROLES), CLAIM)
    for word in words:
        assert word in str(caught.value)
    assert SECRET not in said(caught.value)
    assert PLAIN not in said(caught.value)
