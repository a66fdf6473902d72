"""Metrics, targets, groups and claims as values: checked when made, by call or by plan."""

from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.claims import METRICS, Ratio, as_claim

# What is called wrongly on purpose is called without types.
lib: Any = eq


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: lib.gap("acuracy", across="g"), "'acuracy' does not exist.* mean 'accuracy'"),
        (lambda: lib.gap(5, across="g"), "Expected a metric .*; got 5"),
        (lambda: lib.gap("accuracy", across=[]), "across= takes groups"),
        (lambda: lib.gap("accuracy", across=5), "across= takes groups .*; got 5"),
        (lambda: lib.gap("accuracy", across="g", target="all"), "A target is a number.*got 'all'"),
        (lambda: lib.gap("accuracy", across="g", target=True), "A target is a number"),
        (lambda: lib.ratio("accuracy", across="g", target=0), "not zero"),
        (lambda: lib.ratio("accuracy", across="g", target=0 * lib.overall()), "not zero"),
        (lambda: lib.intersections(), "at least one attribute"),
        (lambda: lib.intersections("a", "a"), "names 'a' more than once"),
        (lambda: lib.intersections("a", lib.binned("a", cuts=[1])), "names 'a' more than once"),
        (lambda: lib.intersections(5), "An attribute is a column name"),
        (lambda: lib.intersections(lib.intervals("a").attribute), "An attribute is a column name"),
        (lambda: lib.binned("a", cuts=[]), "at least 1 increasing"),
        (lambda: lib.binned("a", cuts=[2, 1]), "increasing numbers; got \\[2.0, 1.0\\]"),
        (lambda: lib.binned("a", cuts="12"), "list of increasing numbers; got '12'"),
        (lambda: lib.binned(5, cuts=[1]), "column name; got 5"),
        (lambda: lib.intervals("a", edges=[1]), "at least 2 increasing"),
        (lambda: lib.intervals("a", edges=[1, 2], grid=3), "either edges= or grid="),
        (lambda: lib.intervals(""), "column name; got ''"),
        (lambda: lib.boxes("a"), "two different attributes; got 'a'"),
        (lambda: lib.boxes("a", "a"), "two different attributes"),
        (lambda: lib.boxes("a", "b", edges={"c": [1, 2]}), "edges names 'c'.*'a', 'b'"),
        (lambda: lib.boxes("a", "b", edges=[1, 2]), "edges maps each attribute"),
        (lambda: lib.masks(), "at least one group"),
        (lambda: lib.masks(["x"]), "mapping from name to formula"),
        (lambda: lib.masks({"a": "x > 1"}, a="x > 2"), "names 'a' more than once"),
        (lambda: lib.masks({"": "x > 1"}), "needs a name"),
        (lambda: lib.bins(lib.bins("g")), "once, at given edges"),
        (lambda: lib.bins(lib.intersections("score")), "names 'score' more than once"),
        (lambda: lib.reference(), "at least one attribute"),
        (lambda: lib.reference("Male"), "reference takes attributes.*got 'Male'"),
        (lambda: lib.leaves(object(), ["a"]), "not fitted"),
        (lambda: lib.squared_error.clip(2, 1), "low below high"),
        (lambda: lib.brier.clip(2, 3), "no value in the range"),
        (lambda: lib.metric(" ", "x"), "needs a name"),
        (lambda: lib.metric("m", "x", low=2, high=1), "low must be below its high; got 2, 1"),
        (lambda: as_claim("accuracy"), "Expected a claim.*got 'accuracy'"),
        (lambda: as_claim(lib.equalized_odds(across="g")), "2 claims.*each of its .claims"),
    ],
)  # fmt: skip
def test_claims_that_make_no_sense(make: Any, says: str) -> None:
    with pytest.raises(eq.ClaimError, match=f"(?s){says}"):
        make()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: lib.gap("accuracy", acros="g"), "gap\\(\\) option 'acros'.*Did you mean 'across'"),
        (lambda: lib.ratio("accuracy"), "missing a required argument: 'across'"),
        (lambda: lib.gap("accuracy", "g"), "too many positional arguments"),
        (lambda: lib.intervals("a", gird=4), "option 'gird'.*Did you mean 'grid'"),
        (lambda: lib.intersections("a", dept=1), "Did you mean 'depth'"),
        (lambda: lib.binned("a", cut=[1]), "Did you mean 'cuts'"),
        (lambda: lib.metric("m", "x", were="y"), "Did you mean 'where'"),
        (lambda: lib.custom(0.1, influenc="x"), "Did you mean 'influence'"),
        (lambda: lib.multicalibration(across="g", numbr=3), "Did you mean 'number'"),
        (lambda: lib.datasets.compas(treshold=4), "Did you mean 'threshold'"),
        (lambda: lib.metric("m", "x", harm="hgih"), "harm 'hgih'.*Did you mean 'high'"),
        (lambda: lib.constant("1"), "The target must be a number; got '1'"),
        (lambda: lib.constant(float("nan")), "The target must be finite"),
        (lambda: lib.custom("a", "x"), "The estimate must be a number"),
        (lambda: "2" * lib.overall(), "The scale of a target must be a number"),
        (lambda: lib.metric("m", "x", low=float("inf")), "low must be finite"),
        (lambda: lib.intersections("a", max_groups=0), "max_groups must be a whole number"),
        (lambda: lib.intersections("a", depth=0), "depth must be a whole number"),
        (lambda: lib.intervals("a", grid=1.5), "grid must be a whole number"),
        (lambda: lib.intervals("a", edges=[1, "b"]), "edges must be a number; got 'b'"),
        (lambda: lib.intervals("a", edges=[1, float("inf")]), "edges must be finite"),
        (lambda: lib.bins("g", number=0), "number must be a whole number"),
    ],
)  # fmt: skip
def test_options_that_do_not_exist_or_fit(make: Any, says: str) -> None:
    with pytest.raises(eq.OptionError, match=f"(?s){says}"):
        make()


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (None, "Expected the name of a metric"),
        ({}, "a mapping with 'kind'"),
        ("acuracy", "Did you mean 'accuracy'"),
        ({"kind": "gapp"}, "Kind 'gapp' does not exist. Did you mean 'gap'"),
        ({"kind": ["gap"]}, "does not exist"),
        ({"kind": "gap"}, "gap needs 'metric'; got none"),
        ({"kind": "overall", "zz": 1}, "overall field 'zz' does not exist. There is: 'scale'"),
        ({"kind": "intersections", "attributes": 5}, "cannot be made from"),
        ({"kind": "intervals", "attribute": 5}, "column name; got 5"),
        ({"kind": "metric", "name": "m", "value": 5}, "got 5"),
        ({"kind": "metric", "name": "m", "value": "x.y"}, "Attribute is not allowed"),
        ({"kind": "masks", "conditions": ["x"]}, "names with formulas"),
        ({"kind": "condition", "name": "a", "formula": "x ="}, "cannot be read"),
        ({"kind": "reference", "where": 5}, "at least one attribute"),
        ({"kind": "together", "name": "x", "claims": []}, "joins no claim"),
        ({"kind": "boxes", "attributes": ["a"]}, "two different attributes"),
        ({"kind": "binned", "column": "x", "cuts": [2, 1]}, "increasing"),
        ({"kind": "ratio", "metric": "accuracy", "across": "g", "target": 0}, "not zero"),
        ({"kind": "constant", "value": {"number": "many"}}, "Expected a number"),
    ],
)  # fmt: skip
def test_plans_that_make_no_sense(plan: Any, says: str) -> None:
    with pytest.raises(eq.ClaimError, match=f"(?s){says}"):
        eq.from_plan(plan)


