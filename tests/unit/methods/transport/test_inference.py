"""Intervals and tests of the audit value: exact cases, choices of method, coverage."""

import numpy as np
import pytest
from scipy.special import bdtr, ndtri

from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.transport import (
    AnswerKind,
    Inference,
    Method,
    Problem,
    from_matrix,
    infer,
    prepare,
    within_classes,
)
from equipoise.methods.transport.limits import BetaLimit
from tests.unit.methods.transport import world

WORLDS = 400


def _infer(
    problem: Problem, counts: IntArray | list[int], method: Method = Method.AUTO
) -> Inference:
    return infer(problem, counts, rng=np.random.default_rng(1), method=method, resamples=300)


def _misses(
    problem: Problem, weights: FloatArray, n: int, method: Method, worlds: int = WORLDS
) -> tuple[int, int, int]:
    """How often the two-sided interval, the lower and the upper bound miss, all at 95 %."""
    truth, rng = float(problem.values(weights)), np.random.default_rng(20)
    out = np.zeros(3, dtype=int)
    for _ in range(worlds):
        found = infer(problem, rng.multinomial(n, weights), rng=rng, method=method, resamples=300)
        ends, low, high = found.interval(0.95), found.lower(0.95), found.upper(0.95)
        assert ends is not None
        assert low is not None
        assert high is not None
        inside = ends[0] - 1e-12 <= truth <= ends[1] + 1e-12
        out += [not inside, low > truth + 1e-12, high < truth - 1e-12]
    return int(out[0]), int(out[1]), int(out[2])


def _too_many(misses: int, worlds: int = WORLDS) -> bool:
    """Whether more misses than 5 % would explain, once in 10 000."""
    return float(bdtr(misses - 1, worlds, 0.05)) > 1 - 1e-4 if misses else False


@pytest.mark.parametrize("n", [500, 5000])
@pytest.mark.parametrize("cells", [8, 30])
def test_coverage_with_a_unique_dual(n: int, cells: int) -> None:
    problem, weights = world.apart(cells)
    assert not any(map(_too_many, _misses(problem, weights, n, Method.AUTO)))


@pytest.mark.parametrize("n", [500, 5000])
@pytest.mark.parametrize("shift", [-1.0, 0.0, 1.0, 2.0])
def test_coverage_at_and_near_a_dual_that_is_not_unique(n: int, shift: float) -> None:
    problem, weights = world.kinked(shift, n)
    assert not any(map(_too_many, _misses(problem, weights, n, Method.AUTO)))


def test_the_plain_bootstrap_fails_where_the_dual_is_not_unique() -> None:
    problem, weights = world.kinked()
    _, _, upper = _misses(problem, weights, 2000, Method.BOOTSTRAP)
    assert _too_many(upper)


@pytest.mark.parametrize("method", [Method.BOOTSTRAP, Method.M_OUT_OF_N, Method.NUMERICAL])
def test_the_published_methods_fail_one_standard_error_from_a_tie(method: Method) -> None:
    problem, weights = world.kinked(-1.0, 2000)
    both, lower, _ = _misses(problem, weights, 2000, method, 150)
    assert _too_many(both, 150)
    assert _too_many(lower, 150)


@pytest.mark.parametrize("method", [Method.BOOTSTRAP, Method.M_OUT_OF_N, Method.NORMAL])
def test_other_methods_cover_where_the_value_is_linear(method: Method) -> None:
    rng = np.random.default_rng(2)
    problem = prepare(within_classes(np.arange(12) % 4), rng.random(12))
    both, _, _ = _misses(problem, np.full(12, 1 / 12), 2000, method)
    assert not _too_many(both)


def test_automatic_choice() -> None:
    exact = _infer(prepare(within_classes([0, 0, 1, 1]), [0, 1, 1, 1]), [5, 5, 5, 5])
    assert exact.method is Method.EXACT
    graded = _infer(prepare(within_classes([0, 0, 0]), [0, 0.5, 1]), [50, 50, 50])
    assert graded.method is Method.BETA
    problem, weights = world.kinked()
    tied = _infer(problem, (weights * 1000).round().astype(int))
    assert tied.method is Method.DIRECTIONAL
    assert not tied.prices.unique
    assert tied.near[0] <= tied.prices.lowest < tied.prices.highest <= tied.near[1]
    far = _infer(problem, [900, 50, 50, 0, 0])
    assert (far.method, far.smooth, far.prices.unique) == (Method.BETA, True, True)


