"""Bounds: another level, another side, one row, and the worst range of every width."""

import dataclasses
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.errors import EquipoiseError
from equipoise.findings import Bounds, from_dict

TRAIL = eq.datasets.compas()
CLAIM = eq.gap("false_positive_rate", across=eq.intersections("race", "sex"))


def bounds(**options: Any) -> Bounds:
    found = eq.certify(TRAIL, CLAIM, rng=7, **options)
    assert isinstance(found, Bounds)
    return found


@pytest.mark.parametrize("side", ["lower", "upper", "both"])
@pytest.mark.parametrize("method", ["pivotal", "bootstrap"])
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


def test_rows_are_judged_by_their_bounds_and_by_nothing_else() -> None:
    found = bounds(tolerance=0.9)
    row = dataclasses.replace(found.rows[0], n=1, note="", lower=-0.1, upper=0.1)
    one = found.judged(row)
    assert (str(one.verdict), one.note) == ("kept", "")
    open_ = found.judged(dataclasses.replace(row, lower=-2.0, upper=2.0))
    assert (open_.lower, open_.upper) == (-1.0, 1.0)
    assert (str(open_.verdict), open_.note) == (
        "undetermined",
        "n = 1 is too small to exclude anything",
    )
    silent = found.judged(
        dataclasses.replace(row, lower=None, upper=None, reach=None, note="one row only")
    )
    assert (str(silent.verdict), silent.note) == ("undetermined", "one row only")
    itself = dataclasses.replace(
        row, lower=None, upper=None, reach=None, note="the group is its own target", verdict=None
    )
    assert found.judged(itself) is itself


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_a_bound_from_the_other_side_may_show_that_a_limit_is_not_kept(side: Any) -> None:
    found = bounds(side=side, tolerance=0.0)
    ends: dict[str, Any] = {"lower": -0.3} if side == "lower" else {"upper": 0.3}
    row = dataclasses.replace(
        found.rows[0], note="", verdict=None, **{"lower": None, "upper": None, **ends}
    )
    sign = -1 if side == "lower" else 1
    for against, verdict in ((None, "undetermined"), (-0.1 * sign, "undetermined")):
        assert str(found.judged(row, against).verdict) == verdict
    assert str(found.judged(row, 0.1 * sign).verdict) == "exceeded"


def test_without_any_answer_another_level_changes_nothing() -> None:
    table = pl.DataFrame({"g": ["a", "b"] * 5, "x": [0.1 * i for i in range(10)]})
    claim = eq.gap(eq.metric("x", "x"), across="g")
    found = eq.certify(eq.read(table), claim, tolerance=0.2, rng=1)
    assert all(row.note.startswith("too few rows") for row in found.rows)
    moved = found.at(0.99)
    assert moved.rows == found.rows
    assert (moved.level, "99 %" in moved.guarantee) == (0.99, True)


def test_the_verdict_on_all_groups_is_that_of_the_worst() -> None:
    found = bounds(tolerance=0.1)
    shown = [row for row in found.rows if str(row.verdict) == "kept"]
    unclear = [row for row in found.rows if str(row.verdict) == "undetermined"]
    assert found.conclusion is eq.Verdict.EXCEEDED
    for rows, verdict in (
        (shown, eq.Verdict.KEPT),
        (shown + unclear, eq.Verdict.UNDETERMINED),
        # a group that is its own target has no verdict, and if there is nobody else none is shown
        ([*shown, dataclasses.replace(shown[0], verdict=None)], eq.Verdict.KEPT),
        ([dataclasses.replace(shown[0], verdict=None)], eq.Verdict.UNDETERMINED),
    ):
        assert dataclasses.replace(found, rows=tuple(rows)).conclusion is verdict


def test_sentences_name_the_furthest_on_each_side() -> None:
    found = bounds()
    above, below = found.sentences()[1:3]
    highest = max(
        (row for row in found.rows if row.lower is not None), key=lambda r: r.lower or 0.0
    )
    lowest = min((row for row in found.rows if row.upper is not None), key=lambda r: r.upper or 0.0)
    assert above == (
        f"Most surely above: {highest.group} (n = {highest.n:,}), estimated "
        f"+{100 * highest.disparity:.1f} points, at least +{100 * highest.lower:.1f} points."
    )
    assert below.startswith(f"Most surely below: {lowest.group} (n = {lowest.n:,}), estimated -")
    assert below.endswith(f", at most -{abs(100 * lowest.upper):.1f} points.")


@pytest.mark.parametrize(("side", "worst"), [("upper", max), ("lower", min), ("both", min)])
def test_the_worst_range_of_each_width(side: Any, worst: Any) -> None:
    rng = np.random.default_rng(4)
    table = pl.DataFrame({"x": rng.integers(0, 5, 400), "d": rng.integers(0, 2, 400)})
    claim = eq.gap("selection_rate", across=eq.intervals("x"), target=0.5)
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


