"""What each kind of finding concludes and says, and in which direction."""

import dataclasses
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.findings import CertificateList, ComparedSpread, Joint, RangeCertificates, from_dict

TRAIL = eq.datasets.compas()
RACE = eq.gap("false_positive_rate", across="race")
KEPT, EXCEEDED, UNDETERMINED = eq.Verdict.KEPT, eq.Verdict.EXCEEDED, eq.Verdict.UNDETERMINED


def test_flags_never_end_in_shown() -> None:
    found = eq.flag(TRAIL, RACE, above=0.05, rng=1)
    assert found.conclusion is EXCEEDED
    none = dataclasses.replace(
        found, rows=tuple(dataclasses.replace(row, flagged=False) for row in found.rows)
    )
    assert none.conclusion is UNDETERMINED
    assert none.silent
    assert not found.silent
    assert none.sentences()[0].startswith("No group of 6 is flagged: ")
    assert none.sentences()[0].endswith("That is not evidence that there is none.")


def test_ratios_read_as_times_and_gaps_with_their_sign() -> None:
    claim = eq.ratio("selection_rate", across="race")
    ratio = eq.flag(TRAIL, claim, below=0.8, fdr=0.5, rng=1)
    row = ratio.flagged[0]
    assert row.value is not None
    assert f"{100 * row.value:.1f} %, {row.disparity:.2f} times (n = " in ratio.sentences()[1]
    boxes = ratio.plot().to_dict()["datasets"].values()
    texts = [record["text"] for records in boxes for record in records if "text" in record]
    assert f"{row.disparity:.2f} times, n = {row.n:,}" in texts


def test_certificates_show_all_or_nothing_and_never_a_violation() -> None:
    found = eq.certify(TRAIL, RACE, method="certificates", tolerance=0.4, resamples=50, rng=1)
    assert isinstance(found, CertificateList)
    yes, no = (dataclasses.replace(found.rows[0], certified=x) for x in (True, False))
    for rows, verdict in (
        ((yes, yes), KEPT), ((yes, no), UNDETERMINED), ((no, no), UNDETERMINED),
        ((), UNDETERMINED),
    ):  # fmt: skip
        assert dataclasses.replace(found, rows=rows).conclusion is verdict


def test_several_claims_are_shown_only_together() -> None:
    found = eq.certify(TRAIL, eq.equalized_odds(across="sex"), tolerance=0.1, rng=1)
    assert isinstance(found, Joint)
    names = [name for name in found.parts if name != "kind"]
    part: Any = found.part(names[0])
    inside, unclear, outside = (
        dataclasses.replace(
            part, rows=tuple(dataclasses.replace(row, verdict=verdict) for row in part.rows)
        ).to_dict()
        for verdict in (KEPT, UNDETERMINED, EXCEEDED)
    )
    for parts, verdict in (
        ((inside, inside), KEPT),
        ((inside, unclear), UNDETERMINED),
        ((inside, outside), EXCEEDED),
    ):
        made = {"kind": "parts", **dict(zip(names, parts, strict=True))}
        assert dataclasses.replace(found, parts=made).conclusion is verdict


def test_a_joint_test_says_what_is_ruled_out_and_what_is_not() -> None:
    assert eq.joint_test(TRAIL, RACE, rng=1).conclusion is EXCEEDED
    found = eq.joint_test(TRAIL, RACE, method="likelihood", rng=1)
    assert found.rejected
    assert found.conclusion is EXCEEDED
    assert found.sentences()[0].startswith("At least one group's false positive rate differs")
    estimates = {row.group: row.disparity or 0.0 for row in found.rows if not row.note}
    assert found.contains(estimates)
    assert not found.contains(dict.fromkeys(estimates, 0.0))
    kept = dataclasses.replace(found, rejected=False)
    assert kept.conclusion is UNDETERMINED
    assert kept.silent
    assert "which does not show that none does" in kept.sentences()[0]
    for rejected, verb in ((True, "is ruled out"), (False, "is not ruled out")):
        tried = dataclasses.replace(found, rejected=rejected, at=estimates)
        assert tried.sentences()[0].split(" (")[0].endswith(verb)


