"""`alternatives`: models that are shown to lose little and to discriminate less."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr

import equipoise as eq
from equipoise.findings import from_json
from equipoise.methods.repair import contrasted, joint_means, largest_between, near_best, smaller
from equipoise.plan import Plan, run, verify

CLAIM = eq.gap("selection_rate", across="g")
MODELS = {"even": "even", "half": "half", "coin": "coin"}


def table(n: int = 3000, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    merit = rng.normal(size=n)
    return pl.DataFrame(
        {
            "g": group,
            "y": (merit + rng.normal(size=n) > 0).astype(int),
            "d": (merit + 0.5 * (group == "a") > 0.2).astype(int),
            "half": (merit + 0.25 * (group == "a") > 0.1).astype(int),
            "even": (merit > 0).astype(int),
            "coin": rng.integers(0, 2, n),
            "s": ndtr(merit),
            "w": rng.choice([1.0, 2.0], n),
            "home": rng.integers(0, n // 5, n),
        }
    )


def trail(frame: pl.DataFrame | None = None, **more: Any) -> eq.Trail:
    roles = {"label": "y", "prediction": "d", "attributes": ["g"], **more}
    return eq.read(table() if frame is None else frame, **roles)


@pytest.fixture(scope="module")
def found() -> eq.Alternatives:
    return eq.alternatives(trail(), CLAIM, models=MODELS, within=0.02, rng=1)


def test_the_better_model_is_shown_and_a_coin_is_not(found: eq.Alternatives) -> None:
    assert "even" in [row.model for row in found.shown]
    coin = found.ask("coin")
    assert coin.less
    assert not coin.within
    assert not coin.shown
    assert found.ask("present").note == "the model in use"
    assert found.conclusion is None
    said = " ".join(found.sentences())
    assert "shown to be within 2.0 points of the least error rate" in said


def test_estimates_are_those_of_describe(found: eq.Alternatives) -> None:
    for name, column in {"present": "d", **MODELS}.items():
        rows = eq.describe(trail(prediction=column), CLAIM).rows
        worst = max(rows, key=lambda row: abs(row.disparity or 0))
        row = found.ask(name)
        assert row.disparity == pytest.approx(abs(worst.disparity or 0))
        assert row.group == worst.group
        loss = float(np.mean((table()["y"] != table()[column]).to_numpy()))
        assert row.loss == pytest.approx(loss)
        assert row.lower is not None
        assert row.upper is not None
        assert row.lower < row.disparity < row.upper


@pytest.mark.parametrize("target", [None, eq.complement(), eq.reference(g="b"), 0.5])
@pytest.mark.parametrize("more", [{}, {"weight": "w"}, {"cluster": "home"}])
def test_means_and_covariances_are_those_of_a_loop(target: Any, more: dict[str, str]) -> None:
    frame = table(400, seed=3)
    weight = frame["w"].to_numpy() if "weight" in more else np.ones(400)
    unit = frame["home"].to_numpy() if "cluster" in more else np.arange(400)
    said = frame.select("d", "even").to_numpy().astype(float)
    names = frame["g"].to_numpy()
    groups = ["a", "b", "c"]
    inside = np.stack([names == g for g in groups], axis=1).astype(float)
    found = joint_means(
        said, weight, np.ones(400), np.unique(unit, return_inverse=True)[1],
        np.searchsorted(groups, names), np.eye(3), None, None,
    )  # fmt: skip
    for m in range(2):
        for g in range(3):
            here = inside[:, g] * weight
            mean = here @ said[:, m] / here.sum()
            assert found.mean[m, g] == pytest.approx(mean)
            parts = here * (said[:, m] - mean) / here.sum()
            sums = np.bincount(unit, weights=parts)
            size = np.bincount(unit, weights=here)
            worth = here.sum() ** 2 / (size**2).sum()
            place = 3 * m + g
            expected = (sums**2).sum() * worth / (worth - 1)
            assert found.covariance[place, place] == pytest.approx(expected)
    claim = eq.gap("selection_rate", across="g", target=target)
    models = {"even": "even"}
    shown = eq.alternatives(trail(frame, **more), claim, models=models, rng=1)
    for model, column in (("present", "d"), ("even", "even")):
        described = eq.describe(trail(frame, prediction=column, **more), claim)
        worst = max(abs(row.disparity or 0) for row in described.rows)
        assert shown.ask(model).disparity == pytest.approx(worst)


def test_two_proportions_in_one_group_are_corrected_as_by_agresti_and_min() -> None:
    rng = np.random.default_rng(2)
    said = (rng.random((12, 2)) < 0.3).astype(float)
    zeros = np.zeros(12, dtype=np.int64)
    ones = np.ones(12)
    found = joint_means(said, ones, ones, None, zeros, np.ones((1, 1)), 0.0, 1.0)
    # half a row in each of the four cells
    n = 14
    b = (said[:, 0] > said[:, 1]).sum() + 0.5
    c = (said[:, 0] < said[:, 1]).sum() + 0.5
    assert found.moved[0, 0] - found.moved[1, 0] == pytest.approx((b - c) / n)
    variance = ((b + c) - (b - c) ** 2 / n) / n / (n - 1)
    cov = found.covariance
    assert cov[0, 0] + cov[1, 1] - 2 * cov[0, 1] == pytest.approx(variance)


def test_the_bound_and_the_test_agree_with_brute_force() -> None:
    rng = np.random.default_rng(8)
    n = 900
    group = rng.integers(0, 3, n)
    said = (rng.random((n, 2)) < np.array([[0.6, 0.5], [0.5, 0.5], [0.4, 0.5]])[group]).astype(
        float
    )
    ones = np.ones(n)
    means = joint_means(said, ones, ones, None, group, np.eye(3), 0.0, 1.0)
    gaps = contrasted(means, np.eye(3), np.full(3, -0.5), np.arange(3))
    draw = np.random.default_rng(1)
    one = smaller(gaps, 1, 0, (1, -1), 0.05, 0.0025, draw)
    assert 0 < one.p <= 1
    largest = np.abs(gaps.mean).max(axis=1)
    assert one.upper > largest[1] - largest[0]
    # Bonferroni over all comparisons can only be larger
    worst = 0.0
    for g in range(3):
        for s in (1, -1):
            best = 1.0
            for h in range(3):
                for t in (1, -1):
                    i, j = 3 + g, h
                    cov = gaps.covariance
                    spread = np.sqrt(cov[i, i] + cov[j, j] - 2 * s * t * cov[i, j])
                    z = (t * gaps.moved[0, h] - s * gaps.moved[1, g]) / spread
                    best = min(best, 6 * float(ndtr(-z)))
            worst = max(worst, best)
    # Student's law costs a little, the joint law saves more
    assert one.p <= worst * 1.1
    low, high = largest_between(gaps, 0, (1, -1), 0.05)
    assert low < largest[0] < high
    total = joint_means(said, ones, ones, None, np.zeros_like(group), np.ones((1, 1)), 0.0, 1.0)
    p, upper = near_best(total, 0.5, 0.05)
    assert (p < 1e-6).all()
    assert (upper < 0.5).all()


def test_any_order_and_form_of_rows_gives_the_same_finding(found: eq.Alternatives) -> None:
    mixed = table().sample(fraction=1, shuffle=True, seed=2)
    assert eq.alternatives(
        trail(mixed), CLAIM, models=MODELS, within=0.02, rng=1
    ).to_dict() == found.to_dict()  # fmt: skip
    short = table().group_by("g", "y", "d", *MODELS).len("n")
    counted = eq.alternatives(trail(short, count="n"), CLAIM, models=MODELS, within=0.02, rng=1)
    for one, other in zip(counted.rows, found.rows, strict=True):
        assert one.change_upper == pytest.approx(other.change_upper)
        assert one.shown == other.shown


def test_scores_with_a_threshold_and_scores_as_they_are() -> None:
    frame = table().with_columns(s2=pl.col("s") * 0.98)
    claim = eq.gap("selection_rate", across="g")
    scored = eq.alternatives(
        trail(frame, score="s"), claim, models={"lower": "s2"}, threshold=0.5, rng=1
    )
    assert scored.ask("present").column == "s"
    plain = eq.alternatives(
        trail(frame, score="s"), eq.gap("brier", across="g"), models={"lower": "s2"}, rng=1
    )
    assert plain.loss == "squared error"
    assert not plain.loss_share
    named = eq.alternatives(
        trail(prediction=None), CLAIM, models={**MODELS, "old": "d"}, present="old", rng=1
    )
    assert named.present == "old"
    assert named.rows[0].model == "old"


def test_rates_whose_rows_depend_on_the_model() -> None:
    claim = eq.gap("positive_predictive_value", across="g", target=eq.reference(g="b"))
    found = eq.alternatives(trail(), claim, models=MODELS, rng=1)
    # the reference is its own target
    assert [group.group for group in found.groups] == ["a", "c"]


def test_rows_without_an_answer_of_all_models_are_left_out() -> None:
    gone = table().with_columns(even=pl.when(pl.col("home") < 10).then(None).otherwise("even"))
    found = eq.alternatives(trail(gone), CLAIM, models=MODELS, rng=1)
    lost = int((table()["home"] < 10).sum())
    assert found.rows_compared == 3000 - lost
    assert sum(found.provenance.excluded.values()) == lost
    apart = table().with_columns(
        even=pl.when(pl.col("home") < 300).then(pl.col("even")),
        half=pl.when(pl.col("home") >= 300).then(pl.col("half")),
    )
    with pytest.raises(eq.TrailError, match="no row of which all models say something"):
        eq.alternatives(trail(apart), CLAIM, models=MODELS, rng=1)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"models": {}}, "a name and a column for each"),
        ({"models": ["even"]}, "a name and a column for each"),
        ({"models": {"x": "nowhere"}}, "no column for model 'x'"),
        ({"models": {"x": "even", "y": "even"}}, "same column"),
        ({"models": {"x": "d"}}, "the present model"),
        ({"models": {"present": "even"}}, "called 'present'"),
        ({"models": {"x": "s"}}, "two values|0 and 1|0/1"),
        ({"present": "who"}, "present= must be one of|a name and a column"),
        ({"within": -0.1}, "at least 0"),
        ({"loss": "accuracy"}, "must be a loss"),
        ({"loss": "brier"}, "reads the prediction|either the prediction"),
        ({"side": "left"}, "side 'left'"),
        ({"level": 2}, "level"),
    ],
)
def test_bad_options_are_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=said):
        eq.alternatives(trail(), CLAIM, **{"models": MODELS, "rng": 1, **more})


def test_bad_claims_are_refused() -> None:
    for claim, said in (
        (eq.ratio("selection_rate", across="g"), "compares gaps"),
        (eq.gap("selection_rate", across="g", target=eq.highest()), "highest"),
        (eq.gap("selection_rate", across="g", given="home"), "given"),
        (eq.gap(eq.change("accuracy", before="d", after="even"), across="g"), "change"),
    ):
        with pytest.raises(eq.EquipoiseError, match=said):
            eq.alternatives(trail(), claim, models=MODELS)
    same = trail(table().with_columns(g=pl.lit("a")))
    with pytest.raises(eq.ClaimError, match="nothing is compared"):
        eq.alternatives(same, CLAIM, models=MODELS)
    with pytest.raises(eq.TrailError, match="Which model is in use"):
        eq.alternatives(trail(prediction=None), CLAIM, models=MODELS)


def test_groups_of_one_row_show_nothing() -> None:
    odd = pl.concat([table(300), table(5).head(1).with_columns(g=pl.lit("z"))])
    found = eq.alternatives(trail(odd), CLAIM, models=MODELS, within=0.2, rng=1)
    assert not found.shown


PLAN = """
equipoise: 1
title: Alternatives
seed: 7
trail: {source: t.csv, label: y, prediction: d, attributes: [g]}
audits:
  - audit: alternatives
    claim: {kind: gap, metric: selection_rate, across: [g]}
    models: {"<b>even": even, half: half}
    within: 0.02
"""


def test_plan_page_log_and_verification(tmp_path: Path) -> None:
    table().write_csv(tmp_path / "t.csv")
    evidence = run(Plan.parse(PLAN), folder=tmp_path)
    stored = eq.Evidence.from_json(evidence.to_json())
    assert verify(stored, folder=tmp_path).complete
    found = stored.entries[0].finding
    assert isinstance(found, eq.Alternatives)
    assert from_json(found.to_json()) == found
    page = eq.report(evidence).html
    assert "Less discriminatory alternatives" in page
    assert "<b>even" not in page
    log = found.to_markdown()
    assert "&lt;b&gt;even" in log
    assert "<b>even" not in log
    assert found.provenance.fingerprint in log
    frame = found.to_frame("polars")
    assert frame["model"].to_list() == ["present", "<b>even", "half"]
    assert {"loss", "disparity", "p_adjusted", "shown"} <= set(frame.columns)
    hidden = eq.report(evidence, suppress=1000)
    assert "largest disparity in selection rate than" not in hidden.html
    assert found.plot().to_dict()["layer"]
