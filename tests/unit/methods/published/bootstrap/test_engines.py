"""Resampled totals: their covariance, and the laws that weights and counts obey."""

from typing import cast

import numpy as np
import pytest

from equipoise.methods.numerics import FloatArray
from equipoise.methods.published.bootstrap import (
    BinaryEngine,
    CellMoments,
    ClusterData,
    ClusterEngine,
    MomentsEngine,
    RowData,
    RowEngine,
    canonical_rows,
    unweighted_moments,
)
from tests.unit.methods.published.bootstrap.naive import cell_sums
from tests.unit.methods.published.bootstrap.world import (
    CELLS,
    influence_of,
    influence_sums,
    make_world,
)


class Basis:
    """Hands out unit vectors for normals, so that an engine's square root can be read off."""

    def standard_normal(self, shape: tuple[int, int, int]) -> FloatArray:
        two, size, cells = shape
        return np.moveaxis(np.eye(two * cells).reshape(size, two, cells), 1, 0)


def weighted_moments(cell: np.ndarray, loss: FloatArray, w: FloatArray) -> CellMoments:
    columns = (w * 0 + 1, w, w * loss, w**2, w**2 * loss, (w * loss) ** 2)
    n, a, s, a2, s2, q2 = (cell_sums(cell, x, CELLS) for x in columns)
    return CellMoments(rows=n, weight=a, total=s, weight2=a2, total2=s2, square2=q2, binary=False)


