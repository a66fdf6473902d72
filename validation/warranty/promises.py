"""Every audit's promise: how its designs are drawn at random, and when it is wrong.

Only what users call is called, with its defaults. A design is drawn by a generator that knows no
method; the same seed gives the same designs and worlds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(1, str(Path(__file__).parents[2]))

from validation.warranty.people import METRIC, Floats, Rng, against, outside, people
from validation.warranty.promise import Promise, World

import equipoise as eq

LEVEL = 0.95


def seed(rng: Rng) -> int:
    """A seed for the audit itself."""
    return int(rng.integers(1 << 30))


def groups_of(who: Any, rng: Rng) -> Any:
    """All intersections of the attributes, or the attributes side by side."""
    return eq.intersections(*who.names) if rng.random() < 0.7 else list(who.names)


# --- Groups: bounds, certificates, flags, tests, intervals -------------------------------------


def certify(rng: Rng) -> tuple[str, World]:
    """Any population, target and side; a gap, or a ratio where rates are not tiny."""
    who = people(rng)
    words, target, other = against(rng, who)
    relative = who.amount is None and who.mean.min() > 0.02 and rng.random() < 0.3
    make, across = (eq.ratio if relative else eq.gap), groups_of(who, rng)
    side: Any = str(rng.choice(["both", "both", "lower", "upper"]))

    def world(rng: Rng) -> bool | None:
        claim = make(METRIC, across=across, target=target)
        found = eq.certify(who.trail(rng), claim, side=side, rng=seed(rng))
        told = [row for row in found.rows if row.lower is not None or row.upper is not None]

        def true(row: Any) -> Any:
            inside = who.inside(row.where)
            own, theirs = who.truth(inside), other(inside)
            return own / theirs if relative else own - theirs

        return any(outside(row.lower, row.upper, true(row)) for row in told) if told else None

    return f"{who.said()}; {'ratio' if relative else 'gap'} to {words}, {side} bounds", world


def certificates(rng: Rng) -> tuple[str, World]:
    """The limit is what is true of one group, so that its certificate would be false."""
    who = people(rng)
    words, target, other = against(rng, who)
    first = who.inside({"a0": "a0"})
    limit = who.truth(first) - other(first)
    side: Any = "upper" if limit > 0 else "lower"

    def world(rng: Rng) -> bool:
        claim = eq.gap(METRIC, across=eq.intersections(*who.names), target=target)
        found: Any = eq.certify(
            who.trail(rng), claim, side=side, tolerance=limit, method="certificates", rng=seed(rng)
        )
        inside = [who.inside(row.where) for row in found.rows if row.certified]
        above = [who.truth(each) - other(each) - limit for each in inside]
        return any(x >= -1e-12 if side == "upper" else x <= 1e-12 for x in above)

    return f"{who.said()}; {words}, {'under' if limit > 0 else 'over'} {limit:.3g}", world


def flag(rng: Rng) -> tuple[str, World]:
    """Nobody differs: any flag is false."""
    who = people(rng, alike=True)
    words, target, _ = against(rng, who)
    across = groups_of(who, rng)
    control: Any = str(rng.choice(["bh", "bh", "by", "holm", "e-bh"]))
    side = str(rng.choice(["any", "above", "below"]))
    asked: Mapping[str, Any] = {} if side == "any" else {side: 0.0}

    def world(rng: Rng) -> bool:
        claim = eq.gap(METRIC, across=across, target=target)
        found: Any = eq.flag(
            who.trail(rng), claim, fdr=0.05, control=control, rng=seed(rng), **asked
        )
        return bool(found.flagged)

    return f"{who.said()}; {words}, {side}, {control}", world


def joint_test(rng: Rng) -> tuple[str, World]:
    """Nobody differs."""
    who = people(rng, alike=True)
    words, target, _ = against(rng, who)

    def world(rng: Rng) -> bool:
        claim = eq.gap(METRIC, across=list(who.names), target=target)
        return bool(eq.joint_test(who.trail(rng), claim, intervals=False, rng=seed(rng)).rejected)

    return f"{who.said()}; {words}", world


def describe(rng: Rng) -> tuple[str, World]:
    """The interval of one group by itself."""
    who = people(rng)
    where = {who.names[-1]: "a0"}

    def world(rng: Rng) -> bool | None:
        claim = eq.gap(METRIC, across=list(who.names))
        found: Any = eq.describe(who.trail(rng), claim)
        rows = [row for row in found.rows if dict(row.where) == where]
        if not rows or rows[0].lower is None:
            return None
        return outside(rows[0].lower, rows[0].upper, who.truth(who.inside(where)))

    return f"{who.said()}; one group", world


MEASURES = ("variance", "mean absolute deviation", "max-min difference")


def summarize(rng: Rng) -> tuple[str, World]:
    """The spread of the groups of one attribute."""
    who = people(rng, attributes=2)
    chosen = str(rng.choice(list(MEASURES)))
    true: Mapping[str, Callable[[Floats], float]] = {
        "variance": lambda means: float(np.var(means, ddof=1)),
        "mean absolute deviation": lambda means: float(np.abs(means - means.mean()).mean()),
        "max-min difference": lambda means: float(means.max() - means.min()),
    }

    def world(rng: Rng) -> bool | None:
        found: Any = eq.summarize(
            who.trail(rng), METRIC, across="a0", measures=[chosen], rng=seed(rng)
        )
        row = found.rows[0]
        if row.lower is None and row.upper is None:
            return None
        # it speaks of the groups that it audited, and names the others
        kept = [group for group in found.groups if not group.note]
        means = np.array([who.truth(who.inside(group.where)) for group in kept])
        return outside(row.lower, row.upper, true[chosen](means))

    return f"{who.said()}; {chosen} of {who.levels[0]} groups", world


def compare(rng: Rng) -> tuple[str, World]:
    """Whether one attribute's spread is larger than another's."""
    who = people(rng)
    while len(who.levels) < 2:
        who = people(rng)
    spread = [
        float(np.var([who.truth(who.inside({n: f"a{i}"})) for i in range(k)], ddof=1))
        for n, k in zip(who.names[:2], who.levels, strict=False)
    ]

    def world(rng: Rng) -> bool | None:
        found = eq.compare(who.trail(rng), METRIC, across=["a0", "a1"], rng=seed(rng))
        row = found.rows[0]
        left_out = any(side.excluded for side in found.sides)
        if left_out or (row.lower is None and row.upper is None):
            # it speaks of other groups, and names those that it left out
            return None
        return outside(row.lower, row.upper, spread[0] - spread[1])

    return f"{who.said()}; variance by a0 less variance by a1", world


def discover(rng: Rng) -> tuple[str, World]:
    """Nobody differs, so that no rule does."""
    who = people(rng, alike=True)
    while who.way == "clusters":  # which it refuses
        who = people(rng, alike=True)

    def world(rng: Rng) -> bool:
        found: Any = eq.discover(
            who.trail(rng), METRIC, features=list(who.names), fdr=0.05, rng=seed(rng)
        )
        return bool(found.flagged)

    return who.said(), world


# --- Measures that are no means ------------------------------------------------------------------


def measures(rng: Rng) -> tuple[str, World]:
    """AUC, F1, lift, medians: groups alike in a population of scores, so that no gap is there."""
    metric, called = [
        (eq.auc, "AUC"), (eq.f1, "F1"), (eq.balanced_accuracy, "balanced accuracy"),
        (eq.median("s"), "median"), (eq.actual_expected, "actual/expected"),
    ][int(rng.integers(5))]  # fmt: skip
    sizes = np.exp(rng.uniform(np.log(30), np.log(800), int(rng.integers(2, 7)))).astype(int)
    ones, apart = float(rng.choice([0.1, 0.3, 0.5])), float(rng.choice([0.5, 1.0, 2.0]))
    ties, each = int(rng.choice([0, 0, 5])), int(rng.choice([1, 1, 4]))
    target: Any = str(rng.choice(["overall", "complement"]))

    def world(rng: Rng) -> bool | None:
        parts = []
        for g, size in enumerate(sizes.tolist()):
            n = max(size // each, 2)
            y = (rng.random(n) < ones).astype(int)
            s = 1 / (1 + np.exp(1 - rng.normal(size=n) - apart * y))
            s = np.round(s * ties) / ties if ties else s
            home = [f"{g} {i}" for i in range(n)]
            part = pl.DataFrame({"y": y, "s": s, "p": (s >= 0.5).astype(int), "home": home})
            parts.append(pl.concat([part] * each).with_columns(g=pl.lit(f"g{g}")))
        roles: Any = {"cluster": "home"} if each > 1 else {}
        trail = eq.read(pl.concat(parts), label="y", score="s", prediction="p", **roles)
        claim = eq.gap(metric, across="g", target=target)
        found = eq.certify(trail, claim, rng=seed(rng))
        told = [row for row in found.rows if row.lower is not None or row.upper is not None]
        return any(outside(row.lower, row.upper, 0.0) for row in told) if told else None

    return (
        f"{called}, groups of {', '.join(map(str, sizes))}, {ones:.0%} ones, scores {apart:g} "
        f"apart{', in fifths' if ties else ''}{', every row four times' if each > 1 else ''}, "
        f"against {target}"
    ), world


# --- Given factors, the highest, the unknown, the cheap ----------------------------------------


def given(rng: Rng) -> tuple[str, World]:
    """Rates differ by stratum, and who is where goes with them; given strata nobody differs."""
    strata = int(np.exp(rng.uniform(np.log(2), np.log(200))))
    rows, groups = int(np.exp(rng.uniform(np.log(200), np.log(2000)))), int(rng.integers(2, 6))
    centre, lean = float(rng.choice([0.05, 0.3, 0.6])), float(rng.choice([0.0, 2.0, 4.0]))
    base = np.clip(centre * 2 * rng.beta(2, 2, strata), 0.005, 0.99)
    share = np.exp(lean * np.linspace(-1, 1, groups) * (base[:, None] - base.mean()) / base.std())
    share = share / share.sum(axis=1, keepdims=True)
    amount, each = bool(rng.random() < 0.3), int(rng.choice([1, 1, 5]))
    kind: Any = str(rng.choice(["mantel-haenszel", "group", "population"]))
    skewed = amount and rng.random() < 0.5

    def world(rng: Rng) -> bool | None:
        place = rng.integers(0, strata, rows)
        group = (rng.random(rows)[:, None] > share[place].cumsum(axis=1)[:, :-1]).sum(axis=1)
        home = rng.integers(0, max(rows // each, 1), rows) if each > 1 else np.arange(rows)
        luck = rng.choice([0.7, 1.3], rows)[home] if each > 1 else 1.0
        mean = np.clip(base[place], 0, 0.75) * luck if each > 1 else base[place]
        y = (rng.random(rows) < mean).astype(float)
        if amount:
            y = base[place] + (rng.exponential(size=rows) - 1 if skewed else rng.normal(size=rows))
        table = pl.DataFrame({"s": place, "g": [f"g{i}" for i in group], "y": y, "home": home})
        roles: Any = {"cluster": "home"} if each > 1 else {}
        claim = eq.gap(
            eq.metric("y", "y"), across="g", target="complement", given=["s"], weights=kind
        )
        found = eq.certify(table, claim, rng=seed(rng), **roles)
        told = [row for row in found.rows if row.lower is not None or row.upper is not None]
        return any(outside(row.lower, row.upper, 0.0) for row in told) if told else None

    what = ("skewed amounts" if skewed else "amounts") if amount else f"rates around {centre:g}"
    return (
        f"{rows:,} rows, {groups} groups, {strata} strata (lean {lean:g}), {what}, {kind} weights"
        f"{', clusters' if each > 1 else ''}"
    ), world


def alike_strata(rng: Rng) -> tuple[str, World]:
    """Rates differ by stratum, the odds ratio of a group does not."""
    strata = int(np.exp(rng.uniform(np.log(2), np.log(300))))
    sizes = np.maximum(np.exp(rng.uniform(np.log(3), np.log(60)) + rng.normal(0, 0.5, strata)), 2)
    groups, odds = int(rng.integers(2, 6)), float(rng.choice([0.0, 0.5, 1.5]))
    centre, apart = float(rng.choice([-3.0, -1.0, 0.0])), float(rng.choice([0.2, 1.0]))
    logit = centre + apart * rng.normal(size=strata)

    def world(rng: Rng) -> bool:
        place = np.repeat(np.arange(strata), np.round(sizes).astype(int))
        group = rng.integers(0, groups, place.size)
        y = rng.random(place.size) < 1 / (1 + np.exp(-logit[place] - odds * (group == 0)))
        table = pl.DataFrame({"s": place, "g": [f"g{i}" for i in group], "y": y * 1.0})
        # with one group that differs only the others taken together are alike in every stratum
        target: Any = "complement" if odds == 0 else eq.reference(g="g1")
        claim = eq.gap(eq.metric("y", "y"), across="g", target=target, given=["s"])
        found = eq.certify(table, claim, rng=seed(rng))
        return any("not the same for every" in line for line in found.sentences())

    return (
        f"{groups} groups, {strata} strata of {sizes.mean():.0f} rows, "
        f"log odds {centre:g} ± {apart:g}, of a group {odds:+g}"
    ), world


def factors(rng: Rng) -> tuple[str, World]:
    """Continuous factors; given them the group differs by one number."""
    rows, effect = int(rng.choice([400, 800])), float(rng.choice([0.0, 0.05]))
    bent, amount = bool(rng.random() < 0.5), bool(rng.random() < 0.5)
    lean = float(rng.choice([0.3, 0.8]))

    def world(rng: Rng) -> bool | None:
        x, z = rng.normal(size=(2, rows))
        driver = np.where(x > 0, x, -0.5 * x) + 0.5 * np.sin(2 * z) if bent else x + z / 2
        member = rng.random(rows) < 1 / (1 + np.exp(-lean * driver))
        mean = 0.45 + 0.3 * np.tanh(driver) + effect * member
        y = mean + 0.3 * rng.normal(size=rows) if amount else (rng.random(rows) < mean) * 1.0
        table = pl.DataFrame({"x": x, "z": z, "g": np.where(member, "a", "b"), "y": y})
        claim = eq.gap(
            eq.metric("y", "y"), across="g", target="complement", given=[eq.factors("x", "z")]
        )
        row = eq.certify(table, claim, rng=seed(rng)).ask(g="a")
        return None if row.lower is None else outside(row.lower, row.upper, effect)

    return (
        f"{rows} rows, {'bent' if bent else 'linear'} factors (lean {lean:g}), "
        f"{'amounts' if amount else 'rates'}, effect {effect:g}"
    ), world


def highest(rng: Rng) -> tuple[str, World]:
    """Some groups tied for the highest rate, others below it."""
    tied, others = int(rng.integers(1, 7)), int(rng.integers(0, 5))
    tied = max(tied, 2 - others)
    sizes = np.exp(rng.uniform(np.log(15), np.log(800), tied + others)).astype(int)
    top = float(rng.choice([0.1, 0.4, 0.7, 0.95]))
    rates = top * np.concatenate([np.ones(tied), rng.uniform(0.3, 0.98, others)])
    relative = bool(rng.random() < 0.5)

    def world(rng: Rng) -> bool | None:
        ones = rng.binomial(sizes, rates)
        table = pl.DataFrame(
            {
                "g": [f"g{g}" for g in range(sizes.size) for _ in (0, 1)],
                "y": [0, 1] * sizes.size,
                "n": np.stack([sizes - ones, ones], axis=1).ravel(),
            }
        )
        claim = (eq.ratio if relative else eq.gap)(
            eq.selection_rate, across="g", target=eq.highest()
        )
        found = eq.certify(table, claim, prediction="y", count="n", rng=seed(rng))
        wrong, told = False, False
        for row in found.rows:
            rate = rates[int(row.group.rsplit("g", 1)[-1])]
            told |= row.lower is not None or row.upper is not None
            wrong |= outside(row.lower, row.upper, rate / top if relative else rate - top)
        return wrong if told else None

    return (
        f"{tied} tied at {top:g} and {others} below, groups of {', '.join(map(str, sizes))}, "
        f"{'ratio' if relative else 'gap'}"
    ), world


def unknown(rng: Rng) -> tuple[str, World]:
    """Whose group is unknown depends on group and outcome; the truth is everybody's."""
    groups = int(rng.integers(2, 6))
    share, rates = rng.dirichlet(np.full(groups, 2.0)), rng.uniform(0.03, 0.9, groups)
    rows = int(np.exp(rng.uniform(np.log(200), np.log(2000))))
    hidden = np.clip(rng.choice([0.02, 0.1, 0.3]) * rng.exponential(size=(groups, 2)), 0, 0.9)
    target: Any = str(rng.choice(["overall", "complement"]))

    def world(rng: Rng) -> bool | None:
        g = rng.choice(groups, rows, p=share)
        y = (rng.random(rows) < rates[g]).astype(int)
        gone = rng.random(rows) < hidden[g, y]
        names = [None if lost else f"g{i}" for i, lost in zip(g, gone, strict=True)]
        table = pl.DataFrame({"g": names, "y": y})
        claim = eq.gap(eq.selection_rate, across="g", target=target, unknown="worst")
        found = eq.certify(table, claim, prediction="y", rng=seed(rng))
        wrong, told = False, False
        for row in found.rows:
            if row.lower is None and row.upper is None:
                continue
            i, told = int(row.group.rsplit("g", 1)[-1]), True
            rest = np.arange(groups) != i if target == "complement" else np.ones(groups, bool)
            other = float((share * rates)[rest].sum() / share[rest].sum())
            wrong |= outside(row.lower, row.upper, rates[i] - other)
        return wrong if told else None

    return (
        f"{rows:,} rows, {groups} groups, rates {rates.min():.2f}–{rates.max():.2f}, unknown "
        f"{hidden.min():.2f}–{hidden.max():.2f}, against {target}"
    ), world


