"""What every validation script shares: how it is run, what is kept, and the binomial bands."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from scipy.special import bdtr, bdtrc


def main(name: str, run: Callable[[bool], dict[str, Any]]) -> None:
    """Run one script from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="as many replicates as published")
    result = run(parser.parse_args().full)
    json.dump(result, sys.stdout, indent=1)
    print(f"\n{name}: {'agrees' if result['agrees'] else 'DIFFERS'}")
    print("python validation/run.py --page renews the pages that quote it", file=sys.stderr)


def write(script: str, name: str, result: dict[str, Any], full: bool) -> dict[str, Any]:
    """Write a result beside its script; a quick run never replaces a full one.

    A script that has nothing to leave out in a quick run says that it is always full.
    """
    path = Path(script).parent / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    kept = path.exists() and json.loads(path.read_text(encoding="utf-8")).get("full", False)
    result = {**result, "full": full}
    if full or not kept:
        path.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return result


def agreed(rows: Iterable[dict[str, Any]]) -> bool:
    """Whether every row that is judged agrees."""
    return all(row["agrees"] for row in rows if row["agrees"] is not None)


def standard_error(share: float, count: int) -> float:
    """Monte-Carlo error of a share, never zero."""
    share = min(max(share, 1 / (count + 2)), 1 - 1 / (count + 2))
    return math.sqrt(share * (1 - share) / count)


def not_above(hits: int, count: int, nominal: float, error: float = 1e-3) -> bool:
    """Whether a number of errors is compatible with at most the nominal rate."""
    return hits == 0 or float(bdtrc(hits - 1, count, nominal)) > error


def not_below(hits: int, count: int, nominal: float, error: float = 1e-3) -> bool:
    """Whether a number of hits is compatible with at least the nominal rate."""
    return float(bdtr(hits, count, nominal)) > error


def within_band(hits: int, count: int, nominal: float, error: float = 1e-3) -> bool:
    """Whether a number of hits is compatible with exactly the nominal rate."""
    half = error / 2
    return not_above(hits, count, nominal, half) and not_below(hits, count, nominal, half)


def most(count: int, nominal: float, error: float = 1e-3) -> int:
    """The largest number of errors that is compatible with the nominal rate."""
    return next(k for k in range(count + 1) if float(bdtrc(k, count, nominal)) < error)
