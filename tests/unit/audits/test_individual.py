"""Individual fairness at the level of the verb."""

import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import equipoise as eq
from equipoise.audits import _people
from equipoise.audits._individual import tolerance_verdict
from equipoise.findings import Individual, from_json

FEATURES = ["race", "sex", "age", "priors", "charge"]
OPTIONS: dict[str, Any] = {"vary": ["race", "sex"], "features": FEATURES, "rng": 3}


def predict(frame: Any) -> Any:
    """More than three prior offences, or young men who are African-American."""
    young = (frame["age"] == "Less than 25") & (frame["sex"] == "Male")
    return (frame["priors"] == "More than 3") | (young & (frame["race"] == "African-American"))


def audit(trail: Any = None, **options: Any) -> Individual:
    return eq.individual(eq.datasets.compas() if trail is None else trail, **options)


def compas_rows() -> pl.DataFrame:
    return pl.DataFrame(eq.datasets.compas().frame.collect("polars").to_native())


# Two kinds by team, two by site; the model errs on team b at site x with label 1.
TABLE = pl.DataFrame(
    {
        "team": ["a", "b", "a", "b", "a", "b", "a"],
        "site": ["x", "x", "y", "y", "x", "x", "y"],
        "y": [1, 1, 1, 1, 0, 0, 0],
        "p": [1, 0, 1, 1, 0, 0, 1],
        "s": [0.9, 0.2, 0.8, 0.7, 0.1, 0.3, 0.6],
        "n": [30, 10, 20, 15, 25, 12, 8],
    }
)


def small(**roles: Any) -> Any:
    given = {"label": "y", "prediction": "p", "count": "n", "attributes": ["team", "site"]}
    return eq.read(TABLE, **{**given, **roles})


def full() -> Any:
    """The same with the one kind that is missing, so that all comparable people are seen."""
    missing = {"team": "b", "site": "y", "y": 0, "p": 1, "s": 0.6, "n": 5}
    table = pl.concat([TABLE, pl.DataFrame([missing], schema=TABLE.schema)])
    return eq.read(table, label="y", prediction="p", count="n", attributes=["team", "site"])


def highs(cells: Any, cost: Callable[[Any, Any], float], budget: float) -> float:
    """The linear program as it is written down: a plan over all pairs, solved by HiGHS."""
    n = np.array([cell.n for cell in cells], dtype=float)
    here = np.flatnonzero(n > 0)
    pairs = [
        (a, b, cost(cells[a], cells[b]))
        for a, b in itertools.product(here.tolist(), range(len(cells)))
        if math.isfinite(cost(cells[a], cells[b]))
    ]
    gains = [cells[b].loss - cells[a].loss for a, b, _ in pairs]
    rows = np.zeros((len(here), len(pairs)))
    position = {int(a): i for i, a in enumerate(here)}
    for column, (a, _, _) in enumerate(pairs):
        rows[position[a], column] = 1
    found = linprog(
        -np.array(gains),
        A_ub=np.array([[paid for _, _, paid in pairs]]),
        b_ub=[budget],
        A_eq=rows,
        b_eq=n[here] / n.sum(),
        method="highs",
    )
    assert found.fun is not None
    return -float(found.fun)


def same_but_varied(a: Any, b: Any) -> float:
    same = a.label == b.label and all(a.where[f] == b.where[f] for f in ("age", "priors", "charge"))
    return 0.0 if same else math.inf


def steps(a: Any, b: Any) -> float:
    if a.label != b.label or any(a.where[f] != b.where[f] for f in ("priors", "charge")):
        return math.inf
    return float((a.where["race"] != b.where["race"]) + 2 * (a.where["age"] != b.where["age"]))


def test_value_equals_highs_on_compas() -> None:
    found = audit(model=predict, **OPTIONS)
    assert found.value == pytest.approx(highs(found.cells, same_but_varied, 0.0), abs=1e-9)
    assert found.value > 0.01


