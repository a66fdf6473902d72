"""Bootstrap p-values as published."""

import numpy as np
from scipy.special import ndtr

from equipoise.methods.hypotheses import Above, Below, Outside
from equipoise.methods.published.bootstrap import Audit, algorithm_4, estimate_gaps
from tests.unit.methods.published.bootstrap.naive import sums_of
from tests.unit.methods.published.bootstrap.world import COLLECTIONS, World, make_world, targets


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
