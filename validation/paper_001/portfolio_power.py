"""Power of the portfolio in six worlds, beside the tests made for each and the adaptive CUSUM."""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

import polars as pl
from power_worlds import INPUTS, WORLDS, draw, specialised
from records import main, write

import equipoise as eq

SEED, ROWS, ERROR = 20_270_101, 1000, 0.10
DRAWS = 499
NEAR = 0.05
"""How far the portfolio may stay behind the best test made for a world."""


def run(full: bool = False) -> dict[str, Any]:
    """Power at tolerance 0; the adaptive CUSUM with folds, far slower, in fewer worlds."""
    worlds, folded = (100, 100) if full else (40, 6)
    with ProcessPoolExecutor(max_workers=2) as pool:
        rows = list(pool.map(_row, [(world, worlds, folded) for world in WORLDS]))
    result = {
        "source": f"Power in six worlds, {ROWS} rows, seven inputs, tolerance 0, error {ERROR}",
        "note": f"{worlds} worlds each, the adaptive CUSUM with folds in the first {folded}",
        "rows": rows,
        "agrees": all(row["agrees"] for row in rows),
    }
    return write(__file__, "portfolio_power", result, full)


def _row(task: tuple[str, int, int]) -> dict[str, Any]:
    world, worlds, folded = task
    found: dict[str, list[bool]] = {}
    for i in range(worlds):
        rng = np.random.default_rng([SEED, list(WORLDS).index(world), i])
        table = draw(world, ROWS, rng)
        p = {"portfolio": _p(table, i)} | specialised(table, DRAWS, rng)
        p["platt"] = _p(table, i, method="platt")
        if i < folded:
            p["cusum"] = _p(table, i, method="cusum")
        for name, value in p.items():
            found.setdefault(name, []).append(value <= ERROR)
    power = {name: float(np.mean(hits)) for name, hits in found.items()}
    special = {name: value for name, value in power.items() if name not in ("portfolio", "cusum")}
    best = max(special, key=lambda name: special[name])
    behind = power[best] - power["portfolio"]
    # of two tests in the same worlds, only those in which they disagree tell them apart
    apart = np.array(found[best]) != np.array(found["portfolio"])
    error = max(float(apart.mean()) ** 0.5, 1 / worlds) / worlds**0.5
    print(f"{world}: {power}", file=sys.stderr, flush=True)
    return {
        "world": WORLDS[world],
        "worlds": worlds,
        **{name.replace(" ", "_"): round(value, 3) for name, value in power.items()},
        "best": best,
        "behind": round(behind, 3),
        "monte_carlo_error": round(error, 3),
        "agrees": bool(behind <= NEAR + 1e-9 and power["portfolio"] > power["cusum"]),
    }


def _p(table: pl.DataFrame, seed: int, **options: Any) -> float:
    trail = eq.read(table, label="y", score="score")
    chosen = {"tolerance": 0.0, "resamples": DRAWS, "importance": 0, "rng": seed, **options}
    return eq.calibration(trail, features=list(INPUTS), **chosen).p


if __name__ == "__main__":
    main("portfolio power", run)
