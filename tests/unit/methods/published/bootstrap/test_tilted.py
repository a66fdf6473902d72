"""Tilts against formulas written row by row, on the very same resamples."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from equipoise.methods.published import bootstrap as bs
from equipoise.methods.arrays import BoolArray, FloatArray, IntArray
from equipoise.methods.published.bootstrap.process import bound_deviations
from equipoise.methods.published.bootstrap.studentized import studentized_deviations
from equipoise.methods.tilted import TiltSums, members, squared, weighs_alike, worth
from equipoise.methods.hypotheses import Above

N, TILTS = 40, 3
FLOOR, SHRINK = 0.01, 0.2


def some_rows(seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Values, sampling weights and tilts (rows × tilts), the last tilt an indicator."""
    rng = np.random.default_rng(seed)
    tilt = np.stack([rng.random(N), rng.exponential(size=N), rng.random(N) < 0.5], axis=1)
    return rng.exponential(size=N), 0.5 + rng.random(N), tilt


def sums_of(tilt: FloatArray) -> TiltSums:
    return TiltSums(
        first=lambda x: x @ tilt,
        squares=lambda x: x @ tilt**2,
        members=lambda x: x @ (tilt > 0).astype(float),
        flat=np.array([False, False, True]),
    )


def moments_of(value: FloatArray, weight: FloatArray) -> bs.CellMoments:
    """Every row a cell of its own."""
    w, w2 = weight, weight**2
    return bs.CellMoments(
        rows=np.ones(N),
        weight=w,
        total=w * value,
        weight2=w2,
        total2=w2 * value,
        square2=w2 * value**2,
        binary=False,
    )


@dataclass
class Naive:
    """Estimates of one tilt from chosen rows, as the definitions say."""

    value: FloatArray
    weight: FloatArray
    tilt: FloatArray
    target: str
    reference: BoolArray

    def compared(self) -> FloatArray:
        if self.target == "constant":
            return np.zeros(N)
        return self.reference.astype(float) if self.target == "reference" else np.ones(N)

    def mean(self, rows: IntArray, h: FloatArray) -> float:
        return float(np.average(self.value[rows], weights=(self.weight * h)[rows]))

    def theta(self, rows: IntArray) -> float:
        return 0.7 if self.target == "constant" else self.mean(rows, self.compared())

    def gap(self, rows: IntArray) -> float:
        return self.mean(rows, self.tilt) - self.theta(rows)

    def share(self, rows: IntArray) -> float:
        return float((self.weight * self.tilt)[rows].sum() / self.weight[rows].sum())

    def influence(self, rows: IntArray) -> FloatArray:
        def of(h: FloatArray, centre: float) -> FloatArray:
            part = (self.weight * h)[rows]
            return part * (self.value[rows] - centre) / part.sum()

        own = of(self.tilt, self.mean(rows, self.tilt))
        if self.target == "constant":
            return own
        return own - of(self.compared(), self.theta(rows))

    def error(self, rows: IntArray) -> float:
        return float(np.sqrt((self.influence(rows) ** 2).sum()))

    def scale(self, rows: IntArray) -> float:
        p, w = self.share(rows), self.weight[rows]
        about = w * (self.value[rows] - self.mean(rows, np.ones(N)))
        spread = np.sqrt(N * (about**2).sum()) / w.sum()
        sigma = np.sqrt(N * p) * self.error(rows)
        mix = p / (p + SHRINK)
        return float(max(p, FLOOR) ** 1.5 * (mix * sigma + (1 - mix) * spread))


class Fixed:
    """An engine that hands out given resamples."""

    name, has_spread = "fixed", True

    def __init__(self, moments: bs.CellMoments, times: FloatArray) -> None:
        self.times, self.m = times, moments

    def draw(self, rng: np.random.Generator, size: int) -> bs.Totals:
        t, m = self.times[:size], self.m
        return bs.Totals(
            weight=t * m.weight,
            total=t * m.total,
            weight2=t * m.weight2,
            total2=t * m.total2,
            square2=t * m.square2,
        )


def set_up(target: str, seed: int = 3) -> tuple[bs.Audit, list[Naive], list[IntArray]]:
    value, weight, tilt = some_rows(seed)
    reference = np.arange(N) % 3 == 0
    goals: dict[str, Any] = {
        "constant": bs.Constant(value=0.7),
        "overall": bs.Overall(),
        "reference": bs.Reference(cells=reference),
    }
    rng = np.random.default_rng(9)
    drawn = [rng.integers(0, N, N) for _ in range(25)]
    times = np.stack([np.bincount(rows, minlength=N) for rows in drawn]).astype(float)
    moments, sums = moments_of(value, weight), sums_of(tilt)
    audit = bs.Audit(
        engine=Fixed(moments, times),
        groups=bs.estimate_gaps(moments, goals[target], sums),
        target=goals[target],
        sums=sums,
        resamples=25,
        seed=np.random.SeedSequence(1),
    )
    naive = [Naive(value, weight, tilt[:, j], target, reference) for j in range(TILTS)]
    return audit, naive, drawn


