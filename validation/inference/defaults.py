"""The defaults in 10,000 worlds: bounds that miss and false flags, at most 5.5 % for 5 %.

Plain tables as people bring them: some groups, rates or a loss, everyone or everyone else as the
target. With 10,000 worlds a true 6 % cannot pass for 5 %.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from designs import Design, Rng, Rows, measured
from named import clustered, counts, first, weighted
from records import main, write

from equipoise.methods.targets import Complement, Constant, Overall

SEED, BAR = 55, 0.055
SIZES = [40, 60, 100, 150, 250, 400, 700, 1200]


def losses(name: str) -> Design:
    """Squared errors of a normal model, whose spread differs between groups."""
    where = np.repeat(np.arange(len(SIZES)), SIZES)
    scale = np.linspace(0.5, 2.0, len(SIZES))[where]

    def draw(rng: Rng) -> Rows:
        return Rows(cell=where, value=(rng.chisquare(1, where.size) - 1) * scale)

    return Design(
        name=name,
        draw=draw,
        cells=len(SIZES),
        members=np.eye(len(SIZES)),
        target=Constant(value=0.0),
        truth=np.zeros(len(SIZES)),
        zero_one=False,
    )


def designs() -> Iterator[Design]:
    """Tables as people bring them."""
    rates = [0.2, 0.3, 0.25, 0.3, 0.35, 0.3, 0.3, 0.28]
    yield counts("rates, everyone", rates, SIZES, Overall(), drawn=True)
    yield counts("rates, everyone else", rates, SIZES, Complement())
    yield counts("rates, a reference, ratio", rates[::-1], SIZES[::-1], first(8), relative=True)
    yield counts("rare rates, a known target", [0.03] * 8, SIZES, Constant(value=0.03))
    yield losses("squared errors, a known target")
    yield weighted("weights", 0.3, 8, 200, 0.7, 1.0)
    yield clustered("clusters", 150, 8, 0.3, 6, Overall(), whole=False)


def one(task: tuple[int, int]) -> dict[str, Any]:
    """One design."""
    place, worlds = task
    row = measured(list(designs())[place], worlds, [SEED, place], 2000)
    worst = max(row[name] for name in ("bounds", "above", "below", "outside"))
    return row | {"worst": worst, "bar": BAR, "agrees": worst <= BAR}


def run(full: bool = False) -> dict[str, Any]:
    """Measure them; the quick run has 300 worlds and its bar three standard errors more."""
    worlds = 10_000 if full else 300
    number = len(list(designs()))
    with ProcessPoolExecutor(max_workers=2) as pool:
        rows = list(pool.map(one, [(i, worlds) for i in range(number)]))
    if not full:
        slack = 3 * (0.05 * 0.95 / worlds) ** 0.5
        rows = [row | {"bar": BAR + slack, "agrees": row["worst"] <= BAR + slack} for row in rows]
    result = {
        "source": "defaults",
        "seed": SEED,
        "worlds": worlds,
        "rows": rows,
        "agrees": all(row["agrees"] for row in rows),
    }
    return write(__file__, "defaults", result, full)


if __name__ == "__main__":
    main("defaults", run)
