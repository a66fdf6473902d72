"""given=factors(…), and given= for real metrics, weights and clusters."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.findings import from_json


def table(n: int = 1500, lean: float = 1.0) -> Any:
    """Groups that differ by their factors, and by five points, or 100, besides."""
    rng = np.random.default_rng(1)
    x, z = rng.normal(size=(2, n))
    member = rng.random(n) < 1 / (1 + np.exp(-lean * x))
    mean = 0.45 + 0.15 * np.tanh(x) + 0.05 * member
    return pl.DataFrame(
        {
            "x": x,
            "z": z,
            "office": np.where(x > 0.5, "north", np.where(x > -0.5, "mid", "south")),
            "g": np.where(member, "a", "b"),
            "y": (rng.random(n) < mean).astype(int),
            "pay": 1000 + 300 * x + 100 * member + 100 * rng.normal(size=n),
            "w": rng.random(n) + 0.5,
        }
    )


PAY = eq.metric("pay", "pay")


def of(found: Any, group: str = "a") -> Any:
    """One group's row."""
    return next(row for row in found if row.group == group)


def test_factors_explain_what_strata_cannot() -> None:
    frame = table()
    raw = of(eq.certify(frame, eq.gap(PAY, across="g", target="complement"), rng=1))
    assert raw.lower > 250
    found = eq.certify(frame, eq.gap(PAY, across="g", given=eq.factors("x", "z")), rng=1)
    row, beside = of(found), found.adjusted[0]
    assert row.lower < 100 < row.upper
    assert row.upper - row.lower < 40
    assert beside.unadjusted == pytest.approx(raw.disparity)
    assert beside.explained == pytest.approx(raw.disparity - row.disparity)
    assert beside.compared < 400
    assert 0 < beside.smallest < 0.1
    assert beside.hidden is None
    assert from_json(found.to_json()) == found
    # the two groups are each other's mirror image, and one critical score serves both
    assert of(found, "b").disparity == pytest.approx(-row.disparity)


def test_models_of_strata_and_strata_agree() -> None:
    frame = table()
    learnt = eq.gap("selection_rate", across="g", given=eq.factors("office", learner="linear"))
    strata = eq.gap("selection_rate", across="g", target="complement", given=["office"])
    one, other = (of(eq.certify(frame, c, prediction="y", rng=1)) for c in (learnt, strata))
    assert one.disparity == pytest.approx(other.disparity, abs=0.004)
    assert one.lower == pytest.approx(other.lower, abs=0.008)
    # rows of equal weight, and clusters of one row each, are plain rows
    plain = frame.with_columns(w=pl.lit(2.0), home=pl.int_range(pl.len()))
    weighted = eq.certify(plain, strata, prediction="y", weight="w", rng=1)
    clustered = eq.certify(plain, strata, prediction="y", cluster="home", rng=1)
    for row in map(of, (weighted, clustered)):
        assert row.disparity == pytest.approx(other.disparity)
        assert row.upper == pytest.approx(other.upper, abs=0.004)


def test_a_row_and_its_copy_are_one_cluster() -> None:
    frame = table(600).with_row_index("home")
    claim = eq.gap(PAY, across="g", target="complement", given=["office"])
    once = of(eq.certify(frame, claim, cluster="home", rng=1))
    twice = of(eq.certify(pl.concat([frame, frame]), claim, cluster="home", rng=1))
    naive = of(eq.certify(pl.concat([frame, frame]), claim, rng=1))
    assert twice.lower == pytest.approx(once.lower, abs=3)
    assert naive.upper - naive.lower < 0.8 * (twice.upper - twice.lower)


@pytest.mark.parametrize("weights", ["group", "population"])
def test_other_weights_and_the_order_of_rows(weights: Any) -> None:
    frame = table(3000, lean=0.4)
    given = eq.factors("x", learner="linear")
    claim = eq.gap(PAY.clip(0, 2500), across="g", given=given, weights=weights)
    found = eq.certify(frame, claim, weight="w", rng=1)
    again = eq.certify(frame.sample(fraction=1, shuffle=True, seed=5), claim, weight="w", rng=1)
    assert of(found).lower == pytest.approx(of(again).lower)
    assert of(found).lower < 100 < of(found).upper
    assert eq.from_plan(claim.to_plan()) == claim


def test_other_verbs_and_a_reference() -> None:
    frame = table().with_columns(
        g=pl.when(pl.col("z") > 1).then(pl.lit("c")).otherwise(pl.col("g"))
    )
    claim = eq.gap(PAY, across="g", target=eq.reference(g="b"), given=eq.factors("x"))
    flags = eq.flag(frame, claim, rng=1)
    assert "a" in {row.group for row in flags.flagged}
    assert of(flags, "b").note == "the group is its own target"
    assert "given x" in eq.describe(frame, claim).question
    assert eq.joint_test(frame, claim, rng=1).rejected
    # beside a reference all others are as if they were not there
    beside = eq.gap(PAY, across="g", target=eq.reference(g="b"), given=["office"])
    alone = eq.gap(PAY, across="g", target="complement", given=["office"])
    two = eq.certify(frame.filter(pl.col("g") != "c"), alone, rng=1)
    assert of(eq.certify(frame, beside, rng=1)).disparity == pytest.approx(of(two).disparity)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: eq.gap(PAY, across="g", given=eq.factors()), "needs a column"),
        (lambda: eq.gap(PAY, across="g", given=eq.factors("g")), "forms the groups"),
        (lambda: eq.gap(PAY, across="g", given=eq.factors("x"), target="overall"), "strata"),
        (lambda: eq.ratio(PAY, across="g", given=eq.factors("x")), "strata"),
        (lambda: eq.factors("x", learner="forest"), "boosting"),  # type: ignore[arg-type]
        (lambda: eq.factors("x", folds=1), "folds"),
    ],
)
def test_what_makes_no_sense_is_refused(made: Any, said: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=said):
        made()


def test_audits_without_an_answer_say_why() -> None:
    frame = table(600).with_columns(many=pl.int_range(pl.len()) % 70, same=(pl.col("g") == "a"))
    with pytest.raises(eq.OptionError, match="more than 60"):
        eq.certify(frame, eq.gap(PAY, across="many", given=eq.factors("x")), rng=1)
    with pytest.raises(eq.OptionError, match="complement"):
        eq.certify(frame, eq.gap(PAY, across="g", given=["office"]), rng=1)
    # a factor that says who is in which group leaves nobody to compare
    claim = eq.gap(PAY, across="g", target="complement", given=["same"])
    row = of(eq.certify(frame, claim, rng=1))
    assert row.lower is None
    assert "nobody else shares" in row.note


def test_infinite_factors_are_refused_and_silence_explains_nothing() -> None:
    frame = table(200).with_columns(
        k=pl.when(pl.int_range(pl.len()) == 3).then(np.inf).otherwise(1.0)
    )
    with pytest.raises(eq.TrailError, match="'k' holds infinite numbers"):
        eq.certify(frame, eq.gap(PAY, across="g", given=eq.factors("k")))
    copied = frame.with_columns(copy=(pl.col("g") == "a").cast(float))
    claim = eq.gap("selection_rate", across="g", given=eq.factors("copy"))
    found = eq.certify(copied, claim, prediction="y")
    for row, beside in zip(found, found.adjusted, strict=True):
        if row.lower is None:
            assert beside.explained is None
            assert beside.hidden is None
