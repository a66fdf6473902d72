"""What an installation costs: size, distributions, and the time until it answers."""

import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from measure import Line, at_most
from peers import HOME, failed, python_of

ROOT = Path(__file__).parent.parent
#: Part of every new environment, whatever is installed in it.
_GIVEN = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence", "wheel")
_RUNS = 7
IMPORTS = {
    "fairaudit": "import fairaudit",
    "fairlearn": "import fairlearn.metrics",
    "aif360": "import aif360.datasets, aif360.metrics",
    "aequitas": "import aequitas",
    "vfairness": "import vfairness",
}


def run(folder: Path) -> list[Line]:
    """Install into fresh environments, weigh them, start them; then other packages alike."""
    place, report = fresh(folder), fresh(folder, "report")
    (mb, number), python = footprint(place), str(place / "bin" / "python")
    named = _best([python, "-c", "import equipoise"])
    empty = _best([python, "-c", "pass"])
    helped = _best([str(place / "bin" / "equipoise"), "--help"])
    own = named.cpu - empty.cpu
    return [
        at_most("pip install equipoise adds", mb, 330, "MB"),
        at_most("pip install equipoise adds", number, 20, "distributions"),
        at_most("pip install 'equipoise[report]' adds", footprint(report)[0], 430, "MB"),
        at_most(
            "import equipoise",
            own,
            0.5,
            "CPU s",
            f"{named.wall - empty.wall:.2f} s on the clock; best of {_RUNS}, less an empty program",
        ),
        at_most(
            "equipoise --help",
            helped.cpu,
            0.7,
            "CPU s",
            f"{helped.wall:.2f} s on the clock; best of {_RUNS}, from start to end",
        ),
        *(line for peer in IMPORTS for line in _beside(peer, mb, number, own, empty.cpu)),
    ]


def _beside(peer: str, mb: float, number: int, own: float, empty: float) -> list[Line]:
    try:
        python = python_of(peer)
        theirs = _best([python, "-c", IMPORTS[peer]]).cpu - empty
    except (RuntimeError, subprocess.CalledProcessError) as error:
        return [failed(f"size and import of {peer}", error)]
    their_mb, their_number = footprint(HOME / peer)
    size = f"{mb:.0f} MB against {their_mb:.0f} MB, {number} distributions against {their_number}"
    cost = f"{own:.2f} s against {theirs:.2f} s of CPU"
    return [
        at_most("installed size", mb / their_mb, 1, f"× {peer}", size),
        at_most("time to import", own / theirs, 1, f"× {peer}", cost),
    ]


def fresh(folder: Path, extra: str = "") -> Path:
    """A new environment with nothing but this package and what it depends on."""
    place = folder / f"fresh-{extra}"
    if not place.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        wanted = f"{ROOT}[{extra}]" if extra else str(ROOT)
        subprocess.run([str(place / "bin" / "python"), *quiet, wanted], check=True)
    return place


def footprint(place: Path) -> tuple[float, int]:
    """Megabytes on disk and distributions of an environment, without pip and setuptools."""
    (packages,) = place.glob("lib/python*/site-packages")
    named = [path.name.split("-")[0] for path in packages.glob("*.dist-info")]
    given = {path for name in _GIVEN for path in packages.glob(f"{name}*")}
    kept = (path for path in packages.iterdir() if path not in given)
    return sum(map(_size, kept)) / 1e6, len([name for name in named if name not in _GIVEN])


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.lstat().st_blocks * 512 for file in files if not file.is_dir())


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What starting a program cost."""

    cpu: float
    wall: float


def _best(command: list[str]) -> Start:
    # Each figure is the least of the runs: other work on the machine can only add to it.
    runs = [_start(command) for _ in range(_RUNS)]
    return Start(cpu=min(run.cpu for run in runs), wall=min(run.wall for run in runs))


def _start(command: list[str]) -> Start:
    before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - clock
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Start(cpu=cpu, wall=wall)
