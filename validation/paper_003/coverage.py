"""Coverage of 95 % intervals with an estimated target: plug-in as published, and corrected.

Each group has a share p of the rows and a mean that differs from the rest. 0/1 metrics profile the
target out; real-valued ones (skewed: exponential) use the pseudo-values of the default.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from likelihood_worlds import SEED
from records import agreed, main, within_band, write

from equipoise.methods.published.likelihood import Parts, Segments, adjustment, band, known_roots
from equipoise.methods.published.likelihood.mean import mean_ratio

SHARES = (0.1, 0.5, 0.75, 0.9)
SIZES = (500, 2000, 20000)
RATES = (0.4, 0.3)
CUT = 1.959963984540054


def run(full: bool = False) -> dict[str, Any]:
    """Every share, size, target and kind of metric."""
    rows: list[dict[str, Any]] = []
    for n in SIZES:
        trials = 2000 if full or n <= 2000 else 400
        for p in SHARES:
            for against in ("complement", "overall"):
                rows += counted(n, p, against, 2000)
                rows += skewed(n, p, against, trials)
    result = {"source": "coverage", "rows": rows, "agrees": agreed(rows)}
    return write(__file__, "coverage", result, full)


def counted(n: int, p: float, against: str, trials: int) -> list[dict[str, Any]]:
    """A 0/1 metric, all worlds at once."""
    rng = np.random.default_rng([SEED, n, round(100 * p), 1])
    size = rng.binomial(n, p, trials)
    ones = rng.binomial(size, RATES[0])
    rest = rng.binomial(n - size, RATES[1])
    parts = Parts(
        rows=np.stack([size, n - size]).astype(float),
        ones=np.stack([ones, rest]).astype(float),
        against=against,  # type: ignore[arg-type]
    )
    other = RATES[1] if against == "complement" else p * RATES[0] + (1 - p) * RATES[1]
    truth = RATES[0] - other
    low, high = band(parts, CUT)
    theta = rest / (n - size) if against == "complement" else (ones + rest) / n
    rate = np.clip(theta + truth, 0.0, 1.0)
    counts = ones.astype(float), size.astype(float)
    plug = np.abs(known_roots(*counts, rate, calibrated=False)) <= CUT
    ours = (low <= truth) & (truth <= high)
    return lines(f"0/1, {against}", n, p, ours, plug)


def skewed(n: int, p: float, against: str, trials: int) -> list[dict[str, Any]]:
    """An exponential metric, world by world."""
    rng = np.random.default_rng([SEED, n, round(100 * p), 2])
    ours, plug = [], []
    for _ in range(trials):
        inside = np.arange(n) < rng.binomial(n, p)
        x = rng.exponential(size=n) * np.where(inside, 1.2, 1.0)
        share, mean = inside.mean(), x[inside].mean()
        if against == "complement":
            theta, truth = x[~inside].mean(), 0.2
            moved = np.where(inside, 0.0, x - theta) / (1 - share)
        else:
            theta, truth = x.mean(), 0.2 * (1 - p)
            moved = x - theta
        pseudo = mean - theta + np.where(inside, x - mean, 0.0) / share - moved
        start = np.zeros(1, dtype=np.int64)
        groups = Segments(value=pseudo, start=start, worth=np.array([inside.sum()], dtype=float))
        at = np.array([truth])
        ratio = mean_ratio(groups, at, adjust=adjustment(groups)).statistic[0]
        ours.append(ratio <= CUT**2)
        own = Segments(value=x[inside], start=start)
        plug.append(mean_ratio(own, at + theta).statistic[0] <= CUT**2)
    return lines(f"exponential, {against}", n, p, np.array(ours), np.array(plug))


def lines(name: str, n: int, p: float, ours: np.ndarray, plug: np.ndarray) -> list[dict[str, Any]]:
    """Ours, held to the binomial band, and the published form beside it."""
    return [
        {
            "figure": f"coverage, {name}, p(G) = {p}, n = {n}",
            "published": None,
            "plug_in": round(float(plug.mean()), 4),
            "ours": round(float(ours.mean()), 4),
            "agrees": within_band(int((~ours).sum()), ours.size, 0.05),
        }
    ]


if __name__ == "__main__":
    main("coverage", run)
