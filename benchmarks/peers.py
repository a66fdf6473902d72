"""Other packages, each in a virtual environment of its own, made on first use."""

import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).parent / ".peers"
PACKAGES = {
    "fairaudit": ["fairaudit==0.0.1"],
    "fairlearn": ["fairlearn==0.15.0"],
}


def python_of(peer: str) -> str:
    """The interpreter of a peer's environment, installed from PyPI if it is not there yet."""
    place = HOME / peer
    python = place / "bin" / "python"
    done = place / ".installed"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([str(python), *quiet, *PACKAGES[peer]], check=True)
        done.touch()
    return str(python)
