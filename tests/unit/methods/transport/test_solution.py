"""Audit value, plan and price: against linear programming, and their laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.methods.numerics import FloatArray
from equipoise.methods.transport import from_matrix, from_neighbours, prepare, solve, within_classes
from equipoise.methods.transport.problem import optimal_prices
from tests.unit.methods.transport import naive, world


@settings(max_examples=150, deadline=None)
@given(world.randoms())
def test_value_plan_and_price_equal_the_solver(case: world.Random) -> None:
    problem = case.problem
    found = solve(problem, case.counts)
    solved = naive.by_solver(case.costs, case.losses, case.weights, case.budget)
    assert found.value == pytest.approx(solved.value, abs=1e-9)
    assert found.prices.lowest - 1e-9 <= solved.price <= found.prices.highest + 1e-9
    plan = found.plan
    cost = case.costs[plan.source, plan.target]
    assert np.all(plan.mass > 0)
    assert np.all(np.isfinite(cost))
    assert np.bincount(plan.source, plan.mass, minlength=problem.cells) == pytest.approx(
        case.weights, abs=1e-12
    )
    assert cost @ plan.mass == pytest.approx(found.spent, abs=1e-12)
    assert found.spent <= case.budget * (1 + 1e-12)
    assert plan.gain.sum() == pytest.approx(found.value, abs=1e-12)
    assert found.gains.sum() == pytest.approx(found.value, abs=1e-12)
    assert found.after @ case.losses - found.risk == pytest.approx(found.value, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(world.randoms(largest=12))
def test_prices_are_exactly_the_minimisers_of_the_dual(case: world.Random) -> None:
    if case.budget == np.inf:
        return
    found = optimal_prices(case.problem, case.weights)
    every = np.array(naive.bends(case.costs, case.losses))
    values = np.array(
        [naive.dual(case.costs, case.losses, case.weights, case.budget, p) for p in every]
    )
    best = every[values <= values.min() + 1e-13]
    assert values.min() == pytest.approx(float(case.problem.values(case.weights)), abs=1e-12)
    # The dual is flat between the ends and rises outside them.
    inside = every[(every >= found.lowest - 1e-12) & (every <= found.highest + 1e-12)]
    assert best.min() == pytest.approx(found.lowest, abs=1e-10)
    assert inside.size == best.size
    assert found.unique == (np.ptp(best) <= 1e-12 and case.budget > 0)


@settings(max_examples=60, deadline=None)
@given(world.randoms(largest=20), st.floats(0, 2), st.floats(0, 2))
def test_value_rises_and_bends_down_in_the_budget(case: world.Random, a: float, b: float) -> None:
    moves = from_matrix(case.costs)

    def value(budget: float) -> float:
        return float(prepare(moves, case.losses, budget=budget).values(case.weights))

    low, high = min(a, b), max(a, b)
    assert 0 <= value(low) <= value(high) + 1e-12 <= 1 + 1e-12
    assert value((low + high) / 2) >= (value(low) + value(high)) / 2 - 1e-12
    assert value(high) <= value(np.inf) + 1e-12


@settings(max_examples=40, deadline=None)
@given(world.randoms(largest=20), st.integers(0, 2**32 - 1))
def test_value_is_concave_in_the_distribution(case: world.Random, seed: int) -> None:
    other = np.random.default_rng(seed).dirichlet(np.ones(case.losses.size))
    ends = case.problem.values(np.stack([case.weights, other]))
    middle = case.problem.values((case.weights + other) / 2)
    assert middle >= ends.mean() - 1e-12


@given(world.randoms(largest=20))
def test_a_constant_loss_gains_nothing(case: world.Random) -> None:
    problem = prepare(from_matrix(case.costs), np.full(case.losses.size, 0.3), budget=case.budget)
    found = solve(problem, case.counts)
    assert found.value == 0.0
    assert np.array_equal(found.plan.source, found.plan.target)


@given(world.randoms(largest=20))
def test_many_distributions_at_once_equal_one_by_one(case: world.Random) -> None:
    rows = np.random.default_rng(1).dirichlet(np.ones(case.losses.size), size=(3, 4))
    together = case.problem.values(rows)
    assert together.shape == (3, 4)
    alone = [[float(case.problem.values(f)) for f in part] for part in rows]
    assert together == pytest.approx(np.array(alone), abs=1e-13)


def test_memory_blocks_do_not_change_values(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, weights = world.apart()
    rows = np.random.default_rng(2).dirichlet(weights * 20, size=50)
    whole = problem.values(rows)
    monkeypatch.setattr("equipoise.methods.transport.problem.BLOCK_NUMBERS", 1)
    assert problem.values(rows) == pytest.approx(whole, rel=1e-14)


@given(st.integers(0, 2**32 - 1))
def test_classes_equal_zero_and_infinite_costs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels, losses, counts = rng.integers(0, 4, 20), rng.random(20).round(1), rng.integers(1, 9, 20)
    costs = np.where(labels[:, None] == labels, 0.0, np.inf)
    one = solve(prepare(within_classes(labels), losses), counts)
    two = solve(prepare(from_matrix(costs), losses), counts)
    assert one.value == pytest.approx(two.value, abs=1e-14)
    assert np.array_equal(one.plan.source, two.plan.source)
    assert np.array_equal(one.plan.target, two.plan.target)
    worst = [losses[labels == label].max() for label in labels]
    assert one.value == pytest.approx(((worst - losses) * counts).sum() / counts.sum())


def test_neighbour_lists_equal_the_matrix_in_any_order() -> None:
    rng = np.random.default_rng(3)
    costs = world.costs_of("forbidden", 25, rng)
    losses, counts = rng.random(25), rng.integers(0, 9, 25)
    source, target = np.nonzero(np.isfinite(costs))
    order = rng.permutation(source.size)
    a, b = source[order], target[order]
    listed = from_neighbours(a, b, costs[a, b], cells=25)
    one = solve(prepare(listed, losses, budget=0.1), counts)
    two = solve(prepare(from_matrix(costs), losses, budget=0.1), counts)
    assert one.value == two.value
    assert one.prices == two.prices
    assert np.array_equal(one.plan.mass, two.plan.mass)


def test_ties_at_the_budget_give_an_interval_of_prices() -> None:
    problem, weights = world.tied()
    prices = optimal_prices(problem, weights)
    assert (prices.highest, prices.unique) == (1.0, False)
    assert prices.lowest == pytest.approx(0.2)
    # A little more or a little less budget picks one end.
    for budget, end in ((0.29, prices.highest), (0.31, prices.lowest)):
        moved = prepare(from_matrix(_tied_costs()), problem.losses, budget=budget)
        found = optimal_prices(moved, weights)
        assert found.unique
        assert found.lowest == pytest.approx(end)


def _tied_costs() -> FloatArray:
    inf = np.inf
    return np.array([[0, inf, 1], [inf, 0, 1], [inf, inf, 0]])


def test_equal_slopes_are_one_price() -> None:
    # 0.3 / 0.1 and 0.9 / 0.3 differ in the last bit
    inf = np.inf
    costs = np.array([[0, inf, 0.1], [inf, 0, 0.3], [inf, inf, 0]])
    problem = prepare(from_matrix(costs), [0.6, 0.0, 0.9], budget=0.05)
    assert optimal_prices(problem, np.array([0.5, 0.25, 0.25])).unique


def test_budget_zero_and_without_end() -> None:
    costs = np.array([[0, 0, 1], [np.inf, 0, 2], [1, 1, 0]])
    weights, losses = np.array([0.5, 0.3, 0.2]), [0.0, 0.5, 1.0]
    none = prepare(from_matrix(costs), losses, budget=0.0)
    assert float(none.values(weights)) == pytest.approx(0.25)
    assert optimal_prices(none, weights).highest == np.inf
    # from cell 0: first for nothing to 1, then along (1, 1): 0.5 more for 1 of cost
    assert optimal_prices(none, weights).lowest == pytest.approx(0.5)
    endless = prepare(from_matrix(costs), losses, budget=np.inf)
    assert float(endless.values(weights)) == pytest.approx(0.5 * 1 + 0.3 * 0.5)
    assert optimal_prices(endless, weights).highest == 0.0
    assert endless.ceiling == 1.0


def test_isolated_cells_are_counted() -> None:
    problem = prepare(within_classes([0, 0, 1]), [0, 1, 1])
    assert solve(problem, [1, 1, 5]).isolated == 1


def test_unseen_cells_are_targets_but_not_sources() -> None:
    found = solve(prepare(within_classes([0, 0, 1, 1]), [0, 1, 0, 1]), [4, 0, 0, 6])
    assert found.value == pytest.approx(0.4)
    assert found.plan.source.tolist() == [0, 3]
    assert found.plan.target.tolist() == [1, 3]


def test_the_callers_arrays_are_left_alone() -> None:
    costs = world.costs_of("metric", 9, np.random.default_rng(1))
    losses, counts = np.linspace(0, 1, 9), np.arange(9)
    before = [x.copy() for x in (costs, losses, counts)]
    solve(prepare(from_matrix(costs), losses, budget=0.2), counts)
    after = (costs, losses, counts)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