def proxies(rng: Rng) -> tuple[str, World]:
    """Only probabilities of groups are known, and they are right; groups follow them."""
    shape = (float(rng.choice([0.05, 0.3, 1.0])), float(rng.choice([0.1, 0.8, 4.0])))
    rows = int(np.exp(rng.uniform(np.log(300), np.log(3000))))
    high, low = rng.uniform(0.05, 0.9, 2)
    many = np.random.default_rng(1).beta(*shape, 400_000)
    own = float((many * (low + (high - low) * many)).sum() / many.sum())
    rest = float(((1 - many) * (low + (high - low) * many)).sum() / (1 - many).sum())

    def world(rng: Rng) -> bool | None:
        p = rng.beta(*shape, rows)
        y = (rng.random(rows) < low + (high - low) * p).astype(int)
        table = pl.DataFrame({"pa": p, "pb": 1 - p, "y": y})
        trail = eq.read(table, prediction="y", proxy={"g": {"a": "pa", "b": "pb"}})
        claim = eq.gap(eq.selection_rate, across="g", target="complement")
        row = eq.certify(trail, claim, rng=seed(rng)).ask(g="a")
        if row.lower is None and row.upper is None:
            return None
        return outside(row.lower, row.upper, own - rest)

    return (
        f"{rows:,} rows, chances of beta({shape[0]:g}, {shape[1]:g}), rates {low:.2f} to {high:.2f}"
    ), world


