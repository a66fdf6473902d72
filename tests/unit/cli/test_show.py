"""What the terminal prints of a finding: little, but what matters most."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.cli.common import show_evidence, show_finding
from equipoise.findings import Evidence


def test_bounds_name_the_furthest_group_on_either_side(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rng = np.random.default_rng(5)
    town = rng.choice(["high", "low", "other"], 6000)
    rate = np.select([town == "high", town == "low"], [0.6, 0.2], 0.4)
    data = pl.DataFrame({"town": town, "y": (rng.random(6000) < rate).astype(int)})
    claim = eq.gap("selection_rate", across="town")
    bounds = eq.certify(eq.read(data, prediction="y"), claim, tolerance=0.1, rng=1)
    show_evidence(Evidence.of(bounds))
    out = " ".join(capsys.readouterr().out.split())
    assert "Most surely above: town: high" in out
    assert "Most surely below: town: low" in out


def test_a_table_of_many_numbers_keeps_the_names_of_groups(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    claim = eq.gap("accuracy", across="race", target=eq.reference(race="Caucasian"))
    found = eq.power(eq.datasets.compas(), claim, tolerance=0.1, disparity=0.2, budget=3000, rng=1)
    show_finding(found)
    out = capsys.readouterr().out
    assert "Hispanic" in out
    said = " ".join(out.split())
    assert "1 group is not planned for (the group is its own target): Caucasian." in said


def test_a_change_of_rates_is_told_in_points() -> None:
    rows = pl.DataFrame(
        {"g": ["a", "b"] * 100, "y": [1, 0] * 100, "old": [1, 0] * 100, "new": [1, 1] * 100}
    )
    change = eq.change("accuracy", before="old", after="new")
    trail = eq.read(rows, label="y", attributes=["g"])
    described = eq.describe(trail, eq.gap(change, across="g"))
    assert described.sentences()[0].startswith("The change in accuracy is -50.0 points")
    assert "-100.0 points" in " ".join(described.sentences())
    flags = eq.flag(trail, eq.gap(change, across="g"), below=0.0, rng=1)
    assert flags.sentences()[1].startswith("b: -100.0 points (n = 100, adjusted p ")
    assert "%" not in flags.headline()


def test_the_reference_is_not_unknown_and_no_p_value_is_zero() -> None:
    rows = pl.DataFrame({"g": ["a"] * 4000 + ["b"] * 4000, "d": [1] * 4000 + [0] * 4000})
    claim = eq.gap("selection_rate", across="g", target=eq.reference(g="a"))
    found = eq.flag(eq.read(rows, prediction="d"), claim, rng=1)
    said = " ".join((*found.sentences(), found.headline()))
    assert "nothing is known" not in said
    assert "adjusted p = 0)" not in said
    assert "p < 1e-300" in said


def test_nothing_is_promised_of_groups_without_a_bound() -> None:
    rows = pl.DataFrame({"g": [f"p{i}" for i in range(30)], "d": [i / 7 for i in range(30)]})
    claim = eq.gap(eq.metric("d", "d"), across="g")
    found = eq.certify(eq.read(rows), claim, rng=1)
    assert found.sentences()[0] == "There is no bound for any of 30 groups."
