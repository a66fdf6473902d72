"""How many rows? The audit is run on simulated tables of the size that was named.

Twenty designs and more: sizes, rates, targets, gaps and ratios, one or many groups, small and
large. For each `eq.power` names a disparity, or a number of rows; tables of that size are drawn in
which one group has that disparity and all others are alike, and `flag`, or `certify`, is run on
them. Which rate gives a group its disparity is worked out here by halving, from what a disparity
is. Sizes for two equal groups stand beside the formula of the textbooks, without and with a
correction for continuity.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

sys.path.insert(0, str(Path(__file__).parents[1]))

from records import agreed, main, standard_error, write

import equipoise as eq
from equipoise._validate import seed_of
from equipoise.audits._common import answerable
from equipoise.audits._groups.problem import CertifyOptions, FlagOptions, Problem
from equipoise.audits.certify import bound_groups
from equipoise.audits.flag import flag_groups
from equipoise.audits.methods import Pivotal
from equipoise.findings.words import Verdict, tolerated

Floats = npt.NDArray[np.float64]
BAR = 0.02
"""The power found may differ from the one named by this much."""
POWER = 0.8
TEXTBOOK = 0.03
"""The share by which sizes for two equal groups may differ from the textbook's."""
SEED = 26


@dataclass(frozen=True, kw_only=True)
class Design:
    """One audit that is planned."""

    rows: tuple[int, ...]
    rate: float
    claim: Callable[[], eq.Claim]
    group: int
    """The group whose disparity is asked about."""
    ask: str
    """``above`` or ``below``: the smallest disparity; ``flag`` or ``show``: rows."""
    options: dict[str, Any] = field(default_factory=dict)
    columns: Callable[[int], dict[str, str]] = lambda i: {"g": f"g{i:02d}"}
    named: Callable[[int], dict[str, str]] | None = None
    """The attributes of the group, if it is not one line of the table."""
    spread: float | None = None
    """Standard deviation of a metric that is no rate, normal."""


def gap(target: object = None) -> Callable[[], eq.Claim]:
    return lambda: eq.gap("selection_rate", across="g", target=target)  # type: ignore[arg-type]


def ratio(target: object = None) -> Callable[[], eq.Claim]:
    return lambda: eq.ratio("selection_rate", across="g", target=target)  # type: ignore[arg-type]


def amount(target: object = None) -> Callable[[], eq.Claim]:
    return lambda: eq.gap("residual", across="g", target=target)  # type: ignore[arg-type]


FIRST = eq.reference(g="g00")
OTHERS = eq.complement()
SIX = (20, 60, 150, 400, 900, 2000)
CROSSED = {
    "columns": lambda i: {"sex": "fm"[i % 2], "age": f"a{i // 2}"},
    "claim": lambda: eq.gap("selection_rate", across=eq.intersections("sex", "age")),
}

