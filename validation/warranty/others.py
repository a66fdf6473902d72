"""The warranty of the audits that rest on another: `describe`, `discover` and `compare`.

An interval of `describe` speaks of one group, so one group is watched. `discover` is wrong if it
declares anything where all rows are alike. An interval of `compare` is wrong if it misses the true
difference of the two spreads. Worlds and bars are those of the main study.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import main, write
from study import METRIC, NOMINAL, SEED, as_promised, missed, row_of
from worlds import NULL, PLANTED, RACES, SEXES, WORLDS, World

import equipoise as eq

Audit = Callable[[eq.Trail, World, int], bool]
WATCHED = {"race": "C", "sex": "F"}


def run(full: bool = False) -> dict[str, Any]:
    """Count errors; ``full`` looks at 400 worlds of each kind instead of 40."""
    replicates = 400 if full else 40
    rows = []
    for world in (*WORLDS, PLANTED):
        hits: dict[tuple[str, str, str], int] = dict.fromkeys(AUDITS, 0)
        asked = {name: audit for name, audit in AUDITS.items() if _speaks(name[0], world)}
        for replicate in range(replicates):
            trail = world.trail(np.random.default_rng([SEED, *world.name.encode(), replicate]))
            for name, audit in asked.items():
                hits[name] += audit(trail, world, replicate)
        rows += [row_of(world, name, hits[name], replicates) for name in asked]
    result = {
        "source": "statistical warranty of describe, discover and compare",
        "nominal": NOMINAL,
        "replicates": replicates,
        "rows": rows,
        "agrees": as_promised(rows),
    }
    return write(__file__, "others", result, full)


def _speaks(audit: str, world: World) -> bool:
    """Whether an audit accepts a world, and the world has a truth for it."""
    if audit == "describe":
        return world is not PLANTED
    if audit == "discover":
        return world in (NULL, PLANTED) or world.name == "small groups, rare"
    return not (audit == "compare" and (world.weighted or world.clusters))


def describe(trail: eq.Trail, world: World, seed: int) -> bool:
    """Whether the interval of the watched group's own mean misses it."""
    claim = eq.gap(METRIC, across=eq.intersections("race", "sex"), target=eq.overall())
    found = eq.describe(trail, claim, level=0.95)
    row = next(row for row in found.rows if dict(row.where) == WATCHED)
    return missed(row, world.mean(WATCHED))


def discover(trail: eq.Trail, world: World, seed: int) -> bool:
    """Whether any rule is flagged."""
    return bool(eq.discover(trail, METRIC, features=["race", "sex"], fdr=NOMINAL, rng=seed).flagged)


def compare(trail: eq.Trail, world: World, seed: int) -> bool:
    """Whether the interval misses; in the planted world, whether race is told from sex."""
    (row,) = eq.compare(trail, METRIC, across=["race", "sex"], level=0.95, rng=seed).rows
    if world is PLANTED:
        return bool(row.lower > 0)
    race, sex = (
        np.var([world.mean({name: level}) for level in levels], ddof=1)
        for name, levels in (("race", RACES), ("sex", SEXES))
    )
    return missed(row, float(race - sex))


AUDITS: dict[tuple[str, str, str], Audit] = {
    ("describe", "default", "none"): describe,
    ("discover", "default", "overall"): discover,
    ("compare", "default", "race against sex"): compare,
}

if __name__ == "__main__":
    main("warranty of describe, discover and compare", run)
