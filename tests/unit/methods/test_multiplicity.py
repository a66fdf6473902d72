"""Adjusted p-values by hand, by closure, and by a literal step-down."""

from itertools import combinations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

from equipoise.methods.hypotheses import (
    StepDown,
    benjamini_hochberg,
    benjamini_yekutieli,
    e_benjamini_hochberg,
    holm,
)
from equipoise.methods.numerics import FloatArray

P = np.array([0.01, 0.02, 0.03, 0.04, 0.9])
ALL = [benjamini_hochberg, benjamini_yekutieli, e_benjamini_hochberg, holm]


def test_hand_computed_values() -> None:
    np.testing.assert_allclose(benjamini_hochberg(P), [0.05, 0.05, 0.05, 0.05, 0.9])
    np.testing.assert_allclose(holm(P), [0.05, 0.08, 0.09, 0.09, 0.9])
    harmonic = 1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5
    np.testing.assert_allclose(benjamini_yekutieli(P), [*[0.05 * harmonic] * 4, 1.0])


@pytest.mark.parametrize("adjust", ALL)
def test_blanks_are_left_out_of_the_family(adjust: object) -> None:
    assert callable(adjust)
    mixed = np.array([np.nan, *P[:2], np.nan, *P[2:]])
    found = adjust(mixed)
    assert np.isnan(found[[0, 3]]).all()
    np.testing.assert_allclose(found[[1, 2, 4, 5, 6]], adjust(P))
    assert np.isnan(adjust(np.full(3, np.nan))).all()
    assert adjust(np.zeros(0)).size == 0


@pytest.mark.parametrize("adjust", ALL)
def test_order_of_the_groups_does_not_matter_and_p_never_shrinks(adjust: object) -> None:
    assert callable(adjust)
    rng = np.random.default_rng(3)
    p = rng.random(50) ** 3
    order = rng.permutation(50)
    np.testing.assert_allclose(adjust(p)[order], adjust(p[order]))
    assert np.all(adjust(p) >= p)
    assert np.all(np.diff(adjust(p)[np.argsort(p)]) >= 0)
    assert adjust(p).max() <= 1


def e_value(p: float) -> float:
    """∫₀¹ κ p^(κ−1) dκ by quadrature: a mixture of all power calibrators, each a bet against p."""
    return float(quad(lambda k: k * p ** (k - 1), 0.0, 1.0, epsabs=1e-13, limit=200)[0])


def e_bh(p: FloatArray, alpha: float) -> list[bool]:
    """Reject the k largest e-values for the largest k with e₍ₖ₎ ≥ m/(kα) (Wang and Ramdas)."""
    e = [e_value(x) for x in p]
    order = np.argsort(e)[::-1]
    passed = [k for k in range(1, p.size + 1) if e[order[k - 1]] >= p.size / (k * alpha)]
    chosen = set(order[: max(passed, default=0)].tolist())
    return [i in chosen for i in range(p.size)]


@pytest.mark.parametrize("seed", range(6))
def test_e_bh_rejects_what_its_definition_rejects(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.random(12) ** rng.choice([1, 4, 8], 12)
    adjusted = e_benjamini_hochberg(p)
    for alpha in (0.01, 0.05, 0.1, 0.3, 0.9):
        assert (adjusted <= alpha).tolist() == e_bh(p, alpha)


def test_one_e_value_is_a_mixture_of_bets() -> None:
    single = [float(e_benjamini_hochberg(np.array([x]))[0]) for x in (1e-6, 0.01, 0.2)]
    # an e-value below one is no evidence at all
    aims = [min(1 / e_value(x), 1.0) for x in (1e-6, 0.01, 0.2)]
    np.testing.assert_allclose(single, aims, rtol=1e-6)
    # the smallest and the largest p-value have limits
    assert e_benjamini_hochberg(np.array([0.0]))[0] < 1e-200
    assert e_benjamini_hochberg(np.array([1.0]))[0] == 1.0


def test_e_bh_holds_under_any_dependence() -> None:
    """All nulls true and all p-values equal, or arranged to fool BH: 4000 worlds at 10 %."""
    rng, m, worlds = np.random.default_rng(5), 8, 4000
    # one p-value is small exactly where the others are large, each uniform on its own
    first = rng.random(worlds)
    turned = (first[:, None] + np.arange(m) / m) % 1.0
    for p in (np.tile(first[:, None], (1, m)), turned):
        rejected = sum(bool((e_benjamini_hochberg(row) <= 0.1).any()) for row in p)
        assert rejected <= binom.ppf(1 - 1e-4, worlds, 0.1)


def closure(p: FloatArray) -> FloatArray:
    """Largest Bonferroni p-value over every set of hypotheses that contains this one."""
    m = p.size
    sets = [s for k in range(1, m + 1) for s in combinations(range(m), k)]
    return np.array(
        [max(min(1.0, len(s) * min(p[list(s)])) for s in sets if j in s) for j in range(m)]
    )


def test_holm_is_the_closure_of_bonferroni() -> None:
    for seed in range(20):
        p = np.random.default_rng(seed).random(6) ** 2
        np.testing.assert_allclose(holm(p), closure(p))


def test_bh_rejects_what_the_step_up_rule_rejects() -> None:
    for seed in range(20):
        p = np.random.default_rng(seed).random(12) ** 4
        for alpha in (0.05, 0.1, 0.3):
            ranked = np.sort(p)
            passed = np.flatnonzero(ranked <= alpha * np.arange(1, 13) / 12)
            bar = ranked[passed[-1]] if passed.size else -1.0
            assert (benjamini_hochberg(p) <= alpha).tolist() == (p <= bar).tolist()


def max_t_closure(statistic: FloatArray, draws: FloatArray) -> FloatArray:
    """Largest max-T p-value over every set of hypotheses that contains this one."""
    m = statistic.size
    sets = [list(s) for k in range(1, m + 1) for s in combinations(range(m), k)]
    p = {
        tuple(s): (1 + np.sum(draws[:, s].max(axis=1) >= statistic[s].max())) / (1 + len(draws))
        for s in sets
    }
    return np.array([max(p[tuple(s)] for s in sets if j in s) for j in range(m)])


def test_step_down_is_the_closure_of_max_t() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        statistic, draws = rng.normal(1, 1, size=6), rng.normal(size=(80, 6))
        step = StepDown(statistic)
        for start in range(0, 80, 13):
            step.add(draws[start : start + 13])
        np.testing.assert_allclose(step.p_values(), max_t_closure(statistic, draws))


def test_step_down_with_blanks() -> None:
    draws = np.array([[0.0, 5.0, np.nan], [2.0, np.nan, 0.0]])
    step = StepDown(np.array([1.0, np.nan, 3.0]))
    step.add(draws)
    np.testing.assert_allclose(step.p_values(), [2 / 3, np.nan, 1 / 3])
    np.testing.assert_allclose(step.shares_above(), [0.5, np.nan, 0.0])
    assert draws[0, 1] == 5.0


def test_nothing_to_step_down() -> None:
    step = StepDown(np.array([np.nan]))
    step.add(np.zeros((3, 1)))
    assert np.isnan(step.p_values()).all()
