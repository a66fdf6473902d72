"""Disparities given something: legitimate factors, a model before, or partners."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.audits._common import finite
from equipoise.audits._groups.problem import Problem, cell_moments, group_fields, strata_of
from equipoise.cells.gather import group_means, inside_of
from equipoise.cells.groups import attribute_text
from equipoise.cells.rows import RowTable
from equipoise.claims import Claim, Ratio
from equipoise.claims.claim import Reference
from equipoise.claims.groups import Factors, Learner
from equipoise.errors import OptionError
from equipoise.findings.adjusted import AdjustedGroup, ChangedGroup
from equipoise.methods.inference.core import Core
from equipoise.methods.inference.counts import FlipPivot
from equipoise.methods.inference.orthogonal import (
    Predicted,
    Residual,
    Sides,
    e_value,
    factor_core,
    strata_means,
)
from equipoise.methods.inference.strata import Adjusted, Sameness, Weights, homogeneity
from equipoise.methods.inference.student import LEAST_ROWS
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray
from equipoise.methods.targets import Overall, Status, compare

MOST_GROUPS = 60
"""Groups for each of which models may be learnt."""
SEED = 2018
"""Folds are dealt from it after rows are in the order of their values: no choice of the caller's
moves the answer."""


# --- Before and after, and partners ---


def both_sides(problem: Problem) -> tuple[ChangedGroup, ...]:
    """What every group's metric was before and is after, or is among its pairs."""
    found = problem.core.comparison
    before, after = found.theta, found.mean
    if problem.sides is not None:
        before, after = (group_means(cells, problem.collection) for cells in problem.sides)
    return tuple(
        ChangedGroup(
            group=fields["group"],
            where=fields["where"],
            n=fields["n"],
            before=finite(before[i]),
            after=finite(after[i]),
            change=finite(found.estimate[i]),
        )
        for i, fields in enumerate(group_fields(problem))
    )


def without_partners(problem: Problem, core: Core) -> Core:
    """The core of pairs, in which the reference group has no difference of its own."""
    target, cells = problem.claim.target, problem.cells
    assert isinstance(target, Reference)
    inside = inside_of(target.where, cells.axes, cells.index)
    outside = problem.collection.sums(np.where(inside, 0.0, cells.present))
    same = (outside == 0) & (problem.collection.sums(cells.present) > 0)
    status = np.where(core.status == Status.FEW_ROWS, int(Status.FEW_PAIRS), core.status)
    return replace(core, status=np.where(same, int(Status.IDENTICAL), status))


def exchangeable(problem: Problem) -> Core:
    """The core with groups of few pairs, for the one question that all their signs answer.

    That is whether partners are treated alike. Signs say nothing about how large a mean difference
    is: skewed differences of mean 0 are no more symmetric about 0 than about anything else.
    """
    core, pairs = problem.core, problem.cells.differences
    rows = core.comparison.rows
    few = (core.status == Status.FEW_PAIRS) & (rows > 1) & (rows < LEAST_ROWS)
    if pairs is None or problem.cells.clusters is not None or not bool(few.any()):
        return core
    cell, value = pairs
    member = problem.collection.sums(np.eye(len(problem.cells))) > 0
    values = {int(g): value[member[cell, g]] for g in np.flatnonzero(few)}
    many = core.pivot
    pivot = FlipPivot(
        estimate=many.estimate, error=many.error, many=many.tails, few=few, values=values
    )
    return replace(
        core,
        pivot=pivot,
        status=np.where(few, int(Status.OK), core.status),
        reach=np.where(few, np.inf, core.reach),
    )


# --- What is said of the factors ---


def without_factors(problem: Problem) -> tuple[AdjustedGroup, ...]:
    """Every group without the factors that are given."""
    found = problem.core.comparison
    plain = compare(
        cell_moments(problem.cells), problem.target, problem.collection.sums,
        relative=problem.relative,
    ).estimate  # fmt: skip
    if isinstance(found, Residual):
        return _by_rows(problem, found, plain)
    assert isinstance(found, Adjusted)
    strata = found.strata
    # against everyone the part of composition is that of the group's own share, too
    known = not problem.relative and problem.target.scale == 1.0
    part = strata.explained * strata.dilution if known else np.full(plain.shape, np.nan)
    same, named, unknown = homogeneity(strata), _stratum_names(problem), _unknown(problem)
    return tuple(
        AdjustedGroup(
            group=fields["group"],
            where=fields["where"],
            n=fields["n"],
            unadjusted=finite(plain[i]),
            explained=finite(part[i]),
            strata=int((strata.group_rows[:, i] > 0).sum()),
            shared=int(strata.overlap[:, i].sum()),
            apart=int(strata.apart[i]),
            same=finite(same.p[i]),
            differing=_differing(same, i, named),
            unknown=int(unknown[i]),
        )
        for i, fields in enumerate(group_fields(problem))
    )


