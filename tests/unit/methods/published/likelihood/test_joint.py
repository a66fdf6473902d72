"""Joint tests: decoupled groups, dependent groups, degenerate input."""

import numpy as np
import pytest

from equipoise.methods.published.likelihood import (
    Scores,
    euclidean_at,
    euclidean_ends,
    known_roots,
    likelihood_at,
    moments_of,
    normal_critical,
    null_weights,
    segments,
    student_interval,
    student_roots,
)
from equipoise.methods.published.likelihood.mean import joint_disjoint, joint_euclidean, joint_ratio


def test_disjoint_groups_decouple() -> None:
    rng = np.random.default_rng(2)
    group, x = rng.integers(0, 4, 300), rng.exponential(size=300)
    apart = joint_disjoint(segments([x[group == j] for j in range(4)]), np.full(4, 1.1))
    g = (group[:, None] == np.arange(4)) * (x - 1.1)[:, None]
    together = joint_ratio(g, adjusted=False)
    assert apart.rank == together.rank == 4
    assert apart.statistic == pytest.approx(together.statistic, abs=1e-8)


def test_groups_made_of_each_other_add_nothing() -> None:
    rng = np.random.default_rng(3)
    group, x = rng.integers(0, 2, 200), rng.normal(size=200) + 0.1
    parts = (group[:, None] == np.arange(2)) * x[:, None]
    more = np.column_stack([parts, parts.sum(axis=1), parts[:, 0], np.zeros(200)])
    one, two = joint_ratio(parts), joint_ratio(more)
    assert (two.rank, two.constraints) == (2, 4)
    assert two.statistic == pytest.approx(one.statistic, abs=1e-8)
    assert two.p == pytest.approx(one.p, abs=1e-8)


def test_counts_are_repeated_rows() -> None:
    g, times = np.array([[1.0, 0.5], [-1.0, 0.2], [0.3, -1.0]]), np.array([5.0, 4.0, 6.0])
    one = joint_ratio(g, times)
    two = joint_ratio(np.repeat(g, times.astype(int), axis=0))
    assert one.statistic == pytest.approx(two.statistic, abs=1e-9)


def test_more_groups_than_rows() -> None:
    g = np.random.default_rng(4).normal(size=(5, 12))
    found = joint_ratio(g)
    assert found.constraints == 12
    assert found.rank <= 5
    assert 0 <= found.p <= 1
    assert np.isfinite(found.statistic)


def test_nothing_to_test() -> None:
    found = joint_ratio(np.zeros((4, 3)))
    assert (found.rank, found.statistic, found.p) == (0, 0.0, 1.0)
    empty = joint_euclidean(np.zeros(2), np.zeros((2, 2)))
    assert (empty.rank, empty.p) == (0, 1.0)


def test_euclidean_is_the_quadratic_form() -> None:
    cov = np.array([[0.04, 0.01], [0.01, 0.09]])
    gap = np.array([0.3, -0.2])
    found = joint_euclidean(gap, cov)
    assert found.statistic == pytest.approx(float(gap @ np.linalg.solve(cov, gap)))


def test_the_joint_test_keeps_its_level() -> None:
    """Level 0.05 of three overlapping groups, 1000 worlds: 28 to 76 rejections (1e-3)."""
    rng = np.random.default_rng(8)
    rejected = 0
    for _ in range(1000):
        group, x = rng.integers(0, 2, 120), rng.normal(size=120)
        parts = (group[:, None] == np.arange(2)) * x[:, None]
        rejected += joint_ratio(np.column_stack([parts, x])).p < 0.05
    assert 28 <= rejected <= 76


def test_student_scores_and_intervals_agree() -> None:
    estimate, error, degrees = np.array([0.3, 0.3]), np.array([0.1, 0.1]), np.array([4.0, np.inf])
    low, _ = student_interval(estimate, error, degrees, 1.7)
    assert np.allclose(student_roots(estimate - low, error, degrees), 1.7)
    assert np.isnan(student_roots(estimate, np.zeros(2), degrees)).all()
    assert normal_critical(0.9, "sidak", 5) < normal_critical(0.9, "bonferroni", 5)


