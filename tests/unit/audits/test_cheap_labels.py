"""Few true labels and many cheap ones: prediction-powered rates, never wider than by true ones."""

from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import equipoise as eq
from equipoise.errors import ClaimError, TrailError
from equipoise.methods.inference.labels import LabelSums, powered_core
from equipoise.methods.inference.orthogonal import ScoreDraws
from equipoise.methods.targets import Complement, Overall, Reference

ROLES = {"label": "label", "prediction": "pred"}
BOTH = {**ROLES, "proxy_label": "judge"}


def _answers(rows: int = 3000, seed: int = 3, wrong: float = 0.1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    who = rng.choice(["A", "B", "C"], rows, p=[0.55, 0.35, 0.1])
    sex = rng.choice(["F", "M"], rows)
    label = (rng.random(rows) < 0.4).astype(float)
    pred = np.where(rng.random(rows) < np.where(who == "B", 0.3, 0.2), 1 - label, label)
    judge = np.where(rng.random(rows) < wrong, 1 - label, label)
    gold = np.where(rng.random(rows) < 0.2, label, np.nan)
    return pd.DataFrame(
        {"who": who, "sex": sex, "label": gold, "pred": pred.astype(int), "judge": judge}
    )


def _naive(table: pd.DataFrame, metric: str) -> tuple[float, float]:
    """The rate of one group and its variance, row by row."""
    pred = table["pred"].to_numpy()

    def parts(label: Any) -> tuple[Any, Any]:
        able = np.ones(len(pred)) if metric == "error_rate" else (label == 0).astype(float)
        value = (pred != label) if metric == "error_rate" else pred == 1
        return able, able * value

    gold = table["label"].notna().to_numpy()
    e, v = parts(table["label"].to_numpy())
    ef, vf = parts(table["judge"].to_numpy())
    r0 = v[gold].sum() / e[gold].sum()
    # half a row of each way in which the labels could differ
    kinds = [-r0, 1 - r0] if metric == "error_rate" else [0.0, -r0, 1 - r0]
    odd = [(x, y) for x in kinds for y in kinds if x != y]
    own = np.concatenate([(v - r0 * e)[gold], [x for x, _ in odd]])
    cheap = np.concatenate([(vf - r0 * ef)[gold], [y for _, y in odd]])
    weight = np.concatenate([np.ones(gold.sum()), np.full(len(odd), 0.5)])
    (spread, both), (_, other) = np.cov(own, cheap, aweights=weight, ddof=0)
    lam = both / other
    top = v[gold].mean() + lam * (vf.mean() - vf[gold].mean())
    bottom = e[gold].mean() + lam * (ef.mean() - ef[gold].mean())
    return float(top / bottom), float(1 - (1 - gold.mean()) * both**2 / other / spread)


@pytest.mark.parametrize("metric", ["error_rate", "false_positive_rate"])
def test_rates_are_those_of_the_rows(metric: str) -> None:
    table = _answers()
    claim = eq.gap(metric, across="who", target=0.2)
    found = eq.certify(eq.read(table, **BOTH), claim, rng=1)
    alone = eq.certify(eq.read(table, **ROLES), claim, rng=1)
    for row, gold, labels in zip(found.rows, alone.rows, found.labels, strict=True):
        rate, share = _naive(table[table["who"] == row.where["who"]], metric)
        assert row.value == pytest.approx(rate)
        assert labels.gold == pytest.approx(gold.value)
        assert labels.n == gold.n == row.n
        # the λ that was estimated costs one degree of freedom
        assert labels.n / labels.worth == pytest.approx(share, rel=0.03)
        assert row.upper - row.lower < gold.upper - gold.lower
    assert any("a cheap label only" in text for text in found.sentences())
    assert found.at(0.95).rows == found.rows
    assert eq.findings.from_json(found.to_json()) == found


def _sums(table: pd.DataFrame, cells: int, weight: Any) -> LabelSums:
    """The sums of `LabelSums` for false positive rates, straight from the rows."""
    gold = table["label"].notna().to_numpy()
    pred = table["pred"].to_numpy()
    e, ef = (table["label"] == 0).to_numpy() & gold, (table["judge"] == 0).to_numpy()
    v, vf = e * pred, ef * pred
    columns = (gold, e, v, gold * ef, gold * vf, v * vf, v * ef, e * vf, e * ef, 1 + 0 * ef, ef, vf)
    place = table["cell"].to_numpy()
    return LabelSums(
        **{
            field.name: np.bincount(place, weight * x, cells).astype(np.float64)
            for field, x in zip(fields(LabelSums), columns, strict=True)
        }
    )


@pytest.mark.parametrize("target", [Overall(), Complement(), Reference(cells=np.arange(6) < 2)])
def test_covariance_is_that_of_leaving_rows_out(target: Any) -> None:
    table = _answers(60_000, seed=9)
    names = table["who"] + table["sex"]
    table["cell"] = names.map({name: i for i, name in enumerate(sorted(set(names)))})
    member = np.kron(np.eye(3), np.ones((2, 1)))
    groups = np.concatenate([member, np.eye(6)], axis=1)

    columns = ["cell", "label", "pred", "judge"]
    kinds = table.groupby(columns, dropna=False).size().reset_index(name="n")
    rows = kinds["n"].to_numpy(dtype=float)
    core, told = powered_core(_sums(kinds, 6, rows), target, lambda x: x @ groups, relative=False)

    def contrast(weight: Any) -> Any:
        """The disparities with the strengths as they are."""
        s = _sums(kinds, 6, weight).parts(target, lambda x: x @ groups)
        lam, n, every = told.strength, np.maximum(s.labelled, 1), np.maximum(s.rows, 1)
        top = s.value / n + lam * (s.all_value / every - s.cheap_value / n)
        share = s.eligible / n + lam * (s.all_eligible / every - s.cheap_eligible / n)
        rate, mass = top / np.where(share > 0, share, 1), share * s.rows
        inside, other = np.array(target.group)[:, None], np.array(target.against)[:, None]
        means = [
            (w * mass * rate).sum(0) / np.maximum((w * mass).sum(0), 1) for w in (inside, other)
        ]
        return means[0] - means[1]

    moved = []
    for i in range(len(kinds)):
        less = rows.copy()
        less[i] -= 1
        moved.append(contrast(less) - contrast(rows))
    steps = np.array(moved)
    able = core.status == 0
    assert contrast(rows)[able] == pytest.approx(core.comparison.estimate[able])
    naive = (steps.T * rows) @ steps
    assert isinstance(core.cells, ScoreDraws)
    drawn = core.cells._root @ core.cells._root.T
    assert drawn[np.ix_(able, able)] == pytest.approx(naive[np.ix_(able, able)], rel=0.02, abs=2e-6)
    # the spread of the tails is that at the gold rate, the same but for terms of lower order
    assert core.pivot.error[able] ** 2 == pytest.approx(np.diag(naive)[able], rel=0.15)


def test_a_useless_judge_changes_next_to_nothing() -> None:
    table = _answers()
    table["judge"] = np.random.default_rng(4).integers(0, 2, len(table))
    claim = eq.gap("error_rate", across="who", target=0.2)
    found = eq.certify(eq.read(table, **BOTH), claim, rng=1)
    alone = eq.certify(eq.read(table, **ROLES), claim, rng=1)
    for row, gold, labels in zip(found.rows, alone.rows, found.labels, strict=True):
        assert labels.n <= labels.worth < 1.1 * labels.n
        assert row.upper - row.lower <= (gold.upper - gold.lower) * 1.01
    perfect = eq.certify(eq.read(_answers(wrong=0.0), **BOTH), claim, rng=1)
    assert all(labels.worth > 3 * labels.n for labels in perfect.labels)


def test_other_metrics_and_refusals() -> None:
    table = _answers(400)
    trail = eq.read(table, **BOTH)
    plain = eq.certify(trail, eq.gap("selection_rate", across="who"), rng=1)
    assert plain.labels == ()
    assert (
        plain.rows
        == eq.certify(
            eq.read(table, prediction="pred"), eq.gap("selection_rate", across="who"), rng=1
        ).rows
    )
    assert eq.flag(trail, eq.gap("error_rate", across="who")).labels
    assert eq.joint_test(trail, eq.gap("error_rate", across="who"), rng=1).labels
    counts = eq.tally(eq.read(table, **ROLES), eq.gap("error_rate", across="who"))
    assert eq.certify(counts, eq.gap("error_rate", across="who"), rng=1).labels == ()
    for claim, words in (
        (eq.gap("error_rate", across="who", given="sex"), "takes no given="),
        (eq.gap("error_rate", across="who", target=eq.highest()), "highest"),
        (eq.gap("error_rate", across="who", unknown="worst"), "unknown="),
    ):
        with pytest.raises(ClaimError, match=words):
            eq.certify(trail, claim)
    with pytest.raises(ClaimError, match="label and prediction"):
        eq.certify(
            eq.read(table, score="judge", label="label", proxy_label="pred"),
            eq.gap("brier", across="who"),
        )
    with pytest.raises(TrailError, match="two values"):
        eq.certify(
            eq.read(table.assign(judge=range(400)), **BOTH), eq.gap("error_rate", across="who")
        )
    with pytest.raises(TrailError, match="no column"):
        eq.read(table, proxy_label="jugde", **ROLES)


def test_rows_that_the_judge_skipped_count_by_their_true_label() -> None:
    rng = np.random.default_rng(3)
    rows = 2000
    truth, group = rng.integers(0, 2, rows), rng.choice(["A", "B"], rows)
    said = np.where(rng.random(rows) < 0.2, 1 - truth, truth)
    judge = np.where(rng.random(rows) < 0.1, 1 - truth, truth).astype(float)
    gold, skipped = rng.random(rows) < 0.2, rng.random(rows) < 0.5
    table = pl.DataFrame({
        "group": group, "said": said,
        "label": [float(t) if k else None for t, k in zip(truth, gold, strict=True)],
        "judge": [None if k else j for j, k in zip(judge, skipped, strict=True)],
    })  # fmt: skip
    claim = eq.gap("error_rate", across="group", target="complement")
    found = eq.certify(table, claim, rng=1, label="label", prediction="said", proxy_label="judge")
    for row in found.labels:
        own = gold & (group == row.group)
        assert row.n == own.sum()
        assert row.gold == pytest.approx((said != truth)[own].mean())
        assert row.worth >= row.n
    only, neither = (~gold & ~skipped).sum(), (~gold & skipped).sum()
    assert found.provenance.excluded == {
        "with a cheap label only": only, "missing label": neither
    }  # fmt: skip
