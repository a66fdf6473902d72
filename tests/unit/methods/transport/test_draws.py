"""Draws of the sampling error: against naive loops and known derivatives."""

import numpy as np
import pytest
from hypothesis import given, settings

from equipoise.methods.transport import answers as module
from equipoise.methods.transport import plain_sample, prepare, within_classes
from equipoise.methods.transport.answers import directional_draws, numerical_draws, resampled_draws
from equipoise.methods.transport.problem import near_optimal
from tests.unit.methods.transport import naive, world


@settings(max_examples=40, deadline=None)
@given(world.randoms(largest=10))
def test_directional_draws_equal_the_smallest_derivative_over_all_prices(
    case: world.Random,
) -> None:
    problem, sample = case.problem, plain_sample(case.counts, case.counts.size)
    if case.budget in (0.0, np.inf):
        return
    window = near_optimal(problem, sample, 0.0)
    found = directional_draws(problem, sample, window, resamples=4, rng=np.random.default_rng(1))
    stream = np.random.default_rng(1).spawn(1)[0]
    z = stream.standard_normal((4, case.weights.size)) * np.sqrt(case.weights)
    z -= z.sum(axis=1, keepdims=True) * case.weights
    expected = [
        naive.derivative(case.costs, case.losses, case.weights, case.budget, h, 1e-13) for h in z
    ]
    assert found == pytest.approx(np.array(expected), abs=1e-9)


def test_the_derivative_is_the_limit_of_difference_quotients() -> None:
    problem, weights = world.kinked()
    sample = plain_sample(np.round(weights * 1000), 5)
    window = near_optimal(problem, sample, 0.0)
    assert not window.smooth
    found = directional_draws(problem, sample, window, resamples=50, rng=np.random.default_rng(4))
    stream = np.random.default_rng(4).spawn(1)[0]
    z = stream.standard_normal((50, 5)) * np.sqrt(weights)
    z -= z.sum(axis=1, keepdims=True) * weights
    step = 1e-6
    quotient = (problem.values(weights + step * z) - problem.values(weights)) / step
    assert found == pytest.approx(quotient, abs=1e-8)
    # this world was made so that the limit is 0.4 × −|first coordinate|
    assert found == pytest.approx(-0.4 * np.abs(z[:, 0]), abs=1e-12)


def test_a_wide_tolerance_takes_in_every_price() -> None:
    problem, weights = world.tied()
    sample = plain_sample(np.round(weights * 10_000), weights.size)
    assert near_optimal(problem, sample, 1e9).kinks.tolist() == pytest.approx([1, 0.2, 0])
    assert near_optimal(problem, sample, 0.0).kinks.tolist() == pytest.approx([1, 0.2])


def test_normal_vectors_have_the_multinomial_covariance() -> None:
    linear, weights = prepare(within_classes([0, 0, 0]), [0, 0.5, 1.0]), np.array([0.3, 0.4, 0.3])
    sample = plain_sample([300, 400, 300], 3)
    window = near_optimal(linear, sample, 1.0)
    found = directional_draws(
        linear, sample, window, resamples=20_000, rng=np.random.default_rng(2)
    )
    gain = np.array([1, 0.5, 0])
    assert found.var() == pytest.approx(weights @ gain**2 - (weights @ gain) ** 2, rel=0.05)


def test_bootstrap_draws_equal_a_loop_over_rows_in_distribution() -> None:
    problem, _ = world.apart()
    counts = np.array([3, 9, 20, 1, 0, 14, 8, 5])
    ours = resampled_draws(
        problem, plain_sample(counts, 8), units=15, resamples=4000, rng=np.random.default_rng(1)
    )
    rng, people = np.random.default_rng(2), np.repeat(np.arange(8), counts)
    centre = float(problem.values(counts / 60))
    theirs = []
    for _ in range(4000):
        again = np.bincount(rng.choice(people, 15), minlength=8)
        theirs.append(np.sqrt(15) * (float(problem.values(again / 15)) - centre))
    grid = np.sort(theirs)
    one = np.searchsorted(np.sort(ours), grid, side="right") / 4000
    two = np.searchsorted(grid, grid, side="right") / 4000
    # two-sample Kolmogorov–Smirnov at 1e-4
    assert np.abs(one - two).max() < np.sqrt(-np.log(1e-4 / 2) / 4000)


def test_numerical_draws_are_bounded_and_say_so() -> None:
    rng = np.random.default_rng(3)
    many = prepare(within_classes(np.arange(30) % 3), rng.random(30))
    found = numerical_draws(many, plain_sample(np.full(30, 20), 30), resamples=200, rng=rng)
    assert found.tries == 4000
    assert found.draws.size < 5
    few = prepare(within_classes([0, 0]), [0, 1])
    sample = plain_sample([300, 700], 2)
    kept = numerical_draws(few, sample, resamples=200, rng=rng, tries=1000)
    assert kept.draws.size == 200
    assert kept.tries <= 1000
    assert kept.step == pytest.approx(1000**-0.25)
    # linear: the quotient is the derivative, whose standard deviation is that of a coin
    assert kept.draws.std() == pytest.approx(np.sqrt(0.21), rel=0.2)


def test_more_draws_begin_with_the_same_draws() -> None:
    problem, weights = world.apart()
    sample = plain_sample((weights * 400).astype(np.int64), weights.size)
    few, more = (
        resampled_draws(problem, sample, units=40, resamples=b, rng=np.random.default_rng(9))
        for b in (module.CHUNK, 3 * module.CHUNK - 5)
    )
    assert more.size == 3 * module.CHUNK - 5
    assert np.array_equal(more[: few.size], few)


def test_memory_blocks_do_not_change_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, weights = world.kinked()
    sample = plain_sample((weights * 1000).round(), weights.size)
    window = near_optimal(problem, sample, 3.0)

    def both() -> list[float]:
        one = directional_draws(
            problem, sample, window, resamples=300, rng=np.random.default_rng(5)
        )
        two = resampled_draws(
            problem, sample, units=60, resamples=300, rng=np.random.default_rng(5)
        )
        return [*one, *two]

    whole = both()
    monkeypatch.setattr("equipoise.methods.transport.problem.BLOCK_NUMBERS", 1)
    monkeypatch.setattr("equipoise.methods.transport.problem.BLOCK_NUMBERS", 1)
    assert both() == pytest.approx(whole, abs=1e-13)
