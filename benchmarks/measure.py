"""Measuring: a piece of Python in a process of its own, its CPU seconds, wall seconds and peak memory."""

import json
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from typing import Any

# What the set-up left in memory is frozen, on both sides alike: otherwise whether Python happens to
# walk through all imported modules while the clock runs decides a comparison of milliseconds.
_FRAME = """
import gc, json, resource, time
{setup}
gc.collect()
gc.freeze()
_wall, _cpu = time.perf_counter(), time.process_time()
{code}
_wall, _cpu = time.perf_counter() - _wall, time.process_time() - _cpu
_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print("MEASURED", json.dumps(dict(wall=_wall, cpu=_cpu, peak_mb=_peak, answer=str(globals().get("answer", "")))))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one run cost."""

    wall: float
    """Seconds on the clock."""
    cpu: float
    """Seconds of processor time, all threads."""
    peak_mb: float
    """Largest resident memory of the process, in megabytes."""
    answer: str
    """What the code left in ``answer``, to see that it did the work."""


def measure(
    code: str, setup: str = "", *, python: str = sys.executable, repeat: int = 3
) -> Measured:
    """Run ``code`` after ``setup`` in fresh processes, and keep the run with the least CPU time."""
    runs = [_once(code, setup, python) for _ in range(repeat)]
    return min(runs, key=lambda run: run.cpu)


def _once(code: str, setup: str, python: str) -> Measured:
    program = _FRAME.format(setup=textwrap.dedent(setup), code=textwrap.dedent(code))
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("MEASURED ")]
    if done.returncode or not lines:
        raise RuntimeError(
            f"a measured program ended with {done.returncode}:\n{program}\n{done.stdout[-500:]}\n{done.stderr[:2000]}"
        )
    return Measured(**json.loads(lines[-1].removeprefix("MEASURED ")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the results: what was measured, the figure, the aim, and whether it is met."""

    what: str
    figure: str
    aim: str
    met: bool

    def as_row(self) -> str:
        """The line as a row of a Markdown table."""
        return f"| {self.what} | {self.figure} | {self.aim} | {'yes' if self.met else '**no**'} |"


def at_most(what: str, value: float, limit: float, unit: str, detail: str = "") -> Line:
    """A figure that should not exceed ``limit``."""
    figure = f"{value:.3g} {unit}" + (f" ({detail})" if detail else "")
    aim = "none was set" if limit == float("inf") else f"≤ {limit:g} {unit}"
    return Line(what=what, figure=figure, aim=aim, met=value <= limit)


def at_least(what: str, value: float, limit: float, unit: str, detail: str = "") -> Line:
    """A figure that should reach ``limit``."""
    figure = f"{value:,.3g} {unit}" + (f" ({detail})" if detail else "")
    # A limit of zero is no aim: the figure is there to be known.
    aim = f"≥ {limit:g} {unit}" if limit else "–"
    return Line(what=what, figure=figure, aim=aim, met=value >= limit)


def machine() -> dict[str, Any]:
    """The machine and the versions a result belongs to."""
    import os
    import platform
    from importlib.metadata import version

    packages = ("numpy", "scipy", "narwhals", "duckdb", "polars")
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }
