"""The likelihood band beside the published bounds (Algorithm 2): misses and half-widths.

Forty overlapping race × sex × age groups, down to about three people; nominal misses 0.05.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))
sys.path.insert(1, str(Path(__file__).parent.parent / "paper_000"))

from audit_worlds import bench_of
from likelihood_worlds import SEED
from records import agreed, main, not_above, within_band, write

import equipoise as eq
from equipoise._rng import Seed
from equipoise.audits._groups.bounds import bound_bench
from equipoise.audits._groups.options import CertifyOptions
from equipoise.methods.published.likelihood import Comparison, Parts, band, normal_maxima, parts_of
from equipoise.worlds import People, null_world, uneven_world
from equipoise.worlds.people import LEVELS

METRIC = eq.metric("rate of ones", "outcome")
SIZES = (300, 1000, 5000)
TARGETS = ("known", "overall", "reference", "complement")
RATIOS = ("overall ratio", "reference ratio")
REFERENCE = {"race": "A"}
PUBLISHED = CertifyOptions(
    level=0.95, side="both", tolerance=None, method=eq.Bootstrap(studentized=False)
)


def run(full: bool = False) -> dict[str, Any]:
    """Misses in every world, and half-widths at n = 2000."""
    rows: list[dict[str, Any]] = []
    trials = 2000 if full else 1000
    for n in SIZES:
        for name, world in (
            ("null", null_world(smallest=3 / n)),
            ("null, rare", null_world(rate=0.05, smallest=3 / n)),
            ("uneven", uneven_world(smallest=3 / n)),
        ):
            for target in (*TARGETS, *RATIOS):
                rows += misses(world, name, n, target, trials)
    for n in SIZES:
        rows += [range_misses(n, target, trials) for target in ("known", "overall")]
    rows += widths(40 if full else 12)
    return write(
        __file__,
        "band_coverage",
        {"source": "likelihood band", "rows": rows, "agrees": agreed(rows)},
        full,
    )


def truths(world: People, wheres: list[dict[str, Any]], target: str) -> np.ndarray:
    """True disparities of the groups; NaN where there is none."""
    kind, out = target.split()[0], []
    for where in wheres:
        value, share = world.value(where), float(world.share[world._inside(where)].sum())
        theta = world.overall()
        if kind == "reference":
            theta = world.value(REFERENCE)
        elif kind == "complement":
            theta = (theta - share * value) / (1 - share) if share < 1 - 1e-9 else np.nan
        out.append(value / theta if "ratio" in target else value - theta)
    return np.array(out)


def misses(world: People, name: str, n: int, target: str, trials: int) -> list[dict[str, Any]]:
    """Worlds in which any bound misses: both sides, lower bounds only, upper bounds only."""
    rng = np.random.default_rng([SEED, n, len(name), len(target)])
    across = eq.gap(METRIC, across=world.groups())
    bench = bench_of(across, list(LEVELS.values()), world.index, counts=world.draw(n, rng))
    sums, kind = bench.collection.sums, target.split()[0]
    reference = world._inside(REFERENCE) if kind == "reference" else None
    pieces, critical = [], []
    for trial in range(trials):
        rows, ones = (x.astype(float) for x in world.draw(n, rng))
        pieces.append(parts_of(rows, ones, sums, kind, reference=reference))  # type: ignore[arg-type]
        if trial % 50 == 0:
            # the critical value hardly moves with the counts
            found = normal_maxima(
                rows,
                sums,
                Comparison(kind=kind, reference=reference),
                draws=2000,
                seed=np.random.SeedSequence([SEED, trial]),
            )
            both = np.maximum(found.highest, -found.lowest)
            critical.append([np.quantile(both, 0.95), np.quantile(found.highest, 0.95)])
    parts = Parts(
        rows=np.concatenate([x.rows for x in pieces], axis=1),
        ones=np.concatenate([x.ones for x in pieces], axis=1),
        against=kind,  # type: ignore[arg-type]
        value=world.overall(),
        relative="ratio" in target,
    )
    truth = truths(world, bench.collection.wheres(), target)
    two, one = np.mean(critical, axis=0)
    out = []
    for side, cut in (("both", two), ("lower", one), ("upper", one)):
        low, high = (x.reshape(trials, -1) for x in band(parts, float(cut)))
        with np.errstate(invalid="ignore"):
            under, over = low > truth + 1e-9, high < truth - 1e-9
        wrong = {"both": under | over, "lower": under, "upper": over}[side].any(axis=1)
        hits = int(wrong.sum())
        out.append(
            {
                "figure": f"band misses, {name}, n = {n}, {target}, {side}",
                "published": None,
                "ours": round(hits / trials, 4),
                "in_band": within_band(hits, trials, 0.05),
                "agrees": not_above(hits, trials, 0.05),
            }
        )
    return out


def range_misses(n: int, target: str, trials: int) -> dict[str, Any]:
    """All 210 ranges of a number cut into twenty, whose rate rises along it."""
    rng = np.random.default_rng([SEED, n, len(target), 20])
    cells = 20
    rate = 0.1 + 0.4 * np.arange(cells) / cells
    ends = [(i, j) for i in range(cells) for j in range(i + 1, cells + 1)]
    first, last = (np.array(x) for x in zip(*ends, strict=True))

    def sums(x: np.ndarray) -> np.ndarray:
        total = np.concatenate([np.zeros((*x.shape[:-1], 1)), x.cumsum(axis=-1)], axis=-1)
        return total[..., last] - total[..., first]

    rows = rng.multinomial(n, np.full(cells, 1 / cells), size=trials).astype(float)
    ones = rng.binomial(rows.astype(int), rate).astype(float)
    against = Comparison(kind=target)
    seed = np.random.SeedSequence(SEED)
    found = normal_maxima(np.full(cells, n / cells), sums, against, draws=5000, seed=seed)
    cut = float(np.quantile(np.maximum(found.highest, -found.lowest), 0.95))
    pieces = [parts_of(a, b, sums, target) for a, b in zip(rows, ones, strict=True)]  # type: ignore[arg-type]
    parts = Parts(
        rows=np.concatenate([x.rows for x in pieces], axis=1),
        ones=np.concatenate([x.ones for x in pieces], axis=1),
        against=target,  # type: ignore[arg-type]
        value=rate.mean(),
    )
    truth = sums(rate) / (last - first) - rate.mean()
    low, high = (x.reshape(trials, -1) for x in band(parts, cut))
    with np.errstate(invalid="ignore"):
        wrong = ((low > truth + 1e-9) | (high < truth - 1e-9)).any(axis=1)
    hits = int(wrong.sum())
    return {
        "figure": f"band misses, 210 ranges of a number, n = {n}, {target}, both",
        "published": None,
        "ours": round(hits / trials, 4),
        "in_band": within_band(hits, trials, 0.05),
        "agrees": not_above(hits, trials, 0.05),
    }


def widths(trials: int) -> list[dict[str, Any]]:
    """Half-widths against Algorithm 2, by the group's share, against everybody."""
    out: list[dict[str, Any]] = []
    for n in (2000, 20000):
        world = null_world(smallest=3 / n)
        rng = np.random.default_rng([SEED, n])
        ratios: dict[str, list[float]] = {"at least 1 %": [], "below 1 %": []}
        for trial in range(trials):
            claim = eq.gap(METRIC, across=world.groups())
            bench = bench_of(claim, list(LEVELS.values()), world.index, counts=world.draw(n, rng))
            seed = Seed(np.random.SeedSequence([SEED, trial]), trial)
            old = bound_bench(bench, PUBLISHED, seed, False)
            sums, rows = bench.collection.sums, bench.cells.rows
            found = normal_maxima(
                rows, sums, Comparison(kind="overall"), draws=5000, seed=seed.sequence
            )
            cut = float(np.quantile(np.maximum(found.highest, -found.lowest), 0.95))
            low, high = band(parts_of(rows, bench.cells.total, sums, "overall"), cut)
            for row, a, b in zip(old.rows, low, high, strict=True):
                if row.reach and old.critical and np.isfinite(a):
                    # Algorithm 2 before its bounds are cut to what is possible
                    ratio = (b - a) / 2 / (old.critical * row.reach)
                    name = "at least 1 %" if row.n >= n / 100 else "below 1 %"
                    ratios[name].append(float(ratio))
        for name, limit in (("at least 1 %", 1.05), ("below 1 %", 0.5)):
            median = float(np.median(ratios[name]))
            out.append(
                {
                    "figure": f"half-width over Algorithm 2's, n = {n}, groups {name} of rows",
                    "published": None,
                    "ours": round(median, 3),
                    "aim": f"at most {limit}",
                    "agrees": bool(median <= limit),
                }
            )
    return out


if __name__ == "__main__":
    main("likelihood band", run)
