"""The scan and the axes beside loops straight from their definitions, and laws they must keep."""

from itertools import combinations

import numpy as np
import pytest

from equipoise.methods import cusum
from equipoise.methods.cusum.statistic import LEAST_WORTH, bent
from equipoise.methods.cusum.testing import SMALL_SETS
from equipoise.methods.numerics import FloatArray


def world(n: int = 120, seed: int = 1) -> tuple[FloatArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)).round(1)
    p = np.clip(rng.beta(2, 3, n), 0.02, 0.98)
    return x, p, (rng.random(n) < p).astype(float)


def excess(y: FloatArray, p: FloatArray, delta: float, sign: FloatArray) -> tuple[float, ...]:
    """Sum, variance, third moment and worth of rows with signed weights, row by row."""
    total = variance = third = worth = 0.0
    for i in range(len(y)):
        if sign[i] == 0:
            continue
        q = min(max(p[i] + delta * sign[i], 0.0), 1.0)
        total += sign[i] * (y[i] - q)
        variance += q * (1 - q)
        third += sign[i] * q * (1 - q) * (1 - 2 * q)
        ends = [min(max(p[i] + d, 0.0), 1.0) for d in (delta, -delta)]
        worth += max(e * (1 - e) for e in ends)
    return total, variance, third, worth


def naive_scan(x: FloatArray, p: FloatArray, y: FloatArray, delta: float, pairs: bool) -> float:
    """The largest score over half-lines, or over corners and crosses, one at a time."""
    everyone = excess(y, p, delta, np.ones(len(y)))[3]
    cuts = []
    for column in x.T:
        tenths = np.quantile(column, np.arange(1, 10) / 10, method="inverted_cdf")
        cuts.append([c for c in np.unique(tenths) if c < column.max()])
    signs: list[FloatArray] = []
    if pairs:
        for a, b in combinations(range(x.shape[1]), 2):
            for c in cuts[a]:
                for d in cuts[b]:
                    low, left = x[:, a] <= c, x[:, b] <= d
                    for one in (low, ~low):
                        for two in (left, ~left):
                            signs += [(one & two) * 1.0, (one & two) * -1.0]
                    cross = np.where(low == left, 1.0, -1.0)
                    signs += [cross, -cross]
    else:
        for a in range(x.shape[1]):
            for c in cuts[a]:
                for half in (x[:, a] <= c, x[:, a] > c):
                    signs += [half * 1.0, half * -1.0]
    best = -np.inf
    for sign in signs:
        total, variance, third, worth = excess(y, p, delta, sign)
        if worth > LEAST_WORTH:
            z = total / np.sqrt(variance)
            score = float(bent(np.array(z), np.array(third / variance**1.5)))
            bonus = SMALL_SETS * np.sqrt(max(0.0, 2 * np.log(everyone / worth)))
            best = max(best, score + bonus)
    return best


@pytest.mark.parametrize("delta", [0.0, 0.07])
@pytest.mark.parametrize("pairs", [False, True])
def test_a_scan_is_the_largest_over_all_sets(delta: float, pairs: bool) -> None:
    x, p, y = world()
    null = cusum.bernoulli_null(y, p, tolerance=delta)
    found = cusum.scan([cusum.half_lines(column) for column in x.T], null, pairs=pairs)
    assert found is not None
    assert found.observed(null) == pytest.approx(naive_scan(x, p, y, delta, pairs))
    other = (np.random.default_rng(3).random(len(y)) < p).astype(float)
    drawn = cusum.bernoulli_null(other, p, tolerance=delta).observed
    assert found.values(drawn[None])[0] == pytest.approx(naive_scan(x, p, other, delta, pairs))


@pytest.mark.parametrize("pairs", [False, True])
def test_more_outcomes_can_only_raise_what_is_too_high(pairs: bool) -> None:
    # the law on which the level rests: at the edge, each sum is as large as it can be
    x, p, y = world()
    parts = [cusum.half_lines(column) for column in x.T]
    null = cusum.bernoulli_null(y, p, tolerance=0.03)
    found = cusum.scan(parts, null, pairs=pairs, side=cusum.Side.UNDER)
    assert found is not None
    values = []
    for i in [None, *np.flatnonzero(y == 0)[:10]]:
        if i is not None:
            y[i] = 1.0
        values.append(found.observed(cusum.bernoulli_null(y, p, tolerance=0.03)))
    assert values == sorted(values)


