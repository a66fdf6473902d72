"""Group labels read like English and tell groups apart."""

import datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.cells import Collection, form_groups, gather
from equipoise.cells import groups as form
from equipoise.cells.groups import ProductSums
from equipoise.methods.numerics import StagedSums

MORNING = datetime.datetime(2020, 1, 2, 5)


def collection(across: Any, **columns: Any) -> Collection:
    size = len(next(iter(columns.values())))
    table = pl.DataFrame({"y": [1] * size, **columns})
    claim = eq.gap(eq.metric("one", "y"), across=across)
    (cells,) = gather(eq.read(table, label="y"), [claim])
    return form_groups(claim.across, cells)


def labels(across: Any, **columns: Any) -> list[str]:
    return list(collection(across, **columns).labels())


def test_levels_stand_alone_if_they_speak() -> None:
    found = labels(("race", "sex"), race=["African-American", "Other"], sex=["Female", None])
    assert found == [
        "African-American",
        "race: Other",
        "Female",
        "sex missing",
        "African-American, Female",
        "race: Other, sex missing",
    ]


def test_levels_that_two_attributes_share_are_told_apart() -> None:
    assert labels(("own", "rent"), own=["yes", "no"], rent=["no", "maybe"])[:4] == [
        "own: no",
        "own: yes",
        "maybe",
        "rent: no",
    ]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([True, False, None], ["not a", "a", "a missing"]),
        ([2020, 1234567, 1234568], ["a 2020", "a 1234567", "a 1234568"]),
        ([0.1234567, 0.1234568], ["a 0.1234567", "a 0.1234568"]),
        ([3.0, 2.5, float("nan")], ["a 2.5", "a 3", "a missing"]),
        ([datetime.date(2020, 1, 2)], ["2020-01-02"]),
        ([MORNING, MORNING.replace(hour=0)], ["2020-01-02", "2020-01-02T05:00:00"]),
        (["", " "], ["a ''", "a ' '"]),
    ],
)  # fmt: skip
def test_levels_of_other_types(values: list[Any], wanted: list[str]) -> None:
    assert labels("a", a=values) == wanted


def test_ranges() -> None:
    ages = [18.0, 30.0, 45.0, 60.0]
    assert labels(eq.intersections(eq.binned("age", cuts=(25, 50))), age=[*ages, None]) == [
        "age under 25",
        "age 25 to under 50",
        "age 50 and over",
        "age missing",
    ]
    assert labels(eq.intervals("age", edges=(18, 30, 60)), age=ages) == [
        "age 18 to under 30",
        "age 18 to 60",
        "age 30 to 60",
    ]
    assert labels(eq.intervals("age"), age=[18.0, 30.0]) == ["age 18", "age 18 to 30", "age 30"]
    assert labels(eq.intervals("pay"), pay=[9000, 25000]) == [
        "pay 9000",
        "pay 9000 to 25,000",
        "pay 25,000",
    ]
    assert labels(eq.intersections(eq.binned("z", cuts=(0,))), z=[-1.0, 1.0])[0] == "z under 0"


def test_quantiles_are_found_in_the_data_and_named() -> None:
    def ranges(*values: float | None) -> list[str]:
        return labels(eq.intersections(eq.binned("x", quantiles=4)), x=list(values))

    quarters = [f"x {words}" for words in ("under 25", "25 to under 50", "50 to under 75")]
    assert ranges(*range(100)) == [*quarters, "x 75 and over"]
    # a value that many rows share makes fewer ranges; what is missing stays a level
    assert ranges(*[0.0] * 9, 1.5, None) == ["x under 1", "x 1 and over", "x missing"]
    assert ranges(5.0, 5.0) == ["x 5 and over"]
    # cuts have as few digits as they need
    assert ranges(3.1000000954, 3.2000000048, 3.9000000954, 4.5)[0] == "x under 3.2"
    with pytest.raises(eq.ClaimError, match="needs cuts="):
        eq.binned("x")
    with pytest.raises(eq.ClaimError, match="not both"):
        eq.binned("x", cuts=[1], quantiles=2)


def test_masks_and_bins() -> None:
    assert labels(eq.masks(young="age < 25"), age=[18.0, 30.0]) == ["young"]
    found = labels(eq.masks({"a b": "age < 25", "nobody": "age < 0"}), age=[18.0, 30.0])
    assert found == ["a b", "nobody"]


def test_bins_are_half_open_except_the_last() -> None:
    table = pl.DataFrame({"y": [1, 0, 1], "s": [0.0, 0.5, 1.0], "g": ["a"] * 3})
    claim = eq.multicalibration(across="g", number=2)
    trail = eq.read(table, label="y", score="s")
    (cells,) = gather(trail, [claim])
    groups = form_groups(claim.across, cells)
    assert list(groups.labels()) == ["a, score 0 to under 0.5", "a, score 0.5 to 1"]
    assert groups.wheres()[1] == {"g": "a", "score": {"from": 0.5, "to": 1.0}}
    assert groups.sums(cells.rows).tolist() == [1.0, 2.0]


def test_intersections_are_in_the_same_order_however_they_are_summed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    names = {"a": ["x", "y", "z"], "b": ["u", "v"], "c": ["p", "q", "r"]}
    columns = {name: rng.choice(levels, 12).tolist() for name, levels in names.items()}
    full = collection(tuple(names), **columns)
    monkeypatch.setattr(form, "_BOX_LIMIT", 0)
    monkeypatch.setattr(form, "_BOX_FILL", 0)
    sparse = collection(tuple(names), **columns)
    assert isinstance(full.sums, ProductSums)
    assert isinstance(sparse.sums, StagedSums)
    assert sparse.wheres() == full.wheres()
    values = rng.random(full.sums.order.size)
    np.testing.assert_allclose(sparse.sums(values), full.sums(values))
