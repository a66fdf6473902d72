"""Disparities given legitimate factors: level, coverage and power, from few large strata to many.

    python validation/inference/given.py [--full]

Rates differ between strata, groups differ in how they spread over them (confounding), disparities
differ from stratum to stratum (heterogeneity), and some strata lack a side. A world is wrong if any
bound misses the standardised disparity of the people who are there; a test is wrong if it flags a
group that is no different in any stratum. Power is set beside the Mantel–Haenszel test, where that
is valid. The last part has continuous factors, of which nobody can form strata.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from records import agreed, main, standard_error, write

import equipoise as eq
from equipoise.methods.numerics import FloatArray

SEED, LEVEL = 20_271_101, 0.95


@dataclass(frozen=True, kw_only=True)
class Design:
    """Strata, groups, and what rows are like."""

    name: str
    strata: int
    size: float
    """Rows of a stratum, on average."""
    groups: int = 2
    outcome: str = "rate"
    rate: float = 0.3
    weights: bool = False
    clusters: int = 0
    kind: str = "mantel-haenszel"
    target: str = "complement"
    relative: bool = False
    certain: float | None = None
    """If given, a stratum's rate is this or one less this, and the first group is above the low."""
    small: bool = False
    """Whether the first group is a tenth of everybody."""


SHAPES = ((3, 300.0), (12, 50.0), (50, 10.0), (200, 4.0), (500, 3.0))
DESIGNS = (
    *(Design(name=f"{s} strata of {n:g}", strata=s, size=n) for s, n in SHAPES),
    *(Design(name=f"{s} of {n:g}, group's weights", strata=s, size=n, kind="group")
      for s, n in SHAPES[:4]),
    *(Design(name=f"{s} of {n:g}, population's", strata=s, size=n, kind="population")
      for s, n in SHAPES[:4]),
    *(Design(name=f"{s} of {n:g}, ratio", strata=s, size=n, relative=True) for s, n in SHAPES[:4]),
    *(Design(name=f"{s} of {n:g}, everyone", strata=s, size=n, target="overall")
      for s, n in SHAPES[:4]),
    *(Design(name=f"{s} of {n:g}, rare", strata=s, size=n, rate=0.03) for s, n in SHAPES),
    Design(name="12 of 100, 10 groups", strata=12, size=100, groups=10),
    Design(name="50 of 100, 40 groups", strata=50, size=100, groups=40),
    Design(name="200 of 10, 10 groups", strata=200, size=10, groups=10),
    *(Design(name=f"{s} of {n:g}, weights", strata=s, size=n, weights=True) for s, n in SHAPES),
    *(Design(name=f"{s} of {n:g}, 60 clusters", strata=s, size=n, clusters=60) for s, n in SHAPES),
    *(Design(name=f"{s} of {n:g}, real", strata=s, size=n, outcome="real") for s, n in SHAPES),
    *(Design(name=f"{s} of {n:g}, skewed", strata=s, size=n, outcome="skewed") for s, n in SHAPES),
    Design(name="12 of 100, 10 groups, real, weights", strata=12, size=100, groups=10,
           outcome="real", weights=True),
    Design(name="12 of 50, real, group's weights", strata=12, size=50, outcome="real",
           kind="group"),
    Design(name="12 of 50, weights, population's", strata=12, size=50, weights=True,
           kind="population"),
    *(Design(name=f"{s} of {n:g}, nearly certain ({eps:g}), {kind}", strata=s, size=n, kind=kind,
             certain=eps, small=True)
      for s, n, eps, kind in ((2, 100.0, 0.0, "mantel-haenszel"), (20, 20.0, 0.0, "group"),
                              (20, 20.0, 0.0, "population"), (20, 20.0, 0.01, "mantel-haenszel"),
                              (200, 3.0, 0.0, "mantel-haenszel"))),
    Design(name="20 of 20, nearly certain, ratio", strata=20, size=20, certain=0.0, small=True,
           relative=True),
    Design(name="100 of 4, nobody but some of one group", strata=100, size=4, rate=0.0,
           certain=0.0),
    # rows that are alone on their side of a stratum are their own mean, and nothing is left of them
    *(Design(name=f"{s} of {n:g}, {outcome}, {kind}'s weights", strata=s, size=n, outcome=outcome,
             kind=kind)
      for s, n, outcome, kind in ((12, 50.0, "real", "population"), (50, 10.0, "real", "group"),
                                  (50, 10.0, "real", "population"), (200, 4.0, "real", "group"),
                                  (12, 50.0, "skewed", "group"))),
    Design(name="12 of 50, real, weights, group's weights", strata=12, size=50, outcome="real",
           weights=True, kind="group"),
    Design(name="12 of 50, real, 60 clusters, group's weights", strata=12, size=50, outcome="real",
           clusters=60, kind="group"),
)  # fmt: skip


