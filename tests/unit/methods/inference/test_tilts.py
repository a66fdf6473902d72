"""Tilts in the core: weighted means, their spread and their joint law, against rows."""

import numpy as np
import pytest

from equipoise.methods.inference.core import Core, core_of
from equipoise.methods.inference.student import StudentPivot, row_spread
from equipoise.methods.numerics import FloatArray
from equipoise.methods.targets import (
    Constant,
    Overall,
    Reference,
    Status,
    Target,
    TiltSums,
    compare,
)
from tests.unit.methods.inference.naive import Part, Rows, kish, usual

N, TILTS = 300, 3
SHAPE = 1.5


def some_rows(seed: int, weighted: bool = True) -> tuple[Rows, FloatArray]:
    """Every row a cell of its own, and tilts (rows × tilts), the last tilt an indicator."""
    rng = np.random.default_rng(seed)
    tilt = np.stack([rng.random(N), rng.exponential(size=N), rng.random(N) < 0.5], axis=1)
    rows = Rows(
        cell=np.arange(N),
        value=rng.exponential(size=N),
        weight=0.5 + rng.random(N) if weighted else np.ones(N),
        groups=np.zeros((0, N), dtype=bool),
        reference=np.arange(N) % 3 == 0,
    )
    return rows, tilt


def sums_of(tilt: FloatArray) -> TiltSums:
    return TiltSums(
        first=lambda x: x @ tilt,
        squares=lambda x: x @ tilt**2,
        members=lambda x: x @ (tilt > 0).astype(float),
        flat=np.array([False, False, True]),
        weights=tilt,
    )


def goals(rows: Rows) -> dict[str, Target]:
    return {
        "constant": Constant(value=0.7),
        "overall": Overall(),
        "reference": Reference(cells=rows.reference),
    }


def compared(rows: Rows, target: Target) -> FloatArray:
    if isinstance(target, Constant):
        return np.zeros(N)
    return rows.reference.astype(float) if isinstance(target, Reference) else np.ones(N)


def slopes(h: FloatArray, other: FloatArray, weight: FloatArray) -> FloatArray:
    """How much a unit of weight times metric moves the tilt's mean less its target, row by row."""
    target = other / (weight * other).sum() if other.any() else 0.0
    return np.asarray(h / (weight * h).sum() - target)


def influence(rows: Rows, h: FloatArray, target: Target) -> FloatArray:
    def of(part: FloatArray) -> FloatArray:
        w = rows.weight * part
        return w * (rows.value - np.average(rows.value, weights=w)) / w.sum()

    other = compared(rows, target)
    return of(h) - (of(other) if other.any() else 0.0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["constant", "overall", "reference"])
def test_estimates_are_weighted_means_with_their_influence(name: str, weighted: bool) -> None:
    rows, tilt = some_rows(3, weighted)
    target = goals(rows)[name]
    found = compare(rows.moments(), target, sums_of(tilt))
    spread = row_spread(found, np.ones(TILTS), SHAPE)
    other = compared(rows, target)
    for j in range(TILTS):
        h = tilt[:, j]
        mean = float(np.average(rows.value, weights=rows.weight * h))
        assert found.mean[j] == pytest.approx(mean)
        psi = influence(rows, h, target)
        # every row is a cell of its own: what it adds to the spread is its influence squared
        factor = found.rows[j] / (found.rows[j] - 1)
        assert spread.variance[j] == pytest.approx(factor * float((psi**2).sum()), rel=1e-8)
        skewness = float((psi**3).sum()) / spread.variance[j] ** 1.5
        assert spread.skewness[j] == pytest.approx(skewness, rel=1e-6)
        pull = slopes(h, other, rows.weight)
        parts = [
            Part(slope=float(pull[i]), weight=rows.weight[[i]], moves=psi[[i]]) for i in range(N)
        ]
        aim = [usual(SHAPE, parts, way, tilted=True) for way in (1, -1)]
        np.testing.assert_allclose(spread.usual[:, j], aim, rtol=1e-7, atol=1e-12)
        pivot = StudentPivot(comparison=found, shape=SHAPE)
        assert pivot.estimate[j] == pytest.approx(mean - found.theta[j])
        assert found.rows[j] == pytest.approx(kish(h))