def test_pieces_are_the_rows_behind_the_score() -> None:
    x, p, _ = world(400, seed=4)
    rng = np.random.default_rng(2)
    off = 0.3 * np.sign(x[:, 0] * x[:, 1])
    y = (rng.random(400) < np.clip(p + off, 0, 1)).astype(float)
    null = cusum.bernoulli_null(y, p, tolerance=0.02)
    found = cusum.scan([cusum.half_lines(column) for column in x.T], null, pairs=True)
    assert found is not None
    best = found.best(null)
    assert best is not None
    sign = np.zeros(400)
    for piece in best.pieces:
        assert not sign[piece.members].any()
        sign[piece.members] = piece.sign
    total, variance, third, _ = excess(y, p, 0.02, sign)
    score = bent(np.array(total / np.sqrt(variance)), np.array(third / variance**1.5))
    assert best.threshold - best.bonus == pytest.approx(float(score))
    assert found.without(2, null) == pytest.approx(best.threshold)
    assert found.without(0, null) < best.threshold


def test_levels_and_missing_values_are_sets() -> None:
    part = cusum.half_lines(np.array([1.0, 2.0, 3.0, 0.0]), np.array([0, 0, 0, 1], dtype=bool))
    inside = part.sets[:, part.bins]
    assert inside[-1].tolist() == [0, 0, 0, 1]
    assert not inside[:-1, 3].any()
    assert cusum.levels(np.array([0, 1, 1])).sets.tolist() == [[1, 0], [0, 1]]
    null = cusum.bernoulli_null(np.zeros(3), np.full(3, 0.5), tolerance=0.0)
    assert cusum.scan([cusum.levels(np.array([0, 1, 2]))], null, pairs=False) is None


def test_axes_are_the_score_test_of_a_linear_model() -> None:
    x, p, y = world(200)
    null = cusum.bernoulli_null(y, p, tolerance=0.0)
    inputs = np.column_stack([np.ones(200), x, x[:, 0] + x[:, 1]])
    found = cusum.axes(inputs, null)
    assert found is not None
    total = inputs.T @ (y - p)
    information = inputs.T @ ((p * (1 - p))[:, None] * inputs)
    assert found.observed(null) ** 2 == pytest.approx(total @ np.linalg.pinv(information) @ total)
    assert found.weights.shape[1] == 4


def test_axes_measure_either_end_of_the_tolerance() -> None:
    x, p, y = world(200)
    null = cusum.bernoulli_null(y, p, tolerance=0.05)
    found = cusum.axes(np.column_stack([np.ones(200), x]), null)
    assert found is not None
    square = 0.0
    for axis in found.weights.T:
        scores = []
        for way in (1, -1):
            q = np.clip(p + 0.05 * np.sign(way * axis), 0, 1)
            spread = np.sqrt((axis**2 * q * (1 - q)).sum())
            scores.append((way * axis * (y - q)).sum() / spread)
        square += max(0.0, *scores) ** 2
    assert found.observed(null) == pytest.approx(np.sqrt(square))


