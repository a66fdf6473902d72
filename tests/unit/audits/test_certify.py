"""`certify`: later questions, other levels, verdicts, sentences, and what it refuses."""

import json
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import beta

import equipoise as eq
from equipoise.findings import Verdict
from equipoise.findings.bounds import Bounds
from equipoise.findings.finding import from_json
from equipoise.findings.flags import CertificateList
from tests.unit.audits.table import make_table

# the verbs return one of several findings, which each test knows

TABLE = make_table(600)
TRAIL = eq.read(TABLE, label="label", prediction="prediction", score="score")
CLAIM = eq.gap("accuracy", across=eq.intersections("race", "sex"))


def bounds(claim: Any = CLAIM, **options: Any) -> Any:
    found = eq.certify(TRAIL, claim, **{"resamples": 300, "rng": 2, **options})
    assert isinstance(found, Bounds)
    return found


def certificates(claim: Any = CLAIM, **options: Any) -> Any:
    given = {"resamples": 300, "rng": 2, "method": "certificates", **options}
    found = eq.certify(TRAIL, claim, **given)
    assert isinstance(found, CertificateList)
    return found


@pytest.mark.parametrize("side", ["lower", "upper", "both"])
@pytest.mark.parametrize("method", ["pivotal", "bootstrap", "bootstrap-unscaled"])
def test_another_level_is_read_off_the_same_resamples(side: str, method: str) -> None:
    limit = -0.1 if side == "lower" else 0.1
    wide = bounds(side=side, method=method, level=0.95, tolerance=limit)
    narrow = bounds(side=side, method=method, level=0.8, tolerance=limit)
    assert wide.at(0.8).rows == narrow.rows
    assert "80 %" in wide.at(0.8).guarantee


def test_one_side_needs_less_than_both() -> None:
    both, lower = bounds(), bounds(side="lower")
    for a, b in zip(both.rows, lower.rows, strict=True):
        assert b.upper is None
        assert b.lower >= a.lower


@pytest.mark.parametrize("form", ["pivotal", "certificates", "bootstrap", "certificates-published"])
def test_json_comes_back_equal(form: Any) -> None:
    found = eq.certify(TRAIL, CLAIM, method=form, tolerance=0.2, resamples=100, rng=1)
    assert from_json(found.to_json()) == found


def test_groups_are_asked_by_attributes_label_or_range() -> None:
    found = bounds()
    assert found.ask(race="a", sex="f") is found.ask("a, f")
    ranges = bounds(eq.gap("accuracy", across=eq.intervals("age", edges=(20, 40, 60))))
    assert ranges.ask(age=(20, 40)).where == {"age": {"from": 20.0, "below": 40.0}}
    with pytest.raises(eq.ClaimError, match="is no attribute"):
        found.ask(rase="a")


def test_the_curve_by_width_is_the_worst_bound() -> None:
    ranges = eq.intervals("age", edges=(20, 30, 40, 50, 60))
    found = bounds(eq.gap("accuracy", across=ranges, target=0.7))
    curve = found.by_width()
    assert [point["width"] for point in curve] == [10, 20, 30, 40]
    # against everyone the widest range is its own target, and has no bound
    everyone = bounds(eq.gap("accuracy", across=ranges)).by_width()
    assert [point["width"] for point in everyone] == [10, 20, 30]
    tens = [row.lower for row in found.rows if row.where["age"].get("from") is not None]
    assert curve[0]["bound"] == min(tens)
    with pytest.raises(eq.OptionError, match="by_width"):
        bounds().by_width()


def test_verdicts_follow_the_bounds() -> None:
    found = bounds(tolerance=0.15)
    for row in found.rows:
        inside = row.lower > -0.15 and row.upper < 0.15
        outside = row.lower >= 0.15 or row.upper <= -0.15
        expected = Verdict.KEPT if inside else Verdict.EXCEEDED if outside else Verdict.UNDETERMINED
        assert row.verdict is expected
    assert bounds(tolerance=0.99).verdict is Verdict.KEPT


@pytest.mark.parametrize("side", ["lower", "upper", "both"])
def test_certificates_are_never_fewer_than_bounds_show(side: str) -> None:
    limit = -0.1 if side == "lower" else 0.1
    shown = [r.verdict is Verdict.KEPT for r in bounds(side=side, tolerance=limit).rows]
    one_side = certificates(side=side, tolerance=limit)
    for held, row in zip(shown, one_side.rows, strict=True):
        assert row.certified or not held


def test_stepping_down_never_loses_a_certificate() -> None:
    single, stepped = (
        certificates(tolerance=0.1, method=eq.BootstrapCertificates(resamples=300, step_down=step))
        for step in (False, True)
    )
    assert {r.group for r in single.certified} <= {r.group for r in stepped.certified}


