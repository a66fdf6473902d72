"""Inverting a test along a path of growing spread: ends on either side."""

import numpy as np

from equipoise.methods.numerics import FloatArray
from equipoise.methods.spread import Meta, meta_metric, sample_from_sums
from equipoise.methods.spread.equality import Inversion, invert_path


def inverted(ones: list[float]) -> Inversion:
    sample = sample_from_sums(np.array([90, 90]), np.array(ones), binary=True)

    def variance(mean: FloatArray, spread: FloatArray) -> FloatArray:
        return meta_metric(Meta.VARIANCE, mean)

    rng = np.random.default_rng(1)
    return invert_path(sample, variance, tail=0.025, resamples=199, rng=rng)


def test_an_interval_that_excludes_equality_lies_on_both_sides_of_the_estimate() -> None:
    found = inverted([20.0, 70.0])
    low, high = (float(np.var(means, ddof=1)) for means in (found.lower, found.upper))
    assert 0 < low < float(np.var([20 / 90, 70 / 90], ddof=1)) < high


def test_where_equality_could_have_produced_it_the_path_starts_at_it() -> None:
    found = inverted([44.0, 46.0])
    assert np.ptp(found.lower) == 0
