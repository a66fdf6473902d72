"""Coverage of the intervals that `summarize` gives by default, counted in simulated worlds.

One seed, chosen once. The bands are binomial, two-sided for the variance where groups differ
(nominal 95 %), one-sided from below for everything else: at the boundary an interval can err on one
side only (nominal 97.5 %), and the bounds for extremes promise no less than their level.
"""

import numpy as np
import pytest
from scipy.special import bdtr, bdtrc

from equipoise.methods.spread import (
    Meta,
    bootstrap_draws,
    compare_attributes,
    meta_metric,
    sample_from_sums,
    summarize_spread,
    weigh,
)

WORLDS, RESAMPLES, SEED = 250, 300, 20_260_801
NULL = {
    "five unequal groups": (np.array([40, 60, 130, 400, 2000]), np.full(5, 0.6)),
    "four tiny groups": (np.array([3, 5, 9, 30]), np.full(4, 0.5)),
    "forty groups": (np.linspace(10, 90, 40).astype(int), np.full(40, 0.8)),
}
APART = {
    "two groups": (np.array([40, 900]), np.array([0.5, 0.65])),
    "five unequal groups": (
        np.array([40, 60, 130, 400, 2000]),
        np.array([0.4, 0.5, 0.6, 0.7, 0.65]),
    ),
    "forty groups": (np.linspace(10, 90, 40).astype(int), np.linspace(0.2, 0.9, 40)),
}


def _hits(size: np.ndarray, rate: np.ndarray, seed: int) -> dict[Meta, int]:
    rng = np.random.default_rng(seed)
    alike = np.ptp(rate) == 0
    truth = {
        kind: float(kind is Meta.RATIO) if alike else float(meta_metric(kind, rate))
        for kind in Meta
    }
    hits = dict.fromkeys(Meta, 0)
    for _ in range(WORLDS):
        sample = sample_from_sums(size, rng.binomial(size, rate).astype(float), binary=True)
        draws = bootstrap_draws(sample, RESAMPLES, rng)
        evidence = weigh(sample, level=0.95, resamples=RESAMPLES, rng=rng)
        for kind in Meta:
            ends = summarize_spread(sample, kind, draws=draws, evidence=evidence).interval
            # No interval is no miss: nothing was claimed.
            hits[kind] += ends is None or (ends.lower - 1e-12 <= truth[kind] <= ends.upper + 1e-12)
    return hits


@pytest.mark.slow
@pytest.mark.parametrize("world", NULL)
def test_every_interval_contains_equality(world: str) -> None:
    for kind, hits in _hits(*NULL[world], SEED).items():
        assert bdtr(hits, WORLDS, 0.975) > 1e-4, (kind, hits)


@pytest.mark.slow
@pytest.mark.parametrize("world", APART)
def test_every_interval_contains_the_true_spread(world: str) -> None:
    hits = _hits(*APART[world], SEED + 1)
    for kind in Meta:
        assert bdtr(hits[kind], WORLDS, 0.95) > 1e-4, (kind, hits)
    # Neither too often: an interval without end would pass the other test.
    assert bdtrc(hits[Meta.VARIANCE] - 1, WORLDS, 0.95) > 1e-4, hits


def test_a_percentile_bootstrap_of_the_range_never_contains_equality() -> None:
    """The fault this package exists to avoid, so that the tests above are seen to have teeth."""
    size, rate = NULL["forty groups"]
    rng = np.random.default_rng(SEED + 2)
    hits = 0
    for _ in range(50):
        sample = sample_from_sums(size, rng.binomial(size, rate).astype(float), binary=True)
        range_ = meta_metric(Meta.DIFFERENCE, bootstrap_draws(sample, 200, rng).mean)
        hits += bool(np.quantile(range_, 0.025) <= 0)
    assert hits == 0


@pytest.mark.slow
def test_the_difference_of_two_attributes_is_covered() -> None:
    rng = np.random.default_rng(SEED + 3)
    first, second = np.divmod(np.arange(12), 4)
    share = np.full(12, 1 / 12)
    rate = np.array([0.3, 0.5, 0.6])[first] + np.array([-0.1, 0, 0.05, 0.1])[second]
    spreads = [
        np.var(np.bincount(label, weights=rate * share) / np.bincount(label, weights=share), ddof=1)
        for label in (first, second)
    ]
    truth, hits = float(spreads[0] - spreads[1]), 0
    for _ in range(WORLDS):
        n = rng.multinomial(1200, share)
        total = rng.binomial(n, rate).astype(float)
        pair = compare_attributes(
            n, total, None, first, second, binary=True, rng=rng, resamples=RESAMPLES
        )
        hits += pair.lower <= truth <= pair.upper
    assert bdtr(hits, WORLDS, 0.95) > 1e-4
    assert bdtrc(hits - 1, WORLDS, 0.95) > 1e-4
