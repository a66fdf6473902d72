"""`individual` with weights, clusters, finite labels, fair metrics and method options."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.audits import _individual as _moves
from equipoise.findings import Individual, from_json
from equipoise.methods import transport


def people(seed: int = 1, n: int = 600) -> pl.DataFrame:
    """Rows with a sensitive feature, two others of which one betrays it, and a model's answers."""
    rng = np.random.default_rng(seed)
    s = rng.integers(0, 2, n)
    a = np.clip(rng.integers(0, 3, n) + s, 0, 3)
    b = rng.integers(0, 3, n)
    y = (a + b + rng.normal(size=n) > 2).astype(int)
    answer = (a + b + s > 2).astype(int)
    weight = rng.choice([1, 2, 5], n)
    return pl.DataFrame({"s": s, "a": a, "b": b, "y": y, "p": answer, "w": weight})


def read(table: pl.DataFrame, **roles: Any) -> Any:
    given = {"label": "y", "prediction": "p", "attributes": ["s", "a", "b"]}
    return eq.read(table, **{**given, **roles})


def audit(trail: Any, **options: Any) -> Individual:
    return eq.individual(trail, **{"vary": "s", "rng": 1, **options})


def decide(frame: Any) -> Any:
    return ((frame["a"] + frame["b"] + frame["s"]) > 2).astype(int)


# --- weights and clusters ---------------------------------------------------------------------


def test_weights_are_shares_of_repeated_rows() -> None:
    table = people()
    weighted = audit(read(table, weight="w"))
    repeated = audit(read(table.select(pl.all().repeat_by("w").explode())))
    assert weighted.value == pytest.approx(repeated.value)
    assert weighted.risk == pytest.approx(repeated.risk)
    assert weighted.weighted
    assert weighted.lower is not None
    assert weighted.upper is not None
    assert repeated.lower is not None
    assert repeated.upper is not None
    # repeated rows would be more rows than there are
    assert weighted.upper - weighted.lower > 1.2 * (repeated.upper - repeated.lower)
    assert "Rows count by their weights." in weighted.sentences()
    assert from_json(weighted.to_json()) == weighted


def test_equal_weights_are_nearly_plain_rows() -> None:
    table = people()
    plain = audit(read(table), method="beta")
    same = audit(read(table.with_columns(w=pl.lit(3.0)), weight="w"))
    assert same.method == "beta limit"
    assert same.value == pytest.approx(plain.value)
    assert same.lower == pytest.approx(plain.lower, abs=1e-3)
    assert same.upper == pytest.approx(plain.upper, abs=1e-3)


def test_weighted_counts_are_weighted_rows() -> None:
    table = people()
    counted = table.group_by("s", "a", "b", "y", "p", "w").agg(n=pl.len())
    one = audit(read(table, weight="w"), model=decide)
    two = audit(read(counted, weight="w", count="n"), model=decide)
    assert one.cells == two.cells
    assert (one.value, one.lower) == pytest.approx((two.value, two.lower))


def test_clusters_of_one_row_are_rows_and_copies_add_nothing() -> None:
    table = people().with_row_index("id")
    rows = audit(read(table, cluster="id"))
    plain = audit(read(table), method="beta")
    assert rows.clusters == 600
    assert rows.lower == pytest.approx(plain.lower, abs=2e-3)
    twice = audit(read(pl.concat([table, table, table]), cluster="id"))
    assert twice.value == pytest.approx(rows.value)
    assert twice.lower == pytest.approx(rows.lower, abs=1e-6)
    assert twice.upper == pytest.approx(rows.upper, abs=1e-6)
    assert "clusters are independent draws" in twice.assumptions[0]
    assert "The 600 clusters are what is independent." in twice.sentences()


def test_few_clusters_have_no_interval() -> None:
    table = people().with_columns(school=pl.int_range(600) % 5)
    found = audit(read(table, cluster="school"), tolerance=0.01)
    assert found.lower is None
    assert found.verdict is eq.Verdict.UNDETERMINED
    assert "at least 10" in found.reason


def test_rows_without_weight_or_cluster_are_left_out() -> None:
    table = people().with_columns(
        school=pl.when(pl.int_range(600) < 20).then(None).otherwise(pl.int_range(600) % 40),
        w=pl.when(pl.int_range(600) < 50).then(0).otherwise(pl.col("w")),
    )
    found = audit(read(table, cluster="school"))
    assert found.provenance.excluded == {"missing cluster": 20}
    weighted = audit(read(table, weight="w"))
    kept = audit(read(table.filter(pl.col("w") > 0), weight="w"))
    assert (weighted.value, weighted.lower) == pytest.approx((kept.value, kept.lower))


