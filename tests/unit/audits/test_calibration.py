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
    options = {"models": MODELS, "resamples": 99, "rng": 7, "importance": 0, "features": FEATURES}
    return eq.calibration(trail, **{**options, **changes})


def test_a_corner_is_found_and_described() -> None:
    frame = table(1000)
    tree = DecisionTreeClassifier(max_depth=5, random_state=0)
    found = audit(frame, models=[tree], importance=2, level=0.9)
    assert found.verdict is eq.Verdict.EXCEEDED
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
@pytest.mark.parametrize("side", ["both", "upper", "lower"])
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
    for side, sign in (("upper", 1), ("lower", -1)):
        found = audit(frame, side=side, tolerance=0.0)
        assert found.subgroup is not None
        assert sign * found.subgroup.disparity > 0
        assert {rule.direction for rule in found.rules} <= {"under" if sign > 0 else "over"}


def test_split_tests_the_rest_exactly() -> None:
    found = audit(table(400), split=0.6, method="cusum")
    assert (found.tested, found.folds, found.split) == (160, None, 0.6)
    assert "in samples of any size" in found.guarantee
    assert "for large samples" in audit(table(400), method="cusum").guarantee
    whole = audit(table(400), split=0.6)
    assert (whole.folds, whole.split) == (None, 0.6)
    assert "in samples of any size" in whole.guarantee


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
    assert len(one.models) == 5
    assert audit(frame, models=None, rng=8).paths != one.paths
    assert len(audit(frame, models=None, method="cusum").models) == 11


def test_counts_are_repeated_rows() -> None:
    frame = table(150).with_columns(pl.col("x0").round(0), pl.col("x1").round(0))
    frame = frame.with_columns(people=pl.Series([1, 2, 0] * 50))
    repeated = frame.select(pl.all().repeat_by("people").explode()).drop("people")
    one = audit(frame, {"count": "people"}, features=["x0", "x1"])
    two = audit(repeated, features=["x0", "x1"])
    assert (one.p, one.statistic, one.rules) == (two.p, two.statistic, two.rules)
    assert one.provenance.counted == 150


def test_nobody_predicts_a_violation() -> None:
    silent = [DummyRegressor(strategy="constant", constant=0.01)]
    found = audit(table(200), models=silent, method="cusum")
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
    hopeful = [DummyRegressor(strategy="constant", constant=0.09)]
    found = audit(frame, models=hopeful, tolerance=0.0, method="cusum")
    assert found.p == 1.0
    assert "the opposite" in found.reason


def test_real_outcomes() -> None:
    rng = np.random.default_rng(1)
    n = 500
    x, z = rng.normal(size=(2, n))
    noise = rng.normal(size=n)
    frame = pl.DataFrame({"x": x, "z": z, "score": x, "y": x + np.where(z > 0.8, 1.5, 0) + noise})
    found = audit(frame, models=None, features=["x", "z"], tolerance=0.5)
    assert found.verdict is eq.Verdict.EXCEEDED
    assert not found.share
    assert len(found.models) == 4
    assert any("z over 0." in rule.words for rule in found.rules)
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
    assert found.provenance.excluded == {"missing label": 1, "missing score": 1}
    assert found.provenance.counted == 298
    assert {line.column for line in found.importance} <= {"score", "a", "b", "age"}


def test_level_is_read_from_draws() -> None:
    found = audit(table(300), resamples=20, level=0.999)
    assert found.critical is None
    assert found.verdict is eq.Verdict.UNDETERMINED
    assert found.plot().to_dict()
    assert found.sentences()[1].startswith("Nothing could be shown at 99.9 % confidence: with 20")
    needed = 1052
    assert f"at least {needed:,} resamples" in found.sentences()[1]
    assert found.finest * (20 + 1) / (needed + 1) <= 0.001 < found.finest * (20 + 1) / needed
    enough = audit(table(300), resamples=20, level=0.9)
    assert not any("could be shown" in said for said in enough.sentences())


@pytest.mark.parametrize("option", ["features", "side", "method"])
def test_columns_for_words_are_refused(option: str) -> None:
    values: list[Any] = [pl.Series([1]), b"ab"]
    for value in values:
        with pytest.raises(eq.OptionError):
            audit(table(50), **{option: value})


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_only(label: int) -> None:
    frame = table(120).with_columns(y=pl.lit(label))
    found = audit(frame, models=None, resamples=50)
    assert found.verdict is eq.Verdict.EXCEEDED
    calm = frame.with_columns(score=pl.lit(float(label)))
    assert audit(calm, models=None, resamples=50).p == 1.0


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
    told = eq.calibration(
        trail, features=FEATURES, models=MODELS, resamples=99, importance=0, rng=7
    )
    truth = audit(frame.with_columns(pl.col("y").cast(pl.Boolean)))
    assert told.p == base.p == truth.p
    assert told.statistic == base.statistic == truth.statistic


