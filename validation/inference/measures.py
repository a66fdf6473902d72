"""Measures that are no means: how often simultaneous bounds on gaps and ratios miss the truth.

Each design draws tables of several groups, small ones, ties, skewed numbers, unequal sizes, weights
and clusters among them, asks `certify` for bounds on all groups at once, and counts the tables in
which any bound is wrong. Where groups are alike (few rows, ties, right everywhere) that is also the
chance of any false flag by the same tails. True values are those of two million rows of all groups
together, by formulas of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from records import agreed, main, write

import equipoise as eq

Floats = npt.NDArray[np.float64]
Table = dict[str, Any]
Draw = Callable[[np.random.Generator, int, int], Table]
LEVEL, MORE = 0.90, 0.01
"""Confidence that is asked for, and how many points more than its complement may be missed."""
TRUE_ROWS = 2_000_000


# --- What a group's rows are ---


def scored(
    *, apart: float, ones: float, drift: float = 0.0, ties: int = 0, cut: float = 0.5
) -> Draw:
    """Scores that tell outcomes apart, more so in later groups by ``drift``; rounded if asked."""

    def draw(rng: np.random.Generator, rows: int, group: int) -> Table:
        y = (rng.random(rows) < ones).astype(np.int64)
        raw = rng.normal(size=rows) + (apart + drift * group) * y
        s = 1 / (1 + np.exp(-(raw - 1)))
        if ties:
            s = np.round(s * ties) / ties
        return {"y": y, "s": s, "p": (s >= cut).astype(np.int64)}

    return draw


def probable(*, error: float, drift: float = 0.0) -> Draw:
    """Probabilities that are right, or too extreme by ``error``."""

    def draw(rng: np.random.Generator, rows: int, group: int) -> Table:
        s = rng.beta(1.5, 2.5, rows)
        true = np.clip(s + (error + drift * group) * np.sin(9 * s), 0.0, 1.0)
        y = (rng.random(rows) < true).astype(np.int64)
        return {"y": y, "s": s, "p": (s >= 0.5).astype(np.int64)}

    return draw


def paid(*, spread: float, drift: float = 0.0, step: float = 0.0, tail: bool = False) -> Draw:
    """Log-normal pay, in steps if asked, with a Pareto tail if asked."""

    def draw(rng: np.random.Generator, rows: int, group: int) -> Table:
        pay = 30 * np.exp(spread * rng.normal(size=rows) + drift * group)
        if tail:
            pay = np.where(rng.random(rows) < 0.05, pay * (1 + rng.pareto(2.5, rows)), pay)
        if step:
            pay = np.maximum(np.round(pay / step), 1.0) * step
        return {"pay": pay}

    return draw


def claimed(*, often: float, size: float, drift: float = 0.0) -> Draw:
    """Claims that are rare and skewed, beside what was expected of each contract."""

    def draw(rng: np.random.Generator, rows: int, group: int) -> Table:
        years = rng.choice([0.25, 0.5, 1.0, 1.0], rows)
        rate = often * np.exp(0.4 * rng.normal(size=rows))
        number = rng.poisson(rate * years * np.exp(drift * group))
        cost = number * np.exp(size * rng.normal(size=rows))
        return {"y": cost, "s": rate * years * np.exp(size**2 / 2)}

    return draw


def classed(*, shares: tuple[float, ...], right: float, drift: float = 0.0) -> Draw:
    """Several classes, told right with a chance that differs by group."""

    def draw(rng: np.random.Generator, rows: int, group: int) -> Table:
        y = rng.choice(len(shares), rows, p=shares)
        wrong = rng.choice(len(shares), rows)
        said = np.where(rng.random(rows) < right + drift * group, y, wrong)
        return {"y": y, "p": said, "s": np.zeros(rows)}

    return draw


def told(*, ones: float, right: tuple[float, float]) -> Draw:
    """Two classes, each told right with a chance of its own: often nobody of a few is wrong."""

    def draw(rng: np.random.Generator, rows: int, group: int) -> Table:
        y = (rng.random(rows) < ones).astype(np.int64)
        fine = rng.random(rows) < np.where(y == 1, right[1], right[0])
        p = np.where(fine, y, 1 - y)
        return {"y": y, "p": p, "s": p.astype(np.float64)}

    return draw


# --- Values by formulas of their own ---


def true_auc(t: Table) -> float:
    """By ranks."""
    from scipy.stats import rankdata

    y = t["y"] == 1
    rank = rankdata(t["s"])
    m, n = y.sum(), (~y).sum()
    return float((rank[y].sum() - m * (m + 1) / 2) / (m * n))


def true_f1(t: Table) -> float:
    """From its definition."""
    return float(2 * (t["y"] & t["p"]).sum() / (t["y"].sum() + t["p"].sum()))


def true_lift(t: Table) -> float:
    """Precision over base rate."""
    return float(t["y"][t["p"] == 1].mean() / t["y"].mean())


def true_matthews(t: Table) -> float:
    """The correlation of label and prediction."""
    return float(np.corrcoef(t["y"], t["p"])[0, 1])


def true_balanced(t: Table) -> float:
    """The mean of both recalls."""
    return float((t["p"][t["y"] == 1].mean() + (1 - t["p"][t["y"] == 0]).mean()) / 2)


def true_ece(t: Table) -> float:
    """Range by range; what noise adds at two million rows is below 0.001."""
    place = np.minimum((t["s"] * 10).astype(int), 9)
    gap = np.bincount(place, t["y"] - t["s"], 10)
    return float(np.abs(gap).sum() / len(place))


def true_quotient(t: Table) -> float:
    """Total over total."""
    return float(t["y"].sum() / t["s"].sum())


def true_quantile(q: float) -> Callable[[Table], float]:
    """The sample quantile."""
    return lambda t: float(np.quantile(t["pay"], q, method="inverted_cdf"))


def true_recall(t: Table) -> float:
    """The mean of the recalls."""
    return float(np.mean([(t["p"] == c)[t["y"] == c].mean() for c in np.unique(t["y"])]))


def true_precision(t: Table) -> float:
    """The mean of the precisions."""
    return float(np.mean([(t["y"] == c)[t["p"] == c].mean() for c in np.unique(t["p"])]))


def true_macro_f1(t: Table) -> float:
    """The mean of the F1 of all classes."""
    each = []
    for c in np.unique(t["y"]):
        y, p = t["y"] == c, t["p"] == c
        each.append(2 * (y & p).sum() / (y.sum() + p.sum()))
    return float(np.mean(each))


def mean_pay(t: Table) -> float:
    """The mean, to be divided by everybody's standard deviation."""
    return float(t["pay"].mean())