def test_value_with_a_metric_and_a_budget_equals_highs() -> None:
    by_where = audit(model=predict, **OPTIONS)

    class Person:
        def __init__(self, where: Any) -> None:
            self.where, self.label = where, 0

    found = audit(
        model=predict,
        cost=lambda a, b: steps(Person(a), Person(b)),
        budget=0.05,
        **{**OPTIONS, "method": "directional"},
    )
    assert found.value == pytest.approx(highs(by_where.cells, steps, 0.05), abs=1e-9)
    assert found.spent == pytest.approx(0.05)
    assert found.price is not None
    assert found.price > 0


def test_a_matrix_says_the_same_as_a_function() -> None:
    cells = audit(model=predict, **OPTIONS).cells
    matrix = [[steps(a, b) for b in cells] for a in cells]
    found = audit(model=predict, cost=matrix, budget=0.05, **OPTIONS)
    assert found.value == pytest.approx(highs(cells, steps, 0.05), abs=1e-9)


def test_small_table_by_hand() -> None:
    found = audit(small(), vary="team", tolerance=0.5, rng=1)
    # Thirty of 120 are right as team a, and would be wrong as team b; nobody else can lose.
    assert found.value == pytest.approx(30 / 120)
    assert found.risk == pytest.approx(18 / 120)
    (row,) = found.rows
    assert (row.people, row.n, row.label, row.loss, row.loss_to) == (30, 30, 1, 0.0, 1.0)
    assert (row.where, row.where_to) == ({"team": "a", "site": "x"}, {"team": "b", "site": "x"})
    assert found.observed_only
    assert found.isolated == 1
    # team b at site y with label 0 is not in the table, and could be treated worse
    assert found.gaps == 1
    assert found.verdict is eq.Verdict.UNDETERMINED
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower < found.value < found.upper
    said = found.sentences()
    assert "30 people (a, x) with label 1 are predicted 1, and would be predicted 0 as b." in said


def test_the_model_is_asked_about_people_nobody_saw() -> None:
    # Team b at site y with label 0 is not in the table.
    def harsh(frame: Any) -> Any:
        return (frame["team"] == "b") & (frame["site"] == "y")

    asked = audit(small(), vary="team", model=harsh, rng=1)
    unseen = [cell for cell in asked.cells if cell.n == 0]
    assert [(cell.where["team"], cell.where["site"], cell.label) for cell in unseen] == [
        ("b", "y", 0)
    ]
    assert not asked.observed_only
    # The eight of team a at y with label 0 lose, and the 15 of team b at y with label 1 too.
    assert asked.value == pytest.approx((8 + 15) / 120)


def test_verdicts_and_p_values() -> None:
    unfair, fair, open_ = (
        audit(full(), vary="team", tolerance=t, rng=1) for t in (0.05, 0.5, 0.25)
    )
    assert [f.verdict for f in (unfair, fair, open_)] == [
        eq.Verdict.EXCEEDED,
        eq.Verdict.KEPT,
        eq.Verdict.UNDETERMINED,
    ]
    assert unfair.p_above is not None
    assert unfair.p_above < 0.05
    assert fair.p_below is not None
    assert fair.p_below < 0.05
    assert audit(small(), vary="team", rng=1).verdict is None


def test_a_model_blind_to_what_is_varied_has_value_zero() -> None:
    found = audit(model=lambda frame: frame["priors"] != "0", tolerance=0.01, **OPTIONS)
    assert len(found.cells) == 6 * 2 * 3 * 3 * 2 * 2
    assert found.value == 0
    assert found.rows == ()
    assert found.verdict is eq.Verdict.KEPT
    assert "nobody in the table could be treated worse" in found.sentences()[0]


def test_cells_whose_loss_varies_give_no_certificate() -> None:
    found = audit(tolerance=0.01, **OPTIONS)
    assert found.mixed > 0
    assert (found.lower, found.upper_bound, found.p_above) == (None, None, None)
    assert found.verdict is eq.Verdict.UNDETERMINED
    assert "differs from row to row" in found.reason


