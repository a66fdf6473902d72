"""Estimates, scales and bounds: formulas, later questions, and degenerate worlds."""

import numpy as np
import pytest

from equipoise.methods.hypotheses import Above
from equipoise.methods.numerics import FloatArray, quantile
from equipoise.methods.published.bootstrap import (
    Aim,
    Audit,
    BinaryEngine,
    CellMoments,
    MomentsEngine,
    Scaling,
    Side,
    Unscaled,
    algorithm_4,
    bound_extremes,
    certify,
    combine,
    estimate_gaps,
    estimate_ratios,
    simultaneous_bounds,
    unweighted_moments,
)
from equipoise.methods.published.bootstrap.bounds import critical_value
from equipoise.methods.targets import Complement, Constant, Overall, Reference, Status, Target
from tests.unit.methods.published.bootstrap.naive import sums_of
from tests.unit.methods.published.bootstrap.world import (
    COLLECTIONS,
    REFERENCE,
    influence_of,
    influence_sums,
    make_world,
    targets,
)


def audit_of(
    moments: CellMoments, target: Target, table: np.ndarray, resamples: int = 200
) -> Audit:
    sums = sums_of(table)
    return Audit(
        engine=BinaryEngine(moments) if moments.binary else MomentsEngine(moments),
        groups=estimate_gaps(moments, target, sums),
        target=target,
        sums=sums,
        resamples=resamples,
        seed=np.random.SeedSequence(3),
    )


@pytest.mark.parametrize("name", ["constant", "overall", "scaled", "reference", "complement"])
@pytest.mark.parametrize("binary", [True, False])
def test_variance_is_that_of_the_influence_values(binary: bool, name: str) -> None:
    world = make_world(binary)
    table = COLLECTIONS["overlapping"]
    groups = estimate_gaps(world.moments(), targets(world)[name][0], sums_of(table))
    c = {"constant": 0.0, "scaled": 0.8}.get(name, 1.0)
    for j, member in enumerate(world.rows_of(table)):
        base = {"reference": REFERENCE[world.cell], "complement": ~member}
        inside = base.get(name, np.ones(60, dtype=bool))
        theta = world.loss[inside].mean()
        psi = c * inside * (world.loss - theta) / inside.mean()
        own = member * (world.loss - world.loss[member].mean()) / member.mean()
        expected = np.var(own - psi) * member.mean()
        assert groups.variance[j] == pytest.approx(expected, rel=1e-9)
        constant = groups.target[j] if c == 0 else c * theta
        assert groups.estimate[j] == pytest.approx(world.loss[member].mean() - constant)


def test_variance_with_a_custom_target_and_with_a_ratio() -> None:
    world = make_world(False)
    table = COLLECTIONS["overlapping"]
    psi = influence_of(world)
    target = targets(world)["custom"][0]
    gaps = estimate_gaps(world.moments(), target, sums_of(table))
    ratios = estimate_ratios(world.moments(), target, sums_of(table))
    assert influence_sums(world, psi).rows == 60
    for j, member in enumerate(world.rows_of(table)):
        mean = world.loss[member].mean()
        own = member * (world.loss - mean) / member.mean()
        for found, k in ((gaps, 1.0), (ratios, mean / 0.5)):
            expected = np.var(own - k * psi) * member.mean()
            assert found.variance[j] == pytest.approx(expected, rel=1e-9)
        assert ratios.estimate[j] == pytest.approx(mean / 0.5)


def test_weights_of_one_and_equal_weights_change_nothing() -> None:
    world = make_world(False)
    plain = world.moments()
    doubled = CellMoments(
        rows=plain.rows,
        weight=2 * plain.weight,
        total=2 * plain.total,
        weight2=4 * plain.weight2,
        total2=4 * plain.total2,
        square2=4 * plain.square2,
        binary=False,
    )
    sums = sums_of(COLLECTIONS["overlapping"])
    for target in (Overall(), Reference(cells=REFERENCE), Complement()):
        a, b = (estimate_gaps(m, target, sums) for m in (plain, doubled))
        np.testing.assert_allclose(a.variance, b.variance)
        np.testing.assert_allclose(a.estimate, b.estimate)
        assert a.spread == pytest.approx(b.spread)