def test_sample_is_drawn_and_told() -> None:
    found = audit(table(300), sample=100)
    assert (found.tested, found.provenance.counted) == (100, 100)
    assert found.provenance.excluded == {"not sampled": 200}
    assert audit(table(300), sample=1000).tested == 300


def test_too_many_rows_ask_for_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.audits._calibration.named_tests.MAX_AUDITED", 100)
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
        ({"side": "under"}, eq.OptionError, "side 'under' does not exist"),
        ({"method": "cusm"}, eq.OptionError, "Did you mean 'cusum'"),
        ({"folds": 1}, eq.OptionError, "folds must be a whole number of at least 2"),
        ({"folds": 200, "method": "cusum"}, eq.ClaimError, "150 rows are too few for 200 folds"),
        ({"split": 1.5}, eq.OptionError, "split must lie strictly between 0 and 1"),
        ({"split": 0.999, "method": "cusum"}, eq.ClaimError, "too few for a split"),
        ({"numeric": "yes"}, eq.OptionError, "numeric must be True or False"),
        ({"classes": {"a": "score"}}, eq.OptionError, "at least two values"),
        ({"level": 1}, eq.OptionError, "level must lie strictly"),
        ({"resamples": 5}, eq.OptionError, "resamples must be a whole number of at least 20"),
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
            audit(frame, {role: "w"}, method="cusum")
    with pytest.raises(eq.TrailError, match="label"):
        eq.calibration(frame, features=["x0"])


def test_a_model_that_fails_is_named() -> None:
    class Broken(LinearRegression):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Any:
            raise RuntimeError("no")

    with pytest.raises(eq.EquipoiseError, match="'broken' could not be fitted"):
        audit(table(80), models={"broken": Broken()})


def test_a_column_without_any_value_is_no_loss() -> None:
    frame = table(60).with_columns(x0=pl.lit(None, dtype=pl.Float64))
    assert audit(frame).provenance.counted == 60


def test_no_rows_are_left() -> None:
    frame = table(20).with_columns(score=pl.lit(None, dtype=pl.Float64))
    with pytest.raises(eq.EquipoiseError):
        audit(frame)


def test_what_a_scan_finds_is_told_exactly() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 900))
    wrong = (a > 0.5) & (b > 0.5)
    y = (rng.random(900) < np.where(wrong, 0.85, 0.4)).astype(int)
    frame = pl.DataFrame({"a": a, "b": b, "score": 0.4, "y": y})
    found = audit(frame, features=["a", "b"], tolerance=0.05, resamples=199, importance=1)
    assert found.verdict is eq.Verdict.EXCEEDED
    assert found.component == "two columns"
    (rule,) = found.rules
    assert (rule.direction, rule.inside, rule.covers) == ("under", 1.0, 1.0)
    assert "a over" in rule.words
    assert "b over" in rule.words
    part = found.subgroup
    assert part is not None
    assert part.n == rule.n
    assert part.least is not None
    assert part.shrunken is not None
    assert 0.05 < part.least < part.shrunken < part.disparity
    assert {point.column for point in found.column_curves} == {"a", "b"}
    assert found.plot_columns().to_dict()


def test_directions_are_never_netted() -> None:
    # half of them too high, half too low: together nobody would notice
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, 1000))
    y = (rng.random(1000) < 0.5 + 0.25 * np.sign(a * b)).astype(int)
    frame = pl.DataFrame({"a": a, "b": b, "score": 0.5, "y": y})
    found = audit(frame, features=["a", "b"], resamples=199)
    assert {part.direction for part in found.parts} == {"under", "over"}
    for part in found.parts:
        sign = 1 if part.direction == "under" else -1
        assert sign * part.disparity > 0.15
    said = [line for line in found.sentences() if "estimated in the detected subgroup" in line]
    assert len(said) == 2


