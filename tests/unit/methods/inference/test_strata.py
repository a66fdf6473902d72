"""Disparities given strata: against statsmodels, by hand, and over worlds of every shape."""

import math
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import StratifiedTable  # type: ignore[import-untyped]

from equipoise.methods.inference.strata import (
    Adjusted,
    Strata,
    StrataDraws,
    StrataPivot,
    Weights,
    adjusted,
    conditional_tails,
    homogeneity,
)
from equipoise.methods.inference.student import joint_law
from equipoise.methods.numerics import IntArray
from equipoise.methods.targets import Complement, Overall, Reference, Target, plain_moments
from tests.laws.sameness import sameness_by_enumeration


def cells(rng: np.random.Generator, strata: int, groups: int, size: float, rate: float) -> Any:
    """Cells of strata × groups, and the sums of every group."""
    place = np.repeat(np.arange(strata), groups)
    member = np.tile(np.eye(groups), (strata, 1))
    n = rng.poisson(size, place.size).astype(float)
    k = rng.binomial(n.astype(int), rate).astype(float)
    return plain_moments(n, k, k, k), place, member, (lambda x: x @ member)


def made(strata: Strata, relative: bool = False) -> Adjusted:
    """A comparison of groups that are known by their strata alone."""
    number = strata.group_rows.shape[1]
    empty = np.zeros((2, number))
    return Adjusted(
        target=Complement(), relative=relative, parts=plain_moments(*[empty] * 4),
        strata=strata, place=np.zeros(0, dtype=np.int64), member=np.zeros((0, number)),
    )  # fmt: skip


def of_counts(n1: IntArray, n0: IntArray, k1: IntArray, k0: IntArray) -> Strata:
    columns = [np.asarray(x, dtype=float)[:, None] for x in (n1, n0, k1, k0)]
    return Strata(
        group_rows=columns[0], other_rows=columns[1], group_ones=columns[2], other_ones=columns[3]
    )


def alike(rng: np.random.Generator, rows: tuple[int, int], strata: int, bent: float = 0) -> Strata:
    """The same odds ratio in all strata, or one that is bent by chance."""
    n1, n0 = rng.integers(*rows, (2, strata), endpoint=True)
    base, odds = rng.normal(-1, 1, strata), 0.7 + bent * rng.normal(size=strata)
    k1, k0 = (rng.binomial(n, 1 / (1 + np.exp(-x))) for n, x in ((n1, base + odds), (n0, base)))
    return of_counts(n1, n0, k1, k0)


def test_whether_strata_are_alike_is_exact_however_few_rows_they_have() -> None:
    rng, looked = np.random.default_rng(7), 0
    while looked < 40:
        s = alike(rng, (1, 8), int(rng.integers(2, 6)), bent=1.5)
        found = float(homogeneity(s).p[0])
        if math.isnan(found):
            continue
        counts = (s.group_rows, s.other_rows, s.group_ones, s.other_ones)
        columns = [x[:, 0].astype(int) for x in counts]
        use = (columns[2] + columns[3] > 0) & (columns[2] + columns[3] < columns[0] + columns[1])
        true = sameness_by_enumeration(*(x[use] for x in columns))
        # the share among draws that stop when a hundred are as far
        assert found == pytest.approx(true, abs=max(4 * true / 100**0.5, 5e-4)), columns
        looked += 1


def test_many_small_strata_that_are_alike_are_not_said_to_differ() -> None:
    """The chi-squared law says so of 250 strata of eight rows in nearly half of all worlds."""
    rng = np.random.default_rng(8)
    p = np.array([homogeneity(alike(rng, (2, 6), 250)).p[0] for _ in range(300)])
    assert 0.02 <= (p <= 0.05).mean() <= 0.08
    assert 0.4 <= (p <= 0.5).mean() <= 0.6
    bent = [float(homogeneity(alike(rng, (2, 6), 250, bent=1.5)).p[0]) for _ in range(20)]
    assert np.median(bent) <= 0.001


def test_large_strata_are_compared_as_statsmodels_does() -> None:
    rng = np.random.default_rng(9)
    for bent in (0.0, 0.1, 0.2):
        # many counts, and so many that not every one is looked at
        for rows, near in (((2_000, 4_000), 0.3), ((200_000, 400_000), 0.01)):
            s = alike(rng, rows, 8, bent=bent / (rows[0] / 2_000) ** 0.5)
            tables = [
                np.array([[a, b - a], [c, d - c]])
                for a, b, c, d in zip(
                    s.group_ones[:, 0], s.group_rows[:, 0], s.other_ones[:, 0], s.other_rows[:, 0],
                    strict=True,
                )
            ]  # fmt: skip
            peer = StratifiedTable(tables).test_equal_odds(adjust=True).pvalue
            assert homogeneity(s).p[0] == pytest.approx(peer, rel=near, abs=1e-4)


