"""Comparing spreads: joint resamples, and error rates."""

import numpy as np
import pytest

from equipoise.methods.spread import compare_attributes, compare_models, row_draws, sample_from_sums
from equipoise.methods.spread.variance import double_corrected

OUTCOMES = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])


def test_attribute_differences_cover_the_truth() -> None:
    rng = np.random.default_rng(31)
    first, second = np.divmod(np.arange(12), 4)
    share = rng.dirichlet(np.full(12, 5.0))
    rate = np.array([0.3, 0.5, 0.7])[first] + np.array([-0.05, 0, 0, 0.05])[second]
    truths = []
    for label in (first, second):
        mass = np.bincount(label, weights=share)
        truths.append(float(np.var(np.bincount(label, weights=share * rate) / mass, ddof=1)))
    truth, hits = truths[0] - truths[1], 0
    for _ in range(250):
        n = rng.multinomial(1500, share)
        total = rng.binomial(n, rate).astype(float)
        c = compare_attributes(n, total, None, first, second, binary=True, rng=rng, resamples=200)
        hits += bool(c.lower <= truth <= c.upper)
    assert 222 <= hits <= 249  # binomial(250, 0.95), false alarm below 1e-3


def test_a_tiny_group_whose_outcomes_are_all_alike_is_not_taken_for_known() -> None:
    rng = np.random.default_rng(32)
    first, second = np.divmod(np.arange(8), 2)
    share = np.outer([0.6, 0.37, 0.026, 0.004], [0.5, 0.5]).ravel()
    hits = 0
    for _ in range(200):
        n = rng.multinomial(2000, share)
        total = rng.binomial(n, 0.05).astype(float)
        c = compare_attributes(n, total, None, first, second, binary=True, rng=rng, resamples=200)
        hits += bool(c.lower <= 0 <= c.upper)
    assert hits >= 178  # binomial(200, 0.95), false alarm below 1e-3; drawn as seen it is near 145


def test_models_whose_outcomes_are_all_alike_in_a_group_still_vary_there() -> None:
    def width(group: list[int]) -> float:
        count = np.array([group, [400, 100, 100, 400]])
        rng = np.random.default_rng(1)
        c = compare_models(count, OUTCOMES, binary=True, rng=rng)[0, 1]
        return c.upper - c.lower

    # eight people say less than eight hundred, also when all of them agree
    assert width([8, 0, 0, 0]) > 3 * width([800, 0, 0, 0])


def test_an_attribute_does_not_differ_from_itself() -> None:
    n, total = np.array([50, 60, 70]), np.array([20.0, 40, 30])
    label = np.arange(3)
    c = compare_attributes(n, total, None, label, label, binary=True, rng=np.random.default_rng(1))
    assert c.difference == 0
    assert c.lower == pytest.approx(0, abs=1e-12)
    assert c.upper == pytest.approx(0, abs=1e-12)


def test_attribute_groups_of_one_row_are_listed_and_tiny_ones_survive_resampling() -> None:
    n, total = np.array([2, 50, 1, 60]), np.array([1.0, 20, 1, 30])
    first, second = np.array([0, 1, 2, 1]), np.array([0, 0, 1, 1])
    c = compare_attributes(n, total, None, first, second, binary=True, rng=np.random.default_rng(1))
    assert c.first_sample.excluded.tolist() == [2]
    assert np.isfinite([c.lower, c.upper]).all()


def test_real_metric_cells_match_resampled_rows() -> None:
    rng = np.random.default_rng(32)
    n = np.array([300, 300, 300, 300])
    first, second = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    rows = [rng.normal(m, 1, 300) for m in (0.0, 0.3, 1.0, 1.2)]
    total, square = (np.array([f(r) for r in rows]) for f in (np.sum, lambda r: (r**2).sum()))
    c = compare_attributes(n, total, square, first, second, binary=False, rng=rng, resamples=4000)
    values, cell = np.concatenate(rows), np.repeat(np.arange(4), 300)
    gaps = []
    for _ in range(1500):
        pick = rng.integers(0, 1200, 1200)
        spread = [
            np.var([values[pick][label[cell[pick]] == g].mean() for g in (0, 1)], ddof=1)
            for label in (first, second)
        ]
        gaps.append(spread[0] - spread[1])
    naive = np.quantile(gaps - np.mean(gaps), [0.025, 0.975])
    assert c.difference is not None
    assert [c.lower - c.difference, c.upper - c.difference] == pytest.approx(naive, rel=0.1)