def cheap_labels(rng: Rng) -> tuple[str, World]:
    """Few true labels and many cheap ones, whose errors differ by group."""
    rows, gold = int(rng.choice([1000, 3000])), float(rng.choice([0.05, 0.1, 0.3]))
    rates, wrong = rng.uniform(0.05, 0.7, 2), rng.choice([0.0, 0.1, 0.3], 2)
    share = float(rng.choice([0.1, 0.5]))

    def world(rng: Rng) -> bool | None:
        first = rng.random(rows) < share
        label = rng.random(rows) < np.where(first, rates[0], rates[1])
        cheap = label ^ (rng.random(rows) < np.where(first, wrong[0], wrong[1]))
        known = rng.random(rows) < gold
        table = pl.DataFrame(
            {
                "g": np.where(first, "a", "b"),
                "judge": cheap.astype(int),
                "label": [int(x) if k else None for x, k in zip(label, known, strict=True)],
                "prediction": np.ones(rows, dtype=int),
            }
        )
        trail = eq.read(table, label="label", prediction="prediction", proxy_label="judge")
        claim = eq.gap(eq.accuracy, across="g", target="complement")
        row = eq.certify(trail, claim, rng=seed(rng)).ask(g="a")
        if row.lower is None and row.upper is None:
            return None
        return outside(row.lower, row.upper, float(rates[0] - rates[1]))

    return (
        f"{rows:,} rows, {gold:.0%} with a true label, rates {rates[0]:.2f} and {rates[1]:.2f}, "
        f"judge wrong in {wrong[0]:g} and {wrong[1]:g}, {share:.0%} in the first group"
    ), world