@pytest.mark.parametrize(
    "roles", [{"weight": "w"}, {"cluster": "g"}, {"weight": "w", "cluster": "g"}]
)
@pytest.mark.parametrize("method", ["normal", "directional", "bootstrap", "m-out-of-n", "beta"])
def test_every_method_takes_weights_and_clusters(roles: dict[str, str], method: str) -> None:
    table = people().with_columns(g=pl.int_range(600) % 60)
    found = audit(read(table, **roles), method=method, resamples=300)
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower < found.value < found.upper


def test_the_exact_method_refuses_weights() -> None:
    with pytest.raises(eq.OptionError, match="rows of equal weight"):
        audit(read(people(), weight="w"), method="exact")


def test_models_are_chosen_with_weights() -> None:
    table = people()
    models = {"all": decide, "blind": lambda frame: ((frame["a"] + frame["b"]) > 2).astype(int)}
    found = eq.select_fair(read(table, weight="w"), models, vary="s", tolerance=0.01, rng=1)
    assert found.chosen == "blind"
    wrong = decide(table.to_pandas()).to_numpy() != table["y"].to_numpy()
    error = np.average(wrong, weights=table["w"].to_numpy())
    assert found.rows[0].error == pytest.approx(error)


# --- labels -----------------------------------------------------------------------------------

GRADES = pl.DataFrame(
    {
        "team": ["a", "b", "a", "b", "a", "b"],
        "y": ["low", "low", "mid", "mid", "high", "high"],
        "p": ["low", "mid", "mid", "mid", "low", "high"],
        "n": [30, 20, 10, 25, 5, 10],
    }
)


def test_labels_of_three_values_by_hand() -> None:
    trail = eq.read(GRADES, label="y", prediction="p", count="n", attributes=["team"])
    found = audit(trail, vary="team", tolerance=0.5)
    # the 30 low ones of team a are right and wrong as b; the 10 high ones of b are wrong as a
    assert found.value == pytest.approx(40 / 100)
    assert found.risk == pytest.approx(25 / 100)
    assert {row.label for row in found.rows} == {"low", "high"}
    assert found.method == "exact binomial"
    said = found.sentences()
    assert any(
        "with label low are predicted low, and would be predicted otherwise" in s for s in said
    )
    assert from_json(found.to_json()) == found
    assert {change["panel"] for change in found.changes()} == {
        "label high",
        "label low",
        "label mid",
    }


def test_a_model_of_three_labels_and_a_loss_of_ones_own() -> None:
    trail = eq.read(GRADES, label="y", count="n", attributes=["team"])
    found = audit(trail, vary="team", model=lambda f: np.where(f["team"] == "a", "low", "high"))
    assert found.value == pytest.approx((30 + 10) / 100)
    cost = {"low": 0.0, "mid": 0.5, "high": 1.0}

    def distance(label: Any, answer: Any) -> Any:
        return [abs(cost[one] - cost[two]) for one, two in zip(label, answer, strict=True)]

    graded = audit(
        trail, vary="team", loss=distance, model=lambda f: np.where(f["team"] == "a", "low", "mid")
    )
    # low: a right, as b off by ½ (30); mid: b right, as a off by ½ (25); high: b ½, as a 1 (10)
    assert graded.value == pytest.approx(0.5 * (30 + 25 + 10) / 100)
    with pytest.raises(eq.EquipoiseError, match="values of the label"):
        audit(trail, vary="team", model=lambda f: np.zeros(len(f)))


def test_whole_numbers_as_labels_and_missing_ones() -> None:
    codes = {"low": 1, "mid": 2, "high": 3}
    table = GRADES.with_columns(
        y=pl.col("y").replace_strict(codes), p=pl.col("p").replace_strict(codes)
    )
    more = pl.DataFrame({"team": ["a"], "y": [None], "p": [1], "n": [7]}, schema=table.schema)
    trail = eq.read(
        pl.concat([table, more]), label="y", prediction="p", count="n", attributes=["team"]
    )
    found = audit(trail, vary="team")
    assert found.value == pytest.approx(40 / 100)
    assert found.provenance.excluded == {"missing label": 7}
    assert sorted({cell.label for cell in found.cells}) == [1, 2, 3]


def test_too_many_labels_are_refused() -> None:
    n = 300
    table = pl.DataFrame({"s": np.arange(n) % 2, "y": np.arange(n), "p": np.arange(n)})
    with pytest.raises(eq.ClaimError, match="label has 300 values"):
        audit(eq.read(table, label="y", prediction="p", attributes=["s"]))


# --- fair metrics -----------------------------------------------------------------------------