def test_the_stratum_that_differs_is_named() -> None:
    n = np.full(30, 40)
    k1, k0 = np.full(30, 20), np.full(30, 12)
    k1[7], k0[7] = 4, 30
    found = homogeneity(of_counts(n, n, k1, k0))
    assert found.p[0] < 0.001
    assert int(np.argmin(found.apart[:, 0])) == 7
    assert found.apart[7, 0] < 0.05 / 30 < np.sort(found.apart[:, 0])[1]


def test_mantel_and_haenszel_as_statsmodels_has_them() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        number = int(rng.integers(2, 12))
        n1, n0 = (rng.integers(4, 60, number).astype(float) for _ in range(2))
        k1, k0 = rng.binomial(n1.astype(int), 0.4), rng.binomial(n0.astype(int), 0.3)
        s = Strata(
            group_rows=n1[:, None], group_ones=k1[:, None].astype(float),
            other_rows=n0[:, None], other_ones=k0[:, None].astype(float),
        )  # fmt: skip
        four = zip(k1, n1, k0, n0, strict=True)
        tables = [np.array([[a, b - a], [c, d - c]]) for a, b, c, d in four]
        peer = StratifiedTable(tables)
        # the risk difference of Greenland and Robins, by hand
        w = n1 * n0 / (n1 + n0)
        assert made(s).estimate[0] == pytest.approx((w * (k1 / n1 - k0 / n0)).sum() / w.sum())
        # the exact test and the chi-square one agree where counts are not small
        up, down = conditional_tails(s)
        two = min(2 * min(up[0], down[0]), 1.0)
        assert two == pytest.approx(peer.test_null_odds(correction=True).pvalue, abs=0.04)


@pytest.mark.parametrize("target", [Complement(), Overall()])
@pytest.mark.parametrize("kind", list(Weights))
def test_groups_from_cells_are_those_made_by_hand(target: Target, kind: Weights) -> None:
    rng = np.random.default_rng(2)
    moments, place, member, sums = cells(rng, 5, 3, 12.0, 0.4)
    found = adjusted(moments, target, sums, place, relative=False, kind=kind)
    for g in range(3):
        parts = []
        for s in range(5):
            here = place == s
            own = here & (member[:, g] > 0)
            others = here & (member[:, g] == 0) if isinstance(target, Complement) else here
            n1, n0 = moments.rows[own].sum(), moments.rows[here & (member[:, g] == 0)].sum()
            w = {"mantel-haenszel": n1 * n0 / (n1 + n0), "group": n1, "population": n1 + n0}[kind]
            rate = moments.total[others].sum() / moments.rows[others].sum()
            gap = moments.total[own].sum() / n1 - rate
            parts.append((w, gap))
        w, gap = (np.array(x) for x in zip(*parts, strict=True))
        assert found.estimate[g] == pytest.approx((w * gap).sum() / w.sum())
        # what the gap does when a cell moves, by moving it
        unit = np.zeros((1, place.size))
        unit[0, 4] = 1e-6
        moved = found.moves(np.zeros_like(unit), unit, np.ones(3), sums)[0]
        total = moments.total + unit[0]
        again = adjusted(
            plain_moments(moments.rows, total, total, total), target, sums, place,
            relative=False, kind=kind,
        )  # fmt: skip
        np.testing.assert_allclose(again.estimate - found.estimate, moved, atol=1e-12)