def logged_chances(rng: Rng) -> tuple[str, World]:
    """Labels seen with logged chances."""
    low, high = (float(x) for x in (rng.choice([0.02, 0.1, 0.3]), rng.choice([0.5, 0.95])))
    wrong = rng.choice([0.02, 0.1, 0.3], 2)
    rows = int(rng.choice([1000, 4000]))

    def world(rng: Rng) -> bool | None:
        second = rng.random(rows) < 0.3
        chance = rng.uniform(low, high, rows)
        label = rng.integers(0, 2, rows)
        # errors go with the chance of being seen, and with the group
        rate = np.where(second, wrong[1], wrong[0]) * np.where(chance < (low + high) / 2, 1.5, 0.5)
        errs, seen = rng.random(rows) < rate, rng.random(rows) < chance
        table = pl.DataFrame(
            {
                "g": np.where(second, "b", "a"),
                "chance": chance,
                "said": np.where(errs, 1 - label, label),
                "label": [float(y) if k else None for y, k in zip(label, seen, strict=True)],
            }
        )
        row = eq.certify(
            table, eq.gap("error_rate", across="g", target="complement"), label="label",
            prediction="said", observed="chance", rng=seed(rng),
        ).ask(g="b")  # fmt: skip
        if row.lower is None and row.upper is None:
            return None
        return outside(row.lower, row.upper, float(wrong[1] - wrong[0]))

    return (
        f"{rows:,} rows, chances {low:g} to {high:g}, errors {wrong[0]:g} and {wrong[1]:g}",
        world,
    )


