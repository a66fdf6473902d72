"""Install the project under other versions of Python, where they are there, and use it.

    python tools/other_pythons.py 3.12 3.13

In each, the commands of the README are run from an empty folder. A version that is not installed is
skipped, and said so. Leaves with 1 if anything fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = (
    ["equipoise", "example"],
    ["equipoise", "audit", "decisions.csv", "--label", "outcome", "--prediction", "new_says",
     "--across", "race,sex", "--quiet"],
    ["equipoise", "verify", "out/evidence.json"],
)  # fmt: skip


def main(versions: Sequence[str]) -> int:
    """Try every version; the exit code says whether all that are there work."""
    failed = 0
    for version in versions:
        python = interpreter(version)
        if python is None:
            print(f"SKIPPED: Python {version} is not here, so nothing is known of it", flush=True)
            continue
        with tempfile.TemporaryDirectory() as place:
            said = attempt(python, Path(place))
        failed += said is not None
        print(f"Python {version}: {'works' if said is None else said}", flush=True)
    return int(failed > 0)


def interpreter(version: str) -> str | None:
    """A Python of this version: on the path, or among those that pyenv keeps."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places = [shutil.which(f"python{version}"), *kept.glob(f"{version}.*/bin/python{version}")]
    for found in places:
        # managers of versions leave names behind that lead nowhere, so each is asked who it is
        ask = [str(found), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        if found is not None:
            done = subprocess.run(ask, capture_output=True, text=True, check=False)
            if done.stdout.strip() == version:
                return str(found)
    return None


def attempt(python: str, place: Path) -> str | None:
    """What went wrong, if anything did."""
    home, folder = place / "home", place / "work"
    folder.mkdir()
    uv = str(Path(sys.executable).with_name("uv"))
    steps: list[list[str]] = [
        [uv, "venv", "--quiet", "--python", python, str(home)],
        [uv, "pip", "install", "--quiet", "--python", str(home / "bin" / "python"), str(ROOT)],
        *([str(home / "bin" / words[0]), *words[1:]] for words in COMMANDS),
    ]
    for step in steps:
        done = subprocess.run(step, cwd=folder, capture_output=True, text=True, check=False)
        # an audit of the example is undetermined, which is an answer
        if done.returncode not in ((0, 2) if "audit" in step else (0,)):
            return f"{' '.join(step[:3])} left with {done.returncode}: {done.stderr[-400:]}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