def test_binned_features_and_other_losses() -> None:
    table = TABLE.with_columns(age=pl.Series([20, 22, 50, 51, 30, 24, 60]))
    trail = eq.read(
        table, label="y", prediction="p", score="s", count="n", attributes=["age", "team"]
    )
    found = audit(trail, vary="team", features=["team", eq.binned("age", cuts=[40])], rng=1)
    assert found.value == pytest.approx(30 / 120)
    ages = {tuple(cell.where["age"].items()) for cell in found.cells}
    assert ages == {(("below", 40.0),), (("from", 40.0),)}
    brier = audit(
        trail, vary="team", features=["team", eq.binned("age", cuts=[40])], loss=eq.brier, rng=1
    )
    # Each kind of people is one row, so moves can be read off: (loss there - loss here) × people.
    gain = 30 * (0.64 - 0.01) + 20 * (0.09 - 0.04) + 25 * (0.09 - 0.01)
    assert brier.value == pytest.approx(gain / 120)
    assert not brier.share


def test_a_loss_of_ones_own() -> None:
    def half(label: Any, answer: Any) -> Any:
        return np.abs(label - answer) / 2

    found = audit(
        small(), vary="team", model=lambda f: np.where(f["team"] == "b", 0.8, 0.2), loss=half
    )
    # label 0: team a (25 + 8) from .1 to .4; label 1: team b (10 + 15) from .1 to .4
    assert found.value == pytest.approx(0.3 * (33 + 25) / 120)
    assert found.loss == "average half"


def test_fair_metric_is_blind_to_the_varied_feature() -> None:
    found = audit(model=predict, cost="fair-metric", budget=0.0, **OPTIONS)
    free = audit(model=predict, **OPTIONS)
    # Moves that are free under zero/infinite costs are free here; perhaps others are as well.
    assert found.value >= free.value - 1e-12
    dearer = audit(model=predict, cost="fair-metric", budget=0.5, **OPTIONS)
    assert dearer.value >= found.value


@pytest.mark.parametrize("method", ["normal", "directional", "bootstrap", "m-out-of-n", "beta"])
def test_methods_by_name(method: str) -> None:
    found = audit(small(), vary="team", method=method, rng=1, resamples=300)
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower < 0.25 < found.upper
    assert found.reason == "asked for by name"


def test_same_seed_same_answer_and_round_trip() -> None:
    first, second = (audit(model=predict, tolerance=0.1, **OPTIONS) for _ in range(2))
    assert first == second
    assert from_json(first.to_json()) == first
    assert first.provenance.seed == 3


def test_infinite_budget_round_trip() -> None:
    found = audit(small(), vary="team", cost=np.ones((7, 7)) - np.eye(7), budget=math.inf, rng=1)
    assert from_json(found.to_json()) == found
    assert found.value == pytest.approx(1 - 18 / 120)


def test_frame_html_and_heat_map() -> None:
    found = audit(model=predict, **OPTIONS)
    assert {"group", "to", "people", "race", "charge"} <= set(found.to_frame("polars").columns)
    assert "<table>" in found._repr_html_()
    changes = found.changes()
    drawn = found.plot().to_dict()
    assert drawn["facet"]["row"]["field"] == "panel"
    # People move, nobody is lost: each column of the map adds up to zero.
    for panel, column in {(c["panel"], c["column"]) for c in changes}:
        same = [c["change"] for c in changes if (c["panel"], c["column"]) == (panel, column)]
        assert sum(same) == pytest.approx(0, abs=1e-6)
    assert max(c["change"] for c in changes) > 0
    columns = [c["column"].split(":")[0] for c in changes if c["panel"] == "label 0"]
    assert [name for name, _ in itertools.groupby(columns)] == ["age", "priors", "charge"]


def test_row_order_and_counts_do_not_matter() -> None:
    rows = compas_rows()
    long = rows.select(pl.exclude("n").repeat_by("n").explode()).sample(
        fraction=1, shuffle=True, seed=1
    )
    trail = eq.read(long, label="reoffended", attributes=FEATURES)
    assert audit(trail, model=predict, **OPTIONS).cells == audit(model=predict, **OPTIONS).cells


