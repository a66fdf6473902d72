"""Fair distances, and the choice of a model under a tolerance."""

import numpy as np
import pytest

from equipoise.methods.transport import fair_costs, learn_metric, prepare, select_model, solve


def test_differences_along_sensitive_directions_are_free() -> None:
    rng = np.random.default_rng(1)
    race, other = rng.integers(0, 2, 40), rng.normal(size=40)
    x = np.stack([race + 0.0, other, other + 2 * race], axis=1)
    learnt = learn_metric(x, race, np.ones(40))
    x, directions = x / learnt.units, learnt.directions
    # Race is a linear function of x, so the score along the direction orders people by race only.
    score = (x - x.mean(0)) @ directions[:, 0]
    assert abs(np.corrcoef(score, race)[0, 1]) == pytest.approx(1.0)
    moved = np.vstack([x, x + 3 * directions[:, 0]])
    costs = fair_costs(moved, directions)
    pairs = costs.target - costs.source == 40
    assert costs.cost[pairs] == pytest.approx(0, abs=1e-9)


def test_distance_by_hand() -> None:
    rng = np.random.default_rng(2)
    x, span = rng.normal(size=(12, 4)), rng.normal(size=(4, 2))
    project = np.eye(4) - span @ np.linalg.inv(span.T @ span) @ span.T
    for power in (1.0, 2.0):
        moves = fair_costs(x, span, power=power)
        expected = [
            np.linalg.norm(project @ (x[i] - x[j])) ** power
            for i, j in zip(moves.source, moves.target, strict=True)
        ]
        assert moves.cost == pytest.approx(np.array(expected), abs=1e-10)


def test_counts_are_repeated_rows() -> None:
    rng = np.random.default_rng(3)
    x, s, counts = rng.normal(size=(20, 3)), rng.normal(size=(20, 2)), rng.integers(1, 5, 20)
    one = learn_metric(x, s, counts)
    two = learn_metric(
        np.repeat(x, counts, axis=0), np.repeat(s, counts, axis=0), np.ones(counts.sum())
    )
    assert one.units == pytest.approx(two.units)
    first, second = one.directions, two.directions
    assert first @ first.T == pytest.approx(second @ second.T, abs=1e-10)
    assert first.T @ first == pytest.approx(np.eye(2), abs=1e-12)


def test_moves_stay_within_classes() -> None:
    rng = np.random.default_rng(3)
    x, span = rng.normal(size=(30, 3)), rng.normal(size=(3, 1))
    classes = rng.integers(0, 2, 30)
    moves = fair_costs(x, span, classes=classes)
    assert np.all(classes[moves.source] == classes[moves.target])
    assert moves.source.size == sum(n * (n - 1) for n in np.bincount(classes))
    problem = prepare(moves, rng.random(30), budget=0.1)
    assert 0 < solve(problem, np.ones(30)).value < 1


def test_selection_takes_the_best_of_the_fair() -> None:
    errors, values = [0.30, 0.32, 0.32, 0.40], [0.09, 0.03, 0.02, 0.0]
    found = select_model(errors, [0.07, 0.03, 0.02, 0.0], values, delta=0.0365)
    assert found.candidates.tolist() == [False, True, True, True]
    assert found.chosen == 2
    none = select_model(errors[:2], [0.07, 0.05], values[:2], delta=0.0365)
    assert (none.chosen, none.closest) == (None, 1)
    edge = select_model([0.1], [0.0365], [0.05], delta=0.0365)
    assert edge.chosen == 0