FAIR: dict[str, Any] = {"model": decide, "budget": 0.05}


def test_a_learnt_metric_carries_its_error() -> None:
    trail = read(people())
    learnt = audit(trail, cost="fair-metric", tolerance=0.1, **FAIR)
    again = audit(trail, cost=eq.FairMetric(), tolerance=0.1, **FAIR)
    assert learnt == again
    known = audit(trail, cost=eq.FairMetric(learn_from=trail), **FAIR)
    # the same metric, taken as known
    assert known.value == pytest.approx(learnt.value)
    assert learnt.lower is not None
    assert learnt.upper is not None
    assert known.lower is not None
    assert known.upper is not None
    assert learnt.lower < known.lower
    assert learnt.upper > known.upper
    assert "its error" in learnt.metric
    assert "taken as given" in known.guarantee
    assert "exact" not in learnt.guarantee
    assert from_json(learnt.to_json()) == learnt


def test_bounds_of_a_learnt_metric_by_hand() -> None:
    table = people()
    found = audit(read(table), cost="fair-metric", **FAIR)
    cells = [(c.where["s"], c.where["a"], c.where["b"], c.label) for c in found.cells]
    s, a, b, y = (np.array(column) for column in zip(*cells, strict=True))
    counts, x = np.array([c.n for c in found.cells]), np.stack([a, b], axis=1)
    sample = transport.plain_sample(counts, counts.size)
    stream = np.random.default_rng(np.random.SeedSequence(1).spawn(1)[0])
    errors = transport.metric_errors(x, s, sample, resamples=999, rng=stream)
    off = np.sort(errors)[int(np.ceil(0.975 * 1000)) - 1]
    metric = transport.learn_metric(x, s, counts)
    losses = (((a + b + s) > 2).astype(int) != y) * 1.0
    bounds = []
    for sign in (1, -1):
        costs = transport.fair_costs(x / metric.units, metric.directions, classes=y, off=sign * off)
        problem = transport.prepare(costs, losses, budget=0.05)
        rng = np.random.default_rng(np.random.SeedSequence(1))
        bounds.append(transport.infer(problem, sample, rng=rng))
    assert found.lower_bound == pytest.approx(bounds[0].lower(0.975))
    assert found.upper_bound == pytest.approx(bounds[1].upper(0.975))


def test_a_split_learns_on_some_rows_and_audits_the_others() -> None:
    table = people()
    found = audit(read(table), cost=eq.FairMetric(split=0.25), **FAIR)
    assert sum(cell.n for cell in found.cells) == 450
    assert found.metric.startswith("it was learnt on 150 rows")
    assert found == audit(read(table), cost=eq.FairMetric(split=0.25), **FAIR)
    clusters = table.with_columns(g=pl.int_range(600) % 60)
    some = audit(read(clusters, cluster="g"), cost=eq.FairMetric(split=0.5), **FAIR)
    assert some.clusters == 30
    assert sum(cell.n for cell in some.cells) == 300


def test_directions_that_are_known() -> None:
    trail = read(people())
    found = audit(trail, cost=eq.FairMetric(directions=[{"a": 1.0}]), **FAIR)
    by_hand = audit(trail, cost=lambda one, two: (one["b"] - two["b"]) ** 2, **FAIR)
    assert found.value == pytest.approx(by_hand.value)
    assert found.lower == pytest.approx(by_hand.lower)
    words = people().with_columns(b=pl.col("b").replace_strict({0: "x", 1: "y", 2: "z"}))

    def model(frame: Any) -> Any:
        return ((frame["a"] + frame["s"]) > 1).astype(int)

    levels = eq.FairMetric(directions=[{"b": {"x": 1.0, "y": 1.0, "z": -2.0}}])
    assert audit(read(words), cost=levels, model=model, budget=0.1).value > 0


def test_another_table_to_learn_from() -> None:
    metric = eq.FairMetric(learn_from=read(people(seed=9)))
    found = audit(read(people()), cost=metric, **FAIR)
    assert found.metric == "it was learnt on another table and is taken as given"


