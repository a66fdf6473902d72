"""`certify`: later questions, other levels, verdicts, sentences, and what it refuses."""

import json
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.findings import Verdict
from equipoise.findings.bounds import Bounds
from equipoise.findings.certificates import CertificateList
from equipoise.findings.finding import from_json
from tests.unit.audits.table import make_table

# the verbs return one of several findings, which each test knows
certify_: Any = eq.certify

TABLE = make_table(600)
TRAIL = eq.read(TABLE, label="label", prediction="prediction", score="score")
CLAIM = eq.gap("accuracy", across=eq.intersections("race", "sex"))


def bounds(claim: Any = CLAIM, **options: Any) -> Any:
    found = certify_(TRAIL, claim, **{"resamples": 300, "rng": 2, **options})
    assert isinstance(found, Bounds)
    return found


def certificates(claim: Any = CLAIM, **options: Any) -> Any:
    given = {"resamples": 300, "rng": 2, "method": "certificates", **options}
    found = certify_(TRAIL, claim, **given)
    assert isinstance(found, CertificateList)
    return found


@pytest.mark.parametrize("side", ["lower", "upper", "both"])
@pytest.mark.parametrize("method", ["bootstrap", "bootstrap-published", "bootstrap-unscaled"])
def test_another_level_is_read_off_the_same_resamples(side: str, method: str) -> None:
    wide = bounds(side=side, method=method, level=0.95, tolerance=0.1)
    narrow = bounds(side=side, method=method, level=0.8, tolerance=0.1)
    assert wide.at(0.8).rows == narrow.rows
    assert "80 %" in wide.at(0.8).guarantee


def test_one_side_needs_less_than_both() -> None:
    both, lower = bounds(), bounds(side="lower")
    for a, b in zip(both.rows, lower.rows, strict=True):
        assert b.upper is None
        assert b.lower >= a.lower


@pytest.mark.parametrize("form", ["bootstrap", "certificates"])
def test_json_comes_back_equal(form: str) -> None:
    found = certify_(TRAIL, CLAIM, method=form, tolerance=0.2, resamples=100, rng=1)
    assert from_json(found.to_json()) == found


def test_groups_are_asked_by_attributes_label_or_range() -> None:
    found = bounds()
    assert found.ask(race="a", sex="f") is found.ask("a, f")
    ranges = bounds(eq.gap("accuracy", across=eq.intervals("age", edges=(20, 40, 60))))
    assert ranges.ask(age=(20, 40)).where == {"age": {"from": 20.0, "below": 40.0}}
    with pytest.raises(eq.ClaimError, match="is no attribute"):
        found.ask(rase="a")


def test_the_curve_by_width_is_the_worst_bound() -> None:
    found = bounds(eq.gap("accuracy", across=eq.intervals("age", edges=(20, 30, 40, 50, 60))))
    curve = found.by_width()
    assert [point["width"] for point in curve] == [10, 20, 30, 40]
    tens = [row.lower for row in found.rows if row.where["age"].get("from") is not None]
    assert curve[0]["bound"] == min(tens)
    with pytest.raises(eq.OptionError, match="by_width"):
        bounds().by_width()


def test_verdicts_follow_the_bounds() -> None:
    found = bounds(tolerance=0.15)
    for row in found.rows:
        inside = row.lower > -0.15 and row.upper < 0.15
        outside = row.lower >= 0.15 or row.upper <= -0.15
        expected = (
            Verdict.SHOWN if inside else Verdict.SHOWN_NOT if outside else Verdict.UNDETERMINED
        )
        assert row.verdict is expected
    assert bounds(tolerance=0.99).verdict is Verdict.SHOWN


@pytest.mark.parametrize("side", ["lower", "upper", "both"])
def test_certificates_are_never_fewer_than_bounds_show(side: str) -> None:
    limit = -0.1 if side == "lower" else 0.1
    shown = [r.verdict is Verdict.SHOWN for r in bounds(side=side, tolerance=limit).rows]
    one_side = certificates(side=side, tolerance=limit)
    for held, row in zip(shown, one_side.rows, strict=True):
        assert row.certified or not held


def test_stepping_down_never_loses_a_certificate() -> None:
    single = certificates(tolerance=0.1, method=eq.Certificates(resamples=300, step_down=False))
    stepped = certificates(tolerance=0.1)
    assert {r.group for r in single.certified} <= {r.group for r in stepped.certified}


def test_a_ratio_is_bounded_around_the_ratio() -> None:
    claim = eq.ratio("accuracy", across="race", target=eq.reference(race="a"))
    found = bounds(claim, tolerance=0.5)
    row = found.ask(race="b")
    assert row.lower < row.disparity < row.upper
    assert row.disparity == pytest.approx(row.value / row.target)
    assert found.ask(race="a").lower == found.ask(race="a").upper == 1.0


@pytest.mark.parametrize("engine", ["exact", "moments"])
def test_both_engines_are_named_and_agree_roughly(engine: Any) -> None:
    claim = eq.gap("absolute_error", across="sex")
    found = bounds(claim, method=eq.Bootstrap(engine=engine, resamples=2000, studentized=False))
    assert found.engine == engine
    other = bounds(claim, method=eq.Bootstrap(resamples=2000, studentized=False))
    np.testing.assert_allclose(found.critical, other.critical, rtol=0.1)


def test_an_engine_without_spread_says_that_it_did_without() -> None:
    found = bounds(method=eq.Bootstrap(engine="moments"))
    assert found.method["studentized"] is False
    assert found.method["shrink"] == {"number": "inf"}


def test_the_bounds_hold_the_estimate_and_the_possible_range() -> None:
    for row in bounds(level=0.999).rows:
        assert -1 <= row.lower <= row.disparity <= row.upper <= 1


def test_sentences_state_guarantee_verdict_and_exclusions() -> None:
    said = bounds(tolerance=0.1).sentences()
    assert (
        said[0] == "With 90 % confidence all bounds hold at once, for every one of the 11 groups."
    )
    assert "That every group's disparity is between" in said[1]
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
        ({"method": "certificates"}, "need a tolerance"),
        ({"resamples": 5}, "resamples"),
        ({"rng": -1}, "rng"),
        ({"levle": 0.9}, "level"),
    ],
)
def test_what_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises((eq.OptionError, TypeError), match=words):
        certify_(TRAIL, CLAIM, **options)
