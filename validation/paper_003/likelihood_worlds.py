"""Verdicts and output for paper 003."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scipy.special import bdtr, bdtrc

RESULTS = Path(__file__).parent / "results"
PICTURES = Path(__file__).parent / "pictures"
SEED = 20260103


def standard_error(share: float, count: int) -> float:
    """Monte-Carlo error of a share, never zero."""
    share = min(max(share, 1 / (count + 2)), 1 - 1 / (count + 2))
    return math.sqrt(share * (1 - share) / count)


def within_band(hits: int, count: int, nominal: float, error: float = 1e-3) -> bool:
    """Whether a number of hits is compatible with exactly the nominal rate."""
    above = hits > 0 and float(bdtrc(hits - 1, count, nominal)) <= error / 2
    return not above and float(bdtr(hits, count, nominal)) > error / 2


def not_above(hits: int, count: int, nominal: float, error: float = 1e-3) -> bool:
    """Whether a number of errors is compatible with at most the nominal rate."""
    return hits == 0 or float(bdtrc(hits - 1, count, nominal)) > error


def write(name: str, result: dict[str, Any], full: bool) -> dict[str, Any]:
    """Write a result beside the script; a quick run never replaces a full one."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    kept = path.exists() and json.loads(path.read_text(encoding="utf-8")).get("full", False)
    result = {**result, "full": full}
    if full or not kept:
        path.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return result


def picture(name: str, chart: Any) -> str:
    """Save a chart as a small SVG; where it lies, seen from the page of all results."""
    PICTURES.mkdir(exist_ok=True)
    chart.save(PICTURES / f"{name}.svg")
    return f"paper_003/pictures/{name}.svg"


def main(name: str, run: Callable[[bool], dict[str, Any]]) -> None:
    """Run one script from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="as many replicates as published")
    result = run(parser.parse_args().full)
    json.dump(result, sys.stdout, indent=1)
    print(f"\n{name}: {'agrees' if result['agrees'] else 'DIFFERS'}")
