"""Who is unknown: coverage of worst-case ranges, of ranges from probabilities, and of cheap labels.

    python validation/inference/unknown.py [--full]

Attributes are missing of 2 to 60 % of people, at random, or more often in one group, at one
outcome, or both. A world is wrong if any bound lies inside the range that the population leaves
open, which is a stronger demand than holding the truth. Widths are set beside those of an oracle
that knows everybody's group. Probabilities in place of groups are tried where both branches of the
range are equally near (the kinks); cheap labels from perfect to useless, beside gold labels alone
and beside the usual prediction-powered interval.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtri

sys.path.insert(0, str(Path(__file__).parents[1]))

from records import agreed, main, standard_error, write

import equipoise as eq
from equipoise.methods.inference.core import bounds
from equipoise.methods.inference.labels import LabelSums, powered_core
from equipoise.methods.inference.unknown import ProxySums, proxy_core
from equipoise.methods.targets import Complement, Constant, Overall, Target

SEED, LEVEL = 20_271_120, 0.95


@dataclass(frozen=True, kw_only=True)
class Design:
    """People, and whose group is not known."""

    name: str
    share: float
    """Of people whose group is unknown."""
    depends: str = "nothing"
    """What being unknown depends on: nothing, outcome, group, both, or the worst there can be."""
    rows: int = 1500
    sizes: tuple[float, ...] = (0.6, 0.3, 0.1)
    rates: tuple[float, ...] = (0.3, 0.4, 0.2)
    target: str = "overall"
    relative: bool = False
    clusters: int = 0
    weights: bool = False


SHARES = (0.02, 0.1, 0.3, 0.6)
DESIGNS = (
    *(Design(name=f"{share:.0%} unknown", share=share) for share in SHARES),
    *(Design(name=f"{share:.0%}, by outcome and group", share=share, depends="both",
             target="complement") for share in SHARES),
    *(Design(name=f"{share:.0%}, as bad as can be", share=share, depends="worst",
             target="reference") for share in SHARES[:3]),
    Design(name="10%, by group, ratio", share=0.1, depends="group", target="reference",
           relative=True),
    Design(name="10%, by outcome, a number", share=0.1, depends="outcome", target="number"),
    Design(name="30%, rare group and outcome", share=0.3, depends="both", rows=2000,
           sizes=(0.7, 0.28, 0.02), rates=(0.05, 0.08, 0.1)),
    Design(name="10%, ten groups of 30", share=0.1, depends="outcome", rows=300,
           sizes=(0.1,) * 10, rates=(0.3,) * 10, target="complement"),
    Design(name="10%, 80 clusters", share=0.1, depends="outcome", clusters=80),
    Design(name="10%, weights", share=0.1, depends="outcome", weights=True),
)  # fmt: skip


def run(full: bool = False) -> dict[str, Any]:
    """Examine all parts; ``full`` takes 1000 worlds instead of 8."""
    worlds = 1000 if full else 8
    many = 4000 if full else 240
    with ProcessPoolExecutor(max_workers=2) as pool:
        rows = list(pool.map(_missing, range(len(DESIGNS)), [worlds] * len(DESIGNS)))
        rows += list(pool.map(_proxies, range(len(CHANCES)), [many] * len(CHANCES)))
        rows += list(pool.map(_cheap, range(len(JUDGES)), [many] * len(JUDGES)))
        rows += list(pool.map(_logged, range(len(LOGGED)), [worlds] * len(LOGGED)))
    result = {
        "source": "people, and labels, that are unknown",
        "nominal": round(1 - LEVEL, 2),
        "rows": rows,
        "agrees": agreed(rows),
    }
    return write(__file__, "unknown", result, full)


def _most(worlds: int) -> float:
    """A point above nominal, and three standard errors at that rate."""
    nominal = 1 - LEVEL + 0.01
    return nominal + 3 * standard_error(nominal, worlds)


# --- Attributes that are missing ---


def _missing(number: int, worlds: int) -> dict[str, Any]:
    design = DESIGNS[number]
    chance = _chances(design)
    ranges, truth = _population(design, chance)
    missed = outside = 0
    wide: list[float] = []
    ratio: list[float] = []
    for world in range(worlds):
        rng = np.random.default_rng([SEED, number, world])
        table, full = _people(design, chance, rng)
        found = eq.certify(_trail(design, table), _claim(design, "worst"), resamples=2000, rng=1)
        told = [row for row in found.rows if row.lower is not None and row.upper is not None]
        ends = {row.group: (row.lower, row.upper) for row in told}
        missed += any(
            low > ranges[g][0] + 1e-9 or high < ranges[g][1] - 1e-9
            for g, (low, high) in ends.items()
        )
        outside += any(low > truth[g] or high < truth[g] for g, (low, high) in ends.items())
        wide += [high - low for low, high in ends.values()]
        if world < 50:
            ratio += _beside_oracle(design, full, ends)
    most = _most(worlds)
    return {
        "part": "missing attributes",
        "design": design.name,
        "worlds": worlds,
        "range_missed": round(missed / worlds, 4),
        "truth_missed": round(outside / worlds, 4),
        "most": round(most, 4),
        "width": round(float(np.median(wide)), 4),
        "against_oracle": round(float(np.median(ratio)), 2),
        "agrees": bool(missed / worlds <= most),
    }


def _beside_oracle(
    design: Design, full: pl.DataFrame, ends: dict[str, tuple[float, float]]
) -> list[float]:
    """Widths over those of somebody who knows everybody's group."""
    oracle = eq.certify(_trail(design, full), _claim(design, "group"), resamples=2000, rng=1)
    known = {
        row.group: row.upper - row.lower
        for row in oracle.rows
        if row.lower is not None and row.upper is not None
    }
    return [(high - low) / known[g] for g, (low, high) in ends.items() if g in known]


