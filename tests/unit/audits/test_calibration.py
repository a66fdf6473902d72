"""`calibration`: what it finds, what it refuses, and that nothing irrelevant changes the answer."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import equipoise as eq
from equipoise.audits._calibration.named_tests import TESTS
from equipoise.findings import Calibration, from_json
from equipoise.worlds import boundary_risks, interaction_risks, segment_risks

# Quick models: what the verb does with predictions does not depend on who makes them.
MODELS = [DecisionTreeRegressor(max_depth=3), LogisticRegression()]
FEATURES = ["x0", "x1", "x2", "x3"]


def table(n: int = 400, seed: int = 3) -> pl.DataFrame:
    return pl.DataFrame(interaction_risks(n, rng=seed)).drop("risk")


def audit(frame: Any, roles: dict[str, str] | None = None, **changes: Any) -> Calibration:
    trail = eq.read(frame, **{"label": "y", "score": "score", **(roles or {})})
    options = {"models": MODELS, "draws": 99, "rng": 7, "importance": 0, "features": FEATURES}
    return eq.calibration(trail, **{**options, **changes})


def test_a_corner_is_found_and_described() -> None:
    frame = table(1000)
    found = audit(frame, models=[DecisionTreeClassifier(max_depth=5, random_state=0)], importance=2)
    assert found.verdict is eq.Verdict.SHOWN_NOT
    assert found.p <= 0.1
    group = found.subgroup
    assert group is not None
    assert group.disparity < -0.2
    rest = found.rows[-2]
    assert group.n + rest.n == found.tested == 1000
    assert {line.column for line in found.importance[:3]} == {"score", "x1", "x2"}
    assert any("x1" in rule.words and rule.direction == "over" for rule in found.rules)
    assert all(len(rule.words.split(" and ")) <= 6 for rule in found.rules)
    worst = {line.feature: line for line in found.profile}
    assert worst["x1"].worst < -2 < worst["x1"].everyone


def test_rows_agree_with_the_table() -> None:
    frame = table(400)
    found = audit(frame)
    everyone = found.rows[-1]
    assert everyone.n == 400
    assert everyone.value == pytest.approx(frame["y"].mean())
    assert everyone.target == pytest.approx(frame["score"].mean())
    assert everyone.disparity == pytest.approx(everyone.value - everyone.target)
    assert sum(point.n for point in found.curves) == 400


@pytest.mark.parametrize("method", sorted(TESTS))
@pytest.mark.parametrize("side", ["both", "under", "over"])
def test_every_method_and_side_answers(method: str, side: str) -> None:
    models = MODELS if TESTS[method].adaptive else None
    found = audit(table(300), method=method, side=side, models=models)
    assert 0 < found.p <= 1
    assert found.method == method
    assert from_json(found.to_json()) == found
    assert found.sentences()
    assert "<table>" in found._repr_html_()
    for chart in (found.plot_importance(), found.plot_calibration()):
        assert chart.to_dict()
    if found.paths:
        assert found.plot().to_dict()
    else:
        with pytest.raises(eq.OptionError, match="nothing to draw"):
            found.plot()
    if TESTS[method].adaptive and TESTS[method].split is None:
        assert (found.folds, found.tested) == (4, 300)
    if method == "multicalibration":
        assert (found.folds, found.split, found.tested) == (None, 0.75, 75)


def test_one_sided_tests_point_one_way() -> None:
    frame = table(600)
    for side, sign in (("under", 1), ("over", -1)):
        found = audit(frame, side=side, tolerance=0.0)
        assert found.subgroup is not None
        assert sign * found.subgroup.disparity > 0
        assert {rule.direction for rule in found.rules} <= {side}


def test_split_tests_the_rest_exactly() -> None:
    found = audit(table(400), split=0.6)
    assert (found.tested, found.folds, found.split) == (160, None, 0.6)
    assert "in samples of any size" in found.guarantee
    assert "for large samples" in audit(table(400)).guarantee


def test_order_of_rows_engine_and_sorted_labels_are_irrelevant() -> None:
    frame = table(300)
    kept = ("p", "statistic", "rules", "curves", "paths")
    answers = []
    for version in (
        frame,
        frame.sample(fraction=1.0, shuffle=True, seed=5),
        frame.sort("y"),
        frame.sort("x1", descending=True).to_pandas(),
        frame.to_arrow(),
    ):
        found = audit(version, importance=1)
        answers.append([getattr(found, name) for name in kept])
        answers[-1] += [found.importance, found.provenance.fingerprint]
    assert all(answer == answers[0] for answer in answers)


def test_same_seed_same_answer_and_default_pool_does_not_depend_on_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = table(200)
    one = audit(frame, models=None)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    two = audit(frame, models=None)
    assert one == two
    assert len(one.models) == 11
    assert audit(frame, models=None, rng=8).statistic != one.statistic


def test_counts_are_repeated_rows() -> None:
    frame = table(150).with_columns(pl.col("x0").round(0), pl.col("x1").round(0))
    frame = frame.with_columns(people=pl.Series([1, 2, 0] * 50))
    repeated = frame.select(pl.all().repeat_by("people").explode()).drop("people")
    one = audit(frame, {"count": "people"}, features=["x0", "x1"])
    two = audit(repeated, features=["x0", "x1"])
    assert (one.p, one.statistic, one.rules) == (two.p, two.statistic, two.rules)
    assert one.provenance.counted == 150


def test_nobody_predicts_a_violation() -> None:
    found = audit(table(200), models=[DummyRegressor(strategy="constant", constant=0.01)])
    assert (found.p, found.statistic, found.model) == (1.0, 0.0, None)
    assert found.verdict is eq.Verdict.UNDETERMINED
    assert "no residual model predicts a violation" in found.reason
    assert found.subgroup is None
    assert [row.group for row in found.rows] == ["everyone else", "everyone tested"]
    with pytest.raises(eq.OptionError, match="nothing to draw"):
        found.plot()
    assert from_json(found.to_json()) == found


def test_outcomes_may_say_the_opposite() -> None:
    frame = table(200).with_columns(score=pl.lit(0.9), y=pl.lit(0.0))
    found = audit(frame, models=[DummyRegressor(strategy="constant", constant=0.09)], tolerance=0.0)
    assert found.p == 1.0
    assert "the opposite" in found.reason


def test_real_outcomes() -> None:
    rng = np.random.default_rng(1)
    n = 500
    x, z = rng.normal(size=(2, n))
    noise = rng.normal(size=n)
    frame = pl.DataFrame({"x": x, "z": z, "score": x, "y": x + np.where(z > 0.8, 1.5, 0) + noise})
    found = audit(frame, models=None, features=["x", "z"], tolerance=0.5)
    assert found.verdict is eq.Verdict.SHOWN_NOT
    assert not found.share
    assert len(found.models) == 7
    assert any(rule.words.startswith("z over 0.") for rule in found.rules)
    calm = frame.with_columns(y=pl.Series(x + 0.3 * noise))
    assert audit(calm, features=["x", "z"], models=[LinearRegression()], tolerance=0.5).p > 0.1


def test_text_features_and_missing_values() -> None:
    frame = pl.DataFrame(segment_risks(300, rng=2)).drop("risk")
    frame = frame.with_columns(
        age=pl.Series([None, float("nan"), *range(298)]),
        a=pl.when(pl.arange(0, 300) == 5).then(None).otherwise("a"),
        y=pl.when(pl.arange(0, 300) == 7).then(None).otherwise("y"),
        score=pl.when(pl.arange(0, 300) == 9).then(None).otherwise("score"),
    )
    found = audit(frame, features=["a", "b", "age"], importance=1)
    assert found.provenance.excluded == {"missing label": 1, "missing score": 1, "missing age": 2}
    assert found.provenance.counted == 296
    assert {line.column for line in found.importance} <= {"score", "a", "b", "age"}


def test_level_is_read_from_draws() -> None:
    found = audit(table(300), draws=20, level=0.999)
    assert found.critical is None
    assert found.verdict is eq.Verdict.UNDETERMINED
    assert found.plot().to_dict()


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_only(label: int) -> None:
    frame = table(120).with_columns(y=pl.lit(label))
    found = audit(frame, models=None, draws=50)
    assert found.verdict is eq.Verdict.SHOWN_NOT
    calm = frame.with_columns(score=pl.lit(float(label)))
    assert audit(calm, models=None, draws=50).p == 1.0


def test_constant_and_duplicated_rows() -> None:
    frame = table(60).with_columns(x0=pl.lit(1.0), x1=pl.lit("same"))
    found = audit(frame, features=["x0", "x1"], models=None)
    assert 0 < found.p <= 1
    same = pl.concat([frame.head(1)] * 50)
    assert 0 < audit(same, features=["x0", "x1"], models=None).p <= 1


def test_labels_of_two_words_and_booleans() -> None:
    frame = table(200)
    base = audit(frame)
    words = frame.with_columns(
        y=pl.when(pl.col("y") == 1).then(pl.lit("ill")).otherwise(pl.lit("ok"))
    )
    trail = eq.read(words, label="y", score="score", positive="ill")
    told = eq.calibration(trail, features=FEATURES, models=MODELS, draws=99, importance=0, rng=7)
    truth = audit(frame.with_columns(pl.col("y").cast(pl.Boolean)))
    assert told.p == base.p == truth.p
    assert told.statistic == base.statistic == truth.statistic


def test_sample_is_drawn_and_told() -> None:
    found = audit(table(300), sample=100)
    assert (found.tested, found.provenance.counted) == (100, 100)
    assert found.provenance.excluded == {"not sampled": 200}
    assert audit(table(300), sample=1000).tested == 300


def test_too_many_rows_ask_for_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.audits._calibration.rows.MAX_AUDITED", 100)
    with pytest.raises(eq.TrailError, match="Pass sample=100"):
        audit(table(101))


def test_progress_is_told_to_the_end_and_may_stop() -> None:
    seen: list[tuple[int, int]] = []
    audit(table(200), importance=1, progress=lambda *x: seen.append(x))
    done = [a for a, _ in seen]
    assert done == sorted(done)
    assert seen[-1] == (done[-1], done[-1])
    assert len({total for _, total in seen}) == 1

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit(table(200), models=None, progress=stop)


def test_named_models_and_their_seeds() -> None:
    named = {"bush": RandomForestClassifier(5, max_depth=2), "line": LinearRegression()}
    one, two = (audit(table(200), models=named) for _ in range(2))
    assert one == two
    assert one.models == ("bush", "line")


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"tolerance": -0.1}, eq.OptionError, "tolerance must be zero or more"),
        ({"side": "upper"}, eq.OptionError, "side 'upper' does not exist"),
        ({"method": "cusm"}, eq.OptionError, "Did you mean 'cusum'"),
        ({"folds": 1}, eq.OptionError, "folds must be a whole number of at least 2"),
        ({"folds": 200}, eq.ClaimError, "150 rows are too few for 200 folds"),
        ({"split": 1.5}, eq.OptionError, "split must lie strictly between 0 and 1"),
        ({"split": 0.999}, eq.ClaimError, "too few for a split"),
        ({"level": 1}, eq.OptionError, "level must lie strictly"),
        ({"draws": 5}, eq.OptionError, "draws must be a whole number of at least 20"),
        ({"min_prevalence": 1}, eq.OptionError, "min_prevalence"),
        ({"importance": -1}, eq.OptionError, "importance must be a whole number"),
        ({"sample": 0}, eq.OptionError, "sample must be a whole number"),
        ({"features": "x0"}, eq.OptionError, "features must be a list"),
        ({"features": ["x0", "y"]}, eq.ClaimError, "is the label"),
        ({"features": ["x0", "x77"]}, eq.TrailError, "x77"),
        ({"models": []}, eq.OptionError, "models must be a list"),
        ({"models": [LinearRegression]}, eq.OptionError, "estimators with fit and predict"),
        ({"models": [RidgeClassifier()]}, eq.OptionError, "without predict_proba"),
        ({"method": "platt"}, eq.OptionError, "takes no models"),
        ({"fold": 3}, eq.OptionError, "Did you mean 'folds'"),
    ],
)
def test_bad_options(changes: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        audit(table(150), **changes)


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("score", pl.lit(1.5), "must hold probabilities"),
        ("score", -pl.col("score"), "must hold probabilities"),
        ("score", pl.lit(float("inf")), "is infinite"),
        ("y", pl.col("y") + 1, "two values, 1 and 2. Pass positive"),
        ("x0", pl.lit(float("inf")), "must be finite"),
    ],
)
def test_bad_tables(column: str, values: pl.Expr, says: str) -> None:
    with pytest.raises(eq.TrailError, match=says):
        audit(table(50).with_columns(values.alias(column)))


def test_roles_that_are_not_played_or_not_taken() -> None:
    frame = table(50).with_columns(w=pl.lit(1.0))
    with pytest.raises(eq.TrailError, match="needs a score column"):
        eq.calibration(eq.read(frame, label="y"), features=["x0"])
    for role in ("weight", "cluster"):
        with pytest.raises(eq.OptionError, match=f"takes no {role} column"):
            audit(frame, {role: "w"})
    with pytest.raises(eq.TrailError, match="Expected a trail"):
        eq.calibration(frame, features=["x0"])  # type: ignore[arg-type]


def test_a_model_that_fails_is_named() -> None:
    class Broken(LinearRegression):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Any:
            raise RuntimeError("no")

    with pytest.raises(eq.EquipoiseError, match="'broken' could not be fitted"):
        audit(table(80), models={"broken": Broken()})


def test_no_rows_are_left() -> None:
    frame = table(20).with_columns(x0=pl.lit(None, dtype=pl.Float64))
    with pytest.raises(eq.EquipoiseError):
        audit(frame)


def test_calibrated_risks_are_not_accused() -> None:
    # one fixed world at the edge of the tolerance: the p-value is no small number
    frame = pl.DataFrame(boundary_risks(400, rng=4)).drop("risk")
    assert audit(frame, models=None, tolerance=0.025).p > 0.1
