"""Audits given legitimate factors: Berkeley, and what is refused."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.findings import from_json


def claim(**options: Any) -> Any:
    asked = {"target": "complement", "given": ["department"], **options}
    return eq.gap("selection_rate", across="sex", **asked)


def test_berkeley_before_and_after() -> None:
    trail = eq.datasets.berkeley()
    bounds = eq.certify(trail, claim(), rng=7)
    women = bounds.ask(sex="Female")
    before = next(row for row in bounds.adjusted if row.group == "Female")
    assert before.unadjusted == pytest.approx(-0.1416, abs=1e-4)
    assert 0 < women.disparity < 0.03  # of the other sign, and small
    assert women.lower < 0 < women.upper
    assert before.strata == before.shared == 6
    assert before.apart == 0
    assert before.same is not None
    assert before.same < 0.01
    said = " ".join(bounds.sentences())
    assert "given department" in said
    assert "composition explains -17.8 points" in said
    assert from_json(bounds.to_json()) == bounds
    assert bounds.question.endswith("given department")


def test_against_everyone_values_are_rates_and_gaps_their_differences() -> None:
    bounds = eq.certify(eq.datasets.berkeley(), claim(target="overall"), rng=7)
    for row in bounds:
        assert row.value is not None
        assert row.target is not None
        assert row.disparity == pytest.approx(row.value - row.target)
        assert 0.2 < row.value < 0.5


def test_flags_and_the_exact_test_agree() -> None:
    trail = eq.datasets.berkeley()
    near = eq.flag(trail, claim())
    exact = eq.flag(trail, claim(), population="these rows")
    for one, other in zip(near, exact, strict=True):
        assert one.p == pytest.approx(other.p, abs=0.02)
    assert len(near.adjusted) == 2
    assert eq.flag(trail, claim(weights="population")).flagged


def test_ratios_and_references() -> None:
    asked = eq.ratio(
        "selection_rate", across="sex", target=eq.reference(sex="Male"), given="department"
    )
    bounds = eq.certify(eq.datasets.berkeley(), asked, rng=7)
    assert bounds.ask(sex="Female").lower == pytest.approx(0.966, abs=0.01)
    assert bounds.ask(sex="Male").note == "the group is its own target"


def test_a_plan_can_say_it() -> None:
    plain = claim(weights="group").to_plan()
    assert plain["given"] == ["department"]
    assert eq.from_plan(plain) == claim(weights="group")
    assert "given" not in eq.gap("accuracy", across="sex").to_plan()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"given": "sex"}, "forms the groups"),
        ({"given": 3}, "names of columns"),
        ({"target": 0.5}, "other people"),
        ({"given": (), "weights": "group"}, "needs given"),
        ({"weights": "equal"}, "weights"),
        ({"target": 0.8 * eq.overall()}, "needs complement"),
        ({"target": eq.reference(department="A")}, "which is given"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(eq.ClaimError, match=said):
        claim(**options)


def test_audits_that_do_not_know_it_say_so() -> None:
    trail = eq.datasets.berkeley()
    with pytest.raises(eq.OptionError, match="certify, flag, describe and joint_test do"):
        eq.shift(trail, claim(), over="department")
    with pytest.raises(eq.OptionError, match="leave method= out"):
        eq.joint_test(trail, claim(), method="likelihood")
    with pytest.raises(eq.OptionError, match="leave method= out"):
        eq.certify(trail, claim(), method="bootstrap")
    with pytest.raises(eq.TrailError, match="salary"):
        eq.certify(trail, claim(given=["salary"]))


def test_describe_and_joint_test_adjust_as_certify_does() -> None:
    trail = eq.datasets.berkeley()
    bounds = eq.certify(trail, claim(), rng=7)
    described, tested = eq.describe(trail, claim()), eq.joint_test(trail, claim(), rng=7)
    for found in (described, tested):
        assert [row.disparity for row in found] == [row.disparity for row in bounds]
        assert found.adjusted == bounds.adjusted
        assert from_json(found.to_json()) == found
        assert any("Without that" in sentence for sentence in found.sentences())
    # the plain mean stays what it is, and nobody sets it beside an adjusted target
    assert {row.target for row in described} == {None}
    assert tested.p == pytest.approx(0.25, abs=0.03)
    top = eq.ratio("selection_rate", across="sex", target=eq.highest())
    assert [row.disparity for row in eq.describe(trail, top)] == [
        row.disparity for row in eq.certify(trail, top, rng=7)
    ]
    assert eq.joint_test(trail, top, rng=7).rejected


def test_strata_that_depart_are_named() -> None:
    (women, _) = eq.certify(eq.datasets.berkeley(), claim(), rng=7).adjusted
    # department A admitted women more often than men, the others did not
    assert women.differing == ("department: A",)


@pytest.mark.parametrize("weights", ["mantel-haenszel", "group", "population"])
def test_strata_in_which_nothing_varies_still_leave_room(weights: Any) -> None:
    # twenty strata of twenty rows, two of them of the group; in every other one all are selected
    rows = [(f"s{s:02d}", "few" if i < 2 else "many", s % 2) for s in range(20) for i in range(20)]
    table = pl.DataFrame(rows, schema=["s", "g", "y"], orient="row")
    asked = eq.gap("selection_rate", across="g", target="complement", given=["s"], weights=weights)
    for row in eq.certify(table, asked, prediction="y"):
        # none of twenty that could have been selected were: a gap of 1 − 0.0125^(1/20) in half of
        # the strata would be seen to be none with a chance of 1.25 %
        about = (1 - 0.0125 ** (1 / 20)) / 2
        assert row.upper == pytest.approx(about, rel=0.25)
        assert row.lower == pytest.approx(-row.upper, rel=1e-6)
    nobody = table.with_columns(y=pl.lit(0))
    few, many = eq.certify(nobody, asked, prediction="y")
    assert few.upper is not None
    assert few.upper > 1 - 0.025 ** (1 / 40)
    assert many.upper is not None
    assert many.upper > 1 - 0.025 ** (1 / 360)


def test_rows_without_a_factor_are_counted_and_told() -> None:
    rng = np.random.default_rng(3)
    table = pl.DataFrame(
        {
            "g": rng.choice(["a", "b"], 300),
            "k": [("x", "y", None)[i] for i in rng.integers(0, 3, 300)],
            "y": rng.integers(0, 2, 300),
        }
    )
    found = eq.certify(table, eq.gap("selection_rate", across="g", given=["k"]), prediction="y")
    known = table.filter(pl.col("k").is_null()).group_by("g").len().rows()
    assert {row.group: row.unknown for row in found.adjusted} == dict(known)
    assert any("Rows without k (" in said for said in found.sentences())


@pytest.mark.parametrize("weights", ["mantel-haenszel", "group", "population"])
def test_a_side_without_any_one_shows_nothing_of_its_rate(weights: Any) -> None:
    # none of fifteen was taken for a rate of zero without any error: at the same rates on both
    # sides bounds missed whenever they were given
    rng = np.random.default_rng(5)
    stratum = np.repeat(["a", "b", "b", "c"], [350, 15, 345, 375])
    group = np.repeat(["g", "g", "h", "h"], [350, 15, 345, 375])
    y = (rng.random(1085) < 0.06).astype(int)
    y[350:365] = 0
    table = pl.DataFrame({"s": stratum, "g": group, "y": y, "home": rng.integers(0, 216, 1085)})
    asked: Any = eq.gap(
        eq.selection_rate, across="g", target="complement", given=["s"], weights=weights
    )
    found = eq.certify(table, asked, prediction="y", cluster="home", rng=1)
    assert [(row.lower, row.upper) for row in found.rows] == [(None, None)] * 2
    assert all(row.note for row in found.rows)