def test_text_labels_with_a_positive_value() -> None:
    table = TABLE.with_columns(
        y=pl.when(pl.col("y") == 1).then(pl.lit("yes")).otherwise(pl.lit("no"))
    )
    trail = eq.read(table, label="y", count="n", attributes=["team", "site"], positive="yes")
    found = audit(
        trail, vary="team", model=lambda f: ["yes" if t == "b" else "no" for t in f["team"]]
    )
    # label 0: team a is right, wrong as b (33); label 1: team b is right, wrong as a (25)
    assert found.value == pytest.approx((33 + 25) / 120)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"vary": "tem"}, "Did you mean 'team'"),
    ({"vary": []}, "vary names one or more"),
    ({"vary": ["team", "team"]}, "twice"),
    ({"cost": np.full((7, 7), np.nan)}, "NaN"),
    ({"cost": -np.ones((7, 7))}, "negative"),
    ({"cost": np.ones((7, 7))}, "pays to stay"),
    ({"cost": np.zeros((3, 3))}, "one row and one column for each of the 7 cells"),
    ({"cost": np.where(np.eye(7) == 1, 0.0, np.inf)}, "no cell is comparable"),
    ({"cost": "euclid"}, "fair-metric"),
    ({"cost": lambda a, b: -1.0}, "negative"),
    ({"cost": lambda a, b: 1 / 0}, "ZeroDivisionError"),
    ({"cost": object()}, "cost must be None"),
    ({"method": 3}, "method is one of"),
    ({"method": eq.Pivotal()}, "method is one of"),
    ({"budget": -1.0}, "budget"),
    ({"budget": math.nan}, "budget"),
    ({"model": lambda frame: 1 / 0}, "ZeroDivisionError"),
    ({"model": lambda frame: [1]}, r"one answer for each of 4 rows"),
    ({"model": lambda frame: [0.5] * 4}, "must return 0 or 1"),
    ({"model": 3}, "function of a frame"),
    ({"model": predict, "loss": eq.brier}, "With model"),
    ({"loss": lambda label, answer: label}, "pass model="),
    ({"model": lambda f: [0.5] * 4, "loss": lambda y, p: y + 7}, r"losses must lie in \[0, 1\]"),
    ({"model": lambda f: [0.5] * 4, "loss": lambda y, p: y * np.nan}, r"losses must lie"),
    ({"model": lambda f: [0.5] * 4, "loss": lambda y, p: y[:2]}, "one number for each of 8 cells"),
    ({"model": lambda f: [0.5] * 4, "loss": lambda y, p: y / "a"}, "The loss failed"),
    ({"model": len, "features": ["team", eq.binned("n", cuts=[3])]}, "count column"),
    ({"features": "team"}, "list of attributes"),
    ({"features": ["team", "y"]}, "label column"),
    ({"level": 1.0}, "level"),
    ({"method": "normale"}, "Did you mean 'normal'"),
    ({"resamples": 3}, "resamples"),
    ({"tolerance": -0.1}, "tolerance"),
    ({"tolerance": math.nan}, "tolerance"),
    ({"modl": len}, "Did you mean 'model'"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[m for _, m in BAD])
def test_bad_input_is_said_plainly(options: dict[str, Any], message: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=f"(?i){message}"):
        audit(small(), **{"vary": "team", **options})


def test_trails_that_cannot_be_audited() -> None:
    with pytest.raises(eq.TrailError, match="label"):
        audit(eq.read(TABLE, prediction="p", attributes=["team"]), vary="team")
    with pytest.raises(eq.TrailError, match="prediction"):
        audit(eq.read(TABLE, label="y", attributes=["team"]), vary="team")
    with pytest.raises(eq.TrailError, match="label"):
        audit(TABLE, vary="team")
    one = eq.read(
        TABLE.filter(pl.col("team") == "a"), label="y", prediction="p", attributes=["team"]
    )
    with pytest.raises(eq.ClaimError, match="one level only"):
        audit(one, vary="team")


def test_a_feature_with_too_many_levels_is_refused() -> None:
    n = _people.MAX_LEVELS + 1
    table = pl.DataFrame(
        {"income": list(range(n)), "sex": ["f", "m", *["f"] * (n - 2)], "y": 1, "p": 0}
    )
    with pytest.raises(eq.ClaimError, match=r"binned\('income'"):
        audit(eq.read(table, label="y", prediction="p"), vary="sex")


