"""Worlds, verdicts and output shared by the scripts that reproduce paper 004."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import bdtr, bdtrc

from equipoise.methods.arrays import FloatArray, IntArray

RESULTS = Path(__file__).parent / "results"
SEED = 20220621

World = tuple[IntArray, FloatArray]


def scenarios() -> dict[str, tuple[IntArray, FloatArray]]:
    """Return sizes and true rates of the paper's Table 2."""
    step = np.arange(100) / 99
    equal = np.full(100, 50)
    unequal = np.round(10 + 80 * step).astype(np.int64)
    same, apart = np.full(100, 0.8), 0.1 + 0.8 * step
    return {
        "equal size, equal performance": (equal, same),
        "unequal size, equal performance": (unequal, same),
        "equal size, unequal performance": (equal, apart),
        "unequal size, unequal performance": (unequal, apart),
    }


def standard_error(share: float, count: int) -> float:
    """Monte-Carlo error of a share, never zero."""
    share = min(max(share, 1 / (count + 2)), 1 - 1 / (count + 2))
    return math.sqrt(share * (1 - share) / count)


def within_band(hits: int, count: int, nominal: float, error: float = 1e-3) -> bool:
    """Whether a coverage count lies in the binomial band of the nominal coverage."""
    low = float(bdtr(hits, count, nominal))
    high = 1.0 if hits == 0 else float(bdtrc(hits - 1, count, nominal))
    return low > error / 2 and high > error / 2


def not_below(hits: int, count: int, nominal: float, error: float = 1e-3) -> bool:
    """Whether a coverage count is compatible with at least the nominal coverage."""
    return float(bdtr(hits, count, nominal)) > error


def main(name: str, run: Callable[[bool], dict[str, Any]]) -> None:
    """Run one script from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="as many replicates as published")
    result = run(parser.parse_args().full)
    json.dump(result, sys.stdout, indent=1)
    print(f"\n{name}: {'agrees' if result['agrees'] else 'DIFFERS'}")


def write(name: str, result: dict[str, Any]) -> dict[str, Any]:
    """Write a result beside the script and hand it back."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(result, indent=1, allow_nan=False) + "\n"
    (RESULTS / f"{name}.json").write_text(text, encoding="utf-8")
    return result
