"""Figure 2: who would be treated differently, by logistic regression on COMPAS.

Published: among re-offenders men over 45 move to white (a few to black) women, that is, would have
been passed over; among the others young white men and women and black women move to black men;
people aged 25 to 45 hardly move. Where several comparable profiles are equally bad the best plan is
not unique, and a heat map of net changes shows one arbitrary choice. What is determined is who
leaves and which profiles could take them in, so these two are counted, averaged over splits.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from recidivism import LEVELS, RACES, SEXES, Cells, fit, load, split
from records import main, write
from transport_worlds import SEED

from equipoise.methods.numerics import BoolArray, FloatArray, IntArray
from equipoise.methods.transport import solve

WHO = [(sex, race) for race in RACES for sex in SEXES]
COLUMNS = [(name, level) for name, levels in LEVELS.items() for level in levels]
PLACES = ("sex", "race", *LEVELS)


def run(full: bool = False) -> dict[str, Any]:
    """Average who leaves and who could take them in over splits."""
    repetitions = 50 if full else 20
    rng = np.random.default_rng(SEED)
    cells = load()
    leave, enter = np.zeros(cells.counts.size), np.zeros(cells.counts.size)
    for _ in range(repetitions):
        train, audit = split(cells.counts, 0.7, rng)
        out, taken = _moves(cells, fit(cells, train), audit)
        leave, enter = leave + out / repetitions, enter + taken / repetitions
    rows = [
        {
            "outcome": ("did not re-offend", "re-offended")[y],
            "who": " ".join(who),
            "what": what,
            **{
                level: round(_total(cells, values, y, who, name, level), 1)
                for name, level in COLUMNS
            },
        }
        for y in (1, 0)
        for what, values in (("leave", leave), ("could take in", enter))
        for who in WHO
    ]
    checks = _checks(cells, leave, enter)
    result = {
        "source": "Figure 2",
        "repetitions": repetitions,
        "rows": rows,
        "checks": checks,
        "agrees": all(checks.values()),
    }
    return write(__file__, "figure_2", result, full)


def _moves(cells: Cells, guess: IntArray, audit: IntArray) -> tuple[FloatArray, FloatArray]:
    """People who leave each cell, and people each cell could take in with equal loss."""
    solved = solve(cells.problem(guess), audit)
    steps = solved.plan.moves()
    out = np.bincount(steps.source, steps.mass, minlength=guess.size) * solved.n
    by_class = np.bincount(cells.moves.labels, out)[cells.moves.labels]
    return out, np.where(guess != cells.outcome, by_class, 0.0)


def _where(cells: Cells, y: int, **wanted: str) -> BoolArray:
    keep = cells.outcome == y
    for name, level in wanted.items():
        place = PLACES.index(name)
        keep = keep & np.array([profile[place] == level for profile in cells.profiles])
    return np.asarray(keep)


def _total(
    cells: Cells, values: FloatArray, y: int, who: tuple[str, str], name: str, level: str
) -> float:
    return float(values[_where(cells, y, sex=who[0], race=who[1], **{name: level})].sum())


def _checks(cells: Cells, leave: FloatArray, enter: FloatArray) -> dict[str, bool]:
    old, young = "Greater than 45", "Less than 25"

    def by_who(values: FloatArray, y: int, age: str) -> dict[tuple[str, str], float]:
        return {who: _total(cells, values, y, who, "age", age) for who in WHO}

    def moved(age: str) -> float:
        keep = _where(cells, 0, age=age) | _where(cells, 1, age=age)
        return float(leave[keep].sum() / cells.counts[keep].sum())

    black, white = RACES
    out, taken = by_who(leave, 1, old), by_who(enter, 1, old)
    others, young_out = by_who(enter, 0, young), by_who(leave, 0, young)
    return {
        "re-offenders over 45: black and white men leave": out["Male", black]
        > out["Male", white]
        > 5,
        "re-offenders over 45: white women could take in most": taken["Female", white]
        == max(taken.values()),
        "others under 25: black men could take in most": others["Male", black]
        == max(others.values()),
        "others under 25: black men leave least": young_out["Male", black]
        == min(young_out.values()),
        "25 to 45 moves least": moved("25 - 45") < min(moved(old), moved(young)),
    }


if __name__ == "__main__":
    main("figure 2", run)