@pytest.mark.parametrize("kind", list(Weights))
def test_scores_drawn_by_covariance_are_those_drawn_by_cells(
    kind: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    moments, place, _, sums = cells(rng, 40, 4, 9.0, 0.4)
    found = adjusted(moments, Complement(), sums, place, relative=False, kind=kind)

    def correlations() -> Any:
        law = joint_law(
            StrataDraws(moments), found, sums, np.full(4, 300.0), np.array([0, 1, 3]),
            draws=40_000, seed=np.random.SeedSequence(5),
        )  # fmt: skip
        drawn = np.concatenate(list(law.scores()))
        assert drawn.shape == (40_000, 3)
        return drawn.T @ drawn / 40_000

    few = correlations()
    monkeypatch.setattr("equipoise.methods.inference.student.SPREAD", 10_000)
    # both vary by about 1/√40000
    np.testing.assert_allclose(few, correlations(), atol=0.03)
    np.testing.assert_allclose(np.diag(few), 1, atol=0.03)


def test_raw_is_composition_and_the_rest() -> None:
    rng = np.random.default_rng(3)
    moments, place, _, sums = cells(rng, 6, 2, 30.0, 0.4)
    found = adjusted(moments, Complement(), sums, place, relative=False, kind=Weights.GROUP)
    s = found.strata
    shares = [x / x.sum(axis=0) for x in (s.group_rows, s.other_rows)]
    rates = [s.group_ones / s.group_rows, s.other_ones / s.other_rows]
    within = ((shares[0] + shares[1]) / 2 * (rates[0] - rates[1])).sum(axis=0)
    raw = s.group_ones.sum(axis=0) / s.group_rows.sum(axis=0)
    raw = raw - s.other_ones.sum(axis=0) / s.other_rows.sum(axis=0)
    np.testing.assert_allclose(s.explained + within, raw)


def test_strata_without_the_other_side_count_for_nothing() -> None:
    s = Strata(
        group_rows=np.array([[5.0], [7.0]]), group_ones=np.array([[2.0], [7.0]]),
        other_rows=np.array([[4.0], [0.0]]), other_ones=np.array([[1.0], [0.0]]),
    )  # fmt: skip
    assert made(s).estimate[0] == pytest.approx(2 / 5 - 1 / 4)
    assert s.apart.tolist() == [7.0]
    nobody = Strata(
        group_rows=np.array([[5.0], [0.0]]), group_ones=np.array([[2.0], [0.0]]),
        other_rows=np.array([[0.0], [3.0]]), other_ones=np.array([[0.0], [1.0]]),
    )  # fmt: skip
    assert made(nobody).status.tolist() == [10]


SHAPES = [
    (3, 150.0, 150.0, 0.3), (3, 20.0, 60.0, 0.3), (12, 20.0, 30.0, 0.3), (50, 4.0, 6.0, 0.3),
    (200, 1.5, 2.5, 0.3), (500, 1.0, 2.0, 0.3), (1, 30.0, 300.0, 0.02), (20, 3.0, 30.0, 0.02),
    (3, 5.0, 5.0, 0.5), (2, 40.0, 40.0, 0.95),
]  # fmt: skip


@pytest.mark.parametrize("kind", list(Weights))
@pytest.mark.parametrize(("strata", "own", "other", "rate"), SHAPES)
def test_tails_hold_for_few_large_and_many_small_strata(
    strata: int, own: float, other: float, rate: float, kind: Weights
) -> None:
    rng = np.random.default_rng([strata, int(own)])
    worlds = 1500
    # rates differ between strata, and so do the sides' shares: adjusting matters
    base = np.clip(rate * rng.gamma(4.0, 0.25, (strata, 1)), 0.005, 0.95)
    n1 = rng.poisson(own * (0.5 + base), (strata, worlds)).astype(float)
    n0 = rng.poisson(other * (1.5 - base), (strata, worlds)).astype(float)
    for relative, effect in ((False, 0.04), (False, 0.0), (True, 0.9)):
        mine = np.broadcast_to(base * effect if relative else base + effect, n1.shape)
        s = Strata(
            group_rows=n1, group_ones=rng.binomial(n1.astype(int), mine).astype(float),
            other_rows=n0,
            other_ones=rng.binomial(n0.astype(int), np.broadcast_to(base, n0.shape)).astype(float),
            kind=kind,
        )  # fmt: skip
        able = s.overlap.any(axis=0)
        up, down = StrataPivot(comparison=made(s, relative)).tails(
            np.full(worlds, effect), np.arange(worlds)
        )
        # nominal 2.5 % on either side; three standard errors of 1500 worlds are 1.2 points
        assert (up[able] < 0.025).mean() <= 0.037
        assert (down[able] < 0.025).mean() <= 0.037


def test_a_reference_shares_no_row_with_the_group() -> None:
    rng = np.random.default_rng(5)
    moments, place, member, sums = cells(rng, 4, 3, 20.0, 0.5)
    target = Reference(cells=member[:, 0] > 0)
    found = adjusted(moments, target, sums, place, relative=False)
    assert found.status.tolist() == [5, 0, 0]
    s = found.strata
    np.testing.assert_array_equal(s.other_rows[:, 1], moments.rows[member[:, 0] > 0])
