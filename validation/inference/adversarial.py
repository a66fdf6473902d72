"""200 random designs × 1000 worlds: the worst ten, and none beyond nominal + 1 point.

    python validation/inference/adversarial.py [--full]

The seed of a run is the day on which it is made, so that next month's is a new examination.
"""

from __future__ import annotations

import datetime
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from designs import measured, random_design, verdict
from records import main, write

DRAWS = 1000
"""Draws of the joint law in each world; fewer than the default, for time."""


def one(task: tuple[int, int, int]) -> dict[str, Any]:
    """One design."""
    number, worlds, seed = task
    design = random_design(number, seed)
    row = verdict(measured(design, worlds, [seed, number, 1], DRAWS))
    if not row["agrees"]:
        print(f"{row['worst']:.3f} {row['design']}", file=sys.stderr, flush=True)
    return row


def run(full: bool = False) -> dict[str, Any]:
    """Examine the designs; ``full`` takes 200 of 1000 worlds instead of 20 of 100."""
    seed = int(os.environ.get("EQUIPOISE_SEED") or f"{datetime.date.today():%Y%m%d}")
    designs, worlds = (200, 1000) if full else (20, 100)
    with ProcessPoolExecutor(max_workers=2) as pool:
        rows = list(pool.map(one, [(i, worlds, seed) for i in range(designs)]))
    rows.sort(key=lambda row: -row["worst"])
    result = {
        "source": "random designs",
        "seed": seed,
        "designs": designs,
        "worlds": worlds,
        "pooled": {
            name: sum(row[name] for row in rows) / len(rows)
            for name in ("bounds", "above", "below", "outside", "answered")
        },
        "rows": rows,
        "agrees": all(row["agrees"] for row in rows),
    }
    return write(__file__, "adversarial", result, full)


if __name__ == "__main__":
    main("adversarial", run)
