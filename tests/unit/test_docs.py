"""Every Python block of the documentation runs, block after block in each page."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Pages may read and write files; they do so in a folder of their own.
    monkeypatch.chdir(tmp_path)
    write_decisions(tmp_path / "decisions.csv")
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        exec(compile(block, str(page), "exec"), names)


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
