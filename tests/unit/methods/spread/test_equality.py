"""The one test of equality: never too small where nothing differs, and all measures obey it."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy.special import comb

from equipoise.methods.spread import Meta, bootstrap_draws, sample_from_sums, weigh
from equipoise.methods.spread.equality import Equality, equality_test
from equipoise.methods.spread.recommended import recommended_interval
from equipoise.methods.spread.sample import no_spread


def _moments(rows: list[np.ndarray]) -> list[np.ndarray]:
    return [np.array([float((r**k).sum()) for r in rows]) for k in (1, 2, 3)]


@pytest.mark.parametrize("shape", ["rates", "normal", "skewed"])
def test_p_values_are_not_too_small_when_nothing_differs(shape: str) -> None:
    rng = np.random.default_rng(51)
    hits, worlds = 0, 300
    size = np.array([3, 5, 9, 30]) if shape == "rates" else np.array([25, 40, 60, 120])
    for _ in range(worlds):
        if shape == "rates":
            sample = sample_from_sums(size, rng.binomial(size, 0.5).astype(float), binary=True)
        else:
            draw = rng.normal if shape == "normal" else rng.exponential
            rows = [draw(size=n) for n in size]
            sample = sample_from_sums(size, *_moments(rows), binary=False)
        hits += equality_test(sample, tail=0.1, resamples=199, rng=rng).p <= 0.1
    assert hits <= 51  # binomial(300, 0.1), false alarm below 1e-4


def test_dealt_counts_give_the_exact_p_value() -> None:
    """Against all ways of dealing the ones to three small groups, written out."""
    size, ones = np.array([4, 5, 6]), np.array([4, 1, 1])
    tables = [t for t in itertools.product(*(range(n + 1) for n in size)) if sum(t) == ones.sum()]
    chance = np.array([np.prod([comb(n, k) for n, k in zip(size, t, strict=True)]) for t in tables])
    chance = chance / chance.sum()
    rate = ones.sum() / size.sum()
    z = (np.array(tables) / size - rate) / np.sqrt(
        rate * (1 - rate) * (1 - size / size.sum()) / size
    )
    both = [np.abs(z).max(axis=1), ((1 - size / size.sum()) * z**2).sum(axis=1)]
    each = [np.array([chance[s >= v - 1e-9].sum() for v in s]) for s in both]
    least = np.minimum(*each)
    here = tables.index(tuple(int(x) for x in ones))
    exact = chance[least <= least[here] + 1e-12].sum()
    sample = sample_from_sums(size, ones.astype(float), binary=True)
    found = equality_test(sample, tail=0.05, resamples=20_000, rng=np.random.default_rng(1))
    assert abs(found.p - exact) < 5 * np.sqrt(exact * (1 - exact) / 20_000)


def test_groups_that_differ_are_found() -> None:
    sample = sample_from_sums(np.array([60, 50, 70]), np.array([50.0, 10.0, 30.0]), binary=True)
    found = equality_test(sample, tail=0.025, resamples=199, rng=np.random.default_rng(1))
    assert found.p == 0.005
    assert 0.1 < found.apart < 50 / 60 - 10 / 50


def test_how_far_apart_groups_are_at_least_is_seldom_too_much() -> None:
    rng = np.random.default_rng(3)
    size, rate, wrong = np.array([40, 80, 400]), np.array([0.3, 0.45, 0.5]), 0
    for _ in range(400):
        sample = sample_from_sums(size, rng.binomial(size, rate).astype(float), binary=True)
        wrong += equality_test(sample, tail=0.025, resamples=199, rng=rng).apart > 0.2
    assert wrong <= 22  # binomial(400, 0.025), false alarm below 1e-3


@pytest.mark.parametrize("ones", [[20.0, 21, 22, 24], [10.0, 25, 33, 40], [30.0, 31, 30, 12]])
def test_all_measures_show_a_difference_or_none_does(ones: list[float]) -> None:
    sample = sample_from_sums(np.array([50, 50, 60, 60]), np.array(ones), binary=True)
    rng = np.random.default_rng(5)
    evidence = weigh(sample, level=0.95, resamples=300, rng=rng)
    draws = bootstrap_draws(sample, 300, rng)
    ends = {kind: recommended_interval(sample, kind, evidence, draws) for kind in Meta}
    above = {kind: e.lower > no_spread(kind) for kind, e in ends.items() if e is not None}
    assert set(above.values()) == {evidence.equality.p <= 0.025}
    mean, variance = ends[Meta.MEAN_DEVIATION], ends[Meta.VARIANCE]
    assert mean is not None
    assert variance is not None
    assert mean.upper <= np.sqrt(0.75 * variance.upper) + 1e-12


def test_a_constant_rate_shows_nothing() -> None:
    sample = sample_from_sums(np.array([30, 40]), np.array([30.0, 40.0]), binary=True)
    found = equality_test(sample, tail=0.025, resamples=99, rng=np.random.default_rng(1))
    assert (found.p, found.apart) == (1.0, 0.0)


def test_no_lower_end_leaves_equality_unless_the_test_rejects() -> None:
    sample = sample_from_sums(np.array([50, 50, 60]), np.array([10.0, 25, 50]), binary=True)
    rng = np.random.default_rng(6)
    found = weigh(sample, level=0.95, resamples=200, rng=rng)
    unsure = dataclasses.replace(found, equality=Equality(p=0.03, apart=0.0), apart=0.0)
    draws = bootstrap_draws(sample, 200, rng)
    for kind in Meta:
        shown, held = (recommended_interval(sample, kind, e, draws) for e in (found, unsure))
        assert shown is not None
        assert held is not None
        assert held.lower == no_spread(kind) < shown.lower
