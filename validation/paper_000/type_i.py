"""Type I error in forty overlapping groups of race, sex and age, the smallest of about three.

Null world: all groups alike. Boundary world: all groups exactly at the limit that is asked about.
Uneven world: groups differ, and every bound that misses its own truth is an error. Bounds should
miss and flags fire at most at 5 % plus the binomial band, whatever the size of the groups. Beside
them: the published p-values (Algorithm 4), and the share of worlds in which a planted gap of 10
points is found.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from audit_worlds import SEED, bench_of
from records import agreed, main, not_above, standard_error, within_band, write

import equipoise as eq
from equipoise._validate import Seed
from equipoise.audits._groups.problem import CertifyOptions, FlagOptions, Problem
from equipoise.audits.certify import bound_groups
from equipoise.audits.flag import flag_groups
from equipoise.audits.methods import Pivotal
from equipoise.findings.bounds import Bounds
from equipoise.worlds import LEVELS, People, boundary_world, null_world, planted, uneven_world

NOMINAL = 0.05
SIZES = (2_000, 10_000, 100_000)
PLANTED = {"race": "C"}
Counts = dict[tuple[str, str], list[bool]]
METRIC = eq.metric("rate of ones", "outcome")


def run(full: bool = False) -> dict[str, Any]:
    """Count errors in many worlds of each kind."""
    rows: list[dict[str, Any]] = []
    trials = 200 if full else 15
    for n in SIZES:
        rng = np.random.default_rng([SEED, n])
        found: Counts = {}
        for trial in range(trials):
            one_trial(n, trial, rng, found)
        rows += [_row(n, name, what, hits) for (name, what), hits in found.items()]
    result = {
        "source": "type I error",
        "nominal": NOMINAL,
        "trials": trials,
        "rows": rows,
        "agrees": agreed(rows),
    }
    return write(__file__, "type_i", result, full)


def one_trial(n: int, trial: int, rng: np.random.Generator, found: Counts) -> None:
    """One sample of every world."""

    def note(name: str, what: str, hit: bool) -> None:
        found.setdefault((name, what), []).append(hit)

    small, seed = 3 / n, Seed(np.random.SeedSequence([SEED, trial]), trial)
    for name, world in (
        ("null", null_world(smallest=small)),
        ("null, rare", null_world(rate=0.05, smallest=small)),
        ("uneven", uneven_world(smallest=small)),
    ):
        problem = people_bench(world, n, rng)
        for side in ("lower", "upper", "both"):
            bounding = CertifyOptions(
                level=0.95,
                side=side,  # type: ignore[arg-type]
                tolerance=None,
                method=Pivotal(),
            )
            found_bounds = bound_groups(problem, bounding, seed, False)
            note(name, f"bounds miss, {side}", misses(world, found_bounds))
        if name != "uneven":
            for what, options in FLAGS.items():
                note(name, what, bool(flag_groups(problem, options, seed, False).flagged))
    edge = people_bench(boundary_world(smallest=small), n, rng, target=0.25)
    for what, options in EDGES.items():
        note("boundary", what, bool(flag_groups(edge, options, seed, False).flagged))
    gap = people_bench(planted(null_world(smallest=small), PLANTED, 0.1), n, rng)
    for what in ("flags, two-sided", "flags, above", "flags, max-T", "Algorithm 4, two-sided"):
        row = flag_groups(gap, FLAGS[what], seed, False).ask(PLANTED)
        note("10 points planted in race C (power)", what, row.flagged)


def options(**given: Any) -> FlagOptions:
    """Options of `flag` at 5 %."""
    empty = {"above": None, "below": None, "outside": None, "control": "bh", "method": None}
    rest = {"fdr": NOMINAL, "min_rows": None, "resamples": None}
    return FlagOptions(**{**empty, **rest, **given})


FLAGS = {
    "flags, two-sided": options(),
    "flags, above": options(above=0.0),
    "flags, below": options(below=0.0),
    "flags, max-T": options(control="max-t"),
    "flags, max-T, above": options(control="max-t", above=0.0),
    "Algorithm 4, two-sided": options(method="bootstrap", resamples=200),
}
EDGES = {
    "flags, above": options(above=0.05),
    "flags, two-sided": options(outside=(-0.05, 0.05)),
    "flags, max-T, above": options(control="max-t", above=0.05),
    "Algorithm 4, above": options(above=0.05, method="bootstrap", resamples=200),
}


def people_bench(
    world: People, n: int, rng: np.random.Generator, target: float | None = None
) -> Problem:
    """A sample of people as a problem, against everybody or a known number."""
    claim = eq.gap(METRIC, across=world.groups(), target=target)
    return bench_of(claim, list(LEVELS.values()), world.index, counts=world.draw(n, rng))


def misses(world: People, found: Bounds) -> bool:
    """Whether any bound misses the truth."""
    everyone = world.overall()
    for row in found.rows:
        truth = world.value(row.where) - everyone
        low = row.lower is not None and row.lower > truth + 1e-12
        high = row.upper is not None and row.upper < truth - 1e-12
        if low or high:
            return True
    return False


def _row(n: int, name: str, what: str, hits: list[bool]) -> dict[str, Any]:
    count, errors = len(hits), sum(hits)
    if what.startswith("Algorithm 4") or "power" in name:
        agrees = None
    else:
        agrees = not_above(errors, count, NOMINAL)
    return {
        "world": name,
        "n": n,
        "figure": what,
        "published": None,
        "ours": round(errors / count, 4),
        "monte_carlo_error": round(standard_error(errors / count, count), 4),
        "trials": count,
        "in_band": within_band(errors, count, NOMINAL),
        "agrees": agrees,
    }


if __name__ == "__main__":
    main("type I error", run)
