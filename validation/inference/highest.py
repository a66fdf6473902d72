"""Against the highest group, where several are tied for it.

    python validation/inference/highest.py [--full]

To take the group with the highest rate seen for the reference is wrong most where rates are tied:
all ratios to it are then too low. Promised: all bounds hold in 95 % of the worlds.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

sys.path.insert(0, str(Path(__file__).parents[1]))

from records import main, write

from equipoise.methods.inference.core import Core, core_of, highest_core
from equipoise.methods.inference.student import independent_score
from equipoise.methods.targets import Highest, Reference, plain_moments

SEED, ERROR = 20_261_118, 0.05
OPTIONS: dict[str, Any] = {"zero_one": True, "weighted": False}

#: Rows of the tied groups, their rate, and further groups: rows and share of the highest rate.
DESIGNS: dict[str, tuple[list[int], float, list[tuple[int, float]]]] = {
    **{
        f"{number} tied groups of {rows} rows, rate {rate}": ([rows] * number, rate, [])
        for number in (2, 5, 10)
        for rows, rate in ((20, 0.5), (500, 0.3))
    },
    "10 tied groups of 10 to 1000 rows": ([10, 20, 40, 80, 160, 320, 500, 700, 850, 1000], 0.3, []),
    "5 tied groups of 200 rows, one at 0.8": ([200] * 5, 0.4, [(200, 0.8)]),
    "3 tied groups of 50 rows, three at 0.9, 0.6, 0.3": (
        [50] * 3, 0.6, [(50, 0.9), (50, 0.6), (50, 0.3)],
    ),
    "one highest of 1000 rows, four at 0.7": ([1000], 0.5, [(100, 0.7)] * 4),
}  # fmt: skip


def beyond(core: Core, truth: np.ndarray[Any, Any], allowed: float) -> bool:
    """Whether bounds would miss: a bound excludes what has a smaller tail than is allowed."""
    used = core.answered
    up, down = core.pivot.tails(truth[used], used)
    top = np.isclose(truth[used], truth.max())
    # none is above the highest: for those that are the highest only upper ends can miss
    return bool(((up < allowed) & ~top).any() or (down < allowed).any())


def one(task: tuple[str, int, bool]) -> dict[str, Any]:
    """One design in all its worlds, as a ratio or as a gap."""
    name, worlds, relative = task
    rows, rate, others = DESIGNS[name]
    n = np.array([*rows, *(size for size, _ in others)], dtype=float)
    p = rate * np.array([*[1.0] * len(rows), *(share for _, share in others)])
    truth = p / rate if relative else p - rate
    number = n.size
    rivals = {j: np.arange(number) != j for j in range(number)}
    member = np.eye(number, dtype=bool)
    allowed = float(ndtr(-independent_score(1 - ERROR, number, True)))
    missed = plugged = 0
    for world in range(worlds):
        rng = np.random.default_rng([SEED, list(DESIGNS).index(name), world])
        k = rng.binomial(n.astype(int), p).astype(float)
        moments = plain_moments(n, k, k, k)
        core = highest_core(
            moments, Highest(), lambda x: x, rivals, member, relative=relative, **OPTIONS
        )
        missed += beyond(core, truth, allowed)
        best = int(np.argmax(k / n))
        plain = core_of(
            moments, Reference(cells=member[best]), lambda x: x, relative=relative, **OPTIONS
        )
        plugged += beyond(plain, truth, allowed)
    bar = ERROR + 0.01 + 3 * (ERROR * (1 - ERROR) / worlds) ** 0.5
    return {
        "design": name,
        "asked": "ratio" if relative else "gap",
        "worlds": worlds,
        "missed": missed / worlds,
        "the highest seen as reference": plugged / worlds,
        "bar": round(bar, 4),
        "agrees": missed / worlds <= bar,
    }


def run(full: bool = False) -> dict[str, Any]:
    """Examine the designs; ``full`` takes 1000 worlds instead of 40."""
    worlds = 1000 if full else 40
    tasks = [(name, worlds, relative) for name in DESIGNS for relative in (True, False)]
    with ProcessPoolExecutor(max_workers=2) as pool:
        rows = list(pool.map(one, tasks))
    result = {
        "source": "against the highest group",
        "worlds": worlds,
        "rows": rows,
        "agrees": all(row["agrees"] for row in rows),
    }
    return write(__file__, "highest", result, full)


if __name__ == "__main__":
    main("against the highest group", run)
