"""Disparities given factors from rows: by hand, and by moving the weight of a row."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from equipoise.methods.inference.orthogonal import (
    Predicted,
    ScoreDraws,
    factor_core,
    left_out_sums,
    scores,
    strata_means,
    unit_moves,
)
from equipoise.methods.inference.strata import Weights
from equipoise.methods.targets import Complement, plain_moments

KIND = Weights.MANTEL_HAENSZEL


def rows(rng: np.random.Generator, n: int = 400) -> dict[str, Any]:
    """Rows of two sides in seven strata, one of which lacks a side."""
    place = rng.integers(0, 7, n)
    member = (rng.random(n) < 0.2 + 0.08 * place) & (place != 6)
    outcome = 0.1 * place + 0.3 * member + rng.normal(size=n)
    weight = rng.random(n) + 0.5
    return {"member": member, "outcome": outcome, "weight": weight, "place": place}


@pytest.mark.parametrize("kind", list(Weights))
def test_strata_as_written_out(kind: Weights) -> None:
    given = rows(np.random.default_rng(1))
    member, y, w, place = (given[name] for name in ("member", "outcome", "weight", "place"))
    top = bottom = high = 0.0
    for s in range(7):
        one, other = (place == s) & member, (place == s) & ~member
        n1, n0 = w[one].sum(), w[other].sum()
        if n1 == 0 or n0 == 0:
            continue
        share = {
            Weights.MANTEL_HAENSZEL: n1 * n0 / (n1 + n0), Weights.GROUP: n1,
            Weights.POPULATION: n1 + n0,
        }[kind]  # fmt: skip
        mean1, mean0 = (np.average(y[side], weights=w[side]) for side in (one, other))
        top, bottom, high = top + share * (mean1 - mean0), bottom + share, high + share * mean1
    found = scores(strata_means(member, y, w, place, kind), kind)
    assert found.gap == pytest.approx(top / bottom)
    assert found.level == pytest.approx(high / bottom)
    assert found.share.sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", list(Weights))
def test_influence_is_what_a_row_of_more_weight_does(kind: Weights) -> None:
    rng = np.random.default_rng(2)
    given = rows(rng)
    chance = rng.uniform(0.2, 0.8, 400)
    own, others = rng.normal(size=(2, 400))
    known = Predicted(
        member=given["member"], outcome=given["outcome"], weight=given["weight"],
        chance=chance, own=own, others=own if kind is Weights.MANTEL_HAENSZEL else others,
    )  # fmt: skip
    found = scores(known, kind)
    for i in (0, 17, 399):
        more = known.weight.copy()
        more[i] *= 1 + 1e-6
        moved = (scores(replace(known, weight=more), kind).gap - found.gap) / 1e-6
        # what leaving out would do is a little more than that
        assert moved == pytest.approx(found.influence[i], rel=0.02, abs=1e-7)


def test_predictions_by_either_model_may_be_wrong() -> None:
    rng = np.random.default_rng(3)
    n = 200_000
    x = rng.normal(size=n)
    chance = 1 / (1 + np.exp(-x))
    member = rng.random(n) < chance
    y = x + 0.5 * member + rng.normal(size=n)
    plain: Any = {"member": member, "outcome": y, "weight": np.ones(n)}
    nothing, half = np.zeros(n), np.full(n, member.mean())
    for kind in (Weights.GROUP, Weights.POPULATION):
        no_outcome = Predicted(**plain, chance=chance, own=nothing, others=nothing)
        no_chance = Predicted(**plain, chance=half, own=x + 0.5, others=x)
        neither = Predicted(**plain, chance=half, own=nothing, others=nothing)
        assert scores(no_outcome, kind).gap == pytest.approx(0.5, abs=0.05)
        assert scores(no_chance, kind).gap == pytest.approx(0.5, abs=0.02)
        assert scores(neither, kind).gap > 1
    # overlap weights ask for right chances alone
    no_outcome = Predicted(**plain, chance=chance, own=nothing, others=nothing)
    assert scores(no_outcome, Weights.MANTEL_HAENSZEL).gap == pytest.approx(0.5, abs=0.03)


def test_clusters_add_up_and_draws_have_the_covariance_of_scores() -> None:
    rng = np.random.default_rng(4)
    influence = rng.normal(size=(60, 3))
    influence[:, 2] = -influence[:, 0]
    unit = np.repeat(np.arange(20), 3)
    moves = unit_moves(influence, unit, 20)
    np.testing.assert_allclose(moves[4], influence[12:15].sum(axis=0))
    found = left_out_sums(moves, np.full((20, 3), 0.05)).spread(np.ones(3))
    np.testing.assert_allclose(found.variance, (moves**2).sum(axis=0) * 19 / 20)
    drawn, _ = ScoreDraws(moves.T @ moves).draw(rng, 40_000)
    np.testing.assert_allclose(np.cov(drawn.T), moves.T @ moves, atol=2.0)
    np.testing.assert_allclose(drawn[:, 2], -drawn[:, 0], atol=1e-5)


def test_a_cluster_that_holds_much_moves_more_when_it_is_gone() -> None:
    rng = np.random.default_rng(5)
    given = rows(rng, 300)
    member, y, place = given["member"], given["outcome"], given["place"]
    cluster = np.minimum(np.arange(300) // 15, 8)  # the last holds most rows
    ones = member.astype(float)
    cells = plain_moments(*(np.array([(1 - ones).sum(), ones.sum()]) for _ in range(4)))

    def predict(own: Any, used: Any) -> Predicted:
        return strata_means(own[used], y[used], np.ones(used.sum()), place[used], KIND)

    core = factor_core(
        member.astype(np.int64), cluster, cells, Complement(), lambda x: x, predict, KIND
    )
    told = scores(predict(member, np.ones(300, dtype=bool)), KIND)
    moved, share = (np.bincount(cluster, x) for x in (told.influence, told.share))
    expected = ((moved / (1 - share)) ** 2).sum() * 8 / 9
    assert core.spread.variance[1] == pytest.approx(expected)
    assert expected > 1.05 * (moved**2).sum() * 8 / 9


@pytest.mark.parametrize("kind", [Weights.GROUP, Weights.POPULATION])
def test_rows_alone_on_their_side_of_a_stratum_vary_as_others_do(kind: Weights) -> None:
    # such a row is its own mean, so nothing is left of it, and yet it moves the answer
    rng = np.random.default_rng(8)
    sizes = [(6, 1), (6, 6), (1, 6), (8, 1)] * 15
    place = np.repeat(np.arange(len(sizes)), [a + b for a, b in sizes])
    member = np.concatenate([np.arange(a + b) < a for a, b in sizes])
    weight = np.ones(place.size)
    gaps, stated = [], []
    for _ in range(1500):
        found = scores(strata_means(member, rng.normal(size=place.size), weight, place, kind), kind)
        gaps.append(found.gap)
        stated.append((found.influence**2).sum())
    assert np.sqrt(np.mean(stated)) / np.std(gaps) == pytest.approx(1, abs=0.1)
