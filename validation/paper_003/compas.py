"""Positive predictive value of African-American against Caucasian defendants, all 7214 rows.

The published intervals take the Caucasian mean for known; with its own error they are twice as
wide, and the 95 % interval includes zero. Figure 4 draws such intervals for subgroups, each with
the cut-off of one group; the text names those that exclude zero.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import agreed, main, write

import equipoise as eq

PLUGGED = eq.Likelihood(target="plug-in", calibration="none", family="pointwise")
PROFILE = eq.Likelihood(family="pointwise")
# as published, rounded on a grid of 0.001
PUBLISHED = {0.90: (0.022, 0.055), 0.95: (0.018, 0.058)}
EXACT = {0.90: (0.0212, 0.0553), 0.95: (0.0179, 0.0585)}
CORRECTED = {0.90: (0.006, 0.071), 0.95: (-0.0003, 0.077)}
YOUNG, MIDDLE, OLD = "Less than 25", "25 - 45", "Greater than 45"
# sex and age of the groups that the text of Figure 4a and 4b names
ABOVE_ZERO = {(None, None), (None, YOUNG), (None, MIDDLE)} | {
    ("Male", age) for age in (None, YOUNG, MIDDLE)
}
BELOW_ZERO = {("Female", None)}


def run(full: bool = False) -> dict[str, Any]:
    """Both intervals at both levels."""
    trail = eq.datasets.compas(everyone=True)
    claim = eq.gap(
        eq.positive_predictive_value, across="race", target=eq.reference(race="Caucasian")
    )
    rows: list[dict[str, Any]] = []
    for name, method, aims in (("plug-in", PLUGGED, EXACT), ("profile", PROFILE, CORRECTED)):
        for level in (0.90, 0.95):
            found = eq.certify(trail, claim, level=level, method=method)
            row = found.ask(race="African-American")
            ours = (row.lower, row.upper)
            close = max(abs(a - b) for a, b in zip(ours, aims[level], strict=True))
            rows.append(
                {
                    "figure": f"{name}, {level:.0%} interval, n = {row.n}",
                    "published": list(PUBLISHED[level]) if name == "plug-in" else None,
                    "ours": [round(x, 4) for x in ours],
                    "agrees": close <= (0.0001 if name == "plug-in" else 0.0005),
                }
            )
    rows += [*_figure_4("4a", {"race": "African-American"}), *_figure_4("4b", {})]
    result = {"source": "COMPAS intervals and Figure 4", "rows": rows, "agrees": agreed(rows)}
    return write(__file__, "compas", result, full=True)


def _figure_4(name: str, fixed: dict[str, str]) -> list[dict[str, Any]]:
    """95 % intervals of every sex and age, as published, with the target's error, and for all."""
    trail = eq.datasets.compas(everyone=True)
    claim = eq.gap(
        eq.positive_predictive_value,
        across=eq.intersections("race", "sex", "age"),
        target=eq.reference(race="Caucasian"),
    )
    everything: dict[str, Any] = {
        "published_form": eq.certify(trail, claim, level=0.95, method=PLUGGED),
        "own_error_of_the_target": eq.certify(trail, claim, level=0.95, method=PROFILE),
        "all_groups_at_once": eq.certify(trail, claim, level=0.95, rng=1),
    }
    rows = []
    for sex, age in product((None, "Male", "Female"), (None, YOUNG, MIDDLE, OLD)):
        where = {**fixed, **{k: v for k, v in (("sex", sex), ("age", age)) if v}}
        if not where:
            continue
        ends = {kind: found.ask(**where) for kind, found in everything.items()}
        plain = ends["published_form"]
        said = _side(sex, age)
        rows.append(
            {
                "figure": f"Figure {name}, {', '.join(where.values())}, n = {plain.n}",
                "published": {1: "above zero", -1: "below zero", 0: None}[said],
                **{kind: [round(row.lower, 4), round(row.upper, 4)] for kind, row in ends.items()},
                # groups that the text does not name are not judged
                "agrees": None if said == 0 else _excludes(plain) == said,
            }
        )
    return rows


def _side(sex: str | None, age: str | None) -> int:
    return ((sex, age) in ABOVE_ZERO) - ((sex, age) in BELOW_ZERO)


def _excludes(row: Any) -> int:
    return int(row.lower > 0) - int(row.upper < 0)


if __name__ == "__main__":
    main("COMPAS", run)
