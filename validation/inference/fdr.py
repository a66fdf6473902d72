"""False discovery rates of groups against everyone, which partly depend negatively on each other.

What one group has more, the others have less of everyone: Benjamini and Hochberg's procedure is
proved for positive dependence only. Here some groups differ from everyone and some do not, in
designs that make the dependence as negative as it gets, and the share of false flags is averaged.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parents[1]))

from records import main, standard_error, write

from equipoise.methods.hypotheses import (
    benjamini_hochberg,
    benjamini_yekutieli,
    e_benjamini_hochberg,
)
from equipoise.methods.inference.core import core_of
from equipoise.methods.targets import Overall, plain_moments

Floats = npt.NDArray[np.float64]
SEED, RATE = 6, 0.10
CONTROLS = {
    "bh": benjamini_hochberg,
    "by": benjamini_yekutieli,
    "e-bh": e_benjamini_hochberg,
}


def designs() -> Iterator[tuple[str, Floats, Floats]]:
    """Names, sizes and rates; groups whose rate is that of everyone are true nulls."""
    for groups in (2, 3, 6):
        yield f"{groups} groups of 200, all alike", np.full(groups, 200.0), np.full(groups, 0.4)
    for groups in (3, 6, 20):
        for size in (60, 1000):
            sizes = np.full(groups, float(size))
            for far in (0.05, 0.15, 0.3):
                pairs = groups // 3 if groups > 3 else 1
                rates = np.full(groups, 0.4)
                rates[:pairs] += far
                rates[-pairs:] -= far
                yield f"{groups} groups of {size}, {pairs} up and down by {far:g}", sizes, rates
    # one group that is most of everyone: what it has more all others have less
    sizes = np.array([6000.0] + [200.0] * 8)
    for far in (0.01, 0.03):
        rates = np.full(9, 0.4)
        rates[0] += far
        rates[1:5] -= far * 6000 / 800
        yield f"a majority up by {far:g}, four of eight minorities down", sizes, rates


def one(task: tuple[int, int]) -> dict[str, Any]:
    """One design."""
    place, worlds = task
    name, sizes, rates = list(designs())[place]
    everyone = float((sizes * rates).sum() / sizes.sum())
    null = np.abs(rates - everyone) < 1e-9
    rng = np.random.default_rng([SEED, place])
    shares: dict[str, list[float]] = {control: [] for control in CONTROLS}
    found: dict[str, list[float]] = {control: [] for control in CONTROLS}
    for _ in range(worlds):
        ones = rng.binomial(sizes.astype(np.int64), rates).astype(np.float64)
        core = core_of(
            plain_moments(sizes, ones, ones, ones),
            Overall(),
            lambda x: x,
            relative=False,
            zero_one=True,
            weighted=False,
        )
        up, down = core.tails(0.0)
        p = np.minimum(2 * np.fmin(up, down), 1.0)
        for control, adjust in CONTROLS.items():
            flagged = np.nan_to_num(adjust(p), nan=1.0) <= RATE
            shares[control].append(float((flagged & null).sum()) / max(int(flagged.sum()), 1))
            found[control].append(float(flagged[~null].mean()) if not null.all() else 0.0)
    rates_found = {control: float(np.mean(x)) for control, x in shares.items()}
    worst = max(rates_found.values())
    error = standard_error(worst, worlds)
    return {
        "design": name,
        "worlds": worlds,
        "false discovery rate": {k: round(v, 4) for k, v in rates_found.items()},
        "power": {k: round(float(np.mean(x)), 4) for k, x in found.items()},
        "nulls": float(null.mean()),
        "agrees": worst <= RATE + 0.005 + 3 * error,
    }


def run(full: bool = False) -> dict[str, Any]:
    """Measure them; ``full`` takes 4000 worlds instead of 200."""
    worlds = 4000 if full else 200
    number = len(list(designs()))
    with ProcessPoolExecutor(max_workers=2) as pool:
        rows = list(pool.map(one, [(i, worlds) for i in range(number)]))
    worst = max(row["false discovery rate"]["bh"] for row in rows)
    result = {
        "source": "false discovery rates",
        "seed": SEED,
        "nominal": RATE,
        "worst": worst,
        "rows": rows,
        "agrees": all(row["agrees"] for row in rows),
    }
    return write(__file__, "fdr", result, full)


if __name__ == "__main__":
    main("false discovery rates", run)
