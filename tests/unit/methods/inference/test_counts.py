"""The pivot of counts: exact against a number, and against all tables where the target is rows."""

import numpy as np
import pytest
from scipy.stats import beta, binom

from equipoise.methods.inference.core import bounds
from equipoise.methods.inference.counts import CountPivot, constrained_rates
from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.targets import (
    Comparison,
    Complement,
    Constant,
    Moments,
    Overall,
    Reference,
    Target,
    compare,
    plain_moments,
)
from tests.unit.methods.inference.naive import most_likely_theta, two_part_tails


def stacked(target: Target, rows: FloatArray, ones: FloatArray, relative: bool) -> CountPivot:
    """Tables side by side: parts of shape ``(parts, tables)``."""
    parts: Moments = plain_moments(rows, ones, ones, ones)
    found = Comparison(target=target, relative=relative, parts=parts)
    return CountPivot(comparison=found, rows=rows, degrees=np.full(rows.shape[1], np.inf))


def every_table(n: int, m: int) -> tuple[FloatArray, FloatArray]:
    """Rows and ones of all tables of two parts of n and m rows."""
    k, j = np.meshgrid(np.arange(n + 1.0), np.arange(m + 1.0), indexing="ij")
    ones = np.stack([k.ravel(), j.ravel()])
    return np.stack([np.full(ones.shape[1], float(n)), np.full(ones.shape[1], float(m))]), ones


def all_of(pivot: CountPivot) -> IntArray:
    return np.arange(pivot.estimate.size)


# --- a known target: exact -----------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 40, 900])
@pytest.mark.parametrize("delta", [-0.25, 0.0, 0.1])
def test_against_a_number_the_tails_are_the_binomial_ones(n: int, delta: float) -> None:
    k = np.arange(n + 1.0)
    pivot = stacked(Constant(value=0.3), np.full((1, n + 1), float(n)), k[None], False)
    up, down = pivot.tails(np.full(n + 1, delta), all_of(pivot))
    # counts with a variance above a hundred have a saddlepoint's tails: three digits, not nine
    rtol = 1e-7 if n * (0.3 + delta) * (0.7 - delta) < 100 else 1e-2
    for found, aim in ((up, binom.sf(k - 1, n, 0.3 + delta)), (down, binom.cdf(k, n, 0.3 + delta))):
        usual = aim > 1e-6
        np.testing.assert_allclose(found[usual], aim[usual], rtol=rtol)
        np.testing.assert_allclose(found[~usual], aim[~usual], rtol=10 * rtol, atol=1e-12)


def test_a_ratio_to_a_number_is_a_rate() -> None:
    k = np.arange(11.0)
    pivot = stacked(Constant(value=0.4, scale=0.5), np.full((1, 11), 10.0), k[None], True)
    up, _ = pivot.tails(np.full(11, 1.5), all_of(pivot))
    np.testing.assert_allclose(up, binom.sf(k - 1, 10, 1.5 * 0.5 * 0.4), rtol=1e-7)


@pytest.mark.parametrize("n", [1, 3, 12, 60, 400])
def test_bounds_against_a_number_are_those_of_clopper_and_pearson(n: int) -> None:
    k = np.arange(n + 1.0)
    pivot = stacked(Constant(value=0.25), np.full((1, n + 1), float(n)), k[None], False)
    low, high = bounds(pivot, all_of(pivot), 1.959964, (-0.25, 0.75))
    alpha = 0.025
    aim_low = np.where(k > 0, beta.ppf(alpha, k, n - k + 1), 0.0) - 0.25
    aim_high = np.where(k < n, beta.ppf(1 - alpha, k + 1, n - k), 1.0) - 0.25
    np.testing.assert_allclose(low, aim_low, atol=3e-4 * pivot.error.max() + 1e-9)
    np.testing.assert_allclose(high, aim_high, atol=3e-4 * pivot.error.max() + 1e-9)


# --- two parts: every table ----------------------------------------------------------------------


SIZES = [(3, 5), (6, 6), (10, 4), (2, 14)]


@pytest.mark.parametrize("delta", [-0.3, -0.05, 0.0, 0.2])
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_against_everyone_else_tails_are_those_of_the_most_likely_rates(
    n: int, m: int, delta: float
) -> None:
    """No smaller than at the constrained maximum, no larger than at the worst rate near it."""
    rows, ones = every_table(n, m)
    pivot = stacked(Complement(), rows, ones, False)
    up, down = pivot.tails(np.full(rows.shape[1], delta), all_of(pivot))
    for i in range(0, rows.shape[1], 4):
        k = int(ones[0, i]), int(ones[1, i])
        theta = most_likely_theta((n, m), k, delta)
        at_fit = two_part_tails((n, m), k, delta, theta)
        assert up[i] >= at_fit[0] - 1e-5
        assert down[i] >= at_fit[1] - 1e-5
        # the rate that the null leaves open is moved by up to two standard errors, or what they
        # would be if half a row of the rarer kind had been seen
        rates, size = np.array([theta + delta, theta]), np.array([n, m])
        variance = np.maximum(rates * (1 - rates), 0.25 / size) / size
        move = 2.05 / np.sqrt((1 / variance).sum())
        low, high = max(0.0, -delta, theta - move), min(1.0, 1 - delta, theta + move)
        near = [two_part_tails((n, m), k, delta, t) for t in np.linspace(low, high, 21)]
        assert up[i] <= max(x for x, _ in near) * 1.02 + 1e-6
        assert down[i] <= max(y for _, y in near) * 1.02 + 1e-6


