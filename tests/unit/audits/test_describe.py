"""describe: estimates and intervals against values worked out independently."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import optimize, stats

import equipoise as eq
from tests.unit.methods.inference.naive import kish, shape_of_rows, turned

rng = np.random.default_rng(11)
SIZE = 300
TABLE = pl.DataFrame(
    {
        "y": rng.integers(0, 2, SIZE),
        "p": rng.integers(0, 2, SIZE),
        "v": rng.normal(5, 2, SIZE),
        "w": rng.uniform(0.2, 3, SIZE),
        "g": rng.choice(["a", "b", "c"], SIZE, p=[0.6, 0.37, 0.03]),
    }
)
TRAIL = eq.read(TABLE, label="y", prediction="p")
ACCURACY = eq.gap("accuracy", across="g")
VALUE = eq.gap(eq.metric("value", "v"), across="g")


def by_group() -> dict[str, pl.DataFrame]:
    return {str(key[0]): part for key, part in TABLE.partition_by("g", as_dict=True).items()}


@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("method", ["exact", "wilson"])
def test_shares_have_the_intervals_of_scipy(level: float, method: Any) -> None:
    found = eq.describe(TRAIL, ACCURACY, level=level, interval=method)
    assert found.method == {"exact": "Clopper–Pearson", "wilson": "Wilson"}[method]
    for row in found.rows:
        part = by_group()[row.group]
        right = int((part["y"] == part["p"]).sum())
        wanted = stats.binomtest(right, part.height).proportion_ci(level, method=method)
        assert (row.n, row.value) == (part.height, right / part.height)
        assert (row.lower, row.upper) == pytest.approx((wanted.low, wanted.high), abs=1e-10)


def shape(values: np.ndarray, weights: np.ndarray, groups: np.ndarray) -> float:
    return shape_of_rows(values, weights, np.unique(groups, return_inverse=True)[1])


def halls(
    values: np.ndarray, weights: np.ndarray, level: float, shape: float
) -> tuple[float, float]:
    """Both ends of Student's interval with Hall's transformation, which may only widen it.

    The skewness is once that of the rows, and once that of as many rows of the given shape.
    """
    w = weights / weights.sum()
    mean, size = float(w @ values), kish(w)
    moves = w * (values - mean)
    variance = float((moves**2).sum()) * size / (size - 1)
    cut = stats.t.ppf((1 + level) / 2, size - 1)
    up = down = cut
    own = float((moves**3).sum()) / variance**1.5
    for g in (own, shape / math.sqrt(w.size)):
        # the transformation rises, so that it can be turned around by a search
        up = max(up, optimize.brentq(lambda t, g=g: turned(t, g) - cut, -50, 50))
        down = max(down, -optimize.brentq(lambda t, g=g: turned(t, g) + cut, -50, 50))
    return mean - up * math.sqrt(variance), mean + down * math.sqrt(variance)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_real_values_have_student_intervals(level: float) -> None:
    found = eq.describe(TRAIL, VALUE, level=level)
    assert found.method == "Student's t, corrected for skewness"
    everyone = shape(TABLE["v"].to_numpy(), np.ones(SIZE), TABLE["g"].to_numpy())
    for row in found.rows:
        values = by_group()[row.group]["v"].to_numpy()
        assert row.value == pytest.approx(values.mean())
        if values.size < 20:
            assert (row.lower, row.upper) == (None, None)
            assert "no interval: too few rows" in row.note
            continue
        ends = halls(values, np.ones(values.size), level, everyone)
        assert (row.lower, row.upper) == pytest.approx(ends, abs=1e-4)
        # skewness only ever widens Student's interval
        wanted = stats.ttest_1samp(values, 0).confidence_interval(level)
        assert row.lower <= wanted.low + 1e-4
        assert row.upper >= wanted.high - 1e-4


def test_weighted_means_by_linearisation() -> None:
    trail = eq.read(TABLE, label="y", prediction="p", weight="w")
    everyone = shape(*(TABLE[name].to_numpy() for name in ("v", "w", "g")))
    for row in eq.describe(trail, VALUE).rows[:2]:
        part = by_group()[row.group]
        v, w = part["v"].to_numpy(), part["w"].to_numpy()
        assert row.value == pytest.approx(np.average(v, weights=w))
        assert (row.lower, row.upper) == pytest.approx(halls(v, w, 0.95, everyone), abs=1e-4)


def test_equal_weights_are_no_weights() -> None:
    values = rng.normal(size=25)
    # the skewness beyond what chance gives 25 rows
    skew = float(stats.skew(values, bias=False))
    shape = np.sign(skew) * np.sqrt(max(skew**2 - 6 / 25, 0.0))
    ends = halls(values, np.ones(25), 0.95, float(shape))
    for weight in (0.1, 0.3, 0.7, 1.1, 1e-3):
        table = pl.DataFrame({"v": values, "w": [weight] * 25, "g": ["a"] * 25})
        (row,) = eq.describe(eq.read(table, weight="w"), VALUE).rows
        assert (row.lower, row.upper) == pytest.approx(ends, abs=1e-4)


@pytest.mark.parametrize("spread", [0.0, 3e-5])
def test_a_group_whose_rows_are_alike_says_nothing_of_the_shape_of_others(spread: float) -> None:
    local = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "c", "d"], 100)
    # its cubes are lost in rounding, and its squares too if it has no spread at all
    values = np.where(groups == "d", 0.1, local.normal(5, 2, 400))
    aim = shape(values, np.ones(400), groups)
    values = values + spread * (groups == "d") * local.normal(size=400)
    found = eq.describe(eq.read(pl.DataFrame({"v": values, "g": groups})), VALUE)
    for row in found.rows[:3]:
        ends = halls(values[groups == row.group], np.ones(100), 0.95, aim)
        assert (row.lower, row.upper) == pytest.approx(ends, abs=1e-4)


def test_one_row_says_nothing_about_spread() -> None:
    (row,) = eq.describe(eq.read(pl.DataFrame({"v": [3.0], "g": ["a"]})), VALUE).rows
    assert (row.value, row.lower, row.upper) == (3.0, None, None)
    assert row.note == "small: n = 1; no interval: one row only"
    one = pl.DataFrame({"y": [1], "p": [1], "g": ["a"]})
    (share,) = eq.describe(eq.read(one, label="y", prediction="p"), ACCURACY).rows
    assert (share.lower, share.upper) == pytest.approx((0.025, 1.0))


def test_large_values_do_not_collapse_the_interval() -> None:
    values = 1e9 + rng.normal(0, 1, 50)
    table = pl.DataFrame({"v": values, "g": ["a"] * 50})
    (row,) = eq.describe(eq.read(table), VALUE).rows
    # totals of squares cannot resolve a spread of 1 at 1e9; there must then be no interval
    assert (row.lower, row.upper) == (None, None)
    assert "too close for their size, so its uncertainty is unknown" in row.note


def test_a_few_rows_of_a_skewed_metric_say_how_many_it_would_take() -> None:
    values = np.random.default_rng(1).lognormal(0, 1.5, 60)
    (row,) = eq.describe(eq.read(pl.DataFrame({"v": values, "g": ["a"] * 60})), VALUE).rows
    assert (row.lower, row.upper) == (None, None)
    assert "too skewed for its rows: about " in row.note
    assert "rows would be needed" in row.note


def test_intervals_stay_in_the_range_of_the_metric() -> None:
    table = pl.DataFrame(
        {"y": [0, 1, 1, 1], "s": [0.02, 0.99, 0.98, 0.1], "g": ["a", "a", "a", "b"]}
    )
    for row in eq.describe(eq.read(table, label="y", score="s"), eq.gap("brier", across="g")).rows:
        assert row.lower is None or 0 <= row.lower <= row.value <= row.upper <= 1


def test_groups_without_a_counted_row() -> None:
    table = pl.DataFrame({"y": [1, 1, 0, 0], "p": [1, 0, 1, 0], "g": ["a", "a", "b", "b"]})
    trail = eq.read(table, label="y", prediction="p")
    found = eq.describe(trail, eq.gap("false_positive_rate", across=("g",)))
    first = found.rows[0]
    assert (first.group, first.n) == ("a", 0)
    assert (first.value, first.lower, first.upper) == (None, None, None)
    assert found.rows[0].note == "no row on which the metric counts"
    assert (found.provenance.scanned, found.provenance.counted, found.provenance.ineligible) == (
        4,
        2,
        2,
    )


def test_sentences() -> None:
    claim = eq.gap("false_positive_rate", across=eq.intersections("race", "sex", "age"))
    said = eq.describe(eq.datasets.compas(), claim).sentences()
    assert (
        said[0] == "The false positive rate is 30.3 % over 3,363 rows of the bundled COMPAS counts."
    )
    assert said[1].startswith(
        "Highest among groups of at least 30: Caucasian, Female, Less than 25, 70.0 %"
    )
    assert (
        "95 % confidence (Clopper–Pearson); with 81 groups about 4 can be expected to miss"
        in said[3]
    )
    assert said[4] == "28 groups have fewer than 30 such rows, 8 of them none at all."
    assert said[-1] == "No row was left out; the metric does not count on 2,809 rows."


def test_sentences_of_few_groups_and_high_levels() -> None:
    said = eq.describe(TRAIL, ACCURACY, level=0.999, small=60).sentences()
    assert any("99.9 % confidence" in s and "with 3 groups fewer than one can" in s for s in said)
    assert any(s.startswith("1 group has fewer than 60") for s in said)


def test_percentages_for_shares_only() -> None:
    assert "%" in eq.describe(TRAIL, ACCURACY).sentences()[0]
    assert "%" not in eq.describe(TRAIL, VALUE).sentences()[0]


def test_ratio_and_gap() -> None:
    target = eq.reference(g="a")
    gaps = eq.describe(TRAIL, eq.gap("accuracy", across="g", target=target)).rows
    ratios = eq.describe(TRAIL, eq.ratio("accuracy", across="g", target=target)).rows
    assert (gaps[0].disparity, ratios[0].disparity) == (0.0, 1.0)
    for gap, ratio in zip(gaps, ratios, strict=True):
        assert gap.disparity == pytest.approx(gap.value - gap.target)
        assert ratio.disparity == pytest.approx(ratio.value / ratio.target)


def test_options_are_checked_and_echoed() -> None:
    found = eq.describe(TRAIL, ACCURACY, level=0.9, small=7)
    assert (found.level, found.small) == (0.9, 7)
    for options, says in (
        ({"levl": 0.9}, "describe\\(\\) option 'levl'.*Did you mean 'level'"),
        ({"level": 95}, "level must lie strictly between 0 and 1; got 95"),
        ({"small": -1}, "small must be a whole number"),
        ({"interval": "wilsn"}, "Did you mean 'wilson'"),
    ):
        with pytest.raises(eq.OptionError, match=says):
            eq.describe(TRAIL, ACCURACY, **options)


def test_describe_takes_a_claim_in_plain_form() -> None:
    assert eq.describe(TRAIL, ACCURACY.to_plan()) == eq.describe(TRAIL, ACCURACY)


def test_provenance_says_enough_to_do_it_again() -> None:
    found = eq.describe(TRAIL, ACCURACY).provenance
    assert (found.version, found.source, found.cells) == (eq.__version__, "a polars table", 3)
    assert found.scanned == SIZE == found.counted
    assert len(found.fingerprint) == 64


def test_intervals_follow_clusters_not_rows() -> None:
    """Each cluster ten times over says no more than once; the interval must not shrink."""
    rng = np.random.default_rng(11)
    people = {"g": rng.choice(["a", "b"], 60), "hit": rng.integers(0, 2, 60), "who": np.arange(60)}
    once = pl.DataFrame(people)
    tenfold = pl.concat([once] * 10)
    claim = eq.gap(eq.selection_rate, across="g")
    described = [
        eq.describe(eq.read(frame, prediction="hit", cluster="who"), claim)
        for frame in (once, tenfold)
    ]
    assert described[0].method == "clusters left out one at a time"
    assert "clusters are independent" in described[0].assumptions[0]
    for one, ten in zip(described[0].rows, described[1].rows, strict=True):
        assert ten.n == 10 * one.n
        # half a row of either kind, which keeps rates off the ends, weighs less among more rows
        assert (ten.lower, ten.upper) == pytest.approx((one.lower, one.upper), abs=1e-3)
        assert ten.upper - ten.lower >= one.upper - one.lower


def test_clusters_of_one_row_give_about_the_usual_interval() -> None:
    rng = np.random.default_rng(12)
    frame = pl.DataFrame(
        {"g": rng.choice(["a", "b"], 200), "y": rng.normal(size=200), "who": np.arange(200)}
    )
    claim = eq.gap(eq.metric("y", "y"), across="g")
    plain = eq.describe(eq.read(frame, attributes=["g"]), claim)
    alone = eq.describe(eq.read(frame, attributes=["g"], cluster="who"), claim)
    for one, other in zip(plain.rows, alone.rows, strict=True):
        # a jackknife and fewer degrees of freedom: a little wider, never narrower
        width = one.upper - one.lower
        assert width <= other.upper - other.lower <= 1.03 * width


def test_one_cluster_has_no_interval_and_says_so() -> None:
    trail = eq.read(TABLE.with_columns(c=pl.lit(1)), label="y", prediction="p", cluster="c")
    found = eq.describe(trail, ACCURACY)
    assert all(row.lower is None for row in found.rows)
    said = " ".join(found.sentences())
    assert "not available" not in said
    assert "; no interval: " in said
