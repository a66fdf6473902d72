"""Bounds against a tolerance: which verdict, at the ends too, and in which words."""

from dataclasses import dataclass
from typing import Any

import pytest

from equipoise.findings.words import (
    clamp,
    ends_text,
    furthest,
    judged,
    says_something,
    tolerance_words,
)


@pytest.mark.parametrize(
    ("lower", "upper", "allowed", "verdict"),
    [
        (-0.05, 0.05, (-0.1, 0.1), "kept"),
        (-0.05, 0.1, (-0.1, 0.1), "undetermined"),
        (-0.1, 0.05, (-0.1, 0.1), "undetermined"),
        (0.05, 0.3, (-0.1, 0.1), "undetermined"),
        (0.1, 0.3, (-0.1, 0.1), "exceeded"),
        (-0.3, -0.1, (-0.1, 0.1), "exceeded"),
        (-0.3, -0.09, (-0.1, 0.1), "undetermined"),
        (None, 0.05, (-0.1, 0.1), "undetermined"),
        (None, -0.2, (-0.1, 0.1), "exceeded"),
        (None, 0.05, (None, 0.1), "kept"),
        (0.0, None, (-0.1, None), "kept"),
        (0.2, None, (None, 0.1), "exceeded"),
        (None, None, (None, 0.1), "undetermined"),
    ],
)
def test_verdicts(lower: Any, upper: Any, allowed: Any, verdict: str) -> None:
    assert str(judged(lower, upper, allowed)) == verdict


def test_bounds_are_cut_to_what_is_possible_on_both_sides() -> None:
    assert [clamp(x, (-0.4, 0.6)) for x in (-1.0, 0.1, 0.9)] == [-0.4, 0.1, 0.6]
    assert clamp(-1.0, (None, 0.6)) == -1.0
    assert clamp(9.0, (0.0, None)) == 9.0
    assert clamp(float("-inf"), (0.0, None)) is None


def test_bounds_at_the_limits_say_nothing() -> None:
    limits = (-0.4, 0.6)
    assert not says_something(-0.4, 0.6, limits)
    assert not says_something(None, 0.6, limits)
    assert says_something(-0.39, 0.6, limits)
    assert says_something(None, 0.59, limits)
    assert says_something(-5.0, None, (None, None))


@dataclass
class Row:
    lower: float | None
    upper: float | None


def test_the_furthest_are_ranked_by_their_surest_end() -> None:
    rows = [Row(0.1, 9.0), Row(0.15, 0.2), Row(0.0, 99.0), Row(-0.3, -0.1), Row(-9.0, -0.05)]
    assert furthest(rows, 0.0) == (rows[1], rows[3])
    assert furthest([Row(None, None), Row(-1.0, 1.0)], 0.0) == (None, None)
    assert furthest([Row(0.7, 0.9)], 1.0) == (None, Row(0.7, 0.9))


def test_tolerances_in_words() -> None:
    assert [
        tolerance_words(-0.05, "lower", False, True),
        tolerance_words(0.05, "upper", False, True),
        tolerance_words(0.05, "both", False, False),
        tolerance_words(0.8, "both", True, True),
        tolerance_words(0.8, "lower", True, True),
    ] == [
        "above -5.0 points",
        "below +5.0 points",
        "between -0.05 and +0.05",
        "between 0.80 and 1.25",
        "above 0.80",
    ]


def test_ends_in_words() -> None:
    def said(lower: float | None, upper: float | None) -> str:
        return ends_text(lower, upper, str, "nothing")

    assert [said(1, 2), said(1, None), said(None, 2), said(None, None), said(0, 0)] == [
        "at least 1 and at most 2", "at least 1", "at most 2", "nothing",
        "at least 0 and at most 0",
    ]  # fmt: skip
