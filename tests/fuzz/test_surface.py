"""The outside: reports with hostile names, and the command line with any arguments."""

import re
import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.cli.main import execute
from tests.fuzz import cases
from tests.fuzz.conftest import CASES
from tests.fuzz.outcome import check_finding, outcome
from tests.fuzz.tables import NAMES, WORDS, Rng, chance, pick

HOSTILE = (
    *(word for word in WORDS if word not in ("nan", "-inf")),
    "</script><script>alert(1)</script>",
    "<!-- <script>",
    "__proto__",
    "]]>&lt;b&gt;\u2028\u2029",
)


def test_reports(record_property: Any) -> None:
    record_property(CASES, cases.run("report", report_once))


def report_once(rng: Rng) -> None:
    rows = int(rng.integers(4, 30))
    column, other = pick(rng, [name for name in NAMES if name.strip()]), "other"
    table = pl.DataFrame(
        {
            "y": rng.integers(0, 2, rows),
            "p": rng.integers(0, 2, rows),
            column: [pick(rng, HOSTILE) for _ in range(rows)],
            other: [pick(rng, HOSTILE[:6]) for _ in range(rows)],
        }
    )
    title = pick(rng, HOSTILE)

    def make() -> Any:
        trail = eq.read(table, label="y", prediction="p")
        claim = eq.gap("accuracy", across=eq.intersections(column, other))
        found = pick(rng, (_described, _bounded, _flagged))(trail, claim)
        check_finding(found)
        return eq.report(found, title=title, suppress=pick(rng, (None, 2, 5)))

    page = outcome(make)
    if page is not None:
        assert "<script>alert(1)" not in page.html
        # the column may be called so; numbers may not
        shown = re.findall(r">\s*(nan|inf|-inf)\s*<", page.html)
        assert set(shown) <= {column}


def _described(trail: Any, claim: Any) -> Any:
    return eq.describe(trail, claim)


def _bounded(trail: Any, claim: Any) -> Any:
    return eq.certify(trail, claim, tolerance=0.1, resamples=20, rng=1)


def _flagged(trail: Any, claim: Any) -> Any:
    return eq.flag(trail, claim, rng=1)


PLAN = """\
equipoise: 1
seed: 7
trail: {source: table.csv, label: y, prediction: p}
audits:
  - audit: describe
    claim: {kind: gap, metric: accuracy, across: [g]}
"""
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("audit", "table.csv", "--label", "y", "--prediction", "p", "--across", "g", "--quiet"),
    ("audit", "table.csv", "--prediction", "p", "--across", "g", "--json"),
    ("run", "plan.yaml", "--quiet"),
    ("check", "plan.yaml", "--quiet"),
    ("check", "plan.yaml", "--undetermined", "pass", "--json"),
    ("verify", "out/evidence.json", "--quiet"),
    ("report", "out/evidence.json", "--quiet"),
    ("explain", "certify"),
    ("explain", "out/evidence.json"),
    ("plan", "init", "table.csv", "--force"),
    ("plan", "check", "plan.yaml"),
    ("plan", "hash", "plan.yaml"),
    ("plan", "schema"),
    ("--version",),
    ("--help",),
)
ARGUMENTS = (
    *("--level", "--fdr", "--seed", "--tolerance", "--metric", "--suppress", "--out", "--across"),
    *("--label", "--score", "--weight", "--count", "--cluster", "--positive", "--title", "--hash"),
    *("0.9", "-1", "nan", "1e400", "y", "p", "g", "g,h", "", "😀", "brier", "zz", "table.csv"),
    *(
        "empty.csv",
        "broken.yaml",
        "plan.yaml",
        ".",
        "nowhere",
        "--zz",
        "--json",
        "-h",
        "--",
        "\x00",
    ),
    *(
        "\x00",
        "10" * 60,
        "w" * 3000,
        "[bold]x[/bold]",
        "[/nothing]",
        "audit",
        "run",
        "plan",
        "--force",
    ),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    table = {"y": [0, 1] * 6, "p": [0, 1, 1] * 4, "g": ["a", "b"] * 6, "h": [1.5] * 12}
    pl.DataFrame(table).write_csv(tmp_path / "table.csv")
    (tmp_path / "empty.csv").touch()
    (tmp_path / "plan.yaml").write_text(PLAN)
    (tmp_path / "broken.yaml").write_bytes(b"equipoise: [\xff")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_command_lines(record_property: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["run", "plan.yaml", "--quiet"]) == 0
    done = 0

    def one(rng: Rng) -> None:
        nonlocal done
        arguments = list(pick(rng, COMMANDS))
        for _ in range(int(rng.integers(0, 3))):
            place, new = int(rng.integers(len(arguments) + 1)), pick(rng, ARGUMENTS)
            if chance(rng, 0.5):
                arguments.insert(place, new)
            else:
                arguments[place : place + 1] = [new]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            code = execute(arguments)
        out, error = capsys.readouterr()
        assert code in (0, 1, 2, 3), arguments
        assert "Traceback" not in out + error, arguments
        assert code != 3 or error.strip(), arguments
        assert not re.search(r"\b(NaN|Infinity)\b", out), arguments
        done += code != 3

    record_property(CASES, cases.run("command line", one))
    assert done > 0.1 * cases.number("command line"), done
