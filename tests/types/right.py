"""What a caller may write: neither type checker objects to a line of it, and all of it runs."""

from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeRegressor

import equipoise as eq
from equipoise.claims import GroupsLike, MetricLike, TargetLike
from equipoise.worlds import interaction_risks

TABLE = {"y": [0, 1, 1, 0], "p": [1, 1, 0, 0], "sex": ["f", "m", "f", "m"], "age": [20, 30, 40, 50]}


def groups() -> list[eq.Claim]:
    names = ["sex", "age"]
    plain: dict[str, object] = {"kind": "intersections", "attributes": ["sex"]}
    kept: list[GroupsLike] = ["sex", eq.intervals("age", grid=4), plain]
    return [
        eq.gap(eq.accuracy),
        eq.gap(eq.accuracy, across=None),
        eq.gap(eq.accuracy, across="sex"),
        eq.gap(eq.accuracy, across=["sex", "age"]),
        eq.gap(eq.accuracy, across=("sex", "age")),
        eq.gap(eq.accuracy, across=names),
        eq.gap(eq.accuracy, across=["sex", eq.binned("age", cuts=[30])]),
        eq.gap(eq.accuracy, across=eq.binned("age", cuts=np.array([30.0]))),
        eq.gap(eq.accuracy, across=eq.intersections("sex", eq.binned("age", (30, 40)), depth=1)),
        eq.gap(eq.accuracy, across=eq.masks(young="age < 25")),
        eq.gap(eq.accuracy, across=eq.tilts(older=lambda rows: rows["age"] / 100, columns=["age"])),
        eq.gap(eq.accuracy, across=eq.bins("sex", number=4)),
        eq.gap(eq.accuracy, across={"kind": "intersections", "attributes": ["sex"]}),
        *(eq.gap(eq.accuracy, across=groups) for groups in kept),
    ]


def targets() -> list[eq.Claim]:
    kept: list[TargetLike] = [0.5, 0.8 * eq.reference(sex="m"), "overall"]
    return [
        eq.gap(eq.accuracy, across="sex", target=None),
        eq.gap(eq.accuracy, across="sex", target=0),
        eq.gap(eq.accuracy, across="sex", target=0.5),
        eq.gap(eq.accuracy, across="sex", target=np.float32(0.5)),
        eq.gap(eq.accuracy, across="sex", target=np.arange(2)[0]),
        eq.gap(eq.accuracy, across="sex", target=Fraction(1, 2)),
        eq.gap(eq.accuracy, across="sex", target="complement"),
        eq.gap(eq.accuracy, across="sex", target=eq.custom(0.3, "age / 100")),
        eq.gap(eq.accuracy, across="sex", target={"kind": "constant", "value": 0.5}),
        eq.ratio(eq.accuracy, across="sex", target=eq.reference({"sex": "m"}, age=20)),
        eq.multicalibration(across=["sex"], edges=[0, 0.5, 1]),
        *eq.equalized_odds(across="sex", target="overall").claims,
        *(eq.gap(eq.accuracy, across="sex", target=target) for target in kept),
    ]


def metrics() -> list[eq.Claim]:
    plain: dict[str, object] = {"kind": "metric", "name": "old", "value": "age > 40"}
    kept: list[MetricLike] = [eq.brier.clip(0, 1), "accuracy", plain]
    return [
        eq.gap("accuracy", across="sex"),
        eq.gap(eq.metric("late", "age > 25", where="y == 1", values=(0, 1)), across="sex"),
        eq.ratio({"kind": "metric", "name": "old", "value": "age > 40"}, across="sex"),
        *(eq.gap(metric, across="sex") for metric in kept),
    ]


def trails(folder: Path) -> list[eq.Trail]:
    frame = pl.DataFrame(TABLE)
    frame.write_csv(folder / "rows.csv")
    duckdb.sql("CREATE TABLE IF NOT EXISTS decisions AS SELECT 1 AS y, 1 AS p, 'f' AS sex")
    trail = eq.read(frame, label="y", prediction="p", attributes=["sex"])
    return [
        trail,
        eq.read(trail, label="y", positive=0),
        eq.read(frame.lazy(), label="y", prediction="p", positive={"label": 1}),
        eq.read(pd.DataFrame(TABLE), label="y", prediction="p"),
        eq.read(pa.table(TABLE), label="y", prediction="p"),
        eq.read(duckdb.table("decisions"), label="y", prediction="p"),
        eq.read(folder / "rows.csv", label="y", prediction="p"),
        eq.read(str(folder / "*.csv"), label="y", prediction="p"),
    ]


def arrays() -> list[eq.Trail]:
    true, said = np.array([0, 1, 1]), [1, 1, 0]
    sex = ["f", None, "m"]
    return [
        eq.from_arrays(true, said, sensitive_features=sex),
        eq.from_arrays(y_true=[True, False, True], sensitive_features={"sex": sex, "old": true}),
        eq.from_arrays(pd.Series([0, 1, 1]), sensitive_features=pd.DataFrame({"sex": sex})),
        eq.from_arrays(pl.Series([0, 1, 1]), sensitive_features=pl.DataFrame({"sex": sex})),
        eq.from_arrays(true, y_score=true / 2, sample_weight=(1, 2, 3), sensitive_features=true),
    ]


def findings() -> list[eq.Finding]:
    trail, claim = eq.datasets.compas(), eq.gap("accuracy", across="sex")
    return [
        eq.describe(trail, claim),
        eq.flag(trail, claim, rng=7),
        eq.certify(trail, claim, rng=7),
    ]


def models() -> list[eq.Finding]:
    trail, people = eq.datasets.compas(), ["sex", "age"]
    said = {"priors": lambda frame: frame["priors"] == "More than 3"}
    risks = eq.read(pl.DataFrame(interaction_risks(200, rng=1)), label="y", score="score")
    learners = [DecisionTreeRegressor(max_depth=2), RandomForestClassifier(n_estimators=5)]
    return [
        eq.calibration(risks, features=("x0", "x1"), method="platt", rng=7),
        eq.calibration(risks, models=learners, resamples=50, importance=0, rng=7),
        eq.calibration(risks, models={"tree": learners[0]}, resamples=50, importance=0, rng=7),
        eq.individual(trail, vary="sex", features=people, rng=7),
        eq.individual(trail, vary=("sex",), features=people, cost="fair-metric", rng=7),
        eq.individual(
            trail,
            vary=["sex"],
            model=lambda frame: frame["sex"] == "Male",
            features=people,
            cost=lambda one, other: float(one["sex"] != other["sex"]),
            budget=0.1,
            rng=7,
        ),
        eq.select_fair(trail, said, vary="sex", tolerance=0.1, features=[*people, "priors"], rng=7),
    ]


def charts() -> list[str]:
    trail, claim = eq.datasets.compas(), eq.gap("accuracy", across="sex")
    described, certified = eq.describe(trail, claim), eq.certify(trail, claim, rng=7)
    shifted = eq.shift(trail, claim, over=eq.gaussian("age", "sex", bandwidth=2), rng=7)
    drawn = [
        described.plot(),
        certified.plot(20),
        shifted.plot(shifted.ask_group(age="Less than 25")),
        shifted.plot(shifted.ask_population({"age": ["Less than 25"], "sex": ["Male"]})),
        shifted.plot(shifted.ask_tilt(lambda rows: rows["sex"] == "Male")),
        shifted.plot(shifted.ask_tilt(np.ones(shifted.rank))),
    ]
    return [chart.properties(title="Mine").to_json() for chart in drawn]
