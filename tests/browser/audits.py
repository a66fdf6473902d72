"""The findings that reports are made of in the browser tests."""

from typing import Any

import numpy as np
import polars as pl

import equipoise as eq
from equipoise.findings import Bounds


def battery() -> tuple[eq.Finding, ...]:
    """One finding of every kind, on the bundled counts."""
    trail = eq.datasets.compas()
    claim = eq.gap("false_positive_rate", across=eq.intersections("race", "sex", "age"))
    both = eq.equalized_odds(across=eq.intersections("race", "sex"))
    ranges = eq.gap("accuracy", across=eq.intervals("decile_score"))
    found: list[Any] = [
        eq.flag(trail, claim, above=0.05, rng=1),
        eq.certify(trail, claim, tolerance=0.10, rng=7),
        eq.describe(trail, claim),
        eq.certify(trail, ranges, rng=7),
        eq.certify(trail, ranges, method="all-ranges", tolerance=-0.5, side="lower", rng=1),
        eq.certify(trail, claim, method="certificates", tolerance=0.2, resamples=200, rng=1),
        eq.certify(trail, both, tolerance=0.10, rng=3),
        eq.joint_test(trail, eq.gap("accuracy", across="race"), rng=1),
        eq.summarize(trail, "accuracy", across="race", resamples=200, rng=1),
        eq.compare(trail, "accuracy", across=("race", "sex"), resamples=200, rng=1),
        eq.individual(trail, vary="race", features=("race", "sex"), budget=0.1, rng=1),
        eq.shift(trail, eq.gap("accuracy"), over=eq.gaussian("age", "sex"), rng=7),
        eq.calibration(table(400), features=["age", "income"], resamples=100, rng=7),
    ]
    return tuple(found)


def table(rows: int = 1500, seed: int = 5) -> eq.Trail:
    """A table with numbers, missing values and levels of several types."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, rows)
    said = np.where(rng.random(rows) < 0.75, truth, 1 - truth)
    frame = pl.DataFrame(
        {
            "y": truth,
            "p": said,
            "score": rng.random(rows).round(3),
            "age": rng.integers(18, 60, rows),
            "income": rng.gamma(2.0, 20.0, rows).round(1),
            "place": rng.choice(["north", "south", "a, b"], rows, p=[0.6, 0.39, 0.01]),
            "married": rng.random(rows) < 0.4,
            "children": rng.integers(0, 4, rows),
        }
    ).with_columns(
        place=pl.when(pl.int_range(rows) % 97 == 0).then(None).otherwise(pl.col("place")),
        age=pl.when(pl.int_range(rows) % 41 == 0).then(None).otherwise(pl.col("age")),
        salary=1000 * pl.col("income"),
        insured=pl.when(pl.col("children") > 1).then(pl.lit("north")).otherwise(pl.lit("no")),
        weight=1 + 2 * pl.col("married"),
    )
    return eq.read(frame, label="y", prediction="p", score="score")


def many_bounds(*names: str) -> dict[str, Bounds]:
    """Bounds of every target, collection, side and method; or some of them, by name."""
    compas, mixed = eq.datasets.compas(), table()
    groups = eq.intersections("race", "sex", "age")
    rate, few = "false_positive_rate", {"resamples": 300}
    asked: dict[str, tuple[eq.Trail, eq.Claim, dict[str, Any]]] = {
        "overall": (compas, eq.gap(rate, across=groups), {"tolerance": 0.1}),
        "complement": (compas, eq.gap(rate, across=groups, target=eq.complement()), {}),
        "reference": (
            compas,
            eq.gap(rate, across=groups, target=eq.reference(race="Caucasian")),
            {"side": "upper", "tolerance": 0.2},
        ),
        "reference outside": (
            compas,
            eq.gap(rate, across=eq.intersections("race", "age"), target=eq.reference(sex="Male")),
            {},
        ),
        "scaled": (
            compas,
            eq.gap("accuracy", across=groups, target=0.8 * eq.reference(race="Caucasian")),
            {"side": "lower", "tolerance": 0.0},
        ),
        "constant": (compas, eq.gap(rate, across=groups, target=eq.constant(0.3)), {}),
        "ratio overall": (compas, eq.ratio(rate, across=groups), {"tolerance": 0.8}),
        "ratio complement": (compas, eq.ratio(rate, across=groups, target=eq.complement()), {}),
        "ratio reference": (
            compas,
            eq.ratio("selection_rate", across=groups, target=eq.reference(sex="Male")),
            {},
        ),
        "ratio constant": (compas, eq.ratio(rate, across=groups, target=eq.constant(0.3)), {}),
        "depth": (
            mixed,
            eq.gap("accuracy", across=eq.intersections("place", "married", "children", depth=2)),
            {},
        ),
        "binned": (
            mixed,
            eq.gap(
                "error_rate",
                across=eq.intersections("place", eq.binned("age", cuts=(25, 40))),
                target=eq.complement(),
            ),
            {},
        ),
        "intervals": (mixed, eq.gap("accuracy", across=eq.intervals("age")), {}),
        "thresholds": (mixed, eq.ratio("selection_rate", across=eq.thresholds("age")), {}),
        "grid": (mixed, eq.gap("accuracy", across=eq.intervals("income", grid=12)), {}),
        "boxes": (mixed, eq.gap("accuracy", across=eq.boxes("age", "income", grid=5)), {}),
        "one sided": (
            mixed,
            eq.gap("accuracy", across=eq.intervals("age", grid=6)),
            {"side": "lower"},
        ),
        "large numbers": (
            mixed,
            eq.gap("accuracy", across=eq.intervals("salary", grid=5)),
            {"level": 0.925},
        ),
        "shared levels": (
            mixed,
            eq.gap("accuracy", across=eq.intersections("place", "insured", "married", depth=2)),
            {},
        ),
        "bins": (
            mixed,
            eq.gap("accuracy", across=eq.bins(eq.intersections("place", "insured"), number=3)),
            {},
        ),
        "spread": (mixed, eq.gap("brier", across=eq.intersections("place", "married")), {}),
        "tilts": (mixed, eq.gap("accuracy", across=eq.tilts("weight", parents="children")), {}),
        "sidak": (
            compas,
            eq.gap(rate, across=groups),
            {"method": eq.Likelihood(family="sidak")},
        ),
        "pointwise": (
            compas,
            eq.gap(rate, across="race"),
            {"method": eq.Likelihood(family="pointwise")},
        ),
        "plug-in": (compas, eq.gap(rate, across="race"), {"method": "likelihood-plugin"}),
        "masks": (
            mixed,
            eq.gap("accuracy", across=eq.masks(young="age < 25", rich="income > 50")),
            {},
        ),
        "bootstrap": (compas, eq.gap(rate, across=groups), {"method": "bootstrap", **few}),
        "bootstrap ranges": (
            mixed,
            eq.gap("brier", across=eq.intervals("age", grid=8)),
            {"method": "bootstrap", "side": "upper", **few},
        ),
        "bootstrap ratio": (
            compas,
            eq.ratio(rate, across=eq.intersections("race", "sex")),
            {"method": "bootstrap", "tolerance": 0.8, **few},
        ),
        "euclidean": (mixed, eq.gap("brier", across="place"), {"method": "euclidean"}),
    }
    made = {}
    for name in names or asked:
        trail, claim, options = asked[name]
        found = eq.certify(trail, claim, rng=11, **options)
        assert isinstance(found, Bounds)
        made[name] = found
    return made