def _chances(design: Design) -> np.ndarray:
    """Chance of being unknown, by group and outcome."""
    size = len(design.sizes)
    tilt = np.ones((size, 2))
    if design.depends in ("outcome", "both"):
        tilt[:, 1] *= 2.5
    if design.depends in ("group", "both"):
        tilt[-1] *= 2
    if design.depends == "worst":
        # the last group hides its zeros, and the first its ones
        tilt[:] = 0.02
        tilt[-1, 0] = tilt[0, 1] = 1.0
    weight = np.array(design.sizes)[:, None] * _outcomes(design)
    return np.asarray(np.minimum(tilt * design.share / (weight * tilt).sum(), 0.95))


def _outcomes(design: Design) -> np.ndarray:
    rate = np.array(design.rates)
    return np.stack([1 - rate, rate], axis=1)


def _population(
    design: Design, chance: np.ndarray
) -> tuple[dict[str, tuple[float, float]], dict[str, float]]:
    """What the population leaves open of every disparity, and what is true."""
    mass = np.array(design.sizes)[:, None] * _outcomes(design)
    known, unknown = mass * (1 - chance), (mass * chance).sum(axis=0)
    everyone = mass.sum(axis=0)[1]
    ranges, truth = {}, {}

    def disparity(own: float, other: float) -> float:
        return own / other if design.relative else own - other

    def rate(pair: np.ndarray) -> float:
        return float(pair[1] / pair.sum())

    for g in range(len(design.sizes)):
        ends = []
        for keep in (np.array([1.0, 0.0]), np.array([0.0, 1.0])):
            own = known[g] + keep * unknown
            rest = known.sum(axis=0) - known[g] + (1 - keep) * unknown
            other = {
                "overall": everyone, "complement": rate(rest),
                "reference": rate(known[0] + (1 - keep) * unknown), "number": 0.3,
            }[design.target]  # fmt: skip
            ends.append(disparity(rate(own), other))
        rest = mass.sum(axis=0) - mass[g]
        other = {
            "overall": everyone, "complement": rate(rest), "reference": rate(mass[0]),
            "number": 0.3,
        }[design.target]  # fmt: skip
        ranges[f"g{g}"] = (min(ends), max(ends))
        truth[f"g{g}"] = disparity(rate(mass[g]), other)
    return ranges, truth


def _people(
    design: Design, chance: np.ndarray, rng: np.random.Generator
) -> tuple[pl.DataFrame, pl.DataFrame]:
    n = design.rows
    group = rng.choice(len(design.sizes), n, p=np.array(design.sizes))
    place = rng.integers(0, max(design.clusters, 1), n)
    base = np.array(design.rates)[group]
    if design.clusters:
        # clusters differ, and the rate of each group stays what it is
        base = np.clip(base + rng.uniform(-0.1, 0.1, design.clusters)[place], 0, 1)
    outcome = (rng.random(n) < base).astype(int)
    names = np.array([f"g{i}" for i in range(len(design.sizes))], dtype=object)[group]
    full = pl.DataFrame(
        {
            "group": names.tolist(),
            "hired": outcome,
            "place": place,
            "weight": rng.uniform(0.5, 1.5, n),
        }
    )
    hidden = names.copy()
    hidden[rng.random(n) < chance[group, outcome]] = None
    return full.with_columns(pl.Series("group", hidden.tolist(), dtype=pl.String)), full