def run(full: bool = False) -> dict[str, Any]:
    """Examine the designs; ``full`` takes 1000 worlds instead of 60."""
    worlds = 1000 if full else 60
    with ProcessPoolExecutor(max_workers=2) as pool:
        rows = list(pool.map(_row, range(len(DESIGNS)), [worlds] * len(DESIGNS)))
        rows += list(pool.map(_power, SHAPES[:3], [worlds] * 3))
        few = 300 if full else 20
        rows += list(pool.map(_learnt, range(len(LEARNT)), [few] * len(LEARNT)))
    result = {
        "source": "disparities given legitimate factors",
        "nominal": round(1 - LEVEL, 2),
        "rows": rows,
        "agrees": agreed(rows),
    }
    return write(__file__, "given", result, full)


def _most(worlds: int) -> float:
    """A point above nominal, and three standard errors at that rate."""
    nominal = 1 - LEVEL + 0.01
    return nominal + 3 * standard_error(nominal, worlds)


def _row(number: int, worlds: int) -> dict[str, Any]:
    design = DESIGNS[number]
    missed, false, raw, answered, wide = 0, 0, 0, 0.0, []
    for world in range(worlds):
        rng = np.random.default_rng([SEED, number, world])
        found, truth, plain = _bounds(design, rng, effect=0.3)
        missed += any(_outside(row, truth[row.group]) for row in found)
        raw += any(_outside(row, plain[row.group]) for row in found)
        told = [row for row in found if row.lower is not None]
        answered += len(told) / len(found)
        wide += [row.upper - row.lower for row in told]
        null, none, _ = _bounds(design, rng, effect=0.0)
        false += any(_outside(row, none[row.group]) for row in null)
    most = _most(worlds)
    return {
        "design": design.name,
        "worlds": worlds,
        "missed": round(missed / worlds, 4),
        "false_alarms": round(false / worlds, 4),
        "unadjusted_outside": round(raw / worlds, 4),
        "most": round(most, 4),
        "answered": round(answered / worlds, 3),
        "width": round(float(np.median(wide)), 4) if wide else None,
        "agrees": bool(missed / worlds <= most and false / worlds <= most),
    }


def _outside(row: Any, truth: float) -> bool:
    if row.lower is None:
        return False
    return bool(row.lower > truth + 1e-9 or row.upper < truth - 1e-9)


def _bounds(
    design: Design, rng: np.random.Generator, effect: float
) -> tuple[Any, dict[str, float], dict[str, float]]:
    """Bounds of all groups, the truth given the rows that are there, and the raw disparity."""
    frame, mean = _table(design, rng, effect)
    names = [f"g{i}" for i in range(design.groups)]
    truth = {name: _truth(design, frame, mean, name, given=True) for name in names}
    plain = {name: _truth(design, frame, mean, name, given=False) for name in names}
    make = eq.ratio if design.relative else eq.gap
    metric = eq.selection_rate if design.outcome == "rate" else eq.metric("pay", "y")
    claim: Any = make(
        metric, across="g", target=design.target, given=["s"], weights=design.kind  # type: ignore[arg-type]
    )  # fmt: skip
    roles: dict[str, Any] = {"prediction": "y"} if design.outcome == "rate" else {}
    if design.weights:
        roles["weight"] = "w"
    if design.clusters:
        roles["cluster"] = "c"
    found = eq.certify(frame, claim, level=LEVEL, rng=int(rng.integers(1 << 30)), **roles)
    return found, truth, plain


