"""Shares above the sample's median, and the area under the ROC curve."""

import numpy as np
import pytest
from scipy.special import ndtri

from equipoise.methods.inference.core import core_of
from equipoise.methods.inference.ranks import (
    MedianPivot,
    MedianSums,
    above_median,
    area_under_curve,
    middle_of,
)
from equipoise.methods.targets import Constant, plain_moments


def test_the_median_is_that_of_the_rows() -> None:
    rng = np.random.default_rng(2)
    for size in range(1, 40):
        values = rng.integers(0, 12, size).astype(float)
        distinct, counts = np.unique(values, return_counts=True)
        found = middle_of(distinct, counts.astype(float))
        assert found.median == np.median(values)
        assert found.low <= found.median <= found.high
        assert found == middle_of(distinct[::-1], counts[::-1].astype(float))


def test_scores_of_few_values_name_all_likely_medians() -> None:
    # 49 % lie above 3: of 400 rows the median may be 3 or 4, of a million only 3
    share = np.array([0.13, 0.17, 0.21, 0.32, 0.17])
    few = middle_of(np.arange(1.0, 6.0), 400 * share)
    assert (few.median, few.settled, few.others) == (3.0, False, (4.0,))
    many = middle_of(np.arange(1.0, 6.0), 1e6 * share)
    assert (many.median, many.settled, many.others) == (3.0, True, ())
    # a lump among single scores: just below it, and at it
    values = np.arange(401.0)
    lump = middle_of(values, np.where(values == 205, 60.0, 1.0))
    assert not lump.settled
    assert {204.0, 205.0} <= {lump.median, *lump.others}
    assert middle_of(np.arange(400.0), np.ones(400)).others == ()


def test_an_atom_holds_the_median_only_if_it_is_wide() -> None:
    # of 400 rows, the median's rank has a standard error of 10
    assert middle_of(np.array([1.0, 2.0, 3.0]), np.array([150.0, 100.0, 150.0])).settled
    assert not middle_of(np.array([1.0, 2.0, 3.0]), np.array([190.0, 100.0, 110.0])).settled
    assert not middle_of(np.arange(400.0), np.ones(400)).settled


WORLDS, ROWS, OWN = 2000, 400, 120


def _crowded() -> tuple[np.ndarray, np.ndarray, float]:
    """Counts above the median, and near it, of a group whose scores crowd around it."""
    rng = np.random.default_rng(5)
    above, near = np.empty(WORLDS), np.empty(WORLDS)
    for world in range(WORLDS):
        scores = rng.normal(size=ROWS) * np.where(np.arange(ROWS) < OWN, 0.1, 2.0)
        middle = middle_of(scores, np.ones(ROWS))
        above[world] = (scores[:OWN] > middle.median).sum()
        near[world] = ((scores[:OWN] >= middle.low) & (scores[:OWN] <= middle.high)).sum()
        every = float(((scores >= middle.low) & (scores <= middle.high)).sum())
    return above, near, every


def test_bounds_allow_for_the_error_of_the_median() -> None:
    """A median taken as known misses twice as often as promised; with its error, as promised.

    Every world is a group of its own here; the truth is a rate of one half.
    """
    above, near, every = _crowded()
    rows = np.full(WORLDS, float(OWN))
    known = core_of(
        plain_moments(rows, above, above, above),
        Constant(value=0.0),
        lambda x: x,
        relative=False,
        zero_one=True,
        weighted=False,
    )
    core = above_median(known, MedianSums(near=near, all_near=every, rows=float(ROWS)))
    missed = []
    for one in (known, core):
        low, high = one.bounds(float(ndtri(0.975)), (0.0, 1.0))
        missed.append(int(((low > 0.5) | (high < 0.5)).sum()))
    # of 2,000 at 5 %: 146 are passed once in 100,000 times
    assert missed[0] > 2 * 100
    assert missed[1] <= 146
    # the standard error is that of the influence function, which the worlds themselves show
    assert isinstance(core.pivot, MedianPivot)
    assert np.median(core.pivot.error) == pytest.approx(float((above / OWN).std()), rel=0.08)


def test_alike_groups_cost_nothing() -> None:
    rows, above = np.array([100.0, 300.0]), np.array([50.0, 150.0])
    core = core_of(
        plain_moments(rows, above, above, above),
        Constant(value=0.0),
        lambda x: x,
        relative=False,
        zero_one=True,
        weighted=False,
    )
    # both have the same share near the median, so neither moves more than everybody does
    found = above_median(core, MedianSums(near=rows / 10, all_near=40.0, rows=400.0))
    assert isinstance(found.pivot, MedianPivot)
    assert found.pivot.stretch(np.array([0.5, 0.5]), np.arange(2)).tolist() == [1.0, 1.0]


def test_the_area_is_that_of_pairs() -> None:
    rng = np.random.default_rng(4)
    scores, labels = rng.integers(0, 9, 60).astype(float), rng.integers(0, 2, 60).astype(float)
    ones, zeros = scores[labels == 1], scores[labels == 0]
    wins = (ones[:, None] > zeros) + 0.5 * (ones[:, None] == zeros)
    area, low, high = area_under_curve(scores, labels, np.ones(60), 0.95)
    assert area == pytest.approx(wins.mean())
    assert low < area < high
    # counts are repeated rows
    twice = area_under_curve(np.tile(scores, 2), np.tile(labels, 2), np.ones(120), 0.95)
    assert area_under_curve(scores, labels, np.full(60, 2.0), 0.95) == pytest.approx(twice)
    nothing = area_under_curve(scores, np.ones(60), np.ones(60), 0.95)
    assert np.isnan(nothing).all()
