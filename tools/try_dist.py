"""Install what `make dist` built into fresh environments, one for each extra, and use it.

    python tools/try_dist.py [FOLDER]

In each, the README's commands and its ten lines are run from an empty folder; what an extra brings
works with it, and without it the error names it. Prints how large each environment is, how many
distributions it holds, and what importing costs. Leaves with 1 if anything fails.
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
MOST = {"": 330, "report": 430}
"""Megabytes that an environment may have."""
MOST_DISTRIBUTIONS = {"": 20}

#: What needs an extra: a call, and the extra.
NEEDS = {
    "report": "eq.describe(trail, eq.gap('accuracy', across='race')).plot().to_dict()",
    "learn": "eq.discover(trail, 'accuracy', features=['race', 'sex'], rng=1)",
}


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
        uv = str(Path(sys.executable).with_name("uv"))
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, self.folder], check=True)
        wanted = f"equipoise[{extra}] @ {archive.as_uri()}" if extra else str(archive)
        into = [uv, "pip", "install", "--quiet", "--python", self.python, wanted]
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
    for needed, call in NEEDS.items():
        text = f"""
import equipoise as eq
trail = eq.datasets.compas()
try:
    {call}
except eq.OptionError as error:
    print(error)
"""
        said = made.run(folder, "-c", text)
        wanted = "" if extra in (needed, "all") else f"pip install 'equipoise[{needed}]'"
        if (wanted not in said) or (not wanted and said):
            raise SystemExit(f"{call} with the extra {extra!r}: {said}")


def main(arguments: Sequence[str]) -> int:
    """Try the wheel with every extra, and the source archive without."""
    built = Path(arguments[0] if arguments else ROOT / "dist").resolve()
    (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
    beyond = []
    for archive, extra in ((wheel, ""), (wheel, "report"), (wheel, "learn"), (source, "")):
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
                f"{called}: {size:.0f} MB, {number} distributions, import {float(taken):.2f} CPU s"
            )
            if size > MOST.get(extra, size) or number > MOST_DISTRIBUTIONS.get(extra, number):
                beyond.append(called)
    print(f"larger than meant: {', '.join(beyond)}" if beyond else "All are as small as meant.")
    return int(bool(beyond))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