def test_a_plan_may_be_short() -> None:
    plan = {
        "kind": "ratio",
        "metric": "accuracy",
        "across": ["race", "sex"],
        "target": {"kind": "reference", "where": {"sex": "Male"}, "scale": 0.8},
    }
    made = eq.from_plan(plan)
    assert made == eq.ratio(
        "accuracy", across=eq.intersections("race", "sex"), target=0.8 * eq.reference(sex="Male")
    )
    assert eq.from_plan({"kind": "intervals", "attribute": "age"}) == eq.intervals("age")
    assert isinstance(made, Ratio)


def test_values_cannot_be_changed() -> None:
    claim = eq.gap("accuracy", across="g")
    for value, field in ((claim, "metric"), (claim.metric, "name"), (claim.across, "depth")):
        with pytest.raises((AttributeError, TypeError)):
            setattr(value, field, "other")


def test_reprs_and_words() -> None:
    assert repr(eq.accuracy) == "Metric(accuracy)"
    assert "Levels(column='sex')" in repr(eq.intersections("sex"))
    claim = eq.ratio("selection_rate", across="sex", target=0.8 * eq.reference(sex="Male"))
    assert claim.words == "selection rate as a share of 0.8 × Male"
    mixed = eq.reference({"a b": None, "flag": True, "no": False, "k": 3, "age": {"from": 1}})
    assert mixed.words == "a b missing, flag, not no, k 3, age from 1"
    assert eq.gap("brier", across="g", target=0.25).words == "brier against 0.25"


