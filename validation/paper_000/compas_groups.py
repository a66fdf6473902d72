"""The groups of COMPAS that Cherian and Candès flag, shared by the script and by the tests."""

from __future__ import annotations

from typing import Any

import narwhals as nw

import equipoise as eq

ACROSS = eq.intersections("race", "sex", "age")
HIGH_FPR = {
    "African-American",
    "Less than 25",
    "African-American, 25 - 45",
    "African-American, Less than 25",
    "Caucasian, Less than 25",
    "African-American, Male",
    "Female, Less than 25",
    "Male, Less than 25",
    "African-American, Male, 25 - 45",
    "African-American, Female, Less than 25",
    "African-American, Male, Less than 25",
    "Caucasian, Female, Less than 25",
    "Hispanic, Male, Less than 25",
}
LOW_PPV = {"Female", "Female, Less than 25", "Caucasian, Female, Less than 25"}
# One group has an adjusted p-value of 0.116: with 1,000 resamples one seed in a few would flag it.
PUBLISHED: dict[str, Any] = {"method": "bootstrap", "min_rows": 10, "resamples": 50_000}


def merged() -> eq.Trail:
    """COMPAS with Asian and Native American people counted as Other."""
    trail = eq.datasets.compas()
    rare = nw.col("race").is_in(["Asian", "Native American"])
    frame = trail.frame.with_columns(race=nw.when(rare).then(nw.lit("Other")).otherwise("race"))
    return eq.read(frame.to_native(), label="reoffended", prediction="high_risk", count="n")
