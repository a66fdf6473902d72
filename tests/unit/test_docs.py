"""Every block of the documentation runs, one after the other in each page."""

import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from equipoise.cli.main import execute

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
TITLED = re.compile(r"yaml title=\"(.*)\"")
PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Pages may read and write files; they do so in a folder of their own.
    monkeypatch.chdir(tmp_path)
    write_decisions(tmp_path / "decisions.csv")
    names: dict[str, object] = {}
    for opening, block in BLOCK.findall(page.read_text()):
        if opening == "python":
            exec(compile(block, str(page), "exec"), names)
        elif opening == "console":
            run_commands(block)
        elif written := TITLED.fullmatch(opening):
            Path(written[1]).write_text(block)


def run_commands(block: str) -> None:
    """Run the lines that call the command line; each must do what it should."""
    for line in block.splitlines():
        if line.startswith("$ equipoise "):
            code = execute(shlex.split(line.removeprefix("$ equipoise ")))
            assert code in (0, 1, 2) if " check " in line else code == 0, line


def write_decisions(path: Path) -> None:
    """The table of decisions that the pages speak of."""
    rng = np.random.default_rng(1)
    n = 400
    outcome = rng.integers(0, 2, n)
    said = {name: np.where(rng.random(n) < 0.8, outcome, 1 - outcome) for name in ("old", "new")}
    frame = pl.DataFrame(
        {
            "race": rng.choice(["Green", "Blue", "Red"], n),
            "sex": rng.choice(["Female", "Male"], n),
            "age": rng.integers(18, 80, n),
            "outcome": outcome,
            "old_says": said["old"],
            "new_says": said["new"],
        }
    )
    frame.write_csv(path)


def test_there_are_pages() -> None:
    assert PAGES