DESIGNS: dict[str, Design] = {
    "two equal groups, reference, rows for -0.1": Design(
        rows=(500, 500), rate=0.5, claim=gap(FIRST), group=1, ask="flag",
        options={"disparity": -0.1, "fdr": 0.05}),
    "two equal groups, reference, rows for +0.05 at 0.1": Design(
        rows=(500, 500), rate=0.1, claim=gap(FIRST), group=1, ask="flag",
        options={"disparity": 0.05, "fdr": 0.05}),
    "300 against 3000, above": Design(
        rows=(3000, 300), rate=0.3, claim=gap(FIRST), group=1, ask="above"),
    "40 and 40, everyone else, below": Design(
        rows=(40, 40), rate=0.6, claim=gap(OTHERS), group=0, ask="below"),
    "50, 50 and 60, everyone, above": Design(
        rows=(50, 50, 60), rate=0.2, claim=gap(), group=0, ask="above"),
    "six groups, everyone, the smallest, above": Design(
        rows=SIX, rate=0.4, claim=gap(), group=0, ask="above"),
    "six groups, everyone else, the largest, below": Design(
        rows=SIX, rate=0.4, claim=gap(OTHERS), group=5, ask="below"),
    "six groups, everyone, rows for +0.08 in the third": Design(
        rows=SIX, rate=0.25, claim=gap(), group=2, ask="flag", options={"disparity": 0.08}),
    "a number, one group of 60, above": Design(
        rows=(60,), rate=0.3, claim=gap(0.3), group=0, ask="above"),
    "a number, rare, one group of 500, above": Design(
        rows=(500,), rate=0.02, claim=gap(0.02), group=0, ask="above"),
    "a number, rate 0.97, ten groups of 200, below": Design(
        rows=(200,) * 10, rate=0.97, claim=gap(0.97), group=4, ask="below"),
    "four fifths, rows for a ratio of 0.6": Design(
        rows=(3000, 300), rate=0.3, claim=ratio(FIRST), group=1, ask="flag",
        options={"below": 0.8, "disparity": 0.6}),
    "ratio to everyone above 1.25": Design(
        rows=(150, 200, 300, 900), rate=0.15, claim=ratio(), group=1, ask="above",
        options={"above": 1.25}),
    "twenty groups, everyone, Holm, below": Design(
        rows=(100,) * 10 + (400,) * 10, rate=0.5, claim=gap(), group=3, ask="below",
        options={"control": "holm"}),
    "forty groups, more than 0.05 above everyone": Design(
        rows=(30, 60, 120, 240) * 10, rate=0.3, claim=gap(), group=2, ask="above",
        options={"above": 0.05}),
    "eight groups, by, above": Design(
        rows=(80, 120, 200, 300) * 2, rate=0.2, claim=gap(OTHERS), group=1, ask="above",
        options={"control": "by"}),
    "eight groups, e-bh, above": Design(
        rows=(80, 120, 200, 300) * 2, rate=0.2, claim=gap(OTHERS), group=1, ask="above",
        options={"control": "e-bh"}),
    "eight groups, max-t, above": Design(
        rows=(80, 120, 200, 300) * 2, rate=0.2, claim=gap(OTHERS), group=1, ask="above",
        options={"control": "max-t"}),
    "sex and age crossed, one of both, above": Design(
        rows=(90, 110, 200, 240, 70, 130), rate=0.35, group=2, ask="above",
        named=lambda i: {"sex": "f", "age": "a1"}, **CROSSED),
    "sex and age crossed, one sex, rows for +0.1": Design(
        rows=(90, 110, 200, 240, 70, 130), rate=0.35, group=0, ask="flag",
        options={"disparity": 0.1}, named=lambda i: {"sex": "f"}, **CROSSED),
    "outside ±0.05 of everyone else, above": Design(
        rows=(400, 700, 900), rate=0.3, claim=gap(OTHERS), group=0, ask="above",
        options={"outside": (-0.05, 0.05)}),
    "show ±0.1, two equal groups, reference": Design(
        rows=(200, 200), rate=0.4, claim=gap(FIRST), group=1, ask="show",
        options={"tolerance": 0.1}),
    "show ±0.05, six groups, everyone, the fourth": Design(
        rows=SIX, rate=0.2, claim=gap(), group=3, ask="show", options={"tolerance": 0.05}),
    "show a ratio of 0.8 to 1.25, two groups": Design(
        rows=(900, 400), rate=0.3, claim=ratio(FIRST), group=1, ask="show",
        options={"tolerance": 0.8}),
    "show at most +0.06, twelve groups, a number": Design(
        rows=(150,) * 12, rate=0.1, claim=gap(0.1), group=5, ask="show",
        options={"tolerance": 0.06, "side": "upper"}),
    "show ±0.15, 60 and 80 rows, everyone else": Design(
        rows=(60, 80), rate=0.7, claim=gap(OTHERS), group=0, ask="show",
        options={"tolerance": 0.15}),
    "an amount, 120 and 500 rows, everyone else, above": Design(
        rows=(120, 500), rate=10.0, claim=amount(OTHERS), group=0, ask="above", spread=4.0),
    "an amount, five groups, everyone, rows for +1": Design(
        rows=(80, 120, 150, 300, 600), rate=10.0, claim=amount(), group=1, ask="flag",
        options={"disparity": 1.0}, spread=4.0),
    "an amount, show ±1 in four groups": Design(
        rows=(150, 200, 300, 600), rate=10.0, claim=amount(OTHERS), group=0, ask="show",
        options={"tolerance": 1.0}, spread=4.0),
}  # fmt: skip


def table(design: Design, rows: list[int]) -> dict[str, list[Any]]:
    """Lines of a guess: attributes, rows, rate."""
    lines = [design.columns(i) for i in range(len(rows))]
    made: dict[str, list[Any]] = {name: [line[name] for line in lines] for name in lines[0]}
    made |= {"n": rows, "rate": [design.rate] * len(rows)}
    return made if design.spread is None else made | {"sd": [design.spread] * len(rows)}


def expected(design: Design, rows: list[int]) -> eq.Guess:
    return eq.guess(table(design, rows), spread=None if design.spread is None else "sd")


def members(design: Design) -> npt.NDArray[np.bool_]:
    """Which lines of the table belong to the group."""
    where = (design.named or design.columns)(design.group)
    lines = [design.columns(i) for i in range(len(design.rows))]
    return np.array([all(line[k] == v for k, v in where.items()) for line in lines])