# --- Changes, repairs, alternatives, time ------------------------------------------------------


def change(rng: Rng) -> tuple[str, World]:
    """Old and new decisions of the same people; the change of every group is known."""
    groups = int(rng.integers(1, 9))
    sizes = np.exp(rng.uniform(np.log(15), np.log(600), groups)).astype(int)
    up, down = rng.choice([0.0, 0.01, 0.05, 0.2], (2, groups))
    base = rng.uniform(0.2, 0.8, groups)
    truth = base.copy() * 0 + (1 - base) * up - base * down

    def world(rng: Rng) -> bool | None:
        g = np.repeat(np.arange(groups), sizes)
        old = rng.random(g.size) < base[g]
        new = np.where(old, rng.random(g.size) >= down[g], rng.random(g.size) < up[g])
        table = pl.DataFrame(
            {"g": [f"g{i}" for i in g], "old": old.astype(int), "new": new.astype(int)}
        )
        claim = eq.gap(eq.change("selection_rate", before="old", after="new"), across="g", target=0)
        found = eq.certify(table, claim, attributes=["g"], rng=seed(rng))
        wrong, told = False, False
        for row in found.rows:
            if row.lower is not None or row.upper is not None:
                told = True
                wrong |= outside(row.lower, row.upper, truth[int(row.group.rsplit("g", 1)[-1])])
        return wrong if told else None

    return (f"groups of {', '.join(map(str, sizes))}, up {up.max():g}, down {down.max():g}"), world


