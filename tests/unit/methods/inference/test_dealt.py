"""Tails given all margins, against every way of dealing the outcomes."""

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.stats import hypergeom

from equipoise.methods import hypotheses as dealt
from equipoise.methods.hypotheses import dealt_tails


@pytest.mark.parametrize("rows", range(1, 8))
def test_tails_are_shares_of_all_deals(rows: int) -> None:
    """Every choice of the rows that hold the ones is as likely as every other."""
    for all_ones in range(rows + 1):
        deals = list(combinations(range(rows), all_ones))
        for size in range(1, rows + 1):
            inside = [sum(row < size for row in deal) for deal in deals]
            for seen in set(inside):
                up, down = dealt_tails(
                    *(np.array([float(x)]) for x in (seen, size, all_ones, rows))
                )
                assert up[0] == pytest.approx(np.mean([k >= seen for k in inside]))
                assert down[0] == pytest.approx(np.mean([k <= seen for k in inside]))


def test_permuted_outcomes_say_the_same() -> None:
    outcome, size = [1, 1, 0, 1, 0, 0], 3
    seen = sum(outcome[:size])
    counts = [sum(p[:size]) for p in permutations(outcome)]
    up, down = dealt_tails(*(np.array([float(x)]) for x in (seen, size, 3, 6)))
    assert up[0] == pytest.approx(np.mean([k >= seen for k in counts]))
    assert down[0] == pytest.approx(np.mean([k <= seen for k in counts]))


def test_many_groups_at_once_against_scipy() -> None:
    rng = np.random.default_rng(2)
    rows = rng.integers(2, 400, 50)
    size = rng.integers(1, rows)
    every = rng.integers(0, rows + 1)
    ones = np.asarray(hypergeom.rvs(rows, every, size, random_state=rng))
    k, n, of, among = (np.asarray(x, dtype=np.float64) for x in (ones, size, every, rows))
    up, down = dealt_tails(k, n, of, among)
    np.testing.assert_allclose(
        up, np.minimum(hypergeom.sf(ones - 1, rows, every, size), 1), rtol=1e-8
    )
    np.testing.assert_allclose(
        down, np.minimum(hypergeom.cdf(ones, rows, every, size), 1), rtol=1e-8
    )


def test_very_many_outcomes_are_close_to_their_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = [np.array([x]) for x in (1_030.0, 5_000.0, 4_000.0, 20_000.0)]
    exact = dealt_tails(*counts)
    monkeypatch.setattr(dealt, "WRITTEN_OUT", 10)
    np.testing.assert_allclose(dealt_tails(*counts), exact, rtol=0.01)
