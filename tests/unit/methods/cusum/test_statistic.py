"""The cumulative sum against the naive loop, and its laws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.methods import cusum
from equipoise.methods.cusum import Scale, Side
from equipoise.methods.numerics import FloatArray
from tests.unit.methods.cusum import naive


def world(seed: int, n: int = 60, models: int = 3, ties: bool = True) -> tuple[FloatArray, ...]:
    """Outcomes, risks (some at 0 and 1) and predicted residuals, with ties if asked for."""
    rng = np.random.default_rng(seed)
    p = np.clip(rng.random(n) * 1.2 - 0.1, 0, 1)
    residuals = rng.normal(0, 0.2, (models, n))
    y = (rng.random(n) < np.clip(p + 2 * residuals[0], 0, 1)).astype(float)
    return y, p, np.round(residuals, 1) if ties else residuals


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", list(Scale))
@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("prevalence", [0.0, 0.1])
def test_equals_the_naive_loop(seed: int, scale: Scale, side: Side, prevalence: float) -> None:
    y, p, residuals = world(seed, ties=seed % 2 == 0)
    null = cusum.bernoulli_null(y, p, tolerance=0.05)
    weights = cusum.violations(residuals, null, side)
    made = cusum.cusum(weights, null, scale=scale, prevalence=prevalence)
    ours = made.values(null.observed[None, :])[0]
    theirs = naive.statistic(lambda _: y, p, weights, 0.05, scale=scale, prevalence=prevalence)
    assert ours == pytest.approx(theirs, rel=1e-12)
    assert ours > 0


@pytest.mark.parametrize("scale", list(Scale))
def test_p_value_within_monte_carlo_error_of_the_naive_loop(scale: Scale) -> None:
    _, p, residuals = world(3, n=40, models=2)
    risk = np.clip(p + residuals[0] / 2, 0, 1)
    y = (np.random.default_rng(8).random(40) < risk).astype(float)
    null = cusum.bernoulli_null(y, p, tolerance=0.02)
    weights = cusum.violations(residuals, null)
    made = cusum.cusum(weights, null, scale=scale, prevalence=0.05)
    ours = cusum.run_test(made, null=null, draws=4000, seed=np.random.SeedSequence(1)).p
    draws = 300
    theirs = naive.p_value(
        y,
        p,
        weights,
        0.02,
        draws,
        np.random.default_rng(2),
        scale=scale,
        prevalence=0.05,
    )
    assert 0.02 < ours < 0.98  # a p-value at an end would agree with anything
    assert abs(ours - theirs) < 4 * np.sqrt(ours * (1 - ours) * (1 / draws + 1 / 4000))


def test_the_draws_of_one_world_are_those_of_the_theorem() -> None:
    y, p, residuals = world(5, n=30, models=2)
    null = cusum.bernoulli_null(y, p, tolerance=0.1)
    weights = cusum.violations(residuals, null)
    made = cusum.cusum(weights, null, scale=Scale.RAW)
    seed = np.random.SeedSequence(4)
    drawn = cusum.run_test(made, null=null, draws=3, seed=seed).drawn
    u = np.random.default_rng(np.random.SeedSequence(4, spawn_key=(0,))).random((3, 30))

    def value(line: FloatArray) -> float:
        def outcomes(model: int) -> FloatArray:
            edges = [naive.edge(a, g, 0.1) for a, g in zip(p, weights[model], strict=True)]
            return (line < np.array(edges)).astype(float)

        return naive.statistic(outcomes, p, weights, 0.1, scale="raw", prevalence=0)

    assert drawn.tolist() == pytest.approx(sorted(value(line) for line in u), rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(Scale), st.floats(0, 0.2))
def test_any_allowed_risk_is_dominated(seed: int, scale: Scale, tolerance: float) -> None:
    # the proof's coupling, row by row: outcomes between the two ends never beat the bound
    rng = np.random.default_rng(seed)
    n = 25
    p, u = rng.random(n), rng.random(n)
    truth = np.clip(p + tolerance * rng.uniform(-1, 1, n), 0, 1)
    y = (u < truth).astype(float)
    null = cusum.bernoulli_null(y, p, tolerance=tolerance)
    weights = cusum.violations(rng.normal(0, 0.3, (2, n)), null)
    made = cusum.cusum(weights, null, scale=scale)
    ends = np.concatenate([null.high, null.low])
    bound = (np.tile(u, 2) < ends).astype(float) - ends
    assert made.values(null.observed[None])[0] <= made.values(bound[None])[0] + 1e-9


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_row_order_is_irrelevant(seed: int) -> None:
    y, p, residuals = world(seed, n=40)
    order = np.random.default_rng(seed).permutation(40)
    values = []
    for rows in (np.arange(40), order):
        null = cusum.bernoulli_null(y[rows], p[rows], tolerance=0.05)
        weights = cusum.violations(residuals[:, rows], null)
        made = cusum.cusum(weights, null)
        best = made.best(null)
        members = set() if best is None else set(rows[best.members].tolist())
        values.append((made.values(null.observed[None])[0], members))
    assert values[0][0] == pytest.approx(values[1][0], rel=1e-12)
    assert values[0][1] == values[1][1]


def test_a_threshold_never_lies_inside_a_tie() -> None:
    y = np.array([1.0, 0.0, 1.0, 0.0])
    null = cusum.bernoulli_null(y, np.full(4, 0.5), tolerance=0.0)
    weights = np.array([[0.2, 0.2, 0.1, 0.1]])
    path = cusum.cusum(weights, null, scale=Scale.RAW).paths[0]
    assert path.ends.tolist() == [1, 3]
    assert path.sums(null.observed).tolist() == pytest.approx([0.0, 0.0])
    # taken one by one, the first row alone would score
    free = cusum.cusum(np.array([[0.21, 0.2, 0.1, 0.1]]), null, scale=Scale.RAW)
    assert free.values(null.observed[None])[0] > 0


def test_minimum_prevalence_is_exceeded() -> None:
    y, p, residuals = world(1, n=50, ties=False)
    null = cusum.bernoulli_null(y, p, tolerance=0.0)
    weights = cusum.violations(residuals, null)
    for path in cusum.cusum(weights, null, prevalence=0.2).paths:
        assert path.ends.min() + 1 == 11
    assert cusum.cusum(weights, null, prevalence=0.999).paths == ()


def test_the_last_threshold_alone_is_the_simple_score() -> None:
    y, p, residuals = world(2)
    null = cusum.bernoulli_null(y, p, tolerance=0.05)
    weights = cusum.violations(residuals, null)
    made = cusum.cusum(weights, null, scale=Scale.RAW, thresholds=False)
    every = [naive.score(y, p, g, 0.05, min(abs(x) for x in g if x)) / len(y) for g in weights]
    assert made.values(null.observed[None])[0] == pytest.approx(max(0.0, *every), rel=1e-12)


def test_members_are_those_of_the_largest_sum() -> None:
    y, p, residuals = world(7, ties=False)
    null = cusum.bernoulli_null(y, p, tolerance=0.05)
    weights = cusum.violations(residuals, null)
    made = cusum.cusum(weights, null, scale=Scale.RAW)
    best = made.best(null)
    assert best is not None
    g = weights[best.model]
    inside = set(np.flatnonzero(np.abs(g) >= best.threshold).tolist())
    assert set(best.members.tolist()) == inside
    score = naive.score(y, p, g, 0.05, best.threshold) / len(y)
    assert score == pytest.approx(made.values(null.observed[None])[0])


@pytest.mark.parametrize("scale", list(Scale))
def test_fold_noise_shrinks_what_is_observed_and_not_the_draws(scale: Scale) -> None:
    y, p, residuals = world(7, ties=False)
    null = cusum.bernoulli_null(y, p, tolerance=0.05)
    weights = cusum.violations(residuals, null)
    noise = np.abs(np.random.default_rng(1).normal(0, 0.02, weights.shape))
    plain, shrunk = (cusum.cusum(weights, null, noise=x, scale=scale) for x in (None, noise))
    assert np.array_equal(plain.values(null.observed[None]), shrunk.values(null.observed[None]))
    expected = 0.0
    for g, about in zip(weights, noise, strict=True):
        for gamma in {abs(x) for x in g if x != 0}:
            inside = np.abs(g) >= gamma
            q = np.array([naive.edge(a, b, 0.05) for a, b in zip(p, g, strict=True)])
            variance = (q * (1 - q) * g**2)[inside].sum()
            ratio = min(1.0, (q * (1 - q) * about)[inside].sum() / variance) if variance else 0.0
            unit = len(y) if scale is Scale.RAW else math.sqrt(variance)
            if unit > 0:
                score = naive.score(y, p, g, 0.05, gamma)
                expected = max(expected, score / unit / math.sqrt(1 + ratio))
    assert shrunk.observed(null) == pytest.approx(expected, rel=1e-12)
    assert shrunk.observed(null) < plain.observed(null)


def test_weights_that_are_all_noise_double_the_variance() -> None:
    # the pairs of rows in different folds are counted twice, as the correction says
    rng = np.random.default_rng(5)
    n, folds, sums = 60, 4, []
    fold = np.arange(n) % folds
    kernel = np.exp(-((rng.random(n)[:, None] - rng.random(n)) ** 2) * 10)
    kernel = kernel + kernel.T
    apart = fold[:, None] != fold
    for _ in range(3000):
        e = rng.choice([-1.0, 1.0], n)
        g = (kernel * apart) @ e
        sums.append(float(e @ g / np.sqrt((g**2).sum())))
    assert 1.6 < np.var(sums) < 2.4


def test_nobody_suspected_is_zero_and_p_one() -> None:
    null = cusum.bernoulli_null(np.array([1.0, 0.0]), np.array([0.4, 0.6]), tolerance=0.2)
    made = cusum.cusum(cusum.violations(np.array([[0.1, -0.1]]), null), null)
    found = cusum.run_test(made, null=null, draws=50, seed=np.random.SeedSequence(1))
    assert (found.statistic, found.p, found.best) == (0.0, 1.0, None)


@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("tolerance", [0.0, 0.05])
def test_chi_squared_equals_the_naive_loop(side: Side, tolerance: float) -> None:
    y, p, _ = world(4)
    null = cusum.bernoulli_null(y, p, tolerance=tolerance)
    bins = cusum.quantile_bins(p, 5)
    made = cusum.binned(bins, null, side)
    expected = naive.chi_squared(y, p, bins[0].tolist(), tolerance, str(side))
    assert made.values(null.observed[None])[0] == pytest.approx(expected, rel=1e-12)


def test_hosmer_lemeshow_without_tolerance_is_the_textbook_statistic() -> None:
    y, p, _ = world(4)
    p = np.clip(p, 0.05, 0.95)
    null = cusum.bernoulli_null(y, p, tolerance=0.0)
    bins = cusum.quantile_bins(p, 4)
    book = 0.0
    for b in range(4):
        rows = bins[0] == b
        book += (y[rows] - p[rows]).sum() ** 2 / (p[rows] * (1 - p[rows])).sum()
    assert cusum.binned(bins, null).values(null.observed[None])[0] == pytest.approx(book)


def test_recalibration_axes_are_the_score_of_platt_scaling() -> None:
    # derivatives of the log likelihood of logit(p) + a + b·logit(p), at the whole set of rows
    y, p, _ = world(6)
    p = np.clip(p, 0.05, 0.95)
    null = cusum.bernoulli_null(y, p, tolerance=0.0)
    made = cusum.cusum(cusum.recalibration_axes(null), null, scale=Scale.RAW, thresholds=False)
    odds = np.log(p / (1 - p))
    level, slope = ((y - p).sum(), ((y - p) * odds).sum())
    expected = max(abs(level), abs(slope)) / len(y)
    assert made.values(null.observed[None])[0] == pytest.approx(expected)
