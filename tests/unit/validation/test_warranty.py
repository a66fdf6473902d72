"""The warranty: its arithmetic, that designs can be drawn again, and that stored figures hold."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import bdtr
from validation import run
from validation.warranty.people import outside, people
from validation.warranty.promise import Promise, at_most, summed
from validation.warranty.promises import PROMISES

FOLDER = Path(__file__).parents[3] / "validation" / "warranty"
STORED = json.loads((FOLDER / "results" / "warranty.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("errors", "worlds"), [(0, 100), (3, 100), (50, 1000), (560, 10_000)])
def test_a_larger_chance_of_errors_would_hardly_ever_give_so_few(errors: int, worlds: int) -> None:
    chance = at_most(errors, worlds)
    assert float(bdtr(errors, worlds, chance)) == pytest.approx(0.01, rel=1e-6)


def promise(**more: object) -> Promise:
    return Promise(audit="x", wrong="w", draw=PROMISES[0].draw, **more)  # type: ignore[arg-type]


def row(errors: int, worlds: int = 1000) -> dict[str, object]:
    return {"design": f"{errors}", "worlds": worlds, "errors": errors, "answered": 9, "seconds": 1}


def test_the_worst_design_is_named_and_its_bound_holds_for_all_designs_at_once() -> None:
    found = summed(promise(), [row(20), row(70), row(30)])
    assert found["errors"] == 0.04
    assert found["which"] == "70"
    assert found["worst at most"] == round(at_most(70, 1000, 1 - 0.01 / 3), 4)
    assert found["worst at most"] > round(at_most(70, 1000), 4)


@pytest.mark.parametrize(("errors", "kept"), [(60, True), (78, True), (95, False), (120, False)])
def test_errors_clearly_above_nominal_and_a_point_break_a_promise(errors: int, kept: bool) -> None:
    assert summed(promise(), [row(20), row(errors)])["agrees"] is kept


def test_the_truth_of_a_population_is_that_of_very_many_rows() -> None:
    for number in range(12):
        who = people(np.random.default_rng([4, number]))
        table = who.table(np.random.default_rng(number))
        assert {"value", *who.names} <= set(table.columns)
        many = people(np.random.default_rng([4, number]))
        object.__setattr__(many, "rows", 400_000)
        rows = many.table(np.random.default_rng(1))
        weight = rows["weight"].to_numpy() if "weight" in rows.columns else np.ones(len(rows))
        inside = rows["a0"].to_numpy() == "a1"
        seen = np.average(rows["value"].to_numpy()[inside], weights=weight[inside])
        true = many.truth(many.inside({"a0": "a1"}))
        effective = weight[inside].sum() ** 2 / (weight[inside] ** 2).sum() / 10
        error = max(float(rows["value"].to_numpy().std()), 0.02) / effective**0.5
        assert abs(seen - true) < 5 * error


def test_a_bound_misses_only_beyond_a_hair() -> None:
    assert not outside(0.1, None, 0.1 - 1e-12)
    assert outside(0.1, None, 0.0)
    assert outside(None, 0.1, 0.2)
    assert not outside(None, None, 5.0)


@pytest.mark.parametrize("one", PROMISES, ids=lambda one: one.audit)
def test_every_promise_draws_the_same_design_again(one: Promise) -> None:
    words = [one.draw(np.random.default_rng([8, 1]))[0] for _ in range(2)]
    assert words[0] == words[1]
    assert words[0] != one.draw(np.random.default_rng([8, 2]))[0]


def test_what_was_examined_was_so_in_a_thousand_worlds_and_holds() -> None:
    rows = {one["audit"]: one for one in STORED["rows"]}
    assert set(rows) <= {one.audit for one in PROMISES}
    assert min(one["worlds"] for one in rows.values()) >= 1000
    assert [name for name, one in rows.items() if not one["agrees"]] == []
    assert all(len(str(one["seed"])) == 8 for one in rows.values())


def test_what_was_not_examined_is_named_on_the_page() -> None:
    known = {one["audit"] for one in STORED["rows"]}
    said = "\n".join(run.warranty())
    assert all(f"`{one.audit}`" in said for one in PROMISES if one.audit not in known)