def repair(rng: Rng) -> tuple[str, World]:
    """No rule that is blind to groups can help: scores say nothing, groups differ by the limit."""
    sizes = rng.choice([150, 400, 900], 2)
    limit, rate = float(rng.choice([0.05, 0.1])), float(rng.choice([0.3, 0.5]))
    values = int(rng.choice([12, 100, 0]))

    def world(rng: Rng) -> bool:
        group = np.repeat([0, 1], sizes)
        score = rng.random(group.size)
        score = np.round(score * values) / values if values else score
        label = rng.random(group.size) < np.where(group == 1, rate, rate + limit)
        table = pl.DataFrame(
            {"g": np.where(group == 1, "b", "a"), "score": score, "label": label.astype(int)}
        )
        claim = eq.gap("positive_predictive_value", across="g", target=eq.reference(g="a"))
        found = eq.repair(
            table, claim, tolerance=-limit, side="lower", label="label", score="score",
            rng=seed(rng),
        )  # fmt: skip
        return found.certificate.verdict == "kept"

    return f"groups of {sizes[0]} and {sizes[1]}, gap {limit:g}, {values or 'all'} scores", world


def alternatives(rng: Rng) -> tuple[str, World]:
    """Models that treat groups as the present one does: none is less unfair."""
    sizes = np.exp(rng.uniform(np.log(60), np.log(600), int(rng.integers(2, 4)))).astype(int)
    models, rates = int(rng.integers(2, 5)), rng.uniform(0.2, 0.8, sizes.size)

    def world(rng: Rng) -> bool:
        g = np.repeat(np.arange(sizes.size), sizes)
        label = rng.random(g.size) < 0.5
        columns: dict[str, Any] = {"g": [f"g{i}" for i in g], "label": label.astype(int)}
        for m in range(models):
            columns[f"m{m}"] = (rng.random(g.size) < rates[g]).astype(int)
        found = eq.alternatives(
            pl.DataFrame(columns), eq.gap("selection_rate", across="g"),
            models={f"m{m}": f"m{m}" for m in range(models)}, present="m0", within=0.2,
            label="label", rng=seed(rng),
        )  # fmt: skip
        return any(row.shown for row in found.rows)

    return (
        f"groups of {', '.join(map(str, sizes))}, rates {rates.min():.2f}–{rates.max():.2f}, "
        f"{models} models"
    ), world


def monitor(rng: Rng) -> tuple[str, World]:
    """A stream exactly on its limit, looked at after every batch."""
    batches, groups = int(rng.integers(10, 60)), int(rng.integers(2, 5))
    rate = float(rng.choice([0.02, 0.1, 0.4]))
    rows = np.exp(rng.uniform(np.log(5), np.log(200), groups)).astype(int)
    drift = float(rng.choice([0.0, 0.3]))

    def world(rng: Rng) -> bool:
        level = rate * np.exp(drift * np.sin(np.arange(batches) / 4))
        ones = rng.binomial(np.broadcast_to(rows, (batches, groups)), level[:, None])
        t, g = np.indices(ones.shape)
        table = pl.DataFrame(
            {
                "t": np.tile(t.ravel(), 2) + 1000,
                "g": [f"g{i}" for i in np.tile(g.ravel(), 2)],
                "y": np.repeat([0, 1], ones.size),
                "n": np.concatenate([(rows - ones).ravel(), ones.ravel()]),
            }
        )
        claim = eq.gap(eq.selection_rate, across="g", target="complement")
        found = eq.monitor(
            table, claim, above=0.0, time="t", prediction="y", count="n", rng=seed(rng)
        )
        return bool(found.alarms)

    return (
        f"{batches} batches, groups of {', '.join(map(str, rows))}, rate {rate:g}, drift {drift:g}"
    ), world


