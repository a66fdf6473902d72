"""The pivot of real-valued metrics against Welch's t with Hall's transformation, on rows."""

import numpy as np
import pytest
from scipy.stats import binom, norm, skew
from scipy.stats import t as student

from equipoise.methods.inference.student import (
    LEAST_ROWS,
    Spread,
    StudentPivot,
    effective_rows,
    row_spread,
    rows_needed,
    shape_of,
    student_tails,
    too_skewed,
)
from equipoise.methods.numerics import BoolArray
from equipoise.methods.targets import (
    Constant,
    Custom,
    InfluenceSums,
    Target,
    compare,
    plain_moments,
)
from tests.unit.methods.inference.naive import (
    TARGETS,
    Part,
    Rows,
    kish,
    make_rows,
    shape_of_rows,
    targets_of,
    turned,
    usual,
)

SHAPE = 1.5


def welch(rows: Rows, target: Target, group: int, factor: float) -> tuple[float, float, float]:
    """Variance, skewness and degrees of freedom of mean − factor · target, from rows."""
    psi = rows.influence(target, group, factor)
    each, sizes = [], []
    for part in rows.parts(target, group):
        if part.any():
            size = kish(rows.weight[part])
            each.append(float((psi[part] ** 2).sum()) * size / (size - 1))
            sizes.append(size)
    variance = sum(each)
    used: BoolArray = np.any(rows.parts(target, group), axis=0)
    skewness = float((psi[used] ** 3).sum()) / variance**1.5
    loss = sum(x**2 / (n - 1) for x, n in zip(each, sizes, strict=True))
    return variance, skewness, variance**2 / loss


def parts_of(rows: Rows, target: Target, group: int, factor: float) -> list[Part]:
    """The parts of a contrast, whose slopes are read off what their rows move."""
    psi = rows.influence(target, group, factor)
    found = []
    for part in rows.parts(target, group):
        if part.any():
            w, moves = rows.weight[part], psi[part]
            slope = float(np.polyfit(rows.value[part], moves / w, 1)[0])
            found.append(Part(slope=slope, weight=w, moves=moves))
    return found


