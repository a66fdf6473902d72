"""From tails to p-values: sides, ranges, and what a range must be at either end of its width."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from equipoise.methods.hypotheses import Above, Below, Outside, TailsAt, normal_tails
from equipoise.methods.numerics import FloatArray


def binomial(k: FloatArray, n: int, theta: float) -> TailsAt:
    def tails(limit: float) -> tuple[FloatArray, FloatArray]:
        rate = np.clip(theta + limit, 0.0, 1.0)
        return np.asarray(binom.sf(k - 1, n, rate)), np.asarray(binom.cdf(k, n, rate))

    return tails


def test_one_sided_nulls_take_their_tail() -> None:
    tails = binomial(np.array([0.0, 3.0, 10.0]), 10, 0.4)
    np.testing.assert_array_equal(Above(limit=0.1).p_value(tails), tails(0.1)[0])
    np.testing.assert_array_equal(Below(limit=-0.1).p_value(tails), tails(-0.1)[1])


def test_the_range_formula_of_the_normal() -> None:
    """With t the distance outside and w the width in standard errors: Φ̄(t) + Φ̄(t + w)."""
    estimate, error = np.array([0.02, -0.05, 0.3]), 0.04

    def tails(limit: float) -> tuple[FloatArray, FloatArray]:
        return normal_tails((estimate - limit) / error)

    found = Outside(low=-0.01, high=0.01).p_value(tails)
    t, w = (np.abs(estimate) - 0.01) / error, 0.02 / error
    np.testing.assert_allclose(found, ndtr(-t) + ndtr(-(t + w)), rtol=1e-12)


def test_a_range_of_one_point_is_two_sided_and_a_wide_one_is_one_sided() -> None:
    tails = binomial(np.arange(11.0), 10, 0.4)
    point = Outside(low=0.0, high=0.0).p_value(tails)
    up, down = Above(limit=0.0).p_value(tails), Below(limit=0.0).p_value(tails)
    np.testing.assert_allclose(point, np.minimum(1, 2 * np.minimum(up, down)))
    many = binomial(np.array([2700.0]), 4000, 0.4)
    wide = Outside(low=-0.25, high=0.25).p_value(many)
    np.testing.assert_allclose(wide, Above(limit=0.25).p_value(many), rtol=1e-9)
    assert bool((Outside(low=-1.0, high=1.0).p_value(tails) >= 0.5).all())


@pytest.mark.parametrize("width", [0.0, 0.03, 0.1, 0.3])
@pytest.mark.parametrize("n", [5, 20, 60])
def test_exact_tails_keep_the_size_of_ranges(n: int, width: float) -> None:
    """The sum of two exact tails is never too small, wherever inside the range the truth is."""
    k = np.arange(n + 1.0)
    p = Outside(low=-width, high=width).p_value(binomial(k, n, 0.4))
    for rate in np.linspace(0.4 - width, 0.4 + width, 7):
        for alpha in (0.01, 0.05, 0.2):
            # two tails of at most α/2 each in the worst case of a range of no width
            assert binom.pmf(k, n, rate) @ (p <= alpha) <= alpha + 1e-12
