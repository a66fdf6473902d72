"""The gate in twenty situations: the exit codes that the documentation promises."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from equipoise.cli.main import execute

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "gate-table.md"
#: People by group, of whom so many are selected.
FAIR = {"Green": (400, 200), "Blue": (400, 200)}
UNFAIR = {"Green": (400, 300), "Blue": (400, 100)}
FEW = {"Green": (20, 10), "Blue": (20, 9)}

GAP = "claim: {kind: gap, metric: selection_rate, across: [team]}"
CERTIFY = f"- {{audit: certify, name: bounds, {GAP}, tolerance: 0.15}}"
STRICT = f"- {{audit: certify, name: strict bounds, {GAP}, tolerance: 0.001}}"
FLAG = f"- {{audit: flag, name: flags, {GAP}, outside: [-0.1, 0.1]}}"
DESCRIBE = f"- {{audit: describe, name: description, {GAP}}}"
ITSELF = (
    "- {audit: certify, name: itself, tolerance: 0.1, claim: {kind: gap, metric: selection_rate, "
    "across: {kind: masks, conditions: [{kind: condition, name: all of them, formula: 1 == 1}]}}}"
)


def _table(people: dict[str, tuple[int, int]], words: bool = False) -> None:
    yes, no = ("yes", "no") if words else ("1", "0")
    rows = [
        f"{team},{yes if i < chosen else no}"
        for team, (size, chosen) in people.items()
        for i in range(size)
    ]
    Path("d.csv").write_text("\n".join(["team,chosen", *rows]) + "\n")


def _plan(*audits: str, prediction: str = "chosen", source: str = "d.csv") -> None:
    lines = ["equipoise: 1", "seed: 7", f"trail: {{source: {source}, prediction: {prediction}}}"]
    Path("p.yaml").write_text("\n".join([*lines, "audits:", *(f"  {a}" for a in audits)]) + "\n")


def _made(
    people: dict[str, tuple[int, int]],
    *audits: str,
    words: bool = False,
    prediction: str = "chosen",
) -> None:
    _table(people, words)
    _plan(*audits, prediction=prediction)


CHECK = ("check", "p.yaml")
Situation = tuple[Callable[[], None], tuple[str, ...]]
#: What is prepared, and which command is run.
SITUATIONS: dict[str, Situation] = {
    "every limit is shown to be kept": (lambda: _made(FAIR, CERTIFY), CHECK),
    "a group is shown to exceed the limit": (lambda: _made(UNFAIR, CERTIFY), CHECK),
    "too few rows to show either": (lambda: _made(FEW, CERTIFY), CHECK),
    "the same, with `--undetermined pass`": (
        lambda: _made(FEW, CERTIFY),
        (*CHECK, "--undetermined", "pass"),
    ),
    "the same, with `--undetermined fail`": (
        lambda: _made(FEW, CERTIFY),
        (*CHECK, "--undetermined", "fail"),
    ),
    "a group is flagged": (lambda: _made(UNFAIR, FLAG), CHECK),
    "no group is flagged, and nothing else is asked": (lambda: _made(FAIR, FLAG), CHECK),
    "no group is flagged, and the limit is kept": (lambda: _made(FAIR, FLAG, CERTIFY), CHECK),
    "the plan only describes": (lambda: _made(UNFAIR, DESCRIBE), CHECK),
    "one limit is kept, another undetermined": (lambda: _made(FAIR, CERTIFY, STRICT), CHECK),
    "one limit is exceeded, another undetermined": (lambda: _made(UNFAIR, CERTIFY, STRICT), CHECK),
    "the only group is its own target": (lambda: _made(FAIR, ITSELF), CHECK),
    "a limit that nothing could exceed": (
        lambda: _made(FAIR, CERTIFY.replace("0.15", "1.5")),
        CHECK,
    ),
    "an option of the plan is misspelt": (
        lambda: _made(FAIR, CERTIFY.replace("tolerance", "tolerence")),
        CHECK,
    ),
    "the plan is not the registered one": (
        lambda: _made(FAIR, CERTIFY),
        (*CHECK, "--hash", "0123456789"),
    ),
    "the data are not there": (lambda: _plan(CERTIFY, source="nowhere.csv"), CHECK),
    "the plan names a column that does not exist": (
        lambda: _made(FAIR, CERTIFY, prediction="choosen"),
        CHECK,
    ),
    "decisions in words, and no `positive:`": (
        lambda: _made(FAIR, CERTIFY, words=True),
        CHECK,
    ),
    "the folder for the report cannot be written": (
        lambda: _made(FAIR, CERTIFY),
        (*CHECK, "--out", "d.csv/out"),
    ),
    "a command or option that does not exist": (lambda: None, ("chek", "p.yaml")),
}


def _promised() -> dict[str, int]:
    rows = re.findall(r"^\| ([^|]+?) \| (\d) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {situation: int(code) for situation, code in rows}


def test_the_page_has_every_situation() -> None:
    assert list(_promised()) == list(SITUATIONS)
    assert len(SITUATIONS) == 20


@pytest.mark.parametrize("situation", SITUATIONS)
def test_exit_codes_are_those_of_the_page(
    situation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare, command = SITUATIONS[situation]
    prepare()
    assert execute([*command]) == _promised()[situation]
