"""Boolean certificates: step-down against a literal loop, intervals against brute force."""

import numpy as np
import pytest

from equipoise.methods.numerics import BoolArray, FloatArray, quantile
from equipoise.methods.published.bootstrap import (
    Aim,
    Audit,
    BinaryEngine,
    Scaling,
    Unscaled,
    certify,
    certify_intervals,
    combine,
    estimate_gaps,
    unweighted_moments,
)
from equipoise.methods.published.bootstrap.estimates import (
    certificate_deviations,
    certificate_values,
)
from equipoise.methods.targets import Complement, Constant, Overall, Target
from tests.unit.methods.published.bootstrap.naive import interval_cells, sums_of
from tests.unit.methods.published.bootstrap.world import CELLS, make_world


def audit_of(target: Target, resamples: int = 300, n: int = 600) -> Audit:
    moments = make_world(True, n=n).moments()
    sums = sums_of(interval_cells(CELLS))
    return Audit(
        engine=BinaryEngine(moments),
        groups=estimate_gaps(moments, target, sums),
        target=target,
        sums=sums,
        resamples=resamples,
        seed=np.random.SeedSequence(9),
    )


def romano_wolf(statistic: FloatArray, process: FloatArray, level: float) -> BoolArray:
    """Certify, drop the certified, take the quantile over the rest, repeat."""
    certified = np.zeros(statistic.size, dtype=bool)
    while not certified.all():
        t = quantile(process[:, ~certified].max(axis=1), level)
        new = ~certified & (statistic >= t)
        if not new.any():
            break
        certified |= new
    return certified


@pytest.mark.parametrize("limit", [-0.3, -0.1, -0.05, 0.0, 0.05])
@pytest.mark.parametrize("scaling", [Unscaled(), Scaling(), Scaling(power=0.5)])
def test_step_down_in_one_pass_is_the_literal_loop(
    limit: float, scaling: Unscaled | Scaling
) -> None:
    audit = audit_of(Overall())
    scale = scaling.factors(audit.groups)
    process = np.vstack([certificate_deviations(audit, x, limit) for x in audit.blocks()])
    statistic = certificate_values(audit.groups, limit)
    for aim, sign in ((Aim.ABOVE, 1.0), (Aim.BELOW, -1.0)):
        stepped = certify(audit, scaling, aim=aim, limit=limit)
        single = certify(audit, scaling, aim=aim, limit=limit, step_down=False)
        for level in (0.8, 0.9, 0.95):
            expected = romano_wolf(sign * statistic / scale, sign * process / scale, level)
            assert combine(stepped, level).tolist() == expected.tolist()
            t = quantile((sign * process / scale).max(axis=1), level)
            first = sign * statistic / scale >= t
            assert combine(single, level).tolist() == first.tolist()
            assert single[0].critical(level) == pytest.approx(t)
            assert np.all(expected >= first)


def test_within_asks_for_both_sides_at_the_full_level() -> None:
    audit = audit_of(Constant(value=0.45), n=20_000)
    both = certify(audit, Scaling(), aim=Aim.WITHIN, limit=0.2)
    above = certify(audit, Scaling(), aim=Aim.ABOVE, limit=-0.2)
    below = certify(audit, Scaling(), aim=Aim.BELOW, limit=0.2)
    expected = combine(above, 0.9) & combine(below, 0.9)
    assert combine(both, 0.9).tolist() == expected.tolist()
    assert 0 < expected.sum() < expected.size


def test_step_down_certifies_more_somewhere() -> None:
    gained = 0
    for limit in np.linspace(-0.3, 0.1, 21):
        audit = audit_of(Overall())
        stepped = certify(audit, Scaling(), aim=Aim.ABOVE, limit=limit)
        single = certify(audit, Scaling(), aim=Aim.ABOVE, limit=limit, step_down=False)
        gained += int(combine(stepped, 0.9).sum() - combine(single, 0.9).sum())
    assert gained > 0


@pytest.mark.parametrize("upward", [True, False])
@pytest.mark.parametrize("target", [Constant(value=0.4), Overall()])
def test_all_intervals_at_once_are_the_listed_ones(upward: bool, target: Target) -> None:
    audit = audit_of(target)
    moments = make_world(True, n=600).moments()
    fast = certify_intervals(
        audit.engine,
        moments,
        target,
        limit=-0.05,
        upward=upward,
        resamples=300,
        seed=audit.seed,
    )
    aim = Aim.ABOVE if upward else Aim.BELOW
    (listed,) = certify(audit, Unscaled(), aim=aim, limit=-0.05, step_down=False)
    # the running minimum may also choose the empty interval, whose deviation is zero
    np.testing.assert_allclose(fast.extremes, np.maximum(listed.extremes, 0), atol=1e-12)
    wanted = listed.certified(0.9)
    runs = [(i, j) for i in range(CELLS) for j in range(i + 1, CELLS + 1)]
    assert [fast.certified(i, j, 0.9) for i, j in runs] == wanted.tolist()


def test_intervals_refuse_a_complement_and_a_constant_certifies_none() -> None:
    moments = unweighted_moments(np.array([5.0, 5.0]), np.array([5.0, 5.0]))
    seed = np.random.SeedSequence(1)
    with pytest.raises(ValueError, match="complement"):
        certify_intervals(
            BinaryEngine(moments),
            moments,
            Complement(),
            limit=0,
            upward=True,
            resamples=9,
            seed=seed,
        )
    none = certify_intervals(
        BinaryEngine(moments),
        moments,
        Constant(value=0.5),
        limit=0.0,
        upward=True,
        resamples=50,
        seed=seed,
    )
    assert not none.certified(0, 2, 0.9)
