"""How each package calls a group unfair: its own rule, where it is stated, and the program that asks.

Every program defines ``asked(race, sex, age, hit)``, which gets one world as columns of rows and
answers, rule by rule, how many rows the largest reported group has: 0 when none is reported. The
forty groups are all values of race, sex, age and their combinations: seven attributes, each with
its own values.
"""

from dataclasses import dataclass

WORLD = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np

stored = np.load({path!r})
levels = [np.array(["A", "B", "C", "D"]), np.array(["F", "M"]), np.array(["old", "young"])]

def people(world):
    rows, ones = stored["rows"][world], stored["ones"][world]
    cell = np.repeat(np.arange(len(rows)), rows)
    hit = np.concatenate([np.arange(n) < k for n, k in zip(rows, ones)]).astype(int)
    return [kind[stored["index"][cell, axis]] for axis, kind in enumerate(levels)] + [hit]

def attributes(race, sex, age):
    single = dict(race=race, sex=sex, age=age)
    names = [("race",), ("sex",), ("age",), ("race", "sex"), ("race", "age"), ("sex", "age"), ("race", "sex", "age")]
    return {{" × ".join(n): np.array(["/".join(v) for v in zip(*(single[k] for k in n))]) for n in names}}
"""
# Numbers stand for the values where a package is slow with text; what it finds is the same.
CODES = """
def coded(race, sex, age):
    return {k: np.unique(v, return_inverse=True)[1] for k, v in attributes(race, sex, age).items()}
"""
ASK = """
found = [asked(*people(world)) for world in range({worlds})]
print("FOUND", json.dumps({{rule: [int(one[rule]) for one in found] for rule in found[0]}}))
"""

EQUIPOISE = """
import polars as pl
import equipoise as eq

def largest(rows):
    return max((row.n for row in rows), default=0)

def asked(race, sex, age, hit):
    trail = eq.read(pl.DataFrame(dict(race=race, sex=sex, age=age, hit=hit)), prediction="hit")
    claim = eq.gap(eq.selection_rate, across=eq.intersections("race", "sex", "age"))
    flags = eq.flag(trail, claim, fdr=0.05)
    bounds = eq.certify(trail, claim, level=0.95, rng=0)
    apart = [row for row in bounds.rows if (row.lower is not None and row.lower > 0) or (row.upper is not None and row.upper < 0)]
    return dict(flag=largest(flags.flagged), certify=largest(apart))
"""
FAIRAUDIT = """
from fairaudit import Auditor, Metric
from fairaudit.groups import get_intersections

def asked(race, sex, age, hit):
    X = np.stack([race, sex, age], axis=1)
    groups = get_intersections(X, discretization={})
    metric = Metric("hit", lambda z, y: z.flatten().astype(float), lambda z, y, x: z.flatten().astype(float))
    auditor = Auditor(X, np.ones((len(hit), 1)), hit[:, None], metric)
    size = groups.sum(axis=0)
    sides = dict(both="interval", above="lower", below="upper")
    flags = {rule: auditor.flag_groups(groups, side, 0.05)[0] for rule, side in sides.items()}
    return {rule: size[found].max(initial=0) for rule, found in flags.items()}
"""
FAIRLEARN = (
    CODES
    + """
from fairlearn.metrics import MetricFrame

# The same number as its selection_rate, which checks its arguments anew in every resample.
def rate(y_true, y_pred):
    return np.mean(y_pred)

def frames(race, sex, age, hit, **options):
    for column in reversed(coded(race, sex, age).values()):
        frame = MetricFrame(metrics=rate, y_true=hit, y_pred=hit, sensitive_features=column, **options)
        yield frame, np.bincount(column)
"""
)
FAIRLEARN_POINT = (
    FAIRLEARN
    + """
def asked(*world):
    apart = [size[np.abs(frame.by_group.to_numpy() - frame.overall) > 0.1] for frame, size in frames(*world)]
    return dict(difference=np.concatenate(apart).max(initial=0))
"""
)
FAIRLEARN_BOOTSTRAP = (
    FAIRLEARN
    + """
def outside(frame):
    low, high = frame.by_group_ci
    return ((low > frame.overall) | (high < frame.overall)).to_numpy()

def asked(*world):
    options, largest = dict(n_boot=100, ci_quantiles=[0.025, 0.975], random_state=0), 0
    for frame, size in frames(*world, **options):
        largest = max(largest, size[outside(frame)].max(initial=0))
        # Once a group of some size is reported, the other attributes cannot change the count.
        if largest >= 30:
            break
    return dict(interval=largest)
"""
)
AIF360 = """
import logging
logging.disable(logging.WARNING)
import pandas as pd
from aif360.datasets import BinaryLabelDataset
from aif360.metrics import BinaryLabelDatasetMetric

def asked(race, sex, age, hit):
    impact, parity = 0, 0
    for column in attributes(race, sex, age).values():
        for value in np.unique(column):
            table = pd.DataFrame(dict(member=(column == value).astype(float), hit=hit))
            data = BinaryLabelDataset(df=table, label_names=["hit"], protected_attribute_names=["member"])
            found = BinaryLabelDatasetMetric(data, unprivileged_groups=[dict(member=1.0)], privileged_groups=[dict(member=0.0)])
            size = int((column == value).sum())
            if not 0.8 <= found.disparate_impact() <= 1.25:
                impact = max(impact, size)
            if abs(found.statistical_parity_difference()) > 0.1:
                parity = max(parity, size)
    return dict(impact=impact, parity=parity)
