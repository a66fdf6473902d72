"""Groups as the summaries take them: sizes, variances, exclusions."""

import numpy as np
import pytest

from equipoise.methods.spread import Exclusion, sample_from_sums, sample_from_worth


def test_groups_of_no_and_one_row_are_left_out_by_position_with_a_reason() -> None:
    s = sample_from_sums(np.array([0, 5, 1, 7]), np.array([0.0, 2, 1, 7]), binary=True)
    assert s.kept.tolist() == [1, 3]
    assert s.excluded.tolist() == [0, 2]
    assert s.reasons == (Exclusion.EMPTY, Exclusion.SINGLE)


def test_real_metric_takes_its_variance_from_the_square_sums() -> None:
    rows = [np.array([1.0, 4.0, 4.5]), np.array([-2.0, 0.5])]
    s = sample_from_sums(
        np.array([3, 2]),
        np.array([r.sum() for r in rows]),
        np.array([(r**2).sum() for r in rows]),
        binary=False,
    )
    assert s.mean == pytest.approx([r.mean() for r in rows])
    assert s.spread == pytest.approx([r.var() for r in rows])


def test_rounding_in_the_square_sums_is_not_variation() -> None:
    value = 0.1
    total = np.array([sum([value] * 10), sum([value] * 7)])
    square = np.array([sum([value**2] * 10), sum([value**2] * 7)])
    s = sample_from_sums(np.array([10, 7]), total, square, binary=False)
    assert s.frozen


def test_equal_weights_are_repeated_rows() -> None:
    n, total = np.array([30, 20]), np.array([12.0, 5.0])
    plain = sample_from_sums(n, total, binary=True)
    for w in (0.1, 1 / 3, 7.0):
        weighted = sample_from_worth(n * w, total * w, None, n, binary=True)
        assert weighted.size.tolist() == plain.size.tolist()
        assert weighted.mean == pytest.approx(plain.mean)


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


def test_a_worth_is_rounded_down_but_not_by_rounding() -> None:
    weight = np.array([3.7, 5.0, 2.99])
    found = sample_from_worth(weight, weight / 2, None, weight, binary=True)
    assert found.size.tolist() == [3, 5, 2]
    computed = np.full(2, 7 * (1 / 3) / (1 / 3) - 1e-13)
    assert sample_from_worth(computed, computed / 2, None, computed, binary=True).size[0] == 7