def test_a_model_cannot_be_asked_about_ranges() -> None:
    table = TABLE.with_columns(age=pl.Series([20, 22, 50, 51, 30, 24, 60]))
    trail = eq.read(table, label="y", attributes=["team", "age"])
    with pytest.raises(eq.OptionError, match="range of 'age'"):
        audit(trail, vary="team", features=["team", eq.binned("age", cuts=[40])], model=len)


def test_missing_values_are_a_level_and_missing_labels_are_left_out() -> None:
    table = pl.concat(
        [
            TABLE,
            pl.DataFrame(
                {"team": [None, "a"], "site": ["x", "x"], "y": [1, None], "p": [0, 1]}
            ).with_columns(s=pl.lit(0.1), n=pl.lit(5, dtype=pl.Int64)),
        ]
    )
    trail = eq.read(table, label="y", prediction="p", count="n", attributes=["team", "site"])
    found = audit(trail, vary="team", rng=1)
    assert any(cell.where["team"] is None for cell in found.cells)
    assert found.provenance.excluded == {"missing label": 5}
    assert sum(cell.n for cell in found.cells) == found.provenance.counted == 125
    assert from_json(found.to_json()) == found


def test_people_described_by_some_features_only() -> None:
    found = audit(model=lambda f: (f["sex"] == "Male") & (f["age"] == "Less than 25"), **OPTIONS)
    said = found.moved_by("sex", "age")
    rows = compas_rows().filter(pl.col("age") == "Less than 25")
    right = rows.filter((pl.col("sex") == "Male") & (pl.col("reoffended") == 1))["n"].sum()
    start = f"{right:,} people (Male, Less than 25) with label 1 are predicted 1"
    # Whoever moves changes sex and nothing else, since that is all it takes.
    assert said[0] == f"{start}, and would be predicted 0 as Female."
    assert len(said) == 2
    assert sum(row.gain for row in found.rows) == pytest.approx(found.value)
    assert all(row.where_to == {**row.where, "sex": row.where_to["sex"]} for row in found.rows)
    assert len(said) < len(found.rows)
    with pytest.raises(eq.OptionError, match="Did you mean 'age'"):
        found.moved_by("agee")


def test_answers_may_be_values_of_the_label() -> None:
    table = TABLE.with_columns(y=pl.col("y") + 1)
    trail = eq.read(table, label="y", count="n", attributes=["team", "site"], positive=2)
    twos = audit(trail, vary="team", model=lambda f: np.full(4, 2), rng=1)
    ones = audit(trail, vary="team", model=lambda f: np.full(4, 1), rng=1)
    no = audit(trail, vary="team", model=lambda f: np.full(4, False), rng=1)
    assert twos.risk == pytest.approx(45 / 120)
    assert ones.risk == no.risk == pytest.approx(75 / 120)


def test_unfairness_to_people_nobody_saw_is_not_ruled_out() -> None:
    # Nobody of team c is at site x, and there alone the model looks at the city.
    table = pl.DataFrame(
        {"team": ["a", "a", "c", "c"], "site": ["x", "y", "y", "y"], "city": [*"pqpq"], "y": 1}
    ).select(pl.all().repeat_by(25).explode())
    trail = eq.read(table, label="y")

    def model(frame: Any) -> Any:
        wrong = (frame["team"] == "c") & (frame["site"] == "x") & (frame["city"] == "p")
        return ~wrong

    found = audit(trail, vary="city", model=model, tolerance=0.05, rng=1)
    assert found.value == 0
    assert found.upper_bound == pytest.approx(1 - 0.05 ** (1 / 100))
    assert found.method == "exact binomial"