# --- Rows: calibration, shift, comparable people -----------------------------------------------


def calibration(rng: Rng) -> tuple[str, World]:
    """The score is what happens, or as wrong as is tolerated."""
    columns, rows = int(rng.integers(1, 6)), int(rng.choice([150, 400, 800]))
    edge = float(rng.choice([0.0, 0.05]))
    slope, each = rng.normal(size=columns), int(rng.choice([1, 1, 4]))
    skewed = bool(rng.random() < 0.5)

    def world(rng: Rng) -> bool:
        n = rows // each
        x = rng.lognormal(size=(n, columns)) if skewed else rng.normal(size=(n, columns))
        score = np.clip(1 / (1 + np.exp(-np.clip(x @ slope / 2, -4, 4))), 0.06, 0.94)
        y = (rng.random(n) < score + edge).astype(int)
        table = pl.DataFrame(
            {**{f"x{i}": x[:, i] for i in range(columns)}, "score": score, "y": y, "c": range(n)}
        )
        roles: Any = {"cluster": "c"} if each > 1 else {}
        found = eq.calibration(
            pl.concat([table] * each), features=[f"x{i}" for i in range(columns)], label="y",
            score="score", tolerance=edge, importance=0, resamples=199, rng=seed(rng), **roles,
        )  # fmt: skip
        return found.p <= 0.05

    return (
        f"{rows} rows, {columns} {'skewed ' if skewed else ''}inputs, {edge:g} off and tolerated"
        f"{', every row four times' if each > 1 else ''}"
    ), world


def monotone(rng: Rng) -> tuple[str, World]:
    """All half-lines and random monotone weights of one column."""
    return _shifts(rng, kernel=False)


def shift(rng: Rng) -> tuple[str, World]:
    """Tilts toward people of one place, by a kernel."""
    return _shifts(rng, kernel=True)


def _shifts(rng: Rng, *, kernel: bool) -> tuple[str, World]:
    rows, width = int(rng.choice([200, 400])), float(rng.choice([0.3, 1.0]))
    slope, amount = float(rng.choice([0.0, 0.5, 1.0])), bool(rng.random() < 0.3)
    weighted = bool(rng.random() < 0.3)
    grid = np.random.default_rng(3).normal(size=3000)
    mean = 0.3 * (1 + slope * np.tanh(grid)) / 2

    def world(rng: Rng) -> bool | None:
        lean = np.exp(0.5 * grid) if weighted else np.ones(grid.size)
        place = rng.choice(grid.size, rows, p=lean / lean.sum())
        y = rng.exponential(mean[place]) if amount else (rng.random(rows) < mean[place]) * 1.0
        table = pl.DataFrame({"x": grid[place], "y": y, "w": 1 / lean[place]})
        over: Any = eq.gaussian("x", bandwidth=width) if kernel else eq.monotone("x", grid=15)
        roles: Any = {"weight": "w"} if weighted else {}
        found: Any = eq.shift(
            table, eq.gap(eq.metric("y", "y")), over=over, level=0.9, rng=seed(rng), **roles
        )
        asked: list[tuple[Any, Floats]] = []
        for _ in range(6):
            if kernel:
                at, size = rng.choice(grid, 2), rng.random(2)
                near = np.exp(-((grid[:, None] - at) ** 2) / (2 * width**2))
                asked.append((found.ask_tilt(size, at={"x": at.tolist()}), near @ size))
            else:
                a, b = rng.normal(), rng.choice([-8.0, 8.0])

                def tilt(z: Floats, a: float = a, b: float = b) -> Floats:
                    return np.asarray(1 / (1 + np.exp(-b * (z - a))))

                cuts = [each.start for each in found.stretches[1:]]
                stretch = np.searchsorted(cuts, grid, side="right")
                middle = np.array([float(grid[stretch == i].mean()) if (stretch == i).any() else 0.0
                                   for i in range(len(found.stretches))])  # fmt: skip
                weights = tilt(np.maximum.accumulate(middle))
                asked.append((found.ask_tilt(weights), weights[stretch]))
        told = [a for a, _ in asked if a.lower is not None or a.upper is not None]
        if not told:
            return None
        truths = [float(np.average(mean, weights=h) - mean.mean()) for _, h in asked]
        return any(outside(a.lower, a.upper, t) for (a, _), t in zip(asked, truths, strict=True))

    return (
        f"{rows} rows, {f'kernel of width {width:g}' if kernel else 'monotone weights'}, "
        f"{'amounts' if amount else 'rates'}, slope {slope:g}{', weights' if weighted else ''}"
    ), world


