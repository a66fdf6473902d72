"""Shrunken estimates: toward the mean, the small groups most."""

import numpy as np
import pytest

from equipoise.methods.spread import sample_from_sums, shrink


def test_small_groups_are_pulled_further_and_stay_between_own_and_common_mean() -> None:
    sample = sample_from_sums(np.array([4, 40, 400]), np.array([4.0, 24, 200]), binary=True)
    out = shrink(sample)
    assert np.all(np.diff(out.weight) > 0)
    assert out.centre < out.value[0] < 1.0
    assert np.all((out.lower < out.value) & (out.value < out.upper))
    assert np.all((out.lower > 0) & (out.upper < 1))


def test_far_apart_large_groups_are_left_alone_and_equal_ones_collapse() -> None:
    apart = sample_from_sums(np.full(6, 5000), np.linspace(500, 4500, 6), binary=True)
    assert shrink(apart).value == pytest.approx(apart.mean, abs=0.005)
    alike = sample_from_sums(
        np.full(8, 50), np.array([20.0, 25, 22, 27, 24, 23, 21, 26]), binary=True
    )
    assert np.ptp(shrink(alike).value) < 0.5 * np.ptp(alike.mean)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("spread", [0.0, 0.15])
def test_intervals_cover_on_average_and_estimates_beat_raw_means(
    binary: bool, spread: float
) -> None:
    rng = np.random.default_rng(41)
    size = np.array([5, 8, 12, 20, 30, 50, 80, 200]) + (0 if binary else 20)
    inside, raw, shrunk = [], [], []
    for _ in range(150):
        truth = np.clip(0.5 + spread * rng.standard_normal(8), 0.02, 0.98)
        if binary:
            sample = sample_from_sums(size, rng.binomial(size, truth).astype(float), binary=True)
        else:
            rows = [rng.normal(m, 0.5, n) for m, n in zip(truth, size, strict=True)]
            total, square = (np.array([f(r) for r in rows]) for f in (np.sum, lambda r: r @ r))
            sample = sample_from_sums(size, total, square, binary=False)
        out = shrink(sample)
        inside.append((out.lower <= truth) & (truth <= out.upper))
        raw.append((sample.mean - truth) ** 2)
        shrunk.append((out.value - truth) ** 2)
    # Groups of one world share their common mean: the band is for 150 worlds, not 1200 groups.
    assert np.mean(inside) >= 0.95 - 3.7 * np.sqrt(0.05 * 0.95 / 150)
    assert np.mean(shrunk) < np.mean(raw)
