"""`compare`: attributes and models, on the same rows."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn import metrics

import equipoise as eq
from equipoise.methods import spread
from equipoise.methods.measures import Area
from equipoise.methods.spread import compare as compare_rows


def _comparison(trail: Any, metric: Any, **options: Any) -> Any:
    return eq.compare(trail, metric, **options)


def _summary(trail: Any, metric: Any, **options: Any) -> Any:
    return eq.summarize(trail, metric, **options)


RNG = np.random.default_rng(8)
N = 900
TEAM = RNG.integers(0, 3, N)
SITE = RNG.integers(0, 2, N)
LABEL = RNG.integers(0, 2, N)
FAIR = (RNG.random(N) < 0.5).astype(int)
HARSH = (RNG.random(N) < 0.2 + 0.3 * TEAM).astype(int)
FRAME = pl.DataFrame(
    {
        "team": np.array(list("abc"))[TEAM],
        "site": np.array(["east", "west"])[SITE],
        "label": LABEL,
        "fair": FAIR,
        "harsh": HARSH,
        "fair_score": FAIR * 0.5 + RNG.random(N) / 3,
        "harsh_score": HARSH * 0.5 + RNG.random(N) / 3,
    }
)
TRAIL = eq.read(FRAME, label="label", prediction="harsh", score="harsh_score")
MODELS = {"new": "fair", "old": "harsh"}


def test_two_attributes_on_one_scale() -> None:
    found = _comparison(TRAIL, eq.selection_rate, across=["team", "site"], rng=1)
    (row,) = found.rows
    cells = FRAME.group_by("team", "site").agg(pl.len(), pl.col("harsh").sum()).sort("team", "site")
    direct = spread.sample_from_sums(
        cells.group_by("team", maintain_order=True).agg(pl.col("len").sum())["len"].to_numpy(),
        cells.group_by("team", maintain_order=True)
        .agg(pl.col("harsh").sum())["harsh"]
        .to_numpy()
        .astype(float),
        binary=True,
    )
    assert row.first_value == pytest.approx(spread.sample_variance(direct))
    assert row.larger == "team"
    assert 0 < row.lower < row.difference < row.upper
    assert "further apart for team than for site" in " ".join(found.sentences())
    assert [side.groups for side in found.sides] == [3, 2]


def test_more_attributes_and_a_cross_are_compared_pair_by_pair() -> None:
    found = _comparison(TRAIL, "accuracy", across=["team", "site", ["team", "site"]], rng=1)
    assert [(r.first, r.second) for r in found.rows] == [
        ("team", "site"),
        ("team", "team × site"),
        ("site", "team × site"),
    ]


def test_two_models_on_the_same_rows() -> None:
    found = _comparison(TRAIL, eq.false_positive_rate, across="team", models=MODELS, rng=1)
    (row,) = found.rows
    for name, value in (("fair", row.first_value), ("harsh", row.second_value)):
        alone = _summary(
            eq.read(FRAME, label="label", prediction=name), "false_positive_rate", across="team"
        )
        assert value == pytest.approx(alone.variance.corrected_raw)
    assert row.larger == "old"
    assert row.upper < 0


def test_a_model_does_not_differ_from_its_copy() -> None:
    frame = FRAME.with_columns(copy=pl.col("harsh"), copied=pl.col("harsh_score"))
    trail = eq.read(frame, label="label", prediction="harsh", score="harsh_score")
    for metric, models in (
        (eq.accuracy, {"a": "harsh", "b": "copy"}),
        (eq.brier, {"a": "harsh_score", "b": "copied"}),
    ):
        (row,) = _comparison(trail, metric, across="team", models=models, rng=1).rows
        assert (row.difference, row.larger) == (0, "")
        assert row.lower == pytest.approx(0, abs=1e-3)


def test_pairing_narrows_the_interval() -> None:
    flip = RNG.random(N) < 0.05
    frame = FRAME.with_columns(near=pl.Series(np.where(flip, 1 - HARSH, HARSH)))
    trail = eq.read(frame, label="label", prediction="harsh")
    near, far = (
        _comparison(trail, "selection_rate", across="team", models={"a": "harsh", "b": b}, rng=1)
        for b in ("near", "fair")
    )
    assert near.rows[0].upper - near.rows[0].lower < far.rows[0].upper - far.rows[0].lower


def test_scores_are_compared_on_rows() -> None:
    models = {"new": "fair_score", "old": "harsh_score"}
    found = _comparison(TRAIL, eq.brier, across="team", models=models, rng=1)
    (row,) = found.rows
    for name, value in (("fair_score", row.first_value), ("harsh_score", row.second_value)):
        alone = _summary(eq.read(FRAME, label="label", score=name), "brier", across="team")
        assert value == pytest.approx(alone.variance.corrected_raw)
    shuffled = eq.read(FRAME.sample(fraction=1.0, shuffle=True, seed=2), label="label")
    again = _comparison(shuffled, eq.brier, across="team", models=models, rng=1).rows[0]
    assert (again.lower, again.upper) == pytest.approx((row.lower, row.upper))


def test_counts_are_repeated_rows() -> None:
    keys = ["team", "site", "label", "fair", "harsh"]
    trail = eq.read(FRAME.group_by(*keys).len("n"), label="label", prediction="harsh", count="n")
    for options in ({"across": ["team", "site"]}, {"across": "team", "models": MODELS}):
        one, two = (_comparison(t, "accuracy", rng=1, **options) for t in (TRAIL, trail))
        assert one.rows == two.rows


def test_paired_interval_covers_the_difference() -> None:
    rng = np.random.default_rng(41)
    rates = np.array([[0.3, 0.5, 0.6, 0.45], [0.4, 0.45, 0.5, 0.42]])
    truth = float(np.var(rates[0], ddof=1) - np.var(rates[1], ddof=1))
    group = np.repeat(np.arange(4), 150)
    hits = 0
    for _ in range(200):
        shared = rng.random(600)
        values = np.stack([shared < rates[m][group] for m in (0, 1)], axis=1).astype(float)
        pair = spread.compare_model_rows(values, group, 4, binary=True, rng=rng, resamples=200)[
            0, 1
        ]
        hits += pair.lower <= truth <= pair.upper
    assert 176 <= hits <= 200  # binomial(200, 0.95), false alarm below 1e-3 on the low side


def test_large_tables_draw_paired_normals() -> None:
    values = np.stack([HARSH, FAIR], axis=1).astype(float)
    parts = [values[g == TEAM] for g in range(3)]
    rows, normal = (
        f(parts, 4000, np.random.default_rng(2))
        for f in (compare_rows._paired_rows, compare_rows._paired_normals)
    )
    for a, b in zip(rows, normal, strict=True):
        assert a.mean.std(0) == pytest.approx(b.mean.std(0), rel=0.06)
        assert a.spread.mean(0) == pytest.approx(b.spread.mean(0), rel=0.02)
    one, two = (np.corrcoef(d[0].mean[:, 0], d[1].mean[:, 0])[0, 1] for d in (rows, normal))
    assert one == pytest.approx(two, abs=0.06)


def _refused(match: str, trail: Any = TRAIL, metric: Any = "accuracy", **options: Any) -> None:
    with pytest.raises(eq.EquipoiseError, match=match):
        _comparison(trail, metric, **{"rng": 1, **options})


def test_bad_input_is_refused() -> None:
    _refused("two or more attributes", across="team")
    _refused("two or more attributes", across=["team"])
    _refused("same attribute twice", across=["team", "team"])
    _refused("two or more models", across="team", models={"a": "fair"})
    _refused("no column for prediction='fare'", across="team", models={"a": "fare", "b": "harsh"})
    _refused("needs a label column", FRAME, across=["team", "site"])
    _refused(
        "reads either the prediction or the score",
        metric=eq.metric("x", "label"),
        across="team",
        models=MODELS,
    )
    _refused("overlap", across=["team", eq.intersections("team", "site")])
    _refused("measure", across=["team", "site"], measures="spread")
    below = eq.metric("below", "label - 1")
    _refused("not negative", metric=below, across=["team", "site"], measures="ratio")
    still = eq.read(FRAME.with_columns(one=pl.lit(1)), prediction="one")
    _refused("does not vary", still, "selection_rate", across=["team", "site"])
    covers = eq.masks(first="team == 'a'", second="team == 'b'")
    _refused("cover every row", across=["site", covers])


def test_groups_too_small_are_listed() -> None:
    lone = pl.concat([FRAME, FRAME.head(1).with_columns(team=pl.lit("lone"))])
    trail = eq.read(lone, label="label", prediction="harsh")
    found = _comparison(trail, "accuracy", across=["team", "site"], rng=1)
    assert found.sides[0].excluded == ("lone: one row: its sampling error cannot be estimated",)
    paired = _comparison(trail, "accuracy", across="team", models=MODELS, rng=1)
    assert paired.sides[1].excluded == found.sides[0].excluded


WEIGHTED = FRAME.with_columns(one=pl.lit(2.5), person=pl.int_range(N), block=pl.int_range(N) // 3)


@pytest.mark.parametrize("role", [{"weight": "one"}, {"cluster": "person"}])
@pytest.mark.parametrize(
    "asked", [{"across": ["team", "site"]}, {"across": "team", "models": MODELS}]
)
def test_equal_weights_and_clusters_of_one_row_change_little(
    role: dict[str, str], asked: dict[str, Any]
) -> None:
    plain = _comparison(TRAIL, "selection_rate", rng=1, **asked).rows[0]
    trail = eq.read(WEIGHTED, label="label", prediction="harsh", **role)
    found = _comparison(trail, "selection_rate", rng=1, **asked).rows[0]
    assert found.difference == pytest.approx(plain.difference, rel=0.02)
    assert found.upper - found.lower == pytest.approx(plain.upper - plain.lower, rel=0.15)
    assert found.larger == plain.larger


def test_rows_copied_within_their_cluster_add_nothing() -> None:
    once = eq.read(WEIGHTED, prediction="harsh", cluster="person")
    copies = eq.read(pl.concat([WEIGHTED] * 4), prediction="harsh", cluster="person")
    for asked in ({"across": ["team", "site"]}, {"across": "team", "models": MODELS}):
        one, four = (
            _comparison(t, "selection_rate", rng=1, **asked).rows[0] for t in (once, copies)
        )
        assert (four.lower, four.upper) == pytest.approx((one.lower, one.upper), rel=0.02)


def test_a_metric_whose_rows_depend_on_the_model_is_compared_on_each_models_rows() -> None:
    chosen = eq.metric("x", "abs(label - score)", where="score > 0.5")
    scores = {"a": "fair_score", "b": "harsh_score"}
    found = _comparison(TRAIL, chosen, across="team", models=scores, rng=1)
    own = eq.read(FRAME, label="label", prediction="harsh", score="fair_score")
    summary = _summary(own, chosen, across="team", rng=1)
    assert found.rows[0].first_value == pytest.approx(summary.variance.corrected_raw)


def test_every_measure_can_be_compared() -> None:
    found = _comparison(TRAIL, "selection_rate", across="team", models=MODELS, measures=None, rng=1)
    assert [row.measure for row in found.rows] == [kind.value for kind in spread.Meta]
    assert all(row.larger == "old" for row in found.rows if row.measure != "max-min ratio")
    old = eq.summarize(
        eq.read(FRAME, prediction="harsh"), "selection_rate", across="team", level=0.975, rng=1
    )
    by_measure = {row.measure: row for row in old.rows}
    gap = next(row for row in found.rows if row.measure == "max-min difference")
    # the new model's spread is not shown to differ from zero, so the old one's upper end remains
    assert gap.lower == pytest.approx(-by_measure["max-min difference"].upper, rel=1e-6)
    assert str(found)
    assert found.plot().to_dict()


# --- Measures that are no means ---


def scored(seed: int = 3, rows: int = 1500) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    g, y = rng.integers(0, 4, rows), (rng.random(rows) < 0.4).astype(int)
    score = 1 / (1 + np.exp(-(y * (1.6 - 0.4 * g) + rng.normal(size=rows))))
    other = 1 / (1 + np.exp(-(y * 1.2 + rng.normal(size=rows))))
    return pl.DataFrame(
        {
            "g": [f"g{i}" for i in g], "h": rng.choice(["x", "z"], rows), "y": y,
            "s": score.round(2), "t": other.round(2), "p": (score > 0.5).astype(int),
            "q": (other > 0.5).astype(int), "w": rng.choice([1.0, 3.0], rows),
        }
    )  # fmt: skip


def test_measures_are_compared_by_their_values_in_groups() -> None:
    table = scored()
    trail = eq.read(table, label="y", prediction="p", score="s", attributes=["g", "h"])
    peers: dict[Any, Any] = {
        eq.auc: lambda d: metrics.roc_auc_score(d["y"], d["s"]),
        eq.f1: lambda d: metrics.f1_score(d["y"], d["p"]),
        eq.macro_f1: lambda d: metrics.f1_score(d["y"], d["p"], average="macro"),
        eq.balanced_accuracy: lambda d: metrics.balanced_accuracy_score(d["y"], d["p"]),
        eq.matthews: lambda d: metrics.matthews_corrcoef(d["y"], d["p"]),
        eq.actual_over_expected(): lambda d: d["y"].sum() / d["s"].sum(),
    }
    for metric, peer in peers.items():
        found = eq.compare(trail, metric, across=["g", "h"], resamples=50, rng=1)
        for side in found.sides:
            values = [peer(part) for part in table.partition_by(side.name)]
            assert side.plain_sd == pytest.approx(np.std(values, ddof=1), rel=1e-9)


def test_pseudo_values_vary_as_the_measure_does_without_a_row() -> None:
    table = scored(rows=160).filter(pl.col("g").is_in(["g0", "g1"]))
    y, s = table["y"].to_numpy(), table["s"].to_numpy()
    group = (table["g"] == "g1").to_numpy().astype(np.int64)
    places, place = np.unique(s, return_inverse=True)
    kinds = spread.Kinds(
        measure=Area(), kind=place + len(places) * y, side=np.repeat([0, 1], len(places)),
        order=np.tile(np.arange(len(places)), 2), numbers=np.ones((len(y), 1)),
    )  # fmt: skip
    made = spread.pseudo_values(kinds, np.ones(len(y)), group, 2)
    for g in (0, 1):
        here = group == g
        whole = metrics.roc_auc_score(y[here], s[here])
        assert made.value[here].mean() == pytest.approx(whole)
        # the jackknife, row by row
        at = np.flatnonzero(here)
        without = [metrics.roc_auc_score(y[(k := np.setdiff1d(at, [i]))], s[k]) for i in at]
        left_out = whole + (len(at) - 1) * (whole - np.array(without))
        np.testing.assert_allclose(made.value[at], left_out, atol=0.15)
        assert np.corrcoef(made.value[at], left_out)[0, 1] > 0.999
        assert made.value[at].std() == pytest.approx(left_out.std(), rel=0.05)


def test_models_are_compared_by_measures_on_the_same_rows() -> None:
    table = scored()
    trail = eq.read(table, label="y", prediction="p", score="s", attributes=["g"])
    found = eq.compare(trail, eq.auc, across="g", models={"old": "s", "new": "t"}, rng=1)
    assert found.rows[0].larger == "old"
    assert "AUC" in found.sentences()[0]
    said = eq.compare(trail, eq.f1, across="g", models={"old": "p", "new": "q"}, rng=1)
    assert said.rows[0].difference > 0
    copies = eq.compare(trail, eq.auc, across="g", models={"a": "s", "b": "s"}, rng=1)
    row = copies.rows[0]
    assert row.difference == pytest.approx(0, abs=1e-12)
    assert (row.lower, row.upper) == pytest.approx((0, 0), abs=1e-9)


def test_measures_know_weights_and_clusters() -> None:
    table = scored().with_columns(c=pl.int_range(pl.len()))
    kept: dict[str, Any] = {"label": "y", "score": "s", "attributes": ["g", "h"]}
    plain = eq.compare(eq.read(table, **kept), eq.auc, across=["g", "h"], rng=1).rows[0]
    own = eq.compare(eq.read(table, cluster="c", **kept), eq.auc, across=["g", "h"], rng=1).rows[0]
    assert own.difference == pytest.approx(plain.difference, rel=0.01)
    assert own.upper - own.lower == pytest.approx(plain.upper - plain.lower, rel=0.1)
    # a row of weight three is no three rows, and the measure is that of three
    weighted = eq.compare(eq.read(table, weight="w", **kept), eq.auc, across=["g", "h"], rng=1)
    values = [
        metrics.roc_auc_score(part["y"], part["s"], sample_weight=part["w"])
        for part in table.partition_by("g")
    ]
    assert weighted.sides[0].plain_sd == pytest.approx(np.std(values, ddof=1))
    doubled = pl.concat([table, table])
    twice = eq.compare(
        eq.read(doubled, cluster="c", **kept), eq.auc, across=["g", "h"], rng=1
    ).rows[0]
    assert twice.upper - twice.lower == pytest.approx(own.upper - own.lower, rel=0.05)


def test_groups_with_few_of_a_kind_are_left_out_and_told() -> None:
    table = scored()
    few = table.filter(~((pl.col("g") == "g0") & (pl.col("y") == 1)))
    found = eq.compare(
        eq.read(few, label="y", score="s", attributes=["g", "h"]), eq.auc, across=["g", "h"], rng=1
    )
    assert found.sides[0].excluded == (
        "g0: too few rows of some kind for the measure, such as positives",
    )
    with pytest.raises(eq.OptionError, match="compare knows no median of s"):
        eq.compare(eq.read(few, label="y", score="s"), eq.median("s"), across=["g", "h"])
    with pytest.raises(eq.OptionError, match="compare knows no expected calibration error"):
        eq.compare(
            eq.read(few, label="y", score="s"), eq.expected_calibration_error, across=["g", "h"]
        )