def test_exact_interval_is_clopper_pearson() -> None:
    found = _infer(prepare(within_classes([0, 0]), [0, 0.5]), [6, 94])
    # limits of 6 of 100, from their defining tails
    low, high = (2 * x for x in found.interval(0.95) or (0, 0))
    assert bdtr(5, 100, low) == pytest.approx(0.975)
    assert bdtr(6, 100, high) == pytest.approx(0.025)
    assert found.p_above(0.5 * low) == pytest.approx(0.025)
    assert found.p_below(0.5 * high) == pytest.approx(0.025)
    none = _infer(prepare(within_classes([0, 0]), [0, 1]), [0, 50])
    assert none.interval(0.9) == pytest.approx((0.0, 1 - 0.05 ** (1 / 50)))
    assert none.p_above(0.0) == 1.0


def test_normal_interval_by_hand() -> None:
    counts, gain = np.array([40, 40, 20]), np.array([1, 0.5, 0])
    problem = prepare(within_classes([0, 0, 0]), [0, 0.5, 1])
    found = _infer(problem, counts, Method.NORMAL)
    mean = (counts @ gain) / 100
    error = np.sqrt(counts @ (gain - mean) ** 2 / 100 / 100)
    expected = (mean - ndtri(0.975) * error, mean + ndtri(0.975) * error)
    assert found.interval(0.95) == pytest.approx(expected)
    assert found.p_above(mean) == pytest.approx(0.5)


@pytest.mark.parametrize("method", list(Method))
def test_bounds_and_p_values_say_the_same(method: Method) -> None:
    exact = method is Method.EXACT
    problem = prepare(within_classes([0, 0, 0]), [0, 0.0 if exact else 0.5, 1])
    found = _infer(problem, [300, 500, 200], method)
    low, high = found.lower(0.9), found.upper(0.9)
    assert low is not None
    assert high is not None
    assert low < found.value < high
    for delta in (low - 0.003, low + 0.003):
        p = found.p_above(delta)
        assert p is not None
        assert (p < 0.1) == (delta < low)
    for delta in (high - 0.003, high + 0.003):
        p = found.p_below(delta)
        assert p is not None
        assert (p < 0.1) == (delta > high)


def test_the_upper_end_lies_above_the_value() -> None:
    """With the sign of the upper quantile as printed the interval would be empty or inverted."""
    problem, weights = world.apart()
    counts = (weights * 800).astype(int)
    for method in (Method.BOOTSTRAP, Method.M_OUT_OF_N, Method.DIRECTIONAL):
        found = _infer(problem, counts, method)
        low, high = found.interval(0.95) or (0, 0)
        assert low < found.value < high


def test_one_segment_takes_all_the_budget() -> None:
    problem, weights = world.tied()
    scarce = prepare(
        from_matrix([[0, np.inf, 1], [np.inf, 0, 1], [np.inf, np.inf, 0]]),
        problem.losses,
        budget=0.1,
    )
    for method in Method:
        if method is Method.EXACT:
            continue
        found = _infer(scarce, (weights * 1000).round().astype(int), method)
        assert found.outcome is AnswerKind.DEGENERATE
        assert found.interval(0.95) == (found.value, found.value)
        assert found.value == pytest.approx(0.1)
        assert found.p_above(0.05) is None
        assert "no sampling error" in found.reason


def test_a_constant_loss_is_degenerate() -> None:
    found = _infer(prepare(within_classes([0, 0]), [1, 1]), [3, 4])
    assert (found.outcome, found.interval(0.95)) == (AnswerKind.DEGENERATE, (0.0, 0.0))


def test_unseen_cells_keep_the_interval_open() -> None:
    problem = prepare(within_classes([0, 0, 0, 1, 1]), [0, 0.5, 1, 1, 1])
    found = _infer(problem, [0, 0, 0, 20, 30])
    assert found.outcome is AnswerKind.UNSEEN
    assert found.value == 0
    # unseen mass of at most 1 − 0.05^(1/50) may gain up to 1
    assert found.upper(0.95) == pytest.approx(1 - 0.05 ** (1 / 50))
    assert found.lower(0.95) == 0.0
    assert found.p_below(0.1) == pytest.approx(0.9**50)
    assert found.p_above(0.1) == 1.0


def test_unseen_cells_can_lower_a_positive_value() -> None:
    problem = prepare(within_classes([0, 0, 1, 1, 1]), [0, 1, 0, 0.5, 0.6])
    found = _infer(problem, [50, 0, 0, 0, 0])
    assert (found.value, found.outcome) == (1.0, AnswerKind.UNSEEN)
    assert found.interval(0.9) == pytest.approx((0.05 ** (1 / 50), 1.0))
    assert found.p_above(0.9) == pytest.approx(0.9**50)


def test_no_draw_kept_is_an_outcome() -> None:
    rng = np.random.default_rng(3)
    problem = prepare(within_classes(np.arange(30) % 3), rng.random(30))
    found = _infer(problem, np.full(30, 20), Method.NUMERICAL)
    assert found.outcome is AnswerKind.NO_DRAWS
    assert found.limit is None
    assert found.interval() is None
    assert found.p_above(0.1) is None
    assert f"of {found.tries} normal vectors" in found.reason


