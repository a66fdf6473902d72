"""Bounds: another level, another side, one row, and the worst range of every width."""

import dataclasses
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.findings import Bounds

TRAIL = eq.datasets.compas()
CLAIM = eq.gap("false_positive_rate", across=eq.intersections("race", "sex"))


def bounds(**options: Any) -> Bounds:
    found = eq.certify(TRAIL, CLAIM, rng=7, **options)
    assert isinstance(found, Bounds)
    return found


@pytest.mark.parametrize("side", ["lower", "upper", "both"])
@pytest.mark.parametrize("method", ["band", "bootstrap"])
def test_another_level_moves_only_the_sides_asked_for(side: str, method: str) -> None:
    found = bounds(side=side, method=method, resamples=200)
    wider, same = found.at(0.99), found.at(found.level)
    assert "99 %" in wider.guarantee
    for row, wide, again in zip(found.rows, wider.rows, same.rows, strict=True):
        for end in ("lower", "upper"):
            assert (getattr(row, end) is None) == (getattr(wide, end) is None)
            assert getattr(again, end) == pytest.approx(getattr(row, end), abs=1e-9)
        if row.lower is not None:
            assert side != "upper"
            assert wide.lower <= row.lower <= row.disparity
        if row.upper is not None:
            assert side != "lower"
            assert wide.upper >= row.upper >= row.disparity
    assert any(w != r for w, r in zip(wider.rows, found.rows, strict=True))


def test_the_statistic_of_a_side_is_the_deviation_on_it() -> None:
    found = bounds(method="bootstrap", resamples=20)
    drawn = dataclasses.replace(found, draws=((-3.0, 1.0), (-0.5, 2.0)))
    said = {
        side: list(dataclasses.replace(drawn, side=side).statistics())
        for side in ("lower", "upper", "both")
    }
    # A lower bound fails where the estimate is too high, an upper one where it is too low.
    assert said == {"lower": [1.0, 2.0], "upper": [3.0, 0.5], "both": [3.0, 2.0]}


def test_a_single_row_shows_nothing_unless_it_is_its_own_target() -> None:
    found = bounds(tolerance=0.9)
    row = dataclasses.replace(found.rows[0], n=1, note="", lower=-0.1, upper=0.1)
    alone, certain = found.judged(row), found.judged(dataclasses.replace(row, reach=0.0))
    assert (str(alone.verdict), alone.note) == (
        "undetermined",
        "n = 1 is too small to exclude anything",
    )
    assert (str(certain.verdict), certain.note) == ("shown", "")
    two = found.judged(dataclasses.replace(row, n=2))
    assert (str(two.verdict), two.note) == ("shown", "")


def test_the_verdict_on_all_groups_is_that_of_the_worst() -> None:
    found = bounds(tolerance=0.1)
    shown = [row for row in found.rows if str(row.verdict) == "shown"]
    unclear = [row for row in found.rows if str(row.verdict) == "undetermined"]
    assert found.conclusion is eq.Verdict.SHOWN_NOT
    for rows, verdict in (
        (shown, eq.Verdict.SHOWN),
        (shown + unclear, eq.Verdict.UNDETERMINED),
        ([*shown, dataclasses.replace(shown[0], verdict=None)], eq.Verdict.UNDETERMINED),
    ):
        assert dataclasses.replace(found, rows=tuple(rows)).conclusion is verdict


def test_sentences_name_the_furthest_on_each_side() -> None:
    found = bounds()
    above, below = found.sentences()[1:3]
    highest = max((row for row in found.rows if row.lower is not None), key=lambda r: r.lower)
    lowest = min((row for row in found.rows if row.upper is not None), key=lambda r: r.upper)
    assert above == (
        f"Furthest above: {highest.group} (n = {highest.n:,}), estimated "
        f"+{100 * highest.disparity:.1f} points, at least +{100 * highest.lower:.1f} points."
    )
    assert below.startswith(f"Furthest below: {lowest.group} (n = {lowest.n:,}), estimated -")
    assert below.endswith(f", at most -{abs(100 * lowest.upper):.1f} points.")


@pytest.mark.parametrize(("side", "worst"), [("upper", max), ("lower", min), ("both", min)])
def test_the_worst_range_of_each_width(side: Any, worst: Any) -> None:
    rng = np.random.default_rng(4)
    table = pl.DataFrame({"x": rng.integers(0, 5, 400), "d": rng.integers(0, 2, 400)})
    claim = eq.gap("selection_rate", across=eq.intervals("x"))
    found = eq.certify(eq.read(table, prediction="d"), claim, side=side, rng=1)
    curve = found.by_width()
    assert [point["width"] for point in curve] == [0, 1, 2, 3, 4]
    for point in curve:
        rows = [
            r for r in found.rows if r.where["x"]["to"] - r.where["x"]["from"] == point["width"]
        ]
        ends = [row.upper if side == "upper" else row.lower for row in rows]
        assert point["bound"] == worst(ends)
        assert point["observed"] == worst(row.disparity for row in rows)
    with pytest.raises(eq.OptionError, match="by_width is for ranges of one number"):
        bounds().by_width()
