"""Losses read off a table: what repeated rows say about them."""

import numpy as np
import pytest

from equipoise.methods.transport import NormalLimit, ShiftedLimit, doubt, infer, prepare
from equipoise.methods.transport import within_classes as classes


def test_without_repeated_rows_everything_is_doubtful() -> None:
    found = doubt(np.array([1, 1, 0, 1]), 0.05)
    assert (found.kinds, found.repeats, found.number) == (3, 0, 3)
    assert found.cells.tolist() == [True, True, False, True]


def test_many_rows_of_a_kind_leave_no_doubt() -> None:
    found = doubt(np.array([30, 40, 50, 0]), 0.05)
    assert found.number == 0
    assert not found.cells.any()
    # the same table with a kind seen once: its loss alone is doubtful
    assert doubt(np.array([30, 40, 50, 1]), 0.05).cells.tolist() == [False, False, False, True]


def test_the_largest_parts_in_doubt_are_counted_once_for_each_kind() -> None:
    found = doubt(np.array([1, 1, 1, 50, 50]), 0.05)
    assert found.number == 3
    # three doubtful kinds in two parts cannot sway the third
    assert found.explains(np.array([0.1, 0.2, 0.4]), np.array([0, 0, 1, 2, 2])) == pytest.approx(
        0.3
    )


def test_exceptions_are_rarely_more_than_said() -> None:
    # A share of kinds flips coins; rows in all agree as seldom, and exceptions are as few, as said.
    rng, error, wrong, worlds = np.random.default_rng(5), 0.2, 0, 4000
    units = np.array([1] * 30 + [2] * 20 + [4] * 10)
    said = doubt(units, error).number
    for _ in range(worlds):
        noisy = rng.random(units.size) < 0.06
        ones = np.where(noisy, rng.binomial(units, 0.4), 0)
        agree = np.all((ones == 0) | (ones == units))
        wrong += bool(agree and np.count_nonzero(ones == units) > said)
    assert wrong / worlds < error


def test_a_shifted_limit_spends_half_its_error_rate() -> None:
    inner = NormalLimit(value=0.3, error=0.05)
    limit = ShiftedLimit(limit=inner, down=0.1, up=0.2)
    assert limit.lower(0.05) == pytest.approx(inner.lower(0.025) - 0.1)
    assert limit.upper(0.05) == pytest.approx(inner.upper(0.025) + 0.2)
    for alpha in (0.01, 0.05, 0.3):
        assert limit.p_above(limit.lower(alpha)) == pytest.approx(alpha)
        assert limit.p_below(limit.upper(alpha)) == pytest.approx(alpha)
    assert limit.p_below(0.0) == 1.0


def test_people_outside_every_cell_are_allowed_for() -> None:
    problem = prepare(classes([0, 0]), [1, 1])
    exact = infer(problem, [60, 40], rng=np.random.default_rng(1))
    open_ = infer(problem, [60, 40], rng=np.random.default_rng(1), outside=1.0)
    assert exact.interval(0.95) == (0.0, 0.0)
    assert open_.upper(0.95) == pytest.approx(1 - 0.05**0.01)
    assert open_.p_below(0.02) == pytest.approx(0.98**100)