def by_cells(seed: int) -> tuple[Rows, FloatArray, FloatArray]:
    """Rows in twelve cells, tilts that weigh cells, and the weight of every row."""
    rng = np.random.default_rng(seed)
    n = 600
    cell = rng.integers(0, 12, n)
    tilt = np.stack([rng.random(12), rng.exponential(size=12), rng.random(12) < 0.5], axis=1)
    rows = Rows(
        cell=cell,
        value=rng.gamma(2.0, 1.0, n) + 0.1 * cell,
        weight=np.ones(n),
        groups=np.zeros((0, 12), dtype=bool),
        reference=np.arange(12) % 3 == 0,
    )
    return rows, tilt, tilt[cell]


def core(rows: Rows, tilt: FloatArray, target: Target) -> Core:
    return core_of(
        rows.moments(), target, sums_of(tilt), relative=False, zero_one=False, weighted=False
    )


@pytest.mark.parametrize("name", ["constant", "overall", "reference"])
def test_spread_is_that_of_the_influence_of_rows_in_cells(name: str) -> None:
    rows, tilt, each = by_cells(4)
    target: Target = {
        "constant": Constant(value=2.0),
        "overall": Overall(),
        "reference": Reference(cells=rows.reference),
    }[name]
    found = compare(rows.moments(), target, sums_of(tilt))
    spread = row_spread(found, np.ones(TILTS), SHAPE)
    inside = {
        "constant": np.zeros(600),
        "overall": np.ones(600),
        "reference": rows.reference[rows.cell].astype(float),
    }[name]
    for j in range(TILTS):
        h = each[:, j]
        psi = h * (rows.value - np.average(rows.value, weights=h)) / h.sum()
        if inside.any():
            theta = np.average(rows.value, weights=inside)
            psi = psi - inside * (rows.value - theta) / inside.sum()
        # with the small-sample factor of as many rows as the tilt is worth
        worth = kish(h)
        aim = float((psi**2).sum()) * worth / (worth - 1)
        assert spread.variance[j] == pytest.approx(aim, rel=1e-8)
        skewness = float((psi**3).sum()) / aim**1.5
        assert spread.skewness[j] == pytest.approx(skewness, rel=1e-6)
        pull, parts = slopes(h, inside, np.ones(600)), []
        for c in range(12):
            mine = rows.cell == c
            parts.append(Part(slope=pull[mine][0], weight=np.ones(mine.sum()), moves=psi[mine]))
        both = [usual(SHAPE, parts, way, tilted=True) for way in (1, -1)]
        np.testing.assert_allclose(spread.usual[:, j], both, rtol=1e-7, atol=1e-12)


def test_the_joint_law_of_tilts_has_the_correlation_of_their_influence() -> None:
    rows, tilt, each = by_cells(5)
    made = core(rows, tilt, Constant(value=2.0))
    assert made.status.tolist() == [Status.OK] * 3
    z = np.concatenate(list(made.law(draws=20_000, seed=np.random.SeedSequence(2)).scores()))
    np.testing.assert_allclose(z.std(axis=0), 1.0, atol=0.03)
    psi = np.stack(
        [
            each[:, j] * (rows.value - np.average(rows.value, weights=each[:, j]))
            for j in range(TILTS)
        ]
    )
    aim = (psi @ psi.T) / np.sqrt(np.outer((psi**2).sum(1), (psi**2).sum(1)))
    loose = 1 / np.sqrt(np.maximum(made.outcomes, 1))
    aim = aim * np.sqrt(np.outer(1 - loose, 1 - loose))
    np.fill_diagonal(aim, 1.0)
    np.testing.assert_allclose(np.corrcoef(z.T), aim, atol=0.04)


def test_an_indicator_among_tilts_is_its_group() -> None:
    rows, tilt, _ = by_cells(6)
    target = Constant(value=2.0)
    one = compare(rows.moments(), target, sums_of(tilt))
    inside = tilt[:, 2] > 0
    two = compare(rows.moments(), target, lambda x: (x * inside).sum(axis=-1, keepdims=True))
    assert one.mean[2] == pytest.approx(two.mean[0])
    assert one.rows[2] == pytest.approx(two.rows[0])


def test_only_a_flat_tilt_of_everyone_is_its_own_target() -> None:
    rows, tilt, _ = by_cells(7)
    tilt[:, 0], tilt[:, 1] = 1.0, 1.0
    tilt[0, 1] = 0.5
    everyone = np.ones(12, dtype=bool)
    for target in (Overall(), Reference(cells=everyone)):
        found = compare(rows.moments(), target, sums_of(tilt))
        assert found.status[:2].tolist() == [Status.IDENTICAL, Status.OK]