def test_clusters_of_one_are_rows_and_their_signs_flip_together() -> None:
    x, _, y = world(150)
    f = x[:, 0]
    alone = cusum.sign_flip_null(y, f, tolerance=0.1)
    ones = cusum.sign_flip_null(y, f, tolerance=0.1, cluster=np.arange(150))
    parts = [cusum.half_lines(column) for column in x.T]
    for pairs in (False, True):
        one, two = (cusum.scan(parts, null, pairs=pairs) for null in (alone, ones))
        assert one is not None
        assert two is not None
        assert one.observed(alone) == pytest.approx(two.observed(ones))
    tied = cusum.sign_flip_null(y, f, tolerance=0.13, cluster=np.arange(150) // 3)
    drawn = tied.draw(np.random.default_rng(1), 2) / tied.observed
    assert (drawn[:, 0:150:3] == drawn[:, 1:150:3]).all()


def test_paths_know_the_variance_of_clusters() -> None:
    x, _, y = world(90)
    cluster = np.arange(90) // 3
    null = cusum.sign_flip_null(y, x[:, 0], tolerance=0.0, cluster=cluster)
    weights = np.round(x[:, 1], 1)
    (path,) = cusum.cusum(weights, null).paths
    scores = null.observed[:90] * weights
    for end, factor in zip(path.ends, path.factor, strict=True):
        inside = path.order[: end + 1]
        sums = np.bincount(cluster[inside], scores[inside])
        assert factor == pytest.approx(1 / np.sqrt((sums**2).sum()))


def test_weights_multiply_residuals_and_their_scale_is_nothing() -> None:
    _, p, y = world(50)
    w = np.random.default_rng(5).exponential(size=50)
    one, two = (
        cusum.bernoulli_null(y, p, tolerance=0.1, weight=factor * w) for factor in (1.0, 1e9)
    )
    assert np.allclose(one.observed, two.observed)
    assert np.allclose(one.observed[:50], w / w.mean() * (y - np.clip(p + 0.1, 0, 1)))
    with pytest.raises(ValueError, match="weights must be finite"):
        cusum.bernoulli_null(y, p, tolerance=0.1, weight=-w)


def test_skewness_shrinks_what_signs_alone_would_accuse() -> None:
    rng = np.random.default_rng(7)
    y = rng.lognormal(size=200) - np.exp(0.5)
    null = cusum.sign_flip_null(y, np.zeros(200), tolerance=0.0)
    found = cusum.axes(np.ones((200, 1)), null)
    assert found is not None
    plain = abs(y.sum()) / np.sqrt((y**2).sum())
    low = np.asarray(y - 2.0)
    below = cusum.sign_flip_null(low, np.zeros(200), tolerance=0.0)
    far = cusum.axes(np.ones((200, 1)), below)
    assert far is not None
    assert found.observed(null) <= plain + 1e-12
    assert far.observed(below) < abs(low.sum()) / np.sqrt((low**2).sum())


def test_bending_undoes_itself_and_rises() -> None:
    z = np.linspace(-4, 8, 60)
    for skewness in (-0.9, -0.2, 0.0, 0.3, 1.0):
        gamma = np.full(60, skewness)
        assert (np.diff(bent(z, gamma)) > 0).all()
        inside = 1 + 2 / 3 * skewness * z > 0
        straight = bent(z, gamma) - gamma / 6
        assert np.allclose((straight + gamma * straight**2 / 6)[inside], z[inside])


def test_shares_weigh_p_values_and_finer_draws_only_where_none_reaches() -> None:
    x, p, y = world(150)
    null = cusum.bernoulli_null(y, p, tolerance=0.0)
    found_axes = (cusum.axes(np.ones((150, 1)), null), cusum.axes(x, null))
    tests = [test for test in found_axes if test is not None]
    seed = np.random.SeedSequence(3)
    shared = cusum.run_test(*tests, null=null, draws=99, seed=seed, shares=[1.0, 3.0])
    plain = cusum.run_test(*tests, null=null, draws=99, seed=seed)
    assert shared.alone == plain.alone
    lines = [[test.observed(null)] for test in tests]
    for start in range(0, 99, 16):
        child = np.random.SeedSequence(3, spawn_key=(start // 16,))
        drawn = null.draw(np.random.default_rng(child), min(16, 99 - start))
        for line, test in zip(lines, tests, strict=True):
            line += test.values(drawn).tolist()
    chances = []
    for one, line in zip(tests, lines, strict=True):
        half = []
        for start in range(0, 100, 16):
            child = np.random.SeedSequence(3, spawn_key=(0, 0, start // 16))
            drawn = null.draw(np.random.default_rng(child), min(16, 100 - start))
            half += (one.values(drawn) ** 2 / 2).tolist()
        scale = float(np.std(half)) * 6**0.5 / np.pi
        place = float(np.mean(half)) - 0.5772156649 * scale
        gumbel = [np.exp(-np.exp(-(value**2 / 2 - place) / scale)) for value in line]
        chances.append([1 - below for below in gumbel])
    said = [1 / first + 3 / second for first, second in zip(*chances, strict=True)]
    assert shared.p == sum(each >= said[0] * (1 - 1e-9) for each in said) / 100
    # beyond its critical value a test is enough even where the other shows nothing
    limit = shared.critical(0.1)
    half_square = (limit + 1e-9) ** 2 / 2
    tail, weight = shared.tail, [1.0, 3.0][shared.chosen]
    assert tail is not None
    chance = 1 - np.exp(-np.exp(-(half_square - tail.place) / tail.scale))
    enough = weight / chance + 4 - weight
    assert sum(each >= enough for each in said[1:]) + 1 <= 10
    assert limit < shared.drawn[-1]
    alone = cusum.run_test(tests[1], null=null, draws=99, seed=seed)
    nearly = cusum.run_test(*tests, null=null, draws=99, seed=seed, shares=[1e-9, 1.0])
    assert nearly.p == alone.p
    wrong = cusum.bernoulli_null(np.ones(150), np.full(150, 0.3), tolerance=0.0)
    level = cusum.axes(np.ones((150, 1)), wrong)
    assert level is not None
    found = cusum.run_test(level, null=wrong, draws=99, seed=seed, finer=10)
    assert found.p == 1 / 991
    assert cusum.run_test(tests[1], null=null, draws=99, seed=seed, finer=10).p == alone.p
