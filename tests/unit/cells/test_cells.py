"""Cells: what they say about themselves."""

import dataclasses

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.cells import gather
from equipoise.cells.levels import encode, sort_levels

TABLE = pl.DataFrame(
    {"y": [1, 0, 1, 0], "p": [1, 1, 0, 0], "g": ["a", "b", "a", None], "s": [0.1, 0.7, 0.2, 0.9]}
)
TRAIL = eq.read(TABLE, label="y", prediction="p", score="s")


def test_fingerprint_tells_things_apart() -> None:
    (cells,) = gather(TRAIL, [eq.gap("residual", across="g")])
    print_ = cells.fingerprint()
    (axis,) = cells.axes
    assert len(print_) == 64
    changed = [
        dataclasses.replace(cells, total=cells.total + 0.01),
        dataclasses.replace(cells, square=cells.square * 1.001),
        dataclasses.replace(cells, rows=cells.rows + 1),
        dataclasses.replace(cells, present=cells.present + 1),
        dataclasses.replace(cells, scanned=5),
        dataclasses.replace(cells, excluded={"missing label": 1}),
        dataclasses.replace(cells, metric=eq.accuracy),
        dataclasses.replace(cells, axes=(dataclasses.replace(axis, levels=("a", "c", None)),)),
        dataclasses.replace(cells, axes=(dataclasses.replace(axis, levels=("a", "b", "None")),)),
    ]
    assert len({print_, *(other.fingerprint() for other in changed)}) == len(changed) + 1


def test_fingerprint_does_not_see_rounding() -> None:
    (cells,) = gather(TRAIL, [eq.gap("residual", across="g")])
    rng = np.random.default_rng(5)
    for _ in range(200):
        noise = 1 + 1e-15 * rng.standard_normal(3)
        cancelled = dataclasses.replace(cells, total=np.array([0.3, 1e-17 * noise[0], -1e-17]))
        plain = dataclasses.replace(cells, total=np.array([0.3, 0.0, 0.0]))
        assert cancelled.fingerprint() == plain.fingerprint()
        assert (
            dataclasses.replace(cells, square=cells.square * noise).fingerprint()
            == cells.fingerprint()
        )


def test_a_metric_of_zero_and_one_is_noticed() -> None:
    for metric, wanted in (
        ("accuracy", True),
        (eq.metric("high", "score > 0.5", where="label == 1 or g == 'b'"), True),
        (eq.metric("number", "label", where="score > 0.5"), True),
        ("brier", False),
        (eq.accuracy.clip(0, 0.5), False),
    ):
        for source in (TABLE, TABLE.to_pandas(), TABLE.to_arrow()):
            trail = eq.read(source, label="y", prediction="p", score="s")
            (cells,) = gather(trail, [eq.gap(metric, across="g")])
            assert cells.zero_one == wanted


def test_levels_in_order() -> None:
    assert sort_levels({3, 1.5, None, True}, "a") == (True, 1.5, 3, None)
    levels, codes = encode(np.array(["b", None, "a", "b"], dtype=object), "g", "")
    assert (levels, codes.tolist()) == (("a", "b", None), [1, 2, 0, 1])
    with pytest.raises(eq.ClaimError, match="mixes text and numbers"):
        sort_levels({"a", 1}, "g")


def test_gather_wants_a_trail() -> None:
    with pytest.raises(eq.TrailError, match=r"Expected a trail.*got str"):
        eq.describe("decisions.csv", eq.gap("accuracy", across="g"))  # type: ignore[arg-type]


def test_two_grids_of_one_attribute_are_kept_apart() -> None:
    trail = eq.read(pl.DataFrame({"y": [0, 1] * 50, "a": range(100)}), label="y")
    metric = eq.metric("mine", "label")
    coarse, fine = (eq.gap(metric, across=eq.intervals("a", grid=g)) for g in (2, 4))
    found = gather(trail, [coarse, fine])
    from equipoise.cells import form_groups

    assert [
        len(form_groups(c.across, cells)) for c, cells in zip((coarse, fine), found, strict=True)
    ] == [3, 10]
