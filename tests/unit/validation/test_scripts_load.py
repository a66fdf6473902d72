"""Every script of validation/ and benchmarks/ still finds what it imports from the package."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = [*sorted({p.parent for p in (ROOT / "validation").glob("*/*.py")}), ROOT / "benchmarks"]
PROGRAM = """
import importlib, sys
from pathlib import Path
folder = Path(sys.argv[1])
sys.path[:0] = [str(folder), str(folder.parent), str(folder.parents[1])]
for script in sorted(folder.glob("*.py")):
    importlib.import_module(script.stem)
"""


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_scripts_load(folder: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-800:]
