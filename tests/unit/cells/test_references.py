"""Reference groups: found, or refused with what exists."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.cells import form_groups, gather
from equipoise.cells.gather import target_values

TABLE = pl.DataFrame(
    {
        "y": [1, 0, 1, 0, None],
        "p": [1, 1, 0, 0, 1],
        "sex": ["Male", "Male", "Female", None, "Other"],
        "flag": [True, False, True, False, None],
        "age": [20.0, 30.0, 40.0, 50.0, None],
        "kind": [1, 2, 1, 2, 1],
    }
)


def targets(target: Any, across: Any = "sex") -> set[float | None]:
    trail = eq.read(TABLE, label="y", prediction="p")
    return {
        row.target
        for row in eq.describe(trail, eq.gap("accuracy", across=across, target=target)).rows
    }


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ({"sex": "Male"}, 0.5),
        ({"sex": None}, 1.0),
        ({"flag": True}, 0.5),
        ({"sex": "Female", "flag": True}, 0.0),
        ({"kind": 2}, 0.5),
        ({"age": 30}, 0.0),
    ],
)
def test_a_reference_may_lie_on_any_attribute(where: dict[str, Any], wanted: float) -> None:
    assert targets(eq.reference(where)) == {wanted}
    assert targets(0.8 * eq.reference(where)) == {0.8 * wanted}


def test_a_reference_may_be_a_range() -> None:
    binned = eq.intersections("sex", eq.binned("age", cuts=(25, 45)))
    assert targets(eq.reference(age={"from": 25, "below": 45}), binned) == {0.0}
    assert targets(eq.reference(age={"below": 25}), binned) == {1.0}


def test_what_does_not_exist() -> None:
    with pytest.raises(
        eq.ClaimError, match=r"sex has no level 'Mal'. Did you mean 'Male'.*'Female'"
    ):
        targets(eq.reference(sex="Mal"))
    with pytest.raises(eq.ClaimError, match=r"flag has no level 1. There is: False, True"):
        targets(eq.reference(flag=1))
    with pytest.raises(eq.TrailError, match=r"attribute 'sez'. Did you mean 'sex'"):
        targets(eq.reference(sez="Male"))
    with pytest.raises(eq.ClaimError, match="sex='Other' has no row on which 'accuracy' counts"):
        targets(eq.reference(sex="Other"))


def test_an_empty_complement_has_no_value() -> None:
    trail = eq.read(TABLE.with_columns(all=pl.lit("x")), label="y", prediction="p")
    (row,) = eq.describe(trail, eq.gap("accuracy", across="all", target=eq.complement())).rows
    assert (row.value, row.target, row.disparity) == (0.5, None, None)
    assert "nobody to compare with" in row.note


def test_an_empty_weighted_complement_is_not_rounding() -> None:
    claim = eq.gap(eq.metric("mine", "label"), across=eq.intervals("a"), target=eq.complement())
    left = []
    for seed in range(8):
        weights = np.random.default_rng(seed).random(20).round(2)
        table = pl.DataFrame({"y": np.arange(20) + 1.5, "w": weights, "a": np.arange(20) % 9})
        (cells,) = gather(eq.read(table, label="y", weight="w"), [claim])
        collection = form_groups(claim.across, cells)
        everyone = collection.wheres().index({"a": {"from": 0, "to": 8}})
        left.append(cells.weight.sum() - collection.sums(cells.weight)[everyone])
        compared = target_values(claim.target, cells, collection)
        assert np.flatnonzero(np.isnan(compared)).tolist() == [everyone]
    # what is left of the weights is nobody's, and in some of these tables it is not zero
    assert max(left) > 0


def test_a_ratio_to_nothing() -> None:
    trail = eq.read(TABLE, label="y", prediction="p")
    claim = eq.ratio("accuracy", across="sex", target=eq.reference(sex="Female"))
    assert {row.disparity for row in eq.describe(trail, claim).rows} == {None}
