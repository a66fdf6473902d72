"""Groups are found however the user names them."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.findings.finding import find_row


def test_ends_of_a_range_are_found_but_for_rounding() -> None:
    rng = np.random.default_rng(2)
    table = pl.DataFrame({"x": rng.random(500), "d": rng.integers(0, 2, 500)})
    edges = np.linspace(0, 1, 11).tolist()
    claim = eq.gap("selection_rate", across=eq.intervals("x", edges=edges))
    found = eq.certify(eq.read(table, prediction="d"), claim, rng=1)
    assert 0.6 not in edges  # it is 0.6000000000000001
    row = found.ask(x=(0.0, 0.6))
    assert row.where["x"] == {"from": edges[0], "below": edges[6]}


def test_ends_that_are_not_on_the_grid_are_refused_not_rounded() -> None:
    edges = [0.0, 0.25, 0.5, 0.75, 1.0]
    rows = [
        SimpleNamespace(group=f"{a} to {b}", where={"x": {"from": a, "below": b}})
        for i, a in enumerate(edges)
        for b in edges[i + 1 :]
    ]
    assert find_row(rows, None, {"x": (0.25, 0.75)}).group == "0.25 to 0.75"
    for near in ((0.25, 0.7501), (0.2499, 0.75)):
        with pytest.raises(eq.ClaimError, match="lie on a grid"):
            find_row(rows, None, {"x": near})
    with pytest.raises(eq.ClaimError, match="No range of x lies in"):
        find_row(rows, None, {"x": (0.3, 0.4)})


def test_between_data_points_the_widest_run_inside_is_meant() -> None:
    points = [20, 30, 41, 50]
    rows = [
        SimpleNamespace(group=f"{a} to {b}", where={"age": {"from": a, "to": b}})
        for i, a in enumerate(points)
        for b in points[i:]
    ]
    assert find_row(rows, None, {"age": (25, 45)}).group == "30 to 41"
    assert find_row(rows, None, {"age": (30, 41)}).group == "30 to 41"


def test_truth_values_are_not_numbers() -> None:
    rows = [SimpleNamespace(group=str(value), where={"a": value}) for value in (1, True, 0, False)]
    for value in (1, True, 0, False):
        assert find_row(rows, {"a": value}, {}).group == str(value)


def test_names_that_do_not_exist_are_said_to() -> None:
    rows = [SimpleNamespace(group="a", where={"race": "a"})]
    for group, where, says in (
        ("b", {}, "There is no group 'b' in this collection of 1"),
        (None, {"rase": "a"}, r"'rase' is no attribute of this audit. Did you mean 'race'"),
        (None, {"race": "b"}, "No such group has race 'b'. There is: 'a'"),
        (None, {}, "No group of this collection is formed by none together"),
    ):
        with pytest.raises(eq.ClaimError, match=says):
            find_row(rows, group, where)
