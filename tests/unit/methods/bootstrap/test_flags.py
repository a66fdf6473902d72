"""Bootstrap p-values: the published ones, bootstrap-t, and statistics for step-down."""

import numpy as np
import pytest
from scipy.special import ndtr

from equipoise.methods.published.bootstrap import (
    Audit,
    MomentsEngine,
    Overall,
    algorithm_4,
    bootstrap_t,
    estimate_gaps,
    pooled_moments,
    standardized_blocks,
)
from equipoise.methods.nulls import Above, Below, Outside
from tests.unit.methods.bootstrap.naive import sums_of
from tests.unit.methods.bootstrap.world import COLLECTIONS, World, make_world, targets


def audit_of(world: World, name: str = "overall", resamples: int = 500) -> Audit:
    target, _, psi = targets(world)[name]
    sums = sums_of(COLLECTIONS["overlapping"])
    return Audit(
        engine=world.engine(psi),
        groups=estimate_gaps(world.moments(), target, sums),
        target=target,
        sums=sums,
        resamples=resamples,
        seed=np.random.SeedSequence(6),
    )


def test_published_p_values_are_written_from_their_nulls() -> None:
    audit = audit_of(make_world(True, n=300))
    above = algorithm_4(audit, Above(limit=0.05))
    below = algorithm_4(audit, Below(limit=-0.05))
    outside = algorithm_4(audit, Outside(low=-0.05, high=0.05))
    e, s = audit.groups.estimate, above.spread
    np.testing.assert_allclose(above.p, ndtr(-(e - 0.05) / s))
    np.testing.assert_allclose(below.p, ndtr((e + 0.05) / s))
    t, w = (np.abs(e) - 0.05) / s, 0.1 / s
    np.testing.assert_allclose(outside.p, ndtr(-t) + ndtr(-(t + w)))
    # a group far above has a small p-value above and a large one below
    j = int(np.argmax(e))
    assert above.p[j] < 0.5 < below.p[j]


@pytest.mark.parametrize("name", ["constant", "overall", "reference", "complement", "custom"])
@pytest.mark.parametrize("binary", [True, False])
def test_bootstrap_t_agrees_with_the_normal_in_large_samples(binary: bool, name: str) -> None:
    world = make_world(binary, n=5000)
    audit = audit_of(world, name, 2000)
    middle = float(audit.groups.estimate[1])
    limit = middle - float(audit.groups.standard_error[1])
    found = bootstrap_t(audit, Above(limit=limit))
    z = (audit.groups.estimate - limit) / audit.groups.standard_error
    # four Monte-Carlo standard errors of a share of 2000 draws, and room for skewness
    np.testing.assert_allclose(found.p, ndtr(-z), atol=0.06)
    assert 0.1 < found.p[1] < 0.22


def test_bootstrap_t_never_reports_zero_and_has_both_sides() -> None:
    audit = audit_of(make_world(False, n=400), resamples=99)
    above, below = bootstrap_t(audit, Above(limit=-9.0)), bootstrap_t(audit, Below(limit=-9.0))
    np.testing.assert_allclose(above.p, 0.01)
    np.testing.assert_allclose(below.p, 1.0)
    assert np.all(bootstrap_t(audit, Outside(low=-9.0, high=9.0)).p == 1.0)


def test_bootstrap_t_needs_second_moments() -> None:
    world = make_world(False)
    audit = audit_of(world)
    normal = Audit(
        engine=MomentsEngine(world.moments()),
        groups=audit.groups,
        target=audit.target,
        sums=audit.sums,
        resamples=10,
        seed=audit.seed,
    )
    with pytest.raises(ValueError, match="exact engine"):
        bootstrap_t(normal, Above(limit=0.0))


def test_standardized_statistics_have_unit_variance_and_the_groups_correlation() -> None:
    world = make_world(True, n=60)
    pooled = pooled_moments(world.moments())
    sums = sums_of(COLLECTIONS["overlapping"])
    audit = Audit(
        engine=MomentsEngine(pooled),
        groups=estimate_gaps(pooled, Overall(), sums),
        target=Overall(),
        sums=sums,
        resamples=20_000,
        seed=np.random.SeedSequence(2),
    )
    z = np.vstack(list(standardized_blocks(audit)))
    np.testing.assert_allclose(z.std(axis=0), 1.0, atol=0.08)
    # under one common law the influence values of two groups correlate through their shares
    p = audit.groups.share
    both = sums_of(COLLECTIONS["overlapping"][:1] & COLLECTIONS["overlapping"][1:2])
    shared = both(pooled.rows)[0] / 60
    expected = (shared - p[0] * p[1]) / np.sqrt(p[0] * (1 - p[0]) * p[1] * (1 - p[1]))
    assert np.mean(z[:, 0] * z[:, 1]) == pytest.approx(expected, abs=0.04)