def test_too_many_combinations_are_asked_only_where_varied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = {**OPTIONS, "vary": "sex"}
    every = audit(model=predict, **options)
    monkeypatch.setattr(_people, "MAX_CROSS", 100)
    fewer = audit(model=predict, **options)
    assert len(fewer.cells) < len(every.cells)
    assert (fewer.value, fewer.rows) == (every.value, every.rows)
    assert len(fewer.assumptions) == len(every.assumptions) + 1
    monkeypatch.setattr(_people, "MAX_PEOPLE", 100)
    with pytest.raises(eq.ClaimError, match="kinds of people, more than 100"):
        audit(model=predict, **options)


@pytest.mark.parametrize("engine", ["pandas", "pyarrow", "duckdb"])
def test_every_engine_gives_the_same_people(engine: str) -> None:
    roles: dict[str, Any] = {"label": "y", "prediction": "p", "count": "n"}
    table: Any = TABLE.to_pandas() if engine == "pandas" else TABLE.to_arrow()
    if engine == "duckdb":
        table = pytest.importorskip("duckdb").from_arrow(table)
    trail = eq.read(table, attributes=["team", "site"], **roles)
    found, expected = audit(trail, vary="team", rng=1), audit(small(), vary="team", rng=1)
    assert found.cells == expected.cells
    assert found.rows == expected.rows
    assert found.provenance.fingerprint == expected.provenance.fingerprint


def test_a_bound_that_equals_the_tolerance_does_not_exceed_it() -> None:
    def verdict(low: float, high: float) -> eq.Verdict:
        found: Any = SimpleNamespace(lower=lambda level: low, upper=lambda level: high)
        return tolerance_verdict(found, 0.95, 0.1)

    assert verdict(0.1, 0.3) is eq.Verdict.UNDETERMINED
    assert verdict(0.1001, 0.3) is eq.Verdict.EXCEEDED
    assert verdict(0.0, 0.1) is eq.Verdict.KEPT


# --- what a table alone cannot show -----------------------------------------------------------


def test_people_without_a_comparable_row_keep_a_verdict_from_being_kept() -> None:
    found = audit(small(), vary="team", tolerance=0.5, rng=1)
    assert found.upper_bound is not None
    assert found.upper_bound < 0.5
    assert found.verdict is eq.Verdict.UNDETERMINED
    assert found.p_below is None
    assert "among the people in the table only" in found.guarantee
    assert any(
        "1 kind of people could be compared with combinations" in s for s in found.sentences()
    )
    assert audit(small(), vary="team", tolerance=0.05, rng=1).verdict is eq.Verdict.EXCEEDED
    whole = audit(full(), vary="team", tolerance=0.5, rng=1)
    assert (whole.gaps, whole.verdict) == (0, eq.Verdict.KEPT)
    asked = audit(small(), vary="team", tolerance=0.5, model=lambda f: f["team"] == "b", rng=1)
    assert asked.gaps == 0


def test_other_costs_reach_any_combination() -> None:
    steps = {"cost": lambda a, b: float(a != b), "budget": 0.01, "rng": 1}
    assert audit(small(), vary="team", **steps).gaps == 3
    assert audit(full(), vary="team", **steps).gaps == 0


