"""Verdicts and output for paper 003."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PICTURES = Path(__file__).parent / "pictures"
SEED = 20260103


def picture(name: str, chart: Any) -> str:
    """Save a chart as a small SVG; where it lies, seen from the page of all results."""
    PICTURES.mkdir(exist_ok=True)
    chart.save(PICTURES / f"{name}.svg")
    return f"paper_003/pictures/{name}.svg"