@pytest.mark.parametrize("ratio", [0.5, 0.8, 1.25])
def test_a_ratio_is_a_contrast_with_a_stretched_target(ratio: float) -> None:
    """μ/θ = r is μ − rθ = 0: the same tables count, whatever they are called."""
    rows, ones = every_table(6, 8)
    as_ratio = stacked(Complement(), rows, ones, True)
    as_gap = stacked(Complement(scale=ratio), rows, ones, False)
    some = np.flatnonzero(ones[1] > 0)
    one = as_ratio.tails(np.full(some.size, ratio), some)
    two = as_gap.tails(np.zeros(some.size), some)
    np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)


def test_against_everyone_zero_is_equality_with_everyone_else() -> None:
    """A group equals everyone exactly if it equals everyone else."""
    rows, ones = every_table(5, 9)
    every = np.zeros(rows.shape[1])
    one = stacked(Overall(), rows, ones, False).tails(every, np.arange(every.size))
    two = stacked(Complement(), rows, ones, False).tails(every, np.arange(every.size))
    np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("delta", [-0.1, 0.05, 0.2])
def test_against_everyone_shares_are_uncertain_too(delta: float) -> None:
    """With the share held fixed it is a stretched gap to the others; its error can only add."""
    rows, ones = every_table(6, 10)
    everyone, others = (
        stacked(Overall(), rows, ones, False),
        stacked(Complement(), rows, ones, False),
    )
    every = np.arange(rows.shape[1])
    fixed = others.tails(np.full(every.size, delta / (1 - 6 / 16)), every)
    both = everyone.tails(np.full(every.size, delta), every)
    for x, y in zip(both, fixed, strict=True):
        assert bool((x >= y * (1 - 1e-6) - 1e-9).all())


def test_a_reference_that_overlaps_counts_shared_rows_once() -> None:
    """A group inside the reference is that group against all of it, as if it were everyone."""
    cells = plain_moments(*(np.array(x) for x in ([8.0, 12.0, 30.0], *[[3.0, 9.0, 11.0]] * 3)))
    reference = Reference(cells=np.array([True, True, False]))
    inside = compare(cells, reference, lambda x: x[..., :1])
    alone = compare(
        plain_moments(*(np.array(x) for x in ([8.0, 12.0], *[[3.0, 9.0]] * 3))),
        Overall(),
        lambda x: x[..., :1],
    )
    for delta in (-0.2, 0.0, 0.1):
        one, two = (
            CountPivot(comparison=x, rows=x.parts.rows, degrees=np.full(1, np.inf)).tails(
                np.array([delta]), np.array([0])
            )
            for x in (inside, alone)
        )
        np.testing.assert_allclose(one, two, rtol=1e-9)


def test_a_reference_apart_is_a_complement() -> None:
    counts = (np.array(x) for x in ([8.0, 12.0, 30.0], *[[3.0, 9.0, 11.0]] * 3))
    cells = plain_moments(*counts)
    apart = compare(cells, Reference(cells=np.array([False, True, False])), lambda x: x[..., :1])
    pair = stacked(Complement(), np.array([[8.0], [12.0]]), np.array([[3.0], [9.0]]), False)
    found = CountPivot(comparison=apart, rows=apart.parts.rows, degrees=np.full(1, np.inf))
    for delta in (-0.4, 0.0, 0.1):
        at = np.array([delta]), np.array([0])
        np.testing.assert_allclose(found.tails(*at), pair.tails(*at), rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.05, 0.01])
@pytest.mark.parametrize("delta", [0.0, 0.1, -0.2])
@pytest.mark.parametrize(("n", "m"), [(5, 12), (10, 10), (3, 20), (8, 25)])
@pytest.mark.parametrize("target", [Complement(), Overall()])
def test_true_sizes_over_all_tables(
    target: Target, n: int, m: int, delta: float, alpha: float
) -> None:
    """The chance of p ≤ α under the null is a finite sum; nowhere half a point above α."""
    rows, ones = every_table(n, m)
    pivot = stacked(target, rows, ones, False)
    p = pivot.tails(np.full(rows.shape[1], delta), all_of(pivot))
    # at known shares the gap to everyone is that to the others, shrunk by their share
    gap = delta if isinstance(target, Complement) else delta * (n + m) / m
    for theta in np.linspace(max(0.0, -gap), min(1.0, 1 - gap), 60):
        chance = binom.pmf(ones[0], n, np.clip(theta + gap, 0, 1)) * binom.pmf(ones[1], m, theta)
        for tail in p:
            assert float(chance @ (tail <= alpha)) <= alpha + 0.005


