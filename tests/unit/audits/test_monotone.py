"""Monotone tilts at the level of the verb."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.errors import ClaimError, OptionError
from equipoise.findings import MonotoneShift, from_json


def people(n: int = 600, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    age = rng.uniform(18, 70, n)
    return pl.DataFrame(
        {
            "age": age,
            "priors": rng.integers(0, 6, n),
            "sex": rng.choice(["Female", "Male"], n),
            "wrong": (rng.random(n) < 0.3 + 0.006 * (age - 44)).astype(int),
            "w": rng.exponential(size=n) + 0.2,
            "judge": np.arange(n) // 6,
        }
    )


def audit(frame: Any = None, target: Any = None, roles: Any = None, **options: Any) -> Any:
    trail = eq.read(people() if frame is None else frame, prediction="wrong", **(roles or {}))
    chosen: dict[str, Any] = {"over": eq.monotone("age", grid=12), "rng": 3}
    return eq.shift(trail, eq.gap(eq.selection_rate, target=target), **(chosen | options))


def test_half_lines_are_those_of_certify_at_a_slightly_higher_level() -> None:
    frame = people()
    found = audit(frame)
    trail = eq.read(frame, prediction="wrong")
    claim = eq.gap(eq.selection_rate, across=eq.thresholds("age", grid=12))
    plain = eq.certify(trail, claim, level=0.9525, rng=3, resamples=1000)
    assert {(r.group, r.lower, r.upper) for r in found.rows} == {
        (r.group, r.lower, r.upper) for r in plain.rows
    }


def test_a_tilt_is_estimated_as_a_weighted_mean_and_its_bounds_hold_the_estimate() -> None:
    frame = people().with_columns(band=(pl.col("age") // 10))
    found = audit(frame, over=eq.monotone("band", grid=None))
    h = frame["band"].to_numpy() + 1
    asked = found.ask_tilt(lambda c: c["band"] + 1, name="older")
    assert asked.group == "older"
    assert asked.value == pytest.approx(np.average(frame["wrong"], weights=h))
    assert asked.effective == pytest.approx(h.sum() ** 2 / (h**2).sum())
    assert asked.distance == pytest.approx(0, abs=1e-12)
    assert asked.lower < asked.disparity < asked.upper
    given = found.ask_tilt([s.start + 1 for s in found.stretches])
    assert (given.lower, given.upper) == pytest.approx((asked.lower, asked.upper))


@pytest.mark.parametrize("target", [None, 0.3, eq.reference(sex="Male"), 0.8 * eq.overall()])
@pytest.mark.parametrize("roles", [{}, {"weight": "w"}, {"cluster": "judge"}])
def test_tilts_lie_between_the_least_and_largest_half_line(target: Any, roles: Any) -> None:
    found = audit(target=target, roles=roles)
    rng = np.random.default_rng(2)
    for _ in range(30):
        weights = np.cumsum(rng.random(len(found.stretches)) ** 6)
        for each, direction in ((weights, "rising"), (weights[::-1], "falling")):
            asked, (low, high) = found.ask_tilt(each), found.every(direction)
            assert low - 1e-9 <= asked.lower <= asked.disparity <= asked.upper <= high + 1e-9


def test_everyone_against_everyone_is_no_question() -> None:
    found = audit()
    asked = found.ask_tilt(np.ones(len(found.stretches)))
    assert asked.lower == pytest.approx(0, abs=1e-12)
    assert asked.upper == pytest.approx(0, abs=1e-12)
    # With a value missing the rest is not everyone, and has an error.
    missing = people().with_columns(
        age=pl.when(pl.col("judge") < 10).then(None).otherwise(pl.col("age"))
    )
    other = audit(missing).ask_tilt(np.ones(12))
    assert other.lower < other.disparity < other.upper


def test_a_function_is_averaged_within_stretches_and_says_how_far_that_is() -> None:
    found = audit()
    coarse = found.ask_tilt(lambda c: np.exp(c["age"] / 5)).distance
    fine = audit(over=eq.monotone("age", grid=60)).ask_tilt(lambda c: np.exp(c["age"] / 5)).distance
    assert 0 < fine < coarse < 0.2


def test_tilts_that_turn_are_refused_with_the_place() -> None:
    found = audit()
    with pytest.raises(OptionError, match=r"turns from .* after age 4\d.*only\s+rise or only fall"):
        found.ask_tilt(lambda c: -((c["age"] - 44) ** 2) + 1000)
    with pytest.raises(OptionError, match="at least zero everywhere; the least value is -"):
        found.ask_tilt(lambda c: c["age"] - 44)
    with pytest.raises(OptionError, match="12 stretches"):
        found.ask_tilt([1.0, 2.0])
    with pytest.raises(OptionError, match="zero on every row"):
        found.ask_tilt(np.zeros(12))
    with pytest.raises(OptionError, match="a number for each of 600 rows"):
        found.ask_tilt(lambda c: np.ones(3))
    with pytest.raises(OptionError, match="'rising' or 'falling'"):
        found.every("up")


def test_bad_questions_are_named() -> None:
    with pytest.raises(ClaimError, match="'sex' is a category"):
        audit(over=eq.monotone("sex"))
    with pytest.raises(ClaimError, match="is 1 on every row"):
        audit(people().with_columns(age=pl.lit(1.0)))
    with pytest.raises(OptionError, match="floor= is about kernels"):
        audit(floor=0.1)
    with pytest.raises(OptionError, match="grid"):
        eq.monotone("age", grid=1)
    with pytest.raises(ClaimError, match="no complement"):
        audit(target=eq.complement())
    with pytest.raises(ClaimError, match="monotone"):
        audit(over=3)


def test_one_side_gives_one_bound() -> None:
    found = audit(side="lower")
    asked = found.ask_tilt(lambda c: c["age"])
    assert asked.upper is None
    assert asked.lower < asked.disparity
    assert found.every("rising")[1] is None


def test_findings_are_stored_at_any_level_and_drawn() -> None:
    found = audit()
    back = from_json(found.to_json())
    assert isinstance(back, MonotoneShift)
    assert back == found
    weights = np.arange(12.0)
    assert back.ask_tilt(weights).lower == found.ask_tilt(weights).lower
    with pytest.raises(OptionError, match="does not hold the rows"):
        back.ask_tilt(lambda c: c["age"])
    wider = back.at(0.99)
    assert wider.ask_tilt(weights).lower < found.ask_tilt(weights).lower
    assert "99 %" in wider.guarantee
    said = " ".join(found.sentences())
    assert "Under every weight rising in age, the disparity is at least" in said
    assert found.plot().to_dict()["title"]["text"].startswith("Selection rate against everyone")
    chart = found.plot(found.ask_tilt(lambda c: c["age"], name="older")).to_dict()
    assert "tilted by older" in chart["title"]["text"]
    assert "<table>" in found._repr_html_()


def test_monotone_has_a_plain_form() -> None:
    assert eq.from_plan(eq.monotone("age", grid=None).to_plan()) == eq.monotone("age", grid=None)
    plain = audit(over={"kind": "monotone", "column": "age", "grid": 12})
    assert plain.rows == audit().rows


def test_the_order_of_the_rows_does_not_matter() -> None:
    frame = people()
    found = [audit(each) for each in (frame, frame.sample(fraction=1, shuffle=True, seed=4))]
    assert found[0].to_json() == found[1].to_json()
