"""`scoring_rate`: the share above the median of the whole sample, in describe, certify and flag."""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.claims.claim import TargetLike

RNG = np.random.default_rng(8)
GROUP = RNG.choice(["a", "b", "c"], 600, p=[0.3, 0.5, 0.2])
# the scores of a crowd around the median, so that its rate moves with it
SCORE = RNG.normal(size=600) * np.select([GROUP == "a", GROUP == "b"], [0.1, 2.0], 1.0)
TABLE = pl.DataFrame({"group": GROUP, "score": SCORE, "above": (np.median(SCORE) < SCORE) * 1})
TRAIL = eq.read(TABLE, score="score", prediction="above")


def test_rates_are_counted_above_the_median() -> None:
    found = eq.describe(TRAIL, eq.gap(eq.scoring_rate, across="group"))
    plain = eq.describe(TRAIL, eq.gap("selection_rate", across="group"))
    assert [row.value for row in found] == [row.value for row in plain]
    assert found.overall == 0.5
    assert found.metric == "scoring rate"
    # the median's error widens the interval of the crowd, and of nobody else
    wider = [row.upper - row.lower for row in found]
    known = [row.upper - row.lower for row in plain]
    assert wider[0] > 1.2 * known[0]
    assert wider[1] == pytest.approx(known[1], rel=0.05)


@pytest.mark.parametrize("target", ["highest", "overall", "complement", eq.reference(group="b")])
def test_bounds_are_those_of_counts_made_wider(target: TargetLike) -> None:
    claims = [
        eq.ratio(m, across="group", target=target) for m in ("scoring_rate", "selection_rate")
    ]
    found, plain = (eq.certify(TRAIL, claim, rng=3) for claim in claims)
    for one, other in zip(found, plain, strict=True):
        assert (one.value, one.disparity) == (other.value, other.disparity)
        if one.lower is not None:
            assert one.lower <= other.lower + 1e-3
            assert one.upper >= other.upper - 1e-3
    assert "median" in found.assumptions[-1]
    assert eq.findings.from_dict(found.to_dict()) == found


def test_a_median_that_many_people_have_is_known() -> None:
    tied = TABLE.with_columns(score=pl.col("score").clip(-0.2, 0.2).round(0))
    trail = eq.read(tied, score="score", prediction="above")
    found = eq.certify(trail, eq.gap("scoring_rate", across="group"), rng=3)
    # nobody is above a median that nearly everybody has
    assert {row.value for row in found} == {0.0}
    assert "median" not in found.assumptions[-1]


def test_a_median_that_may_jump_widens_bounds_over_both() -> None:
    """Of five scores the median is 3 or 4; the bounds hold for the rates above either."""
    rng = np.random.default_rng(3)
    one, other = [0.1, 0.2, 0.3, 0.2, 0.2], [0.15, 0.15, 0.15, 0.4, 0.15]
    scores = np.concatenate([rng.choice(5, 160, p=one), rng.choice(5, 240, p=other)]) + 1
    groups = np.repeat(["a", "b"], [160, 240])
    table = {"score": scores, "group": groups, "over3": scores > 3, "over4": scores > 4}
    claim = eq.ratio("scoring_rate", across="group", target=eq.reference(group="b"))
    found = eq.certify(pl.DataFrame(table), claim, score="score", rng=3).ask(group="a")
    ends = [
        eq.certify(
            pl.DataFrame(table),
            eq.ratio("selection_rate", across="group", target=eq.reference(group="b")),
            prediction=name,
            rng=3,
        ).ask(group="a")
        for name in ("over3", "over4")
    ]
    assert found.lower == pytest.approx(min(end.lower or 0.0 for end in ends), rel=1e-3)
    assert found.upper == pytest.approx(max(end.upper or 0.0 for end in ends), rel=1e-3)
    assert ends[0].upper < ends[1].upper
    # the pack says the same, from counts
    both = {**table, "sex": groups, "race": np.resize(["x", "y"], 400)}
    audit = eq.pack("ll144", pl.DataFrame(both), score="score")
    assert "2 scores that may be the median" in audit.findings[0].assumptions[-1]


def test_a_joint_test_rests_on_the_bounds_of_certify() -> None:
    claim = eq.gap("scoring_rate", across="group")
    tested, bounds = eq.joint_test(TRAIL, claim, rng=1), eq.certify(TRAIL, claim, rng=1)
    assert [row.disparity for row in tested] == [row.disparity for row in bounds]
    assert tested.rejected == any(row.lower > 0 or row.upper < 0 for row in bounds)


def test_counts_are_repeated_rows() -> None:
    few = TABLE.head(60).with_columns(n=pl.lit(3))
    counted = eq.read(few, score="score", count="n")
    repeated = eq.read(pl.concat([few] * 3), score="score")
    claim = eq.gap("scoring_rate", across="group")
    assert eq.describe(counted, claim).rows == eq.describe(repeated, claim).rows


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda c: eq.joint_test(TRAIL, c, method="euclidean"), "Euclidean knows no scoring_rate"),
        (lambda c: eq.summarize(TRAIL, c), "knows no scoring_rate"),
        (lambda c: eq.certify(TRAIL, c, method="bootstrap"), "Bootstrap knows no scoring_rate"),
        (lambda c: eq.tally(TRAIL, c), "needs the median of all scores"),
        (lambda c: eq.certify(eq.read(TABLE, prediction="above"), c), "needs a score column"),
        (
            lambda c: eq.certify(eq.read(TABLE, score="score", cluster="above"), c),
            "takes no cluster column",
        ),
        (
            lambda c: eq.certify(
                TRAIL,
                eq.gap("scoring_rate", across="group", target="complement", given="above"),
            ),
            "no given=",
        ),
    ],
)
def test_what_cannot_be_done_is_said(ask: Callable[[eq.Claim], object], message: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=message):
        ask(eq.gap("scoring_rate", across="group"))
