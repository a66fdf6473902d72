"""Record the answers of many audits, and compare two recordings.

    python tools/same_answers.py record FOLDER [--source SRC]
    python tools/same_answers.py compare BEFORE AFTER [--named FILE]

`record` asks the demo, the plans of the documentation and 200 random questions, and writes one JSON
file for each: the finding as numbers, its sentences, or the error. SRC is the `src` folder of
another checkout; the questions are always those of this one. Levels are always written out, so
that another default changes nothing here; only `demo` runs as users run it.

`compare` prints what differs, number by number without any tolerance, and leaves with 1 if anything
does that is not named. FILE is a list of named changes, made to BEFORE:

    [{"path": "finding.rows.*.p_adjusted", "rename": "adjusted"},
     {"path": "**.method.kind", "before": "stepped", "after": "certificates"},
     {"before": "at least", "after": "no less than", "audit": "random-certify-*"},
     {"path": "finding.provenance.cells", "drop": true},
     {"path": "**.fingerprint", "ignore": true}]

In a path `*` is one step and `**` any number of them; without a path every place is meant but
the question, `asked`. `before` and `after` replace words within a text, or a value that is no text.
`drop` takes a key out of BEFORE alone, `ignore` out of both. `audit` limits a change to files of
that name.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import polars as pl
from sklearn.tree import DecisionTreeRegressor

ROOT = Path(__file__).resolve().parent.parent
SEED = 20_240_229
#: How many random audits there are of each verb.
NUMBERS = {
    "certify": 40,
    "flag": 30,
    "joint_test": 20,
    "describe": 16,
    "summarize": 14,
    "individual": 14,
    "tally": 14,
    "compare": 12,
    "shift": 12,
    "discover": 10,
    "calibration": 10,
    "select_fair": 8,
}
#: Levels that plans leave open, as they are filled in.
LEVELS = {
    "describe": 0.95,
    "certify": 0.90,
    "joint_test": 0.95,
    "summarize": 0.95,
    "compare": 0.95,
    "shift": 0.90,
    "calibration": 0.90,
    "individual": 0.95,
}
#: What two runs of the same program may differ in.
PASSING = ("created", "versions", "seal", "version", "seconds")

BLOCK = re.compile(r"^```yaml[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)

Rng = np.random.Generator
Answer = dict[str, Any]
Step = str | int


# --- random tables ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Lot:
    """The chance that makes one question: of which verb, and the how-manieth."""

    verb: str
    number: int
    rng: Rng


def pick(lot: Lot, values: Sequence[Any]) -> Any:
    """One of the values, each of them once before any comes again to the same verb."""
    turn, place = divmod(lot.number, len(values))
    rng = np.random.default_rng([SEED, crc32(f"{lot.verb} {values}".encode()), turn])
    return values[rng.permutation(len(values))[place]]


def chance(lot: Lot, share: float) -> bool:
    """True with the given chance."""
    return bool(lot.rng.random() < share)


def random_table(rng: Rng, n: int) -> pl.DataFrame:
    """Decisions on n people, with more columns than any one question reads."""
    g = rng.choice(list("abcde")[: int(rng.integers(2, 6))], n)
    risk = 1 / (1 + np.exp(-rng.normal(size=n) - 1.5 * (g == "a")))
    y = (rng.random(n) < risk).astype(int)
    s = np.clip(risk + rng.normal(0, 0.1, n), 0.01, 0.99).round(3)
    p, q = ((s + rng.normal(0, noise, n) > 0.5).astype(int) for noise in (0.1, 0.3))
    d = (y + rng.exponential(1.0, n)).round(4)
    columns = {
        "g": g,
        "h": rng.choice(list("uvw")[: int(rng.integers(2, 4))], n),
        "k": rng.integers(0, int(rng.integers(2, 5)), n),
        "x": rng.normal(size=n).round(2),
        "age": rng.integers(18, 80, n),
        "y": y,
        "p": p,
        "q": q,
        "s": s,
        "t": np.clip(s + rng.normal(0, 0.05, n), 0.01, 0.99).round(3),
        "d": d,
        "lo": (d - 1.5).round(4),
        "hi": (d + rng.normal(1.0, 1.0, n)).round(4),
        "w": rng.choice([0.5, 1.0, 2.0, 3.5], n),
        "m": rng.integers(0, max(4, n // 5), n),
        "c": rng.integers(1, 4, n),
        "f": p - p.mean(),
    }
    return pl.DataFrame(columns)


def with_holes(lot: Lot, table: pl.DataFrame) -> pl.DataFrame:
    """The table with some values missing."""
    for name in pick(lot, (("g",), ("x",), ("y", "h"), ("s",))):
        gone = pl.Series(lot.rng.random(table.height) < 0.05)
        table = table.with_columns(pl.when(gone).then(None).otherwise(pl.col(name)).alias(name))
    return table


def random_roles(lot: Lot, sampled: bool) -> dict[str, str]:
    """What the columns mean; weights, counts and clusters only where they are `sampled`."""
    roles = {"label": "y", "prediction": "p", "score": "s", "low": "lo", "high": "hi"}
    if sampled and chance(lot, 0.4):
        roles |= pick(lot, ({"weight": "w"}, {"cluster": "m"}, {"count": "c"}))
        roles |= pick(lot, ({}, {}, {}, {"weight": "w", "cluster": "m"}))
    return roles


# --- random questions, as the text of a call ----------------------------------------------------

SHARES = (
    "eq.accuracy",
    "eq.error_rate",
    "eq.selection_rate",
    "eq.false_positive_rate",
    "eq.false_negative_rate",
    "eq.true_positive_rate",
    "eq.true_negative_rate",
    "eq.positive_predictive_value",
    "'negative_predictive_value'",
    "eq.coverage",
    "eq.metric('late', 'd > 1', where='label == 1')",
)
MEANS = (
    "eq.brier",
    "eq.log_loss.clip(0, 3)",
    "eq.log_loss",
    "eq.squared_error",
    "eq.absolute_error",
    "eq.residual",
    "eq.metric('days', 'd')",
    "eq.metric('capped days', 'd', low=0, high=9)",
    "eq.metric('sign', 'label - prediction', values=(-1, 0, 1))",
)
TARGETS = (
    "None",
    "eq.overall()",
    "eq.complement()",
    "eq.constant(0.4)",
    "0.8 * eq.reference(g='a')",
    "eq.reference(g='b')",
    "1.1 * eq.overall()",
    "eq.custom(middle, 'f')",
)
#: Groups that contain those which `eq.reference(g=…)` names.
BY_G = (
    "'g'",
    "['g', 'h']",
    "eq.intersections('g', 'h')",
    "eq.intersections('g', 'h', 'k', depth=2)",
    "['g', eq.binned('age', cuts=(30, 50))]",
)
OTHERS = (
    "eq.thresholds('age', grid=6)",
    "eq.thresholds('x', edges=(-1, 0, 1))",
    "eq.intervals('x', grid=5)",
    "eq.intervals('age', edges=(18, 30, 45, 60, 80))",
    "eq.boxes('x', 'age', grid=3)",
    "eq.masks({'young a': \"age < 35 and g == 'a'\", 'high': 'x > 0.5', 'none': 'x > 99'})",
    "eq.leaves(tree, ['x', 'age'])",
    "eq.bins(eq.intersections('g'), number=4)",
    "eq.tilts(older='age / 80', spread='abs(x)')",
)
BOUNDS = ("None", "'pivotal'", "eq.Pivotal(draws=200)")
PUBLISHED_BOUNDS = (
    "'likelihood'",
    "'likelihood-plugin'",
    "'euclidean'",
    "eq.Euclidean(family='bonferroni')",
    "eq.Likelihood(family='pointwise', min_rows=5)",
)
BOOTSTRAPS = ("'bootstrap'", "'bootstrap-unscaled'", "eq.Bootstrap(engine='moments', floor=0.05)")
CERTIFICATES = (
    "'certificates'",
    "'certificates-published'",
    "'certificates-unscaled'",
    "eq.BootstrapCertificates(step_down=True)",
)
PLAIN_MODELS = (
    "lambda frame: frame['g'] == 'a'",
    "lambda frame: frame['h'] == 'u'",
    "lambda frame: [0] * len(frame)",
)
COMPARABLE = ("'exact'", "'beta'", "'normal'", "'directional'", "'bootstrap'", "'m-out-of-n'")


def call(verb: str, *given: str, **options: Any) -> str:
    """The text of a call of a public name."""
    named = [f"{name}={value}" for name, value in options.items()]
    return f"eq.{verb}({', '.join([*given, *named])})"


def options(lot: Lot, **chosen: Any) -> dict[str, Any]:
    """Options with a level and a seed."""
    return {"level": pick(lot, (0.8, 0.9, 0.95)), **chosen, "rng": int(lot.rng.integers(1000))}


def metric(lot: Lot) -> str:
    """A share mostly, now and then a mean."""
    return str(pick(lot, SHARES if chance(lot, 0.65) else MEANS))


def claim(lot: Lot) -> str:
    """A gap or a ratio, or one of the claims that have a name of their own."""
    if chance(lot, 0.4):
        across, target = pick(lot, BY_G), pick(lot, TARGETS)
    else:
        across, target = pick(lot, OTHERS), pick(lot, [t for t in TARGETS if "(g=" not in t])
    if chance(lot, 0.06):
        return call("equalized_odds", across=pick(lot, BY_G[:3]), target=pick(lot, TARGETS[:3]))
    if chance(lot, 0.05):
        return call("multicalibration", across=pick(lot, BY_G[:3]), number=3)
    kind = "ratio" if chance(lot, 0.25) else "gap"
    asked = pick(lot, SHARES) if kind == "ratio" else metric(lot)
    return call(kind, asked, across=across, target=target)


def certify(lot: Lot, rows: str = "trail", asked: str | None = None) -> str:
    """Bounds by any method, certificates, or all ranges of a number."""
    asked = asked or claim(lot)
    more = options(lot, side=pick(lot, ("'both'", "'both'", "'lower'", "'upper'")))
    kind = pick(lot, range(8))
    if kind == 6 or (kind < 6 and chance(lot, 0.6)):
        more["tolerance"] = pick(lot, (0.8, 0.9)) if "eq.ratio" in asked else pick(lot, (0.05, 0.2))
    if kind < 3:
        more |= {"method": pick(lot, BOUNDS[:2]), "resamples": 200}
    elif kind == 3:
        more["method"] = pick(lot, PUBLISHED_BOUNDS)
    elif kind == 4:
        more |= {"method": pick(lot, BOOTSTRAPS), "resamples": 150}
    elif kind == 5:
        more["method"] = "'betting'"
    elif kind == 6:
        more |= {"method": pick(lot, CERTIFICATES), "resamples": 150}
    elif rows == "trail":
        asked = call(
            "gap", metric(lot), across="eq.intervals('age')", target=pick(lot, TARGETS[:4])
        )
        more |= {"method": "eq.AllRanges(resamples=100)", "tolerance": 0.2}
    return call("certify", rows, asked, **more)


def limit(lot: Lot, asked: str) -> dict[str, Any]:
    """Which disparities are flagged."""
    if "eq.ratio" in asked:
        return dict([pick(lot, (("below", 0.9), ("above", 1.1)))])
    return dict([pick(lot, (("below", -0.03), ("above", 0.02), ("outside", (-0.02, 0.02))))])


def flag(lot: Lot, rows: str = "trail", asked: str | None = None) -> str:
    """Flags under any control and by any method."""
    asked = asked or claim(lot)
    more = {"fdr": pick(lot, (0.05, 0.1, 0.2)), "rng": int(lot.rng.integers(1000))}
    if "eq.ratio" in asked or chance(lot, 0.6):
        more |= limit(lot, asked)
    more["control"] = pick(lot, ("'bh'", "'bh'", "'by'", "'e-bh'", "'holm'", "'max-t'"))
    if chance(lot, 0.3):
        more |= {"method": pick(lot, BOOTSTRAPS), "resamples": 150}
    elif chance(lot, 0.3):
        more["method"] = pick(lot, PUBLISHED_BOUNDS)
    elif chance(lot, 0.1):
        more["population"] = "'these rows'"
    if chance(lot, 0.15):
        more["min_rows"] = 20
    return call("flag", rows, asked, **more)


def joint_test(lot: Lot, rows: str = "trail", asked: str | None = None) -> str:
    """One test of all groups."""
    more = options(lot, method=pick(lot, (*BOUNDS, *PUBLISHED_BOUNDS)))
    if chance(lot, 0.2):
        more["intervals"] = False
    return call("joint_test", rows, asked or claim(lot), **more)


def describe(lot: Lot, rows: str = "trail", asked: str | None = None) -> str:
    """Every group on its own."""
    more = {"level": pick(lot, (0.8, 0.95)), "interval": pick(lot, ("'exact'", "'wilson'"))}
    return call("describe", rows, asked or claim(lot), **more, small=pick(lot, (5, 30)))


def tally(lot: Lot) -> str:
    """A question to counts, taken at once or in two places."""
    target = pick(lot, TARGETS[:6])
    asked = call("gap", metric(lot), across=pick(lot, BY_G), target=target)
    parts = f"eq.merge(eq.tally(first, {asked}), eq.tally(second, {asked}))"
    stored = f"eq.Tallied.from_json(eq.tally(trail, {asked}).to_json())"
    rows = str(pick(lot, (f"eq.tally(trail, {asked})", parts, stored)))
    asking = {"describe": describe, "certify": certify, "flag": flag, "joint_test": joint_test}
    ask: Callable[[Lot, str, str], str] = asking[pick(lot, list(asking))]
    return ask(lot, rows, asked)


def summarize(lot: Lot) -> str:
    """How far apart groups are."""
    more = options(lot, across=pick(lot, ("'g'", "'h'", "['g', 'h']", "'k'")), resamples=100)
    if chance(lot, 0.3):
        more["measures"] = pick(lot, ("['difference', 'ratio']", "'variance'", "['entropy']"))
    if chance(lot, 0.3):
        more["alpha"] = pick(lot, (0, 1, 0.5))
    return call("summarize", "trail", metric(lot), **more)


def compare_by(lot: Lot) -> str:
    """Attributes, or two models."""
    if chance(lot, 0.6):
        more = options(lot, across=pick(lot, ("['g', 'h']", "[['g', 'h'], 'k']")), resamples=100)
        return call("compare", "trail", metric(lot), **more)
    scored = chance(lot, 0.4)
    pair = {"old": "s", "new": "t"} if scored else {"old": "p", "new": "q"}
    asked = pick(lot, ("eq.brier", "eq.residual") if scored else SHARES[:6])
    more = options(lot, across="'g'", models=pair, resamples=100)
    if chance(lot, 0.3):
        more["measures"] = None
    return call("compare", "trail", asked, **more)


def shift(lot: Lot) -> str:
    """Other populations, by a kernel or by monotone weights."""
    kernels = "['x']", "['age', 'g']", "eq.gaussian('x', bandwidth=1.0)", "eq.laplace('g')"
    more = options(lot, resamples=100, side=pick(lot, ("'both'", "'lower'", "'upper'")))
    if chance(lot, 0.3):
        more["over"] = pick(lot, ("eq.monotone('age', grid=10)", "eq.monotone('x')"))
    else:
        more["over"] = pick(lot, (*kernels, "eq.kernel('polynomial', 'x', degree=2)"))
        more["method"] = pick(lot, ("'rescaled'", "'rescaled'", "'unscaled'", "'signed'"))
        more["engine"] = pick(lot, ("'auto'", "'exact'", "'moments'"))
    return call("shift", "trail", f"eq.gap({metric(lot)})", **more)


def discover(lot: Lot) -> str:
    """Groups found by a tree."""
    more = {"features": pick(lot, ("['g', 'x']", "['x', 'age']", "['g', 'h', 'age']"))}
    more |= {"leaf_rows": 10, "depth": pick(lot, (1, 2, 3)), "fdr": 0.1, "rng": 7}
    if chance(lot, 0.4):
        more |= {"above": 0.01}
    if chance(lot, 0.3):
        more["method"] = pick(lot, ("'euclidean'", "'likelihood'", "'bootstrap'"))
    return call("discover", "trail", metric(lot), **more, target=pick(lot, TARGETS[:4]))


def calibration(lot: Lot) -> str:
    """A test along the score, of folds, or of everything, with a small tree as residual model."""
    more = options(lot, draws=100, features=pick(lot, ("['x']", "['x', 'g']", "['g', 'h']")))
    more |= {"tolerance": pick(lot, (0.0, 0.05)), "side": pick(lot, ("'both'", "'under'"))}
    if chance(lot, 0.3):
        return call(
            "calibration", "trail", **more, method=pick(lot, ("'platt'", "'hosmer-lemeshow'"))
        )
    more |= {"models": "[stump]", "importance": pick(lot, (0, 1))}
    if chance(lot, 0.5):
        folded = "'cusum'", "'cusum-published'", "'simple-score'", "'multicalibration'"
        more |= {"method": pick(lot, (*folded, "'chi-squared'")), "folds": 2}
    return call("calibration", "trail", **more)


def people(lot: Lot) -> dict[str, Any]:
    """Who is comparable with whom, and how that is inferred."""
    more = options(lot, vary=pick(lot, ("'g'", "'h'", "['g', 'h']")), resamples=200)
    more["features"] = pick(lot, ("['g', 'h']", "['g', 'h', 'k']"))
    if chance(lot, 0.5):
        more["method"] = pick(lot, COMPARABLE)
    if chance(lot, 0.2):
        more |= {
            "cost": "lambda one, other: float(one != other)",
            "budget": 0.2,
            "method": "'auto'",
        }
    return more


def individual(lot: Lot) -> str:
    """The worst case over comparable people."""
    more = people(lot)
    if chance(lot, 0.6):
        more["model"] = pick(lot, PLAIN_MODELS)
    elif chance(lot, 0.3):
        more["loss"] = "eq.brier"
    if chance(lot, 0.6):
        more["tolerance"] = pick(lot, (0.05, 0.2))
    return call("individual", "trail", **more)


def select_fair(lot: Lot) -> str:
    """The best of three models under a limit."""
    models = ", ".join(f"'{i}': {model}" for i, model in enumerate(PLAIN_MODELS))
    more = {"tolerance": pick(lot, (0.05, 0.3)), "bound": pick(lot, ("'lower'", "'upper'"))}
    return call("select_fair", "trail", f"{{{models}}}", **people(lot), **more)


ASKING: dict[str, Callable[[Lot], str]] = {
    "certify": certify,
    "flag": flag,
    "joint_test": joint_test,
    "describe": describe,
    "summarize": summarize,
    "individual": individual,
    "tally": tally,
    "compare": compare_by,
    "shift": shift,
    "discover": discover,
    "calibration": calibration,
    "select_fair": select_fair,
}
#: The most rows of verbs that take long, and verbs that know no weights.
MOST_ROWS = {"shift": 150, "calibration": 150, "individual": 250, "select_fair": 250}
UNWEIGHTED = ("compare", "discover", "calibration", "select_fair")


# --- recording ----------------------------------------------------------------------------------


#: Options that have another name since: verb, as asked here, as they are called now.
RENAMED = (
    ("calibration", "draws=", "resamples="),
    ("calibration", "side='under'", "side='upper'"),
    ("select_fair", "bound=", "side="),
    ("", "eq.Pivotal(draws=", "eq.Pivotal(resamples="),
)


def _respelled(text: str, eq: Any) -> str:
    """The call as the package takes it: a checkout knows either all old names or all new ones."""
    if "draws" in inspect.signature(eq.calibration).parameters:
        return text
    for verb, before, after in RENAMED:
        text = text.replace(before, after) if not verb or f"eq.{verb}(" in text else text
    return text


@dataclass(frozen=True, kw_only=True)
class Question:
    """One call on one random table."""

    text: str
    table: pl.DataFrame
    roles: Mapping[str, str]

    def answer(self, eq: Any) -> Any:
        """What the package says."""
        half = self.table.height // 2
        parts = {"trail": self.table, "first": self.table[:half], "second": self.table[half:]}
        names = {name: eq.read(part, **self.roles) for name, part in parts.items()}
        stump = DecisionTreeRegressor(max_depth=2, random_state=0)
        rows = self.table.select(pl.col("x").fill_null(0), "age").to_numpy()
        names |= {"tree": stump.fit(rows, self.table["d"].to_numpy()), "stump": stump}
        middle = float(self.table["p"].to_numpy().mean())
        return eval(_respelled(self.text, eq), {"eq": eq, "middle": middle, **names})

    @property
    def words(self) -> str:
        """The call, and on which rows."""
        return f"{self.text} on {self.table.height} rows with {dict(self.roles)}"


def question(verb: str, number: int) -> Question:
    """The random question of this number, which depends on no other."""
    rng = np.random.default_rng([SEED, crc32(verb.encode()), number])
    lot = Lot(verb=verb, number=number, rng=rng)
    table = random_table(rng, int(rng.integers(30, MOST_ROWS.get(verb, 600) + 1)))
    if chance(lot, 0.2):
        table = with_holes(lot, table)
    roles = random_roles(lot, verb not in UNWEIGHTED or chance(lot, 0.1))
    return Question(text=ASKING[verb](lot), table=table, roles=roles)


def documented_plans() -> Iterator[tuple[str, str]]:
    """The name and the text of every plan that a page shows whole."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
        for i, block in enumerate(b for b in blocks if b.startswith("equipoise: 1")):
            yield f"plan-{page.stem}-{i}", block


