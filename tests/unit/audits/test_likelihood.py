"""Likelihood methods in the verbs: intervals, p-values, joint tests."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import stdtrit

import equipoise as eq
from equipoise.findings import from_json
from equipoise.methods.published.likelihood import segments
from equipoise.methods.published.likelihood.mean import mean_ratio

# the verbs return one of several findings, which each test knows

TRAIL = eq.datasets.compas()
CLAIM = eq.gap(eq.false_positive_rate, across=eq.intersections("race", "sex", "age"))


def real_trail_table(n: int = 400, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], size=n, p=[0.5, 0.4, 0.1])
    value = rng.exponential(size=n) + (group == "b") * 0.6
    return {"group": group, "other": group, "value": value}


def real_trail(n: int = 400, seed: int = 1) -> eq.Trail:
    return eq.read(pl.DataFrame(real_trail_table(n, seed)))


VALUE = eq.metric("value", "value")


def test_euclidean_intervals_are_those_of_student() -> None:
    table = real_trail_table()
    claim = eq.gap(VALUE, across="group", target=1.0)
    found = eq.certify(real_trail(), claim, level=0.9, method=eq.Euclidean(family="pointwise"))
    for row in found.rows:
        x = table["value"][table["group"] == row.group]
        half = stdtrit(x.size - 1, 0.95) * x.std() / np.sqrt(x.size)
        assert row.lower == pytest.approx(x.mean() - 1 - half)
        assert row.upper == pytest.approx(x.mean() - 1 + half)


@pytest.mark.parametrize("side", ["lower", "upper", "both"])
@pytest.mark.parametrize("target", [None, 0.3, eq.complement(), eq.reference(race="Caucasian")])
def test_another_level_is_the_same_audit_at_that_level(target: Any, side: Any) -> None:
    claim = eq.gap(eq.false_positive_rate, across=eq.intersections("race", "sex"), target=target)
    one = eq.certify(TRAIL, claim, level=0.9, side=side, rng=3)
    two = eq.certify(TRAIL, claim, level=0.95, side=side, rng=3)
    moved = from_json(one.to_json()).at(0.95)  # type: ignore[attr-defined]
    assert moved.guarantee == two.guarantee
    for a, b in zip(moved.rows, two.rows, strict=True):
        assert (a.lower, a.upper, a.note) == (b.lower, b.upper, b.note)


def test_bounds_stay_inside_the_possible_range() -> None:
    found = eq.certify(TRAIL, eq.gap(eq.false_positive_rate, across="race", target=0.1), rng=1)
    for row in found.rows:
        if row.n:
            assert -0.1 <= row.lower <= row.disparity <= row.upper <= 0.9


def test_the_plug_in_form_says_what_is_wrong_with_it() -> None:
    claim = eq.gap(eq.false_positive_rate, across="race", target=eq.complement())
    for found in (
        eq.certify(TRAIL, claim, method="likelihood-plugin"),
        eq.flag(TRAIL, claim, method="likelihood-plugin"),
        eq.joint_test(TRAIL, claim, method="likelihood-plugin"),
    ):
        assert "taken for the truth" in found.guarantee
        assert "taken for the truth" not in eq.certify(TRAIL, claim, rng=1).guarantee


@pytest.mark.parametrize("target", [None, 1.0, eq.complement(), eq.reference(group="a")])
@pytest.mark.parametrize("method", ["likelihood", "euclidean"])
def test_real_metrics_have_intervals_that_match_their_p_values(method: Any, target: Any) -> None:
    trail, claim = real_trail(), eq.gap(VALUE, across="group", target=target)
    name = {"likelihood": eq.Likelihood, "euclidean": eq.Euclidean}[method]
    bounds = eq.certify(trail, claim, level=0.9, method=name(family="pointwise"))
    flags = eq.flag(trail, claim, method=method)
    for bound, test in zip(bounds.rows, flags.rows, strict=True):
        if test.p is None:
            assert bound.note
        else:
            excluded = bound.lower > 0 or bound.upper < 0
            assert excluded == (test.p < 0.1)


def test_likelihood_and_euclidean_agree_in_large_groups() -> None:
    trail, claim = real_trail(4000), eq.gap(VALUE, across="group")
    one, two = (
        eq.certify(trail, claim, method=m).ask(group="b") for m in ("likelihood", "euclidean")
    )
    assert one.lower == pytest.approx(two.lower, abs=0.02)
    assert one.upper == pytest.approx(two.upper, abs=0.02)


def test_rows_of_a_likelihood_interval_keep_no_other_level() -> None:
    found = eq.certify(real_trail(), eq.gap(VALUE, across="group"), method="likelihood")
    with pytest.raises(eq.OptionError, match="keep too little"):
        found.at(0.5)
    moved = eq.certify(real_trail(), eq.gap(VALUE, across="group"), method="euclidean")
    again = eq.certify(real_trail(), eq.gap(VALUE, across="group"), method="euclidean", level=0.5)
    assert [r.lower for r in moved.at(0.5).rows] == [r.lower for r in again.rows]


def test_three_identical_rows_are_not_evidence() -> None:
    group = ["a"] * 60 + ["b"] * 3
    counts = eq.read(pl.DataFrame({"group": group, "value": [0, 1] * 30 + [1] * 3}))
    numbers = eq.read(
        pl.DataFrame({"group": group, "value": [i / 60 for i in range(60)] + [2.5] * 3})
    )
    claim = eq.gap(VALUE, across="group", target=0.5)
    row = eq.flag(counts, claim, method="likelihood").ask(group="b")
    assert 0.01 < row.p < 0.5
    assert eq.flag(numbers, claim, method="likelihood").ask(group="b").p is None
    assert eq.certify(numbers, claim, method="likelihood").ask(group="b").lower is None


def test_a_joint_test_counts_only_what_does_not_follow() -> None:
    trail = real_trail()
    one, two = (
        eq.joint_test(trail, eq.gap(VALUE, across=across), method="likelihood")
        for across in ("group", eq.intersections("group", "other"))
    )
    assert (one.degrees, one.tested) == (2, 3)
    assert two.degrees == 2
    assert two.tested > 3
    assert one.statistic == pytest.approx(two.statistic, rel=1e-6)
    assert str(one.verdict) == "exceeded"
    assert from_json(one.to_json()) == one
    assert one.contains({row.group: row.disparity or 0.0 for row in one.rows})
    assert not one.contains({"b": -0.5})
    with pytest.raises(eq.OptionError, match="no tested group"):
        one.contains({"z": 0.0})


@pytest.mark.parametrize("method", ["likelihood", "euclidean"])
@pytest.mark.parametrize("target", [None, 0.3, eq.complement(), eq.reference(race="Caucasian")])
def test_the_region_holds_zero_unless_the_test_rejects(target: Any, method: Any) -> None:
    claim = eq.gap(eq.false_positive_rate, across=eq.intersections("race", "sex"), target=target)
    for level in (0.95, 1 - 1e-12):
        found = eq.joint_test(TRAIL, claim, level=level, method=method, intervals=False, rng=1)
        zero = {row.group: 0.0 for row in found.rows if not row.note}
        assert found.contains(zero) != found.rejected
        assert found.region_kind == method
        assert from_json(found.to_json()).contains(zero) != found.rejected  # type: ignore[attr-defined]


@pytest.mark.parametrize("method", ["likelihood", "euclidean"])
def test_the_shadow_of_the_region_is_what_contains_says(method: str) -> None:
    claim = eq.gap(eq.false_positive_rate, across="race", target=0.3)
    found = eq.joint_test(TRAIL, claim, method=eq.Likelihood(calibration="none"))
    if method == "euclidean":
        found = eq.joint_test(TRAIL, claim, method=eq.Euclidean(calibration="none"))
    for row in found.rows:
        for end, inward in ((row.region_lower, 1e-4), (row.region_upper, -1e-4)):
            if end is not None:
                assert found.contains({row.group: end + inward})
                assert not found.contains({row.group: end - inward})
                # Scheffé-type intervals are wider than those of a family
                assert (row.lower or -1) >= (row.region_lower or -1)


def test_the_verdict_in_the_words_of_the_published_algorithm() -> None:
    shown = eq.joint_test(TRAIL, CLAIM, method="likelihood", intervals=False, rng=1)
    assert shown.published_verdict == "Model unfairness certified"
    quiet = eq.gap(VALUE, across="other", target=eq.overall())
    table = real_trail_table()
    table["other"] = np.random.default_rng(5).choice(["x", "y"], size=400)
    found = eq.joint_test(eq.read(pl.DataFrame(table)), quiet, method="likelihood", rng=1)
    assert found.published_verdict == "Model fairness certified"
    assert any("no more than that" in said for said in found.sentences())
    assert found.silent


def test_values_other_than_zero_are_tested_by_likelihood_itself() -> None:
    trail, claim = real_trail(), eq.gap(VALUE, across="group", target=1.0)
    first = eq.joint_test(trail, claim, method="likelihood", rng=1)
    assert first.region_kind == "euclidean"
    there = {row.group: row.disparity or 0.0 for row in first.rows}
    found = eq.joint_test(trail, claim, at=there, method="likelihood", rng=1)
    assert found.statistic == pytest.approx(0.0, abs=1e-8)
    assert found.at == there
    far = eq.joint_test(trail, claim, at={"b": -1.0}, method="likelihood", rng=1)
    assert (far.tested, far.degrees, far.rejected) == (1, 1, True)
    with pytest.raises(eq.OptionError, match="group"):
        eq.joint_test(trail, claim, at={"z": 0.0}, method="likelihood")
    with pytest.raises(eq.OptionError, match="names no group"):
        eq.joint_test(trail, claim, at={}, method="likelihood")


def test_small_groups_are_calibrated_and_large_ones_are_not() -> None:
    claim = eq.gap(VALUE, across="group", target=1.2)
    small = eq.joint_test(real_trail(), claim, method="likelihood", rng=1)
    assert "resamples" in small.calibration
    assert small.provenance.seed == 1
    assert small == eq.joint_test(real_trail(), claim, method="likelihood", rng=1)
    plain = eq.joint_test(real_trail(), claim, method=eq.Likelihood(calibration="none"))
    assert plain.calibration.startswith("none")
    assert plain.critical == pytest.approx(7.8147, abs=1e-4)
    assert small.critical != plain.critical
    large = eq.joint_test(real_trail(14_000), claim, method="likelihood", rng=1)
    assert "none needed" in large.calibration
    assert large.provenance.seed is None


def test_tiny_groups_of_ones_do_not_decide_the_joint_test() -> None:
    group = ["a"] * 400 + ["b"] * 3 + ["c"] * 2
    outcome = [0, 1] * 200 + [1] * 3 + [0] * 2
    trail = eq.read(pl.DataFrame({"group": group, "value": outcome}))
    for target in (0.5, None):
        for method in ("pivotal", "likelihood"):
            claim = eq.gap(VALUE, across="group", target=target)
            assert eq.joint_test(trail, claim, method=method, rng=1).p > 0.02


def test_a_few_rows_of_a_skewed_metric_get_no_interval() -> None:
    trail, claim = real_trail(150), eq.gap(VALUE, across="group", target=1.0)
    bounds = eq.certify(trail, claim, method="likelihood").ask(group="c")
    assert bounds.n < 30
    assert bounds.lower is None
    assert bounds.note == "fewer rows than the minimum"
    assert eq.flag(trail, claim, method="likelihood").ask(group="c").p is None
    willing = eq.Likelihood(min_rows=5)
    assert eq.certify(trail, claim, method=willing).ask(group="c").lower is not None


def test_flags_against_everyone_are_the_intervals_read_backwards() -> None:
    claim = eq.gap(eq.false_positive_rate, across=eq.intersections("race", "sex"))
    bounds = eq.certify(TRAIL, claim, level=0.9, method=eq.Likelihood(family="pointwise"))
    tested = eq.flag(TRAIL, claim, above=0.05, method="likelihood")
    for bound, test in zip(bounds.rows, tested.rows, strict=True):
        if test.p is not None:
            assert (bound.lower > 0.05) == (test.p < 0.05)


def test_two_methods_stand_beside_each_other() -> None:
    pytest.importorskip("altair")
    claim = eq.gap(eq.false_positive_rate, across="race")
    one = eq.certify(TRAIL, claim, rng=1)
    two = eq.certify(TRAIL, claim, method="bootstrap", resamples=50, rng=1)
    spec = one.plot(beside=two).to_dict()
    text = str(spec)
    assert "pivotal, 95 %" in text
    assert "bootstrap, 95 %" in text
    assert "diamond" in text
    ratio = eq.certify(TRAIL, eq.ratio(eq.false_positive_rate, across="race"), rng=1)
    with pytest.raises(eq.OptionError, match="same metric"):
        one.plot(beside=ratio)


def test_known_targets_and_disjoint_groups_decouple() -> None:
    claim = eq.gap(VALUE, across="group", target=1.2)
    found = eq.joint_test(real_trail(), claim, method=eq.Likelihood(calibration="none"))
    table = real_trail_table()
    alone = [
        mean_ratio(segments([table["value"][table["group"] == name]]), np.array([1.2]))
        for name in ("a", "b", "c")
    ]
    assert found.degrees == 3
    assert found.statistic == pytest.approx(sum(float(x.statistic[0]) for x in alone))


def test_likelihood_refuses_what_it_cannot_do() -> None:
    weighted = eq.read(
        pl.DataFrame({"group": ["a", "b"] * 20, "value": [0.5, 1.5] * 20, "w": [1.0, 2.0] * 20}),
        weight="w",
    )
    claim = eq.gap(VALUE, across="group", target=1.0)
    with pytest.raises(eq.OptionError, match="weights"):
        eq.certify(weighted, claim, method="likelihood")
    with pytest.raises(eq.OptionError, match="are for gaps"):
        eq.certify(real_trail(), eq.ratio(VALUE, across="group"), method="likelihood")
    with pytest.raises(eq.OptionError, match="joint test is for gaps"):
        eq.joint_test(real_trail(), eq.ratio(VALUE, across="group"), method="likelihood")
    with pytest.raises(eq.OptionError, match="does not resample"):
        eq.certify(real_trail(), claim, method="likelihood", resamples=100)
