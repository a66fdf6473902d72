"""`summarize`: numbers, words and refusals."""

import importlib
import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.findings import Summary
from equipoise.methods import spread
from equipoise.methods.spread import Meta, variance
from equipoise.methods.spread.report import chi_square_test


def _summary(trail: Any, metric: Any, **options: Any) -> Any:
    return eq.summarize(trail, metric, **options)


COMPAS = eq.datasets.compas()


def _rows(groups: dict[str, tuple[int, int]]) -> pl.DataFrame:
    """Rows of a 0/1 prediction: group → (rows, hits)."""
    names = [name for name, (n, _) in groups.items() for _ in range(n)]
    hits = [int(i < s) for n, s in groups.values() for i in range(n)]
    return pl.DataFrame({"team": names, "hit": hits})


TEAMS = _rows({"a": (50, 20), "b": (60, 45), "c": (40, 8)})
TRAIL = eq.read(TEAMS, prediction="hit")


def _real(seed: int = 3, n: int = 60) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    team = np.repeat(list("abcd"), n)
    shift = np.repeat([0.0, 0.2, 1.0, 2.0], n)
    return pl.DataFrame({"team": team, "delay": rng.exponential(size=4 * n) + shift})


DELAY = eq.metric("delay", "delay", low=0.0)


def test_every_measure_has_value_bias_and_interval() -> None:
    found = _summary(TRAIL, eq.selection_rate, across="team", rng=1)
    assert [row.measure for row in found.rows] == [kind.value for kind in Meta]
    rates = np.array([0.4, 0.75, 0.2])
    for row, kind in zip(found.rows, Meta, strict=True):
        assert row.value == pytest.approx(float(spread.meta_metric(kind, rates)))
        assert row.value - row.bias == pytest.approx(row.corrected_raw)
        assert row.lower < row.corrected < row.upper
        assert row.p <= 0.025
        assert row.note == ""


def test_the_variance_row_its_details_and_the_sd_agree() -> None:
    found = _summary(TRAIL, eq.selection_rate, across="team", rng=1)
    row, details, sd = found.row("variance"), found.variance, found.sd
    assert (row.lower, row.upper) == details.recommended
    assert sd.corrected == pytest.approx(math.sqrt(row.corrected))
    assert (sd.lower, sd.upper) == pytest.approx(tuple(map(math.sqrt, details.recommended)))
    sample = spread.sample_from_sums(
        np.array([50, 60, 40]), np.array([20.0, 45.0, 8.0]), binary=True
    )
    assert details.corrected_raw == pytest.approx(spread.sample_variance(sample))
    assert details.paule_mandel == pytest.approx(variance.paule_mandel(sample))
    assert details.restricted_likelihood == pytest.approx(variance.restricted_likelihood(sample))
    assert details.dersimonian_laird == pytest.approx(variance.dersimonian_laird(sample))
    assert details.chi_square_p == pytest.approx(chi_square_test(sample).p)
    assert details.q_profile == pytest.approx(
        (lambda e: (e.lower, e.upper))(variance.q_profile_interval(sample, 0.95))
    )


def test_groups_carry_raw_and_shrunken_estimates() -> None:
    found = _summary(TRAIL, eq.selection_rate, across="team", rng=1)
    assert [g.group for g in found.groups] == ["a", "b", "c"]
    common = np.mean([0.4, 0.75, 0.2])
    for group, raw in zip(found.groups, (0.4, 0.75, 0.2), strict=True):
        assert group.value == pytest.approx(raw)
        assert group.lower < raw < group.upper
        assert abs(group.shrunken - common) < abs(raw - common)
        assert group.shrunken_lower < group.shrunken < group.shrunken_upper
        assert 0 < group.own < 1


def test_groups_of_no_and_one_row_are_listed_with_their_reason() -> None:
    frame = _rows({"a": (50, 20), "b": (60, 45), "lone": (1, 1), "empty": (2, 0)})
    label = np.where(frame["team"].to_numpy() == "empty", 1, 0)
    trail = eq.read(frame.with_columns(y=pl.Series(label)), label="y", prediction="hit")
    found = _summary(trail, eq.false_positive_rate, across="team", rng=1)
    assert {g.group: (g.n, g.note) for g in found.excluded} == {
        "empty": (0, "no row on which the metric counts"),
        "lone": (1, "one row: its sampling error cannot be estimated"),
    }
    said = " ".join(found.sentences())
    assert "Left out: lone, one row" in said
    assert "Across 2 groups" in said


