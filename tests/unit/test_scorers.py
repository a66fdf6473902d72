"""Scores for scikit-learn against values by hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import f1_score, make_scorer, roc_auc_score
from sklearn.model_selection import cross_validate

import equipoise as eq
from equipoise.scorers import disparity, scorer


def _people() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(1)
    x = pd.DataFrame({"sex": rng.integers(0, 2, 600), "z": rng.normal(size=600)})
    return x, (x["z"] + rng.normal(size=600) > 0).astype(int).to_numpy()


def test_disparity_is_what_it_says() -> None:
    x, y = _people()
    said = (x["z"] > 0.2).astype(int).to_numpy()
    groups = [x["sex"].to_numpy() == g for g in (0, 1)]
    f1 = [f1_score(y[g], said[g]) for g in groups]
    found = {
        name: disparity(y, said, sensitive_features=x["sex"], metric="f1", statistic=name)
        for name in ("difference", "ratio", "worst")
    }
    assert found["difference"] == pytest.approx(max(f1) - min(f1))
    assert found["ratio"] == pytest.approx(min(f1) / max(f1))
    assert found["worst"] == pytest.approx(min(f1))
    error = disparity(y, said, sensitive_features=x["sex"], metric="error_rate", statistic="worst")
    assert error == pytest.approx(max(np.mean(y[g] != said[g]) for g in groups))
    crossed = {"a": x["sex"].to_numpy(), "b": (x["z"] > 0).to_numpy()}
    assert 0 <= disparity(y, said, sensitive_features=crossed, metric="accuracy") <= 1
    assert np.isnan(disparity(y, said, sensitive_features=["one"] * 600))


def test_scorers_in_cross_validation() -> None:
    x, y = _people()
    model = LogisticRegression().fit(x, y)
    area = scorer(eq.auc, across="sex", statistic="worst")
    chance = model.predict_proba(x)[:, 1]
    own = [roc_auc_score(y[x["sex"] == g], chance[x["sex"] == g]) for g in (0, 1)]
    assert area(model, x, y) == pytest.approx(min(own))
    scoring = {
        "gap": scorer("selection_rate", across=["sex"]),
        "auc": area,
        "plain": make_scorer(lambda a, b: float((a == b).mean())),
    }
    found = cross_validate(LogisticRegression(), x, y, scoring=scoring, cv=3)
    assert (found["test_gap"] <= 0).all()
    assert np.isfinite(found["test_auc"]).all()
    error = scorer("absolute_error", across="sex")
    assert error(LinearRegression().fit(x, y), x, y) <= 0


def test_what_cannot_be_scored_is_refused() -> None:
    x, y = _people()
    model = LogisticRegression().fit(x, y)
    with pytest.raises(eq.OptionError, match="no column 'age'"):
        scorer(across="age")(model, x, y)
    with pytest.raises(eq.OptionError, match="data frame"):
        scorer(across="sex")(LogisticRegression().fit(x.to_numpy(), y), x.to_numpy(), y)
    with pytest.raises(eq.EquipoiseError):
        scorer("nothing", across="sex")
    with pytest.raises(eq.EquipoiseError):
        scorer("accuracy", across=[])
    with pytest.raises(eq.EquipoiseError):
        disparity(y, y, sensitive_features=x["sex"], statistic="largest")  # type: ignore[arg-type]