def test_same_seed_same_answer() -> None:
    problem, weights = world.kinked()
    counts = (weights * 700).round().astype(int)
    for method in (Method.AUTO, Method.BOOTSTRAP, Method.M_OUT_OF_N, Method.NUMERICAL):
        assert _infer(problem, counts, method).interval() == (
            _infer(problem, counts, method).interval()
        )


def test_bounds_stay_in_range() -> None:
    problem = prepare(within_classes([0, 0, 0]), [0, 0.5, 1])
    normal = _infer(problem, [1, 0, 40], Method.NORMAL)
    assert normal.limit is not None
    assert normal.limit.lower(0.0005) < 0
    assert normal.lower(0.9995) == 0.0
    high = _infer(problem, [40, 0, 1], Method.NORMAL)
    assert high.limit is not None
    assert high.limit.upper(0.0005) > high.ceiling == high.upper(0.9995) == 1.0


def test_one_row_never_makes_an_exact_value() -> None:
    # every segment has the same slope, so the value is 0.25 as long as enough people can move
    problem = prepare(from_matrix([[0, 1, 2], [1, 0, 1], [2, 1, 0]]), [0, 0.5, 1], budget=0.5)
    one = _infer(problem, [1, 0, 0])
    assert one.outcome is AnswerKind.UNSEEN
    assert one.interval(0.9) == pytest.approx((0.25 * 0.05, 0.25))
    many = _infer(problem, [400, 300, 300])
    assert (many.outcome, many.value) == (AnswerKind.DEGENERATE, 0.25)


@pytest.mark.parametrize("method", [m for m in Method if m is not Method.EXACT])
def test_few_rows_are_an_outcome(method: Method) -> None:
    problem = prepare(within_classes([0, 0, 0]), [0, 0.5, 1])
    found = _infer(problem, [9, 10, 10], method)
    assert found.outcome is AnswerKind.FEW_ROWS
    assert found.interval() is None
    assert "30 rows" in found.reason
    assert _infer(problem, [10, 10, 10]).interval() is not None
    # the exact method needs no minimum
    assert _infer(prepare(within_classes([0, 0]), [0, 1]), [1, 0]).interval() is not None


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_the_unit_of_cost_does_not_matter(unit: float) -> None:
    inf = np.inf
    costs = unit * np.array([[0, inf, 1], [inf, 0, 1], [inf, inf, 0]])
    problem = prepare(from_matrix(costs), [0.0, 0.8, 1.0], budget=0.3 * unit)
    found = _infer(problem, [300, 400, 300])
    assert found.method is Method.DIRECTIONAL
    assert not found.prices.unique
    expected = _infer(world.tied()[0], [300, 400, 300])
    assert found.interval() == pytest.approx(expected.interval())


def test_beta_interval_is_exact_with_two_gains_and_normal_in_large_samples() -> None:
    two = prepare(within_classes([0, 0]), [0, 0.5])
    for counts in ([6, 94], [0, 100], [100, 0], [1, 0]):
        rng = np.random.default_rng(1)
        exact = infer(two, counts, rng=rng, method=Method.EXACT)
        assert exact.limit is not None
        gain, n = 0.5 * counts[0] / sum(counts), sum(counts)
        beta = BetaLimit(
            offset=0.0, n=n, mean=gain, variance=gain * (0.5 - gain), low=0.0, high=0.5
        )
        for alpha in (0.025, 0.2):
            assert beta.lower(alpha) == pytest.approx(exact.limit.lower(alpha), abs=1e-12)
            assert beta.upper(alpha) == pytest.approx(exact.limit.upper(alpha), abs=1e-12)
        for delta in (0.01, 0.2):
            assert beta.p_above(delta) == pytest.approx(exact.limit.p_above(delta), abs=1e-12)
            assert beta.p_below(delta) == pytest.approx(exact.limit.p_below(delta), abs=1e-12)
    graded = prepare(within_classes([0, 0, 0]), [0, 0.5, 1])
    ends = [
        _infer(graded, [400_000, 400_000, 200_000], method).interval()
        for method in (Method.BETA, Method.NORMAL)
    ]
    assert ends[0] == pytest.approx(ends[1], abs=2e-6)


def test_rare_gains_do_not_shorten_the_upper_bound() -> None:
    problem = prepare(within_classes([0, 0, 1, 1, 2, 2]), [0, 0.4, 0, 1, 0, 0])
    weights = np.array([0.005, 0.3, 0.005, 0.3, 0.2, 0.19])
    assert not any(map(_too_many, _misses(problem, weights, 500, Method.AUTO)))
    # the normal limit is no good here, which is why it is not the default
    assert _too_many(_misses(problem, weights, 500, Method.NORMAL)[2])
