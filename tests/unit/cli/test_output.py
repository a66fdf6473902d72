"""What is printed never decides how a command leaves, and no fault leaves as a verdict."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from equipoise.cli import auditing
from equipoise.cli.main import execute

PLAN = """
equipoise: 1
title: "Prüfung ✓ 决定"
seed: 7
trail: {source: t.csv, label: y, prediction: p, missing: [unbekannt]}
audits:
  - audit: certify
    name: bounds ≤ ✓
    claim: {kind: gap, metric: accuracy, across: [größe]}
    tolerance: 0.9
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = "1,1,klein\n0,0,groß\n1,1,groß\n0,0,klein\n0,unbekannt,klein\n" * 200
    (tmp_path / "t.csv").write_bytes(("y,p,größe\n" + rows).encode("cp1252"))
    (tmp_path / "audit.yaml").write_text(PLAN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1"])
def test_a_log_that_cannot_hold_every_sign(folder: Path, encoding: str) -> None:
    plain = {**os.environ, "COLUMNS": "80", "TERM": "dumb", "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "equipoise", "check", "audit.yaml"]
    done = subprocess.run(command, capture_output=True, env=plain, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    said = done.stdout.decode(encoding)
    assert "? kept" in said
    assert "Traceback" not in said


def test_an_unforeseen_fault_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by nothing\nat all, postgres://me:hunter2@db/t")

    monkeypatch.setattr(auditing, "_perform_file", broken)
    assert execute(["check", "audit.yaml"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("error: ZeroDivisionError: by nothing at all, postgres://me:***@db/t (")
    assert (said.count("\n"), "--debug" in said) == (1, True)
    for words in (["--debug", "check", "audit.yaml"], ["check", "audit.yaml", "--debug"]):
        assert execute(words) == 3
        said = capsys.readouterr().err
        assert "Traceback (most recent call last)" in said
        assert "in broken\n" in said
        assert "hunter2" not in said


def test_debug_shows_where_a_mistake_was_found(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for debug in ([], ["--debug"]):
        assert execute(["check", "nowhere.yaml", *debug]) == 3
        assert ("Traceback" in capsys.readouterr().err) == bool(debug)


def test_encoding_by_option_and_in_a_plan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "init", "t.csv", "--label", "y", "--encoding", "cp1252", "--out", "new.yaml"]
    assert execute(words) == 0
    made = (folder / "new.yaml").read_text(encoding="utf-8")
    assert "  encoding: cp1252\n" in made
    words = ["audit", "t.csv", "--across", "größe", "--prediction", "y", "--encoding", "utf-16"]
    assert execute(words) == 3
    assert "not written in utf-16" in capsys.readouterr().err
    assert execute(["plan", "init", "t.csv", "--label", "y", "--out", "guessed.yaml"]) == 0
    assert "# t.csv is not UTF-8 and was read as cp1252." in (folder / "guessed.yaml").read_text(
        encoding="utf-8"
    )
