"""Folds: dealt evenly, and the noise that models of different folds share."""

import numpy as np
import pytest

from equipoise.methods.cusum import fold_noise, split_rows, stratified_folds


@pytest.mark.parametrize("folds", [2, 4, 5])
def test_the_noise_of_a_mean_over_the_other_folds_is_its_variance(folds: int) -> None:
    """20,000 worlds of 20 standard normals: the variance of a mean over K − 1 folds."""
    rows = np.random.default_rng(1).normal(size=(20_000, folds, 20 // folds))
    every = rows.sum(axis=(1, 2), keepdims=True)[:, :, 0]
    size = rows.shape[2] * (folds - 1)
    outside = (every - rows.sum(axis=2)) / size
    found = fold_noise(outside.T[:, None, :])
    assert found.shape == (1, 20_000)
    assert found.mean() == pytest.approx(1 / size, rel=0.05)


def test_models_that_agree_have_no_noise() -> None:
    assert not fold_noise(np.full((4, 2, 3), 0.1)).any()


def test_folds_and_strata_are_as_even_as_can_be() -> None:
    strata = np.repeat([0.0, 1.0], [13, 30])
    fold = stratified_folds(strata, 4, np.random.default_rng(3))
    for stratum in (0.0, 1.0):
        assert np.ptp(np.bincount(fold[strata == stratum], minlength=4)) <= 1
    assert np.ptp(np.bincount(fold)) <= 1


def test_a_split_fits_the_share_that_was_asked_for() -> None:
    assert int(split_rows(40, 0.3, np.random.default_rng(3)).sum()) == 12