def row_covariance(cell: np.ndarray, loss: FloatArray, w: FloatArray) -> FloatArray:
    """n times the covariance of one drawn row's contribution to (W_c, S_c), cell by cell."""
    one = np.eye(CELLS)[cell] * w[:, None]
    return np.cov(np.hstack([one, one * loss[:, None]]).T, bias=True) * cell.size


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("binary", [False, True])
def test_moments_engine_has_exactly_the_covariance_of_resampling(
    binary: bool, weighted: bool
) -> None:
    world = make_world(binary)
    rng = np.random.default_rng(1)
    w = rng.uniform(0.5, 3.0, world.loss.size) if weighted else np.ones(world.loss.size)
    moments = weighted_moments(world.cell, world.loss, w)
    basis = cast(np.random.Generator, Basis())
    drawn = MomentsEngine(moments).draw(basis, 2 * CELLS)
    root = np.hstack([drawn.weight - moments.weight, drawn.total - moments.total])
    expected = row_covariance(world.cell, world.loss, w)
    np.testing.assert_allclose(root.T @ root, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("weighted", [False, True])
def test_row_engine_has_the_covariance_of_resampling(weighted: bool) -> None:
    world = make_world(False)
    w = np.random.default_rng(1).uniform(0.5, 3.0, 60) if weighted else np.ones(60)
    rows = canonical_rows(world.cell, world.loss, w if weighted else None)
    drawn = RowEngine(rows, CELLS).draw(np.random.default_rng(2), 20_000)
    found = np.cov(np.hstack([drawn.weight, drawn.total]).T)
    expected = row_covariance(world.cell, world.loss, w)
    error = np.sqrt(np.outer(np.diag(expected), np.diag(expected)) / 20_000)
    assert np.all(np.abs(found - expected) < 6.5 * error + 1e-12)


def test_binary_engine_draws_n_rows_and_agrees_with_the_row_engine() -> None:
    world = make_world(True)
    cells = BinaryEngine(world.moments()).draw(np.random.default_rng(3), 20_000)
    rows = RowEngine(canonical_rows(world.cell, world.loss), CELLS)
    again = rows.draw(np.random.default_rng(4), 20_000)
    assert np.all(cells.weight.sum(axis=1) == 60)
    assert np.all(again.weight.sum(axis=1) == 60)
    for a, b in ((cells.weight, again.weight), (cells.total, again.total)):
        gap = np.abs(a.mean(axis=0) - b.mean(axis=0))
        assert np.all(gap < 5 * np.sqrt(2 * np.maximum(a.var(axis=0), 1e-9) / 20_000))
        np.testing.assert_allclose(a.var(axis=0), b.var(axis=0), rtol=0.08)


def test_counts_are_repeated_rows() -> None:
    cell, value = np.array([0, 0, 1]), np.array([1.0, 2.5, 4.0])
    count = np.array([3, 1, 2])
    short = RowEngine(canonical_rows(cell, value, count=count), 2)
    long = RowEngine(canonical_rows(np.repeat(cell, count), np.repeat(value, count)), 2)
    a, b = (e.draw(np.random.default_rng(6), 50) for e in (short, long))
    assert a.total.tobytes() == b.total.tobytes()


def test_many_equal_rows_cost_one_multinomial_and_have_the_same_variance() -> None:
    cell, value = np.array([0, 0, 1]), np.array([1.0, 2.5, 4.0])
    engine = RowEngine(canonical_rows(cell, value, count=np.array([400, 300, 300])), 2)
    drawn = engine.draw(np.random.default_rng(6), 20_000)
    assert np.all(drawn.weight.sum(axis=1) == 1000)
    per_row = np.repeat([1.0, 2.5, 0.0], [400, 300, 300])
    assert drawn.total[:, 0].var() == pytest.approx(1000 * per_row.var(), rel=0.06)


def test_row_order_does_not_matter() -> None:
    world = make_world(False)
    order = np.random.default_rng(9).permutation(60)
    a = RowEngine(canonical_rows(world.cell, world.loss), CELLS)
    b = RowEngine(canonical_rows(world.cell[order], world.loss[order]), CELLS)
    x, y = (e.draw(np.random.default_rng(1), 20) for e in (a, b))
    assert x.total.tobytes() == y.total.tobytes()


def test_singleton_clusters_are_rows_and_big_clusters_vary_more() -> None:
    world = make_world(False)
    rows = canonical_rows(world.cell, world.loss)

    def engine(cluster: np.ndarray) -> ClusterEngine:
        data = ClusterData(cluster=cluster, cell=rows.cell, weight=np.ones(60), total=rows.value)
        return ClusterEngine(data, CELLS, 60.0)

    single = engine(np.arange(60)).draw(np.random.default_rng(1), 500)
    direct = RowEngine(rows, CELLS).draw(np.random.default_rng(1), 500)
    np.testing.assert_allclose(single.total, direct.total, atol=1e-12)
    fives = engine(np.arange(60) // 5).draw(np.random.default_rng(1), 5000)
    # rows are sorted by cell, so clusters hold alike rows and inflate the variance
    assert np.all(fives.weight[:, :3].var(axis=0) > 2 * direct.weight[:, :3].var(axis=0))


@pytest.mark.parametrize("engine", [BinaryEngine, MomentsEngine])
def test_influence_mean_is_drawn_with_its_covariance(
    engine: type[BinaryEngine] | type[MomentsEngine],
) -> None:
    world = make_world(True, n=300)
    psi = influence_of(world)
    drawn = engine(world.moments(), influence_sums(world, psi)).draw(
        np.random.default_rng(5), 40_000
    )
    assert drawn.influence is not None
    total = np.column_stack([drawn.influence, drawn.total])
    one = np.eye(CELLS)[world.cell] * world.loss[:, None]
    rows = np.column_stack([psi / 300, one])
    expected = np.cov(rows.T, bias=True) * 300
    error = np.sqrt(np.outer(np.diag(expected), np.diag(expected)) / 40_000)
    assert np.all(np.abs(np.cov(total.T) - expected) < 6.5 * error + 1e-12)


def test_engines_refuse_what_they_cannot_do() -> None:
    with pytest.raises(ValueError, match="0/1"):
        BinaryEngine(unweighted_moments(np.ones(2), np.ones(2), np.ones(2)))
    with pytest.raises(ValueError, match="sorted by cell"):
        RowEngine(RowData(cell=np.array([1, 0]), value=np.zeros(2)), 2)


def test_nobody_at_all_draws_zeros() -> None:
    nobody = unweighted_moments(np.zeros(2), np.zeros(2))
    for engine in (BinaryEngine(nobody), MomentsEngine(nobody)):
        assert not engine.draw(np.random.default_rng(1), 3).weight.any()
    none = RowEngine(canonical_rows(np.zeros(0, dtype=int), np.zeros(0)), 2)
    assert none.draw(np.random.default_rng(1), 3).weight.shape == (3, 2)
