"""Make the pictures of the documentation again, by running the pages that show them.

    python tools/pictures.py [PAGE ...]

A page saves a chart under the name of a picture it shows: `flags.plot().save("compas-flags.svg")`.
Its code is run in a folder of its own and the files are kept in docs/pictures. Seeds are fixed, so
pictures change only when charts or pages do. Pictures of reports are taken by tools/screenshots.py.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import equipoise as eq

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LARGEST = 120_000
PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"!\[[^\]]*\]\([^)]*pictures/([^)]+)\)")
SAVED = re.compile(r"""\.save\(\s*["']([\w-]+\.(?:svg|png))["']\s*\)""")


def pictures_shown(page: Path) -> list[str]:
    """Names of the pictures a page shows.

    >>> pictures_shown(DOCS / "how-to" / "read-a-report.md")[0]
    'report-light.png'
    """
    return SHOWN.findall(page.read_text(encoding="utf-8"))


def pictures_made(page: Path) -> list[str]:
    """Names of the pictures that the code of a page saves."""
    return [name for block in code_of(page) for name in SAVED.findall(block)]


def code_of(page: Path) -> list[str]:
    """The Python blocks of a page, in order."""
    return PYTHON.findall(page.read_text(encoding="utf-8"))


def make(page: Path, keep: Path) -> list[Path]:
    """Run a page and keep the pictures it makes."""
    with empty_folder() as folder:
        eq.datasets.write_decisions(folder / "decisions.csv")
        names: dict[str, object] = {}
        for block in code_of(page):
            exec(compile(block, str(page), "exec"), names)
        made = [name for name in pictures_made(page) if (folder / name).exists()]
        return [Path(shutil.copy(folder / name, keep / name)) for name in made]


@contextmanager
def empty_folder() -> Iterator[Path]:
    """Work in a folder that is thrown away afterwards."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


def main(arguments: list[str]) -> int:
    """Make the pictures; the exit code says whether all are small enough to keep."""
    pages = [Path(name).resolve() for name in arguments] or sorted(DOCS.rglob("*.md"))
    keep = DOCS / "pictures"
    files = [file for page in pages if pictures_made(page) for file in make(page, keep)]
    for file in files:
        print(f"{file.name}: {file.stat().st_size:,} bytes", file=sys.stderr)
    return int(any(file.stat().st_size > LARGEST for file in files))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
