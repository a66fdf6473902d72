"""Distinct rows of whole numbers are those that NumPy finds."""

import numpy as np
import pytest

from equipoise.methods.numerics import distinct_rows


@pytest.mark.parametrize(("rows", "high"), [(60, 4), (60, 2**40), (1, 3), (0, 3)])
@pytest.mark.parametrize("columns", [1, 2, 4])
def test_distinct_rows_are_those_of_numpy(rows: int, columns: int, high: int) -> None:
    index = np.random.default_rng(1).integers(-1, high, (rows, columns))
    found, place = distinct_rows(index)
    wanted, inverse = np.unique(index, axis=0, return_inverse=True)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(place, inverse.reshape(-1))


def test_a_table_without_columns_is_one_row() -> None:
    found, place = distinct_rows(np.zeros((5, 0), dtype=np.int64))
    assert found.shape == (1, 0)
    assert place.tolist() == [0] * 5
