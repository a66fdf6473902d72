"""An attacker performs the audit on every table that agrees with the page: no small group is found.

He has the page and the file beside it and unlimited computing, knows the rule, the plan and the
seed, and lists all tables with the counts that are shown. Those on which the program publishes
something else than he holds cannot be the true one.
"""

import functools
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

import equipoise as eq
from equipoise.claims.claim import Together
from equipoise.report.disclosure import Told, hidden
from equipoise.report.exchange import csv_of, junit, model_card, openlineage, outcome_of, sheets_of
from equipoise.report.suppress import suppressed
from tests.safety.conftest import number

Table = dict[tuple[str, ...], tuple[int, int]]
"""For each cell its rows, and how many of them are selected."""
METRIC = "selection_rate"


def trail(table: Table, names: tuple[str, ...]) -> eq.Trail:
    rows = [(*cell, p, m) for cell, (n, h) in table.items() for p, m in ((1, h), (0, n - h)) if m]
    return eq.read(
        pl.DataFrame(rows, schema=[*names, "p", "count"], orient="row"),
        prediction="p",
        count="count",
    )


def audited(verb: str, table: Table, names: tuple[str, ...]) -> eq.Finding:
    rows = trail(table, names)
    across: Any = names[0] if len(names) == 1 else eq.intersections(*names)
    claim = eq.gap(METRIC, across=across)
    calls: dict[str, Any] = {
        "certify": lambda: eq.certify(rows, claim, tolerance=0.15, rng=1),
        "certify, one side": lambda: eq.certify(rows, claim, tolerance=0.1, side="upper", rng=1),
        "certify, bootstrap": lambda: eq.certify(
            rows, claim, method="bootstrap", resamples=30, rng=1
        ),
        "flag": lambda: eq.flag(rows, claim, above=0.05, rng=1),
        "flag, others": lambda: eq.flag(
            rows, eq.gap(METRIC, across=across, target=eq.complement()), control="holm", rng=1
        ),
        "joint_test": lambda: eq.joint_test(rows, claim, rng=1),
        "describe": lambda: eq.describe(rows, claim),
        "summarize": lambda: eq.summarize(rows, METRIC, across=names, resamples=30, rng=1),
        "two at once": lambda: eq.flag(
            rows, Together(name="both", claims=(claim, eq.ratio(METRIC, across=across))), rng=1
        ),
        "power": lambda: eq.power(rows, claim, rng=1),
        "bounds of two": lambda: eq.certify(
            rows, Together(name="both", claims=(claim, eq.ratio(METRIC, across=across))), rng=1
        ),
    }
    found: eq.Finding = calls[verb]()
    return found


def everything(finding: eq.Finding, least: int) -> str:
    """All that is published of a finding, in every form."""
    evidence = eq.Evidence.of(finding)
    page = eq.report(evidence, suppress=least)
    kept = suppressed([finding], least)
    forms = [
        page.html,
        str(page.published),
        model_card(evidence, kept),
        json.dumps(openlineage(evidence, kept)),
        *(csv_of(sheet) for sheet in sheets_of(evidence, kept)),
        junit(outcome_of(evidence, "", 0, "plan", told=kept)),
    ]
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:+]+", "", "\n".join(forms))


def sums(table: Table, where: dict[str, Any], names: tuple[str, ...]) -> tuple[int, int]:
    inside = [
        pair
        for cell, pair in table.items()
        if all(cell[names.index(name)] == level for name, level in where.items())
    ]
    return sum(n for n, _ in inside), sum(h for _, h in inside)


def shown(finding: eq.Finding, least: int) -> tuple[list[dict[str, Any]], bool]:
    """The groups that are published, and whether the total is."""
    (kept,) = suppressed([finding], least)
    return [dict(row.where) for row in kept.finding.rows], kept.finding.provenance.counted > 0


def candidates(
    table: Table, told: list[dict[str, Any]], total: bool, names: tuple[str, ...], most: int
) -> list[Table]:
    """Tables with the same counts where they are told: cells exchanged, and steps of many sizes."""
    fixed, cells = [*told, *([{}] if total else [])], list(table)
    inside = np.array(
        [
            [all(cell[names.index(n)] == level for n, level in where.items()) for cell in cells]
            for where in fixed
        ],
        dtype=int,
    ).reshape(len(fixed), len(cells))
    ones = [np.array(step) for step in itertools.product((-1, 0, 1), repeat=len(cells))]
    steps = [size * one for one in ones if one.any() for size in (1, 2, 5, 11, 23)]
    steps = [step for step in steps if not (inside @ step).any()]
    start, hits = (np.array([pair[i] for pair in table.values()]) for i in (0, 1))
    orders = itertools.permutations(range(len(cells)))
    alike = [
        start[list(order)]
        for order in orders
        if (inside @ start[list(order)] == inside @ start).all()
    ]
    found = list(dict.fromkeys(tuple(map(int, one)) for one in [start, *alike]))
    seen = set(found)
    for ns in found:
        for step in steps:
            new = tuple(map(int, ns + step))
            if min(new) > 0 and new not in seen and len(found) < most:
                seen.add(new)
                found.append(new)
    sized = [dict(zip(cells, ns, strict=True)) for ns in found]
    made = [_with_hits(sizes, inside, hits, way) for sizes in sized for way in (1, 2)]
    return [one for one in made if one is not None]


