"""Model selection under a constraint on the audit value."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import equipoise as eq
from equipoise.findings import FairChoice, from_json

FEATURES = ["sex", "race", "age", "priors", "charge"]
PENALTIES = (0.002, 0.01, 0.05, 1.0)


def choose(models: Any, trail: Any, **options: Any) -> FairChoice:
    return eq.select_fair(trail, models, **options)


def halves() -> tuple[pl.DataFrame, pl.DataFrame]:
    """African-American and Caucasian people of the table, one row each, in two halves."""
    counts = pl.DataFrame(eq.datasets.compas().frame.collect("polars").to_native())
    rows = counts.select(pl.exclude("n").repeat_by("n").explode())
    rows = rows.filter(pl.col("race").is_in(["African-American", "Caucasian"]))
    mixed = rows.sample(fraction=1, shuffle=True, seed=5)
    return mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]


TRAIN, AUDIT = halves()
TRAIL = eq.read(AUDIT, label="reoffended", attributes=FEATURES)


def fitted(c: float) -> Any:
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), FEATURES))
    model = make_pipeline(encode, LogisticRegression(C=c, l1_ratio=1.0, solver="liblinear"))
    return model.fit(TRAIN.select(FEATURES).to_pandas(), TRAIN["reoffended"].to_numpy())


MODELS = {f"C = {c:g}": fitted(c) for c in PENALTIES}
OPTIONS: dict[str, Any] = {"vary": ["race", "sex"], "rng": 1}


def test_every_model_is_audited_as_by_itself() -> None:
    found = choose(MODELS, TRAIL, tolerance=0.04, **OPTIONS)
    assert [row.model for row in found.rows] == list(MODELS)
    for row, model in zip(found.rows, MODELS.values(), strict=True):
        alone = eq.individual(TRAIL, model=model, tolerance=0.04, **OPTIONS)
        wrong = model.predict(AUDIT.select(FEATURES).to_pandas()) != AUDIT["reoffended"].to_numpy()
        assert row.error == pytest.approx(wrong.mean())
        assert row.value == pytest.approx(alone.value)
        assert row.lower == pytest.approx(alone.lower_bound)
        assert row.upper == pytest.approx(alone.upper_bound)
        assert row.verdict is alone.verdict


def test_the_choice_by_the_definition() -> None:
    for tolerance in (0.0, 0.02, 0.05, 0.3):
        for bound in ("lower", "upper"):
            found = choose(MODELS, TRAIL, tolerance=tolerance, side=bound, **OPTIONS)
            passing = [row for row in found.rows if getattr(row, bound) <= tolerance]
            assert [row.candidate for row in found.rows] == [row in passing for row in found.rows]
            best = min(passing, key=lambda row: (row.error, row.value), default=None)
            assert found.chosen == (best.model if best else None)


def test_a_wide_tolerance_chooses_the_most_accurate() -> None:
    found = choose(MODELS, TRAIL, tolerance=1.0, **OPTIONS)
    assert found.chosen == min(found.rows, key=lambda row: (row.error, row.value)).model
    assert "is chosen" in found.sentences()[0]


def test_no_model_fits() -> None:
    found = choose({"men": lambda f: f["sex"] == "Male"}, TRAIL, tolerance=0.01, **OPTIONS)
    assert found.chosen is None
    assert found.closest == "men"
    assert found.rows[0].verdict is eq.Verdict.EXCEEDED
    assert found.sentences()[0].startswith("None of 1 model meets the tolerance")


def test_upper_bounds_allow_for_the_number_of_models() -> None:
    one = choose({"a": MODELS["C = 1"]}, TRAIL, tolerance=0.1, side="upper", **OPTIONS)
    many = choose(
        dict.fromkeys("abcd", MODELS["C = 1"]), TRAIL, tolerance=0.1, side="upper", **OPTIONS
    )
    alone = eq.individual(TRAIL, model=MODELS["C = 1"], level=1 - 0.05 / 4, **OPTIONS)
    assert many.rows[0].upper == pytest.approx(alone.upper_bound)
    assert many.rows[0].upper > one.rows[0].upper


def test_round_trip_frame_html_and_chart() -> None:
    found = choose(MODELS, TRAIL, tolerance=0.04, **OPTIONS)
    assert from_json(found.to_json()) == found
    assert found == choose(MODELS, TRAIL, tolerance=0.04, **OPTIONS)
    assert list(found.to_frame("polars")["model"]) == list(MODELS)
    assert "<table>" in found._repr_html_()
    drawn = found.plot().to_dict()
    series = {record["series"] for record in drawn["datasets"][drawn["data"]["name"]]}
    assert series == {"error rate", "audit value", "lower bound", "upper bound"}


def test_progress_counts_models() -> None:
    told: list[tuple[int, int]] = []
    choose(MODELS, TRAIL, tolerance=0.1, progress=lambda a, b: told.append((a, b)), **OPTIONS)
    assert told == [(i + 1, 4) for i in range(4)]


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        ({}, {}, "models takes a name"),
        ([len], {}, "models takes a name"),
        (pl.Series([1]), {}, "models takes a name"),
        ({"a": lambda f: np.zeros(3)}, {}, "one answer for each"),
        ({"a": lambda f: 1 / 0}, {}, "ZeroDivisionError"),
        ({"a": len}, {"bound": "middle"}, "bound"),
        ({"a": len}, {"tolerance": -1.0}, "tolerance must be"),
        ({"a": None}, {}, "function of a frame"),
        ({"a": len}, {"vary": "rac"}, "Did you mean 'race'"),
        ({"a": len}, {"loss": eq.brier}, "With model"),
    ],
)
def test_bad_input_is_said_plainly(models: Any, options: Any, message: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=message):
        choose(models, TRAIL, **{"tolerance": 0.1, **OPTIONS, **options})


def test_what_is_assumed_of_people_nobody_saw_is_said() -> None:
    found = eq.select_fair(TRAIL, MODELS, tolerance=0.1, **OPTIONS)
    assert "the values of the features found in the table are all there are" in found.assumptions
