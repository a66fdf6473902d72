"""Other packages beside this one: the same people, the same question, in one run.

Each package lives in a virtual environment of its own, made from PyPI on first use. One that
cannot be installed or does not run is a line of the results, with its error.
"""

import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from measure import Line, Measured, at_least, measure

HOME = Path(__file__).parent / ".peers"
PACKAGES = {
    "fairaudit": ["fairaudit==0.0.1"],
    "fairlearn": ["fairlearn==0.15.0"],
    "aif360": ["aif360==0.6.1"],
    "aequitas": ["aequitas==1.1.0"],
    "vfairness": ["vfairness==0.2.0"],
    "ppi": ["ppi-python==0.2.3"],
    "mapie": ["mapie==1.6.0"],
    "mcgrad": ["mcgrad==0.1.5"],
    "statsmodels": ["statsmodels==0.15.0"],
}


class PeerError(RuntimeError):
    """A package could not be installed or did not run."""


def python_of(peer: str) -> str:
    """The interpreter of a peer's environment, installed from PyPI if it is not there yet."""
    place = HOME / peer
    python = place / "bin" / "python"
    done = place / ".installed"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        _install(peer, str(python))
        done.touch()
    return str(python)


def _install(peer: str, python: str) -> None:
    quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    tried = subprocess.run([python, *quiet, *PACKAGES[peer]], capture_output=True, text=True)
    if tried.returncode:
        print(tried.stderr, file=sys.stderr)
        raise PeerError(f"{PACKAGES[peer][0]} could not be installed: {last_line(tried.stderr)}")


def last_line(text: str) -> str:
    """The last line that says something: of a traceback, the error itself."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no message"


# --- the question -------------------------------------------------------------------------

PEOPLE = """
    import warnings
    warnings.simplefilter("ignore")
    import numpy as np
    rng = np.random.default_rng(2)
    n = 10_000
    race = np.array(["a", "b", "c", "d"])[rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])]
    sex = np.array(["f", "m"])[rng.integers(0, 2, n)]
    age = np.array(["young", "middle", "old"])[rng.choice(3, n, p=[0.25, 0.5, 0.25])]
    hit = (rng.random(n) < 0.3).astype(int)
    single = dict(race=race, sex=sex, age=age)
    names = [("race",), ("sex",), ("age",), ("race", "sex"), ("race", "age"), ("sex", "age"), ("race", "sex", "age")]
    named = {" × ".join(k): np.array(["/".join(v) for v in zip(*(single[i] for i in k))]) for k in names}
"""
OURS = """
    import polars as pl
    import equipoise as eq
    claim = eq.gap(eq.selection_rate, across=eq.intersections("race", "sex", "age"))
    frame = pl.DataFrame(dict(race=race, sex=sex, age=age, hit=hit))
"""
# The first call imports what it needs; other rows, so that nothing of the answer is kept.
WARM = """
    few = eq.read(frame.head(200), prediction="hit")
    eq.describe(few, claim), eq.certify(few, claim, method="bootstrap", resamples=20, rng=0), eq.flag(few, claim)
"""
READ = 'trail = eq.read(frame, prediction="hit")'
RATES = f"{READ}\nanswer = len(eq.describe(trail, claim))"
BOUNDS = f'{READ}\nanswer = len(eq.certify(trail, claim, method="bootstrap", resamples=500, rng=0))'
FLAGS = f"{READ}\nanswer = len(eq.flag(trail, claim))"
# Processor time since the interpreter started: imports, people and answer.
SINCE_START = "\nanswer = time.process_time()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a peer and we are both asked."""

    what: str
    peer: str
    ours: str
    setup: str
    theirs: str
    aim: float = 1
    repeat: int = 3