def with_levels(plan: Mapping[str, Any]) -> dict[str, Any]:
    """A plan in which every audit says its level."""
    audits = [
        {**({"level": LEVELS[audit["audit"]]} if audit["audit"] in LEVELS else {}), **audit}
        for audit in plan["audits"]
    ]
    return {**plan, "audits": audits}


def run_plan(plan: Mapping[str, Any]) -> Any:
    """The evidence of a plan, which reads its rows in the current folder."""
    api: Any = importlib.import_module("equipoise.plan")
    return api.run(api.Plan.from_plain(with_levels(plan)), progress=False)


def run_text(text: str) -> Any:
    """The evidence of a plan in YAML."""
    api: Any = importlib.import_module("equipoise.plan")
    return run_plan(api.Plan.parse(text).to_plain())


def demo(eq: Any, source: Path) -> Any:
    """The evidence that the command of the demonstration writes."""
    place = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-m", "equipoise", "demo", "--quiet", "--out", "demo"]
    subprocess.run(command, check=True, env=place, capture_output=True)
    return eq.Evidence.from_json(Path("demo/evidence.json").read_text(encoding="utf-8"))


def write_decisions(path: Path) -> None:
    """The table of decisions that the plans of the pages read."""
    rng = np.random.default_rng(1)
    n = 400
    y = rng.integers(0, 2, n)
    old, new = (np.where(rng.random(n) < 0.8, y, 1 - y) for _ in range(2))
    columns = {
        "race": rng.choice(["Green", "Blue", "Red"], n),
        "sex": rng.choice(["Female", "Male"], n),
        "age": rng.integers(18, 80, n),
        "outcome": y,
        "old_says": old,
        "new_says": new,
    }
    pl.DataFrame(columns).write_csv(path)