def _trail(design: Design, table: pl.DataFrame) -> eq.Trail:
    roles = {"cluster": "place"} if design.clusters else {}
    roles |= {"weight": "weight"} if design.weights else {}
    return eq.read(table, prediction="hired", **roles)


def _claim(design: Design, unknown: str) -> Any:
    target = {
        "overall": eq.overall(), "complement": eq.complement(),
        "reference": eq.reference(group="g0"), "number": eq.constant(0.3),
    }[design.target]  # fmt: skip
    make: Any = eq.ratio if design.relative else eq.gap
    return make("selection_rate", across="group", target=target, unknown=unknown)


# --- Probabilities in place of groups ---

#: Name, rows, shape of the chances, outcome's rate at a chance, share of rows that count.
CHANCES = (
    ("at the upper kink", 500, (0.5, 0.8), "p", 1.0),
    ("at the upper kink", 5000, (0.5, 0.8), "p", 1.0),
    ("at the lower kink", 500, (0.5, 0.8), "1 - p", 1.0),
    ("at the lower kink", 5000, (0.5, 0.8), "1 - p", 1.0),
    ("one rate for all", 500, (0.5, 0.8), "0.5", 1.0),
    ("one rate for all", 5000, (0.5, 0.8), "0.5", 1.0),
    ("rare outcome", 5000, (0.5, 0.8), "0.05", 1.0),
    ("rare group", 5000, (0.3, 6.0), "0.1", 1.0),
    ("25 people of the group", 500, (0.05, 0.8), "0.1", 1.0),
    ("nearly known, rare outcome", 400, (0.02, 0.1), "0.05", 1.0),
    ("half of the rows count", 1000, (0.5, 0.8), "0.5", 0.5),
    ("half of the rows count, kink", 5000, (0.5, 0.8), "p", 0.5),
    ("nine tenths count, nearly known", 600, (0.05, 0.1), "0.2", 0.9),
)
RATES: dict[str, Any] = {
    "p": lambda p: p, "1 - p": lambda p: 1 - p, "0.5": lambda p: 0 * p + 0.5,
    "0.05": lambda p: 0 * p + 0.05, "0.1": lambda p: 0 * p + 0.1, "0.2": lambda p: 0 * p + 0.2,
}  # fmt: skip
CELLS = 20


def _proxies(number: int, worlds: int) -> dict[str, Any]:
    name, rows, shape, rate, counted = CHANCES[number]
    rng = np.random.default_rng([SEED, 7, number])
    low, high = _true_range(shape, RATES[rate], counted, rng)
    tables = [
        _chance_sums(rng.beta(*shape, rows), RATES[rate], counted, rng) for _ in range(worlds)
    ]
    sums = {key: np.stack([t[key] for t in tables], axis=1) for key in tables[0]}
    cells = ProxySums(**sums, free=np.zeros(CELLS, dtype=bool))
    core = proxy_core(cells, Constant(value=0.0), None, relative=False)
    able = core.answered
    lower, upper = bounds(core.pivot, able, float(ndtri((1 + LEVEL) / 2)), (0.0, 1.0))
    missed = ((lower > low + 1e-9) | (upper < high - 1e-9)).sum() / worlds
    most = _most(worlds)
    return {
        "part": "probabilities",
        "design": f"{name}, {rows:,} rows",
        "worlds": worlds,
        "range_missed": round(float(missed), 4),
        "most": round(most, 4),
        "range": [round(low, 3), round(high, 3)],
        "width": round(float(np.median(upper - lower)), 4),
        "plug_in_too_low": round(float(high - np.nanmean(_plugged(cells)[1])), 4),
        "ours_too_low": round(float(high - core.high.pivot.estimate.mean()), 4),
        "answered": round(able.size / worlds, 3),
        "agrees": bool(missed <= most),
    }


def _plugged(cells: ProxySums) -> tuple[np.ndarray, np.ndarray]:
    """The range as it would be if every cell were what it seems."""
    ends = []
    for good, bad in ((cells.zeros, cells.ones), (cells.ones, cells.zeros)):
        most = np.minimum(cells.chance, good).sum(axis=0)
        least = np.maximum(cells.chance + bad - cells.rows, 0.0).sum(axis=0)
        ends.append(most / np.maximum(most + least, 1e-300))
    return 1 - ends[0], ends[1]


