"""What is asked over time, about calibration and within strata, and how each package decides it.

Every program defines ``asked(world)``, which gets the columns of one world by name and answers,
rule by rule, whether something is reported. Rules are only those that a package's own
documentation gives.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

World = dict[str, np.ndarray]
LOOKS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A package that is asked a question, with its rules."""

    name: str
    """As it is written in the table."""
    peer: str = ""
    """Its environment; empty for ours."""
    program: str
    """Defines ``asked``."""
    rules: dict[str, tuple[str, str]]
    """For every rule: what it says, and where the package states it."""
    worlds: int
    """How many worlds of each kind are asked; slow packages are asked about fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Worlds in which nothing is wrong and in which something is, and who is asked."""

    title: str
    about: str
    quiet: dict[str, Callable[[np.random.Generator], World]]
    """Nothing is wrong."""
    wrong: dict[str, Callable[[np.random.Generator], World]]
    """Something is."""
    sides: tuple[Side, ...]
    not_run: tuple[str, ...] = field(default=())
    """What does not apply, and why."""


# --- over time: a share and its limit --------------------------------------------------------

REFERENCE = 1_000


def _share(*rates: float) -> Callable[[np.random.Generator], World]:
    each = np.repeat(rates, LOOKS // len(rates))

    def draw(rng: np.random.Generator) -> World:
        return {
            "reference": rng.random(REFERENCE) < 0.2,
            "batch": np.repeat(np.arange(LOOKS), 200),
            "hit": rng.random(200 * LOOKS) < np.repeat(each, 200),
        }

    return draw


def _monitor(claim: str, options: str = "") -> str:
    return f"""
import polars as pl
import equipoise as eq

def alarm(table, claim, **options):
    try:
        found = eq.monitor(table, claim, period="batch", prediction="hit", rng=0{options}, **options)
    except eq.OptionError as refused:
        # Planned looks refuse groups that are too small: nothing is reported.
        assert "too few rows" in str(refused), refused
        return False
    return any(row.raised for row in found.rows)

def asked(world):
    names = np.array([f"{{k:02d}}" for k in range(12)])[world["batch"]]
    columns = dict(batch=names, hit=world["hit"].astype(int))
    if "group" in world:
        columns["group"] = np.array(["A", "B"])[world["group"]]
    table, claim = pl.DataFrame(columns), {claim}
    return dict(
        ever=alarm(table, claim), planned=alarm(table, claim, reading="planned", looks=12)
    )
"""


_EVER = ("`eq.monitor`, `ever`: an alarm at any look", "the default")
_PLANNED = (
    "`eq.monitor`, `planned`, 12 looks: an alarm at any look",
    "its explanation of monitoring: for a fixed number of looks; where it refuses, since a group "
    "has too few rows of either outcome, nothing is reported",
)
MAPIE_RISK = """
from mapie.exchangeability_testing import RiskMonitoring

# Its bound after each batch is that of the rows so far, so all are read off one update.
def alarm(monitor, hit):
    monitor.update(hit, hit)
    bounds = monitor.online_risk_lower_bound_sequence_history
    return bool((bounds[len(hit) // 12 - 1 :: len(hit) // 12] > monitor.threshold).any())

def asked(world):
    hit, before = world["hit"].astype(int), world["reference"].astype(int)
    risk = "predicted_positive_fraction"
    fixed = RiskMonitoring(risk, threshold=0.25, warn=False)
    risen = RiskMonitoring(risk, reference_data=(before, before), warn=False)
    return dict(fixed=alarm(fixed, hit), risen=alarm(risen, hit))
"""
SHARE = Question(
    title="Over time: a share and its limit",
    about="""\
12 batches of 200 rows, looked at after each. The share of positive decisions may be 25 %: five
points above the 20 % of a reference sample of 1,000 rows, which only MAPIE's default rule uses.""",
    quiet={"25 % always": _share(0.25)},
    wrong={"28 % always": _share(0.28), "25 %, then 30 % from batch 7": _share(0.25, 0.30)},
    sides=(
        Side(
            name="equipoise",
            program=_monitor("eq.gap(eq.selection_rate, target=0.25)", ", above=0.0"),
            rules={"ever": _EVER, "planned": _PLANNED},
            worlds=100,
        ),
        Side(
            name="MAPIE",
            peer="mapie",
            program=MAPIE_RISK,
            rules={
                "fixed": (
                    "`RiskMonitoring(threshold=0.25)`: a harmful shift at any look",
                    "docstring of RiskMonitoring: “Precomputed monitoring threshold”; "
                    "“a harmful shift is detected when the latest online lower bound exceeds the "
                    "threshold”; test_level 0.05 is its default",
                ),
                "risen": (
                    "`RiskMonitoring(reference_data=…)`, tolerance 0.05: a harmful shift at any look",
                    "the same, its defaults: “margin applied to the reference upper confidence "
                    "bound to define the monitoring threshold”",
                ),
            },
            worlds=200,
        ),
    ),
    not_run=(
        "vfairness' tests compare two groups or a series with its own past; none takes a limit "
        "for a share.",
    ),
)


# --- over time: two groups -------------------------------------------------------------------


def _pair(
    rows: tuple[int, int], *rates: tuple[float, float]
) -> Callable[[np.random.Generator], World]:
    group = np.tile(np.repeat([0, 1], rows), LOOKS)
    batch = np.repeat(np.arange(LOOKS), sum(rows))
    each = np.repeat(np.array(rates), LOOKS // len(rates), axis=0)

    def draw(rng: np.random.Generator) -> World:
        return {"batch": batch, "group": group, "hit": rng.random(len(batch)) < each[batch, group]}

    return draw


VFAIRNESS_SEQUENTIAL = """
from vfairness import sequential_fairness_test
from vfairness.operations.monitoring import FairnessDriftDetector, sequential_fairness_drift

detector = FairnessDriftDetector()

def asked(world):
    batch, group, hit = world["batch"], world["group"], world["hit"].astype(float)
    first, other = hit[group == 0].reshape(12, -1), hit[group == 1].reshape(12, -1)
    said, gaps, drifts, drift_said = [], other.mean(1) - first.mean(1), False, []
    for looks in range(1, 13):
        found = sequential_fairness_test(first[:looks].ravel(), other[:looks].ravel())
        said.append(found.get("decision", "could_not_check").split("_")[0])
        drift_said.append(detector.run_sprt(list(gaps[:looks]), 0.0, 0.1)[0])
        drifts |= "drift" in sequential_fairness_drift(gaps[:looks])["classification"]
    ended = [one for one in said if one in ("reject", "accept")]
    decided = [one for one in drift_said if one in ("drift", "stable")]
    return dict(
        stopped=bool(ended) and ended[0] == "reject",
        looked="reject" in said,
        sprt=bool(decided) and decided[0] == "drift",
        drift=drifts,
    )
"""
PAIR = Question(
    title="Over time: two groups",
    about="""\
12 batches, looked at after each: two groups of 50 rows with a rate of 30 %; or 90 rows and 10 rows
with a rate of 5 %. The default effect size of vfairness, 0.2 standard deviations, is 9.2 points
here: ten planted points are what its test is made for.""",
    quiet={
        "30 % and 30 %": _pair((50, 50), (0.3, 0.3)),
        "5 % and 5 %, 10 rows a batch": _pair((90, 10), (0.05, 0.05)),
    },
    wrong={
        "30 % and 40 %": _pair((50, 50), (0.3, 0.4)),
        "10 points from batch 7": _pair((50, 50), (0.3, 0.3), (0.3, 0.4)),
        "5 % and 15 %, 10 rows a batch": _pair((90, 10), (0.05, 0.15)),
    },
    sides=(
        Side(
            name="equipoise",
            program=_monitor(
                'eq.gap(eq.selection_rate, across="group", target=eq.reference(group="A"))'
            ),
            rules={"ever": _EVER, "planned": _PLANNED},
            worlds=100,
        ),
        Side(
            name="vfairness",
            peer="vfairness",
            program=VFAIRNESS_SEQUENTIAL,
            rules={
                "stopped": (
                    "`sequential_fairness_test`: the first verdict is that groups differ",
                    "its docstring: “Anytime-valid Wald SPRT”, “lets an audit stop as soon as there "
                    "is (or is not) enough evidence”; defaults alpha 0.05, power 0.8, effect 0.2",
                ),
                "looked": (
                    "`sequential_fairness_test`: groups differ at any look",
                    "the same: “without alpha-spending penalties for repeated looks”",
                ),
                "sprt": (
                    "`run_sprt` on the gaps of batches, 0 against 0.1: the first verdict is drift",
                    "its docstring: “ordered stream of metric values (e.g., daily demographic "
                    "parity)”, alpha 0.05 by default",
                ),
                "drift": (
                    "`sequential_fairness_drift` on the gaps of batches: drift at any look",
                    "its docstring: stable is “neither detector flags drift”; its defaults; it asks "
                    "whether the series changes, not whether groups differ",
                ),
            },
            worlds=200,
        ),
    ),
    not_run=(
        "MAPIE has no test of two groups: its risk monitoring takes one risk and a limit, its "
        "exchangeability tests one stream. Neither applies here.",
    ),
)


# --- over time: a change ---------------------------------------------------------------------


def _stream(*rates: float) -> Callable[[np.random.Generator], World]:
    each = np.repeat(rates, LOOKS // len(rates))

    def draw(rng: np.random.Generator) -> World:
        return {
            "batch": np.repeat(np.arange(LOOKS), 100),
            "hit": rng.random(100 * LOOKS) < np.repeat(each, 100),
        }

    return draw


MAPIE_ONLINE = """
from itertools import count
from mapie.exchangeability_testing import OnlineExchangeabilityTest

# It breaks ties at random: with other numbers in every world.
seeds = count(70_000)

def rejects(world, name):
    options = {name: dict(random_state=next(seeds))}
    test = OnlineExchangeabilityTest(name, method_params=options, warn=False)
    for hit in np.split(world["hit"].astype(int), 12):
        test.update(np.zeros((len(hit), 1)), hit)
        if test.is_exchangeable[name] is False:
            return True
    return False

def asked(world):
    return {rule: rejects(world, f"{rule}_martingale") for rule in RULES}
"""
_ONLINE = (
    "docstring of OnlineMartingaleTest: “the probability that the test gives a false positive is "
    "at most test_level”, 0.05 by default; rejected once the martingale exceeds 1 / test_level"
)
CHANGE = Question(
    title="Over time: a change",
    about="""\
12 batches of 100 rows, looked at after each. MAPIE asks whether the stream is exchangeable and is
told nothing; `eq.monitor` is told the rate of before, 20 %, and asks whether it still holds. So
ours knows more, and asks less.""",
    quiet={"20 % always": _stream(0.2)},
    wrong={
        "20 %, then 30 % from batch 5": _stream(0.2, 0.3, 0.3),
        "20 %, then 30 % from batch 9": _stream(0.2, 0.2, 0.3),
    },
    sides=(
        Side(
            name="equipoise",
            program=_monitor("eq.gap(eq.selection_rate, target=0.2)"),
            rules={
                "ever": (f"{_EVER[0]}, the rate of before known", _EVER[1]),
                "planned": (f"{_PLANNED[0]}, the rate of before known", _PLANNED[1]),
            },
            worlds=100,
        ),
        Side(
            name="MAPIE",
            peer="mapie",
            program='RULES = ("jumper",)' + MAPIE_ONLINE,
            rules={"jumper": ("`OnlineExchangeabilityTest`, jumper: not exchangeable", _ONLINE)},
            worlds=200,
        ),
        Side(
            name="MAPIE",
            peer="mapie",
            program='RULES = ("plugin",)' + MAPIE_ONLINE,
            rules={"plugin": ("`OnlineExchangeabilityTest`, plug-in: not exchangeable", _ONLINE)},
            worlds=40,
        ),
    ),
)


# --- calibration -----------------------------------------------------------------------------


def _scores(
    *, corner: float = 0.0, line: float = 0.0, steep: float = 1.0
) -> Callable[[np.random.Generator], World]:
    """Scores that are right but for a corner of people, a line in x, or their own slope."""

    def draw(rng: np.random.Generator) -> World:
        n = 2_000
        race = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
        sex, x = rng.integers(0, 2, n), rng.normal(size=n)
        logit = rng.normal(size=n) - 0.8
        true = 1 / (1 + np.exp(-(steep * logit + line * x)))
        true = np.clip(true + corner * ((race == 2) & (sex == 0)), 0, 1)
        score = 1 / (1 + np.exp(-logit))
        return {"race": race, "sex": sex, "x": x, "score": score, "y": rng.random(n) < true}

    return draw


PERSONS = """
def columns(world):
    race, sex = np.array(list("ABCD"))[world["race"]], np.array(["F", "M"])[world["sex"]]
    return dict(race=race, sex=sex, x=world["x"], score=world["score"], y=world["y"].astype(int))
"""
EQUIPOISE_CALIBRATION = (
    PERSONS
    + """
import polars as pl
import equipoise as eq

def asked(world):
    found = eq.calibration(
        pl.DataFrame(columns(world)), label="y", score="score", features=["race", "sex", "x"],
        tolerance=0.0, importance=0, rng=0,
    )
    return dict(portfolio=str(found.verdict) == "exceeded")
"""
)
MCGRAD = (
    PERSONS
    + """
import pandas as pd
from mcgrad.metrics import MulticalibrationError

def asked(world):
    found = MulticalibrationError(
        pd.DataFrame(columns(world)), "y", "score",
        categorical_segment_columns=["race", "sex"], numerical_segment_columns=["x"],
    )
    return dict(
        p=found.mce_pvalue < 0.05,
        two=found.mce_sigma > 2,
        five=found.mce_sigma > 5,
        everyone=found.global_ecce_pvalue < 0.05,
    )
"""
)
CALIBRATION = Question(
    title="Calibration",
    about="""\
2,000 rows with a score, race, sex and a number x. The score is right for everybody; or not. No
miscalibration is tolerated, which is MCGrad's question (`tolerance=0` in ours).""",
    quiet={"right everywhere": _scores()},
    wrong={
        "15 points in a tenth (race × sex)": _scores(corner=0.15),
        "a slope along x (0.25)": _scores(line=0.25),
        "the score too steep (0.75)": _scores(steep=0.75),
    },
    sides=(
        Side(
            name="equipoise",
            program=EQUIPOISE_CALIBRATION,
            rules={"portfolio": ("`eq.calibration`, 95 %: exceeded", "the default method")},
            worlds=200,
        ),
        Side(
            name="MCGrad",
            peer="mcgrad",
            program=MCGRAD,
            rules={
                "p": (
                    "`MulticalibrationError`: mce_pvalue < 0.05",
                    "its docstring: “statistically significant miscalibration detected”; that of "
                    "mce_pvalue warns that it is “not adjusted for multiple testing” and expects "
                    "“any required adjustment to be small”",
                ),
                "two": (
                    "`MulticalibrationError`: mce_sigma > 2",
                    "its docstring: “miscalibration exceeds 2 standard deviations”",
                ),
                "five": (
                    "`MulticalibrationError`: mce_sigma > 5",
                    "docstring of mce_sigma: “values above 5 indicate significant miscalibration”",
                ),
                "everyone": (
                    "`MulticalibrationError`: global_ecce_pvalue < 0.05",
                    "its p-value of everyone, without segments; read at the same 0.05",
                ),
            },
            worlds=200,
        ),
    ),
)


# --- strata ----------------------------------------------------------------------------------

FIVE = (0.4, 0.3, 0.15, 0.1, 0.05)


def _strata(
    strata: int, shares: tuple[float, ...], planted: float = 0.0, *, reversed_: bool = False
) -> Callable[[np.random.Generator], World]:
    """2,000 people; rates and shares of groups differ between strata; the last but one is wronged."""

    def draw(rng: np.random.Generator) -> World:
        stratum = np.repeat(np.arange(strata), 2_000 // strata)
        place = np.linspace(0, 1, strata)[stratum]
        # the first group is rarer where rates are high
        weights = np.array(shares) * np.where(np.arange(len(shares)) == 0, 1, 0.5 + place[:, None])
        edges = np.cumsum(weights / weights.sum(1, keepdims=True), axis=1)
        group = (rng.random(2_000)[:, None] > edges[:, :-1]).sum(1)
        wronged = group == max(1, len(shares) - 2)
        sign = np.where(stratum % 2, -1, 1) if reversed_ else 1
        rate = 0.25 + 0.3 * place + planted * sign * wronged
        return {"stratum": stratum, "group": group, "hit": rng.random(2_000) < rate}

    return draw


EQUIPOISE_STRATA = """
import polars as pl
import equipoise as eq

def asked(world):
    table = pl.DataFrame(dict(
        group=np.array(list("ABCDE"))[world["group"]],
        stratum=world["stratum"].astype(str),
        hit=world["hit"].astype(int),
    ))
    two = world["group"].max() == 1
    target = eq.reference(group="A") if two else "complement"
    claim = eq.gap(eq.selection_rate, across="group", target=target, given=["stratum"])
    trail = eq.read(table, prediction="hit")
    bounds = eq.certify(trail, claim, rng=0)
    apart = [row for row in bounds.rows if (row.lower or 0) > 0 or (row.upper or 0) < 0]
    flags = eq.flag(trail, claim, fdr=0.05, rng=0)
    dealt = eq.flag(trail, claim, fdr=0.05, population="these rows", rng=0)
    return dict(
        certify=len(apart) > 0, flag=len(flags.flagged) > 0, dealt=len(dealt.flagged) > 0,
    )
"""
EQUIPOISE_UNEVEN = """
import polars as pl
import equipoise as eq

def asked(world):
    table = pl.DataFrame(dict(
        group=np.array(list("ABCDE"))[world["group"]],
        stratum=world["stratum"].astype(str),
        hit=world["hit"].astype(int),
    ))
    claim = eq.gap(eq.selection_rate, across="group", target="complement", given=["stratum"])
    said = " ".join(eq.certify(table, claim, prediction="hit", rng=0).sentences())
    return dict(uneven="is not the same for every stratum" in said)
"""
STATSMODELS = """
from statsmodels.stats.contingency_tables import StratifiedTable
from statsmodels.stats.multitest import multipletests

def tables(world, group):
    cell = world["stratum"] * 4 + 2 * (world["group"] == group) + world["hit"]
    return np.bincount(cell, minlength=4 * (world["stratum"].max() + 1)).reshape(-1, 2, 2)

def reported(p, method):
    p = np.array([one for one in p if np.isfinite(one)])
    if not len(p):
        return False
    return bool((p < 0.05).any() if method is None else multipletests(p, 0.05, method=method)[0].any())

def asked(world):
    groups = range(world["group"].max() + 1)
    # Of two groups each is the other's rest: one test.
    groups = groups[1:] if len(groups) == 2 else groups
    every = [StratifiedTable([*map(np.asarray, tables(world, group))]) for group in groups]
    plain = [one.test_null_odds().pvalue for one in every]
    corrected = [one.test_null_odds(correction=True).pvalue for one in every]
    tarone = [one.test_equal_odds(adjust=True).pvalue for one in every]
    day = [one.test_equal_odds().pvalue for one in every]
    return dict(
        plain=reported(plain, None), corrected=reported(corrected, None),
        plain_bonferroni=reported(plain, "bonferroni"),
        corrected_bonferroni=reported(corrected, "bonferroni"),
        plain_hs=reported(plain, "hs"), plain_bh=reported(plain, "fdr_bh"),
        day=reported(day, None), day_bonferroni=reported(day, "bonferroni"),
        tarone=reported(tarone, None), tarone_bonferroni=reported(tarone, "bonferroni"),
    )
"""
_MANTEL = "docstring of test_null_odds: “test that all tables have odds ratio equal to 1”"
_DAY = "docstring of test_equal_odds: “test that all odds ratios are identical”"
_MULTIPLE = "docstring of multipletests"
STRATA = Question(
    title="Strata",
    about="""\
2,000 rows; rates rise from 25 % to 55 % over the strata, and the first group is rarer where they
are high. Within strata all groups are alike; or one (a tenth of the rows; of two groups, a sixth)
has 10 points more in every stratum. Each group is tested against the rest.""",
    quiet={
        "5 groups, 4 strata": _strata(4, FIVE),
        "5 groups, 250 strata": _strata(250, FIVE),
        "2 groups, 250 strata": _strata(250, (0.83, 0.17)),
    },
    wrong={
        "5 groups, 4 strata, 10 points": _strata(4, FIVE, 0.1),
        "5 groups, 250 strata, 10 points": _strata(250, FIVE, 0.1),
        "2 groups, 250 strata, 10 points": _strata(250, (0.83, 0.17), 0.1),
    },
    sides=(
        Side(
            name="equipoise",
            program=EQUIPOISE_STRATA,
            rules={
                "certify": (
                    "`eq.certify(given=…)`, 95 %: an interval excludes the rest's rate",
                    "the default",
                ),
                "flag": (
                    "`eq.flag(given=…)`, false discovery rate 5 %: a group is flagged",
                    "the default",
                ),
                "dealt": (
                    '`eq.flag(given=…, population="these rows")`: a group is flagged',
                    "its exact test of margins",
                ),
            },
            worlds=300,
        ),
        Side(
            name="statsmodels",
            peer="statsmodels",
            program=STATSMODELS,
            rules={
                "plain": (
                    "`test_null_odds()`: p < 0.05 for a group",
                    f"{_MANTEL}; its default, no correction of any kind",
                ),
                "corrected": (
                    "`test_null_odds(correction=True)`: p < 0.05 for a group",
                    f"{_MANTEL}; “use the continuity correction”",
                ),
                "plain_bonferroni": (
                    "`test_null_odds()`, Bonferroni over groups",
                    f"{_MANTEL}; {_MULTIPLE}: “bonferroni: one-step correction”",
                ),
                "corrected_bonferroni": (
                    "`test_null_odds(correction=True)`, Bonferroni over groups",
                    f"the same, and “use the continuity correction”; {_MULTIPLE}",
                ),
                "plain_hs": (
                    "`test_null_odds()`, Holm–Šidák over groups",
                    f"{_MANTEL}; {_MULTIPLE}: its default method",
                ),
                "plain_bh": (
                    "`test_null_odds()`, Benjamini–Hochberg over groups",
                    f"{_MANTEL}; {_MULTIPLE}: “fdr_bh”",
                ),
            },
            worlds=300,
        ),
    ),
)
UNEVEN = Question(
    title="Strata: is a disparity the same in all?",
    about="""\
The same rows and five groups, within strata alike: all odds ratios are one. Or one group has 20
points more in every second stratum and 20 less in the others.""",
    quiet={
        "4 strata": _strata(4, FIVE),
        "40 strata": _strata(40, FIVE),
        "250 strata": _strata(250, FIVE),
    },
    wrong={
        "4 strata, ± 20 points": _strata(4, FIVE, 0.2, reversed_=True),
        "40 strata, ± 20 points": _strata(40, FIVE, 0.2, reversed_=True),
    },
    sides=(
        Side(
            name="equipoise",
            program=EQUIPOISE_UNEVEN,
            rules={
                "uneven": (
                    "`eq.certify(given=…)` says that a disparity is not the same in all strata",
                    "a sentence of the finding, at 5 % shared among groups; by Tarone's test",
                ),
            },
            worlds=300,
        ),
        Side(
            name="statsmodels",
            peer="statsmodels",
            program=STATSMODELS,
            rules={
                "day": ("`test_equal_odds()`: p < 0.05 for a group", f"{_DAY}; its default"),
                "day_bonferroni": (
                    "`test_equal_odds()`, Bonferroni over groups",
                    f"the same; {_MULTIPLE}",
                ),
                "tarone": (
                    "`test_equal_odds(adjust=True)`: p < 0.05 for a group",
                    f"{_DAY}; “use the Tarone adjustment to achieve the chi^2 asymptotic "
                    "distribution”",
                ),
                "tarone_bonferroni": (
                    "`test_equal_odds(adjust=True)`, Bonferroni over groups",
                    f"the same; {_MULTIPLE}",
                ),
            },
            worlds=300,
        ),
    ),
    not_run=(
        "P-values of `test_equal_odds` that are not numbers, which it gives where a stratum lacks "
        "an outcome or a side, count as nothing reported.",
    ),
)

QUESTIONS = (SHARE, PAIR, CHANGE, CALIBRATION, STRATA, UNEVEN)
