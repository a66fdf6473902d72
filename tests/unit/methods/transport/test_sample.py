"""Samples of rows, weighted rows and clusters: against naive loops over units."""

import numpy as np
import pytest

from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.transport import (
    AnswerKind,
    Method,
    infer,
    plain_sample,
    prepare,
    solve,
    unit_sample,
    within_classes,
)


def jackknife(unit: IntArray, cell: IntArray, weight: FloatArray, values: FloatArray) -> float:
    """Standard error of the weighted mean, by leaving out one unit at a time."""
    units = np.unique(unit)
    n, centre = units.size, np.average(values[cell], weights=weight)
    moves = []
    for u in units:
        left = unit != u
        moves.append(np.average(values[cell][left], weights=weight[left]) - centre)
    return float(np.sqrt((n - 1) / n * np.sum(np.square(moves))))


def clustered(seed: int) -> tuple[IntArray, IntArray, FloatArray]:
    rng = np.random.default_rng(seed)
    unit, cell = rng.integers(0, 15, 120), rng.integers(0, 6, 120)
    unit[:15] = np.arange(15)
    return unit, cell, rng.random(120) + 0.1


@pytest.mark.parametrize("seed", range(5))
def test_errors_equal_the_jackknife(seed: int) -> None:
    unit, cell, weight = clustered(seed)
    values = np.random.default_rng(seed + 100).random(6)
    sample = unit_sample(unit, cell, weight, cells=6)
    assert sample.error(values) == pytest.approx(jackknife(unit, cell, weight, values))
    rows = unit_sample(np.arange(120), cell, weight, cells=6)
    expected = jackknife(np.arange(120), cell, weight, values)
    assert rows.error(values) == pytest.approx(expected)
    assert sample.share == pytest.approx(np.bincount(cell, weight) / weight.sum())


def test_plain_rows_have_the_multinomial_error() -> None:
    counts, values = np.array([3, 0, 7, 10]), np.array([0.0, 5.0, 1.0, 0.4])
    sample = plain_sample(counts, 4)
    rows = np.repeat(values, counts)
    assert sample.error(values) == pytest.approx(rows.std() / np.sqrt(20))
    assert sample.worth(values) == sample.n == 20
    assert sample.degrees == np.inf


@pytest.mark.parametrize("together", [True, False])
def test_normal_vectors_have_the_covariance_of_the_shares(together: bool) -> None:
    unit, cell, weight = clustered(7)
    sample = unit_sample(unit if together else np.arange(120), cell, weight, cells=6)
    drawn = sample.normals(40_000, np.random.default_rng(1))
    assert drawn.sum(axis=1) == pytest.approx(0, abs=1e-12)
    for values in np.random.default_rng(2).random((4, 6)):
        spread = (drawn @ values).std() / np.sqrt(sample.n)
        assert spread == pytest.approx(sample.error(values), rel=0.03)


def test_resamples_are_of_units() -> None:
    unit, cell, weight = clustered(3)
    sample, values = unit_sample(unit, cell, weight, cells=6), np.arange(6.0)
    ours = sample.resampled(15, 4000, np.random.default_rng(1)) @ values
    rng, theirs = np.random.default_rng(2), []
    for _ in range(4000):
        rows = np.concatenate([np.flatnonzero(unit == u) for u in rng.integers(0, 15, 15)])
        theirs.append(np.average(values[cell[rows]], weights=weight[rows]))
    grid = np.sort(theirs)
    one = np.searchsorted(np.sort(ours), grid, side="right") / 4000
    two = np.searchsorted(grid, grid, side="right") / 4000
    # two-sample Kolmogorov–Smirnov at 1e-4
    assert np.abs(one - two).max() < np.sqrt(-np.log(1e-4 / 2) / 4000)


def test_alike_units_may_be_listed_once() -> None:
    cell, weight, times = np.array([0, 0, 1]), np.array([1.0, 2.0, 1.5]), np.array([3, 2, 4])
    once = unit_sample(np.arange(3), cell, weight, cells=2, times=times)
    each = unit_sample(np.arange(9), np.repeat(cell, times), np.repeat(weight, times), cells=2)
    values = np.array([0.0, 1.0])
    assert once.share == pytest.approx(each.share)
    assert once.error(values) == pytest.approx(each.error(values))
    assert once.n == each.n
    assert once.degrees == pytest.approx(each.degrees)


def test_the_scale_of_weights_and_the_names_of_units_do_not_matter() -> None:
    unit, cell, weight = clustered(4)
    problem = prepare(within_classes([0, 0, 1, 1, 2, 2]), [0, 1, 0.2, 0.6, 0.5, 0.5])
    intervals = []
    for names, scale in ((unit, 1.0), (14 - unit, 1e-9), (unit, 1e12)):
        sample = unit_sample(names, cell, scale * weight, cells=6, rows=100.0)
        intervals.append(infer(problem, sample, rng=np.random.default_rng(1)).interval())
    assert intervals[0] == pytest.approx(intervals[1], rel=1e-9)
    assert intervals[0] == pytest.approx(intervals[2], rel=1e-9)


