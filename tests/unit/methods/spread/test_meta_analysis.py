"""Estimates of meta-analysis: against their equations and each other."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import chi2, chi2_contingency

from equipoise.methods.spread import sample_from_sums
from equipoise.methods.spread.report import chi_square_test
from equipoise.methods.spread.variance import (
    cochran_q,
    dersimonian_laird,
    paule_mandel,
    q_profile_interval,
    restricted_likelihood,
    weighing_variance,
)

RNG = np.random.default_rng(8)
SIZES = np.array([40, 55, 80, 30, 120, 66])
TOTALS = np.array([9.0, 30, 33, 21, 70, 20])
SAMPLE = sample_from_sums(SIZES, TOTALS, binary=True)


def _reml_loss(between: float) -> float:
    noise = weighing_variance(SAMPLE)
    w = 1 / (noise + between)
    centre = np.average(SAMPLE.mean, weights=w)
    return float(-np.log(w).sum() + np.log(w.sum()) + (w * (SAMPLE.mean - centre) ** 2).sum())


def test_reml_is_the_minimum_of_the_restricted_likelihood() -> None:
    best = minimize_scalar(
        _reml_loss, bounds=(1e-6, 0.5), method="bounded", options={"xatol": 1e-9}
    )
    assert restricted_likelihood(SAMPLE) == pytest.approx(best.x, rel=1e-4)


def test_paule_mandel_and_q_profile_solve_their_equations() -> None:
    noise, df = weighing_variance(SAMPLE), SAMPLE.groups - 1
    goals = {"pm": df, "low": chi2.ppf(0.975, df), "high": chi2.ppf(0.025, df)}
    root = {
        k: brentq(lambda t, g=g: cochran_q(SAMPLE.mean, noise, t) - g, 0, 10)
        for k, g in goals.items()
    }
    ends = q_profile_interval(SAMPLE, 0.95)
    assert paule_mandel(SAMPLE) == pytest.approx(root["pm"], abs=1e-9)
    assert (ends.lower, ends.upper) == pytest.approx((root["low"], root["high"]), abs=1e-9)


def test_equally_precise_groups_make_all_estimators_agree() -> None:
    rows = RNG.normal(size=(6, 20))
    rows = (rows - rows.mean(1, keepdims=True)) / rows.std(1, ddof=1, keepdims=True)
    rows += np.array([0.0, 1, 2, 0.5, 1.5, 3])[:, None]
    s = sample_from_sums(np.full(6, 20), rows.sum(1), (rows**2).sum(1), binary=False)
    expected = np.var([0, 1, 2, 0.5, 1.5, 3], ddof=1) - 1 / 20
    for estimate in (dersimonian_laird(s), paule_mandel(s), restricted_likelihood(s)):
        assert estimate == pytest.approx(expected)


def test_no_spread_gives_zero_not_less() -> None:
    s = sample_from_sums(np.full(5, 40), np.array([20.0, 21, 20, 19, 20]), binary=True)
    assert (dersimonian_laird(s), paule_mandel(s), restricted_likelihood(s)) == (0, 0, 0)
    assert q_profile_interval(s, 0.95).lower == 0


def test_chi_square_test_is_pearsons() -> None:
    table = np.stack([TOTALS, SIZES - TOTALS])
    statistic, p, df, _ = chi2_contingency(table, correction=False)
    ours = chi_square_test(SAMPLE)
    assert (ours.statistic, ours.df) == pytest.approx((statistic, df))
    assert ours.p == pytest.approx(p)


def test_constant_metric_has_no_test_and_no_weights() -> None:
    s = sample_from_sums(np.array([9, 9]), np.array([9.0, 9.0]), binary=True)
    with pytest.raises(ValueError, match="no test is possible"):
        chi_square_test(s)
    with pytest.raises(ValueError, match="no weights"):
        paule_mandel(s)
