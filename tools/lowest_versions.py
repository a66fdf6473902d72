"""Install the oldest versions that `pyproject.toml` allows, ask the same questions, and compare.

    python tools/lowest_versions.py [--keep FOLDER]

Both recordings are those of `same_answers.py`: the demo, the documented plans and 200 random
audits. Every verdict, sentence and error must be the same, and every number agree within
`PRECISION` of the larger of itself and one. Leaves with 1 otherwise. What is counted and summed
agrees far better; models fitted by scikit-learn stop at another step in another version.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PRECISION, CLOSE = 1e-6, 1e-9
EXTRAS = "arrow,bench,excel,sign"
NOT_ANSWERS = {"versions", "created", "fingerprint"}
"""Entries that tell of the machine, not of the table."""


def main(arguments: Sequence[str]) -> int:
    """Record with both sets of versions, and print what differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--keep", type=Path, help="leave both recordings in this folder")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as made:
        folder = given.keep or Path(made)
        oldest = install(Path(made) / "environment")
        for python, name in ((sys.executable, "today"), (str(oldest), "oldest")):
            record = [python, str(ROOT / "tools" / "same_answers.py"), "record"]
            subprocess.run([*record, str(folder / name)], check=True, stdout=subprocess.DEVNULL)
        return report(folder / "today", folder / "oldest")


def install(folder: Path) -> Path:
    """A new environment with the lowest version of every direct dependency."""
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    python = folder / "bin" / "python"
    into = ["--quiet", "--python", str(python)]
    lowest = [*into, "--resolution", "lowest-direct", "--editable", f"{ROOT}[{EXTRAS}]"]
    subprocess.run([uv, "pip", "install", *lowest], check=True)
    shown = subprocess.run([uv, "pip", "freeze", *into], check=True, capture_output=True)
    lines = [line for line in shown.stdout.decode().splitlines() if "==" in line]
    print(f"{len(lines)} distributions: {', '.join(lines)}")
    return python


def report(today: Path, oldest: Path) -> int:
    """Print the largest difference of two numbers, and everything else that differs."""
    names = sorted({path.name for folder in (today, oldest) for path in folder.glob("*.json")})
    largest, others = dict.fromkeys(names, 0.0), []
    for name in names:
        one, two = (read(folder / name) for folder in (today, oldest))
        for path, gap in differences(one, two, name):
            if gap is None or gap > PRECISION:
                others.append(f"{path}: {'not the same' if gap is None else f'{gap:.1e} apart'}")
            else:
                largest[name] = max(largest[name], gap)
    close = [gap for gap in largest.values() if gap <= CLOSE]
    print(f"{len(names)} answers: {len(close)} within {max(close, default=0):.1e}, ", end="")
    print(f"all within {max(largest.values(), default=0):.1e} (stated: {PRECISION:.0e})")
    print("\n".join(others) or "Every verdict, sentence and error is the same.")
    return int(bool(others) or not names)


def read(path: Path) -> Any:
    """A recorded answer, or None if there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def differences(one: Any, two: Any, path: str) -> Iterator[tuple[str, float | None]]:
    """Places that differ, with the distance of two numbers there, relative where over one.

    >>> list(differences({"p": 2.0, "n": 1}, {"p": 2.5, "n": "1"}, "x"))
    [('x.p', 0.2), ('x.n', None)]
    """
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        for key in dict.fromkeys([*one, *two]):
            if key not in NOT_ANSWERS:
                yield from differences(one.get(key), two.get(key), f"{path}.{key}")
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for i, (first, second) in enumerate(zip(one, two, strict=True)):
            yield from differences(first, second, f"{path}.{i}")
    elif isinstance(one, float) and isinstance(two, int | float) and math.isfinite(one):
        if one != two:
            yield path, abs(one - two) / max(abs(one), abs(two), 1.0)
    elif repr(one) != repr(two):
        yield path, None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
