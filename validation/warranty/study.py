"""The statistical warranty: how often each audit is wrong, measured in worlds whose truth is known.

Every audit, method and target runs in every world it accepts. Bounds are wrong if any of the 14
groups lies outside its own; flags, certificates and tests are wrong if they declare anything in a
world at the edge of what they tolerate. A figure *keeps its word* unless so many errors would come
by chance once in 10 000 studies at most. Power is measured in a world with 12 points planted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from collected import known
from records import main, most, write
from worlds import NULL, PLANTED, WORLDS, World

import equipoise as eq

SEED, NOMINAL, CHANCE = 20261115, 0.05, 1e-4
TARGETS: dict[str, Any] = {
    "constant": None,
    "overall": eq.overall(),
    "reference": eq.reference(race="A"),
    "complement": eq.complement(),
}
METRIC = eq.metric("value", "value")
# the default, and the published methods beside it
METHODS = ("default", "bootstrap", "likelihood", "euclidean")
CONTROLS = ("bh", "by", "holm", "max-t")
Audit = Callable[[eq.Trail, World, int], bool]


def run(full: bool = False) -> dict[str, Any]:
    """Measure everything; ``full`` looks at 400 worlds of each kind instead of 10."""
    replicates = 400 if full else 10
    rows = [row for world in (*WORLDS, PLANTED) for row in measure(world, replicates)]
    result = {
        "source": "statistical warranty",
        "nominal": NOMINAL,
        "replicates": replicates,
        "rows": rows,
        "agrees": as_promised(rows),
    }
    return write(__file__, "warranty", result, full)


def as_promised(rows: list[dict[str, Any]]) -> bool:
    """Whether every figure keeps its word, but for those known not to."""
    return all(row["keeps its word"] is not False or known(row) for row in rows)


def measure(world: World, replicates: int) -> Iterator[dict[str, Any]]:
    """The error rate (or power) of every audit in one world."""
    audits = dict(audits_in(world))
    hits: dict[tuple[str, str, str], int] = dict.fromkeys(audits, 0)
    refused: set[tuple[str, str, str]] = set()
    for replicate in range(replicates):
        trail = world.trail(np.random.default_rng([SEED, *world.name.encode(), replicate]))
        for name, audit in audits.items():
            if name in refused:
                continue
            try:
                hits[name] += audit(trail, world, replicate)
            except eq.OptionError:
                refused.add(name)
    for name, count in hits.items():
        if name not in refused:
            yield row_of(world, name, count, replicates)


def row_of(world: World, name: tuple[str, str, str], count: int, replicates: int) -> dict[str, Any]:
    """One figure beside its bar."""
    audit, method, target = name
    power = world is PLANTED
    return {
        "audit": audit,
        "method": method,
        "target": target,
        "world": world.name,
        "measures": "power" if power else "errors",
        "rate": count / replicates,
        "nominal": None if power else NOMINAL,
        "most": None if power else most(replicates, NOMINAL, CHANCE) / replicates,
        "worlds": replicates,
        "keeps its word": None if power else count <= most(replicates, NOMINAL, CHANCE),
    }


def audits_in(world: World) -> Iterator[tuple[tuple[str, str, str], Audit]]:
    """Every audit that means something in a world, under audit, method and target."""
    at_the_edge = world is NULL or world.name in ("small groups, rare", "clustered")
    for target in TARGETS:
        for method in METHODS:
            yield ("certify", method, target), bounds(method, target)
        if at_the_edge or world is PLANTED:
            for method in METHODS:
                yield ("flag", method, target), flags(method, target, "bh")
            yield ("certificates", "default", target), certificates(target)
    if at_the_edge or world is PLANTED:
        for control in CONTROLS[1:]:
            yield ("flag", f"default, {control}", "overall"), flags("default", "overall", control)
        for method in ("default", "likelihood", "euclidean"):
            yield ("joint_test", method, "overall"), joint(method)


def claim_of(world: World, target: str) -> eq.Claim:
    """The question; the constant is the true mean."""
    chosen = TARGETS[target] or eq.constant(world.mean({}))
    return eq.gap(METRIC, across=eq.intersections("race", "sex"), target=chosen)


def bounds(method: str, target: str) -> Audit:
    """Whether some bound misses; in the planted world, whether the planted gap is shown."""

    def audit(trail: eq.Trail, world: World, seed: int) -> bool:
        asked = None if method == "default" else method
        found = eq.certify(trail, claim_of(world, target), level=0.95, method=asked, rng=seed)
        if world is PLANTED:
            row = found.ask(race="C")
            return row.lower is not None and row.lower > 0
        return any(missed(row, world.disparity(row.where, target)) for row in found.rows)

    return audit


def missed(row: Any, truth: float) -> bool:
    """Whether the truth lies outside a group's bounds."""
    low = row.lower is not None and row.lower > truth + 1e-12
    return low or (row.upper is not None and row.upper < truth - 1e-12)


def flags(method: str, target: str, control: Any) -> Audit:
    """Whether anything is flagged; in the planted world, whether the planted group is."""

    def audit(trail: eq.Trail, world: World, seed: int) -> bool:
        asked = None if method == "default" else method
        found = eq.flag(
            trail, claim_of(world, target), fdr=NOMINAL, control=control, method=asked, rng=seed
        )
        return bool(found.ask(race="C").flagged if world is PLANTED else found.flagged)

    return audit


def certificates(target: str) -> Audit:
    """Whether anything is certified to lie above what it is; in the planted world, the gap."""

    def audit(trail: eq.Trail, world: World, seed: int) -> bool:
        found = eq.certify(
            trail,
            claim_of(world, target),
            level=0.95,
            side="lower",
            tolerance=0.0,
            method="certificates",
            rng=seed,
        )
        return bool(found.ask(race="C").certified if world is PLANTED else found.certified)

    return audit


def joint(method: str) -> Audit:
    """Whether the joint test rejects."""

    def audit(trail: eq.Trail, world: World, seed: int) -> bool:
        asked = None if method == "default" else method
        claim = eq.gap(METRIC, across=["race", "sex"], target=eq.overall())
        return bool(eq.joint_test(trail, claim, level=0.95, method=asked, rng=seed).rejected)

    return audit


if __name__ == "__main__":
    main("warranty", run)
