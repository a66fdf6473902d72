"""Resampled groups: moments, streams, chunks."""

import numpy as np
import pytest

from equipoise.methods.numerics import FloatArray
from equipoise.methods.spread import bootstrap_draws, row_draws, sample_from_sums, variance
from tests.unit.methods.spread import naive

SIZES, TOTALS = np.array([3, 8, 40]), np.array([1.0, 8.0, 13.0])


def _distance(a: FloatArray, b: FloatArray) -> float:
    grid = np.union1d(a, b)
    one, two = (np.searchsorted(np.sort(x), grid, side="right") / x.size for x in (a, b))
    return float(np.abs(one - two).max())


def test_binomial_draws_equal_row_resampling_in_distribution() -> None:
    sample = sample_from_sums(SIZES, TOTALS, binary=True)
    rows = [np.repeat([1.0, 0.0], [int(s), n - int(s)]) for n, s in zip(SIZES, TOTALS, strict=True)]
    count = 4000
    ours = bootstrap_draws(sample, count, np.random.default_rng(11)).mean
    theirs = naive.row_bootstrap(rows, count, np.random.default_rng(12))
    # Two-sample Kolmogorov–Smirnov at 1e-4 in each of three groups.
    limit = np.sqrt(-np.log(1e-4 / 2) / count)
    assert max(_distance(ours[:, k], theirs[:, k]) for k in range(3)) < limit
    # The same test must notice a size that is off by one.
    wrong = bootstrap_draws(
        sample_from_sums(SIZES + 1, TOTALS, binary=True), count, np.random.default_rng(13)
    ).mean
    assert _distance(wrong[:, 0], theirs[:, 0]) > limit


def test_row_draws_equal_the_naive_row_bootstrap_in_distribution() -> None:
    rng = np.random.default_rng(2)
    rows = [rng.exponential(size=n) for n in (4, 30)]
    group = np.repeat([0, 1], [4, 30])
    shuffle = rng.permutation(34)
    ours = row_draws(np.concatenate(rows)[shuffle], group[shuffle], 2, 3000, rng)
    theirs = naive.row_bootstrap(rows, 3000, rng)
    limit = np.sqrt(-np.log(1e-4 / 2) / 3000)
    assert max(_distance(ours.mean[:, k], theirs[:, k]) for k in range(2)) < limit


def test_moment_draws_have_the_moments_of_row_draws() -> None:
    rng = np.random.default_rng(3)
    rows = [rng.normal(k, 1 + k, size=n) for k, n in enumerate((25, 50, 200))]
    sums = [np.array([f(r) for r in rows]) for f in (np.size, np.sum, lambda r: (r**2).sum())]
    sample = sample_from_sums(sums[0].astype(int), sums[1], sums[2], binary=False)
    ours = bootstrap_draws(sample, 20_000, rng)
    group = np.repeat(np.arange(3), sums[0].astype(int))
    theirs = row_draws(np.concatenate(rows), group, 3, 5000, rng)
    assert ours.mean.mean(0) == pytest.approx(theirs.mean.mean(0), abs=0.05)
    assert ours.mean.var(0) == pytest.approx(theirs.mean.var(0), rel=0.1)
    assert ours.spread.mean(0) == pytest.approx(theirs.spread.mean(0), rel=0.05)


def test_memory_blocks_do_not_change_row_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    values, group = rng.normal(size=40), np.repeat([0, 1], 20)
    whole = row_draws(values, group, 2, 700, np.random.default_rng(5))
    monkeypatch.setattr(variance, "_ROWS_AT_ONCE", 33)
    blocks = row_draws(values, group, 2, 700, np.random.default_rng(5))
    assert np.array_equal(whole.mean, blocks.mean)


def test_more_resamples_keep_the_first_ones() -> None:
    sample = sample_from_sums(SIZES, TOTALS, binary=True)
    few = bootstrap_draws(sample, variance.CHUNK, np.random.default_rng(6)).mean
    many = bootstrap_draws(sample, 3 * variance.CHUNK, np.random.default_rng(6)).mean
    assert np.array_equal(many[: variance.CHUNK], few)


def test_a_group_without_rows_cannot_be_resampled() -> None:
    with pytest.raises(ValueError, match="at least one row in every group"):
        row_draws(np.ones(3), np.zeros(3, dtype=int), 2, 5, np.random.default_rng(1))
