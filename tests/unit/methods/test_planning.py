"""How many rows: the mathematics, beside naive versions and enumeration."""

import itertools

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom

from equipoise.methods.hypotheses import (
    Above,
    Outside,
    benjamini_hochberg,
    e_benjamini_hochberg,
    holm,
    inverse_e_values,
)
from equipoise.methods.numerics import BoolArray, FloatArray
from equipoise.methods.planning import (
    ToFlag,
    ToShow,
    best_split,
    chance,
    coefficients,
    smallest_flagged,
    step_down,
    step_up,
    times_larger,
    whole_rows,
)
from equipoise.methods.simulated import (
    BLOCKS,
    CountSimulator,
    ScoreSimulator,
    binomial_quantiles,
    even_points,
    quick_scores,
    sharp_tails,
)
from equipoise.methods.targets import Complement, Constant, Overall, Reference, Target, compare
from equipoise.methods.targets import plain_moments as plain

SEED = np.random.SeedSequence(5)


def same(p: FloatArray) -> FloatArray:
    return p


def simulator(
    rows: list[float],
    rate: float,
    target: Target,
    member: BoolArray | None = None,
    relative: bool = False,
) -> CountSimulator:
    own = np.eye(len(rows), dtype=bool) if member is None else member
    return CountSimulator(
        rows=np.array(rows), rate=rate, member=own, target=target, relative=relative, seed=SEED
    )


def flagging(null: Outside | Above, rate: float = 0.1) -> ToFlag:
    return ToFlag(null=null, rate=rate, adjust=same, steps=step_up)


DIFFERENT = Outside(low=0.0, high=0.0)


@pytest.mark.parametrize(
    ("rows", "rate"), [(1, 0.5), (7, 0.02), (60, 0.3), (5000, 0.9), (40, 1.0), (40, 0.0)]
)
def test_quantiles_are_those_of_the_binomial(rows: int, rate: float) -> None:
    u = np.random.default_rng(2).random(400)
    np.testing.assert_array_equal(
        binomial_quantiles(u, float(rows), rate), binom.ppf(u, rows, rate)
    )


def test_points_fill_the_cube_evenly_and_blocks_differ() -> None:
    points = even_points(4096, 4, np.random.default_rng(1))
    assert np.abs(points.mean(axis=0) - 0.5).max() < 0.005
    assert np.abs(np.cov(points.T) - np.eye(4) / 12).max() < 0.003
    first, second = points.reshape(BLOCKS, -1, 4)[:2]
    assert not np.allclose(first, second)


