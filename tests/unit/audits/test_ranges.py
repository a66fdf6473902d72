"""All ranges of a number by running sums: the same certificates as listing every range."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.findings import CertificateList, RangeCertificates, from_json


def table(seed: int, rows: int = 900, points: int = 9) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, points, rows) / 2
    return pl.DataFrame(
        {
            "x": x,
            "y": rng.normal(size=rows) * np.sqrt(0.2 + x / 5),
            "f": np.zeros(rows),
            "hit": (rng.random(rows) < 0.6 + 0.04 * x).astype(int),
        }
    )


def both_ways(
    trail: eq.Trail, claim: eq.Claim, side: str, tolerance: float
) -> tuple[RangeCertificates, CertificateList]:
    options = {"side": side, "tolerance": tolerance, "level": 0.9, "resamples": 200, "rng": 4}
    swift = eq.certify(trail, claim, method="all-ranges", **options)  # type: ignore[call-overload]
    listed = eq.certify(trail, claim, method="certificates-unscaled", **options)  # type: ignore[call-overload]
    assert isinstance(swift, RangeCertificates)
    assert isinstance(listed, CertificateList)
    return swift, listed


@pytest.mark.parametrize("target", [0.65, eq.overall()])
@pytest.mark.parametrize(("side", "tolerance"), [("lower", -0.1), ("upper", 0.12), ("both", 0.15)])
def test_certificates_of_a_rate_equal_those_of_the_list(
    side: str, tolerance: float, target: eq.Target | float
) -> None:
    trail = eq.read(table(1), prediction="hit")
    claim = eq.gap(eq.selection_rate, across=eq.intervals("x"), target=target)
    swift, listed = both_ways(trail, claim, side, tolerance)
    answers = [(row.certified, swift.ask(x=ends(row.where)).certified) for row in listed.rows]
    assert all(one == other for one, other in answers)
    assert {one for one, _ in answers} == {True, False}


def test_certificates_of_a_real_metric_equal_those_of_the_list() -> None:
    trail = eq.read(table(2), label="y", score="f")
    claim = eq.gap(eq.squared_error, across=eq.intervals("x"), target=0)
    swift, listed = both_ways(trail, claim, "upper", 0.9)
    answers = [(row.certified, swift.ask(x=ends(row.where)).certified) for row in listed.rows]
    assert all(one == other for one, other in answers)
    assert {one for one, _ in answers} == {True, False}


def test_the_range_of_everybody_is_its_own_target_and_never_certified() -> None:
    trail = eq.read(table(1), prediction="hit")
    claim = eq.gap(eq.selection_rate, across=eq.intervals("x"), target=eq.overall())
    swift, listed = both_ways(trail, claim, "both", 0.3)
    assert not swift.ask(x=(0, 9)).certified
    assert swift.ask(x=(0, 3.5)).certified
    assert [row.note for row in listed.rows if row.n == 900] == ["the group is its own target"]
    assert all(row.n < 900 for row in swift.rows)


def ends(where: object) -> tuple[float, float]:
    assert isinstance(where, dict)
    return where["x"]["from"], where["x"]["to"]


def test_rows_are_the_certified_ranges_that_lie_in_no_wider_one() -> None:
    trail = eq.read(table(3), prediction="hit")
    claim = eq.gap(eq.selection_rate, across=eq.intervals("x"), target=0.65)
    swift, listed = both_ways(trail, claim, "upper", 0.1)
    certified = [ends(row.where) for row in listed.rows if row.certified]
    widest = [
        one
        for one in certified
        if not any(o != one and o[0] <= one[0] and one[1] <= o[1] for o in certified)
    ]
    assert sorted(ends(row.where) for row in swift.rows) == sorted(widest)
    for row in swift.rows:
        same = listed.ask(x=ends(row.where))
        assert row.n == same.n
        assert row.value == pytest.approx(same.value)
        assert row.disparity == pytest.approx(same.disparity)


def test_a_million_ranges_are_no_trouble_and_survive_json() -> None:
    rng = np.random.default_rng(5)
    frame = pl.DataFrame({"x": rng.random(1500), "hit": rng.integers(0, 2, 1500)})
    claim = eq.gap(eq.selection_rate, across=eq.intervals("x"), target=0.5)
    trail = eq.read(frame, prediction="hit")
    found = eq.certify(trail, claim, method="all-ranges", tolerance=0.3, resamples=100, rng=1)
    assert isinstance(found, RangeCertificates)
    assert found.ranges == 1500 * 1501 // 2
    assert found.ask(x=(0, 1)).certified
    with pytest.raises(eq.EquipoiseError, match="Ask for a range of x"):
        found.ask(y=(0, 1))
    with pytest.raises(eq.EquipoiseError, match="No row has x between 5 and 6"):
        found.ask(x=(5, 6))
    assert from_json(found.to_json()) == found
    assert "certified range" in found.sentences()[0]
    assert found.plot().to_dict()["layer"]


def test_rows_without_a_value_lie_on_no_range_and_are_counted() -> None:
    frame = table(6).with_columns(x=pl.when(pl.int_range(pl.len()) < 50).then(None).otherwise("x"))
    frame = frame.with_columns(pl.col("x").cast(pl.Float64))
    claim = eq.gap(eq.selection_rate, across=eq.intervals("x"), target=0.65)
    trail = eq.read(frame, prediction="hit")
    found = eq.certify(trail, claim, method="all-ranges", tolerance=0.3, resamples=50, rng=1)
    assert found.provenance.excluded == {"missing x": 50}


@pytest.mark.parametrize(
    ("across", "target", "tolerance", "says"),
    [
        (eq.intervals("x", grid=4), 0.5, 0.1, "without edges= and grid="),
        (eq.intersections("x"), 0.5, 0.1, "needs across=intervals"),
        (eq.intervals("x"), eq.complement(), 0.1, "a number or with everyone"),
        (eq.intervals("x"), 0.5, None, "need a tolerance"),
    ],
)
def test_what_it_cannot_do_is_said(
    across: eq.Groups, target: eq.Target | float, tolerance: float | None, says: str
) -> None:
    claim = eq.gap(eq.selection_rate, across=across, target=target)
    with pytest.raises(eq.EquipoiseError, match=says):
        eq.certify(
            eq.read(table(7), prediction="hit"), claim, method="all-ranges", tolerance=tolerance
        )


def test_a_ratio_is_refused() -> None:
    claim = eq.ratio(eq.selection_rate, across=eq.intervals("x"), target=0.5)
    with pytest.raises(eq.OptionError, match="AllRanges is for gaps"):
        eq.certify(eq.read(table(7), prediction="hit"), claim, method="all-ranges", tolerance=0.8)


def test_a_constant_metric_certifies_nothing() -> None:
    frame = table(8).with_columns(hit=pl.lit(1))
    claim = eq.gap(eq.selection_rate, across=eq.intervals("x"), target=0.5)
    found = eq.certify(
        eq.read(frame, prediction="hit"),
        claim,
        method="all-ranges",
        side="lower",
        tolerance=0.1,
        resamples=50,
        rng=1,
    )
    assert found.rows == ()
