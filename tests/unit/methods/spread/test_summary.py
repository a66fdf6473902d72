"""Summaries of a spread: bias, intervals, outcomes, coverage."""

import numpy as np
import pytest

from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.spread import (
    Meta,
    SpreadOutcome,
    bootstrap_draws,
    meta_metric,
    report_variance,
    sample_from_sums,
    sample_variance,
    summarize_spread,
    weigh,
)
from equipoise.methods.spread.equality import spreading_path
from equipoise.methods.spread.recommended import recommended_interval


def _coverage(size: IntArray, rate: FloatArray, worlds: int, seed: int) -> int:
    rng = np.random.default_rng(seed)
    truth, hits = float(np.var(rate, ddof=1)), 0
    for _ in range(worlds):
        sample = sample_from_sums(size, rng.binomial(size, rate).astype(float), binary=True)
        draws = bootstrap_draws(sample, 300, rng)
        evidence = weigh(sample, level=0.95, resamples=300, rng=rng)
        ends = recommended_interval(sample, Meta.VARIANCE, evidence, draws)
        assert ends is not None
        hits += ends.lower - 1e-15 <= truth <= ends.upper
    return hits


SIZES = np.array([20, 40, 60, 130, 400])


def test_variance_interval_covers_zero_at_its_nominal_97_5() -> None:
    hits = _coverage(SIZES, np.full(5, 0.6), 400, 17)
    assert 377 <= hits <= 400  # binomial(400, 0.975), false alarm below 1e-3 on the low side


def test_variance_interval_covers_a_positive_spread() -> None:
    hits = _coverage(SIZES, np.array([0.3, 0.5, 0.6, 0.75, 0.7]), 400, 18)
    assert 362 <= hits <= 396  # binomial(400, 0.95), false alarm below 1e-3


def test_real_metric_covers_zero_and_a_spread() -> None:
    rng = np.random.default_rng(19)
    for centre in (np.zeros(6), np.array([0.0, 0.5, 1, 0.2, 0.7, 0.4])):
        truth, hits = float(np.var(centre, ddof=1)), 0
        for _ in range(150):
            rows = [
                rng.normal(c, 1, n) for c, n in zip(centre, (20, 25, 30, 60, 25, 40), strict=True)
            ]
            sums = [
                np.array([f(r) for r in rows]) for f in (np.size, np.sum, lambda r: (r**2).sum())
            ]
            sample = sample_from_sums(sums[0].astype(int), sums[1], sums[2], binary=False)
            draws = bootstrap_draws(sample, 200, rng)
            evidence = weigh(sample, level=0.95, resamples=200, rng=rng)
            ends = recommended_interval(sample, Meta.VARIANCE, evidence, draws)
            assert ends is not None
            hits += ends.lower <= truth <= ends.upper
        assert hits >= 129  # binomial(150, 0.95), false alarm below 1e-4


def test_the_interval_leaves_zero_only_with_its_test() -> None:
    apart = sample_from_sums(np.full(4, 90), np.array([20.0, 40, 60, 80]), binary=True)
    alike = sample_from_sums(np.full(4, 90), np.array([44.0, 40, 46, 42]), binary=True)
    for sample, excluded in ((apart, True), (alike, False)):
        r = report_variance(sample, rng=np.random.default_rng(1), resamples=500)
        assert (r.interval.lower > 0) is excluded
        assert (r.p_zero <= 0.025) is excluded
        assert r.sd_interval.upper == pytest.approx(np.sqrt(r.interval.upper))
    assert r.interval.raw_lower < 0


def test_tiny_groups_do_not_hide_a_spread_that_large_groups_show() -> None:
    size = np.concatenate([np.full(4, 3000), np.full(12, 2)])
    total = np.concatenate([np.array([300.0, 900, 1500, 2100]), np.zeros(12)])
    r = report_variance(
        sample_from_sums(size, total, binary=True), rng=np.random.default_rng(1), resamples=500
    )
    assert r.interval.lower > 0
    assert r.p_zero <= 0.025


