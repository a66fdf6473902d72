"""The joint law of all scores: unit variance, and the correlation that estimates really have."""

import numpy as np
import pytest
from scipy.stats import norm

from equipoise.methods.inference.core import Core, core_of
from equipoise.methods.inference.student import (
    LEAST_DRAWS,
    MOST_DRAWS,
    ClusterSums,
    affordable_draws,
    apart_of,
    independent_score,
)
from equipoise.methods.numerics import FloatArray
from equipoise.methods.targets import (
    Complement,
    Constant,
    Overall,
    Reference,
    Target,
    plain_moments,
)

GROUPS = np.array(
    [[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]], dtype=np.float64
)
SHARE = np.array([0.4, 0.3, 0.2, 0.1])
RATE = np.array([0.2, 0.5, 0.35, 0.6])
REFERENCE = np.array([True, False, False, True])


def sums(x: FloatArray) -> FloatArray:
    return np.asarray(x @ GROUPS.T)


def core(cells: tuple[FloatArray, FloatArray], target: Target, relative: bool) -> Core:
    rows, ones = cells
    return core_of(
        plain_moments(rows, ones, ones, ones),
        target,
        sums,
        relative=relative,
        zero_one=True,
        weighted=False,
    )


def scores(found: Core, draws: int = 20_000) -> FloatArray:
    return np.concatenate(list(found.law(draws=draws, seed=np.random.SeedSequence(1)).scores()))


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize(
    "target", [Constant(value=0.3), Overall(), Complement(), Reference(cells=REFERENCE)]
)
def test_scores_correlate_as_the_estimates_do(target: Target, relative: bool) -> None:
    """Correlations of 20,000 simulated estimates; each is known to 0.007, the draws' alike."""
    rng, n, worlds = np.random.default_rng(3), 4000, 20_000
    rows = rng.multinomial(n, SHARE, size=worlds).astype(np.float64)
    ones = rng.binomial(rows.astype(int), RATE).astype(np.float64)
    mean = (ones @ GROUPS.T) / (rows @ GROUPS.T)
    member = {
        Overall: (np.ones((5, 4)), 1.0),
        Complement: (1 - GROUPS, 1.0),
        Reference: (np.tile(REFERENCE.astype(float), (5, 1)), 1.0),
        Constant: (GROUPS, 0.0),
    }[type(target)][0]
    theta = (ones @ member.T) / (rows @ member.T)
    theta = np.full_like(theta, 0.3) if isinstance(target, Constant) else theta
    estimate = mean / theta if relative else mean - theta
    expected = (n * SHARE, n * SHARE * RATE)
    found = core(expected, target, relative)
    z = scores(found)
    np.testing.assert_allclose(z.std(axis=0), 1.0, atol=0.03)
    loose = apart_of(found.outcomes)[found.answered]
    kept = np.sqrt(np.outer(1 - loose, 1 - loose))
    aim = np.corrcoef(estimate[:, found.answered].T) * kept
    np.fill_diagonal(aim, 1.0)
    np.testing.assert_allclose(np.corrcoef(z.T), aim, atol=0.04)


def test_clusters_correlate_groups_that_share_no_row() -> None:
    """Groups apart, but every cluster has rows of both and a luck of its own."""
    rng, clusters, each = np.random.default_rng(4), 400, 20
    cluster = np.repeat(np.arange(clusters), 2)
    cell = np.tile([0, 1], clusters)
    estimates = []
    for _ in range(1500):
        luck = rng.normal(size=clusters)
        total = (
            each * 5.0 + each * np.repeat(luck, 2) + np.sqrt(each) * rng.normal(size=2 * clusters)
        )
        estimates.append([total[cell == c].sum() / (each * clusters) for c in (0, 1)])
    made = ClusterSums(
        cluster=cluster,
        cell=cell,
        weight=np.full(2 * clusters, float(each)),
        total=total,
        cells=2,
    )
    weight, first = made.cell_sums()
    square = first**2 / weight + weight * 2.0
    found = core_of(
        plain_moments(weight, first, square, square),
        Constant(value=0.0),
        lambda x: x,
        relative=False,
        zero_one=False,
        weighted=False,
        clusters=made,
    )
    z = scores(found)
    np.testing.assert_allclose(z.std(axis=0), 1.0, atol=0.03)
    loose = apart_of(found.outcomes)
    kept = np.sqrt((1 - loose[0]) * (1 - loose[1]))
    aim = np.atleast_2d(np.corrcoef(np.array(estimates).T))[0, 1] * kept
    assert np.atleast_2d(np.corrcoef(z.T))[0, 1] == pytest.approx(aim, abs=0.05)


def test_few_outcomes_loosen_groups_from_each_other() -> None:
    rows = np.array([40.0, 30.0, 20.0, 10.0])
    many, few = (core((rows, rows * rate), Overall(), False) for rate in (0.5, 0.02))
    one, two = (np.atleast_2d(np.corrcoef(scores(x, 10_000).T)) for x in (many, few))
    off = ~np.eye(5, dtype=bool)
    assert np.abs(two[off]).max() < np.abs(one[off]).max()
    # a group that rests on less than one outcome is drawn for itself alone
    assert apart_of(np.array([0.0, 0.5, 1.0])).tolist() == [1.0, 1.0, 1.0]


def test_draws_repeat_and_do_not_depend_on_how_many_follow() -> None:
    found = core((1000 * SHARE, 1000 * SHARE * RATE), Overall(), False)
    some, more = scores(found, 512), scores(found, 1000)
    np.testing.assert_array_equal(some, more[:512])


@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("groups", [1, 2, 30, 2000])
def test_independent_scores_are_those_of_sidak_and_bonferroni(level: float, groups: int) -> None:
    two, one = (independent_score(level, groups, x) for x in (True, False))
    assert (1 - 2 * norm.sf(two)) ** groups == pytest.approx(level)
    assert groups * norm.sf(one) == pytest.approx(1 - level)


def test_very_large_collections_get_fewer_draws() -> None:
    assert affordable_draws(1) == MOST_DRAWS
    assert affordable_draws(10**7) == LEAST_DRAWS
    assert LEAST_DRAWS < affordable_draws(20_000) < MOST_DRAWS
