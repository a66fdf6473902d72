"""False alarms and power: how often each package reports a group, by each rule it offers.

Forty overlapping groups of race, sex and age, the smallest of about three rows: all with the same
rate of 0.3, or with ten points more in one race of four. All packages see the same worlds. The
table is also written to false_alarms.md.
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
    power: float | None
    """Share of worlds with ten points planted in which a group is reported."""
    worlds: int
    cpu: float
    """CPU seconds for all rules of the program."""
    error: str = ""


def run(folder: Path) -> list[Line]:
    """Ask every package about every world; write the table; one line per rule."""
    for n in SIZES:
        _draw(n, folder)
    outcomes = {(i, n): _ask(tool, n, folder) for i, tool in enumerate(TOOLS) for n in SIZES}
    (HERE / "false_alarms.md").write_text(_page(outcomes))
    return [
        _line(tool, rule, {n: outcomes[i, n][rule] for n in SIZES})
        for i, tool in enumerate(TOOLS)
        for rule in tool.rules
    ]


def _draw(n: int, folder: Path) -> None:
    null = null_world(rate=0.3, smallest=3 / n)
    for name, world in (("worlds", null), ("planted", planted(null, {"race": "C"}, 0.1))):
        rng = np.random.default_rng([SEED, n])
        drawn = [world.draw(n, rng) for _ in range(max(tool.worlds[n] for tool in TOOLS))]
        rows, ones = (np.stack(part) for part in zip(*drawn, strict=True))
        np.savez(folder / f"{name}-{n}.npz", index=world.index, rows=rows, ones=ones)


def _ask(tool: Tool, n: int, folder: Path) -> dict[str, Outcome]:
    worlds, before = tool.worlds[n], _children()
    try:
        found, planted_in = (
            _found(tool, str(folder / f"{name}-{n}.npz"), worlds) for name in ("worlds", "planted")
        )
    except RuntimeError as error:
        print(f"COULD NOT RUN {tool.name} at n = {n}: {error}", file=sys.stderr)
        lost = Outcome(
            share=None, larger=None, power=None, worlds=0, cpu=0, error=last_line(str(error))
        )
        return dict.fromkeys(tool.rules, lost)
    cpu = _children() - before
    print(f"  {tool.name}, n = {n:,}: {worlds} worlds, {cpu:.0f} CPU s", file=sys.stderr)
    return {
        rule: Outcome(
            share=_at_least(found[rule], 1),
            larger=_at_least(found[rule], LARGER),
            power=_at_least(planted_in[rule], 1),
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
    power = ", ".join(f"{_power(one)} at n = {n:,}" for n, one in by_size.items())
    figure = f"{figure}; with 10 points planted in a race {power}"
    ran = all(one.share is not None for one in by_size.values())
    if tool.peer:
        return Line(what=what, figure=figure, aim="–", met=ran)
    kept = all(_keeps(one) for one in by_size.values())
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


def _power(one: Outcome) -> str:
    return "–" if one.power is None else f"{100 * one.power:.3g} %"


def _best(name: str, outcomes: dict[tuple[int, int], dict[str, Outcome]]) -> tuple[int, str]:
    """The rule of a package that keeps 5 % at every size and finds most, or else errs least."""
    rules = [(i, rule) for i, tool in enumerate(TOOLS) if tool.name == name for rule in tool.rules]

    def by_size(place: tuple[int, str]) -> list[Outcome]:
        return [outcomes[place[0], n][place[1]] for n in SIZES]

    def alarms(place: tuple[int, str]) -> float:
        return max(1.0 if one.share is None else one.share for one in by_size(place))

    def power(place: tuple[int, str]) -> float:
        return sum(one.power or 0.0 for one in by_size(place))

    kept = [place for place in rules if all(_keeps(one) for one in by_size(place))]
    return max(kept, key=power) if kept else min(rules, key=alarms)


def _keeps(one: Outcome) -> bool:
    return one.share is not None and one.share <= _limit(one.worlds)


def _page(outcomes: dict[tuple[int, int], dict[str, Outcome]]) -> str:
    head = "| | reported when | " + " | ".join(f"n = {n:,}" for n in SIZES) + " |"
    rows, notes = [], []
    for i, tool in enumerate(TOOLS):
        best, several = _best(tool.name, outcomes), sum(t.name == tool.name for t in TOOLS) > 1
        for rule, (words, source) in tool.rules.items():
            shares = " | ".join(
                f"{_share(one)} / {_power(one)}" for one in (outcomes[i, n][rule] for n in SIZES)
            )
            several |= len(tool.rules) > 1
            mark = " **(its best)**" if (i, rule) == best and several else ""
            rows.append(f"| {_title(tool)} | {words}{mark} | {shares} |")
            counts = " / ".join(str(outcomes[i, n][rule].worlds) for n in SIZES)
            notes.append(f"- {tool.name}, {words}: {source}; {counts} worlds.")
    return "\n".join(
        [
            _LEAD,
            head,
            "|---|---|" + "---|" * len(SIZES),
            *rows,
            "",
            _BELOW,
            *notes,
            "",
        ]
    )


_LEAD = """\
<!-- Made by `make bench ARGS=false_alarms`. -->
40 overlapping groups of race, sex and age, the smallest of about three rows. How often does a
package report at least one of them: where every one has the same rate / where one race of four has
ten points more?
"""
_BELOW = """\
In brackets: false alarms counting only groups of thirty rows or more, where that differs. Of
several rules of a package that one is called its best which keeps 5 % at all sizes and finds most,
or, where none does, errs least.
"""
