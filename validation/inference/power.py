"""Power and width beside the best valid alternative in the same worlds.

Flags: beside the test that the alternative would be if its nuisance were known (an upper limit for
every valid test). Bounds: beside Bonferroni's Student intervals.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from designs import ERROR, Rows
from named import counts, first
from records import main, write

from equipoise._validate import seed_of
from equipoise.audits._common import critical_scores
from equipoise.methods.inference.core import core_of
from equipoise.methods.inference.student import ClusterSums
from equipoise.methods.targets import Complement, Constant, plain_moments

SEED = 1616


def flags(
    name: str,
    rates: tuple[float, float],
    sizes: tuple[int, int],
    below: float,
    bar: float,
    worlds: int,
) -> dict[str, Any]:
    """Power of one one-sided flag of a ratio, beside the likelihood ratio at its true size."""
    design = counts(name, list(rates), list(sizes), first(2), relative=True)
    ours, root = 0, []
    edge = counts(name, [below * rates[0], rates[0]][::-1], list(sizes), first(2), relative=True)
    null = []
    for i in range(worlds):
        rng = np.random.default_rng([SEED, i])
        for made, store in ((design, root), (edge, null)):
            world = made.draw(rng)
            core = made.core(world)
            p = core.pivot.tails(np.array([below]), np.array([0]))[1][0]
            store.append(likelihood_root(world, below))
            if made is design:
                ours += p <= ERROR
    # the likelihood ratio with the critical value that is right in these very worlds
    critical = float(np.quantile(null, ERROR))
    best = float(np.mean(np.array(root) < critical))
    power = float(ours) / worlds
    return {
        "question": name,
        "ours": power,
        "best valid": best,
        "share": power / best,
        "bar": bar,
        "agrees": bool(power >= min(bar, 1.0) and power >= 0.95 * best),
    }


def likelihood_root(world: Rows, ratio: float) -> float:
    """Signed root of the likelihood ratio of μ₁ = ratio · μ₀, by a plain search."""
    assert world.size is not None
    assert world.ones is not None
    n, k = world.size[::-1], world.ones[::-1]
    base = np.linspace(1e-4, min(1.0, 1 / ratio) - 1e-4, 2000)
    lost = np.zeros_like(base)
    for size, one, rate in ((n[0], k[0], ratio * base), (n[1], k[1], base)):
        mean = one / size
        best = one * np.log(max(mean, 1e-300)) + (size - one) * np.log(max(1 - mean, 1e-300))
        lost += best - one * np.log(rate) - (size - one) * np.log(1 - rate)
    sign = np.sign(k[0] / n[0] - ratio * k[1] / n[1])
    return float(sign * np.sqrt(2 * max(lost.min(), 0.0)))


def widths(name: str, spreads: list[float], size: int, worlds: int) -> dict[str, Any]:
    """Mean width of bounds of groups with spreads of their own, beside Bonferroni's Student."""
    scale = np.array(spreads)
    where = np.repeat(np.arange(scale.size), size)
    ours, theirs = [], []
    for i in range(worlds):
        rng = np.random.default_rng([SEED, 2, i])
        x = rng.normal(size=where.size) * scale[where]
        moments = plain_moments(
            *(np.bincount(where, weights=v) for v in (np.ones_like(x), x, x**2, x**3))
        )
        core = core_of(
            moments,
            Constant(value=0.0),
            lambda x: x,
            relative=False,
            zero_one=False,
            weighted=False,
        )
        critical = critical_scores(core, 1 - ERROR, "both", None, seed_of(1), False)
        low, high = core.bounds(critical.value, (-np.inf, np.inf))
        error = np.sqrt(core.comparison.parts.square2[0] / size - core.comparison.mean**2)
        error = error / np.sqrt(size - 1)
        quantile = float(stdtrit(size - 1, 1 - ERROR / 2 / scale.size))
        ours.append(high - low)
        theirs.append(2 * quantile * error)
    share = np.nanmean(np.array(ours) / np.array(theirs))
    return {
        "question": name,
        "ours": float(np.nanmean(ours)),
        "best valid": float(np.mean(theirs)),
        "share": float(share),
        "bar": 1.05,
        "agrees": bool(share <= 1.05),
    }


def callbacks() -> dict[str, Any]:
    """Width of the bounds on black against white, letters of one job being a cluster.

    The alternative is the plain maximum of cluster-robust scores, drawn from their correlations.
    """
    table = np.loadtxt(Path(__file__).parent / "data" / "callbacks.csv", delimiter=",", skiprows=1)
    ads = table[:, 0].astype(np.int64)
    letters = np.repeat(table[:, 1::2], ads, axis=0)
    called = np.repeat(table[:, 2::2], ads, axis=0)
    cluster, cell = np.nonzero(letters)
    clusters = ClusterSums(
        cluster=cluster.astype(np.int64),
        cell=cell.astype(np.int64),
        weight=letters[cluster, cell],
        total=called[cluster, cell],
        cells=4,
    )
    # black, white; women, men; and the four cells
    members = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]], dtype=np.float64)
    members = np.concatenate([members, np.eye(4)])
    sums = [x.sum(axis=0) for x in (letters, called)]
    core = core_of(
        plain_moments(sums[0], sums[1], sums[1], sums[1]),
        Complement(),
        lambda x: x @ members.T,
        relative=False,
        zero_one=True,
        weighted=False,
        clusters=clusters,
    )
    critical = critical_scores(core, 1 - ERROR, "both", None, seed_of(1), False)
    low, high = core.bounds(critical.value, (-1.0, 1.0))
    moved = []
    for inside in members:
        parts = []
        for cells in (inside, 1 - inside):
            n, k = letters @ cells, called @ cells
            parts.append((k - n * k.sum() / n.sum()) / n.sum())
        moved.append(parts[0] - parts[1])
    influence = np.array(moved)
    error = np.sqrt((influence**2).sum(axis=1) * len(letters) / (len(letters) - 1))
    rng = np.random.default_rng(SEED)
    drawn = rng.standard_normal((20_000, len(letters))) @ (influence / error[:, None]).T
    quantile = float(np.quantile(np.abs(drawn).max(axis=1), 1 - ERROR))
    ours, theirs = float(high[0] - low[0]), float(2 * quantile * error[0])
    return {
        "question": "callbacks, black against others, clusters of 1323 jobs",
        "ours": ours,
        "best valid": theirs,
        "share": ours / theirs,
        "bar": 1.05,
        "agrees": ours <= 1.05 * theirs,
    }


def run(full: bool = False) -> dict[str, Any]:
    """Compare; ``full`` takes 2000 worlds instead of 200."""
    worlds = 2000 if full else 200
    rows = [
        flags(
            "four fifths, 300 against 3000, .30 / .50", (0.5, 0.3), (3000, 300), 0.8, 0.93, worlds
        ),
        flags(
            "four fifths, 400 against 1600, .40 / .60", (0.6, 0.4), (1600, 400), 0.8, 0.79, worlds
        ),
        flags("four fifths, 40 against 400, .20 / .50", (0.5, 0.2), (400, 40), 0.8, 0.0, worlds),
        widths("spreads 1, .1, .3, 3; 12 groups of 100", [1, 0.1, 0.3, 3] * 3, 100, worlds // 4),
        widths("spreads 1, .1, .3, 3; 4 groups of 40", [1, 0.1, 0.3, 3], 40, worlds // 4),
        callbacks(),
    ]
    result = {"source": "power and width", "worlds": worlds, "rows": rows}
    result["agrees"] = all(row["agrees"] for row in rows)
    return write(__file__, "power", result, full)


if __name__ == "__main__":
    main("power and width", run)