def individual(rng: Rng) -> tuple[str, World]:
    """A worst case over people who differ in one attribute only, known because the table is."""
    kinds, levels = int(rng.integers(2, 12)), int(rng.integers(2, 4))
    share = rng.dirichlet(np.full(kinds * levels * 2, float(rng.choice([0.7, 5.0]))))
    says = rng.integers(0, 2, (kinds, levels))
    rows = int(np.exp(rng.uniform(np.log(200), np.log(3000))))
    kind, level, label = (a.ravel() for a in np.indices((kinds, levels, 2)))
    loss = (says[kind, level] != label).astype(float)
    worst = np.array([
        max(float(says[k, v] != y) for v in range(levels)) for k, y in zip(kind, label, strict=True)
    ])  # fmt: skip
    truth = float((share * (worst - loss)).sum())

    def world(rng: Rng) -> bool | None:
        table = pl.DataFrame(
            {
                "kind": [f"k{i}" for i in kind],
                "level": [f"v{i}" for i in level],
                "label": label,
                "said": says[kind, level],
                "n": rng.multinomial(rows, share),
            }
        )
        rule = {(f"k{k}", f"v{v}"): int(says[k, v]) for k in range(kinds) for v in range(levels)}

        def model(frame: Any) -> Any:
            return [rule[a, b] for a, b in zip(frame["kind"], frame["level"], strict=True)]

        found = eq.individual(
            table, vary="level", features=["kind", "level"], model=model, label="label",
            prediction="said", count="n", rng=seed(rng),
        )  # fmt: skip
        if found.lower is None and found.upper is None:
            return None
        return outside(found.lower, found.upper, truth)

    return f"{rows:,} rows, {kinds} kinds of people, {levels} levels", world


Draw = Callable[[Rng], tuple[str, World]]


def _promise(draw: Draw, wrong: str, **more: Any) -> Promise:
    return Promise(audit=more.pop("audit", draw.__name__), wrong=wrong, draw=draw, **more)


ANY_BOUND = "any bound of any group misses"
#: Few worlds where one audit takes about a second; never fewer than a thousand in all.
SLOW = {"designs": 5, "worlds": 200}
PROMISES: tuple[Promise, ...] = (
    _promise(describe, "one group's interval misses"),
    _promise(certify, ANY_BOUND),
    _promise(certificates, "any certificate is false"),
    _promise(flag, "anything is flagged where nothing is wrong"),
    _promise(joint_test, "it rejects where nothing is wrong"),
    _promise(discover, "any rule is flagged where nothing is wrong"),
    _promise(summarize, "the interval of a measure of spread misses"),
    _promise(compare, "the interval of the difference misses"),
    _promise(measures, ANY_BOUND, audit="AUC, F1, medians …"),
    _promise(given, ANY_BOUND, audit="given strata"),
    _promise(alike_strata, "strata are said to differ that do not", audit="alike in all strata"),
    _promise(factors, "the bound misses", audit="given learnt factors", **SLOW),
    _promise(highest, ANY_BOUND, audit="to the highest group"),
    _promise(unknown, ANY_BOUND, audit="unknown people, worst case"),
    _promise(proxies, "the bound misses", audit="probabilities of groups"),
    _promise(cheap_labels, "the bound misses", audit="cheap labels"),
    _promise(logged_chances, "the bound misses", audit="labels by logged chance"),
    _promise(change, ANY_BOUND, audit="change of a model"),
    _promise(repair, "a rule that helps nobody is certified"),
    _promise(alternatives, "a model is shown less unfair that is not"),
    _promise(monitor, "a stream on its limit ever raises an alarm"),
    _promise(calibration, "a violation is found at the tolerance", designs=5),
    _promise(shift, "any tilt's bound misses", nominal=0.10, designs=5),
    _promise(monotone, "any tilt's bound misses", nominal=0.10, audit="monotone shifts",
             designs=5),
    _promise(individual, "the interval misses"),
)  # fmt: skip