# --- Designs ---


@dataclass(frozen=True, kw_only=True)
class Design:
    """One kind of world."""

    name: str
    metric: eq.Metric
    draw: Draw
    true: Callable[[Table], float]
    sizes: tuple[int, ...]
    target: str = "complement"
    ratio: bool = False
    weights: bool = False
    clusters: int = 0


FEW, MIXED, MANY = (60, 80, 120), (40, 150, 900), (150, 100, 80, 60, 200, 120, 90, 300)
LOW, HIGH = scored(apart=1.0, ones=0.3), scored(apart=3.0, ones=0.3, drift=0.1)
TIED, RARE = scored(apart=1.2, ones=0.4, ties=4), scored(apart=1.5, ones=0.12, drift=0.2)
PAY, STEPS = paid(spread=0.5, drift=0.1), paid(spread=0.6, drift=0.05, step=15)
FAT = paid(spread=0.8, tail=True)
COST, COST2 = claimed(often=0.3, size=0.8), claimed(often=0.8, size=0.5, drift=0.1)
EXACT, OFF = probable(error=0.0), probable(error=0.1, drift=0.03)
CLASSES = classed(shares=(0.5, 0.3, 0.2), right=0.6, drift=0.05)
EASY, SURE = told(ones=0.1, right=(0.7, 0.9)), told(ones=0.3, right=(0.99, 0.97))
TENS = (120, 120, 150, 400)
"""Groups with about a dozen rows of the rarer class."""