def zeros_and_ones(theta: float, rows: list[int], ones: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Scores of disjoint groups of zeros and ones against a known rate, and their counts."""
    m = len(rows)
    g = np.kron(np.eye(m), np.array([[-theta], [1 - theta]]))
    return g, np.array([[n - k, k] for n, k in zip(rows, ones, strict=True)], float).ravel()


def test_outcomes_that_could_have_occurred_give_the_binomial_likelihood() -> None:
    rows, ones = [3, 20, 2], [3, 6, 0]
    g, count = zeros_and_ones(0.4, rows, ones)
    counts = np.array(ones, float), np.array(rows, float), np.full(3, 0.4)
    alone = known_roots(*counts, calibrated=False) ** 2
    found = joint_ratio(g, count, support=True)
    assert found.rank == 3
    assert found.statistic == pytest.approx(float(alone.sum()), abs=1e-3)
    # without them three ones among three look impossible
    assert joint_ratio(g, count, adjusted=False).statistic > 2 * found.statistic


def test_the_null_distribution_meets_the_null() -> None:
    g, count = zeros_and_ones(0.4, [3, 20, 2], [3, 6, 0])
    weights = null_weights(g, count)
    assert weights.sum() == pytest.approx(1.0)
    assert np.abs(weights @ g).max() < 1e-5
    rates = weights.reshape(3, 2)
    assert np.allclose(rates[:, 1] / rates.sum(axis=1), 0.4, atol=1e-3)


def scores_of(seed: int, n: int = 80) -> Scores:
    rng = np.random.default_rng(seed)
    x, inside = rng.exponential(size=n), rng.random((n, 2)) < 0.5
    share = inside.mean(axis=0)
    return Scores(zero=inside * (x[:, None] - 0.9) / share, slope=inside / share, count=np.ones(n))


@pytest.mark.parametrize("seed", range(4))
def test_the_region_from_moments_is_that_of_the_scores(seed: int) -> None:
    scores, values = scores_of(seed), np.array([0.2, -0.1])
    g = scores.at(values)
    mean, spread = g.mean(axis=0), np.cov(g.T, bias=True)
    found = euclidean_at(moments_of(scores), values, np.arange(2))
    assert found.statistic == pytest.approx(len(g) * mean @ np.linalg.solve(spread, mean))


@pytest.mark.parametrize("seed", range(4))
def test_the_shadow_of_the_region_ends_where_the_region_does(seed: int) -> None:
    moments, cut = moments_of(scores_of(seed)), 5.99
    low, high = euclidean_ends(moments, cut)
    for j in range(2):
        for end in (low[j], high[j]):
            alone = euclidean_at(moments, np.array([end]), np.array([j]))
            assert alone.statistic == pytest.approx(cut)
        # the other disparity is free: some point of the region has this value
        inside = 0.99 * low[j] + 0.01 * high[j]
        others = np.linspace(-2, 2, 801)
        least = min(
            euclidean_at(moments, np.array([inside, v])[[j, 1 - j]], np.arange(2)).statistic
            for v in others
        )
        assert least <= cut


def test_groups_of_a_few_rows_exclude_nothing() -> None:
    few = Scores(
        zero=np.array([[9.0], [11.0]] + [[0.0]] * 8),
        slope=np.array([[5.0]] * 2 + [[0.0]] * 8),
        count=np.ones(10),
    )
    low, high = euclidean_ends(moments_of(few), 9.0)
    assert np.isneginf(low).all()
    assert np.isposinf(high).all()


def test_likelihood_at_takes_groups_apart_where_it_can() -> None:
    rng = np.random.default_rng(2)
    group, x = rng.integers(0, 3, 200), rng.exponential(size=200)
    inside = group[:, None] == np.arange(3)
    zero, slope = inside * (x[:, None] - 1) / inside.mean(axis=0), inside / inside.mean(axis=0)
    values = np.array([0.1, 0.0, -0.1])
    made = {
        apart: likelihood_at(
            Scores(zero=zero, slope=slope, count=np.ones(200), disjoint=apart),
            values,
            adjusted=False,
        )
        for apart in (True, False)
    }
    assert made[True].statistic == pytest.approx(made[False].statistic, abs=1e-7)
    assert made[True].rank == made[False].rank == 3