def _table(
    design: Design, rng: np.random.Generator, effect: float
) -> tuple[pl.DataFrame, FloatArray]:
    """Rows, and the mean of each."""
    base = np.clip(rng.beta(2, 2, design.strata), 0.02, 0.98)
    # who is where goes with the rate: adjusting matters, and some strata lack a side
    lean = np.linspace(-2, 2, design.groups)
    shares = np.exp(lean * (base[:, None] - 0.5) * 2 + rng.normal(0, 0.7, (design.strata, 1)))
    if design.small:
        shares[:, 0] = shares[:, 1:].sum(axis=1) / 9
    shares /= shares.sum(axis=1, keepdims=True)
    counts = rng.poisson(design.size * shares)
    s, g = np.indices(counts.shape)
    s, g = np.repeat(s.ravel(), counts.ravel()), np.repeat(g.ravel(), counts.ravel())
    rate = np.clip(design.rate * 2 * base, 0.01, 0.9)
    uneven = 1 + 0.5 * np.cos(np.arange(design.strata))
    # the first group differs by more in some strata than in others
    mean = rate[s] * (1 + effect * uneven[s] * (g == 0))
    if design.certain is not None:
        high = (s % 2 == 1) & (design.rate > 0)
        rare = design.certain + (effect > 0) * 0.05 * (g == 0)
        mean = np.where(high, 1 - design.certain, rare)
    n = s.size
    cluster = rng.integers(0, max(design.clusters, 1), n)
    # clusters move rates up and down around their means
    shift = rng.choice([-1.0, 1.0], max(design.clusters, 1))[cluster] if design.clusters else 0.0
    if design.outcome == "rate":
        y = (rng.random(n) < mean * (1 + 0.3 * shift)).astype(float)
    elif design.outcome == "real":
        y = mean + rng.normal(size=n) * (1 + (g == 0))
    else:
        y = mean + rng.exponential(size=n) - 1
    frame = pl.DataFrame(
        {
            "s": s,
            "g": [f"g{i}" for i in g],
            "y": y if design.outcome != "rate" else y.astype(int),
            "w": np.exp(rng.normal(0, 0.5, n)) if design.weights else np.ones(n),
            "c": cluster,
        }
    )
    return frame, mean


def _truth(
    design: Design, frame: pl.DataFrame, mean: FloatArray, name: str, *, given: bool
) -> float:
    """The standardised disparity of the people who are there, straight from its definition."""
    s, w = frame["s"].to_numpy(), frame["w"].to_numpy()
    own = frame["g"].to_numpy() == name
    if not given:
        s = np.zeros_like(s)

    def sums(x: FloatArray) -> FloatArray:
        return np.bincount(s, x, design.strata)

    n1, n0 = sums(w * own), sums(w * ~own)
    with np.errstate(invalid="ignore", divide="ignore"):
        one = sums(w * own * mean) / n1
        other = sums(w * ~own * mean) / n0
        every = sums(w * mean) / (n1 + n0)
        weigh = {"group": n1, "population": n1 + n0, "mantel-haenszel": n1 * n0 / (n1 + n0)}
    both = (n1 > 0) & (n0 > 0)
    share = np.where(both, weigh[design.kind], 0.0)
    against = every if design.target == "overall" else other
    high = float((share[both] * one[both]).sum() / share[both].sum())
    low = float((share[both] * against[both]).sum() / share[both].sum())
    return high / low if design.relative else high - low


# --- Power beside the Mantel–Haenszel test ---


