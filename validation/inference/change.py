"""Did it get worse for anyone? The error of paired changes, enumerated, and their power.

Differences of two 0/1 metrics are −1, 0 or 1. For groups of 3 to 60 rows every table is written
out, and the chance of a wrong answer added up over a grid of shares, beside the exact form of
McNemar's test and its mid-p form. Forty groups at once are simulated, as are changes of rates whose
rows depend on the model (a positive predictive value before and after). Where hardly a row changes,
bounds of several groups together are asked to hold.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, gammaln, ndtri, xlogy

sys.path.insert(0, str(Path(__file__).parents[1]))

from records import agreed, main, not_above, standard_error, write

from equipoise._validate import seed_of
from equipoise.audits._common import critical_scores, stepped_down
from equipoise.methods.hypotheses import Outside
from equipoise.methods.inference.core import Core, core_of
from equipoise.methods.targets import Before, Constant, plain_moments

Floats = npt.NDArray[np.float64]
ERRORS = (0.10, 0.05, 0.025, 0.01, 0.005, 0.001)
MEANS = (0.0, 0.01, -0.01, 0.03, -0.03, 0.1, -0.1, 0.3, -0.5)
QUICK, FULL = (3, 5, 8, 12, 20, 40), (*range(3, 21), 24, 28, 33, 40, 48, 60)
BAR = 1.01
"""The true error may be this many times the nominal one: shares are searched on a grid."""
POINTS = ((0.1, 0.0), (0.15, 0.02), (0.2, 0.05), (0.3, 0.1), (0.5, 0.2))
"""Chances of a row that gets worse, and of one that gets better, at which power is compared."""


def tables(n: int) -> tuple[Floats, Floats]:
    """All counts of 1 and of −1 among n rows."""
    plus, minus = np.meshgrid(np.arange(n + 1.0), np.arange(n + 1.0), indexing="ij")
    there = plus + minus <= n
    return plus[there], minus[there]


def chances(n: int, plus: Floats, minus: Floats, up: float, down: float) -> Floats:
    """Chances of the tables if a row is 1 with chance ``up`` and −1 with chance ``down``."""
    rest = n - plus - minus
    ways = gammaln(n + 1) - gammaln(plus + 1) - gammaln(minus + 1) - gammaln(rest + 1)
    logs = xlogy(plus, up) + xlogy(minus, down) + xlogy(rest, max(1 - up - down, 0.0))
    return np.asarray(np.exp(ways + logs))


def differences(rows: Floats, plus: Floats, minus: Floats) -> Core:
    """The core of groups, each with its counts of 1 and of −1, against no change."""
    return core_of(
        plain_moments(rows, plus - minus, plus + minus, plus - minus),
        Constant(value=0.0),
        lambda x: x,
        relative=False,
        zero_one=False,
        weighted=False,
        values=(-1.0, 0.0, 1.0),
    )


def mcnemar(plus: Floats, minus: Floats) -> tuple[Floats, Floats]:
    """One-sided p-values given the changed rows: exact, and mid-p."""
    changed = plus + minus
    tail = betainc(np.maximum(plus, 1.0), minus + 1, 0.5)
    exact = np.where(plus > 0, tail, 1.0)
    point = np.exp(gammaln(changed + 1) - gammaln(plus + 1) - gammaln(minus + 1))
    return exact, np.asarray(exact - point * 0.5**changed / 2)


def shares(mean: float, number: int) -> Floats:
    """Shares of changed rows that a mean leaves open, close together where they are small."""
    low = abs(mean)
    return np.unique(np.concatenate([low + np.linspace(0, 1, number) ** 2 * (1 - low)]))


def enumerated(sizes: tuple[int, ...], grid: int) -> list[dict[str, Any]]:
    """The largest true error over nominal, for every mean and both sides; and power at zero."""
    worst = dict.fromkeys(TESTS, 0.0)
    where, power, beside = "", [], []
    for n in sizes:
        plus, minus = tables(n)
        core = differences(np.full(plus.size, float(n)), plus, minus)
        every = np.arange(plus.size)
        for mean in MEANS:
            up, down = core.pivot.tails(np.full(plus.size, mean), every)
            asked = {"ours": [up, down]}
            if mean == 0:
                exact, middle = mcnemar(plus, minus)
                asked |= {"exact McNemar": [exact], "mid-p McNemar": [middle]}
                power += [_power(n, plus, minus, up, exact, middle)]
                near = (exact < 0.1) & (exact > 1e-6)
                beside += (up[near] / exact[near]).tolist()
            for share in shares(mean, grid):
                chance = chances(n, plus, minus, (share + mean) / 2, (share - mean) / 2)
                for name, sides in asked.items():
                    for p in sides:
                        for error in ERRORS:
                            ratio = float(chance[p <= error * (1 + 1e-9)].sum()) / error
                            if ratio > worst[name]:
                                worst[name] = ratio
                                if name == "ours":
                                    where = f"{n} rows, mean {mean:g}, {share:.3f} changed"
    exact_too = worst["ours"] <= BAR
    rows = [_row(f"worst error over nominal ({where})", worst, exact_too)]
    for place, error in enumerate(ERRORS):
        average = np.mean(np.array(power), axis=0)[:, place]
        better = bool(average[0] >= average[1])
        rows.append(
            _row(f"mean power at {error:g}", dict(zip(TESTS, average, strict=True)), better)
        )
    largest, middle = max(beside), float(np.median(beside))
    rows.append(_row("p over that of exact McNemar, largest", {"ours": largest}, largest <= BAR))
    rows.append(_row("p over that of exact McNemar, median", {"ours": middle}, None))
    study = f"every table of {sizes[0]} to {sizes[-1]} rows"
    return [{"study": study, **row} for row in rows]


TESTS = ("ours", "exact McNemar", "mid-p McNemar")


def _row(question: str, values: dict[str, float], agrees: bool | None) -> dict[str, Any]:
    said = {name: None if name not in values else round(float(values[name]), 4) for name in TESTS}
    return {"question": question, **said, "agrees": agrees}


def _power(n: int, plus: Floats, minus: Floats, *p: Floats) -> list[list[float]]:
    """Power of each test, averaged over the points, for every error."""
    found = []
    for each in p:
        at = [chances(n, plus, minus, *point) for point in POINTS]
        found.append([float(np.mean([c[each <= e].sum() for c in at])) for e in ERRORS])
    return found


def forty(worlds: int) -> list[dict[str, Any]]:
    """Forty groups at once, two-sided at 5 %: false alarms, and groups found that got worse."""
    rng = np.random.default_rng(25)
    rows = np.repeat([40.0, 80.0, 150.0, 300.0], 10)
    share = np.tile([0.02, 0.05, 0.1, 0.2, 0.3], 8)
    worse = np.arange(40) % 8 == 3
    wrong, hits = dict.fromkeys(TESTS, 0), dict.fromkeys(TESTS, 0.0)
    for world in range(worlds):
        for moved in (False, True):
            lift = np.where(worse & moved, np.maximum(0.12, share / 2), 0.0)
            up, down = np.minimum(share / 2 + lift, 0.95), share / 2
            drawn = rng.multinomial(
                rows.astype(np.int64), np.stack([up, down, 1 - up - down], axis=1)
            )
            plus, minus = drawn[:, 0].astype(np.float64), drawn[:, 1].astype(np.float64)
            core = differences(rows, plus, minus)
            p = np.minimum(2 * np.fmin(*core.tails(0.0)), 1.0)
            ours = stepped_down(core, p, Outside(low=0.0, high=0.0), 2000, seed_of(world))
            both = [mcnemar(plus, minus), mcnemar(minus, plus)]
            other = (40 * 2 * np.fmin(one, two) for one, two in zip(*both, strict=True))
            for name, adjusted in zip(TESTS, (ours, *other), strict=True):
                shown = np.nan_to_num(adjusted, nan=1.0) <= 0.05
                wrong[name] += bool(shown.any()) and not moved
                hits[name] += float(shown[worse].mean()) if moved else 0.0
    power = {name: hits[name] / worlds for name in TESTS}
    least = max(power.values()) - 2 * standard_error(power["ours"], 5 * worlds)
    alarms = {name: wrong[name] / worlds for name in TESTS}
    rows = [
        _row("any false alarm, nominal 0.05", alarms, not_above(wrong["ours"], worlds, 0.05)),
        _row("share found of groups that got worse", power, power["ours"] >= least),
    ]
    study = f"forty groups in {worlds} worlds; McNemar with Bonferroni"
    return [{"study": study, **row} for row in rows]


RARE = (((97, 94, 109), 0.02), ((30, 30), 0.045), ((50,) * 10, 0.03), ((200, 200), 0.01))
"""Groups of which one gets worse, by so much, and no row of the others changes."""


def hardly_any(worlds: int) -> list[dict[str, Any]]:
    """One group gets a little worse, none of the others at all: upper bounds below the truth.

    Often no row changes, so that there is no spread to take anything from.
    """
    found = []
    for sizes, rise in RARE:
        rng = np.random.default_rng([26, *sizes])
        rows, none = np.array(sizes, dtype=np.float64), np.zeros(len(sizes))
        below: dict[int, bool] = {}
        missed = 0
        for ups in rng.binomial(sizes[0], rise, worlds).tolist():
            if ups not in below:
                core = differences(rows, np.where(np.arange(rows.size) == 0, ups, 0.0), none)
                score = critical_scores(core, 0.95, "upper", 10_000, seed_of(7), False).value
                below[ups] = bool(core.bounds(score, (-1.0, 1.0))[1][0] < rise)
            missed += below[ups]
        share = {"ours": missed / worlds}
        fine = not_above(missed, worlds, 0.05)
        found.append(_row(f"{sizes[0]} rows rise by {rise:g}, {len(sizes)} groups", share, fine))
    study = f"upper bounds below the truth where others never change, {worlds} worlds, nominal 0.05"
    return [{"study": study, **row} for row in found]


def overlapping(designs: int, worlds: int) -> list[dict[str, Any]]:
    """Changes of rates on overlapping rows: errors of both tails at the true change."""
    rng = np.random.default_rng(12)
    found = []
    for _ in range(designs):
        number = int(rng.choice([10, 40, 100, 300, 1000]))
        once = rng.choice([0.005, 0.01, 0.03, 0.1, 0.3], 2)
        share = np.array([once[0], 1 - once.sum(), once[1]])
        rate = rng.choice([0.02, 0.1, 0.3, 0.5, 0.8, 0.95], 3)
        rate = np.where(rng.random() < 0.3, rate[:1], rate)
        rows = rng.multinomial(number, share, worlds).T
        core = _rates(rows.astype(np.float64), rng.binomial(rows, rate[:, None]).astype(np.float64))
        means = [(share[p] @ rate[p]) / share[p].sum() for p in ([0, 1], [1, 2])]
        for error in (0.05, 0.01):
            able = core.guarded(float(-ndtri(error))).answered
            tails = core.pivot.tails(np.full(able.size, means[0] - means[1]), able)
            found += [(int((p <= error).sum()), error, number) for p in tails]
    fine = [not_above(hits, worlds, error, 1e-3 / len(found)) for hits, error, _ in found]
    worst = max(hits / worlds / error for hits, error, _ in found)
    mean = float(np.mean([hits / worlds / error for hits, error, _ in found]))
    rows = [
        _row("worst error over nominal, the worst of all", {"ours": worst}, all(fine)),
        _row("mean error over nominal", {"ours": mean}, None),
    ]
    study = f"rates on overlapping rows, {designs} designs of {worlds} worlds"
    return [{"study": study, **row} for row in rows]


def _rates(rows: Floats, ones: Floats) -> Core:
    """Groups whose rows count after only, at both times, and before only; arrays ``(3, G)``."""
    groups = rows.shape[1]
    target = Before(
        after=np.repeat([True, True, False], groups), before=np.repeat([False, True, True], groups)
    )
    return core_of(
        plain_moments(rows.ravel(), *[ones.ravel()] * 3),
        target,
        lambda x: x.reshape(*x.shape[:-1], 3, groups).sum(axis=-2),
        relative=False,
        zero_one=True,
        weighted=False,
    )


def run(full: bool = False) -> dict[str, Any]:
    """Run the four studies; ``full`` takes all sizes and a thousand worlds."""
    rows = [
        *enumerated(FULL if full else QUICK, 400 if full else 60),
        *forty(1000 if full else 60),
        *hardly_any(20_000 if full else 4000),
        *overlapping(400 if full else 60, 4000 if full else 1000),
    ]
    result = {
        "source": "paired changes, beside McNemar's test",
        "bar": BAR,
        "rows": rows,
        "agrees": agreed(rows),
    }
    return write(__file__, "change", result, full)


if __name__ == "__main__":
    main("change", run)
