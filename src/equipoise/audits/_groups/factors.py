"""Groups given factors, from rows: predictions by strata, or by models of other folds."""

import warnings
from typing import Any

import numpy as np

from equipoise.cells.rows import RowTable
from equipoise.claims import Claim
from equipoise.claims.groups import Factors, Learner
from equipoise.errors import OptionError
from equipoise.methods.inference.orthogonal import Predicted, Sides, strata_means
from equipoise.methods.inference.strata import Weights
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray

MOST_GROUPS = 60
"""Groups for each of which models may be learnt."""
SEED = 2018
"""Folds are dealt from it after rows are in the order of their values: no choice of the caller's
moves the answer."""


def _units(table: RowTable) -> int:
    return len(table) if table.cluster is None else int(table.cluster.max(initial=-1)) + 1


def by_strata(table: RowTable, place: IntArray, kind: Weights) -> Sides:
    """Predictions by the means of strata."""

    def predict(member: BoolArray, used: BoolArray) -> Predicted:
        return strata_means(
            member[used], table.value[used], table.weights[used], place[table.cell[used]], kind
        )

    return predict


# --- Predictions from other folds ---


def by_models(table: RowTable, asked: Factors, kind: Weights, *, zero_one: bool) -> Sides:
    """Predictions by models that were learnt on other folds."""
    fold = _folds(table, asked.folds)
    x, y, w = table.matrix, table.value, table.weights
    everybody: dict[bytes, FloatArray] = {}

    def learn(target: FloatArray, on: BoolArray, used: BoolArray, *, chances: bool) -> FloatArray:
        return _cross_fitted(x, target, w, fold, on, used, asked.learner, chances=chances)

    chances: dict[bytes, FloatArray] = {}

    def chance_of(member: BoolArray, used: BoolArray) -> FloatArray:
        # of two groups that make up all, either knows the other's chances
        mirror = chances.get((used & ~member).tobytes() + used.tobytes())
        if mirror is not None:
            return np.asarray(1 - mirror)
        found = learn(member.astype(np.float64), used, used, chances=True)[used]
        chances[member.tobytes() + used.tobytes()] = found
        return found

    def predict(member: BoolArray, used: BoolArray) -> Predicted:
        chance = chance_of(member, used)
        if kind is Weights.MANTEL_HAENSZEL:
            # against everyone else all groups share one model of the outcome
            key = used.tobytes()
            if key not in everybody:
                everybody[key] = learn(y, used, used, chances=zero_one)[used]
            own = others = everybody[key]
        else:
            own = learn(y, member, used, chances=zero_one)[used]
            others = learn(y, used & ~member, used, chances=zero_one)[used]
        return Predicted(
            member=member[used], outcome=y[used], weight=w[used], chance=chance,
            own=own, others=others,
        )  # fmt: skip

    return predict


def _folds(table: RowTable, number: int) -> IntArray:
    """The fold of each row; rows of one cluster, and rows with equal factors, stay together."""
    rng = np.random.default_rng(SEED)
    if table.cluster is not None:
        dealt = rng.permutation(_units(table)) % number
        return np.asarray(dealt[table.cluster], dtype=np.int64)
    return np.asarray(rng.permutation(np.arange(len(table)) % number), dtype=np.int64)


def _cross_fitted(
    x: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    fold: IntArray,
    on: BoolArray,
    used: BoolArray,
    learner: Learner,
    *,
    chances: bool,
) -> FloatArray:
    """Predictions for the rows used, learnt on those of ``on`` that are in other folds."""
    import threadpoolctl  # type: ignore[import-untyped]

    names = ("linear", "boosting") if learner == "auto" else (learner,)
    tried: list[tuple[float, int, FloatArray]] = []
    seen = on & used
    # many small fits: threads would wait for one another more than they work
    with warnings.catch_warnings(), threadpoolctl.threadpool_limits(1):
        warnings.simplefilter("ignore")
        for name in names:
            out = np.full(y.size, np.nan)
            for k in range(int(fold.max()) + 1):
                there, here = on & (fold != k), used & (fold == k)
                if here.any():
                    out[here] = _fitted(name, x[there], y[there], weight[there], x[here], chances)
            tried.append((_loss(y[seen], out[seen], weight[seen], chances), len(tried), out))
    return min(tried)[2]


def _fitted(
    name: str, x: FloatArray, y: FloatArray, weight: FloatArray, at: FloatArray, chances: bool
) -> FloatArray:
    if y.size == 0 or bool((y == y[0]).all()):
        return np.full(len(at), y[0] if y.size else 0.0)
    model = _model(name, len(x), x.shape[1], chances)
    step = "" if name == "boosting" else f"{model.steps[-1][0]}__"
    # equal weights say nothing, and boosting bins weighted rows far more slowly
    weighed = bool((weight != weight[0]).any())
    model.fit(x, y, **({f"{step}sample_weight": weight} if weighed else {}))
    if chances:
        return np.asarray(model.predict_proba(at)[:, -1], dtype=np.float64)
    return np.asarray(model.predict(at), dtype=np.float64)


def _model(name: str, rows: int, columns: int, chances: bool) -> Any:
    if name == "boosting":
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        made = HistGradientBoostingClassifier if chances else HistGradientBoostingRegressor
        return made(max_depth=3, max_iter=60, min_samples_leaf=20, early_stopping=False)
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, QuantileTransformer, StandardScaler

    # by ranks, so that no far value bends the line
    ranks = QuantileTransformer(
        n_quantiles=min(rows, 200), output_distribution="normal", subsample=None
    )
    # squares and products, while they are not many
    bent = [PolynomialFeatures(2, include_bias=False)] if columns <= 8 else []
    last = LogisticRegression(C=1.0, max_iter=2000) if chances else Ridge(alpha=1.0)
    return make_pipeline(ranks, StandardScaler(), *bent, StandardScaler(), last)


def _loss(y: FloatArray, predicted: FloatArray, weight: FloatArray, chances: bool) -> float:
    if not chances:
        return float((weight * (y - predicted) ** 2).sum())
    p = np.clip(predicted, 1e-6, 1 - 1e-6)
    return -float((weight * (y * np.log(p) + (1 - y) * np.log(1 - p))).sum())


def check_groups(claim: Claim, groups: int) -> None:
    """Refuse to learn models for very many groups."""
    if claim.learnt is not None and groups > MOST_GROUPS:
        raise OptionError(
            f"factors(…) learns models for every group, and {groups:,} are more than "
            f"{MOST_GROUPS}. Use fewer attributes, or give columns that form strata."
        )
