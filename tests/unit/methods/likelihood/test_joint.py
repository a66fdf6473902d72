"""Joint tests: decoupled groups, dependent groups, degenerate input."""

import numpy as np
import pytest

from equipoise.methods.likelihood import (
    joint_disjoint,
    joint_euclidean,
    joint_ratio,
    normal_critical,
    segments,
    student_interval,
    student_roots,
)


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