def _with_hits(sizes: dict[tuple[str, ...], int], inside: Any, hits: Any, way: int) -> Table | None:
    """Any way to deal the selected people that agrees with what is told of them."""
    ns, rng = np.array([*sizes.values()]), np.random.default_rng([way, *sizes.values()])
    asked = [LinearConstraint(inside, inside @ hits, inside @ hits)] if len(inside) else []
    chosen = milp(
        rng.normal(size=len(ns)),
        integrality=np.ones(len(ns), dtype=np.int64),
        bounds=Bounds(0, ns),
        constraints=asked,
    )
    if not chosen.success:
        return None
    pairs = zip(ns.tolist(), np.rint(chosen.x).astype(int).tolist(), strict=True)
    return dict(zip(sizes, pairs, strict=True))


def random_table(rng: np.random.Generator, least: int, *, square: bool) -> Table:
    small, large = rng.integers(1, least, 2), rng.integers(4 * least, 80, 6)
    medium = rng.integers(least, 2 * least)
    sizes = [*small[: rng.integers(1, 3)], medium, *large][: 4 if square else 5]
    sizes = [int(n) for n in rng.permutation(sizes)]
    if square:
        cells: list[tuple[str, ...]] = list(itertools.product("ab", "xy"))
    else:
        cells = [(name,) for name in "abcde"[: len(sizes)]]
    return {
        cell: (n, int(rng.binomial(n, rng.uniform(0.1, 0.9))))
        for cell, n in zip(cells, sizes, strict=True)
    }


@functools.cache
def alike(items: tuple[Any, ...], names: tuple[str, ...], least: int) -> list[Table]:
    """Tables that agree with what is shown of one, and of which the same groups are hidden."""
    table = dict(items)
    seen = shown(audited("describe", table, names), least)
    small = [cell for cell, (n, _) in table.items() if n < least]
    assert not any(dict(zip(names, cell, strict=True)) in seen[0] for cell in small)
    # the rule itself leaves fewer tables: those on which it would hide the same
    every = candidates(table, *seen, names, 150)
    return [one for one in every if shown(audited("describe", one, names), least) == seen]


def said_of_a_shown_group(
    table: Table, cell: tuple[str, ...], names: tuple[str, ...], groups: list[dict[str, Any]]
) -> bool:
    """Whether the rate of one group that is shown is 0 or 1, and so that of all its parts.

    The threat model says so: a rate that is told is told of everybody in the group.
    """
    here = dict(zip(names, cell, strict=True))
    within = [where for where in groups if where.items() <= here.items()]
    return any(h in (0, n) for n, h in (sums(table, where, names) for where in within))


def attacked(verb: str, table: Table, names: tuple[str, ...], least: int) -> list[str]:
    """Small groups that are known more closely than promised."""
    held = everything(audited(verb, table, names), least)
    small = [cell for cell, (n, _) in table.items() if n < least]
    every = alike(tuple(table.items()), names, least)
    groups, _ = shown(audited("describe", table, names), least)
    wrong = []
    for cell in small:
        n, h = table[cell]
        ways = {
            "fewer": [made for made in every if made[cell][0] <= max(n - least, 1)],
            "more": [made for made in every if made[cell][0] >= n + least],
        }
        if not said_of_a_shown_group(table, cell, names, groups):
            ways["another rate"] = [
                made for made in every if made[cell][1] * n != made[cell][0] * h
            ]
        for way, tables in ways.items():
            # each of them must look exactly like the true one
            said = [everything(audited(verb, made, names), least) == held for made in tables[:2]]
            if not said or not all(said):
                wrong.append(f"{verb} {table}: {cell} cannot have {way} of {len(tables)}")
    return wrong


VERBS = (
    "certify",
    "certify, one side",
    "certify, bootstrap",
    "flag",
    "flag, others",
    "joint_test",
    "describe",
    "summarize",
    "power",
    "two at once",
    "bounds of two",
)


@pytest.mark.parametrize("verb", VERBS)
def test_the_table_of_the_report_leaves_all_candidates(verb: str) -> None:
    # 40 ways to deal what is hidden; 39 of them published another statistic, or other bounds
    table: Table = {("a",): (60, 30), ("b",): (45, 20), ("c",): (8, 2), ("d",): (3, 3)}
    held = everything(audited(verb, table, ("g",)), 5)
    tried = 0
    for n in (1, 2, 4, 7, 8, 9, 10):
        for h in {0, min(n, 5)}:
            made = table | {("c",): (11 - n, 5 - h), ("d",): (n, h)}
            # with five and six rows nothing is small, and nothing hidden
            if 5 - h <= 11 - n:
                tried += 1
                assert everything(audited(verb, made, ("g",)), 5) == held, made
    assert tried > 8