def test_scale_interpolates_between_own_and_overall_spread() -> None:
    world = make_world(False)
    groups = estimate_gaps(world.moments(), Constant(value=0.0), sums_of(COLLECTIONS["cells"]))
    p, sd = groups.share, np.std(world.loss)
    size = np.maximum(p, 0.1) ** 1.5
    far = Scaling(floor=0.1).factors(groups)
    np.testing.assert_allclose(far, size * sd)
    own = Scaling(floor=0.1, shrink=0.0).factors(groups)
    np.testing.assert_allclose(own, size * np.sqrt(groups.variance))
    half = Scaling(floor=0.1, shrink=0.2).factors(groups)
    w = p / (p + 0.2)
    np.testing.assert_allclose(half, w * own + (1 - w) * far)


def test_bounds_are_the_published_formula_and_ask_gives_the_same_numbers() -> None:
    world = make_world(True, n=400)
    table = COLLECTIONS["intervals"]
    for scaling in (Scaling(), Unscaled(), Scaling(shrink=0.3)):
        audit = audit_of(world.moments(), Overall(), table)
        extremes = bound_extremes(audit, scaling)
        both = simultaneous_bounds(audit.groups, extremes, scaling, level=0.9, side=Side.BOTH)
        t = quantile(np.maximum(extremes.highest, -extremes.lowest), 0.9)
        g = audit.groups
        width = t * scaling.factors(g) / g.share**2
        np.testing.assert_allclose(both.lower, g.estimate - width)
        np.testing.assert_allclose(both.upper, g.estimate + width)
        later = estimate_gaps(world.moments(), Overall(), sums_of(table[[7]]))
        asked = simultaneous_bounds(later, extremes, scaling, level=0.9, side=Side.BOTH)
        assert asked.lower[0] == both.lower[7]
        assert asked.upper[0] == both.upper[7]


def test_sides_and_levels_are_read_off_one_run() -> None:
    audit = audit_of(make_world(True).moments(), Overall(), COLLECTIONS["cells"])
    extremes = bound_extremes(audit, Scaling())

    def bounds(level: float, side: Side) -> FloatArray:
        found = simultaneous_bounds(audit.groups, extremes, Scaling(), level=level, side=side)
        return np.stack([found.lower, found.upper])

    lower, upper = bounds(0.9, Side.LOWER), bounds(0.9, Side.UPPER)
    assert np.all(np.isposinf(lower[1]))
    assert np.all(np.isneginf(upper[0]))
    both, wider = bounds(0.9, Side.BOTH), bounds(0.99, Side.BOTH)
    assert np.all(both[0] <= lower[0])
    assert np.all(both[1] >= upper[1])
    assert np.all(wider[1] - wider[0] > both[1] - both[0])
    t = critical_value(extremes, level=0.9, side=Side.UPPER)
    assert np.mean(-extremes.lowest <= t) >= 0.9 > np.mean(-extremes.lowest < t)


def test_ratio_bounds_cover_the_truth_in_nominal_share_of_worlds() -> None:
    """300 worlds at 90 %: accept misses up to the binomial 1 − 1e-5 quantile of 0.1, 54."""
    rng = np.random.default_rng(77)
    share, rate = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.3, 0.4, 0.5, 0.6])
    truth = rate / (share @ rate)
    sums = sums_of(np.eye(4, dtype=bool))
    misses = 0
    for world in range(300):
        rows = rng.multinomial(800, share)
        moments = unweighted_moments(rows.astype(float), rng.binomial(rows, rate).astype(float))
        audit = Audit(
            engine=BinaryEngine(moments),
            groups=estimate_ratios(moments, Overall(), sums),
            target=Overall(),
            sums=sums,
            resamples=200,
            seed=np.random.SeedSequence(world),
        )
        run = bound_extremes(audit, Scaling())
        found = simultaneous_bounds(audit.groups, run, Scaling(), level=0.9, side=Side.BOTH)
        misses += bool(np.any((truth < found.lower) | (truth > found.upper)))
    assert 9 <= misses <= 54


# one cell empty, one with a single row, two ordinary
ROWS, ONES = np.array([0.0, 1.0, 30.0, 40.0]), np.array([0.0, 1.0, 12.0, 30.0])


