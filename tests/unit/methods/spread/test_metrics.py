"""The six meta-metrics against their definitions."""

import numpy as np
import pytest

from equipoise.methods.spread import Meta, meta_metric
from tests.unit.methods.spread import naive

MEANS = [0.31, 0.5, 0.77, 0.42]


def test_the_five_simple_ones_by_hand() -> None:
    y = np.array(MEANS)
    centre = sum(MEANS) / 4
    assert meta_metric(Meta.DIFFERENCE, y) == pytest.approx(0.46)
    assert meta_metric(Meta.RATIO, y) == pytest.approx(0.77 / 0.31)
    assert meta_metric(Meta.MAX_DEVIATION, y) == pytest.approx(0.77 - centre)
    assert meta_metric(Meta.MEAN_DEVIATION, y) == pytest.approx(
        sum(abs(v - centre) for v in MEANS) / 4
    )
    assert meta_metric(Meta.VARIANCE, y) == pytest.approx(naive.variance(MEANS))


@pytest.mark.parametrize("alpha", [-1.5, 0, 0.5, 1, 2, 3])
def test_entropy_index_by_hand(alpha: float) -> None:
    ours = meta_metric(Meta.ENTROPY, np.array(MEANS), alpha=alpha)
    assert ours == pytest.approx(naive.entropy(MEANS, alpha))


@pytest.mark.parametrize("limit", [0.0, 1.0])
def test_entropy_limits_are_approached(limit: float) -> None:
    near = [meta_metric(Meta.ENTROPY, np.array(MEANS), alpha=limit + e) for e in (1e-5, -1e-5)]
    at = meta_metric(Meta.ENTROPY, np.array(MEANS), alpha=limit)
    assert near == pytest.approx([float(at)] * 2, rel=1e-3)


def test_equal_means_have_no_spread_even_when_all_are_zero() -> None:
    for value in (0.0, 0.3):
        y = np.full(5, value)
        assert float(meta_metric(Meta.RATIO, y)) == 1.0
        others = [float(meta_metric(k, y)) for k in Meta if k is not Meta.RATIO]
        assert others == pytest.approx([0.0] * 5)


def test_a_zero_mean_makes_the_ratio_infinite_and_theil_finite() -> None:
    y = np.array([0.0, 0.5])
    assert meta_metric(Meta.RATIO, y) == np.inf
    assert meta_metric(Meta.ENTROPY, y, alpha=0) == np.inf
    assert meta_metric(Meta.ENTROPY, y, alpha=1) == pytest.approx(np.log(2))


def test_every_metric_works_along_the_last_axis() -> None:
    y = np.random.default_rng(1).uniform(0.1, 0.9, (3, 2, 5))
    for kind in Meta:
        one_by_one = [[float(meta_metric(kind, row)) for row in block] for block in y]
        assert meta_metric(kind, y) == pytest.approx(np.array(one_by_one))