def test_missing_values_are_a_subgroup() -> None:
    rng = np.random.default_rng(5)
    gone = rng.random(800) < 0.15
    y = (rng.random(800) < np.where(gone, 0.7, 0.3)).astype(int)
    income = pl.Series(rng.normal(size=800)).to_frame("income").with_columns(g=pl.Series(gone))
    frame = income.select(
        income=pl.when("g").then(None).otherwise("income"), score=pl.lit(0.3), y=pl.Series(y)
    )
    found = audit(frame, features=["income"], resamples=199)
    assert found.provenance.counted == 800
    assert [rule.words for rule in found.rules] == ["income is missing"]


def test_weights_one_and_a_constant_change_nothing_and_weights_count() -> None:
    frame = table(300).with_columns(one=pl.lit(1.0), five=pl.lit(5.0), w=pl.col("x0").abs() + 0.1)
    base = audit(frame)
    kept = ("p", "statistic", "rules")
    for role in ("one", "five"):
        same = audit(frame, {"weight": role})
        assert [getattr(same, k) for k in kept] == [getattr(base, k) for k in kept]
    other = audit(frame, {"weight": "w"})
    assert other.p != base.p
    assert "weights say nothing of the outcome" in " ".join(other.assumptions)
    everyone = other.rows[-1]
    mean = np.average(frame["y"].to_numpy(), weights=frame["w"].to_numpy())
    assert everyone.value == pytest.approx(mean)


def test_clusters_are_drawn_together() -> None:
    # every row ten times: alone they would say ten times as much
    calm = pl.DataFrame(boundary_risks(150, rng=2, tolerance=0.0)).drop("risk")
    frame = calm.with_row_index("person")
    many = pl.concat([frame] * 10)
    told = audit(many, {"cluster": "person"}, tolerance=0.0)
    fooled = audit(many, tolerance=0.0)
    assert fooled.p < 0.02
    assert min(told.p, audit(frame, tolerance=0.0).p) > 0.1
    assert "for many clusters" in told.guarantee


def test_more_than_two_classes_are_one_family() -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=700)
    chance = np.stack([np.full(700, 0.3), np.where(x > 1, 0.1, 0.4), np.where(x > 1, 0.6, 0.3)], 1)
    y = np.array([rng.choice(3, p=p) for p in chance])
    frame = pl.DataFrame(
        {"x": x, "y": y, "s0": 0.3, "s1": [0.4] * 700, "s2": [0.3] * 700, "score": 0.3}
    )
    with pytest.raises(eq.ClaimError, match=r"has 3 values: 0, 1, 2.*classes=.*numeric=True"):
        audit(frame, features=["x"])
    assert not audit(frame, features=["x"], numeric=True, models=[LinearRegression()]).share
    columns = {0: "s0", 1: "s1", 2: "s2"}
    found = audit(frame, features=["x"], classes=columns, resamples=199)
    assert found.verdict is eq.Verdict.EXCEEDED
    assert [line.label for line in found.classes] == ["0", "1", "2"]
    assert found.p == min(line.p for line in found.classes)
    assert found.classes[0].verdict is eq.Verdict.UNDETERMINED
    assert "5 % at most" in found.guarantee
    assert "Each of 3 classes was tested against the rest" in found.sentences()[1]
    assert from_json(found.to_json()) == found
    written = audit(
        frame, features=["x"], classes={str(k): v for k, v in columns.items()}, resamples=199
    )
    assert written == found
    with pytest.raises(eq.OptionError, match="must be the column with the scores"):
        audit(frame, features=["x"], classes={0: "s0", 1: "nowhere"})


def test_an_outcome_the_score_rules_out_is_enough() -> None:
    frame = table(100).with_columns(score=pl.when(pl.col("y") == 0).then(0.0).otherwise(0.9))
    one = frame.with_columns(
        score=pl.when(pl.arange(0, 100) == frame["y"].arg_max()).then(0.0).otherwise("score")
    )
    found = audit(one, tolerance=0.0)
    assert found.verdict is eq.Verdict.EXCEEDED
    assert found.component == "impossible"
    assert found.subgroup is not None
    assert found.subgroup.n == 1


def test_rows_are_counted_before_they_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("rows were fetched")

    monkeypatch.setattr("equipoise.audits._calibration.named_tests.MAX_AUDITED", 100)
    monkeypatch.setattr("equipoise.audits._calibration.named_tests.pull_features", never)
    with pytest.raises(eq.TrailError, match="there are 101, more than 100"):
        audit(table(101))


def test_calibrated_risks_are_not_accused() -> None:
    # one fixed world at the edge of the tolerance: the p-value is no small number
    frame = pl.DataFrame(boundary_risks(400, rng=4)).drop("risk")
    assert audit(frame, models=None, tolerance=0.025).p > 0.1
