"""What a factor leaves out of the kernel never exceeds the allowance made for it."""

import numpy as np
import pytest

from equipoise.methods.tilts import (
    Gaussian,
    Kernel,
    Laplace,
    Method,
    RowTilts,
    TiltSample,
    audit_tilts,
    factor_kernel,
    moments_of,
)
from equipoise.methods.tilts.allowance import outside_of


@pytest.mark.parametrize("method", list(Method))
@pytest.mark.parametrize(
    ("kernel", "rank"), [(Gaussian((0.3,)), 5), (Laplace((0.5,)), 60), (Laplace((0.5,)), 20)]
)
@pytest.mark.parametrize("estimated", [False, True])
def test_what_is_left_out_never_exceeds_the_allowance(
    method: Method, kernel: Kernel, rank: int, estimated: bool
) -> None:
    rng = np.random.default_rng(3)
    x = rng.random((80, 1))
    values = x[:, 0] + rng.standard_normal(80)
    values -= values.mean()

    def audited(max_rank: int) -> tuple[float, float, float, float]:
        found = factor_kernel(kernel, x, tolerance=0.0, max_rank=max_rank)
        sample = TiltSample(
            features=found.features,
            values=values,
            influence=values if estimated else np.zeros(80),
            counts=np.ones(80),
            left=found.left,
        )
        done = audit_tilts(
            sample,
            RowTilts(sample),
            method=method,
            floor=0.01,
            resamples=60,
            seed=np.random.SeedSequence(2),
        )
        return (*done.inside.T[[0, 1]], *done.whole.T[[0, 1]])

    short, whole = audited(rank), audited(80)
    # The same resamples on the span, on the ball as bounded, and on the ball as it is.
    for end, sign in ((0, -1), (1, 1)):
        inside, bounded, truth = (sign * x for x in (short[end], short[end + 2], whole[end]))
        assert np.all(inside <= bounded)
        assert np.all(truth <= bounded * (1 + 1e-3) + 1e-12)
        if method is not Method.RESCALED:
            assert np.all(inside <= truth * (1 + 1e-3) + 1e-12)


def test_the_deviations_allowed_for_are_exceeded_once_in_a_million() -> None:
    n, left = 50, 0.02
    sample = TiltSample(
        features=np.ones((n, 1)),
        values=np.zeros(n),
        influence=np.zeros(n),
        counts=np.ones(n),
        left=np.full(n, left),
    )
    found = outside_of(sample, moments_of(sample))
    assert found is not None
    x = np.log(2e6)
    assert found.moved**2 == pytest.approx((1 + 2 * np.sqrt(x) + 2 * x) * left / n, rel=0.01)
    assert found.mean**2 == pytest.approx(left)


def test_nothing_left_out_adds_nothing() -> None:
    rng = np.random.default_rng(3)
    found = factor_kernel(Laplace((0.5,)), rng.random((30, 1)), tolerance=0.0)
    values = rng.standard_normal(30)
    sample = TiltSample(
        features=found.features,
        values=values - values.mean(),
        influence=np.zeros(30),
        counts=np.ones(30),
        left=np.zeros(30),
    )
    done = audit_tilts(
        sample,
        RowTilts(sample),
        method=Method.RESCALED,
        floor=0.01,
        resamples=40,
        seed=np.random.SeedSequence(2),
    )
    np.testing.assert_array_equal(done.inside, done.whole)


def test_the_allowance_is_small_at_the_default_tolerance() -> None:
    rng = np.random.default_rng(5)
    found = factor_kernel(Gaussian((0.2,)), rng.random((1000, 1)))
    values = rng.standard_normal(1000)
    sample = TiltSample(
        features=found.features,
        values=values - values.mean(),
        influence=np.zeros(1000),
        counts=np.ones(1000),
        left=found.left,
    )
    for method in Method:
        done = audit_tilts(
            sample,
            RowTilts(sample),
            method=method,
            floor=0.001,
            resamples=40,
            seed=np.random.SeedSequence(2),
        )
        added = np.abs(done.whole).mean() / np.abs(done.inside).mean() - 1
        assert 0 < added < 0.002
