"""What a group of a given size could show at most, against a search over all its outcomes."""

import numpy as np
import pytest
from scipy.stats import binom

from equipoise.methods.hypotheses import Above, Below, Null, Outside, smallest_reachable
from equipoise.methods.numerics import FloatArray


def exact(k: FloatArray, n: float, theta: float, null: Null) -> FloatArray:
    def tails(limit: float) -> tuple[FloatArray, FloatArray]:
        rate = np.clip(theta + limit, 0.0, 1.0)
        return np.asarray(binom.sf(k - 1, n, rate)), np.asarray(binom.cdf(k, n, rate))

    return null.p_value(tails)


@pytest.mark.parametrize("alpha", [0.02, 0.2])
@pytest.mark.parametrize(
    "null", [Above(limit=0.05), Below(limit=-0.05), Outside(low=-0.05, high=0.1)]
)
def test_reachable_is_the_best_of_all_outcomes(null: Null, alpha: float) -> None:
    n = np.array([0.0, 1.0, 2.0, 4.0, 9.0, 30.0, 77.0, 500.0])
    found = smallest_reachable(n, np.full(n.size, 0.35), null, alpha=alpha)
    assert np.isnan(found.smallest_p[0])
    for j in range(1, n.size):
        k = np.arange(n[j] + 1)
        p = exact(k, n[j], 0.35, null)
        assert found.smallest_p[j] == pytest.approx(p.min())
        shown = k[p <= alpha] / n[j] - 0.35
        up, down = shown[shown > 0], shown[shown < 0]
        above, below = found.disparity_above[j], found.disparity_below[j]
        assert np.isnan(above) if up.size == 0 else above == pytest.approx(up.min())
        assert np.isnan(below) if down.size == 0 else below == pytest.approx(down.max())


def test_a_p_value_equal_to_the_level_is_reached() -> None:
    # two or three of three have a chance of exactly one half
    found = smallest_reachable(np.array([3.0]), np.array([0.5]), Above(limit=0.0), alpha=0.5)
    assert found.smallest_p.tolist() == [0.125]
    assert found.disparity_above[0] == pytest.approx(2 / 3 - 0.5)
