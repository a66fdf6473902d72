"""`discover`: groups are found on one part of the rows and tested on the other."""

import dataclasses
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.audits import discover as discovering
from equipoise.findings import Flags
from tests.unit.cells.looks import pulled


def table(n: int = 3000, gap: float = 0.3, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n)
    city = rng.choice(["north", "south"], n)
    bad = (age < 30) & (city == "north")
    y = (rng.random(n) < 0.3 + gap * bad).astype(int)
    return pl.DataFrame({"age": age, "city": city, "y": y})


def found(data: pl.DataFrame, **options: Any) -> Flags:
    trail = eq.read(data, prediction="y")
    return eq.discover(trail, "selection_rate", features=["age", "city"], **{"rng": 3, **options})


def test_a_planted_group_is_found_with_a_readable_rule() -> None:
    flags = found(table(), above=0.05)
    assert any("age" in row.group and "city is not south" in row.group for row in flags.flagged)
    assert "tested on" in flags.guarantee


def test_row_order_does_not_matter() -> None:
    data = table()
    assert found(data).to_json() == found(data.reverse()).to_json()


def test_the_tested_rows_are_those_not_used_to_find() -> None:
    flags = found(table(), share=0.25)
    tested = sum(row.n for row in flags.rows)
    assert 0.7 * 3000 < tested < 0.8 * 3000
    assert flags.provenance.counted == tested


def test_nothing_is_flagged_more_often_than_stated_where_nothing_differs() -> None:
    # binomial band of 60 worlds at 10 %: 16 or more have a chance of 5e-4
    fired = sum(bool(found(table(600, 0.0, s), rng=s).flagged) for s in range(60))
    assert fired <= 15


def test_a_reference_is_refused() -> None:
    with pytest.raises(eq.OptionError, match="everyone"):
        found(table(), target=eq.reference(city="north"))


def test_counts_are_no_rows() -> None:
    claim = eq.gap(eq.selection_rate)
    counts: Any = eq.Tallied.from_json(eq.tally(eq.read(table(), prediction="y"), claim).to_json())
    with pytest.raises(eq.TrailError, match="these are counts"):
        eq.discover(counts, eq.selection_rate, features=["city"])


def test_rows_that_weigh_more_decide_which_groups_are_found() -> None:
    rng = np.random.default_rng(8)
    n = 2000
    young, north, heavy = (rng.random(n) < 0.5 for _ in range(3))
    chance = np.where(heavy, 0.2 + 0.3 * north, 0.2 + 0.6 * young)
    frame = pl.DataFrame(
        {
            "age": np.where(young, 20, 60),
            "city": np.where(north, "north", "south"),
            "y": (rng.random(n) < chance).astype(int),
            "w": np.where(heavy, 10.0, 0.1),
        }
    )
    for weight, name in ((None, "age"), ("w", "city")):
        trail = eq.read(frame, prediction="y", weight=weight)
        made = eq.discover(trail, "selection_rate", features=["age", "city"], depth=1, rng=3)
        assert all(row.group.startswith(name) for row in made.rows)


def test_all_rows_are_accounted_for() -> None:
    data = table().with_columns(
        age=pl.when(pl.int_range(pl.len()) < 40).then(None).otherwise(pl.col("age")),
        y=pl.when(pl.int_range(pl.len()) >= 2990).then(None).otherwise(pl.col("y")),
    )
    where = found(data).provenance
    assert where.scanned == 3000
    assert where.excluded == {"missing prediction": 10, "missing age": 40}
    assert 0 < where.counted < 2950


def _by_department(n: int = 4000, seed: int = 4, gap: float = 0.0) -> pl.DataFrame:
    """Departments differ in whom they hire and in who applies, and people in nothing else."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 4, n)
    sex = np.where(rng.random(n) < 0.2 + 0.2 * place, "f", "m")
    age = rng.integers(20, 60, n)
    rate = 0.15 + 0.15 * place + gap * ((age > 40) & (sex == "f"))
    return pl.DataFrame(
        {
            "department": [f"d{i}" for i in place],
            "sex": sex,
            "age": age,
            "y": (rng.random(n) < rate).astype(int),
            "w": np.exp(rng.normal(size=n) / 2),
        }
    )


def _given(data: pl.DataFrame, given: Any, **roles: Any) -> Flags:
    claim = eq.gap("selection_rate", target="complement", given=given)
    features = ["sex", "age"]
    return eq.discover(data, claim, features=features, prediction="y", rng=2, depth=2, **roles)


def test_given_departments_nothing_is_left_to_be_found() -> None:
    data = _by_department()
    assert _given(data, ()).flagged
    assert not _given(data, ["department"]).flagged
    assert not _given(data, eq.factors("department", learner="linear")).flagged
    harmed = _given(_by_department(gap=0.25), ["department"]).flagged[0]
    assert "age over" in harmed.group
    assert "sex" in harmed.group


@pytest.mark.parametrize("weight", [None, "w"])
def test_groups_given_factors_are_flagged_as_flag_does_on_the_rows_kept_back(
    weight: str | None,
) -> None:
    data = _by_department(1500, gap=0.2).with_columns(row=pl.int_range(pl.len()))
    roles: dict[str, Any] = {} if weight is None else {"weight": weight}
    flags = _given(data, ["department"], **roles)
    # who was kept back is not told; the groups' sizes say whether these are the rows
    trail = eq.read(data, prediction="y", **roles)
    rows = pulled(trail, eq.selection_rate, ["sex", "age", "department", "row"])
    first = discovering._split(
        dataclasses.replace(rows, matrix=rows.matrix[:, :-1]), 0.5, np.random.SeedSequence(2)
    )
    later = data[rows.matrix[first == 0, -1].astype(int).tolist()]
    asked: Any = flags.claim
    again: Any = eq.flag(later, asked, prediction="y", **roles)
    for one, other in zip(flags.rows, again.rows, strict=True):
        assert (one.group, one.n) == (other.group, other.n)
        assert one.p == pytest.approx(other.p, rel=1e-9)
        assert one.disparity == pytest.approx(other.disparity, rel=1e-9)


def test_what_is_given_forms_no_rule() -> None:
    data = _by_department(600)
    claim = eq.gap("selection_rate", given=["department"])
    by_default = eq.discover(data, claim, prediction="y", rng=2)
    assert not any("department" in row.group for row in by_default.rows)
    with pytest.raises(eq.ClaimError, match="'department' is given"):
        eq.discover(data, claim, features=["department"], prediction="y")
    ranges = eq.gap("selection_rate", given=[eq.binned("age", quantiles=4)])
    with pytest.raises(eq.OptionError, match=r"or use given=factors\(…\)"):
        eq.discover(data, ranges, features=["sex"], prediction="y")