def test_nearest_neighbours_and_what_they_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    trail, known = read(people()), {"learn_from": read(people())}
    every = audit(trail, cost=eq.FairMetric(**known), **FAIR)
    assert every.left_out == 0
    few = audit(trail, cost=eq.FairMetric(neighbours=1, **known), **FAIR)
    many = audit(trail, cost=eq.FairMetric(neighbours=23, **known), **FAIR)
    assert few.value <= every.value <= few.value + few.left_out + 1e-12
    assert few.upper is not None
    assert every.upper is not None
    assert few.upper >= every.upper - 1e-9
    assert any("were left out" in sentence for sentence in few.sentences())
    assert (many.left_out, many.value) == pytest.approx((0, every.value))
    # too many pairs: the nearest are taken without being asked for
    monkeypatch.setattr(_moves, "_MOST_PAIRS", 100)
    by_itself = audit(trail, cost=eq.FairMetric(**known), **FAIR)
    assert by_itself.value <= every.value <= by_itself.value + by_itself.left_out + 1e-12
    learnt = audit(trail, cost="fair-metric", **FAIR)
    assert learnt.upper is not None
    assert learnt.upper >= every.upper - 1e-9
    with pytest.raises(eq.OptionError, match="neighbours"):
        audit(trail, cost=lambda one, two: 1.0, **FAIR)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"split": 0.5, "directions": [{"a": 1.0}]}, "known in one way"),
    ({"split": 1.5}, "split"),
    ({"neighbours": 0}, "neighbours"),
    ({"learn_from": 3}, "learn_from must be a trail"),
    ({"directions": 3}, "list of dictionaries"),
    ({"directions": [{}]}, "list of dictionaries"),
    ({"directions": [{"aa": 1.0}]}, "Did you mean 'a'"),
    ({"directions": [{"a": "x"}]}, "directions"),
    ({"directions": [{"a": 0.0}]}, "zero everywhere"),
    ({"directions": [{"c": 1.0}]}, "is a category"),
    ({"directions": [{"c": {"z": 1.0}}]}, "has no level"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[m for _, m in BAD])
def test_bad_metrics_are_said_plainly(options: dict[str, Any], message: str) -> None:
    table = people().with_columns(
        c=pl.when(pl.col("b") > 1).then(pl.lit("x")).otherwise(pl.lit("y"))
    )
    trail = read(table, attributes=["s", "a", "c"])
    with pytest.raises(eq.EquipoiseError, match=message):
        audit(trail, cost=eq.FairMetric(**options))


# --- methods and robustness -------------------------------------------------------------------


def test_options_of_methods_reach_the_mathematics() -> None:
    trail = read(people())
    default = audit(trail, method="m-out-of-n")
    same = audit(trail, method=eq.MOutOfN(m=49))
    assert default == same
    larger = audit(trail, method={"kind": "m_out_of_n", "m": 300})
    assert larger.lower != default.lower
    few: dict[str, Any] = {"features": ["s", "b"], "model": lambda f: (f["s"] + f["b"] > 1) * 1}
    step = audit(trail, method=eq.NumericalDerivative(step=0.05), **few)
    assert step.resamples == 2000
    none = audit(trail, method=eq.NumericalDerivative(tries=50), **few)
    assert "of 50 normal vectors" in none.reason
    matrix: dict[str, Any] = {
        "cost": lambda one, two: float(one != two),
        "budget": 0.1,
        "model": decide,
    }
    wide = audit(trail, method=eq.Directional(kappa=50.0), **matrix)
    narrow = audit(trail, method=eq.Directional(kappa=0.0), **matrix)
    assert wide.upper is not None
    assert narrow.upper is not None
    assert wide.upper >= narrow.upper
    with pytest.raises(eq.OptionError, match="1 … 600; got 601"):
        audit(trail, method=eq.MOutOfN(m=601))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: eq.MOutOfN(m=0), "m must"),
        (lambda: eq.NumericalDerivative(step=0.0), "step must be above 0"),
        (lambda: eq.NumericalDerivative(tries=0), "tries"),
        (lambda: eq.Directional(kappa=-1.0), "kappa must be zero or more"),
    ],
)
def test_bad_options_of_methods(make: Any, message: str) -> None:
    with pytest.raises(eq.OptionError, match=message):
        make()


def test_robustness_is_part_of_the_finding() -> None:
    trail = read(people())
    found = audit(trail, cost=lambda one, two: float((one["a"] - two["a"]) ** 2), **FAIR)
    assert found.robustness is not None
    assert found.price == pytest.approx(found.robustness.rise)
    assert found.robustness.rise <= found.robustness.fall
    # people who share a are at no distance, and not all are treated alike
    assert found.robustness.published is None
    apart = audit(
        trail, cost=lambda one, two: float(sum((one[k] - two[k]) ** 2 for k in "sab")), **FAIR
    )
    assert apart.robustness is not None
    assert apart.robustness.published is not None
    assert apart.robustness.fall <= apart.robustness.published
    assert apart.robustness.steepness == pytest.approx(1.0)
    assert any("tenth of the budget" in sentence for sentence in apart.sentences())
    assert audit(trail).robustness is None
    assert from_json(apart.to_json()) == apart