def test_model_draws_match_row_resampling_in_the_margin() -> None:
    rng = np.random.default_rng(33)
    count = np.array([[20, 5, 9, 30], [10, 20, 4, 40], [33, 3, 15, 9]])
    both = compare_models(count, OUTCOMES, binary=True, rng=rng, resamples=4000)[0, 1]
    rows = np.concatenate([np.repeat(OUTCOMES, line, axis=0) for line in count])
    group = np.repeat(np.arange(3), count.sum(axis=1))
    # Paired rows: the same seed picks the same rows for both models.
    drawn = [row_draws(rows[:, m], group, 3, 4000, np.random.default_rng(34)) for m in (0, 1)]
    size = count.sum(1)
    gaps = double_corrected(drawn[0], size) - double_corrected(drawn[1], size)
    naive = np.quantile(gaps - gaps.mean(), [0.025, 0.975])
    assert both.difference is not None
    ours = [both.lower - both.difference, both.upper - both.difference]
    assert ours == pytest.approx(naive, rel=0.1)


def test_identical_models_do_not_differ_and_three_models_give_three_pairs() -> None:
    count = np.array([[40, 60], [70, 30], [20, 80]])
    values = np.array([[0.0, 0, 1], [1, 1, 0]])
    out = compare_models(count, values, binary=True, rng=np.random.default_rng(1))
    assert set(out) == {(0, 1), (0, 2), (1, 2)}
    assert out[0, 1].lower == pytest.approx(0, abs=1e-12)
    assert out[0, 1].upper == pytest.approx(0, abs=1e-12)


def test_pairing_makes_the_interval_narrower_than_independent_models() -> None:
    agree = np.array([[45, 5, 5, 45], [70, 5, 5, 20], [20, 5, 5, 70]])
    size = agree.sum(1)
    p, q = (agree @ OUTCOMES[:, m] / size for m in (0, 1))
    joint = np.stack([(1 - p) * (1 - q), (1 - p) * q, p * (1 - q), p * q], axis=1)
    independent = np.round(joint * size[:, None]).astype(int)
    widths = []
    for count in (agree, independent):
        rng = np.random.default_rng(2)
        c = compare_models(count, OUTCOMES, binary=True, rng=rng, resamples=2000)[0, 1]
        widths.append(c.upper - c.lower)
    assert widths[0] < 0.7 * widths[1]


def test_eligibility_decides_which_rows_count_for_which_model() -> None:
    count = np.array([[30, 10, 10, 30], [30, 10, 1, 0], [20, 20, 20, 20]])
    eligible = np.array([[1, 1], [1, 0], [0, 1], [1, 1]])
    c = compare_models(
        count, OUTCOMES, binary=True, eligible=eligible, rng=np.random.default_rng(1)
    )[0, 1]
    first = sample_from_sums(np.array([70, 40, 60]), np.array([30.0, 0, 20]), binary=True)
    assert c.first_sample.size.tolist() == first.size.tolist()
    assert c.first_sample.mean == pytest.approx(first.mean)


def test_model_differences_cover_the_truth() -> None:
    rng = np.random.default_rng(35)
    joint = np.array([[0.3, 0.1, 0.1, 0.5], [0.4, 0.3, 0.1, 0.2], [0.1, 0.1, 0.2, 0.6]])
    spreads = [float(np.var(joint @ OUTCOMES[:, m], ddof=1)) for m in (0, 1)]
    truth = spreads[0] - spreads[1]
    hits = 0
    for _ in range(250):
        count = np.stack([rng.multinomial(150, p) for p in joint])
        c = compare_models(count, OUTCOMES, binary=True, rng=rng, resamples=200)[0, 1]
        hits += c.lower <= truth <= c.upper
    assert 222 <= hits <= 249
