"""`joint_test` by scores: whether the largest of all groups' scores could be chance."""

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtri
from scipy.stats import binom

import equipoise as eq
from equipoise.findings import Verdict, from_json
from tests.unit.audits.table import make_table

TABLE = make_table(600)
ROLES: dict[str, Any] = {"label": "label", "prediction": "prediction", "score": "score"}
TRAIL = eq.read(TABLE, **ROLES)
ACROSS = eq.intersections("race", "sex")
CLAIM = eq.gap("accuracy", across=ACROSS)


@pytest.mark.parametrize("metric", ["accuracy", "absolute_error"])
@pytest.mark.parametrize("roles", [{}, {"weight": "weight"}, {"cluster": "site"}], ids=str)
def test_the_p_value_is_that_of_the_strictest_group(metric: str, roles: dict[str, str]) -> None:
    trail = eq.read(TABLE, **ROLES, **roles)
    claim = eq.gap(metric, across=ACROSS)
    found = eq.joint_test(trail, claim, rng=3)
    flags = eq.flag(trail, claim, control="max-t", rng=3)
    tested = [row for row in flags.rows if row.p is not None]
    assert found.p == pytest.approx(min(row.p_adjusted for row in tested if row.p_adjusted))
    assert found.tested == found.degrees == len(tested)
    smallest = min(row.p for row in tested if row.p is not None)
    assert found.statistic == pytest.approx(float(-ndtri(smallest / 2)))
    assert found.rejected == (found.p <= 0.05)


def test_intervals_are_the_bounds_of_certify() -> None:
    found = eq.joint_test(TRAIL, CLAIM, level=0.9, rng=3)
    bounds = eq.certify(TRAIL, CLAIM, level=0.9, rng=3)
    assert found.critical == bounds.critical
    for a, b in zip(found.rows, bounds.rows, strict=True):
        assert (a.lower, a.upper) == (b.lower, b.upper)
    none = eq.joint_test(TRAIL, CLAIM, intervals=False, rng=3)
    assert all(row.lower is None for row in none.rows)
    assert none.p == eq.joint_test(TRAIL, CLAIM, rng=3).p


def test_one_group_against_a_number_is_the_binomial_test() -> None:
    table = pl.DataFrame({"g": ["a"] * 40, "y": [1] * 28 + [0] * 12})
    claim = eq.gap("selection_rate", across="g", target=0.5)
    found = eq.joint_test(eq.read(table, prediction="y"), claim)
    assert found.p == pytest.approx(2 * float(binom.sf(27, 40, 0.5)))


def test_ratios_of_one_are_gaps_of_zero() -> None:
    gap, ratio = (
        eq.joint_test(TRAIL, kind("accuracy", across=ACROSS, target=eq.complement()), rng=1)
        for kind in (eq.gap, eq.ratio)
    )
    assert gap.p == pytest.approx(ratio.p, rel=0.02)
    assert gap.statistic == pytest.approx(ratio.statistic, rel=1e-4)


def test_other_disparities_than_none() -> None:
    there = {row.group: row.disparity or 0.0 for row in eq.describe(TRAIL, CLAIM).rows}
    found = eq.joint_test(TRAIL, CLAIM, at=there, rng=1)
    assert found.at == there
    assert found.p > 0.9
    far = eq.joint_test(TRAIL, CLAIM, at={"a": -0.5}, rng=1)
    assert (far.tested, far.rejected) == (1, True)
    assert "as tested is ruled out" in far.sentences()[0]
    assert [row.note for row in far.rows if row.group != "a"] == ["not part of the test"] * 10
    with pytest.raises(eq.OptionError, match="names no group"):
        eq.joint_test(TRAIL, CLAIM, at={})
    with pytest.raises(eq.OptionError, match="group"):
        eq.joint_test(TRAIL, CLAIM, at={"z": 0.1})


def test_nothing_to_test_rejects_nothing() -> None:
    table = pl.DataFrame({"g": ["a"] * 30, "y": [0, 1] * 15})
    alone = eq.joint_test(eq.read(table, prediction="y"), eq.gap("selection_rate", across="g"))
    assert (alone.p, alone.tested, alone.rejected) == (1.0, 0, False)
    assert alone.rows[0].note == "the group is its own target"
    json.dumps(json.loads(alone.to_json()), allow_nan=False)


def test_the_finding_reads_and_comes_back() -> None:
    found = eq.joint_test(TRAIL, CLAIM, rng=1)
    assert from_json(found.to_json()) == found
    said = " ".join(found.sentences())
    assert "Largest score" in said
    assert "likelihood" not in said.lower()
    assert "by the joint law of their scores" in said
    assert found.plot() is not None
    assert found.conclusion in (Verdict.UNDETERMINED, Verdict.EXCEEDED)
    with pytest.raises(eq.OptionError, match="keeps no joint region"):
        found.contains({"a": 0.0})


def test_the_joint_test_keeps_its_level() -> None:
    """No group differs, 300 worlds at 10 %: at most what has a chance of 1e-4."""
    rng, wrong = np.random.default_rng(4), 0
    for _ in range(300):
        group = rng.choice(["a", "b", "c", "d"], 120, p=[0.5, 0.3, 0.15, 0.05])
        table = pl.DataFrame({"g": group, "y": (rng.random(120) < 0.3).astype(int)})
        claim = eq.gap("selection_rate", across="g")
        found = eq.joint_test(
            eq.read(table, prediction="y"), claim, level=0.9, intervals=False, rng=1
        )
        wrong += found.rejected
    assert wrong <= binom.ppf(1 - 1e-4, 300, 0.1)