def test_a_cross_is_its_deepest_level_and_counts_what_is_absent() -> None:
    frame = pl.DataFrame(
        {"x": list("aaabbb") * 30, "y": list("uuvvvv") * 30, "hit": [0, 1, 1] * 60}
    )
    trail = eq.read(frame, prediction="hit")
    found = _summary(trail, eq.selection_rate, across=["x", "y"], rng=1)
    assert [dict(g.where) for g in found.groups] == [
        {"x": "a", "y": "u"},
        {"x": "a", "y": "v"},
        {"x": "b", "y": "v"},
    ]
    assert found.absent == 1
    assert "To 1 combination of levels no row belongs." in found.sentences()


def test_ranges_of_a_number_and_disjoint_masks_are_partitions() -> None:
    frame = pl.DataFrame({"age": [20, 30, 50, 60] * 40, "hit": [0, 1, 1, 0, 1, 0, 1, 1] * 20})
    trail = eq.read(frame, prediction="hit")
    ranges = _summary(trail, eq.selection_rate, across=eq.binned("age", cuts=[40]), rng=1)
    masks = eq.masks(young="age < 40", old="age >= 40")
    named = _summary(trail, eq.selection_rate, across=masks, rng=1)
    assert sorted(g.value for g in ranges.groups) == sorted(g.value for g in named.groups)


def test_counts_are_repeated_rows() -> None:
    counts = TEAMS.group_by("team", "hit").len("n").sort("team", "hit")
    short = eq.read(counts, prediction="hit", count="n")
    one, two = (_summary(t, "selection_rate", across="team", rng=1) for t in (TRAIL, short))
    assert one.rows == two.rows
    assert one.groups == two.groups


def test_equal_weights_change_nothing_and_unequal_ones_widen() -> None:
    rng = np.random.default_rng(4)
    even = TEAMS.with_columns(w=pl.lit(2.5))
    uneven = TEAMS.with_columns(w=pl.Series(rng.exponential(size=len(TEAMS))))
    plain = _summary(TRAIL, eq.selection_rate, across="team", rng=1)
    same, wide = (
        _summary(eq.read(f, prediction="hit", weight="w"), "selection_rate", across="team", rng=1)
        for f in (even, uneven)
    )
    assert same.sd.upper == pytest.approx(plain.sd.upper)
    assert all(g.size < g.n for g in wide.groups)
    assert "as many plain rows as weights leave of it" in " ".join(wide.assumptions)


def test_real_metrics_resample_rows_and_beyond_the_limit_moments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trail = eq.read(_real())
    exact = _summary(trail, DELAY, across="team", rng=1)
    monkeypatch.setattr(importlib.import_module("equipoise.audits.summarize"), "ROW_WORK", 10)
    moments = _summary(trail, DELAY, across="team", rng=1)
    assert (exact.engine, moments.engine) == ("rows", "moments")
    for a, b in zip(exact.rows, moments.rows, strict=True):
        assert a.corrected == pytest.approx(b.corrected, rel=0.15)
        assert a.upper == pytest.approx(b.upper, rel=0.25)
    assert exact.shown
    assert "points" not in exact.sentences()[0]


def test_row_order_and_number_of_measures_do_not_change_the_answer() -> None:
    frame = _real()
    first = _summary(eq.read(frame), DELAY, across="team", rng=5)
    shuffled = eq.read(frame.sample(fraction=1.0, shuffle=True, seed=9))
    again = _summary(shuffled, DELAY, across="team", rng=5)
    assert [r.upper for r in again.rows] == pytest.approx([r.upper for r in first.rows])
    only = _summary(eq.read(frame), DELAY, across="team", measures="entropy", rng=5)
    assert only.rows == (first.row("generalized entropy index"),)
    assert only.variance == first.variance


def test_seed_level_and_progress() -> None:
    told: list[tuple[int, int]] = []
    one = _summary(
        TRAIL, "selection_rate", across="team", rng=3, progress=lambda *a: told.append(a)
    )
    two = _summary(TRAIL, "selection_rate", across="team", rng=3)
    wide = _summary(TRAIL, "selection_rate", across="team", rng=3, level=0.99)
    assert one == two
    assert told[-1] == (8, 8)
    assert wide.sd.lower < one.sd.lower < one.sd.upper < wide.sd.upper
    drawn = _summary(TRAIL, "selection_rate", across="team")
    repeat = _summary(TRAIL, "selection_rate", across="team", rng=drawn.provenance.seed)
    assert repeat == drawn


def test_entropy_orders() -> None:
    rates = np.array([0.4, 0.75, 0.2])
    share = rates / rates.mean()
    expected = {0: -np.log(share).mean(), 1: (share * np.log(share)).mean()}
    for alpha, value in expected.items():
        found = _summary(TRAIL, "selection_rate", across="team", alpha=alpha, rng=1)
        assert found.row("generalized entropy index").value == pytest.approx(value)


