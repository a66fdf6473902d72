"""A small group beside a large one: ends that its own rows cannot give are not given."""

import numpy as np
import pytest

from equipoise.methods.spread import Meta, sample_from_sums, summarize_spread, weigh
from equipoise.methods.spread.compare import compare_models
from equipoise.methods.spread.equality import pair_distance


def found(n: list[int], ones: list[float], kind: Meta) -> tuple[float, float]:
    sample = sample_from_sums(np.array(n), np.array(ones), binary=True)
    rng = np.random.default_rng(1)
    spread = summarize_spread(
        sample, kind, rng=rng, evidence=weigh(sample, level=0.95, resamples=400, rng=rng)
    )
    assert spread.interval is not None
    return spread.interval.lower, spread.interval.upper


def test_three_of_twelve_beside_two_percent_shows_little() -> None:
    # Clopper and Pearson: three of twelve may be as few as 5.5 %
    low, high = found([3000, 12], [60.0, 3.0], Meta.DIFFERENCE)
    assert 0.02 < low < 0.04
    assert 0.5 < high < 0.6
    assert found([3000, 12], [60.0, 3.0], Meta.VARIANCE)[0] == pytest.approx(low**2 / 2)


@pytest.mark.parametrize("kind", [Meta.VARIANCE, Meta.MEAN_DEVIATION, Meta.MAX_DEVIATION])
def test_none_of_twelve_may_still_be_far_away(kind: Meta) -> None:
    # none of twelve may be a rate of 26 %, whatever its own rows look like
    sizes, ones = [3000] * 7 + [12], [60.0] * 7 + [0.0]
    top = 0.26 - 0.02
    least = {
        Meta.VARIANCE: 0.9 * top**2 / 8,
        Meta.MEAN_DEVIATION: 0.9 * 2 * 7 / 64 * top,
        Meta.MAX_DEVIATION: 0.8 * top,
    }
    assert found(sizes, ones, kind)[1] > least[kind]


def test_two_groups_have_one_distance_and_all_measures_say_so() -> None:
    ends = {kind: found([15, 15], [1.0, 12.0], kind) for kind in Meta}
    distance = ends[Meta.DIFFERENCE]
    for kind in (Meta.MAX_DEVIATION, Meta.MEAN_DEVIATION):
        assert ends[kind] == pytest.approx((distance[0] / 2, distance[1] / 2))
    assert ends[Meta.VARIANCE] == pytest.approx((distance[0] ** 2 / 2, distance[1] ** 2 / 2))


def test_the_distance_of_a_pair_is_missed_as_often_as_promised() -> None:
    # by enumeration, at the rates where resamples of the pooled rate go most wrong
    from scipy.special import bdtr

    n, rate, other = 12, 0.15, 0.02
    missed = 0.0
    for k in range(n + 1):
        chance = float(bdtr(k, n, rate) - (bdtr(k - 1, n, rate) if k else 0.0))
        sample = sample_from_sums(np.array([n, 3000]), np.array([k, 60.0]), binary=True)
        missed += chance * (pair_distance(sample, 0.025) > rate - other)
    assert missed <= 0.03


def test_models_that_differ_in_a_small_group_alone_are_not_told_apart_for_sure() -> None:
    # 15 rows, of which the first model errs on none: resamples of them never move
    count = np.array([[15, 0, 0, 0], [940, 20, 20, 20]])
    values = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    got = compare_models(count, values, binary=True, rng=np.random.default_rng(1))[0, 1]
    assert got.lower < -0.005
    assert got.upper > 0.005