@pytest.mark.parametrize("value", [(0, 5), [20, 30], {20, 30}, np.array([20, 30]), b"x"])
def test_a_reference_group_has_one_value_or_one_range(value: Any) -> None:
    with pytest.raises(eq.ClaimError, match=r"one value of 'age', or one range.*'below': 45"):
        eq.reference(age=value)
    with pytest.raises(eq.ClaimError, match="one value of 'age'"):
        eq.from_plan({"kind": "reference", "where": {"age": value}})


def test_reference_values_are_plain() -> None:
    import datetime
    import decimal

    where = {
        "a": np.int64(3),
        "b": decimal.Decimal("1.5"),
        "c": datetime.date(2020, 1, 2),
        "d": 2.0,
    }
    target = eq.reference(where)
    assert target.where == {"a": 3, "b": 1.5, "c": "2020-01-02", "d": 2}
    where["a"] = 7
    assert target.where["a"] == 3
    assert hash(target) == hash(eq.reference(target.where))


def test_clipping() -> None:
    once = eq.squared_error.clip(0, 4)
    assert (once.low, once.high, once.clipped) == (0, 4, True)
    assert once.clip(-1, 9).high == 4
    assert eq.brier.clip(-3, 0.5).low == 0.0
    # A clipped 0/1 metric may hold other values.
    assert not eq.coverage.clip(0, 0.5).zero_one
    assert eq.coverage.clip(0, 1).zero_one


def test_every_built_in_metric_names_itself() -> None:
    for name, metric in METRICS.items():
        assert metric.to_plan() == name == metric.name
        assert getattr(eq, name) is metric
        assert eq.from_plan(name) is metric


def test_leaves_become_readable_rules() -> None:
    from sklearn.tree import DecisionTreeRegressor

    tree = DecisionTreeRegressor(max_depth=2).fit(
        [[20, 0], [30, 0], [50, 1], [60, 5]], [0, 1, 2, 9]
    )
    groups = eq.leaves(tree, ["age", "prior offences"])
    assert len(groups.conditions) == len({condition.name for condition in groups.conditions}) >= 3
    assert any(
        "column('prior offences')" in c.formula or "column('age')" in c.formula
        for c in groups.conditions
    )
    with pytest.raises(eq.ClaimError, match="fitted on 2 features; 1 were named"):
        eq.leaves(tree, ["age"])
    stump = DecisionTreeRegressor(max_depth=1).fit([[1], [1]], [0, 0])
    assert [c.name for c in eq.leaves(stump, ["a"]).conditions] == ["everyone"]
