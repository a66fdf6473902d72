"""Over time, about calibration, within strata: ours beside the packages that ask the same.

Each question has worlds in which nothing is wrong and worlds in which something is; both sides see
the same, and decide by rules that their own documentation gives. The tables are also written to
beside_others.md.
"""

import json
import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from beside_rules import QUESTIONS, Question, Side
from measure import Line
from peers import PACKAGES, last_line, python_of

from equipoise import __version__

HERE = Path(__file__).parent
NOMINAL = 0.05
SEED = 28_002
PROGRAM = """
import json, warnings
warnings.simplefilter("ignore")
import numpy as np
np.seterr(all="ignore")
{program}
stored = np.load({path!r})
found = [asked({{name: stored[name][k] for name in stored.files}}) for k in range({worlds})]
print("FOUND", json.dumps({{rule: float(np.mean([bool(one[rule]) for one in found])) for rule in found[0]}}))
"""
_ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TQDM_DISABLE": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How often one rule of a side reported something, kind by kind."""

    side: Side
    rule: str
    shares: dict[str, float]
    """Empty if it could not be run."""
    error: str = ""

    @property
    def title(self) -> str:
        """The package with its version."""
        peer = self.side.peer
        version = PACKAGES[peer][0].split("==")[1] if peer else __version__
        return f"{self.side.name} {version}"

    @property
    def words(self) -> str:
        """What the rule says."""
        return self.side.rules[self.rule][0]

    def keeps(self, asked: Question) -> bool:
        """Whether false alarms are at most 5 %, three errors allowed, wherever nothing is wrong."""
        limit = _limit(self.side.worlds)
        return bool(self.shares) and all(self.shares[kind] <= limit for kind in asked.quiet)

    def alarms(self, asked: Question) -> float:
        """The largest share of false alarms."""
        return max((self.shares[kind] for kind in asked.quiet), default=1.0) if self.shares else 1.0

    def power(self, asked: Question) -> float:
        """Shares of worlds in which something wrong is found, summed."""
        return sum(self.shares.get(kind, 0.0) for kind in asked.wrong)


def run(folder: Path) -> list[Line]:
    """Ask every side about every world; write the tables; one line per rule."""
    found = {asked.title: _answers(asked, folder) for asked in QUESTIONS}
    parts = [_part(asked, found[asked.title]) for asked in QUESTIONS]
    (HERE / "beside_others.md").write_text("\n".join([_LEAD, *parts]))
    return [_line(asked, one) for asked in QUESTIONS for one in found[asked.title]]


def _answers(asked: Question, folder: Path) -> list[Answer]:
    draws, paths = {**asked.quiet, **asked.wrong}, {}
    most = max(side.worlds for side in asked.sides)
    for place, (kind, draw) in enumerate(draws.items()):
        rng = np.random.default_rng([SEED, QUESTIONS.index(asked), place])
        drawn = [draw(rng) for _ in range(most)]
        paths[kind] = str(folder / f"beside-{QUESTIONS.index(asked)}-{place}.npz")
        np.savez(paths[kind], **{name: np.stack([one[name] for one in drawn]) for name in drawn[0]})
    return [answer for side in asked.sides for answer in _ask(side, paths)]


def _ask(side: Side, paths: dict[str, str]) -> list[Answer]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    try:
        shares = {kind: _shares(side, path) for kind, path in paths.items()}
    except RuntimeError as error:
        print(f"COULD NOT RUN {side.name}: {error}", file=sys.stderr)
        why = last_line(str(error))
        return [Answer(side=side, rule=rule, shares={}, error=why) for rule in side.rules]
    cpu = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    print(f"  {side.name}: {side.worlds} worlds of each kind, {cpu:.0f} CPU s", file=sys.stderr)
    return [
        Answer(side=side, rule=rule, shares={kind: one[rule] for kind, one in shares.items()})
        for rule in side.rules
    ]