def lasting(value: Any) -> Any:
    """Plain data without what passes: times, versions."""
    if isinstance(value, Mapping):
        return {name: lasting(part) for name, part in value.items() if name not in PASSING}
    return [lasting(part) for part in value] if isinstance(value, list) else value


def sentences(found: Any) -> Any:
    """A finding in words; the words of each where it is evidence of several."""
    if hasattr(found, "entries"):
        return {entry.name: list(entry.finding.sentences()) for entry in found.entries}
    return list(found.sentences())


def answered(asked: str, ask: Callable[[], Any]) -> Answer:
    """The finding in numbers and in words, or the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = ask()
            numbers = lasting(json.loads(found.to_json()))
            return {"asked": asked, "finding": numbers, "sentences": sentences(found)}
        # a crash is an answer too: the other program should crash in the same way
        except Exception as error:
            return {"asked": asked, "error": {"class": type(error).__name__, "message": str(error)}}


def package(source: Path) -> Any:
    """The package that lies in a folder, and no other."""
    sys.path.insert(0, str(source))
    found: Any = importlib.import_module("equipoise")
    # a package finds its own parts; whoever called keeps the path they had
    sys.path.remove(str(source))
    if not Path(found.__file__).resolve().is_relative_to(source.resolve()):
        raise SystemExit(f"equipoise came from {found.__file__}, not from {source}.")
    return found


def plan_answers(eq: Any, source: Path) -> Iterator[tuple[str, Answer]]:
    """The demo as it is and with its levels written out, and the plans of the documentation."""
    shown = answered("equipoise demo", lambda: demo(eq, source))
    yield "demo", shown
    if "finding" in shown:
        quoted = shown["finding"]["plan"]
        yield "plan-demo", answered("the plan of the demo", lambda: run_plan(quoted))
    for name, text in documented_plans():
        yield name, answered(text, partial(run_text, text))


def random_answers(eq: Any, numbers: Mapping[str, int]) -> Iterator[tuple[str, Answer]]:
    """So many random audits of each verb."""
    for verb, number in numbers.items():
        for i in range(number):
            made = question(verb, i)
            yield f"random-{verb}-{i:02}", answered(made.words, partial(made.answer, eq))


def record(
    folder: Path, source: Path, numbers: Mapping[str, int] = NUMBERS, plans: bool = True
) -> Counter[tuple[str, str]]:
    """Write every answer into an empty folder; return how many of each kind ended how."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty.")
    target, source, ends = folder.resolve(), source.resolve(), Counter[tuple[str, str]]()
    eq = package(source)
    with tempfile.TemporaryDirectory() as scratch, chdir(scratch):
        write_decisions(Path("decisions.csv"))
        made = list(plan_answers(eq, source)) if plans else []
        for name, answer in [*made, *random_answers(eq, numbers)]:
            text = json.dumps(answer, ensure_ascii=False, indent=1, sort_keys=True)
            (target / f"{name}.json").write_text(text + "\n", encoding="utf-8")
            kind = name.split("-")[1] if name.startswith("random-") else "plans"
            ends[kind, end_of(eq, answer)] += 1
    return ends


