"""Plan files and evidence that were tampered with: read, or refused by name."""

import copy
import functools
import json
from typing import Any

import polars as pl
import yaml
from hypothesis import strategies as st

import equipoise as eq
from equipoise.findings import from_dict
from equipoise.findings.finding import from_json
from equipoise.plan import Plan, gate
from tests.fuzz import cases
from tests.fuzz.conftest import CASES
from tests.fuzz.mutations import mutated
from tests.fuzz.outcome import outcome
from tests.fuzz.tables import Rng, chance, pick
from tests.fuzz.test_texts import hypotheses

PLAN = """\
equipoise: 1
title: A title
seed: 7
trail: {source: "equipoise:compas", label: recidivism, prediction: high_risk}
audits:
  - audit: certify
    name: bounds
    claim: {kind: gap, metric: false_positive_rate, across: [race, sex]}
    tolerance: 0.1
  - audit: flag
    claim: {kind: ratio, metric: selection_rate, across: [race], target: {kind: overall}}
    below: 0.8
    method: {kind: under_null, test: score}
  - audit: summarize
    metric: accuracy
    across: [race, sex]
    measures: [variance]
  - audit: shift
    claim: {kind: gap, metric: accuracy}
    over: {kind: gaussian_kernel, columns: [age]}
  - audit: individual
    vary: [race]
    features: [race, sex]
"""
SIGNS = "\n :-[]{},&*!|>'\"%@`#?\t\\0\x00\x85\u2028é😀~<=.eE+_x1"


def edited(text: str) -> Any:
    """A text in which some stretches were replaced."""
    place = st.integers(0, len(text))
    change = st.tuples(place, st.integers(0, 12), st.text(SIGNS, max_size=6))

    def apply(changes: list[tuple[int, int, str]]) -> str:
        made = text
        for start, length, new in changes:
            made = made[:start] + new + made[start + length :]
        return made

    return st.lists(change, min_size=1, max_size=3).map(apply)


def test_plan_texts(record_property: Any) -> None:
    def check(text: str) -> None:
        plan = outcome(lambda: Plan.parse(text))
        assert plan is None or plan.hash == Plan.from_plain(plan.to_plain()).hash

    record_property(CASES, hypotheses("plan text", edited(PLAN), check))


def test_plan_data(record_property: Any) -> None:
    plain = yaml.safe_load(PLAN)

    def one(rng: Rng) -> None:
        data = mutated(rng, plain)
        before = copy.deepcopy(data)
        plan = outcome(lambda: Plan.from_plain(data))
        assert repr(data) == repr(before)
        if plan is not None:
            assert len(plan.names()) == len(plan.audits)

    record_property(CASES, cases.run("plan data", one))


@functools.cache
def findings() -> tuple[Any, ...]:
    """One small finding of every kind that can be made in a moment."""
    groups = ["a", "b", None, "a", "b", "b"] * 5
    data = {
        "y": [0, 1] * 15,
        "p": [0, 1, 1] * 10,
        "s": [i / 30 for i in range(30)],
        "g": groups,
        "x": [float(i % 7) for i in range(30)],
    }
    trail = eq.read(pl.DataFrame(data), label="y", prediction="p", score="s")
    claim = eq.gap("accuracy", across="g")
    return (
        eq.describe(trail, claim),
        eq.certify(trail, claim, tolerance=0.1, resamples=20, rng=1),
        eq.certify(trail, claim, tolerance=0.1, resamples=20, method="bootstrap", rng=1),
        eq.certify(trail, claim, tolerance=0.1, resamples=20, method="certificates", rng=1),
        eq.certify(
            trail,
            eq.gap("accuracy", across=eq.intervals("x")),
            tolerance=0.1,
            method=eq.AllRanges(resamples=20),
            rng=1,
        ),
        eq.certify(trail, eq.equalized_odds(across="g"), tolerance=0.1, resamples=20, rng=1),
        eq.flag(trail, claim, rng=1),
        eq.joint_test(trail, claim, rng=1),
        eq.summarize(trail, "accuracy", across="g", resamples=20, rng=1),
        eq.compare(trail, "accuracy", across=["g", "x"], resamples=20, rng=1),
        eq.individual(trail, vary="g", features=["g"], tolerance=0.1, resamples=100, rng=1),
        eq.shift(trail, eq.gap("accuracy"), over="x", resamples=20, rng=1),
        eq.calibration(
            trail, features=["x"], method="hosmer-lemeshow", resamples=20, importance=0, rng=1
        ),
    )


@functools.cache
def stored() -> tuple[str, ...]:
    return tuple(found.to_json() for found in findings())


def test_findings(record_property: Any) -> None:
    def one(rng: Rng) -> None:
        text = pick(rng, stored())
        if chance(rng, 0.2):
            broken = _cut(rng, text)
            outcome(lambda: from_json(broken))
            return
        data = mutated(rng, json.loads(text), most=1)
        before = copy.deepcopy(data)
        outcome(lambda: from_dict(data))
        assert repr(data) == repr(before)

    record_property(CASES, cases.run("findings", one))


def test_evidence(record_property: Any) -> None:
    small = eq.Evidence.of(*findings()[:4], title="Audit").to_json()

    def one(rng: Rng) -> None:
        strict = chance(rng, 0.5)
        if chance(rng, 0.3):
            text = _cut(rng, small)
        else:
            made = mutated(rng, json.loads(small), most=1)
            text = json.dumps(made)
        found = outcome(lambda: eq.Evidence.from_json(text, strict=strict))
        if found is not None:
            outcome(lambda: gate(found))
            # what passes the strict reading says what was written
            assert not strict or json.loads(found.to_json()) == json.loads(small)

    record_property(CASES, cases.run("evidence", one))


def _cut(rng: Rng, text: str) -> str:
    start, length = int(rng.integers(len(text))), int(rng.integers(1, 40))
    new = pick(rng, ("", "{", "]", '"', "NaN", "1e999", "null", "\\u0000", "[" * 5000, ","))
    return text[:start] + new + text[start + length :]
