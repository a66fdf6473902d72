"""Leaving out clusters one at a time, against a loop that really leaves them out."""

import numpy as np
import pytest
from scipy.stats import t as student

from equipoise.methods.inference.core import ClusterPivot, core_of
from equipoise.methods.inference.student import ClusterSums, LeftOut, leave_out
from equipoise.methods.numerics import BoolArray, FloatArray, IntArray
from equipoise.methods.targets import Complement, Constant, Status, Target, compare
from tests.unit.methods.inference.naive import TARGETS, Rows, make_rows, targets_of


def cluster_sums(rows: Rows, cluster: IntArray) -> ClusterSums:
    key = cluster * rows.cells + rows.cell
    places, index = np.unique(key, return_inverse=True)
    return ClusterSums(
        cluster=places // rows.cells,
        cell=places % rows.cells,
        weight=np.bincount(index, rows.weight).astype(np.float64),
        total=np.bincount(index, rows.weight * rows.value).astype(np.float64),
        cells=rows.cells,
    )


def jackknife(
    rows: Rows, cluster: IntArray, target: Target, group: int
) -> tuple[FloatArray, FloatArray]:
    """What leaving out each cluster does to the group's mean, and to its target."""

    def left(inside: BoolArray) -> FloatArray:
        if not inside.any():
            return np.zeros(cluster.max() + 1)
        whole = rows.mean(inside)
        return np.array(
            [
                rows.mean(inside & (cluster != c)) - whole if (inside & (cluster == c)).any() else 0
                for c in range(cluster.max() + 1)
            ]
        )

    return left(rows.member(group)), left(rows.compared(target, group))


def naive_spread(
    rows: Rows, cluster: IntArray, target: Target, group: int, factor: float
) -> tuple[float, float, float]:
    u, t = jackknife(rows, cluster, target, group)
    moved, m = u - factor * t, int(cluster.max()) + 1
    square = float((moved**2).sum())
    shares = []
    for inside in (rows.member(group), rows.compared(target, group)):
        w = np.bincount(cluster, np.where(inside, rows.weight, 0.0), m)
        shares.append((w / max(w.sum(), 1e-300)) ** 2)
    size = shares[0] + factor**2 * shares[1]
    by_size = float(size.sum() ** 2 / (size**2).sum())
    by_outcome = 3 * square**2 / float((moved**4).sum())
    skewness = -float((moved**3).sum()) / square**1.5
    return square * (m - 1) / m, skewness, min(by_size, by_outcome, m) - 1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", TARGETS)
