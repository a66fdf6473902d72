"""Draws, p-values, folds, and real outcomes."""

import itertools

import numpy as np
import pytest

from equipoise.methods import cusum
from equipoise.methods.cusum import Side


def example(n: int = 300, tolerance: float = 0.02) -> tuple[cusum.Cusum, cusum.Null]:
    rng = np.random.default_rng(1)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(float)
    null = cusum.bernoulli_null(y, p, tolerance=tolerance)
    return cusum.cusum(cusum.violations(rng.normal(0, 0.1, (3, n)), null), null), null


def test_blocks_do_not_change_the_draws_and_the_seed_is_not_consumed() -> None:
    statistic, null = example()
    seed = np.random.SeedSequence(3)
    found = [
        cusum.run_test(statistic, null=null, draws=50, seed=seed, block=block).drawn.tolist()
        for block in (None, 1, 7, 50)
    ]
    assert all(drawn == found[0] for drawn in found)
    # the first draws are the same however many follow
    fewer = cusum.run_test(statistic, null=null, draws=32, seed=seed).drawn
    assert set(fewer.tolist()) <= set(found[0])


def test_add_one_rule_and_critical_value() -> None:
    statistic, null = example()
    found = cusum.run_test(statistic, null=null, draws=99, seed=np.random.SeedSequence(3))
    reached = int((found.drawn >= found.statistic).sum())
    assert found.p == (1 + reached) / 100
    limit = found.critical(0.1)
    assert int((found.drawn >= limit).sum()) == 10
    # a statistic just above the limit is beaten by nine draws: p = 0.1
    assert (1 + int((found.drawn > limit).sum())) / 100 == 0.1
    assert found.critical(0.001) == np.inf