@pytest.mark.parametrize(
    ("side", "other", "tolerance"), [("lower", "M", 0.8), ("upper", "F", 1.25)]
)
def test_a_violation_of_a_one_sided_limit_shows_its_bound(
    side: Any, other: str, tolerance: float
) -> None:
    table = pl.DataFrame(
        {"sex": ["F", "F", "M", "M"], "hired": [1, 0, 1, 0], "n": [100, 900, 500, 500]}
    )
    trail = eq.read(table, prediction="hired", count="n")
    claim = eq.ratio("selection_rate", across="sex", target=eq.reference(sex=other))
    found = eq.certify(trail, claim, side=side, tolerance=tolerance, rng=7)
    row = next(row for row in found if row.verdict is eq.Verdict.EXCEEDED)
    end = row.upper if side == "lower" else row.lower
    assert end is not None
    assert end < 0.8 if side == "lower" else end > 1.25
    said = " ".join(found.sentences())
    assert "told apart" not in said
    assert f"{end:.2f}" in said
    assert f"{end:.2f} times" in found.headline()
    assert f"all {'upper' if side == 'lower' else 'lower'} bounds hold that show" in found.guarantee
    assert "not told apart" not in found.drawn()
    again = found.at(0.95).ask(sex=row.where["sex"])
    assert (again.lower, again.upper) == pytest.approx((row.lower, row.upper))
    # without a violation only the side that was asked for
    loose = eq.certify(trail, claim, side=side, tolerance=tolerance**20, rng=7)
    shown = [row for row in loose if row.reach is not None]
    assert all((row.upper if side == "lower" else row.lower) is None for row in shown)


def _counted(*groups: tuple[str, int, int]) -> eq.Trail:
    rows = [(name, h, n) for name, k, m in groups for h, n in ((1, k), (0, m - k))]
    table = pl.DataFrame(rows, schema=["sex", "hired", "n"], orient="row")
    return eq.read(table, prediction="hired", count="n")


def test_what_is_not_shown_is_said_so_that_nobody_reads_its_opposite() -> None:
    trail = _counted(("F", 50, 100), ("M", 50, 100))
    found = eq.certify(trail, eq.gap("selection_rate", across="sex"), rng=7)
    assert "selection rate 50.0 %, the same as everyone (n = 100)" in found.headline()
    assert "a difference of zero is possible too (95 % confidence for" in found.headline()
    ratio = eq.certify(trail, eq.ratio("selection_rate", across="sex"), rng=7)
    assert "a ratio of 1 is possible too" in ratio.headline()
    # what only rounds to nothing is no equality
    close = _counted(("F", 500_100, 1_000_000), ("M", 500_000, 1_000_000))
    found = eq.certify(close, eq.gap("selection_rate", across="sex"), rng=7)
    assert "less than 0.1 points" in found.headline()
    assert "the same as" not in found.headline()


def test_a_one_sided_limit_that_is_kept_is_quoted_with_the_bound_that_shows_it() -> None:
    # a third group of a few people leaves the limit of all undetermined
    trail = _counted(("F", 900, 1000), ("M", 300, 1000), ("X", 0, 3))
    claim = eq.gap("selection_rate", across="sex", target=eq.reference(sex="M"))
    found = eq.certify(trail, claim, side="lower", tolerance=-0.1, rng=7)
    row = found.ask(sex="F")
    assert str(row.verdict) == "kept"
    assert row.lower is not None
    said = f"60.0 points above M (n = 1,000); at least +{100 * row.lower:.1f} points, with"
    assert said in found.headline()
    assert found.headline().endswith("; that keeps the limit (to be above -10.0 points).")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rows": None}, r"'recipe' lacks the field 'rows'"),
        ({"form": "guess"}, r"'recipe' field 'form' must be one of 'counts', .*; got 'guess'"),
        ({"kind": "z"}, r"'recipe' field 'kind' must be one of 'band', .*; got 'z'"),
        ({"kind": None}, r"'recipe' field 'kind' must be one of 'band', .*; got None"),
        ({"ones": [[0.5]]}, r"'recipe' field 'ones' must be a whole number; got 0.5"),
        ({"answered": "all"}, r"'recipe' field 'answered' must be a list; got 'all'"),
        ({"wrong": 1}, r"'recipe' field 'wrong' does not exist here"),
    ],
)
def test_what_is_kept_for_other_levels_may_have_been_edited(
    change: dict[str, Any], says: str
) -> None:
    found = eq.certify(eq.datasets.compas(), eq.gap("accuracy", across="sex"), rng=1).to_dict()
    found["recipe"] = {k: v for k, v in (found["recipe"] | change).items() if v is not None}
    with pytest.raises(EquipoiseError, match=says):
        from_dict(found)


@pytest.mark.parametrize(
    "change", [{"target": "nobody"}, {"answered": [99]}, {"rows": [[1], [1, 2]]}, {"ones": []}]
)
def test_what_is_kept_may_have_been_edited_so_that_only_reading_on_fails(
    change: dict[str, Any],
) -> None:
    found = eq.certify(eq.datasets.compas(), eq.gap("accuracy", across="sex"), rng=1).to_dict()
    edited: Any = from_dict(found | {"recipe": found["recipe"] | change})
    with pytest.raises(EquipoiseError):
        edited.at(0.9)


def test_parts_of_other_findings_are_read_by_their_kinds_too() -> None:
    trail = eq.datasets.compas()
    joint = eq.joint_test(trail, eq.gap("accuracy", across="sex"), method="euclidean").to_dict()
    for region, says in (
        ({"kind": "round"}, r"'region' field 'kind' must be one of 'likelihood', 'euclidean'"),
        ({**joint["region"], "slope": "up"}, r"'region' field 'slope' must be a list; got 'up'"),
        ([1], r"'region' must be a mapping; got \[1\]"),
    ):
        with pytest.raises(EquipoiseError, match=says):
            from_dict({**joint, "region": region})
    over = eq.monotone("decile_score")
    shift = eq.shift(trail, eq.gap("accuracy"), over=over, rng=7).to_dict()
    assert from_dict(shift).to_dict() == shift
    for halves, says in (
        (joint, "'halves' field 'kind' must be 'bounds'; got 'joint_test'"),
        ({**shift["halves"], "level": "high"}, "'level' must be a number; got 'high'"),
        (3, "'halves' must be a mapping of its fields; got 3"),
    ):
        with pytest.raises(EquipoiseError, match=says):
            from_dict({**shift, "halves": halves})