def disparity(design: Design, rows: Floats, rates: Floats, inside: npt.NDArray[np.bool_]) -> float:
    """What a disparity is, from rates."""
    claim = design.claim()
    own = float(rows[inside] @ rates[inside] / rows[inside].sum())
    target = claim.target
    if isinstance(target, type(eq.constant(0.0))):
        other = target.value
    elif isinstance(target, type(FIRST)):
        other = float(rates[0])
    elif isinstance(target, type(OTHERS)):
        other = float(rows[~inside] @ rates[~inside] / rows[~inside].sum())
    else:
        other = float(rows @ rates / rows.sum())
    return own / other if isinstance(claim, type(ratio()())) else own - other


def moved(design: Design, rows: Floats, aim: float, inside: npt.NDArray[np.bool_]) -> Floats:
    """Rates that give the group its disparity, by halving."""
    low, high = (0.0, 1.0) if design.spread is None else (-100.0, 100.0)
    for _ in range(80):
        middle = (low + high) / 2
        rates = np.where(inside, middle, design.rate)
        low, high = (
            (middle, high) if disparity(design, rows, rates, inside) < aim else (low, middle)
        )
    return np.where(inside, (low + high) / 2, design.rate)


def problem_of(design: Design, rows: list[int]) -> Problem:
    """The problem of a table of these sizes, whose totals are then replaced."""
    from equipoise.audits.guess import guessed

    return guessed(expected(design, rows), design.claim())


def worlds_of(
    design: Design, rows: list[int], rates: Floats, number: int
) -> list[tuple[Floats, Floats, Floats]]:
    """Sums of the metric, its square and its cube in every world, by line of the table."""
    rng = np.random.default_rng([SEED, len(rows), *rows])
    sizes = np.array(rows)
    if design.spread is None:
        ones = rng.binomial(sizes, rates, (number, len(rows))).astype(np.float64)
        return [(one, one, one) for one in ones]
    out = []
    for _ in range(number):
        values = [rng.normal(rate, design.spread, n) for rate, n in zip(rates, rows, strict=True)]
        out.append(
            (
                np.array([v.sum() for v in values]),
                np.array([(v**2).sum() for v in values]),
                np.array([(v**3).sum() for v in values]),
            )
        )
    return out


def order_of(problem: Problem, design: Design) -> npt.NDArray[np.int64]:
    """The line of the table that each cell is."""
    cells = problem.cells
    lines = [design.columns(i) for i in range(len(design.rows))]
    found = []
    for cell in cells.index:
        where = {axis.name: axis.levels[int(k)] for axis, k in zip(cells.axes, cell, strict=True)}
        found.append(next(i for i, line in enumerate(lines) if line == where))
    return np.array(found)


def audited(design: Design, problem: Problem, place: int) -> bool:
    """Whether the audit shows what it should."""
    given = {k: v for k, v in design.options.items() if k != "disparity"}
    if design.ask == "show":
        options = CertifyOptions(
            level=0.95, side=given.get("side", "both"), tolerance=given["tolerance"],
            method=Pivotal(),
        )  # fmt: skip
        return bound_groups(problem, options, seed_of(1), False).rows[place].verdict is Verdict.KEPT
    options_of = FlagOptions(
        above=given.get("above"), below=given.get("below"), outside=given.get("outside"),
        fdr=given.get("fdr", 0.10), control=given.get("control", "bh"), method=None, min_rows=None,
        resamples=None,
    )  # fmt: skip
    return flag_groups(problem, options_of, seed_of(1), False).rows[place].flagged


def by_scores(design: Design, problem: Problem, place: int) -> bool:
    """What `certify` says, by its scores at the limits instead of bounds: the same, but quicker."""
    side, tolerance = design.options.get("side", "both"), design.options["tolerance"]
    core, critical, _ = answerable(problem.core, 0.95, side, None, seed_of(1), False)
    low, high = tolerated(tolerance, side, problem.relative)
    allowed = ndtr(-critical.value)
    one = np.array([place])
    above = low is None or core.pivot.tails(np.array([low]), one)[0][0] < allowed
    below = high is None or core.pivot.tails(np.array([high]), one)[1][0] < allowed
    return bool(above and below)


ITSELF = 150
"""Tables on which `certify` itself is run beside its scores; it must say the same."""