@pytest.mark.parametrize("verb", VERBS)
def test_no_small_group_is_found_by_performing_the_audit_again(verb: str) -> None:
    rng, pinned = np.random.default_rng(21), []
    for turn in range(number(2, 12)):
        square = turn % 2 == 1 and verb != "summarize"
        table = random_table(rng, 4, square=square)
        names = ("g", "s") if square else ("g",)
        pinned += attacked(verb, table, names, 4)
    assert pinned == []


# --- Rare events: which groups are hidden must not say which of them is small ---

Four = tuple[int, int, int, int]
"""A number for each cell of two attributes with two levels each."""
PLACES = tuple(itertools.product((0, 1), (0, 1)))


def seen_of(sizes: Four, hits: Four, least: int) -> tuple[Any, ...]:
    """What a page would hide of two attributes, and the counts that it would tell."""
    ways: list[dict[str, int]] = [{}, {"a": 0}, {"a": 1}, {"b": 0}, {"b": 1}]
    ways += [{"a": i, "b": j} for i, j in PLACES]
    told = {}
    for where in ways:
        inside = [where.get("a", i) == i and where.get("b", j) == j for i, j in PLACES]
        n, h = (sum(itertools.compress(one, inside)) for one in (sizes, hits))
        told[METRIC, json.dumps(where, sort_keys=True)] = Told(n=n, hits=h)
    gone = hidden(told, least)
    return frozenset(gone), tuple((count, told[count]) for count in told if count not in gone)


def with_sums_of(sizes: Four, hits: Four) -> Iterator[tuple[Four, Four]]:
    """Every table with the same sums of rows and of columns, of people and of the selected."""

    def moved(four: Four, by: int) -> Four:
        return (four[0] + by, four[1] - by, four[2] - by, four[3] + by)

    for by in range(-max(sizes), max(sizes) + 1):
        n = moved(sizes, by)
        for step in range(-max(sizes), max(sizes) + 1) if min(n) > 0 else ():
            h = moved(hits, step)
            if all(0 <= own <= rows for own, rows in zip(h, n, strict=True)):
                yield n, h


def found_out(sizes: Four, hits: Four, least: int) -> list[str] | None:
    """What is known of small cells, where all sums are shown; None if some are not."""
    seen = seen_of(sizes, hits, least)
    if any(len(json.loads(key)) < 2 for _, key in seen[0]):
        return None
    every = [(n, h) for n, h in with_sums_of(sizes, hits) if seen_of(n, h, least) == seen]
    wrong = []
    for i, rows in enumerate(sizes):
        possible = {n[i] for n, _ in every}
        # a group that is shown may say of all its people that they are alike
        rates = {h[i] / n[i] for n, h in every} | {
            h[i] / n[i] for n, h in with_sums_of(sizes, hits)
        }
        known = len({h[i] / n[i] for n, h in every}) < min(len(rates), 2)
        if rows < least and (max(possible) < rows + least or min(possible) > 1 or known):
            wrong.append(f"{sizes} {hits}: cell {i} has one of {sorted(possible)} rows")
    return wrong


@pytest.mark.parametrize(
    ("sizes", "hits", "least"),
    [
        ((1, 8, 6, 5), (1, 0, 0, 0), 5),
        ((1, 9, 6, 11), (1, 0, 0, 0), 5),
        ((4, 10, 9, 5), (1, 0, 0, 0), 5),
        ((5, 12, 15, 10), (1, 0, 1, 0), 10),
        ((9, 22, 18, 12), (1, 1, 0, 0), 10),
        ((7, 30, 30, 15), (1, 0, 0, 0), 10),
        ((15, 2, 5, 10), (8, 1, 2, 4), 5),
        ((23, 23, 1, 24), (14, 8, 1, 11), 5),
    ],
)
def test_rare_events_do_not_say_which_group_is_small(sizes: Four, hits: Four, least: int) -> None:
    # in each of these the one small group was known to within a few rows, in some exactly
    assert not found_out(sizes, hits, least)


def test_no_rule_of_hiding_says_which_group_is_small() -> None:
    rng, looked = np.random.default_rng(33), 0
    for _ in range(number(60, 300)):
        sizes = [int(n) for n in rng.integers(4, 26, 4)]
        sizes[rng.integers(4)] = int(rng.integers(1, 4))
        hits = rng.binomial(sizes, rng.choice([0.02, 0.1, 0.5, 0.97])).tolist()
        wrong = found_out(tuple(sizes), tuple(hits), 4)  # type: ignore[arg-type]
        looked += wrong is not None
        assert not wrong
    assert looked > 4
