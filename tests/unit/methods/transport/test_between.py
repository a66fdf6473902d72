"""Learnt metrics, moves left out and wrong costs: bounds that hold for the problem in between."""

import numpy as np
import pytest
from hypothesis import given, settings

from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.transport import (
    Neighbours,
    NormalLimit,
    between,
    fair_costs,
    from_matrix,
    infer,
    learn_metric,
    metric_errors,
    plain_sample,
    prepare,
    relaxed,
    robustness,
    unit_sample,
    within_classes,
)
from tests.unit.methods.transport import naive, world


def least_squares(x: FloatArray, s: FloatArray, counts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Units and slopes, row by row, as a textbook has them."""
    rows, others = np.repeat(x, counts, axis=0), np.repeat(s, counts, axis=0)
    units = rows.std(axis=0)
    a = (rows - rows.mean(axis=0)) / units
    b = (others - others.mean(axis=0)) / others.std(axis=0)
    return units, np.linalg.lstsq(a, b, rcond=None)[0]


@pytest.mark.parametrize("seed", range(4))
def test_slopes_and_units_by_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, s, counts = rng.normal(5, 2, (20, 3)), rng.normal(size=(20, 2)), rng.integers(1, 9, 20)
    units, slopes = least_squares(x, s, counts)
    found = learn_metric(x, s, counts)
    assert found.units == pytest.approx(units)
    assert found.slopes == pytest.approx(slopes, abs=1e-10)
    sizes = np.linalg.svd(slopes, compute_uv=False)
    assert found.strength == pytest.approx(sizes.min())


def test_indicators_that_add_up_to_one_are_no_trouble() -> None:
    rng = np.random.default_rng(1)
    kind, s = rng.integers(0, 3, 60), rng.integers(0, 2, 60)
    found = learn_metric(np.eye(3)[kind], s, np.ones(60))
    few = learn_metric(np.eye(3)[kind][:, :2], s, np.ones(60))
    score = (np.eye(3)[kind] / found.units) @ found.slopes
    other = (np.eye(3)[kind][:, :2] / few.units) @ few.slopes
    # the same prediction, however it is written down
    assert np.corrcoef(score[:, 0], other[:, 0])[0, 1] == pytest.approx(1)


def test_nothing_is_projected_out_where_nothing_betrays() -> None:
    x, s = np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([0, 0, 1, 1])
    found = learn_metric(x, s, np.ones(4))
    assert found.directions.shape == (1, 0)
    assert found.strength == 0
    errors = metric_errors(
        x, s, plain_sample([25] * 4, 4), resamples=200, rng=np.random.default_rng(1)
    )
    # any direction might be the one
    assert np.all(errors >= 1)


@pytest.mark.parametrize("seed", range(6))
def test_a_distance_is_off_by_no_more_than_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, s, share = rng.normal(size=(30, 3)), rng.normal(size=(30, 1)), rng.dirichlet(np.ones(30))
    s = s + x[:, :1]
    sample = plain_sample(rng.multinomial(400, share), 30)
    one, two = learn_metric(x, s, sample.share), learn_metric(x, s, share)
    sine = np.linalg.norm(one.slopes - two.slopes, 2) / one.strength
    off = min(sine, 1) + np.abs(one.units / two.units - 1).max()
    true = fair_costs(x / two.units, two.directions).cost
    points = x / one.units
    assert np.all(fair_costs(points, one.directions, off=off).cost >= true - 1e-9)
    assert np.all(fair_costs(points, one.directions, off=-off).cost <= true + 1e-9)


def test_the_metric_is_learnt_again_on_resamples_of_units() -> None:
    rng = np.random.default_rng(2)
    x, s = rng.normal(size=(20, 2)), rng.integers(0, 2, 20)
    x[:, 0] += 2 * s
    cell = np.repeat(np.arange(20), 10)
    rows = unit_sample(np.arange(200), cell, np.ones(200), cells=20)
    # clusters that hold one cell each say much less than as many rows
    clusters = unit_sample(cell, cell, np.ones(200), cells=20)
    plain, few = (
        metric_errors(x, s, sample, resamples=300, rng=np.random.default_rng(1)).mean()
        for sample in (rows, clusters)
    )
    assert few > 1.5 * plain


@settings(max_examples=40, deadline=None)
@given(world.randoms(largest=12))
def test_wrong_costs_move_the_value_by_no_more_than_the_rates(case: world.Random) -> None:
    problem, moves = case.problem, from_matrix(case.costs)
    found = robustness(problem, moves, case.weights)
    if case.budget in (0.0, np.inf):
        assert found is None
        return
    assert found is not None
    assert found.rise <= found.fall + 1e-9
    assert found.fall <= found.published + 1e-9
    rng, wrong = np.random.default_rng(1), 0.3 * case.budget
    value = float(problem.values(case.weights))
    for _ in range(5):
        shift = rng.uniform(-wrong, wrong, case.costs.shape)
        costs = np.maximum(case.costs + shift, 0.0)
        np.fill_diagonal(costs, 0.0)
        other = naive.by_solver(costs, case.losses, case.weights, case.budget).value
        assert value - found.fall * wrong - 1e-7 <= other <= value + found.rise * wrong + 1e-7


def test_free_moves_with_different_losses_have_no_steepness() -> None:
    moves = within_classes([0, 0])
    problem = prepare(moves, [0.0, 1.0], budget=0.5)
    found = robustness(problem, moves, np.array([0.5, 0.5]))
    assert found is not None
    assert found.steepness == np.inf
    assert (found.rise, found.fall) == (0, 0)


@pytest.mark.parametrize("neighbours", [1, 3, 8, 40])
@pytest.mark.parametrize("binary", [True, False])
def test_the_value_with_all_moves_lies_between(neighbours: int, binary: bool) -> None:
    rng = np.random.default_rng(3)
    x, labels = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    span = rng.normal(size=(3, 1))
    drawn = rng.random(60)
    losses = np.where(drawn < 0.3, 1.0, 0.0) if binary else drawn
    share = rng.dirichlet(np.ones(60))
    for off in (0.0, 0.2, -0.2):
        every = fair_costs(x, span, classes=labels, off=off)
        some = fair_costs(x, span, classes=labels, off=off, neighbours=neighbours)
        for budget in (0.0, 0.02, 0.2, 2.0):
            whole = float(prepare(every, losses, budget=budget).values(share))
            least = float(prepare(some, losses, budget=budget).values(share))
            most = float(prepare(relaxed(some, losses), losses, budget=budget).values(share))
            assert least <= whole + 1e-12
            assert whole <= most + 1e-12
            if neighbours == 40:
                assert some.left_out is None
                assert least == pytest.approx(whole)


def test_few_neighbours_suffice_where_the_budget_reaches_no_further() -> None:
    rng = np.random.default_rng(4)
    x, losses = rng.normal(size=(400, 2)), rng.random(400)
    nothing, share = np.zeros((2, 0)), np.full(400, 1 / 400)
    some = fair_costs(x, nothing, neighbours=60)
    assert some.source.size == 400 * 60
    least, most, whole = (
        float(prepare(moves, losses, budget=0.01).values(share))
        for moves in (some, relaxed(some, losses), fair_costs(x, nothing))
    )
    assert least == pytest.approx(whole)
    assert most == pytest.approx(whole)


def test_neighbours_among_people_who_are_all_alike() -> None:
    some = fair_costs(np.zeros((9, 2)), np.zeros((2, 0)), neighbours=3)
    assert isinstance(some, Neighbours)
    assert np.all(some.source != some.target)
    assert np.all(some.cost == 0)
    assert some.left_out is not None
    assert np.all(some.left_out.cost == 0)
    with pytest.raises(ValueError, match="at least one neighbour"):
        fair_costs(np.zeros((9, 2)), np.zeros((2, 0)), neighbours=0)


def test_bounds_come_from_the_safe_side_and_p_values_agree() -> None:
    problem = prepare(within_classes([0, 0]), [0, 1])
    found = infer(problem, [60, 940], rng=np.random.default_rng(1))
    hard, easy = NormalLimit(value=0.05, error=0.007), NormalLimit(value=0.07, error=0.008)
    for learnt, part in ((False, 1.0), (True, 0.5)):
        wide = between(found, lambda a: hard, lambda a: easy, ceiling=1.0, learnt=learnt)
        assert wide.lower(0.9) == pytest.approx(hard.lower(0.1 * part))
        assert wide.upper(0.9) == pytest.approx(easy.upper(0.1 * part))
        low, high = wide.lower(0.9) or 0.0, wide.upper(0.9) or 0.0
        assert wide.p_above(low) == pytest.approx(0.1, rel=1e-3)
        assert wide.p_below(high) == pytest.approx(0.1, rel=1e-3)
        assert wide.p_above(0.9) == 1.0
    none = between(found, lambda a: None, lambda a: None, ceiling=0.8, learnt=True)
    assert none.interval() == (0.0, 1.0)
    few = infer(
        prepare(within_classes([0, 0, 0]), [0, 0.5, 1]), [3, 3, 4], rng=np.random.default_rng(1)
    )
    assert between(few, lambda a: hard, lambda a: easy, ceiling=1.0, learnt=True) is few
