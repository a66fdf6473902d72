"""Labels seen of some rows only: worst cases over all labels, and weights by logged chances."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import equipoise as eq
from equipoise.audits._groups.problem import set_up
from equipoise.errors import ClaimError, OptionError, TrailError
from equipoise.methods.inference.unknown import PairCore

METRICS = (
    "false_positive_rate", "true_positive_rate", "error_rate", "accuracy",
    "positive_predictive_value", "negative_predictive_value",
)  # fmt: skip
TARGETS = {
    "complement": eq.complement(),
    "reference": eq.reference(race="A"),
    "number": eq.constant(0.3),
}


def _tiny(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, 30).astype(float)
    label[rng.choice(30, 6, replace=False)] = np.nan
    races = np.array(["A", "B", "C"])[np.arange(30) % 3]
    return pd.DataFrame({"race": races, "label": label, "pred": rng.integers(0, 2, 30)})


def _rate(metric: str, label: Any, pred: Any) -> float:
    able, value = {
        "false_positive_rate": (label == 0, pred == 1),
        "true_positive_rate": (label == 1, pred == 1),
        "error_rate": (label >= 0, label != pred),
        "accuracy": (label >= 0, label == pred),
        "positive_predictive_value": (pred == 1, label == 1),
        "negative_predictive_value": (pred == 0, label == 0),
    }[metric]
    return float(value[able].mean()) if able.any() else float("nan")


def _ranges(table: pd.DataFrame, metric: str, target: str) -> Mapping[str, tuple[float, float]]:
    """The lowest and highest gap of each group over all labels."""
    seen: dict[str, list[float]] = {"A": [], "B": [], "C": []}
    label, pred = table["label"].to_numpy(copy=True), table["pred"].to_numpy()
    holes = np.flatnonzero(np.isnan(label))
    for chosen in itertools.product((0.0, 1.0), repeat=len(holes)):
        label[holes] = chosen
        rates = {}
        for race in seen:
            own = (table["race"] == race).to_numpy()
            rates[race] = (
                _rate(metric, label[own], pred[own]), _rate(metric, label[~own], pred[~own]),
            )  # fmt: skip
        for race, (own_rate, rest) in rates.items():
            theta = {"complement": rest, "reference": rates["A"][0], "number": 0.3}[target]
            seen[race].append(own_rate - theta)
    return {race: (float(np.nanmin(gaps)), float(np.nanmax(gaps))) for race, gaps in seen.items()}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("metric", METRICS)
def test_ends_are_those_of_all_labels(metric: str, target: str) -> None:
    table = _tiny(5)
    claim = eq.gap(metric, across="race", target=TARGETS[target], unlabelled="worst")
    problem = set_up(eq.read(table, label="label", prediction="pred"), claim)
    core = problem.core
    assert isinstance(core, PairCore)
    ranges = _ranges(table, metric, target)
    for i, where in enumerate(problem.collection.wheres()):
        if core.status[i] == 0:
            low, high = ranges[str(where["race"])]
            assert core.low.pivot.estimate[i] == pytest.approx(low)
            assert core.high.pivot.estimate[i] == pytest.approx(high)


def _loans(rows: int = 4000) -> pd.DataFrame:
    """Decisions whose outcome is seen with a chance that depends on the score."""
    rng = np.random.default_rng(6)
    race = rng.choice(["A", "B"], rows, p=[0.7, 0.3])
    score = rng.random(rows)
    label = (rng.random(rows) < 0.2 + 0.6 * score).astype(float)
    pred = (score + np.where(race == "B", 0.1, 0.0) > 0.5).astype(int)
    chance = 0.15 + 0.8 * score
    seen = rng.random(rows) < chance
    return pd.DataFrame(
        {"race": race, "label": np.where(seen, label, np.nan), "all": label, "pred": pred,
         "chance": chance}
    )  # fmt: skip


def test_bounds_say_what_labels_leave_open() -> None:
    table = _loans()
    claim = eq.gap("false_positive_rate", across="race", target=eq.complement(), unlabelled="worst")
    found = eq.certify(
        eq.read(table, label="label", prediction="pred"), claim, tolerance=0.4, rng=1
    )
    true = eq.certify(
        eq.read(table, label="all", prediction="pred"),
        eq.gap("false_positive_rate", across="race", target=eq.complement()),
        rng=1,
    )
    for row, beside, known in zip(found.rows, found.unknown, true.rows, strict=True):
        assert row.lower < beside.lowest < known.disparity < beside.highest < row.upper
        assert beside.what == "labels"
        assert found.reason(row) in ("", "unknown labels")
    missing = int(table["label"].isna().sum())
    assert any(f"No label: {missing:,} rows" in text for text in found.sentences())
    assert found.at(0.95).rows == found.rows
    assert eq.findings.from_json(found.to_json()) == found


def test_logged_chances_weigh_what_was_seen() -> None:
    table = _loans(20_000)
    claim = eq.gap("false_positive_rate", across="race", target=0.4)
    roles = {"label": "label", "prediction": "pred"}
    naive = eq.certify(eq.read(table, **roles), claim, rng=1)
    weighed = eq.certify(eq.read(table, observed="chance", **roles), claim, rng=1)
    full = eq.certify(eq.read(table, label="all", prediction="pred"), claim, rng=1)
    for plain, row, true in zip(naive.rows, weighed.rows, full.rows, strict=True):
        assert abs(row.value - true.value) < 0.02 < abs(plain.value - true.value)
        assert row.lower < true.disparity < row.upper
    assert any("chances of being observed" in text for text in weighed.assumptions)
    # decisions are seen of everybody, and are not weighed
    rates = eq.gap("selection_rate", across="race")
    usual, both = (
        eq.certify(eq.read(table, **roles, **more), rates, rng=1)
        for more in ({}, {"observed": "chance"})
    )
    assert usual.rows == both.rows


def test_refusals() -> None:
    table = _loans(300)
    trail = eq.read(table, label="label", prediction="pred")
    for options, words in (
        ({"metric": "selection_rate", "target": eq.complement()}, "needs none"),
        ({"metric": "error_rate"}, "complement"),
        ({"metric": "error_rate", "target": 0.2, "unknown": "worst"}, "plain groups"),
    ):
        with pytest.raises(ClaimError, match=words):
            eq.gap(options.pop("metric"), across="race", unlabelled="worst", **options)  # type: ignore[arg-type]
    claim = eq.gap("error_rate", across="race", target=0.2, unlabelled="worst")
    with pytest.raises(ClaimError, match="weight"):
        eq.certify(eq.read(table, label="label", prediction="pred", weight="chance"), claim)
    with pytest.raises(ClaimError, match="shares no row"):
        eq.certify(
            eq.read(table.assign(sex="f"), label="label", prediction="pred"),
            eq.gap("error_rate", across=eq.intersections("race", "sex"),
                   target=eq.reference(race="A"), unlabelled="worst"),
        )  # fmt: skip
    for bad in (0.0, 1.5, -1.0):
        broken = table.assign(chance=bad)
        with pytest.raises(TrailError, match="observed"):
            eq.certify(
                eq.read(broken, label="label", prediction="pred", observed="chance"),
                eq.gap("error_rate", across="race"),
            )
    ranges = eq.gap("error_rate", across=eq.intervals("chance"), target=0.2, unlabelled="worst")
    with pytest.raises(OptionError, match="unlabelled="):
        eq.certify(trail, ranges, method="all-ranges", tolerance=0.1)
    assert eq.from_plan(claim.to_plan()) == claim
    assert trail.roles.observed is None


def test_rows_that_were_hardly_ever_to_be_seen_weigh_whether_seen_or_not() -> None:
    # a tenth of B, all of them wrong, is hardly ever seen, and none of them is
    rng = np.random.default_rng(1)
    rows = 6000
    group = rng.choice(["A", "B"], rows, p=[0.7, 0.3])
    hidden = (group == "B") & (rng.random(rows) < 0.1)
    label = rng.integers(0, 2, rows)
    wrong = hidden | (rng.random(rows) < 0.1)
    seen = ~hidden & (rng.random(rows) < 0.95)
    table = pl.DataFrame({
        "group": group, "said": np.where(wrong, 1 - label, label),
        "chance": np.where(hidden, 0.002, 0.95),
        "label": [float(y) if k else None for y, k in zip(label, seen, strict=True)],
    })  # fmt: skip
    claim = eq.gap("error_rate", across="group", target="complement")
    roles: Any = {"label": "label", "prediction": "said", "observed": "chance"}
    found = eq.certify(table, claim, tolerance=0.05, rng=1, **roles)
    row = found.ask(group="B")
    assert row.upper is not None
    assert row.upper > 0.09
    assert str(found.verdict) == "undetermined"
    assert not any("add up to" in said for said in found.assumptions)
    assert {one.group: one.unknown for one in found.unknown} == {"A": 0, "B": hidden.sum()}
    # with weights they are not told apart, and make the table worth fewer rows instead
    weighed = eq.certify(table.with_columns(w=pl.lit(1.0)), claim, rng=1, weight="w", **roles)
    assert weighed.ask(group="B").upper > 0.09
    assert not weighed.unknown
    never = table.with_columns(chance=pl.lit(1.0))
    told = eq.certify(never, claim, rng=1, **roles).assumptions
    assert any("rows were observed where chances add up to 6,000" in said for said in told)
