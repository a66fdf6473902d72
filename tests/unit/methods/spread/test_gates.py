"""Tests of equality: never too small where nothing differs."""

import numpy as np
import pytest

from equipoise.methods.spread import Meta, equality_test, sample_from_sums, summarize_spread
from equipoise.methods.spread.gates import gated
from equipoise.methods.spread.variance import interval


@pytest.mark.parametrize("kind", [Meta.MAX_DEVIATION, Meta.MEAN_DEVIATION])
@pytest.mark.parametrize("binary", [True, False])
def test_p_values_are_not_too_small_when_nothing_differs(kind: Meta, binary: bool) -> None:
    rng = np.random.default_rng(51)
    size, hits, worlds = np.array([3, 5, 9, 30]), 0, 300
    for _ in range(worlds):
        if binary:
            total = rng.binomial(size, 0.5).astype(float)
            sample = sample_from_sums(size, total, binary=True)
        else:
            rows = [rng.normal(size=n) for n in size]
            sums = [np.array([f(r) for r in rows]) for f in (np.sum, lambda r: (r**2).sum())]
            sample = sample_from_sums(size, *sums, binary=False)
        hits += equality_test(sample, kind, resamples=199, rng=rng) <= 0.1
    assert hits <= 51  # binomial(300, 0.1), false alarm below 1e-4


def test_groups_that_differ_are_found() -> None:
    sample = sample_from_sums(np.array([60, 50, 70]), np.array([50.0, 10.0, 30.0]), binary=True)
    for kind in (Meta.DIFFERENCE, Meta.RATIO, Meta.MAX_DEVIATION, Meta.MEAN_DEVIATION):
        found = summarize_spread(sample, kind, rng=np.random.default_rng(1), resamples=199)
        assert found.p_zero == 0.005
        assert found.interval is not None
        assert found.interval.lower > float(kind is Meta.RATIO)


def test_the_gate_moves_the_lower_end_alone() -> None:
    ends = interval(1.2, 3.0, least=1.0)
    assert gated(ends, 0.02, tail=0.025, least=1.0) is ends
    closed = gated(ends, 0.03, tail=0.025, least=1.0)
    assert (closed.lower, closed.upper) == (1.0, 3.0)


def test_a_constant_rate_shows_nothing() -> None:
    sample = sample_from_sums(np.array([30, 40]), np.array([30.0, 40.0]), binary=True)
    for kind in (Meta.DIFFERENCE, Meta.MEAN_DEVIATION):
        p = equality_test(sample, kind, resamples=99, rng=np.random.default_rng(1))
        assert p == 1.0
