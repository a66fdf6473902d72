"""Sense: what no audit may say, whatever the table. Every 0/1 table of a few rows is tried."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.findings import Verdict
from equipoise.methods.inference.core import bounds
from equipoise.methods.inference.counts import CountPivot
from equipoise.methods.numerics import FloatArray
from equipoise.methods.targets import (
    Comparison,
    Complement,
    Constant,
    Overall,
    Reference,
    Status,
    Target,
    plain_moments,
)

# the verbs return one of several findings, which each test knows

TARGETS: dict[str, Any] = {
    "known": 0.5,
    "overall": eq.overall(),
    "complement": eq.complement(),
    "reference": eq.reference(g="a"),
    "four fifths": 0.8 * eq.reference(g="a"),
}
SELF = "the group is its own target"


def trail(*groups: tuple[str, list[int]]) -> eq.Trail:
    rows = [(name, value) for name, values in groups for value in values]
    names, values = zip(*rows, strict=True)
    return eq.read(pl.DataFrame({"g": list(names), "y": list(values)}), prediction="y")


def claim(kind: str, target: str) -> Any:
    made = eq.ratio if kind == "ratio" else eq.gap
    across = eq.masks(b="g == 'b'") if target == "four fifths" else "g"
    return made("selection_rate", across=across, target=TARGETS[target])


def sensible(bound: Any, flags: Any, certificates: Any) -> None:
    """What must hold of every finding about every table."""
    for row in bound.rows:
        if row.disparity is not None:
            assert row.lower is None or row.lower <= row.disparity, row
            assert row.upper is None or row.upper >= row.disparity, row
        if row.lower is None and row.upper is None:
            assert row.note, row
            assert row.verdict is not Verdict.KEPT, row
        if row.note == SELF:
            assert (row.lower, row.upper, row.verdict) == (None, None, None), row
    for row in flags.rows:
        assert (row.p is None) == (row.p_adjusted is None), row
        assert row.p is None or row.p <= row.p_adjusted <= 1, row
        if row.note == SELF:
            assert (row.p, row.flagged) == (None, False), row
    for row in certificates.rows:
        assert not (row.certified and row.note == SELF), row


# --- three rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("kind", ["gap", "ratio"])
def test_three_rows_show_no_violation(kind: str, target: str) -> None:
    """Rows (b, 0), (a, 1), (a, 0): nothing follows from them, whatever is asked."""
    rows = trail(("b", [0]), ("a", [1, 0]))
    asked = claim(kind, target)
    tolerance = 0.8 if kind == "ratio" else 0.1
    for level in (0.5, 0.9, 0.99):
        for side in ("both", "lower", "upper"):
            turned = {("gap", "lower"): -0.1, ("ratio", "upper"): 1.25}
            limit = turned.get((kind, side), tolerance)
            found = eq.certify(rows, asked, level=level, side=side, tolerance=limit, rng=1)
            if level > 0.5:
                assert found.verdict is not Verdict.EXCEEDED, found.sentences()
            for row in found.rows:
                assert row.lower is None or row.lower <= row.disparity, row
                assert row.upper is None or row.upper >= row.disparity, row
    assert not eq.flag(rows, asked, rng=1).flagged
    assert eq.joint_test(rows, asked, rng=1).silent


@pytest.mark.parametrize("kind", [eq.gap, eq.ratio])
def test_nobody_differs_from_four_fifths_of_themselves(kind: Any) -> None:
    """Every rate is 1.25 times four fifths of itself: that needs no row and shows nothing."""
    rows = trail(("b", [0, 1]), ("a", [1, 0]))
    asked = kind("selection_rate", across="g", target=0.8 * eq.reference(g="a"))
    found = eq.certify(rows, asked, tolerance=0.9 if kind is eq.ratio else 0.05, rng=1).ask(g="a")
    assert (found.lower, found.upper, found.verdict) == (None, None, None)
    tested = eq.flag(rows, asked, rng=1).ask(g="a")
    assert (tested.p, tested.flagged) == (None, False)


# --- all tables of up to four rows, by the verbs -------------------------------------------------


def small_tables(most: int) -> Iterator[tuple[list[int], list[int]]]:
    for n, m in itertools.product(range(1, most + 1), range(most + 1)):
        if n + m <= most:
            for k, j in itertools.product(range(n + 1), range(m + 1)):
                yield [1] * k + [0] * (n - k), [1] * j + [0] * (m - j)


@pytest.mark.slow
@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("kind", ["gap", "ratio"])
def test_every_table_of_up_to_four_rows_makes_sense(kind: str, target: str) -> None:
    asked, answered = claim(kind, target), 0
    tolerance = 0.7 if kind == "ratio" else 0.3
    for first, second in small_tables(4):
        if not second and target == "four fifths":
            continue
        rows = trail(("a", first), ("b", second)) if second else trail(("a", first))
        found = (
            eq.certify(rows, asked, tolerance=tolerance, resamples=60, rng=1),
            eq.flag(rows, asked, fdr=0.05, control="max-t", resamples=60, rng=1),
            eq.certify(
                rows, asked, tolerance=tolerance, method="certificates", resamples=60, rng=1
            ),
        )
        sensible(*found)
        # four rows are too few for a verdict at 90 %, or a flag at 5 %: 0 of 2 beside 2 of 2 has a
        # chance of up to 1/16 if the rates are equal, in either direction
        assert found[0].verdict is Verdict.UNDETERMINED
        assert not found[1].flagged
        assert not found[2].certified
        answered += any(row.lower is not None for row in found[0].rows)
    assert answered > 3


# --- all tables of up to six rows, side by side --------------------------------------------------


def stacked(most: int, empty: bool) -> tuple[FloatArray, FloatArray]:
    """Rows and ones of two groups in every table, shapes ``(2, tables)``."""
    made = [
        ((n, m), (k, j))
        for n, m in itertools.product(range(1, most), range(0 if empty else 1, most))
        if n + m <= most
        for k, j in itertools.product(range(n + 1), range(m + 1))
    ]
    rows, ones = (np.array(x, dtype=np.float64).T for x in zip(*made, strict=True))
    return rows, ones


def parts(target: Target, rows: FloatArray, ones: FloatArray) -> tuple[FloatArray, FloatArray]:
    if isinstance(target, Constant):
        return rows[:1], ones[:1]
    if isinstance(target, Reference):
        nobody = np.zeros_like(rows[:1])
        return tuple(np.concatenate([x[:1], nobody, x[1:]]) for x in (rows, ones))  # type: ignore[return-value]
    return rows, ones


@pytest.mark.parametrize("scale", [1.0, 0.8])
@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("target", [Constant, Overall, Complement, Reference])
def test_every_table_of_up_to_six_rows_has_bounds_around_its_estimate(
    target: Any, relative: bool, scale: float
) -> None:
    goals: dict[Any, Target] = {
        Constant: Constant(value=0.4, scale=scale),
        Overall: Overall(scale=scale),
        Complement: Complement(scale=scale),
        Reference: Reference(cells=np.zeros(0, dtype=bool), scale=scale),
    }
    goal = goals[target]
    rows, ones = parts(goal, *stacked(6, empty=True))
    found = Comparison(target=goal, relative=relative, parts=plain_moments(rows, ones, ones, ones))
    pivot = CountPivot(comparison=found, rows=rows, degrees=np.full(rows.shape[1], np.inf))
    chosen = np.flatnonzero(found.status == Status.OK)
    assert chosen.size > 100
    estimate = found.estimate[chosen]
    possible = (0.0, np.inf) if relative else (-1.0, 1.0)
    widths = []
    for critical in (0.0, 0.5, 1.2816, 1.96, 3.0, 6.0):
        low, high = bounds(pivot, chosen, critical, possible)
        assert bool((low <= estimate).all())
        assert bool((high >= estimate).all())
        widths.append(high - low)
        # the two tails cannot both be small, wherever they are taken
        for end in (low, high):
            inner = np.isfinite(end)
            up, down = pivot.tails(end[inner], chosen[inner])
            assert bool((up + down >= 1 - 1e-9).all())
    # from a level of 80 % on, more confidence never costs width (as closely as bounds are found)
    for narrow, wide in itertools.pairwise(widths[2:]):
        assert bool((wide >= narrow * (1 - 1e-3) - 1e-4).all())
    # nobody outside, and no ratio to nothing
    silent = set(found.status[found.status != Status.OK].tolist())
    assert silent <= {Status.NO_TARGET, Status.IDENTICAL, Status.ZERO_TARGET}


@pytest.mark.parametrize("target", [Overall, Complement])
def test_groups_are_interchangeable(target: Any) -> None:
    """Ones for zeros turns the gap around; nothing else about the answer may change."""
    rows, ones = stacked(6, empty=False)
    pivots = [
        CountPivot(
            comparison=Comparison(
                target=target(), relative=False, parts=plain_moments(rows, x, x, x)
            ),
            rows=rows,
            degrees=np.full(rows.shape[1], np.inf),
        )
        for x in (ones, rows - ones)
    ]
    every = np.arange(rows.shape[1])
    for delta in (-0.31, 0.0, 0.17):
        up, down = pivots[0].tails(np.full(every.size, delta), every)
        mirrored = pivots[1].tails(np.full(every.size, -delta), every)
        np.testing.assert_allclose(mirrored, (down, up), rtol=1e-5, atol=1e-7)


# --- limits that mean something ------------------------------------------------------------------


MANY = eq.read(
    pl.DataFrame(
        {
            "g": ["a"] * 400 + ["b"] * 400,
            "y": [1] * 200 + [0] * 200 + [1] * 60 + [0] * 340,
            "x": np.random.default_rng(1).normal(size=800),
        }
    ),
    prediction="y",
)


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        (eq.certify, {"tolerance": 10}),
        (eq.certify, {"tolerance": 10, "side": "upper"}),
        (eq.certify, {"tolerance": -10, "side": "lower"}),
        (eq.certify, {"tolerance": 10, "method": "certificates"}),
        (eq.flag, {"above": 10}),
        (eq.flag, {"below": -10}),
        (eq.flag, {"outside": (-10, 10)}),
    ],
)
def test_ten_is_not_ten_points(verb: Any, options: dict[str, Any]) -> None:
    asked = eq.gap("selection_rate", across="g")
    with pytest.raises(eq.OptionError, match=r"between -1 and 1.*10 points are 0\.1"):
        verb(MANY, asked, **options)
    # a metric without a range has no such limits
    real = eq.gap(eq.metric("x", "x"), across="g")
    assert verb(MANY, real, **options) is not None


def test_a_known_target_narrows_what_is_possible() -> None:
    asked = eq.gap("selection_rate", across="g", target=0.9)
    with pytest.raises(eq.OptionError, match=r"between -0\.9 and 0\.1"):
        eq.certify(MANY, asked, tolerance=0.5, side="upper")
    found = eq.certify(MANY, asked, tolerance=-0.6, side="lower", rng=1)
    assert found.ask(g="b").verdict is Verdict.EXCEEDED


def test_four_fifths_can_be_shown_not_to_be_kept() -> None:
    asked = eq.ratio("selection_rate", across="g", target=eq.reference(g="a"))
    found = eq.certify(MANY, asked, side="lower", tolerance=0.8, rng=1)
    row = found.ask(g="b")
    assert row.disparity == pytest.approx(0.3)
    assert row.upper is not None
    assert row.upper < 0.8
    assert row.verdict is Verdict.EXCEEDED
    assert found.verdict is Verdict.EXCEEDED
    assert found.ask(g="a").verdict is None
    assert "exceeded by 1" in found.sentences()[1]
    # and shown to be kept where it is
    turned = eq.ratio("selection_rate", across="g", target=eq.reference(g="b"))
    assert eq.certify(MANY, turned, side="lower", tolerance=0.8, rng=1).verdict is Verdict.KEPT