def test_the_spread_is_that_of_a_jackknife(name: str, weighted: bool) -> None:
    rows = make_rows(11, 240, weighted=weighted)
    cluster = np.random.default_rng(2).integers(0, 30, 240)
    cluster = np.unique(cluster, return_inverse=True)[1]
    target = targets_of(rows)[name]
    found = compare(rows.moments(), target, rows.sums)
    left = leave_out(cluster_sums(rows, cluster), found, rows.sums)
    for factor in (target.scale, 0.4):
        spread = left.spread(np.full(4, factor))
        # a number has no error, whatever it is multiplied by
        times = 0.0 if isinstance(target, Constant) else factor
        aim = [naive_spread(rows, cluster, target, g, times) for g in range(4)]
        np.testing.assert_allclose(spread.variance, [x[0] for x in aim], rtol=1e-8)
        np.testing.assert_allclose(spread.skewness, [x[1] for x in aim], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(spread.degrees, [x[2] for x in aim], rtol=1e-7)


def test_rows_of_their_own_are_clusters_of_one() -> None:
    """Then leaving out is the plain jackknife, n/(n − 1) beyond Welch's variance at most."""
    rows = make_rows(12, 400)
    found = compare(rows.moments(), Complement(), rows.sums)
    left = leave_out(cluster_sums(rows, np.arange(400)), found, rows.sums)
    for group in range(4):
        inside = rows.member(group)
        aim = sum(float(np.var(rows.value[x], ddof=1)) / x.sum() for x in (inside, ~inside))
        variance = left.spread(np.ones(4)).variance[group]
        assert variance == pytest.approx(aim, rel=0.02)


def test_a_cluster_that_is_all_of_a_group_leaves_it_unanswered() -> None:
    rows = make_rows(13, 200)
    cluster = np.where(rows.member(0), 0, 1 + np.arange(200) % 40)
    cluster = np.unique(cluster, return_inverse=True)[1]
    core = core_of(
        rows.moments(),
        Constant(value=1.0),
        rows.sums,
        relative=False,
        zero_one=False,
        weighted=False,
        clusters=cluster_sums(rows, cluster),
    )
    assert core.status[0] == Status.FEW_CLUSTERS
    assert core.status[2] == Status.OK


@pytest.mark.parametrize(("clusters", "answered"), [(12, False), (19, False), (40, True)])
def test_a_mean_of_few_clusters_is_not_set_against_a_number(clusters: int, answered: bool) -> None:
    """Were clusters exponential, six to fifteen of them missed a known number in 10 % for 5 %."""
    rows = make_rows(17, 400)
    cluster = cluster_sums(rows, np.arange(400) % clusters)
    asked = [(Constant(value=1.0), False), (Complement(), False), (Constant(value=0.5), True)]
    against, others, rate = (
        core_of(
            rows.moments(),
            target,
            rows.sums,
            relative=False,
            zero_one=zero_one,
            weighted=False,
            clusters=cluster,
        ).status.tolist()
        for target, zero_one in asked
    )
    assert set(against) == {Status.OK if answered else Status.FEW_CLUSTERS}
    # skewness of the same clusters cancels between groups, and that of rates is known
    assert set(others) == set(rate) == {Status.OK}


def test_clusters_are_worth_what_is_left_of_their_skewness() -> None:
    """Equal clusters of one shape: a difference of means, beside one mean of so many."""
    sizes = np.array([[1 / 5, 1 / 30, 1 / 8], [1 / 40, 0.0, 1 / 8], *np.zeros((3, 3))])
    left = LeftOut(powers=(), sizes=sizes, clusters=45, blank=np.zeros(3))
    first, second, third = left.worth(np.ones(3)).tolist()
    # third moments k/n² less k/m², over variances 1/n + 1/m
    assert first == pytest.approx(((1 / 25 - 1 / 1600) / (1 / 5 + 1 / 40) ** 1.5) ** -2)
    assert second == pytest.approx(30)
    assert third == np.inf


def test_tails_of_a_clustered_metric_are_students() -> None:
    rows = make_rows(14, 300)
    cluster = np.arange(300) % 25
    target = Complement()
    found = compare(rows.moments(), target, rows.sums)
    pivot = ClusterPivot(
        comparison=found, left_out=leave_out(cluster_sums(rows, cluster), found, rows.sums)
    )
    for group in range(4):
        variance, g, degrees = naive_spread(rows, cluster, target, group, 1.0)
        at = rows.estimate(target, group, False) - 0.1
        t = 0.1 / np.sqrt(variance)
        turned = t + g * t**2 / 3 + g**2 * t**3 / 27 + g / 6
        up, down = pivot.tails(np.array([at]), np.array([group]))
        assert up[0] == pytest.approx(max(student.sf(x, degrees) for x in (t, turned)), rel=1e-6)
        assert down[0] == pytest.approx(max(student.cdf(x, degrees) for x in (t, turned)), rel=1e-6)
        assert pivot.error[group] == pytest.approx(np.sqrt(variance))


def test_blocks_of_clusters_do_not_change_the_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    from equipoise.methods.inference import student as module

    rows = make_rows(15, 200)
    cluster = np.arange(200) % 40
    found = compare(rows.moments(), Complement(), rows.sums)
    whole = leave_out(cluster_sums(rows, cluster), found, rows.sums)
    monkeypatch.setattr(module, "_NUMBERS", 20)
    parts = leave_out(cluster_sums(rows, cluster), found, rows.sums)
    for one, two in zip(whole.powers, parts.powers, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(whole.sizes, parts.sizes, rtol=1e-12)


@pytest.mark.parametrize("within", [0.0, 2.0])
def test_a_mean_of_clusters_keeps_its_level(within: float) -> None:
    """Twelve clusters of ten rows: one-sided 5 % in 2000 worlds, accept up to 137 (1e-4)."""
    from scipy.stats import binom

    rng = np.random.default_rng(int(10 * within))
    wrong = 0
    cluster = np.repeat(np.arange(12), 10)
    groups = np.ones((1, 1), dtype=bool)
    for _ in range(2000):
        value = rng.normal(size=120) + within * rng.normal(size=12)[cluster]
        rows = Rows(
            cell=np.zeros(120, dtype=np.int64),
            value=value,
            weight=np.ones(120),
            groups=groups,
            reference=np.zeros(1, dtype=bool),
        )
        found = compare(rows.moments(), Constant(value=0.0), rows.sums)
        left = leave_out(cluster_sums(rows, cluster), found, rows.sums)
        up, _ = ClusterPivot(comparison=found, left_out=left).tails(np.zeros(1), np.zeros(1, int))
        wrong += bool(up[0] <= 0.05)
    assert wrong <= binom.ppf(1 - 1e-4, 2000, 0.05)
