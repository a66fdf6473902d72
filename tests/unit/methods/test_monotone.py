"""Monotone tilts against a naive oracle: the weight written out as a mixture of half-lines."""

import numpy as np
import pytest

from equipoise.methods.numerics import FloatArray
from equipoise.methods.tilts.audit import HalfLines, lower_bound, share_errors, upper_bound


def half_line_gaps(shares: FloatArray, gaps: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The disparity below each cut and from it up, one half-line after another."""
    below, above = [], []
    for cut in range(1, len(shares)):
        below.append(sum(shares[:cut] * gaps[:cut]) / sum(shares[:cut]))
        above.append(sum(shares[cut:] * gaps[cut:]) / sum(shares[cut:]))
    return np.array(below), np.array(above)


def as_mixture(
    weights: FloatArray, shares: FloatArray, gaps: FloatArray
) -> tuple[float, list[float]]:
    """The disparity of a rising weight as an average of half-lines', and the half-lines' own."""
    _, above = half_line_gaps(shares, gaps)
    total, mass, parts = 0.0, 0.0, []
    everyone = float(shares @ gaps)
    for step, size, gap in [
        (weights[0], 1.0, everyone),
        *(
            (weights[k] - weights[k - 1], shares[k:].sum(), above[k - 1])
            for k in range(1, len(gaps))
        ),
    ]:
        total += step * size * gap
        mass += step * size
        parts += [gap] if step > 0 else []
    return total / mass, parts


@pytest.mark.parametrize("seed", range(20))
def test_a_monotone_weight_is_a_mixture_of_half_lines(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares, gaps = rng.dirichlet(np.ones(8)), rng.normal(size=8)
    weights = np.cumsum(rng.random(8) * (rng.random(8) < 0.6)) + rng.integers(0, 2)
    if weights[-1] == 0:
        weights[-1] = 1.0
    direct = float(shares * weights @ gaps) / float(shares @ weights)
    mixed, parts = as_mixture(weights, shares, gaps)
    assert mixed == pytest.approx(direct)
    assert min(parts) - 1e-12 <= direct <= max(parts) + 1e-12


@pytest.mark.parametrize("seed", range(200))
def test_bounds_on_half_lines_bound_every_mixture(seed: int) -> None:
    """True shares differ from the estimated ones by as much as the errors allow."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 12))
    shares, gaps = rng.dirichlet(np.ones(size)), rng.normal(size=size)
    below, above = half_line_gaps(shares, gaps)
    slack = rng.exponential(0.3, (4, size - 1)) * rng.integers(0, 2)
    errors = rng.random(size - 1) * 0.05
    seen = shares.copy()
    moved = errors * rng.uniform(-1, 1, size - 1)
    # The share above each cut is off by at most its error.
    upper_tail = np.append(np.cumsum(shares[::-1])[::-1][1:], 0.0) + np.append(moved, 0.0)
    seen = -np.diff(np.concatenate([[1.0], upper_tail]))
    own = bool(rng.integers(0, 2))
    everyone = float(shares @ gaps) if own else None
    lows = HalfLines(below=below - slack[0], above=above - slack[1], everyone=everyone)
    highs = HalfLines(below=below + slack[2], above=above + slack[3], everyone=everyone)
    for _ in range(20):
        weights = np.cumsum(rng.random(size) ** rng.integers(1, 9) * rng.integers(0, 2, size))
        weights = weights[:: rng.choice([-1, 1])] + rng.integers(0, 2) * rng.random()
        if seen @ weights <= 0 or shares @ weights <= 0:
            continue
        truth = float(shares * weights @ gaps) / float(shares @ weights)
        assert lower_bound(weights, seen, errors, lows) <= truth + 1e-9
        assert upper_bound(weights, seen, errors, highs) >= truth - 1e-9


def test_one_half_line_has_its_own_bounds_and_everyone_none_of_theirs() -> None:
    shares, errors = np.array([0.5, 0.3, 0.2]), np.array([0.05, 0.05])
    halves = HalfLines(below=np.array([-0.2, -0.1]), above=np.array([-0.3, 0.2]), everyone=0.0)
    assert lower_bound(np.array([0.0, 0.0, 3.0]), shares, errors, halves) == pytest.approx(0.2)
    assert lower_bound(np.array([2.0, 0.0, 0.0]), shares, errors, halves) == pytest.approx(-0.2)
    assert lower_bound(np.ones(3), shares, errors, halves) == 0.0


def test_a_half_line_without_an_answer_takes_the_mixture_with_it() -> None:
    shares, errors = np.full(3, 1 / 3), np.full(2, 0.01)
    halves = HalfLines(below=np.array([-0.2, -0.1]), above=np.array([0.1, -np.inf]))
    assert lower_bound(np.array([0.0, 1.0, 2.0]), shares, errors, halves) == -np.inf
    assert lower_bound(np.array([0.0, 1.0, 1.0]), shares, errors, halves) == pytest.approx(0.1)
    # Everyone is made of the two half-lines at the cut where both have an answer.
    assert -0.2 <= lower_bound(np.ones(3), shares, errors, halves) < 0.1
    nothing = HalfLines(below=np.full(2, -np.inf), above=np.full(2, -np.inf))
    assert lower_bound(np.ones(3), shares, errors, nothing) == -np.inf


def test_errors_of_shares_are_those_of_weighted_and_clustered_means() -> None:
    rng = np.random.default_rng(1)
    place, weights = rng.integers(0, 3, 500), rng.exponential(size=500)
    found = share_errors(place, weights, np.ones(500), None, 2)
    for cut in (0, 1):
        inside = place > cut
        mean = np.average(inside, weights=weights)
        expected = np.sqrt(np.sum(weights**2 * (inside - mean) ** 2)) / weights.sum()
        assert found[cut] == pytest.approx(expected)
    again = np.repeat(np.arange(500), 4)
    clusters = share_errors(place[again], weights[again], np.ones(2000), again, 2)
    np.testing.assert_allclose(clusters, found)
