"""Every command, through the real entry point and from inside."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from equipoise.cli.main import execute
from equipoise.findings.evidence import Evidence
from equipoise.plan import Plan

COMMANDS = ("demo", "audit", "run", "check", "verify", "report", "explain", "plan")

PLAN = """
equipoise: 1
title: Decisions
seed: 7
trail: {source: decisions.csv, label: y, prediction: d}
audits:
  - audit: certify
    name: bounds
    claim: {kind: gap, metric: accuracy, across: [g]}
    tolerance: TOLERANCE
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(3)
    rows = 3000
    table = {
        "y": rng.integers(0, 2, rows),
        "d": rng.integers(0, 2, rows),
        "g": rng.choice(["a", "b"], rows),
    }
    pl.DataFrame(table).write_csv(tmp_path / "decisions.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _plan(folder: Path, tolerance: float) -> str:
    (folder / "audit.yaml").write_text(PLAN.replace("TOLERANCE", str(tolerance)))
    return "audit.yaml"


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def inside(*arguments: str) -> tuple[int, str, str]:
        code = execute(list(arguments))
        out, error = capsys.readouterr()
        return code, out, error

    return inside


def outside(*arguments: str) -> "subprocess.CompletedProcess[str]":
    script = Path(sys.executable).parent / "equipoise"
    start = [str(script)] if script.exists() else [sys.executable, "-m", "equipoise"]
    plain = {**os.environ, "COLUMNS": "80", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [*start, *arguments], capture_output=True, text=True, env=plain, check=False
    )


def test_from_a_csv_to_a_verified_report_by_the_real_script(folder: Path) -> None:
    init = outside("plan", "init", "decisions.csv", "--label", "y", "--prediction", "d")
    assert init.returncode == 0, init.stderr
    ran = outside("run", "audit.yaml")
    assert ran.returncode == 0, ran.stderr
    assert "wrote out/report.html" in ran.stdout
    assert ran.stderr == ""
    for finished in (
        outside("verify", "out/evidence.json", "--plan", "audit.yaml"),
        outside("report", "out/evidence.json", "--out", "again.html"),
        outside("explain", "out/evidence.json"),
        outside("plan", "check", "audit.yaml"),
        outside("plan", "schema"),
        outside(
            "audit",
            "decisions.csv",
            "--label",
            "y",
            "--prediction",
            "d",
            "--across",
            "g",
            "--out",
            "other",
        ),
        outside("--version"),
    ):
        assert finished.returncode == 0, finished.stderr
        assert finished.stdout
        assert finished.stderr == ""
    assert (folder / "again.html").read_text().startswith("<!doctype html>")
    assert outside("check", "audit.yaml").returncode in (0, 1, 2)
    hashed = outside("plan", "hash", "audit.yaml")
    assert hashed.stdout.strip() == Plan.load(folder / "audit.yaml").hash


def test_the_demo_by_the_real_script(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = outside("demo", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "in a browser" in done.stdout
    assert done.stderr == ""
    assert (out / "report.html").stat().st_size < 3_000_000
    assert outside("verify", str(out / "evidence.json")).returncode == 0


def test_mistakes_by_the_real_script_leave_no_traceback(folder: Path) -> None:
    for arguments in (["run", "nowhere.yaml"], ["frobnicate"], ["audit", "decisions.csv"]):
        failed = outside(*arguments)
        assert failed.returncode == 3
        assert "Traceback" not in failed.stderr
        assert failed.stderr
    assert sorted(os.listdir(folder)) == ["decisions.csv"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_reads_well(command: str, run: Run) -> None:
    code, out, _ = run(command, "--help")
    assert code == 0
    assert "Usage: equipoise" in out
    assert max(map(len, out.splitlines())) <= 200


@pytest.mark.parametrize(
    ("tolerance", "options", "code"),
    [
        (0.3, [], 0),
        (0.001, [], 2),
        (0.001, ["--undetermined", "pass"], 0),
        (0.001, ["--undetermined", "fail"], 1),
        (-1, [], 3),
        (0.3, ["--undetermined", "maybe"], 3),
        (0.3, ["--hash", "0" * 64], 3),
    ],
)
def test_the_gate(folder: Path, run: Run, tolerance: float, options: list[str], code: int) -> None:
    got, _, error = run("check", _plan(folder, tolerance), *options)
    assert got == code
    assert bool(error) == (code == 3)
    assert not (folder / "out").exists()


def test_a_violation_stops_the_gate(folder: Path, run: Run) -> None:
    table = pl.read_csv("decisions.csv")
    unfair = table.with_columns(d=pl.when(pl.col("g") == "a").then(pl.col("y")).otherwise("d"))
    unfair.write_csv("decisions.csv")
    code, out, _ = run("check", _plan(folder, 0.05), "--out", "kept")
    assert code == 1
    assert "violation" in out
    assert Evidence.load("kept/evidence.json").verdict == "exceeded"


def test_the_registered_hash_lets_the_plan_run(folder: Path, run: Run) -> None:
    name = _plan(folder, 0.3)
    known = Plan.load(name).hash
    assert run("run", name, "--hash", known[:12])[0] == 0
    code, _, error = run("run", name, "--hash", known[:4])
    assert code == 3
    assert "not the one that was registered" in error


def test_json_and_quiet(folder: Path, run: Run) -> None:
    name = _plan(folder, 0.3)
    code, out, _ = run("run", name, "--json")
    assert code == 0
    assert json.loads(out)["schema"] == "equipoise-evidence/1"
    assert run("run", name, "--quiet") == (0, "", "")


def test_tampering_fails_verification_and_names_the_number(folder: Path, run: Run) -> None:
    run("run", _plan(folder, 0.3), "--quiet")
    path = Path("out/evidence.json")
    data = json.loads(path.read_text())
    data["entries"][0]["finding"]["rows"][0]["n"] += 1
    path.write_text(json.dumps(data))
    code, out, _ = run("verify", str(path))
    assert code == 1
    assert "bounds / rows / a / n" in out
    code, _, error = run("report", str(path))
    assert code == 3
    assert "was changed after it was written" in error
    assert not Path("report.html").exists()


def test_verification_against_other_data_and_plan(folder: Path, run: Run) -> None:
    run("run", _plan(folder, 0.3), "--quiet")
    assert run("verify", "out/evidence.json", "--data", "decisions.csv")[0] == 0
    pl.read_csv("decisions.csv").head(2500).write_csv("other.csv")
    assert run("verify", "out/evidence.json", "--data", "other.csv")[0] == 1
    _plan(folder, 0.31)
    code, out, _ = run("verify", "out/evidence.json", "--plan", "audit.yaml")
    assert code == 1
    assert "plan" in out
    assert run("verify", "audit.yaml")[0] == 3


def test_init_does_not_overwrite(folder: Path, run: Run) -> None:
    name = _plan(folder, 0.3)
    code, _, error = run("plan", "init", "decisions.csv")
    assert code == 3
    assert "exists already" in error
    assert Plan.load(name).title == "Decisions"
    assert run("plan", "init", "decisions.csv", "--force")[0] == 0


def test_a_draft_guesses_and_says_so(folder: Path, run: Run) -> None:
    table = pl.read_csv("decisions.csv").rename({"y": "label", "d": "prediction"})
    table.with_columns(sex=pl.lit("x"), **{"odd: name #1": pl.col("g")}).write_csv("d.csv")
    assert run("plan", "init", "d.csv", "--out", "deep/plan.yaml")[0] == 0
    text = Path("deep/plan.yaml").read_text()
    assert "a guess by name" in text
    plan = Plan.parse(text)
    assert plan.trail.source == "../d.csv"
    claim = plan.audits[0].options()["claim"]
    assert "odd: name #1" in [dimension.name for dimension in claim.dimensions()]
    assert run("run", "deep/plan.yaml", "--quiet")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["audit", "nowhere.csv", "--prediction", "d", "--across", "g"], "No file or folder"),
        (["audit", "decisions.csv", "--across", "g"], "Name the columns"),
        (["audit", "decisions.csv", "--across", "g", "--label", "d"], "pass it by --prediction"),
        (["audit", "decisions.csv", "--prediction", "d", "--across", ","], "at least one attri"),
        (["audit", "decisions.csv", "--prediction", "dd", "--across", "g"], "Did you mean 'd'"),
        (["audit", "decisions.csv", "--prediction", "d", "--across", "q"], "attribute 'q'"),
        (
            ["audit", "decisions.csv", "--prediction", "d", "--across", "g", "--metric", "x"],
            "error: Metric 'x'",
        ),
        (
            ["audit", "decisions.csv", "--prediction", "d", "--across", "g", "--tolerance", "-1"],
            "'--tolerance'",
        ),
        (["explain", "nothing"], "neither an evidence file"),
        (["verify", "nowhere.json"], "no file"),
        (["report", "decisions.csv"], "not evidence"),
        (["run", "decisions.csv"], "no plan"),
    ],
)
def test_bad_input(folder: Path, run: Run, arguments: list[str], says: str) -> None:
    before = sorted(os.listdir(folder))
    code, _, error = run(*arguments)
    assert code == 3
    assert says in " ".join(error.split())
    assert sorted(os.listdir(folder)) == before


def test_terminal_codes_in_names_are_not_obeyed(folder: Path, run: Run) -> None:
    table = pl.read_csv("decisions.csv")
    evil = "\x1b[2J[red]evil[/red]" + "x" * 10_000
    table.with_columns(g=pl.when(pl.col("g") == "a").then(pl.lit(evil)).otherwise("g")).write_csv(
        "decisions.csv"
    )
    code, out, _ = run("run", _plan(folder, 0.3))
    assert code == 0
    assert "\x1b[2J" not in out
    assert "[red]evil" in out
    assert len(out) < 5000


def test_explain_knows_every_audit(run: Run) -> None:
    for verb in ("certify", "flag", "describe", "summarize", "individual", "joint_test"):
        code, out, _ = run("explain", verb)
        assert code == 0
        assert "When not to use it" in out


def test_errors_speak_of_options_and_of_plans(folder: Path, run: Run) -> None:
    rows = {"y": ["yes", "no"] * 20, "d": ["no", "yes"] * 20, "g": [*"aabb"] * 10}
    pl.DataFrame(rows).write_csv(folder / "decisions.csv")
    roles = ("--label", "y", "--prediction", "d")
    code, _, error = run("audit", "decisions.csv", "--across", "g", *roles)
    assert code == 3
    assert "Pass --positive … to say" in error
    code, _, error = run("check", _plan(folder, 0.1))
    assert code == 3
    assert "Write `positive: …` under `trail:` in the plan to say" in error
    assert "equipoise.read" not in error


@pytest.mark.parametrize("tolerance", [0.5, 0.0001])
def test_a_closed_pipe_does_not_change_the_exit_code(folder: Path, tolerance: float) -> None:
    command = [sys.executable, "-m", "equipoise", "check", _plan(folder, tolerance)]
    whole = subprocess.run(command, capture_output=True, check=False)
    assert whole.returncode in (0, 1, 2)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        cut = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert cut.returncode == whole.returncode
    assert not cut.stderr
