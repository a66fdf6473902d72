"""Positive predictive value of African-American against Caucasian defendants, all 7214 rows.

The published intervals take the Caucasian mean for known; with its own error they are twice as
wide, and the 95 % interval includes zero.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1]))

from records import main, write

import equipoise as eq

PLUGGED = eq.Likelihood(target="plug-in", calibration="none", family="pointwise")
PROFILE = eq.Likelihood(family="pointwise")
# as published, rounded on a grid of 0.001
PUBLISHED = {0.90: (0.022, 0.055), 0.95: (0.018, 0.058)}
EXACT = {0.90: (0.0212, 0.0553), 0.95: (0.0179, 0.0585)}
CORRECTED = {0.90: (0.006, 0.071), 0.95: (-0.0003, 0.077)}


def run(full: bool = False) -> dict[str, Any]:
    """Both intervals at both levels."""
    trail = eq.datasets.compas(everyone=True)
    claim = eq.gap(
        eq.positive_predictive_value, across="race", target=eq.reference(race="Caucasian")
    )
    rows: list[dict[str, Any]] = []
    for name, method, aims in (("plug-in", PLUGGED, EXACT), ("profile", PROFILE, CORRECTED)):
        for level in (0.90, 0.95):
            found: Any = eq.certify(trail, claim, level=level, method=method)
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
    agrees = all(row["agrees"] for row in rows)
    result = {"source": "COMPAS intervals", "rows": rows, "agrees": agrees}
    return write(__file__, "compas", result, full)


if __name__ == "__main__":
    main("COMPAS", run)
