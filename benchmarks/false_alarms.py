"""False alarms: worlds in which nothing is wrong, and how often each package reports a group.

Forty overlapping groups of race, sex and age, all with the same rate of 0.3, the smallest of about
three rows. All packages see the same worlds. The table is also written to false_alarms.md.
"""

import json
import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from false_alarm_rules import ASK, TOOLS, WORLD, Tool
from measure import Line
from peers import PACKAGES, last_line, python_of

from equipoise import __version__
from equipoise.worlds import null_world, planted

HERE = Path(__file__).parent
SIZES = (500, 2_000, 10_000)
NOMINAL = 0.05
LARGER = 30
SEED = 20_260
_ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TQDM_DISABLE": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one rule did at one number of rows."""

    share: float | None
    """Share of worlds with at least one group reported; None when it could not be run."""
    larger: float | None
    """The same, counting only groups of thirty rows or more."""
    worlds: int
    cpu: float
    """CPU seconds for all rules of the program."""
    error: str = ""


def run(folder: Path) -> list[Line]:
    """Ask every package about every world; write the table; one line per rule."""
    for n in SIZES:
        _draw(n, folder)
    outcomes = {(i, n): _ask(tool, n, folder) for i, tool in enumerate(TOOLS) for n in SIZES}
    power = ", ".join(f"{100 * share:.3g} % at n = {n:,}" for n, share in _power(folder).items())
    (HERE / "false_alarms.md").write_text(_page(outcomes, power))
    lines = [
        _line(tool, rule, {n: outcomes[i, n][rule] for n in SIZES})
        for i, tool in enumerate(TOOLS)
        for rule in tool.rules
    ]
    found = "`eq.flag`, 10 points planted in race C: race C is flagged"
    return [*lines, Line(what=found, figure=power, aim="–", met=True)]


def _draw(n: int, folder: Path) -> None:
    null = null_world(rate=0.3, smallest=3 / n)
    for name, world in (("worlds", null), ("planted", planted(null, {"race": "C"}, 0.1))):
        rng = np.random.default_rng([SEED, n])
        drawn = [world.draw(n, rng) for _ in range(max(tool.worlds[n] for tool in TOOLS))]
        rows, ones = (np.stack(part) for part in zip(*drawn, strict=True))
        np.savez(folder / f"{name}-{n}.npz", index=world.index, rows=rows, ones=ones)


def _power(folder: Path) -> dict[int, float]:
    """How often our flags find ten points planted in race C, with the same settings."""
    ours = next(tool for tool in TOOLS if not tool.peer)
    asked = {n: _found(ours, str(folder / f"planted-{n}.npz"), ours.worlds[n]) for n in SIZES}
    return {n: _at_least(found["race_c"], 1) for n, found in asked.items()}


def _ask(tool: Tool, n: int, folder: Path) -> dict[str, Outcome]:
    worlds, before = tool.worlds[n], _children()
    try:
        found = _found(tool, str(folder / f"worlds-{n}.npz"), worlds)
    except RuntimeError as error:
        print(f"COULD NOT RUN {tool.name} at n = {n}: {error}", file=sys.stderr)
        lost = Outcome(share=None, larger=None, worlds=0, cpu=0, error=last_line(str(error)))
        return dict.fromkeys(tool.rules, lost)
    cpu = _children() - before
    print(f"  {tool.name}, n = {n:,}: {worlds} worlds, {cpu:.0f} CPU s", file=sys.stderr)
    return {
        rule: Outcome(
            share=_at_least(found[rule], 1),
            larger=_at_least(found[rule], LARGER),
            worlds=worlds,
            cpu=cpu,
        )
        for rule in tool.rules
    }


def _at_least(largest: list[int], rows: int) -> float:
    return sum(size >= rows for size in largest) / len(largest)


def _found(tool: Tool, path: str, worlds: int) -> dict[str, list[int]]:
    python = python_of(tool.peer) if tool.peer else sys.executable
    program = WORLD.format(path=path) + tool.program + ASK.format(worlds=worlds)
    done = subprocess.run(
        [python, "-c", program], capture_output=True, text=True, check=False, env=_ENVIRONMENT
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    if done.returncode or not lines:
        raise RuntimeError(done.stderr[-4000:] or f"ended with {done.returncode}")
    answer: dict[str, list[int]] = json.loads(lines[-1].removeprefix("FOUND "))
    return answer


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _line(tool: Tool, rule: str, by_size: dict[int, Outcome]) -> Line:
    what = f"{_title(tool)}: {tool.rules[rule][0]}"
    figure = ", ".join(f"{_share(one)} at n = {n:,}" for n, one in by_size.items())
    ran = all(one.share is not None for one in by_size.values())
    if tool.peer:
        return Line(what=what, figure=figure, aim="–", met=ran)
    kept = all(
        one.share is not None and one.share <= _limit(one.worlds) for one in by_size.values()
    )
    most = max(_limit(one.worlds) for one in by_size.values() if one.worlds)
    return Line(
        what=what, figure=figure, aim=f"≤ {100 * most:.1f} % (5 % and three errors)", met=kept
    )


def _limit(worlds: int) -> float:
    return NOMINAL + 3 * float(np.sqrt(NOMINAL * (1 - NOMINAL) / worlds)) if worlds else 0.0


def _title(tool: Tool) -> str:
    version = PACKAGES[tool.peer][0].split("==")[1] if tool.peer else __version__
    return f"{tool.name} {version}"


def _share(one: Outcome) -> str:
    if one.share is None or one.larger is None:
        return f"**could not be run: {one.error}**"
    both = f"{100 * one.share:.3g} %"
    return both if one.larger == one.share else f"{both} ({100 * one.larger:.3g} %)"


def _page(outcomes: dict[tuple[int, int], dict[str, Outcome]], power: str) -> str:
    head = "| | reported when | " + " | ".join(f"n = {n:,}" for n in SIZES) + " |"
    rows, notes = [], []
    for i, tool in enumerate(TOOLS):
        for rule, (words, source) in tool.rules.items():
            shares = " | ".join(_share(outcomes[i, n][rule]) for n in SIZES)
            rows.append(f"| {_title(tool)} | {words} | {shares} |")
            counts = " / ".join(str(outcomes[i, n][rule].worlds) for n in SIZES)
            notes.append(f"- {tool.name}, {words}: {source}; {counts} worlds.")
    return "\n".join(
        [
            _LEAD,
            head,
            "|---|---|" + "---|" * len(SIZES),
            *rows,
            "",
            _BELOW.format(power=power),
            *notes,
            "",
        ]
    )


_LEAD = """\
<!-- Made by `make bench ARGS=false_alarms`. -->
Nothing is wrong: 40 overlapping groups of race, sex and age, every one with the same rate, the
smallest of about three rows. How often does a package report at least one of them?
"""
_BELOW = """\
In brackets: counting only groups of thirty rows or more, where that differs. How often the same
`eq.flag` finds 10 points planted in one race: {power}.
"""