def test_measures_by_either_name_in_a_fixed_order() -> None:
    found = _summary(
        TRAIL, "selection_rate", across="team", measures=["variance", "max-min ratio"], rng=1
    )
    assert [row.measure for row in found.rows] == ["max-min ratio", "variance"]


def test_negative_means_leave_ratio_and_entropy_out_by_name() -> None:
    frame = _real().with_columns(pl.col("delay") - 2)
    found = _summary(eq.read(frame), eq.metric("delay", "delay"), across="team", rng=1)
    for name in ("max-min ratio", "generalized entropy index"):
        row = found.row(name)
        assert (row.value, row.note) == (None, "needs group means that are not negative")
    assert found.row("variance").value > 0


def test_an_infinite_ratio_is_said_in_words() -> None:
    trail = eq.read(_rows({"a": (60, 0), "b": (60, 40)}), prediction="hit")
    row = _summary(trail, "selection_rate", across="team", measures="ratio", rng=1).rows[0]
    assert (row.value, row.corrected, row.upper) == (None, None, None)
    assert row.lower > 1
    assert "a group mean is zero" in row.note
    assert "no upper limit" in row.note


def test_a_constant_rate_has_limits_but_no_variance() -> None:
    trail = eq.read(_rows({"a": (30, 30), "b": (40, 40)}), prediction="hit")
    found = _summary(trail, "selection_rate", across="team", rng=1)
    assert found.variance is None
    assert found.sd is None
    assert not found.shown
    difference = found.row("max-min difference")
    # Thirty rows without a failure do not prove that failures never happen.
    assert difference.lower == 0 < difference.upper
    assert found.row("variance").lower is None
    assert "the same value in every row" in found.row("variance").note
    assert "does not vary within any" in found.sentences()[0]


def test_groups_all_of_one_kind_are_shown_to_differ() -> None:
    trail = eq.read(_rows({"a": (30, 0), "b": (40, 40)}), prediction="hit")
    found = _summary(trail, "selection_rate", across="team", rng=1)
    assert found.variance is None
    assert found.shown
    assert found.row("max-min difference").lower > 0.7


def test_missing_and_nan_rows_are_left_out_and_counted() -> None:
    frame = _real().with_columns(
        delay=pl.when(pl.int_range(pl.len()) % 10 == 0).then(float("nan")).otherwise("delay")
    )
    found = _summary(eq.read(frame), DELAY, across="team", rng=1)
    assert found.provenance.excluded == {"missing delay": 24}
    assert sum(g.n for g in found.groups) == 216


def _refused(
    match: str, trail: Any = TRAIL, metric: Any = "selection_rate", **options: Any
) -> None:
    with pytest.raises(eq.EquipoiseError, match=match):
        _summary(trail, metric, **{"across": "team", "rng": 1, **options})


def test_bad_input_is_refused_with_what_to_do() -> None:
    one = eq.read(_rows({"a": (30, 10)}), prediction="hit")
    _refused("one group only, 'a'", one)
    singles = eq.read(_rows(dict.fromkeys("abc", (1, 1))), prediction="hit")
    _refused("Every group has one row.*a 1, b 1, c 1", singles)
    few = eq.read(_rows({"a": (30, 10), "b": (1, 0)}), prediction="hit")
    _refused("at least two groups with an answer; got 1 of 2", few)
    still = eq.read(pl.DataFrame({"team": list("aabb"), "delay": [2.0, 2, 3, 3]}))
    _refused("does not vary within any group", still, DELAY)
    _refused("Did you mean 'variance'", measures="varience")
    _refused("Did you mean 'mean_deviation'", measures=["mean_deviaton"])
    _refused("measures names nothing", measures=[])
    _refused("level must be finite", level=float("nan"))
    _refused("alpha must be finite", alpha=float("nan"))
    _refused("resamples must be a whole number", resamples=3)
    _refused("Did you mean 'across'", acros="team")
    _refused("needs a prediction column", TEAMS)
    _refused("'selecton_rate' does not exist", metric="selecton_rate")


def test_groups_that_overlap_are_refused_by_name() -> None:
    _refused(
        r"pass across=\['race', 'sex'\] for the cells of the cross",
        COMPAS,
        across=eq.intersections("race", "sex"),
    )
    _refused("a spread needs groups that do not", COMPAS, across=eq.intervals("decile_score"))
    trail = eq.read(TEAMS.with_columns(age=pl.int_range(150)), prediction="hit")
    _refused(
        "'young', 'middle' overlap: 20 rows",
        trail,
        across=eq.masks(young="age < 50", middle="age >= 30"),
    )


def test_clusters_count_for_what_they_are_worth() -> None:
    """Every row three times over, with the copies as a cluster, says what single rows say."""
    thrice = pl.concat([TEAMS.with_columns(home=pl.int_range(150)) for _ in range(3)])
    plain = _summary(TRAIL, eq.selection_rate, across="team", rng=1)
    blind = _summary(eq.read(thrice, prediction="hit"), "selection_rate", across="team", rng=1)
    found = _summary(
        eq.read(thrice, prediction="hit", cluster="home"), "selection_rate", across="team", rng=1
    )
    for one, two in zip(found.groups, plain.groups, strict=True):
        # leaving clusters out, and Student's limits, cost a few rows
        assert 0.85 * two.size <= one.size <= two.size
        assert one.n == 3 * two.n
    wide = [x.rows[0].upper - x.rows[0].lower for x in (blind, plain, found)]
    assert wide[0] < wide[1] <= wide[2] * 1.02
    assert "clusters are independent draws" in found.assumptions[0]


def test_a_group_of_two_clusters_is_left_out() -> None:
    home = pl.when(pl.col("team") == "c").then(pl.int_range(150) % 2).otherwise(pl.int_range(150))
    frame = TEAMS.with_columns(home=home)
    found = _summary(
        eq.read(frame, prediction="hit", cluster="home"), "selection_rate", across="team", rng=1
    )
    notes = [g.note for g in found.groups]
    assert notes.count("too few clusters, or a few that outweigh all others") == 1


def test_one_attribute_given_as_intersections_is_the_attribute() -> None:
    one = _summary(TRAIL, "selection_rate", across="team", rng=1)
    two = _summary(TRAIL, "selection_rate", across=eq.intersections("team"), rng=1)
    assert isinstance(two, Summary)
    assert one.rows == two.rows


def test_published_intervals_take_groups_of_one_row_in() -> None:
    frame = pl.DataFrame(
        {
            "team": ["a"] * 60 + ["b"] * 50 + ["c", "d"],
            "yes": [1] * 30 + [0] * 30 + [1] * 10 + [0] * 40 + [1, 0],
        }
    )
    found: Any = eq.summarize(eq.read(frame, prediction="yes"), "selection_rate", across="team")
    mean, size = np.array([0.5, 0.2, 1.0, 0.0]), np.array([60, 50, 1, 1])
    noise = (mean * (1 - mean) / size).mean()
    assert found.variance.published == pytest.approx(mean.var(ddof=1) - noise)
    assert found.variance.plugin == pytest.approx(mean[:2].var(ddof=1))
    assert found.variance.double_corrected[1] > found.variance.recommended[1]


def test_chance_explains_no_more_than_there_is() -> None:
    rng = np.random.default_rng(1000)
    skewed = rng.lognormal(0, 1.5, 40) / math.exp(1.125)
    even = rng.lognormal(0, 0.3, 400) / math.exp(0.045)
    table = pl.DataFrame({"team": ["a"] * 40 + ["b"] * 400, "v": np.r_[skewed, even]})
    found = _summary(eq.read(table), eq.metric("v", "v"), across="team", rng=1)
    row = found.row("max-min difference")
    assert row.bias > row.value
    assert "apart, all of which chance explains; the" in found.sentences()[2]


def test_rows_of_groups_left_out_are_rows_left_out() -> None:
    team = np.repeat([0, 1, 2], [25, 400, 400])
    spreads = np.array([1.5, 0.3, 0.3])[team]
    values = np.random.default_rng(1002).lognormal(0, spreads)
    table = pl.DataFrame({"team": [f"g{i}" for i in team], "v": values})
    found = _summary(eq.read(table), eq.metric("v", "v"), across="team", rng=1)
    (lost,) = found.excluded
    assert (lost.group, lost.n, lost.size) == ("g0", 25, 25)
    said = found.sentences()
    assert any("on 800 rows" in sentence for sentence in said)
    assert any(sentence.startswith("Left out: g0 (25 rows), ") for sentence in said)
    assert said[-1] == "No other row was left out."


def test_groups_that_floats_cannot_hold_together_are_refused() -> None:
    table = pl.DataFrame({"p": [1, 0, 1, 0], "a": [*"xxyy"], "c": [10**15, 3, 50, 50]})
    with pytest.raises(eq.ClaimError, match=r"'x' .* known so much better than group 'y'"):
        _summary(eq.read(table, prediction="p", count="c"), "selection_rate", across="a", rng=1)
    with pytest.raises(eq.OptionError, match="level must lie"):
        _summary(TRAIL, "selection_rate", across="team", rng=1, level=1e-320)
