"""The tilt process: closed forms against brute force, engines against each other."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from equipoise.methods.numerics import FloatArray
from equipoise.methods.tilts import (
    Gaussian,
    Laplace,
    Method,
    NormalTilts,
    RowTilts,
    TiltSample,
    audit_tilts,
    critical_at,
    critical_table,
    critical_value,
    factor_kernel,
)
from equipoise.methods.tilts.audit import reach_of, rescaled_extremes, signed_extremes
from equipoise.methods.tilts.draws import (
    deviations,
    make_grid,
    moments_of,
    scale_of,
    unscaled_extremes,
)
from tests.unit.methods.tilts import naive

N = 40


def rows_of(rng: np.random.Generator, sample: TiltSample, size: int) -> FloatArray:
    """Frequencies as the engine draws them."""
    return np.array(
        [np.bincount(rng.integers(0, N, N), minlength=N) for _ in range(size)], dtype=float
    )


@pytest.mark.parametrize("estimated", [False, True])
@pytest.mark.parametrize("kernel", [Gaussian((0.3,)), Laplace((0.5,))])
def test_unscaled_extremes_equal_dense_eigenvalues(estimated: bool, kernel: Gaussian) -> None:
    rng = np.random.default_rng(5)
    x = rng.random((N, 1))
    sample = naive.small_sample(
        rng, N, factor_kernel(kernel, x, tolerance=0.0).features, estimated=estimated
    )
    drawn = RowTilts(sample).draw(np.random.default_rng(6), 12)
    weights = rows_of(np.random.default_rng(6), sample, 12)
    k = kernel.block(x, x)
    expected = [naive.unscaled(k, sample.values + 7.0, w, sample.influence) for w in weights]
    found = unscaled_extremes(moments_of(sample), drawn)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("estimated", [False, True])
def test_no_function_of_the_ball_exceeds_the_extremes(estimated: bool) -> None:
    rng = np.random.default_rng(7)
    x = rng.random((N, 1))
    kernel = Gaussian((0.3,))
    features = factor_kernel(kernel, x, tolerance=0.0).features
    sample = naive.small_sample(rng, N, features, estimated=estimated)
    weights = rows_of(np.random.default_rng(8), sample, 1)[0]
    drawn = RowTilts(sample).draw(np.random.default_rng(8), 1)
    low, high = unscaled_extremes(moments_of(sample), drawn)[0]
    tried = rng.standard_normal((20_000, features.shape[1]))
    tried /= np.linalg.norm(tried, axis=1, keepdims=True)
    values = [
        naive.process(sample.values, weights, sample.influence, h) for h in tried @ features.T
    ]
    assert low <= min(values)
    assert max(values) <= high
    assert max(values) > 0.2 * high


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_few_dimensions_are_no_special_case(rank: int) -> None:
    rng = np.random.default_rng(9)
    sample = naive.small_sample(rng, N, rng.standard_normal((N, rank)), estimated=True)
    drawn = RowTilts(sample).draw(np.random.default_rng(1), 3)
    weights = rows_of(np.random.default_rng(1), sample, 3)
    k = sample.features @ sample.features.T
    expected = [naive.unscaled(k, sample.values, w, sample.influence) for w in weights]
    np.testing.assert_allclose(
        unscaled_extremes(moments_of(sample), drawn), expected, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("estimated", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rescaled_suprema_equal_brute_force(estimated: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.random((N, 1))
    features = factor_kernel(Gaussian((0.4,)), x, max_rank=4).features
    sample = naive.small_sample(rng, N, features, estimated=estimated)
    moments = moments_of(sample)
    drawn = RowTilts(sample).draw(np.random.default_rng(seed), 1)
    grid, reach = make_grid(moments, 0.01), reach_of(sample, moments)
    best = naive.largest(naive.ratio(moments, drawn, 0.01, reach), 4, rng)
    found = rescaled_extremes(grid, moments, reach, drawn)[0, 1]
    assert best <= found <= best * (1 + 1e-3)
    best = naive.largest(naive.ratio(moments, drawn, 0.01, None), 4, rng)
    found = signed_extremes(grid, moments, drawn)[0, 1]
    assert best <= found <= best * (1 + 1e-3)


def test_the_lower_end_is_the_upper_end_of_the_mirrored_metric() -> None:
    rng = np.random.default_rng(4)
    features = factor_kernel(Gaussian((0.2,)), rng.random((N, 1))).features
    sample = naive.small_sample(rng, N, features, estimated=True)
    mirrored = TiltSample(
        features=features,
        values=-sample.values,
        influence=-sample.influence,
        counts=sample.counts,
        paired=sample.paired,
    )
    for method in Method:
        ends = []
        for each in (sample, mirrored):
            found = audit_tilts(
                each,
                RowTilts(each),
                method=method,
                floor=0.001,
                resamples=40,
                seed=np.random.SeedSequence(3),
            )
            ends.append(found.draws)
        np.testing.assert_allclose(ends[0], -ends[1][:, ::-1], rtol=1e-9, atol=1e-12)


def test_a_tilt_of_the_span_keeps_the_average_metric_within_reach() -> None:
    rng = np.random.default_rng(11)
    features = factor_kernel(Gaussian((0.3,)), rng.random((200, 1))).features
    sample = naive.small_sample(rng, 200, features, estimated=False)
    moments = moments_of(sample)
    low, high = reach_of(sample, moments)
    assert high - low < np.ptp(sample.values)
    # Gaussian sections are positive, and so are their mixtures.
    for _ in range(200):
        h = features @ (features.T @ (rng.random(200) ** 20))
        assert h.min() >= -1e-9 * h.max()
        assert low - 1e-6 <= np.mean(sample.values * h) / np.mean(h) <= high + 1e-6


def test_moments_have_the_covariance_of_resampled_rows() -> None:
    rng = np.random.default_rng(12)
    sample = naive.small_sample(rng, N, rng.standard_normal((N, 3)), estimated=True)
    joined = np.column_stack(
        [sample.features, sample.features * sample.values[:, None], sample.influence]
    )
    expected = np.cov(joined.T, bias=True) / N
    for engine, size in ((NormalTilts(sample), 60_000), (RowTilts(sample), 60_000)):
        drawn = engine.draw(np.random.default_rng(1), size)
        both = np.column_stack([drawn.mean, drawn.cross, drawn.target])
        error = np.abs(np.cov(both.T) - expected)
        scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
        assert (error / scale).max() < 0.03


@pytest.mark.parametrize("number", [20, 333, 1000, 1777, 5000])
def test_a_table_of_critical_values_is_never_optimistic(number: int) -> None:
    rng = np.random.default_rng(number)
    ends = np.sort(rng.standard_normal((number, 2)) * 10.0 ** rng.integers(-6, 6), axis=1)
    levels = [*rng.random(50), 0.9, 0.95, 0.99, 0.999, 0.9999]
    for side in ("lower", "upper", "both"):
        table = critical_table(ends, side)
        assert len(table) == min(number, 1000)
        assert list(table) == sorted(table)
        for level in levels:
            read, exact = critical_at(table, level), critical_value(ends, level, side)
            most = critical_value(ends, min(level + 1 / len(table), 1.0), side)
            assert exact <= read <= most + 1e-5 * abs(most), (side, level)


def test_moments_and_rows_agree_on_critical_values() -> None:
    rng = np.random.default_rng(13)
    features = factor_kernel(Gaussian((0.3,)), rng.random((2000, 1))).features
    sample = naive.small_sample(rng, 2000, features, estimated=True)
    for method in (Method.RESCALED, Method.UNSCALED):
        found = [
            critical_value(
                audit_tilts(
                    sample,
                    engine,
                    method=method,
                    floor=0.001,
                    resamples=1500,
                    seed=np.random.SeedSequence(1),
                ).draws,
                0.9,
                "both",
            )
            for engine in (RowTilts(sample), NormalTilts(sample))
        ]
        assert found[0] == pytest.approx(found[1], rel=0.06)


def test_counts_are_repeated_rows_and_clusters_move_together() -> None:
    rng = np.random.default_rng(14)
    features, values = rng.standard_normal((6, 2)), rng.standard_normal(6)
    counts = np.array([3.0, 1, 2, 5, 1, 4])
    mean = counts @ values / counts.sum()
    merged = TiltSample(
        features=features,
        values=values - mean,
        influence=np.zeros(6),
        counts=counts,
        paired=np.ones(6),
    )
    again = np.repeat(np.arange(6), counts.astype(int))
    single = TiltSample(
        features=features[again],
        values=values[again] - mean,
        influence=np.zeros(16),
        counts=np.ones(16),
        paired=np.ones(16),
    )
    for name in ("mean", "cross", "second", "centred"):
        np.testing.assert_allclose(
            getattr(moments_of(merged), name), getattr(moments_of(single), name), atol=1e-14
        )
    drawn = [RowTilts(s).draw(np.random.default_rng(2), 20) for s in (merged, single)]
    np.testing.assert_allclose(drawn[0].cross, drawn[1].cross, atol=1e-13)
    alone = TiltSample(
        features=features,
        values=values - mean,
        influence=np.zeros(6),
        counts=counts,
        paired=np.ones(6),
        clusters=np.zeros(6, dtype=np.int64),
    )
    assert np.abs(RowTilts(alone).draw(np.random.default_rng(2), 20).cross).max() == 0


def test_draws_do_not_depend_on_how_many_are_asked_for() -> None:
    rng = np.random.default_rng(15)
    sample = naive.small_sample(rng, N, rng.standard_normal((N, 3)), estimated=False)
    seed = np.random.SeedSequence(5)
    for engine in (RowTilts(sample), NormalTilts(sample)):
        few, many = (
            np.concatenate([d.mean for d in deviations(engine, resamples=size, seed=seed)])
            for size in (64, 100)
        )
        assert len(many) == 100
        np.testing.assert_array_equal(few, many[:64])


def test_progress_is_told_and_ends_at_the_total() -> None:
    rng = np.random.default_rng(15)
    sample = naive.small_sample(rng, N, rng.standard_normal((N, 3)), estimated=False)
    seen: list[int] = []
    seed = np.random.SeedSequence(5)
    list(deviations(RowTilts(sample), resamples=70, seed=seed, progress=seen.append))
    assert seen == [32, 64, 70]


def weighted_sample(rng: np.random.Generator, paired: str) -> TiltSample:
    """Rows with sampling weights, against everyone or against a group of them."""
    x, weights = rng.random((N, 1)), rng.exponential(size=N)
    weights /= weights.mean()
    loss = x[:, 0] + rng.exponential(size=N)
    inside = np.ones(N) if paired == "everyone" else (x[:, 0] > 0.4) * 1.0
    r = weights * inside / np.mean(weights * inside)
    values = loss - np.mean(weights * loss)
    group = np.stack([np.ones(N), inside], axis=1)
    features = np.concatenate([group, factor_kernel(Gaussian((0.3,)), x).features], axis=1)
    return TiltSample(
        features=features * weights[:, None],
        values=values,
        influence=r * (values - np.mean(r * values)),
        counts=np.ones(N),
        paired=r,
    )


@pytest.mark.parametrize("paired", ["everyone", "group"])
@pytest.mark.parametrize("engine", [RowTilts, NormalTilts])
def test_a_tilt_that_is_the_target_never_moves(paired: str, engine: Any) -> None:
    sample = weighted_sample(np.random.default_rng(21), paired)
    moments = moments_of(sample)
    drawn = engine(sample).draw(np.random.default_rng(1), 50)
    tilt = np.zeros(sample.rank)
    tilt[0 if paired == "everyone" else 1] = 1.0
    moved = (drawn.cross - drawn.target[:, None] * moments.mean) @ tilt
    # Normal draws go through the root of a covariance, which leaves half the digits.
    assert np.abs(moved).max() < 1e-8
    assert np.abs(drawn.mean @ tilt).max() < 1e-8
    assert abs(tilt @ moments.centred @ tilt) < 1e-12
    # ... while others do.
    assert np.abs(drawn.mean[:, 2:]).max() > 1e-3


@pytest.mark.parametrize("paired", ["everyone", "group"])
def test_what_is_taken_off_the_deviations_changes_no_process(paired: str) -> None:
    sample = weighted_sample(np.random.default_rng(22), paired)
    plain = dataclasses.replace(sample, paired=np.zeros(N))
    ends = [
        unscaled_extremes(moments_of(each), RowTilts(each).draw(np.random.default_rng(2), 30))
        for each in (sample, plain)
    ]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-12)


@pytest.mark.parametrize("paired", ["everyone", "group"])
def test_the_form_behind_the_scale_is_a_mean_square(paired: str) -> None:
    rng = np.random.default_rng(23)
    sample = dataclasses.replace(weighted_sample(rng, paired), apart=0.3)
    centred = moments_of(sample).centred
    for _ in range(20):
        beta = rng.standard_normal(sample.rank)
        h = sample.features @ beta
        square = np.mean((h - h.mean() * sample.paired) ** 2) + 0.3 * h.mean() ** 2
        assert beta @ centred @ beta == pytest.approx(square)


@pytest.mark.parametrize("r", [0.0, 0.8, 1.0])
def test_the_least_form_of_the_grid_is_the_scale(r: float) -> None:
    """Near constants too, where the best τ is close to zero."""
    rng = np.random.default_rng(24)
    features = factor_kernel(Gaussian((3.0,)), rng.random((N, 1))).features
    values = rng.standard_normal(N)
    sample = TiltSample(
        features=features,
        values=values - values.mean(),
        influence=r * (values - values.mean()),
        counts=np.ones(N),
        paired=np.full(N, r),
    )
    moments = moments_of(sample)
    grid = make_grid(moments, 0.003)
    constant = np.linalg.lstsq(features, np.ones(N), rcond=None)[0]
    for size in 10.0 ** np.arange(-8, 2):
        beta = constant + size * rng.standard_normal(len(constant))
        h = features @ beta
        square = float(np.mean((h - r * h.mean()) ** 2))
        scale = float(scale_of(float(h.mean()), square, float(beta @ beta), 0.003))
        forms = (grid.tau * h.mean() ** 2 + square / grid.tau) / 2 + 0.003 * beta @ beta
        assert scale * (1 - 1e-9) <= forms.min() <= scale * (1 + 6e-4)


def test_a_skewed_metric_gets_a_longer_tail_where_it_needs_one() -> None:
    """Too low an average of a metric with a long right tail comes with too small a spread."""
    rng = np.random.default_rng(25)
    values = rng.exponential(size=200)
    sample = TiltSample(
        features=np.ones((200, 1)),
        values=values - values.mean(),
        influence=np.zeros(200),
        counts=np.ones(200),
        paired=np.zeros(200),
    )
    drawn = RowTilts(sample).draw(np.random.default_rng(3), 4000)
    again = [np.std(values[rng.integers(0, 200, 200)]) / np.std(values) for _ in range(2000)]
    assert drawn.spread.mean() == pytest.approx(np.mean(again), rel=0.02)
    assert np.corrcoef(drawn.spread, drawn.cross[:, 0])[0, 1] > 0.5
    found = audit_tilts(
        sample,
        RowTilts(sample),
        method=Method.RESCALED,
        floor=0.001,
        resamples=2000,
        seed=np.random.SeedSequence(4),
    )
    upper, lower = (critical_value(found.draws, 0.95, side) for side in ("upper", "lower"))
    assert upper > 1.1 * lower