def test_two_statistics_together_by_hand() -> None:
    _, null = example()
    rng = np.random.default_rng(2)
    weights = cusum.violations(rng.normal(0, 0.1, (2, len(null))), null)
    pair = [cusum.cusum(weights, null, scale=scale) for scale in cusum.Scale]
    seed = np.random.SeedSequence(3)
    found = cusum.run_test(*pair, null=null, draws=99, seed=seed)
    values = [[s.observed(null)] for s in pair]
    for start in range(0, 99, 16):
        child = np.random.SeedSequence(3, spawn_key=(start // 16,))
        drawn = null.draw(np.random.default_rng(child), min(16, 99 - start))
        for line, statistic in zip(values, pair, strict=True):
            line += statistic.values(drawn).tolist()
    shares = [[sum(b >= a - 1e-12 for b in line) / 100 for a in line] for line in values]
    smallest = [min(pairs) for pairs in zip(*shares, strict=True)]
    assert found.p == sum(m <= smallest[0] for m in smallest) / 100
    assert found.chosen == int(shares[1][0] < shares[0][0])
    assert found.statistic == values[found.chosen][0]
    assert found.p >= min(shares[0][0], shares[1][0])
    # beyond the critical value, and only there, the statistic alone would be enough
    limit = found.critical(0.1)
    alone = sum(value > limit for value in values[found.chosen][1:]) + 1
    assert sum(m <= alone / 100 for m in smallest) <= 10


def test_progress_is_told_and_may_stop() -> None:
    statistic, null = example()
    seen: list[int] = []
    cusum.run_test(
        statistic, null=null, draws=40, seed=np.random.SeedSequence(3), progress=seen.append
    )
    assert seen == [16, 32, 40]

    def stop(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cusum.run_test(
            statistic, null=null, draws=40, seed=np.random.SeedSequence(3), progress=stop
        )


def test_draws_have_the_risk_of_the_edge() -> None:
    p = np.array([0.0, 0.02, 0.5, 0.97, 1.0])
    null = cusum.bernoulli_null(np.zeros(5), p, tolerance=0.05)
    drawn = null.draw(np.random.default_rng(1), 20_000)
    ends = np.concatenate([null.high, null.low])
    ones = drawn + ends
    assert np.isin(ones.round(9), (0, 1)).all()
    assert np.abs(ones.mean(axis=0) - ends).max() < 4 * np.sqrt(0.25 / 20_000)
    # both ends share their randomness
    assert (ones[:, :5] >= ones[:, 5:] - 1e-12).all()
    assert drawn.var(axis=0) == pytest.approx(null.variance, abs=0.01)


def test_sign_flips_are_exact_for_few_rows() -> None:
    # every pattern of signs, against the share that draws find
    y, f = np.array([1.0, 2.0, -0.5, 0.7]), np.zeros(4)
    null = cusum.sign_flip_null(y, f, tolerance=0.1)
    weights = np.array([[0.3, 0.5, 0.0, 0.2]])
    statistic = cusum.cusum(weights, null)
    observed = statistic.values(null.observed[None])[0]
    patterns = [np.tile(s, 2) * null.observed for s in itertools.product((-1, 1), repeat=4)]
    exact = np.mean(statistic.values(np.array(patterns)) >= observed - 1e-12)
    found = cusum.run_test(statistic, null=null, draws=8000, seed=np.random.SeedSequence(1))
    assert abs(found.p - exact) < 4 * np.sqrt(0.25 / 8000)


def test_real_outcomes_keep_their_level_and_find_a_shift() -> None:
    rng = np.random.default_rng(7)
    n, hits, found = 120, 0, 0
    worse = np.arange(n) < 40
    guess = np.where(worse, 1.0, 0.05)[None, :]
    for world in range(200):
        f = rng.normal(0, 1, n)
        noise = rng.standard_t(4, n)
        seed = np.random.SeedSequence(world)
        for shift in (0.5, 1.3):
            y = f + np.where(worse, shift, 0.0) + noise
            null = cusum.sign_flip_null(y, f, tolerance=0.5)
            made = cusum.cusum(cusum.violations(guess, null), null)
            p = cusum.run_test(made, null=null, draws=99, seed=seed).p
            hits, found = hits + (shift == 0.5 and p <= 0.1), found + (shift == 1.3 and p <= 0.1)
    assert hits <= 37  # binomial, 200 worlds at 0.1: more has a chance below 1e-4
    assert found >= 150


def test_folds_are_even_shuffled_and_stratified() -> None:
    labels = np.repeat([0.0, 1.0], [30, 11])
    fold = cusum.stratified_folds(labels, 4, np.random.default_rng(1))
    assert np.bincount(fold).tolist() == [11, 10, 10, 10]
    assert np.ptp(np.bincount(fold[labels == 1], minlength=4)) <= 1
    assert np.ptp(np.bincount(fold[labels == 0], minlength=4)) <= 1
    other = cusum.stratified_folds(labels, 4, np.random.default_rng(2))
    assert not np.array_equal(fold, other)


def test_canonical_order_undoes_any_shuffle() -> None:
    rng = np.random.default_rng(1)
    table = rng.integers(0, 3, (50, 3)).astype(float)
    order = rng.permutation(50)
    one, two = (t[cusum.canonical_order(*t.T)] for t in (table, table[order]))
    assert np.array_equal(one, two)


@pytest.mark.parametrize(
    ("y", "p", "tolerance", "says"),
    [
        ([1.0, 2.0], [0.1, 0.2], 0.1, "0 or 1"),
        ([1.0, 0.0], [0.1, 1.2], 0.1, "between 0 and 1"),
        ([1.0, 0.0], [0.1], 0.1, "differ in shape"),
        ([1.0, 0.0], [0.1, np.nan], 0.1, "finite"),
        ([1.0, 0.0], [0.1, 0.2], -0.1, "at least 0"),
    ],
)
def test_bad_input(y: list[float], p: list[float], tolerance: float, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        cusum.bernoulli_null(np.array(y), np.array(p), tolerance=tolerance)


def test_bad_residuals() -> None:
    null = cusum.bernoulli_null(np.zeros(2), np.full(2, 0.5), tolerance=0.1)
    for bad in (np.zeros((1, 3)), np.array([[0.1, np.nan]])):
        with pytest.raises(ValueError, match="finite, one for each of 2 rows"):
            cusum.violations(bad, null)


def test_inputs_are_left_alone() -> None:
    y, p = np.array([1.0, 0.0, 1.0]), np.array([0.2, 0.5, 0.9])
    residuals = np.array([[0.3, -0.2, 0.01]])
    kept = [x.copy() for x in (y, p, residuals)]
    null = cusum.bernoulli_null(y, p, tolerance=0.05)
    observed = null.observed.copy()
    made = cusum.cusum(cusum.violations(residuals, null, Side.UNDER), null)
    cusum.run_test(made, null=null, draws=20, seed=np.random.SeedSequence(1))
    assert all(np.array_equal(a, b) for a, b in zip(kept, (y, p, residuals), strict=True))
    assert np.array_equal(observed, null.observed)
