"""The core as a whole: which pivot, who is not answered and why, and effective counts."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from equipoise.methods.inference.core import ClusterPivot, Core, core_of, plain_worth
from equipoise.methods.inference.counts import CountPivot
from equipoise.methods.inference.student import ClusterSums, StudentPivot
from equipoise.methods.numerics import FloatArray, over
from equipoise.methods.targets import (
    Complement,
    Constant,
    Moments,
    Overall,
    Reference,
    Status,
    Target,
    compare,
    plain_moments,
)
from tests.unit.methods.inference.naive import TARGETS, Rows, make_rows, targets_of
from tests.unit.methods.inference.test_clusters import cluster_sums
from tests.unit.methods.inference.test_invert import zero_one


def plain(rows: FloatArray, ones: FloatArray, target: Target, relative: bool = False) -> Core:
    return core_of(
        plain_moments(rows, ones, ones, ones),
        target,
        lambda x: x,
        relative=relative,
        zero_one=True,
        weighted=False,
    )


def test_the_data_decide_the_pivot() -> None:
    rows, real = make_rows(1, draw=zero_one), make_rows(1)
    options: Any = {"relative": False, "weighted": False}
    clusters = cluster_sums(rows, np.arange(160) % 20)

    def kind(x: Rows, counted: bool, clustered: bool) -> type:
        return type(
            core_of(
                x.moments(),
                Overall(),
                x.sums,
                zero_one=counted,
                clusters=clusters if clustered else None,
                **options,
            ).pivot
        )

    assert kind(rows, True, False) is CountPivot
    assert kind(rows, True, True) is CountPivot
    assert kind(real, False, False) is StudentPivot
    assert kind(real, False, True) is ClusterPivot


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_estimates_are_those_of_the_rows(name: str, relative: bool, weighted: bool) -> None:
    rows = make_rows(2, weighted=weighted)
    target = targets_of(rows)[name]
    found = compare(rows.moments(), target, rows.sums, relative=relative)
    for group in range(4):
        assert found.mean[group] == pytest.approx(rows.mean(rows.member(group)))
        assert found.theta[group] == pytest.approx(rows.theta(target, group))
        assert found.estimate[group] == pytest.approx(rows.estimate(target, group, relative))
        assert found.rows[group] == rows.member(group).sum()


ROWS, ONES = np.array([0.0, 1.0, 30.0, 40.0]), np.array([0.0, 1.0, 12.0, 30.0])


def test_counts_have_an_answer_at_any_size() -> None:
    core = plain(ROWS, ONES, Overall())
    assert core.status.tolist() == [Status.EMPTY, Status.OK, Status.OK, Status.OK]
    low, high = core.bounds(1.645, (-1.0, 1.0))
    assert np.isnan(low).tolist() == [True, False, False, False]
    assert bool((high[1:] >= core.comparison.estimate[1:]).all())


def test_targets_that_are_missing_or_the_group_itself() -> None:
    everyone = core_of(
        plain_moments(ROWS, ONES, ONES, ONES),
        Overall(),
        lambda x: np.stack([x.sum(axis=-1), x[..., 2]], axis=-1),
        relative=False,
        zero_one=True,
        weighted=False,
    )
    assert everyone.status.tolist() == [Status.IDENTICAL, Status.OK]
    itself = plain(ROWS, ONES, Reference(cells=np.array([False, False, True, False])))
    assert itself.status.tolist() == [Status.EMPTY, Status.OK, Status.IDENTICAL, Status.OK]
    nobody = plain(ROWS, ONES, Reference(cells=np.array([True, False, False, False])))
    assert nobody.status[1:].tolist() == [Status.NO_TARGET] * 3
    alone = core_of(
        plain_moments(ROWS, ONES, ONES, ONES),
        Complement(),
        lambda x: x.sum(axis=-1, keepdims=True),
        relative=False,
        zero_one=True,
        weighted=False,
    )
    assert alone.status.tolist() == [Status.NO_TARGET]
    # of four fifths of oneself everything is known beforehand
    assert plain(ROWS, ONES, Reference(cells=ROWS == 30, scale=0.8)).status[2] == Status.IDENTICAL


def test_a_ratio_to_nothing_has_no_answer() -> None:
    none = np.array([0.0, 0.0, 5.0, 0.0])
    rate_zero = plain(ROWS, none, Reference(cells=np.array([False, False, False, True])), True)
    assert rate_zero.status[2] == Status.ZERO_TARGET
    assert np.isnan(rate_zero.tails(1.0)[0][2])
    known = plain(ROWS, ONES, Constant(value=0.0), True)
    assert known.status.tolist() == [Status.EMPTY] + [Status.ZERO_TARGET] * 3


def real_core(values: list[FloatArray], target: Target) -> Core:
    sums = [np.array([float((v**p).sum()) for v in values]) for p in range(4)]
    return core_of(
        plain_moments(*sums), target, lambda x: x, relative=False, zero_one=False, weighted=False
    )


def test_real_values_need_rows_spread_and_little_skewness() -> None:
    rng = np.random.default_rng(3)
    values = [
        np.zeros(0),
        np.array([1.0]),
        np.full(30, 2.5),
        rng.normal(size=19),
        rng.normal(size=21),
        rng.normal(size=400),
    ]
    core = real_core(values, Constant(value=0.0))
    assert core.status.tolist() == [
        Status.EMPTY,
        Status.SINGLE,
        Status.CONSTANT,
        Status.FEW_ROWS,
        Status.OK,
        Status.OK,
    ]
    # the target needs its rows as well
    few = real_core(values[3:], Reference(cells=np.array([True, False, False])))
    assert few.status.tolist() == [Status.IDENTICAL, Status.FEW_ROWS, Status.FEW_ROWS]


def test_the_guard_leaves_out_skewed_groups_and_asks_all_rows_about_it() -> None:
    rng = np.random.default_rng(4)
    core = real_core([rng.normal(size=2000), rng.lognormal(0, 1.5, 60)], Constant(value=1.0))
    assert core.guarded(2.5).status.tolist() == [Status.OK, Status.SKEWED]
    assert np.isnan(core.guarded(2.5).bounds(2.5, (-np.inf, np.inf))[0]).tolist() == [False, True]
    # a small group that happens to miss the rare large values is not harmless
    heavy = [np.where(rng.random(3000) < 0.01, 100.0, 1.0), rng.normal(1.0, 0.1, 40)]
    seen = real_core(heavy, Constant(value=1.0)).guarded(2.5)
    assert seen.status[1] == Status.SKEWED
    # counts say everything there is about their skewness
    assert plain(ROWS, ONES, Overall()).guarded(9.0).status.tolist() == [1, 0, 0, 0]


def test_weighted_rates_are_worth_fewer_rows_and_equal_weights_the_same() -> None:
    rows = make_rows(5, 300, draw=zero_one)
    weighted = make_rows(5, 300, draw=zero_one, weighted=True)
    target = Constant(value=0.3)

    def pivot(x: Rows) -> CountPivot:
        made = core_of(
            x.moments(), target, x.sums, relative=False, zero_one=True, weighted=True
        ).pivot
        assert isinstance(made, CountPivot)
        return made

    np.testing.assert_allclose(pivot(rows).rows, rows.sums(rows.moments().rows)[None], rtol=1e-9)
    # no more for its Kish rows than everybody's rows are worth for theirs
    usual = _worth(weighted.weight, weighted.value) / _kish(weighted.weight)
    # nor more for its rows than rows are worth in single cells, on average over rows
    cost = 0.0
    for cell in np.unique(weighted.cell):
        inside = weighted.cell == cell
        w, x = weighted.weight[inside], weighted.value[inside]
        cost += w.size * w.size / min(_worth(w, x), _kish(w))
    typical = cost / weighted.cell.size
    for group in range(4):
        inside = weighted.member(group)
        w, x = weighted.weight[inside], weighted.value[inside]
        aim = min(_worth(w, x), _kish(w), _kish(w) * min(usual, 1.0), w.size / typical)
        assert pivot(weighted).rows[0, group] == pytest.approx(aim)


def _kish(w: FloatArray) -> float:
    return float(w.sum() ** 2 / (w**2).sum())


def _worth(w: FloatArray, x: FloatArray) -> float:
    """Rows of a plain sample with this variance (Korn and Graubard), or these ones or zeros."""
    p = float(np.average(x, weights=w))
    variance = float((w**2 * (x - p) ** 2).sum() / w.sum() ** 2)
    return min(p * (1 - p) / variance, _kish(w[x == 1]) / p, _kish(w[x == 0]) / (1 - p))


def test_clusters_that_are_alike_inside_are_worth_few_rows() -> None:
    rng = np.random.default_rng(6)
    cluster = np.repeat(np.arange(30), 10)
    rate = np.repeat(rng.random(30) < 0.4, 10)
    alike = Rows(
        cell=np.zeros(300, dtype=np.int64),
        value=rate.astype(np.float64),
        weight=np.ones(300),
        groups=np.ones((1, 1), dtype=bool),
        reference=np.zeros(1, dtype=bool),
    )
    core = core_of(
        alike.moments(),
        Constant(value=0.5),
        alike.sums,
        relative=False,
        zero_one=True,
        weighted=False,
        clusters=cluster_sums(alike, cluster),
    )
    assert isinstance(core.pivot, CountPivot)
    assert core.pivot.rows[0, 0] == pytest.approx(30, rel=0.1)
    assert core.pivot.degrees[0] <= 29
    wide, narrow = (
        np.subtract(*x.bounds(1.96, (-1.0, 1.0))[::-1])[0]
        for x in (
            core,
            plain(np.array([300.0]), np.array([alike.value.sum()]), Constant(value=0.5)),
        )
    )
    assert wide > 2.5 * narrow


def test_a_group_whose_rows_are_all_alike_is_worth_its_clusters() -> None:
    cluster = np.repeat(np.arange(25), 8)
    rows = Rows(
        cell=np.repeat(np.arange(2), 100),
        value=np.concatenate([np.zeros(100), np.tile([0.0, 1.0], 50)]),
        weight=np.ones(200),
        groups=np.eye(2, dtype=bool),
        reference=np.zeros(2, dtype=bool),
    )
    core = core_of(
        rows.moments(),
        Constant(value=0.2),
        rows.sums,
        relative=False,
        zero_one=True,
        weighted=False,
        clusters=cluster_sums(rows, cluster),
    )
    assert isinstance(core.pivot, CountPivot)
    # thirteen clusters touch the first hundred rows, the last with half as many
    shares = np.array([8] * 12 + [4]) / 100
    assert core.pivot.rows[0, 0] <= 1 / (shares**2).sum() + 1e-6


def test_some_groups_are_the_same_groups() -> None:
    rows = make_rows(7)
    found = compare(rows.moments(), Overall(), rows.sums)
    some = found.some(np.array([2, 0]))
    np.testing.assert_array_equal(some.estimate, found.estimate[[2, 0]])
    assert isinstance(some.parts, Moments)


def test_quotients_of_nothing_are_nothing() -> None:
    assert np.isnan(over(np.array([1.0, 0.0]), np.array([0.0, -1.0]))).all()


def clustered(values: FloatArray, groups: int, *, zero_one: bool) -> Core:
    """Clusters of one row each, dealt to the groups in turn."""
    cell = np.arange(values.size) % groups
    sums = [np.bincount(cell, values**p, groups).astype(np.float64) for p in range(4)]
    clusters = ClusterSums(
        cluster=np.arange(values.size),
        cell=cell,
        weight=np.ones(values.size),
        total=values,
        cells=groups,
    )
    return core_of(
        plain_moments(*sums),
        Constant(value=0.0),
        lambda x: x,
        relative=False,
        zero_one=zero_one,
        weighted=False,
        clusters=clusters,
    )


def test_a_group_that_misses_far_off_clusters_is_not_harmless() -> None:
    values = np.random.default_rng(2).normal(size=160)
    assert clustered(values, 4, zero_one=False).guarded(2.5).status.tolist() == [Status.OK] * 4
    # every group but the first has three clusters far off
    values[[1, 2, 3, 5, 6, 7, 9, 10, 11]] += 30
    assert clustered(values, 4, zero_one=False).guarded(2.5).status[0] == Status.SKEWED


def test_few_clusters_are_worth_what_students_limits_leave() -> None:
    values = (np.random.default_rng(3).random(24) < 0.5).astype(np.float64)
    core = clustered(values, 2, zero_one=True)
    assert isinstance(core.pivot, CountPivot)
    spread = core.comparison.mean * (1 - core.comparison.mean)
    limit = np.array([student.ppf(0.975, df) for df in core.pivot.degrees]) / norm.ppf(0.975)
    np.testing.assert_allclose(plain_worth(core, spread), core.pivot.rows[0] / limit**2)
