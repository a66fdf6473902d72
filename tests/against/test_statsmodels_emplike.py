"""Empirical likelihood of means against statsmodels.emplike, to 1e-8 where that has an answer.

It has none outside the range of the data (NaN with a warning, where the likelihood ratio is
infinite), none for groups of identical rows, none for counts, and none for the adjusted likelihood;
its intervals stop at a tolerance of their own, about 1e-8. Dependent means it cannot test at all:
its matrix is singular there.
"""

import warnings
from typing import Any

import numpy as np
import pytest

from equipoise.methods.published.likelihood import mean_interval, segments
from equipoise.methods.published.likelihood.mean import joint_ratio, mean_ratio

descriptive = pytest.importorskip("statsmodels.emplike.descriptive")
CUT = 1.959963984540054


def quietly(call: Any, *given: Any, **named: Any) -> Any:
    """A call whose announcements of later versions are not ours to heed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*given, **named)


@pytest.mark.parametrize("value", [0.6, 0.9, 1.0, 1.2, 1.5])
@pytest.mark.parametrize("seed", range(5))
def test_one_mean(seed: int, value: float) -> None:
    x = np.random.default_rng(seed).exponential(size=40)
    theirs = quietly(descriptive.DescStat(x).test_mean, value)
    ours = mean_ratio(segments([x]), np.array([value])).statistic[0]
    assert ours == pytest.approx(theirs[0], abs=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_the_interval_of_a_mean(seed: int) -> None:
    x = np.random.default_rng(seed).exponential(size=40)
    theirs = quietly(descriptive.DescStat(x).ci_mean, sig=0.05)
    low, high = mean_interval(segments([x]), CUT)
    assert (low[0], high[0]) == pytest.approx(theirs, abs=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_two_means_together(seed: int) -> None:
    x = np.random.default_rng(seed).exponential(size=(60, 2))
    at = x.mean(axis=0) + np.array([0.1, -0.1])
    theirs = quietly(descriptive.DescStat(x).mv_test_mean, at)
    ours = joint_ratio(x - at, adjusted=False).statistic
    assert ours == pytest.approx(theirs[0], abs=1e-8)


def test_where_it_has_no_answer() -> None:
    x = np.random.default_rng(1).exponential(size=40)
    outside = x.max() + 1
    assert np.isnan(quietly(descriptive.DescStat(x).test_mean, outside)[0])
    assert np.isinf(mean_ratio(segments([x]), np.array([outside])).statistic[0])
