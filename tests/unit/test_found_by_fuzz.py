"""Faults that the larger fuzz run found, each in a line or two."""

import warnings
from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise._validate import known_name
from equipoise.cells.steady import steady
from equipoise.methods.published.likelihood.resampled import Calibration
from equipoise.methods.spread import Meta, meta_metric


@pytest.fixture(autouse=True)
def _warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_whole_numbers_beyond_all_floats_are_refused() -> None:
    huge = 10**400
    with pytest.raises(eq.ClaimError, match="Expected a number"):
        eq.from_plan({"kind": "constant", "value": {"number": huge}})


def test_a_long_unknown_name_is_cut_off() -> None:
    with pytest.raises(eq.OptionError) as caught:
        known_name("control", "[" * 5000, ("bh", "by"))
    assert len(str(caught.value)) < 400


def test_the_smallest_sums_are_kept() -> None:
    least = float(np.finfo(np.float64).smallest_subnormal)
    assert steady(np.array([3 * least]), np.array([4 * least])) == 3 * least


def test_draws_of_zero_only_have_no_tail_to_stretch() -> None:
    assert Calibration(draws=np.zeros(199), rank=2).p(1.0) == 1 / 200


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_a_drawn_mean_below_zero_counts_as_zero(alpha: float) -> None:
    below, zero = (np.array([[x, 0.2, 0.3]]) for x in (-0.01, 0.0))
    found = meta_metric(Meta.ENTROPY, below, alpha=alpha)
    assert found == pytest.approx(meta_metric(Meta.ENTROPY, zero, alpha=alpha))


def test_a_role_is_a_yes_or_no() -> None:
    ordered = {"kind": "ordered", "column": "score", "edges": [0.0, 0.5, 1.0], "role": {"a": 1}}
    with pytest.raises(eq.OptionError, match="role must be True or False"):
        eq.from_plan(ordered)


def test_intervals_is_a_yes_or_no() -> None:
    trail = eq.read(pl.DataFrame({"g": ["a", "b"] * 20, "y": [0, 1, 1, 0] * 10}), prediction="y")
    claim = eq.gap("selection_rate", across="g")
    with pytest.raises(eq.OptionError, match="intervals must be True or False"):
        eq.joint_test(trail, claim, intervals="no")  # type: ignore[arg-type]