def judged(name: str, number: int) -> dict[str, Any]:
    """What was named, and how often the audit shows it."""
    design = DESIGNS[name]
    rows = list(design.rows)
    began = time.process_time()
    found = eq.power(expected(design, rows), design.claim(), power=POWER, rng=7, **design.options)
    seconds = time.process_time() - began
    where = (design.named or design.columns)(design.group)
    row = found.ask(where)
    aim: float | None
    if design.ask in ("above", "below"):
        aim = named = getattr(row, design.ask)
    else:
        named = getattr(row, f"rows_to_{design.ask}")
        aim = design.options["disparity"] if design.ask == "flag" else None
        # sizes as `power` has them: every line grows by the same factor
        times = _factor(design, rows, named)
        rows = [max(round(n * times), 1) for n in rows]
    inside = members(design)
    sizes = np.array(rows, dtype=np.float64)
    rates = np.full(len(rows), design.rate) if aim is None else moved(design, sizes, aim, inside)
    shown = _audit_all(design, rows, rates, number, [g.where for g in found].index(dict(where)))
    return {
        "design": name,
        "named": round(float(named), 4),
        "error": round(float(row.error if design.ask in ("above", "below") else row.rows_error), 4),
        "worlds": number,
        "power": round(shown, 4),
        "off": round(shown - POWER, 4),
        "monte_carlo": round(standard_error(shown, number), 4),
        "seconds": round(seconds, 2),
        "agrees": bool(abs(shown - POWER) <= BAR),
    }


def _factor(design: Design, rows: list[int], named: float) -> float:
    """How many times as large the table is in which the group has the rows that were named."""
    return float(named / np.array(rows)[members(design)].sum())


def _audit_all(design: Design, rows: list[int], rates: Floats, number: int, place: int) -> float:
    problem = problem_of(design, rows)
    order = order_of(problem, design)
    known: dict[bytes, bool] = {}
    hits, audit = 0, by_scores if design.ask == "show" else audited
    for total, square, cube in worlds_of(design, rows, rates, number):
        key = total.tobytes()
        if key not in known or design.spread is not None:
            t, s, c = (x[order] for x in (total, square, cube))
            cells = dataclasses.replace(
                problem.cells, total=t, total2=t, total3=t, square=s, square2=s, square3=s, cube3=c
            )
            here = dataclasses.replace(problem, cells=cells)
            known[key] = audit(design, here, place)
            if audit is by_scores and len(known) <= ITSELF:
                assert known[key] == audited(design, here, place), "scores and bounds disagree"
        hits += known[key]
    return hits / number


PAIRS = (
    (0.5, 0.6), (0.5, 0.55), (0.5, 0.53), (0.3, 0.33), (0.4, 0.36), (0.1, 0.12), (0.1, 0.15),
    (0.3, 0.2), (0.05, 0.1), (0.3, 0.5), (0.2, 0.6),
)  # fmt: skip
PLENTY = 250.0
"""Counts of at least this variance have tails that are as good as normal."""


def textbook(base: float, other: float) -> dict[str, Any]:
    """Rows of each of two equal groups beside the formulas for two proportions, α = 5 %."""
    guess = eq.guess({"g": ["a", "b"], "n": [500, 500], "rate": [base, base]})
    claim = eq.gap("selection_rate", across="g", target=eq.reference(g="a"))
    found = eq.power(guess, claim, disparity=round(other - base, 6), fdr=0.05, rng=7).ask("b")
    middle = (base + other) / 2
    both = base * (1 - base) + other * (1 - other)
    root = ndtri(0.975) * math.sqrt(2 * middle * (1 - middle)) + ndtri(POWER) * math.sqrt(both)
    plain = root**2 / (base - other) ** 2
    corrected = plain / 4 * (1 + math.sqrt(1 + 4 / (plain * abs(base - other)))) ** 2
    rows = float(found.rows_to_flag or math.nan)
    large = plain * min(base * (1 - base), other * (1 - other)) >= PLENTY
    near = abs(rows / plain - 1) <= TEXTBOOK
    # small counts are tested by tails of counts: between the plain formula and the corrected one
    between = plain * (1 - TEXTBOOK) <= rows <= corrected * (1 + TEXTBOOK)
    return {
        "design": f"{base:g} against {other:g}",
        "named": rows,
        "textbook": round(plain, 1),
        "with_continuity": round(corrected, 1),
        "over_textbook": round(rows / plain, 4),
        "counts": "large" if large else "small",
        "agrees": bool(near if large else between),
    }


def run(full: bool = False) -> dict[str, Any]:
    """Simulate every design, and set sizes beside the textbook's."""
    chosen = DESIGNS if full else dict(list(DESIGNS.items())[:4])
    number = 4000 if full else 300
    rows = []
    for name in chosen:
        row = judged(name, number)
        if not full:
            # so few worlds cannot tell two points
            row["agrees"] = abs(row["off"]) <= BAR + 3 * row["monte_carlo"]
        print(row, file=sys.stderr, flush=True)
        rows.append(row)
    sizes = [textbook(*pair) for pair in (PAIRS if full else PAIRS[:3])]
    result = {
        "source": "tables of the size named by eq.power, and the audit on them",
        "power": POWER,
        "bar": BAR,
        "rows": rows,
        "textbook": sizes,
        "worst": max(abs(row["off"]) for row in rows),
        "agrees": agreed(rows) and agreed(sizes),
    }
    return write(__file__, "planning", result, full)


if __name__ == "__main__":
    main("how many rows", run)