"""
AEQUITAS = """
import pandas as pd
from aequitas import Audit
from aequitas.fairness import Fairness

def asked(race, sex, age, hit):
    named = attributes(race, sex, age)
    table = pd.DataFrame({"score": hit, "label": hit, **{k: v.astype(object) for k, v in named.items()}})
    audit = Audit(table, sensitive_attribute_column=list(named))
    audit.audit()
    fair = Fairness().get_group_value_fairness(audit.disparity_df, fair_measures_requested=["Impact Parity"])
    return dict(parity=fair.loc[fair["Impact Parity"] == False, "group_size"].max() if (fair["Impact Parity"] == False).any() else 0)
"""
VFAIRNESS_SCAN = (
    CODES
    + """
import pandas as pd
from vfairness import scan_fairness_violations

def asked(race, sex, age, hit):
    named = coded(race, sex, age)
    scan = scan_fairness_violations(pd.DataFrame(named), hit, protected_columns=list(named))
    return dict(scan=len(hit) * (len(scan) > 0))
"""
)
VFAIRNESS_VERDICT = (
    CODES
    + """
from vfairness import FairnessAnalyzer

def verdict(column, hit):
    analyzer = FairnessAnalyzer(hit, hit, column)
    return analyzer.demographic_parity_difference(include_ci=True, n_bootstrap=200, random_state=0).verdict

def asked(race, sex, age, hit):
    unfair = any(verdict(column, hit) == "unfair" for column in coded(race, sex, age).values())
    return dict(verdict=len(hit) * unfair)
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A package that is asked about the worlds."""

    name: str
    """As it is written in the table."""
    peer: str
    """Its environment; empty for ours."""
    program: str
    """Defines ``asked``."""
    rules: dict[str, tuple[str, str]]
    """For every rule: what it says, and where the package states it."""
    worlds: dict[int, int]
    """How many worlds are asked at each number of rows; slow packages are asked about fewer."""


ALL = {500: 200, 2_000: 200, 10_000: 200}
SOME = {500: 100, 2_000: 100, 10_000: 100}
# Up to half a minute of processor time per world.
FEW = {500: 40, 2_000: 30, 10_000: 20}
TOOLS = (
    Tool(
        name="equipoise",
        peer="",
        program=EQUIPOISE,
        rules={
            "flag": ("`eq.flag`, false discovery rate 5 %: a group is flagged", "the default"),
            "certify": (
                "`eq.certify`, 95 %: a group's interval excludes everyone's rate",
                "the default",
            ),
        },
        worlds=ALL,
    ),
    Tool(
        name="fairaudit",
        peer="fairaudit",
        program=FAIRAUDIT,
        rules={
            "both": (
                '`flag_groups(…, "interval", 0.05)`: a group is flagged',
                "its default resampling; its two-sided p-value is 1 − 2Φ(|t|), never positive",
            ),
            "above": (
                '`flag_groups(…, "lower", 0.05)`: a group is flagged as above everyone',
                "its default resampling",
            ),
            "below": (
                '`flag_groups(…, "upper", 0.05)`: a group is flagged as below everyone',
                "its default resampling",
            ),
        },
        worlds={500: 100, 2_000: 100, 10_000: 50},
    ),
    Tool(
        name="Fairlearn",
        peer="fairlearn",
        program=FAIRLEARN_POINT,
        rules={
            "difference": (
                "`MetricFrame`: a group's rate more than 0.1 from the overall rate",
                "it states no limit of its own; 0.1 is AIF360's",
            )
        },
        worlds=ALL,
    ),
    Tool(
        name="Fairlearn",
        peer="fairlearn",
        program=FAIRLEARN_BOOTSTRAP,
        rules={
            "interval": (
                "`MetricFrame(n_boot=100)`: a group's 95 % interval excludes the overall rate",
                "it offers the intervals and leaves the reading to the user",
            )
        },
        worlds=FEW,
    ),
    Tool(
        name="AIF360",
        peer="aif360",
        program=AIF360,
        rules={
            "impact": (
                "`disparate_impact` of a group against the rest outside 0.8 – 1.25",
                "its interactive demo: fairness is between 0.8 and 1.25",
            ),
            "parity": (
                "`statistical_parity_difference` of a group against the rest outside ± 0.1",
                "its interactive demo: fairness is between −0.1 and 0.1",
            ),
        },
        worlds=SOME,
    ),
    Tool(
        name="Aequitas",
        peer="aequitas",
        program=AEQUITAS,
        rules={
            "parity": (
                "`Fairness`: a group's rate over that of the largest group outside 0.8 – 1.25",
                "its default τ = 0.8",
            )
        },
        worlds=SOME,
    ),
    Tool(
        name="vfairness",
        peer="vfairness",
        program=VFAIRNESS_SCAN,
        rules={
            "scan": (
                "`scan_fairness_violations`: an attribute's largest gap above 0.1",
                "its default limit; it leaves out groups under 30 rows",
            )
        },
        worlds=ALL,
    ),
    Tool(
        name="vfairness",
        peer="vfairness",
        program=VFAIRNESS_VERDICT,
        rules={
            "verdict": (
                "`FairnessAnalyzer`, 95 %: an attribute's verdict is “unfair”",
                "its default limit of 0.1 and size of 30; 200 resamples instead of 5,000",
            )
        },
        worlds={500: 40, 2_000: 20, 10_000: 10},
    ),
)