def test_empty_and_single_groups_have_their_status() -> None:
    audit = audit_of(unweighted_moments(ROWS, ONES), Overall(), np.eye(4, dtype=bool))
    assert audit.groups.status.tolist() == [Status.EMPTY, Status.SINGLE, Status.OK, Status.OK]
    found = simultaneous_bounds(
        audit.groups, bound_extremes(audit, Scaling()), Scaling(), level=0.9, side=Side.BOTH
    )
    assert np.isnan(found.lower).tolist() == [True, False, False, False]
    # one row has a bound like any other group, but no certificate, however generous the limit
    result = certify(audit, Scaling(), aim=Aim.BELOW, limit=10.0)
    assert combine(result, 0.9).tolist() == [False, False, True, True]


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_constant_metric_certifies_nothing(value: float) -> None:
    moments = unweighted_moments(ROWS, ROWS * value)
    audit = audit_of(moments, Constant(value=0.5), np.eye(4, dtype=bool))
    assert set(audit.groups.status.tolist()) == {Status.EMPTY, Status.CONSTANT}
    extremes = bound_extremes(audit, Scaling())
    found = simultaneous_bounds(audit.groups, extremes, Scaling(), level=0.9, side=Side.BOTH)
    assert np.isnan(found.critical)
    assert np.isnan(found.lower).all()
    assert not combine(certify(audit, Scaling(), aim=Aim.WITHIN, limit=0.6), 0.9).any()
    assert np.isnan(algorithm_4(audit, Above(limit=0.0)).p).all()


def test_everybody_against_the_overall_mean_is_zero_by_definition() -> None:
    table = np.array([[1, 1, 1, 1], [0, 0, 1, 0]], dtype=bool)
    audit = audit_of(unweighted_moments(ROWS, ONES), Overall(), table)
    assert audit.groups.status.tolist() == [Status.IDENTICAL, Status.OK]
    assert audit.groups.estimate[0] == 0
    assert audit.groups.standard_error[0] == pytest.approx(0, abs=1e-9)
    assert np.isnan(algorithm_4(audit, Above(limit=-0.1)).p).tolist() == [True, False]
    scaled = estimate_gaps(unweighted_moments(ROWS, ONES), Overall(scale=0.8), audit.sums)
    assert scaled.status.tolist() == [Status.OK, Status.OK]


def test_everybody_has_no_complement() -> None:
    table = np.array([[1, 1, 1, 1], [0, 0, 1, 0]], dtype=bool)
    audit = audit_of(unweighted_moments(ROWS, ONES), Complement(), table)
    assert audit.groups.status.tolist() == [Status.NO_TARGET, Status.OK]
    extremes = bound_extremes(audit, Scaling())
    found = simultaneous_bounds(audit.groups, extremes, Scaling(), level=0.9, side=Side.LOWER)
    assert np.isnan(found.lower).tolist() == [True, False]
    assert np.isnan(found.upper).tolist() == [True, False]


def test_empty_and_own_reference() -> None:
    moments = unweighted_moments(ROWS, ONES)
    nobody = Reference(cells=np.array([True, False, False, False]))
    groups = estimate_gaps(moments, nobody, sums_of(np.eye(4, dtype=bool)))
    assert set(groups.status[1:].tolist()) == {Status.NO_TARGET}
    itself = Reference(cells=np.array([False, False, True, False]))
    groups = estimate_gaps(moments, itself, sums_of(np.eye(4, dtype=bool)))
    assert groups.status[2] == Status.IDENTICAL
    assert groups.status[3] == Status.OK


def test_identical_groups_share_their_bounds() -> None:
    table = np.array([[0, 0, 1, 0]] * 3, dtype=bool)
    audit = audit_of(unweighted_moments(ROWS, ONES), Overall(), table)
    found = simultaneous_bounds(
        audit.groups, bound_extremes(audit, Scaling()), Scaling(), level=0.9, side=Side.BOTH
    )
    assert np.unique(found.lower).size == 1


def test_a_zero_target_has_no_ratio() -> None:
    groups = estimate_ratios(
        unweighted_moments(ROWS, ONES), Constant(value=0.0), sums_of(np.eye(4, dtype=bool))
    )
    assert groups.status[3] == Status.NO_TARGET
    assert np.isnan(groups.estimate[3])


def test_nobody_at_all() -> None:
    moments = unweighted_moments(np.zeros(4), np.zeros(4))
    audit = audit_of(moments, Overall(), np.eye(4, dtype=bool))
    assert set(audit.groups.status.tolist()) == {Status.EMPTY}
    assert bound_extremes(audit, Scaling()).highest.size == 0
