"""The tilt process: closed forms against brute force, engines against each other."""

import numpy as np
import pytest

from equipoise.methods.arrays import FloatArray
from equipoise.methods.tilts import (
    Gaussian,
    Laplace,
    Method,
    NormalTilts,
    RowTilts,
    TiltSample,
    audit_tilts,
    critical_value,
    deviations,
    factor_kernel,
    make_grid,
    moments_of,
    reach_of,
    rescaled_extremes,
    signed_extremes,
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
