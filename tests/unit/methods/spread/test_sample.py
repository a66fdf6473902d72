"""Groups as the summaries take them: sizes, variances, exclusions."""

import numpy as np
import pytest

from equipoise.methods.spread import Exclusion, sample_from_groups, sample_from_sums
from tests.unit.methods.spread.naive import group_sums


def test_groups_of_no_and_one_row_are_left_out_by_position_with_a_reason() -> None:
    s = sample_from_sums(np.array([0, 5, 1, 7]), np.array([0.0, 2, 1, 7]), binary=True)
    assert s.kept.tolist() == [1, 3]
    assert s.excluded.tolist() == [0, 2]
    assert s.reasons == (Exclusion.EMPTY, Exclusion.SINGLE)


def test_real_metric_takes_its_variance_and_shape_from_the_sums() -> None:
    rng = np.random.default_rng(1)
    rows = [rng.exponential(size=n) for n in (200, 300)]
    sums = [np.array([(r**k).sum() for r in rows]) for k in (1, 2, 3)]
    s = sample_from_sums(np.array([200, 300]), *sums, binary=False)
    assert s.mean == pytest.approx([r.mean() for r in rows])
    assert s.spread == pytest.approx([r.var() for r in rows])
    assert np.all(s.skewness > 0.05)
    assert np.all(np.abs(sample_from_sums(s.size, *sums[:2], binary=False).skewness) < 1e-6)


def test_real_groups_that_the_core_does_not_answer_are_left_out() -> None:
    rng = np.random.default_rng(2)
    rows = [rng.normal(size=40), rng.normal(size=50), rng.normal(size=2), np.full(30, 2.0)]
    sums = [np.array([(r**k).sum() for r in rows]) for k in (1, 2, 3)]
    s = sample_from_sums(np.array([40, 50, 2, 30]), *sums, binary=False)
    assert s.kept.tolist() == [0, 1]
    assert s.reasons == (Exclusion.FEW_ROWS, Exclusion.CONSTANT)


def test_a_metric_too_skewed_for_its_rows_is_left_out() -> None:
    rng = np.random.default_rng(3)
    rows = [rng.exponential(size=n) for n in (2000, 3000, 25)]
    groups = group_sums(rows, [np.ones(r.size) for r in rows])
    s = sample_from_groups(groups, binary=False, score=2.5)
    assert s.reasons == (Exclusion.SKEWED,)


def test_equal_weights_are_repeated_rows() -> None:
    ones = [np.repeat([1.0, 0.0], [12, 18]), np.repeat([1.0, 0.0], [5, 15])]
    plain = sample_from_sums(np.array([30, 20]), np.array([12.0, 5.0]), binary=True)
    for w in (0.1, 1 / 3, 7.0):
        groups = group_sums(ones, [np.full(x.size, w) for x in ones])
        weighted = sample_from_groups(groups, binary=True)
        assert weighted.size.tolist() == plain.size.tolist()
        assert weighted.mean == pytest.approx(plain.mean)
        assert not weighted.counted


def test_weights_related_to_the_outcome_are_worth_less_than_kish_says() -> None:
    rng = np.random.default_rng(4)
    ones = [(rng.random(200) < 0.3).astype(float) for _ in range(2)]
    weight = [np.where(x == 1, 5 * rng.exponential(size=200), 0.5) for x in ones]
    found = sample_from_groups(group_sums(ones, weight), binary=True)
    kish = np.array([w.sum() ** 2 / (w**2).sum() for w in weight])
    assert np.all(found.size < kish)


@pytest.mark.parametrize(
    ("n", "total", "text"),
    [
        ([1, 1, 1], [1.0, 0, 1], "every group has one row"),
        ([9, 1, 0], [4.0, 1, 0], "got 1 of 3"),
        ([], [], "got 0 of 0"),
        ([5, 5], [np.nan, 2], "totals must be finite; group 0"),
        ([5, 5], [2, 6.0], "between 0 and the size; group 1"),
        ([5, -5], [2, 2.0], "not be negative; group 1"),
        ([5, 5], [2, 2.0, 2], "one number per group"),
    ],
)
def test_bad_input_is_refused_in_words(n: list[int], total: list[float], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        sample_from_sums(np.array(n), np.array(total, dtype=float), binary=True)


def test_real_metric_without_squares_is_refused() -> None:
    with pytest.raises(ValueError, match="sums of its squares"):
        sample_from_sums(np.array([5, 5]), np.array([1.0, 2.0]), binary=False)