def noise(seed: int, n: int = 60, jobs: int = 100) -> pl.DataFrame:
    """Coin flips in a table so sparse that hardly any kind of people has two rows."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "job": rng.integers(0, jobs, n),
            "y": rng.integers(0, 2, n),
            "p": (rng.random(n) < 0.3).astype(int),
        }
    )


def test_noise_in_a_sparse_table_is_not_taken_for_unfairness() -> None:
    roles: dict[str, Any] = {"label": "y", "prediction": "p", "features": ["sex", "job"]}
    said = []
    for seed in range(40):
        found = audit(noise(seed), vary="sex", tolerance=0.0, rng=seed, **roles)
        assert found.verdict is eq.Verdict.UNDETERMINED
        said.append(found.reason)
        if found.value > 0:
            assert (found.lower, found.upper, found.p_above) == (None, None, None)
    assert any("kinds of people have so few rows" in reason for reason in said)


def test_a_table_without_repeated_rows_has_no_interval() -> None:
    found = audit(
        pl.DataFrame({"sex": [*"fm"], "y": [1, 1], "p": [1, 0]}),
        vary="sex",
        label="y",
        prediction="p",
        features=["sex"],
        rng=1,
    )
    assert (found.value, found.lower) == (0.5, None)
    assert "no kind of people has two rows" in found.reason
    assert found.outcome == "too few repeated rows to know the losses"


def test_rows_of_one_cluster_do_not_repeat_each_other() -> None:
    table = pl.DataFrame({"sex": [*"ffmm"] * 20, "y": 1, "p": [1, 1, 0, 0] * 20})
    roles: dict[str, Any] = {"label": "y", "prediction": "p", "features": ["sex"]}
    apart = audit(
        table.with_columns(c=pl.int_range(80) // 4), vary="sex", cluster="c", rng=1, **roles
    )
    assert apart.lower is not None
    jobs = table.with_columns(job=pl.int_range(80) // 4, c=pl.int_range(80) // 4)
    roles["features"] = ["sex", "job"]
    assert audit(jobs, vary="sex", cluster="c", rng=1, **roles).lower is None
    # 40 kinds that all agree leave some doubt, but not enough for 20 jobs that all show the same
    plain = audit(jobs.drop("c"), vary="sex", rng=1, **roles)
    assert plain.lower is not None
    assert 0 < plain.lower < plain.value
    assert "showing a loss by chance" in plain.reason


def test_values_that_are_not_in_the_table_are_allowed_for() -> None:
    trail = small()
    found = audit(trail, vary="team", model=lambda f: f["site"] == "x", tolerance=0.01, rng=1)
    assert (found.value, found.lower) == (0.0, 0.0)
    assert found.upper_bound == pytest.approx(1 - 0.05 ** (1 / 120))
    assert found.verdict is eq.Verdict.UNDETERMINED
    assert "the values of the features found in the table are all there are" in found.assumptions
    # nothing but what is varied: every kind there is was asked about
    alone = audit(trail, vary="team", features=["team"], model=lambda f: f["team"] != "", rng=1)
    assert (alone.lower, alone.upper) == (0.0, 0.0)
    weighted = audit(small(count=None, weight="n"), vary="team", model=predict_one, rng=1)
    assert any("weights like those seen" in text for text in weighted.assumptions)


def predict_one(frame: Any) -> Any:
    return np.ones(len(frame))


@pytest.mark.parametrize(
    ("labels", "predictions"), [("YN", "yn"), ((1, 2), (0, 1)), ((-1, 1), (0, 1))]
)
def test_predictions_in_other_words_than_the_label_are_refused(
    labels: Any, predictions: Any
) -> None:
    table = TABLE.with_columns(
        y=pl.Series([labels[i] for i in TABLE["y"]]),
        p=pl.Series([predictions[i] for i in TABLE["p"]]),
    )
    roles: dict[str, Any] = {"vary": "team", "features": ["team"], "label": "y", "count": "n"}
    with pytest.raises(eq.EquipoiseError, match=r"prediction column 'p' holds .* the label holds"):
        audit(table, prediction="p", **roles)
    with pytest.raises(eq.EquipoiseError, match="must return values of the label"):
        audit(table, model=lambda f: [predictions[0]] * len(f), **roles)


@pytest.mark.parametrize("dtype", ["Int64", "boolean"])
def test_pandas_labels_with_missing_values(dtype: Any) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"y": pd.array([0, 1, None, 1] * 10, dtype=dtype), "p": [0, 1, 1, 0] * 10})
    frame["team"] = ["a", "b", "a", "a"] * 10
    found = audit(frame, vary="team", features=["team"], label="y", prediction="p", rng=1)
    assert found.provenance.excluded == {"missing label": 10}
    assert found.value == pytest.approx(10 / 30)


@pytest.mark.parametrize("option", ["loss", "budget", "method", "features"])
def test_columns_for_options_are_refused_in_words(option: str) -> None:
    pd = pytest.importorskip("pandas")
    for value in (pd.Series([1.0, 2.0]), pl.Series([1]), b"a", np.array([0.9])):
        with pytest.raises(eq.EquipoiseError):
            audit(small(), **{"vary": "team", option: value})