EVERYONE = np.arange(N)
TARGETS = ["constant", "overall", "reference"]


@pytest.mark.parametrize("target", TARGETS)
def test_estimates_are_weighted_means_with_their_influence(target: str) -> None:
    audit, naive, _ = set_up(target)
    found = audit.groups
    np.testing.assert_allclose(found.mean, [o.mean(EVERYONE, o.tilt) for o in naive], rtol=1e-12)
    np.testing.assert_allclose(found.estimate, [o.gap(EVERYONE) for o in naive], rtol=1e-11)
    np.testing.assert_allclose(found.share, [o.share(EVERYONE) for o in naive], rtol=1e-12)
    np.testing.assert_allclose(found.standard_error, [o.error(EVERYONE) for o in naive], rtol=1e-10)
    h = naive[0].tilt
    assert found.rows[0] == pytest.approx(h.sum() ** 2 / (h**2).sum())
    assert found.rows[2] == naive[2].tilt.sum()


@pytest.mark.parametrize("target", TARGETS)
def test_the_bootstrap_process_is_the_naive_one(target: str) -> None:
    audit, naive, drawn = set_up(target)
    (cells,) = audit.blocks()
    ours = bound_deviations(audit, cells)
    theirs = [[o.share(r) * (o.gap(r) - o.gap(EVERYONE)) for o in naive] for r in drawn]
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("target", TARGETS)
def test_the_studentized_process_is_the_naive_one(target: str) -> None:
    audit, naive, drawn = set_up(target)
    (cells,) = audit.blocks()
    ours = studentized_deviations(audit, cells, bs.Scaling(floor=FLOOR, shrink=SHRINK))
    theirs = [
        [o.share(r) ** 2 * (o.gap(r) - o.gap(EVERYONE)) / o.scale(r) for o in naive] for r in drawn
    ]
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("target", TARGETS)
def test_bootstrap_t_compares_the_naive_statistics(target: str) -> None:
    audit, naive, drawn = set_up(target)
    limit = 0.05
    found = bs.bootstrap_t(audit, Above(limit=limit)).p
    for o, p in zip(naive, found.tolist(), strict=True):
        seen = (o.gap(EVERYONE) - limit) / o.error(EVERYONE)
        again = np.array([(o.gap(r) - o.gap(EVERYONE)) / o.error(r) for r in drawn])
        assert p == pytest.approx((1 + (again >= seen).sum()) / (len(drawn) + 1))


def test_only_a_flat_tilt_of_everyone_is_its_own_target() -> None:
    value, weight, _ = some_rows(1)
    ones = np.ones((N, 2))
    ones[0, 1] = 0.5
    sums = TiltSums(
        first=lambda x: x @ ones,
        squares=lambda x: x @ ones**2,
        members=lambda x: np.broadcast_to(x.sum(axis=-1, keepdims=True), (*x.shape[:-1], 2)),
        flat=np.array([True, False]),
    )
    everyone = np.ones(N, dtype=bool)
    for target in (bs.Overall(), bs.Reference(cells=everyone)):
        found = bs.estimate_gaps(moments_of(value, weight), target, sums)
        assert found.status.tolist() == [bs.Status.IDENTICAL, bs.Status.OK]


def test_a_plain_operator_is_its_own_square() -> None:
    def plain(x: FloatArray) -> FloatArray:
        return x[..., :2]

    rows = np.array([3.0, 4.0, 5.0])
    assert squared(plain) is plain
    assert members(plain) is plain
    assert bool(weighs_alike(plain).all())
    assert worth(plain, rows).tolist() == [3.0, 4.0]


def test_counts_as_rows_give_the_same_law_as_counts() -> None:
    rows, ones = np.array([30.0, 12.0, 5.0]), np.array([10.0, 12.0, 0.0])
    cells = bs.unweighted_moments(rows, ones)
    engine = bs.RowEngine(bs.counted_rows(cells), 3)
    drawn = engine.draw(np.random.default_rng(2), 20_000)
    p = np.concatenate([rows - ones, ones]) / rows.sum()
    n = rows.sum()
    np.testing.assert_allclose(drawn.weight.mean(axis=0), rows, rtol=0.02)
    np.testing.assert_allclose(drawn.total.mean(axis=0), ones, rtol=0.02)
    np.testing.assert_allclose(drawn.total.var(axis=0)[:2], n * (p * (1 - p))[3:5], rtol=0.06)
    assert (drawn.weight.sum(axis=1) == n).all()
    np.testing.assert_array_equal(drawn.square2, drawn.total)


def test_counts_as_rows_need_a_zero_one_metric() -> None:
    with pytest.raises(ValueError, match="0/1"):
        bs.counted_rows(bs.unweighted_moments(np.ones(2), np.ones(2), np.ones(2)))