def end_of(eq: Any, answer: Answer) -> str:
    """Whether a question was answered, refused by name, or crashed."""
    if "finding" in answer:
        return "answered"
    kind = getattr(eq, answer["error"]["class"], None)
    return (
        "refused" if isinstance(kind, type) and issubclass(kind, eq.EquipoiseError) else "crashed"
    )


def show_ends(ends: Counter[tuple[str, str]]) -> None:
    """Print how the questions to each verb ended."""
    words = ("answered", "refused", "crashed")
    print(f"{'':<12}", *(f"{word:>9}" for word in words))
    for kind in dict.fromkeys(kind for kind, _ in ends):
        print(f"{kind:<12}", *(f"{ends[kind, word]:>9}" for word in words))
    sums = [sum(n for (_, end), n in ends.items() if end == word) for word in words]
    print(f"{'all':<12}", *(f"{total:>9}" for total in sums))


# --- comparing ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place at which two recordings differ."""

    path: tuple[Step, ...]
    before: str
    after: str
    words: bool

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path))}: {self.before} → {self.after}"


@dataclass(slots=True, kw_only=True)
class Named:
    """A change that is meant, and how often it was met."""

    rule: Mapping[str, Any]
    uses: int = field(default=0)

    def made(self, name: str, answer: Any, after: bool) -> Any:
        """A recorded answer with this change, or with what is ignored left out."""
        wanted = "ignore" in self.rule or not after
        meant = fnmatchcase(name, self.rule.get("audit", "*"))
        return self._changed(answer, ()) if wanted and meant else answer

    def _changed(self, value: Any, path: tuple[Step, ...]) -> Any:
        if isinstance(value, list):
            return [self._changed(part, (*path, i)) for i, part in enumerate(value)]
        if isinstance(value, Mapping):
            kept = (self._entry(key, part, (*path, key)) for key, part in value.items())
            return dict(entry for entry in kept if entry is not None)
        if "before" in self.rule and self._meets(path):
            return self._replaced(value)
        return value

    def _entry(self, key: str, value: Any, path: tuple[Step, ...]) -> tuple[str, Any] | None:
        on_keys = {"drop", "ignore", "rename"} & self.rule.keys()
        if not on_keys or not self._meets(path):
            return key, self._changed(value, path)
        self.uses += 1
        return (self.rule["rename"], value) if "rename" in self.rule else None

    def _meets(self, path: tuple[Step, ...]) -> bool:
        if "path" not in self.rule:
            return path[:1] != ("asked",)
        return meets(path, self.rule["path"].split("."))

    def _replaced(self, value: Any) -> Any:
        before, after = self.rule["before"], self.rule["after"]
        if isinstance(value, str) and isinstance(before, str):
            self.uses += before in value
            return value.replace(before, after)
        same = repr(value) == repr(before)
        self.uses += same
        return after if same else value