def test_a_split_keeps_every_unit_once() -> None:
    sample = plain_sample([10, 0, 25, 7], 4)
    one, two = sample.split(0.4, np.random.default_rng(1))
    assert (one.n, two.n) == (17, 25)
    assert one.n * one.share + two.n * two.share == pytest.approx([10, 0, 25, 7])
    with pytest.raises(ValueError, match="too few to split"):
        plain_sample([1, 0], 2).split(0.4, np.random.default_rng(1))


def test_weighted_rows_are_worth_no_more_than_rows() -> None:
    rng = np.random.default_rng(5)
    cell, weight = rng.integers(0, 2, 200), np.exp(rng.normal(size=200))
    kish = weight.sum() ** 2 / (weight**2).sum()
    sample = unit_sample(np.arange(200), cell, weight, cells=2, rows=kish)
    assert sample.worth(np.array([0.0, 1.0])) <= kish < 200
    # where nothing varies, every unit counts as if it were as heavy as the heaviest
    assert sample.worth(np.ones(2)) == pytest.approx(weight.sum() / weight.max())


def test_no_value_is_worth_more_than_the_shares_on_average() -> None:
    unit, cell, weight = clustered(8)
    sample = unit_sample(unit, cell, weight, cells=6, rows=1e9)
    errors = [jackknife(unit, cell, weight, np.eye(6)[k]) for k in range(6)]
    usual = (1 - (sample.share**2).sum()) / np.square(errors).sum()
    worths = [sample.worth(np.eye(6)[k]) for k in range(6)]
    assert max(worths) == pytest.approx(usual)
    own = sample.share * (1 - sample.share) / np.square(errors)
    assert worths == pytest.approx(np.minimum(own, usual))


def test_few_clusters_are_not_answered() -> None:
    unit, cell = np.repeat(np.arange(6), 20), np.tile([0, 1, 2, 1, 0], 24)
    cell[:7] = 2
    sample = unit_sample(unit, cell, np.ones(120), cells=3, rows=120.0)
    problem = prepare(within_classes([0, 0, 0]), [0.0, 0.5, 1.0])
    found = infer(problem, sample, rng=np.random.default_rng(1))
    assert found.outcome is AnswerKind.FEW_UNITS
    assert found.interval() is None
    assert "at least 10" in found.reason


def test_students_tails_are_wider_and_p_values_agree_with_bounds() -> None:
    unit, cell, weight = clustered(6)
    problem = prepare(within_classes([0, 0, 1, 1, 2, 2]), [0, 1, 0.2, 0.6, 0.5, 0.5])
    sample = unit_sample(unit, cell, weight, cells=6, rows=100.0)
    for method in (Method.AUTO, Method.NORMAL, Method.BETA, Method.DIRECTIONAL):
        found = infer(problem, sample, rng=np.random.default_rng(1), method=method)
        low, high = found.lower(), found.upper()
        assert low is not None
        assert high is not None
        assert found.p_above(low) == pytest.approx(0.05, abs=1e-3)
        assert found.p_below(high) == pytest.approx(0.05, abs=1e-3)
    normal = infer(problem, sample, rng=np.random.default_rng(1), method=Method.NORMAL)
    gains = problem.gradient(np.inf)
    half = (normal.upper() or 0) - normal.value
    assert half > 1.7 * sample.error(gains)


def test_the_exact_binomial_is_for_plain_rows() -> None:
    sample = unit_sample(np.arange(40), np.tile([0, 1], 20), np.ones(40), cells=2)
    problem = prepare(within_classes([0, 0]), [0, 1])
    with pytest.raises(ValueError, match="equal weight"):
        infer(problem, sample, rng=np.random.default_rng(1), method=Method.EXACT)
    assert infer(problem, sample, rng=np.random.default_rng(1)).method is Method.BETA
    assert solve(problem, sample).value == pytest.approx(0.5)


def test_bad_samples_are_said_plainly() -> None:
    with pytest.raises(ValueError, match="entry 1 is not"):
        unit_sample([0, 1], [0, 1], [1.0, -1.0], cells=2)
    with pytest.raises(ValueError, match="every weight is zero"):
        unit_sample([0, 1], [0, 1], [0.0, 0.0], cells=2)
    with pytest.raises(ValueError, match="per kind"):
        unit_sample([0, 1], [0, 1], [1.0, 1.0], cells=2, times=[1])
    problem = prepare(within_classes([0, 0]), [0, 1])
    with pytest.raises(ValueError, match="sample of 2 cells; got 3"):
        infer(problem, plain_sample([1, 1, 1], 3), rng=np.random.default_rng(1))
