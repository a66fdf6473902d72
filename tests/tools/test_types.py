"""Types that check for the caller: mypy and pyright pass what is right and refuse what is wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

import equipoise as eq
from tests.types import right

ROOT = Path(__file__).resolve().parents[2]
FILES = [ROOT / "tests" / "types" / name for name in ("right.py", "wrong.py")]
MARK = "  # error"
Lines = dict[str, list[int]]


def marked() -> Lines:
    lines = {file.name: file.read_text(encoding="utf-8").splitlines() for file in FILES}
    return {
        name: [i for i, line in enumerate(found, start=1) if line.endswith(MARK)]
        for name, found in lines.items()
    }


def output(module: str, *arguments: str) -> str:
    """What a checker says; a fault of its own, rather than of the files, fails the test."""
    if find_spec(module) is None:
        pytest.skip(f"{module} IS MISSING, so nothing looks at the caller's types: make setup")
    command = [sys.executable, "-m", module, *arguments]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode in (0, 1), made.stdout + made.stderr
    return made.stdout


def in_order(found: set[tuple[str, int]]) -> Lines:
    return {file.name: sorted(i for name, i in found if name == file.name) for file in FILES}


def mypy(_: Path) -> Lines:
    said = output("mypy", "--no-error-summary", *(str(file) for file in FILES))
    found = re.findall(r"^(\S+?):(\d+): error:", said, flags=re.MULTILINE)
    return in_order({(Path(name).name, int(line)) for name, line in found})


def pyright(folder: Path) -> Lines:
    settings = folder / "pyrightconfig.json"
    chosen = {"include": [str(file) for file in FILES], "typeCheckingMode": "standard"}
    settings.write_text(json.dumps(chosen), encoding="utf-8")
    options = ("--project", str(settings), "--pythonpath", sys.executable, "--outputjson")
    found = json.loads(output("basedpyright", *options))["generalDiagnostics"]
    errors = [one for one in found if one["severity"] == "error"]
    return in_order({(Path(one["file"]).name, one["range"]["start"]["line"] + 1) for one in errors})


@pytest.mark.slow
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_checker_refuses_the_wrong_lines_and_no_other(
    checker: Callable[[Path], Lines], tmp_path: Path
) -> None:
    assert checker(tmp_path) == marked()


def test_what_is_right_runs(tmp_path: Path) -> None:
    asked = [*right.groups(), *right.targets(), *right.metrics()]
    assert all(isinstance(claim, eq.Claim) for claim in asked)
    opened = [*right.trails(tmp_path), *right.arrays()]
    assert all(isinstance(trail, eq.Trail) for trail in opened)
    found = [*right.findings(), *right.models()]
    assert all(isinstance(finding, eq.Finding) for finding in found)
    assert all("$schema" in text for text in right.charts())


WRONG = [
    line.strip().removesuffix(MARK)
    for line in FILES[1].read_text(encoding="utf-8").splitlines()
    if line.endswith(MARK) and line.strip().startswith("eq.")
]


@pytest.mark.parametrize("line", WRONG)
def test_what_is_wrong_is_refused_with_a_message(line: str) -> None:
    known = {"eq": eq, "trail": eq.datasets.compas(), "claim": eq.gap("accuracy", across="sex")}
    with pytest.raises(eq.EquipoiseError):
        eval(line, known)