def meets(path: Sequence[Step], pattern: Sequence[str]) -> bool:
    """Whether a path has the form of a pattern.

    >>> meets(("finding", "rows", 3, "p"), ["finding", "**", "p"])
    True
    """
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(meets(path[i:], pattern[1:]) for i in range(len(path) + 1))
    return bool(path) and fnmatchcase(str(path[0]), pattern[0]) and meets(path[1:], pattern[1:])


def differences(before: Any, after: Any, path: tuple[Step, ...] = ()) -> Iterator[Difference]:
    """Every place at which two pieces of plain data differ; numbers must have the same digits."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            yield from _parts(before, after, key, path)
    elif isinstance(before, list) and isinstance(after, list):
        one, other = (dict(enumerate(part)) for part in (before, after))
        for key in range(max(len(before), len(after))):
            yield from _parts(one, other, key, path)
    elif repr(before) != repr(after):
        words = isinstance(before, str) and isinstance(after, str)
        yield Difference(path=path, before=_short(before), after=_short(after), words=words)


def _parts(
    before: Mapping[Any, Any], after: Mapping[Any, Any], key: Step, path: tuple[Step, ...]
) -> Iterator[Difference]:
    here = (*path, key)
    if key in before and key in after:
        yield from differences(before[key], after[key], here)
    else:
        one, other = (_short(part[key]) if key in part else "nothing" for part in (before, after))
        yield Difference(path=here, before=one, after=other, words="sentences" in here)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:157]}…"


def read_answers(folder: Path) -> dict[str, str]:
    """The recorded texts by name."""
    found = {p.stem: p.read_text(encoding="utf-8") for p in sorted(folder.glob("*.json"))}
    if not found:
        raise SystemExit(f"{folder} holds no recorded answers.")
    return found


def read_named(path: Path | None) -> list[Named]:
    """The changes that are meant."""
    rules = [] if path is None else json.loads(path.read_text(encoding="utf-8"))
    kinds = {"drop", "ignore", "rename", "before"}
    for rule in rules:
        if len(kinds & rule.keys()) != 1 or ("before" in rule) != ("after" in rule):
            raise SystemExit(f"A named change has one of {', '.join(sorted(kinds))}; got {rule}.")
        if "before" not in rule and "path" not in rule:
            raise SystemExit(f"This change needs a path: {rule}.")
    return [Named(rule=rule) for rule in rules]


def compare(before: Path, after: Path, named: Sequence[Named] = (), most: int = 5) -> bool:
    """Print what differs; return whether nothing does but what is named."""
    old, new = read_answers(before), read_answers(after)
    alike = {name for name in old if old[name] == new.get(name)}
    found = {}
    for name in sorted(old.keys() | new.keys()):
        # changes are made to all, so that one that would spoil an equal answer is seen
        if there := _found(name, old.get(name), new.get(name), named):
            found[name] = there
    _show(found, most)
    same = len(old.keys() | new.keys()) - len(found)
    words = sum(all(each.words for each in there) for there in found.values())
    print(f"{same + len(found)} answers: {len(alike)} the same byte for byte,", end=" ")
    print(f"{same} the same but for named changes, {len(found)} different", end=" ")
    print(f"({words} of these in words alone).")
    for change in named:
        print(f"named change met {change.uses} times: {json.dumps(change.rule)}")
    return not found


def _found(name: str, old: str | None, new: str | None, named: Sequence[Named]) -> list[Difference]:
    if old is None or new is None:
        one, other = ("nothing" if text is None else "recorded" for text in (old, new))
        return [Difference(path=(), before=one, after=other, words=False)]
    before, after = json.loads(old), json.loads(new)
    for change in named:
        before, after = change.made(name, before, False), change.made(name, after, True)
    return list(differences(before, after))


def _show(found: Mapping[str, Sequence[Difference]], most: int) -> None:
    for name, there in found.items():
        print(f"{name}: {len(there)} differences")
        print("".join(f"  {each}\n" for each in there[:most]), end="")


def main(arguments: Sequence[str]) -> int:
    """Record or compare, as asked on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("record", help="write the answers of a checkout")
    one.add_argument("folder", type=Path)
    one.add_argument("--source", type=Path, default=ROOT / "src", help="its src folder")
    two = commands.add_parser("compare", help="show what differs between two recordings")
    two.add_argument("before", type=Path)
    two.add_argument("after", type=Path)
    two.add_argument("--named", type=Path, help="list of changes that are meant")
    two.add_argument("--most", type=int, default=5, help="differences shown of each answer")
    given = parser.parse_args(arguments)
    if given.command == "compare":
        return int(not compare(given.before, given.after, read_named(given.named), given.most))
    show_ends(record(given.folder, given.source))
    times = os.times()
    used = times.user + times.system + times.children_user + times.children_system
    print(f"{used:.0f} s of CPU, {time.perf_counter() - START:.0f} s")
    return 0


START = time.perf_counter()
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