def designs() -> list[Design]:
    """All worlds."""
    made: list[Design] = []

    def add(name: str, metric: eq.Metric, true: Callable[[Table], float], *kinds: Any) -> None:
        for words, draw, sizes, more in kinds:
            made.append(
                Design(name=f"{name}, {words}", metric=metric, draw=draw, true=true, sizes=sizes,
                       **more)
            )  # fmt: skip

    add(
        "AUC", eq.auc, true_auc,
        ("few rows", LOW, FEW, {}), ("ties", TIED, FEW, {"target": "reference"}),
        ("near one", HIGH, MIXED, {}), ("rare ones, unequal sizes", RARE, MIXED, {}),
        ("eight groups against everyone", LOW, MANY, {"target": "overall"}),
        ("ratio", LOW, FEW, {"ratio": True}), ("weights", LOW, MIXED, {"weights": True}),
        ("clusters", LOW, (300, 300, 400), {"clusters": 8}),
    )  # fmt: skip
    add("Gini", eq.gini, lambda t: 2 * true_auc(t) - 1, ("few rows", LOW, FEW, {}))
    add(
        "F1", eq.f1, true_f1,
        ("few rows", LOW, FEW, {}), ("rare ones, unequal sizes", RARE, MIXED, {}),
        ("near one", HIGH, MIXED, {"target": "reference"}),
        ("eight groups against everyone", LOW, MANY, {"target": "overall"}),
        ("ratio", LOW, MIXED, {"ratio": True}), ("weights", LOW, MIXED, {"weights": True}),
        ("clusters", LOW, (300, 300, 400), {"clusters": 8}),
    )  # fmt: skip
    add("lift", eq.lift, true_lift, ("few rows", LOW, FEW, {}), ("rare ones", RARE, MIXED, {}))
    hard: tuple[Any, ...] = (
        ("a dozen of a class, nearly all right", EASY, TENS, {}),
        ("a dozen, against a number", EASY, TENS, {"target": "number"}),
        ("nearly all right", SURE, TENS, {}),
    )
    add("F1", eq.f1, true_f1, *hard)
    add("Matthews", eq.matthews, true_matthews, ("few rows", LOW, FEW, {}), *hard)
    add("balanced accuracy", eq.balanced_accuracy, true_balanced,
        ("rare ones", RARE, MIXED, {}), *hard)  # fmt: skip
    add("macro precision", eq.macro_precision, true_precision, *hard)
    add(
        "calibration error", eq.expected_calibration_error, true_ece,
        ("right everywhere", EXACT, MIXED, {}), ("wrong", OFF, MIXED, {}),
        ("wrong, against a number", OFF, FEW, {"target": "number"}),
        ("right, eight groups", EXACT, MANY, {"target": "overall"}),
    )  # fmt: skip
    add(
        "actual/expected", eq.actual_expected, true_quotient,
        ("skewed claims", COST, (300, 500, 900), {}), ("often", COST2, MIXED, {}),
        ("often, ratio", COST2, MIXED, {"ratio": True}),
        ("often, clusters", COST2, (300, 300, 400), {"clusters": 8}),
    )  # fmt: skip
    middle, upper = eq.median("pay"), eq.quantile("pay", 0.9)
    add(
        "median", middle, true_quantile(0.5),
        ("few rows", PAY, (15, 25, 40), {}), ("steps", STEPS, (30, 60, 200), {}),
        ("long tail, unequal sizes", FAT, MIXED, {"target": "reference"}),
        ("everyone", PAY, MANY, {"target": "overall"}),
        ("steps, ratio", STEPS, MIXED, {"ratio": True, "target": "reference"}),
        ("weights", PAY, MIXED, {"weights": True}),
    )  # fmt: skip
    add(
        "0.9 quantile", upper, true_quantile(0.9),
        ("few rows", PAY, FEW, {}), ("long tail", FAT, MIXED, {}),
        ("steps, everyone", STEPS, FEW, {"target": "overall"}),
    )  # fmt: skip
    add(
        "standardised", eq.standardised("pay"), mean_pay,
        ("skewed pay", PAY, MIXED, {}), ("few rows", PAY, FEW, {"target": "reference"}),
    )  # fmt: skip
    add("macro recall", eq.macro_recall, true_recall, ("few rows", CLASSES, (90, 120, 300), {}))
    add("macro F1", eq.macro_f1, true_macro_f1, ("few rows", CLASSES, (90, 120, 300), {}))
    return made


def table_of(design: Design, rng: np.random.Generator, sizes: tuple[int, ...]) -> Table:
    """One table of all groups."""
    parts = []
    for group, rows in enumerate(sizes):
        if design.weights:
            # heavier rows are rarer in the sample, as in a survey by design, and have more to say
            pool = design.draw(rng, rows * 6, group)
            first = next(iter(pool))
            large = pool[first] > np.mean(pool[first])
            heavy = rng.random(rows * 6) < np.where(large, 0.7, 0.3)
            keep = np.flatnonzero(rng.random(rows * 6) < np.where(heavy, 0.2, 0.6))[:rows]
            part = {n: x[keep] for n, x in pool.items()}
            part["w"] = np.where(heavy, 3.0, 1.0)[keep]
            assert len(part[first]) > 0
        elif design.clusters:
            part = _clustered(design, rng, rows, group)
        else:
            part = design.draw(rng, rows, group)
        size = len(next(iter(part.values())))
        parts.append({"g": np.full(size, f"g{group}"), **part})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _clustered(design: Design, rng: np.random.Generator, rows: int, group: int) -> Table:
    """Rows in clusters, a third of which are copies of another row of their cluster."""
    part = design.draw(rng, rows, group)
    cluster = np.arange(rows) // design.clusters
    first = cluster * design.clusters
    source = np.where(rng.random(rows) < 0.33, first, np.arange(rows))
    part = {n: x[source] for n, x in part.items()}
    part["c"] = np.array([f"{group} {c}" for c in cluster])
    return part