def test_of_two_spreads_the_larger_comes_first() -> None:
    found: Any = eq.compare(TRAIL, "accuracy", across=("race", "sex"), resamples=50, rng=1)
    row = ComparedSpread(
        first="race", second="sex", first_value=2.0, second_value=1.0, difference=1.0,
        lower=0.5, upper=1.5,
    )  # fmt: skip
    for larger, said in (
        ("race", "Groups are shown to be further apart for race than for sex"),
        ("sex", "Groups are shown to be further apart for sex than for race"),
        ("", "Whether groups are further apart for race or for sex is not shown"),
    ):
        made = dataclasses.replace(found, rows=(dataclasses.replace(row, larger=larger),))
        assert any(sentence.startswith(said) for sentence in made.sentences())


def test_a_spread_is_shown_by_its_test_at_half_the_error() -> None:
    found: Any = eq.summarize(TRAIL, "accuracy", across="race", resamples=50, rng=1)
    for p, shown in ((0.026, False), (0.025, True)):
        variance = dataclasses.replace(found.variance, p=p)
        assert dataclasses.replace(found, level=0.95, variance=variance).shown is shown


def test_people_who_leave_count_down_and_those_who_arrive_count_up() -> None:
    found = eq.individual(TRAIL, vary="race", features=("race", "sex"), budget=0.1, rng=1)
    moved = found.rows[0]
    change = {
        (record["panel"], record["column"], record["row"]): record["change"]
        for record in found.changes()
    }
    sex = f"sex: {moved.where['sex']}"
    assert change[f"label {moved.label}", sex, moved.where["race"]] < 0
    assert change[f"label {moved.label}", sex, moved.where_to["race"]] > 0
    assert sum(change.values()) == pytest.approx(0, abs=1e-6)


def test_how_many_pointwise_intervals_may_miss() -> None:
    found = eq.describe(TRAIL, RACE)
    for rows, said in ((60, "about 3 can be expected"), (6, "fewer than one can be expected")):
        made = dataclasses.replace(found, level=0.95, rows=found.rows[:1] * rows)
        assert any(said in sentence for sentence in made.sentences())


def all_ranges() -> RangeCertificates:
    ages = [20] * 40 + [30] * 40 + [40] + [50] * 40
    table = pl.DataFrame({"age": ages, "y": [1] * 121, "p": [1] * 120 + [0]})
    claim = eq.gap("accuracy", across=eq.intervals("age"), target=eq.constant(0.2))
    trail = eq.read(table, label="y", prediction="p")
    method = eq.AllRanges(resamples=50)
    found = eq.certify(trail, claim, method=method, tolerance=0.0, side="lower", rng=1)
    assert isinstance(found, RangeCertificates)
    return found


def test_any_range_can_be_asked_for_with_both_its_ends() -> None:
    found = all_ranges()
    assert (found.ask(age=(20, 30)).n, found.ask(age=(21, 40)).n, found.ask(age=(0, 99)).n) == (
        80, 41, 121,
    )  # fmt: skip
    assert found.ask(age=(25, 45)).where == {"age": {"from": 30, "to": 40}}
    with pytest.raises(eq.ClaimError, match="No row has age between 21 and 29"):
        found.ask(age=(21, 29))
    with pytest.raises(eq.ClaimError, match="Ask for a range of age"):
        found.ask(sex="Male")
    assert from_dict(found.to_dict()) == found


def test_one_row_is_never_certified() -> None:
    found = dataclasses.replace(all_ranges(), bars=(-1.0,))
    assert found.ask(age=(20, 20)).certified
    assert found.ask(age=(40, 40)).n == 1
    assert not found.ask(age=(40, 40)).certified


def test_a_calibration_test_without_models_has_no_control_chart() -> None:
    rows = 200
    table = pl.DataFrame({"y": [0, 1] * 100, "s": [i / rows for i in range(rows)]})
    found = eq.calibration(
        eq.read(table, label="y", score="s"),
        features=["s"],
        method="hosmer-lemeshow",
        resamples=20,
        importance=0,
        rng=1,
    )
    with pytest.raises(eq.OptionError, match="nothing to draw"):
        found.plot()
    assert "<figure" not in eq.report(found).html


@pytest.mark.parametrize("kind", ["describe", "certify", "flag"])
def test_findings_without_rows_have_no_chart(kind: str) -> None:
    found = getattr(eq, kind)(TRAIL, RACE, **({} if kind == "describe" else {"rng": 1}))
    with pytest.raises(eq.OptionError, match="nothing to draw"):
        dataclasses.replace(found, rows=()).plot()