def _chance_sums(
    p: np.ndarray, rate: Any, counted: float, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    y = rng.random(p.size) < rate(p)
    counts = rng.random(p.size) < counted
    place = np.minimum((p * CELLS).astype(int), CELLS - 1)
    one, zero = (y & counts).astype(float), (~y & counts).astype(float)
    columns = {"rows": np.ones_like(p), "chance": p, "chance2": p * p, "ones": one, "zeros": zero}
    columns |= {"chance_ones": p * one, "chance_zeros": p * zero}
    return {name: np.bincount(place, x, CELLS) for name, x in columns.items()}


def _true_range(
    shape: tuple[float, float], rate: Any, counted: float, rng: np.random.Generator
) -> tuple[float, float]:
    """The range over cells of the population, from very many chances."""
    p = rng.beta(*shape, 2_000_000)
    place = np.minimum((p * CELLS).astype(int), CELLS - 1)
    every = (np.ones_like(p), p, p * p, counted * rate(p), counted * (1 - rate(p)))
    n, chance, chance2, ones, zeros = (np.bincount(place, x, CELLS)[:, None] for x in every)
    none = np.zeros_like(n)
    low, high = _plugged(
        ProxySums(rows=n, chance=chance, chance2=chance2, ones=ones, zeros=zeros,
                  chance_ones=none, chance_zeros=none, free=np.zeros(CELLS, dtype=bool))
    )  # fmt: skip
    return float(low[0]), float(high[0])


# --- Labels that were seen with logged chances ---

#: Name; chances of everybody; the share of the second group with a chance of its own, that chance,
#: and how often the model errs with them, and with others.
LOGGED: tuple[tuple[str, tuple[float, float], float, float, float, float], ...] = (
    ("chances from .01 to .9", (0.01, 0.9), 0.0, 0.5, 0.2, 0.2),
    ("a tenth hardly ever seen, all wrong", (0.95, 0.95), 0.1, 0.002, 1.0, 0.1),
    ("a tenth of whom two are seen, all wrong", (0.95, 0.95), 0.1, 0.01, 1.0, 0.1),
    ("a tenth of whom nine are seen, all wrong", (0.95, 0.95), 0.1, 0.05, 1.0, 0.1),
    ("a tenth of whom nine are seen, the only ones wrong", (0.95, 0.95), 0.1, 0.05, 1.0, 0.0),
)


def _logged(number: int, worlds: int) -> dict[str, Any]:
    name, (low, high), share, rare, wrong, usual = LOGGED[number]
    truth = share * (wrong - usual)
    claim = eq.gap("error_rate", across="group", target="complement")
    missed, wide = 0, []
    for world in range(worlds):
        rng = np.random.default_rng([SEED, 9, number, world])
        second = rng.random(6000) < 0.3
        hidden = second & (rng.random(6000) < share)
        chance = np.where(hidden, rare, rng.uniform(low, high, 6000))
        label = rng.integers(0, 2, 6000)
        errs = rng.random(6000) < np.where(hidden, wrong, usual)
        seen = rng.random(6000) < chance
        table = pl.DataFrame({
            "group": np.where(second, "b", "a"), "chance": chance,
            "said": np.where(errs, 1 - label, label),
            "label": [float(y) if k else None for y, k in zip(label, seen, strict=True)],
        })  # fmt: skip
        row = eq.certify(
            table, claim, rng=1, label="label", prediction="said", observed="chance"
        ).ask(group="b")
        if row.lower is not None and row.upper is not None:
            missed += row.lower > truth + 1e-9 or row.upper < truth - 1e-9
            wide.append(row.upper - row.lower)
    most = _most(worlds)
    return {
        "part": "logged chances",
        "design": name,
        "worlds": worlds,
        "missed": round(missed / worlds, 4),
        "most": round(most, 4),
        "width": round(float(np.median(wide)), 4),
        "answered": round(len(wide) / worlds, 3),
        "agrees": bool(missed / worlds <= most),
    }


# --- Few gold labels, many cheap ones ---

#: Rows, rows with a gold label, rate, chance that the cheap label is wrong, against what.
JUDGES: tuple[tuple[int, int, float, float, Target], ...] = (
    (2000, 100, 0.3, 0.0, Constant(value=0.0)),
    (2000, 100, 0.3, 0.05, Constant(value=0.0)),
    (2000, 100, 0.3, 0.2, Constant(value=0.0)),
    (2000, 100, 0.3, 0.5, Constant(value=0.0)),
    (2000, 40, 0.3, 0.1, Constant(value=0.0)),
    (5000, 200, 0.05, 0.05, Constant(value=0.0)),
    (5000, 200, 0.3, 0.1, Overall()),
    (5000, 200, 0.3, 0.1, Complement()),
)


def _cheap(number: int, worlds: int) -> dict[str, Any]:
    rows, gold, rate, wrong, target = JUDGES[number]
    rng = np.random.default_rng([SEED, 8, number])
    # two groups of a third and two thirds, the first ten points above the second but for numbers
    rates = (rate, rate) if isinstance(target, Constant) else (rate + 0.1, rate)
    truth = rate if isinstance(target, Constant) else 0.1
    truth *= 2 / 3 if isinstance(target, Overall) else 1
    missed = alone = usual = 0
    wide: list[tuple[float, float]] = []
    score = float(ndtri((1 + LEVEL) / 2))
    for _ in range(worlds // 4):
        sums, normal = _judged(rng, rows, gold, rates, wrong)
        ends = []
        for cells in (sums, _gold_only(sums)):
            core, _ = powered_core(cells, target, lambda x: x, relative=False)
            low, high = bounds(core.pivot, np.array([0]), score, (-1.0, 1.0))
            ends.append((float(low[0]), float(high[0])))
        missed += not ends[0][0] <= truth <= ends[0][1]
        alone += not ends[1][0] <= truth <= ends[1][1]
        usual += not normal[0] <= rates[0] <= normal[1]
        wide.append((ends[0][1] - ends[0][0], ends[1][1] - ends[1][0]))
    many = worlds // 4
    most = _most(many)
    widths = np.array(wide)
    return {
        "part": "cheap labels",
        "design": f"{gold} of {rows:,}, rate {rate:g}, {wrong:.0%} wrong, "
        f"{type(target).__name__.lower()}",
        "worlds": many,
        "missed": round(missed / many, 4),
        "gold_alone_missed": round(alone / many, 4),
        "usual_interval_missed": round(usual / many, 4),
        "most": round(most, 4),
        "width_to_gold": round(float(np.median(widths[:, 0] / widths[:, 1])), 3),
        "wider_than_gold": round(float((widths[:, 0] > widths[:, 1] * 1.02).mean()), 4),
        "agrees": bool(missed / many <= most),
    }


def _judged(
    rng: np.random.Generator, rows: int, gold: int, rates: tuple[float, float], wrong: float
) -> tuple[LabelSums, tuple[float, float]]:
    """Sums of two groups, and the usual interval (Angelopoulos and others) of the first."""
    group = rng.random(rows) < 2 / 3
    y = (rng.random(rows) < np.where(group, rates[1], rates[0])).astype(float)
    f = np.where(rng.random(rows) < wrong, 1 - y, y)
    told = np.zeros(rows, dtype=bool)
    told[rng.choice(rows, gold, replace=False)] = True
    one = np.ones(rows)
    columns = (told, told, told * y, told, told * f, told * y * f, told * y, told * f, told,
               one, one, f)  # fmt: skip
    names = LabelSums.__dataclass_fields__
    place = group.astype(int)
    sums = {n: np.bincount(place, x, 2).astype(float) for n, x in zip(names, columns, strict=True)}
    own = ~group
    a, b, rest = y[own & told], f[own & told], f[own & ~told]
    n, more = max(a.size, 2), max(rest.size, 2)
    lam = np.cov(a, b)[0, 1] / max((1 + n / more) * f[own].var(), 1e-12)
    mean = (a - lam * b).mean() + lam * rest.mean()
    half = float(ndtri((1 + LEVEL) / 2)) * np.sqrt(
        (a - lam * b).var() / n + lam**2 * rest.var() / more
    )
    return LabelSums(**sums), (float(mean - half), float(mean + half))


def _gold_only(sums: LabelSums) -> LabelSums:
    """The same people without their cheap labels: a judge that always says no."""
    zero = np.zeros_like(sums.rows)
    return replace(sums, cheap_value=zero, value_value=zero, eligible_value=zero, all_value=zero)


if __name__ == "__main__":
    main("unknown", run)
