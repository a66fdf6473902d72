"""Figures 5 and 6: flags on COMPAS, all 7214 rows, predictive value against a known margin of 0.01.

Three readings: the published one (plug-in likelihood, hull failures read as p = 0, BH tier by
tier), plug-in likelihood as it should be computed (binomial, BH over all groups), and ours (the
target's own error counted, BH over all groups).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import agreed, main, write

import equipoise as eq
from equipoise.methods.hypotheses import benjamini_hochberg

GROUPS = eq.intersections("race", "sex", "age")
FIGURES: dict[str, dict[str, Any]] = {
    "Figure 5: above Caucasian + 0.01": {
        "target": eq.reference(race="Caucasian"),
        "limit": {"above": 0.01},
        "published": {"race": "African-American", "sex": "Male", "age": "Less than 25"},
    },
    "Figure 6: below everyone − 0.01": {
        "target": eq.overall(),
        "limit": {"below": -0.01},
        "published": {"sex": "Female", "age": "Less than 25"},
    },
}


def run(full: bool = False) -> dict[str, Any]:
    """Both figures, three readings each."""
    trail = eq.datasets.compas(everyone=True)
    rows: list[dict[str, Any]] = []
    for name, figure in FIGURES.items():
        claim = eq.gap(eq.positive_predictive_value, across=GROUPS, target=figure["target"])
        plug = eq.flag(trail, claim, fdr=0.05, method="likelihood-plugin", **figure["limit"])
        ours = eq.flag(trail, claim, fdr=0.05, method="likelihood", **figure["limit"])
        tiers = published_reading(plug, figure["limit"])
        hull = [row.group for row in plug.rows if row.group in tiers and row.value in (0.0, 1.0)]
        again = [row.group for row in plug.rows if row.flagged]
        named = plug.ask(**figure["published"])
        rows += [
            {
                "figure": f"{name}, as published",
                "published": named.group,
                "ours": tiers,
                "reason": f"of these, all outcomes alike: {'; '.join(hull) or 'none'}",
                "agrees": named.group in tiers,
            },
            {
                "figure": f"{name}, plug-in, one BH over all groups, no hull failures",
                "published": None,
                "ours": again,
                "reason": f"{named.group}: p = {named.p:.4f}",
                "agrees": None,
            },
            {
                "figure": f"{name}, ours",
                "published": None,
                "ours": [row.group for row in ours.rows if row.flagged],
                "reason": f"with the target's own error {named.group} has "
                f"p = {ours.ask(**figure['published']).p:.4f}",
                "agrees": None,
            },
        ]
    claim = eq.gap(eq.positive_predictive_value, across=GROUPS)
    plug = eq.flag(trail, claim, fdr=0.05, method="likelihood-plugin", below=-0.01)
    older = plug.ask(race="Caucasian", age="Greater than 45")
    women = plug.ask(race="Caucasian", sex="Female", age="Greater than 45")
    rows.append(
        {
            "figure": "Figure 6, text: Caucasians over 45, p-value",
            "published": "flagged",
            "ours": round(older.p, 3),
            "reason": f"Caucasian women over 45, whom the published code flags: p = {women.p:.4f}",
            "agrees": bool(older.p > 0.1 and women.p < older.p),
        }
    )
    result = {"source": "Figures 5 and 6: flags", "rows": rows, "agrees": agreed(rows)}
    return write(__file__, "flags", result, full=True)


def published_reading(found: Any, limit: dict[str, float]) -> list[str]:
    """Groups with all outcomes alike beyond the limit have p = 0; BH in each tier."""
    side, edge = next(iter(limit.items()))
    flagged = []
    for depth in (1, 2, 3):
        tier = [row for row in found.rows if len(row.where) == depth and row.p is not None]
        p = np.array([0.0 if _hull(row, side, edge) else row.p for row in tier])
        adjusted = benjamini_hochberg(p)
        flagged += [row.group for row, q in zip(tier, adjusted, strict=True) if q <= 0.05]
    return flagged


def _hull(row: Any, side: str, edge: float) -> bool:
    beyond = row.disparity > edge if side == "above" else row.disparity < edge
    return row.value in (0.0, 1.0) and beyond


if __name__ == "__main__":
    main("flags", run)
