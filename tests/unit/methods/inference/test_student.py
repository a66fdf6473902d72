"""The pivot of real-valued metrics against Welch's t with Hall's transformation, on rows."""

import numpy as np
import pytest
from scipy.stats import binom
from scipy.stats import t as student

from equipoise.methods.arrays import BoolArray, FloatArray
from equipoise.methods.inference.comparison import compare
from equipoise.methods.inference.student import (
    LEAST_ROWS,
    LEAST_SCORE,
    SKEW_LIMIT,
    StudentPivot,
    effective_rows,
    row_spread,
    rows_needed,
    too_skewed,
)
from equipoise.methods.targets import Custom, InfluenceSums, Target
from tests.unit.methods.inference.naive import TARGETS, Rows, make_rows, targets_of


def kish(w: FloatArray) -> float:
    return float(w.sum() ** 2 / (w**2).sum())


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


def naive_tails(
    rows: Rows, target: Target, group: int, disparity: float, relative: bool
) -> tuple[float, float]:
    factor = target.scale * (disparity if relative else 1.0)
    gap = rows.mean(rows.member(group)) - factor * rows.theta(target, group)
    variance, g, degrees = welch(rows, target, group, factor)
    t = (gap - (0.0 if relative else disparity)) / np.sqrt(variance)
    # Hall (1992), which may only make a tail larger
    turned = t + g * t**2 / 3 + g**2 * t**3 / 27 + g / 6
    up = max(float(student.sf(x, degrees)) for x in (t, turned))
    down = max(float(student.cdf(x, degrees)) for x in (t, turned))
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
    pivot = StudentPivot(comparison=found)
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
    spread = row_spread(found, np.full(4, target.scale))
    aim = [welch(rows, target, group, target.scale) for group in range(4)]
    np.testing.assert_allclose(spread.variance, [x[0] for x in aim], rtol=1e-8)
    np.testing.assert_allclose(spread.skewness, [x[1] for x in aim], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(spread.degrees, [x[2] for x in aim], rtol=1e-7)


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
            StudentPivot(comparison=compare(x.moments(), target, x.sums)).tails(
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
    spread = row_spread(found, np.full(4, 0.5))
    for group in range(4):
        own = rows.influence(targets_of(rows)["constant"], group, 0.0)
        aim = float(((own - 0.5 * psi / psi.size) ** 2).sum())
        assert spread.variance[group] == pytest.approx(aim, rel=5e-3)
        assert found.estimate[group] == pytest.approx(rows.mean(rows.member(group)) - 0.55)


def test_a_correction_for_skewness_never_makes_a_tail_smaller() -> None:
    rows = make_rows(7, draw=lambda rng, n: rng.lognormal(0, 1, n))
    found = compare(rows.moments(), targets_of(rows)["constant"], rows.sums)
    pivot = StudentPivot(comparison=found)
    spread = row_spread(found, np.ones(4))
    for shift in np.linspace(-2, 2, 9):
        up, down = pivot.tails(found.estimate + shift, np.arange(4))
        t = -shift / np.sqrt(spread.variance)
        assert bool((up >= student.sf(t, spread.degrees) - 1e-12).all())
        assert bool((down >= student.cdf(t, spread.degrees) - 1e-12).all())


def test_the_guard_is_the_stated_factor_and_names_the_rows_it_takes() -> None:
    skewness, score = np.array([0.01, 0.2, -0.4]), 3.0
    off = np.abs(skewness) * score**3 / 6
    assert too_skewed(skewness, score).tolist() == (off > SKEW_LIMIT).tolist()
    # a low score is judged as if it were further out
    assert too_skewed(skewness, 0.1).tolist() == too_skewed(skewness, LEAST_SCORE).tolist()
    rows = np.array([400.0, 100.0, 50.0])
    needed = rows_needed(rows, skewness, score)
    # skewness of a mean falls with the root of its rows, and then just passes
    then = np.abs(skewness) * np.sqrt(rows / needed) * score**3 / 6
    assert bool((then <= SKEW_LIMIT).all())
    assert bool((needed >= LEAST_ROWS).all())
    assert bool((needed[1:] > rows[1:]).all())


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
    from equipoise.methods.inference.comparison import plain_moments
    from equipoise.methods.targets import Constant

    found = compare(plain_moments(*powers), Constant(value=1.0), lambda x: x)
    tails = StudentPivot(comparison=found).tails(np.zeros(worlds), np.arange(worlds))
    wrong = int((tails[side] <= 0.025).sum())
    assert wrong <= binom.ppf(1 - 1e-4, worlds, 0.025)
