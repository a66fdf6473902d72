"""Estimated targets: constrained rates against numerical optimisation, ends, and type I error."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import ndtr
from scipy.stats import binom

from equipoise.methods.arrays import FloatArray, GroupSums
from equipoise.methods.published.bootstrap import (
    Complement,
    Overall,
    Reference,
    Status,
    Target,
    estimate_gaps,
    unweighted_moments,
)
from equipoise.methods.multiplicity import benjamini_hochberg
from equipoise.methods.nulls import (
    Above,
    Below,
    Contrast,
    Null,
    Outside,
    against_complement,
    against_overall,
    against_reference,
    careful_likelihood,
    constrained_rates,
    known_target,
    mid_p,
    profile_likelihood,
    profile_root,
    restricted_score,
    score_test,
)
from tests.unit.methods.bootstrap.naive import sums_of

ROWS = np.array([30.0, 12.0, 8.0, 50.0])
ONES = np.array([10.0, 9.0, 0.0, 31.0])
TABLE = np.array([[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0], [1, 1, 0, 0], [0, 1, 0, 1]], dtype=bool)
REFERENCE = np.array([True, True, False, False])


def contrasts(scale: float) -> dict[str, tuple[Contrast, Target]]:
    sums = sums_of(TABLE)
    return {
        "complement": (against_complement(ROWS, ONES, sums, scale=scale), Complement(scale=scale)),
        "overall": (against_overall(ROWS, ONES, sums, scale=scale), Overall(scale=scale)),
        "reference": (
            against_reference(ROWS, ONES, sums, REFERENCE, scale=scale),
            Reference(cells=REFERENCE, scale=scale),
        ),
    }


def log_likelihood(k: FloatArray, n: FloatArray, rate: FloatArray) -> float:
    return float(np.sum(binom.logpmf(k, n, np.clip(rate, 1e-300, 1))))


@pytest.mark.parametrize("scale", [1.0, 0.8])
@pytest.mark.parametrize("name", ["complement", "overall", "reference"])
def test_contrast_is_the_disparity_of_the_bootstrap(name: str, scale: float) -> None:
    contrast, target = contrasts(scale)[name]
    gaps = estimate_gaps(unweighted_moments(ROWS, ONES), target, sums_of(TABLE))
    kept = contrast.testable
    np.testing.assert_allclose(contrast.estimate[kept], gaps.estimate[kept])
    assert contrast.status.tolist() == gaps.status.tolist()


@pytest.mark.parametrize("limit", [-0.3, -0.05, 0.0, 0.1, 0.4])
@pytest.mark.parametrize("scale", [1.0, 0.8])
@pytest.mark.parametrize("name", ["complement", "overall", "reference"])
def test_constrained_rates_satisfy_the_constraint_and_are_stationary(
    name: str, scale: float, limit: float
) -> None:
    contrast, _ = contrasts(scale)[name]
    rates = constrained_rates(contrast, np.full(5, limit))
    for j in np.flatnonzero(contrast.testable):
        a, n, k = contrast.coefficient[:, j], contrast.rows[:, j], contrast.ones[:, j]
        used = a != 0
        if not np.minimum(a, 0).sum() < limit < np.maximum(a, 0).sum():
            continue
        assert a @ rates[:, j] == pytest.approx(limit, abs=1e-10)
        best = log_likelihood(k[used], n[used], rates[used, j])
        # moving along the constraint in any direction loses likelihood
        rng = np.random.default_rng(j)
        for _ in range(200):
            step = rng.normal(scale=10 ** rng.uniform(-6, -1), size=used.sum())
            step -= a[used] * (a[used] @ step) / (a[used] @ a[used])
            moved = rates[used, j] + step
            if np.all((moved >= 0) & (moved <= 1)):
                assert log_likelihood(k[used], n[used], moved) <= best + 1e-9


@pytest.mark.parametrize("limit", [-0.2, 0.0, 0.15])
def test_profile_of_two_binomials_against_a_numerical_search(limit: float) -> None:
    contrast, _ = contrasts(1.0)["complement"]
    root = profile_root(contrast, limit)
    for j in range(5):
        n, k = contrast.rows[:, j], contrast.ones[:, j]

        def lost(theta: float, n: FloatArray = n, k: FloatArray = k) -> float:
            return -log_likelihood(k, n, np.array([theta + limit, theta]))

        ends = max(0.0, -limit) + 1e-12, min(1.0, 1 - limit) - 1e-12
        found = minimize_scalar(lost, bounds=ends, method="bounded", options={"xatol": 1e-12})
        ratio = 2 * (found.fun + log_likelihood(k, n, k / n))
        assert root[j] ** 2 == pytest.approx(max(ratio, 0), abs=1e-5)
        assert np.sign(root[j]) == np.sign(contrast.estimate[j] - limit)


def test_overall_is_the_rest_at_a_stretched_limit() -> None:
    overall, rest = contrasts(1.0)["overall"][0], contrasts(1.0)["complement"][0]
    share = overall.rows[0] / ROWS.sum()
    for j in range(5):
        a = profile_root(overall, 0.03)[j]
        b = profile_root(rest, 0.03 / (1 - share[j]))[j]
        assert a == pytest.approx(b, rel=1e-7)


def test_score_at_zero_is_the_pooled_z_test() -> None:
    contrast, _ = contrasts(1.0)["complement"]
    n, k = contrast.rows, contrast.ones
    pooled = k.sum(axis=0) / n.sum(axis=0)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n).sum(axis=0))
    np.testing.assert_allclose(restricted_score(contrast, 0.0), contrast.estimate / error)


def test_overlapping_reference_counts_shared_rows_once() -> None:
    """R against a group inside R is that group against all of R, with R as the population."""
    inside = against_reference(ROWS, ONES, sums_of(TABLE[:1]), REFERENCE)
    alone = against_overall(ROWS[:2], ONES[:2], lambda x: x[..., :1])
    np.testing.assert_allclose(profile_root(inside, 0.02), profile_root(alone, 0.02))


def test_p_values_from_each_null() -> None:
    contrast, _ = contrasts(1.0)["overall"]
    z = profile_root(contrast, 0.05)
    np.testing.assert_allclose(profile_likelihood(contrast, Above(limit=0.05)), ndtr(-z))
    np.testing.assert_allclose(profile_likelihood(contrast, Below(limit=0.05)), ndtr(z))
    two = profile_likelihood(contrast, Outside(low=0.05, high=0.05))
    np.testing.assert_allclose(two, 2 * ndtr(-np.abs(z)))
    low, high = restricted_score(contrast, -0.05), restricted_score(contrast, 0.05)
    t = np.maximum(high, -low)
    expected = ndtr(-t) + ndtr(-(t + low - high))
    np.testing.assert_allclose(score_test(contrast, Outside(low=-0.05, high=0.05)), expected)


def identity(x: FloatArray, /) -> FloatArray:
    return x


@pytest.mark.parametrize("test", [profile_likelihood, score_test])
def test_degenerate_groups(test: object) -> None:
    assert callable(test)
    rows, ones = np.array([0.0, 1.0, 5.0, 5.0]), np.array([0.0, 1.0, 0.0, 5.0])
    c = against_overall(rows, ones, identity)
    assert c.status.tolist() == [Status.EMPTY, Status.SINGLE, Status.OK, Status.OK]
    p = test(c, Above(limit=0.0))
    assert np.isnan(p).tolist() == [True, False, False, False]
    assert p[3] < 0.05 < 0.95 < p[2]
    everybody = against_overall(rows, ones, lambda x: x.sum(axis=-1, keepdims=True))
    assert everybody.status.tolist() == [Status.IDENTICAL]
    assert np.isnan(test(everybody, Above(limit=0.0))).all()
    alone = against_complement(rows, ones, lambda x: x.sum(axis=-1, keepdims=True))
    assert alone.status.tolist() == [Status.NO_TARGET]
    nobody = against_reference(rows, ones, identity, np.array([True, False, False, False]))
    assert set(nobody.status[1:].tolist()) == {Status.NO_TARGET}
    # limits no disparity can pass, and limits every disparity passes, and constant metrics
    assert np.all(test(c, Above(limit=3.0))[1:] >= 0.5)
    assert np.all(test(c, Below(limit=-3.0))[1:] >= 0.5)
    for value in (0.0, 1.0):
        flat = against_overall(rows, rows * value, identity)
        assert np.all(test(flat, Outside(low=0.0, high=0.0))[1:] == 1.0)


def intersections(shape: tuple[int, int, int]) -> GroupSums:
    """All groups formed by fixing some of three attributes."""
    size = int(np.prod(shape))
    cells = np.array(np.unravel_index(np.arange(size), shape)).T
    choices = np.stack(np.meshgrid(*[np.arange(-1, s) for s in shape], indexing="ij"), -1)
    wanted = [c for c in choices.reshape(-1, 3) if np.any(c >= 0)]
    return sums_of(np.array([[all((c < 0) | (c == x)) for x in cells] for c in wanted]))


@pytest.mark.parametrize("null", [Above(limit=0.0), Outside(low=0.0, high=0.0)])
def test_type_one_error_in_a_null_world_of_overlapping_groups(null: Null) -> None:
    """Nothing is wrong; 250 worlds, BH at 5 %: up to the 1 − 1e-5 quantile of nominal."""
    rng = np.random.default_rng(2024)
    sums = intersections((5, 2, 3))
    share = rng.dirichlet(np.full(30, 0.4))
    alarms = np.zeros(3)
    for _ in range(250):
        rows = rng.multinomial(500, share).astype(float)
        ones = rng.binomial(rows.astype(int), 0.3).astype(float)
        contrast = against_overall(rows, ones, sums)
        n, k = sums(rows), sums(ones)
        p = (
            profile_likelihood(contrast, null),
            score_test(contrast, null),
            known_target(k, n, np.full(n.shape, 0.3), null, mid_p),
        )
        alarms += [np.nanmin(benjamini_hochberg(x)) <= 0.05 for x in p]
    assert np.all(alarms <= binom.ppf(1 - 1e-5, 250, 0.05))


def test_a_planted_gap_is_found() -> None:
    rng = np.random.default_rng(7)
    rows = np.full(10, 400.0)
    ones = np.asarray(rng.binomial(400, np.array([0.5] + [0.3] * 9)), dtype=float)
    for test in (profile_likelihood, score_test):
        p = benjamini_hochberg(test(against_overall(rows, ones, identity), Above(limit=0.05)))
        assert (p <= 0.05).tolist() == [True] + [False] * 9


@pytest.mark.parametrize(
    "null",
    [Above(limit=0.05), Below(limit=-0.02), Outside(low=0, high=0), Outside(low=-0.1, high=0.1)],
)
def test_the_careful_p_value_is_never_below_that_of_the_likelihood(null: Null) -> None:
    rng = np.random.default_rng(5)
    rows = rng.integers(1, 40, 30).astype(float)
    ones = rng.binomial(rows.astype(int), 0.3).astype(np.float64)
    contrast = against_complement(rows, ones, lambda x: x)
    assert np.all(careful_likelihood(contrast, null) >= profile_likelihood(contrast, null))


def test_the_careful_p_value_counts_the_outcomes_of_two_rows() -> None:
    contrast = against_complement(np.array([2.0, 500.0]), np.array([2.0, 250.0]), lambda x: x)
    # under equality the rates are pooled; two-sided mid-p of 2 of 2 is then twice rate² / 2
    found = careful_likelihood(contrast, Outside(low=0.0, high=0.0))[0]
    assert found == pytest.approx((252 / 502) ** 2)
    assert found > 2 * profile_likelihood(contrast, Outside(low=0.0, high=0.0))[0]
