"""Several answers to each item: flags with items as clusters, and as if rows were independent.

    python validation/inference/epochs.py [--full]

Six groups of items that are all alike; every item has five answers, which are right with a chance
of its own. Promised: any flag at all in 5 % of the worlds.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from records import agreed, main, standard_error, write

import equipoise as eq

SEED, ERROR = 20_271_201, 0.05
EPOCHS, GROUPS = 5, 6
DESIGNS = {
    "200 items, chances far apart": (200, 0.4),
    "200 items, chances near one half": (200, 3.0),
    "60 items, chances far apart": (60, 0.4),
}


def run(full: bool = False) -> dict[str, Any]:
    """Count flags; ``full`` takes 1000 worlds instead of 40."""
    worlds = 1000 if full else 40
    with ProcessPoolExecutor(max_workers=2) as pool:
        rows = list(pool.map(_row, DESIGNS, [worlds] * len(DESIGNS)))
    result = {
        "source": "several answers to each item, six groups that are all alike",
        "nominal": ERROR,
        "rows": rows,
        "agrees": agreed(rows),
    }
    return write(__file__, "epochs", result, full)


def _row(name: str, worlds: int) -> dict[str, Any]:
    items, shape = DESIGNS[name]
    flagged = {"clusters": 0, "independent": 0}
    claim = eq.gap("selection_rate", across="group")
    for world in range(worlds):
        rng = np.random.default_rng([SEED, *name.encode(), world])
        chance = np.repeat(rng.beta(shape, shape, items), EPOCHS)
        table = pl.DataFrame(
            {
                "item": np.repeat(np.arange(items), EPOCHS),
                "group": [f"g{i % GROUPS}" for i in range(items) for _ in range(EPOCHS)],
                "right": (rng.random(items * EPOCHS) < chance).astype(int),
            }
        )
        for how, cluster in (("clusters", "item"), ("independent", None)):
            trail = eq.read(table, prediction="right", attributes=["group"], cluster=cluster)
            flagged[how] += bool(eq.flag(trail, claim, fdr=ERROR, rng=world).flagged)
    most = ERROR + 0.01 + 3 * standard_error(ERROR + 0.01, worlds)
    return {
        "design": name,
        "worlds": worlds,
        "items_as_clusters": round(flagged["clusters"] / worlds, 4),
        "rows_as_independent": round(flagged["independent"] / worlds, 4),
        "most": round(most, 4),
        "agrees": flagged["clusters"] / worlds <= most,
    }


if __name__ == "__main__":
    main("answers to items", run)
