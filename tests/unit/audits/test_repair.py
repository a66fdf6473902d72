"""`repair`: what is learnt on one part is certified on the other, and never the other way round."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.audits._repair import RepairTable, thresholds_on
from equipoise.audits.repair import checked_ask
from equipoise.cli.main import execute
from equipoise.findings import GroupThreshold, from_json
from equipoise.findings.repair import WARNING
from equipoise.plan import Plan, run, verify

CLAIM = eq.gap("selection_rate", across="g")


def table(n: int = 1200, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    merit = rng.normal(size=n) - 0.4 * (group == "b")
    score = (1 / (1 + np.exp(-merit))).round(3)
    return pl.DataFrame(
        {
            "g": group,
            "s": score,
            "y": (rng.random(n) < score).astype(int),
            "d": (score >= 0.5).astype(int),
            "w": rng.choice([1.0, 2.0], n),
            "home": rng.integers(0, n // 5, n),
        }
    )


def trail(frame: pl.DataFrame | None = None, **more: Any) -> eq.Trail:
    roles = {"label": "y", "prediction": "d", "score": "s", "attributes": ["g"], **more}
    return eq.read(table() if frame is None else frame, **roles)


@pytest.fixture(scope="module")
def found() -> eq.Repair:
    return eq.repair(trail(), CLAIM, tolerance=0.12, rng=1)


def test_the_certificate_is_that_of_certify_on_the_rows_kept_back(found: eq.Repair) -> None:
    assert found.rule is not None
    frame = table()
    certificate = found.certificate
    assert found.learnt_on + found.certified_on == len(frame)
    # which rows were kept back is not told, but all that is said of them can be checked by count
    assert certificate.provenance.scanned == found.certified_on == 600
    assert found.verdict == certificate.verdict
    assert [row.lower for row in found.rows] == [row.lower for row in certificate.rows]
    ask = checked_ask(CLAIM, tolerance=0.12)
    whole = RepairTable.of(trail(), ask.claim, ask.loss)
    seed = np.random.SeedSequence(1)
    first, second = whole.dealt(0.5, np.random.default_rng(seed))
    rest = pl.DataFrame({name: list(second.columns[name]) for name in ("g", "s", "y")})
    again = rest.with_columns(d=pl.Series(found.rule.apply(rest["s"].to_numpy())))
    bounds = eq.certify(
        trail(again), CLAIM, tolerance=0.12, rng=certificate.provenance.seed
    )  # fmt: skip
    for mine, theirs in zip(bounds.rows, certificate.rows, strict=True):
        assert (mine.lower, mine.upper, mine.n) == (theirs.lower, theirs.upper, theirs.n)
    taken = [sorted(part.columns["s"].tolist()) for part in (first, second)]
    assert sorted(taken[0] + taken[1]) == sorted(frame["s"].to_list())


def test_the_price_is_the_paired_change_of_the_loss(found: eq.Repair) -> None:
    price = found.price
    assert price is not None
    assert price.change is not None
    assert price.before is not None
    assert price.after is not None
    assert price.change == pytest.approx(price.after - price.before)
    assert price.lower is not None
    assert price.upper is not None
    assert price.lower <= price.change <= price.upper


@pytest.mark.parametrize("how", ["threshold", "by_group"])
def test_any_order_of_rows_gives_the_same_finding(how: Any) -> None:
    frame = table()
    one = eq.repair(trail(frame), CLAIM, tolerance=0.1, rule=how, tries=2, rng=3)
    for seed in (1, 2):
        mixed = frame.sample(fraction=1, shuffle=True, seed=seed)
        other = eq.repair(trail(mixed), CLAIM, tolerance=0.1, rule=how, tries=2, rng=3)
        assert other.to_dict() == one.to_dict()
    assert eq.repair(trail(frame), CLAIM, tolerance=0.1, rule=how, rng=4).to_dict() != one.to_dict()


def test_counts_are_rows_and_are_dealt_one_by_one() -> None:
    frame = table(800).with_columns(s=pl.col("s").round(1), d=(pl.col("s").round(1) >= 0.5))
    short = frame.group_by("g", "s", "y", "d").len("n")
    found = eq.repair(trail(short, count="n"), CLAIM, tolerance=0.2, rng=2)
    assert (found.learnt_on, found.certified_on) == (400, 400)
    mixed = eq.repair(trail(short.reverse(), count="n"), CLAIM, tolerance=0.2, rng=2)
    assert mixed.to_dict() == found.to_dict()


def test_clusters_stay_whole_and_weights_count() -> None:
    ask = checked_ask(CLAIM, tolerance=0.1)
    whole = RepairTable.of(trail(cluster="home", weight="w"), ask.claim, ask.loss)
    first, second = whole.dealt(0.4, np.random.default_rng(0))
    homes = [set(part.columns["home"].tolist()) for part in (first, second)]
    assert not homes[0] & homes[1]
    assert len(homes[0]) == round(0.4 * (len(homes[0]) + len(homes[1])))
    found = eq.repair(trail(cluster="home", weight="w"), CLAIM, tolerance=0.2, rng=1)
    assert found.unit == "clusters"
    assert "clusters" in " ".join(found.sentences())


def test_learning_looks_at_all_thresholds_as_a_loop_would() -> None:
    frame = table(400, seed=5)
    for target in (None, eq.complement(), eq.reference(g="a"), 0.4):
        claim = eq.gap("false_positive_rate", across="g", target=target)
        ask = checked_ask(claim, tolerance=0.1)
        part = RepairTable.of(trail(frame, weight="w"), ask.claim, ask.loss)
        learnt = thresholds_on(part, dataclasses.replace(ask, candidates=40))
        rule = learnt.rules[0]
        said = frame.with_columns(d=pl.Series(rule.apply(frame["s"].to_numpy())))
        wrong = (said["d"] != said["y"]).to_numpy()
        weight = said["w"].to_numpy()
        assert learnt.losses[0] == pytest.approx(float((wrong * weight).sum() / weight.sum()))
        assert 20 < learnt.candidates <= 40
        described = eq.describe(trail(said, weight="w"), claim)
        worst = max(abs(row.disparity or 0.0) for row in described.rows)
        # bounds reach further than the estimate itself
        assert learnt.overruns[0] >= worst - 0.1 - 1e-9


def test_a_rule_is_plain_json_and_is_read_back(tmp_path: Path) -> None:
    found = eq.repair(trail(), CLAIM, tolerance=0.15, rule="by_group", rng=1)
    rule = found.rule
    assert rule is not None
    assert rule.how == "by_group"
    assert WARNING in found.sentences()
    assert eq.Rule.load(rule.save(tmp_path / "rule.json")) == rule
    scores, groups = np.array([0.1, 0.5, 0.9]), ["a", "b", "nobody"]
    said = rule.apply(scores, groups)
    assert said.tolist() == rule.apply(scores, {"g": groups}).tolist()
    cut = {one.where["g"]: one.threshold for one in rule.thresholds}
    assert said[0] == (cut["a"] <= 0.1)
    assert said[2] == ((rule.threshold or 0) <= 0.9)
    assert from_json(found.to_json()) == found
    line = eq.Rule(how="recalibration", score="s", knots=((0.0, 0.1), (1.0, 0.9)))
    assert eq.Rule.from_json(line.to_json()).apply([0.5, 2.0]).tolist() == [0.5, 0.9]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "This is not a rule"),
        ("{", "This is not a rule"),
        ('{"schema": "equipoise-rule/9"}', "this version reads 'equipoise-rule/1'"),
        ('{"schema": "equipoise-rule/1", "how": "magic", "score": "s"}', "must be one of"),
        ('{"schema": "equipoise-rule/1", "how": "threshold", "score": "s"}', "needs a threshold"),
        (
            '{"schema": "equipoise-rule/1", "how": "threshold", "score": "s", "threshold": "x"}',
            "must be a number",
        ),
        (
            '{"schema": "equipoise-rule/1", "how": "recalibration", "score": "s", '
            '"knots": [[0, 1], [1, 0]]}',
            "must rise",
        ),
    ],
)
def test_a_file_that_is_no_rule_is_refused(text: str, said: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=said):
        eq.Rule.from_json(text)


def test_rules_refuse_scores_and_groups_that_do_not_fit() -> None:
    rule = eq.Rule(how="threshold", score="s", threshold=0.5)
    for scores, said in (([0.1, None], "missing"), (["a"], "numbers"), ([[0.1]], "shape")):
        with pytest.raises(eq.OptionError, match=said):
            rule.apply(scores)  # type: ignore[arg-type]
    with pytest.raises(eq.OptionError, match="same for everyone"):
        rule.apply([0.1], ["a"])
    two = eq.Rule(
        how="by_group", score="s", threshold=0.5, attributes=("g", "h"),
        thresholds=(GroupThreshold(where={"g": True, "h": 1}, threshold=0.2),),
    )  # fmt: skip
    assert two.apply([0.3, 0.3], {"g": [True, 1], "h": [1.0, 1]}).tolist() == [1, 0]
    for groups, said in (
        (None, "pass groups"), (["a"], "attribute: values"), ({"g": ["a"]}, "lacks 'h'"),
        ({"g": ["a"], "h": []}, "a value for each"),
    ):  # fmt: skip
        with pytest.raises(eq.OptionError, match=said):
            two.apply([0.3], groups)


def test_a_tolerance_that_nothing_keeps_gives_no_certificate() -> None:
    rng = np.random.default_rng(4)
    n = 1000
    group = np.repeat(["a", "b"], n // 2)
    score = rng.random(n)
    frame = pl.DataFrame(
        {
            "g": group,
            "s": score,
            "y": (rng.random(n) < 0.3 + 0.4 * score + 0.25 * (group == "a")).astype(int),
            "d": (score > 0.5).astype(int),
        }
    )
    claim = eq.gap("positive_predictive_value", across="g", target=eq.reference(g="b"))
    found = eq.repair(trail(frame), claim, tolerance=0.05, rng=1)
    assert found.verdict in ("undetermined", "exceeded")
    assert not found.within
    assert "no certificate" in found.sentences()[0] or "no repair" in found.sentences()[0]


def test_scores_are_recalibrated_where_the_metric_reads_them() -> None:
    frame = table(1500).with_columns(s=pl.col("s") ** 3)
    claim = eq.gap("residual", across="g", target=0)
    found = eq.repair(trail(frame), claim, tolerance=0.15, rng=1)
    assert found.rule is not None
    assert found.rule.how == "recalibration"
    assert found.verdict == "kept"
    assert found.price is not None
    assert (found.price.change or 0) < 0
    assert all(abs(r.disparity or 0) < abs(r.disparity_before or 1) for r in found.rows)


@pytest.mark.parametrize("metric", ["brier", "log_loss"])
def test_recalibrated_scores_stay_chances(metric: str) -> None:
    found = eq.repair(trail(table(600)), eq.gap(metric, across="g"), tolerance=0.3, rng=1)
    assert found.rule is not None
    new = found.rule.apply(np.linspace(-1, 2, 50))
    assert new.min() >= 0
    assert new.max() <= 1


def test_a_rule_that_decides_nothing_is_no_repair() -> None:
    # a wide gap closes only where nobody, or everybody, is told yes
    frame = table().with_columns(s=pl.col("s") - 0.3 * (pl.col("g") == "b"))
    frame = frame.with_columns(d=(pl.col("s") >= 0.5).cast(pl.Int64))
    found = eq.repair(trail(frame), CLAIM, tolerance=0.03, rng=1)
    assert found.verdict != "kept"
    assert found.yes_after is not None
    assert found.yes_before is not None
    assert found.yes_after > found.yes_before / 5


def test_several_tries_are_paid_for() -> None:
    found = eq.repair(trail(), CLAIM, tolerance=0.12, tries=4, rng=1)
    assert found.tries == len(found.tried) <= 4
    assert found.certificate.level == pytest.approx(1 - 0.05 / found.tries)
    assert sum(one.chosen for one in found.tried) == 1


def test_without_a_prediction_the_price_is_against_the_best_threshold() -> None:
    found = eq.repair(trail(prediction=None), CLAIM, tolerance=0.12, rng=1)
    assert found.price is not None
    assert "most accurate threshold" in found.price.compared
    assert all(row.before is None for row in found.rows)
    bare = eq.repair(trail(label=None), CLAIM, tolerance=0.12, rng=1)
    assert bare.price is None
    assert "price is not known" in " ".join(bare.sentences())


def test_words_of_labels_and_predictions() -> None:
    frame = table().with_columns(
        y=pl.col("y").replace_strict({0: "no", 1: "yes"}),
        d=pl.col("d").replace_strict({0: "no", 1: "yes"}),
    )
    words = eq.repair(trail(frame, positive="yes"), CLAIM, tolerance=0.12, rng=1)
    # the rows lie in another order by words, and so are dealt otherwise
    assert words.verdict in ("kept", "undetermined")
    assert words.price is not None
    assert words.price.before is not None
    lost = table().with_columns(s=pl.when(pl.col("home") < 20).then(None).otherwise(pl.col("s")))
    gone = eq.repair(trail(lost), CLAIM, tolerance=0.2, rng=1)
    assert list(gone.provenance.excluded) == ["missing score"]
    assert list(gone.certificate.provenance.excluded) == ["missing score"]
    # the numbers told are those of rows that have a score
    assert gone.certified_on == sum(row.n for row in gone.rows)
    scored = int(lost["s"].is_not_null().sum())
    assert gone.learnt_on + gone.certified_on == scored


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"rule": "magic"}, "rule 'magic'"),
        ({"rule": "recalibration"}, "use rule='threshold'"),
        ({"learn": 1.5}, "learn"),
        ({"tries": 0}, "tries"),
        ({"candidates": 1}, "candidates"),
        ({"loss": "accuracy"}, "must be a loss"),
        ({"loss": "brier"}, "reads the prediction"),
        ({"tolerance": 0.0}, "tolerance must be above 0"),
    ],
)
def test_bad_options_are_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(eq.OptionError, match=said):
        eq.repair(trail(), CLAIM, **{"tolerance": 0.1, **more})


def test_bad_trails_and_claims_are_refused() -> None:
    with pytest.raises(eq.TrailError, match="needs a score column"):
        eq.repair(trail(score=None), CLAIM, tolerance=0.1)
    with pytest.raises(eq.TrailError, match="label or a prediction"):
        eq.repair(trail(label=None, prediction=None), CLAIM, tolerance=0.1)
    with pytest.raises(eq.TrailError, match="lower scores than the others"):
        eq.repair(trail(table().with_columns(s=1 - pl.col("s"))), CLAIM, tolerance=0.1)
    with pytest.raises(eq.TrailError, match="infinite"):
        eq.repair(trail(table().with_columns(s=pl.lit(float("inf")))), CLAIM, tolerance=0.1)
    with pytest.raises(eq.TrailError, match="is the prediction itself"):
        eq.repair(trail(score="d"), CLAIM, tolerance=0.1)
    with pytest.raises(eq.TrailError, match="only 2"):
        eq.repair(trail(table().head(2)), CLAIM, tolerance=0.1)
    with pytest.raises(eq.ClaimError, match="asks one at a time"):
        eq.repair(trail(), eq.equalized_odds(across="g"), tolerance=0.1)  # type: ignore[arg-type]
    with pytest.raises(eq.ClaimError, match="neither prediction nor score"):
        eq.repair(trail(), eq.gap(eq.metric("late", "y"), across="g"), tolerance=0.1)
    with pytest.raises(eq.OptionError, match="knows no given"):
        eq.repair(trail(), eq.gap("accuracy", across="g", given="home"), tolerance=0.1)
    claim = eq.gap("selection_rate", across=eq.masks(old="s > 0.5"))
    with pytest.raises(eq.OptionError, match="formed by values"):
        eq.repair(trail(), claim, tolerance=0.1, rule="by_group")
    with pytest.raises(eq.OptionError, match="knows no pair"):
        eq.repair(trail(pair="home"), CLAIM, tolerance=0.1)


PLAN = """
equipoise: 1
title: Repair
seed: 7
trail: {source: t.csv, label: y, prediction: d, score: s, attributes: [g]}
audits:
  - audit: repair
    claim: {kind: gap, metric: selection_rate, across: [g]}
    tolerance: 0.12
    rule: by_group
