"""Groups are found however the user names them."""

import numpy as np
import polars as pl

import equipoise as eq


def test_ends_of_a_range_are_found_but_for_rounding() -> None:
    rng = np.random.default_rng(2)
    table = pl.DataFrame({"x": rng.random(500), "d": rng.integers(0, 2, 500)})
    edges = np.linspace(0, 1, 11).tolist()
    claim = eq.gap("selection_rate", across=eq.intervals("x", edges=edges))
    found = eq.certify(eq.read(table, prediction="d"), claim, rng=1)
    assert 0.6 not in edges  # it is 0.6000000000000001
    row = found.ask(x=(0.0, 0.6))
    assert row.where["x"] == {"from": edges[0], "below": edges[6]}
