"""What the transport problem refuses, and in which words."""

import numpy as np
import pytest

from equipoise.methods.transport import (
    Method,
    fair_costs,
    from_matrix,
    from_neighbours,
    infer,
    learn_metric,
    prepare,
    select_model,
    solve,
    within_classes,
)

PAIR = within_classes([0, 0])


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ([[0, np.nan], [1, 0]], r"NaN; entry \(counted along the rows\) 1 is"),
        ([[0, -1], [1, 0]], "not be negative"),
        ([[0, 1], [1, 0.5]], "cell 1 pays to stay"),
        ([[np.inf, 1], [1, 0]], "cell 0 pays to stay"),
        ([[0, 1, 2], [1, 0, 2]], r"square matrix; got shape \(2, 3\)"),
        ([0, 1], "square matrix"),
        ([[0, np.inf], [np.inf, 0]], "all 2 are disconnected"),
    ],
)
def test_cost_matrices(costs: list[list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_matrix(costs)


@pytest.mark.parametrize(
    ("source", "target", "cost", "message"),
    [
        ([0], [3], [1.0], "target must lie in 0 … 2; got 3"),
        ([-1], [0], [1.0], "source must lie in"),
        ([0.5], [1], [1.0], "list of cell numbers"),
        ([0, 1], [1], [1.0], "equally long; got 2, 1, 1"),
        ([0], [1], [np.nan], "NaN; pair 0"),
        ([0], [1], [-1.0], "negative"),
        ([2], [2], [1.0], "cell 2 pays to stay"),
        ([0, 0], [1, 1], [1.0, 2.0], "0 → 1 is listed twice"),
        ([0], [1], [np.inf], "disconnected"),
    ],
)
def test_neighbour_lists(
    source: list[int], target: list[int], cost: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        from_neighbours(source, target, cost, cells=3)


def test_labels() -> None:
    with pytest.raises(ValueError, match="all 3 are disconnected"):
        within_classes([0, 1, 2])
    with pytest.raises(ValueError, match="one label per cell"):
        within_classes([[0, 0]])
    with pytest.raises(ValueError, match="cell 1 is"):
        within_classes([0.0, np.nan])


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        ([0, 1.5], r"lie in \[0, 1\]; cell 1 has 1.5"),
        ([-0.1, 0], "cell 0 has -0.1"),
        ([np.nan, 0], "cell 0 has nan"),
        ([0, 1, 0], r"one loss per cell \(2\); got shape \(3,\)"),
    ],
)
def test_losses(losses: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prepare(PAIR, losses)


def test_bounds_and_budget() -> None:
    assert prepare(PAIR, [0, 7], bounds=(0, 10)).ceiling == 7
    with pytest.raises(ValueError, match="in order"):
        prepare(PAIR, [0, 1], bounds=(1, 0))
    for budget in (-0.1, np.nan):
        with pytest.raises(ValueError, match="budget must be"):
            prepare(PAIR, [0, 1], budget=budget)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([1, -1], "cell 1 has -1"),
        ([1, np.nan], "cell 1 has nan"),
        ([1.5, 2], "whole numbers; cell 0"),
        ([0, 0], "no rows"),
        ([1, 2, 3], r"one count per cell \(2\)"),
    ],
)
def test_counts(counts: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve(prepare(PAIR, [0, 1]), counts)


def test_options_of_inference() -> None:
    problem, rng = prepare(PAIR, [0, 1]), np.random.default_rng(1)
    found = infer(problem, [3, 7], rng=rng)
    with pytest.raises(ValueError, match="strictly between"):
        found.interval(95)
    with pytest.raises(ValueError, match="tolerance"):
        found.p_above(-0.1)
    with pytest.raises(ValueError, match="at least 100 resamples"):
        infer(problem, [3, 7], rng=rng, resamples=10)
    with pytest.raises(ValueError, match="1 … 100; got 101"):
        infer(problem, [30, 70], rng=rng, method=Method.M_OUT_OF_N, units=101)
    with pytest.raises(ValueError, match="kappa"):
        infer(problem, [3, 7], rng=rng, kappa=-1)
    three = prepare(within_classes([0, 0, 0]), [0, 0.5, 1])
    with pytest.raises(ValueError, match="two different gains; here there are 3"):
        infer(three, [3, 3, 4], rng=rng, method=Method.EXACT)


def test_weights_of_the_wrong_length() -> None:
    with pytest.raises(ValueError, match="expected 2 weights"):
        prepare(PAIR, [0, 1]).values([1.0])


def test_fair_metric() -> None:
    x = [[0.0, 1.0], [1.0, 0.0]]
    with pytest.raises(ValueError, match="finite"):
        learn_metric([[np.nan], [1.0]], [0, 1], [1, 1])
    with pytest.raises(ValueError, match="one row per cell"):
        learn_metric(x, [0, 1, 1], [1, 1])
    with pytest.raises(ValueError, match="not all zero"):
        learn_metric(x, [0, 1], [0, 0])
    with pytest.raises(ValueError, match=r"one row per feature \(2\); got 3"):
        fair_costs(x, np.ones((3, 1)))
    with pytest.raises(ValueError, match="power"):
        fair_costs(x, np.ones((2, 1)), power=0)
    with pytest.raises(ValueError, match="class label"):
        fair_costs(x, np.ones((2, 1)), classes=[1])


def test_selection() -> None:
    with pytest.raises(ValueError, match="per model"):
        select_model([0.1], [0.1, 0.2], [0.1], delta=0.1)
    with pytest.raises(ValueError, match="finite"):
        select_model([np.nan], [0.1], [0.1], delta=0.1)
    with pytest.raises(ValueError, match="tolerance"):
        select_model([0.1], [0.1], [0.1], delta=-1)