"""


def test_plan_page_suppression_and_verification(tmp_path: Path) -> None:
    table().write_csv(tmp_path / "t.csv")
    evidence = run(Plan.parse(PLAN), folder=tmp_path)
    stored = eq.Evidence.from_json(evidence.to_json())
    assert verify(stored, folder=tmp_path).complete
    finding = stored.entries[0].finding
    assert isinstance(finding, eq.Repair)
    assert finding.rule is not None
    page = eq.report(evidence).html
    assert "A repaired rule" in page
    assert "unlawful" in page
    assert "Rules that were tried" in page
    hidden = eq.report(evidence, suppress=200).html
    assert "Limit" in hidden or "Undetermined" in hidden
    # a rule and its certificate rest on every group
    assert finding.sentences()[0][:40] not in hidden
    assert "Not published." in hidden
    names = [one.where["g"] for one in finding.rule.thresholds]
    assert names == ["a", "b", "c"]
    assert ">c<" not in hidden
    with pytest.raises(eq.PlanError, match="tolerance"):
        Plan.parse(PLAN.replace("    tolerance: 0.12\n", ""))
    with pytest.raises(eq.PlanError, match="magic"):
        Plan.parse(PLAN.replace("by_group", "magic"))


def test_the_command_writes_a_rule_only_with_a_certificate(tmp_path: Path) -> None:
    table().write_csv(tmp_path / "t.csv")
    out = tmp_path / "rule.json"
    words = ["repair", str(tmp_path / "t.csv"), "--label", "y", "--prediction", "d", "--score", "s"]
    words += ["--across", "g", "--out", str(out), "--quiet"]
    assert execute([*words, "--tolerance", "0.2"]) == 0
    assert json.loads(out.read_text())["schema"] == "equipoise-rule/1"
    assert execute([*words, "--tolerance", "0.2"]) == 3
    out.unlink()
    assert execute([*words, "--tolerance", "0.001"]) in (1, 2)
    assert not out.exists()


@pytest.mark.parametrize("clustered", [False, True])
def test_a_group_that_was_dealt_to_learning_is_told_and_nothing_is_certified(
    clustered: bool,
) -> None:
    small = 200 if clustered else 2
    frame = pl.concat(
        [
            table(),
            table(200)
            .head(small)
            .with_columns(g=pl.lit("rural"), s=pl.lit(0.01), home=pl.lit(999, pl.Int64)),
        ]
    )
    roles = {"cluster": "home"} if clustered else {}
    absent = 0
    for seed in range(6):
        found = eq.repair(trail(frame, **roles), CLAIM, tolerance=0.3, rng=seed)
        (rural,) = [row for row in found.rows if row.group == "rural"]
        assert len(found.certificate.rows) == 4
        assert found.provenance.scanned + found.learnt_on == len(frame)
        if rural.n == 0:
            absent += 1
            assert (str(rural.verdict), str(found.verdict)) == ("undetermined", "undetermined")
            assert found.certificate.verdict == found.verdict
            assert any("kept back" in said and "rural" in said for said in found.sentences())
    assert absent


def test_to_tell_everybody_the_same_is_no_repair() -> None:
    flat = table().with_columns(s=pl.lit(0.5))
    with pytest.raises(eq.TrailError, match="decides anything"):
        eq.repair(trail(flat), CLAIM, tolerance=0.05, rng=7)
    mean = eq.gap(eq.metric("chance", "score", low=0, high=1), across="g")
    with pytest.raises(eq.TrailError, match="same for everybody"):
        eq.repair(trail(flat), mean, tolerance=0.05, rng=7)
    # labels that have nothing to do with the score make a flat line, which is not among the rules
    rng = np.random.default_rng(2)
    noise = table().with_columns(y=pl.Series(rng.integers(0, 2, 1200)), s=1 - pl.col("s"))
    found = eq.repair(trail(noise, prediction=None), mean, tolerance=0.5, rng=7)
    assert found.rule is not None
    assert found.rule.knots[-1][1] > found.rule.knots[0][1]