@pytest.mark.parametrize(("side", "limit"), [("lower", 0.5), ("upper", 1.6), ("both", 0.6)])
def test_ratios_are_certified_where_their_bounds_show_it(side: str, limit: float) -> None:
    claim = eq.ratio("accuracy", across="race", target=eq.reference(race="a"))
    shown = [r.verdict is Verdict.KEPT for r in bounds(claim, side=side, tolerance=limit).rows]
    found = certificates(claim, side=side, tolerance=limit)
    for held, row in zip(shown, found.rows, strict=True):
        assert row.certified or not held
    assert any(row.certified for row in found.rows)
    # the reference itself is what it is compared with
    assert not found.ask(race="a").certified
    with pytest.raises(eq.OptionError, match="are for gaps; use method='certificates'"):
        certificates(claim, side=side, tolerance=limit, method="certificates-published")


def test_a_ratio_is_bounded_around_the_ratio() -> None:
    claim = eq.ratio("accuracy", across="race", target=eq.reference(race="a"))
    found = bounds(claim, tolerance=0.5)
    row = found.ask(race="b")
    assert row.lower < row.disparity < row.upper
    assert row.disparity == pytest.approx(row.value / row.target)


@pytest.mark.parametrize("target", [eq.overall(), eq.complement(), eq.reference(race="a")])
def test_a_ratio_is_bounded_where_the_scaled_gap_is_refuted(target: Any) -> None:
    found = bounds(eq.ratio("accuracy", across="race", target=target))
    row = found.ask(race="b")
    for end, side in ((row.lower, "above"), (row.upper, "below")):
        scaled = eq.gap("accuracy", across="race", target=end * target)
        limits: Any = {side: 0.0}
        p = eq.flag(TRAIL, scaled, **limits).ask(race="b").p
        assert p == pytest.approx(float(ndtr(-found.critical)), rel=0.01)


def test_a_group_that_is_its_own_target_has_no_bounds_and_no_verdict() -> None:
    claim = eq.gap("accuracy", across="race", target=eq.reference(race="a"))
    found = bounds(claim, tolerance=0.9)
    itself = found.ask(race="a")
    assert (itself.disparity, itself.lower, itself.upper) == (0.0, None, None)
    assert (itself.verdict, itself.note) == (None, "the group is its own target")
    assert found.verdict is Verdict.KEPT
    assert "kept by 2 of 2 groups" in found.sentences()[1]
    assert not certificates(claim, tolerance=0.9).ask(race="a").certified


@pytest.mark.parametrize(("side", "target", "limit"), [("lower", 0.9, -0.03), ("upper", 0.5, 0.15)])
def test_a_one_sided_tolerance_may_be_shown_not_to_be_kept(
    side: str, target: float, limit: float
) -> None:
    claim = eq.gap("accuracy", across=eq.intersections("race", "sex"), target=target)
    found = bounds(claim, side=side, tolerance=limit)
    assert found.verdict is Verdict.EXCEEDED
    # each group from the other side, at its even share of the error; the target is a number, so
    # these are Clopper and Pearson's bounds
    error = 0.1 / len(found.rows)
    for row in found.rows:
        ones = round(row.value * row.n)
        upper = beta.ppf(1 - error, ones + 1, row.n - ones) - target
        lower = beta.ppf(error, ones, row.n - ones + 1) - target
        beyond = upper <= limit if side == "lower" else lower >= limit
        assert (row.verdict is Verdict.EXCEEDED) == beyond
    # at another level the other side is read off as well
    assert found.at(0.8).rows == bounds(claim, side=side, tolerance=limit, level=0.8).rows


@pytest.mark.parametrize("engine", ["exact", "moments"])
def test_both_engines_are_named_and_agree_roughly(engine: Any) -> None:
    claim = eq.gap("absolute_error", across="sex")
    found = bounds(claim, method=eq.Bootstrap(engine=engine, resamples=2000))
    assert found.engine == engine
    other = bounds(claim, method=eq.Bootstrap(resamples=2000))
    np.testing.assert_allclose(found.critical, other.critical, rtol=0.1)


def test_the_bounds_hold_the_estimate_and_the_possible_range() -> None:
    for row in bounds(level=0.999).rows:
        assert -1 <= row.lower <= row.disparity <= row.upper <= 1


def test_sentences_state_guarantee_verdict_and_exclusions() -> None:
    said = bounds(tolerance=0.1).sentences()
    assert (
        said[0] == "With 95 % confidence all bounds hold at once, for every one of the 11 groups."
    )
    assert "that every group's disparity is between" in said[1]
    one = bounds(eq.gap("accuracy", across=eq.masks(young="age < 30")))
    assert one.sentences()[0].endswith("for the one group.")


def test_charts_are_drawn() -> None:
    ranges = bounds(eq.gap("accuracy", across=eq.intervals("age", edges=(20, 40, 60))))
    for chart in (bounds().plot(), certificates(tolerance=0.1).plot(), ranges.plot_by_width()):
        assert json.dumps(chart.to_dict())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"level": 1.5}, "level"),
        ({"side": "left"}, "side"),
        ({"tolerance": -0.1}, "tolerance"),
        ({"method": "bootstrap-t"}, "certify method"),
        ({"method": "band"}, "certify method"),
        ({"method": "certificates"}, "need a tolerance"),
        ({"resamples": 5}, "resamples"),
        ({"rng": -1}, "rng"),
        ({"levle": 0.9}, "level"),
    ],
)
def test_what_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises((eq.OptionError, TypeError), match=words):
        eq.certify(TRAIL, CLAIM, **options)
