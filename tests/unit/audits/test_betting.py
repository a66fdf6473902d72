"""`certify` with method="betting": exact bounds for bounded metrics, by name."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq


def table(seed: int = 1, rows: int = 600) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "g": rng.choice(["a", "b", "c", "d"], rows, p=[0.5, 0.3, 0.17, 0.03]),
            "y": rng.integers(0, 2, rows),
            "s": rng.random(rows).round(3),
            "w": rng.random(rows) + 0.5,
            "c": rng.integers(0, 99, rows),
        }
    )


@pytest.mark.parametrize("metric", [eq.brier, eq.error_rate])
@pytest.mark.parametrize("target", [0.3, eq.overall(), eq.complement(), eq.reference(g="a")])
def test_bounds_hold_their_estimate_and_any_group_has_them(
    metric: eq.Metric, target: eq.Target | float
) -> None:
    frame = table().with_columns(p=(pl.col("s") > 0.5).cast(int))
    trail = eq.read(frame, label="y", score="s", prediction="p")
    claim = eq.gap(metric, across=eq.intersections("g"), target=target)
    exact = eq.certify(trail, claim, method="betting", rng=3)
    usual = eq.certify(trail, claim, rng=3)
    for row, other in zip(exact.rows, usual.rows, strict=True):
        if "own target" in row.note:
            assert (row.lower, row.upper) == (None, None)
            continue
        assert row.lower is not None
        assert row.upper is not None
        assert row.lower < row.disparity < row.upper
        if other.lower is not None and other.upper is not None:
            assert row.upper - row.lower > other.upper - other.lower
    assert exact == eq.certify(trail, claim, method=eq.Betting(), rng=3)
    assert "exact at any number of rows" in exact.assumptions[-1]


def test_one_side_and_ratios() -> None:
    trail = eq.read(table(), label="y", score="s")
    claim = eq.ratio(eq.brier, across=eq.intersections("g"), target=eq.overall())
    both = eq.certify(trail, claim, method="betting", level=0.95, rng=3)
    low = eq.certify(trail, claim, method="betting", level=0.95, side="lower", rng=3)
    for one, two in zip(low.rows, both.rows, strict=True):
        assert one.upper is None
        assert one.lower is not None
        assert two.lower is not None
        assert two.lower < one.lower < one.disparity


def test_a_ratio_of_a_metric_with_negative_values_holds_its_estimate() -> None:
    frame = pl.DataFrame({"g": ["a"] * 300 + ["b"] * 300, "v": [-0.5] * 300 + [0.4] * 300})
    metric = eq.metric("v", "v", low=-1, high=1)
    claim = eq.ratio(metric, across=eq.masks(a="g == 'a'"), target=eq.reference(g="b"))
    (row,) = eq.certify(eq.read(frame), claim, method="betting", rng=1).rows
    assert row.lower is not None
    assert row.upper is not None
    assert row.lower < row.disparity < row.upper < 0
    assert row.disparity == pytest.approx(-1.25)


@pytest.mark.parametrize(
    ("metric", "roles", "says"),
    [
        (eq.squared_error, {}, "has no such limits"),
        (eq.brier, {"weight": "w"}, "weights or clusters"),
        (eq.brier, {"cluster": "c"}, "weights or clusters"),
    ],
)
def test_what_it_cannot_do_is_said(metric: eq.Metric, roles: dict[str, str], says: str) -> None:
    trail = eq.read(table(), label="y", score="s", **roles)
    claim = eq.gap(metric, across=eq.intersections("g"), target=0.3)
    with pytest.raises(eq.OptionError, match=says):
        eq.certify(trail, claim, method="betting")