def naive_tails(
    rows: Rows, target: Target, group: int, disparity: float, relative: bool
) -> tuple[float, float]:
    factor = target.scale * (disparity if relative else 1.0)
    gap = rows.mean(rows.member(group)) - factor * rows.theta(target, group)
    variance, g, degrees = welch(rows, target, group, factor)
    t = (gap - (0.0 if relative else disparity)) / np.sqrt(variance)
    parts = parts_of(rows, target, group, factor)
    likely = [g, *(usual(SHAPE, parts, way) for way in (1, -1))]
    # corrections may only make a tail larger
    scores = [t, *(turned(t, x) for x in likely)]
    up = max(float(student.sf(x, degrees)) for x in scores)
    down = max(float(student.cdf(x, degrees)) for x in scores)
    return up, down


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", TARGETS)
def test_tails_are_those_of_welch_with_halls_transformation(
    name: str, weighted: bool, relative: bool
) -> None:
    rows = make_rows(3, weighted=weighted)
    target = targets_of(rows)[name]
    found = compare(rows.moments(), target, rows.sums, relative=relative)
    pivot = StudentPivot(comparison=found, shape=SHAPE)
    for group in range(4):
        assert found.estimate[group] == pytest.approx(rows.estimate(target, group, relative))
        for shift in (-0.3, -0.05, 0.0, 0.2):
            at = float(found.estimate[group]) + shift
            ours = pivot.tails(np.array([at]), np.array([group]))
            aim = naive_tails(rows, target, group, at, relative)
            np.testing.assert_allclose([float(x[0]) for x in ours], aim, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", TARGETS)
def test_spread_is_that_of_the_influence_values(name: str, weighted: bool) -> None:
    rows = make_rows(4, weighted=weighted)
    target = targets_of(rows)[name]
    found = compare(rows.moments(), target, rows.sums)
    spread = row_spread(found, np.full(4, target.scale), SHAPE)
    aim = [welch(rows, target, group, target.scale) for group in range(4)]
    np.testing.assert_allclose(spread.variance, [x[0] for x in aim], rtol=1e-8)
    np.testing.assert_allclose(spread.skewness, [x[1] for x in aim], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(spread.degrees, [x[2] for x in aim], rtol=1e-7)
    for group in range(4):
        parts = parts_of(rows, target, group, target.scale)
        both = [usual(SHAPE, parts, way) for way in (1, -1)]
        np.testing.assert_allclose(spread.usual[:, group], both, rtol=1e-7, atol=1e-12)


def test_equal_weights_change_nothing() -> None:
    rows = make_rows(5)
    twice = Rows(
        cell=rows.cell,
        value=rows.value,
        weight=np.full(rows.cell.size, 2.5),
        groups=rows.groups,
        reference=rows.reference,
    )
    for target in targets_of(rows).values():
        one, two = (
            StudentPivot(comparison=compare(x.moments(), target, x.sums), shape=SHAPE).tails(
                np.full(4, 0.05), np.arange(4)
            )
            for x in (rows, twice)
        )
        np.testing.assert_allclose(one, two, rtol=1e-7)


def test_the_error_of_a_custom_target_counts_with_its_covariance() -> None:
    rows = make_rows(6, 4000)
    psi = rows.value**2 - np.mean(rows.value**2)
    target = Custom(
        value=1.1,
        scale=0.5,
        influence=InfluenceSums(
            rows=float(psi.size),
            total=np.bincount(rows.cell, psi, 6).astype(np.float64),
            product=np.bincount(rows.cell, psi * rows.value, 6).astype(np.float64),
            sum=float(psi.sum()),
            square=float((psi**2).sum()),
        ),
    )
    found = compare(rows.moments(), target, rows.sums)
    spread = row_spread(found, np.full(4, 0.5), SHAPE)
    for group in range(4):
        own = rows.influence(targets_of(rows)["constant"], group, 0.0)
        aim = float(((own - 0.5 * psi / psi.size) ** 2).sum())
        assert spread.variance[group] == pytest.approx(aim, rel=5e-3)
        assert found.estimate[group] == pytest.approx(rows.mean(rows.member(group)) - 0.55)


def test_a_correction_for_skewness_never_makes_a_tail_smaller() -> None:
    rows = make_rows(7, draw=lambda rng, n: rng.lognormal(0, 1, n))
    found = compare(rows.moments(), targets_of(rows)["constant"], rows.sums)
    pivot = StudentPivot(comparison=found, shape=SHAPE)
    spread = row_spread(found, np.ones(4), SHAPE)
    for shift in np.linspace(-2, 2, 9):
        up, down = pivot.tails(found.estimate + shift, np.arange(4))
        t = -shift / np.sqrt(spread.variance)
        assert bool((up >= student.sf(t, spread.degrees) - 1e-12).all())
        assert bool((down >= student.cdf(t, spread.degrees) - 1e-12).all())


@pytest.mark.parametrize("skewness", [0.05, 0.3, -0.3, 0.0])
def test_no_distance_counts_for_more_than_its_reach(skewness: float) -> None:
    spread = Spread(
        variance=np.ones(400),
        skewness=np.full(400, skewness),
        usual=np.zeros((2, 400)),
        degrees=np.full(400, 60.0),
    )
    gap = np.linspace(-80, 80, 400)
    up, down = student_tails(gap, spread)
    # tails fall and rise with the distance, and stop where the transformation does
    assert bool((np.diff(up) <= 0).all())
    assert bool((np.diff(down) >= 0).all())
    if skewness == 0:
        assert bool(np.isinf(spread.reach).all() or (spread.reach > 30).all())
        return
    worse = down if skewness > 0 else up
    assert worse.min() == pytest.approx(float(norm.sf(spread.reach[0])), rel=1e-9)
    assert (up if skewness > 0 else down).min() < 1e-30


def test_the_guard_is_the_reach_and_names_the_rows_it_takes() -> None:
    reach, score, rows = np.array([9.0, 3.0, 2.0]), 3.0, np.array([400.0, 100.0, 8.0])
    assert too_skewed(reach, score).tolist() == [False, False, True]
    needed = rows_needed(rows, reach, score)
    # the reach of a mean grows with the root of its rows
    assert needed.tolist() == [45, 100, LEAST_ROWS]


def test_the_shape_of_all_rows_is_their_skewness_about_cell_means() -> None:
    rng = np.random.default_rng(9)
    cell = rng.integers(0, 5, 60_000)
    value = rng.exponential(size=cell.size) + 3 * cell
    sums = [np.bincount(cell, value**p, 5).astype(np.float64) for p in range(4)]
    assert shape_of(plain_moments(*sums)) == pytest.approx(2.0, rel=0.1)
    # a wide and symmetric cell does not hide it, and a row to a cell is judged about all
    odd = np.where(cell == 0, rng.normal(0, 50, cell.size), value)
    mixed = [np.bincount(cell, odd**p, 5).astype(np.float64) for p in range(4)]
    assert shape_of(plain_moments(*mixed)) == pytest.approx(2.0 * 0.8**0.5, rel=0.1)
    alone = [rng.exponential(size=60_000)] * 3
    powers = [np.ones(60_000), *(x ** (i + 1) for i, x in enumerate(alone))]
    assert shape_of(plain_moments(*powers)) == pytest.approx(2.0, rel=0.15)
    assert shape_of(plain_moments(*(np.ones(3) for _ in range(4)))) == 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [400, 30, 6, 5, 2, 1])
def test_the_shape_is_that_of_the_rows(size: int, weighted: bool) -> None:
    rng = np.random.default_rng(size)
    cell = np.repeat(np.arange(6), size)
    # of unlike spread and skewness, so that now all cells and now the typical one decide
    for spread in (np.ones(6), np.array([1.0, 2, 3, 4, 5, 60])):
        rows = Rows(
            cell=cell,
            value=cell + spread[cell] * rng.gamma(0.5 + cell),
            weight=rng.lognormal(0, 0.5, cell.size) if weighted else np.ones(cell.size),
            groups=np.eye(6, dtype=bool),
            reference=np.zeros(6, dtype=bool),
        )
        aim = shape_of_rows(rows.value, rows.weight, cell)
        assert shape_of(rows.moments()) == pytest.approx(aim, rel=1e-9)


def test_the_shape_of_one_cell_is_its_skewness() -> None:
    value = np.random.default_rng(2).gamma(2.0, size=300)
    rows = [np.array([float((value**p).sum())]) for p in range(4)]
    # less what chance gives rows without any
    aim = np.sqrt(float(skew(value, bias=False)) ** 2 - 6 / 300)
    assert shape_of(plain_moments(*rows)) == pytest.approx(aim)


@pytest.mark.parametrize("weight", [1.0, 0.3])
@pytest.mark.parametrize("alike", [0.0, 0.1, 0.7, 1 / 3, 123.456, 1e6 + 0.1])
def test_rows_that_are_all_alike_have_no_shape(alike: float, weight: float) -> None:
    """Whatever rounding leaves of their sums of third order."""
    rng = np.random.default_rng(3)
    cell = np.repeat(np.arange(4), 50)
    rows = Rows(
        cell=cell,
        value=np.where(cell == 0, alike, rng.normal(size=cell.size)),
        weight=np.full(cell.size, weight),
        groups=np.eye(4, dtype=bool),
        reference=np.zeros(4, dtype=bool),
    )
    aim = shape_of_rows(rows.value, rows.weight, cell)
    assert shape_of(rows.moments()) == pytest.approx(aim, rel=1e-7)


def test_effective_rows_are_kishs() -> None:
    w = np.random.default_rng(1).lognormal(size=50)
    found = effective_rows(np.array([w.sum()]), np.array([(w**2).sum()]))
    assert found[0] == pytest.approx(kish(w))
    assert effective_rows(np.zeros(1), np.zeros(1))[0] == 0


@pytest.mark.parametrize("side", [0, 1])
def test_exponential_groups_of_fifty_keep_their_level(side: int) -> None:
    """One-sided 2.5 %, 4000 worlds with skewness 2: at most what has a chance of 1e-4."""
    rng, n, worlds = np.random.default_rng(8), 50, 4000
    value = rng.exponential(size=(worlds, n))
    powers = [np.full(worlds, float(n)), *(np.sum(value**p, axis=1) for p in (1, 2, 3))]
    found = compare(plain_moments(*powers), Constant(value=1.0), lambda x: x)
    tails = StudentPivot(comparison=found, shape=SHAPE).tails(np.zeros(worlds), np.arange(worlds))
    wrong = int((tails[side] <= 0.025).sum())
    assert wrong <= binom.ppf(1 - 1e-4, worlds, 0.025)