# --- sense ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [Constant(value=0.4), Complement(), Overall()])
@pytest.mark.parametrize("relative", [False, True])
def test_one_of_the_two_tails_is_large(target: Target, relative: bool) -> None:
    """What was seen counts in both tails, so they add up to more than one."""
    rows, ones = every_table(4, 7)
    if isinstance(target, Constant):
        rows, ones = rows[:1], ones[:1]
    pivot = stacked(target, rows, ones, relative)
    usable = np.flatnonzero(np.isfinite(pivot.estimate))
    for at in (0.3, 0.9, 1.2) if relative else (-0.3, 0.0, 0.2):
        up, down = pivot.tails(np.full(usable.size, at), usable)
        assert bool((up + down >= 1 - 1e-9).all())
        assert bool((up <= 1).all())
        assert bool((down <= 1).all())


@pytest.mark.parametrize("target", [Constant(value=0.4), Complement(), Overall()])
def test_at_the_estimate_neither_tail_is_small(target: Target) -> None:
    rows, ones = every_table(5, 8)
    if isinstance(target, Constant):
        rows, ones = rows[:1], ones[:1]
    pivot = stacked(target, rows, ones, False)
    up, down = pivot.tails(pivot.estimate, all_of(pivot))
    assert float(np.minimum(up, down).min()) > 0.25


def test_effective_rows_and_degrees_only_widen() -> None:
    rows, ones = np.array([[40.0], [60.0]]), np.array([[10.0], [30.0]])
    plain = stacked(Complement(), rows, ones, False)
    worth = CountPivot(comparison=plain.comparison, rows=rows / 2, degrees=np.full(1, np.inf))
    student = CountPivot(comparison=plain.comparison, rows=rows / 2, degrees=np.full(1, 6.0))
    width = [
        float(np.subtract(*bounds(x, np.arange(1), 1.96, (-1.0, 1.0))[::-1])[0])
        for x in (plain, worth, student)
    ]
    assert width[0] < width[1] < width[2]


def test_constrained_rates_are_the_most_likely_ones() -> None:
    rows, ones = every_table(6, 9)
    a = np.tile(np.array([[1.0], [-1.0]]), (1, rows.shape[1]))
    for delta in (-0.5, -0.1, 0.0, 0.3):
        fitted, _ = constrained_rates(rows, ones / rows, a, np.full(rows.shape[1], delta))
        for i in range(0, rows.shape[1], 4):
            theta = most_likely_theta((6, 9), (int(ones[0, i]), int(ones[1, i])), delta)
            assert fitted[1, i] == pytest.approx(theta, abs=1e-5)
            assert fitted[0, i] == pytest.approx(theta + delta, abs=1e-5)


@pytest.mark.parametrize(
    ("rows", "ones"),
    [((2332, 48), (241, 44)), ((399, 1), (40, 1)), ((396, 4), (40, 1)), ((380, 20), (40, 20))],
)
def test_a_group_of_nearly_everybody_is_bounded_by_how_few_others_there_are(
    rows: tuple[int, int], ones: tuple[int, int]
) -> None:
    # its distance from everyone is at most the share of the others, which is known fairly well
    n, k = (np.array(x, dtype=float)[:, None] for x in (rows, ones))
    pivot = stacked(Overall(), n, k, False)
    low, high = bounds(pivot, all_of(pivot), 1.96, (-1.0, 1.0))
    # the share that no sample of this size would hide, twice, since it is moved to be safe
    most = 2 * beta.ppf(0.9995, rows[1] + 1, rows[0])
    assert -most < low[0] < pivot.estimate[0] < high[0] < most
    up, _ = pivot.tails(np.full(1, -2 * most), all_of(pivot))
    assert up[0] < 1e-4


@pytest.mark.parametrize(("at", "relative"), [(0.2, False), (1.25, True)])
def test_a_group_whose_size_is_drawn_errs_no_more_than_it_says(at: float, relative: bool) -> None:
    """All tables of 30 rows, of which some 21 are of a group with hardly a zero, added up."""
    total, share, rest = 30, 0.7, 0.33
    own = at * (1 - share) * rest / (1 - at * share) if relative else rest + at / (1 - share)
    n, k, j = np.meshgrid(*(np.arange(total + 1.0) for _ in range(3)), indexing="ij")
    chance = binom.pmf(n, total, share) * binom.pmf(k, n, own) * binom.pmf(j, total - n, rest)
    there = (n > 0) & (n < total) & (chance > 1e-9)
    n, k, j, chance = n[there], k[there], j[there], chance[there]
    pivot = stacked(Overall(), np.stack([n, total - n]), np.stack([k, j]), relative)
    for tail in pivot.tails(np.full(n.size, at), all_of(pivot)):
        for error in (0.1, 0.05, 0.01):
            assert chance[tail <= error].sum() <= error + 0.005