@pytest.mark.parametrize("seed", range(6))
def test_thresholds_flag_whom_the_adjustment_flags(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.random((300, 7)) ** rng.choice([1, 3, 8], (300, 7))
    for adjust, steps, made in (
        (benjamini_hochberg, step_up, same),
        (e_benjamini_hochberg, step_up, inverse_e_values),
        (holm, step_down, same),
    ):
        value = made(p)
        for group in range(7):
            others = np.sort(np.delete(value, group, axis=1), axis=1)
            flagged = value[:, group] <= steps(others, 0.1) * (1 + 1e-12)
            wanted = [adjust(one)[group] <= 0.1 * (1 + 1e-12) for one in p]
            assert flagged.tolist() == wanted


@pytest.mark.parametrize(("rows", "rate"), [(12, 0.2), (60, 0.3), (500, 0.02), (3000, 0.7)])
def test_against_a_number_the_power_is_that_of_all_outcomes(rows: int, rate: float) -> None:
    of = simulator([float(rows)], rate, Constant(value=rate))
    k = np.arange(rows + 1)
    tails = np.minimum(binom.sf(k - 1, rows, rate), binom.cdf(k, rows, rate))
    rejected = np.minimum(2 * tails, 1) <= 0.1
    found = smallest_flagged(of, flagging(DIFFERENT), 0, 0.8, up=True)
    power = binom.pmf(k, rows, rate + found.at)[rejected].sum()
    assert power == pytest.approx(0.8, abs=0.006)


def test_two_small_groups_reach_the_power_of_all_tables() -> None:
    """Every table of 25 and 30 rows: the chance of those in which the audit flags the first."""
    rows, rate = (25.0, 30.0), 0.4
    of = simulator([*rows], rate, Complement())
    ask = flagging(DIFFERENT)
    found = smallest_flagged(of, ask, 0, 0.8, up=False)
    ones = np.array([*itertools.product(range(26), range(31))], dtype=float)

    def p_value(own: int) -> FloatArray:
        parts = ones.T[[own, 1 - own]]
        size = np.repeat(np.array([[rows[own]], [rows[1 - own]]]), len(ones), axis=1)
        up, down = sharp_tails(of, size, parts, 0.0)
        return np.minimum(2 * np.minimum(up, down), 1.0)

    both = np.stack([p_value(0), p_value(1)], axis=1)
    flagged = np.array([benjamini_hochberg(p)[0] <= 0.1 for p in both])
    weight = binom.pmf(ones[:, 0], 25, rate + found.at) * binom.pmf(ones[:, 1], 30, rate)
    assert weight[flagged].sum() == pytest.approx(0.8, abs=0.012)
    assert found.chance.error < 0.012


def test_rows_to_show_a_tolerance_show_it() -> None:
    of, ask = (
        simulator([200.0], 0.3, Constant(value=0.3)),
        ToShow(low=-0.1, high=0.1, critical=1.96),
    )
    found = times_larger(of, ask, 0, None, 0.8, 0.1)
    rows = round(200 * found.at)
    k = np.arange(rows + 1)
    shown = (binom.sf(k - 1, rows, 0.2) <= 0.025) & (binom.cdf(k, rows, 0.4) <= 0.025)
    assert binom.pmf(k, rows, 0.3)[shown].sum() == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize(
    "target",
    [Overall(), Complement(), Overall(scale=0.8), Reference(cells=np.array([False, False, True]))],
)
def test_the_moved_rate_gives_the_disparity(target: Target, relative: bool) -> None:
    member = np.array([[1, 0], [1, 1], [0, 0]], dtype=bool)
    of = simulator([40.0, 60.0, 300.0], 0.3, target, member, relative)
    for aim in (1.2, 0.7) if relative else (0.1, -0.05):
        rates = np.where(member[:, 0], of.moved(0, aim), 0.3)
        cells = plain(of.rows, *[of.rows * rates] * 3)
        found = compare(cells, target, of.sums, relative=relative)
        assert found.estimate[0] == pytest.approx(aim)
        low, high = of.ends(0)
        assert low < aim < high


def test_quick_scores_are_those_of_two_proportions() -> None:
    rows = np.array([[100.0], [400.0]])
    ones = np.array([[40.0], [120.0]])
    z = quick_scores(rows, ones, np.array([[1.0], [-1.0]]), np.zeros(1))
    rate = 160 / 500
    wanted = 0.1 / np.sqrt(rate * (1 - rate) * (1 / 100 + 1 / 400))
    assert z[0] == pytest.approx(wanted, rel=0.01)


def test_a_group_too_small_is_never_flagged() -> None:
    of = simulator([3.0, 1000.0], 0.3, Complement())
    assert np.isnan(smallest_flagged(of, flagging(DIFFERENT, 0.01), 0, 0.8, up=False).at)


def test_more_power_takes_more() -> None:
    of = simulator([200.0, 800.0], 0.3, Overall())
    at = [
        smallest_flagged(of, flagging(Above(limit=0.02)), 0, q, up=True).at
        for q in (0.5, 0.8, 0.95)
    ]
    assert at == sorted(at)
    assert at[0] > 0.02
    times = [times_larger(of, flagging(DIFFERENT), 0, d, 0.8, d).at for d in (0.1, 0.05)]
    assert times[1] / times[0] == pytest.approx(4, rel=0.15)


def test_normal_scores_have_the_power_of_normal_theory() -> None:
    scores = np.random.default_rng(3).standard_normal((8192, 1))
    of = ScoreSimulator(
        errors=np.array([0.5]), degrees=np.array([np.inf]), scores=scores, even=0.0,
        along=np.eye(1), possible=(-np.inf, np.inf), seed=SEED,
    )  # fmt: skip
    found = smallest_flagged(of, flagging(DIFFERENT, 0.05), 0, 0.8, up=True)
    assert found.at == pytest.approx(0.5 * (ndtri(0.975) + ndtri(0.8)), rel=0.02)
    assert chance(of, flagging(DIFFERENT, 0.05), 0, 0.0).value == pytest.approx(0.05, abs=0.01)


# --- the best split ---


def widest(effect: FloatArray, rows: FloatArray) -> float:
    return float((effect / rows).sum(axis=1).max())


def test_against_a_number_rows_go_by_variance() -> None:
    found = best_split(np.diag([0.09, 0.25, 0.01]), 700.0)
    np.testing.assert_allclose(found, 700 * np.array([0.09, 0.25, 0.01]) / 0.35, rtol=1e-4)


def test_a_reference_gets_the_root_of_the_groups() -> None:
    """Four groups against a reference of the same variance: it gets twice a group's rows."""
    effect = np.concatenate([np.eye(4), np.ones((4, 1))], axis=1)
    found = best_split(effect, 600.0)
    np.testing.assert_allclose(found, [100, 100, 100, 100, 200], rtol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_no_other_split_is_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(5, 400, 5).astype(float)
    member = np.eye(5, dtype=bool)
    member = np.concatenate([member, member[:, :2].any(axis=1, keepdims=True)], axis=1)
    target: Target = [Overall(), Complement(), Constant(value=0.3), Overall(scale=0.8)][seed]
    effect = coefficients(rows, member, target) ** 2 * rng.random(5) * 0.25
    best = widest(effect, best_split(effect, 1000.0))
    for _ in range(300):
        other = rng.dirichlet(np.ones(5)) * 1000 + 1e-9
        assert widest(effect, other) >= best * (1 - 1e-4)


def test_effects_are_the_variance_of_the_disparity() -> None:
    """Against simulation: groups of two cells beside everyone else."""
    rows, rates = np.array([30.0, 90.0, 60.0]), np.array([0.2, 0.5, 0.7])
    member = np.array([[1], [1], [0]], dtype=bool)
    effect = coefficients(rows, member, Complement()) ** 2 * rates * (1 - rates)
    drawn = np.random.default_rng(1).binomial(rows.astype(int), rates, (40_000, 3)) / rows
    gap = 0.25 * drawn[:, 0] + 0.75 * drawn[:, 1] - drawn[:, 2]
    assert (effect / rows).sum() == pytest.approx(gap.var(), rel=0.03)


def test_whole_rows_add_up() -> None:
    rng = np.random.default_rng(0)
    for budget in (1, 7, 1000):
        share = rng.dirichlet(np.ones(9)) * budget
        found = whole_rows(share, budget)
        assert found.sum() == budget
        assert np.abs(found - share).max() < 1
