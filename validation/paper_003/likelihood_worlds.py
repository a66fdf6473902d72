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


def write(name: str, result: dict[str, Any]) -> dict[str, Any]:
    """Write a result beside the script and hand it back."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(result, indent=1, allow_nan=False) + "\n"
    (RESULTS / f"{name}.json").write_text(text, encoding="utf-8")
    return result


def main(name: str, run: Callable[[bool], dict[str, Any]]) -> None:
    """Run one script from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="as many replicates as published")
    result = run(parser.parse_args().full)
    json.dump(result, sys.stdout, indent=1)
    print(f"\n{name}: {'agrees' if result['agrees'] else 'DIFFERS'}")
