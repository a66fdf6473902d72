"""Intervals for one mean, against their definitions, another program, and a coverage count."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from equipoise.methods.inference.counts import clopper_pearson, wilson

PAIRS = [(0, 1), (1, 1), (0, 10), (3, 10), (10, 10), (1, 1000), (500, 1000), (7, 23)]


def arrays(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([x for x, _ in pairs], dtype=float), np.array(
        [n for _, n in pairs], dtype=float
    )


@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
def test_clopper_pearson_by_its_definition(level: float) -> None:
    low, high = clopper_pearson(*arrays(PAIRS), level)
    tail = (1 - level) / 2
    for (x, n), a, b in zip(PAIRS, low, high, strict=True):
        # The ends at which the data would be just as extreme as the tail allows.
        wanted = (
            brentq(lambda p, x=x, n=n: stats.binom.sf(x - 1, n, p) - tail, 0, 1, xtol=1e-14)
            if x
            else 0.0
        )
        assert a == pytest.approx(wanted, abs=1e-10)
        wanted = (
            brentq(lambda p, x=x, n=n: stats.binom.cdf(x, n, p) - tail, 0, 1, xtol=1e-14)
            if x < n
            else 1.0
        )
        assert b == pytest.approx(wanted, abs=1e-10)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
def test_wilson_inverts_the_score_test(level: float) -> None:
    low, high = wilson(*arrays(PAIRS), level)
    z = stats.norm.ppf((1 + level) / 2)
    for (x, n), a, b in zip(PAIRS, low, high, strict=True):
        for end in (end for end in (float(a), float(b)) if 1e-12 < end < 1 - 1e-12):
            assert abs(x / n - end) == pytest.approx(z * np.sqrt(end * (1 - end) / n), rel=1e-9)


@pytest.mark.parametrize("method", [clopper_pearson, wilson])
def test_intervals_mirror_and_hold_the_estimate(method) -> None:  # type: ignore[no-untyped-def]
    x, n = arrays(PAIRS)
    low, high = method(x, n, 0.95)
    mirrored_low, mirrored_high = method(n - x, n, 0.95)
    np.testing.assert_allclose(low, 1 - mirrored_high, atol=1e-12)
    np.testing.assert_allclose(high, 1 - mirrored_low, atol=1e-12)
    assert np.all((low >= 0) & (low <= x / n + 1e-12) & (x / n <= high + 1e-12) & (high <= 1))


def test_coverage() -> None:
    # Exact coverage of a discrete distribution: no simulation needed for shares.
    for p in (0.02, 0.3, 0.5, 0.97):
        for n in (5, 40):
            x = np.arange(n + 1.0)
            weight = stats.binom.pmf(x, n, p)
            low, high = clopper_pearson(x, np.full(n + 1, float(n)), 0.95)
            assert weight[(low <= p) & (p <= high)].sum() >= 0.95
