"""Bounds are where a tail meets its share of the error, and never exclude the estimate."""

import dataclasses
import itertools
import json

import numpy as np
import pytest
from scipy.special import ndtri

from equipoise.findings.finding import read_back
from equipoise.methods.hypotheses import Tails
from equipoise.methods.inference.core import CLOSE, Core, bounds, core_of
from equipoise.methods.inference.student import ClusterSums
from equipoise.methods.numerics import FloatArray, IntArray
from equipoise.methods.stored import Recipe, restored_bounds, stored
from equipoise.methods.targets import Complement, Constant, Custom, InfluenceSums, plain_moments
from tests.unit.methods.inference.naive import TARGETS, Rows, make_rows, targets_of
from tests.unit.methods.inference.test_clusters import cluster_sums

KINDS = ["counts", "worth", "values", "spread", "weighted spread", "clustered counts", "clusters"]
FORMS = {
    "counts": "counts",
    "worth": "worth",
    "values": "values",
    "clustered counts": "worth",
    "clusters": "clusters",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Holder:
    """A finding that keeps nothing else."""

    recipe: Recipe


def zero_one(rng: np.random.Generator, n: int) -> FloatArray:
    return (rng.random(n) < 0.35).astype(np.float64)


def few_values(rng: np.random.Generator, n: int) -> FloatArray:
    return rng.integers(0, 3, n).astype(np.float64)


def core_like(kind: str, name: str, relative: bool, seed: int = 21) -> tuple[Core, Rows]:
    counted = kind in ("counts", "worth", "clustered counts")
    weighted = kind in ("worth", "weighted spread")
    draw = zero_one if counted else few_values if kind == "values" else None
    rows = make_rows(seed, 400, draw=draw, weighted=weighted)
    clusters: ClusterSums | None = None
    if "cluster" in kind:
        clusters = cluster_sums(rows, np.arange(400) % 40)
    made = core_of(
        rows.moments(),
        targets_of(rows)[name],
        rows.sums,
        relative=relative,
        zero_one=counted,
        weighted=weighted,
        clusters=clusters,
        values=(0.0, 1.0, 2.0) if kind == "values" else (),
    )
    return made, rows


def score(tail: FloatArray) -> FloatArray:
    return -ndtri(np.clip(tail, 1e-300, 1 - 1e-16))


@pytest.mark.parametrize("critical", [0.7, 1.96, 3.5])
@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_bound_is_where_the_tail_meets_the_critical_score(
    kind: str, name: str, relative: bool, critical: float
) -> None:
    core, _ = core_like(kind, name, relative)
    chosen = core.answered
    assert chosen.size == 4
    possible = (0.0, np.inf) if relative else (-1.0, 1.0)
    if not core.counted:
        possible = (-np.inf, np.inf)
    low, high = bounds(core.pivot, chosen, critical, possible)
    estimate, error = core.pivot.estimate, core.pivot.error
    assert bool((low <= estimate).all())
    assert bool((estimate <= high).all())
    for end, side, inward in ((low, 0, 1.0), (high, 1, -1.0)):
        inner = (end > possible[0]) & (end < possible[1])
        at = chosen[inner]
        # rejected at the bound itself, not rejected a little further in
        there = score(core.pivot.tails(end[inner], at)[side])
        inside = score(core.pivot.tails(end[inner] + inward * 0.01 * error[inner], at)[side])
        assert bool((there >= critical - 3 * CLOSE).all())
        assert bool((inside <= critical + 3 * CLOSE).all())
        if not core.counted:
            # without the steps of counts the score there is the critical one
            np.testing.assert_allclose(there, critical, atol=0.02)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_widen_with_the_critical_score(kind: str, name: str) -> None:
    core, _ = core_like(kind, name, False)
    widths = [np.subtract(*core.bounds(c, (-9.0, 9.0))[::-1]) for c in (0.5, 1.0, 2.0, 3.0, 5.0)]
    for narrow, wide in itertools.pairwise(widths):
        assert bool((wide >= narrow).all())


class Steps:
    """A pivot whose tails jump, fall short, or never end."""

    estimate = np.array([0.0, 0.2, 0.1])
    error = np.array([0.1, 0.1, 0.0])

    def tails(self, disparity: FloatArray, chosen: IntArray) -> Tails:
        x = disparity - self.estimate[chosen]
        # the first jumps from one half to almost nothing, the second never falls below one tenth
        up = np.select([chosen == 0, chosen == 1], [np.where(x < -0.3, 1e-9, 0.5), 0.5], 0.1)
        down = np.select([chosen == 0, chosen == 1], [np.where(x > 0.3, 1e-9, 0.5), 0.5], 0.1)
        return up, down


def test_steps_and_ends_are_met() -> None:
    low, high = bounds(Steps(), np.arange(3), 1.96, (-1.0, 2.0))
    # the rejected side of a jump, to a thousandth of a standard error
    assert low[0] == pytest.approx(-0.3, abs=1e-4)
    assert high[0] == pytest.approx(0.3, abs=1e-4)
    assert low[0] < -0.3
    assert high[0] > 0.3
    # nothing is excluded: the bounds are the ends of what is possible
    assert (low[1], high[1]) == (-1.0, 2.0)
    assert (low[2], high[2]) == (-1.0, 2.0)


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_stored_gives_the_same_bounds(kind: str, name: str, relative: bool) -> None:
    core, _ = core_like(kind, name, relative)
    kept = stored(core)
    assert kept is not None
    assert kept.form == FORMS.get(kind, "spread")
    plain = {"recipe": json.loads(json.dumps(dataclasses.asdict(kept)))}
    again = read_back(Holder, plain, "holder").recipe
    assert again == kept
    possible = (0.0, 50.0) if relative else (-1.0, 1.0)
    for critical in (0.5, 1.645, 3.0):
        np.testing.assert_array_equal(
            restored_bounds(again, critical, possible), core.bounds(critical, possible)
        )


def test_groups_without_an_answer_stay_without_one() -> None:
    counts = [np.array([0.0, 30.0]), *[np.array([0.0, 12.0])] * 3]
    core = core_of(
        plain_moments(*counts),
        Constant(value=0.4),
        lambda x: x,
        relative=False,
        zero_one=True,
        weighted=False,
    )
    kept = stored(core)
    assert kept is not None
    low, high = restored_bounds(kept, 1.96, (-1.0, 1.0))
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [True, False]


def test_a_custom_target_is_not_stored() -> None:
    rows = make_rows(22, 200)
    zero = np.zeros(6)
    influence = InfluenceSums(rows=200.0, total=zero, product=zero, sum=0.0, square=1.0)
    core = core_of(
        rows.moments(),
        Custom(value=0.5, influence=influence),
        rows.sums,
        relative=False,
        zero_one=False,
        weighted=False,
    )
    assert stored(core) is None


@pytest.mark.parametrize("seed", range(3))
def test_small_tables_have_bounds_around_their_estimate(seed: int) -> None:
    """All groups of up to eight rows against everyone else, at scores from none to extreme."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, 9, 60).astype(np.float64)
    ones = rng.binomial(rows.astype(int), rng.random(60)).astype(np.float64)
    core = core_of(
        plain_moments(rows, ones, ones, ones),
        Complement(),
        lambda x: x,
        relative=False,
        zero_one=True,
        weighted=False,
    )
    for critical in (0.0, 0.1, 1.0, 4.0, 8.0):
        low, high = core.bounds(critical, (-1.0, 1.0))
        assert bool(((low <= core.pivot.estimate) & (core.pivot.estimate <= high)).all())
        assert bool(((low >= -1) & (high <= 1)).all())