def _shares(side: Side, path: str) -> dict[str, float]:
    python = python_of(side.peer) if side.peer else sys.executable
    program = PROGRAM.format(program=side.program, path=path, worlds=side.worlds)
    done = subprocess.run(
        [python, "-c", program], capture_output=True, text=True, check=False, env=_ENVIRONMENT
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    if done.returncode or not lines:
        raise RuntimeError(done.stderr[-4000:] or f"ended with {done.returncode}")
    answer: dict[str, float] = json.loads(lines[-1].removeprefix("FOUND "))
    return answer


def _limit(worlds: int) -> float:
    return NOMINAL + 3 * float(np.sqrt(NOMINAL * (1 - NOMINAL) / worlds))


def _best(answers: list[Answer], asked: Question) -> Answer:
    """The rule that keeps 5 % wherever nothing is wrong and finds most, or else errs least."""
    kept = [one for one in answers if one.keeps(asked)]
    if kept:
        return max(kept, key=lambda one: one.power(asked))
    return min(answers, key=lambda one: one.alarms(asked))


def _bests(answers: list[Answer], asked: Question) -> dict[str, Answer]:
    names = dict.fromkeys(one.side.name for one in answers)
    return {name: _best([one for one in answers if one.side.name == name], asked) for name in names}


def _sharper(answers: list[Answer], asked: Question) -> list[str]:
    """Where a peer's valid rule finds clearly more than any valid rule of ours."""
    said = []
    ours = [one for one in answers if not one.side.peer and one.keeps(asked)]
    for one in answers:
        if not one.side.peer or not one.keeps(asked):
            continue
        for kind in asked.wrong:
            mine = max((o for o in ours), key=lambda o: o.shares[kind], default=None)
            if mine is None:
                continue
            p, q = one.shares[kind], mine.shares[kind]
            noise = np.sqrt(p * (1 - p) / one.side.worlds + q * (1 - q) / mine.side.worlds)
            if p - q > 2 * noise:
                said.append(
                    f"- **{one.side.name}, {one.words}, keeps 5 % and finds more than ours**: "
                    f"{kind}: {_percent(p)} against {_percent(q)} ({mine.words})."
                )
    return said


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _figure(one: Answer, kinds: list[str]) -> str:
    if not one.shares:
        return f"**could not be run: {one.error}**"
    return ", ".join(f"{_percent(one.shares[kind])} ({kind})" for kind in kinds)


def _line(asked: Question, one: Answer) -> Line:
    what = f"{asked.title}, {one.title}: {one.words}"
    figure = f"false alarms {_figure(one, list(asked.quiet))}"
    if one.shares:
        figure += f"; finds {_figure(one, list(asked.wrong))}"
    if one.side.peer:
        return Line(what=what, figure=figure, aim="–", met=bool(one.shares))
    aim = f"≤ {100 * _limit(one.side.worlds):.1f} % (5 % and three errors)"
    return Line(what=what, figure=figure, aim=aim, met=one.keeps(asked))


def _part(asked: Question, answers: list[Answer]) -> str:
    kinds = [*asked.quiet, *asked.wrong]
    heads = [f"nothing wrong: {kind}" for kind in asked.quiet] + list(asked.wrong)
    bests = _bests(answers, asked)
    rows = []
    for one in answers:
        several = sum(other.side.name == one.side.name for other in answers) > 1
        mark = " **(its best)**" if several and one is bests[one.side.name] else ""
        cells = [_percent(one.shares[kind]) for kind in kinds] if one.shares else [one.error]
        rows.append(f"| {one.title} | {one.words}{mark} | {' | '.join(cells)} |")
    notes = [
        f"- {one.side.name}, {one.words}: {one.side.rules[one.rule][1]}; {one.side.worlds} worlds."
        for one in answers
    ]
    lost = [f"- **Could not be run**: {one.title}: {one.error}" for one in answers if one.error]
    return "\n".join(
        [
            f"## {asked.title}",
            "",
            asked.about,
            "",
            f"| | reported when | {' | '.join(heads)} |",
            "|---|---|" + "---|" * len(kinds),
            *rows,
            "",
            *_or(_sharper(answers, asked), "No valid rule of a peer finds clearly more than ours."),
            *lost,
            *(f"- Not asked: {reason}" for reason in asked.not_run),
            "",
            "Where the rules stand:",
            "",
            *notes,
            "",
        ]
    )


def _or(said: list[str], otherwise: str) -> list[str]:
    return said or [f"- {otherwise}"]


_LEAD = """\
<!-- Made by `make bench ARGS=beside_others`. -->
How often does a package report something: where nothing is wrong, which should be at most 5 %, and
where something is? Of several rules of a package that one is called its best which keeps 5 %
(three errors allowed) wherever nothing is wrong and finds most, or, where none does, errs least.
"""
