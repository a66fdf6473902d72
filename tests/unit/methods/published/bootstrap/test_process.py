"""The distribution of t against a naive row-by-row bootstrap, and its independence of blocks."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from equipoise.methods.hypotheses import Above
from equipoise.methods.numerics import FloatArray
from equipoise.methods.published.bootstrap import (
    Aim,
    Audit,
    MomentsEngine,
    Scaling,
    Unscaled,
    algorithm_4,
    bound_extremes,
    certify,
    estimate_gaps,
    estimate_ratios,
)
from equipoise.methods.targets import Constant, Overall
from tests.unit.methods.published.bootstrap.naive import (
    algorithm_2,
    algorithm_3,
    algorithm_4_scales,
    scale_of,
    sums_of,
)
from tests.unit.methods.published.bootstrap.world import COLLECTIONS, World, make_world, targets

DRAWS = 2000
# with some fifty comparisons, a right programme fails one in about twenty thousand runs
ALARM = 1e-6


def same_law(a: FloatArray, b: FloatArray) -> bool:
    # counts give t a lattice of values, which rounding errors must not split
    return bool(ks_2samp(np.round(a, 9), np.round(b, 9)).pvalue > ALARM)


def audit_of(world: World, name: str, kind: str, resamples: int = DRAWS) -> Audit:
    target, _, psi = targets(world)[name]
    sums = sums_of(COLLECTIONS[kind])
    return Audit(
        engine=world.engine(psi),
        groups=estimate_gaps(world.moments(), target, sums),
        target=target,
        sums=sums,
        resamples=resamples,
        seed=np.random.SeedSequence(11),
    )


@pytest.mark.parametrize("kind", list(COLLECTIONS))
@pytest.mark.parametrize(
    "name", ["constant", "overall", "scaled", "reference", "complement", "custom"]
)
@pytest.mark.parametrize("binary", [True, False])
def test_extremes_have_the_naive_distribution(binary: bool, name: str, kind: str) -> None:
    world = make_world(binary)
    groups = world.rows_of(COLLECTIONS[kind])
    scales = [scale_of(g, world.loss, 0.01) for g in groups]
    theta = targets(world)[name][1]
    top, bottom = algorithm_2(groups, world.loss, theta, scales, DRAWS, np.random.default_rng(3))
    ours = bound_extremes(audit_of(world, name, kind), Scaling())
    assert same_law(ours.highest, top)
    assert same_law(ours.lowest, bottom)


@pytest.mark.parametrize("name", ["constant", "overall", "reference", "complement"])
@pytest.mark.parametrize("binary", [True, False])
def test_certificates_have_the_naive_distribution(binary: bool, name: str) -> None:
    world = make_world(binary)
    groups = world.rows_of(COLLECTIONS["overlapping"])
    theta = targets(world)[name][1]
    top = algorithm_3(groups, world.loss, theta, 0.1, DRAWS, np.random.default_rng(4))
    (ours,) = certify(audit_of(world, name, "overlapping"), Unscaled(), aim=Aim.ABOVE, limit=0.1)
    assert same_law(ours.extremes, top)


def test_a_wrong_distribution_would_be_noticed() -> None:
    world = make_world(True)
    fixed = bound_extremes(audit_of(world, "constant", "overlapping"), Scaling())
    moving = bound_extremes(audit_of(world, "overall", "overlapping"), Scaling())
    assert not same_law(fixed.highest, moving.highest)


@pytest.mark.parametrize("binary", [True, False])
def test_algorithm_4_scale_is_the_naive_median(binary: bool) -> None:
    world = make_world(binary, n=200)
    audit = audit_of(world, "overall", "overlapping", 4000)
    naive = algorithm_4_scales(
        world.rows_of(COLLECTIONS["overlapping"]),
        world.loss,
        targets(world)["overall"][1],
        4000,
        np.random.default_rng(8),
    )
    found = algorithm_4(audit, Above(limit=0.0)).spread
    expected = np.nanmedian(naive, axis=0) / 0.6744897501960817
    # the median of 4000 draws has a relative error near 2 %; both sides have it
    np.testing.assert_allclose(found, expected, rtol=0.1)
    np.testing.assert_allclose(found, audit.groups.standard_error, rtol=0.15)


@pytest.mark.parametrize("name", ["constant", "overall", "reference", "complement", "custom"])
def test_blocks_do_not_change_a_byte(name: str) -> None:
    for binary in (True, False):
        world = make_world(binary)
        audit = audit_of(world, name, "overlapping", 70)
        whole = bound_extremes(audit, Scaling())
        for block in (1, 7, 32):
            small = Audit(
                engine=audit.engine,
                groups=audit.groups,
                target=audit.target,
                sums=audit.sums,
                resamples=70,
                seed=audit.seed,
                block=block,
            )
            again = bound_extremes(small, Scaling())
            assert again.highest.tobytes() == whole.highest.tobytes()
            assert again.lowest.tobytes() == whole.lowest.tobytes()


def test_more_resamples_begin_with_the_fewer_ones() -> None:
    world = make_world(True)
    few = bound_extremes(audit_of(world, "overall", "cells", 40), Scaling())
    many = bound_extremes(audit_of(world, "overall", "cells", 100), Scaling())
    assert few.highest.tobytes() == many.highest[:40].tobytes()


def test_moments_and_exact_agree_in_a_large_sample() -> None:
    world = make_world(True, n=20_000)
    exact = audit_of(world, "overall", "intervals", 4000)
    normal = Audit(
        engine=MomentsEngine(world.moments()),
        groups=exact.groups,
        target=exact.target,
        sums=exact.sums,
        resamples=4000,
        seed=np.random.SeedSequence(2),
    )
    a, b = bound_extremes(exact, Scaling()), bound_extremes(normal, Scaling())
    assert same_law(a.highest, b.highest)
    assert (a.engine, b.engine) == ("exact", "moments")


def test_one_group_against_a_constant_has_a_closed_form() -> None:
    """One group of everybody: t is p̂² times the error of a mean, normal with known variance."""
    world = make_world(True, n=5000)
    sums = sums_of(np.ones((1, 6), dtype=bool))
    target = Constant(value=0.5)
    groups = estimate_gaps(world.moments(), target, sums)
    audit = Audit(
        engine=world.engine(),
        groups=groups,
        target=target,
        sums=sums,
        resamples=4000,
        seed=np.random.SeedSequence(1),
    )
    t = bound_extremes(audit, Scaling()).highest
    assert np.std(t) * np.sqrt(5000) == pytest.approx(1.0, abs=0.05)
    assert np.mean(t) * np.sqrt(5000) == pytest.approx(0.0, abs=0.07)


def test_the_ratio_process_is_centred_on_the_ratio() -> None:
    world = make_world(True, n=4000)
    target, sums = Overall(), sums_of(COLLECTIONS["overlapping"])
    groups = estimate_ratios(world.moments(), target, sums)
    audit = Audit(
        engine=world.engine(),
        groups=groups,
        target=target,
        sums=sums,
        resamples=2000,
        seed=np.random.SeedSequence(1),
    )
    spread = algorithm_4(audit, Above(limit=1.0)).spread
    np.testing.assert_allclose(spread, groups.standard_error, rtol=0.1)