def _unknown(problem: Problem) -> FloatArray:
    """Rows of every group of which a column that forms strata is missing."""
    cells = problem.cells
    gone = np.zeros(len(cells), dtype=bool)
    for one in problem.claim.given:
        if not isinstance(one, Factors):
            axis = cells.cut_by(one)
            missing = [i for i, level in enumerate(cells.axes[axis].levels) if level is None]
            gone |= np.isin(cells.index[:, axis], missing)
    return np.asarray(problem.collection.sums(np.where(gone, cells.rows, 0.0)))


def _stratum_names(problem: Problem) -> list[str]:
    """Every stratum in words, in the order of their numbers."""
    cells = problem.cells
    place, _ = strata_of(cells, problem.claim)
    axes = [cells.cut_by(one) for one in problem.claim.given if not isinstance(one, Factors)]
    first = np.unique(place, return_index=True)[1]
    return [
        ", ".join(
            attribute_text(
                cells.axes[axis].dimension, cells.axes[axis].levels[level], told_apart=False
            )
            for axis, level in zip(axes, cells.index[cell, axes].tolist(), strict=True)
        )
        for cell in first.tolist()
    ]


def _differing(same: Sameness, group: int, named: list[str]) -> tuple[str, ...]:
    """Strata that depart from what all have by more than chance does in any of them."""
    apart = same.apart[:, group]
    chance = 0.05 / max(int((apart < 1).sum()), 1)
    most = np.argsort(apart, kind="stable")
    return tuple(named[s] for s in most.tolist() if apart[s] < chance)


def _by_rows(problem: Problem, found: Residual, plain: FloatArray) -> tuple[AdjustedGroup, ...]:
    """What factors explain, how open they leave who is who, and what could still be hidden."""
    known, told = problem.cells.zero_one, found.state == Status.OK
    unknown = _unknown(problem)
    return tuple(
        AdjustedGroup(
            group=fields["group"],
            where=fields["where"],
            n=fields["n"],
            unadjusted=finite(plain[i]),
            # where nothing is said of what is left, nothing is said of what is not
            explained=finite(plain[i] - found.gap[i]) if told[i] else None,
            compared=finite(found.information[i]),
            smallest=finite(found.smallest[i]),
            hidden=finite(e_value(found.level[i], found.theta[i])) if known and told[i] else None,
            unknown=int(unknown[i]),
        )
        for i, fields in enumerate(group_fields(problem))
    )


# --- Groups given factors, from rows ---


def factor_core_of(problem: Problem) -> Core:
    """The core of groups given factors, where it takes the rows themselves."""
    claim, cells = problem.claim, problem.cells
    if problem.table is None:
        raise OptionError("This audit has no rows to learn from; leave out given=.")
    if isinstance(claim, Ratio) or isinstance(problem.target, Overall) or claim.target.scale != 1:
        raise OptionError(
            "Given factors, metrics that are no 0/1 counts, weights and clusters take gap(…) "
            "against complement() or reference(…), not scaled."
        )
    _check_groups(claim, len(problem.collection))
    kind, learnt = Weights(claim.weights), claim.learnt
    table = problem.table(() if learnt is None else claim.given_columns)
    if learnt is None:
        predict = _by_strata(table, strata_of(cells, claim)[0], kind)
    else:
        predict = _by_models(table, learnt, kind, zero_one=cells.zero_one)
    return factor_core(
        table.cell, table.cluster, cell_moments(cells), problem.target, problem.collection.sums,
        predict, kind,
    )  # fmt: skip


def _check_groups(claim: Claim, groups: int) -> None:
    """Refuse to learn models for very many groups."""
    if claim.learnt is not None and groups > MOST_GROUPS:
        raise OptionError(
            f"factors(…) learns models for every group, and {groups:,} are more than "
            f"{MOST_GROUPS}. Use fewer attributes, or give columns that form strata."
        )


def _units(table: RowTable) -> int:
    return len(table) if table.cluster is None else int(table.cluster.max(initial=-1)) + 1


def _by_strata(table: RowTable, place: IntArray, kind: Weights) -> Sides:
    """Predictions by the means of strata."""

    def predict(member: BoolArray, used: BoolArray) -> Predicted:
        return strata_means(
            member[used], table.value[used], table.weights[used], place[table.cell[used]], kind
        )

    return predict


# --- Predictions from other folds ---


def _by_models(table: RowTable, asked: Factors, kind: Weights, *, zero_one: bool) -> Sides:
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