def truth_of(design: Design) -> Floats:
    """True disparities of all groups."""
    rng = np.random.default_rng(2026)
    big = [design.draw(rng, TRUE_ROWS // len(design.sizes), g) for g in range(len(design.sizes))]
    share = np.array(design.sizes) / sum(design.sizes)
    value = np.array([design.true(part) for part in big])
    if design.target == "number":
        beside = np.zeros(len(value))
    elif design.target == "reference":
        beside = np.full(len(value), value[-1])
    else:
        beside = np.array([_others(design, big, share, g) for g in range(len(value))])
    if "standardised" in design.name:
        mixed = _mixture(big, share, None)
        sd = float(mixed["pay"].std())
        value, beside = value / sd, beside / sd
    return value / beside if design.ratio else value - beside


def _others(design: Design, big: list[Table], share: Floats, group: int) -> float:
    left_out = group if design.target == "complement" else None
    return design.true(_mixture(big, share, left_out))


def _mixture(big: list[Table], share: Floats, left_out: int | None) -> Table:
    used = [g for g in range(len(big)) if g != left_out]
    most = max(share[g] for g in used)
    size = len(next(iter(big[0].values())))
    rows = {g: int(size * share[g] / most) for g in used}
    return {n: np.concatenate([big[g][n][: rows[g]] for g in used]) for n in big[0]}


def measured(design: Design, worlds: int) -> dict[str, Any]:
    """How often any bound is wrong."""
    truth = truth_of(design)
    kind = eq.ratio if design.ratio else eq.gap
    last = f"g{len(design.sizes) - 1}"
    target = {
        "complement": eq.complement(),
        "overall": eq.overall(),
        "reference": eq.reference(g=last),
        "number": 0.0,
    }[design.target]
    claim = kind(design.metric, across="g", target=target)
    missed = above = below = answered = 0
    for world in range(worlds):
        rng = np.random.default_rng([world, 26])
        table = table_of(design, rng, design.sizes)
        columns = {"label": "y", "score": "s", "prediction": "p", "weight": "w", "cluster": "c"}
        roles = {role: name for role, name in columns.items() if name in table}
        trail = eq.read(pl.DataFrame(table), **roles)
        bounds = eq.certify(trail, claim, level=LEVEL, rng=world, resamples=1000)
        wrong = [0, 0]
        for row, true in zip(bounds.rows, truth, strict=True):
            low, high = row.lower, row.upper
            answered += row.note == ""
            hair = 1e-9 * max(abs(true), 1.0)
            wrong[0] += low is not None and low > true + hair
            wrong[1] += high is not None and high < true - hair
        missed += sum(wrong) > 0
        above += wrong[0] > 0
        below += wrong[1] > 0
    share = missed / worlds
    noise = 2.33 * np.sqrt((1 - LEVEL + MORE) * (LEVEL - MORE) / worlds)
    return {
        "design": design.name,
        "groups": len(design.sizes),
        "answered": round(answered / worlds / len(design.sizes), 3),
        "missed": round(share, 4),
        "too high": round(above / worlds, 4),
        "too low": round(below / worlds, 4),
        "nominal": round(1 - LEVEL, 4),
        "agrees": bool(share <= 1 - LEVEL + MORE + noise),
    }


def _numbered(number: int, worlds: int) -> dict[str, Any]:
    """One of the designs, by its place: what it is made of cannot be sent to another process."""
    row = measured(designs()[number], worlds)
    print(row, file=sys.stderr, flush=True)
    return row


def run(full: bool = False) -> dict[str, Any]:
    """Run all designs; ``full`` takes a thousand worlds of each."""
    worlds = 1000 if full else 6
    with ProcessPoolExecutor(max_workers=2) as pool:
        rows = list(pool.map(_numbered, range(len(designs())), [worlds] * len(designs())))
    result = {
        "source": "measures that are no means",
        "level": LEVEL,
        "rows": rows,
        "agrees": agreed(rows),
    }
    return write(__file__, "measures", result, full)


if __name__ == "__main__":
    main("measures", run)
