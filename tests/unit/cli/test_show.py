"""What the terminal prints of a finding: little, but what matters most."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.cli.show import show_evidence
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
    assert "Furthest above: town: high" in out
    assert "Furthest below: town: low" in out
