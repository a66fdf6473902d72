"""Worlds: what they say of themselves is what samples of them show."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.errors import OptionError
from equipoise.worlds import (
    People,
    boundary_world,
    conformal_world,
    linear_world,
    null_world,
    planted,
    skewed_world,
    uneven_world,
)

BIG = 400_000


def test_people_form_forty_groups_and_the_smallest_has_about_three_rows() -> None:
    world = null_world(smallest=3 / 2000)
    table = pl.DataFrame(world.table(2000, np.random.default_rng(1)))
    trail = eq.read(table, prediction="outcome", count="people")
    found = eq.describe(trail, eq.gap(eq.selection_rate, across=world.groups()))
    assert len(found) == 40
    assert min(row.n for row in found.rows) < 10
    assert world.share.min() * 2000 == pytest.approx(3)


@pytest.mark.parametrize("world", [null_world(), boundary_world(), uneven_world()])
def test_the_truth_of_people_is_what_large_samples_show(world: People) -> None:
    rows, ones = world.draw(BIG, np.random.default_rng(2))
    for where in ({"race": "A"}, {"sex": "F", "age": "old"}, {"race": "C", "age": "young"}):
        inside = world._inside(where)
        rate = ones[inside].sum() / rows[inside].sum()
        error = 4 * np.sqrt(0.25 / rows[inside].sum())
        assert rate == pytest.approx(world.value(where), abs=error)
    assert ones.sum() / BIG == pytest.approx(world.overall(), abs=0.004)


def test_planting_raises_one_group_only() -> None:
    before, after = uneven_world(), planted(uneven_world(), {"race": "C"}, 0.1)
    assert after.value({"race": "C"}) - before.value({"race": "C"}) == pytest.approx(0.1)
    assert after.value({"race": "A"}) == before.value({"race": "A"})


@pytest.mark.parametrize("uneven", [True, False])
def test_the_truth_of_lines_is_what_large_samples_show(uneven: bool) -> None:
    world = linear_world(np.random.default_rng(3), heteroskedastic=uneven)
    x, loss = world.draw(BIG, np.random.default_rng(4))
    inside = (x >= 0.3) & (x < 0.8)
    truth = float(world.value(np.array([0.3]), np.array([0.8]))[0])
    error = 4 * float(loss[inside].std()) / np.sqrt(inside.sum())
    assert loss[inside].mean() == pytest.approx(truth, abs=error)


def test_the_band_covers_ninety_per_cent_as_simulated_outcomes_show() -> None:
    world = conformal_world()
    assert world.value(0, 50) == pytest.approx(0.9, abs=1e-6)
    rng = np.random.default_rng(5)
    x = rng.random(BIG) * 5
    mean = np.sin(x) ** 2 + 0.1
    y = rng.poisson(mean) + 0.03 * x * rng.standard_normal(BIG)
    y += 25 * (rng.random(BIG) < 0.01) * rng.standard_normal(BIG)
    score = np.abs(y - mean) / np.sqrt(mean + 0.1)
    covered = score <= np.quantile(score, 0.9)
    for start, stop in ((0, 10), (20, 30), (37, 40)):
        inside = (x >= start / 10) & (x < stop / 10)
        assert covered[inside].mean() == pytest.approx(world.value(start, stop), abs=0.01)


def test_the_skewed_metric_has_mean_one_and_its_skewness() -> None:
    cell, value = skewed_world(shape=0.5).draw(BIG, np.random.default_rng(6))
    assert value.mean() == pytest.approx(1.0, abs=0.02)
    assert np.mean((value - 1) ** 3) / value.std() ** 3 == pytest.approx(2 / np.sqrt(0.5), abs=0.3)
    assert np.bincount(cell)[0] > np.bincount(cell)[5] > 0


@pytest.mark.parametrize(("name", "value"), [("smallest", 0.0), ("smallest", 0.2), ("rate", 1.5)])
def test_impossible_worlds_are_refused(name: str, value: float) -> None:
    with pytest.raises(OptionError, match=name):
        null_world(**{name: value})
