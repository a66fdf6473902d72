"""`equipoise power` and `equipoise plan power`: a table, a guess, a plan."""

import json
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.cli.main import execute

ROLES = ("--label", "outcome", "--prediction", "new_says")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    eq.datasets.write_decisions(tmp_path / "decisions.csv")
    (tmp_path / "sizes.csv").write_text("sex,n,rate\nf,300,0.3\nm,3000,0.3\n")
    return tmp_path


def test_a_table_is_planned_as_in_python(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--across", "sex", "--metric", "selection_rate", "--tolerance", "0.1")
    assert execute(["power", "decisions.csv", *ROLES, *asked, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    claim = eq.gap("selection_rate", across="sex")
    trail = eq.read("decisions.csv", label="outcome", prediction="new_says")
    assert eq.findings.from_dict(found).rows == eq.power(trail, claim, tolerance=0.1, rng=7).rows
    assert execute(["power", "decisions.csv", *ROLES, *asked]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "With 80 % power these rows flag" in said
    assert "Monte-Carlo error" in said


def test_a_guess_is_a_table_with_n_and_rate(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    guess = ["power", "sizes.csv", "--n", "n", "--rate", "rate", "--across", "sex"]
    asked = ["--reference", "sex=m", "--harm", "low", "--disparity", "-0.05", "--json"]
    assert execute([*guess, *asked]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert 350 < found["rows"][0]["rows_to_flag"] < 450
    assert execute([*guess, "--label", "sex"]) == 3
    assert execute(guess[:4] + guess[6:]) == 3
    assert execute(["power", "decisions.csv", "--across", "sex"]) == 3
    assert "--prediction" in capsys.readouterr().err


def test_a_plan_is_planned_with_its_rows_or_a_guess(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("audit.yaml").write_text(
        """
equipoise: 1
seed: 7
trail: {source: decisions.csv, label: outcome, prediction: new_says}
audits:
  - audit: flag
    claim: {kind: gap, metric: selection_rate, across: [sex]}
    above: 0.05
  - audit: certify
    claim: {kind: gap, metric: selection_rate, across: [sex]}
    tolerance: 0.1
  - audit: describe
    claim: {kind: gap, metric: selection_rate, across: [sex]}
"""
    )
    assert execute(["plan", "power", "audit.yaml", "--disparity", "0.2", "--json"]) == 0
    flags, bounds = json.loads(capsys.readouterr().out)
    assert flags["limits"] == [0.05]
    assert flags["stated"] == 0.2
    assert bounds["tolerance"] == 0.1
    assert bounds["rows"][0]["rows_to_show"] > 0
    guess = ["plan", "power", "audit.yaml", "--guess", "sizes.csv", "--json"]
    assert execute(guess) == 0
    flags, _ = json.loads(capsys.readouterr().out)
    assert [row["n"] for row in flags["rows"]] == [300, 3000]
    assert execute(["plan", "power", "audit.yaml"]) == 0
    assert "selection rate more than 5.0 points above" in " ".join(capsys.readouterr().out.split())
    assert execute(["plan", "power", "audit.yaml", "--disparity", "0.01"]) == 3
    assert "not beyond the limit" in capsys.readouterr().err