def _power(shape: tuple[int, float], worlds: int) -> dict[str, Any]:
    from statsmodels.stats.contingency_tables import StratifiedTable

    strata, size = shape
    design = Design(name="power", strata=strata, size=size)
    ours = theirs = 0
    for world in range(worlds):
        rng = np.random.default_rng([SEED, 77, strata, world])
        frame, _ = _table(design, rng, effect=0.25 if strata * size > 700 else 0.35)
        claim = eq.gap(eq.selection_rate, across="g", target=eq.reference(g="g1"), given=["s"])
        found = eq.certify(frame, claim, level=LEVEL, prediction="y", rng=world)
        row = next(row for row in found if row.group == "g0")
        ours += row.lower is not None and (row.lower > 0 or row.upper < 0)
        tables = []
        for part in frame.partition_by("s"):
            y, own = part["y"].to_numpy(), part["g"].to_numpy() == "g0"
            table = np.array([[y[own].sum(), (1 - y[own]).sum()],
                              [y[~own].sum(), (1 - y[~own]).sum()]])  # fmt: skip
            if own.any() and (~own).any():
                tables.append(table.astype(float))
        theirs += StratifiedTable(tables).test_null_odds(correction=False).pvalue <= 1 - LEVEL
    ratio = ours / max(theirs, 1)
    return {
        "design": f"power, {strata} strata of {size:g}",
        "worlds": worlds,
        "power": round(ours / worlds, 4),
        "mantel_haenszel": round(theirs / worlds, 4),
        "ratio": round(ratio, 3),
        "agrees": bool(ratio >= 0.95 - 3 * (1 / max(theirs, 1)) ** 0.5 * 0.3),
    }


# --- Factors that form no strata ---

LEARNT: tuple[dict[str, Any], ...] = (
    {"name": "linear factors", "rows": 800},
    {"name": "bent factors", "rows": 800, "bent": True},
    {"name": "bent factors, real outcome", "rows": 800, "bent": True, "real": True},
    {"name": "clusters", "rows": 800, "clusters": 80},
    {"name": "weights", "rows": 800, "weights": True},
    {"name": "population's weights", "rows": 1500, "kind": "population"},
    {"name": "group's weights", "rows": 1500, "kind": "group"},
    {"name": "linear factors, 4000 rows", "rows": 4000},
)


def _learnt(number: int, worlds: int) -> dict[str, Any]:
    design = LEARNT[number]
    missed = raw = 0
    wide = []
    for world in range(worlds):
        rng = np.random.default_rng([SEED, 99, number, world])
        frame, truth = _confounded(design, rng)
        roles = {role: name for role, name in (("weight", "w"), ("cluster", "c"))
                 if design.get(f"{role}s")}  # fmt: skip
        metric = eq.metric("pay", "y")
        given = eq.factors("x", "z", "u")
        for factors in ((given,), ()):
            claim: Any = eq.gap(
                metric, across="g", target="complement", given=factors,
                weights=design.get("kind", "mantel-haenszel") if factors else "mantel-haenszel",
            )  # fmt: skip
            found = eq.certify(frame, claim, level=LEVEL, rng=world, **roles)
            row = next(row for row in found if row.group == "a")
            if factors:
                missed += _outside(row, truth)
                wide += [] if row.lower is None else [row.upper - row.lower]
            else:
                raw += _outside(row, truth)
    most = _most(worlds)
    return {
        "design": f"learnt: {design['name']}",
        "worlds": worlds,
        "missed": round(missed / worlds, 4),
        "unadjusted_outside": round(raw / worlds, 4),
        "most": round(most, 4),
        "answered": round(len(wide) / worlds, 3),
        "width": round(float(np.median(wide)), 4) if wide else None,
        "agrees": bool(missed / worlds <= most),
    }


def _confounded(design: dict[str, Any], rng: np.random.Generator) -> tuple[pl.DataFrame, float]:
    """Rows with one effect for all, so that every way of weighing people has the same truth."""
    n = design["rows"]
    x, z, u = rng.normal(size=(3, n))
    driver = np.where(x > 0, x, -0.5 * x) + 0.5 * np.sin(2 * z) if design.get("bent") else x + z / 2
    member = rng.random(n) < 1 / (1 + np.exp(-0.8 * driver))
    effect = 0.05
    c = rng.integers(0, design.get("clusters", n), n)
    noise = 0.1 * rng.normal(size=n)[c] if design.get("clusters") else 0.0
    mean = 0.45 + 0.3 * np.tanh(driver) + effect * member + noise
    y = mean + 0.3 * rng.normal(size=n) if design.get("real") else (rng.random(n) < mean) * 1.0
    frame = pl.DataFrame(
        {"x": x, "z": z, "u": u, "g": np.where(member, "a", "b"), "y": y, "c": c,
         "w": np.exp(rng.normal(0, 0.4, n))}
    )  # fmt: skip
    return frame, effect


if __name__ == "__main__":
    main("disparities given factors", run)
