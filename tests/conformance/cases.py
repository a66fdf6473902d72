"""Questions of every kind, asked of the awkward table."""

from typing import Any

import narwhals as nw

import equipoise as eq
from tests.conformance.table import awkward_table

TABLE = awkward_table()
BASIC: dict[str, Any] = {"label": "outcome", "prediction": "decision", "score": "score"}
VERDICT: dict[str, Any] = {"label": "verdict", "prediction": "decision", "positive": "yes"}
by_sex = eq.intersections("sex", "race")
late = eq.metric("late", "column('days late') > 3", where="label == 1")
cost = eq.metric("cost", "amount * score / (1 + abs(amount)) ** 0.5 - age % 7")
# cubes of its smallest values are nothing to a double, on which PostgreSQL fails
tiny = eq.metric("tiny", "tiny ** 2")
native = eq.metric("twice", nw.col("age") * 2.0, where=~nw.col("age").is_null())

CASES: dict[str, tuple[dict[str, Any], eq.Claim]] = {
    "binary rates": (BASIC, eq.gap("false_positive_rate", across=by_sex)),
    "predictive value": (BASIC, eq.gap("positive_predictive_value", across=by_sex)),
    "accuracy, text label": (VERDICT, eq.gap("accuracy", across=by_sex)),
    "selection": (BASIC, eq.ratio("selection_rate", across="race", target=eq.complement())),
    "brier": (BASIC, eq.gap("brier", across=by_sex)),
    "log loss": (BASIC, eq.gap("log_loss", across=by_sex)),
    "log loss, clipped": (BASIC, eq.gap(eq.log_loss.clip(0.1, 0.9), across=by_sex)),
    "absolute error": (BASIC, eq.gap("absolute_error", across="sex")),
    "relative error": (BASIC, eq.gap("relative_error", across="sex")),
    "exposure": (BASIC, eq.gap(eq.exposure("age"), across="sex")),
    "one class": (VERDICT, eq.gap(eq.one_class("selection_rate", True), across="sex")),
    "absolute error, truth label": (
        {"label": "member", "score": "score"},
        eq.gap("absolute_error", across="sex"),
    ),
    "coverage": (
        {"label": "score", "low": "lower", "high": "higher"},
        eq.gap("coverage", across=by_sex),
    ),
    "formula": (BASIC, eq.gap(late, across=by_sex)),
    "arithmetic": (BASIC, eq.gap(cost, across=by_sex)),
    "tiny values": (BASIC, eq.gap(tiny, across=by_sex)),
    "expression": (BASIC, eq.gap(native, across=by_sex)),
    "weights": ({**BASIC, "weight": "weight"}, eq.gap("true_positive_rate", across=by_sex)),
    "weights, summed": ({**BASIC, "weight": "weight"}, eq.gap("brier", across=by_sex)),
    "counts": ({**BASIC, "count": "times"}, eq.gap("error_rate", across=by_sex)),
    "counts and weights": (
        {**BASIC, "count": "times", "weight": "weight"},
        eq.gap("residual", across=by_sex),
    ),
    "clusters": ({**BASIC, "cluster": "age"}, eq.gap("accuracy", across="sex")),
    "binned": (
        BASIC,
        eq.gap("accuracy", across=eq.intersections("sex", eq.binned("income", cuts=(1, 2)))),
    ),
    "decimals": (BASIC, eq.gap("accuracy", across="hours")),
    "truth values": (BASIC, eq.gap("accuracy", across="member")),
    "dates": (BASIC, eq.gap("accuracy", across="born")),
    "time zones": (BASIC, eq.gap("accuracy", across="seen")),
    "clock times": (BASIC, eq.gap("accuracy", across="noted")),
    "numbers": (BASIC, eq.gap("accuracy", across="income")),
    "intervals, values": (BASIC, eq.gap("accuracy", across=eq.intervals("age"))),
    "intervals, edges": (
        BASIC,
        eq.gap("brier", across=eq.intervals("income", edges=(0.5, 1.25, 3))),
    ),
    "intervals, grid": (BASIC, eq.gap("accuracy", across=eq.intervals("amount", grid=7))),
    "thresholds": (BASIC, eq.gap("accuracy", across=eq.thresholds("age"))),
    "boxes": (BASIC, eq.gap("accuracy", across=eq.boxes("age", "amount", grid=4))),
    "masks": (
        BASIC,
        eq.gap(
            "accuracy",
            across=eq.masks(
                {
                    "young women": "age < 25 and sex == 'Female'",
                    "some": "race in ('Asian', 'Black') and not member",
                    "members": "member",
                    "late": "column('days late') in (2, 5) or amount > 10",
                }
            ),
        ),
    ),
    "tilts": (
        BASIC,
        eq.gap(
            "accuracy",
            across=eq.tilts(
                "days late",
                older="exp(age / 10) / (1 + amount ** 2)",
                members="member",
                rich="sqrt(income) * score",
            ),
        ),
    ),
    "bins": (BASIC, eq.multicalibration(across="sex", number=4)),
    "reference elsewhere": (
        BASIC,
        eq.gap("accuracy", across="sex", target=eq.reference(member=True)),
    ),
    "change": (
        BASIC,
        eq.gap(eq.change("accuracy", before="decision", after="member"), across=by_sex),
    ),
    "change, from a score on": (
        BASIC,
        eq.gap(
            eq.change("positive_predictive_value", before="score", after="lower", threshold=0.3),
            across=by_sex,
        ),
    ),
    "four fifths": (
        BASIC,
        eq.ratio("selection_rate", across="race", target=0.8 * eq.reference(sex="Male")),
    ),
}
