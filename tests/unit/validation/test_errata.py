"""What the errata say of printed values is what the scripts of validation have stored."""

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
ERRATA = (ROOT / "docs" / "explanation" / "errata.md").read_text(encoding="utf-8")


def stored(paper: str, name: str, figure: str, key: str = "ours") -> Any:
    path = ROOT / "validation" / paper / "results" / f"{name}.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return next(row[key] for row in rows if row["figure"] == figure)


def test_the_bound_in_compas() -> None:
    bound = stored("paper_000", "compas", "90% lower bound, PPV African-American − Caucasian")
    assert f"the 90 % bound is {100 * bound:.1f} points" in ERRATA


def test_the_number_of_groups() -> None:
    where = "Asian and Native American in Other", "all races"
    merged, every = (
        stored("paper_000", "compas", f"groups with high-risk people, {words}") for words in where
    )
    assert (
        f"{merged} groups if Asian and Native American are put into Other, {every} otherwise"
        in (ERRATA)
    )


@pytest.mark.parametrize("level", ["90%", "95%"])
def test_the_intervals_of_the_second_paper(level: str) -> None:
    low, high = stored("paper_003", "compas", f"profile, {level} interval, n = 2174")
    words = f"{low:.3f} to {high:.3f}".replace("-", "−")
    row = next(line for line in ERRATA.splitlines() if "0.022 to 0.055 (90 %)" in line)
    assert words in row


def test_the_group_that_is_not_flagged() -> None:
    p = stored("paper_003", "flags", "Figure 6, text: Caucasians over 45, p-value")
    assert f"has p = {p:.2f}" in ERRATA