_FAIRAUDIT = """
    from fairaudit import Auditor, Metric
    from fairaudit.groups import get_intersections
    metric = Metric("hit", lambda z, y: z.flatten().astype(float), lambda z, y, x: z.flatten().astype(float))
    X = np.stack([race, sex, age], axis=1)
"""
QUESTIONS = (
    Question(
        what="bounds for 59 groups, 500 resamples",
        peer="fairaudit",
        ours=BOUNDS,
        setup=_FAIRAUDIT,
        theirs="""
    groups = get_intersections(X, discretization={})
    auditor = Auditor(X, np.ones((n, 1)), hit[:, None], metric)
    auditor.calibrate_groups(0.05, "interval", groups, bootstrap_params={"B": 500, "student": "prob_bound", "prob_threshold": 0.01})
    answer = len([auditor.query_group(g) for g in range(groups.shape[1])])
    """,
        aim=100,
    ),
    Question(
        what="flags among 59 groups",
        peer="fairaudit",
        ours=FLAGS,
        setup=_FAIRAUDIT,
        theirs="""
    groups = get_intersections(X, discretization={})
    auditor = Auditor(X, np.ones((n, 1)), hit[:, None], metric)
    flags, _ = auditor.flag_groups(groups, "lower", 0.05)
    answer = len(flags)
    """,
        aim=100,
    ),
    Question(
        what="intervals, 500 resamples (theirs of 24 cells, ours of 59 groups)",
        peer="fairlearn",
        ours=BOUNDS,
        setup="""
    import pandas as pd
    from fairlearn.metrics import MetricFrame, selection_rate
    people = pd.DataFrame(single)
    """,
        theirs="""
    frame = MetricFrame(metrics=selection_rate, y_true=hit, y_pred=hit, sensitive_features=people,
                        n_boot=500, ci_quantiles=[0.025, 0.975], random_state=0)
    answer = len(frame.by_group_ci[0])
    """,
        aim=300,
        repeat=1,
    ),
    Question(
        what="interval of the largest gap, 500 resamples (theirs of 24 cells, ours of 59 groups)",
        peer="vfairness",
        ours=BOUNDS,
        setup="    from vfairness import demographic_parity_difference_with_ci",
        theirs="""
    cells = named["race × sex × age"]
    found = demographic_parity_difference_with_ci(hit, hit, cells, n_bootstrap=500, random_state=0)
    answer = found.point_estimate
    """,
        repeat=1,
    ),
    Question(
        what="rates of 59 groups (ours with intervals)",
        peer="fairlearn",
        ours=RATES,
        setup="    from fairlearn.metrics import MetricFrame, selection_rate",
        theirs="""
    frames = [MetricFrame(metrics=selection_rate, y_true=hit, y_pred=hit, sensitive_features=v) for v in named.values()]
    answer = sum(len(frame.by_group) for frame in frames)
    """,
    ),
    Question(
        what="rates of 59 groups (ours with intervals)",
        peer="aif360",
        ours=RATES,
        setup="""
    import logging
    logging.disable(logging.WARNING)
    import pandas as pd
    from aif360.datasets import BinaryLabelDataset
    from aif360.metrics import BinaryLabelDatasetMetric
    groups = [column == value for column in named.values() for value in np.unique(column)]
    """,
        theirs="""
    answer = 0
    for member in groups:
        table = pd.DataFrame(dict(member=member.astype(float), hit=hit))
        data = BinaryLabelDataset(df=table, label_names=["hit"], protected_attribute_names=["member"])
        found = BinaryLabelDatasetMetric(data, unprivileged_groups=[dict(member=1.0)], privileged_groups=[dict(member=0.0)])
        found.disparate_impact(), found.statistical_parity_difference()
        answer += 1
    """,
    ),
    Question(
        what="rates of 59 groups (ours with intervals)",
        peer="aequitas",
        ours=RATES,
        setup="""
    import pandas as pd
    from aequitas import Audit
    table = pd.DataFrame({"score": hit, "label": hit, **{k: v.astype(object) for k, v in named.items()}})
    """,
        theirs="""
    audit = Audit(table, sensitive_attribute_column=list(named))
    audit.audit()
    answer = len(audit.disparity_df)
    """,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an answer of ours cost."""

    asked: Measured
    """Everything imported, from reading the table on."""
    whole: float
    """CPU seconds from the start of the interpreter, nothing imported."""


def run(folder: Path) -> list[Line]:
    """Time and memory of every question."""
    ours = {code: _answer(code) for code in (RATES, BOUNDS, FLAGS)}
    return [line for asked in QUESTIONS for line in _beside(asked, ours[asked.ours])]


def _answer(code: str) -> Answer:
    whole = measure(code + SINCE_START, PEOPLE + OURS)
    return Answer(asked=measure(code, PEOPLE + OURS + WARM, repeat=5), whole=float(whole.answer))


def _beside(asked: Question, ours: Answer) -> list[Line]:
    what, peer = f"{asked.what}, n = 10,000", asked.peer
    setup, code = PEOPLE + asked.setup, textwrap.dedent(asked.theirs) + SINCE_START
    try:
        theirs = measure(code, setup, python=python_of(peer), repeat=asked.repeat)
    except RuntimeError as error:
        return [failed(f"{what}, {peer}", error)]
    mine, whole = ours.asked, float(theirs.answer)
    cost = f"{1000 * mine.cpu:.0f} ms against {1000 * theirs.cpu:,.0f} ms of CPU"
    start = f"{ours.whole:.2f} s against {whole:.2f} s of CPU"
    memory = f"{mine.peak_mb:.0f} MB against {theirs.peak_mb:.0f} MB"
    faster, less = f"× faster than {peer}", f"× less than {peer}"
    return [
        at_least(what, theirs.cpu / mine.cpu, asked.aim, faster, cost),
        at_least("the same, from the start of Python", whole / ours.whole, 1, faster, start),
        at_least("the same, peak memory", theirs.peak_mb / mine.peak_mb, 1, less, memory),
    ]


def failed(what: str, error: Exception) -> Line:
    message = last_line(str(error))
    print(f"COULD NOT RUN {what}: {error}", file=sys.stderr)
    return Line(what=what, figure=f"**could not be run: {message}**", aim="runs", met=False)
