"""COMPAS: the bound, the intervals of Figure 5 and the flags of Figures 2 and 6.

The bound printed as a 90 % one is the 95 % bound. The figures have 58 groups after Asian and Native
American people are counted as Other, and 76 otherwise.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from compas_groups import ACROSS, HIGH_FPR, LOW_PPV, PUBLISHED, merged
from records import agreed, main, write

import equipoise as eq


def run(full: bool = False) -> dict[str, Any]:
    """Bounds, numbers of groups, intervals and flags."""
    rows = [*_bounds(), *_groups(), *_flags(), *_intervals()]
    result = {"source": "COMPAS", "rows": rows, "agrees": agreed(rows)}
    return write(__file__, "compas", result, full=True)


def _bounds() -> list[dict[str, Any]]:
    two = eq.masks({"African-American": "race == 'African-American'"})
    claim = eq.gap(eq.positive_predictive_value, across=two, target=eq.reference(race="Caucasian"))
    rows = []
    for level, expected in ((0.95, 0.0187), (0.90, 0.027)):
        found = eq.certify(
            eq.datasets.compas(), claim, level=level, side="lower", resamples=20_000, rng=1
        )
        row = found.ask("African-American")
        rows.append(
            {
                "figure": f"{level:.0%} lower bound, PPV African-American − Caucasian",
                "published": 0.0187 if level == 0.95 else None,
                "expected": expected,
                "ours": round(row.lower, 4),
                "agrees": abs(row.lower - expected) < 0.0015,
            }
        )
    return rows


def _groups() -> list[dict[str, Any]]:
    claim = eq.gap(
        eq.positive_predictive_value, across=ACROSS, target=eq.reference(race="Caucasian")
    )
    rows = []
    for name, trail, expected in (
        ("Asian and Native American in Other", merged(), 58),
        ("all races", eq.datasets.compas(), 76),
    ):
        found = sum(row.n > 0 for row in eq.describe(trail, claim).rows)
        rows.append(
            {
                "figure": f"groups with high-risk people, {name}",
                "published": 58 if expected == 58 else None,
                "expected": expected,
                "ours": found,
                "agrees": found == expected,
            }
        )
    return rows


def _flags() -> list[dict[str, Any]]:
    rows = []
    asked = (
        ("FPR at least 5 points above", eq.false_positive_rate, {"above": 0.05}, HIGH_FPR),
        ("PPV at least 5 points below", eq.positive_predictive_value, {"below": -0.05}, LOW_PPV),
    )
    for words, metric, limits, expected in asked:
        claim = eq.gap(metric, across=ACROSS)
        for name, extra in (
            ("default", {}),
            ("Algorithm 4, groups of at least 10", PUBLISHED),
        ):
            found = eq.flag(eq.datasets.compas(), claim, fdr=0.1, rng=1, **limits, **extra)
            names = {row.group for row in found.flagged}
            rows.append(
                {
                    "figure": f"flags, {words} everyone",
                    "method": name,
                    "published": len(expected),
                    "ours": len(names),
                    "more": sorted(names - expected),
                    "fewer": sorted(expected - names),
                    "agrees": names == expected,
                }
            )
    return rows


def _intervals() -> list[dict[str, Any]]:
    """Figure 5: simultaneous 95 % intervals of PPV against the Caucasian one."""
    claim = eq.gap(
        eq.positive_predictive_value, across=ACROSS, target=eq.reference(race="Caucasian")
    )
    found = eq.certify(merged(), claim, level=0.95, method="bootstrap", resamples=5000, rng=1)
    ours = eq.certify(merged(), claim, level=0.95, resamples=5000, rng=1)
    rows = []
    for row in found.rows:
        where = row.where
        if where.get("race") in (None, "African-American"):
            default = ours.ask(row.group)
            rows.append(
                {
                    "figure": f"Figure 5, {row.group}",
                    "published": None,
                    "ours": round(row.disparity, 4),
                    "published form": [round(row.lower, 4), round(row.upper, 4)],
                    "default": [round(default.lower, 4), round(default.upper, 4)],
                    "agrees": None,
                }
            )
    return rows


if __name__ == "__main__":
    main("COMPAS", run)