@pytest.mark.parametrize("kind", list(Meta))
def test_correction_removes_most_of_the_bias_when_nothing_differs(kind: Meta) -> None:
    rng = np.random.default_rng(23)
    size, rate = np.full(25, 60), np.full(25, 0.7)
    plain, fixed = [], []
    for _ in range(150):
        sample = sample_from_sums(size, rng.binomial(size, rate).astype(float), binary=True)
        s = summarize_spread(sample, kind, rng=rng, resamples=150)
        zero = float(kind is Meta.RATIO)
        assert s.bias is not None
        assert s.corrected_raw is not None
        plain.append(s.plugin - zero)
        fixed.append(s.plugin - s.bias - zero)
        assert s.interval is not None
        ends = s.interval.lower, s.interval.upper
        assert s.corrected == np.clip(max(s.corrected_raw, zero), *ends)
    assert abs(np.mean(fixed)) < 0.2 * np.mean(plain)


def test_the_path_starts_at_the_pooled_mean_and_has_unit_spread() -> None:
    sample = sample_from_sums(np.array([10, 90]), np.array([1.0, 59.0]), binary=True)
    path = spreading_path(sample)
    assert path.at(0.0).tolist() == pytest.approx([0.6, 0.6])
    assert np.var(path.at(0.1), ddof=1) == pytest.approx(0.01)
    assert path.at(99.0).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("kind", list(Meta))
def test_constant_metric_has_a_stated_outcome(kind: Meta) -> None:
    sample = sample_from_sums(np.array([30, 40]), np.array([30.0, 40.0]), binary=True)
    s = summarize_spread(sample, kind, rng=np.random.default_rng(1), resamples=50)
    assert s.outcome is SpreadOutcome.CONSTANT
    assert s.plugin == float(kind is Meta.RATIO)
    if kind in (Meta.VARIANCE, Meta.ENTROPY):
        assert s.interval is None
    else:
        # Thirty rows without a failure do not prove that failures never happen.
        assert s.interval is not None
        assert s.interval.upper > s.interval.lower == float(kind is Meta.RATIO)


def test_real_metric_constant_within_groups_is_refused() -> None:
    with pytest.raises(ValueError, match="all alike"):
        sample_from_sums(
            np.array([40, 40]), np.array([80.0, 120.0]), np.array([160.0, 360.0]), binary=False
        )


def test_infinite_ratio_is_said_and_still_bounded_below() -> None:
    sample = sample_from_sums(np.array([60, 60]), np.array([0.0, 40.0]), binary=True)
    s = summarize_spread(sample, Meta.RATIO, rng=np.random.default_rng(1), resamples=50)
    assert s.outcome is SpreadOutcome.INFINITE
    assert (s.bias, s.corrected) == (None, None)
    assert s.interval is not None
    assert s.interval.lower > 1


def test_negative_means_have_no_ratio() -> None:
    sample = sample_from_sums(
        np.array([40, 40]), np.array([-80.0, 120.0]), np.array([200.0, 400.0]), binary=False
    )
    with pytest.raises(ValueError, match="not negative"):
        summarize_spread(sample, Meta.RATIO, rng=np.random.default_rng(1))


def test_same_seed_same_answer_and_levels_nest() -> None:
    sample = sample_from_sums(np.full(4, 90), np.array([20.0, 40, 60, 80]), binary=True)
    one, two = (report_variance(sample, rng=np.random.default_rng(3), resamples=300) for _ in "ab")
    assert one == two
    wide = report_variance(sample, rng=np.random.default_rng(3), resamples=300, level=0.99)
    assert wide.interval.lower < one.interval.lower < one.interval.upper < wide.interval.upper
    with pytest.raises(ValueError, match="between 0 and 1"):
        report_variance(sample, rng=np.random.default_rng(3), level=95)


def test_corrected_variance_is_what_the_summary_reports() -> None:
    sample = sample_from_sums(np.full(4, 90), np.array([20.0, 40, 60, 80]), binary=True)
    s = summarize_spread(sample, Meta.VARIANCE, rng=np.random.default_rng(3), resamples=50)
    assert s.corrected_raw == sample_variance(sample)
    assert s.plugin == pytest.approx(float(meta_metric(Meta.VARIANCE, sample.mean)))
