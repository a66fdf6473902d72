"""Groups whose rows show no spread: their scores are standard normal all the same, and alone."""

import numpy as np
import pytest
from scipy.special import ndtri

from equipoise._validate import seed_of
from equipoise.audits._common import critical_scores
from equipoise.methods.inference.core import Core, core_of
from equipoise.methods.inference.measures import NoDraws
from equipoise.methods.inference.student import ClusterSums, joint_law
from equipoise.methods.numerics import FloatArray
from equipoise.methods.targets import Before, Constant, Overall, plain_moments

ROWS = np.array([97.0, 94.0, 109.0])


def changes(rows: FloatArray, plus: FloatArray) -> Core:
    """Groups of which so many rows got worse, and none better."""
    return core_of(
        plain_moments(rows, plus, plus, plus),
        Constant(value=0.0),
        lambda x: x,
        relative=False,
        zero_one=False,
        weighted=False,
        values=(-1.0, 0.0, 1.0),
    )


def constant(value: float) -> Core:
    """Real-valued groups whose rows are all the same number, in many cells."""
    rows = np.full(60, 8.0)
    return core_of(
        plain_moments(rows, rows * value, rows * value**2, rows * value**3),
        Constant(value=0.0),
        lambda x: x.reshape(*x.shape[:-1], 3, 20).sum(axis=-1),
        relative=False,
        zero_one=False,
        weighted=False,
    )


def clustered(value: float) -> Core:
    """The same in clusters of one row each."""
    each = np.ones(90)
    cell = np.repeat(np.arange(3), 30)
    sums = ClusterSums(cluster=np.arange(90), cell=cell, weight=each, total=each * value, cells=3)
    rows = np.full(3, 30.0)
    return core_of(
        plain_moments(rows, rows * value, rows * value**2, rows * value**3),
        Overall(),
        lambda x: x,
        relative=False,
        zero_one=False,
        weighted=False,
        clusters=sums,
    )


@pytest.mark.parametrize(
    "core",
    [
        changes(ROWS, np.zeros(3)),
        changes(ROWS, ROWS),
        changes(ROWS, np.array([0.0, 0.0, 109.0])),
        constant(0.1),
        constant(1 / 3),
        clustered(0.1),
        clustered(0.0),
    ],
)
def test_scores_are_standard_normal(core: Core) -> None:
    # all groups are drawn, answered or not
    every = np.arange(core.status.size)
    law = joint_law(
        core.cells, core.comparison, core.sums, core.outcomes, every,
        draws=4000, seed=np.random.SeedSequence(1),
    )  # fmt: skip
    drawn = np.concatenate(list(law.scores()))
    np.testing.assert_allclose(drawn.std(axis=0), 1.0, atol=0.06)
    apart = np.corrcoef(drawn.T)[np.triu_indices(3, 1)]
    assert np.abs(apart).max() < 0.08


def test_nothing_to_draw_from_means_alone() -> None:
    assert not NoDraws(3, 5).variance(changes(ROWS, ROWS).comparison, ROWS, lambda x: x).any()


@pytest.mark.parametrize("sizes", [(97, 94, 109), (30, 30), (50,) * 10, (5, 5, 500)])
def test_bounds_without_a_changed_row_are_those_of_all_groups(sizes: tuple[int, ...]) -> None:
    rows = np.array(sizes, dtype=np.float64)
    core = changes(rows, np.zeros(rows.size))
    critical = critical_scores(core, 0.95, "upper", None, seed_of(7), False).value
    upper = core.bounds(critical, (-1.0, 1.0))[1]
    # the naive oracle: no change among n rows excludes a rise of d with chance (1 - d)^n
    together = 1 - (0.05 / rows.size) ** (1 / rows)
    assert (upper > 1 - 0.05 ** (1 / rows)).all()
    np.testing.assert_allclose(upper, together, rtol=0.04)


@pytest.mark.parametrize("side", ["both", "upper", "lower"])
def test_no_critical_score_is_below_that_of_one_group(side: str) -> None:
    # one group and its own copy: as correlated as can be
    core = changes(np.array([200.0]), np.array([60.0]))
    twice = core_of(
        plain_moments(*[np.array([200.0])], *[np.array([60.0])] * 3),
        Constant(value=0.0),
        lambda x: np.concatenate([x, x], axis=-1),
        relative=False,
        zero_one=False,
        weighted=False,
        values=(-1.0, 0.0, 1.0),
    )
    for draws in (50, 2000):
        found = critical_scores(twice, 0.95, side, draws, seed_of(3), False)
        alone = critical_scores(core, 0.95, side, draws, seed_of(3), False)
        assert found.value >= alone.value
        assert alone.value == pytest.approx(-ndtri(0.025 if side == "both" else 0.05))
        assert all(a >= max(b, 0.0) for a, b in zip(found.quantiles, alone.quantiles, strict=True))


@pytest.mark.parametrize("weighted", [True, False])
def test_rates_that_were_certain_are_not_taken_for_certain(weighted: bool) -> None:
    # all rows that count before are ones, all that count after are zeros; weights, or clusters
    number = np.array([48.0, 49.0])
    ones = np.array([0.0, 49.0])
    single = ClusterSums(
        cluster=np.arange(97), cell=np.repeat([0, 1], [48, 49]), weight=np.ones(97),
        total=np.repeat([0.0, 1.0], [48, 49]), cells=2,
    )  # fmt: skip
    core = core_of(
        plain_moments(number, ones, ones, ones),
        Before(after=np.array([True, False]), before=np.array([False, True])),
        lambda x: x.sum(axis=-1, keepdims=True),
        relative=False,
        zero_one=True,
        weighted=weighted,
        clusters=None if weighted else single,
    )
    assert core.answered.size == 0
